//! The behaviour of every bus. Each case runs against the bus inside a process and against NATS.

mod common;

use common::{DEADLINE, Setup, TestLedger, commit, soon};
use muster_bus::{BusError, Feed, LedgerClient, LogItem, Message, PublicEvent, SharedBus, WorkItem, WorkQueue};
use muster_schemas::{
    command::{Answer, Command, CommandEnvelope, Query, QueryAnswer, Reply},
    event::{Actor, Commit, Event, Record, TraceContext, uuid_bytes::UuidBytes},
    ids::{CommandId, RunId, Sequence},
    subjects,
    time::Timestamp,
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

macro_rules! on_every_bus {
    ($($case:ident,)*) => {
        mod local {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(super::Setup::local().await).await;
            })*
        }
        mod nats {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(super::Setup::nats().await).await;
            })*
        }
    };
}

on_every_bus! {
    a_request_gets_its_reply_and_carries_its_trace,
    a_request_to_nobody_is_told_at_once,
    a_request_without_reply_times_out,
    a_dropped_request_is_told,
    servers_share_the_requests,
    a_server_that_went_is_not_asked,
    malformed_patterns_are_refused,
    node_orders_reach_their_node_in_order,
    followers_see_all_commits_in_order,
    an_interrupted_append_can_be_repeated,
    a_feed_begins_in_the_past_and_goes_on_live,
    a_feed_repairs_gaps_from_the_ledger,
    a_feed_finds_what_was_never_published,
    a_feed_that_was_not_read_loses_nothing,
    a_feed_survives_a_ledger_that_comes_late,
    a_feed_reports_what_the_ledger_cannot_give,
    a_feed_says_that_an_older_log_was_restored,
    a_feed_finds_a_restored_log_that_has_grown,
    each_item_goes_to_one_worker,
    an_item_not_acknowledged_comes_again,
    an_item_of_a_worker_that_died_goes_to_one_that_waits,
    an_item_in_progress_stays_with_its_worker,
    an_item_to_retry_comes_later,
    an_item_enqueued_twice_comes_once,
    an_item_waits_for_a_worker,
    public_events_reach_their_subscribers,
    a_command_waits_for_the_ledger_and_is_done_once,
    a_ledger_that_says_not_now_is_asked_again,
    a_client_without_ledger_gives_up,
    what_a_ledger_took_along_is_asked_again_when_another_one_answers,
}

/// A server that answers each request with its payload doubled.
async fn serve_doubled(bus: &SharedBus, pattern: &str) -> tokio::task::JoinHandle<u32> {
    let mut requests = bus.serve(pattern).await.expect("served");
    tokio::spawn(async move {
        let mut served = 0;
        while let Some(request) = requests.next().await {
            let trace = request.message.trace;
            let payload = request.message.payload.repeat(2);
            served += 1;
            let last = request.message.payload.is_empty();
            request.reply(Message::new(payload).with_trace(trace));
            if last {
                break;
            }
        }
        served
    })
}

async fn a_request_gets_its_reply_and_carries_its_trace(setup: Setup) {
    let mut requests = setup.there.serve("test.*.ask").await.expect("served");
    let trace = TraceContext { trace_id: [7; 16], span_id: [9; 8], flags: 1 };
    let server = tokio::spawn(async move {
        let request = requests.next().await.expect("a request");
        let seen = (request.subject.clone(), request.message.clone());
        request.reply(Message::new("pong").with_trace(trace));
        seen
    });
    let message = Message::new("ping").with_trace(trace);
    let reply = setup.here.request("test.a.ask", message.clone(), DEADLINE).await.expect("a reply");
    assert_eq!(reply, Message::new("pong").with_trace(trace));
    assert_eq!(server.await.expect("no panic"), ("test.a.ask".to_owned(), message));
}

async fn a_request_to_nobody_is_told_at_once(setup: Setup) {
    let asked = setup.here.request("test.nobody", Message::new("?"), DEADLINE * 10);
    let error = soon("the refusal", asked).await.expect_err("nobody is there");
    assert!(matches!(error, BusError::NoResponder { .. }), "{error}");
    assert!(error.is_retryable());
}

async fn a_request_without_reply_times_out(setup: Setup) {
    let mut requests = setup.there.serve("test.silent").await.expect("served");
    let asked = setup.here.request("test.silent", Message::new("?"), Duration::from_millis(50));
    let error = soon("the timeout", asked).await.expect_err("it does not answer");
    assert!(matches!(error, BusError::TimedOut { .. }), "{error}");
    assert!(requests.next().await.is_some());
}

async fn a_dropped_request_is_told(setup: Setup) {
    let mut requests = setup.there.serve("test.drop").await.expect("served");
    tokio::spawn(async move { drop(requests.next().await) });
    let asked = setup.here.request("test.drop", Message::new("?"), DEADLINE * 10);
    let error = soon("the refusal", asked).await.expect_err("it was dropped");
    assert!(matches!(error, BusError::TimedOut { .. }), "{error}");
}

async fn servers_share_the_requests(setup: Setup) {
    let servers = [serve_doubled(&setup.there, "test.>").await, serve_doubled(&setup.here, "test.shared").await];
    for number in 0..50 {
        let reply = setup.here.request("test.shared", Message::new(format!("{number},")), DEADLINE).await;
        assert_eq!(reply.expect("a reply").payload, format!("{number},{number},"));
    }
    // An empty request ends its server; each request reaches one server, so each is ended by one.
    for _ in &servers {
        soon("the end", setup.here.request("test.shared", Message::default(), DEADLINE)).await.expect("a reply");
        soon("one server left", async {
            while servers.iter().all(|server| !server.is_finished()) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    let mut served = 0;
    for server in servers {
        served += soon("the server", server).await.expect("no panic");
    }
    assert_eq!(served, 52);
}

async fn a_server_that_went_is_not_asked(setup: Setup) {
    let first = setup.there.serve("test.gone").await.expect("served");
    drop(first);
    soon("the server is forgotten", async {
        loop {
            let asked = setup.here.request("test.gone", Message::new("?"), Duration::from_millis(100)).await;
            if matches!(asked, Err(BusError::NoResponder { .. })) {
                break;
            }
        }
    })
    .await;
    serve_doubled(&setup.there, "test.gone").await;
    let reply = setup.here.request("test.gone", Message::new("x"), DEADLINE).await.expect("a reply");
    assert_eq!(reply.payload, "xx");
}

async fn malformed_patterns_are_refused(setup: Setup) {
    for pattern in ["", "a..b", "a.>.b", "a b"] {
        assert!(matches!(setup.here.serve(pattern).await, Err(BusError::Unusable(_))), "{pattern:?}");
        assert!(matches!(setup.here.subscribe(pattern).await, Err(BusError::Unusable(_))), "{pattern:?}");
    }
}

async fn node_orders_reach_their_node_in_order(setup: Setup) {
    let mut first = setup.there.subscribe(&subjects::node_orders("node1")).await.expect("subscribed");
    let mut second = setup.there.subscribe(&subjects::node_orders("node.2")).await.expect("subscribed");
    for number in 0..1000 {
        for node in ["node1", "node.2"] {
            let order = Message::new(format!("{node} {number}"));
            setup.here.publish(&subjects::node_orders(node), order).await.expect("published");
        }
    }
    for (subscription, node) in [(&mut first, "node1"), (&mut second, "node.2")] {
        for number in 0..1000 {
            let order = soon("an order", subscription.next()).await.expect("the bus is open");
            assert_eq!(order.subject, subjects::node_orders(node));
            assert_eq!(order.message.payload, format!("{node} {number}"));
        }
        assert_eq!(subscription.try_next(), None);
    }
}

async fn followers_see_all_commits_in_order(setup: Setup) {
    assert_eq!(setup.here.log_tail().await.expect("a tail").sequence(), None);
    let mut followers =
        [setup.here.follow_log().await.expect("a stream"), setup.there.follow_log().await.expect("a stream")];
    for number in 0..200 {
        setup.here.publish_commit(commit(number * 3 + 1, number * 3 + 3)).await.expect("published");
    }
    for follower in &mut followers {
        for number in 0..200 {
            let item = soon("a commit", follower.next()).await;
            assert_eq!(item, Some(LogItem::Commit(commit(number * 3 + 1, number * 3 + 3))));
        }
        assert_eq!(follower.try_next(), None);
    }
    assert_eq!(setup.here.log_tail().await.expect("a tail").sequence(), Some(Sequence(600)));
}

async fn an_interrupted_append_can_be_repeated(setup: Setup) {
    let mut follower = setup.there.follow_log().await.expect("a stream");
    for (first, last) in [(1, 5), (1, 5), (4, 8), (2, 3), (11, 12)] {
        setup.here.publish_commit(commit(first, last)).await.expect("published");
    }
    for (first, last) in [(1, 5), (6, 8), (11, 12)] {
        assert_eq!(soon("a commit", follower.next()).await, Some(LogItem::Commit(commit(first, last))));
    }
    assert_eq!(setup.here.log_tail().await.expect("a tail").sequence(), Some(Sequence(12)));
}

/// Reads a feed up to a sequence and checks that nothing is missing or doubled.
async fn read_to(feed: &mut Feed, to: u64) {
    let mut next = feed.position();
    while next <= Sequence(to) {
        let commit = soon("the feed", feed.next()).await.expect("the feed goes on");
        for record in &commit.records {
            assert_eq!(record, &common::record(next.0));
            next = next.next();
        }
    }
    assert_eq!(next, Sequence(to + 1));
}

async fn a_feed_begins_in_the_past_and_goes_on_live(setup: Setup) {
    let ledger = TestLedger::default();
    ledger.serve(&setup.here).await;
    ledger.commit(&*setup.here, 1, 12_000).await;
    let mut feed = Feed::open(setup.there.clone(), Sequence(0)).await.expect("a feed");
    let mut later = Feed::open(setup.there.clone(), Sequence(11_999)).await.expect("a feed");
    for number in 0..100 {
        ledger.commit(&*setup.here, 12_001 + number * 2, 12_002 + number * 2).await;
    }
    read_to(&mut feed, 12_200).await;
    read_to(&mut later, 12_200).await;
}

async fn a_feed_repairs_gaps_from_the_ledger(setup: Setup) {
    let ledger = TestLedger::default();
    ledger.serve(&setup.here).await;
    let mut feed = Feed::open(setup.there.clone(), Sequence(1)).await.expect("a feed");
    ledger.commit(&*setup.here, 1, 3).await;
    read_to(&mut feed, 3).await;
    ledger.append(&commit(4, 15_000).records);
    ledger.commit(&*setup.here, 15_001, 15_002).await;
    ledger.append(&commit(15_003, 15_003).records);
    ledger.commit(&*setup.here, 15_004, 15_004).await;
    read_to(&mut feed, 15_004).await;
}

async fn a_feed_finds_what_was_never_published(setup: Setup) {
    let ledger = TestLedger::default();
    ledger.serve(&setup.here).await;
    ledger.commit(&*setup.here, 1, 3).await;
    let mut feed = Feed::open(setup.there.clone(), Sequence(1)).await.expect("a feed");
    read_to(&mut feed, 3).await;
    ledger.append(&commit(4, 5).records);
    read_to(&mut feed, 5).await;
}

async fn a_feed_that_was_not_read_loses_nothing(setup: Setup) {
    let ledger = TestLedger::default();
    ledger.serve(&setup.here).await;
    let mut feed = Feed::open(setup.there.clone(), Sequence(1)).await.expect("a feed");
    ledger.commit(&*setup.here, 1, 10).await;
    read_to(&mut feed, 10).await;
    for number in 0..100 {
        ledger.commit(&*setup.here, 11 + number * 1000, 1010 + number * 1000).await;
    }
    read_to(&mut feed, 100_010).await;
}

async fn a_feed_survives_a_ledger_that_comes_late(setup: Setup) {
    let ledger = TestLedger::default();
    ledger.commit(&*setup.here, 1, 10).await;
    let mut feed = Feed::open(setup.there.clone(), Sequence(1)).await.expect("a feed");
    let waiting = tokio::time::timeout(Duration::from_millis(50), feed.next()).await;
    assert!(waiting.is_err(), "there is no ledger to read from");
    ledger.refuse_next(3);
    ledger.serve(&setup.here).await;
    read_to(&mut feed, 10).await;
}

async fn a_feed_reports_what_the_ledger_cannot_give(setup: Setup) {
    let ledger = TestLedger::default();
    ledger.serve(&setup.here).await;
    ledger.commit(&*setup.here, 1, 10).await;
    ledger.archive(Sequence(5));
    let mut feed = Feed::open(setup.there.clone(), Sequence(1)).await.expect("a feed");
    let error = soon("the refusal", feed.next()).await.expect_err("it was archived");
    assert!(matches!(error, BusError::Refused(_)), "{error}");
    let mut feed = Feed::open(setup.there.clone(), Sequence(6)).await.expect("a feed");
    read_to(&mut feed, 10).await;
}

/// The records of a log that was restored up to record 5, from the sixth on.
fn restored(to: u64) -> Vec<Record> {
    let said = Event::LogRestored {
        to: Sequence(5),
        lost_to: None,
        log_id: UuidBytes([7; 16]),
        backup: "backup".into(),
        next_run: RunId(1),
    };
    let later =
        (7..=to).map(|number| Record { time: Timestamp::from_unix_seconds(2_000_000), ..common::record(number) });
    std::iter::once(common::record_of(6, said)).chain(later).collect()
}

/// A ledger with ten records, and a feed that has read them, both before the log is restored up to the fifth.
async fn before_a_restore(setup: &Setup) -> (TestLedger, Feed) {
    let ledger = TestLedger::default();
    ledger.serve(&setup.here).await;
    ledger.commit(&*setup.here, 1, 10).await;
    let mut feed = Feed::open(setup.there.clone(), Sequence(1)).await.expect("a feed");
    read_to(&mut feed, 10).await;
    ledger.cut(5);
    setup.here.log_tail().await.expect("a tail");
    setup.here.clear_log().await.expect("cleared");
    (ledger, feed)
}

async fn is_told(feed: &mut Feed) {
    let error = soon("the end of the feed", feed.next()).await.expect_err("what it has read is gone");
    assert!(matches!(&error, BusError::Unusable(why) if why.contains("an older log was restored")), "{error}");
}

async fn a_feed_says_that_an_older_log_was_restored(setup: Setup) {
    let (ledger, mut feed) = before_a_restore(&setup).await;
    let records = restored(6);
    ledger.append(&records);
    setup.here.publish_commit(Arc::new(Commit { records })).await.expect("published");
    is_told(&mut feed).await;
}

/// It had the numbers that the reader waits for before the reader looked, and the bus told the reader nothing of it.
async fn a_feed_finds_a_restored_log_that_has_grown(setup: Setup) {
    let (ledger, mut feed) = before_a_restore(&setup).await;
    ledger.append(&restored(10));
    // The last record again, as a ledger does that begins to write.
    let records = restored(10).split_off(4);
    setup.here.publish_commit(Arc::new(Commit { records })).await.expect("published");
    is_told(&mut feed).await;
    let mut again = Feed::open(setup.there.clone(), Sequence(1)).await.expect("a feed");
    let read = soon("the new log", again.next()).await.expect("records");
    assert_eq!(read.last(), Sequence(10));
}

/// A queue that redelivers its items soon.
fn queue() -> WorkQueue {
    WorkQueue { name: "TEST_WORK".into(), subject: "test.work".into(), redeliver_after: Duration::from_millis(500) }
}

async fn enqueue(setup: &Setup, key: &str) {
    let message = Message::new(format!("do {key}"));
    setup.here.enqueue(&queue(), key, message).await.expect("enqueued");
}

async fn next_item(worker: &mut muster_bus::WorkStream) -> WorkItem {
    soon("an item", worker.next()).await.expect("the bus is open")
}

/// Whether the queue offers nothing for longer than a redelivery takes.
async fn is_idle(worker: &mut muster_bus::WorkStream) -> bool {
    tokio::time::timeout(queue().redeliver_after * 3, worker.next()).await.is_err()
}

async fn each_item_goes_to_one_worker(setup: Setup) {
    let queue = WorkQueue { redeliver_after: DEADLINE, ..queue() };
    let mut workers = Vec::new();
    let (sender, mut done) = tokio::sync::mpsc::unbounded_channel();
    for bus in [&setup.here, &setup.there, &setup.there] {
        let mut worker = bus.worker(&queue).await.expect("a worker");
        let sender = sender.clone();
        workers.push(tokio::spawn(async move {
            while let Some(item) = worker.next().await {
                assert_eq!(item.message.payload, format!("do {}", item.key));
                let (key, deliveries) = (item.key.clone(), item.deliveries);
                item.ack().await.expect("acknowledged");
                sender.send((key, deliveries)).expect("the test waits");
            }
        }));
    }
    for number in 0..100 {
        let message = Message::new(format!("do {number}"));
        setup.here.enqueue(&queue, &number.to_string(), message).await.expect("enqueued");
    }
    let mut seen = BTreeMap::new();
    for _ in 0..100 {
        let (key, deliveries) = soon("an item", done.recv()).await.expect("workers work");
        assert_eq!(deliveries, 1);
        *seen.entry(key).or_insert(0) += 1;
    }
    assert_eq!(seen.len(), 100);
    assert!(done.try_recv().is_err());
    workers.iter().for_each(tokio::task::JoinHandle::abort);
}

async fn an_item_not_acknowledged_comes_again(setup: Setup) {
    let mut dying = setup.there.worker(&queue()).await.expect("a worker");
    enqueue(&setup, "a").await;
    let first = next_item(&mut dying).await;
    assert_eq!((first.key.as_str(), first.deliveries), ("a", 1));
    drop((first, dying));
    let mut worker = setup.here.worker(&queue()).await.expect("a worker");
    let second = next_item(&mut worker).await;
    assert_eq!((second.key.as_str(), second.deliveries), ("a", 2));
    assert_eq!(second.message.payload, "do a");
    second.ack().await.expect("acknowledged");
    assert!(is_idle(&mut worker).await);
}

async fn an_item_of_a_worker_that_died_goes_to_one_that_waits(setup: Setup) {
    let (sender, mut delivered) = tokio::sync::mpsc::unbounded_channel();
    for bus in [&setup.here, &setup.there] {
        let mut worker = bus.worker(&queue()).await.expect("a worker");
        let sender = sender.clone();
        // A worker that hangs on its first item.
        tokio::spawn(async move {
            let item = worker.next().await.expect("the bus is open");
            sender.send(item.deliveries).expect("the test waits");
            std::future::pending::<()>().await;
        });
    }
    enqueue(&setup, "a").await;
    assert_eq!(soon("an item", delivered.recv()).await, Some(1));
    assert_eq!(soon("the item again", delivered.recv()).await, Some(2));
}

async fn an_item_in_progress_stays_with_its_worker(setup: Setup) {
    let mut worker = setup.here.worker(&queue()).await.expect("a worker");
    let mut other = setup.there.worker(&queue()).await.expect("a worker");
    enqueue(&setup, "a").await;
    let item = next_item(&mut worker).await;
    let end = tokio::time::Instant::now() + queue().redeliver_after * 4;
    while tokio::time::Instant::now() < end {
        item.in_progress().await.expect("the bus is there");
        let stolen = tokio::time::timeout(queue().redeliver_after / 5, other.next()).await;
        assert!(stolen.is_err(), "the item went to another worker: {stolen:?}");
    }
    item.ack().await.expect("acknowledged");
    assert!(is_idle(&mut other).await);
}

async fn an_item_to_retry_comes_later(setup: Setup) {
    let mut worker = setup.here.worker(&queue()).await.expect("a worker");
    enqueue(&setup, "a").await;
    let delay = queue().redeliver_after * 3;
    let before = tokio::time::Instant::now();
    next_item(&mut worker).await.retry_after(delay).await.expect("the bus is there");
    enqueue(&setup, "b").await;
    let between = next_item(&mut worker).await;
    assert_eq!(between.key, "b");
    between.ack().await.expect("acknowledged");
    let again = next_item(&mut worker).await;
    assert_eq!((again.key.as_str(), again.deliveries), ("a", 2));
    assert!(before.elapsed() >= delay, "it came after {:?}, not after {delay:?}", before.elapsed());
    again.ack().await.expect("acknowledged");
}

async fn an_item_enqueued_twice_comes_once(setup: Setup) {
    enqueue(&setup, "a").await;
    enqueue(&setup, "a").await;
    let mut worker = setup.there.worker(&queue()).await.expect("a worker");
    next_item(&mut worker).await.ack().await.expect("acknowledged");
    enqueue(&setup, "a").await;
    assert!(is_idle(&mut worker).await);
}

async fn an_item_waits_for_a_worker(setup: Setup) {
    let mut worker = setup.there.worker(&queue()).await.expect("a worker");
    // An abandoned wait must not swallow the next item.
    assert!(is_idle(&mut worker).await);
    enqueue(&setup, "a").await;
    let item = next_item(&mut worker).await;
    assert_eq!((item.key.as_str(), item.deliveries), ("a", 1));
    item.ack().await.expect("acknowledged");
}

async fn public_events_reach_their_subscribers(setup: Setup) {
    assert_eq!(setup.here.public_events_tail().await.expect("a tail"), None);
    let mut all = setup.there.subscribe("muster.events.>").await.expect("subscribed");
    let mut started = setup.there.subscribe("muster.events.job.started.*").await.expect("subscribed");
    assert!(setup.here.wants_public_events());
    let event = |number: u64, verb: &str| PublicEvent {
        sequence: Sequence(number),
        log: None,
        subject: subjects::public_event("job", verb, &number.to_string()),
        message: Message::new(format!("{{\"id\":{number}}}")),
    };
    let events: Vec<_> =
        (1..=2000).map(|number| event(number, if number % 2 == 0 { "started" } else { "ended" })).collect();
    setup.here.publish_commit(commit(1, 2000)).await.expect("published");
    setup.here.publish_events(events).await.expect("published");
    for number in 1..=2000 {
        let seen = soon("an event", all.next()).await.expect("the bus is open");
        assert_eq!(seen.message.payload, format!("{{\"id\":{number}}}"));
    }
    for number in (2..=2000).step_by(2) {
        let seen = soon("an event", started.next()).await.expect("the bus is open");
        assert_eq!(seen.subject, format!("muster.events.job.started.{number}"));
    }
    assert_eq!(setup.here.public_events_tail().await.expect("a tail"), Some((Sequence(2000), None)));
}

fn envelope() -> CommandEnvelope {
    CommandEnvelope {
        id: CommandId::new_now(),
        actor: Actor::Executor("node1".into()),
        trace: TraceContext::default(),
        command: Command::Tick,
    }
}

async fn a_command_waits_for_the_ledger_and_is_done_once(setup: Setup) {
    let ledger = TestLedger::default();
    let client = LedgerClient::new(setup.there.clone());
    let envelope = envelope();
    let asking = tokio::spawn({
        let (client, envelope) = (client.clone(), envelope.clone());
        async move { client.send(&envelope).await }
    });
    let first = ledger.serve(&setup.here).await;
    let answer = soon("the answer", asking).await.expect("no panic").expect("an answer");
    assert_eq!(answer.result, Ok(Reply::Done));
    // The ledger restarts, and the client asks again as if it had lost the answer.
    first.abort();
    drop(first.await);
    let asking = tokio::spawn(async move { client.send(&envelope).await });
    ledger.serve(&setup.here).await;
    let again = soon("the answer", asking).await.expect("no panic").expect("an answer");
    assert_eq!(again, answer);
    assert_eq!(ledger.commands(), 1);
}

async fn a_ledger_that_says_not_now_is_asked_again(setup: Setup) {
    let ledger = TestLedger::default();
    ledger.serve(&setup.here).await;
    let client = LedgerClient::new(setup.there.clone());
    ledger.refuse_next(3);
    let answer = soon("the answer", client.send(&envelope())).await.expect("an answer");
    assert_eq!(answer.result, Ok(Reply::Done));
    ledger.refuse_next(3);
    let head = soon("the answer", client.query(&Query::Head)).await.expect("an answer");
    assert!(matches!(head, QueryAnswer::Head { last: Sequence(0), .. }), "{head:?}");
}

async fn a_client_without_ledger_gives_up(setup: Setup) {
    let client = LedgerClient::new(setup.there.clone()).with_patience(Duration::from_millis(100));
    let error = soon("the end", client.send(&envelope())).await.expect_err("there is no ledger");
    assert!(matches!(error, BusError::NoResponder { .. }), "{error}");
    let own = CommandEnvelope { actor: Actor::Ledger, ..envelope() };
    assert!(matches!(client.send(&own).await, Err(BusError::Unusable(_))));
}

/// M-LOG-18: a request that went to a ledger that is gone does not wait for the end of an attempt: it is sent again, under
/// the same id, when another ledger says that it answers.
async fn what_a_ledger_took_along_is_asked_again_when_another_one_answers(setup: Setup) {
    let client = LedgerClient::new(setup.here.clone()).with_patience(DEADLINE * 10).with_attempts_of(DEADLINE * 10);
    let mut requests = setup.there.serve_all("muster.command.>").await.expect("served");
    let asked = tokio::spawn({
        let (client, envelope) = (client.clone(), envelope());
        async move { client.send(&envelope).await }
    });
    let beat = tokio::spawn({
        let (node, boot_id, parts, highest_run, as_of) = ("n1".into(), "boot".into(), Vec::new(), None, None);
        let heartbeat = muster_schemas::node::Heartbeat { node, boot_id, parts, highest_run, as_of };
        async move { client.heartbeat(&heartbeat).await }
    });
    // It hangs with what it was asked.
    let mut taken = Vec::new();
    while taken.len() < 2 {
        taken.push(soon("a request", requests.next()).await.expect("the bus is open"));
    }
    let mut others = setup.here.serve_all("muster.command.>").await.expect("served");
    drop(requests);
    setup.there.publish(subjects::REIGN, Message::default()).await.expect("published");
    for _ in 0..2 {
        let request = soon("the same again", others.next()).await.expect("the bus is open");
        assert!(taken.iter().any(|first| (&first.subject, &first.message) == (&request.subject, &request.message)));
        let answer = Answer { sequence: Sequence(7), result: Ok(Reply::Done) };
        let briefing = muster_schemas::node::Briefing::default();
        let is_beat = request.subject == subjects::heartbeat("n1");
        let reply = if is_beat { Message::encode(&briefing) } else { Message::encode(&answer) };
        request.reply(reply.expect("answers are small"));
    }
    let answer = soon("the answer", asked).await.expect("no panic").expect("an answer");
    assert_eq!(answer.sequence, Sequence(7));
    soon("the briefing", beat).await.expect("no panic").expect("a briefing");
}
