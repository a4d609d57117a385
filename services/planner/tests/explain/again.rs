//! Repeated decisions are the same as the recorded ones, and a changed record is found.

use crate::world::{World, node, queue, tasks};
use muster_domain::State;
use muster_planner::verify::{Verdict, Verifier, What};
use muster_schemas::{
    Sequence,
    event::{Event, Record},
    job::WaitReason,
    policy::Policy,
};
use proptest::prelude::*;
use std::sync::Arc;

fn verdict(records: &[Record]) -> Verdict {
    let mut verifier = Verifier::new(State::new(), 10);
    records.iter().for_each(|record| verifier.read(record));
    verifier.finish()
}

fn world(policy: &str) -> World {
    let policy = Policy::built_in(policy).expect("it is built in");
    World::new(&policy, vec![node("n1", 4, 0), node("n2", 4, 0)], vec![queue("default")])
}

/// Jobs arrive, run for less time than they said, and end.
fn lived(policy: &str, jobs: &[(u32, u64, i64)]) -> World {
    let mut world = world(policy);
    let mut ends: Vec<(muster_schemas::Timestamp, muster_schemas::JobId)> = Vec::new();
    for (number, walltime_seconds, pause) in jobs {
        world.wait(*pause);
        while let Some(at) = ends.iter().position(|(end, _)| *end <= world.now) {
            let (_, job) = ends.remove(at);
            world.end(job);
            world.settle();
        }
        world.submit(tasks(*number, *walltime_seconds));
        for job in world.step() {
            ends.push((world.now.plus_seconds((*walltime_seconds / 2) as i64), job));
        }
        let known: Vec<_> = ends.iter().map(|(_, job)| *job).collect();
        let running = world.state().jobs().filter(|job| job.run().is_some() && !known.contains(&job.id));
        let running: Vec<_> = running.map(|job| job.id).collect();
        ends.extend(running.into_iter().map(|job| (world.now.plus_seconds(30), job)));
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_log_verifies_and_has_the_same_digest_again(
        policy in prop::sample::select(&["fcfs", "easy", "conservative", "saf"][..]),
        jobs in prop::collection::vec((1..9_u32, 60..1000_u64, 0..200_i64), 4..20),
    ) {
        let world = lived(policy, &jobs);
        let verdict_of = verdict(&world.records);
        prop_assert!(verdict_of.decisions > 0);
        prop_assert_eq!(&verdict_of.differences, &Vec::new());
        prop_assert_eq!(verdict_of.decisions, verdict_of.equal);
        prop_assert_eq!(verdict(&world.records), verdict_of);
    }

    #[test]
    fn under_its_own_policy_nothing_differs(
        jobs in prop::collection::vec((1..9_u32, 60..1000_u64, 0..200_i64), 4..12),
    ) {
        let world = lived("easy", &jobs);
        let policy = Policy::built_in("easy").expect("it is built in");
        let mut verifier = Verifier::new(State::new(), 10).against(Arc::new(policy));
        world.records.iter().for_each(|record| verifier.read(record));
        prop_assert_eq!(verifier.finish().differences, Vec::new());
    }
}

#[test]
fn another_policy_differs_where_it_backfills() {
    let world = lived("fcfs", &[(6, 600, 0), (8, 600, 1), (1, 60, 1)]);
    let easy = Policy::built_in("easy").expect("it is built in");
    let mut verifier = Verifier::new(State::new(), 10).against(Arc::new(easy));
    world.records.iter().for_each(|record| verifier.read(record));
    let verdict = verifier.finish();
    let [difference] = &verdict.differences[..] else { panic!("{verdict:#?}") };
    assert_eq!((difference.what, difference.job.map(|job| job.number)), (What::Start, Some(3)));
    assert_eq!((&difference.recorded, difference.planned.as_deref()), (&None, Some("n2(2)")));
}

#[test]
fn a_reason_that_was_not_planned_is_found() {
    let mut world = lived("easy", &[(6, 600, 0), (8, 600, 1)]);
    let altered = world.records.iter_mut().rev().find_map(|record| match &mut record.event {
        Event::Planned { plan } if !plan.reasons.is_empty() => {
            let mut other = (**plan).clone();
            other.reasons[0].reason = WaitReason::Resources("patience".into());
            *plan = Arc::new(other);
            Some(record.sequence)
        }
        _ => None,
    });
    let verdict = verdict(&world.records);
    assert_eq!((verdict.differing, verdict.differences[0].what), (1, What::Reason));
    assert_eq!(Some(verdict.differences[0].sequence), altered);
    assert!(verdict.differences[0].to_string().contains("recorded not enough free: patience"));
}

#[test]
fn a_plan_from_before_the_first_state_is_counted_and_not_compared() {
    let world = lived("easy", &[(6, 600, 0), (8, 600, 1)]);
    let planned = world.records.iter().position(|record| matches!(record.event, Event::Planned { .. }));
    let (before, rest) = world.records.split_at(planned.expect("there is a plan"));
    let mut state = State::new();
    before.iter().for_each(|record| state.apply(record).unwrap());
    let mut verifier = Verifier::new(state, 10);
    rest.iter().for_each(|record| verifier.read(record));
    let verdict = verifier.finish();
    assert_eq!((verdict.out_of_reach, verdict.differing), (1, 0));
    assert_eq!(verdict.last, Sequence(world.records.len() as u64));
}
