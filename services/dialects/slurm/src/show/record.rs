//! The lines of lists: one for each plain job, component, array task, and rest of an array.

mod build;
mod request;
mod requested;

pub use build::{NO_LIMIT, Sources, of_detail, of_view};
pub(crate) use request::{constraint, min_memory};
pub use requested::{MinMemory, RequestRecord};

use super::Clock;
use crate::words::{ExitCode, State};
use muster_schemas::{ids::JobId, resources::IndexSet, time::Timestamp};
use std::{
    borrow::Cow,
    fmt::{self, Write},
    sync::Arc,
};

/// The service class of jobs that name none.
pub const DEFAULT_QOS: &str = "normal";

/// The place of a component in its job (SL-I-01, SL-I-02).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HetPlace {
    /// The number of component 0.
    pub leader: u64,
    /// 0 for component 0.
    pub offset: u32,
    /// The numbers of all components, such as `123-127` (SL-I-03).
    pub set: Arc<str>,
}

/// The place of a task, or of all tasks that have not started, in their array (SL-C-17).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayPlace {
    /// The number of the array.
    pub number: u64,
    /// Which of its tasks.
    pub tasks: ArrayTasks,
    /// The most tasks that run at the same time.
    pub most_running: Option<u32>,
    /// The tasks with their own numbers, in the order of these: all of the array, as far as it is known.
    pub numbered: Arc<IndexSet>,
}

impl ArrayPlace {
    /// A task's own number (SL-C-18).
    pub fn number_of(&self, index: u32) -> u64 {
        self.number + self.numbered.position(index).unwrap_or(0)
    }

    /// The id in the core of the task with this number.
    pub fn task_at(&self, number: u64) -> Option<JobId> {
        let index = match self.tasks {
            ArrayTasks::One(index) => Some(index),
            ArrayTasks::Waiting(_) => self.numbered_at(number),
        };
        index.map(|index| JobId::task(self.number, index))
    }

    /// The index of the task with this number; the array's number is not that of a task alone.
    pub fn numbered_at(&self, number: u64) -> Option<u32> {
        self.numbered.nth(number.checked_sub(self.number).filter(|position| *position > 0)?)
    }
}

/// Tasks of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrayTasks {
    /// One.
    One(u32),
    /// Those that have not started, in one line.
    Waiting(IndexSet),
}

/// The owner of a job, from the system's tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Person {
    /// The user's number.
    pub uid: u32,
    /// The number of the user's group.
    pub gid: u32,
    /// The name of the user's group.
    pub group: Arc<str>,
}

/// What a job has on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePart {
    /// The node's name.
    pub node: String,
    /// Its cores there.
    pub cores: IndexSet,
    /// Its GPUs there.
    pub gpus: IndexSet,
    /// Its memory there, in megabytes; 0 means that none is set aside.
    pub megabytes: u64,
}

/// A line of a listing.
#[derive(Clone, Debug)]
pub struct JobRecord {
    /// Its own number.
    pub number: u64,
    /// Its place, if it is one of several components.
    pub het: Option<HetPlace>,
    /// Its place, if it belongs to an array.
    pub array: Option<ArrayPlace>,
    /// What people call it.
    pub name: String,
    /// The owner's login name.
    pub user: String,
    /// The numbers of its owner.
    pub person: Person,
    /// Its partition.
    pub partition: String,
    /// The account that is charged.
    pub account: Option<String>,
    /// Its service class.
    pub qos: Option<String>,
    /// The highest goes first; 0 while it is held.
    pub priority: i64,
    /// Its priority when nothing holds it, without that of its service class.
    pub own_priority: i64,
    /// What its service class adds to that.
    pub class_priority: i64,
    /// Its state.
    pub state: State,
    /// Why it waits or how it ended, with details.
    pub reason: Cow<'static, str>,
    /// When it was submitted.
    pub submitted: Timestamp,
    /// The earliest time at which it may start.
    pub eligible: Option<Timestamp>,
    /// When its latest run started.
    pub started: Option<Timestamp>,
    /// When it is expected to start, if it waits.
    pub expected_start: Option<Timestamp>,
    /// Its expected nodes, if a plan names them.
    pub planned_nodes: Vec<String>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// The longest time that it may run.
    pub limit_seconds: Option<u64>,
    /// Whether a table repeats it.
    pub is_repeated: bool,
    /// How long its latest run was suspended in total.
    pub suspended_seconds: u64,
    /// When it was suspended, if it is.
    pub suspended_since: Option<Timestamp>,
    /// Its nodes; empty while it waits.
    pub nodes: Vec<String>,
    /// How many nodes it has or asks for.
    pub node_count: u32,
    /// What it has on each node, if that was asked for.
    pub parts: Vec<NodePart>,
    /// How many tasks it has or asks for.
    pub tasks: u32,
    /// How many processors it has or asks for.
    pub cpus: u64,
    /// How many GPUs it has or asks for, if its request was fetched.
    pub gpus: u64,
    /// Its reservation.
    pub reservation: Option<String>,
    /// How it ended.
    pub exit: ExitCode,
    /// Somebody has cancelled it, and it is ending: nothing will requeue it.
    pub is_cancelled: bool,
    /// How often it was started again.
    pub restarts: u32,
    /// Its request, if that was fetched.
    pub request: Option<Box<RequestRecord>>,
}

impl JobRecord {
    /// The record shown as finished if somebody has cancelled the job: to cancel it again has no effect (SL-C-31).
    pub fn over_if_cancelled(self) -> Self {
        let is_over = self.state == State::Completing && self.is_cancelled;
        Self { state: if is_over { State::Cancelled } else { self.state }, ..self }
    }

    /// Learns when its latest run was suspended from the events of its job, oldest first. Only they say.
    pub fn learn_suspensions(&mut self, events: &[serde_json::Value]) {
        let Some(started) = self.started else { return };
        (self.suspended_seconds, self.suspended_since) = (0, None);
        for event in events {
            let is_about = |name: &str| event["type"].as_str().is_some_and(|kind| kind.contains(name));
            let at: Option<Timestamp> = serde_json::from_value(event["time"].clone()).ok().filter(|at| *at >= started);
            match at {
                Some(at) if is_about("job.suspended") => self.suspended_since = Some(at),
                Some(at) if is_about("job.resumed") => {
                    let lasted = self.suspended_since.take().map_or(0, |since| at.micros_since(since) / 1_000_000);
                    self.suspended_seconds += u64::try_from(lasted).unwrap_or(0);
                }
                _ => {}
            }
        }
    }

    /// The id in lists: `93`, `93+1`, `43_2`, `43_[3-5%2]` (SL-I-05, SL-C-17).
    pub fn shown_id(&self) -> ShownId<'_> {
        ShownId(self)
    }

    /// The number of its array; its own without an array.
    pub fn array_number(&self) -> u64 {
        self.array.as_ref().map_or(self.number, |array| array.number)
    }

    /// Its request, empty if it was not fetched.
    pub fn request(&self) -> &RequestRecord {
        static NONE: RequestRecord = RequestRecord::NONE;
        self.request.as_deref().unwrap_or(&NONE)
    }

    /// Whether it is held in the queue.
    pub fn is_held(&self) -> bool {
        self.state.is_pending() && self.eligible.is_none()
    }

    /// Its service class.
    pub fn qos(&self) -> &str {
        self.qos.as_deref().unwrap_or(DEFAULT_QOS)
    }

    /// Why it waits or how it ended, without details: one word, so that programs can split the columns.
    pub fn reason_word(&self) -> &str {
        self.reason.split(',').next().unwrap_or_default()
    }

    /// How long its latest run has lasted, without suspension.
    pub fn used_seconds(&self, clock: &Clock) -> u64 {
        let Some(started) = self.started.filter(|_| !self.state.is_pending()) else { return 0 };
        let until = self.ended.or(self.suspended_since).unwrap_or(clock.now);
        let whole = u64::try_from(until.micros_since(started) / 1_000_000).unwrap_or(0);
        whole.saturating_sub(self.suspended_seconds)
    }

    /// How much of its time limit is left; `None` without a limit, negative after it.
    pub fn left_seconds(&self, clock: &Clock) -> Option<i64> {
        let limit = i64::try_from(self.limit_seconds?).unwrap_or(i64::MAX);
        Some(limit.saturating_sub(i64::try_from(self.used_seconds(clock)).unwrap_or(i64::MAX)))
    }

    /// When it started or is expected to start; its begin time if it must wait until then.
    pub fn start(&self) -> Option<Timestamp> {
        let begin = || self.eligible.filter(|begin| *begin > self.submitted);
        if self.state.is_pending() { self.expected_start.or_else(begin) } else { self.started }
    }

    /// When it ended, or will reach its time limit.
    pub fn end(&self) -> Option<Timestamp> {
        self.ended.or_else(|| {
            let limit = i64::try_from(self.limit_seconds?).ok()?.checked_add_unsigned(self.suspended_seconds)?;
            Some(self.start()?.plus_seconds(limit))
        })
    }

    /// The compressed node list: `nid[00001-00003]`.
    pub fn node_list(&self) -> String {
        crate::hostlist::compress_sorted(&self.nodes)
    }

    /// Turns the rest of an array into the line of one of its tasks.
    pub fn narrow_to(&mut self, index: u32) {
        if let Some(array) = &mut self.array {
            array.tasks = ArrayTasks::One(index);
            self.number = array.number_of(index);
        }
    }

    /// One record for each waiting task, if this is the rest of an array (`squeue -r`).
    pub fn into_tasks(self) -> Vec<Self> {
        let Some(ArrayPlace { tasks: ArrayTasks::Waiting(indices), .. }) = &self.array else { return vec![self] };
        let indices = indices.clone();
        let one = |index| {
            let mut record = self.clone();
            record.narrow_to(index);
            record
        };
        indices.iter().map(one).collect()
    }
}

/// The id of a record in lists.
pub struct ShownId<'a>(&'a JobRecord);

impl fmt::Display for ShownId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = self.0;
        match (&record.array, &record.het) {
            (Some(array), _) => {
                write!(f, "{}_", array.number)?;
                write_tasks(array, f)
            }
            (None, Some(het)) => write!(f, "{}+{}", het.leader, het.offset),
            (None, None) => write!(f, "{}", record.number),
        }
    }
}

/// The indices of a line: `2`, or `[3-5%2]` for the tasks that have not started.
pub fn write_tasks(array: &ArrayPlace, f: &mut impl Write) -> fmt::Result {
    match (&array.tasks, array.most_running) {
        (ArrayTasks::One(index), _) => write!(f, "{index}"),
        (ArrayTasks::Waiting(indices), None) => write!(f, "[{indices}]"),
        (ArrayTasks::Waiting(indices), Some(most)) => write!(f, "[{indices}%{most}]"),
    }
}
