//! Planning by turns in which jobs start in other queues than those in which they wait, in a cluster.

use crate::world::{World, nodes, tasks};
use muster_schemas::{
    JobId, Timestamp,
    cluster::{ClusterConfig, QueueSpec},
    command::Command,
    event::Actor,
    job::{ArraySpec, JobSpec},
    policy::{
        OrderKey, OtherHours, Period, Policy, TurnRules, Turns, Visit,
        routes::{
            EarlyEnd, HourRules, JobStanding, LoadBand, LoadPercent, Machine, Owners, Reservations, Routes, SizePart,
            Source, Target,
        },
    },
    resources::IndexSet,
};

/// Jobs wait in `default`, and start in `small` (two cores, for a minute at most) or in `large` (four cores), on the machine if
/// there is one.
fn cluster(routes: Routes) -> World {
    cluster_in_hours(routes, Vec::new())
}

/// The same, with other hours.
fn cluster_in_hours(routes: Routes, periods: Vec<Period>) -> World {
    let queue = |name: &str| QueueSpec { name: name.into(), ..QueueSpec::default() };
    let queues = ["default", "small", "large"].map(queue).to_vec();
    let mut world = World::configured(ClusterConfig { nodes: nodes(1, 4), queues, ..ClusterConfig::default() });
    set_routes(&mut world, routes, periods);
    world
}

fn set_routes(world: &mut World, routes: Routes, periods: Vec<Period>) {
    let has_machine = !routes.machines.is_empty();
    let target = |queue: &str, units, walltime_seconds| Target {
        queue: queue.into(),
        units: Some(units),
        walltime_seconds,
        machine: has_machine.then(|| "n1".into()),
        ..Target::default()
    };
    let routes = Routes {
        sources: vec![Source { queue: "default".into(), ..Source::default() }],
        targets: vec![target("small", 2, Some(60)), target("large", 4, None)],
        size: vec![SizePart { attribute: "cores".into(), per_unit: 1 }],
        ..routes
    };
    let rules = TurnRules { visit: Visit::Pool, ..TurnRules::default() };
    let order = vec![OrderKey::Spt];
    let other_hours = (!periods.is_empty()).then(|| OtherHours { periods, order: order.clone(), rules: rules.clone() });
    let turns = Turns { rules, other_hours, routes: Some(Box::new(routes)), ..Turns::default() };
    world.set_policy(Policy { name: "routes".into(), order, turns: Some(Box::new(turns)), ..Policy::default() });
}

fn lasting(seconds: u64, mut spec: JobSpec) -> JobSpec {
    spec.components[0].alternatives[0].walltime_seconds = Some(seconds);
    spec
}

fn queue(world: &World, job: JobId) -> String {
    world.state().job(job).expect("known").lead().queue.to_string()
}

/// PBS-P-05: a job starts in the first queue that takes it, and is there from its start on.
#[test]
fn a_start_has_its_queue() {
    let mut world = cluster(Routes::default());
    let short = world.submit(lasting(50, tasks(2)));
    let long = world.submit(lasting(500, tasks(1)));
    let endless = world.submit(tasks(2));
    assert_eq!(world.settle(), [short, long]);
    assert_eq!([short, long].map(|job| queue(&world, job)), ["small", "large"]);
    assert_eq!(queue(&world, endless), "default", "it waits where it was");
    world.end(short);
    assert_eq!(world.settle(), [endless]);
    assert_eq!(queue(&world, endless), "large");
}

/// PBS-P-06: the reason of a job that is special says so.
#[test]
fn special_jobs_are_marked() {
    let mut world = cluster(Routes::default());
    let reason_of_second = |world: &mut World| {
        let [first, second] = [world.submit(tasks(4)), world.submit(tasks(4))];
        assert_eq!(world.settle(), [first]);
        let reason = world.reason(second).expect("it waits").to_string();
        world.end(first);
        assert_eq!(world.settle(), [second]);
        world.end(second);
        reason
    };
    let usual = reason_of_second(&mut world);
    let mut policy = Policy::clone(world.state().policy());
    let routes = policy.turns.as_mut().and_then(|turns| turns.routes.as_mut()).expect("it has routes");
    routes.sources[0].standing = JobStanding::Privileged;
    world.set_policy(policy);
    let special = reason_of_second(&mut world);
    assert_eq!(special, format!("{usual} (a special job)"));
}

/// The tasks of an array go to queues one by one.
#[test]
fn tasks_of_an_array_start_in_queues() {
    let mut world = cluster(Routes::default());
    let spec =
        JobSpec { array: Some(ArraySpec { indices: IndexSet::from_range(1, 3), max_running: None }), ..tasks(1) };
    let array = world.submit(lasting(50, spec));
    let started = world.settle();
    assert_eq!(started.len(), 3, "{started:?}");
    let queues: Vec<String> = started.iter().map(|task| queue(&world, *task)).collect();
    assert_eq!(queues, ["small", "small", "large"]);
    assert!(started.iter().all(|task| task.number == array.number));
}

/// PBS-P-16, PBS-P-17: a promise is kept from cycle to cycle, and nothing that runs past it starts.
#[test]
fn a_promise_is_kept_over_cycles() {
    let mut world = cluster(Routes { reservations: Reservations::Kept, ..Routes::default() });
    let runs = world.submit(lasting(100, tasks(3)));
    assert_eq!(world.settle(), [runs]);
    let wide = world.submit(lasting(200, tasks(4)));
    assert!(world.settle().is_empty());
    let promised = world.state().route_promises().to_vec();
    assert_eq!(
        promised.iter().map(|promise| (promise.job, promise.queue.as_str())).collect::<Vec<_>>(),
        [(wide, "large")]
    );
    let late = world.submit(lasting(150, tasks(1)));
    let early = world.submit(lasting(40, tasks(1)));
    assert_eq!(world.settle(), [early]);
    assert_eq!(world.state().route_promises(), promised);
    world.end(runs);
    world.end(early);
    // Its turn comes after that of shorter jobs, but it is promised the place.
    assert_eq!(world.settle(), [wide]);
    assert!(world.state().route_promises().iter().all(|promise| promise.job != wide));
    world.end(wide);
    assert_eq!(world.settle(), [late]);
}

/// PBS-P-09: a start charges its owner, and that is in the state.
#[test]
fn starts_charge_owners() {
    let owners = Owners {
        short_seconds: 60,
        short_charge: 1,
        charge: 10,
        left_after_day_millionths: Some(750_000),
        ..Owners::default()
    };
    let mut world = cluster(Routes { owners: Some(owners), ..Routes::default() });
    world.submit(lasting(50, tasks(1)));
    world.submit(lasting(500, tasks(1)));
    assert_eq!(world.settle().len(), 2);
    let used: Vec<u64> = world.state().owner_use(world.state().time()).into_values().collect();
    assert_eq!(used, [11]);
}

/// PBS-P-03, PBS-P-21: an order that asks for past usage knows what owners have used since, and owners take no turns where it is only
/// counted.
#[test]
fn an_order_knows_what_owners_have_used() {
    let owners =
        Owners { charge: 10, left_after_day_millionths: Some(100_000), only_counts: true, ..Owners::default() };
    let mut world = cluster(Routes { owners: Some(owners), ..Routes::default() });
    let mut policy = Policy::clone(world.state().policy());
    let text = "if(attribute(\"past_usage\") > 0, attribute(\"past_usage\"), 0)".to_owned();
    policy.order = vec![OrderKey::Formula { text, descending: false }];
    world.set_policy(policy);
    let first = world.submit(lasting(100, tasks(4)));
    assert_eq!(world.settle(), [first]);
    let [again, other] = ["ada", "bob"].map(|user| world.submit_as(user, lasting(100, tasks(4))));
    let long = world.submit_as("ada", lasting(200, tasks(4)));
    world.end(first);
    assert_eq!(world.settle(), [other], "its owner has used nothing");
    world.end(other);
    assert_eq!(world.settle(), [again], "they are even, and it came first");
    world.end(again);
    let more = world.submit_as("bob", lasting(100, tasks(4)));
    assert_eq!(world.settle(), [more], "20 to 10");
    world.pass(3 * 86_400, long);
    world.end(more);
    let last = world.submit_as("bob", lasting(100, tasks(4)));
    assert_eq!(world.settle(), [long], "after some days nothing is left of either");
    assert!(world.state().job(last).is_some());
}

const OTHER: i64 = 10_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp(seconds * 1_000_000)
}

/// Nothing may run on into the other hours, except that this rule ends early for a queue that has been idle for 50 seconds.
fn draining() -> World {
    let early_end = Some(EarlyEnd { within_seconds: 400, idle_seconds: 50 });
    let hours = Some(HourRules { drains: true, early_end, ..HourRules::default() });
    let period = Period { from: at(OTHER), until: at(2 * OTHER) };
    cluster_in_hours(Routes { hours, ..Routes::default() }, vec![period])
}

fn pass_until(world: &mut World, second: i64, job: JobId) {
    let left = second - world.state().time().0 / 1_000_000;
    world.pass(left, job);
}

/// PBS-P-11: the planner is woken when the other hours are near; the rules are lifted for an idle queue, also once jobs run in it,
/// and that is in the state.
#[test]
fn rules_of_hours_end_early_for_an_idle_queue() {
    let mut world = draining();
    let long = world.submit(lasting(2 * OTHER as u64, tasks(2)));
    assert_eq!(world.settle(), []);
    assert_eq!(world.plan().next_wake, Some(at(OTHER - 400)));
    pass_until(&mut world, OTHER - 401, long);
    assert_eq!(world.settle(), []);
    assert!(world.state().lifted_hours().is_empty());
    pass_until(&mut world, OTHER - 400, long);
    assert_eq!(world.settle(), [long]);
    assert_eq!(world.state().lifted_hours().get("large"), Some(&at(OTHER)));
    let next = world.submit(lasting(2 * OTHER as u64, tasks(1)));
    assert_eq!(world.settle(), [next], "the queue is not idle any more, but its rules stay lifted");
}

/// PBS-P-11: a queue is idle from the end of its last run on, and not before the time is over.
#[test]
fn a_queue_is_idle_after_its_last_run() {
    let mut world = draining();
    let run = world.submit(lasting(9000, tasks(1)));
    assert_eq!(world.settle(), [run]);
    pass_until(&mut world, OTHER - 380, run);
    world.end(run);
    let ended = world.state().queues_idle_since()["large"];
    assert!(ended >= at(OTHER - 380) && ended <= at(OTHER - 370), "{ended:?}");
    let long = world.submit(lasting(2 * OTHER as u64, tasks(1)));
    assert_eq!(world.settle(), []);
    let wake = world.plan().next_wake.expect("the queue will have been idle for long enough");
    assert_eq!(wake, ended.plus_seconds(50).plus_micros(1));
    pass_until(&mut world, OTHER - 300, long);
    assert_eq!(world.settle(), [long]);
}

/// PBS-P-18: each run has units of its own by their numbers, the lowest first, and they are free again when it ends.
#[test]
fn runs_have_units_of_their_own() {
    let machines = vec![Machine { name: "n1".into(), units: Some(4), is_numbered: true, ..Machine::default() }];
    let mut world = cluster(Routes { machines, ..Routes::default() });
    let jobs: Vec<JobId> = [1, 2, 1].map(|size| world.submit(lasting(100, tasks(size)))).to_vec();
    assert_eq!(world.settle(), jobs);
    let units = |world: &World, job: JobId| world.state().run_units().get(&job).map(ToString::to_string);
    let all: Vec<Option<String>> = jobs.iter().map(|job| units(&world, *job)).collect();
    assert_eq!(all, ["0", "1-2", "3"].map(|units| Some(units.to_owned())));
    world.end(jobs[0]);
    world.end(jobs[2]);
    assert_eq!([units(&world, jobs[0]), units(&world, jobs[2])], [None, None]);
    let apart = world.submit(lasting(100, tasks(2)));
    assert_eq!(world.settle(), [apart]);
    assert_eq!(units(&world, apart).as_deref(), Some("0,3"), "there is no run of two free units");
}

/// PBS-P-13: nothing starts while the system itself takes too much of a machine's time.
#[test]
fn a_machine_that_is_busy_with_itself_starts_nothing() {
    let band = LoadBand {
        percent: Some(LoadPercent { low: 0, target: 90, high: 100 }),
        high_system_percent: Some(30),
        ..LoadBand::default()
    };
    let machines = vec![Machine { name: "n1".into(), ..Machine::default() }];
    let mut world = cluster(Routes { machines, load: Some(band), ..Routes::default() });
    let measure = |world: &mut World, percent| {
        let command = Command::NodeLoadMeasured { load_millionths: 0, system_percent: Some(percent), used: Vec::new() };
        world.command(&Actor::Executor("n1".into()), command).expect("heard");
    };
    measure(&mut world, 30);
    let job = world.submit(lasting(100, tasks(1)));
    assert_eq!(world.settle(), []);
    measure(&mut world, 29);
    assert_eq!(world.settle(), [job]);
}

/// PBS-P-03, PBS-P-09: a group that crosses its allocation has lost a part of its use for each day before that as others do.
#[test]
fn days_below_an_allocation_count_as_such() {
    let owners = Owners {
        charge: 1_000,
        left_after_day_millionths: Some(500_000),
        over_left_after_day_millionths: Some(900_000),
        ..Owners::default()
    };
    let routes = |over_allocation| Routes {
        owners: Some(owners),
        enforces_allocations: true,
        over_allocation,
        ..Routes::default()
    };
    let mut world = cluster(routes(Vec::new()));
    let job = world.submit(lasting(100, tasks(1)));
    assert_eq!(world.settle(), [job]);
    let used = |world: &World, days: i64| {
        let at = world.state().time().plus_seconds(days * 86_400);
        world.state().owner_use(at).into_values().collect::<Vec<u64>>()
    };
    world.pass(2 * 86_400, job);
    set_routes(&mut world, routes(vec![100]), Vec::new());
    assert_eq!((used(&world, 0), used(&world, 1)), (vec![250], vec![225]));
    // A policy that counts no use takes nothing away, neither before it is in force nor meanwhile.
    world.pass(86_400, job);
    set_routes(&mut world, Routes::default(), Vec::new());
    world.pass(10 * 86_400, job);
    set_routes(&mut world, routes(Vec::new()), Vec::new());
    assert_eq!((used(&world, 0), used(&world, 1)), (vec![225], vec![112]));
}

/// PBS-P-03: a group that has used more than its allocation starts nothing, and more is left of what its users have used.
#[test]
fn a_group_above_its_allocation_starts_nothing() {
    let owners = Owners {
        charge: 10,
        left_after_day_millionths: Some(500_000),
        over_left_after_day_millionths: Some(900_000),
        ..Owners::default()
    };
    let routes = |over_allocation| Routes {
        owners: Some(owners),
        enforces_allocations: true,
        over_allocation,
        ..Routes::default()
    };
    let mut world = cluster(routes(Vec::new()));
    let first = world.submit(lasting(100, tasks(1)));
    assert_eq!(world.settle(), [first]);
    set_routes(&mut world, routes(vec![100]), Vec::new());
    let second = world.submit(lasting(100, tasks(1)));
    assert_eq!(world.settle(), []);
    let tomorrow = world.state().time().plus_seconds(86_400);
    assert_eq!(world.state().owner_use(tomorrow).into_values().collect::<Vec<_>>(), [9]);
    set_routes(&mut world, routes(vec![99]), Vec::new());
    assert_eq!(world.settle(), [second]);
}
