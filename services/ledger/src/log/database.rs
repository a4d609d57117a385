//! The log of a cluster.

use super::stored::Identity;
use rocksdb::DB;
use std::{
    path::PathBuf,
    sync::{OnceLock, atomic::AtomicU64},
};

/// The log of one cluster. Many threads can read it at once; one writes.
pub struct Log {
    pub(super) db: DB,
    pub(super) folder: PathBuf,
    // Cached: every query for the end of the log reads both, a thousand times a second on a busy system.
    /// The first record, once it is known; 0 until then. It only grows.
    pub(super) first: AtomicU64,
    /// The identity of the log, once it has been read. It does not change.
    pub(super) identity: OnceLock<Identity>,
}
