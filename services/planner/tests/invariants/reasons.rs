//! Every waiting job is told why it waits, and the reason is true.

use crate::{
    clusters::ALL_MODES,
    history::{Kind, cases, histories},
    reference::{self, Counted, Holdings, Usage, Why, World, hopeless, order_of},
    twin::{Planned, replay},
};
use muster_planner::model::{ComponentDemand, Demand, QueuedJob};
use muster_schemas::{JobId, job::WaitReason, policy::BackfillMode, resources::Count};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A plan as seen by the jobs that still wait after it.
struct After<'p> {
    planned: &'p Planned<'p>,
    waiting: &'p World,
    reasons: BTreeMap<JobId, &'p WaitReason>,
    /// Resources of runs and starts.
    held: Holdings<'p>,
    usage: Usage,
}

impl<'p> After<'p> {
    fn new(planned: &'p Planned<'p>, waiting: &'p World) -> Self {
        let mut held = planned.world.held_by_runs(planned.now);
        let mut usage = Usage::of(planned.world);
        for start in &planned.plan.starts {
            let job = &planned.world.jobs[&start.job.whole()];
            held.hold(start.job, &job.demand, &start.placement, planned.now, true);
            usage.all.push(Counted::new(&job.holder, &job.demand, &start.placement));
        }
        let reasons = planned.plan.reasons.iter().map(|waiting| (waiting.job, &waiting.reason)).collect();
        Self { planned, waiting, reasons, held, usage }
    }

    /// Whether a reason is true for a job.
    fn is_true(&self, job: &QueuedJob, reason: &WaitReason) -> bool {
        let demand = self.open(job);
        let fits_beside_runs = || self.held.place_now(job.id, &demand).is_some();
        match reason {
            WaitReason::NeverFits(_) => self.hopeless(job) == Some(Why::NeverFits),
            WaitReason::NodesUnavailable(_) => self.hopeless(job) == Some(Why::NodesUnavailable),
            WaitReason::Limit(_) => self.is_limited(job) || self.was_limited(job),
            WaitReason::ArrayLimit => job.tasks.as_ref().is_some_and(|tasks| tasks.headroom == 0),
            WaitReason::Resources(_) => {
                // A job that wants everything may need less once others hold some of it: its reason was
                // true at its turn.
                wants_all(job) || !fits_beside_runs() || self.with_promises().place_now(job.id, &demand).is_none()
            }
            WaitReason::Reserved { start } => *start > self.planned.now || !fits_beside_runs(),
            WaitReason::WouldDelay(other) => {
                fits_beside_runs() && matches!(self.reasons.get(other), Some(WaitReason::Reserved { .. }))
            }
            WaitReason::BehindJob(other) => self.waiting.jobs.contains_key(other) && self.is_ahead(*other, job),
            _ => false,
        }
    }

    /// The request of a job, without the alternatives that limits exclude.
    fn open(&self, job: &QueuedJob) -> Demand {
        let mut demand = Demand::clone(&job.demand);
        for (number, component) in demand.components.iter_mut().enumerate() {
            if component.alternatives.len() == 1 {
                continue;
            }
            let is_open = |way: &usize| {
                let more = Counted::in_way(&job.holder, &job.demand, number, *way);
                !self.usage.is_full(self.planned.world, self.planned.policy, &more)
            };
            let ways = (0..component.alternatives.len()).filter(is_open);
            component.alternatives = ways.map(|way| component.alternatives[way].clone()).collect();
        }
        demand
    }

    /// Whether the state alone, without a planner, tells why a job waits: it has a promise, its array runs its maximum
    /// of tasks, or it is behind another.
    fn is_told_by_state(&self, job: &QueuedJob) -> bool {
        let is_full = job.tasks.as_ref().is_some_and(|tasks| tasks.headroom == 0);
        let is_behind = || self.waiting.jobs.keys().any(|other| self.is_ahead(*other, job));
        job.slot.is_some() || is_full || is_behind()
    }

    fn hopeless(&self, job: &QueuedJob) -> Option<Why> {
        hopeless(self.planned.world, self.planned.now, &job.demand)
    }

    /// Whether the job would exceed a limit if it ran, with its minimum or with what it would get.
    fn is_limited(&self, job: &QueuedJob) -> bool {
        let found = [&self.held, &self.with_promises()].map(|held| held.earliest(job.id, &job.demand));
        let given = found.into_iter().flatten().map(|found| Counted::new(&job.holder, &job.demand, &found.placement));
        let least = Counted::least(&job.holder, &job.demand);
        let is_full = |counted: Counted| self.usage.is_full(self.planned.world, self.planned.policy, &counted);
        given.chain([least]).any(is_full) || self.has_no_way(job)
    }

    /// Whether limits exclude all alternatives of a component that anything could serve.
    fn has_no_way(&self, job: &QueuedJob) -> bool {
        (0..job.demand.components.len()).any(|number| {
            let component = &job.demand.components[number];
            let can_serve = |way: &usize| {
                let alternatives = [component.alternatives[*way].clone()].into();
                let only = ComponentDemand { alternatives, ..component.clone() };
                hopeless(
                    self.planned.world,
                    self.planned.now,
                    &Demand { components: vec![only], sharing: None, fixed: None, guard_seconds: 0 },
                )
                .is_none()
            };
            let mut ways = (0..component.alternatives.len()).filter(can_serve).peekable();
            let is_shut = |way| {
                let more = Counted::in_way(&job.holder, &job.demand, number, way);
                self.usage.is_full(self.planned.world, self.planned.policy, &more)
            };
            ways.peek().is_some() && ways.all(is_shut)
        })
    }

    /// The same with what it would have got at its turn, before later jobs had promises.
    fn was_limited(&self, job: &QueuedJob) -> bool {
        let Planned { world, policy, now, .. } = self.planned;
        reference::pass(world, policy, *now).waiting.get(&job.id) == Some(&Why::Limit)
    }

    /// Resources of runs, starts and promises.
    fn with_promises(&self) -> Holdings<'p> {
        let mut held = self.held.clone();
        for job in self.waiting.jobs.values() {
            let is_reserved = matches!(self.reasons.get(&job.id), Some(WaitReason::Reserved { .. }));
            if let Some(slot) = &job.slot {
                held.hold(job.id, &job.demand, &slot.placement, slot.start, false);
            } else if let Some(found) = held.earliest(job.id, &job.demand).filter(|_| is_reserved) {
                held.hold(job.id, &job.demand, &found.placement, found.start, false);
            }
        }
        held
    }

    fn is_ahead(&self, other: JobId, job: &QueuedJob) -> bool {
        let order = order_of(self.planned.world, self.planned.policy, self.planned.now);
        let place = |id: JobId| order.iter().position(|known| *known == id);
        place(other) < place(job.id)
    }
}

fn wants_all(job: &QueuedJob) -> bool {
    let alternatives = job.demand.components.iter().flat_map(|component| component.alternatives.iter());
    let requests = alternatives.flat_map(|alternative| &alternative.requests);
    requests.flat_map(|request| &request.path).any(|step| step.count == Count::All)
}

proptest! {
    #![proptest_config(cases())]

    /// Every job that waits after a plan has a reason, and the reason is true at that moment (M-PLAN-11).
    #[test]
    fn nobody_waits_without_a_true_reason(history in histories(Kind { modes: ALL_MODES, loses_capacity: true, overruns: true })) {
        replay(&history, |twin, planned| {
            // A plan that starts something is followed by another one.
            if !planned.plan.starts.is_empty() {
                return;
            }
            let after = After::new(planned, &twin.world);
            for (at, told) in planned.plan.reasons.iter().enumerate() {
                let mut before = planned.plan.reasons[..at].iter().filter(|other| other.job == told.job);
                assert!(before.all(|other| other.reason == told.reason), "job {} is told two reasons", told.job);
            }
            for job in twin.world.jobs.values() {
                match after.reasons.get(&job.id) {
                    Some(reason) => assert!(after.is_true(job, reason), "job {} waits: {reason:?}", job.id),
                    None => assert!(after.is_told_by_state(job), "job {} waits for nothing", job.id),
                }
            }
        });
    }

    /// A job that can never fit is told so by the first plan that looks at it, and no other job is (M-PLAN-12).
    #[test]
    fn who_never_fits_is_told_so(
        history in histories(Kind { modes: &[BackfillMode::Conservative], loses_capacity: true, overruns: false }),
    ) {
        replay(&history, |twin, planned| {
            let has_depth = planned.policy.backfill.reservations.is_some() || !planned.policy.queues.is_empty();
            if !planned.plan.starts.is_empty() || has_depth {
                return;
            }
            let after = After::new(planned, &twin.world);
            let is_looked_at = |job: &QueuedJob| {
                let is_behind = planned.plan.reasons.iter().any(|other| {
                    matches!(other.reason, WaitReason::Resources(_)) && after.is_ahead(other.job, job)
                });
                let is_full = job.tasks.as_ref().is_some_and(|tasks| tasks.headroom == 0);
                !is_behind && !is_full && job.slot.is_none() && !after.is_limited(job)
            };
            for job in twin.world.jobs.values().filter(|job| is_looked_at(job)) {
                let reason = after.reasons.get(&job.id);
                let is_told = matches!(reason, Some(WaitReason::NeverFits(_)));
                assert_eq!(is_told, after.hopeless(job) == Some(Why::NeverFits), "job {} is told {reason:?}", job.id);
            }
        });
    }
}
