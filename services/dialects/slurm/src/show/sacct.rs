//! `sacct`: jobs and steps, including those that ended long ago (SL-A-01 to A-11).

mod fields;
mod flags;
mod json;
mod row;
mod rows;
mod submitted;

pub use fields::FIELDS;
pub use flags::JobFlag;
pub use json::document;
pub use row::Row;
pub use rows::{Beside, rows};
pub use submitted::{environment_of, script_of};

use super::{
    Clock,
    cells::put,
    columns::{FormatError, Layout, ListStyle},
    record::JobRecord,
    step::place,
};
use crate::{size::Units, words::State};
use muster_schemas::time::Timestamp;
use std::{cmp::Ordering, collections::BTreeSet};

/// The columns of `sacct` (SL-A-06).
pub const DEFAULT_FORMAT: &str = "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode";
/// The columns of `sacct -b`.
pub const BRIEF_FORMAT: &str = "JobID,State,ExitCode";
/// The columns of `sacct -l`.
pub const LONG_FORMAT: &str = "JobID,JobIDRaw,JobName,Partition,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,AveVMSize,MaxRSS,\
    MaxRSSNode,MaxRSSTask,AveRSS,MaxPages,MaxPagesNode,MaxPagesTask,AvePages,MinCPU,MinCPUNode,MinCPUTask,AveCPU,NTasks,\
    AllocCPUS,Elapsed,State,ExitCode,AveCPUFreq,ReqCPUFreqMin,ReqCPUFreqMax,ReqCPUFreqGov,ReqMem,ConsumedEnergy,\
    MaxDiskRead,MaxDiskReadNode,MaxDiskReadTask,AveDiskRead,MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,AveDiskWrite,\
    ReqTRES,AllocTRES";

/// A filter for lines. All given conditions must match; an empty set is no condition.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The states, one of which it must have.
    pub states: Vec<State>,
    /// Login names, or numbers, of owners.
    pub users: BTreeSet<String>,
    /// Accounts.
    pub accounts: BTreeSet<String>,
    /// Partitions.
    pub partitions: BTreeSet<String>,
    /// Service classes.
    pub classes: BTreeSet<String>,
    /// Names of jobs.
    pub names: BTreeSet<String>,
    /// Names of nodes, one of which the job had.
    pub nodes: BTreeSet<String>,
    /// Jobs that had not ended before this.
    pub from: Option<Timestamp>,
    /// Jobs that were submitted before this.
    pub to: Option<Timestamp>,
    /// Without steps (`-X`).
    pub jobs_only: bool,
    /// Names, or numbers, of groups.
    pub groups: BTreeSet<String>,
    /// How jobs were handled, one of which is enough.
    pub flags: BTreeSet<JobFlag>,
    /// Numbers of associations.
    pub associations: BTreeSet<u32>,
    /// Keys for accounting.
    pub wckeys: BTreeSet<String>,
    /// The range of the number of nodes.
    pub node_counts: Option<(u64, u64)>,
    /// The range of the number of processors.
    pub cpu_counts: Option<(u64, u64)>,
    /// The range of the time limit, in seconds.
    pub limit_seconds: Option<(u64, u64)>,
    /// Features, all of which the job asked for.
    pub features: BTreeSet<String>,
    /// Why it waits or how it ended, in any case.
    pub reasons: BTreeSet<String>,
    /// Whether starts before the wanted time and ends after it are shown as its start and end (`-T`).
    pub truncates: bool,
}

impl Wanted {
    /// Whether a line is listed.
    pub fn takes(&self, row: &Row) -> bool {
        let is = |wanted: &BTreeSet<String>, value: &str| wanted.is_empty() || wanted.contains(value);
        let within =
            |wanted: Option<(u64, u64)>, value: u64| wanted.is_none_or(|(least, most)| (least..=most).contains(&value));
        let job = &row.job;
        (row.step.is_none() || !self.jobs_only)
            && self.takes_time_of(job)
            && (is(&self.users, &job.user) || self.users.contains(&job.person.uid.to_string()))
            && is(&self.accounts, job.account.as_deref().unwrap_or_default())
            && is(&self.partitions, &job.partition)
            && is(&self.classes, job.qos())
            && is(&self.names, &job.name)
            && (is(&self.groups, &job.person.group) || self.groups.contains(&job.person.gid.to_string()))
            && is(&self.wckeys, job.request().wckey.as_deref().unwrap_or_default())
            && (self.flags.is_empty() || !self.flags.is_disjoint(&row.flags))
            && (self.associations.is_empty() || row.association.is_some_and(|id| self.associations.contains(&id)))
            && within(self.node_counts, job.node_count.into())
            && within(self.cpu_counts, job.cpus)
            && within(self.limit_seconds, job.limit_seconds.unwrap_or(u64::MAX))
            && self.takes_request_of(job)
            && (self.nodes.is_empty() || job.nodes.iter().any(|node| self.nodes.contains(node)))
    }

    /// Whether a job asked for the wanted features, and has a wanted reason.
    fn takes_request_of(&self, job: &JobRecord) -> bool {
        let asked = job.request().features.as_deref().unwrap_or_default();
        let names = || asked.split(|c: char| !(c.is_alphanumeric() || "_-.".contains(c)));
        self.features.iter().all(|feature| names().any(|name| name == feature))
            && (self.reasons.is_empty()
                || self.reasons.iter().any(|reason| reason.eq_ignore_ascii_case(job.reason_word())))
    }

    /// The row with no times outside of the wanted time.
    fn truncated(&self, mut row: Row) -> Row {
        if !self.truncates {
            return row;
        }
        let later = |time: Option<Timestamp>| time.map(|time| self.from.map_or(time, |from| time.max(from)));
        let sooner = |time: Option<Timestamp>, started: bool| match (self.to, time) {
            (Some(to), Some(time)) => Some(time.min(to)),
            (Some(to), None) if started => Some(to),
            (_, time) => time,
        };
        let job = std::sync::Arc::make_mut(&mut row.job);
        (job.started, job.ended) = (later(job.started), sooner(job.ended, job.started.is_some()));
        if let Some(step) = &mut row.step {
            (step.started, step.ended) = (later(step.started), sooner(step.ended, step.started.is_some()));
        }
        row
    }

    /// Whether a job matches the wanted time and states (SL-A-07): it waited or ran for part of that time, or ended in
    /// it.
    fn takes_time_of(&self, job: &JobRecord) -> bool {
        let since = |moment: Timestamp| self.from.is_none_or(|from| moment >= from);
        let until = |moment: Timestamp| self.to.is_none_or(|to| moment <= to);
        let is_now = |state: State| job.state.in_accounting() == state;
        let (ended, started) = (job.ended, job.started);
        if !(until(job.submitted) && ended.is_none_or(since)) {
            return false;
        }
        if self.from.is_none() && self.to.is_none() {
            return self.states.is_empty() || self.states.contains(&job.state.in_accounting());
        }
        let was = |state: &State| match state {
            State::Pending if ended.is_none() && started.is_none() => is_now(State::Pending),
            State::Pending => started.or(ended).is_some_and(since),
            // A running job has its current state, unless the wanted time has passed.
            State::Running if ended.is_none() && self.to.is_none() => is_now(State::Running),
            State::Running => started.is_some_and(until),
            other => is_now(*other) && ended.is_none_or(until),
        };
        self.states.is_empty() || self.states.iter().any(was)
    }
}

/// The layout of lines.
#[derive(Clone, Debug)]
pub struct Report {
    /// The columns: names with `%width`, separated by commas.
    pub format: String,
    /// In columns, or with a separator between the values.
    pub style: ListStyle,
    /// Without the lines above the columns (`-n`).
    pub no_header: bool,
    /// The unit of sizes (`--units`, `--noconvert`).
    pub units: Units,
}

impl Report {
    /// Whether a column of jobs is about their steps: `DerivedExitCode`.
    pub fn tells_of_steps(&self) -> bool {
        self.has("derived")
    }

    /// Whether the lines show the association of a job.
    pub fn tells_of_associations(&self) -> bool {
        self.has("associd") || self.format.eq_ignore_ascii_case("all")
    }

    fn has(&self, column: &str) -> bool {
        self.format.to_ascii_lowercase().contains(column)
    }
}

impl Default for Report {
    fn default() -> Self {
        Self { format: DEFAULT_FORMAT.to_owned(), style: ListStyle::Columns, no_header: false, units: Units::default() }
    }
}

/// The lines that are wanted, by submit time, number and step (SL-A-10).
pub fn choose(mut rows: Vec<Row>, wanted: &Wanted) -> Vec<Row> {
    rows.retain(|row| wanted.takes(row));
    rows.sort_by(order);
    rows.into_iter().map(|row| wanted.truncated(row)).collect()
}

/// The whole report, by submit time, number and step (SL-A-10).
///
/// # Errors
/// A column that does not exist; nothing is listed then.
pub fn list(rows: Vec<Row>, wanted: &Wanted, report: &Report, clock: &Clock) -> Result<String, FormatError> {
    let layout = Layout::listed(&report.format, FIELDS, &report.style)?;
    let mut rows = choose(rows, wanted);
    rows.iter_mut().for_each(|row| row.units = report.units);
    let mut out = String::new();
    if !report.no_header {
        layout.write_header(&mut out);
        if report.style == ListStyle::Columns {
            layout.write_dashes(&mut out);
        }
    }
    for row in &rows {
        layout.write_row(row, clock, &mut out);
    }
    Ok(out)
}

/// Sorts the components of a job together, each with its steps below it; the waiting tasks of an array come last.
fn order(left: &Row, right: &Row) -> Ordering {
    let index = |row: &Row| match row.job.array.as_ref().map(|array| &array.tasks) {
        Some(super::record::ArrayTasks::One(index)) => (0, *index),
        Some(super::record::ArrayTasks::Waiting(_)) => (1, 0),
        None => (0, 0),
    };
    let step = |row: &Row| row.step.as_ref().map(|step| place(step.step));
    // A waiting job comes after its earlier attempts.
    let started = |row: &Row| (row.job.started.is_none(), row.job.started);
    let key = |row: &Row| (row.job.submitted, row.job.array_number(), index(row), started(row), step(row));
    key(left).cmp(&key(right))
}

/// `sacct -e`: the names of the columns, four per line.
pub fn field_names() -> String {
    let mut out = String::new();
    for line in FIELDS.chunks(4) {
        let mut text = String::new();
        line.iter().for_each(|field| put(format_args!("{:<20}", field.header), &mut text));
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}
