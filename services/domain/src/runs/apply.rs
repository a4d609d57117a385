//! Runs, from their allocation to their end.

use crate::{
    jobs::{Phase, RunSummary},
    runs::{Part, PartState, Run},
    sharing::Sharing,
    state::State,
};
use muster_schemas::{
    JobId, NodeId, RunId, Sequence, StepId, Timestamp,
    event::NodeExit,
    job::{JobType, Outcome, Usage},
    resources::{IndexSet, Placement},
};
use std::sync::Arc;

impl State {
    /// Changes a run, if it exists, and updates the index.
    pub(crate) fn change_run(&mut self, id: RunId, change: impl FnOnce(&mut Run)) {
        if let Some(run) = self.runs.get_mut(&id) {
            let before = run.due();
            change(run);
            self.index.move_run(id, before, run.due());
        }
    }

    pub(crate) fn run_allocated(&mut self, id: JobId, run: RunId, placement: &Arc<Placement>, now: Timestamp) {
        self.next_run = self.next_run.max(run.0.saturating_add(1));
        self.run_takes_over(id);
        if !self.jobs.contains_key(&id) {
            self.materialise(id);
        }
        if !self.jobs.contains_key(&id) {
            return;
        }
        self.change_job(id, |job| {
            job.phase = Phase::Active(run);
            job.attempts = job.attempts.saturating_add(1);
            job.planner_reason = None;
            job.forget_plans();
        });
        self.forget_planned_components(id);
        self.forget_comment(id);
        if self.runs.contains_key(&run) {
            self.require(Err(format!("run {run} has its resources already, and is to get them a second time")));
        }
        placement.shares().for_each(|share| self.take_share(id, run, share));
        self.use_licences(id, placement, u32::saturating_add);
        self.count_run(id, true);
        self.reservations_used(id, run, placement, false);
        self.charge_owner(id, now);
        self.note_chosen_by_load(placement);
        let timeout = self.launch_timeout(placement);
        let hands_off = self.job(id).is_some_and(|job| job.types().contains(&JobType::HandsOff));
        let mut run = Run::new(run, id, placement, (now, self.sequence), (timeout, hands_off));
        run.waits_for_files = self.job(id).is_some_and(|job| job.waits_for_files(placement));
        let waits_for_nodes = self.nodes_to_wake(&run).any(|node| !self.is_awake(node));
        run.waits_for_nodes = waits_for_nodes;
        if run.waits_for_nodes {
            self.power.waiting.insert(run.id);
        }
        self.index.move_run(run.id, None, run.due());
        if self.job(id).and_then(Sharing::of).is_some() {
            self.index.sharing.insert(run.id);
        }
        if self.job(id).is_some_and(|job| job.opens_domain().is_some()) {
            self.index.openers.insert(run.id);
        }
        self.runs.insert(run.id, Box::new(run));
        if id.index.is_some() {
            // An array has started once its last task has.
            self.refresh_dependents(id.whole(), now);
        }
    }

    /// Adds the run of a job to the counts of its queues and its array, or removes it.
    pub(crate) fn count_run(&mut self, id: JobId, more: bool) {
        let Some(job) = self.jobs.get(&id) else { return };
        for name in job.queues() {
            if let Some(queue) = self.queues.get_mut(name) {
                if more { queue.run_began(&job.owner.user) } else { queue.run_ended(&job.owner.user) }
            }
        }
        if id.index.is_some() {
            self.change_job(id.whole(), |whole| {
                if let Some(array) = &mut whole.array {
                    array.running = if more { array.running + 1 } else { array.running.saturating_sub(1) };
                }
            });
        }
    }

    pub(crate) fn use_licences(&mut self, id: JobId, placement: &Placement, change: fn(u32, u32) -> u32) {
        let Some(job) = self.jobs.get(&id) else { return };
        for (component, placed) in job.components.iter().zip(&placement.components) {
            let Some(alternative) = component.shape.alternatives.get(placed.alternative as usize) else { continue };
            for (name, count) in &alternative.licences {
                if let Some(licence) = self.licences.get_mut(name) {
                    licence.used = change(licence.used, *count);
                    if licence.total == 0 && licence.used == 0 {
                        self.licences.remove(name);
                    }
                }
            }
        }
    }

    pub(crate) fn part_started(&mut self, run: RunId, node: NodeId, component: u32) {
        let sequence = self.sequence;
        self.change_run(run, |run| set_started(run.part_of_mut(node, component), sequence));
    }

    pub(crate) fn run_started(&mut self, job: JobId, run: RunId, now: Timestamp) {
        self.change_run(run, |run| run.started = Some(now));
        self.refresh_dependents(job, now);
    }

    pub(crate) fn part_ended(&mut self, run: RunId, node: NodeId, component: u32, exit: &NodeExit) {
        self.change_run(run, |run| set_ended(run.part_of_mut(node, component), exit));
    }

    pub(crate) fn job_signalled(&mut self, run: RunId, signal: u8) {
        self.change_run(run, |run| {
            let components = run.parts.iter().map(|part| part.component).collect();
            run.signalled(components, signal);
        });
    }

    /// A signal to a step is one to each component that takes part in it; the script is in the first.
    pub(crate) fn step_signalled(&mut self, run: RunId, step: StepId, component: Option<u32>, signal: u8) {
        self.change_run(run, |run| {
            let of_step = run.steps.get(&step).into_iter().flat_map(|step| step.parts.iter());
            let components = match (component, step) {
                (Some(component), _) => IndexSet::from_range(component, component),
                (None, StepId(0)) => IndexSet::from_range(0, 0),
                (None, _) => of_step.map(|part| part.component).collect(),
            };
            run.signalled(components, signal);
        });
    }

    pub(crate) fn run_ended(&mut self, id: JobId, run: RunId, outcome: &Outcome, usage: Usage, now: Timestamp) {
        self.withdraw_growth(id);
        let Some(run) = self.runs.remove(&run) else { return };
        self.clients.steps.remove(&run.id);
        self.power.waiting.remove(&run.id);
        self.altered.walltimes.remove(&run.id);
        self.index.move_run(run.id, run.due(), None);
        self.index.sharing.remove(&run.id);
        run.placement.shares().for_each(|share| self.give_back_share(run.id, share, run.has_lent()));
        self.index.lent.remove(&run.id);
        self.index.openers.remove(&run.id);
        self.use_licences(id, &run.placement, u32::saturating_sub);
        self.count_run(id, false);
        self.reservations_used(id, run.id, &run.placement, true);
        self.count_fair_use(id, &run, now);
        self.count_spent(id, &run, now);
        self.count_share_use(id, &run, &usage, now);
        self.count_window_use(id, &run, now);
        self.route_run_ended(id, now);
        self.note_freed();
        self.change_job(id, |job| {
            if let Some(tasks) = &mut job.tasks {
                tasks.run_over(outcome);
            }
            job.phase = Phase::Settling;
            job.last_run = Some(Box::new(RunSummary {
                run: run.id,
                placement: run.placement,
                allocated: run.allocated,
                started: run.started,
                ended: now,
                outcome: outcome.clone(),
                usage,
            }));
        });
        self.files_used(id);
        self.refresh_dependents(id, now);
    }
}

fn set_started(part: Option<&mut Part>, sequence: Sequence) {
    if let Some(part) = part
        && part.state == PartState::Launching
    {
        part.state = PartState::Started;
        part.since = sequence;
    }
}

fn set_ended(part: Option<&mut Part>, exit: &NodeExit) {
    if let Some(part) = part {
        part.state = PartState::Ended(Box::new(exit.clone()));
    }
}
