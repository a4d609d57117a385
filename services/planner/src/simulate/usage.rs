//! What the users of a trace have used, as a policy with shares counts it (PBS-FS-05, PBS-FS-08).

use super::{SimulatedJob, time_of};
use crate::engine::Engine;
use muster_domain::planning::ShareUse;
use muster_schemas::policy::{Charge, Policy, UsageRule};
use std::{collections::BTreeMap, mem};

/// The use of users, in the engine and beside it. A trace does not say what processor time its jobs used: all of their processors
/// count as busy from start to end.
pub(super) struct UserUse {
    rule: UsageRule,
    /// That of runs that have ended; between two instants its users are in the engine, unless runs count as well.
    ended: ShareUse,
    /// The start of each run, by its place in the queue order, if runs count before their end.
    running: BTreeMap<usize, i64>,
}

impl UserUse {
    /// `None` if the policy does not count what users use.
    pub fn of(policy: &Policy, first: i64) -> Option<Self> {
        let rule = policy.turns.as_ref()?.usage?;
        Some(Self { rule, ended: ShareUse::since(time_of(first)), running: BTreeMap::new() })
    }

    pub fn started(&mut self, at: usize, begins: i64) {
        if self.rule.charge == Charge::CoreSeconds {
            self.running.insert(at, begins);
        }
    }

    /// A run ends: its owner is charged for all of it.
    pub fn ended(&mut self, at: usize, job: &SimulatedJob, end: i64, engine: &mut Engine) {
        self.running.remove(&at);
        let (half_life, ended) = (self.rule.half_life_seconds, &mut self.ended);
        let charge = |used: &mut ShareUse| {
            used.decay(half_life, time_of(end));
            used.charge(&job.holder.user, core_seconds(job, job.runtime_seconds));
        };
        match self.rule.charge {
            Charge::CoreSeconds => charge(ended),
            Charge::CpuSeconds => within(ended, engine, charge),
        }
    }

    /// Has the engine know what users have used until a moment.
    pub fn tell(&mut self, now: i64, jobs: &[SimulatedJob], engine: &mut Engine) {
        let half_life = self.rule.half_life_seconds;
        if self.rule.charge == Charge::CpuSeconds {
            return within(&mut self.ended, engine, |used| used.decay(half_life, time_of(now)));
        }
        self.ended.decay(half_life, time_of(now));
        let mut used = self.ended.clone();
        for (at, begins) in &self.running {
            used.charge(&jobs[*at].holder.user, core_seconds(&jobs[*at], now - begins));
        }
        engine.set_user_usage(used.users);
    }
}

/// Changes the use that the engine has, without a copy of it.
fn within(used: &mut ShareUse, engine: &mut Engine, change: impl FnOnce(&mut ShareUse)) {
    used.users = mem::take(&mut engine.user_usage);
    change(used);
    engine.user_usage = mem::take(&mut used.users);
}

fn core_seconds(job: &SimulatedJob, seconds: i64) -> u64 {
    u64::from(job.procs).saturating_mul(u64::try_from(seconds).unwrap_or(0))
}
