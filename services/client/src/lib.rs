//! A client of the gateway's HTTP API for command line programs: blocking, over a Unix socket or TCP, with one
//! persistent connection. It starts no thread and no runtime, so a command costs little more than its round trip.

mod accounts;
mod agents;
mod connection;
mod crontabs;
mod error;
mod events;
mod filters;
mod plans;
mod query;
mod reservations;
mod steps;
mod tls;
mod triggers;

pub use connection::{Endpoint, EndpointError, Response, Tls};
pub use error::ClientError;
pub use events::{EventStream, ServerEvent};
pub use query::{JobQuery, Moment};
pub use steps::{OutputReader, StepAddress};

use connection::{Connection, accepted};
use muster_schemas::{
    CommandId, JobId, RunId, Sequence, StepId,
    cluster::{ClusterChange, ClusterConfig},
    codec,
    event::Commit,
    job::{JobSpec, JobState},
    ledgers::{HandOverRequest, LedgersPage},
    policy::Policy,
    usage::{UsageAnswer, UsageQuery},
    views::{
        CommandAnswer, CopyAheadRequest, DialectsView, DrainRequest, HoldRequest, InfoView, JobDetail, JobDetailsPage,
        JobView, JobsPage, JobsRequest, ModifyRequest, NodeView, NodesPage, PolicyRefusal, PolicyWarning, PowerRequest,
        QueuesPage, ReasonWord, RefusalNote, ReleaseRequest, RequeueRequest, ResumeNodesRequest, RunJobRequest,
        ShrinkRequest, SignalRequest, StepDetail, TellRequest, VerifyProgress,
    },
};
use query::encode;
use serde::{Serialize, de::DeserializeOwned};
use std::time::{Duration, Instant};

/// How long a command whose answer was lost is repeated under the same id.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause before it is repeated.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between attempts to reach a gateway that is away: hundreds of commands may wait for the same one.
const LONGEST_RETRY_PAUSE: Duration = Duration::from_secs(1);
/// The number of jobs whose full details are requested at a time.
const DETAILS_AT_A_TIME: usize = 500;
/// How long a request waits for the head of its answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// A request to submit jobs, [`muster_schemas::views::SubmitRequest`], which borrows the jobs from the caller.
#[derive(Serialize)]
struct Submission<'a> {
    jobs: &'a [JobSpec],
}

/// A client of one gateway.
#[derive(Debug)]
pub struct Client {
    endpoint: Endpoint,
    connection: Option<Connection>,
    patience: Duration,
    /// How long to wait for a gateway that is away; zero means not at all.
    reach: Duration,
    on_failure: fn(&ClientError),
}

impl Client {
    /// A client of the gateway at an endpoint. It connects with the first request.
    pub const fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, connection: None, patience: PATIENCE, reach: Duration::ZERO, on_failure: |_| {} }
    }

    /// The same client, which reports failed commands.
    pub fn telling(self, on_failure: fn(&ClientError)) -> Self {
        Self { on_failure, ..self }
    }

    /// The same client, which repeats a command whose answer was lost for this long. It waits for an unreachable
    /// gateway no longer than this either.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, reach: self.reach.min(patience), ..self }
    }

    /// The same client, which waits this long for a gateway that is away or cannot reach the ledger: it repeats
    /// queries, and commands under the same id. Without this it gives up at once if nothing was sent.
    pub fn waiting(self, reach: Duration) -> Self {
        Self { reach, patience: self.patience.max(reach), ..self }
    }

    /// Submits jobs, all or none. They are on the ledger's disk when this returns.
    ///
    /// # Errors
    /// [`ClientError::AnswerLost`] if it is unknown whether they were accepted; after every other error they were not.
    pub fn submit(&mut self, id: CommandId, jobs: &[JobSpec]) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/jobs", &Submission { jobs })
    }

    /// Submits jobs whose request is JSON already: `{"jobs": [...]}`.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn submit_json(&mut self, id: CommandId, json: &[u8]) -> Result<CommandAnswer, ClientError> {
        parse(&self.command_json(id, "POST", "/v1/jobs", json)?)
    }

    /// Cancels jobs.
    ///
    /// # Errors
    /// As [`submit`](Self::submit), as do all commands below.
    pub fn cancel(&mut self, id: CommandId, request: &JobsRequest) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/jobs/actions/cancel", request)
    }

    /// Adds holds.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn hold(&mut self, id: CommandId, request: &HoldRequest) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/jobs/actions/hold", request)
    }

    /// Removes holds.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn release(&mut self, id: CommandId, request: &ReleaseRequest) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/jobs/actions/release", request)
    }

    /// Suspends running jobs.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn suspend(&mut self, id: CommandId, request: &JobsRequest) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/jobs/actions/suspend", request)
    }

    /// Resumes suspended jobs.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn resume(&mut self, id: CommandId, request: &JobsRequest) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/jobs/actions/resume", request)
    }

    /// Puts jobs back into the queue.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn requeue(&mut self, id: CommandId, request: &RequeueRequest) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/jobs/actions/requeue", request)
    }

    /// Sends a signal to running jobs.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn signal(&mut self, id: CommandId, request: &SignalRequest) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/jobs/actions/signal", request)
    }

    /// Changes jobs.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn modify(&mut self, id: CommandId, request: &ModifyRequest) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/jobs/actions/modify", request)
    }

    /// Sends a message to running jobs.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn tell(&mut self, id: CommandId, request: &TellRequest) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/jobs/actions/tell", request)
    }

    /// Lets a running job give up nodes.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn shrink(&mut self, id: CommandId, job: JobId, request: &ShrinkRequest) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", &format!("/v1/jobs/{job}/shrink"), request)
    }

    /// Starts a waiting job at once.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn run_job(
        &mut self,
        id: CommandId,
        job: JobId,
        request: &RunJobRequest,
    ) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", &format!("/v1/jobs/{job}/run"), request)
    }

    /// Copies the files of a job ahead of its start.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn copy_ahead(
        &mut self,
        id: CommandId,
        job: JobId,
        request: &CopyAheadRequest,
    ) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", &format!("/v1/jobs/{job}/copy_ahead"), request)
    }

    /// Records in the log that this program itself refused something (SL-L-10).
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn note_refusal(&mut self, id: CommandId, note: &RefusalNote) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/refusals", note)
    }

    /// Stops nodes from taking new jobs.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn drain(&mut self, id: CommandId, request: &DrainRequest) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/nodes/actions/drain", request)
    }

    /// Lets drained nodes take jobs again.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn resume_nodes(&mut self, id: CommandId, request: &ResumeNodesRequest) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/nodes/actions/resume", request)
    }

    /// Puts nodes to sleep, or wakes them, as soon as nothing keeps them from it.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn set_power(&mut self, id: CommandId, request: &PowerRequest) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/nodes/actions/power", request)
    }

    /// Replaces the cluster's configuration. With `keep_unnamed`, whatever it does not name stays as it is.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn configure(
        &mut self,
        id: CommandId,
        change: &ClusterChange,
        keep_unnamed: bool,
    ) -> Result<CommandAnswer, ClientError> {
        self.command(id, "PUT", &format!("/v1/config?keep_unnamed={keep_unnamed}"), change)
    }

    /// Sets the policy that planners follow.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn set_policy(&mut self, id: CommandId, policy: &Policy) -> Result<CommandAnswer, ClientError> {
        self.command(id, "PUT", "/v1/policy", policy)
    }

    /// Puts on record that the files of a policy have mistakes; the policy in force stays.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn refuse_policy(&mut self, id: CommandId, refusal: &PolicyRefusal) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/policy/refusals", refusal)
    }

    /// Puts on record what is doubtful about the files of the policy in force.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn warn_of_policy(&mut self, id: CommandId, warning: &PolicyWarning) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/policy/warnings", warning)
    }

    /// One page of jobs.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn jobs_page(&mut self, query: &JobQuery) -> Result<JobsPage, ClientError> {
        self.get(&query.path())
    }

    /// All jobs that match, page by page. The answer is as of the last page.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn jobs(&mut self, query: &JobQuery) -> Result<JobsPage, ClientError> {
        let mut query = query.clone();
        let mut page = self.jobs_page(&query)?;
        while let Some(next) = page.next {
            query.after = Some(next);
            // Later pages show the same moment as the first, whatever happens meanwhile.
            query.moment = Moment::Sequence(page.sequence);
            let more = self.jobs_page(&query)?;
            page.jobs.extend(more.jobs);
            page.next = more.next;
        }
        Ok(page)
    }

    /// All unfinished jobs with this owner and name, and `with_finished` also finished ones that are still remembered:
    /// in one answer, so all of one moment.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn all_jobs(
        &mut self,
        user: Option<&str>,
        name: Option<&str>,
        with_finished: bool,
    ) -> Result<JobsPage, ClientError> {
        let body = self.query(&query::whole_list_path(user, name, with_finished))?;
        // A gateway of another version encodes views differently; both understand JSON.
        codec::decode(&body).or_else(|_| {
            let states = if with_finished { JobState::ALL.to_vec() } else { Vec::new() };
            let (user, name) = (user.map(str::to_owned), name.map(str::to_owned));
            self.jobs(&JobQuery { user, name, states, ..JobQuery::default() })
        })
    }

    /// Details of several jobs, with their steps if wanted: everything except the texts of scripts, environments and
    /// notifications. Jobs that do not exist are left out.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn job_details(&mut self, jobs: &[JobId], with_steps: bool) -> Result<JobDetailsPage, ClientError> {
        let mut all = JobDetailsPage::default();
        for some in jobs.chunks(DETAILS_AT_A_TIME) {
            let page: JobDetailsPage = self.get(&query::details_path(some, with_steps))?;
            all.jobs.extend(page.jobs);
            all.steps.extend(page.steps);
            all.sequence = page.sequence;
        }
        Ok(all)
    }

    /// All details of a job.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn job(&mut self, job: JobId, moment: Moment) -> Result<JobDetail, ClientError> {
        self.get(&moment.add_to(format!("/v1/jobs/{job}")))
    }

    /// The events of a job, oldest first, as CloudEvents.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn job_events(&mut self, job: JobId, moment: Moment) -> Result<Vec<serde_json::Value>, ClientError> {
        self.get(&moment.add_to(format!("/v1/jobs/{job}/events")))
    }

    /// Waits until a job is over.
    ///
    /// # Errors
    /// The request was refused, or not answered and the gateway could not be reached again within this client's
    /// patience.
    pub fn wait_for_job(&mut self, job: JobId) -> Result<JobView, ClientError> {
        let path = format!("/v1/jobs/{job}/wait?timeout_seconds=60");
        self.poll(&path, |view: &JobView| view.outcome.is_some())
    }

    /// Waits until a job is over, for at most this many seconds, up to 300.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn wait_for_end(&mut self, job: JobId, limit_seconds: u32) -> Result<JobView, ClientError> {
        self.get(&format!("/v1/jobs/{job}/wait?timeout_seconds={limit_seconds}"))
    }

    /// Waits until the planner has considered a job: it has its resources or a reason why it waits, or it is over.
    ///
    /// # Errors
    /// As [`wait_for_job`](Self::wait_for_job).
    pub fn wait_for_plan(&mut self, job: JobId) -> Result<JobView, ClientError> {
        let path = format!("/v1/jobs/{job}/wait?until=planned&timeout_seconds=60");
        let is_unseen = |view: &JobView| view.reason.as_ref().is_some_and(|why| why.code == ReasonWord::NotPlannedYet);
        self.poll(&path, |view: &JobView| !is_unseen(view))
    }

    /// Waits until a job runs on all its nodes or is over, for at most this many seconds, up to 300, if a limit is
    /// given.
    ///
    /// # Errors
    /// As [`wait_for_job`](Self::wait_for_job).
    pub fn wait_for_start(&mut self, job: JobId, limit_seconds: Option<u32>) -> Result<JobView, ClientError> {
        let path = format!("/v1/jobs/{job}/wait?until=started&timeout_seconds={}", limit_seconds.unwrap_or(60));
        let before = |state| matches!(state, JobState::Held | JobState::Queued | JobState::Launching);
        self.poll(&path, |view: &JobView| limit_seconds.is_some() || !before(view.state))
    }

    /// Waits until a step is over.
    ///
    /// # Errors
    /// As [`wait_for_job`](Self::wait_for_job).
    pub fn wait_for_step(&mut self, job: JobId, run: RunId, step: StepId) -> Result<StepDetail, ClientError> {
        let path = format!("/v1/jobs/{job}/steps/{step}/wait?run={run}&timeout_seconds=60");
        self.poll(&path, |step: &StepDetail| step.ended.is_some())
    }

    /// All nodes.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn nodes(&mut self, moment: Moment) -> Result<NodesPage, ClientError> {
        self.get(&moment.add_to("/v1/nodes".to_owned()))
    }

    /// One node.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn node(&mut self, name: &str, moment: Moment) -> Result<NodeView, ClientError> {
        self.get(&moment.add_to(format!("/v1/nodes/{}", encode(name))))
    }

    /// All queues and licences.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn queues(&mut self, moment: Moment) -> Result<QueuesPage, ClientError> {
        self.get(&moment.add_to("/v1/queues".to_owned()))
    }

    /// The cluster's configuration.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn config(&mut self, moment: Moment) -> Result<ClusterConfig, ClientError> {
        self.get(&moment.add_to("/v1/config".to_owned()))
    }

    /// The policy that planners follow.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn policy(&mut self, moment: Moment) -> Result<Policy, ClientError> {
        self.get(&moment.add_to("/v1/policy".to_owned()))
    }

    /// Resources requested and used.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn usage(&mut self, query: &UsageQuery, moment: Moment) -> Result<UsageAnswer, ClientError> {
        self.get(&moment.add_to(query::usage_path(query)))
    }

    /// The settings for the commands of dialects.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn dialects(&mut self) -> Result<DialectsView, ClientError> {
        self.get("/v1/dialects")
    }

    /// The identity and health of the system.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn info(&mut self, moment: Moment) -> Result<InfoView, ClientError> {
        self.get(&moment.add_to("/v1/info".to_owned()))
    }

    /// The ledgers that keep one history; none if the cluster has one ledger without others.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn ledgers(&mut self) -> Result<LedgersPage, ClientError> {
        self.get("/v1/ledgers")
    }

    /// Lets another ledger lead.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn hand_over(&mut self, id: CommandId, request: &HandOverRequest) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/ledgers/actions/hand-over", request)
    }

    /// A page of records from a sequence on; empty at the end of the log.
    ///
    /// # Errors
    /// The request was refused or not answered, or the answer is damaged.
    pub fn records(&mut self, from: Sequence, max_bytes: u32) -> Result<Commit, ClientError> {
        let body = self.query(&format!("/v1/records?from={from}&max_bytes={max_bytes}"))?;
        codec::decode(&body).map_err(|error| ClientError::Protocol(format!("records are damaged: {error}")))
    }

    /// Verifies the log from a sequence on and reports progress. Returns the last report.
    ///
    /// # Errors
    /// The request was refused, or the connection to the gateway was lost.
    pub fn verify(
        &mut self,
        from: Sequence,
        mut progress: impl FnMut(&VerifyProgress),
    ) -> Result<VerifyProgress, ClientError> {
        let mut connection = self.connect()?;
        connection.send("GET", &format!("/v1/audit/verify?from={from}"), &[], None, &self.endpoint)?;
        // One report can take long on a large log.
        connection.set_timeout(None)?;
        let mut body = connection.into_stream()?;
        let mut last = None;
        while let Some(line) = body.read_line()? {
            let report: VerifyProgress = parse(line.as_bytes())?;
            progress(&report);
            last = Some(report);
        }
        last.ok_or_else(|| ClientError::Protocol("the verification told nothing".to_owned()))
    }

    /// The endless stream of events. `from` is the first sequence wanted; `None` means only new events.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn events(
        &mut self,
        from: Option<Sequence>,
        job: Option<JobId>,
        kinds: &[String],
    ) -> Result<EventStream, ClientError> {
        EventStream::open(self.endpoint.clone(), from, job, kinds)
    }

    /// The text of a resource such as `/metrics`.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn text(&mut self, path: &str) -> Result<String, ClientError> {
        let body = self.query(path)?;
        String::from_utf8(body).map_err(|_| ClientError::Protocol(format!("{path} is not text")))
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn get<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, ClientError> {
        parse(&self.query(path)?)
    }

    /// Asks for a resource, and repeats the request while a gateway that is away is waited for.
    fn query(&mut self, path: &str) -> Result<Vec<u8>, ClientError> {
        let deadline = Instant::now() + self.reach;
        let mut pause = RETRY_PAUSE;
        loop {
            match self.ask("GET", path, &[], None).and_then(accepted) {
                Err(error) if error.may_pass() && Instant::now() < deadline => wait_longer(&mut pause),
                answered => return answered,
            }
        }
    }

    /// Asks until an answer is final. The gateway may restart meanwhile.
    fn poll<T: DeserializeOwned>(&mut self, path: &str, is_final: impl Fn(&T) -> bool) -> Result<T, ClientError> {
        let mut last_contact = Instant::now();
        loop {
            let answer = self.ask("GET", path, &[], None).and_then(accepted);
            match answer.and_then(|body| parse::<T>(&body)) {
                Ok(view) if is_final(&view) => return Ok(view),
                Ok(_) => last_contact = Instant::now(),
                Err(error) if error.is_refusal() && !error.is_unavailable() => return Err(error),
                Err(error) if last_contact.elapsed() >= self.patience => return Err(error),
                Err(_) => std::thread::sleep(RETRY_PAUSE),
            }
        }
    }

    /// Sends a command with a body.
    fn command<B: Serialize, T: DeserializeOwned>(
        &mut self,
        id: CommandId,
        method: &str,
        path: &str,
        body: &B,
    ) -> Result<T, ClientError> {
        let json = serde_json::to_vec(body).map_err(|error| ClientError::Protocol(error.to_string()))?;
        parse(&self.command_json(id, method, path, &json)?)
    }

    /// Sends a command, and repeats it under the same id while its answer is lost.
    fn command_json(&mut self, id: CommandId, method: &str, path: &str, json: &[u8]) -> Result<Vec<u8>, ClientError> {
        self.repeat(id, method, path, json).inspect_err(self.on_failure)
    }

    fn repeat(&mut self, id: CommandId, method: &str, path: &str, json: &[u8]) -> Result<Vec<u8>, ClientError> {
        let begin = Instant::now();
        let mut sent_before = false;
        let mut pause = RETRY_PAUSE;
        loop {
            let result = self.ask(method, path, json, Some(id)).and_then(accepted);
            let error = match result {
                Ok(body) => return Ok(body),
                Err(error) => error,
            };
            if !error.may_pass() {
                return Err(error);
            }
            sent_before |= !matches!(error, ClientError::Unreachable { .. });
            if !sent_before {
                if begin.elapsed() >= self.reach {
                    return Err(error);
                }
                wait_longer(&mut pause);
                continue;
            }
            if begin.elapsed() >= self.patience {
                return Err(ClientError::AnswerLost(error.to_string()));
            }
            std::thread::sleep(RETRY_PAUSE);
        }
    }

    /// One request and its whole answer. A persistent connection that the gateway has closed meanwhile is replaced and
    /// the request repeated: a query changes nothing, and a command has the same id.
    fn ask(&mut self, method: &str, path: &str, body: &[u8], id: Option<CommandId>) -> Result<Response, ClientError> {
        let answer = self.exchange(method, path, body, id);
        answer.map_err(|error| match error {
            ClientError::AnswerLost(reason) if method == "GET" => {
                ClientError::Unreachable { endpoint: self.endpoint.to_string(), reason }
            }
            error => error,
        })
    }

    fn exchange(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
        id: Option<CommandId>,
    ) -> Result<Response, ClientError> {
        let kept = self.connection.take();
        let was_sent = kept.is_some();
        if let Some(mut kept) = kept
            && let Ok(response) = kept.exchange(method, path, body, id, &self.endpoint)
        {
            self.connection = response.keep_alive.then_some(kept);
            return Ok(response);
        }
        let mut fresh = match self.connect() {
            Err(error) if was_sent => return Err(ClientError::AnswerLost(error.to_string())),
            connected => connected?,
        };
        let response = fresh.exchange(method, path, body, id, &self.endpoint)?;
        self.connection = response.keep_alive.then_some(fresh);
        Ok(response)
    }

    fn connect(&self) -> Result<Connection, ClientError> {
        let mut connection = Connection::open(&self.endpoint)?;
        connection.set_timeout(Some(ANSWER_TIMEOUT))?;
        Ok(connection)
    }
}

/// Pauses before the next attempt to reach a gateway; each pause is longer.
fn wait_longer(pause: &mut Duration) {
    std::thread::sleep(*pause);
    *pause = (*pause * 2).min(LONGEST_RETRY_PAUSE);
}

fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, ClientError> {
    serde_json::from_slice(json).map_err(|error| ClientError::Protocol(format!("the gateway's answer: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A gateway with too many connections accepts one and closes it.
    #[test]
    fn a_query_whose_connection_ends_has_changed_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let gateway = std::thread::spawn(move || {
            for _ in 0..2 {
                drop(listener.accept().unwrap());
            }
        });
        let mut client = Client::new(format!("http://{address}").parse().unwrap()).with_patience(Duration::ZERO);
        let asked = client.job(JobId::job(1), Moment::default()).unwrap_err();
        assert!(matches!(asked, ClientError::Unreachable { .. }), "{asked:?}");
        let one: JobsRequest = serde_json::from_str(r#"{"jobs":{"ids":["1"]}}"#).unwrap();
        let cancelled = client.cancel(CommandId::new_now(), &one).unwrap_err();
        assert!(matches!(cancelled, ClientError::AnswerLost(_)), "{cancelled:?}");
        gateway.join().unwrap();
    }
}
