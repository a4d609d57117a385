//! Limits as planning by turns tests them: those on running jobs before anything else, and those on what jobs ask for by
//! name after a place was found.

use super::{
    Limits,
    asked::Attributes,
    rules::{Counter, describe, name},
    usage::{Part, Usage, first_part},
};
use crate::model::{Demand, Holder};
use muster_schemas::{
    cluster::QueueSpec,
    policy::{Limit, LimitPer},
};
use std::{collections::BTreeMap, sync::Arc};

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
                let used = self.asked.sum(number, subject, name);
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
