//! The outbox on a NATS server that is killed, and loses its whole store.

mod support;

use muster_bus::{Feed, NatsBus, NatsConfig, SharedBus, WorkQueue, testing::NatsServer};
use muster_schemas::{
    command::{Command, JobSelection},
    ids::{CommandId, Sequence},
    job::{JobSpec, Notification, Occasion, Sink},
    notify::NotifyItem,
};
use std::time::Duration;
use support::{Ledger, config, job, submitted};

const SOON: Duration = Duration::from_secs(60);

async fn connect(server: &NatsServer) -> SharedBus {
    NatsBus::connect(NatsConfig { url: server.url(), ..NatsConfig::default() }).await.expect("connected")
}

/// Submits a job that tells of its end, and cancels it.
async fn submit_and_cancel(ledger: &Ledger) {
    let notification = Notification { on: vec![Occasion::Ended], sink: Sink::Exec("true".into()) };
    let spec = JobSpec { notifications: vec![notification], ..job() };
    let jobs = submitted(&ledger.send(CommandId::new_now(), Command::Submit { jobs: vec![spec] }).await);
    let cancel = Command::Cancel { jobs: JobSelection::Ids(jobs) };
    ledger.send(CommandId::new_now(), cancel).await.result.expect("cancelled");
}

async fn notices(bus: &SharedBus, count: usize) -> Vec<NotifyItem> {
    let mut work = bus.worker(&WorkQueue::NOTIFY).await.expect("a worker");
    let mut notices = Vec::new();
    while notices.len() < count {
        let item = tokio::time::timeout(SOON, work.next()).await.expect("in time").expect("an item");
        notices.push(item.message.decode().expect("a notification"));
    }
    notices.sort_by_key(|notice: &NotifyItem| notice.of);
    notices
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_with_the_store_of_the_bus() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = NatsServer::start();
    let ledger = Ledger::start_on(connect(&server).await, config(folder.path())).await;
    let reader = connect(&server).await;
    let mut feed = Feed::open(reader.clone(), Sequence(1)).await.unwrap();
    submit_and_cancel(&ledger).await;

    server.kill();
    server.wipe_store();
    server.restart();
    submit_and_cancel(&ledger).await;
    let head = ledger.head().await;

    let mut seen = Sequence(0);
    while seen < head {
        let commit = tokio::time::timeout(SOON, feed.next()).await.expect("in time").expect("a commit");
        for record in &commit.records {
            assert_eq!(record.sequence, seen.next());
            seen = record.sequence;
        }
    }
    let told = notices(&reader, 2).await;
    assert_eq!(told.iter().map(|notice| notice.job.number).collect::<Vec<_>>(), [1, 2]);
    ledger.stop().await;

    let again = Ledger::start_on(connect(&server).await, config(folder.path())).await;
    assert!(again.head().await > head, "it goes on behind the stream that it finds");
    again.stop().await;
}
