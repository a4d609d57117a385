//! The stream of rounds on JetStream: a stream of its own, kept by three servers that sync every write.
//!
//! It is not the stream of the log. That one is a copy for readers: the ledger that leads publishes there what is in
//! its own log already, without the answers to commands, which are nobody else's. This one comes before the ledgers'
//! logs, and ledgers alone may read it.
//!
//! Nothing in it is too old to be kept: a cluster that was switched off for days finds the end of its stream again. It
//! stays small by its size, and by renewals that vanish.

use super::{NatsConfig, connection, headers};
use crate::{
    BusError,
    rounds::{Keepers, Next, Outcome, Position, RoundHeader, RoundKind, RoundMessage, Rounds, StreamInfo},
};
use async_nats::{
    Client, HeaderMap,
    connection::State,
    jetstream::{
        self, ErrorCode,
        context::{CreateStreamErrorKind, GetStreamErrorKind, PublishError, PublishErrorKind},
        message::{PublishMessage, StreamMessage},
        publish::PublishAck,
        response::Response,
        stream::{Config, DiscardPolicy, LastRawMessageErrorKind, Placement, RetentionPolicy, StorageType},
    },
};
use futures::{StreamExt as _, stream::FuturesUnordered};
use muster_schemas::{
    ids::Sequence,
    subjects::{ROUNDS_STREAM, ROUNDS_SUBJECT},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::{fmt::Write as _, pin::pin, time::Duration};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep, timeout, timeout_at},
};

/// The tag of servers that sync every write. A client cannot see whether they do; the tag is the word of who
/// configured them.
const SYNC_TAG: &str = "sync:always";
/// How many servers keep the stream.
const REPLICAS: usize = 3;
/// The stream is kept small: servers that start read it, and history is the business of the ledgers.
const MAX_BYTES: i64 = 256 << 20;
/// Duplicates within this time are answered as such. Nothing relies on it: an append names the end that it follows.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// A renewal says nothing any more after this time, and vanishes.
const RENEWAL_TTL: Duration = Duration::from_secs(10);

/// A server that is paused is noticed after three of these intervals, well before the others have elected a leader.
const PING_INTERVAL: Duration = Duration::from_millis(500);
/// How long an append waits for its acknowledgement, besides [`APPEND_TIME_PER_MIB`]. A short time costs nothing: the
/// same append again gets the answer.
const APPEND_TIMEOUT: Duration = Duration::from_millis(500);
const APPEND_TIME_PER_MIB: Duration = Duration::from_millis(125);
/// While the stream has no leader, questions get no answer: the one that is asked soon after the election counts.
const ASK_AGAIN: Duration = Duration::from_millis(150);
/// The pause between two looks at the end of the stream, and after an answer that is none.
const POLL: Duration = Duration::from_millis(20);
/// How long a question may take, even if less time was given for it: large messages need some.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// How long the making of the stream may take.
const MADE_WITHIN: Duration = Duration::from_secs(5);

const CLUSTER: &str = "Muster-Cluster";
const LEDGER: &str = "Muster-Ledger";
const EPOCH: &str = "Muster-Epoch";
const KIND: &str = "Muster-Kind";
const HASH_BEFORE: &str = "Muster-Hash-Before";
const HASH_AFTER: &str = "Muster-Hash-After";
const FEATURE_LEVEL: &str = "Muster-Feature-Level";
/// No name of a ledger is longer.
const MAX_NAME_BYTES: usize = 255;

/// The remedy when the servers are not what several ledgers need.
const REMEDY: &str = "several ledgers need three NATS servers in one cluster, each with `server_tags: [\"sync:always\"]` \
                      and, under `jetstream`, `sync_interval: always`";

/// The stream of rounds on JetStream. It has a connection of its own, which gives up a silent server much sooner than
/// other connections do.
#[derive(Debug)]
pub struct NatsRounds {
    client: Client,
    jetstream: jetstream::Context,
    /// When the stream was made that this process has asked last.
    created: Option<Timestamp>,
    runtime: Handle,
}

impl NatsRounds {
    /// Connects, and waits while no server can be reached. The calls of [`Rounds`] then run on this runtime, from
    /// threads outside it.
    ///
    /// # Errors
    /// [`BusError::Unusable`] if waiting does not help: see [`NatsBus::connect`](crate::NatsBus::connect); or if the
    /// server is older than 2.15.1.
    pub async fn connect(config: &NatsConfig) -> Result<Self, BusError> {
        let (client, _) = connection::connect(config, PING_INTERVAL).await?;
        let found = client.server_info().version;
        if !connection::orders_rounds(&found) {
            let (major, minor, patch) = connection::OLDEST_SERVER_OF_ROUNDS;
            return Err(BusError::Unusable(format!(
                "the NATS server is version {found}; several ledgers need {major}.{minor}.{patch} or later, because \
                 earlier ones can lose what they have acknowledged"
            )));
        }
        let mut jetstream = jetstream::new(client.clone());
        jetstream.set_timeout(ANSWER_WITHIN);
        Ok(Self { client, jetstream, created: None, runtime: Handle::current() })
    }

    /// Looks at the stream without making it, for people who look for faults.
    ///
    /// # Errors
    /// It cannot be asked; the text says why.
    pub async fn examine(&self) -> Result<RoundsHealth, String> {
        let version = self.client.server_info().version;
        let health = |fault, leader, text| RoundsHealth { version, fault, leader, text };
        let info = match self.jetstream.get_stream(ROUNDS_STREAM).await {
            Ok(stream) => stream.cached_info().clone(),
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                    return Ok(health(None, None, "the first ledger that starts makes it".to_owned()));
                }
                _ => return Err(format!("the stream {ROUNDS_STREAM} cannot be asked: {error}")),
            },
        };
        let cluster = info.cluster.unwrap_or_default();
        let fault = fault(&info.config).or_else(|| {
            let behind = cluster.replicas.iter().find(|peer| peer.offline || !peer.current)?;
            let how = if behind.offline { "is away" } else { "is behind" };
            Some(format!(
                "the NATS server {} {how}: the loss of one more stops all decisions; look at its log",
                behind.name
            ))
        });
        let text = match &cluster.leader {
            Some(leader) => {
                let others: Vec<&str> = cluster.replicas.iter().map(|peer| peer.name.as_str()).collect();
                format!("{leader} leads it, {} follow, {} messages", others.join(" and "), info.state.messages)
            }
            None => "no server leads it".to_owned(),
        };
        let fault = fault.or_else(|| cluster.leader.is_none().then(|| text.clone()));
        Ok(health(fault, cluster.leader, text))
    }

    fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    async fn append_after(&mut self, after: Position, message: &RoundMessage) -> Outcome {
        if !self.is_connected() {
            // It would wait in the client; the caller asks again when it matters.
            return Outcome::Unknown(AWAY.to_owned());
        }
        let publish = match encode(after, message) {
            Ok(publish) => publish,
            Err(why) => return Outcome::Unknown(why),
        };
        let mebibytes = u32::try_from(message.body.len() >> 20).unwrap_or(u32::MAX);
        let wait = APPEND_TIMEOUT + APPEND_TIME_PER_MIB * mebibytes;
        let sent = async { self.jetstream.send_publish(ROUNDS_SUBJECT, publish).await?.await };
        match timeout(wait, sent).await {
            Err(_) => Outcome::Unknown("the NATS servers have not acknowledged it in time".to_owned()),
            Ok(Ok(ack)) => acknowledged(after, &ack),
            Ok(Err(error)) if error.kind() == PublishErrorKind::WrongLastSequence => {
                self.refused(after, message, end_named_by(&error)).await
            }
            // Among them 10158, the first copy is being stored, and 503, there is no leader.
            Ok(Err(error)) => Outcome::Unknown(text_of(&error)),
        }
    }

    /// What a refusal means: the place may be taken by this very message, by another one, or by one that is not
    /// durable yet and may never be.
    async fn refused(&mut self, after: Position, message: &RoundMessage, named: Option<Position>) -> Outcome {
        let beaten = Outcome::Beaten { last: named.unwrap_or(after.next()) };
        match self.judged(after, message).await {
            Ok(Some(is_own)) => return if is_own { Outcome::Stands(after.next()) } else { beaten },
            Err(why) => return Outcome::Unknown(why),
            Ok(None) => {}
        }
        let before = self.created;
        let info = match self.find().await {
            Ok(info) => info,
            Err(why) => return Outcome::Unknown(why),
        };
        if before.is_some_and(|before| before != info.created) {
            return Outcome::Beaten { last: info.last };
        }
        if info.last <= after {
            return Outcome::Unknown(format!("the stream ends at {}, and something is on its way into it", info.last));
        }
        match self.judged(after, message).await {
            Ok(Some(true)) => Outcome::Stands(after.next()),
            // What stood there has vanished, as renewals do.
            Ok(Some(false) | None) => beaten,
            Err(why) => Outcome::Unknown(why),
        }
    }

    /// Whether this message stands behind a place; `None` if nothing stands there.
    async fn judged(&self, after: Position, message: &RoundMessage) -> Result<Option<bool>, String> {
        let found = self.look(after.next(), Instant::now() + ANSWER_WITHIN).await?;
        Ok(found.map(|found| {
            let is_there = found.sequence == after.next().0;
            is_there && decode(&found).is_ok_and(|header| header == message.header)
        }))
    }

    async fn next_after(&mut self, after: Position, wait: Duration) -> Next {
        let until = Instant::now() + wait;
        loop {
            if !self.is_connected() {
                return Next::Unreachable(AWAY.to_owned());
            }
            match self.look(after.next(), until).await {
                Ok(Some(found)) => return self.behind_a_gap(after, found).await,
                Ok(None) if Instant::now() + POLL > until => return Next::Nothing,
                Ok(None) => sleep(POLL).await,
                Err(why) => return Next::Unreachable(why),
            }
        }
    }

    /// A message that does not stand right behind `after` comes behind vanished renewals, or behind what the stream
    /// gave up because it became too large.
    async fn behind_a_gap(&mut self, after: Position, found: StreamMessage) -> Next {
        let place = Position(found.sequence);
        if place > after.next() {
            match self.find().await {
                Ok(info) if info.first > after.next() => return Next::Gone { first: info.first },
                Ok(_) => {}
                Err(why) => return Next::Unreachable(why),
            }
        }
        match decode(&found) {
            Ok(header) => Next::Message(place, RoundMessage { header, body: found.payload }),
            Err(why) => Next::Strange(place, why),
        }
    }

    /// The first message at or behind a place, if there is one. The question is put again and again until an answer
    /// comes: any of its copies will do.
    async fn look(&self, from: Position, until: Instant) -> Result<Option<StreamMessage>, String> {
        let until = until.max(Instant::now() + ANSWER_WITHIN);
        let stream = self.jetstream.get_stream_no_info(ROUNDS_STREAM).await.map_err(|error| error.to_string())?;
        let mut asked = FuturesUnordered::new();
        let mut why = "the stream of rounds has no leader, or it is silent".to_owned();
        while Instant::now() < until {
            asked.push(stream.get_first_raw_message_by_subject(ROUNDS_SUBJECT, from.0));
            let mut again = pin!(sleep(ASK_AGAIN));
            loop {
                tokio::select! {
                    () = &mut again => break,
                    Some(answer) = asked.next() => match answer {
                        Ok(found) => return Ok(Some(found)),
                        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => return Ok(None),
                        Err(error) => {
                            why = format!("the stream of rounds cannot be read: {error}");
                            again.set(sleep(POLL));
                        }
                    },
                }
            }
        }
        Err(why)
    }

    /// What the stream says about itself; a missing one is made.
    async fn find(&mut self) -> Result<StreamInfo, String> {
        let info = match self.jetstream.get_stream(ROUNDS_STREAM).await {
            Ok(stream) => stream.cached_info().clone(),
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                    self.make().await?
                }
                _ => return Err(format!("the stream {ROUNDS_STREAM} cannot be asked: {error}")),
            },
        };
        if let Some(fault) = fault(&info.config) {
            return Err(format!("the stream {ROUNDS_STREAM} is not safe: {fault}"));
        }
        let created = Timestamp(i64::try_from(info.created.unix_timestamp_nanos() / 1000).unwrap_or(i64::MAX));
        self.created = Some(created);
        let last = Position(info.state.last_sequence);
        let first = if info.state.messages == 0 { last.next() } else { Position(info.state.first_sequence) };
        Ok(StreamInfo { created, first, last })
    }

    async fn make(&self) -> Result<jetstream::stream::Info, String> {
        let mut jetstream = jetstream::new(self.client.clone());
        jetstream.set_timeout(MADE_WITHIN);
        let made = jetstream.create_stream(wanted()).await;
        let error = match made {
            Ok(stream) => return Ok(stream.cached_info().clone()),
            Err(error) => error,
        };
        match error.kind() {
            // Another ledger was faster.
            CreateStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NAME_EXIST => {
                let made = jetstream.get_stream(ROUNDS_STREAM).await;
                made.map(|stream| stream.cached_info().clone()).map_err(|error| error.to_string())
            }
            CreateStreamErrorKind::JetStream(error)
                if matches!(
                    error.error_code(),
                    ErrorCode::CLUSTER_NO_PEERS | ErrorCode::STREAM_REPLICAS_NOT_SUPPORTED
                ) =>
            {
                Err(format!("the stream {ROUNDS_STREAM} has no place: {REMEDY}. NATS says: {error}"))
            }
            _ => Err(format!("the stream {ROUNDS_STREAM} cannot be made: {error}")),
        }
    }
}

/// The state of the stream of rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundsHealth {
    /// The version of the server that was asked.
    pub version: String,
    /// The fault, and the remedy; `None` if there is none.
    pub fault: Option<String>,
    /// The name of the server that leads the stream.
    pub leader: Option<String>,
    /// What was found.
    pub text: String,
}

/// Why nothing is sent.
const AWAY: &str = "no NATS server can be reached";

impl Rounds for NatsRounds {
    fn append(&mut self, after: Position, message: &RoundMessage) -> Outcome {
        self.runtime.clone().block_on(self.append_after(after, message))
    }

    fn next(&mut self, after: Position, wait: Duration) -> Next {
        self.runtime.clone().block_on(self.next_after(after, wait))
    }

    fn info(&mut self) -> Result<StreamInfo, String> {
        let until = Instant::now() + MADE_WITHIN;
        let runtime = self.runtime.clone();
        runtime.block_on(async { timeout_at(until, self.find()).await.unwrap_or_else(|_| Err(AWAY.to_owned())) })
    }

    fn keepers(&self) -> Option<Box<dyn Keepers>> {
        Some(Box::new(NatsKeepers { jetstream: self.jetstream.clone(), runtime: self.runtime.clone() }))
    }
}

/// The servers that keep the stream, asked beside its messages.
struct NatsKeepers {
    jetstream: jetstream::Context,
    runtime: Handle,
}

/// Asks the leader of a stream to step down.
#[derive(Serialize)]
struct StepDown {
    placement: Preferred,
}

/// Which server leads next.
#[derive(Serialize)]
struct Preferred {
    preferred: String,
}

/// The answer to [`StepDown`].
#[derive(Deserialize)]
struct SteppedDown {
    success: bool,
}

impl Keepers for NatsKeepers {
    fn lead_elsewhere(&mut self, than: &str) -> Result<Option<String>, String> {
        self.runtime.clone().block_on(self.led_elsewhere(than))
    }
}

impl NatsKeepers {
    async fn led_elsewhere(&self, than: &str) -> Result<Option<String>, String> {
        let found = self.jetstream.get_stream(ROUNDS_STREAM).await.map_err(|error| error.to_string())?;
        let cluster = found.cached_info().cluster.clone().unwrap_or_default();
        if cluster.leader.as_deref() != Some(than) {
            return Ok(None);
        }
        let Some(other) = cluster.replicas.into_iter().find(|peer| peer.current && !peer.offline) else {
            return Ok(None);
        };
        let request = StepDown { placement: Preferred { preferred: other.name.clone() } };
        let subject = format!("STREAM.LEADER.STEPDOWN.{ROUNDS_STREAM}");
        let answer = self.jetstream.request(subject, &request).await.map_err(|error| error.to_string())?;
        match answer {
            Response::Ok(SteppedDown { success: true }) => Ok(Some(other.name)),
            Response::Ok(SteppedDown { success: false }) => Err(format!("{than} does not step down")),
            Response::Err { error } => Err(error.to_string()),
        }
    }
}

/// The stream as it has to be.
fn wanted() -> Config {
    Config {
        name: ROUNDS_STREAM.to_owned(),
        subjects: vec![ROUNDS_SUBJECT.to_owned()],
        description: Some("the order in which several muster ledgers decide".to_owned()),
        storage: StorageType::File,
        retention: RetentionPolicy::Limits,
        discard: DiscardPolicy::Old,
        max_bytes: MAX_BYTES,
        duplicate_window: DUPLICATE_WINDOW,
        num_replicas: REPLICAS,
        placement: Some(Placement { cluster: None, tags: vec![SYNC_TAG.to_owned()] }),
        deny_delete: true,
        deny_purge: true,
        allow_direct: false,
        allow_message_ttl: true,
        ..Config::default()
    }
}

/// What makes a stream unfit to order rounds; `None` if nothing does.
fn fault(found: &Config) -> Option<String> {
    let tags = found.placement.as_ref().map(|placement| placement.tags.as_slice()).unwrap_or_default();
    if found.num_replicas < REPLICAS {
        return Some(format!("{} of the NATS servers keep it; {REMEDY}", found.num_replicas));
    }
    if !tags.iter().any(|tag| tag == SYNC_TAG) {
        return Some(format!("it may be on servers that do not sync every write; {REMEDY}"));
    }
    let whole = found.storage == StorageType::File && found.deny_delete && found.deny_purge && !found.allow_direct;
    (!whole).then(|| "its messages are not on disk, or can be deleted or read where they are not durable".to_owned())
}

/// The meaning of an acknowledgement, also that of a duplicate.
fn acknowledged(after: Position, ack: &PublishAck) -> Outcome {
    match ack.sequence == after.next().0 {
        true => Outcome::Stands(after.next()),
        // The server has broken its promise. The caller gives up after a while.
        false => Outcome::Unknown(format!(
            "NATS has stored at {} what has its place at {}: the stream is damaged",
            ack.sequence,
            after.next()
        )),
    }
}

/// The end of the stream in `wrong last sequence: N`.
fn end_named_by(error: &PublishError) -> Option<Position> {
    let text = text_of(error);
    let (_, named) = text.rsplit_once("wrong last sequence: ")?;
    let digits = named.split(|found: char| !found.is_ascii_digit()).next()?;
    digits.parse().ok().map(Position)
}

/// The error and what led to it.
fn text_of(error: &PublishError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn encode(after: Position, message: &RoundMessage) -> Result<PublishMessage, String> {
    let header = &message.header;
    let ledger: async_nats::HeaderValue =
        header.ledger.parse().map_err(|_| "the name of the ledger does not fit into a header".to_owned())?;
    let publish = PublishMessage::build()
        .header(CLUSTER, headers::hexadecimal(header.cluster))
        .header(LEDGER, ledger)
        .header(EPOCH, header.epoch.to_string())
        .header(KIND, header.kind.name())
        .header(headers::FIRST_SEQUENCE, header.first.to_string())
        .header(headers::LAST_SEQUENCE, header.last.to_string())
        .header(HASH_BEFORE, hash_text(header.before))
        .header(HASH_AFTER, hash_text(header.after))
        .header(FEATURE_LEVEL, header.feature_level.to_string())
        .expected_stream(ROUNDS_STREAM)
        .expected_last_sequence(after.0)
        .message_id(header.id(after))
        .payload(message.body.clone());
    Ok(match header.kind {
        RoundKind::Renewal => publish.ttl(RENEWAL_TTL),
        RoundKind::Claim | RoundKind::Round | RoundKind::Yield => publish,
    })
}

/// Reads the header of a message, which anybody may have put into the stream.
fn decode(message: &StreamMessage) -> Result<RoundHeader, String> {
    let of = &message.headers;
    let header = RoundHeader {
        cluster: headers::sixteen_bytes(of, CLUSTER).ok_or("it does not say whose history it is")?,
        ledger: name_in(of).ok_or("it does not say which ledger sent it")?,
        epoch: headers::number(of, EPOCH).filter(|epoch| *epoch > 0).ok_or("it has no epoch")?,
        kind: of.get(KIND).and_then(|kind| RoundKind::of_name(kind.as_str())).ok_or("it does not say what it is")?,
        first: headers::number(of, headers::FIRST_SEQUENCE).map(Sequence).ok_or("it has no first record")?,
        last: headers::number(of, headers::LAST_SEQUENCE).map(Sequence).ok_or("it has no last record")?,
        before: hash_in(of, HASH_BEFORE).ok_or("it has no hash before it")?,
        after: hash_in(of, HASH_AFTER).ok_or("it has no hash of its own")?,
        feature_level: headers::number(of, FEATURE_LEVEL)
            .and_then(|level| u32::try_from(level).ok())
            .ok_or("it has no feature level")?,
    };
    let is_whole = match header.has_records() {
        true => !message.payload.is_empty(),
        false => header.last.0.checked_add(1) == Some(header.first.0),
    };
    if is_whole { Ok(header) } else { Err("its records are not what its header says".to_owned()) }
}

fn name_in(headers: &HeaderMap) -> Option<String> {
    let name = headers.get(LEDGER)?.as_str();
    let fits = !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.chars().any(char::is_control);
    fits.then(|| name.to_owned())
}

fn hash_text(hash: [u8; 32]) -> String {
    hash.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing into a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn hash_in(headers: &HeaderMap, name: &str) -> Option<[u8; 32]> {
    let text = headers.get(name)?.as_str();
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut hash = [0; 32];
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn message(kind: RoundKind, first: u64, last: u64, body: &'static str) -> RoundMessage {
        let header = RoundHeader {
            cluster: [7; 16],
            ledger: "head one".into(),
            epoch: 3,
            kind,
            first: Sequence(first),
            last: Sequence(last),
            before: [0x1f; 32],
            after: [0xe0; 32],
            feature_level: 8,
        };
        RoundMessage { header, body: Bytes::from_static(body.as_bytes()) }
    }

    fn stored(message: &RoundMessage) -> StreamMessage {
        let sent = encode(Position(41), message).unwrap().outbound_message(ROUNDS_SUBJECT);
        StreamMessage {
            subject: sent.subject,
            sequence: 42,
            headers: sent.headers.unwrap(),
            payload: sent.payload,
            time: std::time::SystemTime::UNIX_EPOCH.into(),
        }
    }

    #[test]
    fn headers_come_back_as_they_were() {
        let kinds = [(RoundKind::Claim, 8, 8, "x"), (RoundKind::Round, 8, 9, "x"), (RoundKind::Renewal, 10, 9, "")];
        for (kind, first, last, body) in kinds {
            let message = message(kind, first, last, body);
            assert_eq!(decode(&stored(&message)), Ok(message.header));
        }
    }

    #[test]
    fn what_no_ledger_sends_is_refused_with_a_reason() {
        let good = stored(&message(RoundKind::Round, 8, 9, "x"));
        for (name, value) in [
            (CLUSTER, "7"),
            (LEDGER, ""),
            (EPOCH, "0"),
            (KIND, "rumour"),
            (headers::FIRST_SEQUENCE, "eight"),
            (headers::LAST_SEQUENCE, "-1"),
            (HASH_BEFORE, "+f"),
            (HASH_AFTER, ""),
            (FEATURE_LEVEL, "4294967296"),
            (headers::FIRST_SEQUENCE, "18446744073709551615"),
        ] {
            let mut headers = good.headers.clone();
            headers.insert(name, value);
            let bad = StreamMessage { headers, ..stored(&message(RoundKind::Round, 8, 9, "x")) };
            assert!(decode(&bad).is_err(), "{name}: {value}");
        }
        let empty = StreamMessage { payload: Bytes::new(), ..good };
        assert!(decode(&empty).is_err());
    }

    #[test]
    fn a_stream_that_can_lose_messages_is_refused() {
        assert_eq!(fault(&wanted()), None);
        for bad in [
            Config { num_replicas: 1, ..wanted() },
            Config { placement: None, ..wanted() },
            Config { storage: StorageType::Memory, ..wanted() },
            Config { deny_delete: false, ..wanted() },
            Config { deny_purge: false, ..wanted() },
            Config { allow_direct: true, ..wanted() },
        ] {
            assert!(fault(&bad).is_some(), "{bad:?}");
        }
    }
}
