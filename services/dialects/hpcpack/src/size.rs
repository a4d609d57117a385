//! The size of a job: least and greatest number of units (HPC-J-13..16, HPC-J-20).

use crate::{
    codes::{Code, Refusal, Warning},
    description::{
        TaskDescription,
        attributes::{Attribute, JobAttributes},
        values::{TaskType, UnitType},
    },
    sweep::Sweep,
};

/// The size of a job. 1 ≤ `min` ≤ `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The unit that is counted (HPC-J-13).
    pub unit: UnitType,
    /// The least size to start with.
    pub min: u32,
    /// The greatest size to grow to.
    pub max: u32,
}

/// The size attributes of each unit.
const PAIRS: [(UnitType, Attribute, Attribute); 3] = [
    (UnitType::Core, Attribute::MinCores, Attribute::MaxCores),
    (UnitType::Socket, Attribute::MinSockets, Attribute::MaxSockets),
    (UnitType::Node, Attribute::MinNodes, Attribute::MaxNodes),
];

/// The attributes that hold the minimum and the maximum of a unit.
pub fn attributes_of(unit: UnitType) -> (Attribute, Attribute) {
    let (_, min, max) = PAIRS[unit as usize];
    (min, max)
}

/// The unit of a size attribute; `None` for other attributes.
pub fn unit_of(attribute: Attribute) -> Option<UnitType> {
    PAIRS.iter().find(|(_, min, max)| [*min, *max].contains(&attribute)).map(|(unit, ..)| *unit)
}

fn given(attributes: &JobAttributes, unit: UnitType) -> (Option<i32>, Option<i32>) {
    match unit {
        UnitType::Core => (attributes.min_cores, attributes.max_cores),
        UnitType::Socket => (attributes.min_sockets, attributes.max_sockets),
        UnitType::Node => (attributes.min_nodes, attributes.max_nodes),
    }
}

impl Size {
    /// The size in the attributes, computed from the tasks if it is not given (HPC-J-15). A bound that is neither given
    /// nor computed is 1 (table 1.1).
    ///
    /// # Errors
    /// `SizeNotValid`: a minimum or maximum below 1, a minimum above the maximum (HPC-J-16), or `RunUntilCanceled` with
    /// a computed size (HPC-J-20).
    pub fn of(attributes: &JobAttributes, tasks: &[TaskDescription]) -> Result<Self, Refusal> {
        let unit = attributes.unit_type.unwrap_or_default();
        let (min_name, max_name) = attributes_of(unit);
        let (min, max) = given(attributes, unit);
        let min = min.filter(|_| !attributes.auto_calculate_min.unwrap_or(false));
        let max = max.filter(|_| !attributes.auto_calculate_max.unwrap_or(false));
        if attributes.run_until_canceled == Some(true) && (min.is_none() || max.is_none()) {
            let (min, max) = (min_name.name(), max_name.name());
            return Err(not_valid(format!("RunUntilCanceled needs {min} and {max}, and neither computed")));
        }
        let min = min.map(|min| at_least_one(min_name, min)).transpose()?;
        let max = max.map(|max| at_least_one(max_name, max)).transpose()?;
        let is_fixed = |computed: Option<bool>| computed == Some(false);
        let (least, most) = computed(unit, tasks);
        let least = if is_fixed(attributes.auto_calculate_min) { 1 } else { least };
        let most = if is_fixed(attributes.auto_calculate_max) { 1 } else { most };
        // A bound that is not given never contradicts one that is.
        let (min, max) = match (min, max) {
            (Some(min), Some(max)) => (min, max),
            (Some(min), None) => (min, most.max(min)),
            (None, Some(max)) => (least.min(max), max),
            (None, None) => (least, most.max(least)),
        };
        if min > max {
            return Err(not_valid(format!("{}={min} is more than {}={max}", min_name.name(), max_name.name())));
        }
        Ok(Self { unit, min, max })
    }

    /// The size in effect with this many eligible units: the maximum is capped (HPC-J-16).
    ///
    /// # Errors
    /// `ClusterTooSmall` if the minimum is larger.
    pub fn capped(self, eligible: u32) -> Result<Self, Refusal> {
        if self.min <= eligible {
            return Ok(Self { max: self.max.min(eligible), ..self });
        }
        let (name, _) = attributes_of(self.unit);
        let text = format!("{}={}, but only {eligible} could ever be had", name.name(), self.min);
        Err(Refusal::new(Code::ClusterTooSmall, text))
    }

    /// Writes this size into the attributes, in its own unit.
    pub fn write_to(self, attributes: &mut JobAttributes) {
        let number = |count: u32| Some(i32::try_from(count).unwrap_or(i32::MAX));
        let (min, max) = (number(self.min), number(self.max));
        match self.unit {
            UnitType::Core => (attributes.min_cores, attributes.max_cores) = (min, max),
            UnitType::Socket => (attributes.min_sockets, attributes.max_sockets) = (min, max),
            UnitType::Node => (attributes.min_nodes, attributes.max_nodes) = (min, max),
        }
    }
}

fn not_valid(text: String) -> Refusal {
    Refusal::new(Code::SizeNotValid, text)
}

fn at_least_one(attribute: Attribute, value: i32) -> Result<u32, Refusal> {
    let count = u32::try_from(value).ok().filter(|count| *count > 0);
    count.ok_or_else(|| not_valid(format!("{}={value}: expected 1 or more", attribute.name())))
}

/// The least on which every task can run, and the most that all together could use at once. A service uses everything.
fn computed(unit: UnitType, tasks: &[TaskDescription]) -> (u32, u32) {
    let (mut min, mut max) = (1, 0u32);
    for task in tasks {
        let count = match task.attributes.task_type.unwrap_or_default() {
            TaskType::Basic => 1,
            TaskType::ParametricSweep => Sweep::of(task).map_or(1, |sweep| sweep.steps()),
            TaskType::Service => u32::MAX,
            TaskType::NodePrep | TaskType::NodeRelease => continue,
        };
        let (task_min, task_max) = task_size(unit, task);
        min = min.max(task_min);
        max = max.saturating_add(task_max.saturating_mul(count));
    }
    (min, max.max(min))
}

/// What one instance of a task needs, in the job's unit: 1 if nothing is given.
pub(crate) fn task_size(unit: UnitType, task: &TaskDescription) -> (u32, u32) {
    let attributes = &task.attributes;
    let (min, max) = match unit {
        UnitType::Core => (attributes.min_cores, attributes.max_cores),
        UnitType::Socket => (attributes.min_sockets, attributes.max_sockets),
        UnitType::Node => (attributes.min_nodes, attributes.max_nodes),
    };
    let number = |value: Option<i32>| value.and_then(|value| u32::try_from(value).ok()).filter(|count| *count > 0);
    let min = number(min).unwrap_or(1);
    (min, number(max).unwrap_or(min).max(min))
}

/// A warning for each size in a unit other than the job's (HPC-J-14).
pub fn unused(attributes: &JobAttributes) -> Vec<Warning> {
    let unit = attributes.unit_type.unwrap_or_default();
    let others = Attribute::ALL.iter().filter(|name| unit_of(**name).is_some_and(|other| other != unit));
    let unused = others.filter_map(|name| Some((name, attributes.get(*name)?)));
    let warnings = unused.map(|(name, value)| {
        let text = format!("{}={value} takes no part: the job's unit is {unit}", name.name());
        Warning::new(Code::UnusedSizeAttribute, text)
    });
    warnings.collect()
}
