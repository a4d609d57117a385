//! Activation filters and plans.

use crate::driver::{ABOVE_NORMAL, BELOW_NORMAL, Cluster, balanced, cores, nodes, queued, started, units};
use muster_planner::model::Activation;
use muster_schemas::{
    JobId,
    filter::ActivationOrdering,
    policy::{Backfill, BackfillMode},
    resources::Placement,
    scheduling::{Preemption, SchedulingSettings},
    tasks::SizeUnit,
};

/// The scene of X-5: four dual-core nodes, J1 (2 to 4 cores, with a filter), J2, and J3 of lower priority.
fn scene(settings: SchedulingSettings) -> (Cluster, [JobId; 3]) {
    let none = Some(Preemption::None);
    let settings = SchedulingSettings { preemption: none, balanced_preemption: none, ..settings };
    let mut cluster = Cluster::new(4, 2, settings);
    let one = cluster.wait(cores(2, 4).minutes(5).filtered());
    let two = cluster.wait(cores(2, 2).minutes(5));
    let three = cluster.wait(cores(2, 2).minutes(5).priority(BELOW_NORMAL));
    (cluster, [one, two, three])
}

fn pending(holds_back: bool) -> Option<Activation> {
    Some(Activation { is_filtered: true, is_pending: true, holds_back, ..Activation::default() })
}

fn asked_again(at: i64, cluster: &Cluster) -> Option<Activation> {
    let ask_again = Some(cluster.now.plus_seconds(at));
    Some(Activation { is_filtered: true, ask_again, ..Activation::default() })
}

/// HPC-F-82, HPC-F-61, X-5: strict ordering offers one job, and nothing with its priority or less starts.
#[test]
fn an_offer_holds_back_its_priority_and_below() {
    let (mut cluster, [one, ..]) = scene(queued());
    let plan = cluster.plan();
    assert_eq!(started(&plan), [one]);
    let [facts] = &plan.facts[..] else { panic!("{:?}", plan.facts) };
    assert_eq!((facts.index, facts.backfill, facts.count, facts.latest_start), (1, false, 4, None));
    cluster.wait_with(one, pending(true));
    let four = cluster.wait(cores(2, 2).priority(ABOVE_NORMAL));
    assert_eq!(
        started(&cluster.plan()),
        [four],
        "a higher priority goes on, and the job is not offered twice (HPC-F-84)"
    );
}

/// HPC-F-83.
#[test]
fn relaxed_ordering_goes_on_with_what_is_not_set_aside() {
    let (mut cluster, [one, two, three]) = scene(queued());
    cluster.engine.set_ordering(ActivationOrdering::Relaxed);
    assert_eq!(started(&cluster.plan()), [one, two, three]);
}

/// HPC-F-40.
#[test]
fn jobs_without_filters_start_without_any_wait() {
    let mut cluster = Cluster::new(4, 2, queued());
    let first = cluster.wait(cores(2, 2));
    let filtered = cluster.wait(cores(2, 2).filtered());
    cluster.wait(cores(2, 2));
    let plan = cluster.plan();
    assert_eq!(started(&plan), [first, filtered]);
    assert_eq!(plan.facts.len(), 1, "only filters need to be told anything");
}

/// HPC-F-31, X-5 verdict 1: a block applies to its priority and below, but not to the blocker, and not to growth.
#[test]
fn a_block_is_for_its_priority_and_below() {
    let (mut cluster, [one, ..]) = scene(queued());
    cluster.wait_with(one, asked_again(10, &cluster));
    cluster.engine.set_queue_block(Some((one, 2000)));
    let four = cluster.wait(cores(2, 2).priority(ABOVE_NORMAL));
    let plan = cluster.go();
    assert_eq!(started(&plan), [four]);
    assert_eq!(plan.next_wake, Some(cluster.now.plus_seconds(10)));
    cluster.change_elastic(four, |run| (run.size.wanted, run.size.max) = (1, 3));
    assert_eq!(cluster.go().growths.len(), 1);
    cluster.pass_seconds(10);
    assert_eq!(started(&cluster.plan()), [one], "it is asked again itself");
    cluster.engine.set_queue_block(None);
    assert_eq!(started(&cluster.plan()).len(), 1, "its offer holds others back");
}

fn placement_of(cluster: &mut Cluster, job: JobId) -> Placement {
    let plan = cluster.plan();
    plan.starts.iter().find(|start| start.job == job).expect("it starts").placement.clone()
}

/// HPC-F-35, HPC-F-36, X-5 verdict 2: resources kept for a job are closed to others; the others continue.
#[test]
fn what_is_kept_for_a_job_is_nobody_elses() {
    let (mut cluster, [one, two, three]) = scene(queued());
    let kept = placement_of(&mut cluster, one);
    let again = cluster.now.plus_seconds(10);
    cluster.keep(one, kept.clone(), again);
    assert_eq!(started(&cluster.go()), [two, three]);
    let four = cluster.wait(cores(2, 2).priority(ABOVE_NORMAL));
    assert!(started(&cluster.go()).is_empty(), "not even of a higher priority");
    cluster.pass_seconds(10);
    let plan = cluster.go();
    assert_eq!(started(&plan), [one]);
    assert_eq!((&plan.starts[0].placement, plan.facts[0].count), (&kept, 4));
    assert!(!cluster.is_running(four));
}

/// HPC-F-82: a job that is asked again about resources kept for it delays nobody.
#[test]
fn who_is_asked_again_on_what_is_kept_holds_up_nobody() {
    let (mut cluster, [one, two, three]) = scene(queued());
    let kept = placement_of(&mut cluster, one);
    let now = cluster.now;
    cluster.keep(one, kept, now);
    assert_eq!(started(&cluster.plan()), [one, two, three]);
}

/// HPC-F-82: nor does anybody delay it, not even an earlier job that waits for these resources.
#[test]
fn who_is_asked_again_on_what_is_kept_waits_for_nobody() {
    for mode in [BackfillMode::None, BackfillMode::Easy] {
        let backfill = Backfill { mode, ..Backfill::default() };
        let mut cluster = Cluster::with_backfill(4, 2, SchedulingSettings::default(), backfill);
        let one = cluster.wait(cores(2, 4).minutes(5).filtered());
        let kept = placement_of(&mut cluster, one);
        let again = cluster.now.plus_seconds(10);
        cluster.keep(one, kept, again);
        let all = cluster.wait(cores(8, 8).priority(ABOVE_NORMAL));
        assert!(!started(&cluster.plan()).contains(&one), "{mode:?}: it may not be asked yet");
        cluster.pass_seconds(10);
        let starts = started(&cluster.plan());
        assert!(starts.contains(&one) && !starts.contains(&all), "{mode:?}: {starts:?}");
    }
}

/// HPC-F-35: in queued mode more is kept as it becomes free, up to the job's maximum.
#[test]
fn more_is_kept_as_it_becomes_free() {
    let mut cluster = Cluster::new(3, 2, queued());
    let run = cluster.wait(cores(4, 4));
    cluster.settle();
    let filtered = cluster.wait(cores(2, 4).filtered());
    let other = cluster.wait(cores(2, 2));
    let kept = placement_of(&mut cluster, filtered);
    assert_eq!(units(SizeUnit::Core, &kept), 2);
    let again = cluster.now.plus_seconds(10);
    cluster.keep(filtered, kept.clone(), again);
    assert!(cluster.go().reserved.is_empty());
    cluster.end(run);
    let plan = cluster.plan();
    let [reserved] = &plan.reserved[..] else { panic!("{:?}", plan.reserved) };
    assert_eq!((reserved.job, units(SizeUnit::Core, &reserved.placement)), (filtered, 4));
    assert!(kept.shares().all(|share| reserved.placement.shares().any(|more| more == share)));
    assert_eq!(started(&plan), [other], "what is left goes to others in the same pass");
    cluster.pass_seconds(10);
    let plan = cluster.plan();
    assert_eq!(
        (started(&plan)[0], plan.facts[0].count),
        (filtered, 4),
        "or it is offered at once when it is asked again"
    );
}

/// HPC-F-30, HPC-F-35: in balanced mode the minimum is offered and kept.
#[test]
fn in_balanced_mode_the_least_is_offered_and_kept() {
    let (mut cluster, [one, ..]) = scene(balanced());
    let plan = cluster.plan();
    assert_eq!((started(&plan)[0], plan.facts[0].count), (one, 2));
    let again = cluster.now.plus_seconds(10);
    cluster.keep(one, plan.starts[0].placement.clone(), again);
    assert!(cluster.plan().reserved.is_empty());
}

/// HPC-F-37, HPC-F-82: attempts at backfill delay nobody; a job that must not be asked yet is passed over.
#[test]
fn backfill_attempts_hold_up_nobody() {
    let mut cluster = Cluster::new(4, 2, queued());
    cluster.wait(nodes(1, 1).minutes(20));
    cluster.settle();
    let top = cluster.wait(nodes(4, 4));
    let one = cluster.wait(cores(2, 2).minutes(10).filtered());
    let two = cluster.wait(cores(2, 2).minutes(10).filtered());
    let plan = cluster.plan();
    assert_eq!(started(&plan), [one, two]);
    assert!(plan.facts.iter().all(|facts| facts.backfill));
    cluster.wait_with(one, asked_again(10, &cluster));
    assert_eq!(started(&cluster.plan()), [two]);
    assert!(!cluster.is_running(top));
}

/// HPC-B-14: kept resources have no known end, so they open no window.
#[test]
fn what_is_kept_opens_no_window() {
    let mut cluster = Cluster::new(2, 2, queued());
    let filtered = cluster.wait(cores(2, 2).filtered());
    let kept = placement_of(&mut cluster, filtered);
    let again = cluster.now.plus_seconds(10);
    cluster.keep(filtered, kept, again);
    cluster.wait(nodes(2, 2).minutes(10));
    cluster.wait(cores(1, 1).minutes(1));
    assert!(started(&cluster.go()).is_empty());
}

/// HPC-B-02, HPC-F-61: a job being asked has its place, and counts among those after the first.
#[test]
fn who_is_being_asked_has_his_place_in_the_queue() {
    let settings = SchedulingSettings { backfill_look_ahead: Some(2), ..queued() };
    let mut cluster = Cluster::new(4, 2, settings);
    cluster.wait(nodes(1, 1).minutes(20));
    cluster.settle();
    cluster.wait(nodes(4, 4));
    let asked = cluster.wait(cores(1, 1).minutes(1).filtered());
    cluster.wait_with(asked, pending(false));
    let second = cluster.wait(cores(1, 1).minutes(1));
    cluster.wait(cores(1, 1).minutes(2));
    let plan = cluster.plan();
    assert_eq!((started(&plan), plan.facts[0].index), (vec![second], 3));
    cluster.wait_with(asked, None);
    assert_eq!(started(&cluster.plan()), [asked, second]);
}

/// Without a mode filters hold back, block and keep in the same way (HPC-F-31, HPC-F-35, HPC-F-82).
#[test]
fn filters_count_without_a_mode() {
    let (mut cluster, [one, two, three]) = scene(SchedulingSettings::default());
    assert_eq!(started(&cluster.plan()), [one]);
    let kept = placement_of(&mut cluster, one);
    cluster.wait_with(one, pending(true));
    assert!(started(&cluster.plan()).is_empty());
    cluster.wait_with(one, asked_again(10, &cluster));
    cluster.engine.set_queue_block(Some((one, 1000)));
    assert_eq!(started(&cluster.plan()), [two]);
    cluster.engine.set_queue_block(None);
    let again = cluster.now.plus_seconds(10);
    cluster.keep(one, kept, again);
    assert_eq!(started(&cluster.plan()), [two, three]);
    cluster.pass_seconds(10);
    assert_eq!(started(&cluster.plan()), [one, two, three]);
}
