//! Shared by the tests of the bus: a ledger that keeps its log in memory, and both kinds of bus.

#![allow(dead_code, reason = "not every test program uses all of it")]

use muster_bus::{Bus, LocalBus, Message, NatsBus, NatsConfig, SharedBus, testing::NatsServer};
use muster_schemas::{
    command::{Answer, CommandEnvelope, Query, QueryAnswer, Refusal, RefusalCode, Reply},
    event::{Actor, Commit, Event, Record, TraceContext},
    ids::{CommandId, NodeId, Sequence},
    subjects,
    time::Timestamp,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::task::JoinHandle;

/// Longer than any condition of a test takes.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Fails the test if the work is not done by the deadline.
pub async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work).await.unwrap_or_else(|_| panic!("{what}: not within {DEADLINE:?}"))
}

/// A bus as two processes see it.
pub struct Setup {
    pub here: SharedBus,
    pub there: SharedBus,
    pub server: Option<NatsServer>,
}

impl Setup {
    pub async fn local() -> Self {
        let bus = LocalBus::new();
        Self { here: bus.clone(), there: bus, server: None }
    }

    pub async fn nats() -> Self {
        let server = NatsServer::start();
        Self { here: connect(&server).await, there: connect(&server).await, server: Some(server) }
    }
}

pub fn config(server: &NatsServer) -> NatsConfig {
    NatsConfig { url: server.url(), ..NatsConfig::default() }
}

pub async fn connect(server: &NatsServer) -> SharedBus {
    soon("connecting", NatsBus::connect(config(server))).await.expect("the server accepts the client")
}

/// A small record that differs from every other.
pub fn record(sequence: u64) -> Record {
    record_of(sequence, Event::NodeRemoved { node: NodeId(u32::try_from(sequence).expect("a small number")) })
}

pub fn record_of(sequence: u64, event: Event) -> Record {
    Record {
        sequence: Sequence(sequence),
        time: Timestamp::from_unix_seconds(1_000_000),
        actor: Arc::new(Actor::Ledger),
        command: CommandId::derived(&[&sequence.to_be_bytes()]),
        trace: TraceContext::default(),
        event,
        epoch: 0,
    }
}

/// A commit of the records `first..=last`.
pub fn commit(first: u64, last: u64) -> Arc<Commit> {
    Arc::new(Commit { records: (first..=last).map(record).collect() })
}

/// A ledger whose log is in memory.
#[derive(Clone, Default)]
pub struct TestLedger {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    records: Vec<Record>,
    answers: HashMap<CommandId, Answer>,
    commands: u64,
    refusals_left: u32,
    snapshot: Option<(Sequence, Vec<u8>)>,
    archived: Sequence,
}

impl TestLedger {
    /// Appends records to the log without publishing them.
    pub fn append(&self, records: &[Record]) {
        let mut inner = self.inner.lock().expect("no test panics with the lock");
        inner.records.extend_from_slice(records);
    }

    /// Forgets the records after this one, as a restored log has.
    pub fn cut(&self, to: usize) {
        let mut inner = self.inner.lock().expect("no test panics with the lock");
        inner.records.truncate(to);
    }

    /// Appends records to the log and publishes them, as the real ledger does.
    pub async fn commit(&self, bus: &dyn Bus, first: u64, last: u64) {
        let commit = commit(first, last);
        self.append(&commit.records);
        soon("publishing", async {
            while let Err(error) = bus.publish_commit(commit.clone()).await {
                assert!(error.is_retryable(), "{error}");
                drop(bus.log_tail().await);
            }
        })
        .await;
    }

    /// Refuses the next commands and queries as "not now".
    pub fn refuse_next(&self, count: u32) {
        self.inner.lock().expect("no test panics with the lock").refusals_left = count;
    }

    pub fn set_snapshot(&self, sequence: Sequence, bytes: Vec<u8>) {
        self.inner.lock().expect("no test panics with the lock").snapshot = Some((sequence, bytes));
    }

    /// Records up to this one can no longer be replayed.
    pub fn archive(&self, to: Sequence) {
        self.inner.lock().expect("no test panics with the lock").archived = to;
    }

    /// The number of commands that had an effect.
    pub fn commands(&self) -> u64 {
        self.inner.lock().expect("no test panics with the lock").commands
    }

    /// Answers until the task is aborted.
    pub async fn serve(&self, bus: &SharedBus) -> JoinHandle<()> {
        let mut requests = bus.serve("muster.command.>").await.expect("the bus is there");
        let ledger = self.clone();
        tokio::spawn(async move {
            while let Some(request) = requests.next().await {
                let reply = match request.subject.as_str() {
                    subjects::HEAD | subjects::QUERY => {
                        Message::encode(&ledger.query(&request.message.decode().expect("a query")))
                    }
                    _ => Message::encode(&ledger.command(&request.message.decode().expect("a command"))),
                };
                request.reply(reply.expect("answers are small"));
            }
        })
    }

    fn not_now(&self) -> Option<Refusal> {
        let mut inner = self.inner.lock().expect("no test panics with the lock");
        inner.refusals_left = inner.refusals_left.checked_sub(1)?;
        Some(Refusal::new(RefusalCode::Unavailable, "not now"))
    }

    fn command(&self, envelope: &CommandEnvelope) -> Answer {
        if let Some(refusal) = self.not_now() {
            return Answer { sequence: Sequence(0), result: Err(refusal) };
        }
        let mut inner = self.inner.lock().expect("no test panics with the lock");
        if let Some(answer) = inner.answers.get(&envelope.id) {
            return answer.clone();
        }
        inner.commands += 1;
        let answer = Answer { sequence: Sequence(inner.commands), result: Ok(Reply::Done) };
        inner.answers.insert(envelope.id, answer.clone());
        answer
    }

    fn query(&self, query: &Query) -> QueryAnswer {
        if let Some(refusal) = self.not_now() {
            return QueryAnswer::Refused(refusal);
        }
        let inner = self.inner.lock().expect("no test panics with the lock");
        let last = Sequence(inner.records.len() as u64);
        match query {
            Query::Head => QueryAnswer::Head {
                last,
                first: Sequence(1),
                cluster_id: [0; 16],
                last_hash: [0; 32],
                feature_level: muster_schemas::codec::FEATURE_LEVEL,
            },
            Query::Replay { from, .. } if *from <= inner.archived => {
                QueryAnswer::Refused(Refusal::new(RefusalCode::NotFound, "archived"))
            }
            Query::Replay { from, .. } => {
                // Small pages, so that a repair needs several.
                let start = inner.records.len().min(from.0 as usize - 1);
                let end = inner.records.len().min(start + 5000);
                QueryAnswer::Records(Commit { records: inner.records[start..end].to_vec() })
            }
            Query::Snapshot { offset, .. } => {
                let (sequence, bytes) = inner.snapshot.clone().unwrap_or_default();
                let part = bytes.iter().skip(*offset as usize).take(100).copied().collect();
                QueryAnswer::Snapshot { sequence, part, total_bytes: bytes.len() as u64 }
            }
            other => QueryAnswer::Refused(Refusal::new(RefusalCode::Invalid, format!("no test asks {other:?}"))),
        }
    }
}
