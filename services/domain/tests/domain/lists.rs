//! Helpers for lists of tasks.

use crate::support::*;
use muster_schemas::{
    JobId, NodeId, PartId, RunId, StepId,
    command::{Command, Reply},
    event::{Actor, EndCause, Event, Intake, NodeExit, ShrinkReason},
    job::{Component, ExitStatus, JobSpec, Launch, Program},
    plan::{ProposedGrowth, ProposedPlan, ProposedShrink},
    resources::{Alternative, Count, IndexSet, Level, LevelCount, NodeShare, Placement, Request},
    scheduling::{SchedulingMode, SchedulingSettings},
    tasks::{SizeUnit, TaskInstance, TaskKind, TaskList, TaskSpec},
};

pub fn task(kind: TaskKind) -> TaskSpec {
    TaskSpec {
        name: String::new(),
        kind,
        min: 1,
        max: 1,
        run_time_seconds: None,
        after: Vec::new(),
        launch: Launch { program: Program::Tasks { argv: vec!["true".into()] }, ..Launch::default() },
        environment: Default::default(),
        working_directory: None,
        valid_exit_codes: Vec::new(),
        rerunnable: true,
    }
}

pub fn basic() -> TaskSpec {
    task(TaskKind::Basic)
}

pub fn behind(places: &[u32]) -> TaskSpec {
    TaskSpec { after: places.to_vec(), ..basic() }
}

pub fn sweep(steps: u32) -> TaskSpec {
    task(TaskKind::Sweep { start: 1, increment: 1, steps })
}

/// Tasks that run on `min` to `max` cores.
pub fn list(min: u32, max: u32, tasks: Vec<TaskSpec>) -> TaskList {
    TaskList { unit: SizeUnit::Core, min, max, tasks, preemptable: true, ..TaskList::default() }
}

pub fn spec_of(list: &TaskList) -> JobSpec {
    let level = match list.unit {
        SizeUnit::Core => Level::Core,
        SizeUnit::Socket => Level::Socket,
        SizeUnit::Node => Level::Node,
    };
    let request = Request {
        path: vec![LevelCount { level, count: Count::Range { min: list.min, max: list.max } }],
        ..Request::default()
    };
    let component = Component {
        alternatives: vec![Alternative { requests: vec![request], ..Alternative::default() }],
        ..Component::default()
    };
    JobSpec { components: vec![component], ..JobSpec::default() }
}

/// A started instance, with its step and its cores on each node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Began {
    pub step: StepId,
    pub instance: TaskInstance,
    pub cores: Vec<(NodeId, u32)>,
}

pub fn begun(events: &[Event]) -> Vec<Began> {
    let of = |event: &Event| match event {
        Event::TaskStarted { step, instance, cores, .. } => Some(Began {
            step: *step,
            instance: *instance,
            cores: cores.iter().map(|part| (part.node, part.tasks)).collect(),
        }),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

/// The positions in the list of the tasks that started.
pub fn tasks_begun(events: &[Event]) -> Vec<u32> {
    begun(events).iter().map(|began| began.instance.task).collect()
}

impl Cluster {
    #[track_caller]
    pub fn submit_list(&mut self, list: &TaskList) -> JobId {
        self.submit_list_as("ada", spec_of(list), list)
    }

    #[track_caller]
    pub fn submit_list_as(&mut self, name: &str, spec: JobSpec, list: &TaskList) -> JobId {
        let intake = Intake { tasks: Some(list.clone()), ..Intake::default() };
        match self.run(&user(name), Command::SubmitDocument { spec: Box::new(spec), intake: Box::new(intake) }) {
            Ok((_, Reply::Submitted(ids))) => ids[0],
            other => panic!("submission: {other:?}"),
        }
    }

    /// Runs the timer until nothing is due. Returns what happened.
    #[track_caller]
    pub fn settle(&mut self) -> Vec<Event> {
        let mut all = Vec::new();
        for _ in 0..100 {
            if self.state.next_timer().is_none_or(|time| time > self.now) {
                return all;
            }
            let events = self.tick();
            assert!(!events.is_empty(), "a tick that is due for nothing");
            all.extend(events);
        }
        panic!("ticks do not come to an end: {:?}", all.last());
    }

    /// A list of tasks that has got its resources, and its tasks as far as they can run. Returns what happened.
    #[track_caller]
    pub fn start_list(&mut self, list: &TaskList, nodes: &[&str], cores: u32) -> (JobId, RunId, Vec<Event>) {
        let job = self.submit_list(list);
        let run = self.start(job, nodes, cores);
        let events = self.settle();
        (job, run, events)
    }

    /// Ends the process of a step, with all consequences.
    #[track_caller]
    pub fn end_step(&mut self, run: RunId, step: StepId, status: ExitStatus) -> Vec<Event> {
        let exit = exit(status, EndCause::Itself, self.now);
        self.end_step_with(run, step, exit)
    }

    #[track_caller]
    pub fn end_step_with(&mut self, run: RunId, step: StepId, exit: NodeExit) -> Vec<Event> {
        let node = self.state.run(run).expect("the run is there").steps[&step].parts[0].node;
        let node = self.state.node_name(node).into_owned();
        let report = Command::NodeStepEnded { part: PartId::new(run, 0), step, exit, statuses: Vec::new() };
        let mut events = self.ok(&executor(&node), report);
        events.extend(self.settle());
        events
    }

    /// Ends all parts of a run that is being stopped.
    #[track_caller]
    pub fn end_parts(&mut self, run: RunId) {
        let parts: Vec<NodeId> = self.state.run(run).map(|run| run.nodes().collect()).unwrap_or_default();
        for node in parts {
            let node = self.state.node_name(node).into_owned();
            let exit =
                NodeExit { status: None, started: None, ..exit(ExitStatus::Code(0), EndCause::Itself, self.now) };
            self.ok(&executor(&node), Command::NodeEnded { part: PartId::new(run, 0), exit });
        }
        assert!(self.state.run(run).is_none(), "the run is over");
    }

    pub fn in_queued_mode(&mut self, settings: SchedulingSettings) {
        let settings = SchedulingSettings { mode: Some(SchedulingMode::Queued), ..settings };
        self.ok(&root(), Command::SetParameters { filters: None, scheduling: Some(Box::new(settings)) });
    }

    /// The effect of a growth planned by the planner, or why it is refused.
    pub fn grow(&mut self, job: JobId, added: Placement) -> Result<Vec<Event>, String> {
        let elastic = self.state.elastic(job).unwrap_or_default();
        let count = added.shares().map(|share| share.cores.len()).sum();
        let growth = ProposedGrowth { job, added, count, current: elastic.current.into() };
        self.plan(ProposedPlan { growths: vec![growth], ..ProposedPlan::default() })
    }

    pub fn shrink(&mut self, job: JobId, removed: Placement, reason: ShrinkReason) -> Result<Vec<Event>, String> {
        self.plan(ProposedPlan { shrinks: vec![ProposedShrink { job, removed, reason }], ..ProposedPlan::default() })
    }

    #[track_caller]
    fn plan(&mut self, plan: ProposedPlan) -> Result<Vec<Event>, String> {
        match self.run(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) }) {
            Ok((mut events, Reply::Planned(refused))) => match refused.into_iter().next() {
                Some(refused) => Err(refused.reason),
                None => {
                    events.retain(|event| !matches!(event, Event::Planned { .. }));
                    events.extend(self.settle());
                    Ok(events)
                }
            },
            other => panic!("plan: {other:?}"),
        }
    }

    /// These cores of a run's node.
    pub fn part_of(&self, node: &str, cores: &[u32]) -> Placement {
        let mut set = IndexSet::new();
        cores.iter().for_each(|core| {
            set.insert(*core);
        });
        let mut placement = self.placement(&[node], 1);
        let share: &mut NodeShare = &mut placement.components[0].shares[0];
        share.cores = set;
        placement
    }
}
