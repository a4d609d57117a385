//! What to stage, and when.

use crate::{
    jobs::{Job, JobExtras},
    staging::{Buffer, Stage},
    state::State,
};
use muster_schemas::{
    filter::{FilterKind, StagingSettings},
    job::ComponentStaging,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

impl JobExtras {
    /// The persistent buffers that the job uses and does not create itself.
    pub(crate) fn buffers_used(&self) -> BTreeSet<String> {
        let made: BTreeSet<&String> = self.staging.iter().flat_map(|component| &component.creates).collect();
        let used = self.staging.iter().flat_map(|component| &component.uses);
        used.filter(|name| !made.contains(name)).cloned().collect()
    }
}

impl Job {
    /// The staging of its components, in the order in which it is done: those that create persistent buffers come
    /// first.
    pub fn staged_components(&self) -> Vec<&ComponentStaging> {
        let mut components: Vec<&ComponentStaging> = self.extras.iter().flat_map(|extras| &extras.staging).collect();
        components.sort_by_key(|component| (component.creates.is_empty(), component.component));
        components
    }

    /// Whether everything that it needs is staged in.
    pub fn is_staged_in(&self) -> bool {
        self.staging.as_ref().is_none_or(|staging| staging.stage == Stage::In)
    }

    /// The staging that the job is ready for: in if nothing else keeps it from starting, out when it is over.
    pub(crate) fn staging_due(&self) -> Option<FilterKind> {
        let staging = self.staging.as_deref()?;
        if self.filters.as_ref().is_some_and(|filters| filters.chain.is_some()) {
            return None;
        }
        let is_over = matches!(staging.stage, Stage::Leaving | Stage::Out);
        if self.is_finished() {
            return (staging.has_begun && !is_over).then_some(FilterKind::StageOut);
        }
        let is_wanted = matches!(staging.stage, Stage::Wanted | Stage::Failed(_));
        (is_wanted && self.is_waiting() && self.gates_but_staging_open()).then_some(FilterKind::StageIn)
    }

    /// Whether staging in was begun and has not been followed by staging out.
    pub(crate) fn has_to_be_staged_out(&self) -> bool {
        self.staging.as_ref().is_some_and(|staging| staging.has_begun && staging.stage != Stage::Out)
    }

    /// A persistent buffer that it uses, does not create itself, and that is not in `buffers`.
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

    /// The staging that is due for a job now: that of [`Job::staging_due`], if there is a program for it and the
    /// buffers that the job uses exist.
    pub(crate) fn staging_now(&self, job: &Job) -> Option<FilterKind> {
        let due = job.staging_due().filter(|_| self.staging.settings.program.is_some())?;
        (due == FilterKind::StageOut || job.missing_buffer(&self.staging.buffers).is_none()).then_some(due)
    }

    /// Whether any staging is due now.
    pub(crate) fn has_staging_now(&self) -> bool {
        !self.index.staging_ready.is_empty()
    }
}
