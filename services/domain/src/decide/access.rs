//! Permissions.

use crate::{
    decide::refuse,
    jobs::{Component, Job},
    nodes::Node,
    state::State,
};
use muster_schemas::{
    cluster::{ClusterChange, ClusterSettingsChange, QueueSpecChange},
    command::{Command, Refusal, RefusalCode},
    event::{Actor, Owner},
};

/// An actor, and the state it acts on.
pub(crate) struct Access<'a> {
    pub(crate) state: &'a State,
    pub(crate) actor: &'a Actor,
}

impl<'a> Access<'a> {
    /// Whether the actor may do everything: `root`, the administrators in the settings, the ledger itself. The planner may do
    /// everything in the commands that it may send.
    pub(crate) fn is_administrator(&self) -> bool {
        self.state.is_administrator(self.actor) || *self.actor == Actor::Planner
    }

    /// Whether the actor may manage all jobs and nodes.
    pub(crate) fn is_operator(&self) -> bool {
        self.is_administrator()
            || matches!(self.actor, Actor::User(owner) if self.state.settings().operators.contains(&owner.user))
    }

    /// Whether the actor may manage the job.
    pub(crate) fn may_manage(&self, job: &Job) -> bool {
        matches!(self.actor, Actor::User(owner) if owner.user == job.owner.user) || self.is_operator()
    }

    /// Whether the actor may stop, hold and release the job, and change its class: who may manage it, and the
    /// coordinators of the accounts that it is on. They may not change what it runs, which would let them act as its
    /// owner.
    pub(crate) fn may_control(&self, job: &Job) -> bool {
        self.may_manage(job) || matches!(self.actor, Actor::User(owner) if self.coordinates(&owner.user, job))
    }

    fn coordinates(&self, user: &str, job: &Job) -> bool {
        let accounts = self.state.accounts();
        let is_coordinated = |component: &Component| {
            component.account.as_deref().is_some_and(|account| accounts.coordinates(user, account))
        };
        job.components.iter().all(is_coordinated)
    }

    pub(crate) fn require_control(&self, job: &Job) -> Result<(), Refusal> {
        self.require(self.may_control(job), || format!("job {} belongs to {}", job.id, job.owner.user))
    }

    pub(crate) fn require_management(&self, job: &Job) -> Result<(), Refusal> {
        self.require(self.may_manage(job), || format!("job {} belongs to {}", job.id, job.owner.user))
    }

    pub(crate) fn require_administrator(&self, what: &str) -> Result<(), Refusal> {
        self.require(self.is_administrator(), || format!("only administrators may {what}"))
    }

    pub(crate) fn require_operator(&self, what: &str) -> Result<(), Refusal> {
        self.require(self.is_operator(), || format!("only operators and administrators may {what}"))
    }

    /// The user who sent the command.
    pub(crate) fn require_user(&self) -> Result<&'a Owner, Refusal> {
        match self.actor {
            Actor::User(owner) => Ok(owner),
            _ => Err(refuse(RefusalCode::PermissionDenied, "only users have jobs")),
        }
    }

    pub(crate) fn require_planner(&self) -> Result<(), Refusal> {
        self.require(*self.actor == Actor::Planner, || "only the planner commits plans".into())
    }

    /// Requires that a command is none of the planner, or one that a scheduling program needs: it manages jobs and the
    /// switches of queues and of the server, as an operator does, and nothing else (PBS-C-08).
    pub(crate) fn require_planners(&self, command: &Command) -> Result<(), Refusal> {
        let is_his = match command {
            Command::CommitPlan { .. }
            | Command::PlannerHello
            | Command::NoteCycle { .. }
            | Command::RefusePolicy { .. }
            | Command::Hold { .. }
            | Command::Release { .. }
            | Command::Modify { .. }
            | Command::EndJobs { .. }
            | Command::Signal { .. }
            | Command::Suspend { .. }
            | Command::Resume { .. }
            | Command::Requeue { .. }
            | Command::CopyAhead { .. } => true,
            Command::Configure { change, keep_unnamed } => *keep_unnamed && self.is_switch(change),
            _ => false,
        };
        self.require(*self.actor != Actor::Planner || is_his, || {
            "the planner plans, manages jobs, and switches queues and scheduling".into()
        })
    }

    /// Whether a change of the configuration only switches queues that exist, or scheduling.
    fn is_switch(&self, change: &ClusterChange) -> bool {
        let ClusterChange { settings, queues, .. } = change;
        let is_idle = settings.is_idle;
        let of_queue = |queue: &QueueSpecChange| {
            let QueueSpecChange { name, enabled, started, .. } = queue;
            let only =
                QueueSpecChange { name: name.clone(), enabled: *enabled, started: *started, ..Default::default() };
            *queue == only && self.state.queue(name).is_some()
        };
        let only = ClusterSettingsChange { is_idle, ..ClusterSettingsChange::default() };
        let rest = ClusterChange { settings: only, queues: queues.clone(), ..ClusterChange::default() };
        *change == rest && queues.iter().all(of_queue)
    }

    pub(crate) fn require_notifier(&self) -> Result<(), Refusal> {
        self.require(*self.actor == Actor::Notifier, || "only notifiers report notifications".into())
    }

    /// The name of the filter-runner that sent the command.
    pub(crate) fn require_runner(&self) -> Result<&'a str, Refusal> {
        match self.actor {
            Actor::Runner(name) => Ok(name),
            _ => Err(refuse(RefusalCode::PermissionDenied, "only filter-runners make calls")),
        }
    }

    /// Requires a sender that may report calls: a runner, or the ledger for checks without filters.
    pub(crate) fn require_caller(&self) -> Result<&'a str, Refusal> {
        if *self.actor == Actor::Ledger { Ok("ledger") } else { self.require_runner() }
    }

    pub(crate) fn require_ledger(&self) -> Result<(), Refusal> {
        self.require(*self.actor == Actor::Ledger, || "only the ledger itself does this".into())
    }

    /// The node whose executor reports.
    pub(crate) fn require_node(&self) -> Result<&'a Node, Refusal> {
        let Actor::Executor(name) = self.actor else {
            return Err(refuse(RefusalCode::PermissionDenied, "only executors report for nodes"));
        };
        let unknown = || refuse(RefusalCode::NotFound, format!("node `{name}` is not part of the cluster"));
        self.state.node_by_name(name).ok_or_else(unknown)
    }

    fn require(&self, allowed: bool, message: impl FnOnce() -> String) -> Result<(), Refusal> {
        if allowed { Ok(()) } else { Err(refuse(RefusalCode::PermissionDenied, message())) }
    }
}
