//! One planning cycle: order, gate, place, and promises to waiting jobs.

mod balance;
mod components;
mod cycle;
mod fixed;
mod greedy;
mod growth;
mod inside;
mod left_out;
mod limit;
mod modes;
mod now_index;
mod offers;
mod patience;
mod preempt;
mod promises;
mod quotas;
mod real;
mod reasons;
mod renewal;
mod through;
mod trace;
pub(crate) mod turn;
mod users_most;
mod visits;
mod way;
mod yielding;

pub use cycle::Plan;
pub use limit::PassLimit;
pub(crate) use trace::is_lack;
pub use trace::{Look, Refusal};
pub(crate) use visits::crossed;

use crate::{
    class::{Class, ClassId},
    engine::Engine,
    limits::{Usage, Uses, Ways, is_one_shut, queues},
    machine::{Holding, expected_end},
    model::{ActiveRun, Demand},
    queue::Place,
    search::Search,
};
use cycle::{Counted, Cycle, Through, Verdict};
use inside::Blocked;
use muster_schemas::{JobId, Timestamp, command::Start, job::WaitReason, policy::BackfillMode, resources::Placement};
use now_index::NowIndex;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// How soon a job that waits for a limit is looked at again where old use counts ever less.
const BUDGET_SECONDS: i64 = 60;

impl Engine {
    /// Plans. Jobs in `left_out` neither start nor get a promise in this cycle, and hold up nobody.
    ///
    /// The same engine and time give the same plan. Starts are only proposed: call [`Engine::dequeue`] and
    /// [`Engine::begin`] once they have happened. Promises are kept at once; call [`Engine::set_slot`] if they were not
    /// accepted.
    pub fn pass(&mut self, now: Timestamp, left_out: &BTreeSet<JobId>) -> Plan {
        self.pass_within(now, left_out, PassLimit::Endless)
    }

    /// The same with a limit on the time of the pass. Jobs that it does not come to get nothing new, and are told so; the
    /// rest of the plan stands (OAR-G-09).
    pub fn pass_within<'l>(&mut self, now: Timestamp, left_out: &'l BTreeSet<JobId>, limit: PassLimit<'l>) -> Plan {
        if !left_out.is_empty() {
            // Jobs made way for starts that were refused.
            self.machine.frees_anything();
        }
        let mut cycle = self.cycle(now, left_out, limit, None);
        self.resize_behind(&mut cycle);
        let plan = self.finish(cycle);
        self.real_plan(plan)
    }

    /// The same, with what became of each job that a cycle by turns has looked at, in the order of its turn, and of those
    /// that have no turn. Under any other policy nothing is told.
    pub fn pass_traced(&mut self, now: Timestamp) -> (Plan, Vec<Look>) {
        let nobody = BTreeSet::new();
        let mut cycle = self.cycle(now, &nobody, PassLimit::Endless, Some(Vec::new()));
        self.resize_behind(&mut cycle);
        let trace = cycle.trace.take().unwrap_or_default();
        let plan = self.finish(cycle);
        (self.real_plan(plan), trace)
    }

    /// The stages of a pass that waiting jobs need. Holdings taken by the cycle are not given back yet.
    fn cycle<'c>(
        &mut self,
        now: Timestamp,
        left_out: &'c BTreeSet<JobId>,
        limit: PassLimit<'c>,
        trace: Option<Vec<Look>>,
    ) -> Cycle<'c> {
        self.passes += 1;
        self.passed_at = Some(now);
        self.extend_overdue(now);
        let freed_so_far = self.machine.freed_so_far();
        self.set_hours(now);
        self.count_elapsed(now);
        let classes = &self.classes;
        self.queue.sort(now, &self.queues, |entry| {
            let class = classes.get(entry.class);
            (class.size, crate::model::lead_queue(&class.demand).into())
        });
        let mut cycle = Cycle {
            now,
            left_out,
            plan: Plan::default(),
            freed_so_far,
            index: NowIndex::of(&self.machine, now),
            failed_classes: 0,
            taken: Vec::new(),
            given_up: Vec::new(),
            redeemed_arrays: Vec::new(),
            counted: Vec::new(),
            started_of_array: BTreeMap::new(),
            blocked: BTreeMap::new(),
            hints: HashMap::new(),
            sweeps: HashMap::new(),
            old_slots: BTreeMap::new(),
            wake: None,
            offers: self.open_offers(),
            swapped: Vec::new(),
            cuts: BTreeMap::new(),
            through: Through::default(),
            components: self.open_components(now),
            trace,
            beyond_users_most: self.beyond_users_most(),
            quota_hints: HashMap::new(),
            quota_places: Vec::new(),
            patient: BTreeMap::new(),
            limit,
            looked: Vec::new(),
        };
        self.judge_classes();
        self.clear_ways(&mut cycle);
        self.drop_broken_promises(&mut cycle);
        self.keep_fixed(&mut cycle);
        let policy = self.policy.clone();
        if let Some(why) = &policy.starts_nothing {
            self.start_nothing(&mut cycle, why);
            return cycle;
        }
        if let Some(mode) = self.scheduling.mode {
            self.by_mode(&mut cycle, mode);
            return cycle;
        }
        if let Some(turns) = policy.turns.as_deref() {
            self.ask_on_kept(&mut cycle);
            self.by_turns(&mut cycle, turns);
            return cycle;
        }
        self.note_backfill_pass(&mut cycle);
        self.ask_on_kept(&mut cycle);
        let mut blocked_inside = Blocked::new();
        for block in self.queue.blocks() {
            let sorted = self.queue.take_sorted(block);
            let backfill = self.queue.backfill(block);
            for (domain, places) in self.by_domain(&sorted) {
                let others = self.without_fixed(&places);
                let places: &[Place] = others.as_deref().unwrap_or(&places);
                let outside = self.enter(&mut cycle, &mut blocked_inside, domain.as_ref());
                match backfill.mode {
                    BackfillMode::None | BackfillMode::Easy => self.greedy(&mut cycle, places, backfill),
                    BackfillMode::Conservative => self.keep_promises(&mut cycle, places, backfill),
                }
                self.leave(&mut cycle, &mut blocked_inside, domain, outside);
            }
            self.queue.restore(block, sorted);
        }
        cycle
    }

    /// Under a policy that starts nothing, every job waits for another policy.
    fn start_nothing(&self, cycle: &mut Cycle, why: &str) {
        if !self.tells_reasons {
            return;
        }
        let reason = WaitReason::Limit(format!("the policy in force starts nothing: {why}"));
        for entry in self.queue.entries().filter(|entry| entry.known_reason.as_deref() != Some(&reason)) {
            cycle.tell(entry.id, reason.clone());
        }
    }

    fn finish(&mut self, mut cycle: Cycle) -> Plan {
        self.cuts = std::mem::take(&mut cycle.cuts);
        self.tell_the_patient(&mut cycle);
        self.tell_the_hopeless(&mut cycle);
        self.tell_who_is_left_out(&mut cycle);
        self.forget_promises_for_now(&mut cycle);
        if cycle.plan.is_cut_short {
            // The pass of backfill is incomplete and continues in the next cycle. Until then the findings of the one
            // before it stand.
            cycle.plan.backfill_pass = None;
        }
        // Every promise was checked against what was freed before this cycle, or there are none to check.
        let has_checked_all = self.capacity_freed && cycle.plan.cut_after.is_none();
        if has_checked_all || self.machine.promises() == 0 {
            self.machine.forget_freed_before(cycle.freed_so_far);
        }
        for (demand, placement, holding) in cycle.taken.iter().chain(&cycle.components.taken) {
            self.machine.lend(demand, placement, *holding);
        }
        for (demand, placement, holding) in cycle.given_up.drain(..) {
            self.machine.take(&demand, &placement, holding);
        }
        if self.machine.promises() > 0 {
            // Jobs of other queues made way for promises of this cycle only.
            let promised = cycle.taken.iter().filter(|(.., holding)| matches!(holding, Holding::Promise { .. }));
            promised.for_each(|(demand, placement, holding)| self.machine.frees(demand, placement, *holding));
        }
        for Counted { holder, demand, uses, attributes } in cycle.counted.drain(..) {
            self.limits.end(&holder, &demand, &uses, attributes.as_deref());
        }
        cycle.plan.starts.iter().for_each(|start| self.forget_start(start.job));
        // Nobody makes way for a job that has found room elsewhere since.
        let started: BTreeSet<JobId> = cycle.plan.starts.iter().map(|start| start.job).collect();
        cycle.plan.preemptions.retain(|one| !started.contains(&one.for_job));
        for run in cycle.swapped.drain(..).rev() {
            self.lend_run(run.active().job);
            self.hold_run(run);
        }
        // The task that starts used the array's promise; the next one has none yet.
        for place in std::mem::take(&mut cycle.redeemed_arrays) {
            self.change_slot(&mut cycle, place, None);
        }
        for (id, (place, old)) in std::mem::take(&mut cycle.old_slots) {
            let slot = self.queue.get(place).and_then(|entry| entry.slot.clone());
            if slot != old {
                cycle.plan.slots.push((id, slot));
            }
        }
        let bound = self.bounds.iter().map(|(at, _)| *at).find(|at| *at > cycle.now && *at < Timestamp::MAX);
        let ask = self.queue.gates.next_ask(cycle.now).filter(|_| !self.assumes_passes);
        cycle.plan.next_wake = cycle.wake.into_iter().chain(bound).chain(ask).min();
        cycle.plan
    }

    /// Starts a job if it fits now; for an array, as many tasks as its limit and the room allow.
    fn start(&mut self, cycle: &mut Cycle, place: Place) -> Verdict {
        let Some(entry) = self.queue.get(place) else { return Verdict::Held };
        let id = entry.id;
        let Some(tasks) = entry.tasks.clone() else { return self.start_one(cycle, place, id) };
        for index in tasks.indices.iter() {
            if cycle.started_of_array.get(&id.number).copied().unwrap_or(0) >= tasks.headroom {
                return Verdict::Held;
            }
            match self.start_one(cycle, place, JobId::task(id.number, index)) {
                Verdict::Started => {}
                other => return other,
            }
        }
        Verdict::Started
    }

    fn start_one(&mut self, cycle: &mut Cycle, place: Place, id: JobId) -> Verdict {
        if cycle.is_full(self.policy.max_starts) {
            return Verdict::Held;
        }
        if let Some(kept) = self.kept(place) {
            // It may have been offered before its turn.
            if cycle.swapped.iter().any(|run| run.active().job == id) {
                return Verdict::Held;
            }
            return self.start_on_kept(cycle, place, &kept);
        }
        if self.is_limited(cycle, place) || self.is_over_quota_anyway(cycle, place) {
            return Verdict::Held;
        }
        match self.place_now(cycle, place) {
            // A job that takes what it can get, or whole nodes, may take more than its least.
            Some(placement) if self.is_limited_to_less(cycle, place, &self.usage_at(place, &placement)) => {
                Verdict::Held
            }
            Some(placement) if self.is_over_quota(cycle, place, &self.usage_at(place, &placement)) => Verdict::Held,
            Some(placement) => {
                self.take_start(cycle, place, id, placement);
                Verdict::Started
            }
            None => Verdict::NoRoom,
        }
    }

    /// Whether a limit holds a job, whatever it gets; reports that.
    fn is_limited(&self, cycle: &mut Cycle, place: Place) -> bool {
        let Some(entry) = self.queue.get(place) else { return true };
        let class = self.classes.get(entry.class);
        if self.is_limited_to_less(cycle, place, &class.least) {
            return true;
        }
        let shut = self.open_ways(place).and_then(|open| class.shut_way(&open));
        shut.is_some_and(|(number, way)| self.is_limited_to_less(cycle, place, &in_way(class, number, way)))
    }

    /// The ways to serve a job that no limit keeps from starting, if it can be served in several.
    fn open_ways(&self, place: Place) -> Option<Ways> {
        let entry = self.queue.get(place)?;
        let class = self.classes.get(entry.class);
        let is_open = |number, way| {
            let more = in_way(class, number, way);
            self.limits.reached(&entry.holder, &class.demand, &more, &self.queues).is_none()
        };
        let of_component = |number: usize| (0..class.ways[number].len()).map(|way| is_open(number, way)).collect();
        class.has_choice().then(|| (0..class.ways.len()).map(of_component).collect())
    }

    /// What the components of the job at a place use with a placement.
    fn usage_at(&self, place: Place, placement: &Placement) -> Uses {
        let class = self.queue.class_at(place).map(|class| self.classes.get(class));
        class.map_or_else(Vec::new, |class| Usage::of(placement, &class.demand))
    }

    /// Whether a limit keeps a job from using this much; reports that.
    fn is_limited_to_less(&self, cycle: &mut Cycle, place: Place, more: &[Usage]) -> bool {
        let Some(entry) = self.queue.get(place) else { return true };
        let demand = &self.classes.get(entry.class).demand;
        let Some(limit) = self.limits.reached(&entry.holder, demand, more, &self.queues) else { return false };
        if self.limits.forgets() {
            cycle.wake_at(cycle.now.plus_seconds(BUDGET_SECONDS));
        }
        if self.tells_reasons {
            cycle.tell(entry.id, WaitReason::Limit(limit));
        }
        true
    }

    /// Where a job fits if it starts now.
    fn place_now(&mut self, cycle: &mut Cycle, place: Place) -> Option<Placement> {
        self.place_as_asked(cycle, place).or_else(|| self.place_in_more_groups(cycle, place))
    }

    /// The same as it is asked for. After a job that does not fit, equal jobs are not searched for again.
    fn place_as_asked(&mut self, cycle: &mut Cycle, place: Place) -> Option<Placement> {
        let class_id = self.queue.class_at(place)?;
        if self.classes.has_failed(class_id, self.passes) {
            return None;
        }
        let class = self.classes.get(class_id);
        let has_choice = class.has_choice();
        let ways = if cycle.index.may_fit(class) { self.open_ways(place) } else { None };
        let sharing = class.demand.sharing.clone();
        let ways = self.shut_over_quota(place, ways, cycle.now);
        let found = self.viewed(sharing.as_ref(), |engine| engine.place_class_now(cycle, class_id, ways.as_deref()));
        // A job with a choice of ways may start after all once others have taken the better way, and limits may leave
        // an equal job other ways.
        if found.is_none() && !has_choice && !is_one_shut(ways.as_deref()) {
            self.classes.fails(class_id, self.passes);
            cycle.failed_classes += 1;
        }
        found
    }

    /// Where a job of a class fits if it starts now; a job with a choice of ways only if it then ends first.
    fn place_class_now(&self, cycle: &Cycle, class_id: ClassId, ways: Option<&[Vec<bool>]>) -> Option<Placement> {
        let class = self.classes.get(class_id);
        if !cycle.index.may_fit(class) {
            return None;
        }
        let search = Search { known: cycle.known(&class.demand), ways, ..self.search(cycle.now) };
        if class.is_moldable() {
            let earliest = search.earliest(class, cycle.now, Timestamp::MAX);
            return earliest.filter(|found| found.start == cycle.now).map(|found| found.placement);
        }
        search.at(&class.demand, cycle.now)
    }

    fn take_start(&mut self, cycle: &mut Cycle, place: Place, id: JobId, placement: Placement) {
        let Some(class) = self.queue.class_at(place) else { return };
        let demand = self.classes.get(class).demand.clone();
        self.take_start_as(cycle, place, id, demand, placement);
    }

    /// The same for a job that starts with another demand than it waits with.
    fn take_start_as(&mut self, cycle: &mut Cycle, place: Place, id: JobId, demand: Arc<Demand>, placement: Placement) {
        self.note_offer(cycle, place, id, &placement);
        let Some(entry) = self.queue.get(place) else { return };
        let (holder, attributes) = (entry.holder.clone(), entry.attributes.clone());
        let until = expected_end(&demand, &placement, cycle.now);
        let usage = Usage::of(&placement, &demand);
        let placement = Arc::new(placement);
        let holding = Holding::Run { until };
        self.machine.take(&demand, &placement, holding);
        let (job, run_placement) = (id, placement.clone());
        let run = ActiveRun {
            job,
            demand: demand.clone(),
            holder: holder.clone(),
            placement: run_placement,
            expected_end: until,
            attributes: attributes.clone(),
        };
        self.note_start(run, usage.clone());
        cycle.index.update(&self.machine, placement.shares().map(|share| share.node), cycle.now);
        self.limits.begin(&holder, &demand, &usage, attributes.as_deref());
        if id.index.is_some() {
            *cycle.started_of_array.entry(id.number).or_default() += 1;
        }
        cycle.plan.starts.push(Start { job: id, placement: Placement::clone(&placement) });
        cycle.counted.push(Counted { holder, demand: demand.clone(), uses: usage, attributes });
        cycle.taken.push((demand, placement, holding));
    }

    /// From here on no job may have nodes of this job's queues, which it could wait for.
    fn block(&self, cycle: &mut Cycle, place: Place) {
        let Some(entry) = self.queue.get(place) else { return };
        let demand = &self.classes.get(entry.class).demand;
        let own: Vec<_> = queues(demand).filter_map(|name| self.queues.get(name)).collect();
        for (name, queue) in &self.queues {
            if own.iter().any(|own| own.shares_nodes(queue)) {
                cycle.blocked.entry(name.clone()).or_insert(entry.id);
            }
        }
        // A queue without a description is served by all nodes.
        for name in queues(demand) {
            cycle.blocked.entry(name.clone()).or_insert(entry.id);
        }
    }

    /// The job that holds up the queues of this one.
    fn blocker(&self, cycle: &Cycle, place: Place) -> Option<JobId> {
        if cycle.blocked.is_empty() {
            return None;
        }
        let demand = &self.classes.get(self.queue.get(place)?.class).demand;
        queues(demand).find_map(|name| cycle.blocked.get(name)).copied()
    }
}

/// The least that a job takes if one component is served in this way.
fn in_way(class: &Class, number: usize, way: usize) -> Uses {
    let mut uses = class.least.clone();
    uses[number] = class.ways[number][way];
    uses
}
