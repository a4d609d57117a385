//! The places of jobs.

use crate::world::{GIB, World, component, job, job_of, node, nodes, tasks, with_property};
use muster_schemas::{
    JobId, Timestamp,
    cluster::{ClusterConfig, ClusterSettings, QueueSpec},
    command::Command,
    event::Actor,
    job::{Component, JobSpec, WaitReason},
    node::GpuReport,
    policy::{Backfill, BackfillMode, Limit, LimitPer, Policy},
    resources::{
        Alternative, Count, Gpus, IndexSet, Level, LevelCount, Memory, NodeFilter, NodeSpec, Per, PropertyValue,
        Relation, Request, Sharing,
    },
};

fn path<const N: usize>(levels: [(Level, u32); N]) -> Vec<LevelCount> {
    counts(levels.map(|(level, count)| (level, Count::exactly(count))))
}

fn counts<const N: usize>(levels: [(Level, Count); N]) -> Vec<LevelCount> {
    levels.map(|(level, count)| LevelCount { level, count }).to_vec()
}

/// Submits a job that must start at once; returns its shares.
fn shares_of(world: &mut World, spec: JobSpec) -> Vec<(String, String, u32)> {
    let job = started(world, spec);
    world.shares(job)
}

fn started(world: &mut World, spec: JobSpec) -> JobId {
    let job = world.submit(spec);
    assert_eq!(world.settle(), [job], "{:?}", world.reason(job));
    job
}

fn share(node: &str, cores: &str, tasks: u32) -> (String, String, u32) {
    (node.into(), cores.into(), tasks)
}

/// Submits a job that must wait; returns the reason.
fn waits(world: &mut World, spec: JobSpec) -> Option<WaitReason> {
    let job = world.submit(spec);
    assert_eq!(world.settle(), []);
    world.reason(job)
}

fn resources(what: &str) -> Option<WaitReason> {
    Some(WaitReason::Resources(what.into()))
}

#[test]
fn tasks_without_a_number_of_nodes_fill_node_after_node() {
    let mut world = World::new(nodes(3, 4));
    assert_eq!(shares_of(&mut world, tasks(6)), [share("n1", "0-3", 4), share("n2", "0-1", 2)]);
    assert_eq!(shares_of(&mut world, tasks(3)), [share("n2", "2-3", 2), share("n3", "0", 1)]);
}

#[test]
fn tasks_on_a_number_of_nodes_are_spread_evenly() {
    let mut world = World::new(nodes(2, 8));
    let request = Request { path: path([(Level::Node, 2)]), tasks: Some(6), ..Request::default() };
    assert_eq!(shares_of(&mut world, job(request)), [share("n1", "0-2", 3), share("n2", "0-2", 3)]);
}

#[test]
fn nodes_with_more_room_are_taken_if_the_first_ones_have_too_little() {
    let mut world = World::new(vec![node("a", 1, 8), node("b", 8, 8), node("c", 8, 8)]);
    let request = Request { path: path([(Level::Node, 2)]), tasks: Some(12), ..Request::default() };
    assert_eq!(shares_of(&mut world, job(request)), [share("b", "0-5", 6), share("c", "0-5", 6)]);
}

#[test]
fn a_task_gets_its_cores_on_one_node() {
    let mut world = World::new(nodes(2, 4));
    let request = Request { tasks: Some(2), cpus_per_task: 3, ..Request::default() };
    assert_eq!(shares_of(&mut world, job(request)), [share("n1", "0-2", 1), share("n2", "0-2", 1)]);
}

#[test]
fn a_range_of_nodes_takes_what_can_be_had() {
    let mut world = World::new(nodes(3, 2));
    let range = |min, max| counts([(Level::Node, Count::Range { min, max })]);
    let request = Request { path: range(2, 8), ..Request::default() };
    assert_eq!(shares_of(&mut world, job(request)).len(), 3);
    let request = Request { path: counts([(Level::Node, Count::Best)]), ..Request::default() };
    assert_eq!(shares_of(&mut world, job(request)).len(), 3);
    let request = Request { path: range(2, 3), ..Request::default() };
    assert_eq!(waits(&mut world, job(request)), resources("cores"));
}

/// OAR-R-10: half of the best, rounded down, at least one, at every level.
#[test]
fn half_of_the_best_is_rounded_down_and_at_least_one() {
    let cores_in = |text: &str| text.parse::<IndexSet>().expect("a set").len();
    let half = |level: Level| counts([(level, Count::BestHalf)]);
    let asks = |path| job(Request { path, ..Request::default() });
    let placed = |nodes_there: u32, path| {
        let mut world = World::new(nodes(nodes_there, 2));
        let shares = shares_of(&mut world, asks(path));
        (shares.len(), shares.iter().map(|(_, cores, _)| cores_in(cores)).sum::<u64>())
    };
    assert_eq!(placed(5, half(Level::Node)), (2, 2));
    assert_eq!(placed(3, half(Level::Core)), (2, 3));
    let inside = counts([(Level::Node, Count::exactly(2)), (Level::Core, Count::BestHalf)]);
    assert_eq!(placed(3, inside), (2, 2));
    let around = counts([(Level::Node, Count::BestHalf), (Level::Core, Count::exactly(2))]);
    assert_eq!(placed(3, around), (1, 2));
    let groups: Vec<NodeSpec> = (1..=5)
        .map(|number| {
            let mut spec = node(&format!("n{number}"), 1, 8);
            spec.properties.insert("rack".into(), PropertyValue::Text(format!("r{number}")));
            spec
        })
        .collect();
    let mut world = World::new(groups);
    let path = counts([(Level::Group("rack".into()), Count::BestHalf), (Level::Node, Count::exactly(1))]);
    assert_eq!(shares_of(&mut world, asks(path)).len(), 2);
    let mut world = World::new(nodes(1, 2));
    world.submit(asks(half(Level::Node)));
    assert_eq!(world.settle(), [], "half of one is none");
}

#[test]
fn all_nodes_means_every_one_that_takes_jobs() {
    let mut world = World::new(nodes(3, 2));
    let all = || job(Request { path: counts([(Level::Node, Count::All)]), ..Request::default() });
    assert_eq!(shares_of(&mut world, all()).len(), 3);
    world.drain(&["n2"]);
    assert_eq!(shares_of(&mut world, all()).len(), 2);
    assert_eq!(waits(&mut world, all()), resources("cores"));
}

#[test]
fn memory_limits_what_a_node_takes() {
    let mut world = World::new(nodes(2, 8));
    let memory = |gib: u64, per| Some(Memory { bytes: gib * GIB, per });
    let request = Request { tasks: Some(4), memory: memory(3, Per::Task), ..Request::default() };
    assert_eq!(shares_of(&mut world, job(request)), [share("n1", "0-1", 2), share("n2", "0-1", 2)]);
    let request = Request { memory: memory(3, Per::Node), ..Request::default() };
    assert_eq!(waits(&mut world, job(request)), resources("memory"));
}

#[test]
fn memory_of_the_whole_request_is_shared_out_by_cores() {
    let mut world = World::new(nodes(2, 4));
    let memory = Some(Memory { bytes: 10 * GIB, per: Per::Request });
    let request = Request { path: path([(Level::Node, 2)]), tasks: Some(8), memory, ..Request::default() };
    let job = started(&mut world, job(request));
    let given: Vec<u64> = world.placement(job)[0].shares.iter().map(|share| share.memory_bytes / GIB).collect();
    assert_eq!(given, [5, 5]);
}

#[test]
fn memory_that_is_not_asked_for_is_what_the_settings_say() {
    let mut config = ClusterConfig { nodes: nodes(1, 8), ..ClusterConfig::default() };
    config.queues = vec![QueueSpec { name: "default".into(), ..QueueSpec::default() }];
    config.settings.default_memory_per_core_bytes = Some(2 * GIB);
    let mut world = World::configured(config);
    let job = started(&mut world, tasks(4));
    assert_eq!(world.placement(job)[0].shares[0].memory_bytes, 8 * GIB);
    assert_eq!(waits(&mut world, tasks(1)), resources("memory"));
}

fn gpu_node(name: &str, models: &[&str]) -> NodeSpec {
    NodeSpec { gpus: models.iter().map(|model| (*model).to_owned()).collect(), ..node(name, 8, 8) }
}

#[test]
fn gpus_are_given_by_model_task_and_node() {
    let mut world = World::new(vec![node("plain", 8, 8), gpu_node("mixed", &["old", "new", "old"])]);
    let gpus = |count, per, model: Option<&str>| Some(Gpus { count, per, model: model.map(str::to_owned) });
    let request = Request { tasks: Some(2), gpus: gpus(1, Per::Task, Some("old")), ..Request::default() };
    let job_id = started(&mut world, job(request));
    let share = world.placement(job_id)[0].shares[0].clone();
    assert_eq!((world.state().node_name(share.node).as_ref(), share.gpus.to_string().as_str()), ("mixed", "0,2"));
    let request = Request { gpus: gpus(1, Per::Node, Some("old")), ..Request::default() };
    assert_eq!(waits(&mut world, job(request)), resources("GPUs"));
    let another = Request { gpus: gpus(1, Per::Request, Some("new")), ..Request::default() };
    let behind = world.submit(job(another));
    world.settle();
    assert!(matches!(world.reason(behind), Some(WaitReason::BehindJob(_))));
}

/// Who has a GPU that goes out of service keeps it; nobody else gets one, now or later.
/// A job that does not say on how many nodes it runs has as many as its queue allows, with the room that there is.
#[test]
fn a_queue_bounds_the_nodes_of_jobs_that_ask_for_tasks_alone() {
    let bounds = |least: u64, most: u64| {
        let of = |count: u64| [("nodes".to_owned(), count)].into();
        let queue =
            QueueSpec { least_asked: of(least), most_asked: of(most), name: "default".into(), ..QueueSpec::default() };
        let nodes = vec![node("n1", 2, 8), node("n2", 2, 8), node("n3", 4, 8)];
        World::configured(ClusterConfig { nodes, queues: vec![queue], ..ClusterConfig::default() })
    };
    let mut one = bounds(1, 1);
    assert_eq!(shares_of(&mut one, tasks(4)), [share("n3", "0-3", 4)], "the only node with room for all");
    assert!(one.refused(tasks(5)).contains("5 tasks on 1 node"), "no node has room for all");
    let mut two = bounds(1, 2);
    assert_eq!(shares_of(&mut two, tasks(6)), [share("n1", "0-1", 2), share("n3", "0-3", 4)]);
    let mut at_least = bounds(2, 3);
    assert_eq!(shares_of(&mut at_least, tasks(1)).len(), 2);
    let both = [share("n1", "0", 1), share("n2", "0", 1)];
    assert_eq!(shares_of(&mut bounds(2, 3), tasks(2)), both, "although one node has room for all");
}

/// A job has GPUs of several models beside each other, wherever each model is free.
#[test]
fn gpus_of_several_models_are_given_together() {
    let nodes =
        vec![gpu_node("old", &["old"; 3]), gpu_node("mixed", &["old", "new", "old", "new"]), node("plain", 8, 8)];
    let mut world = World::new(nodes);
    let of = |per, counts: &[(u32, &str)], tasks| {
        let gpus = |(count, model): &(u32, &str)| Gpus { count: *count, per, model: Some((*model).to_owned()) };
        let mut all = counts.iter().map(gpus);
        let request = Request { tasks: Some(tasks), gpus: all.next(), ..Request::default() };
        job(Request { more_gpus: all.collect(), ..request })
    };
    let given = |world: &World, job: JobId| -> Vec<(String, String)> {
        let shares = &world.placement(job)[0].shares;
        shares.iter().map(|share| (world.state().node_name(share.node).into_owned(), share.gpus.to_string())).collect()
    };
    let pair = |node: &str, gpus: &str| (node.to_owned(), gpus.to_owned());
    let on_each = started(&mut world, of(Per::Node, &[(1, "new"), (1, "old")], 1));
    assert_eq!(given(&world, on_each), [pair("mixed", "0-1")]);
    let anywhere = started(&mut world, of(Per::Request, &[(4, "old"), (1, "new")], 12));
    let mut all = given(&world, anywhere);
    all.sort();
    assert_eq!(all, [pair("mixed", "2-3"), pair("old", "0-2")]);
    let never = world.refused(of(Per::Request, &[(3, "new"), (1, "old")], 2));
    assert!(never.contains("GPUs of model `new`"), "{never}");
    assert_eq!(waits(&mut world, of(Per::Node, &[(1, "old"), (2, "new")], 1)), resources("GPUs"));
}

#[test]
fn a_gpu_out_of_service_is_not_planned() {
    let mut world = World::new(vec![gpu_node("n1", &["a", "b", "a"])]);
    let gpus = |count, model: Option<&str>| {
        let gpus = Some(Gpus { count, per: Per::Request, model: model.map(str::to_owned) });
        job(Request { gpus, ..Request::default() })
    };
    let given = |world: &World, job: JobId| world.placement(job)[0].shares[0].gpus.to_string();
    let first = started(&mut world, gpus(1, None));
    assert_eq!(given(&world, first), "0");
    let report = |world: &mut World, faults: &[u32]| {
        let faults = faults.iter().map(|gpu| (*gpu, "lost".to_owned())).collect();
        let command = Command::NodeGpusChecked { report: GpuReport { found: 3, faults } };
        world.command(&Actor::Executor("n1".into()), command).expect("it is a node");
    };
    report(&mut world, &[0, 2]);
    assert_eq!(waits(&mut world, gpus(1, Some("a"))), resources("GPUs"));
    let waiting = world.submit(gpus(2, None));
    world.settle();
    world.end(first);
    world.settle();
    assert!(world.reason(waiting).is_some(), "one is left, and the other that was given back is out of service");
    report(&mut world, &[0]);
    world.settle();
    let alone = world.state().jobs().filter(|job| job.run().is_some()).map(|job| job.id).collect::<Vec<_>>();
    assert_eq!(alone.iter().map(|job| given(&world, *job)).collect::<Vec<_>>(), ["2"], "the first of those that wait");
    report(&mut world, &[]);
    world.settle();
    assert_eq!(given(&world, waiting), "0-1");
}

/// The nodes of an exclusive job serve nobody else (HPC-J-19).
#[test]
fn exclusive_nodes_are_shared_with_nobody() {
    let mut world = World::new(nodes(2, 4));
    started(&mut world, tasks(1));
    let request = Request { sharing: Sharing::Exclusive, ..Request::default() };
    assert_eq!(shares_of(&mut world, job(request.clone())), [share("n2", "0", 1)]);
    let next = world.submit(job(request));
    assert_eq!(world.settle(), []);
    assert_eq!(world.reason(next), resources("nodes"));
}

#[test]
fn whole_nodes_come_with_everything_on_them() {
    let mut world = World::new(vec![gpu_node("n1", &["a", "b"])]);
    let request = Request { sharing: Sharing::WholeNodes, ..Request::default() };
    let job = started(&mut world, job(request));
    let share = world.placement(job)[0].shares[0].clone();
    assert_eq!((share.cores.len(), share.gpus.len(), share.memory_bytes, share.exclusive), (8, 2, 8 * GIB, true));
}

#[test]
fn named_nodes_are_all_taken_and_others_never() {
    let mut world = World::new(nodes(4, 4));
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let request = Request { nodes: names(&["n4", "n2"]), tasks: Some(2), ..Request::default() };
    assert_eq!(shares_of(&mut world, job(request)), [share("n2", "0", 1), share("n4", "0", 1)]);
    let request = Request { excluded_nodes: names(&["n1", "n2"]), tasks: Some(6), ..Request::default() };
    assert_eq!(shares_of(&mut world, job(request)), [share("n3", "0-3", 4), share("n4", "1-2", 2)]);
}

#[test]
fn filters_choose_nodes() {
    let mut old = node("old", 4, 8);
    old.properties.insert("year".into(), PropertyValue::Number(2015));
    let mut new = node("new", 4, 8);
    new.properties.insert("year".into(), PropertyValue::Number(2025));
    let mut world = World::new(vec![old, new]);
    let filter = NodeFilter::Compare {
        property: "year".into(),
        relation: Relation::Greater,
        value: PropertyValue::Number(2020),
    };
    let request = |filter| Request { filter: Some(filter), ..Request::default() };
    assert_eq!(shares_of(&mut world, job(request(filter.clone()))), [share("new", "0", 1)]);
    let not = NodeFilter::Not(Box::new(filter));
    assert_eq!(shares_of(&mut world, job(request(not))), [share("old", "0", 1)]);
}

#[test]
fn nodes_of_one_group_are_taken_together() {
    let switch = |name: &str, switch: &str| with_property(node(name, 2, 8), "switch", switch);
    let mut world = World::new(vec![switch("a1", "a"), switch("b1", "b"), switch("b2", "b"), switch("a2", "a")]);
    started(&mut world, job(Request { nodes: vec!["a1".into()], tasks: Some(2), ..Request::default() }));
    let group = Level::Group("switch".into());
    let request = Request { path: path([(group.clone(), 1), (Level::Node, 2)]), ..Request::default() };
    assert_eq!(shares_of(&mut world, job(request)), [share("b1", "0", 1), share("b2", "0", 1)]);
    let request = Request { path: path([(group, 2), (Level::Node, 1)]), tasks: Some(3), ..Request::default() };
    assert_eq!(shares_of(&mut world, job(request)), [share("a2", "0-1", 2), share("b1", "1", 1)]);
}

#[test]
fn sockets_and_cores_inside_nodes() {
    let mut world = World::new(vec![NodeSpec { sockets: 2, ..node("n1", 8, 8) }, node("n2", 8, 8)]);
    started(&mut world, tasks(1));
    let request = Request { path: path([(Level::Node, 1), (Level::Socket, 1)]), ..Request::default() };
    assert_eq!(shares_of(&mut world, job(request)), [share("n1", "4-7", 1)]);
    let request = Request { path: path([(Level::Node, 2), (Level::Core, 3)]), ..Request::default() };
    assert_eq!(shares_of(&mut world, job(request)), [share("n1", "1-3", 1), share("n2", "0-2", 1)]);
    let request = Request { path: path([(Level::Core, 5)]), tasks: Some(5), ..Request::default() };
    assert_eq!(shares_of(&mut world, job(request)), [share("n2", "3-7", 5)]);
}

#[test]
fn cores_from_a_range_take_what_is_free() {
    let mut world = World::new(nodes(2, 4));
    started(&mut world, tasks(2));
    let request = Request { path: counts([(Level::Core, Count::Range { min: 3, max: 10 })]), ..Request::default() };
    assert_eq!(shares_of(&mut world, job(request)), [share("n1", "2-3", 1), share("n2", "0-3", 1)]);
}

#[test]
fn the_alternative_that_ends_first_is_taken_of_those_that_fit() {
    let mut world = World::new(nodes(2, 4));
    let alternative = |cores, walltime_seconds| Alternative {
        requests: vec![Request { cpus_per_task: cores, ..Request::default() }],
        walltime_seconds: Some(walltime_seconds),
        ..Alternative::default()
    };
    let moldable = || job_of(component(vec![alternative(1, 1900), alternative(4, 1000), alternative(2, 1500)]));
    started(&mut world, tasks(2));
    // Four cores are free on one node, two on the other, and one more job finds only one core. No job would end sooner
    // by waiting for more.
    let taken: Vec<u32> = [0, 0, 1]
        .map(|fill| {
            if fill > 0 {
                world.end(JobId::job(1));
                started(&mut world, tasks(1));
            }
            let job = started(&mut world, moldable());
            world.placement(job)[0].alternative
        })
        .to_vec();
    assert_eq!(taken, [1, 2, 0]);
}

#[test]
fn licences_are_counted() {
    let mut config = ClusterConfig { nodes: nodes(1, 8), ..ClusterConfig::default() };
    config.queues = vec![QueueSpec { name: "default".into(), ..QueueSpec::default() }];
    config.licences.insert("solver".into(), 3);
    let mut world = World::configured(config);
    let alternative = Alternative {
        requests: vec![Request::default()],
        licences: [("solver".to_owned(), 2)].into(),
        ..Alternative::default()
    };
    let spec = || job_of(component(vec![alternative.clone()]));
    let first = started(&mut world, spec());
    let second = world.submit(spec());
    assert_eq!(world.settle(), []);
    assert_eq!(world.reason(second), resources("licences"));
    world.end(first);
    assert_eq!(world.settle(), [second]);
}

#[test]
fn components_start_together_on_different_nodes_or_not_at_all() {
    let mut world = World::new(nodes(2, 4));
    let filler = started(&mut world, job(Request { nodes: vec!["n2".into()], tasks: Some(3), ..Request::default() }));
    let part = |tasks| {
        let request = Request { tasks: Some(tasks), ..Request::default() };
        component(vec![Alternative { requests: vec![request], ..Alternative::default() }])
    };
    let both = JobSpec { components: vec![part(2), part(2)], working_directory: "/".into(), ..JobSpec::default() };
    let job = world.submit(both);
    assert_eq!(world.settle(), []);
    assert_eq!(world.reason(job), resources("cores"));
    world.end(filler);
    assert_eq!(world.settle(), [job]);
    let nodes: Vec<_> = world.placement(job).iter().map(|component| component.shares[0].node).collect();
    assert_ne!(nodes[0], nodes[1]);
}

#[test]
fn several_requests_of_a_component_are_met_together() {
    let mut world = World::new(vec![gpu_node("g", &["a"]), node("n", 2, 8)]);
    let gpus = Some(Gpus { count: 1, per: Per::Node, model: None });
    let requests = vec![Request { gpus, ..Request::default() }, Request { tasks: Some(9), ..Request::default() }];
    let spec = job_of(component(vec![Alternative { requests, ..Alternative::default() }]));
    assert_eq!(shares_of(&mut world, spec), [share("g", "0-7", 8), share("n", "0-1", 2)]);
}

/// The missing resources of a job concern the alternatives that no limit excludes.
#[test]
fn a_way_that_a_limit_shuts_is_not_what_a_job_waits_for() {
    let with_gpus = NodeSpec { gpus: vec!["new".into(); 2], ..node("n3", 1, 2) };
    let mut world = World::new(vec![node("n1", 1, 4), node("n2", 1, 4), with_gpus]);
    let none = Limit { per: LimitPer::All, max_gpus: Some(0), ..Limit::default() };
    let backfill = Backfill { mode: BackfillMode::None, ..Backfill::default() };
    world.set_policy(Policy { limits: vec![none], backfill, ..Policy::default() });
    started(&mut world, tasks(1));
    let of = |request| Alternative { requests: vec![request], ..Alternative::default() };
    let gpus = Some(Gpus { count: 1, per: Per::Node, model: None });
    let large = Request { memory: Some(Memory { bytes: 3 * GIB, per: Per::Node }), ..Request::default() };
    started(&mut world, job(large.clone()));
    let ways = vec![of(Request { gpus, ..Request::default() }), of(large)];
    assert_eq!(waits(&mut world, job_of(component(ways))), resources("cores"));
}

/// SL-C-13: among the possible times of a job with a deadline, the first that is over by then.
#[test]
fn a_job_with_a_deadline_gets_as_long_as_is_left() {
    let hour = 3_600;
    let ways = |component: Component| Component {
        alternatives: [hour, hour / 2, 60]
            .map(|seconds| Alternative { walltime_seconds: Some(seconds), ..component.alternatives[0].clone() })
            .to_vec(),
        ..component
    };
    let mut world = World::new(nodes(2, 1));
    let with_deadline = |deadline: Timestamp, components: usize| {
        let mut spec = tasks(1);
        let component = Component { deadline: Some(deadline), ..ways(spec.components[0].clone()) };
        spec.components = vec![component; components];
        spec
    };
    // Each command takes a second there.
    let now = world.state().time().plus_seconds(1);
    let chosen = |world: &World, job| -> Vec<u32> { world.placement(job).iter().map(|one| one.alternative).collect() };
    let two = started(&mut world, with_deadline(now.plus_seconds(hour as i64), 2));
    assert_eq!(chosen(&world, two), [0, 0]);
    world.end(two);
    for (left, way) in [(hour, 0), (hour - 1, 1), (60, 2)] {
        // Each command takes a second there.
        let now = world.state().time().plus_seconds(1);
        let job = started(&mut world, with_deadline(now.plus_seconds(left as i64), 1));
        assert_eq!(chosen(&world, job), [way], "{left} s are left");
        world.end(job);
    }
}

/// SL-C-12, SL-E-09: requests with separate nodes get as many nodes as they ask for together, listed in the order of
/// the nodes; a node that only one of them can use is left to that one.
#[test]
fn scattered_requests_have_nodes_of_their_own() {
    let with = |spec: NodeSpec, name: &str| with_property(spec, name, "yes");
    let of = |count: u32, filter: Option<&str>| Request {
        path: path([(Level::Node, count)]),
        filter: filter.map(|name| NodeFilter::Has(name.into())),
        ..Request::default()
    };
    let spec = |requests: &[Request]| {
        let alternative = Alternative { requests: requests.to_vec(), scatter: true, ..Alternative::default() };
        job_of(component(vec![alternative]))
    };
    let cluster = || {
        vec![
            node("n1", 4, 8),
            with(with(node("n2", 4, 8), "knl"), "gamma"),
            with(node("n3", 4, 8), "knl"),
            with(node("n4", 4, 8), "gamma"),
        ]
    };
    let mut world = World::new(cluster());
    let names = |shares: Vec<(String, String, u32)>| shares.into_iter().map(|share| share.0).collect::<Vec<_>>();
    let all = shares_of(&mut world, spec(&[of(2, Some("gamma")), of(2, None)]));
    assert_eq!(names(all), ["n1", "n2", "n3", "n4"]);
    let mut world = World::new(cluster());
    let dealt = shares_of(&mut world, spec(&[of(1, Some("gamma")), of(2, Some("knl"))]));
    assert_eq!(names(dealt), ["n2", "n3", "n4"]);
    let mut world = World::new(cluster());
    let refused = world.try_submit("ada", spec(&[of(2, Some("gamma")), of(3, None)]));
    let told = format!("{refused:?}");
    assert!(told.contains("it asks for 5 nodes, 4 match in queue `default`"), "{told}");
}

/// Nodes with these weights; 1 is the usual one.
fn weighted(weights: &[i64]) -> Vec<NodeSpec> {
    let mut nodes = nodes(u32::try_from(weights.len()).expect("few nodes"), 4);
    for (node, weight) in nodes.iter_mut().zip(weights).filter(|(_, weight)| **weight != 1) {
        node.properties.insert("weight".into(), PropertyValue::Number(*weight));
    }
    nodes
}

#[test]
fn nodes_of_less_weight_are_taken_first() {
    let mut world = World::new(weighted(&[5, 1, 3, 0]));
    assert_eq!(shares_of(&mut world, tasks(3)), [share("n4", "0-2", 3)]);
    assert_eq!(
        shares_of(&mut world, tasks(2)),
        [share("n2", "0", 1), share("n4", "3", 1)],
        "in order of their numbers"
    );
    let two = Request { path: path([(Level::Node, 2)]), tasks: Some(5), ..Request::default() };
    assert_eq!(shares_of(&mut world, job(two)), [share("n2", "1-3", 3), share("n3", "0-1", 2)]);
    let exclusive = Request { path: path([(Level::Node, 1)]), sharing: Sharing::Exclusive, ..Request::default() };
    assert_eq!(shares_of(&mut world, job(exclusive))[0].0, "n1", "it is the only one that is free");
}

/// Weights decide between nodes that will do, no more: a job that only heavy nodes can serve gets them.
#[test]
fn heavy_nodes_serve_what_others_cannot() {
    let mut specs = weighted(&[9, 1, 1]);
    specs[0].cores = 8;
    let mut world = World::new(specs);
    let wide = Request { path: path([(Level::Node, 1)]), tasks: Some(6), ..Request::default() };
    assert_eq!(shares_of(&mut world, job(wide)), [share("n1", "0-5", 6)]);
    let all = Request { path: path([(Level::Node, 3)]), tasks: Some(3), ..Request::default() };
    let found = shares_of(&mut world, job(all));
    assert_eq!(found, [share("n1", "6", 1), share("n2", "0", 1), share("n3", "0", 1)]);
}

/// A weight that is changed while nodes serve jobs counts for the next start.
#[test]
fn weights_can_be_changed() {
    let mut world = World::new(weighted(&[1, 1]));
    assert_eq!(shares_of(&mut world, tasks(1)), [share("n1", "0", 1)]);
    let queues = vec![QueueSpec { name: "default".into(), ..QueueSpec::default() }];
    world.configure(ClusterConfig { nodes: weighted(&[7, 1]), queues: queues.clone(), ..ClusterConfig::default() });
    assert_eq!(shares_of(&mut world, tasks(1)), [share("n2", "0", 1)]);
    world.configure(ClusterConfig { nodes: weighted(&[7, 7]), queues, ..ClusterConfig::default() });
    assert_eq!(shares_of(&mut world, tasks(1)), [share("n1", "1", 1)]);
}

/// With backfill, promises and starts are for nodes of less weight, and the components of a job too.
#[test]
fn components_take_nodes_of_less_weight() {
    let mut world = World::new(weighted(&[8, 1, 1, 2]));
    let one = |tasks| {
        component(vec![Alternative {
            requests: vec![Request { path: path([(Level::Node, 1)]), tasks: Some(tasks), ..Request::default() }],
            ..Alternative::default()
        }])
    };
    let job = started(&mut world, JobSpec { components: vec![one(2), one(4), one(1)], ..job_of(one(1)) });
    let mut taken: Vec<_> = world.placement(job).iter().map(|placed| placed.shares[0].node).collect();
    taken.sort_unstable();
    let names: Vec<_> = taken.into_iter().map(|node| world.state().node_name(node).into_owned()).collect();
    assert_eq!(names, ["n2", "n3", "n4"]);
}

/// OAR-R-12: jobs get nodes in the order that the site says: by properties, up or down, by name, and those that are awake
/// first; nodes without a property come last. The order follows the nodes and the settings.
#[test]
fn nodes_are_taken_in_the_order_of_the_site() {
    let with = |name: &str, rank: Option<i64>, rack: &str| {
        let mut node = with_property(node(name, 4, 8), "rack", rack);
        node.properties.extend(rank.map(|rank| ("rank".to_owned(), PropertyValue::Number(rank))));
        node
    };
    let nodes =
        || vec![with("d", Some(2), "r2"), with("c", None, "r1"), with("b", Some(1), "r1"), with("a", Some(2), "r3")];
    let configured = |order: &[&str], nodes: Vec<NodeSpec>| ClusterConfig {
        settings: ClusterSettings {
            node_order: order.iter().map(|key| (*key).to_owned()).collect(),
            ..ClusterSettings::default()
        },
        nodes,
        queues: vec![QueueSpec { name: "default".into(), ..QueueSpec::default() }],
        ..ClusterConfig::default()
    };
    let taken = |world: &mut World| {
        let names = (0..4).map(|_| {
            let job = world.submit(tasks(4));
            assert_eq!(world.settle(), [job]);
            job
        });
        let jobs: Vec<JobId> = names.collect();
        let names: Vec<String> = jobs.iter().map(|job| world.shares(*job)[0].0.clone()).collect();
        jobs.into_iter().for_each(|job| world.end(job));
        names.concat()
    };
    for (order, expected) in [
        (&[][..], "dcba"),
        (&["name"], "abcd"),
        (&["-name"], "dcba"),
        (&["rank", "name"], "badc"),
        (&["-rank", "-name"], "dabc"),
        (&["rank"], "bdac"),
        (&["awake", "rack"], "cbda"),
    ] {
        let mut world = World::configured(configured(order, nodes()));
        assert_eq!(taken(&mut world), expected, "{order:?}");
    }
    let mut world = World::configured(configured(&["rank", "name"], nodes()));
    let mut changed = nodes();
    changed[1] = with("c", Some(0), "r1");
    world.configure(configured(&["rank", "name"], changed.clone()));
    assert_eq!(taken(&mut world), "cbad", "a node has changed");
    world.configure(configured(&["name"], changed));
    assert_eq!(taken(&mut world), "abcd", "the order has changed");
}

/// OAR-R-12: a group of nodes ranks by its best node.
#[test]
fn a_group_ranks_by_its_best_node() {
    let ranked = |name: &str, rank: i64, rack: &str| {
        let mut node = with_property(node(name, 4, 8), "rack", rack);
        node.properties.insert("rank".to_owned(), PropertyValue::Number(rank));
        node
    };
    let nodes = vec![ranked("a", 3, "r1"), ranked("b", 2, "r1"), ranked("c", 9, "r2"), ranked("d", 1, "r2")];
    let mut world = World::configured(ClusterConfig {
        settings: ClusterSettings { node_order: vec!["rank".into()], ..ClusterSettings::default() },
        nodes,
        queues: vec![QueueSpec { name: "default".into(), ..QueueSpec::default() }],
        ..ClusterConfig::default()
    });
    let path = vec![
        LevelCount { level: Level::Group("rack".into()), count: Count::exactly(1) },
        LevelCount { level: Level::Node, count: Count::exactly(2) },
    ];
    let job = world.submit(job(Request { path, ..Request::default() }));
    assert_eq!(world.settle(), [job]);
    let names: Vec<String> = world.shares(job).into_iter().map(|(node, ..)| node).collect();
    assert_eq!(names, ["c", "d"]);
}
