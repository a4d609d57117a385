//! Limits as planning by turns tests them: those on running jobs before anything else, and those on what jobs ask for by
//! name after a place was found.

use super::{Counter, Limits, Part, Usage, describe, name};
use crate::model::{Demand, Holder};
use muster_schemas::{
    cluster::QueueSpec,
    policy::{Limit, LimitPer},
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// The numbers of a job by name.
pub(crate) type Attributes<'a> = Option<&'a BTreeMap<String, i64>>;

/// The limit that refuses a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Whose jobs it counts together.
    pub per: LimitPer,
    /// Whether it counts the jobs of one queue.
    pub in_queue: bool,
    /// The attribute; `None` for running jobs.
    pub attribute: Option<String>,
    /// The limit, for people.
    pub text: String,
}

/// What running jobs have asked for, by the limits that count it.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    /// The limits that count attributes.
    rules: Vec<usize>,
    /// By limit, its subject and the attribute.
    sums: HashMap<(usize, Arc<str>, String), i128>,
    /// The limits that count the jobs of one queue, by its name, and all others.
    of_queues: HashMap<String, Vec<usize>>,
    others: Vec<usize>,
}

impl Asked {
    pub fn new(rules: &[Limit]) -> Self {
        let mut asked = Self::default();
        for (number, rule) in rules.iter().enumerate() {
            if !rule.max_attributes.is_empty() {
                asked.rules.push(number);
            }
            match queue_of(rule) {
                Some(queue) => asked.of_queues.entry(queue.to_owned()).or_default().push(number),
                None => asked.others.push(number),
            }
        }
        asked
    }

    /// A job begins (`1`) or ceases (`-1`) to run. A job counts once, in the queue of its first component.
    pub fn count(
        &mut self,
        rules: &[Limit],
        holder: &Holder,
        demand: &Demand,
        attributes: Attributes<'_>,
        times: i128,
    ) {
        let (Some(attributes), false) = (attributes, self.rules.is_empty()) else { return };
        let usage = Usage::default();
        let Some(part) = first_part(holder, demand, &usage) else { return };
        for number in &self.rules {
            let Some(subject) = name(&rules[*number], &part) else { continue };
            for attribute in rules[*number].max_attributes.keys() {
                let Some(value) = attributes.get(attribute).filter(|value| **value > 0) else { continue };
                let key = (*number, subject.clone(), attribute.clone());
                let sum = self.sums.entry(key.clone()).or_default();
                *sum += i128::from(*value) * times;
                if *sum == 0 {
                    self.sums.remove(&key);
                }
            }
        }
    }

    /// The limits that may concern a queue: those of all queues, or those of this one.
    fn rules_of(&self, queue: &str, in_queue: bool) -> &[usize] {
        match in_queue {
            true => self.of_queues.get(queue).map_or(&[], Vec::as_slice),
            false => &self.others,
        }
    }
}

impl Limits {
    /// The first limit on running jobs that keeps a job from starting: of all queues, then of its own, each time first
    /// those of all jobs, then of the user, then of the group.
    pub fn reached_by_jobs(
        &self,
        holder: &Holder,
        demand: &Demand,
        specs: &BTreeMap<Arc<str>, QueueSpec>,
    ) -> Option<Found> {
        let usage = Usage { jobs: demand.components.len() as u64, ..Usage::default() };
        let part = first_part(holder, demand, &usage)?;
        [false, true].into_iter().find_map(|in_queue| {
            let of_spec = || self.reached_in_spec(&part, specs).filter(|_| in_queue);
            let of_policy = self.first(&part, in_queue, |rule, number, subject| {
                let used = self.used(&Counter::Policy(number, subject.clone())).jobs;
                let most = rule.max_running_jobs.filter(|most| used.saturating_add(usage.jobs) > *most)?;
                Some((None, describe(rule, subject, "running jobs", most)))
            });
            match (of_policy, of_spec()) {
                (Some(policy), Some(spec)) => Some(if spec.per <= policy.per { spec } else { policy }),
                (found, spec) => found.or(spec),
            }
        })
    }

    /// The first limit on what jobs ask for by name that keeps a job from starting.
    pub fn reached_by_attributes(
        &self,
        holder: &Holder,
        demand: &Demand,
        attributes: Attributes<'_>,
        in_queue: bool,
    ) -> Option<Found> {
        let attributes = attributes?;
        let usage = Usage::default();
        let part = first_part(holder, demand, &usage)?;
        let asks = |name: &String| attributes.get(name).copied().filter(|value| *value > 0);
        self.first(&part, in_queue, |rule, number, subject| {
            let is_reached = |(name, most): &(&String, &u64)| {
                let key = (number, subject.clone(), (*name).clone());
                let used = self.asked.sums.get(&key).copied().unwrap_or(0);
                asks(name).is_some_and(|value| used + i128::from(value) > i128::from(**most))
            };
            let is_reached_alone =
                |(name, most): &(&String, &u64)| asks(name).is_some_and(|value| i128::from(value) > i128::from(**most));
            let of_all = rule.max_attributes.iter().find(is_reached);
            let (name, most) = of_all.or_else(|| rule.max_attributes_of_job.iter().find(is_reached_alone))?;
            Some((Some(name.clone()), describe(rule, subject, name, *most)))
        })
    }

    fn first(
        &self,
        part: &Part<'_>,
        in_queue: bool,
        test: impl Fn(&Limit, usize, &Arc<str>) -> Option<(Option<String>, String)>,
    ) -> Option<Found> {
        let rules = self.asked.rules_of(&part.demand.queue, in_queue).iter();
        let found = rules.filter_map(|number| {
            let rule = &self.rules[*number];
            let (attribute, text) = test(rule, *number, &name(rule, part)?)?;
            Some(Found { per: rule.per, in_queue, attribute, text })
        });
        found.min_by_key(|found| found.per)
    }

    fn reached_in_spec(&self, part: &Part<'_>, specs: &BTreeMap<Arc<str>, QueueSpec>) -> Option<Found> {
        let queue = &part.demand.queue;
        let counters = [
            (LimitPer::All, Counter::Queue(queue.clone())),
            (LimitPer::User, Counter::UserInQueue(queue.clone(), part.holder.user.clone())),
        ];
        counters.into_iter().find_map(|(per, counter)| {
            let text = self.reached_in_queue(&counter, part.usage, specs)?;
            Some(Found { per, in_queue: true, attribute: None, text })
        })
    }
}

/// The queue whose jobs alone a limit counts.
fn queue_of(rule: &Limit) -> Option<&str> {
    match rule.per {
        LimitPer::Queue => rule.queue.as_deref().or(rule.name.as_deref()),
        _ => rule.queue.as_deref(),
    }
}

fn first_part<'p>(holder: &'p Holder, demand: &'p Demand, usage: &'p Usage) -> Option<Part<'p>> {
    demand.components.first().map(|demand| Part { holder, number: 0, demand, usage })
}
