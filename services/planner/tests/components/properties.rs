//! Properties of every cluster and every set of jobs.

use crate::{
    MINUTE, backfill_passes, pass, places, reason, some, together,
    world::{World, node, queue, user},
};
use muster_schemas::{
    JobId, Timestamp,
    command::{Command, Reply},
    job::WaitReason,
    policy::Policy,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const NODES: u32 = 6;
const QUEUES: [&str; 3] = ["left", "middle", "right"];
/// More passes than this mean no progress.
const MOST_PASSES: usize = 20_000;

/// A component: the number of nodes, and their queue.
type Part = (u32, usize);

#[derive(Clone, Debug)]
struct Case {
    /// The nodes of each queue.
    queues: Vec<BTreeSet<u32>>,
    /// For each job its minutes, its components, and the seconds since the previous submission.
    jobs: Vec<(i64, Vec<Part>, i64)>,
    policy: Policy,
}

fn policies() -> Vec<Policy> {
    let mut few = backfill_passes();
    few.backfill.reservations = None;
    let mut looking_ahead = backfill_passes();
    looking_ahead.backfill.look_ahead = Some(2);
    let built_in = |name| Policy::built_in(name).unwrap();
    vec![backfill_passes(), few, looking_ahead, built_in("fcfs"), built_in("easy"), built_in("conservative")]
}

prop_compose! {
    fn cases()(
        queues in prop::collection::vec(prop::collection::btree_set(1..=NODES, 1..=NODES as usize), QUEUES.len()),
        jobs in prop::collection::vec(
            (1_i64..30, prop::collection::vec((1_u32..=3, 0..QUEUES.len()), 1..=3), 0_i64..600),
            1..12,
        ),
        policy in prop::sample::select(policies()),
    ) -> Case {
        Case { queues, jobs, policy }
    }
}

fn world(case: &Case) -> World {
    let name = |number: u32| format!("n{number}");
    let mut queues = vec![queue("default")];
    for (known, nodes) in QUEUES.iter().zip(&case.queues) {
        let mut queue = queue(known);
        queue.nodes = nodes.iter().copied().map(name).collect();
        queues.push(queue);
    }
    World::new(&case.policy, (1..=NODES).map(|number| node(&name(number), 1, 0)).collect(), queues)
}

fn never_fits(world: &World, job: JobId) -> bool {
    matches!(reason(world, job), Some(WaitReason::NeverFits(_)))
}

/// A run has all components of its job, each with as many nodes as it asks for, and no node twice.
fn check_whole(world: &World, job: JobId, parts: &[Part]) {
    let places = places(world, job);
    let sizes: Vec<usize> = places.iter().map(Vec::len).collect();
    let asked: Vec<usize> = parts.iter().map(|(nodes, _)| *nodes as usize).collect();
    assert_eq!(sizes, asked, "job {job}");
    let nodes: BTreeSet<&String> = places.iter().flatten().collect();
    assert_eq!(nodes.len(), sizes.iter().sum::<usize>(), "job {job}: {places:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 300, ..ProptestConfig::default() })]

    /// Every job that can ever run does so when nothing more arrives, whichever passes start it; none runs partly; and
    /// lasting promises never move later.
    #[test]
    fn every_job_runs_whole_in_the_end(case in cases()) {
        let mut world = world(&case);
        let mut coming = case.jobs.iter();
        let mut next_coming = coming.next();
        let mut comes_at = world.now;
        let mut parts_of: BTreeMap<JobId, (i64, Vec<Part>)> = BTreeMap::new();
        let mut ends: BTreeSet<(Timestamp, JobId)> = BTreeSet::new();
        let mut promised: BTreeMap<JobId, Timestamp> = BTreeMap::new();
        for count in 0.. {
            prop_assert!(count < MOST_PASSES, "it does not come to an end: {case:?}");
            while let Some((minutes, parts, after)) = next_coming.filter(|_| comes_at <= world.now) {
                let spec = together(parts.iter().map(|(nodes, queue)| some(*nodes, QUEUES[*queue], *minutes)));
                // Requests that are plainly too large are refused.
                if let Ok(Reply::Submitted(jobs)) = world.command(&user("ada"), Command::Submit { jobs: vec![spec] }) {
                    parts_of.insert(jobs[0], (*minutes, parts.clone()));
                }
                next_coming = coming.next();
                comes_at = comes_at.plus_seconds(*after);
            }
            let (started, wake) = pass(&mut world);
            for job in started {
                let (minutes, parts) = &parts_of[&job];
                check_whole(&world, job, parts);
                let was = promised.remove(&job);
                prop_assert!(was.is_none_or(|promised| world.now <= promised), "job {} starts late", job);
                ends.insert((world.now.plus_seconds(minutes * MINUTE), job));
            }
            for job in parts_of.keys() {
                let Some(known) = world.state().job(*job).filter(|job| job.is_waiting()) else { continue };
                let Some(slot) = &known.slot else { continue };
                let before = promised.insert(*job, slot.start);
                prop_assert!(before.is_none_or(|before| slot.start <= before), "job {} was promised {:?}", job, before);
            }
            let next_end = ends.first().map(|(end, _)| *end);
            let next_job = next_coming.map(|_| comes_at);
            let waits = |job: &&JobId| world.state().job(**job).is_some_and(|job| job.is_waiting());
            if next_end.is_none() && next_job.is_none() {
                let left: Vec<_> = parts_of.keys().filter(waits).filter(|job| !never_fits(&world, **job)).collect();
                if left.is_empty() {
                    break;
                }
                prop_assert!(wake.is_some(), "jobs {left:?} wait for nothing");
            }
            let next = [next_end, next_job, wake].into_iter().flatten().filter(|at| *at > world.now).min();
            if let Some(next) = next {
                world.now = next;
            }
            while let Some((end, job)) = ends.first().copied().filter(|(end, _)| *end <= world.now) {
                ends.remove(&(end, job));
                world.end(job);
            }
        }
    }
}
