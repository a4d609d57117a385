//! The public form of events: CloudEvents 1.0 in JSON, as integrations get them over the bus and from the gateway.
//!
//! The data of an event has names instead of node numbers, and nothing that a job's owner may want to keep to
//! themselves: no script, arguments, environment, mail address or notification command.

use crate::{
    accounts::{AccountChange, AccountSettings},
    cluster::{ClusterSettings, QueueSpec},
    command::RefusalCode,
    event::{
        Actor, Event, FurtherChange, HoldBy, Intake, JobChange, NodeExit, Record, ShrinkReason, StopReason, Validated,
    },
    filter::{
        ActivationParameters, CallId, ChainFilter, ChainSpec, ChainVerdict, FileAfter, FilterExit, FilterKind,
        FilterReport, PropertyChange,
    },
    ids::{JobId, NodeId, RunId, Sequence, StepId},
    job::{ArraySpec, Dependencies, ExitStatus, Holds, JobSpec, JobType, Notification, Occasion, Outcome, Sink, Usage},
    plan::{BackfillPass, ComponentMode, NodeClosure, PlanRecord, ReservationSpec},
    policy::Policy,
    resources::{Alternative, IndexSet, NodeSpec, Placement},
    steps::{StepShare, TaskStatus},
    subjects,
    time::Timestamp,
    views::{OutcomeView, ReasonView},
};
use serde::Serialize;
use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc};
use utoipa::ToSchema;

pub mod documents;
mod summary;

/// The version at the end of every event type. A changed shape gets a new one.
pub const VERSION: &str = "v1";
/// Maximum number of jobs that a `plan.waiting` or `plan.made` event lists; its counts are of all.
pub const MAX_WAITING_JOBS: usize = 10_000;

/// The meaning of the numbers in an event. The state can always tell: the public form of a record is the same bytes
/// wherever and however late it is made.
pub trait Names {
    /// The name of a node, also of one that has been removed; `None` if it has never been there.
    fn node_name(&self, node: NodeId) -> Option<&str>;
    /// The name that the cluster had when the record was appended, or got by it.
    fn cluster_name(&self, at: Sequence) -> &str;
}

/// An event ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicEvent {
    /// The bus subject: `muster.events.KIND.VERB.ID`.
    pub bus_subject: String,
    /// The CloudEvent, on one line.
    pub json: String,
}

/// The public form of a record, and of what led to it as [`crate::cause`] says.
pub fn cloud_event(record: &Record, cause: Option<Sequence>, names: &dyn Names) -> PublicEvent {
    let cluster = names.cluster_name(record.sequence);
    let (kind, verb) = record.event.kind_verb();
    let data = EventData::of(record, names);
    let subject = data.subject(cluster);
    let envelope = CloudEvent {
        specversion: "1.0",
        id: record.sequence.to_string(),
        source: format!("/muster/{}", subjects::token(cluster)),
        r#type: type_name(kind, verb),
        subject: &subject,
        time: record.time,
        datacontenttype: "application/json",
        traceparent: record.trace.to_traceparent(),
        actor: actor_text(&record.actor),
        causedby: cause.map(|cause| cause.to_string()),
        summary: data.to_string(),
        data: &data,
    };
    // Serialising fails only for maps whose keys are not text, and there are none.
    let json = serde_json::to_string(&envelope).unwrap_or_default();
    PublicEvent { bus_subject: subjects::public_event(kind, verb, &subject), json }
}

/// The type of the event of this kind and verb.
pub fn type_name(kind: &str, verb: &str) -> String {
    format!("muster.{kind}.{verb}.{VERSION}")
}

/// One sentence for people about a record, the same as the `summary` of its public event.
pub fn summary(record: &Record, names: &dyn Names) -> String {
    EventData::of(record, names).to_string()
}

/// The CloudEvents envelope.
#[derive(Serialize, ToSchema)]
struct CloudEvent<'a> {
    /// The version of the CloudEvents specification.
    specversion: &'static str,
    /// The sequence of the record in the log. With `source` it tells the event from every other.
    id: String,
    /// The cluster: `/muster/NAME`.
    source: String,
    /// The event: `muster.KIND.VERB.VERSION`.
    r#type: String,
    /// The id of the job or the name of the node, queue, licence or cluster that it happened to.
    subject: &'a str,
    /// When the ledger recorded it.
    time: Timestamp,
    /// Always `application/json`.
    datacontenttype: &'static str,
    /// W3C trace context of the job, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    /// Its actor: `user:NAME`, `node:NAME`, `runner:NAME`, `planner`, `notifier` or `ledger`.
    actor: String,
    /// The `id` of the event that led to this one; left out where something began (HPC-E-01).
    #[serde(skip_serializing_if = "Option::is_none")]
    causedby: Option<String>,
    /// One sentence for people. Its wording is not stable.
    summary: String,
    /// The data of this type of event.
    #[schema(value_type = Object)]
    data: &'a EventData,
}

fn actor_text(actor: &Actor) -> String {
    match actor {
        Actor::User(owner) => format!("user:{}", owner.user),
        Actor::Executor(node) => format!("node:{node}"),
        Actor::Planner => "planner".to_owned(),
        Actor::Notifier => "notifier".to_owned(),
        Actor::Ledger => "ledger".to_owned(),
        Actor::Runner(name) => format!("runner:{name}"),
    }
}

/// A kind of event in the catalogue.
pub struct EventType {
    /// The kind of thing that it happens to, such as `job`.
    pub kind: &'static str,
    /// The event, such as `started`.
    pub verb: &'static str,
    /// When it is sent, for people.
    pub summary: &'static str,
    /// The name of the schema of its data.
    pub data_name: &'static str,
    schema: fn() -> utoipa::openapi::RefOr<utoipa::openapi::Schema>,
    schemas: fn(&mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>),
}

/// Declares the data of every public event, and the catalogue of them all.
macro_rules! public_events {
    ($(
        #[doc = $doc:literal]
        $kind:literal $verb:literal $name:ident { $( $(#[$field_meta:meta])* $field:ident: $type:ty, )* }
    )*) => {
        $(
            #[doc = $doc]
            #[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
            pub struct $name {
                $( $(#[$field_meta])* pub $field: $type, )*
            }
        )*

        /// The data of a public event.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
        #[serde(untagged)]
        pub enum EventData {
            $( #[doc = $doc] $name(Box<$name>), )*
        }

        /// Every kind of public event.
        pub fn catalogue() -> Vec<EventType> {
            vec![$( EventType {
                kind: $kind,
                verb: $verb,
                summary: $doc.trim_ascii(),
                data_name: stringify!($name),
                schema: <$name as utoipa::PartialSchema>::schema,
                schemas: <$name as ToSchema>::schemas,
            } ),*]
        }

        $(
            impl From<$name> for EventData {
                fn from(data: $name) -> Self {
                    Self::$name(Box::new(data))
                }
            }
        )*
    };
}

public_events! {
    /// The log began: the first event of every cluster.
    "cluster" "initialised" ClusterInitialised {
        /// Tells this log from every other: a UUID.
        cluster_id: String,
        /// The Ed25519 public key that checkpoints are signed with, in hex.
        public_key: String,
    }
    /// The settings of the cluster changed.
    "cluster" "settings_changed" ClusterSettingsChanged {
        /// All settings as they are from now on.
        settings: Arc<ClusterSettings>,
    }
    /// A queue was added or changed.
    "queue" "set" QueueSet {
        /// The queue as it is from now on.
        queue: Arc<QueueSpec>,
    }
    /// A queue was removed.
    "queue" "removed" QueueRemoved {
        /// Its name.
        queue: String,
    }
    /// The number of a floating licence changed.
    "licence" "set" LicenceSet {
        /// Its name.
        licence: String,
        /// How many there are; 0 means that it was removed.
        total: u32,
    }
    /// A node was added.
    "node" "added" NodeAdded {
        /// Its name.
        node: String,
        /// Its specification.
        spec: Arc<NodeSpec>,
    }
    /// The specification of a node changed.
    "node" "changed" NodeChanged {
        /// Its name.
        node: String,
        /// Its specification from now on.
        spec: Arc<NodeSpec>,
    }
    /// A node was removed.
    "node" "removed" NodeRemoved {
        /// Its name.
        node: String,
    }
    /// A node reported for the first time, or again after it was lost.
    "node" "up" NodeUp {
        /// Its name.
        node: String,
        /// Changes when the machine boots.
        boot_id: String,
    }
    /// A node has not reported for too long.
    "node" "lost" NodeLost {
        /// Its name.
        node: String,
        /// Why it is thought lost.
        reason: String,
    }
    /// A node takes no new jobs.
    "node" "drained" NodeDrained {
        /// Its name.
        node: String,
        /// The operator's reason.
        reason: String,
    }
    /// A node takes no new jobs, and what ran there is stopped as if the node were lost.
    "node" "down" NodeDown {
        /// Its name.
        node: String,
        /// The operator's reason.
        reason: String,
    }
    /// A drained node takes jobs again.
    "node" "resumed" NodeResumed {
        /// Its name.
        node: String,
    }
    /// A job was accepted.
    "job" "submitted" JobSubmitted {
        /// Its id; for an array that of the whole.
        job: JobId,
        /// Its name, for people.
        name: String,
        /// Login name of whose it is.
        owner: String,
        /// The tasks, if it is an array.
        array: Option<ArraySpec>,
        /// Its components: one for a plain job.
        components: Vec<SubmittedComponent>,
        /// Who is notified, and of what.
        notifications: Vec<SubmittedNotification>,
        /// Kinds of job with special rules.
        types: Vec<JobType>,
        /// The template that it names.
        template: Option<String>,
        /// Its description as it was received; what it says stays in the log.
        document: Option<ReceivedDocument>,
        /// How many tasks it lists, if it is a list of tasks.
        tasks: Option<u64>,
    }
    /// Holds were added to a job.
    "job" "held" JobHeld {
        /// The job, array or task.
        job: JobId,
        /// Those added.
        holds: Holds,
        /// Why, for people.
        reason: String,
        /// Until when, if the hold ends by itself.
        until: Option<Timestamp>,
        /// Whose hold it is, if it ends by itself.
        by: Option<HoldBy>,
        /// Only of this component, from 0; `null` means of the whole job.
        component: Option<u32>,
    }
    /// Holds were removed from a job.
    "job" "released" JobReleased {
        /// The job, array or task.
        job: JobId,
        /// The removed holds.
        holds: Holds,
        /// Whether a hold until a time was among them.
        was_timed: bool,
        /// Only of this component, from 0; `null` means of the whole job.
        component: Option<u32>,
    }
    /// A job was changed.
    "job" "modified" JobModified {
        /// The job.
        job: JobId,
        /// The change; fields that did not change are `null`.
        change: Arc<JobChange>,
    }
    /// More of a job was changed than a `modified` event can say.
    "job" "altered" JobAltered {
        /// The job.
        job: JobId,
        /// The change; fields that did not change are `null`. Attributes are only named.
        change: AlteredJob,
    }
    /// A message was sent to a running job.
    "job" "told" JobTold {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    }
    /// A gate that opens by time has opened for a job: its begin time or the delay after a dependency.
    "job" "eligible" JobEligible {
        /// The job.
        job: JobId,
    }
    /// The reasons why jobs wait changed: only in logs of older versions, which had no `plan.made`.
    "plan" "waiting" PlanWaiting {
        /// How many jobs there are in this event's record.
        total: u64,
        /// The first 10,000 of them.
        jobs: Vec<WaitingJob>,
    }
    /// A job, or a task of an array, got its resources; its launch is ordered.
    "job" "allocated" JobAllocated {
        /// The job or task.
        job: JobId,
        /// The run.
        run: RunId,
        /// Where.
        nodes: Vec<AllocatedNode>,
    }
    /// The processes of a run have started on one node, which no components share, and on others they have not yet.
    "run" "node_started" RunNodeStarted {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The node's name.
        node: String,
    }
    /// The processes of a job have started on all its nodes: it runs.
    "job" "started" JobStarted {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// Name of the node that was the last to start.
        node: String,
    }
    /// A job is being stopped.
    "job" "stopping" JobStopping {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// Why.
        reason: StopReason,
    }
    /// The part of a run on one node, which no components share, has ended; others continue.
    "run" "node_ended" RunNodeEnded {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The node's name.
        node: String,
        /// How it ended.
        exit: NodeExit,
    }
    /// A run has ended on its last node; its resources are free.
    "run" "ended" RunEnded {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// Name of the node where it ended last; `null` if that node was lost.
        node: Option<String>,
        /// How it ended there.
        exit: Option<NodeExit>,
        /// How the run came to its end.
        #[serde(flatten)]
        outcome: OutcomeView,
        /// Its usage on all nodes.
        usage: Usage,
    }
    /// A job is back in the queue after a run.
    "job" "requeued" JobRequeued {
        /// The job.
        job: JobId,
        /// Why.
        reason: StopReason,
    }
    /// A job is over; an array is when its last task is.
    "job" "finished" JobFinished {
        /// The job, array or task.
        job: JobId,
        /// How it came to its end.
        #[serde(flatten)]
        outcome: OutcomeView,
    }
    /// A job was suspended.
    "job" "suspended" JobSuspended {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    }
    /// Others can have the cores of a suspended job until it continues. It keeps everything else.
    "job" "cores_lent" JobCoresLent {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    }
    /// A suspended job will continue as soon as nobody else has its cores.
    "job" "resuming" JobResuming {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    }
    /// A suspended job continues.
    "job" "resumed" JobResumed {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    }
    /// A signal was sent to the processes of a job.
    "job" "signalled" JobSignalled {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The signal's number.
        signal: u8,
    }
    /// A step was started from inside a job.
    "step" "started" StepStarted {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// The nodes of the step, in order of rank.
        nodes: Vec<StepNode>,
    }
    /// The part of a step on one node has ended.
    "step" "node_ended" StepNodeEnded {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// The node's name.
        node: String,
        /// How it ended.
        exit: NodeExit,
    }
    /// A step has ended on its last node.
    "step" "ended" StepEnded {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// The first status that is not 0, else 0; `null` if no process could be started.
        exit_status: Option<ExitStatus>,
    }
    /// A notification was delivered or given up.
    "job" "notified" JobNotified {
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
        /// If it was given up: after how many attempts.
        attempts: Option<u32>,
    }
    /// The state was signed by the ledger.
    "log" "checkpoint" LogCheckpoint {
        /// BLAKE3 digest of the state, in hex.
        state_digest: String,
        /// Ed25519 signature, in hex.
        signature: String,
    }
    /// A start that the planner had asked for was given up: the state had moved on.
    "job" "start_refused" JobStartRefused {
        /// The job.
        job: JobId,
        /// Why.
        reason: String,
    }
    /// Tasks of an array are over that never started.
    "job" "tasks_finished" JobTasksFinished {
        /// The array.
        job: JobId,
        /// The indices of the tasks.
        indices: IndexSet,
        /// How they came to their end.
        #[serde(flatten)]
        outcome: OutcomeView,
    }
    /// Nodes remember runs that the log does not have, because it was restored: the numbers of those are passed over.
    "cluster" "run_numbers_raised" ClusterRunNumbersRaised {
        /// The next run gets at least this number.
        next: RunId,
    }
    /// How jobs are numbered from here on: an array takes a number for each of its tasks, the first of which is its own.
    "cluster" "job_numbers_set" ClusterJobNumbersSet {
        /// No job from here on has a lower number.
        first: u64,
    }
    /// The policy that planners follow changed.
    "policy" "set" PolicySet {
        /// The policy from now on.
        policy: Arc<Policy>,
    }
    /// An advance reservation was made or changed.
    "reservation" "set" ReservationSet {
        /// The reservation as it is from now on.
        reservation: Arc<ReservationSpec>,
    }
    /// The nodes of a reservation by count were chosen.
    "reservation" "placed" ReservationPlaced {
        /// Its name.
        reservation: String,
        /// Names of the nodes.
        nodes: Vec<String>,
    }
    /// The start of a reservation has come: its jobs may start.
    "reservation" "begun" ReservationBegun {
        /// Its name.
        reservation: String,
    }
    /// A reservation was removed, or is over.
    "reservation" "removed" ReservationRemoved {
        /// Its name.
        reservation: String,
    }
    /// The times in which a node serves no jobs changed.
    "node" "closures_set" NodeClosuresSet {
        /// Its name.
        node: String,
        /// The times from now on, in their order; none if the node is open.
        closures: Vec<NodeClosure>,
    }
    /// A plan was made: its results in addition to its starts, and its input.
    "plan" "made" PlanMade {
        /// The planner's state was as after this record.
        seen: Sequence,
        /// The time that it planned for.
        at: Timestamp,
        /// Jobs whose starts the ledger refused.
        refused: Vec<JobId>,
        /// Jobs that it left out because a start of theirs had been refused before.
        left_out: u64,
        /// How many jobs wait for a new reason.
        reasons: u64,
        /// How many promises were made, changed or taken back.
        slots: u64,
        /// How many starts are foreseen otherwise than before.
        predictions: u64,
        /// The first 10,000 jobs that one of these is about, in order of their ids.
        jobs: Vec<PlannedJob>,
    }
    /// A job that is not yet in the queue was changed while being configured.
    "job" "configured" JobConfigured {
        /// The job.
        job: JobId,
        /// Its name, for people.
        name: String,
    }
    /// A job that was being configured, or that had failed before it was in the queue, will enter the queue.
    "job" "entered" JobEntered {
        /// The job.
        job: JobId,
    }
    /// All checks of a job with a description are passed.
    "job" "validated" JobValidated {
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
        /// How many tasks it lists, if it is a list of tasks.
        tasks: Option<u64>,
    }
    /// A job that was checked is in the queue.
    "job" "queued" JobQueued {
        /// The job.
        job: JobId,
    }
    /// A chain of filters began.
    "filter" "chain_started" FilterChainStarted {
        /// The job.
        job: JobId,
        /// The kind of filter.
        filter_kind: FilterKind,
        /// The number of the chain.
        chain: u64,
        /// Its filters, in the order in which they are called.
        filters: Vec<ChainFilter>,
        /// The time limit of each call, in seconds.
        limit_seconds: u32,
        /// The parameters of activation filters.
        parameters: Option<ActivationParameters>,
        /// The candidates that are set aside.
        nodes: Vec<AllocatedNode>,
    }
    /// A call of a filter was handed to a runner.
    "filter" "invoked" FilterInvoked {
        /// The job.
        job: JobId,
        /// The call.
        call: CallId,
        /// The value of `MUSTER_INVOCATION_ID` for the filter.
        invocation: String,
        /// How often it has been handed out, this time included.
        attempt: u32,
        /// To whom.
        runner: String,
    }
    /// A runner does not have the program of a filter: the call is put to another one.
    "filter" "elsewhere" FilterElsewhere {
        /// The job.
        job: JobId,
        /// The call.
        call: CallId,
        /// The runner that does not have it.
        runner: String,
    }
    /// A runner that has a call has been silent for too long: the call is offered to all again.
    "filter" "offered_again" FilterOfferedAgain {
        /// The job.
        job: JobId,
        /// The call.
        call: CallId,
        /// The attempt that it is offered as from here on.
        attempt: u32,
    }
    /// A job will end as soon as the outstanding answer of a filter for it is there.
    "job" "end_requested" JobEndRequested {
        /// The job.
        job: JobId,
        /// How it will end.
        outcome: OutcomeView,
    }
    /// The verdict of a filter.
    "filter" "verdict" FilterVerdict {
        /// The job.
        job: JobId,
        /// The call.
        call: CallId,
        /// Its outcome.
        #[serde(flatten)]
        result: FilterResult,
    }
    /// All filters of a chain have passed.
    "filter" "chain_passed" FilterChainPassed {
        /// The job.
        job: JobId,
        /// The kind of filter.
        filter_kind: FilterKind,
        /// The number of the chain.
        chain: u64,
    }
    /// A chain is over without having passed.
    "filter" "chain_failed" FilterChainFailed {
        /// The job.
        job: JobId,
        /// The kind of filter.
        filter_kind: FilterKind,
        /// The number of the chain.
        chain: u64,
        /// The meaning of the outcome.
        verdict: ChainVerdict,
        /// The place of the filter that ended it, from 0; one behind the last if no filter did.
        position: u32,
        /// Why, for people.
        message: String,
    }
    /// A filter took back what it had done.
    "filter" "reverted" FilterReverted {
        /// The job.
        job: JobId,
        /// The call.
        call: CallId,
        /// Its outcome.
        #[serde(flatten)]
        result: FilterResult,
    }
    /// A filter did not undo its work. It is not asked again.
    "filter" "revert_failed" FilterRevertFailed {
        /// The job.
        job: JobId,
        /// The call.
        call: CallId,
        /// Its outcome.
        #[serde(flatten)]
        result: FilterResult,
    }
    /// A filter cannot be asked to undo its work.
    "filter" "revert_skipped" FilterRevertSkipped {
        /// The job.
        job: JobId,
        /// The call that is not made.
        call: CallId,
        /// Why.
        reason: String,
    }
    /// Everything that had passed in a chain has been asked to take it back.
    "filter" "rollback_completed" FilterRollbackCompleted {
        /// The job.
        job: JobId,
        /// The kind of filter.
        filter_kind: FilterKind,
        /// The number of the chain.
        chain: u64,
    }
    /// An answer came that nobody waits for any longer. It changes nothing.
    "filter" "late_result" FilterLateResult {
        /// The job.
        job: JobId,
        /// The call.
        call: CallId,
        /// The attempt that it answers.
        attempt: u32,
        /// Whose it is.
        runner: String,
        /// How that attempt ended.
        exit: FilterExit,
    }
    /// Calls of filters wait and no runner is there.
    "filter" "no_runner" FilterNoRunner {
        /// Since when.
        since: Timestamp,
        /// How many calls wait.
        calls: u64,
    }
    /// Something that people should know of a job.
    "job" "warning" JobWarningRaised {
        /// The job.
        job: JobId,
        /// The kind.
        code: String,
        /// For people.
        text: String,
    }
    /// A filter wants a text shown on a job.
    "job" "message" JobMessage {
        /// The job.
        job: JobId,
        /// The text.
        text: String,
    }
    /// Jobs of a priority and below do not start, because an activation filter said so.
    "queue" "blocked" QueueBlocked {
        /// The job whose filter said so.
        job: JobId,
        /// The priority.
        priority: i64,
    }
    /// A job no longer blocks others.
    "queue" "unblocked" QueueUnblocked {
        /// The job that did.
        job: JobId,
    }
    /// Resources are kept for a job that waits.
    "resources" "reserved" ResourcesReserved {
        /// The job.
        job: JobId,
        /// The number that its run will have.
        run: RunId,
        /// All that is kept.
        nodes: Vec<AllocatedNode>,
    }
    /// Resources are no longer kept for a job.
    "resources" "released" ResourcesReleased {
        /// The job.
        job: JobId,
        /// The number that its run would have had.
        run: RunId,
    }
    /// A run starts ahead of a waiting job.
    "job" "backfilled" JobBackfilled {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    }
    /// A running job got more resources.
    "job" "grown" JobGrown {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The added resources.
        nodes: Vec<AllocatedNode>,
    }
    /// A running job did not get the resources that it was offered.
    "job" "grow_rejected" JobGrowRejected {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    }
    /// The tasks of a running job are ending: no more start but those that release nodes.
    "job" "tasks_stopping" JobTasksStopping {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// Why.
        reason: StopReason,
        /// Whether tasks that run may end by themselves; else they are stopped.
        is_graceful: bool,
    }
    /// A running job has to give up resources when its tasks there have ended.
    "job" "shrinking" JobShrinking {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// Why.
        reason: ShrinkReason,
        /// The resources that it has to give up.
        nodes: Vec<AllocatedNode>,
    }
    /// A running job gave up resources.
    "job" "shrunk" JobShrunk {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The resources that it gave up.
        nodes: Vec<AllocatedNode>,
    }
    /// A step was launched inside a job.
    "step" "launched" StepLaunched {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// Its name, for people.
        name: String,
        /// Its share of each of its nodes, in their order.
        nodes: Vec<StepPart>,
        /// How long it may run, in seconds; `null` means as long as its job.
        walltime_seconds: Option<u64>,
    }
    /// Groups of a step that was just launched have their own working directories or standard input.
    "step" "terms_set" StepTermsSet {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
    }
    /// A signal was sent to the processes of a step.
    "step" "signalled" StepSignalled {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// Only on the nodes of this component.
        component: Option<u32>,
        /// The signal's number.
        signal: u8,
    }
    /// A step, or the part of it in one component, is being ended.
    "step" "stopping" StepStopping {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// Only on the nodes of this component.
        component: Option<u32>,
        /// Without grace.
        is_forced: bool,
    }
    /// The tasks of a step on one node, which no components share, have ended.
    "step" "tasks_ended" StepTasksEnded {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// The node's name.
        node: String,
        /// How, taken together.
        exit: NodeExit,
        /// How each task ended, those that ended alike together.
        statuses: Vec<TaskStatus>,
    }
    /// The processes of a component have started on a node that components of the job share.
    "run" "part_started" RunPartStarted {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The node's name.
        node: String,
        /// The component, from 0.
        component: u32,
    }
    /// The part of a component on a node that components of the job share has ended; others continue.
    "run" "part_ended" RunPartEnded {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The node's name.
        node: String,
        /// The component, from 0.
        component: u32,
        /// How it ended.
        exit: NodeExit,
    }
    /// The tasks of a step in a component have ended on a node that components of the job share.
    "step" "part_ended" StepPartEnded {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// The node's name.
        node: String,
        /// The component, from 0.
        component: u32,
        /// How, taken together.
        exit: NodeExit,
        /// How each task ended, those that ended alike together.
        statuses: Vec<TaskStatus>,
    }
    /// The client of a job has to report, or its job is cancelled.
    "job" "kept" JobKept {
        /// The job.
        job: JobId,
        /// Seconds from now; `null` means that it no longer has to report.
        seconds: Option<u32>,
        /// It did not report in time, and has as long again.
        is_late: bool,
    }
    /// One component of a running job is being ended; the others continue.
    "job" "component_stopping" JobComponentStopping {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// Which of its components, from 0.
        component: u32,
        /// Why.
        reason: StopReason,
    }
    /// One component of a running job has ended; the others continue. The next `shrunk` event says what it gives up.
    "job" "component_ended" JobComponentEnded {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// Which of its components, from 0.
        component: u32,
        /// How it came to its end.
        #[serde(flatten)]
        outcome: OutcomeView,
        /// Its usage on its nodes.
        usage: Usage,
    }
    /// The planner made a pass of backfill that starts jobs with several components.
    "plan" "backfilled" PlanBackfilled {
        /// The number of the pass, from 1.
        number: u64,
        /// The time that it planned for.
        at: Timestamp,
        /// How it looked at jobs with several components: `singly` (mode 1) or `together` (mode 2).
        mode: ComponentMode,
        /// How many it looked at that did not start.
        total: u64,
        /// The first 10,000 of them.
        jobs: Vec<PassedJob>,
    }
    /// Accounts, users, associations or service classes changed.
    "accounts" "changed" AccountsChanged {
        /// The changes, in this order.
        changes: Arc<Vec<AccountChange>>,
    }
    /// The enforcement of accounts and classes changed.
    "accounts" "settings_changed" AccountsSettingsChanged {
        /// The settings from now on.
        settings: Arc<AccountSettings>,
    }
    /// A waiting job, or one component of it, belongs to another service class.
    "job" "class_changed" JobClassChanged {
        /// The job.
        job: JobId,
        /// Only this component, from 0; `null` means all.
        component: Option<u32>,
        /// The class from now on.
        class: String,
    }
    /// The system, or the program that was called, refused a command of the actor; nothing else changed.
    "command" "refused" CommandRefused {
        /// The request, such as `submit`; the program and its verb if a program refused, such as `srun`.
        command: String,
        /// The kind of refusal.
        code: RefusalCode,
        /// Why.
        message: String,
        /// Number of refusals of the same user before this one that left no event, because there were too many in a
        /// short time.
        unrecorded: u64,
    }
    /// A task of a running job was started, as a step of it.
    "task" "started" TaskStarted {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// The place of the task in the job's list, from 0.
        task: u32,
        /// Which of its instances, from 0.
        instance: u32,
        /// Its nodes, with the number of its cores on each.
        nodes: Vec<StepNode>,
    }
    /// Filters, templates, staging, or the way resources are given to jobs, were changed by the actor.
    "config" "changed" ConfigChanged {
        /// `filters`, `scheduling`, `staging`, or `template NAME`.
        what: String,
        /// As it was; `null` if it is new.
        #[schema(value_type = Option<Object>)]
        old: Option<serde_json::Value>,
        /// As it is from now on; `null` if it was removed.
        #[schema(value_type = Option<Object>)]
        new: Option<serde_json::Value>,
    }
    /// A planner began its work.
    "planner" "started" PlannerStarted {
        /// How many have, this one included.
        epoch: u64,
    }
    /// Old records were moved to an archive file.
    "log" "archived" LogArchived {
        /// The first of the range.
        first: Sequence,
        /// The last of the range.
        last: Sequence,
        /// BLAKE3 hash of the last record of the range, in hex.
        last_hash: String,
        /// The file's name in the archive folder.
        file: String,
    }
}

/// The changes of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct AlteredJob {
    /// Another reservation, empty for none.
    pub reservation: Option<String>,
    /// Another deadline.
    pub deadline: Option<Timestamp>,
    /// Whether it may be started a second time after a node was lost.
    pub requeue_on_node_lost: Option<bool>,
    /// The names of attributes that changed.
    pub attributes: Vec<String>,
    /// Only this component, from 0; `null` means all.
    pub component: Option<u32>,
}

impl From<&FurtherChange> for AlteredJob {
    fn from(change: &FurtherChange) -> Self {
        Self {
            reservation: change.reservation.clone(),
            deadline: change.deadline,
            requeue_on_node_lost: change.requeue_on_node_lost,
            attributes: change.attributes.keys().cloned().collect(),
            component: change.component,
        }
    }
}

/// A description as it was received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReceivedDocument {
    /// How it is written: `xml` or `json`.
    pub format: String,
    /// How many bytes are in the log.
    pub bytes: u64,
    /// BLAKE3 of those bytes, in hex.
    pub hash: String,
}

/// The outcome of a call of a filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FilterResult {
    /// How it ended.
    pub exit: FilterExit,
    /// The exit code that is recorded; `null` if no program ended by itself.
    pub exit_code: Option<u8>,
    /// From the start of the process or the delivery to its end or answer.
    pub duration_micros: u64,
    /// BLAKE3 of the program, in hex.
    pub program_hash: Option<String>,
    /// BLAKE3 of the description that it was given, in hex.
    pub input_hash: String,
    /// Its changes of the description, as far as they can be taken.
    pub changes: Vec<PropertyChange>,
    /// The text that it wants shown on the job.
    pub message: Option<String>,
    /// Its standard output, the first 64 KiB.
    pub stdout: String,
    /// Its standard error, the first 64 KiB.
    pub stderr: String,
    /// Whether it wrote more than that to either (HPC-F-63).
    pub is_output_cut: bool,
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
    /// Higher goes first.
    pub priority: Option<i64>,
    /// Not before this time.
    pub begin: Option<Timestamp>,
    /// If it has not ended by then it is no longer started.
    pub deadline: Option<Timestamp>,
    /// Conditions for its start.
    pub dependencies: Dependencies,
    /// Holds that it was submitted with.
    pub holds: Holds,
    /// The reservation that it runs in.
    pub reservation: Option<String>,
    /// Ways to serve it.
    pub alternatives: Vec<Alternative>,
}

/// The occasions on which somebody is notified. The receivers are not disclosed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct SubmittedNotification {
    /// On which occasions; empty means start and end.
    pub on: Vec<Occasion>,
    /// How.
    pub sink: SinkKind,
}

/// How somebody is notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SinkKind {
    /// By mail.
    Mail,
    /// By a command that is run as the job's owner.
    Exec,
}

/// A job that waits, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct WaitingJob {
    /// The job or array.
    pub job: JobId,
    /// Why.
    pub reason: ReasonView,
}

/// A plan's statement about a waiting job. Unchanged parts are left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PlannedJob {
    /// The job or array.
    pub job: JobId,
    /// Why it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<ReasonView>,
    /// When it starts at the latest, as promised; `null` if the promise was taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Timestamp>)]
    pub slot_start: Option<Option<Timestamp>>,
    /// When it is thought to start; `null` if it cannot be foreseen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Timestamp>)]
    pub predicted_start: Option<Option<Timestamp>>,
}

/// A job with several components that did not start in a pass of backfill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PassedJob {
    /// The job.
    pub job: JobId,
    /// Why it waits.
    pub reason: ReasonView,
    /// When and where its components are thought to start, in their order.
    pub components: Vec<PassedComponent>,
}

/// When and where a component is thought to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PassedComponent {
    /// When; `null` if that is not known.
    pub start: Option<Timestamp>,
    /// The nodes that it has then.
    pub nodes: Vec<String>,
}

/// A run's share of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct AllocatedNode {
    /// The node's name.
    pub node: String,
    /// The component that it serves, from 0.
    pub component: u32,
    /// Which of the component's alternatives was taken, from 0.
    pub alternative: u32,
    /// Its cores.
    pub cores: IndexSet,
    /// Its GPUs.
    pub gpus: IndexSet,
    /// Its memory; 0 means that none is set aside.
    pub memory_bytes: u64,
    /// How many tasks run there.
    pub tasks: u32,
    /// Whether the node serves no other job meanwhile.
    pub exclusive: bool,
}

/// A number of tasks of a step on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct StepNode {
    /// The node's name.
    pub node: String,
    /// How many tasks.
    pub tasks: u32,
}

/// A step's share of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct StepPart {
    /// The node's name.
    pub node: String,
    /// Which component of the job it serves.
    pub component: u32,
    /// How many tasks run there.
    pub tasks: u32,
    /// The cores that they may use.
    pub cores: IndexSet,
}

impl EventData {
    /// The data of a record's event, with names for its numbers.
    pub fn of(record: &Record, names: &dyn Names) -> Self {
        let node = |id: &NodeId| node_name(names, *id).into_owned();
        match &record.event {
            Event::ClusterInitialised { cluster_id, public_key, .. } => {
                ClusterInitialised { cluster_id: cluster_id.to_string(), public_key: hex(public_key) }.into()
            }
            Event::SettingsChanged { settings } => ClusterSettingsChanged { settings: settings.clone() }.into(),
            Event::QueueSet { queue } => QueueSet { queue: queue.clone() }.into(),
            Event::QueueRemoved { name } => QueueRemoved { queue: name.clone() }.into(),
            Event::LicenceSet { name, total } => LicenceSet { licence: name.clone(), total: *total }.into(),
            Event::NodeAdded { spec, .. } => NodeAdded { node: spec.name.clone(), spec: spec.clone() }.into(),
            Event::NodeChanged { spec, .. } => NodeChanged { node: spec.name.clone(), spec: spec.clone() }.into(),
            Event::NodeRemoved { node: id } => NodeRemoved { node: node(id) }.into(),
            Event::NodeUp { node: id, boot_id } => NodeUp { node: node(id), boot_id: boot_id.clone() }.into(),
            Event::NodeLost { node: id, reason } => NodeLost { node: node(id), reason: reason.clone() }.into(),
            Event::NodeTakenOut { node: id, reason, is_down: false } => {
                NodeDrained { node: node(id), reason: reason.clone() }.into()
            }
            Event::NodeTakenOut { node: id, reason, .. } => NodeDown { node: node(id), reason: reason.clone() }.into(),
            Event::NodeResumed { node: id } => NodeResumed { node: node(id) }.into(),
            Event::JobSubmitted { job, owner, spec } => submitted(*job, &owner.user, spec, None).into(),
            Event::JobHeld { job, holds, reason } => held(*job, *holds, reason, None).into(),
            Event::JobReleased { job, holds } => released(*job, *holds, None).into(),
            Event::ComponentHeld { job, component, holds, reason } => {
                held(*job, *holds, reason, Some(*component)).into()
            }
            Event::ComponentReleased { job, component, holds } => released(*job, *holds, Some(*component)).into(),
            Event::JobModified { job, change } => JobModified { job: *job, change: change.clone() }.into(),
            Event::JobAltered { job, change } => JobAltered { job: *job, change: (&**change).into() }.into(),
            Event::JobTold { job, run, .. } => JobTold { job: *job, run: *run }.into(),
            Event::JobEligible { job } => JobEligible { job: *job }.into(),
            Event::JobsWaiting { reasons } => waiting(reasons).into(),
            Event::RunAllocated { job, run, placement } => {
                JobAllocated { job: *job, run: *run, nodes: allocated(placement, names) }.into()
            }
            Event::RunNodeStarted { job, run, node: id } => {
                RunNodeStarted { job: *job, run: *run, node: node(id) }.into()
            }
            Event::RunStarted { job, run, node: id } => JobStarted { job: *job, run: *run, node: node(id) }.into(),
            Event::RunStopping { job, run, reason } => JobStopping { job: *job, run: *run, reason: *reason }.into(),
            Event::RunNodeEnded { job, run, node: id, exit } => {
                RunNodeEnded { job: *job, run: *run, node: node(id), exit: exit.clone() }.into()
            }
            Event::RunEnded { job, run, last, outcome, usage } => RunEnded {
                job: *job,
                run: *run,
                node: last.as_ref().map(|part| node(&part.node)),
                exit: last.as_ref().map(|part| part.exit.clone()),
                outcome: outcome.into(),
                usage: *usage,
            }
            .into(),
            Event::JobRequeued { job, reason } => JobRequeued { job: *job, reason: *reason }.into(),
            Event::JobFinished { job, outcome } => finished(*job, outcome).into(),
            Event::JobSuspended { job, run } => JobSuspended { job: *job, run: *run }.into(),
            Event::RunCoresLent { job, run } => JobCoresLent { job: *job, run: *run }.into(),
            Event::JobResuming { job, run } => JobResuming { job: *job, run: *run }.into(),
            Event::JobResumed { job, run } => JobResumed { job: *job, run: *run }.into(),
            Event::JobSignalled { job, run, signal } => JobSignalled { job: *job, run: *run, signal: *signal }.into(),
            Event::StepStarted { job, run, step, tasks, .. } => StepStarted {
                job: *job,
                run: *run,
                step: *step,
                nodes: tasks.iter().map(|part| StepNode { node: node(&part.node), tasks: part.tasks }).collect(),
            }
            .into(),
            Event::StepNodeEnded { job, run, step, node: id, exit } => {
                StepNodeEnded { job: *job, run: *run, step: *step, node: node(id), exit: exit.clone() }.into()
            }
            Event::StepEnded { job, run, step, status } => {
                StepEnded { job: *job, run: *run, step: *step, exit_status: *status }.into()
            }
            Event::NotificationDone { job, of, notification, occasion, result } => {
                let attempts = match result {
                    crate::event::DeliveryResult::Delivered => None,
                    crate::event::DeliveryResult::GivenUp { attempts, .. } => Some(*attempts),
                };
                let (delivered, notification) = (attempts.is_none(), *notification);
                JobNotified { job: *job, of: *of, notification, occasion: *occasion, delivered, attempts }.into()
            }
            Event::Checkpoint { state_digest, signature, .. } => {
                LogCheckpoint { state_digest: hex(state_digest), signature: hex(&signature.r) + &hex(&signature.s) }
                    .into()
            }
            Event::StartRefused { job, reason } => JobStartRefused { job: *job, reason: reason.clone() }.into(),
            Event::TasksFinished { job, indices, outcome } => {
                JobTasksFinished { job: *job, indices: indices.clone(), outcome: outcome.into() }.into()
            }
            Event::RunNumbersRaised { next } => ClusterRunNumbersRaised { next: *next }.into(),
            Event::JobNumbersSet { first } => ClusterJobNumbersSet { first: *first }.into(),
            Event::PolicySet { policy } => PolicySet { policy: policy.clone() }.into(),
            Event::ReservationSet { reservation } => ReservationSet { reservation: reservation.clone() }.into(),
            Event::ReservationPlaced { name, nodes } => {
                ReservationPlaced { reservation: name.clone(), nodes: nodes.iter().map(node).collect() }.into()
            }
            Event::ReservationBegun { name } => ReservationBegun { reservation: name.clone() }.into(),
            Event::ReservationRemoved { name } => ReservationRemoved { reservation: name.clone() }.into(),
            Event::NodeClosuresSet { node: id, closures } => {
                NodeClosuresSet { node: node(id), closures: closures.clone() }.into()
            }
            Event::Planned { plan } => planned(plan).into(),
            Event::JobReceived { job, owner, spec, intake } => submitted(*job, &owner.user, spec, Some(intake)).into(),
            Event::JobConfigured { job, spec, .. } => JobConfigured { job: *job, name: spec.name.clone() }.into(),
            Event::JobEntered { job } => JobEntered { job: *job }.into(),
            Event::JobValidated { job, validated } => self::validated(*job, validated).into(),
            Event::JobQueued { job } => JobQueued { job: *job }.into(),
            Event::FilterChainStarted { job, chain } => chain_started(*job, chain, names).into(),
            Event::FilterInvoked { call, attempt, runner } => FilterInvoked {
                job: call.job,
                call: *call,
                invocation: call.to_string(),
                attempt: *attempt,
                runner: runner.clone(),
            }
            .into(),
            Event::FilterElsewhere { call, runner } => {
                FilterElsewhere { job: call.job, call: *call, runner: runner.clone() }.into()
            }
            Event::FilterOfferedAgain { call, attempt } => {
                FilterOfferedAgain { job: call.job, call: *call, attempt: *attempt }.into()
            }
            Event::JobEndRequested { job, outcome } => JobEndRequested { job: *job, outcome: outcome.into() }.into(),
            Event::FilterVerdict { call, report } => {
                FilterVerdict { job: call.job, call: *call, result: (&**report).into() }.into()
            }
            Event::FilterChainPassed { job, kind, chain } => {
                FilterChainPassed { job: *job, filter_kind: *kind, chain: *chain }.into()
            }
            Event::FilterChainFailed { job, kind, chain, verdict, position, message } => FilterChainFailed {
                job: *job,
                filter_kind: *kind,
                chain: *chain,
                verdict: *verdict,
                position: *position,
                message: message.clone(),
            }
            .into(),
            Event::FilterReverted { call, report } => {
                FilterReverted { job: call.job, call: *call, result: (&**report).into() }.into()
            }
            Event::FilterRevertFailed { call, report } => {
                FilterRevertFailed { job: call.job, call: *call, result: (&**report).into() }.into()
            }
            Event::FilterRevertSkipped { call, reason } => {
                FilterRevertSkipped { job: call.job, call: *call, reason: reason.clone() }.into()
            }
            Event::FilterRollbackCompleted { job, kind, chain } => {
                FilterRollbackCompleted { job: *job, filter_kind: *kind, chain: *chain }.into()
            }
            Event::FilterLateResult { call, attempt, runner, exit } => FilterLateResult {
                job: call.job,
                call: *call,
                attempt: *attempt,
                runner: runner.clone(),
                exit: exit.clone(),
            }
            .into(),
            Event::FilterRunnersMissing { since, calls } => FilterNoRunner { since: *since, calls: *calls }.into(),
            Event::JobHeldUntil { job, until, by } => {
                let reason = crate::job::WaitReason::HeldUntil { until: *until, by: *by }.to_string();
                JobHeld { until: Some(*until), by: Some(*by), ..held(*job, Holds::default(), &reason, None) }.into()
            }
            Event::JobHoldEnded { job, .. } => {
                JobReleased { was_timed: true, ..released(*job, Holds::default(), None) }.into()
            }
            Event::JobWarned { job, warning } => {
                JobWarningRaised { job: *job, code: warning.code.clone(), text: warning.text.clone() }.into()
            }
            Event::JobMessage { job, text } => JobMessage { job: *job, text: text.clone() }.into(),
            Event::QueueBlocked { job, priority } => QueueBlocked { job: *job, priority: *priority }.into(),
            Event::QueueUnblocked { job } => QueueUnblocked { job: *job }.into(),
            Event::ResourcesReserved { job, run, placement } => {
                ResourcesReserved { job: *job, run: *run, nodes: allocated(placement, names) }.into()
            }
            Event::ResourcesReleased { job, run } => ResourcesReleased { job: *job, run: *run }.into(),
            Event::RunBackfilled { job, run } => JobBackfilled { job: *job, run: *run }.into(),
            Event::RunGrown { job, run, added } => {
                JobGrown { job: *job, run: *run, nodes: allocated(added, names) }.into()
            }
            Event::GrowthRejected { job, run } => JobGrowRejected { job: *job, run: *run }.into(),
            Event::TasksStopping { job, run, reason, is_graceful } => {
                JobTasksStopping { job: *job, run: *run, reason: *reason, is_graceful: *is_graceful }.into()
            }
            Event::RunShrinking { job, run, removed, reason } => {
                JobShrinking { job: *job, run: *run, reason: *reason, nodes: allocated(removed, names) }.into()
            }
            Event::RunShrunk { job, run, removed } => {
                JobShrunk { job: *job, run: *run, nodes: allocated(removed, names) }.into()
            }
            Event::StepLaunched { job, run, step, spec, shares } => StepLaunched {
                job: *job,
                run: *run,
                step: *step,
                name: spec.name.clone(),
                nodes: shares.iter().map(|share| step_part(share, names)).collect(),
                walltime_seconds: spec.walltime_seconds,
            }
            .into(),
            Event::StepTermsSet { job, run, step, groups: _ } => {
                StepTermsSet { job: *job, run: *run, step: *step }.into()
            }
            Event::StepSignalled { job, run, step, component, signal } => {
                StepSignalled { job: *job, run: *run, step: *step, component: *component, signal: *signal }.into()
            }
            Event::StepStopping { job, run, step, component, is_forced } => {
                StepStopping { job: *job, run: *run, step: *step, component: *component, is_forced: *is_forced }.into()
            }
            Event::StepTasksEnded { job, run, step, node: id, exit, statuses } => StepTasksEnded {
                job: *job,
                run: *run,
                step: *step,
                node: node(id),
                exit: exit.clone(),
                statuses: statuses.clone(),
            }
            .into(),
            Event::RunPartStarted { job, run, node: id, component } => {
                RunPartStarted { job: *job, run: *run, node: node(id), component: *component }.into()
            }
            Event::RunPartEnded { job, run, node: id, component, exit } => {
                RunPartEnded { job: *job, run: *run, node: node(id), component: *component, exit: exit.clone() }.into()
            }
            Event::StepPartEnded { job, run, step, node: id, component, exit, statuses } => StepPartEnded {
                job: *job,
                run: *run,
                step: *step,
                node: node(id),
                component: *component,
                exit: exit.clone(),
                statuses: statuses.clone(),
            }
            .into(),
            Event::JobKept { job, seconds, is_late } => {
                JobKept { job: *job, seconds: *seconds, is_late: *is_late }.into()
            }
            Event::ComponentStopping { job, run, component, reason } => {
                JobComponentStopping { job: *job, run: *run, component: *component, reason: *reason }.into()
            }
            Event::ComponentEnded { job, run, component, outcome, usage } => JobComponentEnded {
                job: *job,
                run: *run,
                component: *component,
                outcome: outcome.into(),
                usage: *usage,
            }
            .into(),
            Event::BackfillPassed { pass } => passed(pass, names).into(),
            Event::AccountsChanged { changes } => AccountsChanged { changes: changes.clone() }.into(),
            Event::AccountSettingsChanged { settings } => AccountsSettingsChanged { settings: settings.clone() }.into(),
            Event::ClassChanged { job, component, class } => {
                JobClassChanged { job: *job, component: *component, class: class.clone() }.into()
            }
            Event::CommandRefused { command, code, message, unrecorded } => CommandRefused {
                command: command.clone(),
                code: *code,
                message: message.clone(),
                unrecorded: *unrecorded,
            }
            .into(),
            Event::TaskStarted { job, run, step, instance, cores } => TaskStarted {
                job: *job,
                run: *run,
                step: *step,
                task: instance.task,
                instance: instance.instance,
                nodes: cores.iter().map(|part| StepNode { node: node(&part.node), tasks: part.tasks }).collect(),
            }
            .into(),
            Event::FilterSettingsSet { old, settings } => changed("filters", Some(old), Some(settings)).into(),
            Event::SchedulingSet { old, settings } => changed("scheduling", Some(old), Some(settings)).into(),
            Event::StagingSet { old, settings } => changed("staging", Some(old), Some(settings)).into(),
            Event::TemplateSet { old, template } => {
                changed(&format!("template {}", template.name), old.as_ref(), Some(template)).into()
            }
            Event::TemplateRemoved { old } => changed(&format!("template {}", old.name), Some(old), None).into(),
            Event::PlannerStarted { epoch } => PlannerStarted { epoch: *epoch }.into(),
            Event::RangeArchived { first, last, last_hash, file } => {
                LogArchived { first: *first, last: *last, last_hash: hex(last_hash), file: file.clone() }.into()
            }
        }
    }

    /// The id or name of what it happened to.
    pub fn subject(&self, cluster: &str) -> String {
        match self {
            Self::ClusterInitialised(_)
            | Self::ClusterSettingsChanged(_)
            | Self::ClusterRunNumbersRaised(_)
            | Self::ClusterJobNumbersSet(_)
            | Self::PlanWaiting(_)
            | Self::PlanMade(_)
            | Self::PlanBackfilled(_)
            | Self::LogCheckpoint(_)
            | Self::FilterNoRunner(_)
            | Self::ConfigChanged(_)
            | Self::PlannerStarted(_)
            | Self::AccountsChanged(_)
            | Self::AccountsSettingsChanged(_)
            | Self::LogArchived(_) => cluster.to_owned(),
            Self::QueueSet(data) => data.queue.name.clone(),
            Self::QueueRemoved(data) => data.queue.clone(),
            Self::LicenceSet(data) => data.licence.clone(),
            Self::NodeAdded(data) => data.node.clone(),
            Self::NodeChanged(data) => data.node.clone(),
            Self::NodeRemoved(data) => data.node.clone(),
            Self::NodeUp(data) => data.node.clone(),
            Self::NodeLost(data) => data.node.clone(),
            Self::NodeDrained(data) => data.node.clone(),
            Self::NodeDown(data) => data.node.clone(),
            Self::NodeResumed(data) => data.node.clone(),
            Self::NodeClosuresSet(data) => data.node.clone(),
            Self::PolicySet(data) => data.policy.name.clone(),
            Self::ReservationSet(data) => data.reservation.name.clone(),
            Self::ReservationPlaced(data) => data.reservation.clone(),
            Self::ReservationBegun(data) => data.reservation.clone(),
            Self::ReservationRemoved(data) => data.reservation.clone(),
            Self::JobSubmitted(data) => data.job.to_string(),
            Self::JobHeld(data) => data.job.to_string(),
            Self::JobReleased(data) => data.job.to_string(),
            Self::JobModified(data) => data.job.to_string(),
            Self::JobAltered(data) => data.job.to_string(),
            Self::JobTold(data) => data.job.to_string(),
            Self::JobEligible(data) => data.job.to_string(),
            Self::JobAllocated(data) => data.job.to_string(),
            Self::RunNodeStarted(data) => data.job.to_string(),
            Self::JobStarted(data) => data.job.to_string(),
            Self::JobStopping(data) => data.job.to_string(),
            Self::RunNodeEnded(data) => data.job.to_string(),
            Self::RunEnded(data) => data.job.to_string(),
            Self::JobRequeued(data) => data.job.to_string(),
            Self::JobFinished(data) => data.job.to_string(),
            Self::JobSuspended(data) => data.job.to_string(),
            Self::JobCoresLent(data) => data.job.to_string(),
            Self::JobResuming(data) => data.job.to_string(),
            Self::JobResumed(data) => data.job.to_string(),
            Self::JobSignalled(data) => data.job.to_string(),
            Self::StepStarted(data) => data.job.to_string(),
            Self::StepNodeEnded(data) => data.job.to_string(),
            Self::StepEnded(data) => data.job.to_string(),
            Self::JobNotified(data) => data.job.to_string(),
            Self::JobStartRefused(data) => data.job.to_string(),
            Self::JobTasksFinished(data) => data.job.to_string(),
            Self::JobConfigured(data) => data.job.to_string(),
            Self::JobEntered(data) => data.job.to_string(),
            Self::JobValidated(data) => data.job.to_string(),
            Self::JobQueued(data) => data.job.to_string(),
            Self::FilterChainStarted(data) => data.job.to_string(),
            Self::FilterInvoked(data) => data.job.to_string(),
            Self::FilterElsewhere(data) => data.job.to_string(),
            Self::FilterOfferedAgain(data) => data.job.to_string(),
            Self::JobEndRequested(data) => data.job.to_string(),
            Self::FilterVerdict(data) => data.job.to_string(),
            Self::FilterChainPassed(data) => data.job.to_string(),
            Self::FilterChainFailed(data) => data.job.to_string(),
            Self::FilterReverted(data) => data.job.to_string(),
            Self::FilterRevertFailed(data) => data.job.to_string(),
            Self::FilterRevertSkipped(data) => data.job.to_string(),
            Self::FilterRollbackCompleted(data) => data.job.to_string(),
            Self::FilterLateResult(data) => data.job.to_string(),
            Self::JobWarningRaised(data) => data.job.to_string(),
            Self::JobMessage(data) => data.job.to_string(),
            Self::QueueBlocked(data) => data.job.to_string(),
            Self::QueueUnblocked(data) => data.job.to_string(),
            Self::ResourcesReserved(data) => data.job.to_string(),
            Self::ResourcesReleased(data) => data.job.to_string(),
            Self::JobBackfilled(data) => data.job.to_string(),
            Self::JobGrown(data) => data.job.to_string(),
            Self::JobGrowRejected(data) => data.job.to_string(),
            Self::JobTasksStopping(data) => data.job.to_string(),
            Self::JobShrinking(data) => data.job.to_string(),
            Self::JobShrunk(data) => data.job.to_string(),
            Self::TaskStarted(data) => data.job.to_string(),
            Self::StepLaunched(data) => data.job.to_string(),
            Self::StepTermsSet(data) => data.job.to_string(),
            Self::StepSignalled(data) => data.job.to_string(),
            Self::StepStopping(data) => data.job.to_string(),
            Self::StepTasksEnded(data) => data.job.to_string(),
            Self::RunPartStarted(data) => data.job.to_string(),
            Self::RunPartEnded(data) => data.job.to_string(),
            Self::StepPartEnded(data) => data.job.to_string(),
            Self::JobKept(data) => data.job.to_string(),
            Self::JobComponentStopping(data) => data.job.to_string(),
            Self::JobComponentEnded(data) => data.job.to_string(),
            Self::JobClassChanged(data) => data.job.to_string(),
            Self::CommandRefused(data) => data.command.clone(),
        }
    }
}

/// The name of a node, or its number behind a `#` if there has never been one.
pub fn node_name(names: &dyn Names, node: NodeId) -> Cow<'_, str> {
    names.node_name(node).map_or_else(|| Cow::Owned(format!("#{node}")), Cow::Borrowed)
}

fn held(job: JobId, holds: Holds, reason: &str, component: Option<u32>) -> JobHeld {
    JobHeld { job, holds, reason: reason.to_owned(), until: None, by: None, component }
}

fn released(job: JobId, holds: Holds, component: Option<u32>) -> JobReleased {
    JobReleased { job, holds, was_timed: false, component }
}

fn submitted(job: JobId, owner: &str, spec: &JobSpec, intake: Option<&Intake>) -> JobSubmitted {
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
        template: intake.and_then(|intake| intake.template.clone()),
        document: intake.and_then(|intake| intake.document.as_ref()).map(|document| ReceivedDocument {
            format: document.format.clone(),
            bytes: document.bytes.len() as u64,
            hash: blake3::hash(&document.bytes).to_string(),
        }),
        tasks: intake.and_then(|intake| intake.tasks.as_ref()).map(|list| list.tasks.len() as u64),
    }
}

fn validated(job: JobId, validated: &Validated) -> JobValidated {
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

fn chain_started(job: JobId, chain: &ChainSpec, names: &dyn Names) -> FilterChainStarted {
    FilterChainStarted {
        job,
        filter_kind: chain.kind,
        chain: chain.number,
        filters: chain.filters.clone(),
        limit_seconds: chain.limit_seconds,
        parameters: chain.offer.as_ref().map(|offer| offer.parameters),
        nodes: chain.offer.as_ref().map(|offer| allocated(&offer.placement, names)).unwrap_or_default(),
    }
}

impl From<&FilterReport> for FilterResult {
    fn from(report: &FilterReport) -> Self {
        let changes = match &report.file {
            FileAfter::Changed { changes, .. } => changes.clone(),
            FileAfter::Unchanged | FileAfter::Bad(_) => Vec::new(),
        };
        Self {
            exit: report.exit.clone(),
            exit_code: report.exit.code(),
            duration_micros: report.duration_micros,
            program_hash: report.program_hash.clone(),
            input_hash: report.input_hash.clone(),
            changes,
            message: report.message.clone(),
            stdout: report.stdout.clone(),
            stderr: report.stderr.clone(),
            is_output_cut: report.is_output_cut,
        }
    }
}

/// A change of configuration. What is configured has no keys that are not text, so it always is a value.
fn changed<T: Serialize>(what: &str, old: Option<&Arc<T>>, new: Option<&Arc<T>>) -> ConfigChanged {
    let value = |known: Option<&Arc<T>>| known.and_then(|known| serde_json::to_value(known).ok());
    ConfigChanged { what: what.to_owned(), old: value(old), new: value(new) }
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

fn waiting(reasons: &[crate::event::WaitingJob]) -> PlanWaiting {
    let listed = reasons.iter().take(MAX_WAITING_JOBS);
    PlanWaiting {
        total: reasons.len() as u64,
        jobs: listed.map(|entry| WaitingJob { job: entry.job, reason: (&entry.reason).into() }).collect(),
    }
}

fn planned(plan: &PlanRecord) -> PlanMade {
    let mut jobs: BTreeMap<JobId, PlannedJob> = BTreeMap::new();
    let empty = |job| PlannedJob { job, reason: None, slot_start: None, predicted_start: None };
    for waiting in &plan.reasons {
        jobs.entry(waiting.job).or_insert_with_key(|job| empty(*job)).reason = Some((&waiting.reason).into());
    }
    for planned in &plan.slots {
        let start = planned.slot.as_ref().map(|slot| slot.start);
        jobs.entry(planned.job).or_insert_with_key(|job| empty(*job)).slot_start = Some(start);
    }
    for predicted in &plan.predictions {
        jobs.entry(predicted.job).or_insert_with_key(|job| empty(*job)).predicted_start = Some(predicted.start);
    }
    PlanMade {
        seen: plan.seen,
        at: plan.at,
        refused: plan.refused.clone(),
        left_out: plan.left_out.len() as u64,
        reasons: plan.reasons.len() as u64,
        slots: plan.slots.len() as u64,
        predictions: plan.predictions.len() as u64,
        jobs: jobs.into_values().take(MAX_WAITING_JOBS).collect(),
    }
}

fn passed(pass: &BackfillPass, names: &dyn Names) -> PlanBackfilled {
    let component = |planned: &crate::plan::PlannedComponent| PassedComponent {
        start: planned.start,
        nodes: planned.nodes.iter().map(|node| node_name(names, *node).into_owned()).collect(),
    };
    let job = |planned: &crate::plan::PlannedComponents| PassedJob {
        job: planned.job,
        reason: (&planned.reason).into(),
        components: planned.components.iter().map(component).collect(),
    };
    PlanBackfilled {
        number: pass.number,
        at: pass.at,
        mode: pass.mode,
        total: pass.jobs.len() as u64,
        jobs: pass.jobs.iter().take(MAX_WAITING_JOBS).map(job).collect(),
    }
}

fn allocated(placement: &Placement, names: &dyn Names) -> Vec<AllocatedNode> {
    let mut nodes = Vec::new();
    for (component, placed) in (0..).zip(&placement.components) {
        nodes.extend(placed.shares.iter().map(|share| AllocatedNode {
            node: node_name(names, share.node).into_owned(),
            component,
            alternative: placed.alternative,
            cores: share.cores.clone(),
            gpus: share.gpus.clone(),
            memory_bytes: share.memory_bytes,
            tasks: share.tasks,
            exclusive: share.exclusive,
        }));
    }
    nodes
}

fn step_part(share: &StepShare, names: &dyn Names) -> StepPart {
    StepPart {
        node: node_name(names, share.node).into_owned(),
        component: share.component,
        tasks: share.tasks,
        cores: share.cores.clone(),
    }
}

fn finished(job: JobId, outcome: &Outcome) -> JobFinished {
    JobFinished { job, outcome: outcome.into() }
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
