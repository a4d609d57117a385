//! Rules for jobs with several components in the log: a submission is one record; an attempt gives all components their
//! resources in one record, or none of them; no attempt counts as started before every component with a program has
//! started; a component that ended alone has no more events in that attempt; and when the job ends, all of it ends.

use muster_domain::State;
use muster_schemas::{
    JobId, NodeId, PartId, RunId,
    event::{Event, NodeExit},
    job::{JobSpec, Program},
    resources::Placement,
};
use std::collections::{BTreeMap, BTreeSet};

/// The jobs with several components in a log.
#[derive(Debug, Default)]
pub(super) struct Components {
    /// For each job, whether its components have a program.
    jobs: BTreeMap<JobId, Vec<bool>>,
    /// Their unfinished attempts.
    attempts: BTreeMap<RunId, Attempt>,
    /// Finished runs.
    over: BTreeSet<RunId>,
    /// The lowest number that the next job may have.
    next: u64,
    /// Whether tasks of arrays have numbers of their own.
    are_tasks_numbered: bool,
    /// The number of started attempts.
    pub(super) started: u64,
    /// The number of attempts whose components shared a node when they got resources.
    pub(super) shared: u64,
    /// The number of components that ended alone.
    pub(super) ended_alone: u64,
    /// The number of times that such a job was requeued.
    pub(super) requeued: u64,
}

#[derive(Debug)]
struct Attempt {
    job: JobId,
    parts: BTreeMap<(NodeId, u32), Part>,
    has_started: bool,
    /// Whether its nodes are not awake yet, so that nothing of it was launched.
    awaits_power: bool,
    /// Components that are being ended alone.
    stopping: BTreeSet<u32>,
    /// Components that have ended alone.
    over: BTreeSet<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Part {
    has_started: bool,
    has_ended: bool,
}

impl Attempt {
    fn new(job: JobId, placement: &Placement) -> Self {
        let parts = placement.shares_by_component();
        let parts = parts.map(|(component, share)| ((share.node, component), Part::default())).collect();
        Self { job, parts, has_started: false, awaits_power: false, stopping: BTreeSet::new(), over: BTreeSet::new() }
    }

    /// The part that an event is about.
    fn lasting(&mut self, node: NodeId, component: u32) -> Result<&mut Part, String> {
        let job = self.job;
        if self.over.contains(&component) {
            return Err(format!("component {component} of job {job} is heard of after it ended alone"));
        }
        let part = self.parts.get_mut(&(node, component));
        part.ok_or_else(|| format!("job {job} has no part on node {node} for component {component}"))
    }

    fn is_shared(&self, node: NodeId) -> bool {
        let components = self.parts.range((node, 0)..=(node, u32::MAX)).map(|((_, component), _)| component);
        components.filter(|component| !self.over.contains(component)).count() > 1
    }
}

impl Components {
    /// Takes an event, with the state before it.
    pub(super) fn see(&mut self, event: &Event, state: &State) -> Result<(), String> {
        match event {
            Event::JobNumbersSet { first } => {
                self.next = self.next.max(*first);
                self.are_tasks_numbered = true;
                Ok(())
            }
            Event::JobSubmitted { job, spec, .. } => self.submitted(*job, spec),
            Event::JobConfigured { job, spec, .. } => {
                self.know(*job, spec);
                Ok(())
            }
            Event::JobValidated { job, validated } => {
                self.know(*job, &validated.spec);
                Ok(())
            }
            Event::RunAllocated { job, run, placement } => self.allocated(*job, *run, placement, state),
            Event::RunAwake { run, .. } => {
                self.attempt(*run)?.into_iter().for_each(|attempt| attempt.awaits_power = false);
                Ok(())
            }
            Event::RunPartStarted { run, node, component, .. } => self.part_started(*run, *node, *component),
            Event::RunStarted { run, node, component, .. } => {
                self.part_started(*run, *node, *component)?;
                self.run_started(*run)
            }
            Event::RunPartEnded { run, node, component, exit, .. } => self.part_ended(*run, *node, *component, exit),
            Event::ComponentStopping { run, component, .. } => self.stopping(*run, *component),
            Event::ComponentEnded { run, component, .. } => self.component_ended(*run, *component),
            Event::RunEnded { run, last, .. } => {
                if let Some(last) = last {
                    self.part_ended(*run, last.node, last.component, &last.exit)?;
                }
                self.run_ended(*run, last.is_some())
            }
            Event::JobRequeued { job, .. } => {
                self.requeued += u64::from(self.jobs.contains_key(job));
                self.has_no_attempt(*job, "is back in the queue")
            }
            Event::JobFinished { job, .. } => self.has_no_attempt(*job, "is over"),
            _ => Ok(()),
        }
    }

    /// Whether a part on a node belongs to a component that ended alone.
    pub(super) fn is_over(&self, part: PartId, node: NodeId) -> bool {
        self.attempts.get(&part.run()).is_some_and(|attempt| {
            let of_node = attempt.parts.range((node, 0)..=(node, u32::MAX)).map(|((_, component), _)| *component);
            let mut meant = of_node.filter(|component| part.component() == 0 || part.component() == *component);
            meant.next().is_some_and(|component| attempt.over.contains(&component))
        })
    }

    fn submitted(&mut self, job: JobId, spec: &JobSpec) -> Result<(), String> {
        if job.number < self.next {
            return Err(format!("job {job} has a number that was taken: the next is {}", self.next));
        }
        let tasks = spec.array.as_ref().filter(|_| self.are_tasks_numbered).map_or(1, |array| array.indices.len());
        self.next = job.number + tasks.max(spec.components.len() as u64);
        self.know(job, spec);
        Ok(())
    }

    fn know(&mut self, job: JobId, spec: &JobSpec) {
        if spec.components.len() > 1 {
            let works = spec.components.iter().map(|component| component.launch.program != Program::None);
            self.jobs.insert(job, works.collect());
        }
    }

    fn allocated(&mut self, job: JobId, run: RunId, placement: &Placement, state: &State) -> Result<(), String> {
        let Some(components) = self.jobs.get(&job) else { return Ok(()) };
        self.has_no_attempt(job, "gets resources")?;
        let awaits_power = placement.shares().any(|share| state.power_of(share.node).is_some());
        let attempt = Attempt { awaits_power, ..Attempt::new(job, placement) };
        let served: BTreeSet<u32> = attempt.parts.keys().map(|(_, component)| *component).collect();
        if served.len() != components.len() || attempt.parts.len() != placement.shares().count() {
            return Err(format!("job {job} of {} components gets resources for {served:?}", components.len()));
        }
        self.shared += u64::from(attempt.parts.keys().any(|(node, _)| attempt.is_shared(*node)));
        self.attempts.insert(run, attempt);
        Ok(())
    }

    fn part_started(&mut self, run: RunId, node: NodeId, component: u32) -> Result<(), String> {
        if let Some(attempt) = self.attempt(run)? {
            attempt.lasting(node, component)?.has_started = true;
        }
        Ok(())
    }

    fn run_started(&mut self, run: RunId) -> Result<(), String> {
        let Some(attempt) = self.attempt(run)? else { return Ok(()) };
        attempt.has_started = true;
        let begun: BTreeSet<u32> =
            attempt.parts.iter().filter(|(_, part)| part.has_started).map(|((_, component), _)| *component).collect();
        let job = attempt.job;
        let works = self.jobs.get(&job).map_or(&[][..], Vec::as_slice);
        let missing = (0..).zip(works).find(|(component, works)| **works && !begun.contains(component));
        self.started += 1;
        missing.map_or(Ok(()), |(component, _)| Err(format!("job {job} runs, and its component {component} does not")))
    }

    fn part_ended(&mut self, run: RunId, node: NodeId, component: u32, exit: &NodeExit) -> Result<(), String> {
        let Some(attempt) = self.attempt(run)? else { return Ok(()) };
        let job = attempt.job;
        let part = attempt.lasting(node, component)?;
        part.has_started |= exit.started.is_some();
        match std::mem::replace(&mut part.has_ended, true) {
            true => Err(format!("the part of job {job} on node {node} ends twice")),
            false => Ok(()),
        }
    }

    fn stopping(&mut self, run: RunId, component: u32) -> Result<(), String> {
        let Some(attempt) = self.attempt(run)? else { return Err(format!("a component of run {run} is ended alone")) };
        let job = attempt.job;
        if component == 0 || !attempt.has_started || attempt.over.contains(&component) {
            return Err(format!("component {component} of job {job} cannot be ended alone now"));
        }
        attempt.stopping.insert(component);
        Ok(())
    }

    fn component_ended(&mut self, run: RunId, component: u32) -> Result<(), String> {
        let Some(attempt) = self.attempt(run)? else { return Err(format!("a component of run {run} ended alone")) };
        let has_ended = attempt.parts.iter().filter(|((_, of), _)| *of == component).all(|(_, part)| part.has_ended);
        if !has_ended || !attempt.stopping.contains(&component) || !attempt.over.insert(component) {
            return Err(format!("component {component} of job {} is said to have ended alone", attempt.job));
        }
        self.ended_alone += 1;
        Ok(())
    }

    /// The last node's report is in the same record, unless that node was lost.
    fn run_ended(&mut self, run: RunId, is_last_told: bool) -> Result<(), String> {
        let Some(attempt) = self.attempts.remove(&run) else { return Ok(()) };
        self.over.insert(run);
        if attempt.awaits_power && attempt.parts.values().all(|part| !part.has_started) {
            return Ok(());
        }
        let mut unended = attempt.parts.iter().filter(|(_, part)| !part.has_ended).map(|((node, _), _)| node);
        match unended.nth(usize::from(!is_last_told)) {
            Some(node) => Err(format!("a run of job {} is over, and its part on node {node} is not", attempt.job)),
            None => Ok(()),
        }
    }

    fn has_no_attempt(&self, job: JobId, what: &str) -> Result<(), String> {
        match self.attempts.iter().find(|(_, attempt)| attempt.job == job) {
            Some((run, _)) => Err(format!("job {job} {what}, and its run {run} is not over")),
            None => Ok(()),
        }
    }

    /// The attempt of a run, if its job has several components.
    fn attempt(&mut self, run: RunId) -> Result<Option<&mut Attempt>, String> {
        match self.over.contains(&run) {
            true => Err(format!("run {run} is heard of after its end")),
            false => Ok(self.attempts.get_mut(&run)),
        }
    }
}
