//! Balanced mode.

use crate::driver::{ABOVE_NORMAL, Cluster, balanced, cores, started};
use muster_schemas::{
    JobId,
    event::ShrinkReason,
    scheduling::{Preemption, PriorityBias, SchedulingSettings},
};
use std::sync::Arc;

fn two_jobs(settings: SchedulingSettings) -> (Cluster, JobId, JobId) {
    let mut cluster = Cluster::new(8, 2, settings);
    let a = cluster.wait(cores(2, 16).work(100));
    let b = cluster.wait(cores(2, 16).work(100).priority(ABOVE_NORMAL));
    (cluster, a, b)
}

/// X-8; HPC-S-06, HPC-S-07.
#[test]
fn what_is_left_is_shared_by_priority() {
    for (bias, of_a, of_b) in [
        (Some(PriorityBias::None), 8, 8),
        (None, 6, 10),
        (Some(PriorityBias::Medium), 6, 10),
        (Some(PriorityBias::High), 3, 13),
    ] {
        let (mut cluster, a, b) = two_jobs(SchedulingSettings { bias, ..balanced() });
        let plan = cluster.go();
        assert_eq!(started(&plan), [b, a]);
        assert_eq!((cluster.size(a), cluster.size(b)), (2, 2), "each has its least first");
        cluster.settle();
        assert_eq!((cluster.size(a), cluster.size(b)), (of_a, of_b), "{bias:?}");
    }
}

/// HPC-S-06, HPC-S-08, HPC-S-14: a later job gets its minimum from what others have above theirs, and then its share.
/// Tasks are stopped for it, unless preemption is graceful.
#[test]
fn who_comes_later_gets_his_share_when_shares_are_levelled() {
    for (balanced_preemption, reason) in [
        (None, ShrinkReason::TasksRebalanced),
        (Some(Preemption::Immediate), ShrinkReason::TasksRebalanced),
        (Some(Preemption::Graceful), ShrinkReason::Rebalanced),
        (Some(Preemption::None), ShrinkReason::Rebalanced),
    ] {
        levelled(SchedulingSettings { balanced_preemption, ..balanced() }, reason);
    }
}

fn levelled(settings: SchedulingSettings, reason: ShrinkReason) {
    let (mut cluster, a, b) = two_jobs(settings.clone());
    cluster.settle();
    let c = cluster.wait(cores(4, 4).work(0));
    let last = cluster.now;
    cluster.engine.set_scheduling(Arc::new(settings), Some(last));
    cluster.pass_seconds(3);
    let plan = cluster.plan();
    assert!(plan.shrinks.is_empty(), "shares were levelled 3 s ago");
    assert_eq!(plan.next_wake, Some(last.plus_seconds(10)));
    assert!(plan.preemptions.is_empty(), "nobody is stopped for what is given up soon");
    cluster.pass_seconds(7);
    let plan = cluster.go();
    assert!(!plan.shrinks.is_empty());
    assert!(plan.shrinks.iter().all(|shrink| shrink.reason == reason));
    assert_eq!(started(&cluster.go()), [c]);
    cluster.settle();
    assert_eq!((cluster.size(a) + cluster.size(b), cluster.size(c)), (12, 4));
    assert!(cluster.size(a) >= 2 && cluster.size(b) >= 2);
}

/// HPC-S-07: resources that a job cannot use go to the others.
#[test]
fn nobody_gets_more_than_he_can_use() {
    let mut cluster = Cluster::new(8, 2, balanced());
    let small = cluster.wait(cores(2, 4).work(100));
    let large = cluster.wait(cores(2, 16).work(100));
    cluster.settle();
    assert_eq!((cluster.size(small), cluster.size(large)), (4, 12));
}

/// HPC-B-16: backfill works in this mode too.
#[test]
fn somebody_goes_around_the_first_that_waits() {
    let mut cluster = Cluster::new(4, 2, balanced());
    let run = cluster.wait(cores(4, 4).minutes(10));
    cluster.settle();
    let first = cluster.wait(cores(8, 8).minutes(10));
    let short = cluster.wait(cores(2, 4).minutes(10));
    let long = cluster.wait(cores(1, 1).minutes(11));
    let plan = cluster.go();
    assert_eq!(started(&plan), [short]);
    assert_eq!((plan.facts[0].count, plan.facts[0].backfill), (2, true));
    assert!(cluster.is_running(run) && !cluster.is_running(first) && !cluster.is_running(long));
}
