//! The state file of a dry run (PBS-C-16).

use crate::{
    moment::Moment,
    resources::{Resources, Words},
};
use muster_pbs_policy::{findings::escaped, values::Decimal};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::collections::BTreeMap;

/// Maximum size of a state file, in bytes.
pub const MOST_BYTES: usize = 256 << 20;

/// Why a state file is bad.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// It cannot be read.
    #[error("line {line}, column {column}: {message}")]
    Unreadable {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What was expected.
        message: String,
    },
    /// It makes no sense.
    #[error("{place}: {message}")]
    Senseless {
        /// Where, such as `jobs[3].queue`; entries count from 0.
        place: String,
        /// What was expected.
        message: String,
    },
    /// It is too large.
    #[error("the file is larger than {MOST_BYTES} bytes, and is not read")]
    TooLarge,
}

impl StateError {
    pub(crate) fn at(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Senseless { place: place.into(), message: escaped(&message.into()) }
    }
}

/// A state: what is absent is unset, and lists are in the order of the server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StateFile {
    /// The time of the cycle.
    pub now: Moment,
    /// The zone of local times, such as `Europe/Zurich`; UTC if it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tz: Option<String>,
    /// The server.
    #[serde(default)]
    pub server: Attributes,
    /// The queues.
    #[serde(default)]
    pub queues: Vec<QueueState>,
    /// The nodes.
    #[serde(default)]
    pub nodes: Vec<NodeState>,
    /// The jobs.
    #[serde(default)]
    pub jobs: Vec<JobState>,
    /// The usage of users.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub usage: BTreeMap<String, u64>,
    /// When usage was last halved; now if it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_decay: Option<Moment>,
}

/// Names, limits and resources of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Attributes {
    /// Its host. Only programs see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The queue of jobs that name none. Only programs see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_queue: Option<String>,
    /// Maximum number of running jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_running: Option<u64>,
    /// The same for each user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_user_run: Option<u64>,
    /// The same for each group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_group_run: Option<u64>,
    /// What running jobs may have together.
    #[serde(skip_serializing_if = "Resources::is_empty")]
    pub resources_available: Resources,
    /// The same where that is unset.
    #[serde(skip_serializing_if = "Resources::is_empty")]
    pub resources_max: Resources,
    /// The requests of jobs that ask for less.
    #[serde(skip_serializing_if = "Resources::is_empty")]
    pub resources_default: Resources,
}

/// A queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct QueueState {
    /// Its name.
    pub name: String,
    /// `execution` or `route`, or a beginning of either, in any case.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whether its jobs are started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<bool>,
    /// Whether it takes jobs. Only programs see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Its priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// As of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_running: Option<u64>,
    /// As of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_user_run: Option<u64>,
    /// As of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_group_run: Option<u64>,
    /// As of the server.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    pub resources_available: Resources,
    /// As of the server.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    pub resources_max: Resources,
    /// As of the server.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    pub resources_default: Resources,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NodeState {
    /// Its name.
    pub name: String,
    /// Whether it is timeshared.
    #[serde(default)]
    pub ts: bool,
    /// Its state, such as `free`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Its processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ncpus: Option<u32>,
    /// Its memory.
    #[serde(default, deserialize_with = "words", skip_serializing_if = "Option::is_none")]
    pub physmem: Option<String>,
    /// Its architecture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// Its properties.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<String>,
    /// Its load.
    #[serde(default, deserialize_with = "load", serialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub loadave: Option<Decimal>,
    /// The load that is still good.
    #[serde(default, deserialize_with = "load", serialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub ideal_load: Option<Decimal>,
    /// The load that is too much.
    #[serde(default, deserialize_with = "load", serialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub max_load: Option<Decimal>,
}

/// A job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct JobState {
    /// Its id.
    #[serde(deserialize_with = "word")]
    pub id: String,
    /// Its queue.
    pub queue: String,
    /// Its effective user.
    pub user: String,
    /// Its effective group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Its state.
    pub state: State,
    /// When it was queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qtime: Option<Moment>,
    /// When it could run first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etime: Option<Moment>,
    /// Its priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// Whether somebody waits for it at a terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interactive: Option<bool>,
    /// What it asks for.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    pub request: Resources,
    /// What it has used.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    pub used: Resources,
    /// When it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Moment>,
    /// The nodes that it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// Its name. This and what follows only programs see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Who submitted it, as `user@host`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// When it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ctime: Option<Moment>,
    /// Whether it can be run again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rerunnable: Option<bool>,
    /// How far staging is, such as `PRESTAGEIN` (PBS-G-05).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub substate: Option<String>,
    /// Files that are copied before it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stagein: Option<String>,
    /// Files that are copied after its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stageout: Option<String>,
    /// What was last said about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// The state of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum State {
    /// On its way between servers.
    T,
    /// Queued.
    #[default]
    Q,
    /// Held.
    H,
    /// It waits for its time.
    W,
    /// It runs.
    R,
    /// It ends.
    E,
}

impl StateFile {
    /// Reads a file.
    ///
    /// # Errors
    /// If it is too large, no JSON, or not such a state.
    pub fn read(bytes: &[u8]) -> Result<Self, StateError> {
        if bytes.len() > MOST_BYTES {
            return Err(StateError::TooLarge);
        }
        serde_json::from_slice(bytes).map_err(|error| {
            let text = error.to_string();
            // The position is a part of the text, too.
            let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
            StateError::Unreadable { line: error.line(), column: error.column(), message: escaped(message) }
        })
    }
}

fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Words::deserialize(deserializer).map(|Words(text)| text)
}

fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::<Words>::deserialize(deserializer).map(|words| words.map(|Words(text)| text))
}

/// A load; decimals after the sixth are cut.
fn load<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Decimal>, D::Error> {
    let Some(load) = Option::<f64>::deserialize(deserializer)? else { return Ok(None) };
    let decimal = Decimal::parse(&load.to_string());
    decimal.map(Some).ok_or_else(|| D::Error::custom(format!("expected a load from 0, found {load}")))
}

fn number<S: Serializer>(load: &Option<Decimal>, serializer: S) -> Result<S::Ok, S::Error> {
    let load = load.and_then(|load| load.to_string().parse::<f64>().ok());
    load.serialize(serializer)
}
