//! Servers: `-B` and `-B -f` (PBS-C-04).

use super::{
    cells::{cut, first, word},
    queues::count,
    states::Counts,
    status::{Kind, Status},
};
use crate::flavour::Flavour;
use std::{borrow::Cow, fmt::Write};

/// The beginning of what is told of the policy in force.
const POLICY: &str = "policy: ";

/// The state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// Jobs are planned.
    Active,
    /// Jobs are accepted but not planned: `scheduling` is false.
    Idle,
    /// A cycle of the planner is in progress.
    Scheduling,
    /// It is being shut down.
    Terminating,
    /// It is being shut down as soon as running jobs allow.
    TerminatingDelay,
}

impl ServerState {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Active => "Active",
            Self::Idle => "Idle",
            Self::Scheduling => "Scheduling",
            Self::Terminating => "Terminating",
            Self::TerminatingDelay => "Terminating_Delay",
        }
    }
}

/// The facts about a server.
#[derive(Clone, Debug)]
pub struct ServerFacts<'a> {
    /// Its name.
    pub name: &'a str,
    /// The host that it runs on.
    pub host: &'a str,
    /// Its state.
    pub state: ServerState,
    /// The number of jobs in each state.
    pub counts: Counts,
    /// The queue of jobs that name none.
    pub default_queue: Option<&'a str>,
    /// The most jobs that run at a time.
    pub max_running: Option<u64>,
    /// The name of the policy in force, if it is that none is because of mistakes: `none (2 errors)` (PBS-C-14).
    pub missing_policy: Option<&'a str>,
    /// The time between two cycles of the planner, in seconds.
    pub iteration_seconds: Option<u64>,
    /// The version.
    pub version: &'a str,
}

/// The attributes of a server.
pub fn of_server(facts: &ServerFacts<'_>, flavour: Flavour) -> Status {
    let mut status = Status::new(Kind::Server, facts.name.to_owned());
    status.set("server_state", facts.state.word());
    status.set("server_host", facts.host);
    let is_planned = !matches!(facts.state, ServerState::Idle);
    status.set("scheduling", if is_planned { "True" } else { "False" });
    status.set_if("max_running", facts.max_running.map(|most| most.to_string()));
    status.set("total_jobs", facts.counts.total().to_string());
    status.set("state_count", facts.counts.text(flavour));
    status.set_if("default_queue", facts.default_queue);
    let iteration = if flavour == Flavour::PbsPro { "schedule_iteration" } else { "scheduler_iteration" };
    status.set_if(iteration, facts.iteration_seconds.map(|seconds| seconds.to_string()));
    status.set("pbs_version", facts.version);
    status.set_if("comment", facts.missing_policy.map(|policy| format!("{POLICY}{policy}")));
    status
}

/// A cell, cut as the flavour cuts it.
fn short(text: &str, width: usize, flavour: Flavour) -> Cow<'_, str> {
    match flavour {
        Flavour::PbsPro => cut(text, width),
        Flavour::Torque => Cow::Borrowed(first(text, width)),
    }
}

/// The list of `-B`.
pub fn servers(all: &[Status], flavour: Flavour) -> String {
    let mut out = String::from(match flavour {
        Flavour::PbsPro => concat!(
            "Server             Max   Tot   Que   Run   Hld   Wat   Trn   Ext Status\n",
            "---------------- ----- ----- ----- ----- ----- ----- ----- ----- -----------\n",
        ),
        Flavour::Torque => concat!(
            "Server             Max   Tot   Que   Run   Hld   Wat   Trn   Ext   Com Status    \n",
            "----------------   ---   ---   ---   ---   ---   ---   ---   ---   --- ----------\n",
        ),
    });
    for server in all {
        let _ = write!(out, "{:<16}", short(&word(&server.name), 16, flavour));
        let totals = [server.get("max_running").unwrap_or("0"), server.get("total_jobs").unwrap_or("0")];
        let states = ["Queued", "Running", "Held", "Waiting", "Transit", "Exiting"].map(|state| count(server, state));
        let complete = (flavour == Flavour::Torque).then(|| count(server, "Complete"));
        for number in totals.into_iter().chain(states).chain(complete) {
            let _ = write!(out, " {:>5}", short(number, 5, flavour));
        }
        let _ = write!(out, " {:<10}", short(server.get("server_state").unwrap_or_default(), 10, flavour));
        if let Some(policy) = server.get("comment").filter(|comment| comment.starts_with(POLICY)) {
            let _ = write!(out, " {policy}");
        }
        out.push('\n');
    }
    out
}
