//! Users who submit and change jobs at random.

use super::mechanisms;
use muster_domain::{State, jobs::Job};
use muster_schemas::{
    JobId,
    command::{Command, JobEnding, JobSelection},
    event::{Intake, JobChange, Owner},
    filter::JobDocument,
    job::{
        ArraySpec, Component, Dependencies, Dependency, DependencyKind, Holds, JobSpec, Launch, Program, RequeuePolicy,
    },
    resources::{Alternative, Count, Level, LevelCount, Request, Sharing},
    tasks::{SizeUnit, TaskKind, TaskList, TaskSpec},
};
use rand::{Rng, rngs::SmallRng};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct UserHost {
    number: u32,
    /// Whether jobs mostly have several components.
    components: bool,
    /// Whether jobs mostly open planning domains, make way and the like.
    mechanisms: bool,
}

impl UserHost {
    pub(super) fn new(number: usize, components: bool, mechanisms: bool) -> Self {
        Self { number: number as u32, components, mechanisms }
    }

    /// The first one is an operator as well: root.
    pub(super) fn owner(&self) -> Owner {
        let uid = if self.number == 0 { 0 } else { 1000 + self.number };
        let user = if self.number == 0 { "root".to_owned() } else { format!("user{}", self.number) };
        Owner { user, uid, gid: uid }
    }

    /// A random command of a user. It need not make sense: the ledger must refuse nonsense and change nothing.
    pub(super) fn command(&self, random: &mut SmallRng, state: &State, has_filters: bool) -> Command {
        let jobs: Vec<JobId> = state.jobs().map(|job| job.id).collect();
        let some_job = |random: &mut SmallRng| {
            let known = !jobs.is_empty() && random.random_range(0..20) > 0;
            let job = if known { jobs[random.random_range(0..jobs.len())] } else { JobId::job(999_999) };
            JobSelection::Ids(vec![job])
        };
        let user_hold = Holds { user: true, ..Holds::default() };
        if self.components && random.random_range(0..4) > 0 {
            return on_components(random, state, &jobs);
        }
        if self.mechanisms && random.random_range(0..3) > 0 {
            let plain = job(random, &jobs);
            return mechanisms::command(random, state, plain);
        }
        if has_filters && random.random_range(0..2) == 0 {
            return self.filtered(random, state, &jobs, some_job);
        }
        match random.random_range(0..24) {
            0..=8 => Command::Submit { jobs: (0..random.random_range(1..4)).map(|_| job(random, &jobs)).collect() },
            9..=11 => {
                let (spec, tasks) = list_of_tasks(random, &jobs);
                let intake = Intake { tasks: Some(tasks), ..Intake::default() };
                Command::SubmitDocument { spec: Box::new(spec), intake: Box::new(intake) }
            }
            12..=13 => Command::Cancel { jobs: some_job(random) },
            14 => Command::Hold { jobs: some_job(random), holds: user_hold, reason: "why not".into() },
            15..=16 => Command::Release { jobs: some_job(random), holds: user_hold },
            17 => Command::Suspend { jobs: some_job(random) },
            18 => Command::Resume { jobs: some_job(random) },
            19 => Command::Requeue { jobs: some_job(random), hold: random.random_range(0..4) == 0, delay_seconds: 0 },
            20 => Command::Signal { jobs: some_job(random), signal: 10 },
            21 => Command::DrainNodes { nodes: vec![a_node(random)], reason: "to look at it".into(), is_down: false },
            22 => Command::ResumeNodes { nodes: vec![a_node(random)] },
            _ => {
                let change = JobChange {
                    priority: Some(random.random_range(-5..5)),
                    walltime_seconds: Some(random.random_range(10..300)),
                    ..JobChange::default()
                };
                Command::Modify { jobs: some_job(random), change }
            }
        }
    }
}

impl UserHost {
    /// A command about filters that keep resources until a time.
    fn filtered(
        &self,
        random: &mut SmallRng,
        state: &State,
        jobs: &[JobId],
        some_job: impl Fn(&mut SmallRng) -> JobSelection,
    ) -> Command {
        match random.random_range(0..12) {
            0..=8 => {
                let template = match random.random_range(0..8) {
                    0 => None,
                    1 => Some("unknown".to_owned()),
                    2 => Some("small".to_owned()),
                    _ => Some("licensed".to_owned()),
                };
                let document = random.random_bool(0.5).then(|| JobDocument::xml(*b"<Job/>"));
                let (spec, tasks) = match random.random_range(0..3) {
                    0 => {
                        let (spec, tasks) = list_of_tasks(random, jobs);
                        (spec, Some(tasks))
                    }
                    _ => (JobSpec { array: None, ..job(random, jobs) }, None),
                };
                let intake = Intake { template, document, tasks, ..Intake::default() };
                Command::SubmitDocument { spec: Box::new(spec), intake: Box::new(intake) }
            }
            9 => Command::HoldUntil { jobs: some_job(random), until: Some(state.time().plus_seconds(20)) },
            10 => Command::HoldUntil { jobs: some_job(random), until: None },
            _ => {
                let ending = JobEnding {
                    is_finished: random.random_bool(0.5),
                    is_forced: random.random_bool(0.3),
                    is_graceful: random.random_bool(0.3),
                    gives_up: false,
                    message: "enough".into(),
                    grace_seconds: random.random_bool(0.2).then_some(3),
                };
                Command::EndJobs { jobs: some_job(random), ending }
            }
        }
    }
}

/// A command about jobs with several components.
fn on_components(random: &mut SmallRng, state: &State, jobs: &[JobId]) -> Command {
    let several: Vec<&Job> = state.jobs().filter(|job| job.components.len() > 1).collect();
    // A component that is to end alone must be in a running job of which no component has ended alone.
    let may_end_alone = |job: &&Job| job.run().is_some() && job.single_ends.is_none();
    let running: Vec<&Job> = several.iter().copied().filter(may_end_alone).collect();
    if !running.is_empty() && random.random_range(0..3) == 0 {
        let job = running[random.random_range(0..running.len())];
        let component = random.random_range(1..job.components.len() as u32);
        return Command::Cancel { jobs: JobSelection::Component { job: job.id, component } };
    }
    let (known, kind) = (several, random.random_range(0..16));
    if kind <= 5 || known.is_empty() {
        return Command::Submit {
            jobs: (0..random.random_range(1..3)).map(|_| several_components(random, jobs)).collect(),
        };
    }
    let job = known[random.random_range(0..known.len())];
    let component = random.random_range(0..=job.components.len() as u32);
    let one = JobSelection::Component { job: job.id, component };
    let whole = JobSelection::Ids(vec![job.id]);
    let holds = Holds { user: true, ..Holds::default() };
    match kind {
        6..=9 => Command::Cancel { jobs: one },
        10 => Command::Hold { jobs: one, holds, reason: "one of several".into() },
        11 | 12 => Command::Release { jobs: one, holds },
        13 => Command::Cancel { jobs: whole },
        14 => Command::Suspend { jobs: whole },
        _ => Command::Requeue { jobs: whole, hold: random.random_range(0..4) == 0, delay_seconds: 0 },
    }
}

/// A job with two or three components of one node each: the first has a script, the others hold resources
/// or run something.
fn several_components(random: &mut SmallRng, jobs: &[JobId]) -> JobSpec {
    let mut spec = JobSpec { array: None, ..job(random, jobs) };
    let wanted = random.random_range(2..=3);
    spec.components.resize_with(wanted, || component(random, &[]));
    for (offset, component) in spec.components.iter_mut().enumerate() {
        component.holds.user = random.random_range(0..12) == 0;
        for request in component.alternatives.iter_mut().flat_map(|alternative| &mut alternative.requests) {
            request.path[0].count = Count::exactly(1);
        }
        if offset == 0 {
            component.launch.program = Program::Script { text: "#!/bin/sh\n".into(), args: Vec::new() };
        } else if random.random_range(0..3) > 0 {
            component.launch.program = Program::None;
        }
    }
    spec
}

fn a_node(random: &mut SmallRng) -> String {
    super::node::name(random.random_range(0..4))
}

fn job(random: &mut SmallRng, jobs: &[JobId]) -> JobSpec {
    let components = if random.random_range(0..6) == 0 { 2 } else { 1 };
    let array = (random.random_range(0..6) == 0 && components == 1).then(|| ArraySpec {
        indices: (0..random.random_range(1..8)).collect(),
        max_running: (random.random_range(0..2) == 0).then(|| random.random_range(1..3)),
    });
    let mut spec = JobSpec {
        name: format!("job{}", random.random_range(0..3)),
        components: (0..components).map(|_| component(random, jobs)).collect(),
        array,
        working_directory: "/".into(),
        requeue: RequeuePolicy {
            on_node_lost: random.random_range(0..2) == 0,
            on_exit_codes: vec![7],
            max_runs: random.random_range(1..4),
            ..RequeuePolicy::default()
        },
        ..JobSpec::default()
    };
    if random.random_range(0..5) == 0 {
        // Once for the whole job: two components could together ask for more than there are.
        spec.components[0].alternatives[0].licences.insert("tool".into(), random.random_range(1..3));
    }
    if components > 1 && random.random_range(0..2) == 0 {
        // The second component holds resources only.
        spec.components[1].launch.program = Program::None;
    }
    spec
}

/// A job that is a list of tasks, on cores or on whole nodes.
fn list_of_tasks(random: &mut SmallRng, jobs: &[JobId]) -> (JobSpec, TaskList) {
    let unit = if random.random_bool(0.8) { SizeUnit::Core } else { SizeUnit::Node };
    let (level, most, sharing) = match unit {
        SizeUnit::Node => (Level::Node, 3, Sharing::WholeNodes),
        _ => (Level::Core, 8, Sharing::Shared),
    };
    let min = random.random_range(1..=2);
    let max = random.random_range(min..=most);
    let mut only = component(random, jobs);
    only.launch = Launch::default();
    only.priority = Some(random.random_range(0..4) * 1000);
    only.alternatives[0].requests = vec![Request {
        path: vec![LevelCount { level, count: Count::Range { min, max } }],
        sharing,
        ..Request::default()
    }];
    let tasks = tasks(random, max);
    let until_cancelled = random.random_range(0..12) == 0;
    if until_cancelled || tasks.iter().any(|task| task.kind == TaskKind::Service) {
        // Only its walltime ends it.
        only.alternatives[0].walltime_seconds = Some(random.random_range(5..60));
    }
    let spec = JobSpec {
        name: format!("list{}", random.random_range(0..3)),
        components: vec![only],
        working_directory: "/".into(),
        ..JobSpec::default()
    };
    let list = TaskList {
        unit,
        min,
        max,
        tasks,
        until_cancelled,
        fail_on_task_failure: random.random_bool(0.2),
        fail_dependents: random.random_bool(0.3),
        preemptable: random.random_bool(0.8),
    };
    (spec, list)
}

/// Tasks that belong together: they may prepare and release nodes, and are a service or a few that
/// depend on each other.
fn tasks(random: &mut SmallRng, most: u32) -> Vec<TaskSpec> {
    let mut tasks = Vec::new();
    if random.random_range(0..4) == 0 {
        tasks.push(task(TaskKind::NodePrep));
    }
    if random.random_range(0..8) == 0 {
        tasks.push(task(TaskKind::Service));
    } else {
        for _ in 0..random.random_range(1..4) {
            let kind = match random.random_range(0..2) {
                0 => TaskKind::Basic,
                _ => TaskKind::Sweep { start: 1, increment: 1, steps: random.random_range(1..12) },
            };
            let min = random.random_range(1..=most.min(2));
            let earlier = u32::try_from(tasks.len()).unwrap_or(0);
            let is_work =
                |place: &u32| tasks.get(*place as usize).is_some_and(|task: &TaskSpec| task.kind != TaskKind::NodePrep);
            let after: Vec<u32> = (0..earlier).filter(is_work).filter(|_| random.random_range(0..3) == 0).collect();
            tasks.push(TaskSpec {
                min,
                max: random.random_range(min..=4),
                after,
                rerunnable: random.random_range(0..6) > 0,
                run_time_seconds: (random.random_range(0..6) == 0).then(|| random.random_range(1..5)),
                ..task(kind)
            });
        }
    }
    if random.random_range(0..4) == 0 {
        tasks.push(task(TaskKind::NodeRelease));
    }
    tasks
}

fn task(kind: TaskKind) -> TaskSpec {
    TaskSpec {
        name: String::new(),
        kind,
        min: 1,
        max: 1,
        run_time_seconds: None,
        after: Vec::new(),
        launch: Launch { program: Program::Tasks { argv: vec!["true".into()] }, ..Launch::default() },
        environment: BTreeMap::new(),
        working_directory: None,
        valid_exit_codes: Vec::new(),
        rerunnable: true,
    }
}

fn component(random: &mut SmallRng, jobs: &[JobId]) -> Component {
    let nodes = random.random_range(1..3);
    let request = Request {
        path: vec![
            LevelCount { level: Level::Node, count: Count::Range { min: 1, max: nodes } },
            LevelCount { level: Level::Core, count: Count::exactly(random.random_range(1..4)) },
        ],
        ..Request::default()
    };
    let alternative = Alternative {
        requests: vec![request],
        walltime_seconds: Some(random.random_range(5..300)),
        ..Alternative::default()
    };
    let program = if random.random_range(0..2) == 0 {
        Program::Script { text: "#!/bin/sh\n".into(), args: Vec::new() }
    } else {
        Program::Tasks { argv: vec!["true".into()] }
    };
    Component {
        dependencies: dependencies(random, jobs),
        holds: Holds { user: random.random_range(0..15) == 0, ..Holds::default() },
        launch: Launch { program, ..Launch::default() },
        alternatives: vec![alternative],
        ..Component::default()
    }
}

fn dependencies(random: &mut SmallRng, jobs: &[JobId]) -> Dependencies {
    if jobs.is_empty() || random.random_range(0..3) > 0 {
        return Dependencies::default();
    }
    let kind = match random.random_range(0..6) {
        0 => DependencyKind::Started,
        1 | 2 => DependencyKind::Ended,
        3 => DependencyKind::Succeeded,
        4 => DependencyKind::Failed,
        _ => DependencyKind::Singleton,
    };
    let job = (kind != DependencyKind::Singleton).then(|| jobs[random.random_range(0..jobs.len())]);
    let delay_seconds = if random.random_range(0..4) == 0 { random.random_range(1..10) } else { 0 };
    Dependencies { all_of: vec![vec![Dependency { kind, job, delay_seconds }]] }
}
