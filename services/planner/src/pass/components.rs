//! Jobs with several components under a policy that starts them in backfill passes only (SL-P-01 to SL-P-06, SL-P-13).
//!
//! There is such a pass in each interval while such a job waits. The mode alternates with its number,
//! which the log has, so a repeated pass gives the same result. Resources found for a component hold its place in that
//! pass only: other jobs can have all others.

use super::{
    Cycle, Verdict,
    cycle::{Components, FirstStart, Rule},
};
use crate::{
    engine::Engine,
    limits::queues,
    machine::{Holding, Window},
    model::{ComponentDemand, Demand},
    queue::Place,
    search::{Known, Search, longest},
};
use muster_schemas::{
    JobId, Timestamp,
    job::WaitReason,
    plan::{BackfillPass, ComponentMode, PlannedComponent, PlannedComponents},
    policy::{BackfillMode, ComponentStart},
    resources::{Alternative, Placement},
};
use std::sync::Arc;

/// The outcome for a job with several components in a cycle with a rule for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ruled {
    /// It was not tried.
    Left,
    Started,
    /// It waits, and nothing is kept for it.
    Tried,
    /// It waits, and has a place in this cycle or lets nobody go around it.
    Placed,
}

/// The resources found for a component.
struct Part {
    demand: Arc<Demand>,
    placement: Arc<Placement>,
    /// The same, but with exclusive nodes.
    alone: Arc<Placement>,
    start: Timestamp,
}

impl Part {
    /// Whether others can have something of its nodes.
    fn leaves_room(&self) -> bool {
        self.placement.shares().any(|share| !share.exclusive)
    }
}

impl Engine {
    /// The state of jobs with several components before a cycle. It is a pass of backfill if one is due.
    pub(super) fn open_components(&self, now: Timestamp) -> Components {
        let is_ruled = self.components.start == ComponentStart::BackfillPass
            && self.jobs_with_components > 0
            && self.scheduling.mode.is_none();
        let rule = if !is_ruled {
            Rule::Any
        } else if self.has_backfill() && self.is_pass_due(now) {
            Rule::Backfill(ComponentMode::of_pass(self.backfill_passes.number + 1))
        } else {
            Rule::Between
        };
        Components { rule, ..Components::default() }
    }

    /// Records that the cycle is a pass of backfill, if it is one, and when the next one is due.
    pub(super) fn note_backfill_pass(&self, cycle: &mut Cycle) {
        match cycle.components.rule {
            Rule::Any => {}
            Rule::Between if self.has_backfill() => cycle.wake_at(self.backfill_due()),
            Rule::Between => {}
            Rule::Backfill(mode) => {
                let number = self.backfill_passes.number + 1;
                cycle.plan.backfill_pass = Some(BackfillPass { number, at: cycle.now, mode, jobs: Vec::new() });
                cycle.wake_at(self.after_interval(cycle.now));
            }
        }
    }

    /// Whether any queue has backfill at all.
    pub(crate) fn has_backfill(&self) -> bool {
        self.queue.blocks().into_iter().any(|block| self.queue.backfill(block).mode != BackfillMode::None)
    }

    /// A last pass in the future does not count: the clock of that planner was ahead.
    fn is_pass_due(&self, now: Timestamp) -> bool {
        now >= self.backfill_due() || now < self.backfill_passes.at
    }

    fn backfill_due(&self) -> Timestamp {
        match self.backfill_passes.number {
            0 => Timestamp(i64::MIN),
            _ => self.after_interval(self.backfill_passes.at),
        }
    }

    fn after_interval(&self, at: Timestamp) -> Timestamp {
        at.plus_seconds(self.components.interval_seconds.into())
    }

    /// Whether this cycle has a special rule for the job at a place.
    pub(super) fn is_ruled(&self, cycle: &Cycle, place: Place) -> bool {
        let components = |class| self.classes.get(class).demand.components.len();
        cycle.components.rule != Rule::Any && self.queue.class_at(place).is_some_and(|class| components(class) > 1)
    }

    /// Looks at jobs with several components that were not reached before the candidates ended: in a pass of backfill
    /// only at as many as there are tries left.
    pub(super) fn rule_rest(&mut self, cycle: &mut Cycle, rest: &[Place], mode: BackfillMode, mut tries_left: u32) {
        if cycle.components.rule == Rule::Any {
            return;
        }
        for place in rest {
            if cycle.plan.is_cut_short || tries_left == 0 && cycle.components.is_pass() || !cycle.may_look(*place) {
                return;
            }
            if self.is_ruled(cycle, *place) && self.rule(cycle, *place, mode) != Ruled::Left {
                tries_left -= 1;
            }
        }
    }

    /// Whether only resources and the jobs ahead of it keep a job from starting.
    fn is_open(&self, cycle: &Cycle, place: Place) -> bool {
        let Some(entry) = self.queue.get(place) else { return false };
        !cycle.left_out.contains(&entry.id)
            && !self.is_shut(cycle, entry)
            && self.queues_start(place)
            && !self.is_hopeless(place)
    }

    /// Treats a job with several components by the rule of the cycle, once.
    pub(super) fn rule(&mut self, cycle: &mut Cycle, place: Place, mode: BackfillMode) -> Ruled {
        if !cycle.components.seen.insert(place) || !self.is_open(cycle, place) || self.is_limited(cycle, place) {
            return Ruled::Left;
        }
        if mode == BackfillMode::None {
            // It waits for ever, and holds up nobody.
            let reason = "a pass of backfill, which the policy does not have";
            self.tell(cycle, place, WaitReason::Resources(reason.into()));
            return Ruled::Left;
        }
        let is_behind = self.blocker(cycle, place).is_some();
        let was_looked_at =
            self.queue.get(place).is_some_and(|entry| self.backfill_passes.jobs.contains_key(&entry.id));
        match cycle.components.rule {
            Rule::Any => {}
            // The findings of the last pass stand.
            Rule::Between if was_looked_at => self.hold_up_queues(cycle, place),
            Rule::Between | Rule::Backfill(_) if is_behind => self.pass_block_on(cycle, place),
            Rule::Between => {
                self.hold_up_queues(cycle, place);
                let reason = "nodes for all components in a pass of backfill";
                self.tell(cycle, place, WaitReason::Resources(reason.into()));
            }
            Rule::Backfill(mode) => return self.look_at(cycle, place, mode),
        }
        Ruled::Left
    }

    /// Nobody behind the job starts in its queues (SL-P-13).
    fn hold_up_queues(&self, cycle: &mut Cycle, place: Place) {
        let Some(entry) = self.queue.get(place) else { return };
        for queue in queues(&self.classes.get(entry.class).demand) {
            cycle.blocked.entry(queue.clone()).or_insert(entry.id);
        }
    }

    /// Starts the job if the mode lets it and all components fit now; otherwise finds and reports their starts.
    fn look_at(&mut self, cycle: &mut Cycle, place: Place, mode: ComponentMode) -> Ruled {
        let Some(id) = self.queue.get(place).map(|entry| entry.id) else { return Ruled::Left };
        let recorded = match mode {
            ComponentMode::Singly => None,
            ComponentMode::Together => self.recorded(id),
        };
        let not_before = recorded.map_or(cycle.now, |recorded| recorded.max(cycle.now));
        if not_before <= cycle.now {
            match self.start(cycle, place) {
                Verdict::NoRoom => {}
                Verdict::Started => return Ruled::Started,
                Verdict::Held => return Ruled::Left,
            }
        }
        let components = self.find_components(cycle, place, mode, not_before);
        let mut planned = PlannedComponents { job: id, reason: WaitReason::NotPlannedYet, components };
        let mut has_place = planned.components.iter().any(|component| component.start.is_some());
        match planned.latest_start() {
            Some(start) => self.tell(cycle, place, WaitReason::Reserved { start }),
            // Nobody knows when it can start, so no later job may have its nodes.
            None if self.components.window_seconds.is_none() => has_place |= self.tell_no_start(cycle, place),
            None => self.tell_shortage(cycle, place),
        }
        if let Some(told) = cycle.plan.reasons.last().filter(|told| told.job == id) {
            planned.reason = told.reason.clone();
        }
        cycle.plan.backfill_pass.get_or_insert_default().jobs.push(planned);
        if has_place { Ruled::Placed } else { Ruled::Tried }
    }

    /// The latest start that the last pass recorded for components of a job. That pass had mode 1: this is not used for
    /// passes of mode 2 (SL-P-03).
    fn recorded(&self, job: JobId) -> Option<Timestamp> {
        self.backfill_passes.jobs.get(&job)?.iter().filter_map(|component| component.start).max()
    }

    /// When and where the components of a job can start; takes the resources for this cycle. In mode 1 no component is
    /// tried before the latest start of those before it.
    fn find_components(
        &mut self,
        cycle: &mut Cycle,
        place: Place,
        mode: ComponentMode,
        not_before: Timestamp,
    ) -> Vec<PlannedComponent> {
        let Some(class) = self.queue.class_at(place) else { return Vec::new() };
        let demand = self.classes.get(class).demand.clone();
        let walltime_seconds = longest(&demand);
        let bound = Window::of(cycle.now, self.components.window_seconds.map(u64::from)).until;
        let mut from = not_before;
        let mut parts: Vec<Part> = Vec::new();
        let mut planned = Vec::new();
        for component in &demand.components {
            let found = self.find_beside(cycle, component, walltime_seconds, (from, bound), &parts);
            let Some(part) = found else {
                planned.push(PlannedComponent::default());
                continue;
            };
            if mode == ComponentMode::Singly {
                from = from.max(part.start);
            }
            let nodes = part.placement.shares().map(|share| share.node).collect();
            planned.push(PlannedComponent { start: Some(part.start), nodes });
            self.machine.take(&part.demand, &part.alone, Holding::Promise { start: part.start });
            self.update_index(cycle, &part);
            parts.push(part);
        }
        self.set_shared(cycle, &parts, true);
        for Part { demand, placement, start, .. } in parts {
            cycle.components.taken.push((demand, placement, Holding::Promise { start }));
        }
        planned
    }

    /// Where a component fits first: on none of the nodes of those before it, unless they may share them and it fits
    /// earlier there.
    fn find_beside(
        &mut self,
        cycle: &mut Cycle,
        component: &ComponentDemand,
        walltime_seconds: Option<u64>,
        (from, bound): (Timestamp, Timestamp),
        parts: &[Part],
    ) -> Option<Part> {
        let apart = self.find_component(cycle, component, walltime_seconds, (from, bound), parts.is_empty());
        let bound = apart.as_ref().map_or(bound, |part| part.start);
        let may_share = self.components.share_nodes && parts.iter().any(Part::leaves_room);
        if !may_share || bound <= from {
            return apart;
        }
        self.set_shared(cycle, parts, true);
        let shared = self.find_component(cycle, component, walltime_seconds, (from, bound), false);
        self.set_shared(cycle, parts, false);
        shared.or(apart)
    }

    /// Sets whether other components can use what those found so far leave free on their nodes.
    fn set_shared(&mut self, cycle: &mut Cycle, parts: &[Part], are_shared: bool) {
        for part in parts {
            let holding = Holding::Promise { start: part.start };
            let (held, wanted) =
                if are_shared { (&part.alone, &part.placement) } else { (&part.placement, &part.alone) };
            self.machine.lend(&part.demand, held, holding);
            self.machine.take(&part.demand, wanted, holding);
            self.update_index(cycle, part);
        }
    }

    /// Where a component fits first within these times, for as long as the job may last. The first component of a job
    /// has no other one in its way.
    fn find_component(
        &mut self,
        cycle: &mut Cycle,
        component: &ComponentDemand,
        walltime_seconds: Option<u64>,
        (from, bound): (Timestamp, Timestamp),
        is_first: bool,
    ) -> Option<Part> {
        let alternatives = component.alternatives.iter();
        let alternatives = alternatives.map(|alternative| Alternative { walltime_seconds, ..alternative.clone() });
        let component = ComponentDemand { alternatives: alternatives.collect(), ..component.clone() };
        let demand = Arc::new(Demand { components: vec![component], sharing: None, fixed: None, guard_seconds: 0 });
        let look_from = cycle.components.look_from(&demand, from)?;
        self.machine.refresh_gaps(demand.components[0].reservation.as_ref(), cycle.now);
        let search = Search { known: Some((cycle.now, Known::Cores(cycle.index.cores()))), ..self.search(cycle.now) };
        let found = search.earliest_start(&demand, look_from, bound);
        // With a choice it gets the way that ends first, which need not be the one that starts first.
        if is_first && demand.components[0].alternatives.len() == 1 {
            let start = found.as_ref().map(|found| found.start);
            cycle.components.first_starts.insert(demand.clone(), FirstStart { from, start });
        }
        let found = found?;
        let mut alone = found.placement.clone();
        for share in alone.components.iter_mut().flat_map(|placed| &mut placed.shares) {
            share.exclusive = true;
        }
        let (placement, alone) = (Arc::new(found.placement), Arc::new(alone));
        Some(Part { demand, placement, alone, start: found.start })
    }

    /// Resources that a part holds from now on are not free now.
    fn update_index(&self, cycle: &mut Cycle, part: &Part) {
        if part.start <= cycle.now {
            cycle.index.update(&self.machine, part.placement.shares().map(|share| share.node), cycle.now);
        }
    }
}
