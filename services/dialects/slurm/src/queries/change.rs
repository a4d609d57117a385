//! The changes of a job by `scontrol update`, in terms of the model (SL-C-36, SL-M-08).

use super::{
    Failure,
    update::{Change, Pair, Update},
};
use crate::{
    attributes,
    duration::TimeLimit,
    features::{self, Way},
    hostlist,
    job_id::dependencies,
    moment,
    options::values::{self, NodeRange},
    request::{few_switches, first_and_more_gpus, gpus_on_each},
    show::record::{JobRecord, NO_LIMIT},
    size,
};
use muster_schemas::{
    event::JobChange,
    resources::{Alternative, Count, Level, LevelCount, Memory, Per, Request},
    views::ShrinkRequest,
};
use std::collections::BTreeMap;

/// The result of an update.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobUpdate {
    /// The changes in the model.
    pub change: JobChange,
    /// The new service class.
    pub class: Option<String>,
    /// Changed attributes of the component, by name: options that the model has no place for. An empty one is removed.
    pub attributes: BTreeMap<&'static str, String>,
    /// Whether it raises a time limit or a priority, which only operators may do (SL-C-36).
    pub needs_operator: bool,
    /// Whether it holds the job, for example by a priority of 0, or releases it (SL-C-36, SL-C-37).
    pub hold: Option<bool>,
    /// The nodes that it keeps, if it runs and becomes smaller.
    pub kept: Option<ShrinkRequest>,
}

impl JobUpdate {
    /// A name given to one component is not that of its job; one given to all is the name of each.
    fn named(mut self, component: Option<u32>, is_whole: bool) -> Self {
        let own = match (component, is_whole) {
            (_, true) => self.change.name.as_ref().map(|_| String::new()),
            (Some(_), false) => self.change.name.take(),
            (None, false) => None,
        };
        self.attributes.extend(own.map(|name| (attributes::component::JOB_NAME, name)));
        self
    }

    /// The change of the job, for one component or for all of them.
    pub fn in_components(&self, component: Option<u32>, components: usize) -> JobChange {
        let offsets = match component {
            Some(offset) => offset as usize..offset as usize + 1,
            None => 0..components.max(1),
        };
        let of = |offset: usize| {
            self.attributes.iter().map(move |(name, value)| (attributes::component_key(offset, name), value.clone()))
        };
        JobChange { component, attributes: offsets.flat_map(of).collect(), ..self.change.clone() }
    }
}

/// The keys that may change while a job runs.
const WHILE_RUNNING: [&str; 14] = [
    "AdminComment",
    "EndTime",
    "Extra",
    "TimeLimit",
    "Name",
    "JobName",
    "Comment",
    "Hold",
    "Nice",
    "Priority",
    "Requeue",
    "WCKey",
    "NumNodes",
    "ReqNodeList",
];

/// A job that is changed as a whole, or one of several components.
pub struct Part<'a> {
    /// Its number; `None` for a job that is changed as a whole.
    pub component: Option<u32>,
    /// Its line.
    pub record: &'a JobRecord,
    /// Its current request.
    pub alternatives: &'a [Alternative],
}

/// The changes of each part of a job, with the number of its component: each component keeps what the update does not
/// name (SL-M-07). Equal changes are merged into one for all components, and components without a change are left out.
/// `id` is how the job was named.
///
/// # Errors
/// A value that does not fit its key, or a key that can no longer change because the job runs.
pub fn job_updates(
    update: &Update,
    parts: &[Part<'_>],
    id: &str,
    now: &jiff::Zoned,
) -> Result<Vec<(Option<u32>, JobUpdate)>, Failure> {
    let is_whole = parts.len() > 1;
    let of_part = |part: &Part<'_>| {
        let is_later = part.component.is_some_and(|component| component > 0);
        let licences = |pair: &&Pair| pair.key == "Licenses";
        if is_later && !is_whole && update.pairs.iter().any(|pair| licences(&pair)) {
            return Err(Failure::plain(format_args!("Invalid license specification for job {id}")));
        }
        // Licences belong to the leader (SL-S-14).
        let pairs = update.pairs.iter().filter(|pair| !(is_later && licences(pair))).cloned().collect();
        let own = Update { subject: update.subject.clone(), pairs };
        let changed = job_update(&own, part.record, part.alternatives, id, now)?;
        Ok((part.component, changed.named(part.component, is_whole)))
    };
    let mut changes = parts.iter().map(of_part).collect::<Result<Vec<_>, Failure>>()?;
    if is_whole && changes.windows(2).all(|pair| pair[0].1 == pair[1].1) {
        changes.truncate(1);
        changes[0].0 = None;
    }
    if changes.len() > 1 {
        changes.retain(|(_, change)| *change != JobUpdate::default());
    }
    Ok(changes)
}

/// The changes of a job or component. `record` is its line, `alternatives` its current request, `id` how it was named.
///
/// # Errors
/// A value that does not fit its key, or a key that can no longer change because the job runs.
pub fn job_update(
    update: &Update,
    record: &JobRecord,
    alternatives: &[Alternative],
    id: &str,
    now: &jiff::Zoned,
) -> Result<JobUpdate, Failure> {
    let is_late = |pair: &&Pair| !record.state.is_pending() && !WHILE_RUNNING.contains(&pair.key);
    if update.pairs.iter().any(|pair| is_late(&pair)) {
        return Err(Failure::plain(format_args!("Job is no longer pending execution for job {id}")));
    }
    if record.state.is_pending() && update.pairs.iter().any(|pair| pair.key == "EndTime") {
        return Err(Failure::plain(format_args!("Job is not running for job {id}")));
    }
    let mut result = JobUpdate::default();
    let mut asked = alternatives.to_vec();
    if asked.is_empty() {
        asked.push(Alternative::default());
    }
    let before = asked.clone();
    for pair in &update.pairs {
        if pair.key == "Priority" && record.is_held() && values::priority(&pair.value) != Some(0) {
            let text = "Job is in held state, pending scheduler release";
            return Err(Failure::plain(format_args!("{text} for job {id}")));
        }
        apply(pair, record, &mut asked, &mut result, now).ok_or_else(|| invalid(pair))?;
    }
    if asked != before {
        result.change.alternatives = Some(asked);
    }
    Ok(result)
}

fn invalid(pair: &Pair) -> Failure {
    let Pair { key, value, .. } = pair;
    Failure { lines: vec![format!("Invalid {key} value: {value}"), "Request aborted".to_owned()], code: 1 }
}

/// Applies one pair; `None` if its value does not fit.
fn apply(
    pair: &Pair,
    record: &JobRecord,
    asked: &mut [Alternative],
    result: &mut JobUpdate,
    now: &jiff::Zoned,
) -> Option<()> {
    let change = &mut result.change;
    let text = pair.value.as_str();
    match pair.key {
        "Account" => change.account = Some(text.to_owned()),
        "Name" | "JobName" => change.name = Some(text.to_owned()),
        "QOS" => result.class = Some(text.to_owned()),
        "ReservationName" => change.reservation = Some(text.to_owned()),
        "Deadline" => change.deadline = Some(moment::parse(text, now)?),
        // Among several the submission chooses, once.
        "Partition" if text.contains(',') => return None,
        "Partition" => change.queue = Some(text.to_owned()),
        "Priority" => match values::priority(text)? {
            0 => result.hold = Some(true),
            priority => {
                result.needs_operator |= priority > record.own_priority;
                change.priority = Some(priority);
            }
        },
        "Hold" => result.hold = Some(flag(text)?),
        "StartTime" | "EligibleTime" => change.begin = Some(moment::parse(text, now)?),
        "Dependency" if text.is_empty() => change.dependencies = Some(Default::default()),
        "Dependency" => change.dependencies = Some(dependencies(text)?),
        // 0 means no limit.
        "ArrayTaskThrottle" => {
            change.max_running = Some(text.parse().ok().map(|most| if most == 0 { NO_LIMIT } else { most })?);
        }
        "TimeLimit" => time_limit(pair, record, result)?,
        "EndTime" => end_time(text, record, result, now)?,
        "NumNodes" if !record.state.is_pending() => {
            result.kept.get_or_insert_default().nodes = Some(values::count(text)?);
        }
        "ReqNodeList" if !record.state.is_pending() => {
            result.kept.get_or_insert_default().keep = hostlist::expand(text).ok()?;
        }
        _ => match sizes(pair, asked) {
            Some(()) => keep_as_written(pair, asked, result),
            None => return attribute(pair, record, result),
        },
    }
    Some(())
}

/// The request is shown as written, if that was kept.
fn keep_as_written(pair: &Pair, asked: &[Alternative], result: &mut JobUpdate) {
    result.attributes.extend(written(pair, asked));
}

/// The attribute of a component that shows its request as written.
pub(crate) fn written(pair: &Pair, asked: &[Alternative]) -> Option<(&'static str, String)> {
    use attributes::component as names;
    Some(match pair.key {
        "NumNodes" => (names::NODES, pair.value.clone()),
        "NumTasks" => (names::NTASKS, pair.value.clone()),
        "CPUsPerTask" => (names::CPUS_PER_TASK, pair.value.clone()),
        "Features" => (names::CONSTRAINT, pair.value.clone()),
        "MinTmpDiskNode" => (names::TMP, pair.value.clone()),
        "Switches" => (names::SWITCHES, pair.value.clone()),
        "Contiguous" => (names::CONTIGUOUS, set_if(flag(&pair.value)?)),
        "Gres" => (names::GRES, pair.value.clone()),
        "Licenses" => {
            let licences = asked.first().map(|alternative| &alternative.licences).into_iter().flatten();
            let list: Vec<String> = licences.map(|(name, count)| format!("{name}:{count}")).collect();
            (names::LICENSES, list.join(","))
        }
        _ => return None,
    })
}

/// `=`, `+=`, `-=` and a sign before the value change the current limit, which counts in minutes.
fn time_limit(pair: &Pair, record: &JobRecord, result: &mut JobUpdate) -> Option<()> {
    let (change, text) = match (pair.value.strip_prefix('+'), pair.value.strip_prefix('-')) {
        (Some(text), _) => (Change::Add, text),
        (_, Some(text)) => (Change::Subtract, text),
        (None, None) => (pair.change, pair.value.as_str()),
    };
    let given = TimeLimit::parse(text)?;
    let seconds = match (change, record.limit_seconds, given.seconds()) {
        (Change::Set, _, seconds) => seconds,
        (Change::Add, Some(now), Some(more)) => Some(now.checked_add(more)?),
        (Change::Subtract, Some(now), Some(less)) => Some(now.checked_sub(less).filter(|left| *left > 0)?),
        (Change::Add | Change::Subtract, ..) => return None,
    };
    result.needs_operator |= match (seconds, record.limit_seconds) {
        (Some(new), Some(now)) => new > now,
        (None, now) => now.is_some(),
        (Some(_), None) => false,
    };
    result.change.walltime_seconds = Some(seconds.unwrap_or_else(|| TimeLimit::Unlimited.walltime_seconds()));
    Some(())
}

/// A running job gets the time limit with which it ends then; `None` if that has passed.
fn end_time(text: &str, record: &JobRecord, result: &mut JobUpdate, now: &jiff::Zoned) -> Option<()> {
    let end = moment::parse(text, now)?;
    if end.0 <= now.timestamp().as_microsecond() {
        return None;
    }
    // A suspended job runs on later, so the time since its start can be more than the limit.
    let (limit, moved) = match (record.limit_seconds, record.end()) {
        (Some(limit), Some(planned)) => (limit, end.micros_since(planned)),
        _ => (0, end.micros_since(record.started?)),
    };
    let seconds = limit.checked_add_signed(moved.div_euclid(1_000_000)).filter(|seconds| *seconds > 0)?;
    result.needs_operator |= record.limit_seconds.is_some_and(|limit| seconds > limit);
    result.change.walltime_seconds = Some(seconds);
    Some(())
}

/// Applies a pair to a request; `None` if the key is about something else or the value does not fit.
pub(crate) fn sizes(pair: &Pair, asked: &mut [Alternative]) -> Option<()> {
    let text = pair.value.as_str();
    // Dividing nodes and tasks among parts with different features takes a new submission.
    if matches!(pair.key, "NumNodes" | "NumTasks" | "NumCPUs") && asked.iter().any(|alternative| alternative.scatter) {
        return None;
    }
    let requests = |asked: &mut [Alternative], change: &dyn Fn(&mut Request)| {
        for alternative in asked.iter_mut() {
            if alternative.requests.is_empty() {
                alternative.requests.push(Request::default());
            }
            alternative.requests.iter_mut().for_each(change);
        }
    };
    let memory = |per: Per| Some(Memory { bytes: size::parse_megabytes(text)?.checked_mul(size::MEGABYTE)?, per });
    let names = || hostlist::expand(text).ok();
    match pair.key {
        "NumNodes" => {
            let range = NodeRange::parse(text)?;
            let count = Count::Range { min: range.min, max: range.max.unwrap_or(range.min) };
            requests(asked, &|request| set_nodes(request, count));
        }
        "NumTasks" => {
            let tasks = values::count(text)?;
            requests(asked, &|request| request.tasks = Some(tasks));
        }
        "NumCPUs" => {
            let cpus = values::count(text)?;
            requests(asked, &|request| request.tasks = Some((cpus / request.cpus_per_task.max(1)).max(1)));
        }
        "CPUsPerTask" => {
            let cpus = values::count(text)?;
            requests(asked, &|request| request.cpus_per_task = cpus);
        }
        "MinMemoryNode" => {
            let memory = memory(Per::Node)?;
            requests(asked, &|request| request.memory = Some(memory));
        }
        "MinMemoryCPU" => {
            let memory = memory(Per::Core)?;
            requests(asked, &|request| request.memory = Some(memory));
        }
        "ReqNodeList" => {
            let names = names()?;
            requests(asked, &|request| request.nodes.clone_from(&names));
        }
        "ExcNodeList" => {
            let names = names()?;
            requests(asked, &|request| request.excluded_nodes.clone_from(&names));
        }
        "Features" => {
            // A constraint with several ways to meet it, or several kinds of nodes, takes a new submission.
            let way = match text {
                "" => Way::default(),
                text => match features::parse(text)?.as_slice() {
                    [way] if way.some_nodes.is_empty() => way.clone(),
                    _ => return None,
                },
            };
            requests(asked, &|request| {
                let mut way = way.clone();
                way.every_node.extend(request.filter.iter().flat_map(features::of_other_options).cloned());
                request.filter = way.filter();
            });
        }
        "MinTmpDiskNode" => {
            let least = size::parse_megabytes(text)?;
            requests(asked, &|request| {
                request.filter = features::with_other_tmp_disk(request.filter.as_ref(), least);
            });
        }
        "Contiguous" => {
            let contiguous = flag(text)?;
            asked.iter_mut().for_each(|alternative| alternative.contiguous = contiguous);
        }
        // Without a time it waits as long as before.
        "Switches" => {
            let (most, wait_seconds) = values::switches(text)?;
            asked.iter_mut().for_each(|alternative| {
                let before = alternative.groups.as_ref().map(|few| few.wait_seconds);
                alternative.groups = few_switches(most, wait_seconds.or(before));
            });
        }
        "Gres" => {
            let (gpus, more) = first_and_more_gpus(gpus_on_each(values::gres(text)?)?);
            requests(asked, &|request| {
                request.gpus.clone_from(&gpus);
                request.more_gpus.clone_from(&more);
            });
        }
        "Licenses" => {
            let given = if text.is_empty() { BTreeMap::new() } else { values::licences(text)? };
            asked.iter_mut().for_each(|alternative| change_licences(pair.change, &given, &mut alternative.licences));
        }
        _ => return None,
    }
    Some(())
}

fn set_nodes(request: &mut Request, count: Count) {
    match request.path.iter_mut().find(|part| part.level == Level::Node) {
        Some(part) => part.count = count,
        None => request.path.insert(0, LevelCount { level: Level::Node, count }),
    }
}

fn change_licences(change: Change, given: &BTreeMap<String, u32>, licences: &mut BTreeMap<String, u32>) {
    if change == Change::Set {
        licences.clone_from(given);
        return;
    }
    for (name, count) in given {
        let has = licences.entry(name.clone()).or_default();
        *has = if change == Change::Add { has.saturating_add(*count) } else { has.saturating_sub(*count) };
    }
    licences.retain(|_, count| *count > 0);
}

/// Keys that the model has no place for become attributes; `None` if the value does not fit.
fn attribute(pair: &Pair, record: &JobRecord, result: &mut JobUpdate) -> Option<()> {
    use attributes::component as names;
    let text = pair.value.as_str();
    let (name, value) = match pair.key {
        "Nice" => {
            let given = values::nice(text)?;
            let nice = match pair.change {
                Change::Set => given,
                Change::Add => record.request().nice.checked_add(given)?,
                Change::Subtract => record.request().nice.checked_sub(given)?,
            };
            result.needs_operator |= nice < record.request().nice.min(0);
            if record.state.is_pending() {
                let now = result.change.priority.unwrap_or(record.own_priority);
                result.change.priority = Some(now.checked_add(record.request().nice)?.checked_sub(nice)?);
            }
            (names::NICE, nice.to_string())
        }
        "Comment" => (names::COMMENT, text.to_owned()),
        "AdminComment" => {
            result.needs_operator = true;
            (names::ADMIN_COMMENT, text.to_owned())
        }
        "Extra" => (names::EXTRA, text.to_owned()),
        "TimeMin" => (names::TIME_MIN, TimeLimit::parse(text).map(|_| text.to_owned())?),
        "WCKey" => (names::WCKEY, text.to_owned()),
        "Requeue" => {
            let is_requeued = flag(text)?;
            result.change.requeue_on_node_lost = Some(is_requeued);
            (names::NO_REQUEUE, set_if(!is_requeued))
        }
        "OverSubscribe" | "Shared" => (names::OVERSUBSCRIBE, set_if(flag(text)?)),
        _ => return None,
    };
    result.attributes.insert(name, value);
    Some(())
}

/// `0`, `no`, `1` and `yes`.
fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "0" | "no" => Some(false),
        "1" | "yes" => Some(true),
        _ => None,
    }
}

fn set_if(is_set: bool) -> String {
    if is_set { attributes::SET.to_owned() } else { String::new() }
}
