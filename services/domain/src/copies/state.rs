//! How far the copying of files for a job is.

use muster_schemas::{NodeId, RunId, Sequence, copies::CopyReport};
use serde::{Deserialize, Serialize};

/// The copying of files for a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCopies {
    /// Its stage.
    pub stage: CopyStage,
    /// How often files could not be copied before a start (PBS-G-04).
    pub failures: u32,
    /// The last result.
    pub last: Option<CopyReport>,
    /// Whether its request names the node that has the files, because of them.
    pub is_bound: bool,
}

/// The stage of the copying of files for a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CopyStage {
    /// Nothing is copied; files that it needs are copied before it starts (PBS-G-05).
    #[default]
    Wanted,
    /// They are being copied to a node.
    Coming {
        /// The node.
        node: NodeId,
        /// The record with which this began.
        copy: Sequence,
        /// The run that waits for it, if one does.
        run: Option<RunId>,
    },
    /// They are on this node.
    In {
        /// The node.
        node: NodeId,
    },
    /// They could not be copied. The job waits.
    Failed,
    /// The job is over, and its results are being copied from a node.
    Leaving {
        /// The node.
        node: NodeId,
        /// The record with which this began.
        copy: Sequence,
    },
    /// Its results were copied, or could not be.
    Out,
    /// The job ended while files were being copied ahead, which its node has to end.
    Dropped {
        /// The node.
        node: NodeId,
        /// The record with which the copying began.
        copy: Sequence,
    },
}
