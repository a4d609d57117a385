//! Properties of lists of tasks, whatever happens: nothing runs without room, finished tasks are not run again, and
//! every list ends.

use crate::{lists::*, support::*};
use muster_schemas::{
    JobId, NodeId, PartId, RunId, StepId,
    command::{Command, JobEnding},
    event::{EndCause, Event, NodeExit, ShrinkReason},
    job::{ExitStatus, Outcome},
    scheduling::SchedulingSettings,
    tasks::{TaskInstance, TaskKind, TaskList, TaskSpec},
};
use proptest::prelude::*;
use std::collections::BTreeSet;

const NODES: [&str; 3] = ["node1", "node2", "node3"];

#[derive(Clone, Debug)]
enum Action {
    /// A running step ends: with this code, or killed.
    EndStep(usize, Option<u8>),
    /// A node starts or ends its part as ordered.
    NodeReports(usize),
    Grow(usize, u32),
    Shrink(usize, u32, ShrinkReason),
    /// The planner takes back what is idle.
    GiveUpIdle,
    Requeue,
    End(bool),
    Start(usize, u32),
    Pass(i64),
}

fn action() -> impl Strategy<Value = Action> {
    let reason = prop_oneof![
        Just(ShrinkReason::Idle),
        Just(ShrinkReason::Rebalanced),
        Just(ShrinkReason::Preempted),
        Just(ShrinkReason::TasksPreempted),
        Just(ShrinkReason::TasksRebalanced)
    ];
    prop_oneof![
        8 => (any::<usize>(), prop_oneof![4 => Just(Some(0)), 1 => Just(Some(1)), 1 => Just(None)])
            .prop_map(|(which, code)| Action::EndStep(which, code)),
        6 => (0..3usize).prop_map(Action::NodeReports),
        3 => (0..3usize, 1..3u32).prop_map(|(node, cores)| Action::Grow(node, cores)),
        2 => (0..3usize, 1..5u32, reason).prop_map(|(node, cores, reason)| Action::Shrink(node, cores, reason)),
        1 => Just(Action::GiveUpIdle),
        1 => Just(Action::Requeue),
        1 => any::<bool>().prop_map(Action::End),
        4 => (0..3usize, 1..5u32).prop_map(|(node, cores)| Action::Start(node, cores)),
        1 => (0..3i64).prop_map(Action::Pass),
    ]
}

fn task_list() -> impl Strategy<Value = TaskList> {
    let kind = prop_oneof![
        Just(TaskKind::Basic),
        (1..6u32).prop_map(|steps| TaskKind::Sweep { start: 1, increment: 1, steps })
    ];
    let one =
        (kind, 1..3u32, any::<bool>()).prop_map(|(kind, max, rerunnable)| TaskSpec { max, rerunnable, ..task(kind) });
    let tasks = prop::collection::vec(one, 1..5);
    (tasks, any::<(bool, bool, bool, bool)>()).prop_map(|(mut tasks, (prep, release, chained, doom))| {
        if chained {
            (1..tasks.len()).for_each(|at| tasks[at].after = vec![at as u32 - 1]);
        }
        tasks.extend(prep.then(|| task(TaskKind::NodePrep)));
        tasks.extend(release.then(|| task(TaskKind::NodeRelease)));
        TaskList { fail_dependents: doom, ..list(1, 8, tasks) }
    })
}

struct World {
    cluster: Cluster,
    job: JobId,
    finished: BTreeSet<TaskInstance>,
    /// Nodes that the run has left and that have yet to report the end of its part there.
    leaving: Vec<(RunId, NodeId)>,
}

impl World {
    fn new(list: &TaskList) -> Self {
        let mut cluster = Cluster::new();
        cluster.in_queued_mode(SchedulingSettings::default());
        let job = cluster.submit_list(list);
        Self { cluster, job, finished: BTreeSet::new(), leaving: Vec::new() }
    }

    fn run(&self) -> Option<RunId> {
        self.cluster.state.job(self.job)?.run()
    }

    fn note(&mut self, events: &[Event]) {
        for began in begun(events) {
            assert!(!self.finished.contains(&began.instance), "{:?} has finished and runs again", began.instance);
        }
        for event in events {
            if let Event::RunShrunk { run, removed, .. } = event {
                let state = &self.cluster.state;
                let part = |node| state.run(*run).is_some_and(|run| run.part(node).is_some());
                self.leaving.extend(removed.shares().filter(|share| !part(share.node)).map(|share| (*run, share.node)));
            }
        }
    }

    fn act(&mut self, action: &Action) {
        let events = match action {
            Action::EndStep(which, code) => self.end_step(*which, *code),
            Action::NodeReports(node) => self.node_reports(NODES[*node]),
            Action::Grow(node, cores) => {
                let added = self.cluster.placement(&[NODES[*node]], *cores);
                self.cluster.grow(self.job, added).unwrap_or_default()
            }
            Action::Shrink(node, cores, reason) => {
                let removed = self.cluster.part_of(NODES[*node], &(0..*cores).collect::<Vec<_>>());
                self.cluster.shrink(self.job, removed, *reason).unwrap_or_default()
            }
            Action::GiveUpIdle => self.give_up_idle(),
            Action::Requeue => {
                let command = Command::Requeue { jobs: ids(&[self.job]), hold: false, delay_seconds: 0 };
                self.cluster.run(&user("ada"), command).map(|(events, _)| events).unwrap_or_default()
            }
            Action::End(is_graceful) => {
                let ending = JobEnding { is_graceful: *is_graceful, ..JobEnding::default() };
                let command = Command::EndJobs { jobs: ids(&[self.job]), ending };
                let is_running = self.run().is_some();
                let ended = if is_running { self.cluster.run(&user("ada"), command).ok() } else { None };
                ended.map(|(events, _)| events).unwrap_or_default()
            }
            Action::Start(node, cores) => self.start(NODES[*node], *cores),
            Action::Pass(seconds) => {
                self.cluster.pass(*seconds);
                Vec::new()
            }
        };
        self.note(&events);
        let events = self.cluster.settle();
        self.note(&events);
    }

    fn start(&mut self, node: &str, cores: u32) -> Vec<Event> {
        if !self.cluster.is_waiting(self.job) {
            return Vec::new();
        }
        let command = self.cluster.start_command(self.job, &[node], cores);
        self.cluster.run(&muster_schemas::event::Actor::Planner, command).map(|(events, _)| events).unwrap_or_default()
    }

    fn end_step(&mut self, which: usize, code: Option<u8>) -> Vec<Event> {
        let Some(run) = self.run() else { return Vec::new() };
        let steps: Vec<StepId> = self.cluster.state.run(run).unwrap().steps.keys().copied().collect();
        let Some(step) = steps.get(which % steps.len().max(1)).copied() else { return Vec::new() };
        let instance = self.cluster.state.job(self.job).unwrap().tasks.as_ref().unwrap().running[&step].instance;
        let status = code.map_or(ExitStatus::Signal(15), ExitStatus::Code);
        let is_work =
            self.cluster.state.job(self.job).unwrap().tasks.as_ref().unwrap().tasks[instance.task as usize].is_work();
        if is_work && code == Some(0) {
            self.finished.insert(instance);
        }
        let exit = exit(status, if code.is_some() { EndCause::Itself } else { EndCause::Killed }, self.cluster.now);
        self.cluster.end_step_with(run, step, exit)
    }

    fn node_reports(&mut self, name: &str) -> Vec<Event> {
        let node = self.cluster.node_id(name);
        let end =
            NodeExit { status: None, started: None, ..exit(ExitStatus::Code(0), EndCause::Itself, self.cluster.now) };
        if let Some(at) = self.leaving.iter().position(|(_, left)| *left == node) {
            let (run, _) = self.leaving.remove(at);
            return self.cluster.ok(&executor(name), Command::NodeEnded { part: PartId::new(run, 0), exit: end });
        }
        let Some(run) = self.run() else { return Vec::new() };
        let known = self.cluster.state.run(run).unwrap();
        let command = match (known.part(node), known.stopping) {
            (None, _) => return Vec::new(),
            (Some(_), Some(_)) => Command::NodeEnded { part: PartId::new(run, 0), exit: end },
            (Some(_), None) => Command::NodeStarted { part: PartId::new(run, 0) },
        };
        self.cluster.ok(&executor(name), command)
    }

    fn give_up_idle(&mut self) -> Vec<Event> {
        let idle = self.cluster.state.elastic(self.job).map_or(0, |elastic| elastic.idle);
        if idle == 0 {
            return Vec::new();
        }
        let unused = self.cluster.state.unused(self.job, idle);
        self.cluster.shrink(self.job, unused, ShrinkReason::Idle).expect("what is idle can be given up")
    }

    /// Everything is done as asked, and nothing fails.
    fn goes_well(&mut self) {
        for round in 0..1000 {
            if self.cluster.outcome(self.job).is_some() {
                return;
            }
            NODES.iter().for_each(|_| self.act(&Action::EndStep(round, Some(0))));
            (0..3).for_each(|node| self.act(&Action::NodeReports(node)));
            self.act(&Action::Start(round % 3, 2));
            self.act(&Action::Pass(1));
        }
        panic!("it does not come to an end: {:?}", self.cluster.state.job(self.job));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// HPC-S-13
    #[test]
    fn lists_of_tasks_come_to_their_end_whatever_happens(
        list in task_list(),
        actions in prop::collection::vec(action(), 0..60),
    ) {
        let mut world = World::new(&list);
        actions.iter().for_each(|action| world.act(action));
        world.goes_well();
        let tasks = world.cluster.state.job(world.job).unwrap().tasks.clone().unwrap();
        let all: u64 = list.tasks.iter().map(|task| u64::from(task.instances())).sum();
        let ended: u64 = tasks.tasks.iter().map(|task| u64::from(task.finished) + task.failed.len()).sum();
        match world.cluster.outcome(world.job) {
            Some(Outcome::Completed) => prop_assert_eq!(world.finished.len() as u64, all),
            Some(Outcome::Failed(_) | Outcome::LaunchFailed(_)) => {
                let doomed = tasks.tasks.iter().any(|task| task.is_doomed);
                prop_assert!(doomed || tasks.tasks.iter().any(|task| !task.is_work()) || ended == all, "{:?}", tasks);
            }
            Some(Outcome::Cancelled) => {}
            other => prop_assert!(false, "{:?}", other),
        }
        world.cluster.assert_replays();
    }
}
