//! Each cause of waiting is named.

use crate::world::{GIB, World, job, node, queue, tasks, user};
use muster_schemas::{
    JobId, Timestamp,
    cluster::QueueSpec,
    command::{Command, JobSelection},
    job::{Dependencies, Dependency, DependencyKind, Holds},
    policy::{Limit, LimitPer, Policy},
    resources::{Gpus, Memory, Per, Request},
    views::{ReasonWord, WaitExplanation},
};

fn policy(name: &str) -> Policy {
    Policy::built_in(name).expect("it is built in")
}

fn world(name: &str) -> World {
    World::new(&policy(name), vec![node("n1", 4, 1), node("n2", 4, 1)], vec![queue("default")])
}

fn explained(world: &World, job: JobId, word: ReasonWord) -> WaitExplanation {
    let explanation = world.explain(job);
    assert_eq!(explanation.reason.code, word, "{explanation:#?}");
    explanation
}

#[test]
fn gates_of_the_job_itself_are_named_and_nothing_is_suggested() {
    let mut world = world("easy");
    let first = world.run(tasks(1, 60));
    let held = world.run(tasks(1, 60));
    assert!(world.has_started(held));
    let mut later = tasks(1, 60);
    later.components[0].begin = Some(world.now.plus_seconds(600));
    let later = world.run(later);
    let explanation = explained(&world, later, ReasonWord::BeginTime);
    assert_eq!((explanation.ahead, explanation.changes.len(), explanation.fits_alone), (None, 0, None));
    assert_eq!(explanation.expected_start, Some(world.now.plus_seconds(600)));
    let mut after = tasks(1, 60);
    let dependency = Dependency { kind: DependencyKind::Ended, job: Some(first), delay_seconds: 0 };
    after.components[0].dependencies = Dependencies { all_of: vec![vec![dependency]] };
    let after = world.run(after);
    assert_eq!(explained(&world, after, ReasonWord::Dependency).reason.job, Some(first));
    let mut held = tasks(1, 60);
    held.components[0].holds = Holds { user: true, ..Holds::default() };
    let held = world.run(held);
    explained(&world, held, ReasonWord::Held);
}

#[test]
fn a_stopped_queue_is_named_and_an_open_one_suggested() {
    let stopped = QueueSpec { started: false, ..queue("night") };
    let closed = QueueSpec { enabled: false, ..queue("closed") };
    let of_others = QueueSpec { users: vec!["bob".into()], ..queue("theirs") };
    let queues = vec![stopped, queue("default"), closed, of_others];
    let mut world = World::new(&policy("easy"), vec![node("n1", 4, 0)], queues);
    let mut spec = tasks(1, 60);
    spec.components[0].queue = Some("night".into());
    let waiting = world.run(spec);
    let explanation = explained(&world, waiting, ReasonWord::QueueStopped);
    let texts: Vec<&str> = explanation.changes.iter().map(|change| change.text.as_str()).collect();
    assert_eq!(texts, ["queue default"]);
}

#[test]
fn shortages_are_named_with_what_would_fit() {
    let mut world = world("easy");
    let memory = Some(Memory { bytes: 6 * GIB, per: Per::Node });
    for _ in 0..2 {
        world.run(job(Request { memory, ..Request::default() }, 600));
    }
    let wanted = Some(Memory { bytes: 4 * GIB, per: Per::Node });
    let waiting = world.run(job(Request { memory: wanted, ..Request::default() }, 600));
    let explanation = world.explain(waiting);
    assert_eq!(explanation.fits_alone, Some(false));
    assert_eq!(explanation.ahead, Some(0));
    let texts: Vec<&str> = explanation.changes.iter().map(|change| change.text.as_str()).collect();
    assert_eq!(texts, ["2 GiB memory for each node instead of 4 GiB"]);
    // Nobody counts in bytes, however the request was written.
    let odd = Some(Memory { bytes: 4 * GIB + 1, per: Per::Node });
    let behind = world.run(job(Request { memory: odd, ..Request::default() }, 600));
    let texts: Vec<String> = world.explain(behind).changes.into_iter().map(|change| change.text).collect();
    assert_eq!(texts, ["2 GiB memory for each node instead of 4 GiB"]);
    // It is the first in order, so it is promised the resources of the run that ends first.
    assert_eq!(explanation.reason.code, ReasonWord::Reserved);
    let promise = explanation.promise.expect("the first job that waits is promised something");
    assert_eq!((promise.start, promise.nodes.len()), (world.now.plus_seconds(600), 1));
    assert_eq!(explanation.expected_start, Some(promise.start));
}

#[test]
fn without_backfill_the_shortage_of_the_first_and_the_job_in_front_of_the_rest_are_named() {
    let mut world = world("fcfs");
    world.run(tasks(6, 600));
    let first = world.run(tasks(4, 600));
    let second = world.run(tasks(1, 60));
    let explanation = explained(&world, first, ReasonWord::Resources);
    let texts: Vec<&str> = explanation.changes.iter().map(|change| change.text.as_str()).collect();
    assert_eq!(texts, ["2 tasks instead of 4"]);
    let explanation = explained(&world, second, ReasonWord::BehindJob);
    assert_eq!((explanation.reason.job, explanation.ahead, explanation.fits_alone), (Some(first), Some(1), Some(true)));
    assert_eq!(explanation.first_ahead[0].job, first);
    assert!(explanation.changes.is_empty(), "{:?}", explanation.changes);
}

#[test]
fn a_job_that_would_delay_a_promise_is_told_whose_and_how_short_it_must_be() {
    let mut world = world("easy");
    world.run(tasks(6, 600));
    let first = world.run(tasks(8, 600));
    let long = world.run(tasks(1, 3600));
    let explanation = explained(&world, long, ReasonWord::WouldDelay);
    assert_eq!((explanation.reason.job, explanation.fits_alone), (Some(first), Some(true)));
    assert_eq!(explanation.first_ahead[0].promised_start, Some(world.now.plus_seconds(600)));
    let change = &explanation.changes[0];
    assert_eq!((change.text.as_str(), change.change.walltime_seconds), ("walltime 10 min instead of 1 h", Some(600)));
}

#[test]
fn limits_are_named_with_how_much_of_them_is_used() {
    let limit = Limit {
        per: LimitPer::User,
        name: None,
        queue: None,
        max_running_jobs: None,
        max_nodes: None,
        max_cores: Some(3),
        max_gpus: None,
        ..Limit::default()
    };
    let policy = Policy { limits: vec![limit], ..policy("easy") };
    let mut world = World::new(&policy, vec![node("n1", 8, 0)], vec![queue("default")]);
    world.run(tasks(2, 600));
    let waiting = world.run(tasks(2, 600));
    let explanation = explained(&world, waiting, ReasonWord::Limit);
    let limit = &explanation.limits[0];
    assert_eq!((limit.text.as_str(), limit.used, limit.wanted, limit.most), ("3 cores of ada", 2, 2, 3));
    assert_eq!(explanation.changes[0].text, "1 task instead of 2");
    assert_eq!(explanation.fits_alone, Some(true));
}

#[test]
fn unavailable_nodes_and_jobs_that_fit_nowhere_are_named() {
    let mut world = world("easy");
    let drain = Command::DrainNodes { nodes: vec!["n2".into()], reason: "test".into(), is_down: false };
    world.must(&muster_schemas::event::Actor::Ledger, drain);
    let waiting = world.run(tasks(8, 600));
    explained(&world, waiting, ReasonWord::NodesUnavailable);
    assert_eq!(world.explain(waiting).changes[0].text, "4 tasks instead of 8");
}

#[test]
fn fewer_gpus_and_fewer_cores_are_suggested_where_they_help() {
    let mut world = world("easy");
    let gpus = |count| Some(Gpus { count, per: Per::Node, model: None });
    world.run(job(Request { gpus: gpus(1), ..Request::default() }, 600));
    world.run(job(Request { gpus: gpus(1), ..Request::default() }, 600));
    let waiting = world.run(job(Request { gpus: gpus(1), ..Request::default() }, 600));
    let texts: Vec<String> = world.explain(waiting).changes.into_iter().map(|change| change.text).collect();
    assert_eq!(texts, ["0 GPUs for each node instead of 1"]);
    let wide = world.run(job(Request { cpus_per_task: 4, ..Request::default() }, 600));
    let texts: Vec<String> = world.explain(wide).changes.into_iter().map(|change| change.text).collect();
    assert!(texts.contains(&"3 cores for each task instead of 4".to_owned()), "{texts:?}");
}

#[test]
fn a_promise_under_conservative_is_shown_with_its_nodes() {
    let mut world = world("conservative");
    world.run(tasks(8, 600));
    let first = world.run(tasks(8, 600));
    let second = world.run(tasks(8, 300));
    let explanation = explained(&world, second, ReasonWord::Reserved);
    let promise = explanation.promise.expect("all are promised something");
    assert_eq!((promise.start, promise.end), (world.now.plus_seconds(1200), Some(world.now.plus_seconds(1500))));
    assert_eq!(promise.nodes.iter().map(|node| node.cores).sum::<u64>(), 8);
    assert_eq!((explanation.ahead, explanation.first_ahead[0].job), (Some(1), first));
}

#[test]
fn an_explanation_of_a_moment_before_the_plan_says_that_the_plan_starts_it() {
    let mut world = world("easy");
    let job = world.submit(tasks(1, 60));
    let explanation = world.explain(job);
    assert!(explanation.starts_now && explanation.changes.is_empty());
    assert_eq!(explanation.expected_start, Some(world.now));
    world.settle();
    assert!(world.has_started(job));
}

#[test]
fn a_released_job_stands_in_the_order_again() {
    let mut world = world("easy");
    world.run(tasks(8, 600));
    let job = world.run(tasks(1, 60));
    let jobs = || JobSelection::Ids(vec![job]);
    let holds = Holds { user: true, ..Holds::default() };
    world.must(&user("ada"), Command::Hold { jobs: jobs(), holds, reason: String::new() });
    explained(&world, job, ReasonWord::Held);
    world.must(&user("ada"), Command::Release { jobs: jobs(), holds });
    assert_eq!(world.explain(job).ahead, Some(0));
    assert!(world.now > Timestamp(0));
}
