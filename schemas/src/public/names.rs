//! Names for the numbers in events.

use crate::{
    event::uuid_bytes::UuidBytes,
    ids::{NodeId, Sequence},
};
use std::borrow::Cow;

/// Names for the numbers in an event. The state always has them, so the public form of a record has the same bytes
/// wherever and whenever it is made.
pub trait Names {
    /// The name of a node, even of a removed one; `None` if it never existed.
    fn node_name(&self, node: NodeId) -> Option<&str>;
    /// The cluster's name when the record was appended, or the name that the record gave it.
    fn cluster_name(&self, at: Sequence) -> &str;
    /// The unique id of the log when the record was appended: from its first record, or from the last one that says that
    /// the log was restored; zeros before that.
    fn log_id(&self, at: Sequence) -> UuidBytes;
}

/// The name of a node, or `#` and its number if it never existed.
pub fn node_name(names: &dyn Names, node: NodeId) -> Cow<'_, str> {
    names.node_name(node).map_or_else(|| Cow::Owned(format!("#{node}")), Cow::Borrowed)
}

/// The same as an owned text.
pub(super) fn name_of(names: &dyn Names, node: NodeId) -> String {
    node_name(names, node).into_owned()
}
