//! The jobs that have turns in a cycle, by queue or all together.

use super::{Cycle, Refusal};
use crate::{
    class::ClassId,
    engine::Engine,
    model::lead_queue,
    queue::{Brief, Place},
};
use muster_schemas::{
    policy::{OnRefusal, TurnRules, Turns, Visit},
    shares::{Standing, Waiting},
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// The jobs of a queue, or of all queues, that have not had their turns.
pub(super) struct Lane {
    /// In their order; those that had their turns are `None`.
    places: Vec<Option<Place>>,
    next: usize,
    /// The choice by shares, if they choose.
    waiting: Option<Waiting>,
}

impl Lane {
    /// Takes the job with the next turn. Those that are not wanted are dropped on the way.
    pub fn next(&mut self, standing: Option<&Standing>, mut is_wanted: impl FnMut(Place) -> bool) -> Option<Place> {
        let Self { places, next, waiting } = self;
        let mut is_open = |place: &Option<Place>| place.is_some_and(&mut is_wanted);
        let at = match (waiting, standing) {
            (Some(waiting), Some(standing)) => {
                waiting.next_of(standing, |at| places.get(at).is_some_and(&mut is_open))?
            }
            _ => {
                let at = *next + places.get(*next..)?.iter().position(is_open)?;
                *next = at + 1;
                at
            }
        };
        places.get_mut(at)?.take()
    }

    /// Takes those of the remaining jobs that a condition holds for, in the order of their turns.
    pub fn take_rest(&mut self, standing: Option<&Standing>, is_wanted: impl Fn(Place) -> bool) -> Vec<Place> {
        if self.waiting.is_some() && self.places().all(&is_wanted) {
            return std::iter::from_fn(|| self.next(standing, |_| true)).collect();
        }
        let rest = self.places.iter_mut().filter(|place| place.is_some_and(&is_wanted));
        rest.filter_map(Option::take).collect()
    }

    /// The remaining jobs, in their order.
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.places.iter().copied().flatten()
    }
}

/// What its class tells of a job that may have a turn in a cycle.
struct Admission {
    /// Why its queue has no turns.
    refusal: Option<Refusal>,
    lane: usize,
}

impl Engine {
    /// Whether jobs that do not fit, and were told so, can be left out: their refusal changes nothing for others, and what
    /// they were told is still true. It would change something if it used up the turn of a queue, or held up others.
    pub(super) fn may_leave_out(&self, cycle: &Cycle, turns: &Turns, rules: &TurnRules) -> bool {
        let is_harmless = rules.on_refusal == OnRefusal::Nothing && rules.visit != Visit::QueuesInTurn;
        // Jobs with filters may have resources that are kept for them, and of jobs whose files are copied ahead all are listed.
        let is_plain = cycle.trace.is_none() && self.queue.gates.jobs == 0 && turns.staged_ahead == 0;
        is_harmless && is_plain && !self.has_starving(cycle, turns, rules)
    }

    fn has_starving(&self, cycle: &Cycle, turns: &Turns, rules: &TurnRules) -> bool {
        let Some(rule) = rules.starving else { return false };
        let is_starving = |place: &Place| {
            let Some(class) = self.queue.class_at(*place) else { return false };
            rule.is_starving(self.queue.arrival_at(*place), cycle.now)
                && !self.classes.is_hopeless(class)
                && !turns.windows.as_ref().is_some_and(|own| own.owns(lead_queue(&self.classes.get(class).demand)))
        };
        self.queue.blocks().into_iter().flat_map(|block| self.queue.sorted(block)).any(is_starving)
    }

    /// Whether the job at a place was found not to fit in this pass, and was told so. One that may yet start in more groups of
    /// nodes has its turn.
    pub(super) fn is_known_not_to_fit(&self, place: Place) -> bool {
        let has_failed = |brief: Brief| {
            let class = brief.class;
            let has_failed = self.classes.has_failed(class, self.passes) && self.classes.get(class).patience.is_none();
            has_failed && (brief.is_told || !self.tells_reasons)
        };
        self.queue.brief(place).is_some_and(has_failed)
    }

    /// The jobs that have turns in this cycle, queue by queue in their order, or all together. The others are told why
    /// not. With `leaves_out`, those are not there that cannot fit and were told so.
    pub(super) fn jobs_with_turns(&self, cycle: &mut Cycle, turns: &Turns, leaves_out: bool) -> Vec<Vec<Place>> {
        let rules = turns.rules_at(cycle.now);
        let shut: BTreeMap<Arc<str>, Refusal> = self.shut_queues(cycle, turns);
        let numbers = self.queue_numbers(turns, rules);
        let is_pool = rules.visit == Visit::Pool;
        let mut lanes: Vec<Vec<Place>> = vec![Vec::new(); if is_pool { 1 } else { numbers.len() + 1 }];
        let admission = |class: ClassId| {
            let queue = lead_queue(&self.classes.get(class).demand);
            let is_stopped = || !self.queues_of_class_start(class);
            Admission {
                refusal: shut.get(queue).cloned().or_else(|| is_stopped().then_some(Refusal::QueueStopped)),
                lane: if is_pool { 0 } else { numbers.get(queue).copied().unwrap_or(numbers.len()) },
            }
        };
        // Entries are large, and there are many: nearly always the class tells enough.
        let mut fits: Vec<Option<bool>> = vec![None; if leaves_out { self.classes.most() } else { 0 }];
        let mut may_fit = |cycle: &Cycle, class: ClassId| {
            let known = fits.get_mut(class as usize);
            known.is_none_or(|known| *known.get_or_insert_with(|| cycle.index.may_fit(self.classes.get(class))))
        };
        let mut admissions: HashMap<ClassId, Admission> = HashMap::new();
        let asks_each = self.queue.gates.jobs > 0 || !cycle.left_out.is_empty();
        for block in self.queue.blocks() {
            for place in self.queue.sorted(block) {
                let Some(Brief { class, is_told }) = self.queue.brief(*place) else { continue };
                if (is_told || !self.tells_reasons) && !may_fit(cycle, class) {
                    continue;
                }
                let admission = admissions.entry(class).or_insert_with(|| admission(class));
                if asks_each && self.is_passed_over(cycle, *place) {
                    continue;
                }
                match &admission.refusal {
                    Some(refusal) => self.refuse(cycle, *place, refusal.clone()),
                    None => lanes[admission.lane].push(*place),
                }
            }
        }
        lanes.retain(|places| !places.is_empty());
        if rules.by_arrival {
            for places in &mut lanes {
                places.sort_by_key(|place| self.queue.get(*place).map(|entry| (entry.arrival, entry.id)));
            }
        }
        lanes
    }

    /// Whether a job has no turn in this cycle, whatever its queue does: the cycle leaves it out, or filters are asked.
    fn is_passed_over(&self, cycle: &Cycle, place: Place) -> bool {
        let Some(entry) = self.queue.get(place) else { return true };
        self.is_asked(place) || cycle.left_out.contains(&entry.id) || self.is_shut(cycle, entry)
    }

    /// The lanes of these jobs, and how their owners stand if shares choose the next job.
    pub(super) fn lanes(&mut self, lists: Vec<Vec<Place>>, rules: &TurnRules) -> (Option<Standing>, Vec<Lane>) {
        let lane =
            |places: Vec<Place>, waiting| Lane { places: places.into_iter().map(Some).collect(), next: 0, waiting };
        let Some(share) = rules.fair_share.as_ref().filter(|_| !rules.by_arrival) else {
            return (None, lists.into_iter().map(|places| lane(places, None)).collect());
        };
        let (standing, waiting) = self.sharers.standing(share.compare, &lists, &self.queue);
        let lanes = lists.into_iter().zip(waiting).map(|(places, waiting)| lane(places, Some(waiting)));
        (Some(standing), lanes.collect())
    }

    /// The position of each queue in the order of turns.
    fn queue_numbers(&self, turns: &Turns, rules: &TurnRules) -> HashMap<&str, usize> {
        let created: HashMap<&str, usize> =
            turns.queues.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let mut queues: Vec<(Reverse<i64>, usize, &str)> = Vec::with_capacity(self.queues.len());
        for (name, spec) in &self.queues {
            let priority = if rules.by_creation { 0 } else { spec.priority };
            queues.push((Reverse(priority), created.get(&**name).copied().unwrap_or(usize::MAX), name));
        }
        queues.sort_unstable();
        queues.into_iter().enumerate().map(|(at, (.., name))| (name, at)).collect()
    }

    /// The queues whose jobs have no turns in this cycle, and why.
    fn shut_queues(&self, cycle: &Cycle, turns: &Turns) -> BTreeMap<Arc<str>, Refusal> {
        let shut = |name: &str| {
            if turns.ignored_queues.iter().any(|ignored| ignored == name) {
                return Some(Refusal::QueueIgnored);
            }
            if self.queues.get(name).is_some_and(|queue| !queue.started) {
                return Some(Refusal::QueueStopped);
            }
            let windows = turns.windows.as_ref()?;
            let is_other_time = windows.owns(name) != windows.current(cycle.now).is_some();
            is_other_time.then(|| Refusal::OtherQueuesTime { until: windows.border(cycle.now) })
        };
        self.queues.keys().filter_map(|name| Some((name.clone(), shut(name)?))).collect()
    }
}
