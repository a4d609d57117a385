//! The progress of staging for jobs, and the persistent buffers that exist.

use muster_schemas::{JobId, Timestamp, filter::StagingSettings};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// The state of staging, except the progress of each job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Staging {
    /// The staging program and its limits.
    pub(crate) settings: Arc<StagingSettings>,
    /// Persistent buffers, by name.
    pub(crate) buffers: BTreeMap<String, Buffer>,
}

/// A persistent buffer (SL-B-02).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// The login name of the owner of the job that created it.
    pub owner: String,
    /// The job that created it.
    pub job: JobId,
    /// When it was created.
    pub created: Timestamp,
}

/// The progress of a job's staging.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobStaging {
    /// Its stage.
    pub stage: Stage,
    /// Whether the program was ever called to stage in, so that it is called to stage out at the end.
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
    /// Staging in failed for this reason. It is tried again when the job is released.
    Failed(String),
    /// Everything is staged in.
    In,
    /// It is being staged out.
    Leaving,
    /// Everything is staged out, as far as possible.
    Out,
}
