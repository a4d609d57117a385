//! Filters, templates and tasks in the API.

use super::node_names;
use muster_domain::{
    State,
    filters::{Chain, Entry, JobFilters},
    jobs::Job,
    tasks::{Task, TaskBook},
};
use muster_schemas::{
    resources::{NodeShare, Placement},
    tasks::{SizeUnit, TaskKind},
    views::{ChainView, ElasticView, EntryWord, FilteringView, InstancesView, RefusalView, TaskView, TemplatesPage},
};

/// How filters, a template or a timed hold affect a job.
pub(super) fn filtering_view(state: &State, job: &Job) -> Option<Box<FilteringView>> {
    let filtering = job.filters.as_deref()?;
    let kept = filtering.kept().filter(|_| job.is_waiting());
    Some(Box::new(FilteringView {
        template: filtering.template.as_deref().map(str::to_owned),
        template_revision: filtering.revision,
        entry: entry(filtering),
        hold_until: filtering.hold.map(|(until, _)| until),
        hold_by: filtering.hold.map(|(_, by)| by),
        is_backfill: filtering.is_backfill,
        message: filtering.message.clone().filter(|_| !is_staged(job)),
        warnings: if is_staged(job) { Vec::new() } else { filtering.warnings.clone() },
        chain: filtering.chain.as_deref().map(chain_view),
        refusal: filtering.refusal.as_ref().map(|refusal| RefusalView {
            at: refusal.at,
            verdict: refusal.verdict,
            filter: refusal.filter.to_string(),
            ask_again: refusal.ask_again,
        }),
        kept_nodes: kept.map(|(_, placement)| node_names(state, placement)).unwrap_or_default(),
    }))
}

/// Whether a staging program was called, whose messages and warnings name files of the owner.
pub(super) fn is_staged(job: &Job) -> bool {
    job.staging.as_ref().is_some_and(|staging| staging.has_begun)
}

fn entry(filtering: &JobFilters) -> EntryWord {
    match filtering.entry {
        Entry::Configuring => EntryWord::Configuring,
        Entry::Filtering => EntryWord::Filtering,
        Entry::Validating => EntryWord::Validating,
        Entry::Entered => EntryWord::Entered,
        Entry::Refused => EntryWord::Refused,
    }
}

fn chain_view(chain: &Chain) -> ChainView {
    let call = chain.call.as_ref();
    ChainView {
        number: chain.spec.number,
        kind: chain.spec.kind,
        filters: chain.spec.filters.iter().map(|filter| filter.spec.name.clone()).collect(),
        position: call.map(|call| call.id.position),
        action: call.map(|call| call.id.action),
        attempt: call.map(|call| call.attempt),
        runner: call.and_then(|call| call.claimed.as_ref()).map(|(runner, _)| runner.to_string()),
        failure: chain.failure,
    }
}

/// The size and the tasks of a job that is a list of them.
pub(super) fn elastic_view(state: &State, job: &Job, placement: Option<&Placement>) -> Option<ElasticView> {
    let book = job.tasks.as_deref()?;
    let sum = |sum: InstancesView, task: InstancesView| InstancesView {
        queued: sum.queued + task.queued,
        running: sum.running + task.running,
        finished: sum.finished + task.finished,
        failed: sum.failed + task.failed,
        cancelled: sum.cancelled + task.cancelled,
    };
    let instances = book.tasks.iter().map(|task| instances(book, job, task));
    Some(ElasticView {
        unit: book.unit,
        min: book.min,
        max: book.max,
        current: placement.map_or(0, |placement| units(state, book.unit, placement)),
        filters_bar_preemption: state.scheduling().grows_by_preemption() && state.has_activation_filters(job),
        instances: instances.fold(InstancesView::default(), sum),
    })
}

/// The number of units in a placement.
fn units(state: &State, unit: SizeUnit, placement: &Placement) -> u32 {
    let of_share = |share: &NodeShare| match unit {
        SizeUnit::Core => share.cores.len(),
        SizeUnit::Node => 1,
        SizeUnit::Socket => {
            let node = state.node(share.node).map(|node| (node.spec.cores, node.spec.sockets));
            let (cores, sockets) = node.unwrap_or((1, 1));
            share.cores.len().div_ceil(u64::from(cores.div_ceil(sockets.max(1)).max(1)))
        }
    };
    let sum = placement.shares().fold(0u64, |sum, share| sum.saturating_add(of_share(share)));
    u32::try_from(sum).unwrap_or(u32::MAX)
}

fn instances(book: &TaskBook, job: &Job, task: &Task) -> InstancesView {
    let (running, finished, failed) = (u64::from(task.running), u64::from(task.finished), task.failed.len());
    let total = match task.kind {
        TaskKind::Basic => 1,
        TaskKind::Sweep { steps, .. } => u64::from(steps),
        TaskKind::NodePrep | TaskKind::NodeRelease | TaskKind::Service => 0,
    };
    let left = total.saturating_sub(running + finished + failed);
    let starts_none = task.is_doomed || book.ending.is_some() || job.is_finished();
    let (queued, cancelled) = if starts_none { (0, left) } else { (left, 0) };
    InstancesView { queued, running, finished, failed, cancelled }
}

/// The tasks of a job, in their order.
pub(crate) fn task_views(job: &Job) -> Vec<TaskView> {
    let Some(book) = job.tasks.as_deref() else { return Vec::new() };
    let view = |(index, task): (u32, &Task)| TaskView {
        task: index,
        kind: task.kind,
        min: task.min,
        max: task.max,
        after: task.after.clone(),
        instances: instances(book, job, task),
    };
    (0..).zip(&book.tasks).map(view).collect()
}

/// All templates.
pub(crate) fn templates_page(state: &State) -> TemplatesPage {
    TemplatesPage {
        templates: state.templates().map(|template| (**template).clone()).collect(),
        sequence: state.sequence(),
        time: state.time(),
    }
}
