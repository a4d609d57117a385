//! The actions of a scheduling program, other than starts and comments, as commands of the ledger (PBS-X-11, PBS-X-19,
//! PBS-X-22). Words are read as the commands of PBS read them.

use super::{message::Seen, picture};
use jiff::tz::TimeZone;
use muster_domain::{State, jobs::Job};
use muster_pbs::{
    flavour::Flavour,
    queries::{self, Signal},
    refusal::Refusal as Misread,
    submit::{Present, Reading, Rules},
    text::quoted,
};
use muster_pbs_script::action::{Action, Change, Code, Gate, Refusal};
use muster_schemas::{
    JobId, Timestamp,
    cluster::{ClusterChange, QueueSpecChange},
    command::{Command, JobEnding, JobSelection, Refusal as Refused, RefusalCode},
    event::JobChange,
    job::{Holds, JobSpec},
};

/// The attributes that can be altered, with the options of `qalter` that do so.
const OPTIONS: [(&str, &str); 6] = [
    ("Account_Name", "-A"),
    ("Job_Name", "-N"),
    ("Priority", "-p"),
    ("Rerunable", "-r"),
    ("Resource_List", "-l"),
    ("depend", "-W"),
];
/// The attribute with the time before which a job does not start, in seconds since 1970.
const EXECUTION_TIME: &str = "Execution_Time";

/// The job that a program names: by its number, with or without the name of a server.
pub(super) fn job_of<'s>(state: &'s State, name: &str) -> Result<&'s Job, Refusal> {
    let unknown = || Refusal::new(Code::UnknownJob, format!("there is no job {name}"));
    let id: JobId = name.split('.').next().unwrap_or_default().parse().map_err(|_| unknown())?;
    state.job(id).ok_or_else(unknown)
}

/// The number of the job that a program names.
///
/// # Errors
/// There is none.
pub(crate) fn id_of(state: &State, name: &str) -> Result<JobId, Refusal> {
    Ok(job_of(state, name)?.id)
}

/// The command that carries an action out. `spec` is the specification of its job, as far as it is needed.
///
/// # Errors
/// The action names what does not exist, or cannot be carried out here. Everything else the ledger refuses.
pub(crate) fn command_of(
    state: &State,
    action: &Action,
    spec: Option<&JobSpec>,
    now: Timestamp,
) -> Result<Command, Refusal> {
    let jobs = |name: &str| job_of(state, name).map(|job| JobSelection::Ids(vec![job.id]));
    Ok(match action {
        Action::Rerun { job } => {
            require_rerunnable(job_of(state, job)?)?;
            Command::Requeue { jobs: jobs(job)?, hold: false, delay_seconds: 0 }
        }
        // Any other time between warning and end is that of the job or the cluster.
        Action::Delete { job, delay } => {
            let ending = JobEnding { is_forced: *delay == Some(0), ..JobEnding::default() };
            Command::EndJobs { jobs: jobs(job)?, ending }
        }
        Action::Hold { job, kinds } => {
            let (jobs, holds) = (jobs(job)?, holds(kinds.as_deref())?);
            Command::Hold { jobs, holds, reason: "held by the scheduling program".to_owned() }
        }
        Action::Release { job, kinds } => Command::Release { jobs: jobs(job)?, holds: holds(kinds.as_deref())? },
        Action::Signal { job, signal } => signal_command(jobs(job)?, signal)?,
        Action::Move { job, to } => {
            let queue = to.as_deref().unwrap_or(&state.settings().default_queue);
            let queue = queue.split('@').next().unwrap_or_default();
            let known = state.queue(queue).ok_or_else(|| unknown_queue(queue))?;
            if !known.spec.enabled {
                return Err(Refusal::new(Code::QueueDisabled, format!("queue {queue} takes no jobs")));
            }
            let change = JobChange { queue: Some(queue.to_owned()), ..JobChange::default() };
            Command::Modify { jobs: jobs(job)?, change }
        }
        Action::Alter { job, changes } => {
            Command::Modify { jobs: jobs(job)?, change: alteration(state, changes, spec, now)? }
        }
        Action::StageIn { job, place } => {
            let (job, node) = (job_of(state, job)?.id, place.as_deref().map(str::trim).filter(|node| !node.is_empty()));
            Command::CopyAhead { job, node: node.map(str::to_owned) }
        }
        Action::Queue { queue, set } => Command::Configure { change: switch(state, queue, *set)?, keep_unnamed: true },
        Action::Run { .. }
        | Action::AsyRun { .. }
        | Action::Comment { .. }
        | Action::Reserve { .. }
        | Action::Unreserve { .. } => {
            return Err(Refusal::new(Code::NotSupported, format!("{} is no command of the ledger", action.word())));
        }
    })
}

fn require_rerunnable(job: &Job) -> Result<(), Refusal> {
    let is_rerunnable = job.extras.as_ref().is_some_and(|extras| extras.requeue.on_node_lost);
    // Jobs of other dialects say nothing about it.
    if is_rerunnable || job.dialect.as_deref() != Some(muster_pbs::NAME) {
        return Ok(());
    }
    Err(Refusal::new(Code::NotRerunnable, format!("job {} is not to be run again", job.id)))
}

fn holds(kinds: Option<&str>) -> Result<Holds, Refusal> {
    let words = ["-h".to_owned(), kinds.unwrap_or("u").to_owned(), "1".to_owned()];
    let holds = queries::qhold(&words).map_err(misread)?.holds;
    let none = || Refusal::new(Code::BadValue, "expected types of the hold, of u, o and s");
    if holds.is_empty() { Err(none()) } else { Ok(holds) }
}

fn signal_command(jobs: JobSelection, name: &str) -> Result<Command, Refusal> {
    let unknown = |_| Refusal::new(Code::UnknownSignal, format!("there is no signal {name}"));
    let words = ["-s".to_owned(), name.to_owned(), "1".to_owned()];
    Ok(match queries::qsig(&words).map_err(unknown)?.0 {
        Signal::Number(0) => return Err(Refusal::new(Code::NotSupported, "signal 0 is sent to no process")),
        Signal::Number(signal) => Command::Signal { jobs, signal },
        Signal::Suspend => Command::Suspend { jobs },
        Signal::Resume => Command::Resume { jobs },
    })
}

fn switch(state: &State, queue: &str, set: Gate) -> Result<Box<ClusterChange>, Refusal> {
    state.queue(queue).ok_or_else(|| unknown_queue(queue))?;
    let mut change = QueueSpecChange { name: queue.to_owned(), ..QueueSpecChange::default() };
    match set {
        Gate::Enable | Gate::Disable => change.enabled = Some(set == Gate::Enable),
        Gate::Start | Gate::Stop => change.started = Some(set == Gate::Start),
    }
    Ok(Box::new(ClusterChange { queues: vec![change], ..ClusterChange::default() }))
}

/// The change of a job, as `qalter` makes it.
fn alteration(state: &State, changes: &[Change], spec: Option<&JobSpec>, now: Timestamp) -> Result<JobChange, Refusal> {
    let mut words = Vec::new();
    let mut begin = None;
    for Change { name, resource, value } in changes {
        if name == EXECUTION_TIME {
            let seconds = value.parse::<i64>().ok().filter(|seconds| *seconds >= 0);
            let seconds = seconds.ok_or_else(|| bad_value(name, "seconds since 1970"))?;
            begin = Some(Timestamp(seconds.saturating_mul(1_000_000)));
            continue;
        }
        let option = OPTIONS.iter().find(|(known, _)| known == name).map(|(_, option)| *option);
        let option = option.ok_or_else(|| {
            Refusal::new(Code::UnknownAttribute, format!("attribute {name} cannot be changed after submission"))
        })?;
        let value = match (name.as_str(), resource) {
            ("Resource_List", Some(resource)) => format!("{resource}={}", quoted(value, &[','])),
            ("Resource_List", None) => return Err(bad_value(name, "the name of a resource beside the value")),
            ("depend", _) => format!("depend={value}"),
            ("Rerunable", _) if value.to_ascii_lowercase().starts_with(['y', 't']) => "y".to_owned(),
            ("Rerunable", _) if value.to_ascii_lowercase().starts_with(['n', 'f']) => "n".to_owned(),
            _ => value.clone(),
        };
        words.extend([option.to_owned(), value]);
    }
    words.push("1".to_owned());
    let zoned = now.to_jiff().to_zoned(TimeZone::UTC);
    let reading = Reading { now: &zoned, flavour: Flavour::default(), array_limit: u32::MAX };
    let alteration = queries::alteration(&words, &reading).map_err(misread)?;
    let node_names = Some(state.nodes().map(|node| node.spec.name.clone()).collect());
    let rules = Rules { node_names, ..Rules::default() };
    let unknown = JobSpec::default();
    // Programs change neither mails nor output files, so nobody asks for the owner and for folders.
    let present = Present { spec: spec.unwrap_or(&unknown), owner: "", directory: "/", is_folder: |_| false };
    let change = queries::change(&alteration, &present, &rules).map_err(misread)?.change;
    Ok(JobChange { begin: begin.or(change.begin), ..change })
}

/// What an action was about, as it is now.
pub(crate) fn seen(state: &State, action: &Action) -> Seen {
    if let Action::Queue { queue, .. } = action {
        return state.queue(queue).map_or(Seen::Same, |queue| Seen::Queue(Box::new(picture::queue(queue))));
    }
    let Some(name) = action.job() else { return Seen::Same };
    match job_of(state, name) {
        Ok(job) if !job.is_finished() => Seen::Job(Box::new(picture::job_now(state, job))),
        _ => Seen::NoJob,
    }
}

/// A refusal of the ledger in PBS's words.
pub(crate) fn refusal_of(refused: &Refused) -> Refusal {
    let code = match refused.code {
        RefusalCode::NotFound => Code::UnknownJob,
        RefusalCode::Invalid => Code::BadValue,
        RefusalCode::Conflict => Code::BadState,
        RefusalCode::LimitReached | RefusalCode::Busy => Code::NoResources,
        RefusalCode::PermissionDenied => Code::NotSupported,
        RefusalCode::StorageFailed | RefusalCode::Unavailable => Code::Internal,
    };
    Refusal::new(code, refused.message.clone())
}

fn misread(misread: Misread) -> Refusal {
    let code = match misread {
        Misread::Unsupported { .. } => Code::UnknownAttribute,
        _ => Code::BadValue,
    };
    Refusal::new(code, misread.to_string())
}

fn bad_value(name: &str, expected: &str) -> Refusal {
    Refusal::new(Code::BadValue, format!("{name}: expected {expected}"))
}

fn unknown_queue(name: &str) -> Refusal {
    Refusal::new(Code::UnknownQueue, format!("there is no queue {name}"))
}
