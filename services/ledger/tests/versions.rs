//! Different versions of muster on one NATS server: a role that cannot be understood learns what to upgrade.

mod support;

use muster_bus::{BusError, LedgerClient, Message, NatsBus, NatsConfig, SharedBus, testing::NatsServer};
use muster_schemas::{
    codec::{self, CodecError, FEATURE_LEVEL, OLDEST_FEATURE_LEVEL, SCHEMA_VERSION},
    command::{Answer, Command, CommandEnvelope, Query, QueryAnswer},
    content::{ContentHash, ContentRequest},
    event::TraceContext,
    ids::{CommandId, Sequence},
    node::Heartbeat,
    subjects,
};
use std::time::Duration;
use support::{Ledger, config, root};

const SOON: Duration = Duration::from_secs(60);
const OTHERS: [(u8, &str); 2] = [(SCHEMA_VERSION - 1, "upgrade that one"), (SCHEMA_VERSION + 1, "upgrade this one")];

async fn connect(server: &NatsServer) -> SharedBus {
    NatsBus::connect(NatsConfig { url: server.url(), ..NatsConfig::default() }).await.expect("connected")
}

/// The message as another schema version of muster would send it.
fn of_version(version: u8, message: &Message) -> Message {
    let mut bytes = message.payload.to_vec();
    bytes[1] = version;
    Message::new(bytes)
}

/// The ledger answers every message of a role with another version, so that the role notices; both sides say which
/// one to upgrade.
#[tokio::test(flavor = "multi_thread")]
async fn roles_of_another_version_are_answered_and_not_heard() {
    let (folder, server) = (tempfile::tempdir().unwrap(), NatsServer::start());
    let ledger = Ledger::start_on(connect(&server).await, config(folder.path())).await;
    let role = connect(&server).await;
    let heartbeat =
        Heartbeat { node: "n1".into(), boot_id: "boot".into(), parts: Vec::new(), highest_run: None, as_of: None };
    let content = ContentRequest { node: "n1".into(), hash: ContentHash::of(b""), offset: 0 };
    let command = Command::Submit { jobs: vec![support::job()] };
    let envelope = CommandEnvelope { id: CommandId::new_now(), actor: root(), trace: TraceContext::default(), command };
    let before = ledger.head().await;
    for (version, advice) in OTHERS {
        let messages = [
            (subjects::heartbeat("n1"), Message::encode(&heartbeat).unwrap()),
            (subjects::content("n1"), Message::encode(&content).unwrap()),
            (subjects::COMMAND_USER.to_owned(), Message::encode(&envelope).unwrap()),
            (subjects::QUERY.to_owned(), Message::encode(&Query::Head).unwrap()),
        ];
        for (subject, message) in messages {
            let reply = role.request(&subject, of_version(version, &message), SOON).await.expect("an answer");
            assert_eq!(reply.payload[1], SCHEMA_VERSION, "{subject}: the answer is of the ledger's version");
            if subject == subjects::COMMAND_USER {
                let refusal = reply.decode::<Answer>().expect("an answer").result.expect_err("it is not understood");
                assert!(refusal.message.contains(advice), "{refusal}");
            }
        }
    }
    assert_eq!(ledger.head().await, before, "nothing was done");
    ledger.stop().await;
}

/// A role stops if it finds a ledger of another version, or one that writes more than it can read.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_does_not_work_with_a_ledger_of_another_version() {
    let server = NatsServer::start();
    let bus = connect(&server).await;
    let mut requests = bus.serve(subjects::HEAD).await.expect("it is served");
    let head = |feature_level| QueryAnswer::Head {
        last: Sequence(1),
        first: Sequence(1),
        cluster_id: [1; 16],
        last_hash: [0; 32],
        feature_level,
    };
    let mut answers: Vec<(Message, &str)> = OTHERS
        .map(|(version, advice)| (of_version(version, &Message::encode(&head(FEATURE_LEVEL)).unwrap()), advice))
        .into();
    answers.push((Message::encode(&head(FEATURE_LEVEL + 1)).unwrap(), "upgrade this one"));
    answers.push((Message::encode(&head(OLDEST_FEATURE_LEVEL - 1)).unwrap(), "upgrade the ledger"));
    answers.push((Message::encode(&head(FEATURE_LEVEL)).unwrap(), ""));
    let sent: Vec<Message> = answers.iter().map(|(message, _)| message.clone()).collect();
    let ledger = tokio::spawn(async move {
        for message in sent {
            requests.next().await.expect("a request").reply(message);
        }
    });
    let role = LedgerClient::new(connect(&server).await).with_patience(SOON);
    for (_, advice) in answers {
        match role.head().await {
            Ok(_) => assert_eq!(advice, "", "it is of the same version"),
            Err(error) => {
                assert!(!error.is_retryable(), "{error}");
                assert!(!advice.is_empty() && error.to_string().contains(advice), "{error}");
            }
        }
    }
    ledger.await.expect("all were asked");
}

/// Both directions say so in words.
#[test]
fn bytes_of_another_version_say_which_muster_is_to_be_upgraded() {
    for (version, advice) in OTHERS {
        let message = of_version(version, &Message::encode(&Query::Head).unwrap());
        let error = codec::decode::<Query>(&message.payload).expect_err("another version");
        assert!(matches!(error, CodecError::UnknownVersion { version: found, .. } if found == version), "{error}");
        let told = BusError::Malformed { subject: subjects::QUERY.into(), source: error }.to_string();
        assert!(told.contains(advice), "{told}");
    }
}
