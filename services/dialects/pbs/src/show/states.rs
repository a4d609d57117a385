//! The letters of states.

use crate::flavour::Flavour;
use muster_schemas::{
    job::JobState,
    views::{JobView, ReasonWord},
};
use std::collections::BTreeMap;

/// The letter of a job's state: `Q H W R S E`, and `B X F` in PBS Pro, `C` in TORQUE.
pub fn job_state(view: &JobView, flavour: Flavour) -> char {
    let is_task = view.id.index.is_some();
    if let Some(array) = view.array.as_ref().filter(|_| view.state != JobState::Finished) {
        let has_begun = array.running > 0 || array.finished.values().any(|count| *count > 0);
        return match (has_begun, flavour) {
            (true, Flavour::PbsPro) => 'B',
            (true, Flavour::Torque) if array.running > 0 => 'R',
            _ => waiting(view),
        };
    }
    match (view.state, flavour) {
        (JobState::Held | JobState::Queued, _) => waiting(view),
        (JobState::Launching | JobState::Running, _) => 'R',
        (JobState::Suspended, _) => 'S',
        (JobState::Finishing, _) => 'E',
        (JobState::Finished, Flavour::PbsPro) if is_task => 'X',
        (JobState::Finished, Flavour::PbsPro) => 'F',
        (JobState::Finished, Flavour::Torque) => 'C',
    }
}

/// A job that has not started: held, waiting for a time, or queued.
fn waiting(view: &JobView) -> char {
    if !view.holds.is_empty() {
        return 'H';
    }
    match view.reason.as_ref().map(|reason| reason.code) {
        Some(
            ReasonWord::Held
            | ReasonWord::Dependency
            | ReasonWord::DependencyNeverMet
            | ReasonWord::Namesake
            | ReasonWord::StagingFailed
            | ReasonWord::Configuring,
        ) => 'H',
        Some(ReasonWord::BeginTime | ReasonWord::HeldUntil) => 'W',
        _ => 'Q',
    }
}

/// The number of jobs in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Queued.
    pub queued: u64,
    /// Held.
    pub held: u64,
    /// Waiting for a time.
    pub waiting: u64,
    /// Running.
    pub running: u64,
    /// Being stopped or cleaned up.
    pub exiting: u64,
    /// Over; only TORQUE counts them.
    pub complete: u64,
}

impl Counts {
    /// Those of the whole cluster, with how many of the held ones nothing else keeps than a time.
    pub fn of_states(states: &BTreeMap<JobState, u64>, held_until: u64) -> Self {
        let of = |state: JobState| states.get(&state).copied().unwrap_or(0);
        Self {
            queued: of(JobState::Queued),
            held: of(JobState::Held).saturating_sub(held_until),
            waiting: held_until,
            running: of(JobState::Launching) + of(JobState::Running) + of(JobState::Suspended),
            exiting: of(JobState::Finishing),
            complete: of(JobState::Finished),
        }
    }

    /// All that are not over.
    pub const fn total(self) -> u64 {
        self.queued + self.held + self.waiting + self.running + self.exiting
    }

    /// The value of `state_count`.
    pub fn text(self, flavour: Flavour) -> String {
        let Self { queued, held, waiting, running, exiting, complete } = self;
        let last = match flavour {
            Flavour::PbsPro => "Begun:0".to_owned(),
            Flavour::Torque => format!("Complete:{complete}"),
        };
        format!("Transit:0 Queued:{queued} Held:{held} Waiting:{waiting} Running:{running} Exiting:{exiting} {last} ")
    }
}
