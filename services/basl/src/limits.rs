//! How much a cycle may do.

use std::fmt;

/// The bounds of one cycle (PBS-X-13, PBS-C-13).
pub struct Limits<'a> {
    /// The maximum number of statements. The test of a loop counts as one, and so does each element that `Sort`,
    /// `QueFilter` or `QueJobFind` looks at.
    pub statements: u64,
    /// Asked after every few thousand statements; the cycle ends when it says true.
    pub is_over: Option<&'a mut dyn FnMut() -> bool>,
}

impl Default for Limits<'_> {
    /// Ten million statements and no deadline.
    fn default() -> Self {
        Self { statements: 10_000_000, is_over: None }
    }
}

impl fmt::Debug for Limits<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Limits").field("statements", &self.statements).finish_non_exhaustive()
    }
}

/// Calls inside each other.
pub(crate) const CALLS: usize = 1000;
/// Registers of all calls together.
pub(crate) const WORDS: usize = 1 << 20;
pub(crate) const REFERENCES: usize = 1 << 18;
/// `Sort`, `QueFilter` and `QueJobFind` inside each other's key functions.
pub(crate) const KEYED: usize = 8;
/// Queues that `QueFilter` makes in a cycle.
pub(crate) const QUEUES_MADE: usize = 100_000;
/// Bytes of a string.
pub(crate) const TEXT: usize = 64 << 10;
/// Bytes of all strings that a program has joined and holds.
pub(crate) const TEXTS: usize = 64 << 20;
/// Bytes that a cycle prints.
pub(crate) const PRINTED: usize = 1 << 20;
/// Statements between two looks at the deadline.
pub(crate) const BETWEEN_LOOKS: u64 = 4096;
