//! Runs with their holdings, and the job that is about to become one.

use crate::{
    limits::Uses,
    model::{ActiveRun, Slot},
};
use muster_schemas::{JobId, NodeId, Timestamp};
use std::ops::Range;

/// A run with its holdings.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub run: ActiveRun,
    pub assumed_end: Timestamp,
    pub usage: Uses,
}

impl Run {
    /// The nodes that it has a share of.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.run.placement.shares().map(|share| share.node)
    }
}

/// A job that has just left the queue with a promise, and the numbers of what that freed.
#[derive(Clone, Debug)]
pub(super) struct JustLeft {
    pub job: JobId,
    pub slot: Slot,
    pub freed: Range<usize>,
}
