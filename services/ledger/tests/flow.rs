//! The ledger as a node and a notifier see it: orders, heartbeats, notifications, and their fate when
//! something is lost.

mod support;

use muster_bus::{Bus as _, LocalBus, WorkQueue};
use muster_schemas::{
    PartId,
    command::{Answer, Command, Reply, Start},
    event::{Actor, DeliveryResult, EndCause, Event, NodeExit, TraceContext},
    ids::{CommandId, JobId, NodeId, RunId, Sequence},
    job::{ExitStatus, JobSpec, Notification, Occasion, Sink, Usage},
    node::{Briefing, CLUSTER_NAME_VARIABLE, Heartbeat, LaunchOrder, Mark, NodeOrder, OrderEnvelope},
    notify::NotifyItem,
    plan::ProposedPlan,
    resources::{ComponentPlacement, IndexSet, NodeShare, Placement},
    subjects,
    time::Timestamp,
};
use std::{path::Path, time::Duration};
use support::{Ledger, config, job, submitted};

const SOON: Duration = Duration::from_secs(20);

/// A job that notifies of its end.
fn telling() -> JobSpec {
    let notification =
        Notification { on: vec![Occasion::Ended], sink: Sink::Exec("true".into()), spares_cancelled: false };
    JobSpec { notifications: vec![notification], ..job() }
}

async fn as_actor(ledger: &Ledger, actor: Actor, command: Command) -> Answer {
    ledger.client.command(actor, TraceContext::default(), command).await.expect("an answer")
}

async fn as_node(ledger: &Ledger, command: Command) -> Reply {
    as_actor(ledger, Actor::Executor("n1".into()), command).await.result.expect("accepted")
}

async fn beat(ledger: &Ledger, runs: &[RunId]) -> Vec<NodeOrder> {
    beat_remembering(ledger, runs, None).await
}

async fn beat_remembering(ledger: &Ledger, runs: &[RunId], highest_run: Option<RunId>) -> Vec<NodeOrder> {
    beat_as_of(ledger, runs, highest_run, None).await.orders
}

/// A heartbeat whose list of runs is true for one moment.
async fn beat_as_of(ledger: &Ledger, runs: &[RunId], highest_run: Option<RunId>, as_of: Option<Mark>) -> Briefing {
    let heartbeat = Heartbeat {
        node: "n1".into(),
        boot_id: "boot".into(),
        parts: runs.iter().map(|run| PartId::new(*run, 0)).collect(),
        highest_run,
        as_of,
    };
    ledger.client.heartbeat(&heartbeat).await.expect("an answer")
}

/// Starts a job on one core of the node, as the planner would.
async fn start(ledger: &Ledger, job: JobId) {
    let share = NodeShare {
        node: NodeId(0),
        cores: IndexSet::first_n(1),
        gpus: IndexSet::default(),
        memory_bytes: 0,
        tasks: 1,
        exclusive: false,
    };
    let component = ComponentPlacement { alternative: 0, shares: vec![share] };
    let placement = Placement { components: vec![component] };
    let plan = ProposedPlan { starts: vec![Start { job, placement }], ..ProposedPlan::default() };
    let command = Command::CommitPlan { plan: Box::new(plan) };
    let answer = as_actor(ledger, Actor::Planner, command).await;
    assert_eq!(answer.result, Ok(Reply::Planned(Vec::new())));
}

async fn submit(ledger: &Ledger, spec: JobSpec) -> JobId {
    let answer = ledger.send(CommandId::new_now(), Command::Submit { jobs: vec![spec] }).await;
    submitted(&answer)[0]
}

fn launch(orders: &[NodeOrder]) -> &LaunchOrder {
    match orders {
        [NodeOrder::Launch { order, .. }] => order,
        other => panic!("no launch: {other:?}"),
    }
}

async fn end(ledger: &Ledger, run: RunId) {
    as_node(ledger, Command::NodeStarted { part: PartId::new(run, 0) }).await;
    let now = Timestamp::now();
    let exit = NodeExit {
        status: Some(ExitStatus::Code(0)),
        cause: EndCause::Itself,
        usage: Usage::default(),
        started: Some(now),
        ended: now,
    };
    as_node(ledger, Command::NodeEnded { part: PartId::new(run, 0), exit }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launch_is_ordered_and_ordered_again_when_it_was_lost() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    let mut orders = ledger.bus.subscribe(&subjects::node_orders("n1")).await.unwrap();
    as_node(&ledger, Command::NodeHello { boot_id: "boot".into(), parts: Vec::new(), highest_run: None, as_of: None })
        .await;
    let spec = JobSpec { environment: [("KEY".to_owned(), "value".to_owned())].into(), ..job() };
    let job = submit(&ledger, spec.clone()).await;
    start(&ledger, job).await;

    let order = tokio::time::timeout(SOON, orders.next()).await.expect("in time").expect("an order");
    let order = [order.message.decode::<OrderEnvelope>().unwrap().order];
    let order = launch(&order);
    let mut environment = spec.environment.clone();
    environment.insert(CLUSTER_NAME_VARIABLE.into(), "muster".into());
    assert_eq!((order.job, &order.environment), (job, &environment), "the log knows what the state does not");

    let head = ledger.head().await;
    assert_eq!(launch(&beat(&ledger, &[]).await), order, "a node that does not know the run is told again");
    assert_eq!(beat(&ledger, &[order.part.run()]).await, [], "one that does is not");
    assert_eq!(ledger.head().await, head, "signs of life are no events");
    let greeting = as_node(
        &ledger,
        Command::NodeHello { boot_id: "boot".into(), parts: Vec::new(), highest_run: None, as_of: None },
    )
    .await;
    let Reply::NodeOrders(greeted) = greeting else { panic!("{greeting:?}") };
    assert_eq!(launch(&greeted.orders), order);

    // The order survives the ledger.
    ledger.stop().await;
    let ledger = Ledger::start(config(folder.path())).await;
    assert_eq!(launch(&beat(&ledger, &[]).await), order);
    end(&ledger, order.part.run()).await;
    assert_eq!(beat(&ledger, &[]).await, []);
    ledger.stop().await;
}

/// A run that a node has started and forgotten is over, as the next heartbeat tells. A list made before the ledger
/// ordered the start, or true for a moment of another ledger, tells nothing.
#[tokio::test(flavor = "multi_thread")]
async fn signs_of_life_tell_what_is_forgotten_and_not_what_is_newer() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    let hello = Command::NodeHello { boot_id: "boot".into(), parts: Vec::new(), highest_run: None, as_of: None };
    as_node(&ledger, hello.clone()).await;
    let job = submit(&ledger, job()).await;
    start(&ledger, job).await;
    let before = beat_as_of(&ledger, &[], None, None).await;
    let run = launch(&before.orders).part.run();
    as_node(&ledger, Command::NodeStarted { part: PartId::new(run, 0) }).await;
    let started = ledger.head().await;

    assert_eq!(beat_as_of(&ledger, &[], None, before.mark).await.orders, []);
    let stale = Command::NodeHello { boot_id: "boot".into(), parts: Vec::new(), highest_run: None, as_of: before.mark };
    as_node(&ledger, stale).await;
    let now = beat_as_of(&ledger, &[run], None, before.mark).await.mark.expect("a moment");
    assert_eq!(now.sequence, started);
    let of_another = Mark { session: now.session.plus_micros(-1), ..now };
    beat_as_of(&ledger, &[], None, Some(of_another)).await;
    as_node(
        &ledger,
        Command::NodeHello { boot_id: "boot".into(), parts: Vec::new(), highest_run: None, as_of: Some(of_another) },
    )
    .await;
    assert_eq!(ledger.head().await, started, "nothing is lost");

    beat_as_of(&ledger, &[], None, Some(now)).await;
    assert!(ledger.head().await > started, "the node has forgotten the run");
    ledger.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_ledger_gives_run_numbers_that_no_node_remembers() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    assert_eq!(beat(&ledger, &[]).await, [], "the first heartbeat greets");
    assert_eq!(beat_remembering(&ledger, &[], Some(RunId(41))).await, []);
    let head = ledger.head().await;
    beat_remembering(&ledger, &[], Some(RunId(41))).await;
    assert_eq!(ledger.head().await, head, "it is said once");
    let job = submit(&ledger, job()).await;
    start(&ledger, job).await;
    assert_eq!(launch(&beat_remembering(&ledger, &[], Some(RunId(41))).await).part.run(), RunId(42));
    ledger.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_node_is_lost_and_a_heartbeat_brings_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut quick = config(folder.path());
    quick.cluster.as_mut().expect("a cluster").settings.node_lost_after_seconds = Some(1);
    let ledger = Ledger::start(quick).await;
    assert_eq!(beat(&ledger, &[]).await, [], "the first heartbeat greets");
    wait_for(&ledger, "the node is lost", |event| matches!(event, Event::NodeLost { .. })).await;
    let before = ledger.head().await;
    beat(&ledger, &[]).await;
    let back = ledger.records(before.next()).await;
    assert!(matches!(back.first().map(|record| &record.event), Some(Event::NodeUp { .. })), "{back:?}");
    ledger.stop().await;
}

/// Waits until an event has happened.
async fn wait_for(ledger: &Ledger, what: &str, is_it: impl Fn(&Event) -> bool) {
    let deadline = tokio::time::Instant::now() + SOON;
    while !ledger.records(Sequence(1)).await.iter().any(|record| is_it(&record.event)) {
        assert!(tokio::time::Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A notification is queued until it is done, whatever is lost (M-NOT-3).
#[tokio::test(flavor = "multi_thread")]
async fn a_notification_is_queued_until_it_is_done_whatever_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    beat(&ledger, &[]).await;
    let job = submit(&ledger, telling()).await;
    start(&ledger, job).await;
    let run = launch(&beat(&ledger, &[]).await).part.run();
    end(&ledger, run).await;
    let first = next_notice(&ledger).await;
    assert_eq!((first.job, first.occasion), (job, Occasion::Ended));
    ledger.stop().await;

    // Another bus: everything in the first one is gone.
    let ledger = Ledger::start(config(folder.path())).await;
    let again = next_notice(&ledger).await;
    assert_eq!(again, first);
    let done = Command::NotificationDone {
        job,
        of: again.of,
        notification: again.notification,
        occasion: again.occasion,
        result: DeliveryResult::Delivered,
    };
    as_actor(&ledger, Actor::Notifier, done).await.result.expect("accepted");
    ledger.stop().await;

    let other = submit_and_end(folder.path()).await;
    assert_ne!(other.job, job, "what is done is not queued again");
}

/// The first notification that a new ledger queues after another job has ended.
async fn submit_and_end(folder: &Path) -> NotifyItem {
    let ledger = Ledger::start(config(folder)).await;
    beat(&ledger, &[]).await;
    let job = submit(&ledger, telling()).await;
    start(&ledger, job).await;
    let run = launch(&beat(&ledger, &[]).await).part.run();
    end(&ledger, run).await;
    let notice = next_notice(&ledger).await;
    ledger.stop().await;
    notice
}

async fn next_notice(ledger: &Ledger) -> NotifyItem {
    let mut work = ledger.bus.worker(&WorkQueue::NOTIFY).await.expect("a worker");
    let item = tokio::time::timeout(SOON, work.next()).await.expect("in time").expect("an item");
    let notice: NotifyItem = item.message.decode().expect("a notification");
    assert_eq!(item.key, notice.key());
    notice
}

#[tokio::test(flavor = "multi_thread")]
async fn public_events_reach_who_subscribes() {
    let folder = tempfile::tempdir().unwrap();
    let bus = LocalBus::new();
    let mut events = bus.subscribe("muster.events.job.>").await.unwrap();
    let ledger = Ledger::start_on(bus, config(folder.path())).await;
    let job = submit(&ledger, job()).await;
    let event = tokio::time::timeout(SOON, events.next()).await.expect("in time").expect("an event");
    assert_eq!(event.subject, format!("muster.events.job.submitted.{job}"));
    let event: serde_json::Value = serde_json::from_slice(&event.message.payload).unwrap();
    assert_eq!(event["type"], "muster.job.submitted.v1");
    ledger.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_of_a_job_belong_to_its_trace() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::start(config(folder.path())).await;
    beat(&ledger, &[]).await;
    let trace = |id: u8| TraceContext { trace_id: [id; 16], span_id: [id; 8], flags: 1 };
    let submission = Command::Submit { jobs: vec![job()] };
    let answer = ledger.client.command(support::root(), trace(1), submission).await.unwrap();
    let job = submitted(&answer)[0];
    start(&ledger, job).await;
    let run = launch(&beat(&ledger, &[]).await).part.run();
    assert_eq!(launch(&beat(&ledger, &[]).await).trace, trace(1));
    end(&ledger, run).await;
    let records = ledger.records(answer.sequence).await;
    assert!(records.len() >= 4, "{records:?}");
    // A plan is about many jobs, and belongs to the trace of none.
    let mut of_job = records.iter().filter(|record| !matches!(record.event, Event::Planned { .. }));
    assert!(of_job.all(|record| record.trace.trace_id == [1; 16]), "{records:?}");
    ledger.stop().await;
}
