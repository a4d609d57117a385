//! Queries about filters, templates and calls.

use crate::{
    filters::{Kept, OutstandingCall, state::DEFAULT_TEMPLATE},
    jobs::Job,
    nodes::Node,
    state::State,
};
use muster_schemas::{
    JobId, NodeId,
    filter::{ActivationOrdering, ChainFilter, FilterKind, FilterSettings, TemplateSpec},
    resources::Placement,
};
use std::sync::Arc;

impl Job {
    /// The resources kept for it after its activation filter reserved them (HPC-F-35).
    pub(crate) fn reserved(&self) -> Option<&Kept> {
        self.filters.as_deref().and_then(|filters| filters.reserved.as_ref())
    }

    /// Whatever is offered to a job, or kept for it later, includes what is already kept for it: that is kept again if
    /// filters refuse, and no other job may have it until then (HPC-F-35).
    pub(crate) fn check_reserved(&self, placement: &Placement) -> Result<(), String> {
        match self.reserved() {
            Some(kept) if !includes(placement, &kept.placement) => {
                Err("the placement does not include what is already kept for it".into())
            }
            _ => Ok(()),
        }
    }
}

/// Whether a placement has everything that another has.
fn includes(more: &Placement, less: &Placement) -> bool {
    less.shares_by_component().all(|(component, share)| {
        let placed = more.components.get(component as usize);
        let same = placed.and_then(|placed| placed.shares.iter().find(|other| other.node == share.node));
        same.is_some_and(|other| {
            other.cores.contains_all(&share.cores)
                && other.gpus.contains_all(&share.gpus)
                && other.memory_bytes >= share.memory_bytes
        })
    })
}

impl State {
    /// The cluster-wide filters, and how filters are called.
    pub fn filter_settings(&self) -> &Arc<FilterSettings> {
        &self.filters.settings
    }

    /// The template with this name; names ignore case.
    pub fn template(&self, name: &str) -> Option<&Arc<TemplateSpec>> {
        self.filters.templates.get(&name.to_lowercase())
    }

    /// The template whose defaults and limits apply where that of a job has none, if it has been created.
    pub fn default_template(&self) -> Option<&Arc<TemplateSpec>> {
        self.template(DEFAULT_TEMPLATE)
    }

    /// All templates, by name.
    pub fn templates(&self) -> impl ExactSizeIterator<Item = &Arc<TemplateSpec>> {
        self.filters.templates.values()
    }

    /// The filters of a kind that judge the jobs of a template, in calling order: those of the template, then the
    /// cluster-wide one (HPC-F-03). A template that does not exist has none (HPC-F-19).
    pub(crate) fn filters(&self, kind: FilterKind, template: Option<&str>) -> Vec<ChainFilter> {
        let of_template = template.and_then(|name| self.template(name)).map_or(&[][..], |found| found.filters(kind));
        let all = of_template.iter().chain(self.filters.settings.cluster_wide(kind));
        let hash = |path: &String| self.filters.program_hashes.get(path).cloned();
        all.map(|spec| ChainFilter { spec: spec.clone(), program_hash: hash(&spec.path), component: None }).collect()
    }

    /// Whether activation filters judge each start and growth of a job: those of its template, or the cluster-wide one
    /// (HPC-F-02).
    pub fn has_activation_filters(&self, job: &Job) -> bool {
        let template = || job.filters.as_ref()?.template.as_deref();
        let of_template = || template().and_then(|name| self.template(name));
        self.filters.settings.activation.is_some()
            || !self.filters.templates.is_empty()
                && of_template().is_some_and(|found| !found.activation_filters.is_empty())
    }

    /// With strict ordering, the highest priority of the jobs with an outstanding verdict: until the verdict, no job of
    /// that priority or below starts (HPC-F-82). `None` if no verdict holds up other jobs.
    pub fn judged_priority(&self) -> Option<i64> {
        let is_strict = self.filters.settings.ordering == ActivationOrdering::Strict;
        self.index.judged.last().map(|(priority, _)| *priority).filter(|_| is_strict)
    }

    /// With strict ordering, a job of this one's priority or above with an outstanding verdict, for which this one
    /// waits (HPC-F-82).
    pub(crate) fn judged_ahead(&self, job: &Job) -> Option<JobId> {
        let priority = self.judged_priority().filter(|judged| job.lead().priority <= *judged)?;
        let (_, first) = self.index.judged.range((priority, JobId::job(0))..).next()?;
        (*first != job.id).then_some(*first)
    }

    /// The number of the next chain.
    pub(crate) fn next_chain(&self) -> u64 {
        self.filters.last_chain + 1
    }

    /// How many planners have started work.
    pub fn planner_epoch(&self) -> u64 {
        self.filters.planner_epoch
    }

    /// The job that keeps all jobs of its priority and below from starting; if there are several, the one with the
    /// highest priority (HPC-F-32).
    pub fn queue_block(&self) -> Option<(JobId, i64)> {
        self.filters
            .blocks
            .iter()
            .max_by_key(|(job, priority)| (**priority, std::cmp::Reverse(**job)))
            .map(|(job, priority)| (*job, *priority))
    }

    /// A job that uses a node, with a run or kept resources.
    pub(crate) fn user_of(&self, node: &Node) -> Option<JobId> {
        let by_run = || node.runs.iter().find_map(|run| self.run(*run)).map(|run| run.job);
        by_run().or_else(|| self.kept_on(node.id).next())
    }

    /// The jobs for which part of a node is kept.
    pub(crate) fn kept_on(&self, node: NodeId) -> impl Iterator<Item = JobId> {
        let has_share = move |job: &&Job| {
            let kept = job.filters.as_ref().and_then(|filters| filters.kept());
            kept.is_some_and(|(_, placement)| placement.shares().any(|share| share.node == node))
        };
        self.index.kept.iter().filter_map(|id| self.job(*id)).filter(has_share).map(|job| job.id)
    }

    /// Outstanding calls, by job.
    pub fn outstanding_calls(&self) -> impl Iterator<Item = &OutstandingCall> {
        let jobs = self.index.calling.iter().filter_map(|id| self.job(*id));
        jobs.filter_map(|job| job.filters.as_ref()?.chain.as_ref()?.call.as_ref())
    }
}
