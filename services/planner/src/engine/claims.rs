//! Claims to parts of quotas (OAR-Q-05).

use crate::{
    limits::Usage,
    model::{Demand, Holder},
};
use muster_domain::quotas::{Part, Subject};
use muster_schemas::JobId;

/// A claim to a part of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Claim {
    /// The run of a job or of a task.
    Run(JobId),
    /// The promise of a job; for an array, that of its next task.
    Promise(JobId),
}

/// The components of a job with what they use, as quotas count it.
pub(crate) fn parts(holder: &Holder, demand: &Demand, uses: &[Usage]) -> Vec<Part> {
    let components = demand.components.iter().zip(uses).enumerate();
    let part = |(number, (component, usage)): (usize, (&crate::model::ComponentDemand, &Usage))| Part {
        subject: Subject {
            queue: component.queue.clone(),
            account: holder.charges.get(number).map_or(&holder.account, |charge| &charge.account).clone(),
            user: holder.user.clone(),
            marks: holder.marks.clone(),
        },
        jobs: usage.jobs,
        cores: usage.cores,
        walltime_seconds: usage.walltime_seconds,
    };
    components.map(part).collect()
}
