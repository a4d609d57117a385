//! Nodes that ask for their work: what an agent's question means, and the answer (OAR-K).

use crate::life::state::State;
use std::collections::{BTreeMap, BTreeSet};

/// The seconds between two questions of an agent.
pub const PERIOD: i64 = 30;

/// Until when a node that has just asked is trusted (OAR-K-03): three periods.
pub const fn expiry(now: i64, period: i64) -> i64 {
    now.saturating_add(period.saturating_mul(3))
}

/// The knowledge about the host of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// Nothing.
    Unknown,
    /// It is a node.
    Known {
        /// Whether it is marked as one whose agent asks.
        is_pulled: bool,
    },
}

/// What the question of a host leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It gets its work.
    Admitted,
    /// The node is created, then it gets its work.
    Created,
}

/// Whether an agent gets work (OAR-K-04).
///
/// # Errors
/// Why not, as a sentence.
pub const fn admit(host: Host, may_create: bool) -> Result<Admission, &'static str> {
    match host {
        Host::Known { is_pulled: true } => Ok(Admission::Admitted),
        Host::Known { is_pulled: false } => Err("the node is not marked as one whose agent asks"),
        Host::Unknown if may_create => Ok(Admission::Created),
        Host::Unknown => Err("no node has this name"),
    }
}

/// How a job is, as its agent tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It runs.
    Running,
    /// Its command exited.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
}

/// How a job is, as the server believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Believed {
    /// It is to be handed out.
    ToLaunch,
    /// It was handed out.
    Running,
    /// It is to be ended.
    ToKill,
}

/// What a question changes, and its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The jobs that the agent launches; each becomes Running through Launching.
    pub launch: Vec<u64>,
    /// The jobs that the agent ends.
    pub kill: Vec<u64>,
    /// The jobs that have ended, with their state and exit code (OAR-K-06).
    pub ended: BTreeMap<u64, (State, Option<i32>)>,
}

/// Compares what the server believes with what the agent tells. An agent sees only its own jobs: others that it tells of
/// are ended there and change nothing here. One that leaves gets no new job (OAR-K-10).
pub fn answer(believed: &BTreeMap<u64, Believed>, told: &BTreeMap<u64, Told>, is_leaving: bool) -> Answer {
    let mut answer = Answer::default();
    for (job, belief) in believed {
        match (belief, told.get(job)) {
            (_, Some(Told::Exited(code))) => drop(answer.ended.insert(*job, (State::Terminated, Some(*code)))),
            (_, Some(Told::Signalled(_))) => drop(answer.ended.insert(*job, (State::Error, None))),
            (Believed::ToLaunch, None) if !is_leaving => answer.launch.push(*job),
            (Believed::ToLaunch, None) => {}
            // A job that is ended before it was started is never started (OAR-K-09).
            (Believed::ToKill | Believed::Running, None) => drop(answer.ended.insert(*job, (State::Error, None))),
            (Believed::ToKill, Some(Told::Running)) => answer.kill.push(*job),
            (Believed::ToLaunch | Believed::Running, Some(Told::Running)) => {}
        }
    }
    let strange = told.iter().filter(|(job, state)| **state == Told::Running && !believed.contains_key(job));
    answer.kill.extend(strange.map(|(job, _)| *job));
    answer
}

/// What an agent does after a signal to quit (OAR-K-10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quit {
    /// It takes no new job, and its running ones finish.
    Finish,
    /// Its running jobs are ended.
    End,
}

/// What an agent does after this number of signals.
pub const fn quit(signals: u32) -> Option<Quit> {
    match signals {
        0 => None,
        1 => Some(Quit::Finish),
        _ => Some(Quit::End),
    }
}

/// The place of an archive's entry inside the directory of the job, as path parts. `None` for one that leads out of it:
/// an absolute path, `..`, or a name that is none (OAR-K-11).
pub fn inside(path: &str) -> Option<Vec<&str>> {
    if path.starts_with('/') || path.contains(['\0', '\\']) {
        return None;
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    (!parts.is_empty() && !parts.contains(&"..")).then_some(parts)
}

/// The archives that can be removed: unused for longer than this many seconds, and no recent job needs them (OAR-K-08).
pub fn removable(last_used: &BTreeMap<String, i64>, needed: &BTreeSet<String>, now: i64, keep: i64) -> Vec<String> {
    let is_old = |(sum, at): &(&String, &i64)| now - **at > keep && !needed.contains(*sum);
    last_used.iter().filter(is_old).map(|(sum, _)| sum.clone()).collect()
}
