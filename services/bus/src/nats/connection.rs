//! Connecting, and staying connected.

use super::NatsConfig;
use crate::BusError;
use async_nats::{Client, ConnectError, ConnectErrorKind, ConnectOptions, Event};
use std::{path::Path, time::Duration};
use tokio::sync::watch;

/// The pause between attempts to reach the server grows to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// A dead connection is noticed after three of these intervals.
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// The same where another server is there to go to.
const PING_INTERVAL_IN_CLUSTER: Duration = Duration::from_secs(1);
/// How long a server may take to greet where another one is there to go to: a paused one takes connections, and is
/// silent.
const GREETING_IN_CLUSTER: Duration = Duration::from_secs(1);
/// NATS' own documentation calls a subscriber with more waiting messages slow: it loses some.
const WAITING_MESSAGES: usize = 65_536;
/// A server that carries less refuses large submissions.
const USUAL_PAYLOAD: usize = 8_000_000;
/// JetStream of this and later versions has what the bus needs.
const OLDEST_SERVER: (u64, u64, u64) = (2, 11, 0);
/// Servers before this one can lose what they acknowledged, although they sync every write.
pub(super) const OLDEST_SERVER_OF_ROUNDS: (u64, u64, u64) = (2, 15, 1);

/// Whether a server of this version can order the rounds of several ledgers.
pub(crate) fn orders_rounds(version: &str) -> bool {
    is_at_least(version, OLDEST_SERVER_OF_ROUNDS)
}

/// How often a client asks for a sign of life of its server.
pub(super) fn ping_interval(config: &NatsConfig) -> Duration {
    if is_cluster(config) { PING_INTERVAL_IN_CLUSTER } else { PING_INTERVAL }
}

/// Whether there are several servers.
fn is_cluster(config: &NatsConfig) -> bool {
    config.url.contains(',')
}

/// A client that reconnects for ever, and the number of its connections so far. It asks for a sign of life of its
/// server once in `ping_interval`.
pub(super) async fn connect(
    config: &NatsConfig,
    ping_interval: Duration,
) -> Result<(Client, watch::Receiver<u64>), BusError> {
    let (count, mut connections) = watch::channel(0);
    let mut attempt = 0;
    loop {
        match options(config, ping_interval, count.clone()).await?.connect(&addresses(&config.url)?[..]).await {
            Ok(client) => {
                check_server(&client)?;
                // The event of this connection arrives a moment later and must not count as a second one.
                let first = connections.wait_for(|count| *count > 0);
                drop(tokio::time::timeout(SERVER_TIMEOUT, first).await);
                return Ok((client, connections));
            }
            Err(error) => {
                let server = &config.url;
                if let Some(mistake) = mistake(&error) {
                    return Err(BusError::Unusable(format!("the NATS server {server}: {mistake}")));
                }
                match error.kind() {
                    ConnectErrorKind::Io | ConnectErrorKind::TimedOut | ConnectErrorKind::Dns => {
                        attempt += 1;
                        tracing::warn!(server, %error, attempt, "waiting for the NATS server");
                        tokio::time::sleep(pause(attempt)).await;
                    }
                    _ => return Err(BusError::Unusable(format!("the NATS server {server}: {error}"))),
                }
            }
        }
    }
}

/// A mistake that is easily made and does not mend itself, and that the library describes with a single word.
fn mistake(error: &ConnectError) -> Option<&'static str> {
    error.to_string().contains("CaUsedAsEndEntity").then_some(
        "it shows the certificate of an authority (CA:TRUE), which vouches for others and is no server's; give it its own \
         certificate (CA:FALSE), signed by that authority",
    )
}

/// The pause before the attempt of this number: doubling from 50 ms, at most [`LONGEST_PAUSE`].
fn pause(attempt: usize) -> Duration {
    let doublings = u32::try_from(attempt.saturating_sub(1).min(10)).unwrap_or(10);
    (Duration::from_millis(50) * 2_u32.pow(doublings)).min(LONGEST_PAUSE)
}

fn addresses(url: &str) -> Result<Vec<async_nats::ServerAddr>, BusError> {
    let address = |text: &str| {
        let address: async_nats::ServerAddr =
            text.trim().parse().map_err(|error| BusError::Unusable(format!("`{text}` is no NATS address: {error}")))?;
        match address.has_user_pass() {
            true => {
                Err(BusError::Unusable("a NATS address holds no user or password; they have their own keys".into()))
            }
            false => Ok(address),
        }
    };
    url.split(',').map(address).collect()
}

async fn options(
    config: &NatsConfig,
    ping_interval: Duration,
    count: watch::Sender<u64>,
) -> Result<ConnectOptions, BusError> {
    let mut options = ConnectOptions::new()
        .name("muster")
        .custom_inbox_prefix(config.inbox()?)
        .connection_timeout(if is_cluster(config) { GREETING_IN_CLUSTER } else { SERVER_TIMEOUT })
        .ping_interval(ping_interval)
        .subscription_capacity(WAITING_MESSAGES)
        .max_reconnects(None)
        .reconnect_delay_callback(pause)
        .require_tls(config.tls_required)
        .event_callback(move |event| note(event, count.clone()));
    if let Some(file) = &config.credentials_file {
        options = options.credentials_file(file).await.map_err(|error| unreadable(file, error))?;
    }
    if let Some(user) = &config.user {
        let password = match &config.password_file {
            Some(file) => first_line(file).await?,
            None => String::new(),
        };
        options = options.user_and_password(user.clone(), password);
    }
    if let Some(file) = &config.tls_ca_file {
        options = options.add_root_certificates(file.clone());
    }
    match (&config.tls_certificate_file, &config.tls_key_file) {
        (Some(certificate), Some(key)) => Ok(options.add_client_certificate(certificate.clone(), key.clone())),
        (None, None) => Ok(options),
        _ => Err(BusError::Unusable("a client certificate and its key go together: one of them is missing".into())),
    }
}

async fn first_line(file: &Path) -> Result<String, BusError> {
    let text = tokio::fs::read_to_string(file).await.map_err(|error| unreadable(file, error))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn unreadable(file: &Path, error: std::io::Error) -> BusError {
    BusError::Unusable(format!("cannot read {}: {error}", file.display()))
}

async fn note(event: Event, count: watch::Sender<u64>) {
    match event {
        Event::Connected => {
            count.send_modify(|count| *count += 1);
            tracing::info!("connected to the NATS server");
        }
        Event::Disconnected => tracing::warn!("lost the NATS server, reconnecting"),
        Event::SlowConsumer(_) => tracing::warn!("a subscriber is too slow and loses messages"),
        Event::ServerError(error) => tracing::warn!(%error, "the NATS server reports an error"),
        other => tracing::debug!(event = %other, "NATS"),
    }
}

fn check_server(client: &Client) -> Result<(), BusError> {
    let info = client.server_info();
    if !is_at_least(&info.version, OLDEST_SERVER) {
        let (major, minor, _) = OLDEST_SERVER;
        let found = info.version;
        return Err(BusError::Unusable(format!(
            "the NATS server is version {found}; {major}.{minor} or later is needed"
        )));
    }
    if !info.jetstream {
        return Err(BusError::Unusable("the NATS server runs without JetStream; start it with `jetstream` on".into()));
    }
    if info.max_payload < USUAL_PAYLOAD {
        let limit = info.max_payload;
        tracing::warn!(limit, "the NATS server takes only small messages; set its `max_payload` to 8MB");
    }
    Ok(())
}

/// Whether a server's version is this one or a later one.
pub(super) fn is_at_least(version: &str, oldest: (u64, u64, u64)) -> bool {
    // What follows a hyphen tells of a version that is to come.
    let numbers = version.trim_start_matches('v').split('-').next().unwrap_or_default();
    let mut numbers = numbers.split('.').map(|number| number.parse::<u64>());
    match (numbers.next(), numbers.next(), numbers.next().unwrap_or(Ok(0))) {
        (Some(Ok(major)), Some(Ok(minor)), Ok(patch)) => (major, minor, patch) >= oldest,
        _ => false,
    }
}

/// How long to wait for an operation that a healthy server completes at once.
pub(super) const SERVER_TIMEOUT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_servers_are_known_by_their_version() {
        for (version, expected) in [
            ("2.11.0", true),
            ("2.15.1", true),
            ("3.0.0-beta", true),
            ("2.9.10", false),
            ("1.99.0", false),
            ("", false),
        ] {
            assert_eq!(is_at_least(version, OLDEST_SERVER), expected, "{version}");
        }
        for (version, expected) in
            [("2.15.0", false), ("2.15.1", true), ("v2.15.1-RC.1", true), ("2.16", true), ("2.15.x", false)]
        {
            assert_eq!(is_at_least(version, (2, 15, 1)), expected, "{version}");
        }
    }

    #[test]
    fn addresses_hold_no_passwords() {
        assert_eq!(addresses("nats://a:1, nats://b:2").map(|list| list.len()).ok(), Some(2));
        assert!(addresses("nats://user:secret@a:1").is_err());
        assert!(addresses("nats://a:port").is_err());
    }

    #[test]
    fn pauses_grow_to_a_limit() {
        assert_eq!(pause(1), Duration::from_millis(50));
        assert_eq!(pause(3), Duration::from_millis(200));
        assert_eq!(pause(usize::MAX), LONGEST_PAUSE);
    }
}
