//! Faults of values of attributes.

/// The fault of a value, as the end of a sentence that begins with the attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem(pub String);

impl Problem {
    /// An attribute or a value that the objects of this kind do not have here.
    pub fn unsupported(why: &str) -> Self {
        Self(format!("is not supported: {why}"))
    }
}
