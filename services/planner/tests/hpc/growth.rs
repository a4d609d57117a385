//! Running jobs grow, and give up what they do not need.

use crate::driver::{ABOVE_NORMAL, BELOW_NORMAL, Cluster, NORMAL, cores, nodes, queued, started, units};
use muster_schemas::{JobId, event::ShrinkReason, scheduling::SchedulingSettings, tasks::SizeUnit};

/// A run with this many cores that could use more, on two dual-core nodes.
fn growing(settings: SchedulingSettings) -> (Cluster, JobId) {
    let mut cluster = Cluster::new(2, 2, settings);
    let job = cluster.wait(cores(2, 2));
    assert_eq!(cluster.settle(), [job]);
    cluster.change_elastic(job, |run| (run.size.wanted, run.size.max) = (8, 4));
    (cluster, job)
}

/// HPC-S-09: only a run with more work grows, and not beyond its maximum.
#[test]
fn a_run_grows_to_its_greatest_size_if_it_has_work() {
    let (mut cluster, job) = growing(queued());
    let plan = cluster.go();
    let [growth] = &plan.growths[..] else { panic!("{:?}", plan.growths) };
    assert_eq!((growth.job, growth.current, growth.count), (job, 2, 2));
    assert_eq!(cluster.size(job), 4);
    let (mut cluster, job) = growing(queued());
    cluster.change_elastic(job, |run| run.size.wanted = 1);
    assert_eq!(cluster.go().growths[0].count, 1);
    cluster.change_elastic(job, |run| run.size.wanted = 0);
    assert!(cluster.go().growths.is_empty());
}

/// HPC-S-09.
#[test]
fn nothing_grows_if_growth_is_off() {
    let (mut cluster, _) = growing(SchedulingSettings { growth: Some(false), ..queued() });
    assert!(cluster.go().growths.is_empty());
}

/// HPC-F-34: a run whose growth was refused is offered more again only when its filters may be asked.
#[test]
fn growth_is_offered_again_when_filters_may_be_asked_again() {
    let (mut cluster, job) = growing(queued());
    let again = cluster.now.plus_seconds(10);
    cluster.change_elastic(job, |run| (run.is_filtered, run.ask_again) = (true, Some(again)));
    let waiting = cluster.wait(cores(2, 2));
    let plan = cluster.plan();
    assert!(plan.growths.is_empty());
    assert_eq!(plan.next_wake, Some(again));
    // Meanwhile the refused resources are free for others (HPC-F-33).
    assert_eq!(started(&plan), [waiting]);
    cluster.pass_seconds(10);
    assert_eq!(cluster.plan().growths.len(), 1);
}

/// HPC-S-03, HPC-J-05.
#[test]
fn runs_grow_in_the_order_of_the_queue() {
    let mut cluster = Cluster::new(3, 2, queued());
    let low = cluster.wait(cores(2, 2).priority(BELOW_NORMAL));
    let high = cluster.wait(cores(2, 2).priority(ABOVE_NORMAL));
    assert_eq!(cluster.settle().len(), 2);
    for job in [low, high] {
        cluster.change_elastic(job, |run| (run.size.wanted, run.size.max) = (8, 4));
    }
    cluster.go();
    assert_eq!((cluster.size(low), cluster.size(high)), (2, 4));
}

/// A run that counts nodes grows by whole nodes.
#[test]
fn a_run_of_nodes_grows_by_nodes() {
    let mut cluster = Cluster::new(4, 2, queued());
    let job = cluster.wait(nodes(1, 1));
    let other = cluster.wait(cores(1, 1));
    assert_eq!(cluster.settle(), [job, other]);
    cluster.change_elastic(job, |run| (run.size.wanted, run.size.max) = (8, 8));
    let plan = cluster.go();
    assert_eq!(plan.growths[0].count, 2, "two nodes have nobody on them");
    assert!(plan.growths[0].added.shares().all(|share| share.cores.len() == 2 && share.exclusive));
}

/// HPC-S-10: resources without tasks are given up, nodes without tasks first; the setting turns this off.
#[test]
fn what_no_task_uses_is_given_up() {
    let mut cluster = Cluster::new(3, 2, queued());
    let job = cluster.wait(cores(1, 6));
    assert_eq!(cluster.settle(), [job]);
    let busy = cluster.run(job).placement.shares().nth(1).expect("three nodes").node;
    cluster.change_elastic(job, |run| {
        run.size.idle = 3;
        run.busy = [(busy, 2)].into();
    });
    let plan = cluster.plan();
    let [shrink] = &plan.shrinks[..] else { panic!("{:?}", plan.shrinks) };
    assert_eq!((shrink.job, shrink.reason, units(SizeUnit::Core, &shrink.removed)), (job, ShrinkReason::Idle, 3));
    assert!(shrink.removed.shares().all(|share| share.node != busy));
    cluster.set(SchedulingSettings { shrink: Some(false), ..queued() });
    assert!(cluster.plan().shrinks.is_empty());
}

/// HPC-S-01: a change of the mode alone starts and stops nothing.
#[test]
fn another_mode_stops_nothing() {
    let mut cluster = Cluster::new(2, 2, queued());
    let job = cluster.wait(cores(1, 4).priority(NORMAL));
    assert_eq!(cluster.settle(), [job]);
    cluster.set(crate::driver::balanced());
    let plan = cluster.go();
    assert!(plan.shrinks.is_empty() && plan.preemptions.is_empty());
    cluster.set(SchedulingSettings::default());
    cluster.go();
    assert_eq!(cluster.size(job), 4);
}
