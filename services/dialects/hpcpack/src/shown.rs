//! Jobs as users of this dialect see them: states, pending reasons, errors, and table rows (HPC-J-02, J-26, HPC-C-07).

use crate::{codes::Code, description::values::JobState, priority::Priority, run_time::RunTime};
use muster_schemas::{
    event::HoldBy,
    job::{JobState as CoreState, Outcome},
    tasks::{SizeUnit, TaskKind, TaskSpec},
    views::{ElasticView, EntryWord, InstancesView, JobView, OutcomeWord, ReasonWord, TaskView},
};

/// The state of a job (HPC-J-02).
pub fn state(job: &JobView) -> JobState {
    if let Some(outcome) = &job.outcome {
        return ended(outcome.outcome);
    }
    match job.filtering.as_ref().map(|filtering| (filtering.entry, filtering.chain.is_some())) {
        Some((EntryWord::Configuring, _)) => return JobState::Configuring,
        Some((EntryWord::Filtering, false)) => return JobState::Submitted,
        Some((EntryWord::Filtering, true)) => return JobState::ExternalValidation,
        Some((EntryWord::Validating, _)) => return JobState::Validating,
        Some((EntryWord::Refused, _)) => return JobState::Failed,
        Some((EntryWord::Entered, _)) | None => {}
    }
    match job.state {
        CoreState::Held | CoreState::Queued => JobState::Queued,
        CoreState::Launching | CoreState::Running | CoreState::Suspended => JobState::Running,
        CoreState::Finishing => JobState::Finishing,
        CoreState::Finished => JobState::Finished,
    }
}

/// How a job ended. One that reached its run time counts as canceled (HPC-J-11).
fn ended(outcome: OutcomeWord) -> JobState {
    match outcome {
        OutcomeWord::Completed | OutcomeWord::DeclaredFinished => JobState::Finished,
        OutcomeWord::Failed
        | OutcomeWord::LaunchFailed
        | OutcomeWord::OutOfMemory
        | OutcomeWord::NodeLost
        | OutcomeWord::Refused => JobState::Failed,
        OutcomeWord::Cancelled
        | OutcomeWord::TimedOut
        | OutcomeWord::Preempted
        | OutcomeWord::DeadlineMissed
        | OutcomeWord::DependencyNeverMet
        | OutcomeWord::Requeued => JobState::Canceled,
    }
}

/// One word for why a job waits (HPC-J-26); `None` if it does not wait. `ahead` is the priority of the job ahead of it,
/// if there is one and its priority is known.
pub fn pending_reason(job: &JobView, ahead: Option<i64>) -> Option<&'static str> {
    let reason = job.reason.as_ref()?;
    Some(match reason.code {
        ReasonWord::NotPlannedYet | ReasonWord::Configuring => "None",
        ReasonWord::Held if job.holds.operator || job.holds.system => "HeldByAdmin",
        ReasonWord::Held | ReasonWord::BeginTime => "HeldByUser",
        ReasonWord::HeldUntil => match job.filtering.as_ref().and_then(|filtering| filtering.hold_by) {
            Some(HoldBy::Filter) => "HeldByActivationFilter",
            Some(HoldBy::Administrator) => "HeldByAdmin",
            Some(HoldBy::User) | None => "HeldByUser",
        },
        ReasonWord::Dependency => "ParentJobsNotFinished",
        ReasonWord::DependencyNeverMet => "ParentJobsCanceledOrFailed",
        ReasonWord::Namesake => "DependencyNotDone",
        ReasonWord::BehindJob | ReasonWord::WouldDelay => match ahead {
            Some(ahead) if ahead <= job.priority => "JobSubmittedEarlier",
            _ => "HigherPriorityJob",
        },
        ReasonWord::NodesUnavailable | ReasonWord::ReservationGone | ReasonWord::ReservationNotBegun => {
            "RequiredNodesNotAvailable"
        }
        ReasonWord::FilterPending => "FilterPending",
        ReasonWord::ActivationFilter => "ActivationFilter",
        ReasonWord::BlockedByJob => "BlockedByJob",
        ReasonWord::StagingFailed => "HeldByAdmin",
        ReasonWord::QueueStopped
        | ReasonWord::PlannerOff
        | ReasonWord::ArrayLimit
        | ReasonWord::Limit
        | ReasonWord::Resources
        | ReasonWord::NeverFits
        | ReasonWord::Announced
        | ReasonWord::Reserved
        | ReasonWord::ExternalPlanner
        | ReasonWord::StagingIn
        | ReasonWord::BufferMissing
        | ReasonWord::DomainNotOpen
        | ReasonWord::FewGroups
        | ReasonWord::NotPassedOn
        | ReasonWord::PlannerFailed => "NotEnoughResource",
    })
}

/// Why a job failed, was refused or was stopped: `[Code] text` if it has a code (HPC-E-10).
pub fn error(job: &JobView) -> Option<String> {
    let outcome = job.outcome.as_ref()?;
    match outcome.outcome {
        OutcomeWord::Completed | OutcomeWord::DeclaredFinished => None,
        OutcomeWord::TimedOut => {
            let seconds = job.walltime_seconds.map(|seconds| u32::try_from(seconds).unwrap_or(u32::MAX));
            Some(RunTime::expired(seconds.unwrap_or_default()).to_string())
        }
        OutcomeWord::Failed => Some(match outcome.exit_status {
            Some(status) => format!("a task failed ({status})"),
            None => "a task failed".to_owned(),
        }),
        OutcomeWord::Preempted => Some(Code::Preempted.message("its resources went to a job of higher priority")),
        OutcomeWord::Cancelled => Some(match message(job) {
            Some(message) => format!("canceled: {message}"),
            None => "canceled".to_owned(),
        }),
        OutcomeWord::Refused | OutcomeWord::LaunchFailed => outcome.detail.clone(),
        _ => Some(outcome.to_string()),
    }
}

/// The message of its last filter, or of the user who canceled it (HPC-F-66, HPC-C-06).
pub fn message(job: &JobView) -> Option<&str> {
    job.filtering.as_ref()?.message.as_deref()
}

/// The code in brackets at the start of a message.
pub fn code_of(message: &str) -> Option<&str> {
    let (code, _) = message.strip_prefix('[')?.split_once(']')?;
    (!code.is_empty() && code.bytes().all(|byte| byte.is_ascii_alphanumeric())).then_some(code)
}

/// The priority as this dialect writes it; numbers of other dialects stay numbers (HPC-J-07).
pub fn priority(value: i64) -> String {
    Priority::new(value).map_or_else(|| value.to_string(), |priority| priority.to_string())
}

/// A run time in seconds as this dialect writes it.
pub fn run_time(seconds: Option<u64>) -> String {
    match seconds.and_then(RunTime::from_seconds) {
        Some(run_time) if run_time == run_time.in_minutes() => run_time.to_string(),
        Some(run_time) => format!("{} s", run_time.seconds().unwrap_or_default()),
        None => "Infinite".to_owned(),
    }
}

/// The unit of a size.
pub const fn unit(unit: SizeUnit) -> &'static str {
    match unit {
        SizeUnit::Core => "Core",
        SizeUnit::Socket => "Socket",
        SizeUnit::Node => "Node",
    }
}

/// The size of a job: its current size if it runs, and its bounds.
pub fn size(job: &JobView) -> String {
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    let Some(ElasticView { unit, min, max, current, .. }) = &job.elastic else {
        return format!("{} core{}", job.cores, plural(job.cores));
    };
    let name = self::unit(*unit).to_lowercase();
    let range =
        if min == max { format!("{min} {name}{}", plural((*max).into())) } else { format!("{min}-{max} {name}s") };
    match current {
        0 => range,
        current => format!("{current} of {range}"),
    }
}

/// Everything that `job view` shows of a job, in order (HPC-C-07).
pub fn fields(
    job: &JobView,
    ahead: Option<i64>,
    time: impl Fn(muster_schemas::Timestamp) -> String,
) -> Vec<(&'static str, String)> {
    let filtering = job.filtering.as_deref();
    let mut fields = vec![
        ("Job ID", job.id.to_string()),
        ("Job Name", job.name.clone()),
        ("Owner", job.owner.clone()),
        ("State", state(job).to_string()),
        ("Priority", priority(job.priority)),
        ("Job Template", filtering.and_then(|filtering| filtering.template.clone()).unwrap_or_else(|| "-".to_owned())),
        ("Project", job.account.clone().unwrap_or_default()),
        ("Resource Request", size(job)),
        ("Run Time", run_time(job.walltime_seconds)),
        ("Submit Time", time(job.submitted)),
    ];
    let mut add = |name, value: Option<String>| fields.extend(value.map(|value| (name, value)));
    add("Start Time", job.started.map(&time));
    add("End Time", job.ended.map(&time));
    add("Hold Until", filtering.and_then(|filtering| filtering.hold_until).map(&time));
    add("Pending Reason", pending_reason(job, ahead).map(str::to_owned));
    add("Pending Detail", job.reason.as_ref().map(|reason| reason.text.clone()));
    let error = error(job);
    add("Error Code", error.as_deref().and_then(code_of).map(str::to_owned));
    add("Error Message", error);
    add("Message", message(job).map(str::to_owned));
    for warning in filtering.iter().flat_map(|filtering| &filtering.warnings) {
        add("Warning", Some(format!("[{}] {}", warning.code, warning.text)));
    }
    add("IsBackfill", Some(filtering.is_some_and(|filtering| filtering.is_backfill).to_string()));
    add(
        "Template Revision",
        filtering.and_then(|filtering| filtering.template_revision).map(|number| number.to_string()),
    );
    add("Nodes", (!job.nodes.is_empty()).then(|| job.nodes.join(",")));
    add("Reserved Nodes", filtering.map(|filtering| filtering.kept_nodes.join(",")).filter(|names| !names.is_empty()));
    let is_barred = job.elastic.as_ref().is_some_and(|elastic| elastic.current > 0 && elastic.filters_bar_preemption);
    add("Growth", is_barred.then(|| "not by preemption, as it has an activation filter".to_owned()));
    add("Tasks", job.elastic.as_ref().map(|elastic| instances(elastic.instances)));
    fields
}

/// The instances of tasks by state: `2 Queued, 1 Running`.
pub fn instances(instances: InstancesView) -> String {
    let counts = [
        (instances.queued, "Queued"),
        (instances.running, "Running"),
        (instances.finished, "Finished"),
        (instances.failed, "Failed"),
        (instances.cancelled, "Canceled"),
    ];
    let shown: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}

/// The row of a task in `job listtasks`: number, name, type, state, size, command.
pub fn task_row(task: &TaskView, described: Option<&TaskSpec>) -> [String; 6] {
    let kind = match task.kind {
        TaskKind::Basic => "Basic",
        TaskKind::Sweep { .. } => "ParametricSweep",
        TaskKind::NodePrep => "NodePrep",
        TaskKind::NodeRelease => "NodeRelease",
        TaskKind::Service => "Service",
    };
    let size = if task.min == task.max { task.min.to_string() } else { format!("{}-{}", task.min, task.max) };
    let command = described.map(|described| match &described.launch.program {
        muster_schemas::job::Program::Tasks { argv } => argv.last().cloned().unwrap_or_default(),
        _ => String::new(),
    });
    [
        (task.task + 1).to_string(),
        described.map(|described| described.name.clone()).unwrap_or_default(),
        kind.to_owned(),
        task_state(task),
        size,
        command.unwrap_or_default(),
    ]
}

/// A task that runs once has a state; for others, their instances are counted.
fn task_state(task: &TaskView) -> String {
    if task.kind != TaskKind::Basic {
        return instances(task.instances);
    }
    let InstancesView { running, finished, failed, cancelled, .. } = task.instances;
    let word = match (running, finished, failed, cancelled) {
        (1.., ..) => "Running",
        (_, 1.., ..) => "Finished",
        (_, _, 1.., _) => "Failed",
        (_, _, _, 1..) => "Canceled",
        _ => "Queued",
    };
    word.to_owned()
}

/// The name of an event in a job's history: endings and preemption have different names by their kind (HPC-E-02).
/// `data` is the event's data.
pub fn event_name(kind: &str, data: &serde_json::Value) -> String {
    let name = kind.strip_prefix("muster.").unwrap_or(kind);
    let name = name.rsplit_once(".v").map_or(name, |(name, _)| name);
    let outcome = data["outcome"].as_str();
    let is_well = |outcome: &str| [Outcome::Completed.word(), Outcome::DeclaredFinished.word()].contains(&outcome);
    let is_cancelled = |outcome: &str| [Outcome::Cancelled.word(), Outcome::TimedOut.word()].contains(&outcome);
    match (name, outcome) {
        ("job.finished", Some(outcome)) if is_cancelled(outcome) => "job.canceled",
        ("job.finished", Some(outcome)) if !is_well(outcome) => "job.failed",
        ("job.stopping" | "job.shrinking", _) if data["reason"] == "preempted" => "job.preempted",
        (name, _) => name,
    }
    .to_owned()
}
