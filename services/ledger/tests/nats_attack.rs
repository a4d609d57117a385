//! Malicious users of the bus: a real server with the configuration of `ops/nats`, a real ledger, and users who try
//! every subject, consumers that deliver anywhere, answers that go anywhere, and rubbish (F8, F9).

mod support;

use async_nats::{Client, ConnectOptions, jetstream};
use bytes::Bytes;
use futures::StreamExt as _;
use muster_bus::{Feed, LedgerClient, LogTail, Message, NatsBus, SharedBus, testing::NatsServer};
use muster_schemas::{
    codec,
    command::{Answer, Command, CommandEnvelope, JobSelection, Query, QueryAnswer},
    event::TraceContext,
    ids::{CommandId, JobId, Sequence},
    job::{JobSpec, Notification, Occasion, Sink},
    subjects,
};
use serde_json::{Value, json};
use std::{
    fs,
    sync::{Arc, Mutex},
    time::Duration,
};
use support::{Ledger, config, job, root, submitted};

const SOON: Duration = Duration::from_secs(60);
/// Only the gateway, the ledger and readers of the log may see this.
const SECRET: &str = "the-password-of-ann";
/// Contained in every hostile message.
const MARK: &str = "hostile";
const STREAMS: [&str; 6] =
    ["MUSTER_LOG", "MUSTER_EVENTS", "MUSTER_NOTIFY", "MUSTER_FILTERS", "MUSTER_CHECKS", "MUSTER_ROUNDS"];
/// Subjects on which everything is tried, listening and sending.
const SUBJECTS: [&str; 31] = [
    "muster.log",
    "muster.log-stored",
    "muster.log-claimed",
    "muster.reign",
    "muster.ledgers.head1",
    "muster.rounds",
    "muster.rounds-kept",
    "muster.command.ledger.head1",
    "muster.events.job.started.1",
    "muster.notify",
    "muster.filters",
    "muster.checks",
    "muster.command.user",
    "muster.command.planner",
    "muster.command.notifier",
    "muster.command.query",
    "muster.command.node.node2",
    "muster.command.heartbeat.node2",
    "muster.command.content.node2",
    "muster.command.runner.r1",
    "muster.command.runner-heartbeat.r1",
    "muster.command.node.node1",
    "muster.command.heartbeat.node1",
    "muster.fence.node1.node2",
    "muster.fence.node2.node1",
    "muster.node.node1.order",
    "muster.node.node2.order",
    "muster.io.1.0.all.read.node2",
    "muster.planner.external",
    "muster.accounting.usage",
    "muster.integration.STREAM.DELETE.MUSTER_EVENTS",
];

/// A user with its purpose, and so what it may receive and send.
struct Role {
    user: &'static str,
    hears: &'static [&'static str],
    says: &'static [&'static str],
}

const ROLES: [Role; 8] = [
    Role { user: "integration", hears: &[], says: &[] },
    Role { user: "planner-external", hears: &["muster.planner.external"], says: &[] },
    Role {
        user: "executor-node1",
        hears: &["muster.node.node1.order", "muster.fence.node1.node2", "muster.reign"],
        says: &["muster.command.node.node1", "muster.command.heartbeat.node1", "muster.fence.node2.node1"],
    },
    Role { user: "notifier", hears: &["muster.reign"], says: &["muster.command.notifier"] },
    Role {
        user: "filter-runner",
        hears: &["muster.reign"],
        says: &["muster.command.runner.r1", "muster.command.runner-heartbeat.r1"],
    },
    Role {
        user: "accounting",
        hears: &["muster.log-stored", "muster.accounting.usage", "muster.reign"],
        says: &["muster.command.query"],
    },
    Role {
        user: "planner",
        hears: &["muster.log-stored", "muster.reign"],
        says: &["muster.command.planner", "muster.planner.external", "muster.command.query"],
    },
    // It speaks for users and for nodes.
    Role {
        user: "gateway-agents",
        hears: &["muster.log-stored", "muster.reign", "muster.ledgers.head1"],
        says: &[
            "muster.command.user",
            "muster.command.query",
            "muster.command.node.node1",
            "muster.command.node.node2",
            "muster.command.heartbeat.node1",
            "muster.command.heartbeat.node2",
            "muster.command.content.node2",
            "muster.accounting.usage",
            "muster.io.1.0.all.read.node2",
        ],
    },
];

type Heard = Arc<Mutex<Vec<(String, Bytes)>>>;

/// A client that listens wherever it can.
struct Listener {
    client: Client,
    heard: Heard,
}

impl Listener {
    async fn connect(url: &str, user: &str, password: &str, inbox: &str, patterns: &[&str]) -> Self {
        let options = ConnectOptions::with_user_and_password(user.to_owned(), password.to_owned());
        // Each refusal is an event, which the client would print on standard error.
        let options = options.custom_inbox_prefix(inbox).event_callback(async |_| {});
        let client = options.connect(url).await.expect("it has a password");
        let heard = Heard::default();
        for pattern in patterns {
            let mut messages = client.subscribe((*pattern).to_owned()).await.expect("sent");
            let heard = heard.clone();
            tokio::spawn(async move {
                while let Some(message) = messages.next().await {
                    heard.lock().unwrap().push((message.subject.to_string(), message.payload));
                }
            });
        }
        client.flush().await.expect("the server is there");
        Self { client, heard }
    }

    fn heard(&self) -> Vec<(String, Bytes)> {
        self.heard.lock().unwrap().clone()
    }

    /// The answer, if it arrives in time.
    async fn ask(&self, subject: &str, payload: impl Into<Bytes>) -> Option<Bytes> {
        let request = async_nats::Request::new().payload(payload.into()).timeout(Some(Duration::from_secs(2)));
        self.client.send_request(subject.to_owned(), request).await.ok().map(|answer| answer.payload)
    }
}

fn contains(text: &[u8], part: &str) -> bool {
    text.windows(part.len()).any(|window| window == part.as_bytes())
}

/// Whether JetStream has executed the request.
fn is_done(answer: Option<&Bytes>) -> bool {
    answer
        .and_then(|answer| serde_json::from_slice::<Value>(answer).ok())
        .is_some_and(|answer| answer["error"].is_null())
}

/// Asks JetStream for everything harmful, and returns what it did.
async fn abuse_jetstream(hostile: &Listener) -> Vec<String> {
    let mut asked = Vec::new();
    let targets =
        ["muster.log", "muster.log-stored", "muster.command.user", "muster.node.node2.order", "_INBOX_gateway.x"];
    for stream in STREAMS {
        for (number, target) in targets.iter().enumerate() {
            let name = format!("{MARK}{number}");
            let config = json!({ "name": name, "durable_name": name, "deliver_subject": target,
                "ack_policy": "explicit", "deliver_policy": "all" });
            let request = json!({ "stream_name": stream, "config": config });
            for api in ["CONSUMER.CREATE", "CONSUMER.DURABLE.CREATE"] {
                asked.push((format!("{api}.{stream}.{name}"), request.clone()));
            }
        }
        for (api, request) in [
            ("STREAM.PURGE", json!({})),
            ("STREAM.DELETE", json!({})),
            ("STREAM.MSG.GET", json!({ "seq": 1 })),
            ("STREAM.UPDATE", json!({ "name": stream, "subjects": ["muster.>"] })),
            ("STREAM.CREATE", json!({ "name": stream, "subjects": ["muster.>"], "storage": "file" })),
        ] {
            asked.push((format!("{api}.{stream}"), request));
        }
        asked.push((format!("CONSUMER.DELETE.{stream}.workers"), json!({})));
    }
    let repeats = json!({ "name": MARK, "subjects": [format!("{MARK}.>")],
        "republish": { "src": format!("{MARK}.>"), "dest": "muster.command.>" } });
    asked.push((format!("STREAM.CREATE.{MARK}"), repeats));
    let answers = asked.into_iter().map(async |(api, request)| {
        let answer = hostile.ask(&format!("$JS.API.{api}"), request.to_string()).await;
        is_done(answer.as_ref()).then_some(api)
    });
    futures::future::join_all(answers).await.into_iter().flatten().collect()
}

/// Sends rubbish everywhere, and permitted requests whose answers would go elsewhere.
async fn say_rubbish(hostile: &Listener, job: JobId) {
    let spec = codec::encode(&Query::JobSpec { job }).unwrap();
    let payloads = [MARK.as_bytes().to_vec(), [MARK.as_bytes(), &[0xff; 300]].concat(), spec];
    for subject in SUBJECTS {
        for payload in &payloads {
            hostile.client.publish(subject, payload.clone().into()).await.unwrap();
            for reply in ["muster.log", "muster.log-stored", "muster.command.user", "muster.node.node2.order"] {
                let payload = payload.clone().into();
                hostile.client.publish_with_reply(subject, reply, payload).await.unwrap();
            }
        }
    }
    // Requests that the role may make, with answers for others.
    for subject in ["muster.command.head", "muster.command.query", "muster.command.heartbeat.node1"] {
        let question = codec::encode(&Query::Head).unwrap();
        hostile.client.publish_with_reply(subject, "muster.log", question.into()).await.unwrap();
    }
    for target in ["muster.log", "muster.node.node2.order", "muster.log-stored", "muster.command.user"] {
        let next = "$JS.API.CONSUMER.MSG.NEXT.MUSTER_NOTIFY.workers";
        hostile.client.publish_with_reply(next, target, "1".into()).await.unwrap();
    }
    hostile.client.flush().await.unwrap();
}

async fn send(gateway: &LedgerClient, command: Command) -> Answer {
    let envelope = CommandEnvelope { id: CommandId::new_now(), actor: root(), trace: TraceContext::default(), command };
    gateway.send(&envelope).await.expect("an answer")
}

fn secret_job() -> JobSpec {
    let notification =
        Notification { on: vec![Occasion::Ended], sink: Sink::Exec("true".into()), spares_cancelled: false };
    let mut spec = JobSpec { notifications: vec![notification], ..job() };
    spec.environment.insert("PASSWORD".into(), SECRET.into());
    spec
}

/// Submits a job and cancels it, which makes a notification.
async fn submit_and_cancel(gateway: &LedgerClient) -> JobId {
    let job = submitted(&send(gateway, Command::Submit { jobs: vec![secret_job()] }).await)[0];
    send(gateway, Command::Cancel { jobs: JobSelection::Ids(vec![job]) }).await.result.expect("cancelled");
    job
}

async fn connect(server: &NatsServer, user: &str) -> SharedBus {
    NatsBus::connect(server.user(user)).await.expect("connected")
}

async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, work).await.unwrap_or_else(|_| panic!("not within {SOON:?}: {what}"))
}

/// Each of eight roles, with the password of one node and of every kind of reader among them, receives nothing that is
/// meant for others, makes nothing happen, and does not stop the ledger (F8, F9).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_roles_hear_nothing_and_stop_nothing() {
    let server = NatsServer::start_shipped(
        &["node1", "node2"],
        "{ user: spy, password: spy, permissions: { publish: \">\", subscribe: \">\" } }",
    );
    let folder = tempfile::tempdir().unwrap();
    let ledger_bus = connect(&server, "ledger").await;
    let ledger = Ledger::start_on(ledger_bus.clone(), config(folder.path())).await;
    let gateway_bus = connect(&server, "gateway").await;
    let gateway = LedgerClient::new(gateway_bus.clone()).with_patience(SOON);
    let mut feed = Feed::open(gateway_bus.clone(), Sequence(1)).await.unwrap();

    let spy = Listener::connect(&server.url(), "spy", "spy", "_INBOX_spy", &["muster.>"]).await;
    let mut patterns =
        vec![">", "muster.>", "_INBOX.>", "_INBOX_gateway.>", "_INBOX_executor-node2.>", "_INBOX_ledger.>", "$JS.>"];
    patterns.extend(SUBJECTS);
    let mut hostiles = Vec::new();
    for role in &ROLES {
        let password = fs::read_to_string(server.user(role.user).password_file.unwrap()).unwrap();
        let inbox = if role.user == "integration" { "_INBOX".to_owned() } else { format!("_INBOX_{}", role.user) };
        hostiles.push((role, Listener::connect(&server.url(), role.user, password.trim(), &inbox, &patterns).await));
    }

    let node2 = connect(&server, "executor-node2").await;
    let mut orders = node2.subscribe(&subjects::node_orders("node2")).await.expect("it may");

    let job = submit_and_cancel(&gateway).await;
    let asked = gateway.query(&Query::JobSpec { job }).await.expect("the gateway may");
    assert!(contains(&codec::encode(&asked).unwrap(), SECRET), "the gateway reads the job");
    ledger_bus.publish(&subjects::node_orders("node2"), Message::new(SECRET)).await.unwrap();

    for (role, hostile) in &hostiles {
        let done = abuse_jetstream(hostile).await;
        // Integrations may create consumers of the mirror in their own account, which deliver there.
        let in_own_account = |done: &String| {
            role.user == "integration" && done.starts_with("CONSUMER.") && done.contains("MUSTER_EVENTS")
        };
        let done: Vec<_> = done.into_iter().filter(|done| !in_own_account(done)).collect();
        assert_eq!(done, [""; 0], "{} got JetStream to do this", role.user);
        say_rubbish(hostile, job).await;
        if role.user.starts_with("executor") {
            let question = codec::encode(&Query::JobSpec { job }).unwrap();
            for subject in [subjects::QUERY, subjects::HEAD] {
                if let Some(answer) = hostile.ask(subject, question.clone()).await {
                    let answer: QueryAnswer = codec::decode(&answer).unwrap();
                    assert!(matches!(answer, QueryAnswer::Head { .. }), "a node reads {answer:?}");
                }
            }
        }
    }

    // The ledger keeps running, and so does the stream.
    let job = submit_and_cancel(&gateway).await;
    assert!(gateway.query(&Query::JobSpec { job }).await.is_ok());
    let QueryAnswer::Head { last: head, .. } = gateway.query(&Query::Head).await.unwrap() else { panic!("no head") };
    while feed.position() <= head {
        soon("the feed goes on", feed.next()).await.unwrap();
    }
    soon("the stream ends with the log", async {
        loop {
            let tail = ledger_bus.log_tail().await.unwrap();
            if matches!(&tail, LogTail::Record { last, is_own: true, .. } if *last >= head) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;

    // Integrations can do their work: their mirror has all events and nothing else.
    let published = jetstream::new(spy.client.clone()).get_stream("MUSTER_EVENTS").await.unwrap();
    let integration = &hostiles[0].1;
    soon("the mirror has the events", async {
        loop {
            let mirror = jetstream::new(integration.client.clone()).get_stream("MUSTER_EVENTS").await;
            let (of_muster, of_mirror) = (published.cached_info(), mirror.as_ref().map(|mirror| mirror.cached_info()));
            if of_mirror.is_ok_and(|of_mirror| of_mirror.state.messages >= of_muster.state.messages.max(1)) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;

    for (role, hostile) in &hostiles {
        hostile.client.flush().await.unwrap();
        for (subject, payload) in hostile.heard() {
            let own = format!("_INBOX_{}.", role.user);
            let is_meant = role.hears.contains(&subject.as_str())
                || subject.starts_with(&own)
                || role.user == "integration" && subject.starts_with("_INBOX.");
            assert!(is_meant, "{} hears `{subject}`", role.user);
            assert!(
                subject == subjects::LOG_STORED_SUBJECT || !contains(&payload, SECRET),
                "{} hears a secret",
                role.user
            );
        }
    }
    let may_be_said = |subject: &str| ROLES.iter().any(|role| role.says.contains(&subject));
    for (subject, payload) in spy.heard() {
        assert!(!contains(&payload, MARK) || may_be_said(&subject), "somebody says rubbish on `{subject}`");
    }
    let order = soon("the order", orders.next()).await.expect("the bus is open");
    assert_eq!(order.message.payload, SECRET);
    assert_eq!(orders.try_next(), None, "a false order");
    let of_spy = jetstream::new(spy.client.clone());
    let mut consumers = of_spy.get_stream_no_info("MUSTER_EVENTS").await.unwrap().consumer_names();
    while let Some(name) = consumers.next().await {
        assert!(!name.unwrap().starts_with(MARK), "a consumer of the account of muster");
    }
    ledger.stop().await;
}
