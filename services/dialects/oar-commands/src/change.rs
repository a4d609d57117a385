//! `oardel`, `oarhold` and `oarresume`: each does one thing to each of the jobs that it names. A failure does not keep it
//! from the next job; the exit status is that of the last failure.

use super::{
    cluster::{Cluster, MARK},
    configuration,
    ended::{Ended, Failure, print},
    events::{CHECKPOINT_SIGNAL, at_and_type},
    jobs,
    lower::{BESTEFFORT_CLASS, keys},
    select,
    site::Site,
    words::{self, Known, Takes, Words},
};
use muster_cli::{connection::ConnectionOptions, stderr_line, values::parse_signal};
use muster_client::{ClientError, Moment};
use muster_oar::{
    life::{deletion, state::State},
    resources,
    text::shown,
};
use muster_schemas::{
    CommandId, Timestamp,
    accounts::DEFAULT_CLASS,
    command::{JobEnding, JobSelection},
    event::JobChange,
    job::{Holds, JobState, JobType},
    views::{
        ClassRequest, DrainRequest, EndRequest, ErrorCode, HoldRequest, JobDetail, JobsRequest, ModifyRequest,
        NodeStateWord, ReleaseRequest, SignalRequest,
    },
};
use std::collections::{BTreeMap, BTreeSet};

const OPTIONS: [Known; 9] = [
    ('\0', "array", Takes::Nothing),
    ('\0', "sql", Takes::Value),
    ('c', "checkpoint", Takes::Nothing),
    ('s', "signal", Takes::Value),
    ('b', "besteffort", Takes::Nothing),
    ('r', "running", Takes::Nothing),
    ('\0', "force-terminate-finishing-job", Takes::Nothing),
    ('h', "help", Takes::Nothing),
    ('V', "version", Takes::Nothing),
];

/// Runs a command line of one of these commands.
pub fn run(connection: &ConnectionOptions, tool: &str, words: &[String]) -> Ended {
    let own = |(_, name, _): &Known| match *name {
        "checkpoint" | "signal" | "besteffort" | "force-terminate-finishing-job" => tool == "oardel",
        "running" => tool == "oarhold",
        _ => true,
    };
    let known: Vec<Known> = OPTIONS.into_iter().filter(|option| own(option)).collect();
    let words = words::read(words, &known)?;
    let usage = format!("usage: {tool} [OPTIONS] JOB ...\n       {tool} [OPTIONS] --sql FILTER\n");
    if words.has("help") {
        print(&usage);
        return Ok(0);
    }
    if words.operands.is_empty() && !words.has("sql") {
        return Err(Failure::new(usage.trim_end()));
    }
    let signal = words.value("signal").map(parse_signal).transpose().map_err(Failure::new)?;
    let mut site = Site::open(connection)?;
    let (jobs, mut status) = meant(&mut site, tool, &words)?;
    let is_checkpoint = words.has("checkpoint");
    let act = Act {
        tool,
        signal,
        is_checkpoint,
        turns: words.has("besteffort"),
        closes: words.has("force-terminate-finishing-job"),
        running_too: words.has("running"),
    };
    let mut deleted = Vec::new();
    for (id, detail) in jobs {
        match act.on(&mut site, id, detail.as_ref()) {
            Ok(is_deleted) => deleted.extend(is_deleted.then(|| id.to_string())),
            Err(failure) => {
                stderr_line!("{}", failure.text);
                status = failure.status;
            }
        }
    }
    if !deleted.is_empty() {
        print(&format!("The job(s) [ {} ] will be deleted in a near future.\n", deleted.join(" ")));
    }
    Ok(status)
}

type Meant = Vec<(u64, Option<JobDetail>)>;

/// The jobs that the command line names, with `None` for those that do not exist, and the status for words that name none.
fn meant(site: &mut Site, tool: &str, words: &Words) -> Result<(Meant, u8), Failure> {
    let malformed = if tool == "oardel" { 4 } else { 2 };
    let (mut found, mut status) = (Meant::new(), 0);
    let mut ids = Vec::new();
    for word in &words.operands {
        match deletion::id(word) {
            Ok(id) => ids.push(id),
            Err(_) => {
                let kind = if words.has("array") { "job array" } else { "job" };
                stderr_line!("[ERROR] \"{}\" is not a valid {kind} identifier", shown(word));
                status = malformed;
            }
        }
    }
    if words.has("array") {
        for id in ids {
            let jobs = select::of_array(site, id)?;
            if jobs.is_empty() {
                stderr_line!("[ERROR] \"{id}\" is not a valid array job");
                status = malformed;
            }
            found.extend(jobs.into_iter().map(|detail| (detail.job.own_number(), Some(detail))));
        }
    } else {
        let details = select::by_ids(site, &ids)?;
        let mut by_id: BTreeMap<u64, JobDetail> =
            details.into_iter().map(|detail| (detail.job.own_number(), detail)).collect();
        found.extend(ids.into_iter().map(|id| (id, by_id.remove(&id))));
    }
    if let Some(filter) = words.value("sql") {
        let jobs = select::by_filter(site, filter, &Cluster::default())?;
        found.extend(jobs.into_iter().map(|(detail, job)| (job.id, Some(detail))));
    }
    Ok((found, status))
}

/// What a command does to its jobs.
struct Act<'a> {
    tool: &'a str,
    signal: Option<u8>,
    is_checkpoint: bool,
    /// Whether jobs are turned into best effort, or back.
    turns: bool,
    /// Whether jobs that do not end are closed without their nodes.
    closes: bool,
    running_too: bool,
}

impl Act<'_> {
    /// Does it to one job; says whether that is deleted.
    fn on(&self, site: &mut Site, id: u64, detail: Option<&JobDetail>) -> Result<bool, Failure> {
        let failed = |text: String, status: u8| Failure { text, status };
        match self.tool {
            "oarhold" | "oarresume" => {
                let verb = if self.tool == "oarhold" { "hold" } else { "resume" };
                let refused = |why: &str| failed(format!("/!\\ Cannot {verb} {id} : {why}"), 1);
                let at_front = "a job of the type deploy or cosystem cannot be suspended.";
                let detail = detail.ok_or_else(|| refused("this job does not exist."))?;
                let is_suspension = verb == "hold" && self.running_too && jobs::state(detail) == State::Running;
                if is_suspension && detail.spec.types.contains(&JobType::HandsOff) {
                    return Err(Failure { status: 2, ..refused(at_front) });
                }
                let done = match verb {
                    "hold" => hold(site, detail, self.running_too),
                    _ => resume(site, detail),
                };
                done.map_err(|why| refused(&why))?;
                let request = if verb == "hold" { "Hold" } else { "Resume" };
                print(&format!("[{id}] {request} request was sent to the OAR server.\n"));
                Ok(false)
            }
            _ if self.turns => {
                let refused = |(why, status): (String, u8)| failed(format!("Cannot turn {id} ; {why}"), status);
                let detail = detail.ok_or_else(|| refused(("This job does not exist.".to_owned(), 5)))?;
                let is_besteffort = turn(site, detail).map_err(refused)?;
                let now = if is_besteffort { "makes way for others now" } else { "no longer makes way for others" };
                print(&format!("The job {id} {now}.\n"));
                Ok(false)
            }
            _ if self.closes => {
                let refused = |(why, status): (String, u8)| failed(format!("Cannot close {id} ; {why}"), status);
                let detail = detail.ok_or_else(|| refused(("This job does not exist.".to_owned(), 4)))?;
                close(site, detail).map_err(refused)?;
                print(&format!("The job {id} is closed.\n"));
                Ok(false)
            }
            _ if self.is_checkpoint || self.signal.is_some() => {
                let word = if self.is_checkpoint { "checkpoint" } else { "signal" };
                let refused = |why: &str, status| failed(format!("Cannot {word} {id} ; {why}"), status);
                let detail = detail.ok_or_else(|| refused("This job does not exist.", 5))?;
                self.send(site, detail).map_err(|(why, status)| refused(&why, status))?;
                print(&format!("The job {id} was sent the signal.\n"));
                Ok(false)
            }
            _ => {
                print(&format!("Deleting the job = {id} ..."));
                let done = detail
                    .map_or_else(|| Err(("This job does not exist.".to_owned(), 4)), |detail| delete(site, detail));
                print(if done.is_ok() { "REGISTERED.\n" } else { "ERROR.\n" });
                done.map_err(|(why, status)| failed(format!("Cannot frag {id} ; {why}"), status))
            }
        }
    }

    /// OAR-S-31, OAR-S-32
    fn send(&self, site: &mut Site, detail: &JobDetail) -> Result<(), (String, u8)> {
        let state = jobs::state(detail);
        let is_interactive = detail.spec.attributes.contains_key(keys::INTERACTIVE);
        let request = deletion::Request { has_right: true, state, is_being_deleted: false, is_interactive };
        deletion::signal(request).map_err(|status| match status {
            7 => ("The job is Interactive.".to_owned(), status),
            _ => ("This job is not running.".to_owned(), status),
        })?;
        let own = detail.spec.checkpoint.map_or(CHECKPOINT_SIGNAL, |checkpoint| checkpoint.signal);
        let signal = self.signal.filter(|_| !self.is_checkpoint).unwrap_or(own);
        let request = SignalRequest { jobs: only(detail), signal };
        site.client.signal(CommandId::new_now(), &request).map(drop).map_err(|error| match error.code() {
            Some(ErrorCode::PermissionDenied) => ("You are not the right user.".to_owned(), 1),
            Some(ErrorCode::Conflict) => ("This job is not running.".to_owned(), 5),
            _ => (error.to_string(), 3),
        })
    }
}

fn only(detail: &JobDetail) -> JobSelection {
    JobSelection::Ids(vec![detail.job.id])
}

/// Turns a running job into best effort, or back; whether it is best effort now (OAR-T-26). Its type follows its class, and it
/// does not matter if that cannot be shown.
fn turn(site: &mut Site, detail: &JobDetail) -> Result<bool, (String, u8)> {
    let failed = |error: ClientError| match error.code() {
        Some(ErrorCode::PermissionDenied) => ("You are not the right user.".to_owned(), 1),
        Some(ErrorCode::NotFound) => (format!("there is no service class '{BESTEFFORT_CLASS}'."), 8),
        _ => (error.to_string(), 8),
    };
    if !matches!(detail.job.state, JobState::Running | JobState::Suspended) {
        return Err(("This job is not running.".to_owned(), 5));
    }
    let turned = detail.job.class.as_deref() != Some(BESTEFFORT_CLASS);
    let first = detail.spec.components.first().and_then(|part| part.class.clone());
    let before = first.filter(|class| class != BESTEFFORT_CLASS).unwrap_or_else(|| DEFAULT_CLASS.to_owned());
    let class = if turned { BESTEFFORT_CLASS.to_owned() } else { before };
    site.client.change_class(CommandId::new_now(), &ClassRequest { jobs: only(detail), class }).map_err(failed)?;
    let types = detail.spec.attributes.get(keys::TYPES).map(String::as_str).unwrap_or_default();
    let others = types.lines().filter(|word| *word != "besteffort");
    let types: Vec<&str> = others.chain(turned.then_some("besteffort")).collect();
    let attributes = [(keys::TYPES.to_owned(), types.join("\n"))].into();
    let change = JobChange { attributes, ..JobChange::default() };
    site.client.modify(CommandId::new_now(), &ModifyRequest { jobs: only(detail), change }).map_err(failed)?;
    Ok(turned)
}

/// The time that a program of the server has after a job.
const SERVER_EPILOGUE_SECONDS: u32 = 60;

/// Closes a job that has been ending for longer than its nodes and the server can need, without the nodes that have not said
/// that it is over. They are suspected (OAR-S-24).
fn close(site: &mut Site, detail: &JobDetail) -> Result<(), (String, u8)> {
    let failed = |error: ClientError| match error.code() {
        Some(ErrorCode::PermissionDenied) => ("You are not the right user.".to_owned(), 1),
        Some(ErrorCode::Conflict) => ("This job is not being ended.".to_owned(), 8),
        _ => (error.to_string(), 8),
    };
    let config = configuration::config(site).map_err(|failure| (failure.text, failure.status))?;
    let patience = u64::from(config.settings.node_lost_after_seconds) * 2 + u64::from(SERVER_EPILOGUE_SECONDS);
    let events = site.client.job_events(detail.job.id, Moment::Now).map_err(failed)?;
    let ending_for = ending_since(&events).map(|since| Timestamp::now().micros_since(since) / 1_000_000);
    match ending_for {
        None => return Err(("This job is not being ended.".to_owned(), 8)),
        Some(seconds) if u64::try_from(seconds).unwrap_or(0) <= patience => {
            let why = format!("It has been ending for {seconds} s, and can be closed after {patience} s.");
            return Err((why, 8));
        }
        Some(_) => {}
    }
    let out: BTreeSet<String> = out_of_service(site).map_err(failed)?;
    let ending = JobEnding { gives_up: true, ..JobEnding::default() };
    let request = EndRequest { jobs: only(detail), ending };
    site.client.end_jobs(CommandId::new_now(), &request).map_err(failed)?;
    let left = detail.runs.last().into_iter().flat_map(|run| &run.nodes).filter(|part| part.exit.is_none());
    let nodes: BTreeSet<&String> = left.map(|part| &part.node).filter(|node| !out.contains(*node)).collect();
    if nodes.is_empty() {
        return Ok(());
    }
    let reason = format!("{MARK}{}", resources::state::State::Suspected.word());
    let request = DrainRequest { nodes: nodes.into_iter().cloned().collect(), reason, is_down: false };
    site.client.drain(CommandId::new_now(), &request).map(drop).map_err(failed)
}

/// Since when the last run of a job has been ending.
fn ending_since(events: &[serde_json::Value]) -> Option<Timestamp> {
    let (seconds, _) = events.iter().rev().filter_map(at_and_type).find(|(_, kind)| *kind == "job.stopping")?;
    Some(Timestamp::from_unix_seconds(seconds))
}

/// The nodes that take no new jobs.
fn out_of_service(site: &mut Site) -> Result<BTreeSet<String>, ClientError> {
    let views = site.client.nodes(Moment::Now)?.nodes;
    let out = views.into_iter().filter(|view| view.state == NodeStateWord::Drained);
    Ok(out.map(|view| view.spec.name).collect())
}

/// OAR-S-20, OAR-S-22, OAR-S-25
fn delete(site: &mut Site, detail: &JobDetail) -> Result<bool, (String, u8)> {
    if detail.job.outcome.is_some() {
        return Ok(false);
    }
    if detail.job.stopping.is_some() {
        return Err(("This job was already killed.".to_owned(), 6));
    }
    let done = site.client.cancel(CommandId::new_now(), &JobsRequest { jobs: only(detail) });
    done.map(|_| true).map_err(|error| match error.code() {
        Some(ErrorCode::PermissionDenied) => ("You are not the right user.".to_owned(), 1),
        Some(ErrorCode::Conflict) => ("This job was already killed.".to_owned(), 6),
        _ => (error.to_string(), 1),
    })
}

/// Why a job was neither held nor resumed, in OAR's words.
fn refused(error: &ClientError) -> String {
    match error.code() {
        Some(ErrorCode::PermissionDenied) => format!("you are not the right user: {error}"),
        Some(ErrorCode::Conflict) => format!("the job is not in the right state: {error}"),
        _ => error.to_string(),
    }
}

/// OAR-S-01, OAR-S-02
fn hold(site: &mut Site, detail: &JobDetail, running_too: bool) -> Result<(), String> {
    let id = CommandId::new_now();
    let done = match jobs::state(detail) {
        State::Waiting => {
            let holds = Holds { user: true, ..Holds::default() };
            site.client.hold(id, &HoldRequest { jobs: only(detail), holds, reason: "oarhold".to_owned() })
        }
        State::Running | State::Resuming if running_too => site.client.suspend(id, &JobsRequest { jobs: only(detail) }),
        _ => return Err("the job is not in the right state (try '-r' option).".to_owned()),
    };
    done.map(drop).map_err(|error| refused(&error))
}

/// OAR-S-01, OAR-S-03
fn resume(site: &mut Site, detail: &JobDetail) -> Result<(), String> {
    let id = CommandId::new_now();
    let done = match jobs::state(detail) {
        State::Hold => site.client.release(id, &ReleaseRequest { jobs: only(detail), holds: detail.job.holds }),
        State::Suspended => site.client.resume(id, &JobsRequest { jobs: only(detail) }),
        _ => return Err("the job is neither Hold nor Suspended.".to_owned()),
    };
    done.map(drop).map_err(|error| refused(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// OAR-S-24: a job can have been stopped before, for another run.
    #[test]
    fn the_last_stop_of_a_job_counts() {
        let event = |kind: &str, second: u32| json!({ "type": format!("muster.job.{kind}.v1"), "time": format!("1970-01-01T00:00:{second:02}Z") });
        let events = [event("started", 1), event("stopping", 2), event("requeued", 3), event("stopping", 40)];
        assert_eq!(ending_since(&events), Some(Timestamp(40_000_000)));
        assert_eq!(ending_since(&events[..1]), None);
    }
}
