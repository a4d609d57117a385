//! The outbox on a NATS server that is killed, and loses its whole store.

mod support;

use muster_bus::{BusError, Feed, LedgerClient, NatsBus, NatsConfig, SharedBus, WorkQueue, testing::NatsServer};
use muster_schemas::{
    cluster::{ClusterConfig, QueueSpec},
    command::{Answer, Command, CommandEnvelope, JobSelection, RefusalCode, Start},
    content::ContentHash,
    event::{Actor, TraceContext},
    ids::{CommandId, JobId, NodeId, Sequence},
    job::{JobSpec, Notification, Occasion, Sink},
    node::{NodeOrder, OrderEnvelope},
    notify::NotifyItem,
    plan::ProposedPlan,
    resources::{ComponentPlacement, IndexSet, NodeShare, NodeSpec, Placement},
    subjects,
};
use std::{collections::BTreeMap, time::Duration};
use support::{Ledger, config, job, root, submitted};

const SOON: Duration = Duration::from_secs(60);

async fn connect(server: &NatsServer) -> SharedBus {
    NatsBus::connect(NatsConfig { url: server.url(), ..NatsConfig::default() }).await.expect("connected")
}

/// Submits a job that notifies of its end, and cancels it.
async fn submit_and_cancel(ledger: &Ledger) {
    let notification =
        Notification { on: vec![Occasion::Ended], sink: Sink::Exec("true".into()), spares_cancelled: false };
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

const NODES: [&str; 2] = ["node1", "node2"];

fn two_nodes() -> ClusterConfig {
    let node = |name: &&str| NodeSpec {
        name: (*name).to_owned(),
        cores: 4,
        sockets: 1,
        memory_bytes: 8 << 30,
        gpus: Vec::new(),
        properties: BTreeMap::new(),
    };
    let queue = QueueSpec { name: "default".into(), ..QueueSpec::default() };
    ClusterConfig { queues: vec![queue], nodes: NODES.iter().map(node).collect(), ..ClusterConfig::default() }
}

/// A client of the user of one role, which gives up soon.
async fn client(server: &NatsServer, user: &str) -> (SharedBus, LedgerClient) {
    let bus = NatsBus::connect(server.user(user)).await.expect("connected");
    (bus.clone(), LedgerClient::new(bus).with_patience(SOON))
}

async fn ask(client: &LedgerClient, actor: Actor, command: Command) -> Answer {
    let envelope = CommandEnvelope { id: CommandId::new_now(), actor, trace: TraceContext::default(), command };
    let answer = client.send(&envelope).await.expect("an answer");
    assert!(answer.result.is_ok(), "{answer:?}");
    answer
}

fn on_node(at: u32, job: JobId) -> Command {
    let share = NodeShare {
        node: NodeId(at),
        cores: IndexSet::first_n(1),
        gpus: IndexSet::default(),
        memory_bytes: 0,
        tasks: 1,
        exclusive: false,
    };
    let placement = Placement { components: vec![ComponentPlacement { alternative: 0, shares: vec![share] }] };
    let plan = ProposedPlan { starts: vec![Start { job, placement }], ..ProposedPlan::default() };
    Command::CommitPlan { plan: Box::new(plan) }
}

/// F8: a node can fetch the contents that its orders name by hash; with the credentials of another node nobody gets
/// them, whether he asks in his own name or in that of the node.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_fetches_what_its_own_orders_name_and_nothing_of_other_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let server = NatsServer::start_shipped(&NODES, "");
    let (bus, _) = client(&server, "ledger").await;
    let config = muster_ledger::Config { cluster: Some(two_nodes().into()), ..config(folder.path()) };
    let ledger = Ledger::start_on(bus, config).await;
    let (_, gateway) = client(&server, "gateway").await;
    let (_, planner) = client(&server, "planner").await;
    let (bus, first) = client(&server, "executor-node1").await;
    let (_, second) = client(&server, "executor-node2").await;
    let mut orders = bus.subscribe(&subjects::node_orders("node1")).await.unwrap();
    for (node, client) in NODES.iter().zip([&first, &second]) {
        let hello = Command::NodeHello { boot_id: "boot".into(), parts: vec![], highest_run: None, as_of: None };
        ask(client, Actor::Executor((*node).to_owned()), hello).await;
    }
    let environment: BTreeMap<_, _> = (0..300).map(|at| (format!("LONG_{at}"), "x".repeat(2000))).collect();
    let spec = JobSpec { environment: environment.clone(), ..job() };
    let job = submitted(&ask(&gateway, root(), Command::Submit { jobs: vec![spec] }).await)[0];
    ask(&planner, Actor::Planner, on_node(0, job)).await;

    let order = tokio::time::timeout(SOON, orders.next()).await.expect("in time").expect("an order");
    let NodeOrder::ByHash(short) = order.message.decode::<OrderEnvelope>().unwrap().order else {
        panic!("it says all of it")
    };
    assert!(order.message.payload.len() < 2000, "{} bytes", order.message.payload.len());
    let hash = short.missing.environment.expect("it is large");
    let bytes = first.content("node1", hash).await.expect("its order names it");
    assert_eq!(ContentHash::of(&bytes), hash);
    assert_eq!(muster_schemas::codec::decode::<BTreeMap<String, String>>(&bytes).unwrap(), environment);

    match second.content("node2", hash).await {
        Err(BusError::Refused(refusal)) => assert_eq!(refusal.code, RefusalCode::NotFound),
        other => panic!("{other:?}"),
    }
    let impatient = second.with_patience(Duration::from_secs(2));
    let in_its_name = impatient.content("node1", hash).await;
    assert!(in_its_name.is_err() && !matches!(in_its_name, Err(BusError::Refused(_))), "{in_its_name:?}");
    ledger.stop().await;
}
