//! The state file of a dry run (PBS-C-16).

use crate::{
    moment::Moment,
    resources::{Resources, Words},
};
use muster_pbs_policy::{findings::escaped, preset::Preset, values::Decimal};
use muster_schemas::resources::IndexSet;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::collections::BTreeMap;

/// Maximum size of a state file, in bytes.
pub const MOST_BYTES: usize = 256 << 20;
/// The highest load of a node.
const MOST_LOAD: f64 = 1e9;

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
    /// When usage was last halved, or reduced by a preset; now if it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_decay: Option<Moment>,
    /// Presets: the allocations of groups by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocations: BTreeMap<String, Allocation>,
    /// Presets: what the program for outages has printed, by the name that it was asked for; `null` if it has failed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outages: BTreeMap<String, Option<String>>,
    /// Presets: the reservations that earlier cycles made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<Reserved>,
    /// Presets: whether this is the first cycle of the scheduler.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first_cycle: bool,
}

/// The allocation of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allocation {
    /// What the group may use.
    pub allocated: u64,
    /// What it has used.
    pub used: u64,
}

/// A reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reserved {
    /// The id of the job.
    #[serde(deserialize_with = "word")]
    pub job: String,
    /// The queue in which it starts.
    pub queue: String,
    /// When it starts at the latest.
    pub start: Moment,
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
    /// The policy of the server: `fifo` or a preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler_policy: Option<String>,
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
    /// Presets: since when no job has run in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_since: Option<Moment>,
    /// Presets: until when the rules of prime time are lifted for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prime_lifted_until: Option<Moment>,
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
    /// Presets: its nodes, which then have numbers from 0; for jobs of `sgi_origin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_count: Option<u32>,
    /// Presets: the percentage of time that its system takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub systime: Option<u32>,
    /// Presets: its processors that are idle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_cpus: Option<u32>,
    /// What its monitor says to further queries. Only programs ask.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<String, String>,
}

/// A load in millionths as the state of a node has it.
pub const fn load_of(millionths: u64) -> Decimal {
    Decimal::from_millionths(millionths)
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
    /// Presets: the queue from which it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
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
    /// Presets: the numbers of the nodes of its host that it has, such as `0-3,8`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodemask: Option<IndexSet>,
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
    /// A state at a time in which there is nothing.
    pub fn at(now: Moment) -> Self {
        Self {
            now,
            tz: None,
            server: Attributes::default(),
            queues: Vec::new(),
            nodes: Vec::new(),
            jobs: Vec::new(),
            usage: BTreeMap::new(),
            last_decay: None,
            allocations: BTreeMap::new(),
            outages: BTreeMap::new(),
            reservations: Vec::new(),
            first_cycle: false,
        }
    }

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

impl StateFile {
    /// The preset that the server names; `None` for fifo.
    ///
    /// # Errors
    /// If it names another policy.
    pub fn preset(&self) -> Result<Option<Preset>, StateError> {
        match self.server.scheduler_policy.as_deref() {
            None => Ok(None),
            Some(name) if name.eq_ignore_ascii_case("fifo") => Ok(None),
            Some(name) => Preset::parse(name).map(Some).ok_or_else(|| {
                let message = format!("expected fifo, sgi_origin, cray_t3e, ibm_sp or multitask, found {name}");
                StateError::at("server.scheduler_policy", message)
            }),
        }
    }
}

fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Words::deserialize(deserializer).map(|Words(text)| text)
}

fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::<Words>::deserialize(deserializer).map(|words| words.map(|Words(text)| text))
}

/// A load in millionths: what is beyond them does not matter.
fn load<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Decimal>, D::Error> {
    let Some(load) = Option::<f64>::deserialize(deserializer)? else { return Ok(None) };
    let is_load = (0.0..=MOST_LOAD).contains(&load);
    let expected = format!("a load from 0 to {MOST_LOAD}");
    if !is_load {
        return Err(de::Error::invalid_value(de::Unexpected::Float(load), &expected.as_str()));
    }
    Ok(Some(Decimal::from_millionths((load * 1e6).round() as u64)))
}

fn number<S: Serializer>(load: &Option<Decimal>, serializer: S) -> Result<S::Ok, S::Error> {
    let load = load.and_then(|load| load.to_string().parse::<f64>().ok());
    load.serialize(serializer)
}
