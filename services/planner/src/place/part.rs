//! A part of a node for a request.

use crate::free::FreeNode;
use muster_schemas::resources::IndexSet;

/// This many tasks and these cores of a node, before memory and GPUs are dealt out.
#[derive(Clone, Debug)]
pub(super) struct Part<'f, 'a> {
    pub node: &'f FreeNode<'a>,
    pub cores: IndexSet,
    /// GPUs that the path itself counts.
    pub gpus: u32,
    pub tasks: u32,
}
