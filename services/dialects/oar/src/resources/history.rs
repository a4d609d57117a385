//! Changes of properties.

use super::value::Value;

/// A changed value (OAR-R-22).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The number of the resource.
    pub resource: u32,
    /// The property.
    pub property: String,
    /// The value before; `None` if it was unset.
    pub old: Option<Value>,
    /// The value after; `None` if it is unset.
    pub new: Option<Value>,
}
