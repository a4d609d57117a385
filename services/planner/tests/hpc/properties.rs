//! Properties of every history of a cluster in a mode.

use crate::driver::{Cluster, Job, balanced, cores, nodes, queued, started};
use muster_planner::{model::Activation, pass::Plan};
use muster_schemas::{
    JobId, Timestamp,
    scheduling::{Preemption, SchedulingSettings},
    tasks::SizeUnit,
};
use proptest::{prelude::*, sample::select};
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
enum Step {
    Wait(Job),
    End(prop::sample::Index),
    Minutes(i64),
    Work(prop::sample::Index, u32),
}

prop_compose! {
    fn jobs()(
        of_nodes in prop::bool::weighted(0.3),
        min in 1_u32..4,
        more in 0_u32..4,
        minutes in prop::option::weighted(0.8, 1_u64..40),
        priority in select(vec![1000_i64, 2000, 2000, 3000]),
        group in select(vec![None, None, Some("a"), Some("b")]),
        work in 0_u32..4,
    ) -> Job {
        let job = if of_nodes { nodes(min, min + more) } else { cores(min, min + more) };
        Job { minutes, priority, group, work, ..job }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let index = any::<prop::sample::Index>;
    let step = prop_oneof![
        5 => jobs().prop_map(Step::Wait),
        2 => index().prop_map(Step::End),
        3 => (1_i64..20).prop_map(Step::Minutes),
        1 => (index(), 0_u32..5).prop_map(|(job, work)| Step::Work(job, work)),
    ];
    prop::collection::vec(step, 1..25)
}

fn modes() -> impl Strategy<Value = SchedulingSettings> {
    let preemption = select(vec![Preemption::None, Preemption::Graceful, Preemption::Immediate]);
    (any::<bool>(), preemption, select(vec![-1_i64, 0, 2, 1000])).prop_map(|(is_queued, preemption, look_ahead)| {
        SchedulingSettings {
            preemption: Some(preemption),
            balanced_preemption: Some(preemption),
            backfill_look_ahead: Some(look_ahead),
            ..if is_queued { queued() } else { balanced() }
        }
    })
}

fn happen(cluster: &mut Cluster, step: &Step) {
    let pick = |cluster: &Cluster, at: &prop::sample::Index| {
        let running = cluster.running();
        (!running.is_empty()).then(|| running[at.index(running.len())])
    };
    match step {
        Step::Wait(job) => {
            cluster.wait(job.clone());
        }
        Step::End(at) => {
            if let Some(job) = pick(cluster, at) {
                cluster.end(job);
            }
        }
        Step::Minutes(minutes) => {
            cluster.pass_minutes(*minutes);
            cluster.end_all_due();
        }
        Step::Work(at, work) => {
            if let Some(job) = pick(cluster, at) {
                cluster.change_elastic(job, |run| run.size.wanted = *work);
            }
        }
    }
}

/// When a job starts if runs end by their walltimes.
fn start_in_turn(cluster: &Cluster, job: JobId) -> Option<Timestamp> {
    let mut ahead = cluster.clone();
    for _ in 0..200 {
        ahead.go();
        if ahead.is_running(job) {
            return Some(ahead.now);
        }
        let next = ahead.running().iter().map(|id| ahead.run(*id).expected_end).min()?;
        if next >= Timestamp::MAX {
            return None;
        }
        ahead.now = next;
        ahead.end_all_due();
    }
    None
}

/// When a job could start if it waited alone.
fn start_alone(cluster: &Cluster, job: JobId) -> Option<Timestamp> {
    let mut alone = cluster.clone();
    cluster.waiting().into_iter().filter(|other| *other != job).for_each(|other| alone.engine.dequeue(other));
    start_in_turn(&alone, job)
}

/// The first of those that wait for the same nodes, or for overlapping ones.
struct Top {
    job: JobId,
    /// The groups with nodes that it or those behind it could use.
    groups: BTreeSet<&'static str>,
    /// When it can start.
    start: Option<Timestamp>,
}

/// Whether the cluster has the nodes or cores of a job's minimum. A job that never fits keeps nobody from starting.
fn may_ever_start(job: &Job) -> bool {
    let nodes = if job.group.is_some() { 2 } else { 4 };
    job.min <= if job.unit == SizeUnit::Node { nodes } else { 2 * nodes }
}

/// Plans, carries out the plan, and checks that it keeps to the order. A job behind another starts before it only by
/// backfill, even on nodes that the other cannot use. So no start is foreseen for it that could be delayed, but a job
/// that overtakes both must be over when the first of them starts.
fn go_in_order(cluster: &mut Cluster) -> Plan {
    let plan = cluster.plan();
    let around: BTreeSet<JobId> = plan.facts.iter().filter(|facts| facts.backfill).map(|facts| facts.job).collect();
    // The state at the turn of a job: those before it have started.
    let mut at_turn = cluster.clone();
    let mut queue = cluster.waiting();
    queue.sort_by_key(|job| cluster.place(*job));
    let mut tops: Vec<Top> = Vec::new();
    for id in queue {
        let job = cluster.job(id);
        let groups: BTreeSet<&str> = job.group.map_or_else(|| ["a", "b"].into(), |group| [group].into());
        let mut ahead: Vec<&mut Top> = tops.iter_mut().filter(|top| !top.groups.is_disjoint(&groups)).collect();
        if let Some(start) = plan.starts.iter().find(|start| start.job == id) {
            assert_eq!(around.contains(&id), !ahead.is_empty(), "whether {id} goes around somebody");
            for top in ahead {
                let end =
                    job.minutes.map(|minutes| cluster.now.plus_seconds(60 * i64::try_from(minutes).expect("few")));
                let is_over = end.zip(top.start).is_some_and(|(end, start)| end <= start);
                assert!(is_over, "{id} ends {end:?}, {} starts {:?}", top.job, top.start);
            }
            at_turn.commit(&Plan { starts: vec![start.clone()], ..Plan::default() });
        } else if !ahead.is_empty() {
            ahead.iter_mut().for_each(|top| top.groups.extend(&groups));
        } else if may_ever_start(job) {
            let start = if around.is_empty() { None } else { start_alone(&at_turn, id) };
            tops.push(Top { job: id, groups, start });
        }
    }
    cluster.commit(&plan);
    for top in tops.iter().filter(|top| top.start.is_some()) {
        let now = start_alone(cluster, top.job);
        assert!(now.is_some() && now <= top.start, "{}: {:?}, now {now:?}", top.job, top.start);
    }
    plan
}

/// Nobody takes anything from waiting or running jobs.
fn plain() -> SchedulingSettings {
    SchedulingSettings { preemption: Some(Preemption::None), growth: Some(false), ..queued() }
}

/// HPC-S-04, HPC-B-10: the second waiting job could use free resources beside the nodes that the first waits for, and
/// alone it would start earlier than the first. It still waits for the first, so that a job which is over by then
/// does not delay it.
#[test]
fn who_goes_around_two_is_over_when_the_first_of_them_starts() {
    let mut cluster = Cluster::new(4, 2, plain());
    let in_a = cluster.wait(cores(4, 4).group("a").minutes(30));
    let in_b = cluster.wait(cores(1, 1).group("b").minutes(1));
    assert_eq!(cluster.settle(), [in_a, in_b]);
    let first = cluster.wait(cores(1, 1).group("a"));
    let second = cluster.wait(nodes(2, 2));
    let foreseen = Some(cluster.run(in_a).expected_end);
    assert_eq!(start_alone(&cluster, second), Some(cluster.run(in_b).expected_end));
    assert_eq!([first, second].map(|job| start_in_turn(&cluster, job)), [foreseen; 2]);
    let too_long = cluster.wait(cores(1, 1).group("b").minutes(31));
    let around = cluster.wait(cores(1, 1).group("b").minutes(2));
    assert_eq!(started(&go_in_order(&mut cluster)), [around]);
    assert_eq!([first, second].map(|job| start_in_turn(&cluster, job)), [foreseen; 2]);
    assert!(!cluster.is_running(too_long));
}

proptest! {
    // An engine that is wrong by a minute delays the first in one of a thousand of these histories.
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// HPC-S-05, HPC-B-05, HPC-B-07, HPC-B-10: no backfilled job delays the first one.
    #[test]
    fn who_goes_around_the_first_does_not_delay_it(steps in steps()) {
        let mut cluster = Cluster::new(4, 2, plain());
        for step in &steps {
            happen(&mut cluster, step);
            go_in_order(&mut cluster);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Nothing is given twice (the driver checks), no job has more than its maximum or starts with less than its
    /// minimum, and equal inputs give equal plans (the driver plans three times).
    #[test]
    fn never_more_than_there_is(settings in modes(), steps in steps()) {
        let mut cluster = Cluster::new(4, 2, settings);
        for step in &steps {
            happen(&mut cluster, step);
            for _ in 0..3 {
                let plan = cluster.go();
                for start in &plan.starts {
                    let job = cluster.job(start.job);
                    prop_assert!((job.min..=job.max).contains(&cluster.size(start.job)), "{:?}", start);
                }
                for growth in &plan.growths {
                    prop_assert!(cluster.size(growth.job) <= cluster.job(growth.job).max, "{growth:?}");
                }
            }
        }
    }

    /// HPC-F-31, HPC-F-82, HPC-F-35: a priority that is blocked or held back never starts, and kept resources are
    /// closed to others.
    #[test]
    fn a_blocked_priority_never_starts(
        settings in modes(),
        steps in steps(),
        blocked in select(vec![1000_i64, 2000, 3000]),
        by_block in any::<bool>(),
    ) {
        let mut cluster = Cluster::new(4, 2, settings);
        let holder = cluster.wait(cores(1, 2).priority(blocked));
        if by_block {
            cluster.engine.set_queue_block(Some((holder, blocked)));
        }
        let pending = Activation { is_filtered: true, is_pending: true, holds_back: !by_block, ..Activation::default() };
        cluster.wait_with(holder, Some(pending));
        for step in &steps {
            happen(&mut cluster, step);
            let plan = cluster.go();
            for start in &plan.starts {
                prop_assert!(cluster.job(start.job).priority > blocked, "{start:?}");
            }
        }
    }
}
