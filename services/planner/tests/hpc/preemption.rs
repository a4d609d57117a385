//! Which jobs make way for which.

use crate::driver::{ABOVE_NORMAL, BELOW_NORMAL, Cluster, NORMAL, cores, queued, started, units};
use muster_schemas::{
    JobId,
    event::ShrinkReason,
    policy::{OrderKey, Policy},
    scheduling::{Preemption, SchedulingSettings},
    tasks::SizeUnit,
};

fn with(preemption: Preemption) -> SchedulingSettings {
    SchedulingSettings { preemption: Some(preemption), ..queued() }
}

/// Four dual-core nodes with three runs: two cores of a normal job, two and four of jobs below normal.
fn full(settings: SchedulingSettings) -> (Cluster, [JobId; 3]) {
    let mut cluster = Cluster::new(4, 2, settings);
    let normal = cluster.wait(cores(2, 2).priority(NORMAL));
    cluster.go();
    cluster.pass_seconds(1);
    let early = cluster.wait(cores(2, 2).priority(BELOW_NORMAL));
    cluster.go();
    cluster.pass_seconds(1);
    let late = cluster.wait(cores(2, 4).priority(BELOW_NORMAL));
    cluster.go();
    assert_eq!(cluster.running().len(), 3);
    (cluster, [normal, early, late])
}

/// HPC-S-12: lowest priority first, among these the last to start, and no more than needed.
#[test]
fn the_least_important_that_started_last_makes_way() {
    let (mut cluster, [_, early, late]) = full(with(Preemption::Immediate));
    let high = cluster.wait(cores(2, 2).priority(ABOVE_NORMAL));
    let plan = cluster.plan();
    let [preemption] = &plan.preemptions[..] else { panic!("{:?}", plan.preemptions) };
    assert_eq!((preemption.for_job, &preemption.victims[..]), (high, &[late][..]));
    assert_eq!((preemption.index, preemption.count), (1, 2));
    cluster.commit(&plan);
    assert_eq!(started(&cluster.go())[0], high);
    let (mut cluster, [normal, ..]) = full(with(Preemption::Immediate));
    let larger = cluster.wait(cores(6, 6).priority(ABOVE_NORMAL));
    let plan = cluster.plan();
    assert_eq!((plan.preemptions[0].for_job, plan.preemptions[0].victims.len()), (larger, 2));
    assert!(plan.preemptions[0].victims.contains(&early) && !plan.preemptions[0].victims.contains(&normal));
}

/// HPC-S-12, HPC-S-13: if the queue is not in the order of priorities, a preempted job could stand ahead of the job
/// that it made way for, and take its place again.
#[test]
fn nobody_makes_way_who_would_stand_ahead_again() {
    for (order, makes_way) in [
        (vec![OrderKey::Priority], true),
        (vec![OrderKey::QueuePriority, OrderKey::Priority, OrderKey::Fcfs], true),
        (vec![OrderKey::Spt], false),
        (vec![OrderKey::Spt, OrderKey::Priority], false),
        (Vec::new(), false),
    ] {
        let policy = Policy { order: order.clone(), ..Policy::default() };
        let mut cluster = Cluster::with_policy(1, 2, with(Preemption::Immediate), policy);
        cluster.wait(cores(2, 2).priority(NORMAL).minutes(1));
        cluster.go();
        cluster.wait(cores(2, 2).priority(ABOVE_NORMAL).minutes(2));
        assert_eq!(!cluster.plan().preemptions.is_empty(), makes_way, "{order:?}");
    }
}

/// HPC-S-12, HPC-B-05: it has been asked to make way, so nobody knows how soon the first can start.
#[test]
fn nobody_goes_around_a_job_that_others_make_way_for() {
    for (preemption, is_around) in [(Preemption::Graceful, false), (Preemption::None, true)] {
        let mut cluster = Cluster::new(2, 2, with(preemption));
        cluster.wait(cores(2, 2).priority(BELOW_NORMAL).minutes(30));
        cluster.go();
        cluster.wait(cores(4, 4).priority(ABOVE_NORMAL).minutes(5));
        let short = cluster.wait(cores(1, 1).priority(NORMAL).minutes(1));
        let plan = cluster.plan();
        assert_eq!((plan.preemptions.is_empty(), started(&plan).contains(&short)), (is_around, is_around));
    }
}

/// HPC-S-12.
#[test]
fn nobody_makes_way_for_equals_or_if_he_may_not_be_stopped_or_it_is_off() {
    let (mut cluster, _) = full(with(Preemption::Immediate));
    cluster.wait(cores(2, 2).priority(BELOW_NORMAL));
    assert!(cluster.plan().preemptions.is_empty());
    let (mut cluster, jobs) = full(with(Preemption::Immediate));
    cluster.wait(cores(2, 2).priority(ABOVE_NORMAL));
    for job in jobs {
        cluster.change_elastic(job, |run| run.size.preemptable = false);
    }
    assert!(cluster.plan().preemptions.is_empty());
    let (mut cluster, _) = full(with(Preemption::None));
    cluster.wait(cores(2, 2).priority(ABOVE_NORMAL));
    assert!(cluster.plan().preemptions.is_empty());
}

/// Nobody makes way for a job that would not start even then.
#[test]
fn nobody_makes_way_in_vain() {
    let (mut cluster, _) = full(with(Preemption::Immediate));
    cluster.wait(cores(8, 8).priority(ABOVE_NORMAL));
    assert_eq!(cluster.plan().preemptions.len(), 1);
    let (mut cluster, [normal, ..]) = full(with(Preemption::Immediate));
    cluster.change_elastic(normal, |run| run.size.preemptable = false);
    cluster.wait(cores(8, 8).priority(ABOVE_NORMAL));
    assert!(cluster.plan().preemptions.is_empty());
}

/// HPC-S-12: a graceful preemption claims the resources needed.
#[test]
fn a_graceful_preemption_claims_what_is_needed() {
    let (mut cluster, [.., late]) = full(with(Preemption::Graceful));
    cluster.wait(cores(1, 1).priority(ABOVE_NORMAL));
    let plan = cluster.plan();
    let [preemption] = &plan.preemptions[..] else { panic!("{:?}", plan.preemptions) };
    assert_eq!(preemption.victims, [late]);
    assert_eq!(units(SizeUnit::Core, &preemption.claims[0]), 1);
}

/// While claimed resources are being released no further job makes way, and nobody is backfilled.
#[test]
fn nobody_else_makes_way_while_what_was_claimed_is_given_up() {
    let (mut cluster, [.., late]) = full(with(Preemption::Graceful));
    cluster.wait(cores(2, 2).priority(ABOVE_NORMAL));
    let claim = cluster.plan().preemptions[0].claims[0].clone();
    cluster.change_elastic(late, |run| run.shrinking = Some(claim.into()));
    assert!(cluster.plan().preemptions.is_empty());
    cluster.change_elastic(late, |run| (run.shrinking, run.is_leaving) = (None, true));
    assert!(cluster.plan().preemptions.is_empty());
}

/// HPC-S-14: only as many tasks as needed are stopped, if the job keeps its minimum.
#[test]
fn only_tasks_are_stopped_if_that_is_enough() {
    let settings = SchedulingSettings { task_preemption: Some(true), ..with(Preemption::Immediate) };
    let (mut cluster, [.., late]) = full(settings.clone());
    let high = cluster.wait(cores(2, 2).priority(ABOVE_NORMAL));
    let plan = cluster.go();
    assert!(plan.preemptions.is_empty());
    let [shrink] = &plan.shrinks[..] else { panic!("{:?}", plan.shrinks) };
    assert_eq!((shrink.job, shrink.reason), (late, ShrinkReason::TasksPreempted));
    assert_eq!((cluster.size(late), started(&cluster.go())), (2, vec![high]));
    let (mut cluster, _) = full(settings);
    cluster.wait(cores(3, 3).priority(ABOVE_NORMAL));
    let plan = cluster.plan();
    assert_eq!((plan.preemptions.len(), plan.shrinks.len()), (1, 0), "it would fall below its least");
}

/// HPC-S-14.
#[test]
fn a_running_job_grows_by_preemption_only_if_that_is_wanted() {
    let wants = |cluster: &mut Cluster, job: JobId| {
        cluster.change_elastic(job, |run| (run.size.wanted, run.size.max) = (3, 8));
    };
    let (mut cluster, [normal, ..]) = full(with(Preemption::Immediate));
    wants(&mut cluster, normal);
    assert!(cluster.plan().shrinks.is_empty());
    let settings = SchedulingSettings { growth_by_preemption: Some(true), ..with(Preemption::Immediate) };
    let (mut cluster, [normal, _, late]) = full(settings);
    wants(&mut cluster, normal);
    let plan = cluster.go();
    let [shrink] = &plan.shrinks[..] else { panic!("{:?}", plan.shrinks) };
    assert_eq!((shrink.job, shrink.reason), (late, ShrinkReason::TasksPreempted));
    assert_eq!(units(SizeUnit::Core, &shrink.removed), 2, "it keeps its least");
    assert_eq!(cluster.go().growths[0].count, 2);
}

/// HPC-S-15: nobody is stopped before the filters of the gaining job have passed, and others wait for their answer.
#[test]
fn the_filters_of_who_gains_are_asked_first() {
    let settings = SchedulingSettings { task_preemption: Some(true), ..with(Preemption::Immediate) };
    let (mut cluster, [.., late]) = full(settings);
    let high = cluster.wait(cores(2, 2).priority(ABOVE_NORMAL).filtered());
    let plan = cluster.plan();
    assert!(plan.shrinks.is_empty() && plan.starts.is_empty());
    assert_eq!((plan.preemptions[0].for_job, &plan.preemptions[0].victims[..]), (high, &[late][..]));
}

/// A job does not get resources that it could be made to give up while a job of higher priority waits for room.
#[test]
fn what_a_job_gave_up_does_not_come_back_to_it() {
    let mut cluster = Cluster::new(2, 2, with(Preemption::Graceful));
    let low = cluster.wait(cores(1, 2).priority(BELOW_NORMAL));
    cluster.go();
    cluster.change_elastic(low, |run| (run.size.wanted, run.size.max) = (8, 4));
    let high = cluster.wait(cores(3, 3).priority(ABOVE_NORMAL));
    let plan = cluster.plan();
    assert!(plan.growths.is_empty());
    assert_eq!(plan.preemptions[0].for_job, high);
    // A job of the same priority does not keep it from growing.
    let mut cluster = Cluster::new(2, 2, with(Preemption::Graceful));
    let run = cluster.wait(cores(1, 2));
    cluster.go();
    cluster.change_elastic(run, |run| (run.size.wanted, run.size.max) = (8, 4));
    cluster.wait(cores(3, 3));
    assert_eq!(cluster.plan().growths.len(), 1);
}
