//! The cause of a record is read from the log: whoever asks, in any order, and whenever the ledger was started.

mod support;

use muster_bus::{WorkItem, WorkQueue};
use muster_schemas::{
    JobId,
    command::{CallOutcome, CallReport, Command, Query, QueryAnswer},
    event::{Actor, Event, Record, TraceContext},
    filter::{CallId, FilterExit, FilterForm, FilterReport, FilterSettings, FilterSpec},
    filter_order::FilterOrder,
    ids::{CommandId, Sequence},
};
use std::time::Duration;
use support::{Ledger, config};

async fn as_runner(ledger: &Ledger, command: Command) {
    let actor = Actor::Runner("r1".into());
    let answer = ledger.client.command(actor, TraceContext::default(), command).await.expect("an answer");
    answer.result.expect("accepted");
}

/// Three jobs go through a filter; the runner claims and reports all calls in one command each.
async fn filtered_jobs(ledger: &Ledger) -> Vec<JobId> {
    let form = FilterForm::Exec;
    let filter = FilterSpec { name: "check".into(), path: "/f/check".into(), form, revert_on_unknown: false };
    let settings = FilterSettings { submission: Some(filter), ..FilterSettings::default() };
    let command = Command::SetParameters { filters: Some(Box::new(settings)), scheduling: None };
    ledger.send(CommandId::new_now(), command).await.result.expect("set");
    let jobs = ledger.submit(3).await;
    let mut work = ledger.bus.worker(&WorkQueue::FILTERS).await.expect("a worker");
    let mut calls: Vec<(CallId, u32)> = Vec::new();
    while calls.len() < jobs.len() {
        let next = tokio::time::timeout(Duration::from_secs(60), work.next());
        let item: WorkItem = next.await.expect("in time").expect("an item");
        let order: FilterOrder = item.message.decode().expect("a call");
        calls.push((order.call, order.attempt));
        item.ack().await.expect("taken");
    }
    as_runner(ledger, Command::ClaimCalls { calls: calls.clone() }).await;
    let report = |(call, attempt)| {
        let passed = FilterReport { exit: FilterExit::Code(0), ..FilterReport::runner_lost() };
        CallReport { call, attempt, outcome: CallOutcome::Called(Box::new(passed)) }
    };
    let reports = calls.into_iter().map(report).collect();
    as_runner(ledger, Command::ReportCalls { reports, has_others: false }).await;
    jobs
}

async fn causes(ledger: &Ledger, of: Vec<Sequence>) -> Vec<Option<Sequence>> {
    match ledger.client.query(&Query::Causes { of }).await.expect("an answer") {
        QueryAnswer::Causes(causes) => causes,
        other => panic!("{other:?}"),
    }
}

/// The first record of a job for which `is_it` holds.
fn find(records: &[Record], job: JobId, is_it: impl Fn(&Event) -> bool) -> &Record {
    let mut records = records.iter();
    records.find(|record| record.event.job() == Some(job) && is_it(&record.event)).expect("a record")
}

/// HPC-E-01
#[tokio::test(flavor = "multi_thread")]
async fn what_led_to_each_record_follows_from_the_log_alone() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    let jobs = filtered_jobs(&ledger).await;
    let records = ledger.records(Sequence(1)).await;
    let all: Vec<Sequence> = records.iter().map(|record| record.sequence).collect();
    let known = causes(&ledger, all.clone()).await;
    let cause = |record: &Record| known[record.sequence.0 as usize - 1];
    for job in jobs {
        let started = find(&records, job, |event| matches!(event, Event::FilterChainStarted { .. }));
        let invoked = find(&records, job, |event| matches!(event, Event::FilterInvoked { .. }));
        let verdict = find(&records, job, |event| matches!(event, Event::FilterVerdict { .. }));
        let passed = find(&records, job, |event| matches!(event, Event::FilterChainPassed { .. }));
        assert_eq!(cause(invoked), Some(started.sequence));
        assert_eq!(cause(verdict), Some(invoked.sequence));
        assert_eq!(cause(passed), Some(verdict.sequence));
    }
    let submission = records.iter().find(|record| record.event.job().is_some()).expect("a submission");
    assert_eq!(cause(submission), None);
    ledger.stop().await;

    let ledger = Ledger::start(config(folder.path())).await;
    let backwards: Vec<Sequence> = all.into_iter().rev().collect();
    let mut again = causes(&ledger, backwards).await;
    again.reverse();
    assert_eq!(again, known);
    let beyond = ledger.client.query(&Query::Causes { of: vec![Sequence(1_000_000)] }).await;
    assert!(beyond.is_err_and(|error| error.to_string().contains("no record 1000000")));
    ledger.stop().await;
}
