//! `qorder`: two jobs exchange their places in a queue, if their priorities can say so.

use super::{
    ended::{Ended, Failure},
    site::{Site, refused, unknown},
};
use muster_client::{JobQuery, Moment};
use muster_pbs::{
    job_id::PbsJobId,
    queries::{Place, exchanged, is_by_priority, qorder},
    refusal::{Refusal, shown},
};
use muster_schemas::{
    CommandId, JobId,
    command::JobSelection,
    event::JobChange,
    job::JobState,
    views::{JobView, ModifyRequest},
};

/// Runs a command line of `qorder`.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    let (one, other) = qorder(words)?;
    let (first, second) = (waiting(site, &one)?, waiting(site, &other)?);
    if first.id == second.id {
        return Ok(0);
    }
    if first.queue != second.queue {
        let text = format!("jobs {one} and {other} are in different queues: {}, {}", first.queue, second.queue);
        return Err(Failure { text, status: 168 });
    }
    require_priorities(site, &first.queue)?;
    let query = JobQuery { queue: Some(first.queue.clone()), ..JobQuery::default() };
    let all = site.client.jobs(&query)?.jobs;
    let waits = |view: &&JobView| is_waiting(view) && view.id.index.is_none();
    let queue: Vec<&JobView> = all.iter().filter(waits).collect();
    if let Some(again) = queue.iter().find(|view| view.runs > 0) {
        let why = format!("job {} was put back into the queue, and its place there is not known", again.id);
        return Err(unable(&why));
    }
    let place = |view: &&JobView| Place {
        job: view.id,
        priority: view.priority,
        class_priority: view.class_priority,
        arrival: view.submitted,
    };
    let places: Vec<Place> = queue.iter().map(place).collect();
    let why = "other jobs have the same priority, and only priorities and arrival say which job comes first; `qalter -p` \
               changes a priority";
    let [lower, higher] = exchanged(&places, first.id, second.id).ok_or_else(|| unable(why))?;
    set(site, &one, lower)?;
    let done = set(site, &other, higher);
    if done.is_err() {
        // Both or none.
        set(site, &one, (first.id, first.priority))?;
    }
    done.map(|()| 0)
}

fn unable(why: &str) -> Failure {
    Refusal::unsupported("to exchange these jobs", format!("{why}. Nothing was changed")).into()
}

/// The job, which must wait.
fn waiting(site: &mut Site, id: &PbsJobId) -> Result<JobView, Failure> {
    site.require_own(id)?;
    let job = id.single().filter(|job| job.index.is_none());
    let job = job.ok_or_else(|| Failure::new(format_args!("{id} is not one job; tasks of an array have no places")))?;
    let detail = site.client.job(job, Moment::Now).map_err(|error| failure(id, &error))?;
    if detail.job.id != job {
        return Err(unknown(id));
    }
    match is_waiting(&detail.job) {
        true => Ok(detail.job),
        false => Err(Failure { text: format!("Request invalid for state of job {id}"), status: 168 }),
    }
}

fn is_waiting(view: &JobView) -> bool {
    matches!(view.state, JobState::Held | JobState::Queued)
}

/// Requires that the policy in force goes by priorities.
fn require_priorities(site: &mut Site, queue: &str) -> Result<(), Failure> {
    let policy = site.client.policy(Moment::Now)?;
    let own = policy.queues.get(queue).and_then(|queue| queue.order.as_deref());
    match is_by_priority(own.unwrap_or(&policy.order)) {
        true => Ok(()),
        false => {
            Err(unable(&format!("the policy `{}` orders jobs by more than priority and arrival", shown(&policy.name))))
        }
    }
}

fn set(site: &mut Site, id: &PbsJobId, (job, priority): (JobId, i64)) -> Result<(), Failure> {
    let change = JobChange { priority: Some(priority), ..JobChange::default() };
    let request = ModifyRequest { jobs: JobSelection::Ids(vec![job]), change };
    site.client.modify(CommandId::new_now(), &request).map(drop).map_err(|error| failure(id, &error))
}

fn failure(id: &PbsJobId, error: &muster_client::ClientError) -> Failure {
    let (text, status) = refused(id, error);
    Failure { text, status }
}
