//! Planning by turns in which jobs start in other queues than those in which they wait, in a cluster.

use crate::world::{World, nodes, tasks};
use muster_schemas::{
    JobId,
    cluster::{ClusterConfig, QueueSpec},
    job::{ArraySpec, JobSpec},
    policy::{
        OrderKey, Policy, TurnRules, Turns, Visit,
        routes::{Owners, Reservations, Routes, SizePart, Source, Target},
    },
    resources::IndexSet,
};

/// Jobs wait in `default`, and start in `small` (two cores, for a minute at most) or in `large` (four cores).
fn cluster(routes: Routes) -> World {
    let queue = |name: &str| QueueSpec { name: name.into(), ..QueueSpec::default() };
    let queues = ["default", "small", "large"].map(queue).to_vec();
    let mut world = World::configured(ClusterConfig { nodes: nodes(1, 4), queues, ..ClusterConfig::default() });
    let target = |queue: &str, units, walltime_seconds| Target {
        queue: queue.into(),
        units: Some(units),
        walltime_seconds,
        ..Target::default()
    };
    let routes = Routes {
        sources: vec![Source { queue: "default".into(), ..Source::default() }],
        targets: vec![target("small", 2, Some(60)), target("large", 4, None)],
        size: vec![SizePart { attribute: "cores".into(), per_unit: 1 }],
        ..routes
    };
    let rules = TurnRules { visit: Visit::Pool, ..TurnRules::default() };
    let turns = Turns { rules, routes: Some(Box::new(routes)), ..Turns::default() };
    let order = vec![OrderKey::Spt];
    world.set_policy(Policy { name: "routes".into(), order, turns: Some(Box::new(turns)), ..Policy::default() });
    world
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
    let owners = Owners { short_seconds: 60, short_charge: 1, charge: 10, left_after_day_millionths: Some(750_000) };
    let mut world = cluster(Routes { owners: Some(owners), ..Routes::default() });
    world.submit(lasting(50, tasks(1)));
    world.submit(lasting(500, tasks(1)));
    assert_eq!(world.settle().len(), 2);
    let used: Vec<u64> = world.state().owner_use(world.state().time()).into_values().collect();
    assert_eq!(used, [11]);
}
