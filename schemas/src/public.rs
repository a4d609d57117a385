//! The public form of events: CloudEvents 1.0 in JSON, as integrations get them over the bus and from the gateway.
//!
//! The data of an event has names instead of node numbers, and nothing that a job's owner may want to keep to
//! themselves: no script, arguments, environment, mail address or notification command.

use crate::{
    cluster::{ClusterSettings, QueueSpec},
    event::{Actor, Event, JobChange, NodeExit, Record, StopReason},
    ids::{JobId, NodeId, RunId, Sequence, StepId},
    job::{ArraySpec, Dependencies, ExitStatus, Holds, JobSpec, JobType, Notification, Occasion, Outcome, Sink, Usage},
    plan::{NodeClosure, PlanRecord, ReservationSpec},
    policy::Policy,
    resources::{Alternative, IndexSet, NodeSpec, Placement},
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
/// A `plan.waiting` or `plan.made` event lists at most so many jobs; its counts are of all.
pub const MAX_WAITING_JOBS: usize = 10_000;

/// What the numbers in an event mean. Whoever has the state can say.
pub trait Names {
    /// The name of a node, if it is known.
    fn node_name(&self, node: NodeId) -> Option<&str>;
    /// The job that a run belongs to, if it is known.
    fn job_of_run(&self, run: RunId) -> Option<JobId>;
}

/// An event ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicEvent {
    /// The bus subject: `muster.events.KIND.VERB.ID`.
    pub bus_subject: String,
    /// The CloudEvent, on one line.
    pub json: String,
}

/// The public form of a record.
pub fn cloud_event(record: &Record, names: &dyn Names, cluster: &str) -> PublicEvent {
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
    /// What happened: `muster.KIND.VERB.VERSION`.
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
    /// Who asked for it: `user:NAME`, `node:NAME`, `planner`, `notifier` or `ledger`.
    actor: String,
    /// One sentence for people. Its wording is not stable.
    summary: String,
    /// What belongs to this type of event.
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
    }
}

/// A kind of event in the catalogue.
pub struct EventType {
    /// What it happens to, such as `job`.
    pub kind: &'static str,
    /// What happens, such as `started`.
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
        /// What it is.
        spec: Arc<NodeSpec>,
    }
    /// A node became something else.
    "node" "changed" NodeChanged {
        /// Its name.
        node: String,
        /// What it is from now on.
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
    /// A node has not been heard of for too long.
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
        /// Why, as the operator said.
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
        /// What people call it.
        name: String,
        /// Login name of whose it is.
        owner: String,
        /// The tasks, if it is an array.
        array: Option<ArraySpec>,
        /// Its components: one for a plain job.
        components: Vec<SubmittedComponent>,
        /// Who is told of what.
        notifications: Vec<SubmittedNotification>,
        /// Kinds of job with rules of their own.
        types: Vec<JobType>,
    }
    /// Holds were added to a job.
    "job" "held" JobHeld {
        /// The job, array or task.
        job: JobId,
        /// Those added.
        holds: Holds,
        /// Why, for people.
        reason: String,
    }
    /// Holds were taken away from a job.
    "job" "released" JobReleased {
        /// The job, array or task.
        job: JobId,
        /// Those taken away.
        holds: Holds,
    }
    /// A job was changed.
    "job" "modified" JobModified {
        /// The job.
        job: JobId,
        /// What changed; what did not is `null`.
        change: Arc<JobChange>,
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
    /// The processes of a run have started on one node, and on others they have not yet.
    "run" "node_started" RunNodeStarted {
        /// The job; `null` if it is no longer known.
        job: Option<JobId>,
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
    /// The part of a run on one node has ended, others go on.
    "run" "node_ended" RunNodeEnded {
        /// The job; `null` if it is no longer known.
        job: Option<JobId>,
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
        /// What it used on all nodes.
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
    /// A suspended job goes on.
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
        /// The job; `null` if it is no longer known.
        job: Option<JobId>,
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
        /// The sequence of the event that it tells of.
        of: Sequence,
        /// Which of the job's notifications, from 0.
        notification: u32,
        /// What it told.
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
    /// A plan was made: what it came to beside its starts, and what it was made from.
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
    /// If it has not ended by then it is not started any more.
    pub deadline: Option<Timestamp>,
    /// What must have happened before.
    pub dependencies: Dependencies,
    /// Holds that it was submitted with.
    pub holds: Holds,
    /// The reservation that it runs in.
    pub reservation: Option<String>,
    /// Ways to serve it.
    pub alternatives: Vec<Alternative>,
}

/// On which occasions somebody is told. Whom is theirs to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct SubmittedNotification {
    /// On which occasions; empty means start and end.
    pub on: Vec<Occasion>,
    /// How.
    pub sink: SinkKind,
}

/// How somebody is told.
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

/// What a plan says of a job that waits. What did not change is left out.
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

/// What a run has of one node.
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

/// So many tasks of a step on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct StepNode {
    /// The node's name.
    pub node: String,
    /// How many tasks.
    pub tasks: u32,
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
            Event::NodeDrained { node: id, reason } => NodeDrained { node: node(id), reason: reason.clone() }.into(),
            Event::NodeResumed { node: id } => NodeResumed { node: node(id) }.into(),
            Event::JobSubmitted { job, owner, spec } => submitted(*job, &owner.user, spec).into(),
            Event::JobHeld { job, holds, reason } => {
                JobHeld { job: *job, holds: *holds, reason: reason.clone() }.into()
            }
            Event::JobReleased { job, holds } => JobReleased { job: *job, holds: *holds }.into(),
            Event::JobModified { job, change } => JobModified { job: *job, change: change.clone() }.into(),
            Event::JobEligible { job } => JobEligible { job: *job }.into(),
            Event::JobsWaiting { reasons } => waiting(reasons).into(),
            Event::RunAllocated { job, run, placement } => {
                JobAllocated { job: *job, run: *run, nodes: allocated(placement, names) }.into()
            }
            Event::RunNodeStarted { run, node: id } => {
                RunNodeStarted { job: names.job_of_run(*run), run: *run, node: node(id) }.into()
            }
            Event::RunStarted { job, run, node: id } => JobStarted { job: *job, run: *run, node: node(id) }.into(),
            Event::RunStopping { job, run, reason } => JobStopping { job: *job, run: *run, reason: *reason }.into(),
            Event::RunNodeEnded { run, node: id, exit } => {
                RunNodeEnded { job: names.job_of_run(*run), run: *run, node: node(id), exit: exit.clone() }.into()
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
            Event::JobResumed { job, run } => JobResumed { job: *job, run: *run }.into(),
            Event::JobSignalled { job, run, signal } => JobSignalled { job: *job, run: *run, signal: *signal }.into(),
            Event::StepStarted { job, run, step, tasks, .. } => StepStarted {
                job: *job,
                run: *run,
                step: *step,
                nodes: tasks.iter().map(|part| StepNode { node: node(&part.node), tasks: part.tasks }).collect(),
            }
            .into(),
            Event::StepNodeEnded { run, step, node: id, exit } => StepNodeEnded {
                job: names.job_of_run(*run),
                run: *run,
                step: *step,
                node: node(id),
                exit: exit.clone(),
            }
            .into(),
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
            Event::RangeArchived { first, last, last_hash, file } => {
                LogArchived { first: *first, last: *last, last_hash: hex(last_hash), file: file.clone() }.into()
            }
        }
    }

    /// The id or name of what it happened to.
    pub fn subject(&self, cluster: &str) -> String {
        let run_subject = |job: &Option<JobId>, run: &RunId| match job {
            Some(job) => job.to_string(),
            None => format!("run-{run}"),
        };
        match self {
            Self::ClusterInitialised(_)
            | Self::ClusterSettingsChanged(_)
            | Self::ClusterRunNumbersRaised(_)
            | Self::PlanWaiting(_)
            | Self::PlanMade(_)
            | Self::LogCheckpoint(_)
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
            Self::JobEligible(data) => data.job.to_string(),
            Self::JobAllocated(data) => data.job.to_string(),
            Self::RunNodeStarted(data) => run_subject(&data.job, &data.run),
            Self::JobStarted(data) => data.job.to_string(),
            Self::JobStopping(data) => data.job.to_string(),
            Self::RunNodeEnded(data) => run_subject(&data.job, &data.run),
            Self::RunEnded(data) => data.job.to_string(),
            Self::JobRequeued(data) => data.job.to_string(),
            Self::JobFinished(data) => data.job.to_string(),
            Self::JobSuspended(data) => data.job.to_string(),
            Self::JobResumed(data) => data.job.to_string(),
            Self::JobSignalled(data) => data.job.to_string(),
            Self::StepStarted(data) => data.job.to_string(),
            Self::StepNodeEnded(data) => run_subject(&data.job, &data.run),
            Self::StepEnded(data) => data.job.to_string(),
            Self::JobNotified(data) => data.job.to_string(),
            Self::JobStartRefused(data) => data.job.to_string(),
            Self::JobTasksFinished(data) => data.job.to_string(),
        }
    }
}

/// The name of a node, or its number behind a `#` if it has been removed.
pub fn node_name(names: &dyn Names, node: NodeId) -> Cow<'_, str> {
    names.node_name(node).map_or_else(|| Cow::Owned(format!("#{node}")), Cow::Borrowed)
}

fn submitted(job: JobId, owner: &str, spec: &JobSpec) -> JobSubmitted {
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
    }
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
