//! Holds until a time.

use super::support::*;
use crate::support::*;
use muster_schemas::{
    JobId, Timestamp,
    command::{Command, RefusalCode},
    event::{Event, HoldBy, Intake},
    filter::{FilterHold, FilterReport, FilterSettings},
    job::WaitReason,
};

fn hold(job: JobId, until: Option<Timestamp>) -> Command {
    Command::HoldUntil { jobs: ids(&[job]), until }
}

/// HPC-H-01, HPC-H-05, HPC-H-10
#[test]
fn a_held_job_keeps_its_place_and_is_released_when_the_time_has_come() {
    let mut cluster = Cluster::new();
    let held = cluster.submit("ada", job(1, 1));
    let other = cluster.submit("ada", job(1, 1));
    let until = cluster.now.plus_seconds(60);
    cluster.ok(&user("ada"), hold(held, Some(until)));
    assert_eq!(cluster.waiting(), [other]);
    assert_eq!(cluster.reason(held), Some(WaitReason::HeldUntil { until, by: HoldBy::User }));
    assert_eq!(cluster.state.next_timer(), Some(until));
    cluster.pass(100_000);
    assert_eq!(cluster.tick(), [Event::JobHoldEnded { job: held, is_over: true }], "also long after");
    assert_eq!(cluster.waiting(), [held, other], "in its old place");
    cluster.assert_replays();
}

/// HPC-H-07
#[test]
fn users_hold_own_jobs_within_bounds_and_administrators_those_of_others() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    let (now, ada) = (cluster.now, user("ada"));
    cluster.refused(&ada, hold(id, Some(now)), RefusalCode::Invalid, "[HoldUntilNotValid]");
    cluster.refused(
        &ada,
        hold(id, Some(now.one_year_later().plus_seconds(1))),
        RefusalCode::Invalid,
        "[HoldUntilTooLong]",
    );
    cluster.ok(&ada, hold(id, Some(now.one_year_later())));
    cluster.refused(&user("bob"), hold(id, None), RefusalCode::PermissionDenied, "belongs to ada");
    let until = now.plus_seconds(60);
    cluster.ok(&root(), hold(id, Some(until)));
    assert_eq!(cluster.reason(id), Some(WaitReason::HeldUntil { until, by: HoldBy::Administrator }));
    assert_eq!(words(&cluster.ok(&ada, hold(id, None))), ["job.released"]);
    let run = cluster.start(id, &["node1"], 1);
    cluster.refused(&ada, hold(id, Some(until)), RefusalCode::Conflict, "[HoldWrongState]");
    cluster.end(run, "node1", muster_schemas::job::ExitStatus::Code(0));
    cluster.refused(&ada, hold(id, Some(until)), RefusalCode::Conflict, "[HoldWrongState]");
    let too_late = Intake { hold_until: Some(now), ..Intake::default() };
    let submit = Command::SubmitDocument { spec: Box::new(job(1, 1)), intake: Box::new(too_late) };
    cluster.refused(&ada, submit, RefusalCode::Invalid, "[HoldUntilNotValid]");
    let (id, _) = cluster.intake(job(1, 1), Intake { hold_until: Some(until), ..Intake::default() });
    assert_eq!(cluster.reason(id), Some(WaitReason::HeldUntil { until, by: HoldBy::User }));
}

/// HPC-H-08
#[test]
fn clearing_a_hold_that_is_not_there_is_no_error() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    assert_eq!(cluster.ok(&user("ada"), hold(id, None)), Vec::new());
    cluster.run_through(id, 0);
    assert_eq!(cluster.ok(&user("ada"), hold(id, None)), Vec::new());
}

/// A job whose filter is being asked.
fn asked() -> (Cluster, JobId) {
    let mut cluster = cluster(4, 2);
    cluster.set_template("t", &[], &[filter("A")]);
    let id = cluster.queue("t", cores(2, 2, 2000));
    cluster.offer_cores(id, 2);
    (cluster, id)
}

fn held_until(cluster: &Cluster, job: JobId) -> Option<i64> {
    match cluster.reason(job) {
        Some(WaitReason::HeldUntil { until, .. }) => Some(until.micros_since(cluster.now) / 1_000_000),
        _ => None,
    }
}

/// HPC-H-03, HPC-H-04
#[test]
fn verdict_3_holds_until_what_was_asked_for_if_that_is_in_the_future_else_for_the_default_time() {
    let at = |seconds: i64| FilterHold::At(Timestamp::from_unix_seconds(1_000_000 + seconds));
    let wants = [
        (None, 900),
        (Some(at(-5)), 900),
        (Some(at(0)), 900),
        (Some(FilterHold::Seconds(-1)), 900),
        (Some(at(77)), 77),
        (Some(FilterHold::Seconds(120)), 120),
    ];
    for (hold_until, expected) in wants {
        let (mut cluster, id) = asked();
        cluster.answer(id, FilterReport { hold_until, ..code(3) });
        assert_eq!(held_until(&cluster, id), Some(expected), "{hold_until:?}");
    }
    // Set on the job itself during the call, by the filter or another client (HPC-F-68).
    let (mut cluster, id) = asked();
    let call = cluster.claim("r1", id);
    let until = cluster.now.plus_seconds(300);
    cluster.ok(&user("ada"), hold(id, Some(until)));
    assert_eq!(cluster.kept(id), 0, "a held job holds no resources");
    cluster.report("r1", call, muster_schemas::command::CallOutcome::Called(Box::new(code(3))));
    assert_eq!(held_until(&cluster, id), Some(300));
    cluster.assert_replays();
}

/// HPC-H-06, HPC-H-02
#[test]
fn another_default_moves_no_hold_that_is_set() {
    let (mut cluster, id) = asked();
    cluster.answer(id, code(3));
    cluster.set_filters(FilterSettings { default_hold_seconds: 60, ..FilterSettings::default() });
    assert_eq!(held_until(&cluster, id), Some(900));
    for wrong in [59, 604_801] {
        let settings = FilterSettings { default_hold_seconds: wrong, ..FilterSettings::default() };
        let command = Command::SetParameters { filters: Some(Box::new(settings)), scheduling: None };
        cluster.refused(&root(), command, RefusalCode::Invalid, "between 60 and 604800");
    }
    assert_eq!(cluster.state.filter_settings().default_hold_seconds, 60);
}

/// HPC-H-05, HPC-H-09
#[test]
fn a_released_job_is_judged_again_and_its_hold_is_past_once_it_runs() {
    let (mut cluster, id) = asked();
    cluster.answer(id, code(3));
    cluster.pass(900);
    cluster.tick();
    assert!(cluster.is_waiting(id), "it does not start by right");
    cluster.offer_cores(id, 2);
    assert!(cluster.asked(id).is_some_and(|asked| asked.starts_with("A filter")));
    cluster.answer(id, code(0));
    let hold = cluster.state.job(id).and_then(|job| job.filters.as_ref()?.hold);
    assert_eq!(hold, None);
}
