//! Lists whose items are each on one node, such as the parts of a run.

use muster_schemas::NodeId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{ops::Deref, slice};

/// Lists up to this length are searched; longer ones have an index.
const LOOKED_THROUGH: usize = 16;

/// Something that is on a node.
pub trait OnNode {
    /// The node, which never changes.
    fn node(&self) -> NodeId;
}

/// An ordered list whose items are each on one node. The items of a node are found without searching all of a long
/// list: each heartbeat of one node asks a run on ten thousand nodes for its part. Only the list is stored.
#[derive(Clone, Debug)]
pub struct ByNode<T> {
    list: Vec<T>,
    /// The positions in the list, by node and then in order; empty for a short list.
    index: Vec<u32>,
}

impl<T: OnNode> ByNode<T> {
    fn of(list: Vec<T>) -> Self {
        let mut index = Vec::new();
        if list.len() > LOOKED_THROUGH {
            index = (0..u32::try_from(list.len()).unwrap_or(u32::MAX)).collect();
            index.sort_by_key(|at: &u32| list[*at as usize].node());
        }
        Self { list, index }
    }

    /// The positions of a node's items, in order.
    pub fn positions_on(&self, node: NodeId) -> impl Iterator<Item = usize> + '_ {
        let looked_through = if self.index.is_empty() { 0..self.list.len() } else { 0..0 };
        let found = looked_through.filter(move |at| self.list[*at].node() == node);
        self.indexed(node).chain(found)
    }

    fn indexed(&self, node: NodeId) -> impl Iterator<Item = usize> + '_ {
        let first = self.index.partition_point(|at| self.list[*at as usize].node() < node);
        let at = self.index[first..].iter().map(|at| *at as usize);
        at.take_while(move |at| self.list[*at].node() == node)
    }

    /// The items of a node, in order.
    pub fn on(&self, node: NodeId) -> impl Iterator<Item = &T> {
        self.positions_on(node).map(|at| &self.list[at])
    }

    /// The item at a position. Its node must not be changed.
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.list.get_mut(at)
    }

    /// All items. Their nodes must not be changed.
    pub(crate) fn iter_mut(&mut self) -> slice::IterMut<'_, T> {
        self.list.iter_mut()
    }

    /// Appends an item.
    pub(crate) fn push(&mut self, item: T) {
        let (at, node) = (self.list.len(), item.node());
        self.list.push(item);
        if self.index.is_empty() {
            if self.list.len() > LOOKED_THROUGH {
                *self = Self::of(std::mem::take(&mut self.list));
            }
            return;
        }
        let behind = self.index.partition_point(|at| self.list[*at as usize].node() <= node);
        self.index.insert(behind, u32::try_from(at).unwrap_or(u32::MAX));
    }

    /// Removes an item.
    pub(crate) fn remove(&mut self, at: usize) {
        self.list.remove(at);
        self.index.retain(|known| *known as usize != at);
        for known in self.index.iter_mut().filter(|known| **known as usize > at) {
            *known -= 1;
        }
    }
}

impl<T> Deref for ByNode<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.list
    }
}

impl<T: OnNode> FromIterator<T> for ByNode<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut list: Vec<T> = items.into_iter().collect();
        list.shrink_to_fit();
        Self::of(list)
    }
}

impl<T> IntoIterator for ByNode<T> {
    type Item = T;

    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a ByNode<T> {
    type Item = &'a T;

    type IntoIter = slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

/// The index is derived from the list.
impl<T: PartialEq> PartialEq for ByNode<T> {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl<T: Eq> Eq for ByNode<T> {}

impl<T: Serialize> Serialize for ByNode<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.list.serialize(serializer)
    }
}

impl<'de, T: OnNode + Deserialize<'de>> Deserialize<'de> for ByNode<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut list = Vec::deserialize(deserializer)?;
        list.shrink_to_fit();
        Ok(Self::of(list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Item(u32, usize);

    impl OnNode for Item {
        fn node(&self) -> NodeId {
            NodeId(self.0)
        }
    }

    #[derive(Clone, Debug)]
    enum Change {
        Push(u32),
        Remove(prop::sample::Index),
    }

    fn changes() -> impl Strategy<Value = Vec<Change>> {
        let change =
            prop_oneof![(0..20_u32).prop_map(Change::Push), any::<prop::sample::Index>().prop_map(Change::Remove)];
        prop::collection::vec(change, 0..60)
    }

    proptest! {
        /// Whatever the list's length and history, the index finds the same items of a node as a search of the whole
        /// list.
        #[test]
        fn a_list_finds_what_is_on_a_node(first in prop::collection::vec(0..20_u32, 0..40), changes in changes()) {
            let mut list: ByNode<Item> = first.iter().enumerate().map(|(at, node)| Item(*node, at)).collect();
            let mut model: Vec<Item> = list.to_vec();
            for (number, change) in changes.into_iter().enumerate() {
                match change {
                    Change::Push(node) => {
                        list.push(Item(node, 1000 + number));
                        model.push(Item(node, 1000 + number));
                    }
                    Change::Remove(_) if model.is_empty() => {}
                    Change::Remove(which) => {
                        let at = which.index(model.len());
                        list.remove(at);
                        model.remove(at);
                    }
                }
                prop_assert_eq!(&*list, &*model);
                for node in 0..20 {
                    let wanted: Vec<usize> = (0..model.len()).filter(|at| model[*at].0 == node).collect();
                    prop_assert_eq!(list.positions_on(NodeId(node)).collect::<Vec<_>>(), wanted);
                }
            }
        }
    }
}
