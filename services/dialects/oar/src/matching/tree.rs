//! The resources that match a group, as the tree that its path describes.

use crate::{
    request::demand::{Count, Step},
    resources::{table::Resource, value::Value},
};
use std::collections::BTreeMap;

/// The items of the first level of a path, best first.
#[derive(Clone, Debug)]
pub struct Tree {
    items: Vec<Item>,
}

/// The resources with one value of a level.
#[derive(Clone, Debug)]
enum Item {
    /// An item of the lowest level. It is taken whole (OAR-R-06).
    Whole(Vec<u32>),
    /// The items of the next level inside it.
    Inner(Vec<Item>),
}

impl Tree {
    /// The tree of ranked resources. An item ranks by its best resource; a resource without a value of a level is in no
    /// item.
    pub fn new(path: &[Step], ranked: &[&Resource]) -> Self {
        Self { items: items(path, ranked) }
    }

    /// The number of items of the first level.
    pub fn size(&self) -> usize {
        self.items.len()
    }

    /// The first resources that fit the path. `is_free` says which may be taken.
    pub fn take(&self, path: &[Step], is_free: &dyn Fn(u32) -> bool) -> Option<Vec<u32>> {
        take(path, &self.items, is_free)
    }

    /// The number of items of the first level that fit the rest of the path.
    pub fn fitting(&self, path: &[Step], is_free: &dyn Fn(u32) -> bool) -> usize {
        self.items.iter().filter(|item| item.take(&path[1..], is_free).is_some()).count()
    }
}

fn items(path: &[Step], ranked: &[&Resource]) -> Vec<Item> {
    let Some((step, below)) = path.split_first() else { return Vec::new() };
    let mut places = BTreeMap::new();
    let mut blocks: Vec<Vec<&Resource>> = Vec::new();
    for resource in ranked {
        let Some(value) = resource.value(&step.level).filter(|value| !is_empty(value)) else { continue };
        let place = *places.entry(value).or_insert(blocks.len());
        if place == blocks.len() {
            blocks.push(Vec::new());
        }
        blocks[place].push(resource);
    }
    let item = |block: Vec<&Resource>| match below {
        [] => Item::Whole(block.into_iter().map(Resource::id).collect()),
        below => Item::Inner(items(below, &block)),
    };
    blocks.into_iter().map(item).collect()
}

/// Whether it is an empty text: the node of a resource without one.
fn is_empty(value: &Value) -> bool {
    matches!(value, Value::Text(text) if text.is_empty())
}

/// Each level is counted inside its parent (OAR-R-07). Items of a level have no resource in common, so taking the first
/// ones that fit never spoils another choice.
fn take(path: &[Step], items: &[Item], is_free: &dyn Fn(u32) -> bool) -> Option<Vec<u32>> {
    let (step, below) = path.split_first()?;
    let mut fitting = items.iter().map(|item| item.take(below, is_free));
    let chosen: Vec<Vec<u32>> = match step.count {
        Count::Exactly(count) => {
            let count = count as usize;
            let chosen: Vec<_> = fitting.flatten().take(count).collect();
            if chosen.len() < count { return None } else { chosen }
        }
        Count::All => fitting.by_ref().collect::<Option<_>>()?,
        Count::Best => fitting.flatten().collect(),
        Count::BestHalf => {
            let mut chosen: Vec<_> = fitting.flatten().collect();
            chosen.truncate(chosen.len() / 2);
            chosen
        }
    };
    (!chosen.is_empty()).then(|| chosen.concat())
}

impl Item {
    fn take(&self, path: &[Step], is_free: &dyn Fn(u32) -> bool) -> Option<Vec<u32>> {
        match self {
            Self::Whole(resources) => resources.iter().all(|id| is_free(*id)).then(|| resources.clone()),
            Self::Inner(items) => take(path, items, is_free),
        }
    }
}
