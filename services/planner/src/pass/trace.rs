//! What a cycle by turns did with each job, for those who ask.

use muster_schemas::{JobId, Timestamp, job::WaitReason, policy::LimitPer};

/// What a job lacks that waits for a time.
const TIME: &str = "time";
const QUEUE_TIME: &str = "a time of its queue";
/// What a job waits for whose queue the policy leaves out.
const POLICY: &str = "a policy that plans its queue";

/// Whether a reason says that the job does not fit now. It stays true as long as the job does not fit, whatever else
/// refuses it meanwhile.
pub(crate) fn is_lack(reason: &WaitReason) -> bool {
    let is_of_time_or_policy = |lacks: &str| [TIME, QUEUE_TIME, POLICY].iter().any(|other| lacks.starts_with(other));
    matches!(reason, WaitReason::Resources(lacks) if !is_of_time_or_policy(lacks))
}

/// A job, and what became of it in a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The job, or the task of an array.
    pub job: JobId,
    /// Why it did not start; `None` if it did.
    pub refusal: Option<Refusal>,
}

/// Why a job did not start at its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its queue is stopped, so it had no turn.
    QueueStopped,
    /// The policy leaves its queue out, so it had no turn.
    QueueIgnored,
    /// The time belongs to other queues, so it had no turn.
    OtherQueuesTime {
        /// When that ends, if it is known.
        until: Option<Timestamp>,
    },
    /// It may run past the border of a window at this time.
    CrossesWindow(Timestamp),
    /// A limit on running jobs is reached.
    JobLimit {
        /// Whose jobs it counts together.
        per: LimitPer,
        /// Whether it counts the jobs of the queue only.
        in_queue: bool,
        /// The limit, for people.
        text: String,
    },
    /// A limit on what jobs ask for by name is reached.
    AttributeLimit {
        /// The name.
        attribute: String,
        /// Whether it counts the jobs of the queue only.
        in_queue: bool,
        /// The limit, for people.
        text: String,
    },
    /// Another limit is reached: which one, for people.
    OtherLimit(String),
    /// This starving job was refused, and nothing else starts until it does.
    Starving(JobId),
    /// It does not fit now: what it lacks, for people.
    NoRoom(&'static str),
    /// No node that is chosen by its load can take it.
    NoNodeByLoad,
    /// The nodes and licences can never serve it as they are: why.
    Hopeless(WaitReason),
    /// This job was refused, and keeps those behind it from starting.
    BehindRefused(JobId),
    /// It fits no queue even when that is empty, or asks for more time than any job of its size may: it is refused for
    /// good.
    TooLarge,
    /// No queue takes it: those that it fits are stopped, or there is none.
    NoTarget,
    /// It would use more of the usual hours than it may.
    HourLimit,
    /// It would run on into the other hours, which begin then.
    Drain(Timestamp),
    /// Its machine has an outage, or only starts jobs in one.
    Outage {
        /// When that changes, if it is known.
        until: Option<Timestamp>,
    },
    /// It would leave only fragments of the queue free.
    Fragment,
    /// The load of the machine is too high.
    Load,
    /// As many jobs run on the machine as may.
    MachineJobs(u32),
    /// The jobs of the machine would ask for more of this attribute than it has.
    Oversold(String),
    /// Its group has used up its allocation.
    OverAllocation,
    /// What it needs is free, but promised to this job.
    Reserved(JobId),
}

impl Refusal {
    /// Whether the job has had its turn.
    pub const fn had_turn(&self) -> bool {
        !matches!(self, Self::QueueStopped | Self::QueueIgnored | Self::OtherQueuesTime { .. })
    }

    /// Whether a limit on running jobs or a window refused the job, rather than a lack of resources.
    pub(super) const fn is_for_limit_or_window(&self) -> bool {
        matches!(self, Self::JobLimit { .. } | Self::CrossesWindow(_) | Self::OtherQueuesTime { .. })
    }

    /// The reason as the history has it.
    pub(super) fn reason(&self) -> WaitReason {
        match self {
            Self::QueueStopped => WaitReason::QueueStopped,
            Self::QueueIgnored => WaitReason::Resources(POLICY.into()),
            Self::OtherQueuesTime { until: Some(until) } => {
                WaitReason::Resources(format!("{QUEUE_TIME}: other queues are served until {until}"))
            }
            Self::OtherQueuesTime { until: None } => WaitReason::Resources(QUEUE_TIME.into()),
            Self::CrossesWindow(border) => {
                WaitReason::Resources(format!("{TIME}: it may run past {border}, when other queues are served"))
            }
            Self::JobLimit { text, .. } | Self::AttributeLimit { text, .. } | Self::OtherLimit(text) => {
                WaitReason::Limit(text.clone())
            }
            Self::Starving(job) | Self::BehindRefused(job) => WaitReason::BehindJob(*job),
            Self::NoRoom(lacks) => WaitReason::Resources((*lacks).into()),
            Self::Hopeless(reason) => reason.clone(),
            Self::Reserved(job) => WaitReason::BehindJob(*job),
            Self::TooLarge => WaitReason::NeverFits("it is too large or too long for every queue".into()),
            Self::MachineJobs(most) => WaitReason::Limit(format!("{most} running jobs on its machine")),
            Self::OverAllocation => WaitReason::Limit("the allocation of its group".into()),
            Self::HourLimit => WaitReason::Limit("time of a job in the usual hours".into()),
            Self::NoTarget
            | Self::Drain(_)
            | Self::Outage { .. }
            | Self::Fragment
            | Self::Load
            | Self::NoNodeByLoad
            | Self::Oversold(_) => WaitReason::Resources(self.lack()),
        }
    }

    /// What a job waits for, for people.
    fn lack(&self) -> String {
        match self {
            Self::NoTarget => "a queue that takes it".into(),
            Self::NoNodeByLoad => "a node with a low load and room for it".into(),
            Self::Drain(border) => format!("time: it would run on past {border}"),
            Self::Outage { until: Some(until) } => format!("the end of an outage, or its begin, at {until}"),
            Self::Outage { until: None } => "word of the outages of its machine".into(),
            Self::Fragment => "more room: it would leave only fragments of a queue free".into(),
            Self::Oversold(attribute) => format!("{attribute} of its machine"),
            _ => "a lower load of its machine".into(),
        }
    }
}
