//! Usage in fixed windows of time (OAR-A).

/// What a user used and asked for, and the windows in which that was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// In resource-seconds.
    pub asked: u64,
    /// In resource-seconds.
    pub used: u64,
    /// The begin of the first window.
    pub first: i64,
    /// The end of the last window.
    pub last: i64,
}
