//! Calls of filters: handed out from the log, again after every loss, and answered by runners.

mod support;

use muster_bus::{LocalBus, NatsBus, NatsConfig, SharedBus, WorkItem, WorkQueue, testing::NatsServer};
use muster_schemas::{
    JobId,
    command::{CallOutcome, CallReport, Command, Query, QueryAnswer, Reply},
    event::{Actor, Event, Intake, TraceContext},
    filter::{
        FileAfter, FilterExit, FilterForm, FilterReport, FilterSettings, FilterSpec, JobDocument, PropertyChange,
    },
    filter_order::{FilterOrder, FilterWork, RunnerHeartbeat},
    ids::{CommandId, Sequence},
};
use std::time::Duration;
use support::{Ledger, config, job, submitted};

const SOON: Duration = Duration::from_secs(60);
const XML: &[u8] = b"<Job Name=\"as it was written\"  />";

fn filter(name: &str) -> FilterSpec {
    FilterSpec { name: name.into(), path: format!("/f/{name}"), form: FilterForm::Exec, revert_on_unknown: false }
}

/// Defines one filter that judges all submissions.
async fn with_filter(ledger: &Ledger) {
    let settings = FilterSettings { submission: Some(filter("check")), ..FilterSettings::default() };
    let command = Command::SetParameters { filters: Some(Box::new(settings)), scheduling: None };
    ledger.send(CommandId::new_now(), command).await.result.expect("set");
}

async fn submit_described(ledger: &Ledger) -> JobId {
    let intake = Intake { document: Some(JobDocument::xml(XML)), ..Intake::default() };
    let command = Command::SubmitDocument { spec: Box::new(job()), intake: Box::new(intake) };
    submitted(&ledger.send(CommandId::new_now(), command).await)[0]
}

async fn next(bus: &SharedBus, queue: &WorkQueue) -> (WorkItem, FilterOrder) {
    let mut work = bus.worker(queue).await.expect("a worker");
    let item = tokio::time::timeout(SOON, work.next()).await.expect("in time").expect("an item");
    let order = item.message.decode().expect("a call");
    (item, order)
}

async fn as_runner(ledger: &Ledger, name: &str, command: Command) -> Reply {
    let actor = Actor::Runner(name.into());
    ledger.client.command(actor, TraceContext::default(), command).await.expect("an answer").result.expect("accepted")
}

async fn claim(ledger: &Ledger, runner: &str, order: &FilterOrder) -> bool {
    match as_runner(ledger, runner, Command::ClaimCalls { calls: vec![(order.call, order.attempt)] }).await {
        Reply::Claimed(claimed) => claimed[0],
        other => panic!("{other:?}"),
    }
}

async fn report(ledger: &Ledger, runner: &str, order: &FilterOrder, exit: FilterExit, file: FileAfter) {
    let called = FilterReport { exit, file, ..FilterReport::runner_lost() };
    let outcome = CallOutcome::Called(Box::new(called));
    let reports = vec![CallReport { call: order.call, attempt: order.attempt, outcome }];
    as_runner(ledger, runner, Command::ReportCalls { reports, has_others: false }).await;
}

/// HPC-F-03, HPC-F-20, HPC-F-50
#[tokio::test(flavor = "multi_thread")]
async fn a_call_has_all_that_a_runner_needs_and_the_next_one_what_the_filter_changed() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    with_filter(&ledger).await;
    let job = submit_described(&ledger).await;
    let (item, order) = next(&ledger.bus, &WorkQueue::FILTERS).await;
    assert!(item.message.trace.is_some() || item.message.trace == TraceContext::default());
    assert_eq!((order.call.job, order.attempt), (job, 1));
    assert_eq!(order.work, FilterWork::Filter { filter: filter("check"), limit_seconds: 15, parameters: None });
    assert!(order.job.is_entering && order.job.is_as_received);
    assert_eq!(order.job.document.as_ref().map(|document| &*document.bytes), Some(XML));
    assert_eq!(order.job.owner.user, "root");
    assert!(claim(&ledger, "r1", &order).await);
    item.ack().await.unwrap();

    let changed = JobDocument::xml(&b"<Job Name=\"changed\"/>"[..]);
    let change = PropertyChange { property: "Name".into(), old: None, new: Some("changed".into()) };
    let file = FileAfter::Changed { document: changed.clone(), changes: vec![change], template: None };
    report(&ledger, "r1", &order, FilterExit::Code(1), file).await;
    // The check after the filters starts no program.
    let (_, check) = next(&ledger.bus, &WorkQueue::CHECKS).await;
    assert!(matches!(check.work, FilterWork::Validate { .. }), "{check:?}");
    assert_eq!(check.job.document, Some(changed));
    assert!(!check.job.is_as_received);
    ledger.stop().await;
}

/// HPC-F-88
#[tokio::test(flavor = "multi_thread")]
async fn calls_that_wait_are_offered_again_by_a_ledger_that_starts() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    with_filter(&ledger).await;
    submit_described(&ledger).await;
    let (_, first) = next(&ledger.bus, &WorkQueue::FILTERS).await;
    ledger.stop().await;
    // Another bus: everything in the first one is gone.
    let ledger = Ledger::start(config(folder.path())).await;
    let (_, again) = next(&ledger.bus, &WorkQueue::FILTERS).await;
    assert_eq!(again, first);
    assert!(claim(&ledger, "r1", &again).await);
    ledger.stop().await;

    // A claimed call is not.
    let bus: SharedBus = LocalBus::new();
    let ledger = Ledger::start_on(bus.clone(), config(folder.path())).await;
    let job = submit_described(&ledger).await;
    assert_eq!(next(&bus, &WorkQueue::FILTERS).await.1.call.job, job);
    ledger.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_the_bus_has_lost_are_offered_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = NatsServer::start();
    let connect = async || {
        let config = NatsConfig { url: server.url(), ..NatsConfig::default() };
        let bus: SharedBus = NatsBus::connect(config).await.expect("connected");
        bus
    };
    let bus = connect().await;
    let ledger = Ledger::start_on(connect().await, config(folder.path())).await;
    with_filter(&ledger).await;
    submit_described(&ledger).await;
    let (_, first) = next(&bus, &WorkQueue::FILTERS).await;
    server.kill();
    server.wipe_store();
    server.restart();
    let (_, again) = next(&bus, &WorkQueue::FILTERS).await;
    assert_eq!(again, first);
    ledger.stop().await;
}

/// A call was taken out of the queue by a runner that never claimed it.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_nobody_claims_is_offered_again_while_a_runner_waits() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    with_filter(&ledger).await;
    submit_described(&ledger).await;
    let (item, first) = next(&ledger.bus, &WorkQueue::FILTERS).await;
    item.ack().await.unwrap();
    let beat = RunnerHeartbeat { runner: "r1".into(), is_free: true, calls: Vec::new() };
    let beats = {
        let client = ledger.client.clone();
        tokio::spawn(async move {
            loop {
                client.runner_heartbeat(&beat).await.expect("an answer");
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        })
    };
    let (_, again) = next(&ledger.bus, &WorkQueue::FILTERS).await;
    assert_eq!(again, first);
    beats.abort();
    ledger.stop().await;
}

/// HPC-F-67: the persistent filters.
#[tokio::test(flavor = "multi_thread")]
async fn a_runner_is_told_which_persistent_filters_are_defined() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    let persistent = FilterSpec { form: FilterForm::Persistent, ..filter("stays") };
    let settings = FilterSettings {
        submission: Some(filter("check")),
        activation: Some(persistent.clone()),
        ..FilterSettings::default()
    };
    let command = Command::SetParameters { filters: Some(Box::new(settings)), scheduling: None };
    ledger.send(CommandId::new_now(), command).await.result.expect("set");
    let beat = RunnerHeartbeat { runner: "r1".into(), is_free: true, calls: Vec::new() };
    let briefing = ledger.client.runner_heartbeat(&beat).await.expect("an answer");
    assert_eq!((briefing.persistent, briefing.given_up), (vec![persistent], Vec::new()));
    ledger.stop().await;
}

/// HPC-F-91: only the ledger knows whether there is another runner.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_program_is_put_to_another_runner_only_if_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    with_filter(&ledger).await;
    let missing = || FilterExit::NotFound("/f/check".into());
    let alone = submit_described(&ledger).await;
    let (item, order) = next(&ledger.bus, &WorkQueue::FILTERS).await;
    assert!(claim(&ledger, "r1", &order).await);
    item.ack().await.unwrap();
    report(&ledger, "r1", &order, missing(), FileAfter::Unchanged).await;
    assert!(has(&ledger, |event| matches!(event, Event::JobFinished { job, .. } if *job == alone)).await);

    let beat = RunnerHeartbeat { runner: "r2".into(), is_free: true, calls: Vec::new() };
    ledger.client.runner_heartbeat(&beat).await.expect("an answer");
    let two = submit_described(&ledger).await;
    let (item, order) = next(&ledger.bus, &WorkQueue::FILTERS).await;
    assert!(claim(&ledger, "r1", &order).await);
    item.ack().await.unwrap();
    report(&ledger, "r1", &order, missing(), FileAfter::Unchanged).await;
    let (_, again) = next(&ledger.bus, &WorkQueue::FILTERS).await;
    assert_eq!(again.call, order.call);
    assert!(!claim(&ledger, "r1", &again).await);
    assert!(claim(&ledger, "r2", &again).await);
    report(&ledger, "r2", &again, missing(), FileAfter::Unchanged).await;
    assert!(has(&ledger, |event| matches!(event, Event::JobFinished { job, .. } if *job == two)).await);
    ledger.stop().await;
}

async fn has(ledger: &Ledger, is_it: impl Fn(&Event) -> bool) -> bool {
    ledger.records(Sequence(1)).await.iter().any(|record| is_it(&record.event))
}

/// HPC-J-46
#[tokio::test(flavor = "multi_thread")]
async fn what_a_job_was_described_with_can_be_asked_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    let described = submit_described(&ledger).await;
    let QueryAnswer::JobDocuments(documents) =
        ledger.client.query(&Query::JobDocuments { job: described }).await.expect("an answer")
    else {
        panic!("no documents")
    };
    assert_eq!(documents.received.as_ref().map(|document| &*document.bytes), Some(XML));
    assert_eq!(documents.effective, None);
    let plain = ledger.submit(1).await[0];
    let QueryAnswer::JobDocuments(documents) =
        ledger.client.query(&Query::JobDocuments { job: plain }).await.expect("an answer")
    else {
        panic!("no documents")
    };
    assert_eq!((documents.received, documents.template), (None, None));
    assert_eq!(documents.spec.components[0].launch, job().components[0].launch);
    ledger.stop().await;
}
