//! Callers that are processes of a job: what they may do with the job's token.
//!
//! The token is good only for the owner's access to this one job, and only during its run. Two filters ensure that:
//! [`may_ask`] checks the address before anything is done, and [`concerns`] the resulting command.

use crate::error::ApiError;
use axum::http::Method;
use muster_schemas::{
    JobId, RunId,
    command::{Command, JobSelection},
    job_token::JobToken,
    views::ErrorCode,
};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// The most runs whose proof is remembered, so that the ledger is not asked for each request.
const MAX_PROOFS: usize = 10_000;

/// Tokens that the ledger has confirmed, by hash, so that the duration of a lookup reveals nothing about them.
#[derive(Debug, Default)]
pub(crate) struct Proofs(Mutex<HashMap<RunId, blake3::Hash>>);

impl Proofs {
    pub(crate) fn has(&self, token: &JobToken) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&token.run) == Some(&hash(token))
    }

    pub(crate) fn learn(&self, token: &JobToken) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_PROOFS {
            known.clear();
        }
        known.insert(token.run, hash(token));
    }
}

fn hash(token: &JobToken) -> blake3::Hash {
    blake3::hash(token.to_string().as_bytes())
}

/// Whether a job may make this request: it may read and change itself, and run steps.
pub(crate) fn may_ask(job: JobId, method: &Method, path: &str, query: Option<&str>) -> bool {
    let own = |text: &str| text.parse() == Ok(job);
    let words: Vec<&str> = path.split('/').collect();
    let (reads, writes) = (*method == Method::GET, *method == Method::POST);
    match words.as_slice() {
        ["", "v1", "info" | "dialects"] => reads,
        ["", "v1", "jobs"] | ["", "v1", "jobs", "details"] => reads && names_only(job, query.unwrap_or_default()),
        // The body names the jobs: the command is checked instead.
        ["", "v1", "jobs", "actions", _] | ["", "v1", "refusals"] => writes,
        ["", "v1", "jobs", id] => reads && own(id),
        ["", "v1", "jobs", id, "steps"] => reads && own(id),
        ["", "v1", "jobs", id, "wait" | "events" | "explanation"] => reads && own(id),
        ["", "v1", "jobs", id, "conclude" | "keep" | "shrink"] => writes && own(id),
        ["", "v1", "jobs", id, "steps", "launch"] => writes && own(id),
        ["", "v1", "jobs", id, "steps", _, "output" | "wait"] => reads && own(id),
        ["", "v1", "jobs", id, "steps", _, "signal" | "end" | "input" | "terminal"] => writes && own(id),
        _ => false,
    }
}

/// Whether the parameters of a list name this job, and no other.
fn names_only(job: JobId, query: &str) -> bool {
    // A query that muster's commands would write differently might be read differently elsewhere.
    if query.contains(['%', '+', ';']) {
        return false;
    }
    let mut ids = query.split('&').filter_map(|pair| pair.strip_prefix("id=")).peekable();
    ids.peek().is_some() && ids.flat_map(|list| list.split(',')).all(|id| id.parse() == Ok(job))
}

/// Refuses a command that does not concern this job alone.
pub(crate) fn check(job: JobId, command: &Command) -> Result<(), ApiError> {
    if concerns(job, command) { Ok(()) } else { Err(not_its_own(job)) }
}

fn concerns(own: JobId, command: &Command) -> bool {
    match command {
        Command::Hold { jobs, .. }
        | Command::Release { jobs, .. }
        | Command::Modify { jobs, .. }
        | Command::Cancel { jobs }
        | Command::Signal { jobs, .. }
        | Command::Suspend { jobs }
        | Command::Resume { jobs }
        | Command::Requeue { jobs, .. }
        | Command::HoldUntil { jobs, .. }
        | Command::EndJobs { jobs, .. }
        | Command::ChangeClass { jobs, .. }
        | Command::TellJobs { jobs, .. } => match jobs {
            JobSelection::Ids(ids) => !ids.is_empty() && ids.iter().all(|id| *id == own),
            JobSelection::Component { job, .. } => *job == own,
            JobSelection::Tasks { job, indices } => {
                !indices.is_empty() && indices.iter().all(|index| JobId::task(job.number, index) == own)
            }
            JobSelection::Matching(_) => false,
        },
        Command::LaunchStep { job, .. }
        | Command::SignalStep { job, .. }
        | Command::SetStepWalltime { job, .. }
        | Command::EndStep { job, .. }
        | Command::ShrinkJob { job, .. }
        | Command::CopyAhead { job, .. }
        | Command::ConcludeJob { job, .. }
        | Command::KeepJob { job, .. } => *job == own,
        // Refusals by its commands are noted like those of its owner.
        Command::NoteRefusal { .. } => true,
        // Listed one by one, so that whoever adds a command decides here.
        Command::Submit { .. }
        | Command::SubmitDocument { .. }
        | Command::ConfigureJob { .. }
        | Command::HandOver { .. }
        | Command::EnterJob { .. }
        | Command::Configure { .. }
        | Command::DrainNodes { .. }
        | Command::SetPower { .. }
        | Command::ResumeNodes { .. }
        | Command::SetNodeClosures { .. }
        | Command::SetPolicy { .. }
        | Command::RefusePolicy { .. }
        | Command::WarnOfPolicy { .. }
        | Command::SetParameters { .. }
        | Command::SetTemplate { .. }
        | Command::RemoveTemplate { .. }
        | Command::Reserve { .. }
        | Command::ChangeReservation { .. }
        | Command::RemoveReservation { .. }
        | Command::ChangeAccounts { .. }
        | Command::SetTrigger { .. }
        | Command::SetCrontab { .. }
        | Command::ClearTriggers { .. }
        | Command::CommitPlan { .. }
        | Command::PlannerHello
        | Command::NoteCycle { .. }
        | Command::NodeHello { .. }
        | Command::NodeStarted { .. }
        | Command::NodeEnded { .. }
        | Command::NodeStepEnded { .. }
        | Command::SuspensionUnwanted { .. }
        | Command::NodeSignalled { .. }
        | Command::NodeCopied { .. }
        | Command::RunJob { .. }
        | Command::NodeSilent { .. }
        | Command::NodeGpusChecked { .. }
        | Command::NodeLoadMeasured { .. }
        | Command::NotificationDone { .. }
        | Command::ClaimCalls { .. }
        | Command::ReportCalls { .. }
        | Command::CallsLost { .. }
        | Command::RunnersMissing { .. }
        | Command::Checkpoint { .. }
        | Command::Archived { .. }
        | Command::AgentJoins { .. }
        | Command::Tick => false,
    }
}

/// A job asks for something that its token does not allow.
pub(crate) fn not_its_own(job: JobId) -> ApiError {
    let message = format!("this is the token of job {job}: it can only read and change that job and run its steps");
    ApiError::new(ErrorCode::PermissionDenied, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(method: Method, address: &str) -> bool {
        let (path, query) = address.split_once('?').map_or((address, None), |(path, query)| (path, Some(query)));
        may_ask(JobId::task(12, 3), &method, path, query)
    }

    /// A task may name itself among the tasks of its array, and no other.
    #[test]
    fn a_task_is_its_own_among_the_tasks_of_its_array() {
        let tasks = |job, indices: &str| {
            let jobs = JobSelection::Tasks { job, indices: indices.parse().unwrap() };
            concerns(JobId::task(12, 3), &Command::Cancel { jobs })
        };
        assert!(tasks(JobId::job(12), "3"));
        assert!(!tasks(JobId::job(12), "3-4") && !tasks(JobId::job(13), "3"));
        let none = JobSelection::Tasks { job: JobId::job(12), indices: Default::default() };
        assert!(!concerns(JobId::task(12, 3), &Command::Cancel { jobs: none }));
    }

    #[test]
    fn a_job_may_ask_about_itself_only() {
        for address in [
            "/v1/dialects",
            "/v1/info",
            "/v1/jobs/12_3",
            "/v1/jobs/12_3/wait?until=started",
            "/v1/jobs/12_3/steps",
            "/v1/jobs/12_3/steps/2/output?run=1&reader=2",
            "/v1/jobs?id=12_3&limit=1000",
            "/v1/jobs/details?id=12_3",
        ] {
            assert!(may(Method::GET, address), "{address}");
            assert!(!may(Method::PUT, address) && !may(Method::DELETE, address), "{address}");
        }
        for address in ["/v1/jobs/12_3/steps/launch", "/v1/jobs/12_3/steps/1/end", "/v1/jobs/actions/modify"] {
            assert!(may(Method::POST, address) && !may(Method::GET, address), "{address}");
        }
        for address in [
            "/v1/jobs",
            "/v1/jobs?id=",
            "/v1/jobs?user=me",
            "/v1/jobs?id=12_3,13",
            "/v1/jobs?id=12_3&id=13",
            "/v1/jobs?id=12_3&i%64=13",
            "/v1/jobs/all",
            "/v1/jobs/12",
            "/v1/jobs/12_4",
            "/v1/jobs/12%5F3",
            "/v1/jobs/12_3/",
            "/v1/jobs/12_3/description",
            "/v1/jobs/12_3/../13",
            "/v1/nodes",
            "/v1/config",
            "/v1/records",
            "/v1/events",
            "/v1/audit/verify",
            "/metrics",
        ] {
            assert!(!may(Method::GET, address), "{address}");
        }
        for address in ["/v1/jobs", "/v1/jobs/13/steps/launch", "/v1/jobs/described", "/v1/nodes/actions/drain"] {
            assert!(!may(Method::POST, address), "{address}");
        }
    }

    /// The changes of `scontrol update` to a job apart from its size and time, such as its comment.
    #[test]
    fn a_job_may_alter_itself_only() {
        let own = JobId::job(7);
        let alter = |jobs| concerns(own, &Command::Modify { jobs, change: Default::default() });
        assert!(alter(JobSelection::Ids(vec![own])));
        assert!(!alter(JobSelection::Ids(vec![own, JobId::job(8)])));
        assert!(!alter(JobSelection::Matching(Default::default())));
    }

    #[test]
    fn a_job_may_change_itself_only() {
        let own = JobId::job(7);
        let cancel = |jobs| concerns(own, &Command::Cancel { jobs });
        assert!(cancel(JobSelection::Ids(vec![own])));
        assert!(cancel(JobSelection::Component { job: own, component: 1 }));
        assert!(!cancel(JobSelection::Ids(vec![])));
        assert!(!cancel(JobSelection::Ids(vec![own, JobId::job(8)])));
        assert!(!cancel(JobSelection::Component { job: JobId::job(8), component: 0 }));
        assert!(!cancel(JobSelection::Matching(Default::default())));
        assert!(!concerns(own, &Command::Submit { jobs: vec![] }));
        assert!(concerns(own, &Command::KeepJob { job: own, seconds: None }));
        assert!(!concerns(own, &Command::KeepJob { job: JobId::job(8), seconds: None }));
    }
}
