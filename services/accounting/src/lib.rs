//! Who used how much: windows of time by user, account and queue, folded from the log.
//!
//! The books ([`Books`]) are a pure fold, so they can be recomputed from the log at will. Scheduling does not need
//! them.

mod books;
mod charges;
mod service;
mod snapshot;
mod windows;

pub use books::Books;
pub use service::{Config, serve};
