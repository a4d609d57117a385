//! The id of a log.

/// The id of the cluster whose history a log holds, or of the log since it was restored.
pub type LogId = [u8; 16];
