//! The payers of a job, by component.

use muster_schemas::{event::JobChange, job::JobSpec};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, sync::Arc};

/// The payer of a component, and how long it may run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Charge {
    /// User, account and queue.
    pub to: Payer,
    /// The walltime of each alternative.
    pub walltimes: Vec<Option<u64>>,
}

/// The attributes that separate usage, apart from time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Payer {
    pub user: String,
    pub account: Option<String>,
    pub queue: String,
}

/// The charges of a job, one for each component.
pub(crate) type Charges = Arc<[Charge]>;

/// The charges of a job as submitted.
pub(crate) fn charges_of(user: &str, spec: &JobSpec) -> Vec<Charge> {
    let charge = |component: &muster_schemas::job::Component| Charge {
        to: Payer {
            user: user.to_owned(),
            account: component.account.clone(),
            queue: component.queue.clone().unwrap_or_default(),
        },
        walltimes: component.alternatives.iter().map(|alternative| alternative.walltime_seconds).collect(),
    };
    spec.components.iter().map(charge).collect()
}

/// The charges after a change of the job.
pub(crate) fn changed(charges: &[Charge], change: &JobChange) -> Vec<Charge> {
    let mut charges = charges.to_vec();
    for (number, charge) in (0..).zip(&mut charges) {
        if change.component.is_some_and(|component| component != number) {
            continue;
        }
        if let Some(queue) = &change.queue {
            charge.to.queue.clone_from(queue);
        }
        if change.account.is_some() {
            charge.to.account.clone_from(&change.account);
        }
        if let Some(alternatives) = &change.alternatives {
            charge.walltimes = alternatives.iter().map(|alternative| alternative.walltime_seconds).collect();
        }
        if change.walltime_seconds.is_some() {
            charge.walltimes.fill(change.walltime_seconds);
        }
    }
    charges
}

/// Keeps equal charges once: a hundred thousand waiting jobs are charged to few payers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SharedCharges {
    known: BTreeSet<Charges>,
    /// At this size, charges that no job has any more are dropped.
    prune_at: usize,
}

impl SharedCharges {
    pub(crate) fn share(&mut self, charges: Vec<Charge>) -> Charges {
        if let Some(known) = self.known.get(charges.as_slice()) {
            return known.clone();
        }
        if self.known.len() >= self.prune_at.max(64) {
            self.known.retain(|charges| Arc::strong_count(charges) > 1);
            self.prune_at = self.known.len() * 2;
        }
        let charges: Charges = charges.into();
        self.known.insert(charges.clone());
        charges
    }
}
