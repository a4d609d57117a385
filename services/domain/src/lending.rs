//! Cores of suspended runs, which other runs may use until those continue (SL-C-37).
//!
//! A run that lends its cores keeps everything else: memory, GPUs, licences. If it had its nodes exclusively, it shares
//! them meanwhile. Before it continues, it waits until no other run has its cores, and no new run gets them; if several
//! wait for the same core, the one that was first told to continue comes first. So a core never belongs to two runs that are not
//! suspended.

mod apply;
pub(crate) mod claims;
pub(crate) mod decide;
pub(crate) mod making_way;
