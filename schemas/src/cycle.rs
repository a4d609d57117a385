//! Cycles of scheduling programs, as they ended.

use crate::{policy::PolicySource, time::Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Maximum number of actions that a cycle lists as refused; it counts all.
pub const MOST_REFUSED_ACTIONS: usize = 100;
/// Maximum number of bytes of a text in a cycle.
pub const MOST_CYCLE_TEXT_BYTES: usize = 1_024;
/// Maximum number of bytes of the global variables that are kept.
pub const MOST_GLOBALS_BYTES: usize = 64 << 10;

/// A cycle of a scheduling program (PBS-C-11). Its starts and the changes of jobs have their own earlier records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProgramCycle {
    /// Its number, from 1. It continues when the planner starts again.
    pub number: u64,
    /// The number of the planner's start, from 1.
    pub epoch: u64,
    /// Why it began, in words such as `SCH_SCHEDULE_NEW`; the program was told the first one.
    pub reasons: Vec<String>,
    /// Whether it was prime time by the policy in force.
    pub is_prime: bool,
    /// Whether it was dedicated time by that policy.
    pub is_dedicated: bool,
    /// The program, as `basl:FILE`.
    pub program: String,
    /// The files that it is made of, as far as they are known.
    pub sources: Vec<PolicySource>,
    /// When it began.
    pub began: Timestamp,
    /// How long it took, in milliseconds.
    pub milliseconds: u64,
    /// Number of jobs that it started.
    pub started: u64,
    /// Number of other actions that were carried out; comments are none.
    pub done: u64,
    /// Number of actions that were refused.
    pub refused: u64,
    /// The first of these.
    pub refusals: Vec<RefusedAction>,
    /// What went wrong in it, if anything did.
    pub trouble: Option<String>,
    /// Whether the program failed too often in a row, so that scheduling was switched off (PBS-X-24).
    pub gave_up: bool,
    /// The program's global variables after it, as JSON, if it keeps any (PBS-X-07).
    pub globals: Option<String>,
}

/// An action that was refused. It changed nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedAction {
    /// The action, such as `run`.
    pub action: String,
    /// What it was about: a job or a queue; empty if it was about neither.
    pub about: String,
    /// Why, for people.
    pub reason: String,
}
