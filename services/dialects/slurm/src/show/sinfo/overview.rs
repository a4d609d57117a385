//! Which nodes `sinfo` shows, and how.

use crate::{show::squeue::Format, words::StateTest};
use std::collections::BTreeSet;

/// How `sinfo` arranges what it shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrangement {
    /// By partition and state.
    #[default]
    Partitions,
    /// By partition alone (`-s`).
    Summary,
    /// By node (`-N`).
    Nodes,
    /// Nodes that have a reason not to serve (`-R`).
    Reasons,
}

/// What `sinfo` shows, and how.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    /// How it is arranged; also chooses the columns if none are given.
    pub arrangement: Arrangement,
    /// The columns.
    pub format: Option<Format>,
    /// More columns, and a date above all (`-l`).
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
    /// Nodes with different sizes have lines of their own (`-e`).
    pub is_exact: bool,
    /// The order, as letters of columns with `+` or `-`; `None` is the usual one.
    pub sort: Option<String>,
}
