//! The rights of the users made by `ops/nats/make-passwords` on the streams of steps and on the subjects of nodes, on a real
//! server.

use muster_bus::{Bus as _, Message, NatsBus, testing::NatsServer};
use muster_schemas::{JobId, StepId, subjects};
use std::time::Duration;

/// Users that may not ask for the streams of steps.
const STRANGERS: [&str; 9] = [
    "ledger",
    "planner",
    "planner-external",
    "executor-node1",
    "executor-node2",
    "filter-runner",
    "notifier",
    "accounting",
    "integration",
];

/// Over NATS only gateways can ask nodes for the streams of steps (M-STEP-9).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_gateways_ask_nodes_for_the_streams_of_steps() {
    let server = NatsServer::start_shipped(&["node1", "node2"], "");
    let connect = |user: &str| NatsBus::connect(server.user(user));
    let node = connect("executor-node1").await.expect("connected");
    let mut requests = node.serve(&subjects::node_io("node1")).await.expect("it may");
    tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            request.reply(Message::new("said"));
        }
    });
    let subject = subjects::step_io(JobId::task(12, 3), StepId(1), "all", "read", "node1");
    let gateway = connect("gateway").await.expect("connected");
    let ask = |timeout| (subject.as_str(), Message::new("what"), Duration::from_secs(timeout));
    let (to, message, timeout) = ask(20);
    let reply = gateway.request(to, message, timeout).await.expect("it may");
    assert_eq!(reply.payload, "said");
    for stranger in STRANGERS {
        let bus = connect(stranger).await.expect("connected");
        let (to, message, timeout) = ask(1);
        assert!(bus.request(to, message, timeout).await.is_err(), "{stranger} may ask");
    }
}

/// OAR-K-11: over NATS only nodes themselves, and gateways for agents, speak for nodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_gateways_for_agents_speak_for_nodes() {
    let server = NatsServer::start_shipped(&["node1", "node2"], "");
    let connect = |user: &str| NatsBus::connect(server.user(user));
    let ledger = connect("ledger").await.expect("connected");
    let subjects = [subjects::command_node("node1"), subjects::heartbeat("node1"), subjects::content("node1")];
    for subject in &subjects {
        let mut requests = ledger.serve(subject).await.expect("it may");
        tokio::spawn(async move {
            while let Some(request) = requests.next().await {
                request.reply(Message::new("heard"));
            }
        });
    }
    let others = STRANGERS.iter().filter(|user| !["ledger", "executor-node1"].contains(user)).chain(&["gateway"]);
    for subject in &subjects {
        for user in ["gateway-agents", "executor-node1"] {
            let bus = connect(user).await.expect("connected");
            let reply = bus.request(subject, Message::new("says"), Duration::from_secs(20)).await;
            assert_eq!(reply.expect("it may").payload, "heard", "{user} on {subject}");
        }
        for user in others.clone() {
            let bus = connect(user).await.expect("connected");
            let reply = bus.request(subject, Message::new("says"), Duration::from_secs(1)).await;
            assert!(reply.is_err(), "{user} speaks for a node on {subject}");
        }
    }
}

/// PBS-C-08: over NATS only planners ask for plans: whoever has another role is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_planners_plan() {
    let server = NatsServer::start_shipped(&["node1", "node2"], "");
    let connect = |user: &str| NatsBus::connect(server.user(user));
    let ledger = connect("ledger").await.expect("connected");
    let mut requests = ledger.serve(subjects::COMMAND_PLANNER).await.expect("it may");
    tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            request.reply(Message::new("heard"));
        }
    });
    let planner = connect("planner").await.expect("connected");
    let reply = planner.request(subjects::COMMAND_PLANNER, Message::new("plan"), Duration::from_secs(20)).await;
    assert_eq!(reply.expect("it may").payload, "heard");
    let others = STRANGERS.iter().filter(|user| !["ledger", "planner"].contains(user));
    for user in others.chain(&["gateway", "gateway-agents"]) {
        let bus = connect(user).await.expect("connected");
        let reply = bus.request(subjects::COMMAND_PLANNER, Message::new("plan"), Duration::from_secs(1)).await;
        assert!(reply.is_err(), "{user} plans");
    }
}

/// M-LOG-18: all who ask a ledger hear that one answers from now on, and nobody but a ledger can say so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_ledgers_say_that_they_answer() {
    let server = NatsServer::start_shipped(&["node1"], "");
    let connect = |user: &str| NatsBus::connect(server.user(user));
    let asking =
        ["planner", "executor-node1", "filter-runner", "notifier", "accounting", "gateway", "gateway-agents", "ledger"];
    let mut heard = Vec::new();
    for user in asking {
        let bus = connect(user).await.expect("connected");
        // What it has asked before is known to the server once this is answered.
        drop(bus.request("muster.nobody", Message::default(), Duration::from_secs(20)).await);
        heard.push((user, bus.reigns(), bus));
    }
    for (user, _, bus) in heard.iter().filter(|(user, ..)| *user != "ledger") {
        drop(bus.publish(subjects::REIGN, Message::default()).await);
        drop(bus.request("muster.nobody", Message::default(), Duration::from_secs(20)).await);
        assert!(heard.iter().all(|(_, reigns, _)| *reigns.borrow() == 0), "{user} says that a ledger answers");
    }
    let ledger = connect("ledger").await.expect("connected");
    ledger.publish(subjects::REIGN, Message::default()).await.expect("it may");
    for (user, mut reigns, _bus) in heard {
        let counted = tokio::time::timeout(Duration::from_secs(20), reigns.wait_for(|count| *count == 1)).await;
        assert!(counted.is_ok_and(|count| count.is_ok()), "{user} does not hear it");
    }
}
