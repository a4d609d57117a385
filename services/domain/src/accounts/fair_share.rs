//! Fair share: what runs add to the use of associations, and the factors that follow from it.

use crate::{accounts::Accounts, jobs::Job, runs::Run, state::State};
use muster_schemas::{
    JobId, Timestamp,
    accounts::AssociationKey,
    fair_tree::{Factors, Member, compare},
};
use std::collections::BTreeMap;

/// What a run has used up to a moment, by association. Its present size counts for all of its time.
fn used_by(accounts: &Accounts, job: &Job, run: &Run, until: Timestamp) -> Vec<(AssociationKey, u64)> {
    let Some(started) = run.started else { return Vec::new() };
    let micros = u64::try_from(until.micros_since(started)).unwrap_or(0);
    let parts = job.components.iter().zip(&run.placement.components);
    let used = parts.filter_map(|(component, placed)| {
        let cores: u64 = placed.shares.iter().map(|share| share.cores.len()).sum();
        let chain = accounts.chain(component.account.as_deref()?, &job.owner.user, &component.queue);
        Some((chain.into_iter().next()?.0, cores.saturating_mul(micros)))
    });
    used.collect()
}

impl State {
    /// Counts what a run used that ends now.
    pub(crate) fn count_fair_use(&mut self, id: JobId, run: &Run, now: Timestamp) {
        let half_life = self.accounts.settings().usage_half_life_seconds;
        if half_life == 0 {
            return;
        }
        let Some(job) = self.jobs.get(&id) else { return };
        let used = used_by(&self.accounts, job, run, now);
        self.fair_use.decay(now, half_life);
        used.into_iter().for_each(|(of, micros)| self.fair_use.add(of, micros));
    }

    /// What each association has used, in core seconds, as it counts at a moment, with the jobs that run then; nothing
    /// if it is not counted.
    pub fn fair_use(&self, now: Timestamp) -> BTreeMap<AssociationKey, u64> {
        let half_life = self.accounts.settings().usage_half_life_seconds;
        if half_life == 0 {
            return BTreeMap::new();
        }
        let mut use_now = self.fair_use.clone();
        use_now.decay(now, half_life);
        for run in self.runs.values() {
            let job = self.jobs.get(&run.job);
            let used = job.map(|job| used_by(&self.accounts, job, run, now)).unwrap_or_default();
            used.into_iter().for_each(|(of, micros)| use_now.add(of, micros));
        }
        use_now.core_micros.into_iter().map(|(of, micros)| (of, micros / 1_000_000)).collect()
    }

    /// The factors of all users in accounts at a moment.
    pub fn fair_factors(&self, now: Timestamp) -> Factors {
        let used = self.fair_use(now);
        let accounts = &self.accounts;
        let of = |key: &AssociationKey| used.get(key).copied().unwrap_or(0) as f64;
        let members: Vec<Member> = compare(accounts.accounts(), accounts.associations(), of);
        Factors::of(&members)
    }
}
