//! Outstanding calls of filters: everything that a runner needs for a call, except what only the log has.
//!
//! Calls can be offered twice. A runner makes only calls that it could claim, so repeating them is harmless.

use crate::{
    filters::{Chain, JobFilters, OutstandingCall, chain},
    jobs::Job,
    state::State,
};
use muster_schemas::{
    JobId, Sequence, Timestamp,
    event::{Event, Owner, Record},
    filter::{CallId, FilterAction, FilterKind, TemplateSpec},
    filter_order::{ComponentPart, FilterWork},
    job::JobState,
    resources::Alternative,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// An outstanding call, except what only the log has: the records that the sequences name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSeed {
    /// The call.
    pub call: CallId,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The owner of the job.
    pub owner: Arc<Owner>,
    /// When the job was submitted.
    pub submitted: Timestamp,
    /// The state shown to filters: queued, or running if the job would grow (HPC-F-38).
    pub state: JobState,
    /// Whether submission filters or the check after them judge it.
    pub is_entering: bool,
    /// The record with the specification: the submission, the last change while being configured, or the validation.
    pub spec: Sequence,
    /// The record with its list of tasks, if it has one.
    pub tasks: Option<Sequence>,
    /// The template that it names.
    pub template: Option<String>,
    /// Where the description for the filter is.
    pub document: DocumentSeed,
    /// Its name, as shown to the filters of this chain.
    pub name: String,
    /// Its priority, as shown to the filters of this chain.
    pub priority: i64,
    /// Its walltime in seconds, as shown to the filters of this chain.
    pub walltime_seconds: Option<u64>,
    /// The request of its first component, as shown to the filters of this chain.
    pub alternatives: Arc<[Alternative]>,
    /// The work to do.
    pub work: FilterWork,
    /// The component, and the number of components, if the call is not about the whole job.
    pub component: Option<ComponentPart>,
    /// For the check of a job with several components: the records with the descriptions of single components as
    /// filters left them.
    pub changed: Vec<(u32, Sequence)>,
}

/// Where the description for a filter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentSeed {
    /// As received, in the submission or the last change while the job was being configured.
    Received(Sequence),
    /// As a filter left it, in the record of that verdict.
    Changed(Sequence),
    /// With all defaults, in the record of the validation, if that has one.
    Validated(Sequence),
    /// There is none: it is derived from the specification.
    None,
}

/// The job whose call a record makes outstanding or offers again. The state must include the record and may include
/// later ones.
pub fn offered(state: &State, record: &Record) -> Option<JobId> {
    let id = match &record.event {
        // Most records are of these kinds, which never offer a call.
        Event::JobSubmitted { .. } | Event::RunAllocated { .. } | Event::RunStarted { .. } | Event::RunEnded { .. } => {
            return None;
        }
        event => event.job()?,
    };
    let call = state.job(id)?.filters.as_ref()?.call()?;
    (call.offered == record.sequence).then_some(id)
}

/// The outstanding call of a job.
pub fn call_seed(state: &State, job: JobId) -> Option<CallSeed> {
    let job = state.job(job)?;
    let filters = job.filters.as_deref()?;
    let chain = filters.chain.as_deref()?;
    let call = chain.call.as_ref()?;
    let kind = call.id.kind;
    let grows = chain.spec.offer.as_ref().is_some_and(|offer| offer.growth);
    Some(CallSeed {
        call: call.id,
        attempt: call.attempt,
        owner: job.owner.clone(),
        submitted: job.submitted,
        state: match kind {
            FilterKind::StageOut => JobState::Finished,
            _ if grows => JobState::Running,
            _ => JobState::Queued,
        },
        is_entering: kind == FilterKind::Submission,
        spec: specification(job, filters, kind),
        tasks: job.tasks.as_ref().map(|tasks| tasks.listed),
        template: filters.template.as_deref().map(str::to_owned),
        document: document(filters, chain, call),
        name: chain.told.name.to_string(),
        priority: chain.told.priority,
        walltime_seconds: chain.told.walltime_seconds,
        alternatives: chain.told.alternatives.clone(),
        work: work(state, filters, chain, call),
        component: chain::component(&chain.spec, call.id.position)
            .map(|offset| ComponentPart { offset, count: u32::try_from(job.components.len()).unwrap_or(u32::MAX) }),
        changed: changed_components(job, chain, call),
    })
}

/// For the check of a job with several components: the last change of each.
fn changed_components(job: &Job, chain: &Chain, call: &OutstandingCall) -> Vec<(u32, Sequence)> {
    let is_check = call.id.kind == FilterKind::Submission && call.id.position >= chain.end();
    if !is_check || job.components.len() < 2 {
        return Vec::new();
    }
    let mut last = BTreeMap::new();
    for passed in &chain.passed {
        let component = chain::component(&chain.spec, passed.position);
        last.extend(component.zip(passed.changed));
    }
    last.into_iter().collect()
}

/// A new submission chain judges the job as it was submitted, even if an earlier chain had it validated.
fn specification(job: &Job, filters: &JobFilters, kind: FilterKind) -> Sequence {
    match kind {
        FilterKind::Submission => filters.original.unwrap_or(job.submitted_sequence),
        FilterKind::Activation | FilterKind::StageIn | FilterKind::StageOut => job.submitted_sequence,
    }
}

/// A submission filter gets what the nearest filter before it returned; a revert gets what the filter itself returned
/// (HPC-F-50, HPC-F-53).
fn document(filters: &JobFilters, chain: &Chain, call: &OutstandingCall) -> DocumentSeed {
    match call.id.kind {
        FilterKind::Activation => return filters.validated.map_or(DocumentSeed::None, DocumentSeed::Validated),
        FilterKind::StageIn | FilterKind::StageOut => return DocumentSeed::None,
        FilterKind::Submission => {}
    }
    let component = |position| chain::component(&chain.spec, position);
    let own = component(call.id.position);
    let of_own = chain.passed.iter().rev().filter(|passed| component(passed.position) == own);
    let changed = of_own.into_iter().find_map(|passed| passed.changed);
    let received = || filters.received.map_or(DocumentSeed::None, DocumentSeed::Received);
    changed.map_or_else(received, DocumentSeed::Changed)
}

fn work(state: &State, filters: &JobFilters, chain: &Chain, call: &OutstandingCall) -> FilterWork {
    match chain.spec.filters.get(call.id.position as usize) {
        Some(filter) => FilterWork::Filter {
            filter: filter.spec.clone(),
            limit_seconds: chain.spec.limit_seconds,
            parameters: chain.spec.offer.as_ref().map(|offer| offer.parameters),
        },
        None => FilterWork::Validate {
            templates: named_templates(state, filters, chain),
            default_template: state.default_template().cloned(),
            now: state.time(),
        },
    }
}

/// The existing templates among those that the job named when it was submitted and those that filters named since
/// (HPC-F-18).
fn named_templates(state: &State, filters: &JobFilters, chain: &Chain) -> Vec<Arc<TemplateSpec>> {
    let by_filters = chain.passed.iter().filter_map(|passed| passed.template.as_deref());
    let names: BTreeSet<String> =
        filters.template.as_deref().into_iter().chain(by_filters).map(str::to_lowercase).collect();
    names.iter().filter_map(|name| state.template(name)).cloned().collect()
}

impl CallSeed {
    /// Whether it is the check of a job that no filter judges. It needs no runner, so a site without filters needs
    /// none.
    pub fn is_lone_check(&self) -> bool {
        self.call.position == 0 && matches!(self.work, FilterWork::Validate { .. })
    }
}

impl State {
    /// Outstanding calls that wait for a runner, by job.
    pub fn unclaimed_calls(&self) -> impl Iterator<Item = &OutstandingCall> {
        self.outstanding_calls().filter(|call| call.claimed.is_none())
    }
}

impl OutstandingCall {
    /// A call offered for the first time, by this record.
    pub(crate) fn new(
        chain: &Chain,
        job: JobId,
        position: u32,
        action: FilterAction,
        at: (Sequence, Timestamp),
    ) -> Self {
        let id = CallId { job, kind: chain.spec.kind, chain: chain.spec.number, position, action };
        Self { id, since: at.1, offered: at.0, attempt: 1, claimed: None, absent_on: None }
    }
}
