//! Jobs of the system as OAR's tables have them.

use super::{cluster::Cluster, lower::keys};
use muster_oar::{
    NAME,
    dialect::NAMELESS,
    life::{
        launch::{self, Form, Message},
        neutral::{self, Neutral},
        state::State,
    },
    options::output::filled,
    show::jobs::{Event, Job},
    text::decimal,
};
use muster_schemas::{
    Timestamp,
    job::{ExitStatus, JobState, JobType, Outcome, Program},
    views::{JobDetail, JobView, OutcomeView, OutcomeWord},
};

/// A time in seconds since the epoch.
pub use super::site::seconds;

/// The state of a job.
pub fn state(detail: &JobDetail) -> State {
    let types = &detail.spec.types;
    // A reservation that the planner has not answered yet.
    let is_unanswered = types.contains(&JobType::FixedStart) && detail.job.slot_start.is_none();
    // A job that ran, waited again and was deleted then did not end with its run.
    let last = detail.runs.last().filter(|run| run.started.is_some() && run.outcome == detail.job.outcome);
    let is_noop = types.contains(&JobType::Noop);
    let told = detail.spec.attributes.get(keys::TYPES).map_or("", String::as_str);
    let is_pulled = told.lines().any(|kind| kind.trim() == "desktop_computing");
    state_of(&detail.job, (is_noop, is_pulled), is_unanswered, last.is_some())
}

/// Whether a job runs its command on a host apart from the nodes that it holds.
pub fn is_apart(detail: &JobDetail) -> bool {
    detail.spec.types.contains(&JobType::HandsOff) && detail.spec.components.len() > 1
}

/// The state of a job in a list, where its types are not known.
pub fn listed_state(view: &JobView) -> State {
    state_of(view, (false, false), false, view.started.is_some())
}

/// The state of a job, whose type may be noop or desktop computing.
fn state_of(view: &JobView, (is_noop, is_pulled): (bool, bool), is_unanswered: bool, has_run: bool) -> State {
    let outcome = view.outcome.as_ref().map(outcome);
    neutral::state(Neutral {
        state: view.state,
        outcome: outcome.as_ref(),
        is_held: !view.holds.is_empty(),
        is_unanswered,
        is_resuming: view.is_resuming,
        is_noop,
        is_pulled,
        has_run,
    })
}

fn outcome(view: &OutcomeView) -> Outcome {
    let detail = || view.detail.clone().unwrap_or_default();
    match view.outcome {
        OutcomeWord::Completed => Outcome::Completed,
        OutcomeWord::Failed => Outcome::Failed(view.exit_status.unwrap_or(ExitStatus::Code(1))),
        OutcomeWord::LaunchFailed => Outcome::LaunchFailed(detail()),
        OutcomeWord::Cancelled => Outcome::Cancelled,
        OutcomeWord::TimedOut => Outcome::TimedOut,
        OutcomeWord::OutOfMemory => Outcome::OutOfMemory,
        OutcomeWord::Preempted => Outcome::Preempted,
        OutcomeWord::NodeLost => Outcome::NodeLost(detail()),
        OutcomeWord::DeadlineMissed => Outcome::DeadlineMissed,
        OutcomeWord::DependencyNeverMet => Outcome::DependencyNeverMet,
        OutcomeWord::Requeued => Outcome::Requeued,
        OutcomeWord::Refused => Outcome::Refused(detail()),
        OutcomeWord::DeclaredFinished => Outcome::DeclaredFinished,
    }
}

/// The name of a job; empty if it has none.
fn name(view: &JobView) -> String {
    let is_nameless = view.name == NAMELESS && view.dialect.as_deref() == Some(NAME);
    if is_nameless { String::new() } else { view.name.clone() }
}

/// The queue that a job was submitted to: the one of its nodes, if its command runs on a host apart, which may be in another.
fn queue(view: &JobView) -> String {
    let held = view.by_component.last().filter(|_| view.dialect.as_deref() == Some(NAME));
    held.map_or_else(|| view.queue.clone(), |held| held.queue.clone())
}

/// A job as the short table has it.
pub fn listed(view: &JobView) -> Job {
    let id = view.own_number();
    let time = |time: Option<Timestamp>| time.map(seconds);
    let wait_status = view.outcome.as_ref().and_then(|view| neutral::wait_status(&outcome(view)));
    Job {
        id,
        array: id,
        index: 1,
        name: name(view),
        project: view.account.clone().unwrap_or_default(),
        owner: view.owner.clone(),
        state: listed_state(view),
        requests: Vec::new(),
        types: Vec::new(),
        dependencies: Vec::new(),
        resources: Vec::new(),
        nodes: view.nodes.clone(),
        queue: queue(view),
        command: String::new(),
        wait_status,
        directory: String::new(),
        stdout: String::new(),
        stderr: String::new(),
        is_interactive: false,
        properties: String::new(),
        is_reservation: false,
        walltime: view.walltime_seconds.and_then(|seconds| i64::try_from(seconds).ok()).unwrap_or(0),
        submitted: seconds(view.submitted),
        start: time(view.started),
        stop: time(view.ended),
        predicted_start: time(view.slot_start.or(view.predicted_start)).filter(|_| view.started.is_none()),
        isolation_group: launch::isolation_group(&view.owner, id),
        initial_request: String::new(),
        message: String::new(),
        replaces: 0,
        events: Vec::new(),
    }
}

/// A job with everything that is known about it.
pub fn detailed(detail: &JobDetail, cluster: &Cluster, events: Vec<Event>) -> Job {
    let given = |key: &str| detail.spec.attributes.get(key).cloned().unwrap_or_default();
    let lines = |key: &str| given(key).lines().map(str::to_owned).collect::<Vec<_>>();
    let mut job = listed(&detail.job);
    job.index = decimal(&given(keys::INDEX)).unwrap_or(1);
    job.array = job.id.saturating_sub(job.index - 1);
    job.state = state(detail);
    job.types = lines(keys::TYPES);
    job.requests = lines(keys::REQUESTS);
    if job.requests.is_empty() {
        job.requests.push(format!("/core={},walltime={}", detail.job.cores, muster_oar::text::hours(job.walltime)));
    }
    let parts = detail.spec.components.iter();
    let dependencies = parts.flat_map(|part| part.dependencies.all_of.iter().flatten());
    job.dependencies = dependencies.filter_map(|one| one.job).map(|other| other.number).collect();
    if let Some(run) = detail.runs.last() {
        let is_apart = is_apart(detail);
        let held = || run.nodes.iter().filter(|part| !is_apart || part.component > 0);
        job.resources = held().flat_map(|part| cluster.ids(&part.node, &part.cores)).collect();
        job.resources.sort_unstable();
        if is_apart {
            job.nodes = held().map(|part| part.node.clone()).collect();
        }
    }
    job.command = command(detail, given(keys::COMMAND));
    job.directory = detail.spec.working_directory.clone();
    let launch = detail.spec.components.first().map(|part| &part.launch);
    let file = |pattern: Option<&String>| {
        let path = pattern.map(|pattern| filled(&pattern.replace("%J", "%jobid%"), job.id, "")).unwrap_or_default();
        path.replace("%%", "%")
    };
    (job.stdout, job.stderr) =
        launch.map(|one| (file(one.stdout.as_ref()), file(one.stderr.as_ref()))).unwrap_or_default();
    job.is_interactive = !given(keys::INTERACTIVE).is_empty();
    job.properties = given(keys::PROPERTIES);
    job.is_reservation = !given(keys::RESERVATION).is_empty();
    job.initial_request = given(keys::REQUEST);
    job.replaces = decimal(&given(keys::REPLACES)).unwrap_or(0);
    job.message = message(detail, &job);
    job.events = events;
    job
}

fn command(detail: &JobDetail, own: String) -> String {
    if !own.is_empty() {
        return own;
    }
    match detail.spec.components.first().map(|part| &part.launch.program) {
        Some(Program::Tasks { argv }) => argv.join(" "),
        Some(Program::Script { .. }) => detail.job.name.clone(),
        Some(Program::None) | None => String::new(),
    }
}

/// OAR-J-23
fn message(detail: &JobDetail, job: &Job) -> String {
    let form = match (job.is_interactive, job.is_reservation) {
        (true, _) => Form::Interactive,
        (false, true) => Form::Reservation,
        (false, false) => Form::Batch,
    };
    let reason = detail.job.reason.as_ref().map(|reason| reason.text.clone());
    let ended = detail.job.outcome.as_ref().map(ToString::to_string);
    let waits = waiting(detail.use_share_millionths, reason);
    let remark = ended.or(waits).unwrap_or_else(|| detail.job.state.word().to_owned());
    let counted = if job.resources.is_empty() { detail.job.cores as usize } else { job.resources.len() };
    launch::message(&Message {
        resources: counted,
        walltime: job.walltime,
        form,
        name: &job.name,
        queue: Some(&job.queue),
        project: &job.project,
        types: &job.types,
        remark: &remark,
    })
}

/// The karma, and why a job waits, as far as they are known (OAR-J-23, OAR-Q-12).
fn waiting(karma_millionths: Option<i64>, reason: Option<String>) -> Option<String> {
    let karma = karma_millionths.map(|karma| format!("Karma={:.3}", karma as f64 / 1e6));
    match (karma, reason) {
        (Some(karma), Some(reason)) => Some(format!("{karma}, {reason}")),
        (karma, reason) => karma.or(reason),
    }
}

/// The states in which a job is listed when nobody asks for others.
pub const LIVE: [JobState; 6] = [
    JobState::Held,
    JobState::Queued,
    JobState::Launching,
    JobState::Running,
    JobState::Suspended,
    JobState::Finishing,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// OAR-J-23, OAR-Q-12: the karma has three decimals.
    #[test]
    fn the_message_of_a_waiting_job_has_its_karma_and_the_reason() {
        let reason = || Some("waits for resources".to_owned());
        assert_eq!(waiting(Some(-400_000), reason()).as_deref(), Some("Karma=-0.400, waits for resources"));
        assert_eq!(waiting(Some(1_000_400), None).as_deref(), Some("Karma=1.000"));
        assert_eq!(waiting(None, reason()), reason());
        assert_eq!(waiting(None, None), None);
    }
}
