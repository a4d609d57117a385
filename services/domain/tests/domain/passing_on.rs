//! Queues that pass jobs on, and what jobs of a queue may ask for.

use crate::support::*;
use muster_schemas::{
    JobId,
    cluster::{ClusterChange, ClusterConfig, QueueSpec, QueueSpecChange, Route},
    command::{Command, RefusalCode},
    event::{Event, JobChange},
    job::{DependencyKind, Holds, JobSpec, Outcome, WaitReason},
    resources::IndexSet,
};

const USER_HOLD: Holds = Holds { user: true, operator: false, system: false };

fn route(destinations: &[&str]) -> Route {
    Route { destinations: destinations.iter().map(|&name| name.to_owned()).collect(), ..Route::default() }
}

fn passing(name: &str, route: Route) -> QueueSpec {
    QueueSpec { route: Some(Box::new(route)), ..queue(name) }
}

/// `submit` passes jobs on to `small`, of at most two cores, 10 minutes and one job, and to `large`, of at least 2 nodes.
fn cluster(of_submit: Route) -> Cluster {
    let most_asked = [("cores".to_owned(), 2), ("walltime_seconds".to_owned(), 600)].into();
    let small = QueueSpec { most_asked, max_jobs: Some(1), default_walltime_seconds: Some(300), ..queue("small") };
    let least_asked = [("nodes".to_owned(), 2)].into();
    let large = QueueSpec { least_asked, default_job_priority: 7, ..queue("large") };
    let mut config = ClusterConfig { queues: vec![passing("submit", of_submit), small, large], ..config() };
    config.settings.default_queue = "submit".into();
    Cluster::with(config)
}

fn usual() -> Cluster {
    cluster(route(&["small", "large"]))
}

fn with_walltime(seconds: u64, mut spec: JobSpec) -> JobSpec {
    spec.components[0].alternatives[0].walltime_seconds = Some(seconds);
    spec
}

fn queue_of(cluster: &Cluster, id: JobId) -> String {
    cluster.state.job(id).expect("it is there").lead().queue.to_string()
}

fn why(cluster: &Cluster, id: JobId) -> Option<WaitReason> {
    cluster.state.gate_reason(cluster.state.job(id).expect("it is there"))
}

fn set_queue(cluster: &mut Cluster, change: QueueSpecChange) {
    let change = ClusterChange { queues: vec![change], ..ClusterChange::default() };
    cluster.ok(&root(), Command::Configure { change: Box::new(change), keep_unnamed: true });
}

fn enable(cluster: &mut Cluster, name: &str, enabled: bool) {
    set_queue(cluster, QueueSpecChange { name: name.into(), enabled: Some(enabled), ..QueueSpecChange::default() });
}

/// A job goes to the first destination whose limits it is within, with the defaults of that queue, and each move is an event.
#[test]
fn a_job_goes_to_the_first_queue_that_takes_it() {
    let mut cluster = usual();
    let events = cluster.ok(&user("ada"), Command::Submit { jobs: vec![job(1, 1), job(2, 2), job(1, 2)] });
    let moves: Vec<(u64, &str)> = events
        .iter()
        .filter_map(|event| match event {
            Event::JobModified { job, change } => Some((job.number, change.queue.as_deref()?)),
            _ => None,
        })
        .collect();
    assert_eq!(moves, [(1, "small"), (2, "large")]);
    let lead = |number| cluster.state.job(JobId::job(number)).expect("it is there").lead();
    assert_eq!(lead(1).shape.alternatives[0].walltime_seconds, Some(300));
    assert_eq!((lead(1).priority, lead(2).priority), (0, 7));
    assert_eq!(why(&cluster, JobId::job(3)), Some(WaitReason::NotPassedOn), "small is full, and large is for others");
    assert_eq!(cluster.waiting(), [JobId::job(1), JobId::job(2)]);
    cluster.assert_replays();
}

/// A job that a queue can take later waits where it is, and goes on as soon as that queue has room or is open.
#[test]
fn a_job_waits_until_a_queue_has_room() {
    let mut cluster = usual();
    let (first, second) = (cluster.submit("ada", job(1, 1)), cluster.submit("ada", job(1, 1)));
    assert_eq!((queue_of(&cluster, first).as_str(), queue_of(&cluster, second).as_str()), ("small", "submit"));
    assert!(cluster.tick().is_empty());
    assert_eq!(cluster.state.next_timer(), None);
    let refused = cluster.refused_on(second, &["node1"], 1);
    assert!(refused.contains("has not passed it on"), "{refused}");
    enable(&mut cluster, "small", false);
    cluster.run_through(first, 0);
    assert_eq!(cluster.state.next_timer(), None, "it is shut");
    enable(&mut cluster, "small", true);
    assert_eq!(cluster.state.next_timer(), Some(cluster.state.time()));
    let events = cluster.tick();
    assert!(matches!(&events[..], [Event::JobModified { job, .. }] if *job == second), "{events:?}");
    assert_eq!(queue_of(&cluster, second), "small");
    assert!(cluster.is_waiting(second));
    cluster.assert_replays();
}

/// An array goes where all its tasks have room, and one with more tasks than a queue takes at a time goes past that queue.
#[test]
fn an_array_needs_room_for_all_its_tasks() {
    let mut cluster = usual();
    let submit = |spec| Command::Submit { jobs: vec![spec] };
    let words = "small: it takes at most 1 jobs at a time, and these are 2";
    let two = IndexSet::first_n(2);
    cluster.refused(&user("ada"), submit(array(two.clone(), None)), RefusalCode::LimitReached, words);
    let wide = cluster.submit("ada", JobSpec { array: array(two, None).array, ..job(2, 1) });
    assert_eq!(queue_of(&cluster, wide), "large");
    let single = cluster.submit("ada", array(IndexSet::first_n(1), None));
    assert_eq!(queue_of(&cluster, single), "small");
    cluster.assert_replays();
}

/// A job that no destination can ever take is refused, whoever submits it, with the reason of each.
#[test]
fn a_job_that_no_queue_can_take_is_refused() {
    let mut cluster = usual();
    let submit = |spec| Command::Submit { jobs: vec![spec] };
    for who in [user("ada"), root()] {
        let words = "small: walltime_seconds: 601 is more than queue `small` allows, 600; \
                     large: nodes: 1 is less than queue `large` allows, 2";
        cluster.refused(&who, submit(with_walltime(601, job(1, 1))), RefusalCode::LimitReached, words);
    }
    let mut pair = job(1, 1);
    pair.components.push(pair.components[0].clone());
    cluster.refused(&user("ada"), submit(pair), RefusalCode::Invalid, "one component only");
    let mut lost =
        Cluster::with(ClusterConfig { queues: vec![queue("default"), passing("r", route(&["gone"]))], ..config() });
    let mut spec = job(1, 1);
    spec.components[0].queue = Some("r".into());
    lost.refused(&user("ada"), submit(spec), RefusalCode::LimitReached, "has no queue to which it passes jobs on");
}

/// What a queue allows counts for jobs that name it, too; operators may exceed it.
#[test]
fn limits_of_a_queue_count_at_its_door() {
    let mut cluster = usual();
    let wide = || {
        let mut spec = job(1, 3);
        spec.components[0].queue = Some("small".into());
        Command::Submit { jobs: vec![spec] }
    };
    let words = "cores: 3 is more than queue `small` allows, 2";
    cluster.refused(&user("ada"), wide(), RefusalCode::LimitReached, words);
    let id = cluster.submit("ada", job(2, 1));
    let to_small = JobChange { queue: Some("small".into()), ..JobChange::default() };
    let moved = Command::Modify { jobs: ids(&[id]), change: to_small };
    cluster.ok(&user("ada"), moved);
    assert_eq!(usual().ok(&user("oper"), wide()).len(), 1);
}

/// Held jobs and jobs whose time has not come stay where they are, unless the queue says otherwise.
#[test]
fn held_and_waiting_jobs_stay_unless_the_queue_passes_them_on() {
    for passes in [false, true] {
        let mut cluster = cluster(Route { held_jobs: passes, waiting_jobs: passes, ..route(&["small", "large"]) });
        let mut held = job(2, 1);
        held.components[0].holds = USER_HOLD;
        let mut later = job(2, 1);
        later.components[0].begin = Some(cluster.now.plus_seconds(60));
        let first = cluster.submit("ada", job(1, 1));
        let mut depends = after(DependencyKind::Ended, first);
        depends.components[0].alternatives = job(2, 1).components[0].alternatives.clone();
        let all = [cluster.submit("ada", held), cluster.submit("ada", later), cluster.submit("ada", depends)];
        cluster.tick();
        let expected = if passes { "large" } else { "submit" };
        assert_eq!(all.map(|id| queue_of(&cluster, id)), [expected; 3], "{passes}");
        cluster.ok(&user("ada"), Command::Release { jobs: ids(&all[..1]), holds: USER_HOLD });
        cluster.run_through(first, 0);
        cluster.pass(60);
        cluster.tick();
        cluster.tick();
        // The first that goes on finds room in the small queue, which takes one job.
        let first_queue = if passes { "large" } else { "small" };
        assert_eq!(all.map(|id| queue_of(&cluster, id)), [first_queue, "large", "large"], "{passes}");
        cluster.assert_replays();
    }
}

/// A job that has waited for a queue for too long ends.
#[test]
fn a_job_waits_for_a_queue_only_for_so_long() {
    let mut cluster = cluster(Route { lifetime_seconds: Some(100), ..route(&["small"]) });
    cluster.submit("ada", job(1, 1));
    let second = cluster.submit("ada", job(1, 1));
    assert_eq!(cluster.state.next_timer(), Some(cluster.now.plus_seconds(100)));
    cluster.pass(99);
    assert!(cluster.tick().is_empty());
    cluster.pass(1);
    cluster.tick();
    let Some(Outcome::Refused(why)) = cluster.outcome(second) else { panic!("{:?}", cluster.outcome(second)) };
    assert!(why.contains("[RouteExpired]"), "{why}");
    cluster.assert_replays();
}

/// Jobs that no open queue takes hold up none behind them that asks for something else.
#[test]
fn jobs_that_stay_hold_up_nobody() {
    let mut cluster = usual();
    enable(&mut cluster, "large", false);
    let jobs = [job(1, 1), job(1, 1), job(1, 1), job(2, 2), job(1, 2), job(2, 1)];
    let ids = jobs.map(|job| cluster.submit("ada", job));
    let queues = |cluster: &Cluster| ids.map(|id| queue_of(cluster, id));
    assert_eq!(queues(&cluster), ["small", "submit", "submit", "submit", "submit", "submit"]);
    assert_eq!(cluster.state.next_timer(), None, "small is full, and large is shut");
    enable(&mut cluster, "large", true);
    assert_eq!(cluster.tick().len(), 2);
    assert_eq!(queues(&cluster), ["small", "submit", "submit", "large", "submit", "large"]);
    assert_eq!(cluster.state.next_timer(), None, "large takes none of the others");
    cluster.assert_replays();
}

/// A queue that is stopped keeps its jobs; a destination that passes jobs on itself stands for its own, and a circle has no end
/// that a job could reach.
#[test]
fn queues_pass_on_to_queues_that_pass_on() {
    let queues = vec![
        queue("default"),
        passing("outer", route(&["inner"])),
        passing("inner", route(&["outer", "default"])),
        passing("round", route(&["about"])),
        passing("about", route(&["round"])),
    ];
    let mut cluster = Cluster::with(ClusterConfig { queues, ..config() });
    let to = |name: &str| {
        let mut spec = job(1, 1);
        spec.components[0].queue = Some(name.into());
        spec
    };
    let first = cluster.submit("ada", to("outer"));
    assert_eq!(queue_of(&cluster, first), "default");
    let round = Command::Submit { jobs: vec![to("round")] };
    cluster.refused(&user("ada"), round, RefusalCode::LimitReached, "has no queue");
    let stop = |started| QueueSpecChange { name: "outer".into(), started: Some(started), ..QueueSpecChange::default() };
    set_queue(&mut cluster, stop(false));
    let second = cluster.submit("ada", to("outer"));
    assert!(cluster.tick().is_empty());
    assert_eq!(queue_of(&cluster, second), "outer");
    set_queue(&mut cluster, stop(true));
    cluster.tick();
    assert_eq!(queue_of(&cluster, second), "default");
    let to_inner = JobChange { queue: Some("inner".into()), ..JobChange::default() };
    cluster.ok(&user("ada"), Command::Modify { jobs: ids(&[second]), change: to_inner });
    cluster.tick();
    assert_eq!(queue_of(&cluster, second), "default", "a moved job goes on like a submitted one");
    cluster.assert_replays();
}

/// A queue with jobs does not become one of the other kind, and its limits must make sense.
#[test]
fn the_kind_of_a_queue_with_jobs_stays() {
    let mut cluster = usual();
    cluster.submit("ada", job(1, 1));
    let refused = |cluster: &mut Cluster, change: QueueSpecChange, code, words: &str| {
        let change = ClusterChange { queues: vec![change], ..ClusterChange::default() };
        cluster.refused(&root(), Command::Configure { change: Box::new(change), keep_unnamed: true }, code, words);
    };
    let named = |name: &str| QueueSpecChange { name: name.into(), ..QueueSpecChange::default() };
    let passes = QueueSpecChange { route: Some(Box::new(route(&["large"]))), ..named("small") };
    refused(&mut cluster, passes, RefusalCode::Conflict, "1 jobs are in it");
    let twice = QueueSpecChange { route: Some(Box::new(route(&["a", "a"]))), ..named("large") };
    refused(&mut cluster, twice, RefusalCode::Invalid, "given twice");
    let unknown = QueueSpecChange { least_asked: Some([("toes".to_owned(), 1)].into()), ..named("large") };
    refused(&mut cluster, unknown, RefusalCode::Invalid, "`toes` is none of cores");
    let none = QueueSpecChange { most_asked: Some([("nodes".to_owned(), 1)].into()), ..named("large") };
    refused(&mut cluster, none, RefusalCode::Invalid, "no job asks for 2 at least and less at most");
    cluster.assert_replays();
}
