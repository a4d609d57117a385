//! The meaning of numbers in events.

use crate::{
    event::uuid_bytes::UuidBytes,
    ids::{NodeId, Sequence},
};
use std::borrow::Cow;

/// The meaning of the numbers in an event. The state can always tell: the public form of a record is the same bytes
/// wherever and however late it is made.
pub trait Names {
    /// The name of a node, also of one that has been removed; `None` if it has never been there.
    fn node_name(&self, node: NodeId) -> Option<&str>;
    /// The name that the cluster had when the record was appended, or got by it.
    fn cluster_name(&self, at: Sequence) -> &str;
    /// What tells the log from every other: the id in its first record; zeros before that.
    fn log_id(&self) -> UuidBytes;
}

/// The name of a node, or its number behind a `#` if there has never been one.
pub fn node_name(names: &dyn Names, node: NodeId) -> Cow<'_, str> {
    names.node_name(node).map_or_else(|| Cow::Owned(format!("#{node}")), Cow::Borrowed)
}

/// The same as a text of its own.
pub(super) fn name_of(names: &dyn Names, node: NodeId) -> String {
    node_name(names, node).into_owned()
}
