//! The log of a cluster.

use super::stored::Identity;
use rocksdb::DB;
use std::{
    path::PathBuf,
    sync::{OnceLock, atomic::AtomicU64},
};

/// The log of one cluster. All of it can be read from many threads at once; one writes.
pub struct Log {
    pub(super) db: DB,
    pub(super) folder: PathBuf,
    // With each question where the log ends these two are asked for as well, a thousand times a second on a busy system.
    /// The first record, once it has been looked for; 0 until then. It only grows.
    pub(super) first: AtomicU64,
    /// Whose log it is, once that has been read. It does not change.
    pub(super) identity: OnceLock<Identity>,
}
