//! Predicted starts: the result of a simulation of the waiting jobs.

use muster_planner::{
    Engine,
    model::{ActiveRun, ComponentDemand, Demand, Holder, QueuedJob, QueuedTasks},
    predict::{Effort, Tolerance, predict},
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    policy::{Limit, LimitPer, Policy},
    resources::{Alternative, ComponentPlacement, IndexSet, NodeShare, NodeSpec, Placement, Request},
};
use std::sync::Arc;

const CORES: u32 = 4;

fn at(seconds: i64) -> Timestamp {
    Timestamp(0).plus_seconds(seconds)
}

/// A node with four cores.
fn engine(policy: Policy) -> Engine {
    let mut engine = Engine::new(Arc::new(policy)).expect("a good policy");
    let spec = NodeSpec {
        name: "n1".into(),
        cores: CORES,
        sockets: 1,
        memory_bytes: 1 << 30,
        gpus: Vec::new(),
        properties: Default::default(),
    };
    engine.set_node(NodeId(1), Arc::new(spec), true);
    engine
}

fn demand(cores: u32, walltime_seconds: Option<u64>) -> Arc<Demand> {
    let requests = vec![Request { tasks: Some(cores), ..Request::default() }];
    let alternatives = Arc::new([Alternative { requests, walltime_seconds, ..Alternative::default() }]);
    Arc::new(Demand {
        components: vec![ComponentDemand { queue: "default".into(), reservation: None, deadline: None, alternatives }],
        sharing: None,
        fixed: None,
        guard_seconds: 0,
    })
}

fn holder(user: &str) -> Arc<Holder> {
    Arc::new(Holder { user: user.into(), group: 100, account: None, charges: Vec::new(), marks: None })
}

fn wait(engine: &mut Engine, job: u64, user: &str, cores: u32, walltime_seconds: Option<u64>) {
    engine.enqueue(QueuedJob {
        id: JobId::job(job),
        tasks: None,
        demand: demand(cores, walltime_seconds),
        holder: holder(user),
        priority: 0,
        is_list: false,
        arrival: at(i64::try_from(job).expect("small")),
        attributes: None,
        slot: None,
        activation: None,
    });
}

/// A run on all cores until that time.
fn run(engine: &mut Engine, job: u64, until: Timestamp) {
    let share = NodeShare {
        node: NodeId(1),
        cores: IndexSet::first_n(CORES),
        gpus: IndexSet::new(),
        memory_bytes: 0,
        tasks: CORES,
        exclusive: false,
    };
    let placement = Placement { components: vec![ComponentPlacement { alternative: 0, shares: vec![share] }] };
    engine.begin(ActiveRun {
        job: JobId::job(job),
        demand: demand(CORES, None),
        holder: holder("ada"),
        placement: Arc::new(placement),
        expected_end: until,
        attributes: None,
    });
}

/// The predictions at second 10: job and second.
fn foreseen(engine: &Engine) -> Vec<(u64, Option<i64>)> {
    let predicted = predict(engine, Vec::new(), at(10), Effort::default());
    assert_eq!(predicted, predict(engine, Vec::new(), at(10), Effort::default()), "the same engine and time");
    predicted
        .iter()
        .map(|predicted| (predicted.job.number, predicted.start.map(|start| start.micros_since(at(0)) / 1_000_000)))
        .collect()
}

#[test]
fn jobs_start_when_those_ahead_of_them_are_over() {
    let mut engine = engine(Policy::built_in("easy").expect("there is one"));
    run(&mut engine, 1, at(100));
    wait(&mut engine, 2, "ada", 4, Some(50));
    wait(&mut engine, 3, "ada", 3, Some(20));
    wait(&mut engine, 4, "ada", 1, Some(20));
    assert_eq!(foreseen(&engine), [(2, Some(100)), (3, Some(150)), (4, Some(150))]);
}

#[test]
fn what_time_does_not_bring_about_is_not_foreseen() {
    let limit = Limit { per: LimitPer::User, name: Some("bob".into()), max_running_jobs: Some(0), ..Limit::default() };
    let mut engine = engine(Policy { limits: vec![limit], ..Policy::built_in("easy").expect("there is one") });
    wait(&mut engine, 2, "bob", 1, Some(50));
    wait(&mut engine, 3, "ada", 9, Some(50));
    wait(&mut engine, 4, "ada", 4, None);
    wait(&mut engine, 5, "ada", 1, Some(50));
    assert_eq!(
        foreseen(&engine),
        [(2, None), (3, None), (4, Some(10)), (5, None)],
        "a limit, too large, behind no end"
    );
}

#[test]
fn an_array_is_foreseen_by_its_next_task_and_holds_up_others_with_all() {
    let mut engine = engine(Policy::default());
    run(&mut engine, 1, at(100));
    engine.enqueue(QueuedJob {
        id: JobId::job(2),
        tasks: Some(QueuedTasks { indices: IndexSet::first_n(3), headroom: 1 }),
        demand: demand(4, Some(50)),
        holder: holder("ada"),
        priority: 0,
        is_list: false,
        arrival: at(2),
        attributes: None,
        slot: None,
        activation: None,
    });
    wait(&mut engine, 3, "ada", 4, Some(50));
    let [(2, Some(100)), (3, Some(start))] = foreseen(&engine)[..] else { panic!("{:?}", foreseen(&engine)) };
    assert!(start >= 150, "not before the first task is over: {start}");
}

#[test]
fn a_run_that_is_over_its_walltime_is_expected_to_end_soon() {
    let mut engine = engine(Policy::built_in("easy").expect("there is one"));
    run(&mut engine, 1, at(5));
    wait(&mut engine, 2, "ada", 4, Some(50));
    let [(2, Some(start))] = foreseen(&engine)[..] else { panic!("{:?}", foreseen(&engine)) };
    assert!((10..20).contains(&start), "{start}");
}

#[test]
fn a_simulation_that_is_cut_short_says_nothing_of_what_it_has_not_reached() {
    let mut engine = engine(Policy::built_in("easy").expect("there is one"));
    run(&mut engine, 1, at(100));
    for job in 2..10 {
        wait(&mut engine, job, "ada", 4, Some(50));
    }
    let predicted = predict(&engine, Vec::new(), at(10), Effort { max_cycles: 3 });
    let jobs: Vec<u64> = predicted.iter().map(|predicted| predicted.job.number).collect();
    assert_eq!(jobs, [2, 3]);
}

/// Under `conservative` the prediction is the promise (M-PLAN-23).
#[test]
fn under_conservative_the_promise_is_the_prediction() {
    let mut engine = engine(Policy::built_in("conservative").expect("there is one"));
    run(&mut engine, 1, at(100));
    wait(&mut engine, 2, "ada", 4, Some(50));
    wait(&mut engine, 3, "ada", 4, Some(50));
    engine.pass(at(10), &Default::default());
    let promised = |job| engine.slot(JobId::job(job)).map(|slot| slot.start);
    assert_eq!((promised(2), promised(3)), (Some(at(100)), Some(at(150))));
    assert_eq!(foreseen(&engine), [(2, Some(100)), (3, Some(150))]);
}

#[test]
fn small_changes_are_no_news() {
    let tolerance = Tolerance { seconds: 60, percent: 10 };
    let is_news =
        |known: Option<i64>, predicted: Option<i64>| tolerance.is_news(known.map(at), predicted.map(at), at(0));
    assert!(!is_news(None, None));
    assert!(is_news(None, Some(5)) && is_news(Some(5), None));
    assert!(!is_news(Some(100), Some(160)), "a minute");
    assert!(is_news(Some(100), Some(161)));
    assert!(!is_news(Some(10_000), Some(11_000)), "less than a tenth of what is left");
    assert!(is_news(Some(10_000), Some(12_000)));
    assert!(is_news(Some(12_000), Some(10_000)));
}
