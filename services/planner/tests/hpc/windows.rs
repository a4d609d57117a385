//! The first waiting job, and the jobs that overtake it.

use crate::driver::{ABOVE_NORMAL, Cluster, cores, nodes, queued, started};
use muster_schemas::{JobId, Timestamp, scheduling::SchedulingSettings};

/// The scene of: six dual-core nodes; R has been running on two of them for 5 min, and T waits
/// for all of them.
struct Scene {
    cluster: Cluster,
    r: JobId,
    t: JobId,
    p: JobId,
    q: JobId,
    k: Option<JobId>,
    l: JobId,
    m: JobId,
}

fn scene(settings: SchedulingSettings, r_minutes: Option<u64>, with_k: bool) -> Scene {
    let mut cluster = Cluster::new(6, 2, settings);
    let running = nodes(2, 2);
    let r = cluster.wait(r_minutes.map_or(running.clone(), |minutes| running.minutes(minutes)));
    assert_eq!(cluster.settle(), [r]);
    cluster.pass_minutes(5);
    let t = cluster.wait(nodes(6, 6).minutes(60));
    let p = cluster.wait(cores(2, 2));
    let q = cluster.wait(cores(8, 8).minutes(20));
    let k = with_k.then(|| cluster.wait(cores(8, 8).minutes(10)));
    let l = cluster.wait(cores(2, 2).minutes(15));
    let m = cluster.wait(cores(2, 2).minutes(1));
    Scene { cluster, r, t, p, q, k, l, m }
}

/// X-1; HPC-S-04, HPC-B-04, HPC-B-06 to HPC-B-09, HPC-B-13, HPC-F-61 (HPC-B-07).
#[test]
fn a_job_that_fits_the_window_exactly_goes_around_the_first() {
    let mut scene = scene(queued(), Some(20), true);
    let plan = scene.cluster.go();
    let k = scene.k.expect("there");
    assert_eq!(started(&plan), [k]);
    let [facts] = &plan.facts[..] else { panic!("{:?}", plan.facts) };
    assert_eq!((facts.job, facts.count, facts.backfill, facts.index), (k, 8, true, 4));
    // It may not wait for a verdict longer than it could still end in time (HPC-B-15).
    assert_eq!(facts.latest_start, Some(scene.cluster.now.plus_minutes(5)));
    assert!(started(&scene.cluster.go()).is_empty(), "nothing is left for L and M");
}

/// X-1 without K (HPC-B-08, HPC-B-09).
#[test]
fn as_many_go_around_as_fit_in_time() {
    let mut scene = scene(queued(), Some(20), false);
    let plan = scene.cluster.go();
    assert_eq!(started(&plan), [scene.l, scene.m]);
    assert!(!scene.cluster.is_running(scene.p) && !scene.cluster.is_running(scene.q));
}

/// X-1; HPC-B-10, HPC-B-11: it starts as soon as there is room, which is no later than was foreseen (HPC-B-04).
#[test]
fn the_first_starts_when_its_window_is_over_or_earlier() {
    let mut scene = scene(queued(), Some(20), true);
    scene.cluster.go();
    scene.cluster.end(scene.r);
    assert_eq!(started(&scene.cluster.go()), [scene.m], "K still runs, and M is over before it");
    scene.cluster.pass_minutes(10);
    scene.cluster.end_all_due();
    assert_eq!(started(&scene.cluster.go()), [scene.t]);
}

/// X-1; HPC-B-05.
#[test]
fn nobody_goes_around_a_job_whose_start_nobody_knows() {
    let mut scene = scene(queued(), None, true);
    assert!(started(&scene.cluster.go()).is_empty());
}

/// X-2; HPC-B-01, HPC-B-02.
#[test]
fn only_so_many_behind_the_first_are_looked_at() {
    let with = |look_ahead| {
        let settings = SchedulingSettings { backfill_look_ahead: Some(look_ahead), ..queued() };
        let mut scene = scene(settings, Some(20), false);
        let jobs = started(&scene.cluster.go());
        (jobs, scene.l, scene.m)
    };
    let (jobs, ..) = with(2);
    assert!(jobs.is_empty());
    let (jobs, l, _) = with(3);
    assert_eq!(jobs, [l]);
    let (jobs, l, m) = with(-1);
    assert_eq!(jobs, [l, m]);
    let (jobs, ..) = with(0);
    assert!(jobs.is_empty());
}

/// X-3; HPC-B-03, HPC-S-03.
#[test]
fn running_jobs_grow_before_anybody_goes_around() {
    let mut cluster = Cluster::new(4, 2, queued());
    let r = cluster.wait(cores(2, 6).minutes(60));
    assert_eq!(cluster.plan().starts.len(), 1);
    // It begins with 2 of its 6, and has 10 waiting tasks of one core.
    let mut plan = cluster.plan();
    plan.starts[0].placement.components[0].shares.truncate(1);
    cluster.commit(&plan);
    cluster.change_elastic(r, |run| run.size.wanted = 10);
    let _t = cluster.wait(cores(8, 8));
    let k = cluster.wait(cores(4, 4).minutes(5));
    let n = cluster.wait(cores(2, 2).minutes(5));
    let plan = cluster.go();
    let [growth] = &plan.growths[..] else { panic!("{:?}", plan.growths) };
    assert_eq!((growth.job, growth.current, growth.count), (r, 2, 4));
    assert_eq!(started(&plan), [n]);
    assert!(plan.facts[0].backfill);
    assert_eq!((cluster.size(r), cluster.is_running(k)), (6, false));
}

/// HPC-B-03, HPC-S-03: a run that a waiting job of higher priority could take from grows once that job waits for other nodes, and
/// still before a job behind both starts.
#[test]
fn running_jobs_that_nobody_takes_from_grow_before_jobs_behind_them_start() {
    let mut cluster = Cluster::new(4, 2, queued());
    let elsewhere = cluster.wait(cores(2, 2).group("b").priority(ABOVE_NORMAL).minutes(30));
    let growing = cluster.wait(cores(1, 4).group("a"));
    let mut plan = cluster.plan();
    let start = plan.starts.iter_mut().find(|start| start.job == growing).unwrap();
    start.placement.components[0].shares.truncate(1);
    cluster.commit(&plan);
    assert!(cluster.is_running(elsewhere) && cluster.size(growing) == 2);
    cluster.change_elastic(growing, |run| run.size.wanted = 10);
    let first = cluster.wait(cores(4, 4).group("b").priority(ABOVE_NORMAL));
    let behind = cluster.wait(cores(2, 2).group("a").minutes(5));
    let plan = cluster.go();
    let [growth] = &plan.growths[..] else { panic!("{:?}", plan.growths) };
    assert_eq!((growth.job, growth.current, growth.count), (growing, 2, 2));
    assert_eq!(started(&plan), []);
    assert!(!cluster.is_running(first) && !cluster.is_running(behind));
}

/// HPC-S-05: a job that cannot use the same nodes is not behind it; one that can use some of them is.
#[test]
fn who_has_no_node_in_common_with_the_first_does_not_wait_for_it() {
    let mut cluster = Cluster::new(4, 2, queued());
    let r = cluster.wait(cores(2, 2).group("a").minutes(30));
    assert_eq!(cluster.settle(), [r]);
    let t = cluster.wait(cores(4, 4).group("a"));
    let elsewhere = cluster.wait(cores(2, 2).group("b"));
    let anywhere = cluster.wait(cores(2, 2));
    let in_time = cluster.wait(cores(2, 2).minutes(30));
    let plan = cluster.go();
    assert_eq!(started(&plan), [elsewhere, in_time]);
    let around: Vec<_> = plan.facts.iter().filter(|facts| facts.backfill).map(|facts| facts.job).collect();
    assert_eq!(around, [in_time]);
    assert!(!cluster.is_running(t) && !cluster.is_running(anywhere));
}

/// HPC-S-02, HPC-J-05: each with as much as it can have, in the order of the queue.
#[test]
fn jobs_start_in_order_with_as_much_as_they_can_use() {
    let mut cluster = Cluster::new(4, 2, queued());
    let first = cluster.wait(cores(2, 6));
    let second = cluster.wait(cores(1, 4));
    let third = cluster.wait(cores(1, 1));
    assert_eq!(cluster.settle(), [first, second]);
    assert_eq!((cluster.size(first), cluster.size(second), cluster.size(third)), (6, 2, 0));
}

/// HPC-J-17: if one of several node groups must serve the job alone, the first with enough free does, even if no
/// alternative has a known end.
#[test]
fn one_of_several_groups_serves_the_job_alone() {
    for minutes in [None, Some(10)] {
        let mut cluster = Cluster::new(4, 2, queued());
        let of = |job: crate::driver::Job| minutes.map_or(job.clone(), |minutes| job.minutes(minutes));
        let in_a = cluster.wait(of(cores(1, 1).group("a")));
        cluster.settle();
        let either = cluster.wait_for_one_of(of(cores(4, 4)), &["a", "b"]);
        let too_large = cluster.wait_for_one_of(of(cores(4, 4)), &["a", "b"]);
        assert_eq!(cluster.settle(), [either], "the third core of `a` does not help");
        assert!(cluster.run(either).placement.shares().all(|share| share.node.0 > 2));
        cluster.end(in_a);
        assert_eq!(cluster.settle(), [too_large]);
        assert!(cluster.run(too_large).placement.shares().all(|share| share.node.0 <= 2));
    }
}

/// HPC-B-12: a backfilled run does not grow.
#[test]
fn what_went_around_somebody_does_not_grow() {
    let mut scene = scene(queued(), Some(20), true);
    scene.cluster.go();
    let k = scene.k.expect("there");
    scene.cluster.end(scene.r);
    scene.cluster.change_elastic(k, |run| (run.size.wanted, run.size.max) = (4, 12));
    assert!(scene.cluster.go().growths.is_empty());
}

trait Minutes {
    fn plus_minutes(self, minutes: i64) -> Self;
}

impl Minutes for Timestamp {
    fn plus_minutes(self, minutes: i64) -> Self {
        self.plus_seconds(60 * minutes)
    }
}
