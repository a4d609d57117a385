//! Jobs, except for their runs.

use super::{
    declare::public_events,
    words::{Because, Whole, stop_text},
};
use crate::{
    copies::CopyDirection,
    event::{Intake, JobChange, StopReason, Validated},
    filter::JobWarning,
    ids::{JobId, RunId, Sequence},
    job::{
        ArraySpec, ComponentStaging, Dependencies, HoldBy, Holds, JobSpec, JobType, Notification, Occasion, Sink,
        WaitReason,
    },
    notify::DeliveryResult,
    resources::{Alternative, IndexSet},
    time::Timestamp,
    views::OutcomeView,
    walltimes::WalltimeIncrease,
};
use serde::Serialize;
use std::fmt;
use utoipa::ToSchema;

public_events! { JobData
    /// A job was accepted.
    "job" "submitted" JobSubmitted about job {
        /// Its id; for an array, that of the whole array.
        job: JobId,
        /// Its name, for people.
        name: String,
        /// The owner's login name.
        owner: String,
        /// The tasks, if it is an array.
        array: Option<ArraySpec>,
        /// Its components: one for a plain job.
        components: Vec<SubmittedComponent>,
        /// Notifications to send, with their occasions.
        notifications: Vec<SubmittedNotification>,
        /// Kinds of job with special rules.
        types: Vec<JobType>,
        /// The staging of its components, without the directives, which only the owner and operators may see.
        staging: Vec<ComponentStaging>,
        /// Whether it is cancelled as soon as a dependency can never be met.
        cancelled_if_never_met: bool,
        /// The template that it names.
        template: Option<String>,
        /// Its description as received; the content stays in the log.
        document: Option<ReceivedDocument>,
        /// Number of its tasks, if it is a list of tasks.
        tasks: Option<u64>,
    }
    says |data, f| {
        match &data.array {
            None => write!(f, "job {}", data.job)?,
            Some(array) => write!(f, "array {} of {} tasks", data.job, array.indices.len())?,
        }
        write!(f, " ({}) was submitted by {}", data.name, data.owner)?;
        if let Some(queue) = data.components.first().and_then(|component| component.queue.as_ref()) {
            write!(f, " to queue {queue}")?;
        }
        data.template.as_ref().map_or(Ok(()), |template| write!(f, " with template {template}"))
    };

    /// Holds were added to a job.
    "job" "held" JobHeld about job {
        /// The job, array or task.
        job: JobId,
        /// The added holds.
        holds: Holds,
        /// The reason, for people.
        reason: String,
        /// When the hold ends, if it is a timed hold.
        until: Option<Timestamp>,
        /// Who set the hold, if it is a timed hold.
        by: Option<HoldBy>,
        /// Only for this component, from 0; `null` means the whole job.
        component: Option<u32>,
    }
    says |data, f| if data.until.is_some() {
        write!(f, "job {} is {}", data.job, data.reason)
    } else {
        let holds = WaitReason::Held(data.holds);
        write!(f, "{} is {holds}{}", Whole(data.job, data.component), Because(&data.reason))
    };

    /// Holds were removed from a job.
    "job" "released" JobReleased about job {
        /// The job, array or task.
        job: JobId,
        /// The removed holds.
        holds: Holds,
        /// Whether a timed hold was among them.
        was_timed: bool,
        /// Only for this component, from 0; `null` means the whole job.
        component: Option<u32>,
    }
    says |data, f| if data.was_timed {
        write!(f, "job {} is no longer held", data.job)
    } else {
        let what = Whole(data.job, data.component);
        write!(f, "{what} was released from {}", HoldNames(data.holds))
    };

    /// A job was changed.
    "job" "modified" JobModified about job {
        /// The job.
        job: JobId,
        /// The changed fields; the others are `null`. For attributes, only the names are given.
        change: ModifiedJob,
    }
    says |data, f| write!(f, "job {} was changed: {}", data.job, Named(&data.change));

    /// A message was sent to a running job.
    "job" "told" JobTold about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    }
    says |data, f| write!(f, "something was said to job {}", data.job);

    /// A node copies files for a job: before its start, ahead of it, or after its end.
    "job" "copying" JobCopying about job {
        /// The job or task.
        job: JobId,
        /// The node.
        node: String,
        /// To the node or from it.
        direction: CopyDirection,
        /// The run that waits for the files, if one does.
        run: Option<RunId>,
    }
    says |data, f| {
        let way = if data.direction == CopyDirection::In { "to" } else { "from" };
        write!(f, "files of job {} are copied {way} node {}", data.job, data.node)
    };

    /// All files of a job were copied to its node or from it.
    "job" "copied" JobCopied about job {
        /// The job or task.
        job: JobId,
        /// The node.
        node: String,
        /// To the node or from it.
        direction: CopyDirection,
        /// The size of what was copied, in bytes; `null` if it is not known.
        bytes: Option<u64>,
        /// How long it took, in milliseconds.
        milliseconds: u64,
    }
    says |data, f| {
        let way = if data.direction == CopyDirection::In { "to" } else { "from" };
        write!(f, "the files of job {} were copied {way} node {}", data.job, data.node)?;
        data.bytes.map_or(Ok(()), |bytes| write!(f, ", {bytes} bytes"))?;
        write!(f, " in {} ms", data.milliseconds)
    };

    /// Files of a job could not be copied. If they were for its start, it waits.
    "job" "copying_failed" JobCopyingFailed about job {
        /// The job or task.
        job: JobId,
        /// The node.
        node: String,
        /// To the node or from it.
        direction: CopyDirection,
        /// The size of what was copied nevertheless, in bytes; `null` if it is not known.
        bytes: Option<u64>,
        /// How long it took, in milliseconds.
        milliseconds: u64,
        /// The job does not start before this time; `null` if it is over.
        until: Option<Timestamp>,
    }
    says |data, f| {
        // The reason can name files: only the owner and operators may see it.
        let way = if data.direction == CopyDirection::In { "to" } else { "from" };
        write!(f, "files of job {} could not be copied {way} node {}", data.job, data.node)?;
        data.until.map_or(Ok(()), |until| write!(f, "; it waits until {until}"))
    };

    /// A gate that opens by time has opened for a job: its begin time or the delay after a dependency.
    "job" "eligible" JobEligible about job {
        /// The job.
        job: JobId,
    }
    says |data, f| write!(f, "job {} may start from now on", data.job);

    /// A job is back in the queue after a run.
    "job" "requeued" JobRequeued about job {
        /// The job.
        job: JobId,
        /// Why.
        reason: StopReason,
    }
    says |data, f| write!(f, "job {} is back in the queue: {}", data.job, stop_text(data.reason));

    /// A job is over; an array is over when its last task is.
    "job" "finished" JobFinished about job {
        /// The job, array or task.
        job: JobId,
        /// How it ended.
        #[serde(flatten)]
        outcome: OutcomeView,
    }
    says |data, f| write!(f, "job {} finished: {}", data.job, data.outcome);

    /// A notification was delivered or given up.
    "job" "notified" JobNotified about job {
        /// The job.
        job: JobId,
        /// The sequence of the event that it is about.
        of: Sequence,
        /// Which of the job's notifications, from 0.
        notification: u32,
        /// The occasion of the notification.
        occasion: Occasion,
        /// Whether the mail server took it, or the command exited with 0.
        delivered: bool,
        /// Number of attempts, if it was given up.
        attempts: Option<u32>,
    }
    says |data, f| match data.attempts {
        None => write!(f, "notification {} of job {} was delivered", data.notification, data.job),
        Some(attempts) => write!(
            f,
            "notification {} of job {} was given up after {attempts} attempts",
            data.notification, data.job
        ),
    };

    /// A start that the planner asked for was refused, because the state had changed.
    "job" "start_refused" JobStartRefused about job {
        /// The job.
        job: JobId,
        /// Why.
        reason: String,
    }
    says |data, f| write!(f, "a start of job {} was given up: {}", data.job, data.reason);

    /// Tasks of an array ended without ever starting.
    "job" "tasks_finished" JobTasksFinished about job {
        /// The array.
        job: JobId,
        /// The indices of the tasks.
        indices: IndexSet,
        /// How they ended.
        #[serde(flatten)]
        outcome: OutcomeView,
    }
    says |data, f| {
        write!(f, "{} tasks of array {} finished: {}", data.indices.len(), data.job, data.outcome)
    };

    /// A job that is not yet in the queue was changed while it was being configured.
    "job" "configured" JobConfigured about job {
        /// The job.
        job: JobId,
        /// Its name, for people.
        name: String,
    }
    says |data, f| {
        write!(f, "job {} ({}) was changed while being configured", data.job, data.name)
    };

    /// A job that was being configured, or that failed before it reached the queue, will enter the queue.
    "job" "entered" JobEntered about job {
        /// The job.
        job: JobId,
    }
    says |data, f| write!(f, "job {} will enter the queue", data.job);

    /// A job with a description passed all checks.
    "job" "validated" JobValidated about job {
        /// The job.
        job: JobId,
        /// The template that it was checked with.
        template: Option<String>,
        /// The revision of that template.
        revision: u64,
        /// Its name from now on.
        name: String,
        /// Its priority from now on.
        priority: Option<i64>,
        /// Its request from now on.
        alternatives: Vec<Alternative>,
        /// Number of its tasks, if it is a list of tasks.
        tasks: Option<u64>,
    }
    says |data, f| match &data.template {
        Some(template) => {
            write!(f, "job {} passed the checks of template {template}, revision {}", data.job, data.revision)
        }
        None => write!(f, "job {} passed its checks", data.job),
    };

    /// A checked job is in the queue.
    "job" "queued" JobQueued about job {
        /// The job.
        job: JobId,
    }
    says |data, f| write!(f, "job {} is in the queue", data.job);

    /// A job will end as soon as a filter gives its outstanding answer.
    "job" "end_requested" JobEndRequested about job {
        /// The job.
        job: JobId,
        /// How it will end.
        outcome: OutcomeView,
    }
    says |data, f| {
        write!(f, "job {} will end as soon as its filter has answered", data.job)
    };

    /// A warning about a job, for people.
    "job" "warning" JobWarningRaised about job {
        /// The job.
        job: JobId,
        /// The kind.
        code: String,
        /// The text, for people.
        text: String,
    }
    says |data, f| write!(f, "job {}: warning {}: {}", data.job, data.code, data.text);

    /// A filter set a message to show on a job.
    "job" "message" JobMessage about job {
        /// The job.
        job: JobId,
        /// The text.
        text: String,
    }
    says |data, f| write!(f, "job {}: {}", data.job, data.text);

    /// The client of a job must report in time, or the job is cancelled.
    "job" "kept" JobKept about job {
        /// The job.
        job: JobId,
        /// Time for the next report, in seconds; `null` means that the client no longer has to report.
        seconds: Option<u32>,
        /// Whether the client missed its time and gets the same time once more.
        is_late: bool,
    }
    says |data, f| match data.seconds {
        Some(seconds) if data.is_late => {
            write!(f, "the client of job {} is silent; it has {seconds} s left", data.job)
        }
        Some(seconds) => {
            write!(f, "the client of job {} reported; its next report is due within {seconds} s", data.job)
        }
        None => write!(f, "the client of job {} no longer has to report", data.job),
    };

    /// A waiting job, or one of its components, moved to another service class.
    "job" "class_changed" JobClassChanged about job {
        /// The job.
        job: JobId,
        /// Only this component, from 0; `null` means all.
        component: Option<u32>,
        /// The class from now on.
        class: String,
    }
    says |data, f| {
        write!(f, "{} belongs to class {}", Whole(data.job, data.component), data.class)
    };
}

/// The changes of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ModifiedJob {
    /// A new name.
    pub name: Option<String>,
    /// A new queue.
    pub queue: Option<String>,
    /// A new account.
    pub account: Option<String>,
    /// A new priority.
    pub priority: Option<i64>,
    /// A new begin time.
    pub begin: Option<Timestamp>,
    /// A new walltime for every alternative.
    pub walltime_seconds: Option<u64>,
    /// New alternatives.
    pub alternatives: Option<Vec<Alternative>>,
    /// New dependencies.
    pub dependencies: Option<Dependencies>,
    /// Maximum number of tasks of the array running at a time.
    pub max_running: Option<u32>,
    /// A new reservation, empty for none.
    pub reservation: Option<String>,
    /// A new deadline.
    pub deadline: Option<Timestamp>,
    /// Whether it may be restarted after a node was lost.
    pub requeue_on_node_lost: Option<bool>,
    /// The names of attributes that changed.
    pub attributes: Vec<String>,
    /// Only this component, from 0; `null` means all.
    pub component: Option<u32>,
    /// The walltime that its owner still wants while it runs.
    pub increase: Option<WalltimeIncrease>,
    /// The mails that it causes from then on, without their addresses.
    pub mails: Option<Vec<SubmittedNotification>>,
    /// Whether it got other files for its output.
    pub changes_output: bool,
}

impl From<&JobChange> for ModifiedJob {
    fn from(change: &JobChange) -> Self {
        let JobChange { attributes, component, .. } = change;
        Self {
            name: change.name.clone(),
            queue: change.queue.clone(),
            account: change.account.clone(),
            priority: change.priority,
            begin: change.begin,
            walltime_seconds: change.walltime_seconds,
            alternatives: change.alternatives.clone(),
            dependencies: change.dependencies.clone(),
            max_running: change.max_running,
            reservation: change.reservation.clone(),
            deadline: change.deadline,
            requeue_on_node_lost: change.requeue_on_node_lost,
            attributes: attributes.keys().cloned().collect(),
            component: *component,
            increase: change.increase,
            mails: change.mails.as_ref().map(|mails| mails.iter().map(SubmittedNotification::from).collect()),
            changes_output: change.output.is_some(),
        }
    }
}

/// A description as received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReceivedDocument {
    /// Its format: `xml` or `json`.
    pub format: String,
    /// Number of bytes in the log.
    pub bytes: u64,
    /// BLAKE3 of those bytes, in hex.
    pub hash: String,
}

/// A component of a job that was submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct SubmittedComponent {
    /// The queue.
    pub queue: Option<String>,
    /// The account or project that is charged.
    pub account: Option<String>,
    /// The service class.
    pub class: Option<String>,
    /// A higher priority goes first.
    pub priority: Option<i64>,
    /// Earliest start time.
    pub begin: Option<Timestamp>,
    /// It is not started if it could not end by this time.
    pub deadline: Option<Timestamp>,
    /// Conditions for its start.
    pub dependencies: Dependencies,
    /// Holds that it was submitted with.
    pub holds: Holds,
    /// The reservation that it runs in.
    pub reservation: Option<String>,
    /// Acceptable requests.
    pub alternatives: Vec<Alternative>,
}

/// The occasions for notifications. The receivers are not disclosed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct SubmittedNotification {
    /// The occasions; empty means start and end.
    pub on: Vec<Occasion>,
    /// How.
    pub sink: SinkKind,
}

/// How a notification is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SinkKind {
    /// By mail.
    Mail,
    /// By a command that is run as the job's owner.
    Exec,
}

impl From<&Notification> for SubmittedNotification {
    fn from(notification: &Notification) -> Self {
        let sink = match notification.sink {
            Sink::Mail(_) => SinkKind::Mail,
            Sink::Exec(_) => SinkKind::Exec,
        };
        Self { on: notification.on.clone(), sink }
    }
}

pub(super) fn submitted(job: JobId, owner: &str, spec: &JobSpec, intake: Option<&Intake>) -> JobSubmitted {
    let components = spec.components.iter().map(|component| SubmittedComponent {
        queue: component.queue.clone(),
        account: component.account.clone(),
        class: component.class.clone(),
        priority: component.priority,
        begin: component.begin,
        deadline: component.deadline,
        dependencies: component.dependencies.clone(),
        holds: component.holds,
        reservation: component.reservation.clone(),
        alternatives: component.alternatives.clone(),
    });
    JobSubmitted {
        job,
        name: spec.name.clone(),
        owner: owner.to_owned(),
        array: spec.array.clone(),
        components: components.collect(),
        notifications: spec.notifications.iter().map(SubmittedNotification::from).collect(),
        types: spec.types.clone(),
        // They name files of the owner.
        staging: spec.staging.iter().map(|staging| staging.without_directives()).collect(),
        cancelled_if_never_met: spec.cancelled_if_never_met,
        template: intake.and_then(|intake| intake.template.clone()),
        document: intake.and_then(|intake| intake.document.as_ref()).map(|document| ReceivedDocument {
            format: document.format.clone(),
            bytes: document.bytes.len() as u64,
            hash: blake3::hash(&document.bytes).to_string(),
        }),
        tasks: intake.and_then(|intake| intake.tasks.as_ref()).map(|list| list.tasks.len() as u64),
    }
}

/// Whether a warning repeats a staging program, which names files of the owner.
pub(super) fn is_of_staging(warning: &JobWarning) -> bool {
    warning.code == "StageOutFailed"
}

pub(super) fn warned(job: JobId, warning: &JobWarning) -> JobWarningRaised {
    let text = match is_of_staging(warning) {
        true => "a staging program failed",
        false => &warning.text,
    };
    JobWarningRaised { job, code: warning.code.clone(), text: text.to_owned() }
}

pub(super) fn held(job: JobId, holds: Holds, reason: &str, component: Option<u32>) -> JobHeld {
    JobHeld { job, holds, reason: reason.to_owned(), until: None, by: None, component }
}

pub(super) fn held_until(job: JobId, until: Timestamp, by: HoldBy) -> JobHeld {
    let reason = WaitReason::HeldUntil { until, by }.to_string();
    JobHeld { until: Some(until), by: Some(by), ..held(job, Holds::default(), &reason, None) }
}

pub(super) fn released(job: JobId, holds: Holds, component: Option<u32>) -> JobReleased {
    JobReleased { job, holds, was_timed: false, component }
}

pub(super) fn checked(job: JobId, validated: &Validated) -> JobValidated {
    let lead = validated.spec.components.first();
    JobValidated {
        job,
        template: validated.template.clone(),
        revision: validated.revision,
        name: validated.spec.name.clone(),
        priority: lead.and_then(|component| component.priority),
        alternatives: lead.map(|component| component.alternatives.clone()).unwrap_or_default(),
        tasks: validated.tasks.as_ref().map(|list| list.tasks.len() as u64),
    }
}

pub(super) fn notified(
    job: JobId,
    of: Sequence,
    notification: u32,
    occasion: Occasion,
    result: &DeliveryResult,
) -> JobNotified {
    let attempts = match result {
        DeliveryResult::Delivered => None,
        DeliveryResult::GivenUp { attempts, .. } => Some(*attempts),
    };
    JobNotified { job, of, notification, occasion, delivered: attempts.is_none(), attempts }
}

/// `user hold and system hold`.
struct HoldNames(Holds);

impl fmt::Display for HoldNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [(self.0.user, "user"), (self.0.operator, "operator"), (self.0.system, "system")];
        let set: Vec<&str> = names.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
        write!(f, "the {} hold", set.join(" and "))
    }
}

/// The attributes of a job that have changed.
struct Named<'a>(&'a ModifiedJob);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let change = self.0;
        let fields = [
            (change.name.is_some(), "name"),
            (change.queue.is_some(), "queue"),
            (change.account.is_some(), "account"),
            (change.priority.is_some(), "priority"),
            (change.begin.is_some(), "begin time"),
            (change.walltime_seconds.is_some(), "walltime"),
            (change.alternatives.is_some(), "request"),
            (change.dependencies.is_some(), "dependencies"),
            (change.max_running.is_some(), "array limit"),
            (change.reservation.is_some(), "reservation"),
            (change.deadline.is_some(), "deadline"),
            (change.requeue_on_node_lost.is_some(), "requeueing after the loss of a node"),
            (change.increase.is_some(), "pending walltime"),
            (change.mails.is_some(), "mails"),
            (change.changes_output, "output files"),
        ];
        let named = fields.iter().filter(|(is_changed, _)| *is_changed).map(|(_, name)| *name);
        let all: Vec<&str> = named.chain(change.attributes.iter().map(String::as_str)).collect();
        f.write_str(&all.join(", "))
    }
}
