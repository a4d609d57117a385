//! Which nodes `sinfo` shows, and how.

use crate::{show::squeue::Format, words::StateTest};
use std::collections::BTreeSet;

/// The arrangement of `sinfo`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrangement {
    /// By partition and state.
    #[default]
    Partitions,
    /// By partition alone (`-s`).
    Summary,
    /// By node (`-N`).
    Nodes,
    /// Nodes with a reason to be out of service (`-R`).
    Reasons,
}

/// What `sinfo` shows, and how.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    /// The arrangement; it also determines the default columns.
    pub arrangement: Arrangement,
    /// The columns.
    pub format: Option<Format>,
    /// More columns, and a date at the top (`-l`).
    pub is_long: bool,
    /// Without the line above the columns (`-h`).
    pub no_header: bool,
    /// Only these partitions; empty means all.
    pub partitions: BTreeSet<String>,
    /// Only these nodes; empty means all.
    pub nodes: BTreeSet<String>,
    /// Only nodes in one of these states; empty means all.
    pub states: Vec<StateTest>,
    /// Only nodes that answer (`-r`), or that do not (`-d`).
    pub responding: Option<bool>,
    /// Nodes with different sizes have separate lines (`-e`).
    pub is_exact: bool,
    /// The order, as letters of columns with `+` or `-`; `None` is the default.
    pub sort: Option<String>,
}
