//! How far the staging of a job is, and the persistent buffers that exist.

use muster_schemas::{JobId, Timestamp, filter::StagingSettings};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// The part of a state for staging, besides how far each job is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Staging {
    /// The staging program, and how long it may take.
    pub(crate) settings: Arc<StagingSettings>,
    /// Persistent buffers, by name.
    pub(crate) buffers: BTreeMap<String, Buffer>,
}

/// A persistent buffer (SL-B-02).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// Login name of whose job made it.
    pub owner: String,
    /// That job.
    pub job: JobId,
    /// When.
    pub created: Timestamp,
}

/// How far the staging of a job is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobStaging {
    /// Its stage.
    pub stage: Stage,
    /// Whether the program was ever asked to stage something in, so that it is asked to stage out after the end.
    pub has_begun: bool,
}

/// The stage of a job's staging.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// It will be staged in as soon as nothing else keeps the job from starting.
    #[default]
    Wanted,
    /// It is being staged in.
    Coming,
    /// That failed: why. It is tried again when the job is released.
    Failed(String),
    /// All is staged in.
    In,
    /// It is being staged out.
    Leaving,
    /// All is staged out, as far as that was possible.
    Out,
}
