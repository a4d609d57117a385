//! Without a scheduling mode: lists of tasks behave among themselves as in queued mode, and jobs of other kinds do not notice.

use crate::driver::{ABOVE_NORMAL, BELOW_NORMAL, Cluster, Job, NORMAL, cores, queued, started};
use muster_planner::pass::Plan;
use muster_schemas::{
    JobId, Timestamp,
    event::ShrinkReason,
    filter::ActivationOrdering,
    job::WaitReason,
    policy::{Backfill, BackfillMode},
    scheduling::{Preemption, SchedulingSettings},
};
use proptest::{prelude::*, sample::select};

fn easy() -> Backfill {
    Backfill { mode: BackfillMode::Easy, ..Backfill::default() }
}

fn new_cluster(nodes: u32) -> Cluster {
    Cluster::with_backfill(nodes, 2, SchedulingSettings::default(), easy())
}

fn starts_at(plan: &Plan, job: JobId) -> Option<Timestamp> {
    plan.reasons.iter().find_map(|told| match told.reason {
        WaitReason::Reserved { start } if told.job == job => Some(start),
        _ => None,
    })
}

/// HPC-S-01, HPC-S-09, HPC-S-10
#[test]
fn a_list_grows_into_what_nobody_needs_and_gives_up_what_it_does_not() {
    let mut cluster = new_cluster(2);
    let other = cluster.wait(cores(3, 3).plain());
    let list = cluster.wait(cores(1, 4).work(3));
    cluster.settle();
    assert_eq!(cluster.size(list), 1);
    cluster.end(other);
    cluster.settle();
    assert_eq!(cluster.size(list), 4);
    cluster.change_elastic(list, |run| (run.size.wanted, run.size.idle) = (0, 2));
    let plan = cluster.go();
    assert_eq!(plan.shrinks.iter().map(|shrink| shrink.reason).collect::<Vec<_>>(), [ShrinkReason::Idle]);
    assert_eq!(cluster.size(list), 2);
    for off in [
        SchedulingSettings { growth: Some(false), ..SchedulingSettings::default() },
        SchedulingSettings { shrink: Some(false), ..SchedulingSettings::default() },
    ] {
        cluster.change_elastic(list, |run| run.size.wanted = if off.growth.is_some() { 2 } else { 0 });
        cluster.change_elastic(list, |run| run.size.idle = u32::from(off.growth.is_none()));
        cluster.set(off);
        let plan = cluster.plan();
        assert!(plan.growths.is_empty() && plan.shrinks.is_empty(), "{plan:?}");
    }
}

/// HPC-S-01: growth comes after the promises of others, and after jobs without a known start.
#[test]
fn a_list_does_not_grow_into_what_a_waiting_job_is_promised() {
    for (minutes, walltime_of_other, grows) in [(30, Some(10), false), (10, Some(10), true), (30, None, false)] {
        let mut cluster = new_cluster(2);
        let other = cluster.wait(Job { minutes: walltime_of_other, ..cores(2, 2).plain() });
        let small = cluster.wait(cores(1, 1).plain().minutes(1));
        let list = cluster.wait(cores(1, 4).work(3).minutes(minutes));
        cluster.settle();
        assert_eq!(cluster.size(list), 1);
        let waiting = cluster.wait(cores(3, 3).plain().minutes(5).priority(BELOW_NORMAL));
        let before = starts_at(&cluster.go(), waiting);
        cluster.end(small);
        cluster.settle();
        assert_eq!(cluster.size(list) > 1, grows, "{minutes} {walltime_of_other:?}");
        assert_eq!(starts_at(&cluster.plan(), waiting), before);
        cluster.end(other);
        cluster.settle();
        assert_eq!(cluster.is_running(waiting), !grows);
    }
}

/// HPC-S-01: jobs held back by an outstanding verdict neither start nor grow.
#[test]
fn a_list_that_is_held_back_does_not_grow() {
    let mut cluster = new_cluster(2);
    let other = cluster.wait(cores(3, 3).plain());
    let list = cluster.wait(cores(1, 4).work(3));
    cluster.settle();
    cluster.end(other);
    cluster.engine.set_ordering(ActivationOrdering::Relaxed);
    let asked = cluster.wait(cores(1, 1).filtered().priority(ABOVE_NORMAL));
    cluster.engine.set_queue_block(Some((asked, ABOVE_NORMAL)));
    assert!(cluster.plan().growths.is_empty());
    cluster.engine.set_queue_block(Some((asked, BELOW_NORMAL)));
    assert_eq!(cluster.plan().growths.iter().map(|growth| growth.job).collect::<Vec<_>>(), [list]);
}

/// HPC-S-01, HPC-S-12: lists of tasks make way for one another, and for no other jobs; jobs of other kinds make
/// way for nobody.
#[test]
fn only_lists_make_way_and_only_for_lists() {
    for (is_victim_list, is_gainer_list) in [(true, true), (true, false), (false, true)] {
        let kind = |job: Job, is_list| if is_list { job } else { job.plain() };
        let mut cluster = new_cluster(2);
        let low = cluster.wait(kind(cores(2, 4).priority(BELOW_NORMAL).minutes(60), is_victim_list));
        cluster.go();
        let high = cluster.wait(kind(cores(2, 2).priority(ABOVE_NORMAL).minutes(5), is_gainer_list));
        let plan = cluster.plan();
        let victims: Vec<JobId> = plan.preemptions.iter().flat_map(|one| one.victims.clone()).collect();
        let expected = if is_victim_list && is_gainer_list { vec![low] } else { vec![] };
        assert_eq!(victims, expected, "{is_victim_list} {is_gainer_list}");
        assert!(plan.shrinks.is_empty());
        let promised = starts_at(&plan, high).expect("it is promised something in any case");
        assert_eq!(promised, cluster.now.plus_seconds(3600), "as far as walltimes say");
        cluster.set(SchedulingSettings { preemption: Some(Preemption::None), ..SchedulingSettings::default() });
        assert!(cluster.plan().preemptions.is_empty());
    }
}

/// HPC-S-01: lists do not give up resources that would go to an earlier waiting job.
#[test]
fn nobody_makes_way_for_a_list_behind_another_job_that_waits() {
    let mut cluster = new_cluster(2);
    cluster.wait(cores(2, 4).priority(BELOW_NORMAL).minutes(60));
    cluster.go();
    cluster.wait(cores(3, 3).plain().priority(ABOVE_NORMAL + 1).minutes(5));
    cluster.wait(cores(1, 1).priority(ABOVE_NORMAL).minutes(5));
    assert!(cluster.plan().preemptions.is_empty());
}

/// HPC-S-01, HPC-S-04: idle and given-up resources are kept for the list they are meant for, and no more than that.
#[test]
fn nobody_goes_around_on_what_a_list_is_to_have() {
    for (preemption, starts) in [(Preemption::Graceful, false), (Preemption::None, true)] {
        let settings = SchedulingSettings { preemption: Some(preemption), ..SchedulingSettings::default() };
        let mut cluster = Cluster::with_backfill(2, 2, settings, easy());
        let low = cluster.wait(cores(2, 3).priority(BELOW_NORMAL).minutes(60));
        cluster.go();
        let high = cluster.wait(cores(2, 2).priority(ABOVE_NORMAL).minutes(5));
        let small = cluster.wait(cores(1, 1).plain().minutes(1).priority(BELOW_NORMAL));
        let plan = cluster.plan();
        assert_eq!(started(&plan).contains(&small), starts, "{preemption:?}");
        if preemption != Preemption::Graceful {
            continue;
        }
        // A unit is on its way: no more is claimed, and nobody is backfilled.
        let removed = plan.preemptions[0].claims[0].clone();
        cluster.change_elastic(low, |run| run.shrinking = Some(removed.into()));
        let plan = cluster.plan();
        assert!(plan.preemptions.is_empty() && plan.starts.is_empty(), "{plan:?}");
        let another = cluster.wait(cores(1, 1).plain().minutes(1).priority(BELOW_NORMAL));
        assert!(!started(&cluster.plan()).contains(&another));
        cluster.engine.dequeue(high);
        assert!(started(&cluster.plan()).contains(&small));
    }
}

/// HPC-B-12: a list that is backfilled is marked and does not grow; a job of another kind is not marked.
#[test]
fn a_list_that_goes_around_is_marked() {
    let mut cluster = new_cluster(2);
    cluster.wait(cores(2, 2).plain().minutes(30));
    cluster.settle();
    cluster.wait(cores(4, 4).plain().minutes(5));
    let list = cluster.wait(cores(1, 1).minutes(5));
    let other = cluster.wait(cores(1, 1).plain().minutes(5));
    let plan = cluster.plan();
    assert_eq!(started(&plan), [list, other]);
    let marked: Vec<JobId> = plan.facts.iter().filter(|facts| facts.backfill).map(|facts| facts.job).collect();
    assert_eq!(marked, [list]);
}

/// HPC-S-12, HPC-S-14: the configured kind of preemption applies between lists; growth by preemption needs a mode.
#[test]
fn lists_grow_by_preemption_in_a_mode_only() {
    for (base, takes) in [(SchedulingSettings::default(), false), (queued(), true)] {
        let settings = SchedulingSettings { growth_by_preemption: Some(true), ..base };
        let mut cluster = Cluster::with_backfill(2, 2, settings, easy());
        cluster.wait(cores(1, 3).priority(BELOW_NORMAL).minutes(60));
        cluster.go();
        cluster.wait(cores(1, 4).work(3).priority(ABOVE_NORMAL).minutes(60));
        cluster.go();
        assert_eq!(!cluster.plan().shrinks.is_empty(), takes);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Wait(Job),
    End(prop::sample::Index),
    Minutes(i64),
    Work(prop::sample::Index, u32),
}

prop_compose! {
    fn jobs()(
        is_list in any::<bool>(),
        min in 1_u32..4,
        more in 0_u32..4,
        minutes in prop::option::weighted(0.8, 1_u64..40),
        priority in select(vec![BELOW_NORMAL, NORMAL, ABOVE_NORMAL]),
        group in select(vec![None, None, Some("a"), Some("b")]),
        work in 0_u32..4,
    ) -> Job {
        Job { minutes, priority, group, work, is_list, ..cores(min, min + more) }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let index = any::<prop::sample::Index>;
    let step = prop_oneof![
        5 => jobs().prop_map(Step::Wait),
        2 => index().prop_map(Step::End),
        3 => (1_i64..20).prop_map(Step::Minutes),
        2 => (index(), 0_u32..5).prop_map(|(job, work)| Step::Work(job, work)),
    ];
    prop::collection::vec(step, 1..25)
}

fn happen(cluster: &mut Cluster, step: &Step) {
    let running = cluster.running();
    match step {
        Step::Wait(job) => drop(cluster.wait(job.clone())),
        Step::Minutes(minutes) => {
            cluster.pass_minutes(*minutes);
            cluster.end_all_due();
        }
        Step::End(at) if !running.is_empty() => cluster.end(running[at.index(running.len())]),
        Step::Work(at, work) if !running.is_empty() => {
            let job = running[at.index(running.len())];
            if cluster.job(job).is_list {
                cluster.change_elastic(job, |run| run.size.wanted = *work);
            }
        }
        Step::End(_) | Step::Work(..) => {}
    }
}

proptest! {
    /// HPC-S-01: jobs of other kinds, and their promises, do not notice whether lists grow or shrink; and where lists
    /// make way for one another, nobody else does.
    #[test]
    fn other_jobs_do_not_notice(
        steps in steps(),
        mode in select(vec![BackfillMode::None, BackfillMode::Easy]),
        reservations in select(vec![None, Some(2)]),
        preemption in select(vec![Preemption::None, Preemption::Graceful, Preemption::Immediate]),
    ) {
        let backfill = Backfill { mode, reservations, ..Backfill::default() };
        let settings = SchedulingSettings { preemption: Some(preemption), ..SchedulingSettings::default() };
        let off = SchedulingSettings {
            growth: Some(false),
            shrink: Some(false),
            preemption: Some(Preemption::None),
            ..SchedulingSettings::default()
        };
        let mut cluster = Cluster::with_backfill(4, 2, settings, backfill);
        for step in steps {
            happen(&mut cluster, &step);
            let mut plain = cluster.clone();
            plain.set(off.clone());
            let (plan, without) = (cluster.plan(), plain.plan());
            let is_calm = plan.preemptions.is_empty();
            if is_calm {
                prop_assert_eq!(&plan.starts, &without.starts);
                prop_assert_eq!(&plan.reasons, &without.reasons);
            }
            for preempted in &plan.preemptions {
                prop_assert!(cluster.job(preempted.for_job).is_list);
                prop_assert!(preempted.victims.iter().all(|victim| cluster.job(*victim).is_list));
            }
            let resized = plan.growths.iter().map(|one| one.job).chain(plan.shrinks.iter().map(|one| one.job));
            for job in resized {
                prop_assert!(cluster.job(job).is_list);
            }
            // After the lists have grown, no promise is later than if they had not.
            let mut grown = cluster.clone();
            grown.commit(&plan);
            let mut kept = plain.clone();
            kept.commit(&without);
            if is_calm && plan.shrinks.is_empty() {
                grown.set(off.clone());
                let (after, before) = (grown.plan(), kept.plan());
                for waiting in kept.waiting() {
                    let (later, sooner) = (starts_at(&after, waiting), starts_at(&before, waiting));
                    prop_assert!(sooner.is_none() || later.is_some_and(|later| Some(later) <= sooner),
                        "{waiting}: {sooner:?} {later:?}");
                }
            }
            cluster.commit(&plan);
        }
    }
}
