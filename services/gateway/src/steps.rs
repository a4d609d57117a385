//! Steps: their facts in the log and the state, and the streams of their tasks.

pub(crate) mod streams;

use muster_domain::{State, runs::Run, steps::Step};
use muster_schemas::{
    JobId, RunId, StepId, Timestamp,
    event::{Event, NodeExit, Record},
    job::Usage,
    resources::IndexSet,
    steps::{StepSpec, TaskStatus},
    views::{StepDetail, StepNodeDetail},
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// The steps of a job that runs or is over, from its records, in their order.
pub(crate) fn in_records(job: JobId, history: &[Record], state: &State) -> Vec<StepDetail> {
    let mut steps: BTreeMap<(RunId, StepId), StepDetail> = BTreeMap::new();
    for record in history {
        take(&mut steps, job, record, state);
    }
    steps.into_values().collect()
}

/// Takes in what a record says of a step; whether records of its kind do.
fn take(steps: &mut BTreeMap<(RunId, StepId), StepDetail>, job: JobId, record: &Record, state: &State) -> bool {
    match &record.event {
        Event::StepLaunched { job: of, .. } if *of != job => {}
        Event::StepLaunched { run, step, spec, shares, .. } => {
            let nodes = shares.iter().zip(spec.places()).map(|(share, (_, place))| StepNodeDetail {
                node: state.node_name(share.node).into_owned(),
                component: share.component,
                tasks: share.tasks,
                ranks: place.ranks.clone(),
                cores: share.cores.clone(),
                bound: share.bound.clone(),
                gpus: share.gpus.clone(),
                exit: None,
            });
            let detail = StepDetail {
                name: spec.name.clone(),
                overlaps: spec.overlaps,
                walltime_seconds: spec.walltime_seconds,
                attributes: spec.attributes.clone(),
                ..begun((job, *run, *step), record.time, nodes.collect())
            };
            steps.insert((*run, *step), detail);
        }
        Event::StepPartEnded { run, step, node, component, exit, statuses, .. } => {
            if let Some(detail) = steps.get_mut(&(*run, *step)) {
                part_ended(detail, (&state.node_name(*node), *component), exit, statuses);
            }
        }
        Event::StepStopping { run, step, .. } => {
            if let Some(detail) = steps.get_mut(&(*run, *step)) {
                detail.is_stopping = true;
            }
        }
        Event::StepWalltimeSet { run, step, walltime_seconds, .. } => {
            if let Some(detail) = steps.get_mut(&(*run, *step)) {
                detail.walltime_seconds = *walltime_seconds;
            }
        }
        Event::StepEnded { run, step, status, .. } => {
            if let Some(detail) = steps.get_mut(&(*run, *step)) {
                (detail.ended, detail.exit_status) = (Some(record.time), *status);
            }
        }
        // Its remaining steps ended with it.
        Event::RunEnded { run, .. } => {
            for (_, detail) in steps.range_mut((*run, StepId(0))..=(*run, StepId(u32::MAX))) {
                detail.ended.get_or_insert(record.time);
            }
        }
        _ => return false,
    }
    true
}

fn begun((job, run, step): (JobId, RunId, StepId), launched: Timestamp, nodes: Vec<StepNodeDetail>) -> StepDetail {
    StepDetail {
        job,
        run,
        step,
        name: String::new(),
        launched,
        ended: None,
        total_tasks: nodes.iter().fold(0, |sum, node| sum.saturating_add(node.tasks)),
        nodes,
        statuses: Vec::new(),
        exit_status: None,
        usage: Usage::default(),
        is_stopping: false,
        overlaps: false,
        walltime_seconds: None,
        attributes: BTreeMap::new(),
    }
}

/// The end of a part in the log: on which node, and for which component.
fn part_ended(detail: &mut StepDetail, (node, component): (&str, u32), exit: &NodeExit, statuses: &[TaskStatus]) {
    let is_of = |part: &&mut StepNodeDetail| part.node == node && part.component == component;
    if let Some(part) = detail.nodes.iter_mut().find(is_of) {
        part.exit = Some(exit.clone());
    }
    detail.usage = detail.usage.plus(exit.usage);
    for more in statuses {
        match detail.statuses.iter_mut().find(|known| known.status == more.status) {
            Some(known) => known.ranks = known.ranks.union(&more.ranks),
            None => detail.statuses.push(more.clone()),
        }
    }
    detail.statuses.sort_by_key(|group| group.ranks.first());
}

/// The steps of all running jobs, in the order of their jobs.
pub(crate) fn running(state: &State) -> Vec<StepDetail> {
    let of_run = |run| state.steps_of(run).map(move |step| (run, step));
    let all = state.runs().flat_map(|run| of_run(run.id).map(move |(_, (id, step))| (run, id, step)));
    let mut steps: Vec<StepDetail> = all.map(|(run, id, step)| of_state(state, run, id, step)).collect();
    steps.sort_by_key(|step| (step.job, step.run, step.step));
    steps
}

/// A running step, if it was launched and is not a task of a list.
pub(crate) fn running_step(state: &State, run: RunId, step: StepId) -> Option<StepDetail> {
    Some(of_state(state, state.run(run)?, step, state.step(run, step)?))
}

fn of_state(state: &State, run: &Run, id: StepId, launched: &Step) -> StepDetail {
    let exits = run.steps.get(&id).map(|step| &*step.parts).unwrap_or_default();
    let nodes = (0..).zip(&launched.parts).map(|(at, part)| StepNodeDetail {
        node: state.node_name(part.share.node).into_owned(),
        component: part.share.component,
        tasks: part.share.tasks,
        ranks: IndexSet::new(),
        cores: part.share.cores.clone(),
        bound: part.share.bound.clone(),
        gpus: part.share.gpus.clone(),
        exit: exits.get::<usize>(at).and_then(|end| end.exit.clone()),
    });
    StepDetail {
        name: launched.name.to_string(),
        overlaps: launched.overlaps,
        walltime_seconds: launched.walltime_seconds,
        is_stopping: launched.parts.iter().any(|part| part.stopping.is_some()),
        ..begun((run.job, run.id, id), launched.launched, nodes.collect())
    }
}

/// Facts about a step that its streams need.
pub(crate) struct KnownStep {
    pub(crate) job: JobId,
    /// Its owner's login name.
    pub(crate) owner: String,
    pub(crate) spec: Arc<StepSpec>,
}

/// Steps whose streams were requested lately. An entry never changes.
#[derive(Default)]
pub(crate) struct StepBook(Mutex<BTreeMap<(RunId, StepId), Arc<KnownStep>>>);

/// The most steps that are remembered.
const MAX_REMEMBERED: usize = 1_024;

impl StepBook {
    pub(crate) fn get(&self, run: RunId, step: StepId) -> Option<Arc<KnownStep>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&(run, step)).cloned()
    }

    pub(crate) fn remember(&self, run: RunId, step: StepId, known: Arc<KnownStep>) {
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if book.len() >= MAX_REMEMBERED {
            book.clear();
        }
        book.insert((run, step), known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::{event::Concern, testing::assert_handles};

    #[test]
    fn steps_are_told_from_what_the_table_of_events_says() {
        let (mut steps, state) = (BTreeMap::new(), State::default());
        assert_handles(Concern::Steps, |record| take(&mut steps, JobId::job(7), record, &state));
    }
}
