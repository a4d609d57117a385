//! What a program asks of the batch system, and how it is answered.

use serde::{Deserialize, Serialize};

/// An action. The names of variants and fields are those of the protocol of external programs (PBS-X-22).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "t", rename_all = "lowercase", deny_unknown_fields)]
pub enum Action {
    /// Start a job, and answer once it was accepted or refused.
    Run {
        /// The job.
        job: String,
        /// Hosts, joined by `+`; the batch system chooses if there are none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<String>,
    },
    /// Start a job without waiting until it runs.
    AsyRun {
        /// The job.
        job: String,
        /// As in `Run`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<String>,
    },
    /// Stop a running job and put it back into its queue.
    Rerun {
        /// The job.
        job: String,
    },
    /// Delete a job.
    Delete {
        /// The job.
        job: String,
        /// Seconds between its warning and its end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delay: Option<u32>,
    },
    /// Hold a job.
    Hold {
        /// The job.
        job: String,
        /// Types of the hold, of `u`, `o` and `s`; `u` if there are none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kinds: Option<String>,
    },
    /// Release a held job.
    Release {
        /// The job.
        job: String,
        /// As in `Hold`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kinds: Option<String>,
    },
    /// Send a signal to a running job.
    Signal {
        /// The job.
        job: String,
        /// The signal's name or number.
        signal: String,
    },
    /// Move a job to another queue.
    Move {
        /// The job.
        job: String,
        /// The queue; the default one if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
    },
    /// Change attributes of a job.
    Alter {
        /// The job.
        job: String,
        /// The changes, all or none of which are made.
        changes: Vec<Change>,
    },
    /// Say something about a job.
    Comment {
        /// The job.
        job: String,
        /// The comment.
        text: String,
    },
    /// Copy the input files of a job ahead of its start (PBS-G-02).
    StageIn {
        /// The job.
        job: String,
        /// The host on which it will run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<String>,
    },
    /// Change a queue.
    Queue {
        /// The queue.
        queue: String,
        /// The change.
        set: Gate,
    },
    /// Reserve nodes.
    Reserve {
        /// The reservation's number; 0 asks for a new one.
        #[serde(default)]
        number: u32,
        /// What to reserve, such as `nodes=4`.
        resources: Vec<String>,
    },
    /// Give up a reservation.
    Unreserve {
        /// The reservation's number.
        number: u32,
    },
}

/// A change of a job's attribute.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The attribute, such as `Priority` or `Resource_List`.
    pub name: String,
    /// The resource, if the attribute is a list of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The new value.
    pub value: String,
}

/// A change of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Gate {
    /// It takes jobs.
    Enable,
    /// It takes no jobs.
    Disable,
    /// Its jobs may be started.
    Start,
    /// Its jobs stay where they are.
    Stop,
}

impl Action {
    /// The words for `t` in the protocol.
    pub const WORDS: [&str; 14] = [
        "run",
        "asyrun",
        "rerun",
        "delete",
        "hold",
        "release",
        "signal",
        "move",
        "alter",
        "comment",
        "stagein",
        "queue",
        "reserve",
        "unreserve",
    ];

    /// Its word for `t` in the protocol.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Run { .. } => "run",
            Self::AsyRun { .. } => "asyrun",
            Self::Rerun { .. } => "rerun",
            Self::Delete { .. } => "delete",
            Self::Hold { .. } => "hold",
            Self::Release { .. } => "release",
            Self::Signal { .. } => "signal",
            Self::Move { .. } => "move",
            Self::Alter { .. } => "alter",
            Self::Comment { .. } => "comment",
            Self::StageIn { .. } => "stagein",
            Self::Queue { .. } => "queue",
            Self::Reserve { .. } => "reserve",
            Self::Unreserve { .. } => "unreserve",
        }
    }

    /// Whether it starts a job.
    pub const fn is_start(&self) -> bool {
        matches!(self, Self::Run { .. } | Self::AsyRun { .. })
    }

    /// All texts in it.
    pub fn texts(&self) -> Vec<&str> {
        let mut texts: Vec<&str> = self.job().into_iter().collect();
        match self {
            Self::Run { place, .. } | Self::AsyRun { place, .. } | Self::StageIn { place, .. } => {
                texts.extend(place.as_deref());
            }
            Self::Hold { kinds, .. } | Self::Release { kinds, .. } => texts.extend(kinds.as_deref()),
            Self::Signal { signal, .. } => texts.push(signal),
            Self::Move { to, .. } => texts.extend(to.as_deref()),
            Self::Alter { changes, .. } => {
                for Change { name, resource, value } in changes {
                    texts
                        .extend([Some(name), resource.as_ref(), Some(value)].into_iter().flatten().map(String::as_str));
                }
            }
            Self::Comment { text, .. } => texts.push(text),
            Self::Queue { queue, .. } => texts.push(queue),
            Self::Reserve { resources, .. } => texts.extend(resources.iter().map(String::as_str)),
            Self::Rerun { .. } | Self::Delete { .. } | Self::Unreserve { .. } => {}
        }
        texts
    }

    /// The job that it is about.
    pub fn job(&self) -> Option<&str> {
        match self {
            Self::Run { job, .. }
            | Self::AsyRun { job, .. }
            | Self::Rerun { job }
            | Self::Delete { job, .. }
            | Self::Hold { job, .. }
            | Self::Release { job, .. }
            | Self::Signal { job, .. }
            | Self::Move { job, .. }
            | Self::Alter { job, .. }
            | Self::Comment { job, .. }
            | Self::StageIn { job, .. } => Some(job),
            Self::Queue { .. } | Self::Reserve { .. } | Self::Unreserve { .. } => None,
        }
    }
}

/// The answer to an action.
pub type Answer = Result<Accepted, Refusal>;

/// What an accepted action gave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Accepted {
    /// The nodes on which a job was started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// The number of a reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<u32>,
}

/// Why an action was refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, thiserror::Error)]
#[error("{text} ({code:?})")]
pub struct Refusal {
    /// The kind of refusal.
    pub code: Code,
    /// For people.
    pub text: String,
}

impl Refusal {
    /// A refusal.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

/// Kinds of refusals, with PBS's numbers for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// There is no such job.
    UnknownJob,
    /// There is no such queue.
    UnknownQueue,
    /// There is no such node.
    UnknownNode,
    /// There is no such attribute, or it cannot be changed.
    UnknownAttribute,
    /// There is no such resource.
    UnknownResource,
    /// There is no such signal.
    UnknownSignal,
    /// The message makes no sense.
    BadRequest,
    /// A value makes no sense.
    BadValue,
    /// The job is in another state.
    BadState,
    /// The job is marked as not to be run again.
    NotRerunnable,
    /// The queue takes no jobs.
    QueueDisabled,
    /// The resources are not free.
    NoResources,
    /// The batch system does not do this.
    NotSupported,
    /// There is no connection: no cycle runs.
    NoConnection,
    /// The action belongs to another cycle, or to none (PBS-X-23).
    StaleCycle,
    /// The cycle has had all actions or requests that it may have.
    TooMany,
    /// The batch system is to blame.
    Internal,
}

impl Code {
    /// The number that PBS has for it.
    pub const fn number(self) -> u32 {
        match self {
            Self::UnknownJob => 15001,
            Self::UnknownAttribute => 15002,
            Self::BadRequest => 15004,
            Self::TooMany => 15006,
            Self::UnknownNode => 15008,
            Self::Internal => 15011,
            Self::UnknownSignal => 15013,
            Self::BadValue => 15014,
            Self::BadState => 15016,
            Self::UnknownQueue => 15018,
            Self::QueueDisabled => 15021,
            Self::NotSupported => 15029,
            Self::NoConnection => 15034,
            Self::UnknownResource => 15035,
            Self::NotRerunnable => 15038,
            Self::NoResources => 15044,
            Self::StaleCycle => 15020,
        }
    }
}
