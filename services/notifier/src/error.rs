//! Why a delivery failed.

/// Why a delivery failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DeliveryError {
    /// Trying again may help.
    #[error("{0}")]
    Temporary(String),
    /// Trying again does not help.
    #[error("{0}")]
    Permanent(String),
}
