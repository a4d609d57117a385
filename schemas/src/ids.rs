//! Identifiers. Each has its own type, so that a run cannot be passed where a job is meant.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{fmt, str::FromStr};
use utoipa::ToSchema;

/// A job, or one task of a job array.
///
/// Written `12` for a job (and for a whole array) and `12_3` for the task with index 3 of array 12. In JSON it is that
/// text. Job numbers start at 1, grow and are never used twice; a job with n components takes n consecutive numbers,
/// and the first is the job's.
///
/// ```
/// use muster_schemas::JobId;
///
/// assert_eq!("12".parse(), Ok(JobId::job(12)));
/// assert_eq!("12_3".parse(), Ok(JobId::task(12, 3)));
/// assert_eq!(JobId::task(12, 3).to_string(), "12_3");
/// assert!("12_".parse::<JobId>().is_err() && "0".parse::<JobId>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId {
    /// The number of the job or array.
    pub number: u64,
    /// The index within the array, for a task of an array.
    pub index: Option<u32>,
}

impl JobId {
    /// The id of a plain job, or of a whole array.
    pub const fn job(number: u64) -> Self {
        Self { number, index: None }
    }

    /// The id of one task of an array.
    pub const fn task(number: u64, index: u32) -> Self {
        Self { number, index: Some(index) }
    }

    /// The id of the job or array that this id belongs to.
    pub const fn whole(self) -> Self {
        Self::job(self.number)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            None => write!(f, "{}", self.number),
            Some(index) => write!(f, "{}_{index}", self.number),
        }
    }
}

/// The text is not an id of the expected kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}")]
pub struct IdError {
    /// The given text.
    pub text: String,
    /// The form of an id of this kind.
    pub expected: &'static str,
}

impl FromStr for JobId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let error = || IdError { text: text.chars().take(80).collect(), expected: "a job id such as 12 or 12_3" };
        let (number, index) = match text.split_once('_') {
            None => (text, None),
            Some((number, index)) => (number, Some(decimal::<u32>(index).ok_or_else(error)?)),
        };
        let number = decimal::<u64>(number).filter(|number| *number > 0).ok_or_else(error)?;
        Ok(Self { number, index })
    }
}

/// Decimal digits only: `FromStr` of integers also takes a leading `+`.
fn decimal<T: FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

impl Serialize for JobId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            (self.number, self.index).serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for JobId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
            text.parse().map_err(D::Error::custom)
        } else {
            let (number, index) = Deserialize::deserialize(deserializer)?;
            Ok(Self { number, index })
        }
    }
}

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number_id! {
    /// One attempt to execute a job. Numbers start at 1, grow and are never used twice in a cluster.
    RunId(u64)
}
number_id! {
    /// A step of a run: 0 is what the job itself launches, later ones are started from inside it.
    StepId(u32)
}
number_id! {
    /// A node, numbered in the order in which nodes were added. Numbers are never used twice, not even for a node of
    /// the same name.
    NodeId(u32)
}
number_id! {
    /// The place of a record in the log. The first record has sequence 1; 0 means "before the first".
    Sequence(u64)
}

/// The id of a node's part of a run: the run, and the component on a node that components share (SL-P-07), which has a
/// part for each of them; elsewhere 0.
///
/// Written `12` for the part of run 12, and `12+1` for that of component 1. As a number, it has the component in the
/// upper 16 bits, so that the only part of a run on a node has the number of the run.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PartId(u64);

impl PartId {
    const RUN_BITS: u32 = 48;
    /// All run numbers of a cluster are below this.
    pub const MAX_RUNS: u64 = 1 << Self::RUN_BITS;

    /// The part of a component (a job has fewer than 2^16) of a run (a cluster has fewer than 2^48).
    pub const fn new(run: RunId, component: u32) -> Self {
        Self(run.0 | (component as u64) << Self::RUN_BITS)
    }

    /// The part with this number.
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn to_number(self) -> u64 {
        self.0
    }

    /// The run.
    pub const fn run(self) -> RunId {
        RunId(self.0 & (Self::MAX_RUNS - 1))
    }

    /// The component, from 0; also 0 on a node that components do not share.
    pub const fn component(self) -> u32 {
        (self.0 >> Self::RUN_BITS) as u32
    }
}

impl fmt::Display for PartId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.component() {
            0 => self.run().fmt(f),
            component => write!(f, "{}+{component}", self.run()),
        }
    }
}

impl fmt::Debug for PartId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PartId({self})")
    }
}

impl FromStr for PartId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let error =
            || IdError { text: text.chars().take(80).collect(), expected: "a part of a run such as 12 or 12+1" };
        let (run, component) = text.split_once('+').unwrap_or((text, "0"));
        let run = decimal(run).filter(|run| run >> Self::RUN_BITS == 0).ok_or_else(error)?;
        let component: u16 = decimal(component).ok_or_else(error)?;
        let part = Self::new(RunId(run), u32::from(component));
        if part.to_string() == text { Ok(part) } else { Err(error()) }
    }
}

impl Sequence {
    /// The sequence after this one.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Chosen by the client for each command; a retry with the same id gets the first answer and has no second effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(pub uuid::Uuid);

impl CommandId {
    /// A new id; ids are ordered by time of creation.
    pub fn new_now() -> Self {
        Self(uuid::Uuid::now_v7())
    }

    /// The id for a command that follows from something already named: the same parts give the same id, so that a retry
    /// after a restart is the same command.
    pub fn derived(parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for CommandId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(&self.0)
        } else {
            self.0.as_bytes().serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for CommandId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            uuid::Uuid::deserialize(deserializer).map(Self)
        } else {
            <[u8; 16]>::deserialize(deserializer).map(|bytes| Self(uuid::Uuid::from_bytes(bytes)))
        }
    }
}

/// Schemas of types that are text in JSON.
macro_rules! text_schema {
    ($type:ty, $description:literal) => {
        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .description(Some($description))
                    .into()
            }
        }

        impl utoipa::ToSchema for $type {}
    };
}
pub(crate) use text_schema;

text_schema!(JobId, "a job or array such as 12, or a task of an array such as 12_3");
text_schema!(CommandId, "a UUID");
