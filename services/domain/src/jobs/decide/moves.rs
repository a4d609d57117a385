//! Moves of waiting jobs to other accounts and queues.

use crate::{
    accounts::{Charge, decide::entering::Entering},
    decide::Access,
    jobs::{
        Component, Job,
        decide::{queues, select::Apart},
    },
    nodes::Queue,
    state::State,
};
use muster_schemas::{command::Refusal, event::JobChange};
use std::{collections::BTreeMap, sync::Arc};

/// The accounts and queues that the jobs of one command move into.
#[derive(Default)]
pub(crate) struct Moves {
    entering: Entering,
    /// For each queue with a limit, the number of components that enter it, each as often as it has tasks.
    queued: BTreeMap<Arc<str>, u64>,
    /// The tasks that leave their arrays.
    pub(crate) apart: Apart,
}

impl Moves {
    /// Whether a waiting job may be where a change of its account or queue puts it (SL-L-01, SL-L-03, SL-L-07).
    pub(crate) fn check(&mut self, access: &Access, job: &Job, change: &JobChange) -> Result<(), Refusal> {
        if change.account.is_none() && change.queue.is_none() {
            return Ok(());
        }
        let entering = entering_queue(access.state, job, change)?;
        let moved = |number: usize, charge: Charge| match concerns(change, number) {
            true => Charge {
                account: change.account.as_deref().map(Into::into).or(charge.account),
                queue: change.queue.as_deref().map(Into::into).unwrap_or(charge.queue),
                ..charge
            },
            false => charge,
        };
        if let Some((queue, most, more)) = entering {
            let before = self.queued.get(&*queue.spec.name).copied().unwrap_or(0);
            queues::require_queue_room(access.state, queue, most, before + more)?;
        }
        self.entering.check_moved(access, job, |number| concerns(change, number), moved)?;
        if let Some((queue, _, more)) = entering {
            *self.queued.entry(queue.spec.name.as_str().into()).or_default() += more;
        }
        Ok(())
    }
}

/// The queue into which a change puts components, if its jobs are limited, with that limit and the number of components
/// that enter it, each as often as it has tasks that have not started.
fn entering_queue<'a>(
    state: &'a State,
    job: &Job,
    change: &JobChange,
) -> Result<Option<(&'a Queue, u32, u64)>, Refusal> {
    // Tasks that have ever started move nowhere else.
    let Some(name) = change.queue.as_deref().filter(|_| job.id.index.is_none()) else { return Ok(None) };
    let queue = queues::find_queue(state, name)?;
    let enters = |(number, component): &(usize, &Component)| concerns(change, *number) && *component.queue != *name;
    let tasks = job.array.as_ref().map_or(1, |array| array.remaining.len());
    let more = (job.components.iter().enumerate().filter(enters).count() as u64).saturating_mul(tasks);
    Ok(queue.spec.max_jobs.filter(|_| more > 0).map(|most| (queue, most, more)))
}

/// Whether a change applies to the component with this number.
pub(crate) fn concerns(change: &JobChange, number: usize) -> bool {
    change.component.is_none_or(|only| only as usize == number)
}
