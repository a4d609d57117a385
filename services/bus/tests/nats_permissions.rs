//! What the users of `ops/nats/nats.conf` may do with the streams of steps, on a real server.

use muster_bus::{Bus as _, Message, NatsBus, NatsConfig, testing::NatsServer};
use muster_schemas::{JobId, StepId, subjects};
use std::{fmt::Write as _, fs, path::Path, time::Duration};

const ROLES: [&str; 9] = [
    "ledger",
    "planner",
    "planner-external",
    "executor",
    "filter-runner",
    "notifier",
    "accounting",
    "gateway",
    "integration",
];

/// A server with the users of `ops/nats/nats.conf`, all with one password.
fn server(password: &str) -> NatsServer {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops/nats/nats.conf");
    let text = fs::read_to_string(&file).expect("it is in the repository");
    let (_, users) = text.split_once("include \"passwords.conf\"").expect("passwords stand before users");
    let mut config = String::new();
    for role in ROLES {
        writeln!(config, "{}_password: {password:?}", role.replace('-', "_")).expect("memory takes it");
    }
    NatsServer::start_with(&(config + users))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_gateways_ask_nodes_for_the_streams_of_steps() {
    let server = server("sesame");
    let folder = tempfile::tempdir().expect("a folder");
    let password_file = folder.path().join("password");
    fs::write(&password_file, "sesame\n").expect("written");
    let connect = |user: &str| {
        let (user, password_file) = (Some(user.to_owned()), Some(password_file.clone()));
        NatsBus::connect(NatsConfig { url: server.url(), user, password_file, ..NatsConfig::default() })
    };
    let node = connect("executor").await.expect("connected");
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
    for stranger in ROLES.iter().filter(|role| **role != "gateway") {
        let bus = connect(stranger).await.expect("connected");
        let (to, message, timeout) = ask(1);
        assert!(bus.request(to, message, timeout).await.is_err(), "{stranger} may ask");
    }
}
