//! Chains, rollback, runners that come and go.

use super::support::*;
use crate::support::*;
use muster_domain::filters::calls;
use muster_schemas::{
    JobId,
    command::{CallOutcome, CallReport, Command, RefusalCode, Reply},
    event::{Actor, Event},
    filter::{FilterExit, FilterSettings},
    job::Outcome,
};

/// A cluster with activation filters A and B and the cluster-wide filter C, and a queued job.
fn three() -> (Cluster, JobId) {
    let mut cluster = cluster(4, 2);
    cluster.set_template("t", &[], &[filter("A"), filter("B")]);
    cluster.set_filters(FilterSettings { activation: Some(exec("C")), ..FilterSettings::default() });
    let id = cluster.queue("t", cores(2, 4, 2000));
    (cluster, id)
}

/// X-7 (HPC-F-50, F-51, F-52, F-53, F-55)
#[test]
fn an_activation_chain_ends_with_the_first_that_is_not_0_and_the_others_are_reverted_with_the_same_parameters() {
    let (mut cluster, id) = three();
    cluster.offer_cores(id, 4);
    let mut calls = Vec::new();
    for answer in [0, 0, 2] {
        calls.extend(cluster.asked(id));
        cluster.answer(id, code(answer));
    }
    assert_eq!(cluster.kept(id), 4, "the verdict shows at once");
    assert!(cluster.refused_start(id, 4).contains("said not now"), "before the rollback is complete");
    while let Some(asked) = cluster.asked(id) {
        calls.push(asked);
        cluster.answer(id, code(0));
    }
    let told = "4 1 false 4";
    let expected = ["A filter", "B filter", "C filter", "B revert", "A revert"].map(|call| format!("{call} {told}"));
    assert_eq!(calls, expected);
    assert_eq!(cluster.kept(id), 4);
    assert!(cluster.refused_start(id, 4).contains("not asked again before"));
    cluster.pass(10);
    cluster.offer_cores(id, 4);
    assert_eq!(cluster.asked(id).as_deref(), Some("A filter 4 1 false 4"), "all are called anew");
    cluster.assert_replays();
}

/// HPC-F-52
#[test]
fn every_verdict_but_0_rolls_back() {
    let exits = [
        FilterExit::Code(1),
        FilterExit::Code(3),
        FilterExit::Code(4),
        FilterExit::Code(77),
        FilterExit::TimedOut,
        FilterExit::NotFound("x".into()),
    ];
    for exit in exits {
        let (mut cluster, id) = three();
        cluster.offer_cores(id, 4);
        cluster.answer(id, code(0));
        cluster.answer(id, ended(exit.clone()));
        assert_eq!(cluster.asked(id).as_deref(), Some("A revert 4 1 false 4"), "{exit}");
        let events = cluster.answer(id, code(0));
        assert_eq!(words(&events), ["filter.reverted", "filter.rollback_completed"], "{exit}");
        cluster.assert_replays();
    }
}

/// A submission filter with a limit of 15 s, and the job that it judges.
fn judged() -> (Cluster, JobId) {
    let mut cluster = Cluster::new();
    cluster.set_filters(FilterSettings { submission: Some(filter("A")), ..FilterSettings::default() });
    let id = cluster.submit("ada", job(1, 1));
    (cluster, id)
}

/// X-9 (HPC-F-85, F-86, F-88)
#[test]
fn a_call_of_a_runner_that_is_gone_goes_to_another_with_the_same_id() {
    let (mut cluster, id) = judged();
    let (call, attempt) = cluster.claim("r1", id);
    assert_eq!(attempt, 1);
    cluster.pass(24);
    assert_eq!(cluster.tick(), Vec::new());
    assert_eq!(cluster.state.next_timer(), Some(cluster.now.plus_seconds(1)));
    cluster.pass(1);
    assert_eq!(cluster.tick(), [Event::FilterOfferedAgain { call, attempt: 2 }]);
    let record = cluster.log.last().expect("there is one");
    assert_eq!(calls::offered(&cluster.state, record), Some(id));
    assert_eq!(cluster.claim("r2", id), (call, 2));
    let events = cluster.report("r2", (call, 2), CallOutcome::Called(Box::new(code(0))));
    assert_eq!(words(&events), ["filter.verdict", "filter.chain_passed", "job.queued"]);
    let events = cluster.report("r1", (call, 1), CallOutcome::Called(Box::new(code(7))));
    assert_eq!(words(&events), ["filter.late_result"]);
    assert!(cluster.is_waiting(id));
    cluster.assert_replays();
}

/// HPC-F-86
#[test]
fn the_first_answer_of_any_attempt_counts() {
    let (mut cluster, id) = judged();
    let call = cluster.claim("r1", id);
    cluster.pass(25);
    cluster.tick();
    let second = cluster.claim("r2", id);
    let answer = |what| CallOutcome::Called(Box::new(code(what)));
    let reports = [(call, 0), (second, 5), (call, 0)].map(|((call, attempt), what)| CallReport {
        call,
        attempt,
        outcome: answer(what),
    });
    let command = Command::ReportCalls { reports: reports.to_vec(), has_others: true };
    let events = cluster.ok(&runner("r1"), command);
    let expected = ["filter.verdict", "filter.chain_passed", "job.queued", "filter.late_result", "filter.late_result"];
    assert_eq!(words(&events), expected);
}

/// HPC-F-85
#[test]
fn after_three_attempts_the_runner_is_lost() {
    let (mut cluster, id) = judged();
    for attempt in 1..=3 {
        assert_eq!(cluster.claim("r1", id).1, attempt);
        cluster.pass(25);
        cluster.tick();
    }
    let text = "[SubmissionFilterRunnerLost] submission filter 'A' got no answer from a runner";
    assert_eq!(cluster.outcome(id), Some(Outcome::Refused(text.into())));
    let (mut cluster, id) = three();
    cluster.offer_cores(id, 2);
    for _ in 0..3 {
        cluster.claim("r1", id);
        cluster.pass(25);
        cluster.tick();
    }
    assert_eq!((cluster.kept(id), cluster.warnings(id)), (2, vec!["ActivationFilterRunnerLost".into()]));
}

/// HPC-F-84
#[test]
fn a_call_is_one_runners_only() {
    let (mut cluster, id) = judged();
    let (call, attempt) = cluster.claim("r1", id);
    let claim = |call, attempt| Command::ClaimCalls { calls: vec![(call, attempt), (call, attempt)] };
    for name in ["r1", "r2"] {
        let claimed = cluster.run(&runner(name), claim(call, attempt));
        assert!(matches!(claimed, Ok((events, Reply::Claimed(own))) if own == [false, false] && events.is_empty()));
    }
    cluster.pass(25);
    cluster.tick();
    let stale = cluster.run(&runner("r2"), claim(call, 1));
    assert!(matches!(stale, Ok((_, Reply::Claimed(own))) if own == [false, false]), "an offer of before");
    let fresh = cluster.run(&runner("r2"), claim(call, 2));
    assert!(matches!(fresh, Ok((_, Reply::Claimed(own))) if own == [true, false]));
    cluster.refused(&user("ada"), claim(call, 2), RefusalCode::PermissionDenied, "only filter-runners");
}

/// HPC-F-91
#[test]
fn what_one_runner_does_not_have_is_put_to_one_other_before_it_counts() {
    let (mut cluster, id) = judged();
    let absent = |(call, attempt)| {
        let outcome = CallOutcome::Called(Box::new(ended(FilterExit::NotFound("/opt/filters/A".into()))));
        Command::ReportCalls { reports: vec![CallReport { call, attempt, outcome }], has_others: true }
    };
    let call = cluster.claim("r1", id);
    assert_eq!(words(&cluster.ok(&runner("r1"), absent(call))), ["filter.elsewhere"]);
    let seed = cluster.seed(id).expect("it is offered again");
    let claim = Command::ClaimCalls { calls: vec![(seed.call, seed.attempt)] };
    let own = cluster.run(&runner("r1"), claim);
    assert!(matches!(own, Ok((_, Reply::Claimed(own))) if own == [false]), "not to the same");
    let call = cluster.claim("r2", id);
    let events = cluster.ok(&runner("r2"), absent(call));
    assert_eq!(words(&events)[0], "filter.verdict", "recorded on the second");
    assert!(cluster.outcome(id).is_some());
    let (mut cluster, id) = judged();
    cluster.answer(id, ended(FilterExit::NotFound("x".into())));
    assert!(cluster.outcome(id).is_some(), "there is no other");
}

/// HPC-F-87
#[test]
fn without_runners_jobs_wait_and_it_is_said_once() {
    let (mut cluster, id) = judged();
    cluster.pass(100_000);
    assert_eq!(cluster.tick(), Vec::new());
    let missing = Command::RunnersMissing { since: cluster.now };
    assert_eq!(words(&cluster.ok(&Actor::Ledger, missing.clone())), ["filter.no_runner"]);
    assert_eq!(cluster.ok(&Actor::Ledger, missing.clone()), Vec::new());
    assert_eq!(cluster.state.unclaimed_calls().count(), 1);
    cluster.answer(id, code(0));
    assert!(cluster.is_waiting(id));
    assert_eq!(cluster.ok(&Actor::Ledger, missing), Vec::new(), "nothing waits");
}

/// HPC-F-81, HPC-F-88, HPC-F-90
#[test]
fn a_job_is_not_forgotten_before_its_filters_have_taken_back_what_they_did() {
    let (mut cluster, id) = three();
    cluster.offer_cores(id, 2);
    cluster.answer(id, code(0));
    cluster.answer(id, code(4));
    cluster.pass(10_000);
    cluster.submit("ada", job(1, 1));
    assert_eq!(cluster.asked(id).as_deref(), Some("A revert 4 1 false 2"));
    cluster.answer(id, code(0));
    cluster.pass(10_000);
    cluster.submit("ada", job(1, 1));
    cluster.submit("ada", job(1, 1));
    assert!(cluster.state.job(id).is_none());
    cluster.assert_replays();
}
