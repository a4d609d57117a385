//! Steps: cores, numbers, signals, ends; and jobs that end with their clients.

use crate::{support::*, written::tasks_order};
use muster_domain::{
    orders::{OrderSeed, follow_up, reconcile},
    steps::AtOnce,
};
use muster_schemas::{
    JobId, PartId, RunId, StepId,
    binding::{Binding, CoreBinding, MemoryBinding, MemoryDomains},
    command::{Command, RefusalCode, Reply},
    event::{EndCause, Event, StopReason},
    job::{ExitStatus, JobSpec, JobState, Launch, Outcome},
    resources::IndexSet,
    steps::{ProcessManagement, StepGroup, StepInput, StepPlace, StepProgram, StepSpec, TaskStatus},
};
use proptest::prelude::*;

fn ranks(text: &str) -> IndexSet {
    text.parse().expect("a set")
}

/// A step of `true` with this many tasks of one core on each of these nodes.
fn step(places: &[(&str, u32)]) -> StepSpec {
    let mut next = 0;
    let places: Vec<StepPlace> = places
        .iter()
        .map(|(node, tasks)| {
            let ranks = IndexSet::from_range(next, next + tasks - 1);
            next += tasks;
            StepPlace { node: (*node).into(), ranks, cores: None }
        })
        .collect();
    let programs = vec![StepProgram { ranks: IndexSet::first_n(next), argv: vec!["true".into()] }];
    StepSpec { groups: vec![StepGroup { places, programs, ..StepGroup::default() }], ..StepSpec::default() }
}

fn launch(job: JobId, spec: StepSpec) -> Command {
    Command::LaunchStep { job, spec: Box::new(spec) }
}

fn launched(cluster: &mut Cluster, job: JobId, spec: StepSpec) -> (StepId, Vec<IndexSet>) {
    let (events, reply) = cluster.run(&user("ada"), launch(job, spec)).expect("it fits");
    let Reply::Step { step, .. } = reply else { panic!("{reply:?}") };
    let [Event::StepLaunched { shares, .. }] = &events[..] else { panic!("{events:?}") };
    (step, shares.iter().map(|share| share.cores.clone()).collect())
}

fn ended(run: RunId, step: StepId, code: u8, cluster: &Cluster) -> Command {
    let status = ExitStatus::Code(code);
    let statuses = vec![TaskStatus { ranks: ranks("0"), status }];
    Command::NodeStepEnded {
        part: PartId::new(run, 0),
        step,
        exit: exit(status, EndCause::Itself, cluster.now),
        statuses,
    }
}

/// A job that only holds resources for a client.
fn allocation(nodes: u32, cores: u32) -> JobSpec {
    let mut spec = job(nodes, cores);
    spec.components[0].launch = Launch::default();
    spec
}

/// A running job with four cores on each of two nodes.
fn running() -> (Cluster, JobId, RunId) {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(2, 4));
    let run = cluster.start(id, &["node1", "node2"], 4);
    (cluster, id, run)
}

/// SL-R-07, SL-R-08, SL-R-22, M-STEP-2.
#[test]
fn steps_get_cores_that_no_other_step_has_and_numbers_of_one_counter() {
    let (mut cluster, id, run) = running();
    let (first, cores) = launched(&mut cluster, id, step(&[("node1", 3)]));
    assert_eq!((first, cores), (StepId(1), vec![ranks("0-2")]));
    let (second, cores) = launched(&mut cluster, id, step(&[("node1", 1), ("node2", 2)]));
    assert_eq!((second, cores), (StepId(2), vec![ranks("3"), ranks("0-1")]));
    let ada = user("ada");
    cluster.refused(&ada, launch(id, step(&[("node1", 1)])), RefusalCode::Busy, "0 are free");
    cluster.refused(&ada, launch(id, step(&[("node1", 5)])), RefusalCode::LimitReached, "has 4 there");
    cluster.refused(&ada, launch(id, step(&[("node3", 1)])), RefusalCode::Invalid, "`node3` is not a node of");
    let now = ended(run, first, 0, &cluster);
    let events = cluster.ok(&executor("node1"), now);
    assert!(matches!(events[..], [Event::StepPartEnded { .. }, Event::StepEnded { .. }]), "{events:?}");
    let (third, cores) = launched(&mut cluster, id, step(&[("node1", 1)]));
    assert_eq!((third, cores), (StepId(3), vec![ranks("0")]));
    // A component that took no part in a step has a gap in its numbers; the counter belongs to the run.
    let plain = plain_step(id, Some(1), None);
    assert!(matches!(cluster.run(&ada, plain), Ok((_, Reply::Step { step: StepId(4), .. }))));
    cluster.assert_replays();
}

#[test]
fn all_cores_of_a_step_are_granted_or_none() {
    let (mut cluster, id, _) = running();
    launched(&mut cluster, id, step(&[("node2", 4)]));
    cluster.refused(&user("ada"), launch(id, step(&[("node1", 1), ("node2", 1)])), RefusalCode::Busy, "node2");
    let (_, cores) = launched(&mut cluster, id, step(&[("node1", 4)]));
    assert_eq!(cores, [ranks("0-3")]);
}

#[test]
fn a_step_that_overlaps_takes_no_core_from_others() {
    let (mut cluster, id, _) = running();
    let overlapping = StepSpec { overlaps: true, ..step(&[("node1", 4)]) };
    launched(&mut cluster, id, overlapping.clone());
    let (_, cores) = launched(&mut cluster, id, step(&[("node1", 4)]));
    assert_eq!(cores, [ranks("0-3")]);
    launched(&mut cluster, id, overlapping);
}

/// A step whose tasks are bound has their cores in its event, and no list of cores makes it larger than a job may be.
#[test]
fn the_cores_of_bound_tasks_are_in_the_event_of_their_step() {
    let (mut cluster, id, _) = running();
    let bound = |sets: Vec<&str>| {
        let list = sets.iter().map(|set| ranks(set)).collect();
        let mut spec = step(&[("node1", 2)]);
        spec.groups[0].binding = Some(Binding { cores: Some(CoreBinding::Listed(list)), ..Binding::default() });
        spec
    };
    let mut apart = bound(vec!["3", "2", "1"]);
    let events = cluster.ok(&user("ada"), launch(id, apart.clone()));
    let shares = events.iter().find_map(|event| match event {
        Event::StepLaunched { shares, .. } => Some(shares.clone()),
        _ => None,
    });
    let share = shares.and_then(|shares| shares.first().cloned()).expect("it is launched on a node");
    assert_eq!((share.cores, share.bound), (ranks("2-3"), vec![ranks("3"), ranks("2")]));
    cluster.refused(&user("ada"), launch(id, apart.clone()), RefusalCode::Busy, "in use by other steps");
    cluster.refused(&user("ada"), launch(id, bound(vec!["4"])), RefusalCode::Invalid, "the job has 0-3");
    cluster.refused(&user("ada"), launch(id, bound(vec!["65536"])), RefusalCode::Invalid, "binding.cores");
    apart.groups[0].binding = Some(Binding {
        memory: Some(MemoryBinding { domains: MemoryDomains::Listed(vec![ranks("1024")]), is_preference: false }),
        ..Binding::default()
    });
    cluster.refused(&user("ada"), launch(id, apart), RefusalCode::Invalid, "binding.memory.domains");
    cluster.assert_replays();
}

/// A step without places, with this many tasks and cores per task.
fn anywhere(tasks: u32, nodes: Option<u32>, cpus_per_task: u32) -> StepSpec {
    let programs = vec![StepProgram { argv: vec!["true".into()], ..StepProgram::default() }];
    let group = StepGroup { programs, tasks: Some(tasks), nodes, cpus_per_task, ..StepGroup::default() };
    StepSpec { groups: vec![group], ..StepSpec::default() }
}

/// SL-R-08: the refusal of a step without places says how many tasks the job has room for, given the cores per task.
#[test]
fn the_room_of_a_job_counts_the_cores_that_each_task_of_a_step_takes() {
    let (mut cluster, id, _) = running();
    let refused = |cluster: &mut Cluster, spec, words| {
        cluster.refused(&user("ada"), launch(id, spec), RefusalCode::LimitReached, words);
    };
    refused(&mut cluster, anywhere(5, None, 2), "tasks: 5 are wanted, the job has room for 1 to 4");
    refused(&mut cluster, anywhere(3, None, 3), "tasks: 3 are wanted, the job has room for 1 to 2");
    refused(&mut cluster, anywhere(1, None, 5), "tasks: 1 are wanted, the job has room for none");
    refused(
        &mut cluster,
        anywhere(3, Some(1), 2),
        "tasks: 3 are wanted on node node1, where the job has room for 1 to 2",
    );
    let (_, cores) = launched(&mut cluster, id, anywhere(3, None, 2));
    assert_eq!(cores, [ranks("0-3"), ranks("0-1")]);
    // A step that overlaps others divides the cores itself.
    launched(&mut cluster, id, StepSpec { overlaps: true, ..anywhere(8, None, 2) });
}

/// Each component of a job gets a copy of a group without places: the size is checked first.
#[test]
fn a_step_that_is_too_large_is_refused_before_it_is_laid_out() {
    let (mut cluster, id, _) = running();
    let mut large = anywhere(1_000, None, 1);
    large.groups[0].programs[0].argv.push("x".repeat(7 << 20));
    cluster.refused(&user("ada"), launch(id, large), RefusalCode::Invalid, "together: 7340036 bytes");
}

#[test]
fn more_tasks_than_cores_are_told_apart_from_more_cores_than_there_are() {
    let (mut cluster, id, _) = running();
    let mut many = step(&[("node1", 9)]);
    cluster.refused(&user("ada"), launch(id, many.clone()), RefusalCode::LimitReached, "9 cores");
    many.groups[0].places[0].cores = Some(2);
    assert_eq!(launched(&mut cluster, id, many).1, [ranks("0-1")]);
}

#[test]
fn memory_that_steps_have_is_not_given_twice() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 4));
    let run = cluster.state.next_run();
    let mut placement = cluster.placement(&["node1"], 4);
    placement.components[0].shares[0].memory_bytes = 4 * GIB;
    let start = muster_schemas::command::Start { job: id, placement };
    cluster.ok(&muster_schemas::event::Actor::Planner, commit(vec![start]));
    cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, 0) });
    let with = |bytes| {
        let mut spec = step(&[("node1", 1)]);
        spec.groups[0].memory_bytes = Some(bytes);
        spec
    };
    let ada = user("ada");
    cluster.refused(&ada, launch(id, with(5 * GIB)), RefusalCode::LimitReached, "5 GiB of memory are wanted");
    launched(&mut cluster, id, with(3 * GIB));
    cluster.refused(&ada, launch(id, with(2 * GIB)), RefusalCode::Busy, "other steps have the memory");
    launched(&mut cluster, id, with(GIB));
}

#[test]
fn steps_that_make_no_sense_are_refused() {
    let (mut cluster, id, _) = running();
    let ada = user("ada");
    let mut refused = |spec: StepSpec, words: &str| {
        cluster.refused(&ada, launch(id, spec), RefusalCode::Invalid, words);
    };
    refused(StepSpec::default(), "tasks: 0 is not between 1");
    refused(step(&[("node1", 1), ("node1", 1)]), "`node1` is given twice");
    let mut gap = step(&[("node1", 2)]);
    gap.groups[0].places[0].ranks = ranks("0,2");
    refused(gap, "not each of 0-1 once");
    let mut without = step(&[("node1", 2)]);
    without.groups[0].programs[0].ranks = ranks("0");
    refused(without, "ranks 1 have no program");
    let mut twice = step(&[("node1", 1)]);
    let again = twice.groups[0].programs[0].clone();
    twice.groups[0].programs.push(again);
    refused(twice, "that no program before has");
    let mut component = step(&[("node1", 1)]);
    component.groups[0].component = 1;
    refused(component, "is not a node of component 1");
    let folder = Some("here".to_owned());
    refused(StepSpec { working_directory: folder, ..step(&[("node1", 1)]) }, "does not begin with `/`");
}

#[test]
fn steps_are_started_by_the_owner_in_a_job_that_runs_on_all_nodes() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(2, 1));
    let ask = || launch(id, step(&[("node1", 1)]));
    cluster.refused(&user("ada"), ask(), RefusalCode::Conflict, "does not run");
    let run = cluster.allocate(id, &["node1", "node2"], 1);
    cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, 0) });
    cluster.refused(&user("ada"), ask(), RefusalCode::Busy, "has not started on all");
    cluster.ok(&executor("node2"), Command::NodeStarted { part: PartId::new(run, 0) });
    cluster.refused(&user("bob"), ask(), RefusalCode::PermissionDenied, "belongs to ada");
    cluster.ok(&user("ada"), ask());
}

fn orders_of(cluster: &Cluster, events: &[Event]) -> Vec<(String, OrderSeed)> {
    let records = cluster.log.iter().rev().take(events.len());
    let orders = records.flat_map(|record| follow_up(&cluster.state, record));
    orders.map(|(node, seed)| (cluster.state.node_name(node).into_owned(), seed)).collect()
}

/// SL-C-38: a running step can get another time limit. The order may be lost, so it is repeated.
#[test]
fn a_step_gets_another_time_limit() {
    let mut cluster = Cluster::new();
    let (id, run) = cluster.start_on_each(&["node1", "node2"], 1);
    let (number, _) = launched(&mut cluster, id, step(&[("node1", 1)]));
    let ada = user("ada");
    let set = |walltime_seconds| Command::SetStepWalltime { job: id, step: number, walltime_seconds };
    let node1 = cluster.node_id("node1");
    let part = PartId::new(run, 0);
    let is_order = |seed: &OrderSeed| matches!(seed, OrderSeed::SetStepWalltime { .. });
    assert!(!reconcile(&cluster.state, node1, &[part]).iter().any(is_order), "it has the limit of its launch");
    cluster.refused(&ada, set(Some(0)), RefusalCode::Invalid, "walltime_seconds");
    cluster.refused(&user("bob"), set(Some(60)), RefusalCode::PermissionDenied, "belongs to ada");
    let events = cluster.ok(&ada, set(Some(60)));
    let order = OrderSeed::SetStepWalltime { part, step: number, walltime_seconds: Some(60) };
    assert_eq!(orders_of(&cluster, &events), [("node1".into(), order)]);
    assert!(cluster.ok(&ada, set(Some(60))).is_empty(), "it has this limit already");
    assert!(reconcile(&cluster.state, node1, &[part]).contains(&order), "the order may be lost");
    assert_eq!(cluster.state.step(run, number).expect("it runs").walltime_seconds, Some(60));
    cluster.ok(&ada, set(None));
    assert_eq!(cluster.state.step(run, number).expect("it runs").walltime_seconds, None);
    let unknown = Command::SetStepWalltime { job: id, step: StepId(9), walltime_seconds: None };
    cluster.refused(&ada, unknown, RefusalCode::NotFound, "step 9");
    cluster.assert_replays();
}

/// SL-M-15
#[test]
fn a_part_of_a_step_can_be_signalled_and_ended_alone() {
    let mut cluster = Cluster::new();
    let (id, run) = cluster.start_on_each(&["node1", "node2"], 2);
    let mut two = step(&[("node1", 1)]);
    two.groups.push(StepGroup {
        component: 1,
        places: vec![StepPlace { node: "node2".into(), ranks: ranks("1"), cores: None }],
        programs: vec![StepProgram { ranks: ranks("1"), argv: vec!["true".into()] }],
        ..StepGroup::default()
    });
    let (number, _) = launched(&mut cluster, id, two);
    let ada = user("ada");
    let events = cluster.ok(&ada, Command::SignalStep { job: id, step: number, component: Some(1), signal: 10 });
    assert_eq!(
        orders_of(&cluster, &events),
        [("node2".into(), OrderSeed::SignalStep { part: PartId::new(run, 0), step: number, signal: 10 })]
    );
    let end = |component, is_forced| Command::EndStep { job: id, step: number, component, is_forced };
    cluster.refused(&ada, end(Some(2), false), RefusalCode::NotFound, "no part in component 2");
    cluster.refused(&user("bob"), end(None, false), RefusalCode::PermissionDenied, "belongs to ada");
    let events = cluster.ok(&ada, end(Some(1), false));
    let grace_seconds = cluster.state.settings().kill_grace_seconds;
    let stop = |grace_seconds| OrderSeed::StopStep { part: PartId::new(run, 0), step: number, grace_seconds };
    assert_eq!(orders_of(&cluster, &events), [("node2".into(), stop(grace_seconds))]);
    assert!(cluster.ok(&ada, end(Some(1), false)).is_empty(), "it is being ended already");
    let node2 = cluster.node_id("node2");
    assert!(
        reconcile(&cluster.state, node2, &[PartId::new(run, 0)]).contains(&stop(grace_seconds)),
        "the order may be lost"
    );
    let node1 = cluster.node_id("node1");
    let launch = |seed: &OrderSeed| matches!(seed, OrderSeed::LaunchStep { .. });
    assert!(reconcile(&cluster.state, node1, &[PartId::new(run, 0)]).iter().any(launch), "the other part goes on");
    let events = cluster.ok(&ada, end(None, true));
    assert_eq!(orders_of(&cluster, &events), [("node1".into(), stop(0)), ("node2".into(), stop(0))]);
    let stopping = |at: usize| cluster.state.step(run, number).expect("it runs").parts[at].stopping;
    assert_eq!((stopping(0), stopping(1)), (Some(AtOnce::Yes), Some(AtOnce::Yes)));
    cluster.assert_replays();
}

/// SL-O-01, SL-O-07
#[test]
fn groups_of_a_step_have_directories_and_input_of_their_own() {
    let (mut cluster, id, run) = running();
    let of_group = |node: &str, rank: u32| StepGroup {
        places: vec![StepPlace { node: node.into(), ranks: IndexSet::from_range(rank, rank), cores: None }],
        programs: vec![StepProgram { ranks: IndexSet::from_range(rank, rank), argv: vec!["true".into()] }],
        ..StepGroup::default()
    };
    let spec = StepSpec {
        working_directory: Some("/all".into()),
        groups: vec![of_group("node1", 0), of_group("node2", 1)],
        ..StepSpec::default()
    };
    let with = |folder: Option<&str>, input: Option<&str>| {
        let mut spec = spec.clone();
        spec.groups[1].working_directory = folder.map(str::to_owned);
        spec.groups[1].stdin = input.map(|file| StepInput::File(file.into()));
        spec
    };
    let ada = user("ada");
    let relative = launch(id, with(Some("own"), None));
    cluster.refused(&ada, relative, RefusalCode::Invalid, "groups.working_directory: `own`");
    let endless = launch(id, with(None, Some(&"x".repeat(1 << 16))));
    cluster.refused(&ada, endless, RefusalCode::Invalid, "groups.stdin.file");
    let spec = with(Some("/own"), Some("input"));
    let (events, _) = cluster.run(&ada, launch(id, spec.clone())).expect("it fits");
    let [Event::StepLaunched { step, .. }] = &events[..] else { panic!("{events:?}") };
    let order = |node: &str| {
        let (part, node) = (PartId::new(run, 0), cluster.node_id(node));
        let submitted = job(2, 4);
        tasks_order(&cluster.state, part, node, *step, &submitted, &spec).expect("it is to be launched")
    };
    let ((first, of_first), (second, of_second)) = (order("node1"), order("node2"));
    assert_eq!((first.working_directory.as_str(), &of_first.streams.stdin), ("/all", &StepInput::Nothing));
    assert_eq!(second.working_directory, "/own");
    assert_eq!(of_second.streams.stdin, StepInput::File("input".into()));
    cluster.assert_replays();
}

#[test]
fn a_step_is_of_the_dialect_that_launched_it_else_of_that_of_its_job() {
    let (mut cluster, id, run) = running();
    let of = |of_step: Option<&str>| StepSpec { dialect: of_step.map(str::to_owned), ..step(&[("node1", 1)]) };
    let (number, _) = launched(&mut cluster, id, of(None));
    let (part, node) = (PartId::new(run, 0), cluster.node_id("node1"));
    let ordered = |of_step: Option<&str>, of_job: Option<&str>| {
        let submitted = JobSpec { dialect: of_job.map(str::to_owned), ..job(2, 4) };
        let order = tasks_order(&cluster.state, part, node, number, &submitted, &of(of_step));
        order.expect("it is to be launched").0.dialect
    };
    assert_eq!(ordered(Some("a"), None).as_deref(), Some("a"));
    assert_eq!(ordered(Some("a"), Some("b")).as_deref(), Some("a"));
    assert_eq!(ordered(None, Some("b")).as_deref(), Some("b"));
    assert_eq!(ordered(None, None), None);
    let refused = launch(id, of(Some("a b")));
    cluster.refused(&user("ada"), refused, RefusalCode::Invalid, "dialect: `a b`");
}

#[test]
fn the_first_failure_ends_the_others_if_the_step_wants_it_so() {
    for wanted in [false, true] {
        let (mut cluster, id, run) = running();
        let spec = StepSpec { ends_on_failure: wanted, ..step(&[("node1", 1), ("node2", 1)]) };
        let (number, _) = launched(&mut cluster, id, spec);
        let report = ended(run, number, 3, &cluster);
        let events = cluster.ok(&executor("node1"), report.clone());
        let stops = events.iter().any(|event| matches!(event, Event::StepStopping { .. }));
        assert_eq!(stops, wanted);
        assert!(cluster.ok(&executor("node1"), report).is_empty(), "a repeated report");
        let report = ended(run, number, 0, &cluster);
        let events = cluster.ok(&executor("node2"), report);
        let status = Some(ExitStatus::Code(3));
        assert_eq!(events.last(), Some(&Event::StepEnded { job: id, run, step: number, status }));
        cluster.assert_replays();
    }
}

#[test]
fn a_part_that_was_lost_is_one_that_failed() {
    let (mut cluster, id, run) = running();
    let spec = StepSpec { ends_on_failure: true, ..step(&[("node1", 1), ("node2", 1)]) };
    let (number, _) = launched(&mut cluster, id, spec);
    let mut lost = exit(ExitStatus::Code(0), EndCause::Lost("its shim was killed".into()), cluster.now);
    lost.status = None;
    let part = PartId::new(run, 0);
    let report = Command::NodeStepEnded { part, step: number, exit: lost, statuses: Vec::new() };
    let events = cluster.ok(&executor("node1"), report);
    assert!(matches!(events[..], [Event::StepPartEnded { .. }, Event::StepStopping { .. }]), "{events:?}");
}

/// SL-W-06, SL-W-08: a parallel program that is over on one node is over on all, at once.
#[test]
fn a_part_that_was_aborted_ends_the_others_without_grace() {
    let (mut cluster, id, run) = running();
    let spec = StepSpec { process_management: Some(ProcessManagement::Pmi), ..step(&[("node1", 1), ("node2", 1)]) };
    let (number, _) = launched(&mut cluster, id, spec);
    let aborted = exit(ExitStatus::Code(0), EndCause::Aborted("task 0: it ended".into()), cluster.now);
    let report =
        Command::NodeStepEnded { part: PartId::new(run, 0), step: number, exit: aborted, statuses: Vec::new() };
    let events = cluster.ok(&executor("node1"), report);
    assert!(
        matches!(
            events[..],
            [Event::StepPartEnded { .. }, Event::StepStopping { is_forced: true, component: None, .. }]
        ),
        "{events:?}"
    );
    cluster.assert_replays();
}

#[test]
fn the_end_of_the_run_is_the_end_of_its_steps() {
    let (mut cluster, id, run) = running();
    launched(&mut cluster, id, step(&[("node1", 1)]));
    cluster.end(run, "node1", ExitStatus::Code(0));
    cluster.end(run, "node2", ExitStatus::Code(0));
    assert_eq!(cluster.state.steps_of(run).count(), 0);
    cluster.refused(&user("ada"), launch(id, step(&[("node1", 1)])), RefusalCode::Conflict, "does not run");
    cluster.assert_replays();
}

/// SL-C-21, M-STEP-7.
#[test]
fn an_allocation_ends_as_its_client_says() {
    for (status, outcome) in [
        (ExitStatus::Code(0), Outcome::Completed),
        (ExitStatus::Code(3), Outcome::Failed(ExitStatus::Code(3))),
        (ExitStatus::Signal(9), Outcome::Failed(ExitStatus::Signal(9))),
    ] {
        let mut cluster = Cluster::new();
        let id = cluster.submit("ada", allocation(2, 1));
        let run = cluster.start(id, &["node1", "node2"], 1);
        let job = cluster.state.job(id).expect("it runs");
        assert_eq!(cluster.state.job_state(job), JobState::Running);
        let conclude = Command::ConcludeJob { job: id, status };
        cluster.refused(&user("bob"), conclude.clone(), RefusalCode::PermissionDenied, "belongs to ada");
        let events = cluster.ok(&user("ada"), conclude);
        assert_eq!(
            events,
            [Event::RunStopping { job: id, run, reason: StopReason::Concluded(status), grace_seconds: None }]
        );
        for node in ["node1", "node2"] {
            let mut gone = exit(ExitStatus::Code(0), EndCause::Killed, cluster.now);
            (gone.status, gone.started) = (None, None);
            cluster.ok(&executor(node), Command::NodeEnded { part: PartId::new(run, 0), exit: gone });
        }
        assert_eq!(cluster.outcome(id), Some(outcome));
        cluster.assert_replays();
    }
}

#[test]
fn a_job_with_a_program_says_itself_how_it_ends() {
    let (mut cluster, id, _) = running();
    let conclude = Command::ConcludeJob { job: id, status: ExitStatus::Code(0) };
    cluster.refused(&user("ada"), conclude, RefusalCode::Conflict, "its own program");
}

/// SL-C-21, M-STEP-8.
#[test]
fn a_job_whose_client_is_lost_is_cancelled_whether_it_waits_or_runs() {
    for runs in [false, true] {
        let mut cluster = Cluster::new();
        let id = cluster.submit("ada", allocation(1, 1));
        let keep = |seconds| Command::KeepJob { job: id, seconds };
        cluster.refused(&user("ada"), keep(Some(9)), RefusalCode::Invalid, "between 10 and 86400");
        cluster.refused(&user("bob"), keep(Some(60)), RefusalCode::PermissionDenied, "belongs to ada");
        cluster.ok(&user("ada"), keep(Some(60)));
        let run = runs.then(|| cluster.start(id, &["node1"], 1));
        cluster.pass(59);
        assert!(cluster.tick().is_empty());
        cluster.ok(&user("ada"), keep(Some(60)));
        cluster.pass(59);
        assert!(cluster.tick().is_empty(), "it was heard of");
        cluster.pass(1);
        assert_eq!(cluster.state.next_timer(), Some(cluster.now));
        // The ledger may have been down: the client may still report.
        let late = Event::JobKept { job: id, seconds: Some(60), is_late: true };
        assert_eq!(cluster.tick(), std::slice::from_ref(&late));
        cluster.ok(&user("ada"), keep(Some(60)));
        cluster.pass(60);
        assert_eq!(cluster.tick(), [late]);
        cluster.pass(59);
        assert!(cluster.tick().is_empty());
        cluster.pass(1);
        let events = cluster.tick();
        assert!(events.contains(&Event::JobKept { job: id, seconds: None, is_late: false }), "{events:?}");
        if let Some(run) = run {
            let reason = StopReason::Cancelled;
            assert_eq!(events.last(), Some(&Event::RunStopping { job: id, run, reason, grace_seconds: None }));
        } else {
            assert_eq!(cluster.outcome(id), Some(Outcome::Cancelled));
        }
        assert!(cluster.tick().is_empty());
        cluster.assert_replays();
    }
}

#[test]
fn a_job_that_has_ended_needs_no_client() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", allocation(1, 1));
    let keep = |seconds| Command::KeepJob { job: id, seconds };
    cluster.ok(&user("ada"), keep(Some(60)));
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[id]) });
    assert_eq!(cluster.state.kept(id), None);
    cluster.refused(&user("ada"), keep(Some(60)), RefusalCode::Conflict, "is over");
}

/// An event in the life of the steps of a job with four cores on each of two nodes.
#[derive(Clone, Debug)]
enum Happens {
    Launch { first: u32, second: u32, overlaps: bool, ends_on_failure: bool },
    End { step: u32, forced: bool },
    Report { step: u32, node: u8, code: u8 },
    Plain,
}

fn happens() -> impl Strategy<Value = Happens> {
    let flag = any::<bool>;
    prop_oneof![
        4 => (0..5u32, 0..5u32, flag(), flag()).prop_map(|(first, second, overlaps, ends_on_failure)| {
            Happens::Launch { first, second, overlaps, ends_on_failure }
        }),
        1 => (1..20u32, flag()).prop_map(|(step, forced)| Happens::End { step, forced }),
        4 => (1..20u32, 0..2u8, 0..2u8).prop_map(|(step, node, code)| Happens::Report { step, node, code }),
        1 => Just(Happens::Plain),
    ]
}

proptest! {
    /// No core is given to two steps that do not overlap others, according to the invariants, which are checked after
    /// each event. Numbers are given once (SL-R-07). A step that has to wait gets what it wants when the others have
    /// ended (M-STEP-1).
    #[test]
    fn cores_are_given_once_whatever_happens(history in prop::collection::vec(happens(), 1..60)) {
        let (mut cluster, id, run) = running();
        let mut numbers = std::collections::BTreeSet::new();
        for happens in history {
            let (actor, command) = match happens {
                Happens::Launch { first, second, overlaps, ends_on_failure } => {
                    let places: Vec<_> =
                        [("node1", first), ("node2", second)].into_iter().filter(|(_, tasks)| *tasks > 0).collect();
                    (user("ada"), launch(id, StepSpec { overlaps, ends_on_failure, ..step(&places) }))
                }
                Happens::End { step, forced } => {
                    let end = Command::EndStep { job: id, step: StepId(step), component: None, is_forced: forced };
                    (user("ada"), end)
                }
                Happens::Report { step, node, code } => {
                    let name = ["node1", "node2"][usize::from(node)];
                    (executor(name), ended(run, StepId(step), code, &cluster))
                }
                Happens::Plain => (user("ada"), plain_step(id, Some(1), None)),
            };
            if let Ok((_, Reply::Step { step, .. })) = cluster.run(&actor, command) {
                prop_assert!(numbers.insert(step), "step {step} was given twice");
            }
        }
        let left: Vec<StepId> = cluster.state.steps_of(run).map(|(step, _)| step).collect();
        for step in left {
            for node in ["node1", "node2"] {
                let report = ended(run, step, 0, &cluster);
                cluster.ok(&executor(node), report);
            }
        }
        prop_assert_eq!(launched(&mut cluster, id, step(&[("node1", 4), ("node2", 4)])).1, [ranks("0-3"), ranks("0-3")]);
        cluster.assert_replays();
    }
}

/// SIGSTOP marks the components whose processes got it, until they get SIGCONT. They keep their cores.
#[test]
fn a_component_is_stopped_from_the_signal_that_stops_it_to_the_one_that_lets_it_continue() {
    let (mut cluster, id, run) = running();
    let (one, _) = launched(&mut cluster, id, step(&[("node2", 1)]));
    let stopped = |cluster: &Cluster| cluster.state.run(run).expect("it runs").stopped.to_string();
    let free = |cluster: &Cluster| cluster.state.node_by_name("node2").expect("it is there").free_cores.len();
    let before = free(&cluster);
    let of_step = |step, signal| Command::SignalStep { job: id, step, component: None, signal };
    let ada = user("ada");
    for (stop, go_on) in [
        (Command::Signal { jobs: ids(&[id]), signal: 19 }, Command::Signal { jobs: ids(&[id]), signal: 18 }),
        (of_step(one, 19), of_step(one, 18)),
        (of_step(StepId(0), 19), of_step(one, 18)),
    ] {
        cluster.ok(&ada, of_step(one, 15));
        assert_eq!(stopped(&cluster), "");
        cluster.ok(&ada, stop);
        assert_eq!((stopped(&cluster).as_str(), free(&cluster)), ("0", before));
        cluster.ok(&ada, of_step(one, 15));
        assert_eq!(stopped(&cluster), "0", "another signal changes nothing");
        cluster.ok(&ada, go_on);
    }
    assert_eq!(stopped(&cluster), "");
    cluster.assert_replays();
}
