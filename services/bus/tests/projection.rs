//! The state of a projection, compared with the state that the same records give.

mod common;

use common::{Setup, TestLedger, record_of, soon};
use muster_bus::{Bus, BusError, LocalBus, Projection, SharedBus};
use muster_domain::State;
use muster_schemas::{
    event::{Commit, Event, Record, uuid_bytes::UuidBytes},
    ids::{RunId, Sequence},
};
use std::{sync::Arc, time::Duration};

/// Records that each change the state.
fn records(first: u64, last: u64) -> Vec<Record> {
    let licence = |sequence| Event::LicenceSet {
        name: format!("licence{}", sequence % 10),
        total: u32::try_from(sequence).expect("a small number"),
    };
    (first..=last).map(|sequence| record_of(sequence, licence(sequence))).collect()
}

fn state_after(last: u64) -> State {
    let mut state = State::new();
    records(1, last).iter().for_each(|record| state.apply(record).unwrap());
    state
}

async fn commit(ledger: &TestLedger, bus: &SharedBus, first: u64, last: u64) {
    let records = records(first, last);
    ledger.append(&records);
    bus.publish_commit(Arc::new(Commit { records })).await.expect("published");
}

async fn follows_from_a_snapshot(setup: Setup) {
    let ledger = TestLedger::default();
    ledger.serve(&setup.here).await;
    commit(&ledger, &setup.here, 1, 2000).await;
    ledger.set_snapshot(Sequence(1500), state_after(1500).to_snapshot_bytes().expect("small"));
    // Only a projection that begins with the snapshot can get the rest.
    ledger.archive(Sequence(1500));
    let projection = soon("opening", Projection::open(setup.there.clone())).await.expect("opened");
    assert_eq!(projection.read(State::digest), state_after(2000).digest());

    let mut changes = projection.changes();
    changes.mark_unchanged();
    commit(&ledger, &setup.here, 2001, 2010).await;
    projection.wait_for(Sequence(2010), common::DEADLINE).await.expect("it follows");
    soon("the change", changes.changed()).await.expect("it goes on");
    assert_eq!(projection.sequence(), Sequence(2010));
    assert_eq!(projection.read(State::digest), state_after(2010).digest());

    let late = projection.wait_for(Sequence(2011), Duration::from_millis(20)).await;
    assert!(matches!(late, Err(BusError::TimedOut { .. })), "{late:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_projection_follows_from_a_snapshot_in_process() {
    follows_from_a_snapshot(Setup::local().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_projection_follows_from_a_snapshot_on_nats() {
    follows_from_a_snapshot(Setup::nats().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_projection_begins_with_the_first_record_without_a_snapshot() {
    let bus: SharedBus = LocalBus::new();
    let ledger = TestLedger::default();
    let opening = tokio::spawn(Projection::open(bus.clone()));
    commit(&ledger, &bus, 1, 7000).await;
    ledger.serve(&bus).await;
    let projection = soon("opening", opening).await.expect("no panic").expect("opened");
    assert_eq!(projection.read(State::digest), state_after(7000).digest());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_projection_jumps_over_what_was_archived() {
    let bus: SharedBus = LocalBus::new();
    let ledger = TestLedger::default();
    ledger.serve(&bus).await;
    commit(&ledger, &bus, 1, 10).await;
    let projection = soon("opening", Projection::open(bus.clone())).await.expect("opened");
    // The next records are not published, and are gone before they can be read.
    ledger.append(&records(11, 100));
    ledger.set_snapshot(Sequence(60), state_after(60).to_snapshot_bytes().expect("small"));
    ledger.archive(Sequence(60));
    bus.publish_commit(Arc::new(Commit { records: records(100, 100) })).await.expect("published");
    projection.wait_for(Sequence(100), common::DEADLINE).await.expect("it follows");
    assert_eq!(projection.read(State::digest), state_after(100).digest());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_projection_without_snapshot_or_records_is_an_error() {
    let bus: SharedBus = LocalBus::new();
    let ledger = TestLedger::default();
    ledger.serve(&bus).await;
    commit(&ledger, &bus, 1, 10).await;
    ledger.archive(Sequence(5));
    let error = soon("the refusal", Projection::open(bus)).await.expect_err("records are missing");
    assert!(matches!(error, BusError::Refused(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_projection_no_longer_follows() {
    let bus: Arc<LocalBus> = LocalBus::new();
    let shared: SharedBus = bus.clone();
    let ledger = TestLedger::default();
    let server = ledger.serve(&shared).await;
    let projection = soon("opening", Projection::open(shared.clone())).await.expect("opened");
    let also = projection.clone();
    drop(projection);
    commit(&ledger, &shared, 1, 10).await;
    also.wait_for(Sequence(10), common::DEADLINE).await.expect("a clone keeps it going");
    drop((also, shared));
    server.abort();
    drop(server.await);
    soon("the task ends", async {
        while Arc::strong_count(&bus) > 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(bus.log_tail().await.expect("a tail").sequence(), Some(Sequence(10)));
}

/// Whoever shows a state has to know that it is not the present one any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_projection_of_a_log_that_was_put_back_is_broken() {
    let setup = Setup::local().await;
    let ledger = TestLedger::default();
    ledger.serve(&setup.here).await;
    commit(&ledger, &setup.here, 1, 10).await;
    let projection = soon("opening", Projection::open(setup.there.clone())).await.expect("opened");
    ledger.cut(5);
    setup.here.clear_log().await.expect("cleared");
    let restored = Event::LogRestored {
        to: Sequence(5),
        lost_to: Some(Sequence(10)),
        log_id: UuidBytes([7; 16]),
        backup: "backup".into(),
        next_run: RunId(1),
    };
    let records = vec![record_of(6, restored)];
    ledger.append(&records);
    setup.here.publish_commit(Arc::new(Commit { records })).await.expect("published");
    let error = soon("the end", projection.broken()).await;
    assert!(matches!(error, BusError::Unusable(_)), "{error}");
    assert_eq!(projection.read(State::digest), state_after(10).digest(), "it stays as it was");
}
