//! The charges of runs for the shares of a policy (PBS-FS-05).

use crate::{jobs::Job, runs::Run, state::State};
use muster_schemas::{
    JobId, NodeId, PartId, Timestamp,
    job::Usage,
    node::PartUse,
    policy::{Charge, UsageRule},
    resources::ComponentPlacement,
};
use std::{collections::BTreeMap, sync::Arc};

/// What a run is charged that lasts until a moment. Its present size counts for all of its time; components that ended alone
/// count until then, with what they had.
fn charged(rule: UsageRule, job: &Job, run: &Run, usage: Option<&Usage>, until: Timestamp) -> u64 {
    match rule.charge {
        Charge::CpuSeconds => usage.map_or(0, |usage| usage.cpu_time_micros / 1_000_000),
        Charge::CoreSeconds => {
            let Some(started) = run.started else { return 0 };
            let used = |placed: &ComponentPlacement, until: Timestamp| {
                let cores: u64 = placed.shares.iter().map(|share| share.cores.len()).sum();
                cores.saturating_mul(u64::try_from(until.micros_since(started)).unwrap_or(0))
            };
            let over: BTreeMap<u32, (&ComponentPlacement, Timestamp)> =
                job.components_over().map(|(number, over)| (number, (&over.placement, over.at))).collect();
            let parts = (0..).zip(&run.placement.components).map(|(number, placed)| match over.get(&number) {
                Some((placed, at)) => used(placed, *at),
                None => used(placed, until),
            });
            parts.fold(0, u64::saturating_add) / 1_000_000
        }
    }
}

impl State {
    fn usage_rule(&self) -> Option<UsageRule> {
        self.planning.policy.as_ref()?.turns.as_ref()?.usage
    }

    /// The part of the measured processor time of runs on a node that nobody has been charged for yet; none if it is not charged.
    pub(crate) fn counted_use(&self, node: NodeId, used: Vec<PartUse>) -> Vec<PartUse> {
        if self.usage_rule().is_none_or(|rule| rule.charge != Charge::CpuSeconds) {
            return Vec::new();
        }
        let mut news: BTreeMap<PartId, u64> = BTreeMap::new();
        for PartUse { part, cpu_seconds } in used {
            let runs_here = self.runs.get(&part.run()).is_some_and(|run| run.part_of(node, part.component()).is_some());
            if runs_here && cpu_seconds > self.share_use.charged_for(node, part) {
                news.insert(part, cpu_seconds);
            }
        }
        news.into_iter().map(|(part, cpu_seconds)| PartUse { part, cpu_seconds }).collect()
    }

    /// Charges the owners of runs for the processor time that a node has measured.
    pub(crate) fn count_measured_use(&mut self, node: NodeId, used: &[PartUse], now: Timestamp) {
        let Some(rule) = self.usage_rule().filter(|rule| rule.charge == Charge::CpuSeconds && !used.is_empty()) else {
            return;
        };
        self.share_use.decay(rule.half_life_seconds, now);
        for PartUse { part, cpu_seconds } in used {
            let Some(run) = self.runs.get(&part.run()) else { continue };
            let Some(job) = self.jobs.get(&run.job) else { continue };
            let user = job.owner.user.clone();
            self.share_use.charge_until_now(&user, node, *part, *cpu_seconds);
        }
    }

    /// Charges the owner of a run that ends now, for what was not charged while it ran.
    pub(crate) fn count_share_use(&mut self, id: JobId, run: &Run, usage: &Usage, now: Timestamp) {
        let charged_before = self.share_use.run_over(run.id);
        let Some(rule) = self.usage_rule() else { return };
        let Some(job) = self.jobs.get(&id) else { return };
        let amount = charged(rule, job, run, Some(usage), now);
        let amount = match rule.charge {
            Charge::CpuSeconds => amount.saturating_sub(charged_before),
            Charge::CoreSeconds => amount,
        };
        self.share_use.decay(rule.half_life_seconds, now);
        self.share_use.charge(&job.owner.user, amount);
    }

    /// When the half-life began that lasts at a moment: what users have used was halved then. `None` if the policy in force never
    /// halves it.
    pub fn half_life_began(&self, now: Timestamp) -> Option<Timestamp> {
        let rule = self.usage_rule().filter(|rule| rule.half_life_seconds > 0)?;
        Some(self.share_use.half_life_at(rule.half_life_seconds, now).1)
    }

    /// What users have used at a moment, as the policy in force counts it; those that are not there have used nothing.
    pub fn share_use(&self, now: Timestamp) -> BTreeMap<Arc<str>, u64> {
        let Some(rule) = self.usage_rule() else { return BTreeMap::new() };
        let mut share_use = self.share_use.clone();
        share_use.decay(rule.half_life_seconds, now);
        if rule.charge == Charge::CoreSeconds {
            for run in self.runs.values() {
                let Some(job) = self.jobs.get(&run.job) else { continue };
                share_use.charge(&job.owner.user, charged(rule, job, run, None, now));
            }
        }
        share_use.users
    }
}
