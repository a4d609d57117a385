//! Jobs submitted without a description: one is written from their specification, so that filters can judge them, and
//! changes by filters are applied to the specification.

use super::{
    demand,
    spec::{hold_of, parents},
};
use crate::{
    codes::{Code, Refusal, Warning},
    description::{
        JobDescription, SystemValues, TaskDescription,
        attributes::{Attribute, JobAttributes, LENGTHS},
        values::{LicenceCount, Names, NodeGroupOp, SoftwareLicense, UnitType, Value as _},
    },
    options::quoted,
    priority::Priority,
    run_time::RunTime,
    size::Size,
};
use muster_schemas::{
    filter_order::DescribedJob,
    job::{Component, JobSpec, Notification, Occasion, Program, Sink},
    resources::{Alternative, Count, Level, Memory, NodeFilter, Per, Request, Sharing},
    time::Timestamp,
};
use std::collections::BTreeMap;

/// The description of a job that never had one. Its size is in cores.
pub(super) fn description(job: &DescribedJob) -> JobDescription {
    let spec = &*job.spec;
    let lead = spec.components.first();
    let requests: Vec<&Request> = first_alternatives(spec).flat_map(|alternative| &alternative.requests).collect();
    let Size { min, max, .. } = size(&requests);
    let request = requests.first();
    let account = lead.and_then(|component| component.account.as_deref());
    let nodes = |names: &[String]| (!names.is_empty()).then(|| Names(names.to_vec()));
    let attributes = JobAttributes {
        name: Some(fitting("Name", &job.name)),
        project: account.map(|account| fitting("Project", account)),
        priority: Some(priority_of(job.priority)),
        run_time: job.walltime_seconds.and_then(RunTime::from_seconds),
        unit_type: Some(UnitType::Core),
        min_cores: i32::try_from(min).ok(),
        max_cores: i32::try_from(max).ok(),
        is_exclusive: Some(requests.iter().any(|request| request.sharing != Sharing::Shared)),
        requested_nodes: request.and_then(|request| nodes(&request.nodes)),
        excluded_nodes: request.and_then(|request| nodes(&request.excluded_nodes)),
        software_license: software_license(spec),
        ..JobAttributes::default()
    };
    let tasks = spec.components.iter().filter_map(|component| command(&component.launch.program));
    let tasks = tasks.map(|line| {
        let mut task = TaskDescription::default();
        task.attributes.command_line = Some(line);
        task
    });
    JobDescription {
        attributes,
        environment: spec.environment.clone(),
        tasks: tasks.collect(),
        ..JobDescription::default()
    }
}

fn first_alternatives(spec: &JobSpec) -> impl Iterator<Item = &Alternative> {
    spec.components.iter().filter_map(|component| component.alternatives.first())
}

/// The part of a text that the field can hold; only the description for filters is cut.
fn fitting(field: &str, text: &str) -> String {
    let most = LENGTHS.iter().find(|(name, _)| *name == field).map_or(usize::MAX, |(_, most)| *most);
    text.chars().filter(|character| !character.is_control()).take(most).collect()
}

/// The least and the greatest number of cores requested.
pub(super) fn size(requests: &[&Request]) -> Size {
    let of = |request: &Request, pick: fn(Count) -> u64| {
        let path = request.path.iter().filter(|part| part.level != Level::Gpu).map(|part| pick(part.count));
        let units = path.fold(1u64, u64::saturating_mul);
        let for_tasks = u64::from(request.tasks.unwrap_or(1)).saturating_mul(request.cpus_per_task.into());
        units.max(for_tasks)
    };
    let sum = |pick: fn(Count) -> u64| {
        let sum = requests.iter().fold(0u64, |sum, request| sum.saturating_add(of(request, pick)));
        u32::try_from(sum.clamp(1, i32::MAX as u64)).unwrap_or(1)
    };
    let least = |count: Count| match count {
        Count::Range { min, .. } => u64::from(min),
        Count::All | Count::Best | Count::BestHalf => 1,
    };
    let most = |count: Count| match count {
        Count::Range { max, .. } => u64::from(max),
        Count::All | Count::Best | Count::BestHalf => u64::from(demand::MOST_UNITS),
    };
    let min = sum(least);
    Size { unit: UnitType::Core, min, max: sum(most).max(min) }
}

fn software_license(spec: &JobSpec) -> Option<SoftwareLicense> {
    let mut sums: BTreeMap<&str, u32> = BTreeMap::new();
    for (name, count) in first_alternatives(spec).flat_map(|alternative| &alternative.licences) {
        let sum = sums.entry(name).or_default();
        *sum = sum.saturating_add(*count);
    }
    let written = |(name, count): (&str, u32)| (name.to_owned(), LicenceCount::Exactly(count));
    let licences = SoftwareLicense(sums.into_iter().map(written).collect());
    let text = licences.write();
    // A value that the dialect cannot write is not shown.
    let is_readable = text.len() <= 160 && SoftwareLicense::read(&text).is_ok_and(|read| read == licences);
    (!licences.0.is_empty() && is_readable).then_some(licences)
}

/// The program of a component as a command line.
fn command(program: &Program) -> Option<String> {
    match program {
        Program::None => None,
        Program::Script { text, .. } => Some(text.clone()),
        Program::Tasks { argv } => Some(argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")),
    }
}

/// A job with the changes by filters.
pub(super) struct Changed {
    pub(super) spec: JobSpec,
    pub(super) hold_until: Option<Timestamp>,
    pub(super) warnings: Vec<Warning>,
}

/// Applies what filters changed in the description of a job that had none of its own.
///
/// # Errors
/// An invalid hold (HPC-H-07) or an invalid size.
pub(super) fn change(job: &DescribedJob, after: &JobDescription, now: Timestamp) -> Result<Changed, Refusal> {
    let before = as_read(description(job));
    let mut changes =
        Changes { spec: (*job.spec).clone(), after: &after.attributes, warnings: Vec::new(), is_filtered: false };
    for attribute in Attribute::ALL {
        if before.attributes.get(*attribute) != after.attributes.get(*attribute)
            || *attribute == Attribute::RunTime && before.attributes.run_time != after.attributes.run_time
        {
            changes.take(*attribute)?;
        }
    }
    for name in before.environment.keys().filter(|name| !after.environment.contains_key(*name)) {
        changes.spec.environment.remove(name);
    }
    let set = after.environment.iter().filter(|(name, value)| before.environment.get(*name) != Some(value));
    changes.spec.environment.extend(set.map(|(name, value)| (name.clone(), value.clone())));
    let hold_until = hold_of(&after.attributes, job.submitted, now)?;
    Ok(Changed { spec: changes.spec, hold_until, warnings: changes.warnings })
}

/// The description after writing and reading it again: what cannot be written is not a difference.
fn as_read(description: JobDescription) -> JobDescription {
    let text = description.write(&SystemValues::default());
    JobDescription::read(text.as_bytes()).map_or(description, |(read, _)| read)
}

struct Changes<'d> {
    spec: JobSpec,
    after: &'d JobAttributes,
    warnings: Vec<Warning>,
    /// Whether the conditions on nodes have been added.
    is_filtered: bool,
}

impl Changes<'_> {
    fn take(&mut self, attribute: Attribute) -> Result<(), Refusal> {
        let after = self.after;
        match attribute {
            Attribute::Name => self.spec.name = after.name.clone().unwrap_or_default(),
            Attribute::Project => {
                let account = after.project.clone().filter(|project| !project.is_empty());
                self.components(|component| component.account.clone_from(&account));
            }
            Attribute::Priority => {
                let priority = i64::from(after.priority.unwrap_or_default().value());
                self.components(|component| component.priority = Some(priority));
            }
            Attribute::RunTime => {
                let seconds = after.run_time.and_then(RunTime::seconds).map(u64::from);
                self.alternatives(|alternative| alternative.walltime_seconds = seconds);
            }
            Attribute::IsExclusive => {
                let sharing = if after.is_exclusive == Some(true) { Sharing::Exclusive } else { Sharing::Shared };
                self.requests(|request| request.sharing = sharing);
            }
            Attribute::RequestedNodes => {
                let names = after.requested_nodes.clone().unwrap_or_default().0;
                self.requests(|request| request.nodes.clone_from(&names));
            }
            Attribute::ExcludedNodes => {
                let names = after.excluded_nodes.clone().unwrap_or_default().0;
                self.requests(|request| request.excluded_nodes.clone_from(&names));
            }
            Attribute::NodeGroups
            | Attribute::NodeGroupOp
            | Attribute::MinCoresPerNode
            | Attribute::MaxCoresPerNode
            | Attribute::MinMemory
            | Attribute::MaxMemory => self.filter_nodes(),
            Attribute::EstimatedProcessMemory => {
                let bytes = after.estimated_process_memory.map(|megabytes| u64::from(megabytes) << 20);
                let memory = bytes.map(|bytes| Memory { bytes, per: Per::Task });
                self.requests(|request| request.memory = memory);
            }
            Attribute::SoftwareLicense => self.take_licences(),
            Attribute::NotifyOnStart | Attribute::NotifyOnCompletion => self.take_notifications(),
            Attribute::ParentJobIds => {
                let parents = parents(after);
                self.components(|component| component.dependencies.all_of.extend(parents.all_of.clone()));
            }
            Attribute::MinCores | Attribute::MaxCores => return self.take_size(),
            // The template and the hold are returned separately, and the address belongs to the notifications.
            Attribute::JobTemplate | Attribute::HoldUntil | Attribute::EmailAddress => {}
            _ => self.warn(attribute.name()),
        }
        Ok(())
    }

    fn warn(&mut self, name: &str) {
        let text = format!("{name} has no effect on a job that was submitted without a description");
        self.warnings.push(Warning::new(Code::PropertyWithoutEffect, text));
    }

    fn components(&mut self, change: impl Fn(&mut Component)) {
        self.spec.components.iter_mut().for_each(change);
    }

    fn alternatives(&mut self, change: impl Fn(&mut Alternative)) {
        self.components(|component| component.alternatives.iter_mut().for_each(&change));
    }

    fn requests(&mut self, change: impl Fn(&mut Request)) {
        self.alternatives(|alternative| alternative.requests.iter_mut().for_each(&change));
    }

    /// Adds the conditions that the filters set to those of the job.
    fn filter_nodes(&mut self) {
        if std::mem::replace(&mut self.is_filtered, true) {
            return;
        }
        let mut conditions = demand::conditions(self.after);
        let mut groups = demand::groups(self.after);
        match groups.len() {
            1 => conditions.extend(groups.pop().flatten()),
            // One group after another would need an alternative for each.
            _ => self.warn(&format!("NodeGroupOp={}", NodeGroupOp::Uniform)),
        }
        if conditions.is_empty() {
            return;
        }
        self.requests(|request| {
            let mut all = conditions.clone();
            all.extend(request.filter.take());
            request.filter = Some(NodeFilter::All(all));
        });
    }

    fn take_licences(&mut self) {
        let mut licences = BTreeMap::new();
        for (feature, count) in self.after.software_license.iter().flat_map(|licences| &licences.0) {
            match count {
                LicenceCount::Exactly(count) => {
                    licences.insert(feature.clone(), *count);
                }
                LicenceCount::PerCore => self.warn(&format!("SoftwareLicense={feature}:*")),
            }
        }
        // All components share them, so the first one asks for all.
        let mut first = true;
        for component in &mut self.spec.components {
            for alternative in &mut component.alternatives {
                alternative.licences = if first { licences.clone() } else { BTreeMap::new() };
            }
            first = false;
        }
    }

    fn take_notifications(&mut self) {
        let wanted =
            [(self.after.notify_on_start, Occasion::Started), (self.after.notify_on_completion, Occasion::Ended)];
        let on: Vec<Occasion> =
            wanted.into_iter().filter_map(|(wanted, on)| (wanted == Some(true)).then_some(on)).collect();
        let Some(address) = self.after.email_address.clone().filter(|address| !address.is_empty()) else {
            return self.warn("NotifyOnStart or NotifyOnCompletion without EmailAddress");
        };
        let notification = Notification { on, sink: Sink::Mail(address), spares_cancelled: false };
        if !notification.on.is_empty() && !self.spec.notifications.contains(&notification) {
            self.spec.notifications.push(notification);
        }
    }

    /// A job that only asks for tasks gets as many as the cores allow.
    fn take_size(&mut self) -> Result<(), Refusal> {
        let min = self.after.min_cores.unwrap_or(1);
        let min = u32::try_from(min).ok().filter(|min| *min > 0);
        let min = min.ok_or_else(|| Refusal::new(Code::SizeNotValid, "MinCores: expected 1 or more".to_owned()))?;
        let requests: Vec<&mut Request> = self
            .spec
            .components
            .iter_mut()
            .flat_map(|component| &mut component.alternatives)
            .flat_map(|alternative| &mut alternative.requests)
            .collect();
        match <[&mut Request; 1]>::try_from(requests) {
            Ok([request]) if request.path.is_empty() => {
                request.tasks = Some(min.min(demand::MOST_UNITS).div_ceil(request.cpus_per_task.max(1)));
            }
            _ => self.warn("MinCores or MaxCores"),
        }
        Ok(())
    }
}

/// The nearest priority of this dialect: other jobs may have any number.
pub(super) fn priority_of(value: i64) -> Priority {
    let nearest = value.clamp(Priority::LOWEST.value().into(), Priority::HIGHEST.value().into());
    Priority::new(nearest).unwrap_or_default()
}
