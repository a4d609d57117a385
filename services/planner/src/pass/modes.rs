//! Scheduling modes: jobs in their order, each with as much as it can use (queued) or at its least first (balanced),
//! and around the first waiting job only jobs that are over before it can start.
//!
//! The first job that does not get its least is a front. It keeps every idle resource that it could use: a job that
//! could use the same nodes or licences starts, within the look-ahead, only if it is over by the time at which the
//! front can start, going by the walltimes of running jobs. Others start as if there were no front.

use super::{Cycle, Verdict};
use crate::{
    class::ClassId,
    domains::open_in,
    engine::Engine,
    limits::{Usage, is_one_shut},
    model::Demand,
    queue::Place,
    resize,
    search::{Search, serves_kind},
};
use muster_schemas::{JobId, Timestamp, resources::Placement, scheduling::SchedulingMode};
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

/// Nodes of the machine, by their index, and licences.
#[derive(Clone, Debug, Default)]
pub(super) struct Ground {
    nodes: Vec<u64>,
    licences: BTreeSet<String>,
}

impl Ground {
    fn add_node(&mut self, index: usize) {
        if self.nodes.len() <= index / 64 {
            self.nodes.resize(index / 64 + 1, 0);
        }
        self.nodes[index / 64] |= 1 << (index % 64);
    }

    pub(super) fn meets(&self, other: &Self) -> bool {
        self.nodes.iter().zip(&other.nodes).any(|(one, other)| one & other != 0)
            || self.licences.iter().any(|name| other.licences.contains(name))
    }

    fn join(&mut self, other: &Self) {
        if self.nodes.len() < other.nodes.len() {
            self.nodes.resize(other.nodes.len(), 0);
        }
        self.nodes.iter_mut().zip(&other.nodes).for_each(|(one, other)| *one |= other);
        self.licences.extend(other.licences.iter().cloned());
    }
}

/// A waiting job, with no job ahead of it that could use the same.
#[derive(Debug)]
pub(super) struct Front {
    pub priority: i64,
    /// The cores that it needs at least.
    pub least_cores: u64,
    /// The resources that it, and the jobs behind it, could use.
    pub ground: Ground,
    /// When it can start; `None` if nobody knows, and then nobody goes around it (HPC-B-05).
    start: Option<Timestamp>,
}

/// The progress of the turns in a cycle.
#[derive(Default)]
pub(super) struct Turns {
    pub fronts: Vec<Front>,
    /// How many jobs behind the first front have had their turn.
    behind: u64,
    grounds: HashMap<ClassId, Arc<Ground>>,
    least: HashMap<ClassId, Option<Arc<Demand>>>,
    /// Runs that grow as soon as it is known which jobs wait.
    pub late_growers: Vec<JobId>,
}

impl Engine {
    /// A cycle in a scheduling mode.
    pub(super) fn by_mode(&mut self, cycle: &mut Cycle, mode: SchedulingMode) {
        let mut turns = Turns::default();
        self.give_up_idle(cycle);
        if mode == SchedulingMode::Queued {
            turns.late_growers = self.grow_in_order(cycle);
        }
        for block in self.queue.blocks() {
            let sorted = self.queue.take_sorted(block);
            for place in &sorted {
                if cycle.plan.is_cut_short || !cycle.may_look(*place) {
                    break;
                }
                self.take_turn(cycle, &mut turns, *place);
            }
            self.queue.restore(block, sorted);
        }
        self.grow_late(cycle, &mut turns);
        if mode == SchedulingMode::Balanced {
            self.share_out(cycle, &turns);
        }
    }

    fn take_turn(&mut self, cycle: &mut Cycle, turns: &mut Turns, place: Place) {
        if self.is_fixed(place) {
            return;
        }
        let Some(class) = self.queue.class_at(place) else { return };
        // Every job behind the front counts, whether or not it could start (HPC-B-02).
        turns.behind += u64::from(!turns.fronts.is_empty());
        if self.is_asked(place) {
            return;
        }
        if let Some(kept) = self.kept(place) {
            return self.turn_of_kept(cycle, turns, place, &kept);
        }
        if self.classes.has_failed(class, self.passes) || !self.may_be_planned(cycle, place) || self.is_hopeless(place)
        {
            return;
        }
        if turns.fronts.is_empty() {
            return self.start_or_wait(cycle, turns, place, class);
        }
        let ground = self.ground(turns, class);
        let rivals: Vec<usize> = (0..turns.fronts.len()).filter(|at| turns.fronts[*at].ground.meets(&ground)).collect();
        if rivals.is_empty() {
            return self.start_or_wait(cycle, turns, place, class);
        }
        if !self.goes_around(cycle, turns, place, class, &rivals) {
            // It waits too: no job that could use the same may go ahead of it.
            rivals.into_iter().for_each(|at| turns.fronts[at].ground.join(&ground));
        }
    }

    /// A job with kept resources starts on those, or gets more kept.
    fn turn_of_kept(&mut self, cycle: &mut Cycle, turns: &mut Turns, place: Place, kept: &Arc<Placement>) {
        if self.may_be_planned(cycle, place) {
            self.start(cycle, place);
            return;
        }
        let Some(entry) = self.queue.get(place).filter(|entry| !cycle.left_out.contains(&entry.id)) else { return };
        let asks_later = entry.activation.as_ref().and_then(|one| one.ask_again).is_some_and(|at| at > cycle.now);
        let class = entry.class;
        if asks_later && !self.is_held_back(cycle, entry.id, entry.priority) {
            let ground = self.ground(turns, class);
            if !turns.fronts.iter().any(|front| front.ground.meets(&ground)) {
                self.keep_more(cycle, place, kept);
            }
        }
    }

    /// Starts the first job in the order; if it does not get its least, it becomes a front (HPC-S-04).
    fn start_or_wait(&mut self, cycle: &mut Cycle, turns: &mut Turns, place: Place, class: ClassId) {
        if self.start_in_mode(cycle, turns, place, class) != Verdict::NoRoom {
            return;
        }
        let ground = Ground::clone(&self.ground(turns, class));
        let Some(priority) = self.queue.get(place).map(|entry| entry.priority) else { return };
        let claims = self.claim(cycle, turns, place).or_else(|| self.claim_by_class(cycle, place)).is_some();
        let least_cores = self.classes.get(class).least_cores;
        turns.fronts.push(Front { priority, least_cores, ground, start: None });
        // Running jobs grow before anybody goes around this one (HPC-B-03).
        self.grow_late(cycle, turns);
        if !claims {
            let demand = self.least_demand(turns, class);
            let start = self.search(cycle.now).first_start(&demand);
            if let Some(front) = turns.fronts.last_mut() {
                front.start = start;
            }
        }
        self.tell_shortage(cycle, place);
    }

    /// Starts a job behind fronts if it is over before they can start (HPC-B-07, HPC-B-08). Returns whether it started,
    /// or waits for something else.
    fn goes_around(
        &mut self,
        cycle: &mut Cycle,
        turns: &mut Turns,
        place: Place,
        class: ClassId,
        rivals: &[usize],
    ) -> bool {
        let look_ahead = self.scheduling.look_ahead().unwrap_or(0);
        let is_seen = u64::try_from(look_ahead).map_or(true, |most| turns.behind <= most);
        let starts: Option<Vec<Timestamp>> = rivals.iter().map(|at| turns.fronts[*at].start).collect();
        let until = starts.and_then(|starts| starts.into_iter().min());
        let walltime = self.classes.get(class).size.walltime_seconds.and_then(|seconds| i64::try_from(seconds).ok());
        let ends = walltime.filter(|_| self.has_walltime(place)).map(|seconds| cycle.now.plus_seconds(seconds));
        let fits_in_time = until.zip(ends).is_some_and(|(until, ends)| ends <= until);
        if !is_seen || !fits_in_time {
            // The same applies to all equal jobs behind it.
            self.classes.fails(class, self.passes);
            return false;
        }
        (cycle.offers.goes_around, cycle.offers.around_until) = (true, until);
        let verdict = self.start_in_mode(cycle, turns, place, class);
        (cycle.offers.goes_around, cycle.offers.around_until) = (false, None);
        verdict != Verdict::NoRoom
    }

    /// Starts a job: in balanced mode at its least (HPC-S-06), otherwise with as much as it can use (HPC-S-02).
    fn start_in_mode(&mut self, cycle: &mut Cycle, turns: &mut Turns, place: Place, class: ClassId) -> Verdict {
        let demand = match self.scheduling.mode {
            Some(SchedulingMode::Balanced) => self.least_demand(turns, class),
            _ => self.classes.get(class).demand.clone(),
        };
        let Some(entry) = self.queue.get(place) else { return Verdict::Held };
        let id = entry.id;
        let tasks: Vec<JobId> = match &entry.tasks {
            None => vec![id],
            Some(tasks) => {
                let most = tasks.headroom as usize;
                tasks.indices.iter().take(most).map(|index| JobId::task(id.number, index)).collect()
            }
        };
        for task in tasks {
            if cycle.is_full(self.policy.max_starts)
                || self.is_limited(cycle, place)
                || self.is_over_quota_anyway(cycle, place)
            {
                return Verdict::Held;
            }
            if self.queue.get(place).is_none_or(|entry| self.is_shut(cycle, entry)) {
                return Verdict::Held;
            }
            let ways = self.shut_over_quota(place, self.open_ways(place), cycle.now);
            let placed =
                self.viewed(demand.sharing.as_ref(), |engine| engine.place_as(cycle, class, &demand, ways.as_deref()));
            let Some(placement) = placed else {
                // Limits may leave an equal job other ways.
                if !is_one_shut(ways.as_deref()) {
                    self.classes.fails(class, self.passes);
                }
                return Verdict::NoRoom;
            };
            let uses = Usage::of(&placement, &demand);
            if self.is_limited_to_less(cycle, place, &uses) || self.is_over_quota(cycle, place, &uses) {
                return Verdict::Held;
            }
            self.take_start(cycle, place, task, placement);
        }
        Verdict::Started
    }

    /// Where a job fits now, in the first of its ways that does (HPC-J-17).
    fn place_as(
        &self,
        cycle: &Cycle,
        class: ClassId,
        demand: &Demand,
        ways: Option<&[Vec<bool>]>,
    ) -> Option<Placement> {
        if !cycle.index.may_fit(self.classes.get(class)) {
            return None;
        }
        Search { known: cycle.known(demand), ways, ..self.search(cycle.now) }.at(demand, cycle.now)
    }

    /// The least that the jobs of a class need.
    pub(super) fn least_demand(&self, turns: &mut Turns, class: ClassId) -> Arc<Demand> {
        let demand = &self.classes.get(class).demand;
        let least = turns.least.entry(class).or_insert_with(|| resize::least(demand).map(Arc::new));
        least.clone().unwrap_or_else(|| demand.clone())
    }

    /// The resources that the jobs of a class could use.
    pub(super) fn ground(&self, turns: &mut Turns, class: ClassId) -> Arc<Ground> {
        let of_class = || Arc::new(self.ground_of(&self.classes.get(class).demand));
        turns.grounds.entry(class).or_insert_with(of_class).clone()
    }

    /// The resources that a demand could use: the nodes of the kind and queue that it asks for, whether or not they
    /// are free, and its licences.
    pub(super) fn ground_of(&self, demand: &Demand) -> Ground {
        let mut ground = Ground::default();
        for component in &demand.components {
            let queue_nodes = self.queues.get(&component.queue).map_or(&[][..], |queue| &queue.nodes);
            let reserved = component.reservation.as_ref().and_then(|name| self.reservations.get(name));
            for (index, node) in self.machine.nodes().iter().enumerate() {
                let is_open = node.is_for(component.reservation.as_deref())
                    && (component.reservation.as_ref().is_none_or(|name| open_in(name).is_some())
                        || !node.is_real()
                        || reserved.is_some_and(|one| one.nodes.contains(&node.id)));
                let serves =
                    || component.alternatives.iter().any(|alternative| serves_kind(node, queue_nodes, alternative));
                if is_open && serves() {
                    ground.add_node(index);
                }
            }
            let licences = component.alternatives.iter().flat_map(|alternative| alternative.licences.keys());
            ground.licences.extend(licences.cloned());
        }
        ground
    }
}
