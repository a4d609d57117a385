//! The jobs that have turns in a cycle, by queue or all together.

use super::{Cycle, Refusal};
use crate::{engine::Engine, model::lead_queue, queue::Place};
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
    /// Takes the job with the next turn.
    pub fn next(&mut self, standing: Option<&Standing>) -> Option<Place> {
        loop {
            let at = match (&mut self.waiting, standing) {
                (Some(waiting), Some(standing)) => waiting.next(standing)?,
                _ => {
                    self.next += 1;
                    self.next - 1
                }
            };
            if let Some(place) = self.places.get_mut(at)?.take() {
                return Some(place);
            }
        }
    }

    /// Takes those of the remaining jobs that a condition holds for, in the order of their turns.
    pub fn take_rest(&mut self, standing: Option<&Standing>, is_wanted: impl Fn(Place) -> bool) -> Vec<Place> {
        if self.waiting.is_some() && self.places().all(&is_wanted) {
            return std::iter::from_fn(|| self.next(standing)).collect();
        }
        let rest = self.places.iter_mut().filter(|place| place.is_some_and(&is_wanted));
        rest.filter_map(Option::take).collect()
    }

    /// The remaining jobs, in their order.
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.places.iter().copied().flatten()
    }
}

impl Engine {
    /// Whether jobs that do not fit, and were told so, can be left out: their refusal changes nothing for others, and what
    /// they were told is still true. It would change something if it used up the turn of a queue, or held up others.
    pub(super) fn may_leave_out(&self, cycle: &Cycle, turns: &Turns, rules: &TurnRules) -> bool {
        let is_harmless = rules.on_refusal == OnRefusal::Nothing && rules.visit != Visit::QueuesInTurn;
        // Jobs with filters may have resources that are kept for them.
        let is_plain = cycle.trace.is_none() && self.queue.gates.jobs == 0;
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

    /// The jobs that have turns in this cycle, queue by queue in their order, or all together. The others are told why
    /// not. With `leaves_out`, those are not there that cannot fit and were told so.
    pub(super) fn lanes(
        &self,
        cycle: &mut Cycle,
        turns: &Turns,
        standing: Option<&Standing>,
        leaves_out: bool,
    ) -> Vec<Lane> {
        let mut fits: Vec<Option<bool>> = vec![None; if leaves_out { self.classes.most() } else { 0 }];
        let rules = turns.rules_at(cycle.now);
        let shut: BTreeMap<Arc<str>, Refusal> = self.shut_queues(cycle, turns);
        let numbers = self.queue_numbers(turns, rules);
        let is_pool = rules.visit == Visit::Pool;
        let mut lanes: Vec<Vec<Place>> = vec![Vec::new(); if is_pool { 1 } else { numbers.len() + 1 }];
        for block in self.queue.blocks() {
            for place in self.queue.sorted(block) {
                if leaves_out && (!self.tells_reasons || self.queue.is_told(*place)) {
                    let Some(class) = self.queue.class_at(*place) else { continue };
                    let may_fit = || cycle.index.may_fit(self.classes.get(class));
                    if !*fits[class as usize].get_or_insert_with(may_fit) {
                        continue;
                    }
                }
                let Some(entry) = self.queue.get(*place) else { continue };
                if self.is_asked(*place) || cycle.left_out.contains(&entry.id) || self.is_shut(cycle, entry) {
                    continue;
                }
                let queue = lead_queue(&self.classes.get(entry.class).demand);
                let refusal = shut.get(queue);
                let is_stopped = || !self.queues_start(*place);
                if let Some(refusal) = refusal.cloned().or_else(|| is_stopped().then_some(Refusal::QueueStopped)) {
                    self.refuse(cycle, *place, refusal);
                    continue;
                }
                let lane = if is_pool { 0 } else { numbers.get(queue).copied().unwrap_or(numbers.len()) };
                lanes[lane].push(*place);
            }
        }
        let lanes = lanes.into_iter().filter(|places| !places.is_empty());
        lanes.map(|places| self.lane(places, rules, standing)).collect()
    }

    fn lane(&self, mut places: Vec<Place>, rules: &TurnRules, standing: Option<&Standing>) -> Lane {
        if rules.by_arrival {
            places.sort_by_key(|place| self.queue.get(*place).map(|entry| (entry.arrival, entry.id)));
        }
        let owner = |place: &Place| self.queue.get(*place).map_or("", |entry| &*entry.holder.user);
        let waiting = standing.map(|standing| Waiting::new(standing, places.iter().map(owner)));
        Lane { places: places.into_iter().map(Some).collect(), next: 0, waiting }
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
