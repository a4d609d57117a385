//! What reference registers hold.

use crate::text::Text;
use std::{cell::RefCell, rc::Rc};

/// Objects of one kind in an order. Sorting it is seen by all that hold it (PBS-X-10).
pub(crate) type Set = Rc<RefCell<Vec<u32>>>;

/// The value of a reference register.
#[derive(Clone, Debug, Default)]
pub(crate) enum Reference {
    /// `NULLSTR`, an empty set, or a range that was never assigned.
    #[default]
    Null,
    Text(Text),
    Set(Set),
    Range([i64; 2]),
}

impl Reference {
    /// The string; `NULLSTR` is empty.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text.as_str(),
            _ => "",
        }
    }

    /// The set, if it is not empty for good.
    pub(crate) fn set(&self) -> Option<&Set> {
        match self {
            Self::Set(set) => Some(set),
            _ => None,
        }
    }

    /// The ends of the range.
    pub(crate) fn range(&self) -> [i64; 2] {
        match self {
            Self::Range(ends) => *ends,
            _ => [0, 0],
        }
    }
}

/// The register of an object.
pub(crate) fn object(place: Option<usize>) -> i64 {
    place.and_then(|place| i64::try_from(place).ok()).unwrap_or(NOTHING)
}

/// The register of no object.
pub(crate) const NOTHING: i64 = -1;

/// A set of the objects with these places.
pub(crate) fn set(places: impl Iterator<Item = usize>) -> Reference {
    let elements = places.filter_map(|place| u32::try_from(place).ok()).collect();
    Reference::Set(Rc::new(RefCell::new(elements)))
}

/// The elements of a set as registers.
pub(crate) fn elements(reference: &Reference) -> Vec<i64> {
    reference.set().map(|set| set.borrow().iter().map(|element| i64::from(*element)).collect()).unwrap_or_default()
}
