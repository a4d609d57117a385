//! Passes of backfill: their modes, their records, and what they leave for others.

use crate::{
    HOUR, MINUTE, backfill_passes, expected, on, pass, passes, places, reason, reference_cluster, some, together,
    world::World,
};
use muster_domain::State;
use muster_planner::verify::{Verdict, Verifier, What};
use muster_schemas::{
    JobId, Timestamp,
    command::{Command, JobSelection},
    event::{Actor, Event, Record},
    job::{JobSpec, WaitReason},
    plan::ComponentMode,
    policy::{BackfillMode, Policy},
};
use std::{collections::BTreeSet, sync::Arc};

/// EX-14: nid00008 is taken until +120 min, nid00009 until +60 min, nid00010 is free.
fn example() -> (World, JobId, Timestamp) {
    example_under(&backfill_passes())
}

fn example_under(policy: &Policy) -> (World, JobId, Timestamp) {
    let mut world = reference_cluster(policy);
    world.submit(on(8, 120));
    world.submit(on(9, 60));
    pass(&mut world);
    let job = world.submit(together([on(10, 10), on(8, 10), on(9, 10)]));
    let zero = world.now;
    (world, job, zero)
}

fn go_to(world: &mut World, zero: Timestamp, seconds: i64) -> Vec<JobId> {
    world.now = zero.plus_seconds(seconds);
    pass(world).0
}

fn verdict(records: &[Record]) -> Verdict {
    let mut verifier = Verifier::new(State::new(), 10);
    records.iter().for_each(|record| verifier.read(record));
    verifier.finish()
}

/// SL-P-03, SL-P-05, EX-14
#[test]
fn the_modes_alternate_as_in_the_worked_example() {
    let (mut world, job, zero) = example();
    assert_eq!(go_to(&mut world, zero, 0), []);
    assert_eq!(expected(&world, job, zero), [Some(0), Some(2 * HOUR), Some(2 * HOUR)]);
    assert_eq!(go_to(&mut world, zero, 30), []);
    assert_eq!(expected(&world, job, zero), [Some(2 * HOUR); 3]);
    assert_eq!(go_to(&mut world, zero, 60), []);
    assert_eq!(expected(&world, job, zero), [Some(60), Some(2 * HOUR), Some(2 * HOUR)]);
    let modes: Vec<_> = passes(&world).iter().map(|pass| (pass.number, pass.mode)).collect();
    assert_eq!(modes, [(1, ComponentMode::Singly), (2, ComponentMode::Together), (3, ComponentMode::Singly)]);
    let verdict = verdict(&world.records);
    assert_eq!((verdict.differing, verdict.equal), (0, verdict.decisions));
}

/// SL-P-03, SL-P-04, SL-P-13, EX-14
#[test]
fn a_job_behind_starts_in_mode_two_only() {
    let (mut world, job, zero) = example();
    let behind = world.submit(on(10, 90));
    assert_eq!(go_to(&mut world, zero, 0), []);
    assert_eq!(go_to(&mut world, zero, 10), []);
    assert_eq!(reason(&world, behind), Some(WaitReason::BehindJob(job)));
    assert_eq!(go_to(&mut world, zero, 30), [behind]);
    // It is over before all components can start.
    assert_eq!(expected(&world, job, zero), [Some(2 * HOUR); 3]);
    assert_eq!(go_to(&mut world, zero, 60), []);
    assert_eq!(expected(&world, job, zero), [Some(90 * MINUTE + 30), Some(2 * HOUR), Some(2 * HOUR)]);
}

/// SL-P-03, EX-14
#[test]
fn an_early_end_makes_the_starts_earlier() {
    let (mut world, job, zero) = example();
    go_to(&mut world, zero, 0);
    go_to(&mut world, zero, 30);
    world.now = zero.plus_seconds(40);
    world.end(JobId::job(1));
    assert_eq!(go_to(&mut world, zero, 40), []);
    assert_eq!(expected(&world, job, zero), [Some(2 * HOUR); 3], "there was no pass since");
    assert_eq!(go_to(&mut world, zero, 60), []);
    assert_eq!(expected(&world, job, zero), [Some(60), Some(60), Some(HOUR)]);
}

/// SL-P-02, SL-I-13, EX-14
#[test]
fn all_components_start_in_one_pass() {
    let (mut world, job, zero) = example();
    go_to(&mut world, zero, 0);
    world.now = zero.plus_seconds(HOUR);
    world.end(JobId::job(2));
    assert_eq!(go_to(&mut world, zero, HOUR), []);
    world.now = zero.plus_seconds(2 * HOUR);
    world.end(JobId::job(1));
    let records = world.records.len();
    assert_eq!(go_to(&mut world, zero, 2 * HOUR), [job]);
    assert_eq!(places(&world, job), [["nid00010"], ["nid00008"], ["nid00009"]]);
    let starts = world.records[records..].iter().filter(|record| matches!(record.event, Event::RunAllocated { .. }));
    assert_eq!(starts.count(), 1, "one record starts all components");
    assert!(world.state().backfill_passes().jobs.is_empty(), "nothing is thought of the start of a job that runs");
}

/// SL-P-04
#[test]
fn what_a_deferred_component_does_not_have_is_there_for_others() {
    let mut world = reference_cluster(&backfill_passes());
    world.submit(on(8, 120));
    pass(&mut world);
    let job = world.submit(together([on(10, 10), on(8, 10), on(9, 10)]));
    let (long, short) = (world.submit(on(9, 121)), world.submit(on(9, 120)));
    let zero = world.now;
    assert_eq!(go_to(&mut world, zero, 0), [short]);
    assert_eq!(expected(&world, job, zero), [Some(0), Some(2 * HOUR), Some(2 * HOUR)]);
    assert!(!world.has_started(long));
}

/// SL-P-04: if a deferred component has part of a node, the rest is free for others.
#[test]
fn the_rest_of_the_nodes_of_a_deferred_component_is_there_for_others() {
    let mut world = reference_cluster(&backfill_passes());
    world.submit(on(8, 120));
    pass(&mut world);
    let cores = |number: u32, cores: u32, minutes: i64| {
        let mut spec = crate::world::tasks(cores, u64::try_from(minutes * MINUTE).unwrap());
        spec.components[0].alternatives[0].requests[0].nodes = vec![format!("nid{number:05}")];
        spec
    };
    let job = world.submit(together([cores(10, 3, 10), on(8, 10)]));
    let (too_large, fits) = (world.submit(cores(10, 2, 120)), world.submit(cores(10, 1, 120)));
    let zero = world.now;
    assert_eq!(go_to(&mut world, zero, 0), [fits]);
    assert_eq!(expected(&world, job, zero), [Some(0), Some(2 * HOUR)]);
    assert!(!world.has_started(too_large));
}

/// SL-P-01
#[test]
fn only_a_pass_of_backfill_starts_them() {
    let mut policy = backfill_passes();
    policy.backfill.components.interval_seconds = 7;
    let mut world = reference_cluster(&policy);
    let zero = world.now;
    let first = world.submit(together([on(1, 10), on(2, 10)]));
    assert_eq!(go_to(&mut world, zero, 0), [first], "the first pass is due at once");
    let second = world.submit(together([on(3, 10), on(4, 10)]));
    assert_eq!(go_to(&mut world, zero, 1), []);
    let waits = "nodes for all components in a pass of backfill";
    assert_eq!(reason(&world, second), Some(WaitReason::Resources(waits.into())));
    world.now = zero.plus_seconds(6);
    let (started, wake) = pass(&mut world);
    assert_eq!((started, wake), (vec![], Some(zero.plus_seconds(7))));
    assert_eq!(go_to(&mut world, zero, 7), [second]);
    assert_eq!(passes(&world).len(), 2);
    (policy.backfill.mode, policy.backfill.reservations) = (BackfillMode::None, None);
    world.must(&Actor::Ledger, Command::SetPolicy { policy: Box::new(policy) });
    let third = world.submit(together([on(5, 10), on(6, 10)]));
    assert_eq!(go_to(&mut world, zero, HOUR), [], "without backfill there are no passes");
    assert!(reason(&world, third).is_some_and(|reason| reason.to_string().contains("a pass of backfill")));
}

/// SL-P-15
#[test]
fn interval_window_and_look_ahead_are_settings() {
    let mut policy = backfill_passes();
    (policy.backfill.reservations, policy.backfill.look_ahead) = (Some(1), Some(2));
    policy.backfill.components.interval_seconds = 7;
    policy.backfill.components.window_seconds = Some(u32::try_from(HOUR + MINUTE).unwrap());
    let (mut world, first, zero) = example_under(&policy);
    let others = [(); 4].map(|()| world.submit(together([on(10, 10), on(9, 10)])));
    for (seconds, number) in [(0, 1), (6, 1), (7, 2), (13, 2), (14, 3)] {
        assert_eq!(go_to(&mut world, zero, seconds), []);
        let passes = passes(&world);
        let looked_at: Vec<JobId> = passes.last().unwrap().jobs.iter().map(|planned| planned.job).collect();
        assert_eq!((passes.len(), looked_at), (number, vec![first, others[0], others[1]]), "at {seconds} s");
    }
    assert_eq!(expected(&world, first, zero), [Some(14), None, Some(HOUR)]);
}

/// SL-P-15: the limits on jobs with reservations, and on jobs tried ahead.
#[test]
fn a_pass_looks_at_no_more_jobs_than_the_policy_says() {
    let mut policy = backfill_passes();
    (policy.backfill.reservations, policy.backfill.look_ahead) = (Some(1), Some(2));
    let mut world = reference_cluster(&policy);
    world.submit(on(8, 120));
    pass(&mut world);
    let jobs: Vec<JobId> = (0..5).map(|_| world.submit(together([on(10, 10), on(8, 10)]))).collect();
    let elsewhere = world.submit(together([some(1, "p2", 10), some(1, "p2", 10)]));
    let zero = world.now;
    for (number, seconds) in [0, 10, 30, 40, 60, 70].into_iter().enumerate() {
        assert_eq!(go_to(&mut world, zero, seconds), []);
        let passes = passes(&world);
        assert_eq!(passes.len(), number / 2 + 1);
        let looked_at: Vec<JobId> = passes.last().unwrap().jobs.iter().map(|planned| planned.job).collect();
        assert_eq!(looked_at, jobs[..3]);
    }
    // Jobs that are skipped are told so once.
    let waits = WaitReason::Resources("nodes for all components in a pass of backfill".into());
    assert_eq!(reason(&world, elsewhere), Some(waits));
    let reasons = world.records.iter().filter_map(|record| match &record.event {
        Event::Planned { plan } => Some(plan.reasons.iter().filter(|told| told.job == elsewhere).count()),
        _ => None,
    });
    assert_eq!(reasons.sum::<usize>(), 1);
}

/// SL-P-15: jobs before it that are no candidates themselves are tried too.
#[test]
fn plain_jobs_count_for_the_look_ahead_of_a_pass() {
    let mut policy = backfill_passes();
    (policy.backfill.reservations, policy.backfill.look_ahead) = (Some(1), Some(2));
    let mut world = reference_cluster(&policy);
    world.submit(on(8, 120));
    pass(&mut world);
    let plain: Vec<JobId> = (0..3).map(|_| world.submit(on(8, 10))).collect();
    let job = world.submit(together([on(1, 10), on(2, 10)]));
    let zero = world.now;
    assert_eq!(go_to(&mut world, zero, 0), []);
    assert_eq!(passes(&world).last().unwrap().jobs, []);
    let jobs = JobSelection::Ids(vec![plain[0]]);
    world.must(&Actor::Ledger, Command::Cancel { jobs });
    assert_eq!(go_to(&mut world, zero, 30), [job], "it is the second that is tried");
}

/// SL-P-15: jobs without a start count for the look-ahead too, even if nothing is free.
#[test]
fn jobs_without_a_start_count_for_the_look_ahead_of_a_pass() {
    let mut policy = backfill_passes();
    (policy.backfill.reservations, policy.backfill.look_ahead) = (Some(1), Some(2));
    policy.backfill.components.window_seconds = Some(u32::try_from(HOUR).unwrap());
    let mut world = reference_cluster(&policy);
    for number in 1..=12 {
        world.submit(on(number, if number > 10 { 30 } else { 120 }));
        pass(&mut world);
    }
    let first = world.submit(together([on(11, 10), on(12, 10)]));
    let others = [(); 3].map(|()| world.submit(together([on(1, 10), on(2, 10)])));
    let zero = world.now;
    assert_eq!(go_to(&mut world, zero, 0), []);
    let looked_at: Vec<JobId> = passes(&world).last().unwrap().jobs.iter().map(|planned| planned.job).collect();
    assert_eq!(looked_at, [first, others[0], others[1]]);
    assert_eq!(expected(&world, others[1], zero), [None, None]);
}

/// Results for a job apply to equal ones, which get the same starts as if each were searched for.
#[test]
fn equal_jobs_stand_one_behind_the_other() {
    let (mut world, first, zero) = example();
    let jobs = [first].into_iter().chain((0..2).map(|_| world.submit(together([on(10, 10), on(8, 10), on(9, 10)]))));
    let jobs: Vec<JobId> = jobs.collect();
    let turn = 10 * MINUTE;
    go_to(&mut world, zero, 0);
    for (number, job) in (0..).zip(&jobs) {
        let both = Some(2 * HOUR + number * turn);
        assert_eq!(expected(&world, *job, zero), [Some(number * turn), both, both]);
    }
    go_to(&mut world, zero, 30);
    for (number, job) in (0..).zip(&jobs) {
        assert_eq!(expected(&world, *job, zero), [Some(2 * HOUR + number * turn); 3]);
    }
}

/// SL-P-03: the results of a pass stand until the next one is complete.
#[test]
fn a_pass_that_is_cut_short_goes_on_in_the_next_plan() {
    let (mut world, job, zero) = example_under(&Policy { max_starts: 2, ..backfill_passes() });
    assert_eq!(go_to(&mut world, zero, 0), []);
    let recorded = [Some(0), Some(2 * HOUR), Some(2 * HOUR)];
    assert_eq!(expected(&world, job, zero), recorded);
    let urgent = [1, 2, 3].map(|number| {
        let mut spec = on(number, 10);
        spec.components[0].priority = Some(9);
        world.submit(spec)
    });
    assert_eq!(go_to(&mut world, zero, 30), urgent[..2]);
    assert_eq!((passes(&world).len(), expected(&world, job, zero)), (1, recorded.to_vec()));
    assert_eq!(go_to(&mut world, zero, 30), urgent[2..]);
    assert_eq!((passes(&world).len(), expected(&world, job, zero)), (2, vec![Some(2 * HOUR); 3]));
}

/// SL-P-06: a pass recorded by a planner whose clock was ahead does not delay later passes.
#[test]
fn a_pass_of_a_clock_that_is_ahead_is_not_waited_for() {
    let (mut world, job, zero) = example();
    let plan = world.projection.clone().plan(zero.plus_seconds(24 * HOUR), &BTreeSet::new()).plan;
    world.must(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) });
    assert_eq!(passes(&world)[0].at, zero.plus_seconds(24 * HOUR));
    for seconds in [30, 40, 60] {
        go_to(&mut world, zero, seconds);
    }
    let since: Vec<_> = passes(&world).iter().map(|pass| pass.at.micros_since(zero) / 1_000_000).collect();
    assert_eq!(since, [24 * HOUR, 30, 60]);
    assert_eq!(expected(&world, job, zero), [Some(60), Some(2 * HOUR), Some(2 * HOUR)]);
}

/// SL-P-01
#[test]
fn without_backfill_they_wait_for_ever_and_hold_up_nobody() {
    let mut policy = backfill_passes();
    policy.backfill.mode = BackfillMode::None;
    policy.backfill.reservations = None;
    assert_eq!(policy.faults(), []);
    let mut world = reference_cluster(&policy);
    let zero = world.now;
    let job = world.submit(together([on(1, 10), on(2, 10)]));
    let plain = world.submit(on(1, 10));
    assert_eq!(go_to(&mut world, zero, 0), [plain]);
    assert_eq!(go_to(&mut world, zero, HOUR), []);
    assert!(reason(&world, job).is_some_and(|reason| reason.to_string().contains("a pass of backfill")));
    assert_eq!(passes(&world), []);
}

/// SL-P-13
#[test]
fn between_the_passes_they_hold_up_their_own_queues_only() {
    let (mut world, job, zero) = example();
    go_to(&mut world, zero, 0);
    let same = world.submit(on(1, 10));
    let mut other: JobSpec = on(2, 10);
    other.components[0].queue = Some("p2".into());
    let other = world.submit(other);
    assert_eq!(go_to(&mut world, zero, 10), [other]);
    assert_eq!(reason(&world, same), Some(WaitReason::BehindJob(job)));
    assert_eq!(go_to(&mut world, zero, 30), [same]);
}

/// SL-P-13: a job whose components wait in several queues holds up each of them.
#[test]
fn between_the_passes_they_hold_up_the_queues_of_all_their_components() {
    let mut world = reference_cluster(&backfill_passes());
    world.submit(on(8, 120));
    pass(&mut world);
    let job = world.submit(together([on(8, 10), some(1, "p2", 10)]));
    let zero = world.now;
    go_to(&mut world, zero, 0);
    let behind = [on(1, 10), some(1, "p2", 10)].map(|spec| world.submit(spec));
    assert_eq!(go_to(&mut world, zero, 10), []);
    for other in behind {
        assert_eq!(reason(&world, other), Some(WaitReason::BehindJob(job)));
    }
    assert_eq!(go_to(&mut world, zero, 30), behind);
}

/// SL-P-06
#[test]
fn the_log_says_which_pass_it_was_and_what_it_found() {
    let (mut world, job, zero) = example();
    for seconds in [0, 10, 30, 45, 60] {
        go_to(&mut world, zero, seconds);
    }
    let passes = passes(&world);
    let [first, second, third] = &passes[..] else { panic!("{passes:#?}") };
    let [planned] = &second.jobs[..] else { panic!("{second:#?}") };
    let start = zero.plus_seconds(2 * HOUR);
    assert_eq!((planned.job, &planned.reason), (job, &WaitReason::Reserved { start }));
    assert_eq!((first.at, third.at), (zero, zero.plus_seconds(60)));
    let found = |records: &[Record]| {
        let verdict = verdict(records);
        (verdict.differing, verdict.differences.first().map(|difference| difference.what))
    };
    assert_eq!(found(&world.records), (0, None));
    let mut altered = world.records.clone();
    let of_pass = altered.iter_mut().find_map(|record| match &mut record.event {
        Event::BackfillPassed { pass } if pass.number == 2 => Some(pass),
        _ => None,
    });
    Arc::make_mut(of_pass.unwrap()).jobs[0].components[0].start = Some(zero);
    assert_eq!(found(&altered), (1, Some(What::Components)));
}

/// SL-P-06: the snapshot has everything that the next pass needs.
#[test]
fn a_planner_that_begins_with_a_snapshot_goes_on() {
    let (mut world, job, zero) = example();
    go_to(&mut world, zero, 0);
    let bytes = world.state().to_snapshot_bytes().unwrap();
    let read = State::from_snapshot_bytes(&bytes).unwrap();
    assert_eq!(read.digest(), world.state().digest());
    world.projection = muster_planner::projection::Projection::of(read);
    go_to(&mut world, zero, 30);
    assert_eq!(expected(&world, job, zero), [Some(2 * HOUR); 3]);
}

/// SL-P-15: the window.
#[test]
fn starts_beyond_the_window_are_not_looked_for() {
    let mut policy = backfill_passes();
    policy.backfill.components.window_seconds = Some(u32::try_from(HOUR + MINUTE).unwrap());
    let mut world = reference_cluster(&policy);
    world.submit(on(8, 120));
    world.submit(on(9, 60));
    pass(&mut world);
    let job = world.submit(together([on(10, 10), on(8, 10), on(9, 10)]));
    let behind = world.submit(on(8, 10));
    let zero = world.now;
    go_to(&mut world, zero, 0);
    assert_eq!(expected(&world, job, zero), [Some(0), None, Some(HOUR)]);
    assert!(matches!(reason(&world, job), Some(WaitReason::Resources(_))));
    assert!(!world.has_started(behind));
}

/// With a policy that starts them in any pass nothing is recorded, and they start at once.
#[test]
fn by_default_they_start_in_any_pass() {
    let mut world = reference_cluster(&Policy::built_in("easy").unwrap());
    let first = world.submit(together([on(1, 10), on(2, 10)]));
    assert_eq!(pass(&mut world).0, [first]);
    let second = world.submit(together([some(2, "default", 10), some(3, "p2", 10)]));
    assert_eq!(pass(&mut world).0, [second]);
    assert_eq!(passes(&world), []);
}

/// A policy that keeps promises cannot have passes that renew them.
#[test]
fn a_policy_with_promises_has_no_such_passes() {
    let mut policy = backfill_passes();
    policy.backfill.mode = BackfillMode::Conservative;
    let faults: Vec<String> = policy.faults().iter().map(ToString::to_string).collect();
    assert_eq!(faults.len(), 1);
    assert!(faults[0].starts_with("`backfill.components.start`: backfill passes renew their reservations"));
}

/// SL-P-10: jobs do not take turns. A running job keeps its nodes to its end, whoever waits.
#[test]
fn a_job_that_runs_is_not_put_aside_for_others() {
    let mut world = reference_cluster(&backfill_passes());
    let zero = world.now;
    let job = world.submit(together([some(6, "default", 60), some(6, "default", 60)]));
    assert_eq!(go_to(&mut world, zero, 0), [job]);
    let mut urgent = some(12, "default", 1);
    urgent.components[0].priority = Some(1_000_000);
    let urgent = world.submit(urgent);
    let places_before = places(&world, job);
    for seconds in (30..HOUR).step_by(300) {
        assert_eq!(go_to(&mut world, zero, seconds), []);
        assert_eq!(places(&world, job), places_before);
    }
    let kinds: Vec<_> = world.records.iter().map(|record| record.event.kind_verb()).collect();
    assert!(!kinds.contains(&("job", "suspended")) && !kinds.contains(&("job", "shrunk")));
    world.now = zero.plus_seconds(HOUR);
    world.end(job);
    assert_eq!(go_to(&mut world, zero, HOUR), [urgent]);
}
