//! Why a job waits, and why it did not end successfully (SL-C-39).

use super::signals::signal_text;
use muster_schemas::{
    cluster::QueueSpec,
    job::{ExitStatus, Holds},
    views::{OutcomeView, OutcomeWord, ReasonView, ReasonWord},
};
use std::borrow::Cow;

/// The word for why a job waits, with details if it has any (SL-C-27). `queue` is its queue, if known: it distinguishes
/// a partition that takes jobs from one that does not. `None` means that the reason is not known yet (SL-I-14).
pub fn waiting_reason(reason: Option<&ReasonView>, holds: Holds, queue: Option<&QueueSpec>) -> Cow<'static, str> {
    let Some(reason) = reason else { return Cow::Borrowed(held(holds).unwrap_or("None")) };
    Cow::Borrowed(match reason.code {
        ReasonWord::NotPlannedYet | ReasonWord::Configuring | ReasonWord::FilterPending => "None",
        ReasonWord::Held => held(holds).unwrap_or("JobHeldUser"),
        ReasonWord::HeldUntil | ReasonWord::BeginTime => "BeginTime",
        ReasonWord::Dependency | ReasonWord::Namesake => "Dependency",
        ReasonWord::DependencyNeverMet => "DependencyNeverSatisfied",
        ReasonWord::QueueStopped if queue.is_some_and(|queue| !queue.enabled) => "PartitionInactive",
        ReasonWord::QueueStopped | ReasonWord::NotPassedOn => "PartitionDown",
        ReasonWord::PlannerOff => "SchedDefer",
        ReasonWord::ArrayLimit => "JobArrayTaskLimit",
        ReasonWord::Limit => return limit(after(&reason.text, "limit reached: ")),
        ReasonWord::Resources if after(&reason.text, "not enough free: ") == "licences" => "Licenses",
        ReasonWord::Resources
        | ReasonWord::Reserved
        | ReasonWord::ActivationFilter
        | ReasonWord::PlannerFailed
        | ReasonWord::FewGroups => "Resources",
        ReasonWord::BehindJob | ReasonWord::WouldDelay | ReasonWord::Announced | ReasonWord::BlockedByJob => "Priority",
        ReasonWord::NodesUnavailable => {
            let nodes = after(&reason.text, "nodes not available: ");
            return Cow::Owned(format!("ReqNodeNotAvail, UnavailableNodes:{nodes}"));
        }
        ReasonWord::NeverFits => "PartitionConfig",
        ReasonWord::ReservationGone => "ReservationDeleted",
        ReasonWord::ReservationNotBegun => "Reservation",
        ReasonWord::StagingIn => "BurstBufferStageIn",
        ReasonWord::BufferMissing => "BurstBufferResources",
        ReasonWord::StagingFailed => "BurstBufferOperation",
        ReasonWord::DomainNotOpen => "Reservation",
        ReasonWord::ExternalPlanner => return Cow::Owned(one_word(&reason.text)),
    })
}

/// An operator's or administrator's hold outweighs the owner's (SL-C-37).
fn held(holds: Holds) -> Option<&'static str> {
    match holds {
        Holds { user: false, operator: false, system: false } => None,
        Holds { operator: true, .. } | Holds { system: true, .. } => Some("JobHeldAdmin"),
        Holds { .. } => Some("JobHeldUser"),
    }
}

/// A reason's text after `beginning`.
fn after<'a>(text: &'a str, beginning: &str) -> &'a str {
    text.strip_prefix(beginning).unwrap_or(text)
}

/// A free text as one word, so that programs can split the columns.
fn one_word(text: &str) -> String {
    match text.trim() {
        "" => "None".to_owned(),
        text => text.split_whitespace().collect::<Vec<_>>().join("_"),
    }
}

/// The word for the limit that a refusal is about, if its text names one (SL-L-04).
pub fn refused_limit(text: &str) -> Option<&'static str> {
    of_accounts(&text[text.find("limit reached: ")? + "limit reached: ".len()..])
}

/// The word for a limit of an association or a class (SL-C-39), such as
/// `2 running jobs of each user in association test/ann`.
fn of_accounts(text: &str) -> Option<&'static str> {
    let counted = text.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    let (what, rest) = counted.split_once(" of ")?;
    // The units of memory and walltime contain an `of` themselves.
    let (what, rest) = match what {
        "bytes" | "seconds" => (what, rest.split_once(" of ")?.1),
        what => (what, rest),
    };
    let (whose, within) = rest.split_once(" in ")?;
    let is_class = within.starts_with("class ");
    if !is_class && !within.starts_with("association ") {
        return None;
    }
    Some(match (is_class, whose, what) {
        (false, "all", "running jobs") => "AssocGrpJobsLimit",
        (false, "all", "jobs") => "AssocGrpSubmitJobsLimit",
        (false, "all", "cores") => "AssocGrpCpuLimit",
        (false, "all", "nodes") => "AssocGrpNodeLimit",
        (false, "all", "bytes") => "AssocGrpMemLimit",
        (false, "all", "core seconds") => "AssocGrpCPUMinutesLimit",
        (false, "all", "node seconds") => "AssocGrpNodeMinutes",
        (false, "all", "GPU seconds") => "AssocGrpGRESMinutes",
        (false, "all", "core seconds left") => "AssocGrpCPURunMinutesLimit",
        (false, "all", "node seconds left") => "AssocGrpNodeRunMinutes",
        (false, "all", "GPU seconds left") => "AssocGrpGRESRunMinutes",
        (false, "all", "run seconds") => "AssocGrpWallLimit",
        (false, "all", _) => "AssocGrpGRES",
        (false, "each user", "running jobs") => "AssocMaxJobsLimit",
        (false, "each user", "jobs") => "AssocMaxSubmitJobLimit",
        (false, "each job", "cores") => "AssocMaxCpuPerJobLimit",
        (false, "each job", "nodes") => "AssocMaxNodePerJobLimit",
        (false, "each job", "bytes") => "AssocMaxMemPerJob",
        (false, "each job", "seconds") => "AssocMaxWallDurationPerJobLimit",
        (false, "each job", _) => "AssocMaxGRESPerJob",
        (false, ..) => "AssociationResourceLimit",
        (true, "all", "running jobs") => "QOSGrpJobsLimit",
        (true, "all", "jobs") => "QOSGrpSubmitJobsLimit",
        (true, "all", "cores") => "QOSGrpCpuLimit",
        (true, "all", "nodes") => "QOSGrpNodeLimit",
        (true, "all", "bytes") => "QOSGrpMemLimit",
        (true, "all", "core seconds") => "QOSGrpCPUMinutesLimit",
        (true, "all", "node seconds") => "QOSGrpNodeMinutes",
        (true, "all", "GPU seconds") => "QOSGrpGRESMinutes",
        (true, "all", "core seconds left") => "QOSGrpCPURunMinutesLimit",
        (true, "all", "node seconds left") => "QOSGrpNodeRunMinutes",
        (true, "all", "GPU seconds left") => "QOSGrpGRESRunMinutes",
        (true, "all", "run seconds") => "QOSGrpWallLimit",
        (true, "all", _) => "QOSGrpGRES",
        (true, "each user", "running jobs") => "QOSMaxJobsPerUserLimit",
        (true, "each user", "jobs") => "QOSMaxSubmitJobPerUserLimit",
        (true, "each user", "cores") => "QOSMaxCpuPerUserLimit",
        (true, "each user", "nodes") => "QOSMaxNodePerUserLimit",
        (true, "each user", "bytes") => "QOSMaxMemoryPerUser",
        (true, "each user", _) => "QOSMaxGRESPerUser",
        (true, "each account", "running jobs") => "MaxJobsPerAccount",
        (true, "each account", "jobs") => "MaxSubmitJobsPerAccount",
        (true, "each account", "cores") => "MaxCpuPerAccount",
        (true, "each account", "nodes") => "MaxNodePerAccount",
        (true, "each account", "bytes") => "MaxMemoryPerAccount",
        (true, "each account", _) => "MaxGRESPerAccount",
        (true, "each job", "cores") => "QOSMaxCpuPerJobLimit",
        (true, "each job", "nodes") => "QOSMaxNodePerJobLimit",
        (true, "each job", "bytes") => "QOSMaxMemoryPerJob",
        (true, "each job", "seconds") => "QOSMaxWallDurationPerJobLimit",
        (true, "each job", _) => "QOSMaxGRESPerJob",
        (true, ..) => "QOSResourceLimit",
    })
}

/// The word for a limit: one with Slurm's name keeps it; the core's own are recognised by what they count and for whom,
/// such as `10 running jobs of ada in queue debug`.
fn limit(text: &str) -> Cow<'static, str> {
    if let Some(word) = of_accounts(text) {
        return Cow::Borrowed(word);
    }
    if ["Assoc", "QOS", "MaxJobs"].iter().any(|family| text.starts_with(family)) {
        return Cow::Owned(one_word(text));
    }
    let counted = text.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    let what = ["running jobs", "nodes", "cores", "GPUs"].into_iter().find(|what| counted.starts_with(what));
    let Some(what) = what else { return Cow::Owned(one_word(text)) };
    let whose = counted[what.len()..].trim_start();
    let is_of_user = whose.starts_with("of ") && !whose.starts_with("of group ") && !whose.starts_with("of account ");
    Cow::Borrowed(match (what, is_of_user, whose.is_empty() || whose.starts_with("in queue ")) {
        ("running jobs", true, _) if whose.contains(" in queue ") => "QOSMaxJobsPerUserLimit",
        ("running jobs", true, _) => "AssocMaxJobsLimit",
        ("running jobs", _, true) => "QOSGrpJobsLimit",
        ("running jobs", ..) => "AssocGrpJobsLimit",
        ("nodes", _, true) => "QOSGrpNodeLimit",
        ("nodes", ..) => "AssocGrpNodeLimit",
        ("cores", _, true) => "QOSGrpCpuLimit",
        ("cores", ..) => "AssocGrpCpuLimit",
        (_, _, true) => "QOSGrpGRES",
        _ => "AssocGrpGRES",
    })
}

/// The word for how a job ended, if it did not end successfully.
pub fn ended_reason(outcome: &OutcomeView) -> Cow<'static, str> {
    Cow::Borrowed(match (outcome.outcome, outcome.exit_status) {
        (OutcomeWord::Failed, Some(ExitStatus::Signal(signal))) => {
            return Cow::Owned(format!("RaisedSignal:{signal}({})", one_word(&signal_text(signal))));
        }
        (OutcomeWord::Failed, _) => "NonZeroExitCode",
        (OutcomeWord::LaunchFailed, _) => "JobLaunchFailure",
        (OutcomeWord::TimedOut, _) => "TimeLimit",
        (OutcomeWord::OutOfMemory, _) => "OutOfMemory",
        (OutcomeWord::NodeLost, _) => "NodeDown",
        (OutcomeWord::DeadlineMissed, _) => "DeadLine",
        (OutcomeWord::DependencyNeverMet, _) => "DependencyNeverSatisfied",
        (OutcomeWord::Refused, _) => "BadConstraints",
        (
            OutcomeWord::Completed
            | OutcomeWord::DeclaredFinished
            | OutcomeWord::Cancelled
            | OutcomeWord::Preempted
            | OutcomeWord::Requeued,
            _,
        ) => "None",
    })
}
