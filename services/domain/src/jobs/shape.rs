//! Request shapes: real queues hold few distinct requests, so equal ones are stored once and identified by a small
//! number.

use muster_schemas::resources::Alternative;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// Identifies a shape among all in use. Never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ShapeId(pub u64);

/// The request of a component, shared by all components with the same one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Two components have equal requests exactly if their shapes have the same id.
    pub id: ShapeId,
    /// The alternatives, at least one, in the order in which they are tried.
    pub alternatives: Arc<[Alternative]>,
}

/// The shapes in use, with the number of components that use each.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    next: u64,
    by_id: BTreeMap<ShapeId, Entry>,
    /// For lookups only; never iterated, so its order has no effect.
    by_alternatives: HashMap<Arc<[Alternative]>, ShapeId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    shape: Arc<Shape>,
    uses: u64,
}

impl PartialEq for Shapes {
    fn eq(&self, other: &Self) -> bool {
        self.next == other.next && self.by_id == other.by_id
    }
}

impl Shapes {
    /// The shape of these alternatives, with one more use.
    pub(crate) fn take(&mut self, alternatives: &[Alternative]) -> Arc<Shape> {
        if let Some(id) = self.by_alternatives.get(alternatives)
            && let Some(entry) = self.by_id.get_mut(id)
        {
            entry.uses += 1;
            return entry.shape.clone();
        }
        let id = ShapeId(self.next);
        self.next += 1;
        let alternatives: Arc<[Alternative]> = alternatives.into();
        let shape = Arc::new(Shape { id, alternatives: alternatives.clone() });
        self.by_alternatives.insert(alternatives, id);
        self.by_id.insert(id, Entry { shape: shape.clone(), uses: 1 });
        shape
    }

    /// One more component uses the shape.
    pub(crate) fn take_again(&mut self, shape: &Shape) {
        if let Some(entry) = self.by_id.get_mut(&shape.id) {
            entry.uses += 1;
        }
    }

    /// One component fewer uses the shape; the last one removes it.
    pub(crate) fn give_back(&mut self, shape: &Shape) {
        let Some(entry) = self.by_id.get_mut(&shape.id) else { return };
        entry.uses -= 1;
        if entry.uses == 0 {
            self.by_alternatives.remove(&shape.alternatives);
            self.by_id.remove(&shape.id);
        }
    }

    /// The shape with this id, while it is in use.
    pub fn get(&self, id: ShapeId) -> Option<&Arc<Shape>> {
        self.by_id.get(&id).map(|entry| &entry.shape)
    }

    /// How many distinct shapes are in use.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether no shape is in use.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The number of components that use each shape.
    pub(crate) fn uses(&self) -> BTreeMap<ShapeId, u64> {
        self.by_id.iter().map(|(id, entry)| (*id, entry.uses)).collect()
    }
}

/// As stored: the next id, then the id, use count and alternatives of each shape.
type Stored = (u64, Vec<(ShapeId, u64, Arc<[Alternative]>)>);

impl Serialize for Shapes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries: Vec<_> =
            self.by_id.iter().map(|(id, entry)| (*id, entry.uses, entry.shape.alternatives.clone())).collect();
        (self.next, entries).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Shapes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (next, entries) = Stored::deserialize(deserializer)?;
        let mut shapes = Self { next, ..Self::default() };
        for (id, uses, alternatives) in entries {
            shapes.by_alternatives.insert(alternatives.clone(), id);
            shapes.by_id.insert(id, Entry { shape: Arc::new(Shape { id, alternatives }), uses });
        }
        Ok(shapes)
    }
}

/// How a component's shape is stored: as its id alone. Reading creates a stand-in without alternatives, which loading a
/// snapshot replaces by the shape with that id.
pub(crate) mod by_id {
    use super::{Arc, Deserialize, Deserializer, Serialize, Serializer, Shape, ShapeId};

    pub(crate) fn serialize<S: Serializer>(shape: &Arc<Shape>, serializer: S) -> Result<S::Ok, S::Error> {
        shape.id.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Shape>, D::Error> {
        ShapeId::deserialize(deserializer).map(|id| Arc::new(Shape { id, alternatives: Arc::new([]) }))
    }
}
