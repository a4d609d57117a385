//! The guarantees for clients: answers are on disk, retries have no second effect, the bus gets everything
//! once and in order.

mod support;

use muster_bus::{Bus as _, LocalBus, LogItem};
use muster_schemas::{
    command::{Answer, Command, CommandEnvelope, Query, QueryAnswer, RefusalCode},
    event::{Actor, Event, Owner, TraceContext},
    ids::{CommandId, JobId, PartId, Sequence},
    time::Timestamp,
};
use std::{sync::Arc, time::Duration};
use support::{Ledger, config, copy, submission, submitted};

/// An answer means: on disk (M-LOG-1).
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_means_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Arc::new(Ledger::start(config(folder.path())).await);
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let ledger = Arc::clone(&ledger);
        clients.spawn(async move { ledger.submit(3).await });
    }
    let acknowledged: Vec<JobId> = clients.join_all().await.into_iter().flatten().collect();

    let killed = tempfile::tempdir().unwrap();
    copy(folder.path(), killed.path());
    let restarted = Ledger::start(config(killed.path())).await;
    for job in &acknowledged {
        let spec = restarted.client.query(&Query::JobSpec { job: *job }).await.unwrap();
        assert!(matches!(spec, QueryAnswer::JobSpec(_)), "job {job}: {spec:?}");
    }
    let mut unique = acknowledged.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), 48, "no id was given twice");
    restarted.stop().await;
    // An open database can bring the process down at its end.
    Arc::into_inner(ledger).expect("the clients are gone").stop().await;
}

/// A retry gets the first answer, even after a restart (M-LOG-2).
#[tokio::test(flavor = "multi_thread")]
async fn a_retry_gets_the_first_answer_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    let (accepted, refused) = (CommandId::new_now(), CommandId::new_now());
    let first = ledger.send(accepted, submission(2)).await;
    let refusal = ledger.send(refused, submission(0)).await;
    assert!(refusal.result.is_err());
    assert_eq!(ledger.send(accepted, submission(2)).await, first);
    let head = ledger.head().await;
    ledger.stop().await;

    let ledger = Ledger::start(config(folder.path())).await;
    assert_eq!(ledger.send(accepted, submission(2)).await, first);
    assert_eq!(ledger.send(refused, submission(0)).await, refusal, "a refusal is an answer, too");
    assert_eq!(ledger.head().await, head.next(), "only the checkpoint of the stop");
    assert_eq!(submitted(&first), [JobId::job(1), JobId::job(2)]);
    ledger.stop().await;
}

/// F12: an id that comes with another command is no retry. Nothing is done, and the retry still gets its answer.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_used_for_another_command_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let id = CommandId::new_now();
    let drain = || Command::DrainNodes { nodes: vec!["node1".into()], reason: "broken".into(), is_down: false };
    let ledger = Ledger::start(config(folder.path())).await;
    let first = ledger.send(id, submission(1)).await;
    for _ in 0..2 {
        for other in [submission(2), drain()] {
            let refusal = ledger.send(id, other).await.result.unwrap_err();
            assert_eq!(refusal.code, RefusalCode::Conflict);
            assert!(refusal.message.contains("was used for another one before, and nothing was done"), "{refusal}");
        }
    }
    assert_eq!(ledger.send(id, submission(1)).await, first);
    ledger.stop().await;
    let ledger = Ledger::start(config(folder.path())).await;
    assert_eq!(ledger.send(id, drain()).await.result.unwrap_err().code, RefusalCode::Conflict);
    assert_eq!(ledger.send(id, submission(1)).await, first);
    ledger.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_the_answer_to_anothers_command() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    let id = CommandId::new_now();
    let as_user = async |user: &str, uid: u32| {
        let actor = Actor::User(Owner { user: user.into(), uid, gid: 100 });
        let envelope = CommandEnvelope { id, actor, trace: TraceContext::default(), command: submission(1) };
        submitted(&ledger.client.send(&envelope).await.unwrap())
    };
    let first = as_user("ann", 1000).await;
    assert_ne!(as_user("bob", 1001).await, first);
    assert_eq!(as_user("ann", 1000).await, first);
    ledger.stop().await;
}

/// A command that was sent many times at once is executed once (M-LOG-3).
#[tokio::test(flavor = "multi_thread")]
async fn the_same_command_many_times_at_once_is_done_once() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Arc::new(Ledger::start(config(folder.path())).await);
    let id = CommandId::new_now();
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..32 {
        let ledger = Arc::clone(&ledger);
        clients.spawn(async move { ledger.send(id, submission(1)).await });
    }
    let answers = clients.join_all().await;
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    Arc::into_inner(ledger).expect("the clients are gone").stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_find_what_was_asked() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    let before = Timestamp::now();
    let jobs = ledger.submit(3).await;
    let records = ledger.records(Sequence(1)).await;
    assert!(records.iter().map(|record| record.sequence.0).eq(1..=records.len() as u64), "contiguous from 1");

    let history = ledger.client.query(&Query::JobHistory { job: jobs[1], from: Sequence(0) }).await.unwrap();
    let QueryAnswer::Records(history) = history else { panic!("{history:?}") };
    assert_eq!(history.records.len(), 1);
    assert!(matches!(&history.records[0].event, Event::JobSubmitted { job, .. } if *job == jobs[1]));

    let sequence_at = async |time| match ledger.client.query(&Query::SequenceAt { time }).await.unwrap() {
        QueryAnswer::Sequence(sequence) => sequence,
        other => panic!("{other:?}"),
    };
    let last = records.last().unwrap();
    assert_eq!(sequence_at(last.time).await, last.sequence);
    assert_eq!(sequence_at(Timestamp::MIN).await, Sequence(0));
    let earlier = records.iter().rfind(|record| record.time <= before).unwrap();
    assert_eq!(sequence_at(before).await, earlier.sequence);

    let unknown = ledger.client.query(&Query::JobSpec { job: JobId::job(999) }).await.unwrap_err();
    assert!(unknown.to_string().contains("999"), "{unknown}");
    ledger.stop().await;
}

/// A subject accepts commands only from its actors (M-LOG-15).
#[tokio::test(flavor = "multi_thread")]
async fn subjects_are_for_their_own_actors() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    let envelope = CommandEnvelope {
        id: CommandId::new_now(),
        actor: Actor::Ledger,
        trace: TraceContext::default(),
        command: Command::Tick,
    };
    let message = muster_bus::Message::encode(&envelope).unwrap();
    let subject = muster_schemas::subjects::COMMAND_USER;
    let reply = ledger.bus.request(subject, message, Duration::from_secs(5)).await.unwrap();
    let answer: Answer = reply.decode().unwrap();
    assert_eq!(answer.result.unwrap_err().code, RefusalCode::PermissionDenied);

    let nonsense = muster_bus::Message::new(&b"nonsense"[..]);
    let reply = ledger.bus.request(subject, nonsense, Duration::from_secs(5)).await.unwrap();
    let answer: Answer = reply.decode().unwrap();
    assert_eq!(answer.result.unwrap_err().code, RefusalCode::Invalid);
    ledger.stop().await;
}

/// OAR-J-07: the report of a node about a run of which it has no part changes nothing, and leaves a record with the name of the node.
#[tokio::test(flavor = "multi_thread")]
async fn a_report_about_a_run_of_others_is_recorded_with_its_sender() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    let before = ledger.head().await;
    let node = || Actor::Executor("n1".into());
    let report = || Command::NodeStarted { part: PartId::from_number(77) };
    let envelope =
        CommandEnvelope { id: CommandId::new_now(), actor: node(), trace: TraceContext::default(), command: report() };
    for _ in 0..2 {
        let answer = ledger.client.send(&envelope).await.expect("an answer");
        assert_eq!(answer.result.unwrap_err().code, RefusalCode::Conflict);
    }
    let records = ledger.records(before.next()).await;
    let [record] = &records[..] else { panic!("a repeated report leaves no second record: {records:?}") };
    assert_eq!(*record.actor, node());
    let Event::CommandRefused { command, message, .. } = &record.event else { panic!("{record:?}") };
    assert_eq!(
        (command.as_str(), message.as_str()),
        ("report", "node n1 reports about run 77, of which it has no part")
    );
    for _ in 0..40 {
        ledger.client.command(node(), TraceContext::default(), report()).await.expect("an answer");
    }
    assert_eq!(ledger.records(before.next()).await.len(), 20, "no node can fill the log with them");
    ledger.stop().await;
}

/// The bus outlives the ledger here: after several ledgers the stream holds the log, each record once (M-LOG-4).
#[tokio::test(flavor = "multi_thread")]
async fn the_stream_goes_on_after_a_restart_without_loss_doubles_or_disorder() {
    let folder = tempfile::tempdir().unwrap();
    let bus = LocalBus::new();
    let mut stream = bus.follow_log().await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let ledger = Ledger::start_on(bus.clone(), config(folder.path())).await;
        for _ in 0..5 {
            ledger.submit(2).await;
        }
        let head = ledger.head().await;
        while seen.last() != Some(&head) {
            let item = tokio::time::timeout(Duration::from_secs(20), stream.next()).await.expect("in time");
            let Some(LogItem::Commit(commit)) = item else { panic!("{item:?}") };
            seen.extend(commit.records.iter().map(|record| record.sequence));
        }
        ledger.stop().await;
    }
    // An empty stream begins after the log that a ledger finds.
    let expected: Vec<Sequence> = (seen[0].0..=seen[seen.len() - 1].0).map(Sequence).collect();
    assert_eq!(seen, expected);
    assert!(seen[0] <= Sequence(2), "only the first record was written before the bus was looked at");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_behind_its_stream_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let bus = LocalBus::new();
    let ledger = Ledger::start_on(bus.clone(), config(folder.path())).await;
    let backup = tempfile::tempdir().unwrap();
    copy(folder.path(), backup.path());
    ledger.submit(1).await;
    ledger.stop().await;
    let error = Ledger::try_start_on(bus, config(backup.path())).await.err().expect("refused");
    assert!(error.to_string().contains("put back to an earlier state"), "{error:#}");
}
