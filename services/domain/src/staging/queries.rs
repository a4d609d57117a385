//! Staging for jobs before their start and after their end, and the persistent buffers that exist.

use super::{Job, JobExtras, State};
use muster_schemas::{
    JobId, Timestamp,
    filter::{FilterKind, StagingSettings},
    job::ComponentStaging,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

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

impl JobExtras {
    /// The persistent buffers that the job uses and does not make itself.
    pub(crate) fn buffers_used(&self) -> BTreeSet<String> {
        let made: BTreeSet<&String> = self.staging.iter().flat_map(|component| &component.creates).collect();
        let used = self.staging.iter().flat_map(|component| &component.uses);
        used.filter(|name| !made.contains(name)).cloned().collect()
    }
}

impl Job {
    /// The staging of its components, in the order in which it is done: those that make persistent buffers go first.
    pub fn staged_components(&self) -> Vec<&ComponentStaging> {
        let mut components: Vec<&ComponentStaging> = self.extras.iter().flat_map(|extras| &extras.staging).collect();
        components.sort_by_key(|component| (component.creates.is_empty(), component.component));
        components
    }

    /// Whether everything that it needs is staged in, or it needs nothing.
    pub fn is_staged_in(&self) -> bool {
        self.staging.as_ref().is_none_or(|staging| staging.stage == Stage::In)
    }

    /// The staging that is due now, as far as the job is concerned: in if nothing else keeps it from starting, out
    /// when it is over.
    pub(crate) fn staging_due(&self) -> Option<FilterKind> {
        let staging = self.staging.as_deref()?;
        if self.filtering.as_ref().is_some_and(|filtering| filtering.chain.is_some()) {
            return None;
        }
        let is_over = matches!(staging.stage, Stage::Leaving | Stage::Out);
        if self.is_finished() {
            return (staging.has_begun && !is_over).then_some(FilterKind::StageOut);
        }
        let is_wanted = matches!(staging.stage, Stage::Wanted | Stage::Failed(_));
        (is_wanted && self.is_waiting() && self.gates_but_staging_open()).then_some(FilterKind::StageIn)
    }

    /// Whether anything was begun to be staged in for it that has not been staged out.
    pub(crate) fn has_to_be_staged_out(&self) -> bool {
        self.staging.as_ref().is_some_and(|staging| staging.has_begun && staging.stage != Stage::Out)
    }

    /// The persistent buffer that it uses, does not make itself, and that is not among these.
    pub(crate) fn missing_buffer<'a>(&'a self, buffers: &BTreeMap<String, Buffer>) -> Option<&'a str> {
        let staged = self.staged_components();
        let makes = |name: &String| staged.iter().any(|component| component.creates.contains(name));
        let mut used = staged.iter().flat_map(|component| &component.uses);
        used.find(|name| !buffers.contains_key(*name) && !makes(name)).map(String::as_str)
    }
}

impl State {
    /// How the files of jobs are staged.
    pub fn staging_settings(&self) -> &Arc<StagingSettings> {
        &self.staging.settings
    }

    /// Persistent buffers, by name.
    pub fn buffers(&self) -> impl ExactSizeIterator<Item = (&str, &Buffer)> {
        self.staging.buffers.iter().map(|(name, buffer)| (name.as_str(), buffer))
    }

    /// The staging that is due for a job now: as [`Job::staging_due`], if there is a program for it and the buffers
    /// that the job uses are there.
    pub(crate) fn staging_now(&self, job: &Job) -> Option<FilterKind> {
        let due = job.staging_due().filter(|_| self.staging.settings.program.is_some())?;
        (due == FilterKind::StageOut || job.missing_buffer(&self.staging.buffers).is_none()).then_some(due)
    }

    /// Whether any staging is due now.
    pub(crate) fn has_staging_now(&self) -> bool {
        !self.index.staging_ready.is_empty()
    }

    /// Updates whether staging is due for a job now.
    pub(crate) fn refresh_staging(&mut self, id: JobId) {
        if self.job(id).is_some_and(|job| self.staging_now(job).is_some()) {
            self.index.staging_ready.insert(id);
        } else {
            self.index.staging_ready.remove(&id);
        }
    }

    /// A persistent buffer came or went: it counts for those who use it.
    pub(crate) fn buffer_changed(&mut self, name: &str) {
        let users = self.index.buffer_users.get(name).cloned().unwrap_or_default();
        users.into_iter().for_each(|id| self.refresh_staging(id));
    }

    /// The staging program or its limits changed.
    pub(crate) fn set_staging(&mut self, settings: &Arc<StagingSettings>) {
        self.staging.settings = settings.clone();
        self.index.to_stage.clone().into_iter().for_each(|id| self.refresh_staging(id));
    }
}
