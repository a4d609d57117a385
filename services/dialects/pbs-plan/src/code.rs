//! Reason codes (PBS-Q-03, section 2.1 of the specification).

use muster_pbs_policy::engine::resource;
use muster_planner::pass::Refusal;
use muster_schemas::{job::WaitReason, policy::LimitPer};

/// A queue that holds jobs for other queues.
pub(crate) const QUEUE_NOT_EXECUTION: &str = "QUEUE_NOT_EXECUTION";

/// The code of a refusal.
pub fn code(refusal: &Refusal) -> String {
    let code = match refusal {
        Refusal::QueueStopped => "QUEUE_NOT_STARTED",
        Refusal::QueueIgnored => "QUEUE_IGNORED",
        Refusal::OtherQueuesTime { .. } => "DEDICATED_TIME",
        Refusal::CrossesWindow(_) => "CROSSES_DEDICATED",
        Refusal::JobLimit { per, in_queue, .. } => return job_limit(*per, *in_queue),
        Refusal::AttributeLimit { attribute, in_queue, .. } => {
            return format!("{}_RESOURCE:{}", scope(*in_queue), resource(attribute));
        }
        Refusal::Starving(_) => "STARVING_DRAIN",
        Refusal::NoRoom(_) => "NO_NODES",
        Refusal::NoNodeByLoad => "NO_NODE",
        Refusal::Hopeless(WaitReason::NeverFits(_)) => "NEVER_RUNNABLE",
        Refusal::Hopeless(_) => "NO_NODES",
        Refusal::BehindRefused(_) => "STRICT_ORDER",
        Refusal::OtherLimit(_) => "START_REFUSED",
        Refusal::TooLarge => "SIZE_REJECTED",
        Refusal::NoTarget => "NO_QUEUE_FITS",
        Refusal::HourLimit => "PRIME_LIMIT",
        Refusal::Drain(_) => "NONPRIME_DRAIN",
        Refusal::Outage { .. } => "DEDICATED_TIME",
        Refusal::Fragment => "FRAGMENT",
        Refusal::Load => "LOAD",
        Refusal::MachineJobs(_) => "MAX_JOBS",
        Refusal::Oversold(_) => "NO_MEMORY",
        Refusal::OverAllocation => "OVER_ALLOCATION",
        Refusal::Reserved(_) => "RESERVED",
    };
    code.to_owned()
}

/// The word for what becomes of a job that was refused.
pub fn verdict(refusal: &Refusal) -> &'static str {
    if *refusal == Refusal::TooLarge { "REJECT" } else { "WAIT" }
}

fn job_limit(per: LimitPer, in_queue: bool) -> String {
    let of = match per {
        LimitPer::User => "USER",
        LimitPer::Group => "GROUP",
        LimitPer::All | LimitPer::Account | LimitPer::Queue => "JOB",
    };
    format!("{}_{of}_LIMIT", scope(in_queue))
}

const fn scope(in_queue: bool) -> &'static str {
    if in_queue { "QUEUE" } else { "SERVER" }
}
