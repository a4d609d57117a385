//! The service over the in-process bus, with a ledger that knows a short history.

use muster_accounting::Config;
use muster_bus::{LocalBus, Message, SharedBus};
use muster_schemas::{
    CommandId, JobId, NodeId, RunId, Sequence, Timestamp,
    command::{Query, QueryAnswer, Refusal, RefusalCode},
    event::{Actor, Commit, Event, Owner, Record, TraceContext},
    job::{Component, JobSpec, Outcome, Usage},
    resources::{ComponentPlacement, IndexSet, NodeShare, Placement},
    subjects,
    usage::{UsageAnswer, UsageMoment, UsageQuery},
};
use std::{path::Path, sync::Arc, time::Duration};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

const DEADLINE: Duration = Duration::from_secs(30);

fn history() -> Vec<Record> {
    let job = JobId::job(1);
    let owner = Arc::new(Owner { user: "ada".into(), uid: 1000, gid: 1000 });
    let component = Component { queue: Some("default".into()), ..Component::default() };
    let spec = Arc::new(JobSpec { components: vec![component], ..JobSpec::default() });
    let share = NodeShare {
        node: NodeId(0),
        cores: IndexSet::first_n(2),
        gpus: IndexSet::new(),
        memory_bytes: 0,
        tasks: 1,
        exclusive: false,
    };
    let component = ComponentPlacement { alternative: 0, shares: vec![share] };
    let placement = Arc::new(Placement { components: vec![component] });
    let events = [
        Event::JobSubmitted { job, owner, spec, intake: None },
        Event::RunAllocated { job, run: RunId(1), placement },
        Event::RunStarted { job, run: RunId(1), node: NodeId(0), component: 0 },
        Event::RunEnded { job, run: RunId(1), last: None, outcome: Outcome::Completed, usage: Usage::default() },
    ];
    (1..)
        .zip(events)
        .map(|(number, event)| Record {
            sequence: Sequence(number),
            time: Timestamp::from_unix_seconds(number as i64 * 10),
            actor: Arc::new(Actor::Ledger),
            command: CommandId::derived(&[&number.to_le_bytes()]),
            trace: TraceContext::default(),
            event,
            epoch: 0,
        })
        .collect()
}

/// Answers replays from a history.
async fn serve_replays(bus: &SharedBus, records: Vec<Record>) {
    let mut requests = bus.serve(subjects::QUERY).await.expect("served");
    tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            let answer = match request.message.decode().expect("a query") {
                Query::Replay { from, .. } if records.first().is_some_and(|first| from < first.sequence) => archived(),
                Query::JobHistory { .. } => archived(),
                Query::Replay { from, .. } => {
                    let records = records.iter().filter(|record| record.sequence >= from).cloned().collect();
                    QueryAnswer::Records(Commit { records })
                }
                Query::Head => QueryAnswer::Head {
                    last: records.last().map_or(Sequence(0), |record| record.sequence),
                    first: records.first().map_or(Sequence(1), |record| record.sequence),
                    cluster_id: [0; 16],
                    last_hash: [0; 32],
                    feature_level: muster_schemas::codec::FEATURE_LEVEL,
                },
                other => panic!("unexpected query {other:?}"),
            };
            request.reply(Message::encode(&answer).expect("encoded"));
        }
    });
}

fn archived() -> QueryAnswer {
    QueryAnswer::Refused(Refusal::new(RefusalCode::NotFound, "the records were archived"))
}

async fn used_core_seconds(config: Config, known: usize, asked_at: u64) -> u64 {
    let query = UsageQuery { at_least: Some(Sequence(asked_at)), ..UsageQuery::default() };
    let answer = ask(config, known, query).await;
    assert!(answer.sequence >= Sequence(asked_at));
    core_seconds(&answer)
}

fn core_seconds(answer: &UsageAnswer) -> u64 {
    answer.rows.iter().map(|row| row.amounts.used_core_seconds()).sum()
}

async fn ask(config: Config, known: usize, query: UsageQuery) -> UsageAnswer {
    ask_about(history().into_iter().take(known).collect(), config, query).await
}

async fn ask_about(records: Vec<Record>, config: Config, query: UsageQuery) -> UsageAnswer {
    let bus: SharedBus = LocalBus::new();
    serve_replays(&bus, records).await;
    let shutdown = CancellationToken::new();
    let (ready, is_ready) = oneshot::channel();
    let service = tokio::spawn(muster_accounting::serve(bus.clone(), config, ready, shutdown.clone()));
    tokio::time::timeout(DEADLINE, is_ready).await.expect("in time").expect("started");
    let reply = bus.request(subjects::ACCOUNTING_USAGE, Message::encode(&query).expect("encoded"), DEADLINE).await;
    let answer = reply.expect("answered").decode().expect("an answer");
    shutdown.cancel();
    tokio::time::timeout(DEADLINE, service).await.expect("in time").expect("no panic").expect("no error");
    answer
}

fn config(snapshot_file: &Path) -> Config {
    Config { snapshot_file: Some(snapshot_file.to_owned()), ..Config::default() }
}

#[tokio::test]
async fn usage_is_answered_once_the_record_asked_for_is_counted() {
    assert_eq!(used_core_seconds(Config::default(), 4, 4).await, 20);
}

#[tokio::test]
async fn usage_of_a_past_moment_is_what_it_was_then() {
    for (sequence, time, expected) in [(1, None, 0), (3, None, 0), (3, Some(35), 10), (4, None, 20), (4, Some(99), 20)]
    {
        let time = time.map(Timestamp::from_unix_seconds);
        let at = Some(UsageMoment { sequence: Sequence(sequence), time });
        let answer = ask(Config::default(), 4, UsageQuery { at, ..UsageQuery::default() }).await;
        assert_eq!((answer.sequence, core_seconds(&answer)), (Sequence(sequence), expected), "at {at:?}");
    }
}

#[tokio::test]
async fn a_snapshot_is_taken_up_and_a_broken_one_is_not_trusted() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("books");
    assert_eq!(used_core_seconds(config(&file), 4, 4).await, 20);
    // The ledger only knows the last record now: the answer can only come from the file.
    let last_record = || history().into_iter().skip(3).collect::<Vec<_>>();
    let query = UsageQuery { at_least: Some(Sequence(4)), ..UsageQuery::default() };
    assert_eq!(core_seconds(&ask_about(last_record(), config(&file), query.clone()).await), 20);
    let archived = Vec::from([Record { sequence: Sequence(5), ..last_record().remove(0) }]);
    assert_eq!(core_seconds(&ask_about(archived, config(&file), query).await), 20);
    let other_window = Config { window_seconds: 60, ..config(&file) };
    assert_eq!(used_core_seconds(other_window, 4, 4).await, 20);
    let mut bytes = std::fs::read(&file).expect("kept");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).expect("written");
    assert_eq!(used_core_seconds(config(&file), 4, 4).await, 20);
}

#[tokio::test]
async fn books_of_another_history_are_not_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("books");
    let now = UsageQuery { at_least: Some(Sequence(3)), ..UsageQuery::default() };
    for known in [3, 4] {
        assert_eq!(used_core_seconds(config(&file), 4, 4).await, 20);
        let mut other = history();
        for record in &mut other {
            record.command = CommandId::derived(&[b"another", &record.sequence.0.to_le_bytes()]);
            record.time = Timestamp(record.time.0 * 2);
        }
        let answer = ask_about(other.into_iter().take(known).collect(), config(&file), now.clone()).await;
        assert_eq!(answer.sequence, Sequence(known as u64));
        assert!(known < 4 || core_seconds(&answer) == 40, "another history: {answer:?}");
    }
    assert_eq!(used_core_seconds(config(&file), 4, 4).await, 20);
    let answer = ask_about(history().into_iter().take(3).collect(), config(&file), now).await;
    assert_eq!(answer.sequence, Sequence(3), "a log that has lost its end");
}

#[tokio::test]
async fn what_was_archived_before_it_was_counted_is_left_out() {
    let query = UsageQuery { at_least: Some(Sequence(4)), ..UsageQuery::default() };
    let records = history().into_iter().skip(1).collect();
    let answer = ask_about(records, Config::default(), query).await;
    assert_eq!((answer.sequence, answer.rows), (Sequence(4), Vec::new()));
}
