//! Several ledgers on one bus, and streams with wrong contents: only the writer of the log stream answers (F9, F10).

mod support;

use muster_bus::{Feed, LedgerClient, LocalBus, LogTail, Message, NatsBus, NatsConfig, SharedBus, testing::NatsServer};
use muster_schemas::{
    command::{Command, CommandEnvelope, Query, RefusalCode},
    event::TraceContext,
    ids::{CommandId, Sequence},
    subjects,
};
use std::{path::Path, time::Duration};
use support::{Ledger, config, copy, root, submission};

const SOON: Duration = Duration::from_secs(60);

async fn connect(server: &NatsServer) -> SharedBus {
    NatsBus::connect(NatsConfig { url: server.url(), ..NatsConfig::default() }).await.expect("connected")
}

async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, work).await.unwrap_or_else(|_| panic!("not within {SOON:?}: {what}"))
}

/// Why a ledger does not start.
async fn refusal_to_start(server: &NatsServer, folder: &Path) -> String {
    match Ledger::try_start_on(connect(server).await, config(folder)).await {
        Ok(_) => panic!("it starts"),
        Err(error) => format!("{error:#}"),
    }
}

/// Waits until the stream has all records of the ledger.
async fn stream_catches_up(bus: &SharedBus, head: Sequence) {
    soon("the stream ends where the log does", async {
        loop {
            match bus.log_tail().await {
                Ok(LogTail::Record { last, .. }) if last >= head => return,
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    })
    .await;
}

async fn read_all(feed: &mut Feed, head: Sequence) {
    while feed.position() <= head {
        soon("the feed", feed.next()).await.expect("it goes on");
    }
}

/// A copy of the data folder that is served in addition to the original does not start, and says why (F10).
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_beside_the_ledger_does_not_start() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = NatsServer::start();
    let ledger = Ledger::start_on(connect(&server).await, config(folder.path())).await;
    ledger.submit(3).await;
    ledger.stop().await;
    copy(folder.path(), other.path());
    let ledger = Ledger::start_on(connect(&server).await, config(folder.path())).await;

    let why = refusal_to_start(&server, other.path()).await;
    assert!(why.contains("another ledger answers on this bus, of the same cluster"), "{why}");
    let stranger = tempfile::tempdir().unwrap();
    let why = refusal_to_start(&server, stranger.path()).await;
    assert!(why.contains("another ledger answers on this bus, of the cluster "), "{why}");
    ledger.submit(1).await;
    ledger.stop().await;
}

/// A ledger whose place was taken acknowledges nothing more, answers no query, and ends with advice (F10).
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_is_not_the_writer_any_more_ends() {
    let folder = tempfile::tempdir().unwrap();
    let server = NatsServer::start();
    let ledger = Ledger::start_on(connect(&server).await, config(folder.path())).await;
    ledger.submit(1).await;
    let head = ledger.head().await;
    let records = ledger.records(Sequence(1)).await;
    let other = connect(&server).await;
    stream_catches_up(&other, head).await;
    let LogTail::Record { log, .. } = other.log_tail().await.unwrap() else { panic!("no log") };

    other.claim_log(log, records.last().unwrap().clone()).await.expect("the end is as it was found");
    other.publish(subjects::LOG_CLAIMED, Message::new("another")).await.unwrap();
    let why = format!("{:#}", soon("it ends", ledger.ended()).await.expect_err("it is not the writer"));
    assert!(why.contains("another ledger writes the stream MUSTER_LOG"), "{why}");
    let nobody = LedgerClient::new(other.clone()).with_patience(Duration::from_millis(200));
    nobody.query(&Query::Head).await.expect_err("nobody answers");
}

/// After another ledger has appended, the old writer refuses everything, even before it has heard of the other (F10).
#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_fails_stops_the_answers() {
    let folder = tempfile::tempdir().unwrap();
    let server = NatsServer::start();
    let ledger = Ledger::start_on(connect(&server).await, config(folder.path())).await;
    ledger.submit(1).await;
    let head = ledger.head().await;
    let records = ledger.records(Sequence(1)).await;
    let other = connect(&server).await;
    stream_catches_up(&other, head).await;
    other.log_tail().await.unwrap();
    other.claim_log([7; 16], records.last().unwrap().clone()).await.expect("the end is as it was found");

    // It has not been told; its next append fails.
    let client = LedgerClient::new(other.clone()).with_patience(Duration::from_millis(50));
    soon("it ends", async {
        loop {
            let envelope = CommandEnvelope {
                id: CommandId::new_now(),
                actor: root(),
                trace: TraceContext::default(),
                command: submission(1),
            };
            match client.send(&envelope).await {
                Ok(answer) => {
                    if let Err(refusal) = answer.result {
                        assert_eq!(refusal.code, RefusalCode::Unavailable, "{refusal}");
                        break;
                    }
                }
                Err(_) => break,
            }
        }
    })
    .await;
    soon("it ends", ledger.ended()).await.expect_err("it is not the writer");
}

/// A ledger that is connected but silent is fenced off: a starting ledger takes its place (F10).
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_ledger_keeps_nobody_from_starting() {
    let folder = tempfile::tempdir().unwrap();
    let server = NatsServer::start();
    let silent = connect(&server).await;
    let requests = silent.serve(subjects::HEAD).await.unwrap();
    let ledger = Ledger::start_on(connect(&server).await, config(folder.path())).await;
    drop(requests);
    ledger.submit(1).await;
    ledger.stop().await;
}

/// The stream of an old cluster does not prevent a start: the ledger has the history, the stream
/// distributes it (F9, F10).
#[tokio::test(flavor = "multi_thread")]
async fn the_stream_of_an_old_cluster_is_made_anew() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = NatsServer::start();
    let ledger = Ledger::start_on(connect(&server).await, config(old.path())).await;
    for _ in 0..20 {
        ledger.submit(1).await;
    }
    ledger.stop().await;

    let bus = connect(&server).await;
    let ledger = Ledger::start_on(bus.clone(), config(new.path())).await;
    let mut feed = Feed::open(bus.clone(), Sequence(1)).await.unwrap();
    ledger.submit(1).await;
    let head = ledger.head().await;
    read_all(&mut feed, head).await;
    stream_catches_up(&bus, head).await;
    assert_eq!(bus.log_tail().await.unwrap().sequence(), Some(head));
    ledger.stop().await;
}

/// Rubbish in the log stream stops neither a running ledger nor a starting one (F9).
#[tokio::test(flavor = "multi_thread")]
async fn a_poisoned_stream_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let server = NatsServer::start();
    let bus = connect(&server).await;
    let ledger = Ledger::start_on(bus.clone(), config(folder.path())).await;
    let mut feed = Feed::open(bus.clone(), Sequence(1)).await.unwrap();
    for _ in 0..3 {
        bus.publish(subjects::LOG_SUBJECT, Message::new("rubbish")).await.unwrap();
        ledger.submit(1).await;
        let head = ledger.head().await;
        read_all(&mut feed, head).await;
        stream_catches_up(&bus, head).await;
    }
    ledger.stop().await;

    bus.publish(subjects::LOG_SUBJECT, Message::new("rubbish")).await.unwrap();
    let ledger = Ledger::start_on(connect(&server).await, config(folder.path())).await;
    ledger.submit(1).await;
    read_all(&mut feed, ledger.head().await).await;
    stream_catches_up(&bus, ledger.head().await).await;
    ledger.stop().await;
}

/// A copy that has continued elsewhere has another history than the stream: it is told what to do (F10).
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_with_another_history_is_refused() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = NatsServer::start();
    let ledger = Ledger::start_on(connect(&server).await, config(folder.path())).await;
    ledger.submit(1).await;
    ledger.stop().await;
    copy(folder.path(), other.path());
    let ledger = Ledger::start_on(connect(&server).await, config(folder.path())).await;
    ledger.send(CommandId::new_now(), submission(2)).await.result.expect("submitted");
    ledger.stop().await;

    let elsewhere = Ledger::start_on(LocalBus::new(), config(other.path())).await;
    for _ in 0..20 {
        elsewhere.send(CommandId::new_now(), Command::Submit { jobs: vec![support::job()] }).await;
    }
    elsewhere.stop().await;
    let why = refusal_to_start(&server, other.path()).await;
    assert!(why.contains("is another than in this log"), "{why}");
}
