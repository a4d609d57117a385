//! The state of the cluster at one point of the log. Everything here can be read; only [`State::apply`] changes it.

mod altered;
pub mod looks;
mod pool;

use crate::{
    accounts::{Accounts, fair_use::FairUse, spent::Spent},
    crontabs::Crontab,
    filters::state::FilterState,
    index::Index,
    jobs::{Job, Shapes, numbers::Numbers},
    nodes::{Licence, Node, Queue, measured::Loads, names::PastNames},
    planning::{BackfillPasses, Routing, ShareUse, WindowUse, state::Planning},
    power::Power,
    runs::Run,
    staging::state::Staging,
    state::{altered::Altered, pool::Pool},
    steps::state::Clients,
    triggers::Triggers,
};
use muster_schemas::{
    JobId, NodeId, RunId, Sequence, Timestamp,
    cluster::ClusterSettings,
    cycle::ProgramCycle,
    event::{Actor, Owner},
    job::WaitReason,
    scheduling::SchedulingSettings,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// The cluster after some record of its log. It is stored as it is, except what is derived from it: new fields go
/// before the index, and must be empty until they are used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub(crate) sequence: Sequence,
    pub(crate) time: Timestamp,
    pub(crate) cluster: Option<ClusterIdentity>,
    pub(crate) settings: Arc<ClusterSettings>,
    pub(crate) archived: Sequence,
    pub(crate) queues: BTreeMap<Arc<str>, Queue>,
    pub(crate) licences: BTreeMap<String, Licence>,
    pub(crate) nodes: BTreeMap<NodeId, Node>,
    pub(crate) next_node: u32,
    pub(crate) past_names: PastNames,
    pub(crate) shapes: Shapes,
    pub(crate) jobs: BTreeMap<JobId, Box<Job>>,
    pub(crate) next_job: u64,
    pub(crate) unfinished_jobs: u64,
    pub(crate) runs: BTreeMap<RunId, Box<Run>>,
    pub(crate) next_run: u64,
    pub(crate) planning: Planning,
    pub(crate) filters: FilterState,
    pub(crate) scheduling: Arc<SchedulingSettings>,
    pub(crate) rebalanced: Option<Timestamp>,
    pub(crate) clients: Clients,
    pub(crate) staging: Staging,
    pub(crate) passes: Arc<BackfillPasses>,
    pub(crate) accounts: Accounts,
    pub(crate) altered: Altered,
    pub(crate) numbers: Numbers,
    pub(crate) fair_use: FairUse,
    pub(crate) spent: Spent,
    pub(crate) triggers: Triggers,
    /// By user.
    pub(crate) crontabs: BTreeMap<String, Crontab>,
    pub(crate) share_use: ShareUse,
    pub(crate) loads: Loads,
    pub(crate) power: Power,
    pub(crate) window_use: WindowUse,
    pub(crate) program_cycle: Option<Arc<ProgramCycle>>,
    pub(crate) routing: Routing,
    pub(crate) reign: Option<Reign>,
    #[serde(skip)]
    pub(crate) index: Index,
    #[serde(skip)]
    pub(crate) pools: Pools,
    /// The fault of the record that is being applied, if it does what no record may do.
    #[serde(skip)]
    pub(crate) fault: Option<Box<str>>,
}

/// The cluster that the log belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterIdentity {
    /// Distinguishes this log from every other.
    pub cluster_id: [u8; 16],
    /// The key with which checkpoints are signed.
    pub public_key: [u8; 32],
}

/// The reign of one of several ledgers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reign {
    /// Its epoch.
    pub epoch: u64,
    /// The ledger that leads.
    pub ledger: String,
    /// When the stream was created in which the ledgers order their records.
    pub stream_created: Timestamp,
    /// The record that it began with.
    pub since: Sequence,
}

/// Values shared by jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pools {
    pub(crate) text: Pool<str>,
    pub(crate) owners: Pool<Owner>,
    pub(crate) reasons: Pool<WaitReason>,
}

impl State {
    /// The state before the first record.
    pub fn new() -> Self {
        Self::default()
    }

    /// The last record that it includes.
    pub fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// The time of that record.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// The cluster that the log belongs to; `None` before the first record.
    pub fn cluster(&self) -> Option<&ClusterIdentity> {
        self.cluster.as_ref()
    }

    /// The last reign of one of several ledgers; `None` if the cluster has only ever had one.
    pub fn reign(&self) -> Option<&Reign> {
        self.reign.as_ref()
    }

    /// The epoch that new records carry: that of the last reign, 0 if there was none.
    pub fn epoch(&self) -> u64 {
        self.reign.as_ref().map_or(0, |reign| reign.epoch)
    }

    /// Whether the actor may do everything: `root`, the administrators in the settings, the ledger itself.
    pub fn is_administrator(&self, actor: &Actor) -> bool {
        match actor {
            Actor::Ledger => true,
            Actor::User(owner) => owner.uid == 0 || self.settings().administrators.contains(&owner.user),
            _ => false,
        }
    }

    /// The settings of the cluster.
    pub fn settings(&self) -> &ClusterSettings {
        &self.settings
    }

    /// The last record that was moved to archive files; all before it were too.
    pub fn archived(&self) -> Sequence {
        self.archived
    }

    /// Accounts, associations and service classes, and what is enforced.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// When [`muster_schemas::command::Command::Tick`] is next worth deciding; it can be in the past. `None` if nothing
    /// is due.
    pub fn next_timer(&self) -> Option<Timestamp> {
        let tasks_ready = !self.index.tasks_ready.is_empty();
        let goes_on = self.ready_to_go_on().next().is_some() || self.kept_in_the_way().next().is_some();
        let is_left = self.left_by_domains().next().is_some();
        if tasks_ready || goes_on || is_left || self.has_staging_now() || !self.impossible_jobs().is_empty() {
            return Some(self.time());
        }
        let reservation = self.index.reservations_due.first().map(|(time, _)| *time);
        let closure = self.index.closures_due.first().map(|(time, _)| *time);
        let kept = self.clients.kept.values().map(|kept| kept.until).min();
        let first = self.index.due.first().map(|(time, _)| *time);
        let jobs = [self.next_passing_on(), self.next_walltime()];
        let others = [reservation, closure, kept, self.next_trigger(), self.next_power()];
        first.into_iter().chain(others.into_iter().chain(jobs).flatten()).min()
    }
}
