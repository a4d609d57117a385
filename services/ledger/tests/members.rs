//! Several ledgers as services, on a stream of rounds in memory that never fails: who leads, who follows, who joins. Faults are
//! the business of the simulation.

mod support;

use muster_bus::{
    LedgerClient, LocalBus, SharedBus,
    rounds::{Next, Outcome, Position, RoundKind, RoundMessage, Rounds, StreamInfo},
};
use muster_ledger::{Config, Replication, limits::NoLimits, serve_member};
use muster_schemas::{
    command::{Command, CommandEnvelope, Query, QueryAnswer},
    event::{Event, TraceContext},
    ids::{CommandId, Sequence},
    time::Timestamp,
};
use std::{
    path::Path,
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};
use support::{Ledger, config, root, submission};
use tokio::{sync::oneshot, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// A stream in memory. Clones share it.
#[derive(Clone, Default)]
struct Stream {
    messages: Arc<(Mutex<Vec<RoundMessage>>, Condvar)>,
    created: Timestamp,
}

impl Rounds for Stream {
    fn append(&mut self, after: Position, message: &RoundMessage) -> Outcome {
        let (messages, arrived) = &*self.messages;
        let mut messages = messages.lock().unwrap();
        let last = Position(messages.len() as u64);
        if after != last {
            return Outcome::Beaten { last };
        }
        messages.push(message.clone());
        arrived.notify_all();
        Outcome::Stands(last.next())
    }

    fn next(&mut self, after: Position, wait: Duration) -> Next {
        let (messages, arrived) = &*self.messages;
        let is_missing = |messages: &mut Vec<RoundMessage>| messages.len() as u64 <= after.0;
        let (messages, _) = arrived.wait_timeout_while(messages.lock().unwrap(), wait, is_missing).unwrap();
        match messages.get(usize::try_from(after.0).unwrap()) {
            Some(message) => Next::Message(after.next(), message.clone()),
            None => Next::Nothing,
        }
    }

    fn info(&mut self) -> Result<StreamInfo, String> {
        let last = Position(self.messages.0.lock().unwrap().len() as u64);
        Ok(StreamInfo { created: self.created, first: Position(1), last })
    }
}

struct Member {
    shutdown: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

fn member_config(folder: &Path, name: &str) -> Config {
    Config { replication: Replication::Stream, name: name.into(), ..config(folder) }
}

impl Member {
    async fn start(bus: &SharedBus, stream: &Stream, config: Config) -> Self {
        let (ready, is_ready) = oneshot::channel();
        let shutdown = CancellationToken::new();
        let limits = Arc::new(NoLimits);
        let rounds = Box::new(stream.clone());
        let mut task = tokio::spawn(serve_member(bus.clone(), config, limits, rounds, ready, shutdown.clone()));
        if is_ready.await.is_err() {
            panic!("the ledger does not start: {:?}", (&mut task).await);
        }
        Self { shutdown, task }
    }

    async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.expect("the ledger does not panic").expect("a clean stop");
    }
}

fn give_key(from: &Path, to: &Path) {
    std::fs::copy(from.join("ledger.key"), to.join("ledger.key")).unwrap();
}

/// The ledgers that have led, in order.
async fn reigns(client: &LedgerClient) -> Vec<(u64, String)> {
    let answer = client.query(&Query::Replay { from: Sequence(1), max_bytes: 1 << 20 }).await.unwrap();
    let QueryAnswer::Records(page) = answer else { panic!("{answer:?}") };
    let reign = |event: &Event| match event {
        Event::LedgerLeads { epoch, ledger, .. } => Some((*epoch, ledger.clone())),
        _ => None,
    };
    page.records.iter().filter_map(|record| reign(&record.event)).collect()
}

/// A ledger that joins with the cluster's key has the whole history when it leads, with the answers that retries get; the one
/// that led follows when it comes back (M-LOG-17).
#[tokio::test(flavor = "multi_thread")]
async fn another_ledger_joins_leads_and_knows_every_answer() {
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let (bus, stream): (SharedBus, _) = (LocalBus::new(), Stream::default());
    let client = LedgerClient::new(bus.clone());
    let one = Member::start(&bus, &stream, member_config(first.path(), "one")).await;
    let envelope = CommandEnvelope {
        id: CommandId::new_now(),
        actor: root(),
        trace: TraceContext::default(),
        command: submission(2),
    };
    let answer = client.send(&envelope).await.unwrap();
    assert!(answer.result.is_ok(), "{answer:?}");

    give_key(first.path(), second.path());
    let two = Member::start(&bus, &stream, member_config(second.path(), "two")).await;
    one.stop().await;
    assert_eq!(client.send(&envelope).await.unwrap(), answer, "the first answer, of another ledger");
    assert_eq!(reigns(&client).await, [(1, "one".to_owned()), (2, "two".to_owned())]);

    let one = Member::start(&bus, &stream, member_config(first.path(), "one")).await;
    two.stop().await;
    assert_eq!(client.send(&envelope).await.unwrap(), answer);
    assert_eq!(reigns(&client).await.len(), 3);
    one.stop().await;

    // Alone again, it goes on with the epoch that nodes know.
    let alone = Ledger::start(config(first.path())).await;
    alone.submit(1).await;
    assert_eq!(alone.records(Sequence(1)).await.last().unwrap().epoch, 3);
    alone.stop().await;
}

/// A ledger without the cluster's key does not become one of its ledgers, and begins nothing of its own (M-LOG-17).
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_without_the_key_does_not_join() {
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let (bus, stream): (SharedBus, _) = (LocalBus::new(), Stream::default());
    let one = Member::start(&bus, &stream, member_config(first.path(), "one")).await;
    let client = LedgerClient::new(bus.clone());
    client.query(&Query::Head).await.unwrap();
    let (ready, _is_ready) = oneshot::channel();
    let config = member_config(second.path(), "two");
    let rounds = Box::new(stream.clone());
    let refused = serve_member(bus.clone(), config, Arc::new(NoLimits), rounds, ready, CancellationToken::new()).await;
    let text = format!("{:#}", refused.unwrap_err());
    assert!(text.contains("copy the file `ledger.key` of another ledger"), "{text}");
    assert!(!second.path().join("ledger/log").exists());
    one.stop().await;
}

/// A ledger does not take over a stream that is not the one its log was written with, unless a person says so
/// (M-LOG-17).
#[tokio::test(flavor = "multi_thread")]
async fn a_new_stream_is_taken_over_by_nobody_but_a_person() {
    let folder = tempfile::tempdir().unwrap();
    let bus: SharedBus = LocalBus::new();
    let client = LedgerClient::new(bus.clone());
    let one = Member::start(&bus, &Stream::default(), member_config(folder.path(), "one")).await;
    client.query(&Query::Head).await.unwrap();
    one.stop().await;

    let new = Stream { created: Timestamp(7), ..Stream::default() };
    let one = Member::start(&bus, &new, member_config(folder.path(), "one")).await;
    let text = format!("{:#}", one.task.await.unwrap().unwrap_err());
    assert!(text.contains("is not taken over by itself") && text.contains("--lead-new-stream"), "{text}");
    assert!(new.messages.0.lock().unwrap().is_empty());

    let last =
        muster_ledger::log::Log::open_read_only(&folder.path().join("ledger/log")).unwrap().head().unwrap().sequence;
    let promoted = Config { promoted: Some(last), ..member_config(folder.path(), "one") };
    let one = Member::start(&bus, &new, promoted).await;
    client.query(&Query::Head).await.unwrap();
    assert_eq!(reigns(&client).await.len(), 2);
    one.stop().await;
}

/// M-LOG-19: a ledger that is told to hand over ends its reign in the stream, and the one that was named leads next, without a
/// message between. A retry of the command gets its first answer from the new leader, and does not end that reign too.
#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_that_is_named_leads_next() {
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let (bus, stream): (SharedBus, _) = (LocalBus::new(), Stream::default());
    let client = LedgerClient::new(bus.clone());
    let mut members = Vec::new();
    for (name, folder) in ["one", "two", "three"].into_iter().zip(&folders) {
        if name != "one" {
            give_key(folders[0].path(), folder.path());
        }
        members.push(Member::start(&bus, &stream, member_config(folder.path(), name)).await);
        client.query(&Query::Head).await.unwrap();
    }
    for (at, name) in ["three", "two", "one"].into_iter().enumerate() {
        let envelope = CommandEnvelope {
            id: CommandId::new_now(),
            actor: root(),
            trace: TraceContext::default(),
            command: Command::HandOver { to: Some(name.to_owned()) },
        };
        let answer = client.send(&envelope).await.unwrap();
        assert!(answer.result.is_ok(), "{answer:?}");
        assert_eq!(client.send(&envelope).await.unwrap(), answer);
        let reigns = reigns(&client).await;
        assert_eq!((reigns.len(), &reigns[at + 1].1[..]), (at + 2, name), "{reigns:?}");
    }
    let refused = client.command(root(), TraceContext::default(), Command::HandOver { to: Some("one".into()) }).await;
    assert!(refused.unwrap().result.unwrap_err().message.contains("leads already"));
    for member in members {
        member.stop().await;
    }
    let kinds: Vec<RoundKind> = stream.messages.0.lock().unwrap().iter().map(|message| message.header.kind).collect();
    let ends: Vec<_> =
        kinds.windows(2).filter(|pair| pair[0] == RoundKind::Yield).take(3).map(|pair| pair[1]).collect();
    assert_eq!(ends, [RoundKind::Claim; 3]);
}

/// M-LOG-19: a ledger without others has nobody to hand over to, also if it once had.
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_is_alone_cannot_hand_over() {
    let folder = tempfile::tempdir().unwrap();
    let hand_over = || Command::HandOver { to: None };
    let bus: SharedBus = LocalBus::new();
    let client = LedgerClient::new(bus.clone());
    let member = Member::start(&bus, &Stream::default(), member_config(folder.path(), "one")).await;
    client.query(&Query::Head).await.unwrap();
    member.stop().await;
    let alone = Ledger::start(config(folder.path())).await;
    let answer = alone.client.command(root(), TraceContext::default(), hand_over()).await.unwrap();
    assert!(answer.result.unwrap_err().message.contains("no others"));
    alone.stop().await;
}

/// M-LOG-20: with `wait_for_standby` nothing is answered that no other ledger has on disk.
#[tokio::test(flavor = "multi_thread")]
async fn answers_wait_for_a_ledger_that_follows() {
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let (bus, stream): (SharedBus, _) = (LocalBus::new(), Stream::default());
    let waiting = |folder: &Path, name| Config { wait_for_standby: true, cluster: None, ..member_config(folder, name) };
    // The cluster is configured while the ledger need not wait.
    let client = LedgerClient::new(bus.clone());
    let one = Member::start(&bus, &stream, member_config(first.path(), "one")).await;
    client.query(&Query::Head).await.unwrap();
    one.stop().await;

    let one = Member::start(&bus, &stream, waiting(first.path(), "one")).await;
    let QueryAnswer::Head { last, .. } = client.query(&Query::Head).await.unwrap() else { panic!("no head") };
    let envelope = CommandEnvelope {
        id: CommandId::new_now(),
        actor: root(),
        trace: TraceContext::default(),
        command: submission(2),
    };
    let hasty = client.clone().with_patience(Duration::from_millis(1500));
    assert!(hasty.send(&envelope).await.is_err(), "no other ledger has it");
    let answer = client.query(&Query::Head).await.unwrap();
    assert!(matches!(answer, QueryAnswer::Head { last: now, .. } if now == last), "{answer:?}");

    give_key(first.path(), second.path());
    let two = Member::start(&bus, &stream, waiting(second.path(), "two")).await;
    let answer = client.send(&envelope).await.unwrap();
    assert!(answer.result.is_ok(), "{answer:?}");
    let kept =
        muster_ledger::log::Log::open_read_only(&second.path().join("ledger/log")).unwrap().head().unwrap().sequence;
    assert!(kept >= answer.sequence, "{kept}");
    assert_eq!(reigns(&client).await.len(), 2, "the leader has gone on leading meanwhile");
    one.stop().await;
    two.stop().await;
}
