//! Faults of the bus over NATS: a server that dies, a store that is lost, a second writer, messages that are too large.

mod common;

use common::{TestLedger, commit, config, connect, record_of, soon};
use muster_bus::{
    Bus as _, BusError, Feed, LedgerClient, LogItem, Message, NatsBus, SharedBus, WorkQueue, testing::NatsServer,
};
use muster_schemas::{
    command::Query,
    event::{Commit, Event},
    ids::{NodeId, Sequence},
    subjects,
};
use std::{sync::Arc, time::Duration};
use tokio::net::TcpListener;

async fn read_to(feed: &mut Feed, to: u64) {
    while feed.position() <= Sequence(to) {
        let next = feed.position();
        let commit = soon("the feed", feed.next()).await.expect("the feed goes on");
        for (at, record) in commit.records.iter().enumerate() {
            assert_eq!(record, &common::record(next.0 + at as u64));
        }
    }
    assert_eq!(feed.position(), Sequence(to + 1));
}

/// Enqueues an item, however often the connection is lost.
async fn enqueue(bus: &SharedBus, key: &str) {
    soon("enqueueing", async {
        while let Err(error) = bus.enqueue(&WorkQueue::NOTIFY, key, Message::new(key.to_owned())).await {
            assert!(error.is_retryable(), "{error}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[derive(Clone, Copy, PartialEq)]
enum Store {
    Kept,
    Lost,
}

/// Kills the server three times while the bus does everything it can, and checks that it all continues.
async fn survive(store: Store) {
    let mut server = NatsServer::start();
    let (here, there) = (connect(&server).await, connect(&server).await);
    let ledger = TestLedger::default();
    ledger.serve(&here).await;
    ledger.commit(&*here, 1, 10).await;
    let mut feed = Feed::open(there.clone(), Sequence(1)).await.expect("a feed");
    read_to(&mut feed, 10).await;
    let mut orders = there.subscribe("muster.node.*.order").await.expect("subscribed");
    let mut worker = there.worker(&WorkQueue::NOTIFY).await.expect("a worker");
    enqueue(&here, "before").await;
    soon("an item", worker.next()).await.expect("open").ack().await.expect("acknowledged");
    let mut losses = here.losses();

    for round in 1..=3 {
        let first = round * 100;
        enqueue(&here, &format!("kept {round}")).await;
        let head = feed.position().0;
        ledger.append(&commit(head, first).records);
        server.kill();
        if store == Store::Lost {
            server.wipe_store();
        }
        ledger.append(&commit(first + 1, first + 10).records);
        server.restart();

        // The feed finds records that were written while there was no bus, without waiting for new ones.
        read_to(&mut feed, first + 10).await;
        ledger.commit(&*here, first + 11, first + 20).await;
        read_to(&mut feed, first + 20).await;

        let client = LedgerClient::new(there.clone());
        soon("an answer", client.query(&Query::Head)).await.expect("the ledger answers");

        let mut number = 0;
        soon("an order", async {
            while orders.try_next().is_none() {
                number += 1;
                let order = Message::new(number.to_string());
                here.publish(&subjects::node_orders("node1"), order).await.expect("published");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;

        if store == Store::Lost {
            soon("the loss is noticed", losses.changed()).await.expect("the bus is there");
        }
        enqueue(&here, &format!("later {round}")).await;
        let expected = match store {
            Store::Kept => vec![format!("kept {round}"), format!("later {round}")],
            Store::Lost => vec![format!("later {round}")],
        };
        for key in expected {
            let item = soon("an item", worker.next()).await.expect("the bus is open");
            assert_eq!(item.key, key);
            item.ack().await.expect("acknowledged");
        }
    }
    match store {
        Store::Kept => assert_eq!(*losses.borrow(), 0),
        Store::Lost => assert!(*losses.borrow() >= 3),
    }
}

/// The bus survives a kill of its server (M-BUS-1).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bus_survives_that_its_server_is_killed() {
    survive(Store::Kept).await;
}

/// The bus survives the deletion of its whole store (M-BUS-2).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bus_survives_that_its_whole_store_is_deleted() {
    survive(Store::Lost).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_waits_for_its_server() {
    let mut server = NatsServer::start();
    server.kill();
    let address = server.url().replace("nats://", "");
    let in_its_place = TcpListener::bind(address).await.expect("nobody else is there");
    let connecting = tokio::spawn(NatsBus::connect(config(&server)));
    // It hangs up on each attempt. A second attempt shows that the client keeps trying.
    for _ in 0..2 {
        drop(soon("an attempt", in_its_place.accept()).await.expect("a connection"));
    }
    drop(in_its_place);
    assert!(!connecting.is_finished());
    server.restart();
    soon("connecting", connecting).await.expect("no panic").expect("connected");
}

/// A second writer of the log is fenced (M-BUS-3).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_writer_of_the_log_is_fenced() {
    let server = NatsServer::start();
    let (first, second) = (connect(&server).await, connect(&server).await);
    let mut follower = first.follow_log().await.expect("a stream");
    first.publish_commit(commit(1, 3)).await.expect("published");
    assert_eq!(second.log_tail().await.expect("a tail").sequence(), Some(Sequence(3)));
    second.publish_commit(commit(4, 4)).await.expect("published");
    for _ in 0..2 {
        let error = first.publish_commit(commit(4, 5)).await.expect_err("another has written");
        assert!(matches!(error, BusError::Fenced { expected: Sequence(3) }), "{error}");
    }
    assert_eq!(first.log_tail().await.expect("a tail").sequence(), Some(Sequence(4)));
    first.publish_commit(commit(4, 5)).await.expect("published");
    for (start, end) in [(1, 3), (4, 4), (5, 5)] {
        assert_eq!(soon("a commit", follower.next()).await, Some(LogItem::Commit(commit(start, end))));
    }
}

/// M-LOG-18: a ledger that hangs, and is connected, keeps no request from the one that answers now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_keeps_no_request_from_its_successor() {
    let server = NatsServer::start();
    let (first, second, asking) = (connect(&server).await, connect(&server).await, connect(&server).await);
    let hanging = first.serve_all("test.ask").await.expect("served");
    let mut answering = second.serve_all("test.ask").await.expect("served");
    tokio::spawn(async move {
        while let Some(request) = answering.next().await {
            request.reply(Message::new("here"));
        }
    });
    for _ in 0..20 {
        let asked = asking.request("test.ask", Message::new("?"), Duration::from_secs(3600));
        assert_eq!(soon("a reply", asked).await.expect("a reply").payload, "here");
    }
    drop(hanging);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_larger_than_a_message_is_split() {
    let server = NatsServer::start();
    let bus = connect(&server).await;
    let mut follower = bus.follow_log().await.expect("a stream");
    let large = |sequence| record_of(sequence, Event::NodeLost { node: NodeId(1), reason: "x".repeat(3 << 20) });
    let records: Vec<_> = (1..=9).map(large).collect();
    bus.publish_commit(Arc::new(Commit { records: records.clone() })).await.expect("published");
    let mut seen = Vec::new();
    while seen.len() < 9 {
        match soon("a part", follower.next()).await {
            Some(LogItem::Commit(part)) => seen.extend(part.records.clone()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, records);
    assert_eq!(bus.log_tail().await.expect("a tail").sequence(), Some(Sequence(9)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_are_too_large_are_refused() {
    let server = NatsServer::start();
    let bus = connect(&server).await;
    let large = || Message::new(vec![0; bus.max_payload_bytes() + 5000]);
    let mut requests = bus.serve("test.large").await.expect("served");
    let replying = large();
    tokio::spawn(async move { requests.next().await.expect("a request").reply(replying) });
    let timeout = Duration::from_secs(600);
    for error in [
        bus.request("test.large", large(), timeout).await.map(drop),
        bus.publish("test.large", large()).await,
        bus.enqueue(&WorkQueue::NOTIFY, "large", large()).await,
    ] {
        assert!(matches!(error, Err(BusError::TooLarge { .. })), "{error:?}");
    }
    let reply = soon("the refusal", bus.request("test.large", Message::new("?"), timeout)).await;
    assert!(matches!(reply, Err(BusError::Unusable(_))), "{reply:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_log_in_with_their_password() {
    let server = NatsServer::start_with("authorization { users: [{ user: ledger, password: \"open sesame\" }] }");
    let folder = tempfile::tempdir().expect("a folder");
    let password_file = folder.path().join("password");
    std::fs::write(&password_file, "open sesame\n").expect("written");
    let with = |user: &str| muster_bus::NatsConfig {
        user: Some(user.to_owned()),
        password_file: Some(password_file.clone()),
        ..config(&server)
    };
    let bus = soon("connecting", NatsBus::connect(with("ledger"))).await.expect("connected");
    assert_eq!(bus.log_tail().await.expect("a tail").sequence(), None);
    for stranger in [with("planner"), config(&server)] {
        let error = soon("the refusal", NatsBus::connect(stranger)).await.expect_err("it may not");
        assert!(matches!(error, BusError::Unusable(_)), "{error}");
        assert!(!format!("{error}").contains("sesame"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_and_clients_know_each_other_by_certificates() {
    let file = |name: &str| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name);
    let server = NatsServer::start_with(&format!(
        "tls {{ cert_file: {:?}, key_file: {:?}, ca_file: {:?}, verify: true }}",
        file("server.pem"),
        file("server.key"),
        file("ca.pem")
    ));
    let good = muster_bus::NatsConfig {
        tls_ca_file: Some(file("ca.pem")),
        tls_certificate_file: Some(file("client.pem")),
        tls_key_file: Some(file("client.key")),
        tls_required: true,
        ..config(&server)
    };
    let bus = soon("connecting", NatsBus::connect(good.clone())).await.expect("connected");
    assert_eq!(bus.log_tail().await.expect("a tail").sequence(), None);
    let unknown = muster_bus::NatsConfig { tls_certificate_file: None, tls_key_file: None, ..good.clone() };
    let doubtful = muster_bus::NatsConfig { tls_ca_file: None, ..good };
    for (bad, what) in [(unknown, "a client without certificate"), (doubtful, "a server that nobody vouches for")] {
        let connecting = tokio::time::timeout(Duration::from_secs(2), NatsBus::connect(bad)).await;
        assert!(!matches!(connecting, Ok(Ok(_))), "{what} was accepted");
    }
}

/// The certificate of an authority is often at hand, but it is not a server's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_that_is_used_as_a_server_is_told_in_words() {
    let file = |name: &str| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name);
    let (certificate, key) = (file("authority.pem"), file("authority.key"));
    let server = NatsServer::start_with(&format!("tls {{ cert_file: {certificate:?}, key_file: {key:?} }}"));
    let trusting = muster_bus::NatsConfig { tls_ca_file: Some(certificate), tls_required: true, ..config(&server) };
    let error = soon("the refusal", NatsBus::connect(trusting)).await.expect_err("it is no server's");
    assert!(error.to_string().contains("it shows the certificate of an authority (CA:TRUE)"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_configurations_are_refused() {
    let server = NatsServer::start();
    let good = config(&server);
    let missing = std::path::PathBuf::from("/nonexistent/file");
    for bad in [
        muster_bus::NatsConfig { url: "nats://127.0.0.1:port".into(), ..good.clone() },
        muster_bus::NatsConfig { url: "nats://a:b@127.0.0.1".into(), ..good.clone() },
        muster_bus::NatsConfig { credentials_file: Some(missing.clone()), ..good.clone() },
        muster_bus::NatsConfig { user: Some("a".into()), password_file: Some(missing.clone()), ..good.clone() },
        muster_bus::NatsConfig { tls_certificate_file: Some(missing), ..good },
    ] {
        let error = soon("the refusal", NatsBus::connect(bad.clone())).await.expect_err("it cannot work");
        assert!(matches!(error, BusError::Unusable(_)), "{bad:?}: {error}");
    }
}
