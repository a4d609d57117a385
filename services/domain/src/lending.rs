//! Cores of suspended runs, which others can have until those continue (SL-C-37).
//!
//! A run that lends its cores keeps everything else: memory, GPUs, licences. One that had its nodes for itself shares
//! them meanwhile. Before it continues it waits until nobody else has its cores, and nobody new gets them; if several
//! wait for the same core, the one that was asked first goes ahead. So a core never belongs to two runs that are not
//! suspended.

mod apply;
pub(crate) mod claims;
pub(crate) mod decide;
