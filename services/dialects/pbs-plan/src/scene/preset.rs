//! The part of a state that only presets look at.

use super::{Scene, Told, instant, micros, share};
use crate::{
    resources::Resources,
    state_file::{JobState, QueueState, StateError},
};
use muster_pbs_policy::{
    outages::short_name,
    past_usage,
    preset::{Preset, PresetConfig, RestartAction},
    routes,
};
use muster_planner::{
    model::ActiveRun,
    pass::Plan,
    routes::{Conditions, MachineLoad, Owner, Promised},
};
use muster_schemas::{
    JobId, Timestamp,
    policy::routes::JobStanding,
    resources::{ComponentPlacement, Placement},
};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// What the next cycle has to be told, in the terms of a state file. Times are in seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Carried {
    /// Stored usage by `group:user`, with the charges of this cycle.
    pub usage: BTreeMap<String, u64>,
    /// When it was reduced last.
    pub last_decay: i64,
    /// The reservations of this cycle.
    pub reservations: Vec<CarriedReservation>,
    /// Queues for which the rules of prime time are lifted, and until when.
    pub queues: Vec<CarriedQueue>,
}

/// A reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CarriedReservation {
    /// The job.
    pub job: String,
    /// The queue.
    pub queue: String,
    /// When it starts at the latest.
    pub start: i64,
}

/// A queue for which the rules of prime time are lifted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CarriedQueue {
    /// The queue.
    pub name: String,
    /// Until then.
    pub prime_lifted_until: i64,
}

impl<'s> Scene<'s> {
    /// When a job became eligible: presets count from then.
    pub(super) fn eligible_since(
        &self,
        job: &JobState,
        arrival: Timestamp,
        place: &impl Fn(&str) -> String,
    ) -> Result<Timestamp, StateError> {
        let (field, moment) = if job.etime.is_some() { ("etime", job.etime) } else { ("qtime", job.qtime) };
        match moment.filter(|_| self.preset.is_some()) {
            Some(moment) => Ok(micros(instant(moment, &self.zone, &place(field))?)),
            None => Ok(arrival),
        }
    }

    /// The queue in which a job has its turn: one that is found in a batch queue may go back to where it came from
    /// (PBS-P-15).
    pub(super) fn queue_of_turn(&self, job: &JobState, queue: &'s QueueState) -> &'s QueueState {
        let is_resubmitted = self.is_stranded(job, RestartAction::Resubmit);
        let origin = job.origin.as_deref().filter(|_| is_resubmitted).and_then(|origin| self.queues.get(origin));
        origin.and_then(|at| self.state.queues.get(*at)).unwrap_or(queue)
    }

    /// Whether a job starts again, whatever the gates say (PBS-P-15).
    pub(super) fn is_rerun(&self, job: &JobState) -> bool {
        self.is_stranded(job, RestartAction::Rerun)
    }

    fn is_stranded(&self, job: &JobState, action: RestartAction) -> bool {
        let Some(config) = self.preset.filter(|_| self.state.first_cycle) else { return false };
        config.restart_action == action && config.batch_queues.iter().any(|queue| queue.queue == job.queue)
    }

    /// A job runs from now on.
    pub(super) fn start_again(&mut self, id: JobId, told: Told) {
        let shares = vec![share(super::SERVER, u32::try_from(id.number).unwrap_or(0))];
        let walltime = told.walltime_seconds.and_then(|seconds| i64::try_from(seconds).ok());
        self.engine.begin(ActiveRun {
            job: id,
            demand: told.demand,
            holder: told.holder,
            placement: Arc::new(Placement { components: vec![ComponentPlacement { alternative: 0, shares }] }),
            expected_end: walltime.map_or(Timestamp::MAX, |seconds| self.now.plus_seconds(seconds)),
            attributes: Some(told.attributes),
        });
        self.reruns.push(id);
    }

    /// What orders and gates of presets look at beside the request.
    pub(super) fn add_attributes(&self, job: &JobState, queue: &QueueState, attributes: &mut BTreeMap<String, i64>) {
        let Some(config) = self.preset else { return };
        let standing = routes::standing(config, &queue.name);
        attributes.insert("interactive".to_owned(), job.interactive.unwrap_or(false).into());
        if config.preset == Preset::CrayT3e {
            let usage = i64::try_from(self.usage_of(job)).unwrap_or(i64::MAX);
            attributes.insert(routes::PAST_USAGE.to_owned(), usage);
            attributes.insert(routes::BASE.to_owned(), routes::base_of(config, &queue.name));
            attributes.insert(routes::BACKGROUND.to_owned(), (standing == JobStanding::Background).into());
            attributes.insert(routes::SPECIAL.to_owned(), (standing == JobStanding::Privileged).into());
        }
    }

    /// The request for whole nodes. `ibm_sp` gives nothing else (PBS-P-19).
    pub(super) fn whole_nodes(&self, request: &Resources) -> Option<String> {
        let is_whole = self.preset.is_some_and(|config| config.preset == Preset::IbmSp) && !self.nodes.is_empty();
        let count = || request.number("nodect").unwrap_or(1).max(1).to_string();
        request.nodes().map(str::to_owned).or_else(|| is_whole.then(count))
    }

    /// The usage of an owner, after what is due of it is gone (PBS-P-09): that of the user in the group, or of the user.
    fn usage_of(&self, job: &JobState) -> u64 {
        let Some(config) = self.preset else { return 0 };
        let usage = &self.state.usage;
        let stored = usage.get(&owner_name(job)).or_else(|| usage.get(&job.user)).copied().unwrap_or(0);
        self.decayed(config, job.group.as_deref().unwrap_or_default(), stored)
    }

    fn decayed(&self, config: &PresetConfig, group: &str, usage: u64) -> u64 {
        let factor = match self.is_over_allocation(group) {
            true => config.over_allocation_decay_factor,
            false => config.decay_factor,
        };
        past_usage::decayed(usage, factor, self.days.0)
    }

    fn is_over_allocation(&self, group: &str) -> bool {
        self.state.allocations.get(group).is_some_and(|allocation| allocation.used > allocation.allocated)
    }

    /// Tells the engine what presets count beside jobs and nodes.
    pub(super) fn tell_conditions(&mut self, config: &PresetConfig) -> Result<(), StateError> {
        let state = self.state;
        let mut conditions = Conditions { loads: self.loads(config), ..Conditions::default() };
        for (job, number) in state.jobs.iter().zip(1..) {
            conditions.usage.insert(self.owner(job), self.usage_of(job));
            conditions.numbers.extend(job.nodemask.clone().map(|numbers| (JobId::job(number), numbers)));
        }
        let groups = self.groups.iter().filter(|(group, _)| self.is_over_allocation(group));
        conditions.over_allocation = groups.map(|(_, number)| *number).collect();
        for (index, queue) in state.queues.iter().enumerate() {
            for (field, moment, told) in [
                ("idle_since", queue.idle_since, &mut conditions.idle_since),
                ("prime_lifted_until", queue.prime_lifted_until, &mut conditions.lifted),
            ] {
                if let Some(moment) = moment {
                    let at = instant(moment, &self.zone, &format!("queues[{index}].{field}"))?;
                    told.insert(queue.name.clone(), micros(at));
                }
            }
        }
        for (index, reserved) in state.reservations.iter().enumerate() {
            let place = |field: &str| format!("reservations[{index}].{field}");
            let at = state.jobs.iter().position(|job| job.id == reserved.job);
            if !self.queues.contains_key(reserved.queue.as_str()) {
                return Err(StateError::at(place("queue"), format!("there is no queue {}", reserved.queue)));
            }
            let start = micros(instant(reserved.start, &self.zone, &place("start"))?);
            // A job that has left has no reservation.
            let job = at.map(|at| JobId::job(at as u64 + 1));
            conditions.promised.extend(job.map(|job| Promised { job, queue: reserved.queue.clone(), start }));
        }
        self.engine.set_conditions(conditions);
        Ok(())
    }

    fn owner(&self, job: &'s JobState) -> Owner {
        let group = self.groups.get(job.group.as_deref().unwrap_or_default()).copied().unwrap_or(u32::MAX);
        (group, job.user.as_str().into())
    }

    fn loads(&mut self, config: &PresetConfig) -> BTreeMap<String, MachineLoad> {
        let mut loads = BTreeMap::new();
        let reads_loads = matches!(config.preset, Preset::SgiOrigin | Preset::Multitask);
        for node in &self.state.nodes {
            let Some(load) = node.loadave else {
                if reads_loads {
                    self.warnings.push(format!("node {} has no loadave: its load does not matter", node.name));
                }
                continue;
            };
            let sample = MachineLoad {
                processors: node.ncpus.unwrap_or(1),
                millionths: load.millionths(),
                system_percent: node.systime,
                is_idle: node.idle_cpus.is_some_and(|idle| idle > 0),
            };
            loads.insert(short_name(&node.name), sample);
        }
        loads
    }

    /// What the next cycle has to be told.
    pub fn carried(&self, config: &PresetConfig, plan: &Plan) -> Carried {
        let routed = &plan.routed;
        let mut usage: BTreeMap<String, u64> = BTreeMap::new();
        let names: BTreeSet<&str> = self.state.jobs.iter().map(|job| job.user.as_str()).collect();
        for (name, used) in &self.state.usage {
            // The usage of users who have jobs is kept for each group.
            let group = name.split_once(':').map(|(group, _)| group);
            if group.is_some() || !names.contains(name.as_str()) {
                usage.insert(name.clone(), self.decayed(config, group.unwrap_or_default(), *used));
            }
        }
        let mut owners: BTreeMap<Owner, String> = BTreeMap::new();
        for job in &self.state.jobs {
            owners.insert(self.owner(job), owner_name(job));
            let used = self.usage_of(job);
            if used > 0 {
                usage.insert(owner_name(job), used);
            }
        }
        for (owner, charge) in &routed.charges {
            if let Some(name) = owners.get(owner) {
                let used = usage.entry(name.clone()).or_default();
                *used = used.saturating_add(*charge);
            }
        }
        let seconds = |at: Timestamp| at.unix_seconds();
        let keeps = config.backfill_mode == muster_pbs_policy::preset::BackfillMode::Static;
        let reservations = routed.promised.iter().filter(|_| keeps).map(|promised| CarriedReservation {
            job: self.name(promised.job).to_owned(),
            queue: promised.queue.clone(),
            start: seconds(promised.start),
        });
        let queues = routed
            .lifted
            .iter()
            .map(|(name, until)| CarriedQueue { name: name.clone(), prime_lifted_until: seconds(*until) });
        Carried {
            usage,
            last_decay: self.days.1.as_second(),
            reservations: reservations.collect(),
            queues: queues.collect(),
        }
    }
}

fn owner_name(job: &JobState) -> String {
    format!("{}:{}", job.group.as_deref().unwrap_or_default(), job.user)
}
