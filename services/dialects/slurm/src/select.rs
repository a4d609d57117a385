//! Which jobs, components, tasks and steps a command means (SL-I-06 to I-10, SL-M-01 to M-09, SL-M-17, SL-A-03,
//! SL-A-04, SL-C-18).
//!
//! These are functions of ids, filters and the current lines of the jobs: the result is the targets, or a refusal in
//! Slurm's words without any action.

mod control;
mod filter;
mod listed;

pub use control::{Action, Chosen, Target, choose};
pub use filter::{JobFilter, left_of, matching};
pub use listed::{listed, of_accounting, of_squeue, of_steps, shown_by_scontrol};

use crate::{
    features::SWITCH_WAIT_SECONDS,
    job_id::JobPart,
    show::record::{ArrayPlace, ArrayTasks, JobRecord},
};

/// The site's settings for the commands, like `SchedulerParameters` of `slurm.conf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerParameters {
    /// The number of a component means the whole job when it is cancelled, held or released (SL-M-05).
    pub whole_hetjob: bool,
    /// No step spans components (SL-R-11).
    pub disable_hetjob_steps: bool,
    /// Several groups of a step may be on one component, on separate nodes, which Slurm refuses (SL-R-06, SL-R-18).
    pub repeat_het_groups: bool,
    /// Users may move some of their jobs before others of theirs (`scontrol top`).
    pub enable_user_top: bool,
    /// The longest wait of jobs for few switches, in seconds: `max_switch_wait` (SL-C-12).
    pub most_switch_wait_seconds: u64,
}

impl Default for SchedulerParameters {
    fn default() -> Self {
        Self {
            whole_hetjob: false,
            disable_hetjob_steps: false,
            repeat_het_groups: false,
            enable_user_top: false,
            most_switch_wait_seconds: SWITCH_WAIT_SECONDS,
        }
    }
}

impl SchedulerParameters {
    /// Reads comma-separated words; those without a meaning here are ignored. `whole_pack` is an old name.
    pub fn parse(text: &str) -> Self {
        let number = |name: &str| {
            let mut pairs = text.split(',').filter_map(|word| word.trim().split_once('='));
            pairs.find(|(own, _)| own.eq_ignore_ascii_case(name)).and_then(|(_, number)| number.parse().ok())
        };
        let has = |names: &[&str]| {
            text.split(',').any(|word| names.iter().any(|name| name.eq_ignore_ascii_case(word.trim())))
        };
        Self {
            whole_hetjob: has(&["whole_hetjob", "whole_pack"]),
            disable_hetjob_steps: has(&["disable_hetjob_steps", "disable_pack_steps"]),
            repeat_het_groups: has(&["repeat_het_groups"]),
            enable_user_top: has(&["enable_user_top"]),
            most_switch_wait_seconds: number("max_switch_wait").unwrap_or(SWITCH_WAIT_SECONDS),
        }
    }
}

/// Whether an id names the line's job, array or component.
fn is_named(part: &JobPart, record: &JobRecord) -> bool {
    match part {
        JobPart::Number(number) => {
            record.number == *number
                || record.het.as_ref().is_some_and(|het| het.leader == *number)
                || record.array.as_ref().is_some_and(|array| array.number == *number || waits_with(array, *number))
        }
        JobPart::Component { leader, offset } => {
            record.het.as_ref().is_some_and(|het| het.leader == *leader && het.offset == *offset)
        }
        JobPart::AllTasks(number) => record.array.as_ref().is_some_and(|array| array.number == *number),
        JobPart::Tasks { array, indices, .. } => {
            let of_array = record.array.as_ref().filter(|place| place.number == *array);
            of_array.is_some_and(|place| match &place.tasks {
                ArrayTasks::One(index) => indices.contains(*index),
                ArrayTasks::Waiting(waiting) => !waiting.intersection(indices).is_empty(),
            })
        }
    }
}

/// Whether the task with this number is among the tasks of a line that have not started.
fn waits_with(array: &ArrayPlace, number: u64) -> bool {
    match &array.tasks {
        ArrayTasks::One(_) => false,
        ArrayTasks::Waiting(waiting) => array.numbered_at(number).is_some_and(|index| waiting.contains(index)),
    }
}

/// Whether the line is component 0 of a job with several, named by its number alone.
fn names_leader(part: &JobPart, record: &JobRecord) -> bool {
    matches!((part, &record.het), (JobPart::Number(number), Some(het)) if het.leader == *number)
}
