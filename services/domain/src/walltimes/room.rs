//! How much longer a run can get without delaying others.

use crate::{
    jobs::Job,
    reservations::{Reservation, queries::is_attracted},
    runs::Run,
    sharing::Sharing,
    state::State,
};
use muster_schemas::{
    NodeId, RunId, Timestamp,
    job::WaitReason,
    walltimes::{WalltimeAsked, WalltimeIncrease, WalltimeIncreases},
};
use std::collections::BTreeSet;

/// The most waiting jobs without a promise that are looked at. If more wait, they are taken to be delayed.
const MAX_LOOKED_AT: usize = 1_000;

/// A run whose walltime can grow.
pub(super) struct Growing<'a> {
    pub(super) job: &'a Job,
    pub(super) run: &'a Run,
    pub(super) walltime_seconds: u64,
}

impl State {
    /// What a run was granted beyond its walltime, and what it still wants (OAR-G-16).
    pub fn walltime_asked(&self, run: RunId) -> Option<&WalltimeAsked> {
        self.altered.walltimes.get(&run)
    }

    /// When a pending increase is next worth looking at.
    pub(crate) fn next_walltime(&self) -> Option<Timestamp> {
        let now = self.time();
        let due = self.pending_walltimes().filter_map(|(growing, pending)| {
            let from = self.applies_from(&growing, pending);
            // Until then records decide whether there is room: after each one this is asked again.
            if from > now { Some(from) } else { (self.grantable(&growing, pending, now) > 0).then_some(now) }
        });
        due.min()
    }

    /// The runs that want more.
    pub(super) fn pending_walltimes(&self) -> impl Iterator<Item = (Growing<'_>, &WalltimeIncrease)> {
        let pending = self.altered.walltimes.iter().filter(|(_, asked)| asked.pending.seconds > 0);
        pending.filter_map(|(run, asked)| Some((self.growing(self.run(*run)?)?, &asked.pending)))
    }

    /// A run, if it runs, has a walltime, and nobody stops or suspends it.
    pub(super) fn growing<'a>(&'a self, run: &'a Run) -> Option<Growing<'a>> {
        let job = self.job(run.job)?;
        let walltime_seconds = crate::runs::walltime::walltime(job, &run.placement, 0)?;
        let runs = run.started.is_some() && run.stopping.is_none() && !run.is_suspended();
        (runs && job.components.len() == 1).then_some(Growing { job, run, walltime_seconds })
    }

    /// What the queue of a job says about increases.
    pub(super) fn increases(&self, job: &Job) -> WalltimeIncreases {
        let queue = self.queue(&job.lead().queue);
        queue.and_then(|queue| queue.spec.walltime_increases.clone()).unwrap_or_default()
    }

    fn applies_from(&self, growing: &Growing<'_>, asked: &WalltimeIncrease) -> Timestamp {
        let apply_seconds = self.increases(growing.job).apply_seconds;
        if asked.is_forced || apply_seconds == 0 {
            return Timestamp(i64::MIN);
        }
        self.latest_end(growing.run).plus_seconds(-i64::try_from(apply_seconds).unwrap_or(i64::MAX))
    }

    /// The seconds of what a run wants that can be granted now.
    pub(super) fn grantable(&self, growing: &Growing<'_>, asked: &WalltimeIncrease, now: Timestamp) -> u64 {
        if asked.seconds == 0 || now < self.applies_from(growing, asked) {
            return 0;
        }
        let step = self.increases(growing.job).step_seconds;
        let is_stepped = step > 0 && !asked.is_forced && !asked.is_whole;
        let wanted = if is_stepped { asked.seconds.min(step) } else { asked.seconds };
        let end = self.latest_end(growing.run);
        let room_micros = self.latest_without_delay(growing, asked.may_delay, end, now).micros_since(end);
        let granted = wanted.min(u64::try_from(room_micros).unwrap_or(0) / 1_000_000);
        if asked.is_whole && granted < asked.seconds { 0 } else { granted }
    }

    /// The latest end that delays nobody else; [`Timestamp::MAX`] if nobody waits for the nodes of the run. One that is not later
    /// than the present end is not looked for further.
    fn latest_without_delay(
        &self,
        growing: &Growing<'_>,
        may_delay: bool,
        end: Timestamp,
        now: Timestamp,
    ) -> Timestamp {
        let nodes: BTreeSet<NodeId> = growing.run.nodes().collect();
        let mut latest = self.latest_in_reservations(growing.job, &nodes, now);
        if let Some(domain) = growing.job.domain() {
            let holders = self.runs_for_domain(&domain).map(|holder| self.latest_end(holder));
            latest = latest.min(holders.max().unwrap_or(now));
        }
        let promised = self.index.promised.iter().filter_map(|id| self.job(*id));
        for other in promised.filter(|other| self.may_be_delayed(growing.job, other)) {
            if latest <= end {
                return latest;
            }
            let Some(slot) = &other.slot else { continue };
            let is_spared = may_delay && other.fixed_time().is_none();
            if !is_spared && slot.placement.nodes().any(|node| nodes.contains(&node)) {
                latest = latest.min(slot.start);
            }
        }
        if may_delay { latest } else { latest.min(self.first_without_promise(growing.job, &nodes, now)) }
    }

    /// Whether a job that waits may want what a running one holds: not if both share it, or if they run in different
    /// planning domains.
    fn may_be_delayed(&self, running: &Job, other: &Job) -> bool {
        let shares = || Sharing::of(running).zip(Sharing::of(other)).is_some_and(|(own, other)| own.admits(&other));
        other.id != running.id && other.domain() == running.domain() && !shares()
    }

    /// The first end of a node's time for the run: a reservation or a closure of a node, the end of its own reservation.
    fn latest_in_reservations(&self, job: &Job, nodes: &BTreeSet<NodeId>, now: Timestamp) -> Timestamp {
        let named = job.reservations().filter_map(|name| self.reservation(name));
        let own = named.filter(|own| !own.spec.is_flexible).map(|own| own.spec.end);
        let is_own = |name: &str| job.reservations().any(|own| **own == *name);
        // One that attracts the job ends its time on the nodes that it has now; before it begins it is one of others.
        let bound = |one: &Reservation| match is_attracted(job, one) {
            true if one.spec.is_flexible => None,
            true if one.is_active(now) => Some(one.spec.end),
            _ => Some(one.period(now).0),
        };
        let reserved = nodes.iter().flat_map(|node| self.reservations_of(*node));
        let others = reserved.filter(|one| !is_own(&one.spec.name) && one.period(now).1 > now).filter_map(bound);
        let closures = nodes.iter().filter_map(|node| self.node(*node)).flat_map(|node| &node.closures);
        let closed = closures.filter(|closure| closure.until > now).map(|closure| closure.from);
        own.chain(others).chain(closed).min().unwrap_or(Timestamp::MAX)
    }

    /// The first expected start of a job that may use the nodes and is promised none; now, if a plan is still to come.
    fn first_without_promise(&self, running: &Job, nodes: &BTreeSet<NodeId>, now: Timestamp) -> Timestamp {
        if self.index.queued.len() > MAX_LOOKED_AT.saturating_add(self.index.promised.len()) {
            return now;
        }
        let queued = self.index.queued.iter().filter_map(|(_, id)| self.job(*id));
        let unpromised = queued.filter(|job| job.slot.is_none() && self.may_be_delayed(running, job));
        let concerned = unpromised.filter(|job| self.may_use(job, nodes));
        concerned.map(|job| job.predicted_start.unwrap_or(now)).min().unwrap_or(Timestamp::MAX)
    }

    /// Whether a waiting job may use one of these nodes, as far as its queue and the last plan say.
    fn may_use(&self, job: &Job, nodes: &BTreeSet<NodeId>) -> bool {
        let is_kept_back = matches!(
            job.planner_reason.as_deref(),
            Some(WaitReason::NeverFits(_) | WaitReason::Limit(_) | WaitReason::DomainNotOpen(_))
        );
        let serves = |queue: &Vec<String>| {
            let names = nodes.iter().filter_map(|node| self.node(*node)).map(|node| &node.spec.name);
            queue.is_empty() || names.into_iter().any(|name| queue.contains(name))
        };
        let queues = job.queues().filter_map(|name| self.queue(name));
        !is_kept_back && queues.into_iter().any(|queue| queue.spec.started && serves(&queue.spec.nodes))
    }
}
