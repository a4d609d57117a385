//! Files that nodes copy for jobs: before a job starts, and after it has ended (PBS-G-01).

use crate::{
    event::Owner,
    ids::{JobId, RunId, Sequence},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The files of a job that its node copies. The copies run as the job's owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FileCopies {
    /// Copied to the node before the job starts there; at most 1,000.
    pub before: Vec<FileCopy>,
    /// Copied from the node after the job has ended; at most 1,000.
    pub after: Vec<FileCopy>,
}

impl FileCopies {
    /// Whether there is nothing to copy.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }

    /// The files of one direction.
    pub fn of(&self, direction: CopyDirection) -> &[FileCopy] {
        match direction {
            CopyDirection::In => &self.before,
            CopyDirection::Out => &self.after,
        }
    }
}

/// One file or folder to copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FileCopy {
    /// Its path on the node of the job; 1 to 4,096 bytes. A relative path begins in the owner's home folder.
    pub local: String,
    /// The host of the other copy, or `user@host`; empty for the node itself. At most 255 letters, digits and `.-_@`.
    pub host: String,
    /// Its path there; 1 to 4,096 bytes.
    pub remote: String,
}

/// Whether files are copied to the node or from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CopyDirection {
    /// To the node, before the job starts.
    In,
    /// From the node, after the job has ended.
    Out,
}

/// The result of copying the files of a job in one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CopyReport {
    /// The size of what was copied, in bytes; `None` if it is not known.
    pub bytes: Option<u64>,
    /// How long it took, in milliseconds.
    pub milliseconds: u64,
    /// Why not everything was copied, for people; at most 1,024 bytes. `None`: everything was.
    pub failure: Option<String>,
}

/// Everything that a node needs to copy the files of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyOrder {
    /// The job or task.
    pub job: JobId,
    /// The record with which the copying began; no other copying has it.
    pub copy: Sequence,
    /// The run that waits for it, if one does: it ends with that run.
    pub run: Option<RunId>,
    /// The owner; the copies run as this user.
    pub owner: Owner,
    /// To the node or from it.
    pub direction: CopyDirection,
    /// The files, in the order in which they are copied.
    pub files: Vec<FileCopy>,
    /// How long all of it may take, in seconds.
    pub limit_seconds: u32,
    /// The greatest size of all files together, in bytes; 0 means no limit.
    pub limit_bytes: u64,
}
