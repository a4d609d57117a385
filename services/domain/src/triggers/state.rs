//! The triggers that are set, and what they have seen.

use muster_schemas::{NodeId, Timestamp, event::Owner, trigger::TriggerSpec};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// All triggers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Triggers {
    /// The highest number so far.
    pub(crate) highest: u32,
    /// By number.
    pub(crate) all: BTreeMap<u32, Trigger>,
}

/// A trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    /// The user who has set it.
    pub owner: Arc<Owner>,
    /// What it watches, and what it runs.
    pub spec: Arc<TriggerSpec>,
    /// When its job ended, if it waits for that.
    pub(crate) ended: Option<Timestamp>,
    /// The nodes that are as they were when they turned, or before it: for `NodeTurn::Up`, those that are down.
    pub(crate) known: BTreeSet<NodeId>,
    /// Those that have turned since it last fired, and when.
    pub(crate) turned: BTreeMap<NodeId, Timestamp>,
}
