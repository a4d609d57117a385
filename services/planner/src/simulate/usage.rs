//! What the users of a trace have used, as a policy with shares counts it (PBS-FS-05, PBS-FS-08).

use super::{SimulatedJob, time_of};
use crate::{engine::Engine, sharers::Sharers};
use muster_domain::planning::ShareUse;
use muster_schemas::policy::{Charge, Policy, UsageRule};
use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
};

/// The use of users, in the engine and beside it. A trace does not say what processor time its jobs used: all of their processors
/// count as busy from start to end.
pub(super) struct UserUse {
    rule: UsageRule,
    /// That of runs that have ended.
    ended: ShareUse,
    /// The runs that count before their end.
    running: Running,
}

/// The runs that count before their end, and what of them the engine does not know yet.
#[derive(Default)]
struct Running {
    /// By user.
    sums: BTreeMap<Arc<str>, Sum>,
    /// Runs that begin later, once their nodes are awake: when, and their places in the queue order.
    later: BTreeSet<(i64, usize)>,
    /// Users of whom a run has ended since the engine was told.
    changed: Vec<Arc<str>>,
    /// Whether a half-life has passed since the engine was told.
    is_halved: bool,
}

/// The runs of a user.
#[derive(Default)]
struct Sum {
    runs: usize,
    procs: i128,
    /// The sum of the starts, each as often as the run has processors.
    begun: i128,
}

impl Sum {
    /// What the runs have used until a moment.
    fn core_seconds(&self, now: i64) -> u64 {
        let used = self.procs * i128::from(now) - self.begun;
        u64::try_from(used.max(0)).unwrap_or(u64::MAX)
    }
}

impl Running {
    fn begin_due(&mut self, now: i64, jobs: &[SimulatedJob]) {
        while let Some((begins, at)) = self.later.first().copied().filter(|(begins, _)| *begins <= now) {
            self.later.pop_first();
            let job = &jobs[at];
            let sum = self.sums.entry(job.holder.user.clone()).or_default();
            sum.runs += 1;
            sum.procs += i128::from(job.procs);
            sum.begun += i128::from(job.procs) * i128::from(begins);
        }
    }

    fn end(&mut self, at: usize, job: &SimulatedJob, begins: i64) {
        let user = &job.holder.user;
        self.changed.push(user.clone());
        if self.later.remove(&(begins, at)) {
            return;
        }
        let Some(sum) = self.sums.get_mut(user) else { return };
        sum.runs -= 1;
        sum.procs -= i128::from(job.procs);
        sum.begun -= i128::from(job.procs) * i128::from(begins);
        if sum.runs == 0 {
            self.sums.remove(user);
        }
    }

    /// Brings what users have used up to a moment: only that of users with runs, and of those whose runs have ended.
    fn tell(&mut self, now: i64, ended: &ShareUse, told: &mut Sharers) {
        if mem::take(&mut self.is_halved) {
            told.set_usage(ended.users.clone());
        }
        for user in mem::take(&mut self.changed) {
            told.set_usage_of(&user, ended.users.get(&user).copied());
        }
        for (user, sum) in &self.sums {
            told.set_usage_of(user, ended.with(user, sum.core_seconds(now)));
        }
    }
}

impl UserUse {
    /// `None` if the policy does not count what users use.
    pub fn of(policy: &Policy, first: i64) -> Option<Self> {
        let rule = policy.turns.as_ref()?.usage?;
        Some(Self { rule, ended: ShareUse::since(time_of(first)), running: Running::default() })
    }

    pub fn started(&mut self, at: usize, begins: i64) {
        if self.rule.charge == Charge::CoreSeconds {
            self.running.later.insert((begins, at));
        }
    }

    /// A run ends: its owner is charged for all of it.
    pub fn ended(&mut self, at: usize, job: &SimulatedJob, end: i64) {
        let user = &job.holder.user;
        self.running.is_halved |= self.ended.decay(self.rule.half_life_seconds, time_of(end));
        self.ended.charge(user, core_seconds(job, job.runtime_seconds));
        match self.rule.charge {
            Charge::CoreSeconds => self.running.end(at, job, end - job.runtime_seconds),
            Charge::CpuSeconds => self.running.changed.push(user.clone()),
        }
    }

    /// Has the engine know what users have used until a moment.
    pub fn tell(&mut self, now: i64, jobs: &[SimulatedJob], engine: &mut Engine) {
        self.running.begin_due(now, jobs);
        self.running.is_halved |= self.ended.decay(self.rule.half_life_seconds, time_of(now));
        self.running.tell(now, &self.ended, &mut engine.sharers);
    }
}

fn core_seconds(job: &SimulatedJob, seconds: i64) -> u64 {
    u64::from(job.procs).saturating_mul(u64::try_from(seconds).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Demand, Holder};

    fn job(user: &str, procs: u32, runtime_seconds: i64) -> SimulatedJob {
        let holder = Holder { user: user.into(), group: 0, account: None, charges: Vec::new(), marks: None };
        SimulatedJob {
            job_id: 0,
            submit_seconds: 0,
            runtime_seconds,
            estimate_seconds: runtime_seconds,
            procs,
            demand: Arc::new(Demand { components: Vec::new(), sharing: None, fixed: None, guard_seconds: 0 }),
            holder: Arc::new(holder),
            attributes: None,
        }
    }

    /// PBS-FS-05, PBS-FS-08: what the engine is told bit by bit is what ended runs have left and running ones have used so far.
    #[test]
    fn what_is_told_bit_by_bit_is_the_sum() {
        const HALF_LIFE: u64 = 50;
        const STEP: i64 = 3;
        let jobs: Vec<SimulatedJob> =
            (0..60u32).map(|at| job(&format!("u{}", at % 7), 1 + at % 5, i64::from(at * 13 % 90))).collect();
        // Each starts at an instant; some begin later, once their nodes are awake.
        let starts: Vec<i64> = (0..20).flat_map(|at| [at * 5 * STEP; 3]).collect();
        let begins: Vec<i64> = (0..).zip(&starts).map(|(at, start)| start + if at % 4 == 0 { 40 } else { 0 }).collect();
        let mut ends: Vec<(i64, usize)> =
            jobs.iter().enumerate().map(|(at, job)| (begins[at] + job.runtime_seconds, at)).collect();
        ends.sort_unstable();
        let rule = UsageRule { charge: Charge::CoreSeconds, half_life_seconds: HALF_LIFE, ..UsageRule::default() };
        let mut told = UserUse { rule, ended: ShareUse::since(time_of(0)), running: Running::default() };
        let mut engine = Engine::new(Arc::default()).expect("the plain policy has no formula");
        let mut ended = ShareUse::since(time_of(0));
        let (mut has_ended, mut most) = (BTreeSet::new(), 0);
        for now in (0..2_000).step_by(3) {
            for (end, at) in ends.iter().copied().filter(|(end, at)| *end <= now && starts[*at] < now) {
                if has_ended.insert(at) {
                    ended.decay(HALF_LIFE, time_of(end));
                    ended.charge(&jobs[at].holder.user, core_seconds(&jobs[at], jobs[at].runtime_seconds));
                    told.ended(at, &jobs[at], end);
                }
            }
            told.tell(now, &jobs, &mut engine);
            ended.decay(HALF_LIFE, time_of(now));
            let mut expected = ended.clone();
            for (at, job) in jobs.iter().enumerate().filter(|(at, _)| starts[*at] < now && !has_ended.contains(at)) {
                expected.charge(&job.holder.user, core_seconds(job, now - begins[at]));
            }
            assert_eq!(engine.sharers.usage(), &expected.users, "second {now}");
            most = most.max(expected.users.len());
            starts
                .iter()
                .enumerate()
                .filter(|(_, start)| **start == now)
                .for_each(|(at, _)| told.started(at, begins[at]));
        }
        assert_eq!((has_ended.len(), most, engine.sharers.usage().len()), (60, 7, 0));
    }
}
