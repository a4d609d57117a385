//! Turns the groups of `srun` into the parts of a step (SL-R-01 to ).

use crate::{
    options::{Given, Group, values::number},
    select::SchedulerParameters,
};
use std::collections::BTreeSet;

/// Why a step is not started. The exit status is always 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// No group from here on has a program (SL-R-04).
    #[error("srun: fatal: No command given to execute.")]
    NoCommand,
    /// The value of `--het-group` is not a list of offsets and ranges (SL-R-05).
    #[error("srun: error: Invalid --het-group value: {0}")]
    InvalidExpression(String),
    /// One of several wanted components does not exist (SL-R-05).
    #[error(
        "srun: error: Attempt to run a job step with het group value of {wanted}, but the job allocation has maximum value of {highest}"
    )]
    GroupBeyond {
        /// The largest offset wanted.
        wanted: u32,
        /// The largest there is.
        highest: u32,
    },
    /// The only wanted component does not exist (SL-R-05).
    #[error("srun: error: Requested het-group offset exceeds highest hetjob index ({wanted} > {highest})")]
    OffsetBeyond {
        /// The largest offset wanted.
        wanted: u32,
        /// The largest there is.
        highest: u32,
    },
    /// A component is wanted twice (SL-R-06, SL-R-18).
    #[error("srun: fatal: Duplicate het groups in single srun not supported")]
    Duplicate,
    /// `--multi-prog` over several components (SL-R-15).
    #[error("srun: fatal: --multi-prog option not supported with multiple het groups")]
    MultiProg,
    /// Steps over several components are switched off (SL-R-11).
    #[error("srun: error: Heterogeneous job steps are disabled (SchedulerParameters=disable_hetjob_steps)")]
    Disabled,
    /// More tasks or CPUs than the allocation has (SL-R-22).
    #[error("srun: error: Unable to create step for job {job}: More processors requested than permitted")]
    MoreProcessors {
        /// The job.
        job: u64,
    },
    /// `-m arbitrary` without the nodes of the tasks (SL-R-12).
    #[error("srun: error: no hostlist given for arbitrary dist")]
    NoHosts,
    /// `-m arbitrary` with different numbers of nodes and tasks (SL-R-12).
    #[error(
        "srun: error: Asked for {asked} tasks have {listed} in the nodelist. Check your nodelist, or set the -n option to be {listed}"
    )]
    TasksOfHosts {
        /// How many tasks were requested.
        asked: u32,
        /// How many tasks have a node in the list.
        listed: usize,
    },
    /// Its options about GPUs do not agree.
    #[error("srun: error: Unable to create step for job {job}: Invalid generic resource (gres) specification")]
    Gpus {
        /// The job.
        job: u64,
    },
    /// The value of `--gpu-bind` is not known.
    #[error("srun: error: Invalid --gpu-bind argument: {0}")]
    GpuBind(String),
    /// More nodes than the allocation has (SL-R-22).
    #[error("srun: error: Only allocated {allocated} nodes asked for {asked}")]
    MoreNodes {
        /// How many nodes are available to it.
        allocated: usize,
        /// How many were requested.
        asked: usize,
    },
    /// A node that is not part of the allocation (SL-R-22).
    #[error("srun: error: Unable to create step for job {job}: Requested node configuration is not available")]
    ForeignNode {
        /// The job.
        job: u64,
    },
    /// Other groups of the same step hold too many of the nodes (SL-R-17).
    #[error(
        "srun: error: Allocation failure of {asked} nodes: job size of {allocated}, already allocated {taken} nodes to previous components."
    )]
    NodesTaken {
        /// How many the group asks for.
        asked: usize,
        /// How many there are.
        allocated: usize,
        /// How many of them it cannot have.
        taken: usize,
    },
    /// A node that an earlier group of the same step holds (SL-R-17).
    #[error("srun: error: required node {node} overlaps with excluded {node}")]
    NodeTaken {
        /// The node.
        node: String,
    },
}

/// No job has this many components: protects from `0-4000000000`.
const MOST_COMPONENTS: u32 = 1 << 16;

/// The offsets in a `--het-group` value: comma-separated offsets and ranges, `0,3-5` (SL-R-02).
///
/// # Errors
/// [`StepError::InvalidExpression`]; [`StepError::Duplicate`] if an offset occurs twice.
pub fn het_groups(text: &str) -> Result<BTreeSet<u32>, StepError> {
    let invalid = || StepError::InvalidExpression(text.to_owned());
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let mut offsets = BTreeSet::new();
    for part in inner.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = number(first).zip(number(last)).filter(|(first, last)| first <= last && *last < MOST_COMPONENTS);
        let (first, last) = range.ok_or_else(invalid)?;
        for offset in first..=last {
            if !offsets.insert(offset) {
                return Err(StepError::Duplicate);
            }
        }
    }
    Ok(offsets)
}

/// The request of a group of `srun`.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroupWish<'a> {
    /// The value of its `--het-group`.
    pub het_group: Option<&'a str>,
    /// Its program and arguments; empty if it has none.
    pub words: &'a [String],
    /// Whether it has `--multi-prog`.
    pub multi_prog: bool,
}

impl<'a> GroupWish<'a> {
    /// The request of a group on a command line.
    pub fn of(group: &'a Group) -> Self {
        let last = |name: &str| group.options.iter().rev().find(|given| given.option.name == name);
        Self {
            het_group: last("het-group").map(Given::text),
            words: &group.words,
            multi_prog: last("multi-prog").is_some(),
        }
    }
}

/// A part of a step: on one component, with the options of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The component's offset.
    pub component: u32,
    /// The index of the group whose options apply, from 0.
    pub group: usize,
    /// Its program and arguments.
    pub words: Vec<String>,
}

/// The parts of a step in the order of their ranks: by component (SL-R-03, SL-R-09). In a plain allocation each group
/// is a part on its only component (SL-R-17). The site may forbid steps over several components (SL-R-11), and may
/// allow several groups on one component of several.
///
/// # Errors
/// Why the step cannot start; nothing was started.
pub fn parts(groups: &[GroupWish<'_>], components: u32, site: SchedulerParameters) -> Result<Vec<Part>, StepError> {
    let wanted = offsets_of(groups, components)?;
    let highest = components.saturating_sub(1);
    let largest = wanted.iter().map(|(offset, _)| *offset).max().unwrap_or(0);
    if largest > highest {
        let beyond = (largest, highest);
        return Err(match wanted.len() {
            1 => StepError::OffsetBeyond { wanted: beyond.0, highest: beyond.1 },
            _ => StepError::GroupBeyond { wanted: beyond.0, highest: beyond.1 },
        });
    }
    let different: BTreeSet<u32> = wanted.iter().map(|(offset, _)| *offset).collect();
    if components > 1 && different.len() < wanted.len() && !site.repeat_het_groups {
        return Err(StepError::Duplicate);
    }
    if wanted.len() > 1 && groups.iter().any(|group| group.multi_prog) {
        return Err(StepError::MultiProg);
    }
    if different.len() > 1 && site.disable_hetjob_steps {
        return Err(StepError::Disabled);
    }
    let programs = programs_of(groups)?;
    let part = |(component, group): (u32, usize)| Part { component, group, words: programs[group].to_vec() };
    let mut parts: Vec<Part> = wanted.into_iter().map(part).collect();
    parts.sort_by_key(|part| part.component);
    Ok(parts)
}

/// The components that each group wants, with the group's index.
fn offsets_of(groups: &[GroupWish<'_>], components: u32) -> Result<Vec<(u32, usize)>, StepError> {
    let mut wanted = Vec::new();
    for (place, group) in groups.iter().enumerate() {
        match group.het_group {
            Some(text) => wanted.extend(het_groups(text)?.into_iter().map(|offset| (offset, place))),
            // Groups of a step in a plain allocation share its component.
            None if components <= 1 => wanted.push((0, place)),
            None => wanted.push((u32::try_from(place).unwrap_or(u32::MAX), place)),
        }
    }
    Ok(wanted)
}

/// The program of each group: its own, or the next one given (SL-R-04).
fn programs_of<'a>(groups: &[GroupWish<'a>]) -> Result<Vec<&'a [String]>, StepError> {
    let mut programs = Vec::with_capacity(groups.len());
    let mut next: &[String] = &[];
    for group in groups.iter().rev() {
        if !group.words.is_empty() {
            next = group.words;
        }
        if next.is_empty() {
            return Err(StepError::NoCommand);
        }
        programs.push(next);
    }
    programs.reverse();
    Ok(programs)
}
