//! The public form of events: CloudEvents 1.0 in JSON, as integrations get them over the bus and from the gateway.
//!
//! The data of an event has names instead of node numbers, and nothing that is private to a job's owner: no script,
//! arguments, environment, mail address or notification command. Its types are below `public/`, by subject; the table
//! of events says how to build them.

mod allocation;
pub mod cluster;
pub mod config;
mod declare;
pub mod documents;
pub mod filter;
pub mod job;
mod names;
pub mod node;
pub mod plan;
pub mod run;
pub mod step;
mod words;

pub use allocation::AllocatedNode;
pub use declare::EventType;
pub use names::{Names, node_name};

use self::{
    allocation::*, cluster::*, config::*, filter::*, job::*, names::name_of, node::*, plan::*, run::*, step::*,
    words::Because,
};
use crate::{
    event::{Actor, Event, Record, event_table},
    ids::Sequence,
    job::Holds,
    subjects,
    time::Timestamp,
};
use serde::Serialize;
use std::fmt;
use utoipa::ToSchema;

/// The version at the end of every event type. A changed shape gets a new one.
pub const VERSION: &str = "v1";

/// An event ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicEvent {
    /// The bus subject: `muster.events.KIND.VERB.ID`.
    pub bus_subject: String,
    /// The CloudEvent, on one line.
    pub json: String,
}

/// The public form of a record, with its cause (see [`crate::cause`]).
pub fn cloud_event(record: &Record, cause: Option<Sequence>, names: &dyn Names) -> PublicEvent {
    event_with(record, cause, names, None)
}

/// The same for the owner of the job and for operators: the summary has a reason that nobody else may see.
pub fn cloud_event_for_owner(record: &Record, cause: Option<Sequence>, names: &dyn Names) -> PublicEvent {
    event_with(record, cause, names, private_reason(record))
}

/// A reason that can name files of the owner of a job.
fn private_reason(record: &Record) -> Option<&str> {
    match &record.event {
        Event::CopyingFailed { reason, .. } => Some(reason),
        Event::FilterChainFailed { kind, message, .. } if kind.is_staging() => Some(message),
        Event::FilterVerdict { call, report } if call.kind.is_staging() => report.message.as_deref(),
        Event::JobWarned { warning, .. } if is_of_staging(warning) => Some(&warning.text),
        Event::JobHeld { .. } => hold_in_two(record).map(|(_, why)| why),
        _ => None,
    }
}

/// The reason for which the system holds a job whose files did not come: the fact, which everybody may see, and the rest,
/// which can name files. `None` for other holds.
fn hold_in_two(record: &Record) -> Option<(&str, &str)> {
    let Event::JobHeld { reason, .. } = &record.event else { return None };
    if matches!(*record.actor, Actor::User(_)) {
        return None;
    }
    let (fact, why) = reason.split_once(": ")?;
    (fact == "staging in failed" || fact.starts_with("its files could not be copied ")).then_some((fact, why))
}

/// The data of a record that everybody may see.
fn data_of(record: &Record, names: &dyn Names) -> EventData {
    let mut data = EventData::of(&record.event, names);
    if let (EventData::Job(JobData::JobHeld(held)), Some((fact, _))) = (&mut data, hold_in_two(record)) {
        fact.clone_into(&mut held.reason);
    }
    data
}

fn event_with(record: &Record, cause: Option<Sequence>, names: &dyn Names, reason: Option<&str>) -> PublicEvent {
    let cluster = names.cluster_name(record.sequence);
    let (kind, verb) = record.event.kind_verb();
    let data = data_of(record, names);
    let subject = data.subject(cluster);
    let envelope = CloudEvent {
        specversion: "1.0",
        id: record.sequence.to_string(),
        source: format!("/muster/{}/{}", subjects::token(cluster), names.log_id(record.sequence)),
        r#type: type_name(kind, verb),
        subject: &subject,
        time: record.time,
        datacontenttype: "application/json",
        traceparent: record.trace.to_traceparent(),
        actor: actor_text(&record.actor),
        causedby: cause.map(|cause| cause.to_string()),
        summary: format!("{data}{}", Because(reason.unwrap_or_default())),
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
    data_of(record, names).to_string()
}

/// The CloudEvents envelope.
#[derive(Serialize, ToSchema)]
struct CloudEvent<'a> {
    /// The version of the CloudEvents specification.
    specversion: &'static str,
    /// The sequence of the record in the log. Together with `source` it identifies the event.
    id: String,
    /// The log: `/muster/CLUSTER/ID`, with the name of its cluster and its unique id, which is another one after the log
    /// was restored from a backup.
    source: String,
    /// The event: `muster.KIND.VERB.VERSION`.
    r#type: String,
    /// The subject: the id of the job or the name of the node, queue, licence or cluster.
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
    /// The `id` of the event that caused this one; left out if there is none (HPC-E-01).
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

/// All kinds of public events, in order of their names.
pub fn catalogue() -> Vec<EventType> {
    let mut all: Vec<EventType> = [
        ClusterData::catalogue(),
        NodeData::catalogue(),
        JobData::catalogue(),
        RunData::catalogue(),
        StepData::catalogue(),
        FilterData::catalogue(),
        PlanData::catalogue(),
        ConfigData::catalogue(),
    ]
    .into_iter()
    .flatten()
    .collect();
    all.sort_by_key(|event| (event.kind, event.verb));
    all
}

/// The data of a public event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum EventData {
    /// The cluster, its queues and licences, and its log.
    Cluster(ClusterData),
    /// Nodes.
    Node(NodeData),
    /// Jobs, except for their runs.
    Job(JobData),
    /// Runs: the times in which jobs have resources.
    Run(RunData),
    /// Steps and tasks inside runs.
    Step(StepData),
    /// Filters and their chains.
    Filter(FilterData),
    /// Plans and their basis: policies, reservations, resources set aside.
    Plan(PlanData),
    /// Settings that administrators change, accounts, and refused commands.
    Config(ConfigData),
}

/// Generates the public data of the events in the table.
macro_rules! public_forms {
    ([$names:ident] $(
        $(#[$doc:meta])*
        $name:ident { $( $(#[$field_doc:meta])* $field:ident: $type:ty, )* }
        is $kind:literal $verb:expr, of [$($of:ident),*], plan $plan:ident, replay $replay:ident,
        concerns [$($concern:ident),*],
        public $subject:ident($data:expr);
    )*) => {
        impl EventData {
            /// The data of an event, with names for its numbers.
            #[expect(unused_variables, reason = "public data has not all that an event has")]
            pub fn of(event: &Event, $names: &dyn Names) -> Self {
                match event { $( Event::$name { $($field),* } => Self::$subject($data.into()), )* }
            }
        }
    };
}

event_table!(public_forms);

impl EventData {
    /// The id or name of its subject.
    pub fn subject(&self, cluster: &str) -> String {
        match self {
            Self::Cluster(data) => data.subject(cluster),
            Self::Node(data) => data.subject(cluster),
            Self::Job(data) => data.subject(cluster),
            Self::Run(data) => data.subject(cluster),
            Self::Step(data) => data.subject(cluster),
            Self::Filter(data) => data.subject(cluster),
            Self::Plan(data) => data.subject(cluster),
            Self::Config(data) => data.subject(cluster),
        }
    }
}

impl fmt::Display for EventData {
    /// One sentence for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(data) => data.fmt(f),
            Self::Node(data) => data.fmt(f),
            Self::Job(data) => data.fmt(f),
            Self::Run(data) => data.fmt(f),
            Self::Step(data) => data.fmt(f),
            Self::Filter(data) => data.fmt(f),
            Self::Plan(data) => data.fmt(f),
            Self::Config(data) => data.fmt(f),
        }
    }
}
