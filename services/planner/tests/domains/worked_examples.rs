//! The worked example of containers (W1), and what else can be told by single cases.

use crate::world::{World, component, job_of, nodes, owner};
use muster_planner::{
    explain,
    predict::{Effort, predict},
    timetable::{Part, timetable},
};
use muster_schemas::{
    JobId, Timestamp,
    cluster::{ClusterConfig, ClusterSettings, QueueSpec},
    command::{Command, JobSelection},
    event::Actor,
    job::{JobSpec, JobType, Outcome, WaitReason},
    policy::{Backfill, BackfillMode, Policy},
    resources::{Alternative, Count, Level, LevelCount, Request, Sharing},
};

/// Whole nodes for a time.
fn whole(nodes: u32, seconds: u64) -> JobSpec {
    let request = Request {
        path: vec![LevelCount { level: Level::Node, count: Count::exactly(nodes) }],
        sharing: Sharing::WholeNodes,
        ..Request::default()
    };
    let alternative =
        Alternative { requests: vec![request], walltime_seconds: Some(seconds), ..Alternative::default() };
    job_of(component(vec![alternative]))
}

/// Tasks of one core each for a time.
fn cores(tasks: u32, seconds: u64) -> JobSpec {
    let request = Request { tasks: Some(tasks), ..Request::default() };
    let alternative =
        Alternative { requests: vec![request], walltime_seconds: Some(seconds), ..Alternative::default() };
    job_of(component(vec![alternative]))
}

fn opening(spec: JobSpec) -> JobSpec {
    JobSpec { types: vec![JobType::Container], ..spec }
}

fn inside(container: JobId, spec: JobSpec) -> JobSpec {
    JobSpec { types: vec![JobType::Inner(container)], ..spec }
}

/// A container that runs.
fn container(world: &mut World, spec: JobSpec) -> JobId {
    let id = world.submit(opening(spec));
    assert_eq!(world.settle(), [id]);
    world.report_start(id);
    world.settle();
    id
}

fn conservative() -> Policy {
    Policy { backfill: Backfill { mode: BackfillMode::Conservative, ..Backfill::default() }, ..Policy::default() }
}

fn easy() -> Policy {
    Policy::built_in("easy").expect("it is built in")
}

fn names(world: &World, job: JobId) -> Vec<String> {
    world.shares(job).into_iter().map(|(node, ..)| node).collect()
}

fn node_names(numbers: std::ops::RangeInclusive<u32>) -> Vec<String> {
    numbers.map(|number| format!("n{number}")).collect()
}

/// Seconds from now to the predicted start of a job.
fn predicted(world: &World, job: JobId) -> Option<i64> {
    let now = world.state().time();
    let starts = predict(world.engine(), Vec::new(), now, Effort::default());
    let start = starts.into_iter().find(|one| one.job == job)?.start?;
    Some(start.micros_since(now) / 1_000_000)
}

/// OAR-T-10, OAR-T-11, OAR-T-12, OAR-G-10, W1 with G=0: the container on ten of twelve nodes, and the jobs inside.
#[test]
fn the_worked_example_of_containers() {
    for policy in [easy(), conservative(), Policy::default()] {
        let mut world = World::new(nodes(12, 1));
        world.set_policy(policy);
        let container = container(&mut world, whole(10, 7800));
        assert_eq!(names(&world, container), node_names(1..=10));
        let jobs = [7, 1, 10, 11].map(|nodes| world.submit(inside(container, whole(nodes, 2400))));
        let [first, second, third, fourth] = jobs;
        assert_eq!(world.settle(), [first, second]);
        assert_eq!(names(&world, first), node_names(1..=7));
        assert_eq!(names(&world, second), ["n8"]);
        let after = predicted(&world, third).expect("it starts");
        assert!((2380..=2400).contains(&after), "{after}");
        assert_eq!(predicted(&world, fourth), None);
        let held = WaitReason::NeverFits("planning domain 1 holds 10 nodes, 11 asked".into());
        assert_eq!(world.reason(fourth), Some(held));
        assert_ne!(world.reason(third), world.reason(fourth));
        let [others, more] = [whole(2, 60), whole(1, 60)].map(|spec| world.submit(spec));
        assert_eq!(world.settle(), [others], "nodes 11 and 12 are open to others, and only they");
        assert_eq!(names(&world, others), node_names(11..=12));
        assert!(!matches!(world.reason(more), Some(WaitReason::NeverFits(_))));
        world.end(first);
        world.end(second);
        assert_eq!(world.settle(), [third]);
        assert_eq!(names(&world, third), node_names(1..=10));
    }
}

/// OAR-T-13: inside a container that is a reservation and has begun, a job can have a fixed start: others inside keep clear of
/// it, and it is refused if the container ends too early.
#[test]
fn a_reservation_inside_a_reservation_keeps_its_start() {
    let mut world = World::new(nodes(4, 1));
    world.set_policy(easy());
    let begins = world.state().time().plus_seconds(100);
    let fixed = |start: Timestamp, spec: JobSpec| {
        let mut spec = spec;
        spec.types.push(JobType::FixedStart);
        spec.components[0].begin = Some(start);
        spec
    };
    let container = world.submit(fixed(begins, opening(whole(3, 1000))));
    assert!(world.settle().is_empty());
    let too_soon = world.submit(fixed(begins.plus_seconds(10), inside(container, whole(1, 10))));
    let told = world.plan().plan.reasons;
    let why = told.into_iter().find(|one| one.job == too_soon).map(|one| one.reason);
    let Some(WaitReason::NeverFits(why)) = why else { panic!("{why:?}") };
    assert!(why.starts_with("planning domain 1 holds nothing yet"), "{why}");
    assert!(world.settle().is_empty());
    world.pass(100, container);
    assert_eq!(world.settle(), [container]);
    world.report_start(container);
    let start = world.state().time().plus_seconds(300);
    let reserved = world.submit(fixed(start, inside(container, whole(3, 200))));
    let too_late = world.submit(fixed(start.plus_seconds(300), inside(container, whole(1, 2000))));
    assert!(world.settle().is_empty());
    let slot = world.state().job(reserved).and_then(|job| job.slot.as_ref());
    assert_eq!(slot.map(|slot| slot.start), Some(start));
    assert_eq!(world.reason(too_late), None, "it is refused: its container ends before it");
    let [long, short] = [400, 200].map(|seconds| world.submit(inside(container, whole(1, seconds))));
    assert_eq!(world.settle(), [short], "the other would delay the reservation");
    world.end(short);
    world.pass(300, container);
    assert_eq!(world.settle(), [reserved]);
    world.end(reserved);
    assert_eq!(world.settle(), [long]);
}

/// OAR-T-16, OAR-G-05: what a job inside has stays its own when its container is over: nobody else is planned there.
#[test]
fn cores_of_a_job_inside_are_not_given_away_when_its_container_ends() {
    let mut world = World::new(nodes(1, 4));
    let container = container(&mut world, cores(2, 1_000));
    let inner = world.submit(inside(container, cores(1, 500)));
    assert_eq!(world.settle(), [inner]);
    world.report_start(inner);
    world.end(container);
    world.settle();
    let next = world.submit(cores(3, 100));
    assert_eq!(world.settle(), [next], "the ledger takes the start");
    assert_eq!(world.shares(next)[0].1, "1-3");
}

/// OAR-T-11, W1 with G=60: plans keep resources free for a while after each job inside, which may end with its container.
#[test]
fn a_guard_time_between_the_jobs_inside_a_container() {
    for policy in [easy(), conservative()] {
        let guarded = || {
            let mut world = World::configured(ClusterConfig {
                settings: ClusterSettings { guard_seconds: Some(60), ..ClusterSettings::default() },
                nodes: nodes(12, 1),
                queues: vec![QueueSpec { name: "default".into(), ..QueueSpec::default() }],
                ..ClusterConfig::default()
            });
            world.set_policy(policy.clone());
            world
        };
        let mut world = guarded();
        let first = container(&mut world, whole(10, 7800));
        let jobs = [7, 1, 10].map(|nodes| world.submit(inside(first, whole(nodes, 2400))));
        assert_eq!(world.settle(), jobs[..2]);
        let after = predicted(&world, jobs[2]).expect("it starts");
        assert!((2440..=2460).contains(&after), "{after}");
        let mut world = guarded();
        let container = container(&mut world, whole(10, 7800));
        let begun = world.state().run(world.state().job(container).unwrap().run().unwrap()).unwrap().started.unwrap();
        let left = 7800 - world.state().time().micros_since(begun) / 1_000_000;
        let whole_rest = world.submit(inside(container, whole(10, u64::try_from(left).unwrap() - 2)));
        assert_eq!(world.settle(), [whole_rest], "all the time that is left");
    }
}

/// OAR-T-11, OAR-T-12, OAR-T-15, OAR-T-18, W1 with the default walltime: what does not fit before the end of the
/// container waits with a reason of its own, and fails with it.
#[test]
fn what_has_no_room_before_the_container_ends() {
    for policy in [easy(), conservative(), Policy::default()] {
        let mut world = World::new(nodes(12, 1));
        world.set_policy(policy);
        let container = container(&mut world, whole(10, 7800));
        let jobs = [7, 1, 10].map(|nodes| world.submit(inside(container, whole(nodes, 7200))));
        assert_eq!(world.settle(), jobs[..2]);
        let late = jobs[2];
        assert_eq!(predicted(&world, late), None);
        assert_eq!(world.reason(late), Some(WaitReason::Resources("room before planning domain 1 ends".into())));
        // They end after some 550 seconds: then there is room for just that long.
        world.pass(540, late);
        world.end(jobs[0]);
        world.end(jobs[1]);
        let left = 7800 - world.state().time().micros_since(started(&world, container)) / 1_000_000;
        assert!(left >= 7201, "{left}");
        let fits = world.submit(inside(container, whole(10, left as u64 - 3)));
        world.command(&owner("ada"), Command::Cancel { jobs: JobSelection::Ids(vec![fits]) }).expect("it waits");
        world.pass(left - 7200, late);
        assert_eq!(world.settle(), []);
        world.end(container);
        world.tick();
        let outcome = world.state().job(late).and_then(|job| job.finished()).map(|end| end.outcome.clone());
        assert!(matches!(&outcome, Some(Outcome::LaunchFailed(why)) if why.contains("planning domain 1 is over")));
    }
}

fn started(world: &World, job: JobId) -> Timestamp {
    let run = world.state().job(job).and_then(|job| job.run()).and_then(|run| world.state().run(run));
    run.and_then(|run| run.started).expect("it runs")
}

/// OAR-T-11: a job inside may use the whole remaining time, to the second.
#[test]
fn a_job_inside_may_use_all_the_time_that_is_left() {
    let mut world = World::new(nodes(2, 2));
    let container = container(&mut world, whole(1, 1000));
    let end = started(&world, container).plus_seconds(1000);
    // Its submission takes a second.
    let left = end.micros_since(world.state().time()) / 1_000_000 - 1;
    let exact = world.submit(inside(container, cores(1, left as u64)));
    let plan = world.plan().plan;
    assert_eq!(plan.starts.iter().map(|start| start.job).collect::<Vec<_>>(), [exact]);
    let longer = world.submit(inside(container, cores(1, left as u64)));
    let plan = world.plan().plan;
    assert!(plan.starts.is_empty(), "a second later neither of them fits any more");
    assert_ne!(exact, longer);
}

/// OAR-T-14: what is submitted before its container runs is predicted to start with it, and does not start earlier.
#[test]
fn jobs_inside_start_with_the_container() {
    let mut world = World::new(nodes(2, 1));
    let before = world.submit(whole(2, 300));
    assert_eq!(world.settle(), [before]);
    let container = world.submit(opening(whole(2, 1000)));
    let first = world.submit(inside(container, whole(1, 600)));
    let second = world.submit(inside(container, whole(2, 300)));
    world.settle();
    assert_eq!(world.reason(first), Some(WaitReason::DomainNotOpen("2".into())));
    let opens = predicted(&world, container).expect("it starts");
    assert_eq!(predicted(&world, first), Some(opens));
    assert_eq!(predicted(&world, second), Some(opens + 600));
    world.end(before);
    assert_eq!(world.settle(), [container]);
    assert_eq!(world.reason(first), Some(WaitReason::DomainNotOpen("2".into())), "it does not run yet");
    world.report_start(container);
    assert_eq!(world.settle(), [first]);
}

/// A job that waits inside holds up nobody outside, and the other way round.
#[test]
fn jobs_inside_and_outside_do_not_wait_for_each_other() {
    for policy in [easy(), conservative(), Policy::default()] {
        let mut world = World::new(nodes(4, 1));
        world.set_policy(policy);
        let container = container(&mut world, whole(2, 1000));
        let blocked = world.submit(inside(container, whole(2, 600)));
        assert_eq!(world.settle(), [blocked]);
        let waits_inside = world.submit(inside(container, whole(2, 300)));
        let outside = world.submit(whole(1, 100));
        assert_eq!(world.settle(), [outside], "{:?}", world.reason(waits_inside));
        let waits_outside = world.submit(whole(4, 100));
        world.end(blocked);
        let small = world.submit(inside(container, whole(2, 10)));
        assert_eq!(world.settle(), [waits_inside], "{:?} {:?}", world.reason(waits_outside), world.reason(small));
    }
}

/// Inside a domain the first job that waits is delayed by no later one.
#[test]
fn later_jobs_inside_delay_no_earlier_ones() {
    let mut world = World::new(nodes(4, 1));
    world.set_policy(easy());
    let container = container(&mut world, whole(3, 5000));
    // A job outside has the only promise of the policy.
    let outside = world.submit(whole(2, 100));
    let first = world.submit(inside(container, whole(2, 500)));
    assert_eq!(world.settle(), [first]);
    let large = world.submit(inside(container, whole(3, 500)));
    let long = world.submit(inside(container, whole(1, 3000)));
    let short = world.submit(inside(container, whole(1, 300)));
    assert_eq!(world.settle(), [short]);
    world.end(first);
    world.end(short);
    assert_eq!(world.settle(), [large]);
    assert!(world.reason(long).is_some() && world.reason(outside).is_some());
}

/// OAR-T-17: a container inside a container; the plan nests, also after the outer one has gone.
#[test]
fn containers_nest() {
    let mut world = World::new(nodes(4, 2));
    let outer = container(&mut world, whole(3, 5000));
    let types = vec![JobType::Container, JobType::Inner(outer)];
    let middle = world.submit(JobSpec { types, ..whole(2, 3000) });
    assert_eq!(world.settle(), [middle]);
    world.report_start(middle);
    let [inner, beside, too_large] =
        [inside(middle, whole(2, 1000)), inside(outer, whole(1, 1000)), inside(middle, whole(3, 1000))]
            .map(|spec| world.submit(spec));
    assert_eq!(world.settle(), [beside, inner], "domains go by their names");
    assert_eq!(names(&world, inner), node_names(1..=2));
    assert_eq!(names(&world, beside), ["n3"]);
    assert!(matches!(world.reason(too_large), Some(WaitReason::NeverFits(_))));
    world.end(outer);
    let outside = world.submit(whole(2, 100));
    assert_eq!(world.settle(), []);
    world.end(beside);
    assert_eq!(world.settle(), [outside]);
    assert_eq!(names(&world, outside), node_names(3..=4));
    world.end(inner);
    let again = world.submit(inside(middle, cores(3, 100)));
    assert_eq!(world.settle(), [again]);
    assert_eq!(names(&world, again), node_names(1..=2));
}

/// OAR-T-17: jobs of one name make up one domain, of which each node is there once.
#[test]
fn a_domain_has_what_all_jobs_of_its_name_hold() {
    let mut world = World::new(nodes(3, 2));
    let named = |spec| JobSpec { types: vec![JobType::OpensDomain("course".into())], ..spec };
    let within = |spec| JobSpec { types: vec![JobType::InDomain("course".into())], ..spec };
    let first = world.submit(named(whole(1, 1000)));
    let second = world.submit(named(whole(1, 3000)));
    assert_eq!(world.settle(), [first, second]);
    world.report_start(first);
    world.report_start(second);
    let both = world.submit(within(whole(2, 500)));
    assert_eq!(world.settle(), [both]);
    world.end(both);
    let long = world.submit(within(whole(1, 2000)));
    assert_eq!(world.settle(), [long], "one of them lasts long enough");
    assert_eq!(names(&world, long), ["n2"]);
    let longer = world.submit(within(whole(2, 2000)));
    assert_eq!(world.settle(), []);
    assert_eq!(world.reason(longer), Some(WaitReason::Resources("room before planning domain course ends".into())));
}

/// OAR-T-10: parts of nodes can be held too; a whole node is none of those.
#[test]
fn parts_of_nodes_are_held_too() {
    let mut world = World::new(nodes(2, 4));
    let container = container(&mut world, cores(6, 1000));
    let outside = world.submit(cores(2, 100));
    assert_eq!(world.settle(), [outside]);
    assert_eq!(world.shares(outside), [("n2".to_owned(), "2-3".to_owned(), 2)]);
    let [inner, alone, wide] =
        [cores(5, 100), whole(2, 100), cores(7, 100)].map(|spec| world.submit(inside(container, spec)));
    assert_eq!(world.settle(), [inner]);
    assert_eq!(world.shares(inner)[1], ("n2".to_owned(), "0".to_owned(), 1));
    let reason = |job| world.reason(job);
    assert_eq!(reason(alone), Some(WaitReason::NeverFits("what planning domain 1 holds cannot serve it".into())));
    assert_eq!(reason(wide), Some(WaitReason::NeverFits("planning domain 1 holds 6 cores, 7 asked".into())));
}

/// Nodes that are drained serve no new job inside; suspended containers neither.
#[test]
fn drained_nodes_and_suspended_containers_serve_nobody() {
    let mut world = World::new(nodes(2, 2));
    let container = container(&mut world, whole(2, 1000));
    world.drain(&["n1"]);
    let first = world.submit(inside(container, cores(1, 100)));
    assert_eq!(world.settle(), [first]);
    assert_eq!(names(&world, first), ["n2"]);
    let jobs = JobSelection::Ids(vec![container]);
    world.command(&Actor::Ledger, Command::Suspend { jobs: jobs.clone() }).expect("it runs");
    let second = world.submit(inside(container, cores(1, 100)));
    assert_eq!(world.settle(), []);
    assert_eq!(world.reason(second), Some(WaitReason::DomainNotOpen("1".into())));
    world.command(&Actor::Ledger, Command::Resume { jobs }).expect("it is suspended");
    assert_eq!(world.settle(), [second]);
}

/// Promises inside are told, kept and shown by the names of real nodes.
#[test]
fn promises_inside_are_of_real_nodes() {
    let mut world = World::new(nodes(3, 1));
    world.set_policy(conservative());
    let container = container(&mut world, whole(2, 1000));
    let first = world.submit(inside(container, whole(1, 300)));
    let second = world.submit(inside(container, whole(2, 300)));
    assert_eq!(world.settle(), [first]);
    let slot = world.state().job(second).and_then(|job| job.slot.clone()).expect("it has a promise");
    let promised: Vec<String> =
        slot.placement.shares().map(|share| world.state().node_name(share.node).into_owned()).collect();
    assert_eq!(promised, ["n1", "n2"]);
    let (engine, state, now) = (world.engine(), world.state(), world.state().time());
    let table = timetable(engine, state, now, &Part::default());
    let wait = table.waiting.iter().find(|wait| wait.job == second).expect("it waits");
    assert_eq!(wait.nodes.iter().map(|node| node.node.as_str()).collect::<Vec<_>>(), ["n1", "n2"]);
    let told = explain::explain(engine, state, state.job(second).expect("it is known"), now).expect("it waits");
    assert!(format!("{told:?}").contains("n2"), "{told:?}");
    let foreseen = world.foresee(&ada(), inside(container, whole(1, 100))).expect("it could be submitted");
    assert_eq!(foreseen.nodes, ["n2"]);
    // The promise outlives changes of the nodes that it is on.
    world.drain(&["n3"]);
    assert_eq!(world.settle(), []);
    assert_eq!(world.state().job(second).and_then(|job| job.slot.clone()), Some(slot));
}

fn ada() -> muster_schemas::event::Owner {
    let Actor::User(ada) = owner("ada") else { unreachable!("a user") };
    ada
}
