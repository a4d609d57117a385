//! Who used how much: windows of time by user, account and queue, folded from the log.
//!
//! The books ([`Books`]) are a pure fold, so that they can be made again from the log at will. Nothing in scheduling needs
//! them.

mod books;
mod charges;
mod service;
mod snapshot;
mod windows;

pub use books::Books;
pub use service::{Config, serve};
