//! What holds for every history of a cluster in a mode.

use crate::driver::{Cluster, Job, balanced, cores, nodes, queued};
use muster_planner::model::Activation;
use muster_schemas::{
    JobId, Timestamp,
    scheduling::{Preemption, SchedulingSettings},
};
use proptest::{prelude::*, sample::select};

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

/// When a job alone could start as runs end by their walltimes: it is let wait with nobody else there.
fn start_alone(cluster: &Cluster, others: &[JobId], job: JobId) -> Option<Timestamp> {
    let mut alone = cluster.clone();
    others.iter().filter(|other| **other != job).for_each(|other| alone.engine.dequeue(*other));
    alone.set(SchedulingSettings { preemption: Some(Preemption::None), growth: Some(false), ..queued() });
    for _ in 0..200 {
        let plan = alone.plan();
        if plan.starts.iter().any(|start| start.job == job) {
            return Some(alone.now);
        }
        let next = alone.running().iter().map(|id| alone.run(*id).expected_end).min()?;
        if next >= Timestamp::MAX {
            return None;
        }
        alone.now = next;
        alone.end_all_due();
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Nothing is given twice (the driver looks), nobody has more than his greatest or starts with less than his least, and
    /// equal inputs give equal plans (the driver plans three times).
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

    /// HPC-B-10: nobody that goes around the first makes it start later.
    #[test]
    fn who_goes_around_the_first_does_not_delay_it(steps in steps()) {
        let none = SchedulingSettings { preemption: Some(Preemption::None), growth: Some(false), ..queued() };
        let mut cluster = Cluster::new(4, 2, none);
        for step in &steps {
            happen(&mut cluster, step);
            let plan = cluster.plan();
            let Some(facts) = plan.facts.iter().find(|facts| facts.backfill) else {
                cluster.commit(&plan);
                continue;
            };
            let normal: Vec<JobId> =
                plan.facts.iter().filter(|facts| facts.backfill).map(|facts| facts.job).collect();
            let mut before = cluster.clone();
            let mut straight = plan.clone();
            straight.starts.retain(|start| !normal.contains(&start.job));
            before.commit(&straight);
            let waiting = before.waiting();
            // The first job that waits in front of the one that goes around it.
            let ahead = waiting.iter().copied().filter(|job| before.is_ahead(*job, facts.job));
            let first = ahead.min_by_key(|job| before.place(*job)).expect("it goes around somebody");
            let foreseen = start_alone(&before, &waiting, first);
            cluster.commit(&plan);
            let waiting = cluster.waiting();
            let now = start_alone(&cluster, &waiting, first);
            prop_assert!(foreseen.is_none() || now <= foreseen && now.is_some(), "{first}: {foreseen:?}, now {now:?}");
        }
    }

    /// HPC-F-31, HPC-F-82, HPC-F-35: a priority that is blocked or held back never starts, and what is kept is nobody's.
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
