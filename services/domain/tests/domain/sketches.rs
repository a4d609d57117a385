//! Orders made from sketches, which compute once what the parts of a run share, equal those derived for each part from
//! the whole run; the same holds for the names of parts.

use crate::{
    support::*,
    written::{launch_order_of, tasks_order},
};
use muster_domain::{
    State,
    jobs::Job,
    orders::{OrderSeed, Sketches, follow_up, has_forgotten, reconcile},
    runs::{Part, PartState, Run},
};
use muster_schemas::{
    JobId, NodeId, PartId, RunId, Sequence, StepId,
    cluster::ClusterConfig,
    command::{Command, JobSelection, Reply, Start},
    event::{Actor, EndCause, Event},
    job::{ExitStatus, JobSpec, Program},
    node::{
        CLUSTER_NAME_VARIABLE, JOB_NUMBER_VARIABLE, LaunchOrder, NODE_CORES_VARIABLE, OrderNode,
        RESTART_COUNT_VARIABLE, node_cores_text,
    },
    policy::Policy,
    resources::{ComponentPlacement, IndexSet, NodeShare, Placement},
};
use proptest::prelude::*;
use std::{collections::BTreeSet, sync::Arc};

/// Too many to be searched one by one.
const NODES: u32 = 40;

/// The name of a part, derived from everything that the job has or had.
pub fn name_by_look(state: &State, run: &Run, part: &Part) -> PartId {
    let live = (0..).zip(&run.placement.components);
    let over = state.job(run.job).into_iter().flat_map(Job::components_over);
    let mut others = live.chain(over.map(|(number, over)| (number, &over.placement)));
    let is_shared = others
        .any(|(number, placed)| number != part.component && placed.shares.iter().any(|share| share.node == part.node));
    PartId::new(run.id, if is_shared { part.component } else { 0 })
}

/// A launch, derived from the whole run.
fn launch_by_look(state: &State, run: &Run, part: &Part, spec: &JobSpec) -> Option<LaunchOrder> {
    let job = state.job(run.job)?;
    let component = spec.components.get(part.component as usize)?;
    let at = run.parts.iter().position(|other| other.is(part))?;
    let share =
        run.placement.shares_by_component().find(|(of, share)| (*of, share.node) == (part.component, part.node))?.1;
    let tasks: Vec<u32> = run.placement.shares().map(|share| share.tasks).collect();
    let mut launch = component.launch.clone();
    let is_first = run.parts.iter().find(|first| first.component == part.component)?.is(part);
    let mut environment = spec.environment.clone();
    if matches!(launch.program, Program::Script { .. }) {
        if !is_first {
            launch.program = Program::None;
        } else if run.parts.len() > 1 {
            let cores = node_cores_text(run.placement.shares().map(|share| share.cores.len()));
            environment.insert(NODE_CORES_VARIABLE.into(), cores);
        }
    }
    environment.insert(CLUSTER_NAME_VARIABLE.into(), state.settings().name.clone());
    if job.attempts > 1 {
        environment.insert(RESTART_COUNT_VARIABLE.into(), (job.attempts - 1).to_string());
    }
    if job.id.index.is_some() {
        environment.insert(JOB_NUMBER_VARIABLE.into(), state.number_of(job.id).to_string());
    }
    let kept = &job.components[part.component as usize];
    let placed = &run.placement.components[part.component as usize];
    let nodes = run.parts.iter().zip(&tasks).map(|(part, tasks)| OrderNode {
        name: state.node_name(part.node).into_owned(),
        tasks: *tasks,
        component: part.component,
        facts: None,
    });
    let alternative = component.alternatives.get(placed.alternative as usize);
    Some(LaunchOrder {
        job: job.id,
        part: name_by_look(state, run, part),
        step: StepId(0),
        name: job.name.to_string(),
        owner: (*job.owner).clone(),
        account: kept.account.as_deref().map(str::to_owned),
        queue: kept.queue.to_string(),
        kill_grace_seconds: launch.kill_grace_seconds.unwrap_or(state.settings().kill_grace_seconds),
        launch,
        environment,
        working_directory: spec.working_directory.clone(),
        umask: spec.umask,
        nodes: Arc::new(nodes.collect()),
        node_index: u32::try_from(at).ok()?,
        first_rank: tasks[..at].iter().sum(),
        total_tasks: tasks.iter().sum(),
        cpus_per_task: alternative.and_then(|a| a.requests.first()).map_or(1, |request| request.cpus_per_task),
        cores: share.cores.clone(),
        gpus: share.gpus.clone(),
        memory_bytes: share.memory_bytes,
        walltime_seconds: kept.shape.alternatives.get(placed.alternative as usize).and_then(|a| a.walltime_seconds),
        checkpoint: spec.checkpoint,
        trace: job.trace,
        access: None,
        dialect: spec.dialect.clone(),
        group: spec.group.clone(),
    })
}

/// The job in the record of a submission.
fn submitted(cluster: &Cluster, job: &Job) -> Arc<JobSpec> {
    let record = cluster.log.iter().find(|record| record.sequence == job.submitted_sequence);
    match record.map(|record| &record.event) {
        Some(Event::JobSubmitted { spec, .. }) => spec.clone(),
        other => panic!("{other:?}"),
    }
}

/// Whatever has happened: all parts of all runs are named, found and launched as derived from the whole run.
pub fn assert_as_by_look(cluster: &Cluster) {
    let state = &cluster.state;
    let mut sketches = Sketches::new(state);
    for run in state.runs() {
        let job = state.job(run.job).expect("it has a run");
        let is_list = job.tasks.is_some();
        for (at, part) in run.parts.iter().enumerate() {
            let name = name_by_look(state, run, part);
            assert_eq!(state.part_id(run, part), name);
            let named = state.part_named(part.node, name).map(|(run, part)| (run.id, part.node, part.component));
            assert_eq!(named, Some((run.id, part.node, part.component)));
            assert_eq!(run.position_of(part.node, part.component), Some(at));
            let of_part = run.placement.components[part.component as usize].shares.iter();
            assert_eq!(run.share_of(part.node, part.component), of_part.clone().find(|share| share.node == part.node));
            assert_eq!(run.placement.share_at(at).map(|share| share.node), Some(part.node));
            if !is_list {
                let spec = submitted(cluster, job);
                let order = launch_order_of(&mut sketches, name, part.node, &spec);
                assert_eq!(order, launch_by_look(state, run, part, &spec));
            }
        }
    }
}

/// A cluster of many nodes with four cores each, whose policy lets components share nodes.
fn wide() -> Cluster {
    let nodes = (1..=NODES).map(|number| node(&format!("node{number}"), 4)).collect();
    let mut cluster = Cluster::with(ClusterConfig { nodes, ..config() });
    let mut policy = Policy::default();
    policy.backfill.components.share_nodes = true;
    cluster.ok(&Actor::Ledger, Command::SetPolicy { policy: Box::new(policy) });
    cluster
}

#[derive(Clone, Debug)]
struct OneComponent {
    nodes: Vec<u32>,
    tasks: u32,
    is_script: bool,
}

/// One component of a job: a core on each of some nodes, in any order.
fn component() -> impl Strategy<Value = OneComponent> {
    let nodes = prop::sample::subsequence((0..NODES).collect::<Vec<_>>(), 1..=NODES as usize).prop_shuffle();
    (nodes, 1..4_u32, any::<bool>()).prop_map(|(nodes, tasks, is_script)| OneComponent { nodes, tasks, is_script })
}

/// Allocates a job with these components, each on the core with the component's number.
fn allocate(cluster: &mut Cluster, components: &[OneComponent]) -> (JobId, RunId) {
    let (mut spec, mut placement) = (JobSpec::default(), Placement::default());
    for (core, component) in (0..).zip(components) {
        let mut of_spec = job(component.nodes.len() as u32, 1).components.remove(0);
        of_spec.launch = if component.is_script { script() } else { tasks() };
        spec.components.push(of_spec);
        let share = |node: &u32| NodeShare {
            node: NodeId(*node),
            cores: IndexSet::from_range(core, core),
            gpus: IndexSet::new(),
            memory_bytes: 0,
            tasks: component.tasks,
            exclusive: false,
        };
        let shares = component.nodes.iter().map(share).collect();
        placement.components.push(ComponentPlacement { alternative: 0, shares });
    }
    let (id, run) = (cluster.submit("ada", spec), cluster.state.next_run());
    let planned = cluster.run(&Actor::Planner, commit(vec![Start { job: id, placement }]));
    assert!(matches!(&planned, Ok((_, Reply::Planned(none))) if none.is_empty()), "{planned:?}");
    (id, run)
}

fn last_of(cluster: &Cluster, is_meant: impl Fn(&Event) -> bool) -> Vec<(NodeId, OrderSeed)> {
    let record = cluster.log.iter().rfind(|record| is_meant(&record.event)).expect("it happened");
    follow_up(&cluster.state, record)
}

fn parts_of(run: &Run, state: &State) -> Vec<(NodeId, PartId)> {
    run.parts.iter().map(|part| (part.node, name_by_look(state, run, part))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 500, ..ProptestConfig::default() })]

    /// A run on many nodes, with components that share some of them, from its launch to its end.
    #[test]
    fn wide_runs_are_ordered_as_by_look(components in prop::collection::vec(component(), 1..4), forgotten in 0..NODES) {
        let mut cluster = wide();
        let (id, run) = allocate(&mut cluster, &components);
        assert_as_by_look(&cluster);
        let known = cluster.state.run(run).expect("it was allocated");
        let parts = parts_of(known, &cluster.state);
        let submitted_sequence = cluster.state.job(id).expect("it is there").submitted_sequence;
        let launches: Vec<_> =
            parts.iter().map(|(node, part)| (*node, OrderSeed::Launch { part: *part, submitted_sequence })).collect();
        prop_assert_eq!(&last_of(&cluster, |event| matches!(event, Event::RunAllocated { .. })), &launches);
        for node in (0..NODES).map(NodeId) {
            let of_node = launches.iter().filter(|(on, _)| *on == node).map(|(_, seed)| *seed);
            prop_assert_eq!(reconcile(&cluster.state, node, &[]), of_node.collect::<Vec<_>>());
        }
        for (node, part) in &parts {
            let name = cluster.state.node_name(*node).into_owned();
            cluster.ok(&executor(&name), Command::NodeStarted { part: *part });
        }
        assert_as_by_look(&cluster);
        let here: BTreeSet<PartId> =
            parts.iter().filter(|(node, _)| *node == NodeId(forgotten)).map(|(_, part)| *part).collect();
        prop_assert_eq!(has_forgotten(&cluster.state, NodeId(forgotten), &[], cluster.state.sequence()), !here.is_empty());
        let listed: Vec<PartId> = here.into_iter().collect();
        prop_assert!(!has_forgotten(&cluster.state, NodeId(forgotten), &listed, cluster.state.sequence()));
        prop_assert!(!has_forgotten(&cluster.state, NodeId(forgotten), &[], Sequence(0)));

        // A step without places.
        let events = cluster.ok(&user("ada"), plain_step(id, None, None));
        let [Event::StepLaunched { step, spec: launched, .. }] = &events[..] else { panic!("{events:?}") };
        let known = cluster.state.run(run).expect("it runs");
        let spec = submitted(&cluster, cluster.state.job(id).expect("it is there"));
        let mut next_rank = 0;
        for part in known.parts.iter().filter(|part| known.part(part.node).is_some_and(|first| first.is(part))) {
            let name = name_by_look(&cluster.state, known, part);
            let (order, tasks) = tasks_order(&cluster.state, name, part.node, *step, &spec, launched).expect("it has tasks there");
            let share = known.share_of(part.node, part.component).expect("it has a share");
            let ranks = IndexSet::from_range(next_rank, next_rank + share.tasks - 1);
            next_rank += share.tasks;
            prop_assert_eq!((order.part, &order.cores), (name, &share.cores));
            prop_assert_eq!(tasks.ranks, ranks);
        }

        cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[id]) });
        let stopped = last_of(&cluster, |event| matches!(event, Event::RunStopping { .. }));
        prop_assert_eq!(stopped.iter().map(|(node, seed)| (*node, part_in(seed))).collect::<Vec<_>>(), parts.clone());
        for (node, part) in &parts {
            let name = cluster.state.node_name(*node).into_owned();
            let exit = exit(ExitStatus::Signal(15), EndCause::Itself, cluster.now);
            cluster.ok(&executor(&name), Command::NodeEnded { part: *part, exit });
        }
        let forgotten = last_of(&cluster, |event| matches!(event, Event::RunEnded { .. }));
        let forget: Vec<_> = parts.iter().map(|(node, part)| (*node, OrderSeed::Forget { part: *part })).collect();
        prop_assert_eq!(forgotten, forget);
        cluster.assert_replays();
    }
}

fn part_in(seed: &OrderSeed) -> PartId {
    match seed {
        OrderSeed::Stop { part, .. } => *part,
        other => panic!("{other:?}"),
    }
}

/// Parts keep their names when another component has ended alone, on many nodes too.
#[test]
fn parts_keep_their_names_when_a_component_ends_alone() {
    let mut cluster = wide();
    let component = |nodes: std::ops::Range<u32>| OneComponent { nodes: nodes.collect(), tasks: 1, is_script: false };
    let (id, run) = allocate(&mut cluster, &[component(0..20), component(10..30), component(15..40)]);
    let parts = parts_of(cluster.state.run(run).expect("it was allocated"), &cluster.state);
    for (node, part) in &parts {
        let name = cluster.state.node_name(*node).into_owned();
        cluster.ok(&executor(&name), Command::NodeStarted { part: *part });
    }
    let jobs = JobSelection::Component { job: id, component: 1 };
    cluster.ok(&user("ada"), Command::Cancel { jobs });
    let stops = last_of(&cluster, |event| matches!(event, Event::ComponentStopping { .. }));
    assert_eq!(stops.iter().map(|(node, seed)| (*node, part_in(seed))).collect::<Vec<_>>(), parts[20..40]);
    let exit = exit(ExitStatus::Signal(15), EndCause::Itself, cluster.now);
    for (node, part) in &parts[20..40] {
        let name = cluster.state.node_name(*node).into_owned();
        cluster.ok(&executor(&name), Command::NodeEnded { part: *part, exit: exit.clone() });
    }
    let known = cluster.state.run(run).expect("the others run");
    let left = [&parts[..20], &parts[40..]].concat();
    assert_eq!(parts_of(known, &cluster.state), left);
    assert!(known.parts.iter().all(|part| part.state == PartState::Started));
    assert_as_by_look(&cluster);
    cluster.ok(&user("oper"), Command::Suspend { jobs: ids(&[id]) });
    let suspended = last_of(&cluster, |event| matches!(event, Event::JobSuspended { .. }));
    let wanted: Vec<_> = left.iter().map(|(node, part)| (*node, OrderSeed::Suspend { part: *part })).collect();
    assert_eq!(suspended, wanted);
    cluster.assert_replays();
}
