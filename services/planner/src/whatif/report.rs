//! Before and after, side by side.

use super::{
    history::{History, PastJob},
    replay::{NewRun, Notes, Replayed},
};
use crate::{chart::Course, simulate::course};
use muster_schemas::{JobId, Timestamp};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The number of jobs named that gain most, and of those that lose most.
const NAMED_JOBS: usize = 10;
/// A run counts at least this long in a slowdown.
const SLOWDOWN_BOUND_SECONDS: f64 = 10.0;

/// The result of another policy on a history.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The policy's name.
    pub policy: String,
    /// Whether it is the policy that was in force, whichever that was at each time.
    pub is_in_force: bool,
    /// Jobs (tasks of arrays counted singly) that started in the log and in the replay. All figures are about them.
    pub jobs: u64,
    /// Jobs that started in the log only.
    pub started_only_before: u64,
    /// Jobs that started in the replay only.
    pub started_only_after: u64,
    /// Starts that differ by no more than this count as the same, in seconds.
    pub tolerance_seconds: f64,
    /// Jobs that start at the same time.
    pub same: u64,
    /// Jobs that would have started earlier.
    pub earlier: u64,
    /// Jobs that would have started later.
    pub later: u64,
    /// The greatest difference of a start, in seconds.
    pub max_difference_seconds: f64,
    /// All jobs.
    pub all: Group,
    /// By queue, in order of name.
    pub queues: Vec<Group>,
    /// By user, in order of name.
    pub users: Vec<Group>,
    /// The jobs that would have gained most, at most ten.
    pub gained: Vec<JobDifference>,
    /// The jobs that would have lost most, at most ten.
    pub lost: Vec<JobDifference>,
    /// The first jobs whose starts differ, with what explains that; only under the policy that was in force.
    pub first_differences: Vec<Difference>,
    /// Guesses in the replay.
    pub notes: Notes,
}

/// Jobs that are counted together, before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// The queue or the user; empty for all jobs.
    pub name: String,
    /// As in the log.
    pub before: Figures,
    /// As in the replay.
    pub after: Figures,
}

/// Waits from submission to start, in seconds, and slowdowns. The rank of an element is rounded down, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// How many jobs.
    pub jobs: u64,
    /// Mean wait.
    pub mean_wait: f64,
    /// Element `n/2` of the waits in ascending order.
    pub median_wait: f64,
    /// Element `95n/100`.
    pub p95_wait: f64,
    /// The longest wait.
    pub max_wait: f64,
    /// Mean bounded slowdown.
    pub mean_bsld: f64,
    /// Element `95n/100` of the bounded slowdowns.
    pub p95_bsld: f64,
}

/// A job before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobDifference {
    /// The job or task.
    pub job: JobId,
    /// Whose it is.
    pub user: String,
    /// Its queue.
    pub queue: String,
    /// When it was submitted.
    pub submitted: Timestamp,
    /// When it started.
    pub before: Timestamp,
    /// When it would have.
    pub after: Timestamp,
    /// How much later that is, in seconds; negative if it is earlier.
    pub seconds: f64,
}

/// A start that differs although the policy is the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The job.
    #[serde(flatten)]
    pub job: JobDifference,
    /// Its explanation.
    pub explanation: &'static str,
}

struct Compared<'h> {
    id: JobId,
    past: &'h PastJob,
    before: Timestamp,
    after: Timestamp,
    runtime_seconds: f64,
}

impl Compared<'_> {
    fn seconds(&self) -> f64 {
        seconds_between(self.before, self.after)
    }

    fn difference(&self) -> JobDifference {
        JobDifference {
            job: self.id,
            user: self.past.user.to_string(),
            queue: self.past.queue.to_string(),
            submitted: self.past.submitted,
            before: self.before,
            after: self.after,
            seconds: self.seconds(),
        }
    }
}

impl Report {
    /// Compares a replay under the policy of this name with its history. Without a name it was under the policy in
    /// force, and differences are explained.
    pub fn new(history: &History, replayed: &Replayed, policy: Option<&str>, tolerance_seconds: f64) -> Self {
        let compared = compare(history, replayed);
        let earlier = compared.iter().filter(|job| -job.seconds() > tolerance_seconds).count() as u64;
        let later = compared.iter().filter(|job| job.seconds() > tolerance_seconds).count() as u64;
        let all = Group::new("", &compared.iter().collect::<Vec<_>>());
        Self {
            policy: policy.unwrap_or("as in force").to_owned(),
            is_in_force: policy.is_none(),
            jobs: compared.len() as u64,
            started_only_before: started_only_before(history, replayed),
            started_only_after: started_only_after(history, replayed),
            tolerance_seconds,
            same: compared.len() as u64 - earlier - later,
            earlier,
            later,
            max_difference_seconds: compared.iter().map(|job| job.seconds().abs()).fold(0.0, f64::max),
            all,
            queues: groups(&compared, |past| &past.queue),
            users: groups(&compared, |past| &past.user),
            gained: most(&compared, tolerance_seconds, |job| -job.seconds()),
            lost: most(&compared, tolerance_seconds, |job| job.seconds()),
            first_differences: if policy.is_none() { explained(&compared, tolerance_seconds) } else { Vec::new() },
            notes: replayed.notes,
        }
    }
}

/// The jobs that started in both, in order of their ids.
fn compare<'h>(history: &'h History, replayed: &Replayed) -> Vec<Compared<'h>> {
    let started = replayed.runs.iter().filter_map(|(id, runs)| {
        let past = history.jobs.get(id).filter(|past| history.is_compared(past))?;
        let first = past.runs.first()?;
        let new = runs.first()?;
        let ended = first.ended.as_ref().map(|(ended, _)| seconds_between(first.allocated, *ended));
        let simulated = new.end.map(|end| seconds_between(new.start, end));
        Some(Compared {
            id: *id,
            past,
            before: first.allocated,
            after: new.start,
            runtime_seconds: ended.or(simulated).unwrap_or(0.0),
        })
    });
    started.collect()
}

fn started_only_before(history: &History, replayed: &Replayed) -> u64 {
    let missing = history
        .jobs
        .iter()
        .filter(|(id, past)| history.is_compared(past) && past.start().is_some() && !replayed.runs.contains_key(id));
    missing.count() as u64
}

fn started_only_after(history: &History, replayed: &Replayed) -> u64 {
    let is_new = |id: &JobId| match history.jobs.get(id) {
        Some(past) => past.start().is_none() && history.is_compared(past),
        None => history.job(*id).is_some_and(|whole| history.is_compared(whole)),
    };
    replayed.runs.keys().filter(|id| is_new(id)).count() as u64
}

fn groups(compared: &[Compared], key: impl Fn(&PastJob) -> &Arc<str>) -> Vec<Group> {
    let mut members: BTreeMap<Arc<str>, Vec<&Compared>> = BTreeMap::new();
    for job in compared {
        members.entry(key(job.past).clone()).or_default().push(job);
    }
    members.into_iter().map(|(name, jobs)| Group::new(&name, &jobs)).collect()
}

impl Group {
    fn new(name: &str, jobs: &[&Compared]) -> Self {
        Self {
            name: name.to_owned(),
            before: Figures::of(jobs.iter().map(|job| (*job, job.before))),
            after: Figures::of(jobs.iter().map(|job| (*job, job.after))),
        }
    }
}

impl Figures {
    fn of<'c>(starts: impl Iterator<Item = (&'c Compared<'c>, Timestamp)>) -> Self {
        let (mut waits, mut slowdowns) = (Vec::new(), Vec::new());
        for (job, start) in starts {
            let wait = seconds_between(job.past.submitted, start);
            waits.push(wait);
            let took = (wait + job.runtime_seconds) / job.runtime_seconds.max(SLOWDOWN_BOUND_SECONDS);
            slowdowns.push(took.max(1.0));
        }
        waits.sort_unstable_by(f64::total_cmp);
        slowdowns.sort_unstable_by(f64::total_cmp);
        let count = waits.len();
        let element = |of: &[f64], at: usize| of.get(at).copied().unwrap_or(0.0);
        let mean = |of: &[f64]| if count == 0 { 0.0 } else { of.iter().sum::<f64>() / count as f64 };
        Self {
            jobs: count as u64,
            mean_wait: mean(&waits),
            median_wait: element(&waits, count / 2),
            p95_wait: element(&waits, count * 95 / 100),
            max_wait: waits.last().copied().unwrap_or(0.0),
            mean_bsld: mean(&slowdowns),
            p95_bsld: element(&slowdowns, count * 95 / 100),
        }
    }
}

/// The jobs with the greatest value above the tolerance, greatest first.
fn most(compared: &[Compared], tolerance_seconds: f64, value: impl Fn(&Compared) -> f64) -> Vec<JobDifference> {
    let mut found: Vec<&Compared> = compared.iter().filter(|job| value(job) > tolerance_seconds).collect();
    found.sort_by(|one, other| value(other).total_cmp(&value(one)).then(one.id.cmp(&other.id)));
    found.into_iter().take(NAMED_JOBS).map(Compared::difference).collect()
}

/// The first differences in time. One leads to another: a job that starts later holds resources for longer.
fn explained(compared: &[Compared], tolerance_seconds: f64) -> Vec<Difference> {
    let mut differing: Vec<&Compared> = compared.iter().filter(|job| job.seconds().abs() > tolerance_seconds).collect();
    differing.sort_by_key(|job| (job.before.min(job.after), job.id));
    let mut seen_refusal = false;
    let explain = |(number, job): (usize, &Compared)| {
        seen_refusal |= job.past.was_refused;
        let explanation = if job.past.was_refused {
            "a start of it was refused, because the state had moved on since the plan"
        } else if seen_refusal {
            "follows from a start that was refused"
        } else if number > 0 {
            "follows from an earlier difference"
        } else if job.seconds() < 0.0 {
            "the live planner planned later than the event that let it start"
        } else {
            "the live planner had not seen yet what stands against it here"
        };
        Difference { job: job.difference(), explanation }
    };
    differing.into_iter().take(NAMED_JOBS).enumerate().map(explain).collect()
}

/// The charts of the log and of the replay, in seconds since the first submission.
pub fn courses_of(history: &History, replayed: &Replayed, policy: &str) -> [Course; 2] {
    let first = history.jobs.values().filter(|past| history.is_compared(past)).map(|past| past.submitted).min();
    let base = first.unwrap_or_default();
    let before = |id: &JobId| {
        let runs = history.jobs.get(id).map_or(&[][..], |past| &past.runs);
        let run = |run: &super::history::PastRun| NewRun {
            start: run.allocated,
            end: run.ended.as_ref().map(|(ended, _)| *ended),
            cores: run.cores,
        };
        runs.iter().map(run).collect::<Vec<_>>()
    };
    let after = |id: &JobId| replayed.runs.get(id).cloned().unwrap_or_default();
    [course_of("before", base, history, replayed, before), course_of(policy, base, history, replayed, after)]
}

fn course_of(
    name: &str,
    base: Timestamp,
    history: &History,
    replayed: &Replayed,
    runs_of: impl Fn(&JobId) -> Vec<NewRun>,
) -> Course {
    let since = |time: Timestamp| time.micros_since(base).div_euclid(1_000_000);
    let (mut waits, mut used, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
    let ids: BTreeSet<&JobId> = history.jobs.keys().chain(replayed.runs.keys()).collect();
    for id in ids {
        let runs = runs_of(id);
        for run in &runs {
            let cores = i64::try_from(run.cores).unwrap_or(i64::MAX);
            used.push((since(run.start), cores));
            used.push((since(run.end.unwrap_or(history.end)), -cores));
        }
        let (Some(past), Some(first)) = (history.job(*id), runs.first()) else { continue };
        if history.is_compared(past) {
            waits.push(since(first.start) - since(past.submitted));
            waiting.extend([(since(past.submitted), 1), (since(first.start), -1)]);
        }
    }
    Course {
        name: name.to_owned(),
        waits_seconds: waits,
        procs_in_use: course(used),
        jobs_waiting: course(waiting),
        machine_procs: replayed.cores,
    }
}

fn seconds_between(from: Timestamp, to: Timestamp) -> f64 {
    to.micros_since(from) as f64 / 1e6
}
