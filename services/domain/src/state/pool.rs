//! Sharing of equal values. Values that jobs have in common (owner, queue, account, name) are stored once in memory.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

/// A bounded cache of recently seen values, so that equal ones share one allocation. It never changes a value, only
/// where it is stored: all pools are equal to each other.
#[derive(Debug)]
pub struct Pool<T: ?Sized> {
    slots: Box<[Option<Arc<T>>]>,
}

/// A power of two. Values with the same slot displace each other, which only costs memory.
const SLOTS: usize = 1024;

impl<T: ?Sized> Default for Pool<T> {
    fn default() -> Self {
        Self { slots: vec![None; SLOTS].into_boxed_slice() }
    }
}

impl<T: ?Sized> Clone for Pool<T> {
    fn clone(&self) -> Self {
        Self { slots: self.slots.clone() }
    }
}

impl<T: ?Sized> PartialEq for Pool<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T: ?Sized + Hash + Eq> Pool<T> {
    /// A shared copy of the value.
    pub fn share<V>(&mut self, value: V) -> Arc<T>
    where
        V: AsRef<T> + Into<Arc<T>>,
    {
        let mut hasher = DefaultHasher::new();
        value.as_ref().hash(&mut hasher);
        let slot = &mut self.slots[hasher.finish() as usize % SLOTS];
        match slot {
            Some(kept) if **kept == *value.as_ref() => kept.clone(),
            _ => slot.insert(value.into()).clone(),
        }
    }
}
