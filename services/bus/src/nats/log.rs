//! The log stream on JetStream: one message for each commit, or several for one that is larger than a message may be.

use super::{Core, SERVER_TIMEOUT, headers, streams, unavailable};
use crate::{
    BusError, LogItem, LogStream, Message,
    feed::from_sequence,
    log_stream::{LogWriter, log_queue},
    pause::Backoff,
};
use async_nats::jetstream::{
    consumer::{AckPolicy, Consumer, DeliverPolicy, pull},
    context::PublishErrorKind,
    message::PublishMessage,
    stream::LastRawMessageErrorKind,
};
use futures::StreamExt;
use muster_schemas::{codec, event::Commit, ids::Sequence, subjects};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// A reader that the server has not heard of for so long is dropped there.
const INACTIVE_READER: Duration = Duration::from_secs(60);

/// Appends to the log stream. It knows where the stream ends, and the server refuses what does not follow there.
#[derive(Debug, Default)]
pub(super) struct LogAppender {
    end: Mutex<End>,
}

/// Where the log stream ends, as far as this writer knows.
#[derive(Clone, Copy, Debug, Default)]
enum End {
    /// Never asked.
    #[default]
    Unknown,
    /// Asked, or appended by this writer.
    Known(KnownEnd),
    /// An append failed, or is at work.
    Doubtful(KnownEnd),
}

#[derive(Clone, Copy, Debug)]
struct KnownEnd {
    /// JetStream's number of the last message.
    message: u64,
    /// The last record, or `None` if the stream holds none.
    record: Option<Sequence>,
}

impl LogAppender {
    fn replace(&self, end: End) -> End {
        std::mem::replace(&mut *self.end.lock().unwrap_or_else(PoisonError::into_inner), end)
    }

    pub(super) async fn find_tail(&self, core: &Core) -> Result<Option<Sequence>, BusError> {
        let end = find_end(core).await?;
        self.replace(End::Known(end));
        Ok(end.record)
    }

    pub(super) async fn append(&self, core: &Core, commit: Arc<Commit>) -> Result<(), BusError> {
        core.check_connected()?;
        let mut end = self.take_end(core).await?;
        let next = end.record.map_or(Sequence(0), Sequence::next);
        if let Some(commit) = from_sequence(commit, next) {
            let mut parts = Vec::new();
            split(commit.as_ref(), core.max_payload_bytes(), &mut parts)?;
            for part in parts {
                end = append_part(core, end, part).await?;
            }
        }
        self.replace(End::Known(end));
        Ok(())
    }

    /// The end to append at. Until the append has succeeded, the end is in doubt.
    async fn take_end(&self, core: &Core) -> Result<KnownEnd, BusError> {
        let end = match *self.end.lock().unwrap_or_else(PoisonError::into_inner) {
            End::Known(end) => Some(end),
            End::Unknown => None,
            End::Doubtful(end) => return Err(fenced(end)),
        };
        let end = match end {
            Some(end) => end,
            None => find_end(core).await?,
        };
        self.replace(End::Doubtful(end));
        Ok(end)
    }
}

const fn fenced(end: KnownEnd) -> BusError {
    BusError::Fenced {
        expected: match end.record {
            Some(record) => record,
            None => Sequence(0),
        },
    }
}

async fn find_end(core: &Core) -> Result<KnownEnd, BusError> {
    let config = streams::log_stream(&core.config);
    let info = core.find_or_make(&config).await?;
    let message = info.state.last_sequence;
    if info.state.messages == 0 {
        return Ok(KnownEnd { message, record: None });
    }
    let stream = core.jetstream.get_stream_no_info(&config.name).await.map_err(unavailable)?;
    match stream.get_raw_message(message).await {
        Ok(last) => match headers::number(&last.headers, headers::LAST_SEQUENCE) {
            Some(record) => Ok(KnownEnd { message, record: Some(Sequence(record)) }),
            None => Err(BusError::Unusable(format!("the stream {} holds something that is no log", config.name))),
        },
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(KnownEnd { message, record: None }),
        Err(error) => Err(unavailable(error)),
    }
}

/// A message of the log stream.
struct Part {
    first: Sequence,
    last: Sequence,
    payload: Vec<u8>,
}

/// The messages that a commit becomes.
fn split(commit: &Commit, max_bytes: usize, parts: &mut Vec<Part>) -> Result<(), BusError> {
    let malformed = |source| BusError::Malformed { subject: subjects::LOG_SUBJECT.to_owned(), source };
    let payload = codec::encode(commit).map_err(malformed)?;
    if payload.len() <= max_bytes {
        parts.push(Part { first: commit.first(), last: commit.last(), payload });
    } else if commit.records.len() > 1 {
        let (left, right) = commit.records.split_at(commit.records.len() / 2);
        split(&Commit { records: left.to_vec() }, max_bytes, parts)?;
        split(&Commit { records: right.to_vec() }, max_bytes, parts)?;
    } else {
        // Readers find the gap and ask the ledger. One such record must not keep all later ones from them.
        tracing::error!(sequence = %commit.first(), bytes = payload.len(), "a record is larger than a message may be");
    }
    Ok(())
}

async fn append_part(core: &Core, end: KnownEnd, part: Part) -> Result<KnownEnd, BusError> {
    let message = PublishMessage::build()
        .header(headers::FIRST_SEQUENCE, part.first.to_string())
        .header(headers::LAST_SEQUENCE, part.last.to_string())
        .expected_stream(subjects::LOG_STREAM)
        .expected_last_sequence(end.message)
        .payload(part.payload.into());
    let sent = core.jetstream.send_publish(subjects::LOG_SUBJECT, message).await.map_err(unavailable)?;
    let acknowledgement = core.acknowledged(subjects::LOG_STREAM, async {
        match sent.await {
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(None),
            outcome => outcome.map(Some),
        }
    });
    match acknowledgement.await? {
        Some(stored) => Ok(KnownEnd { message: stored.sequence, record: Some(part.last) }),
        None => Err(fenced(end)),
    }
}

/// What is appended from now on. The reader is opened again whenever it fails, at the stream's new end: what was
/// missed meanwhile the reader's user gets from the ledger.
pub(super) async fn follow(core: Arc<Core>) -> Result<LogStream, BusError> {
    let (writer, stream) = log_queue();
    let reader = open_reader(&core).await?;
    let task = core.clone();
    core.spawn(async move {
        tokio::select! {
            () = writer.abandoned() => {}
            () = follow_on(task, &writer, reader) => {}
        }
    });
    Ok(stream)
}

async fn follow_on(core: Arc<Core>, writer: &LogWriter, mut reader: pull::Stream) {
    loop {
        let mut connections = core.connections.clone();
        connections.mark_unchanged();
        tokio::select! {
            () = forward(reader, writer) => {}
            _ = connections.changed() => {}
        }
        reader = reopen(&core).await;
        writer.push(LogItem::Interrupted);
    }
}

async fn reopen(core: &Core) -> pull::Stream {
    let mut backoff = Backoff::patient();
    loop {
        match core.unless_reconnected(open_reader(core)).await {
            Some(Ok(reader)) => return reader,
            Some(Err(error)) => {
                tracing::warn!(%error, "waiting for the log stream");
                core.streams.forget(subjects::LOG_STREAM);
                backoff.pause().await;
            }
            None => {}
        }
    }
}

async fn open_reader(core: &Core) -> Result<pull::Stream, BusError> {
    core.ensure(&streams::log_stream(&core.config)).await?;
    let config = pull::Config {
        deliver_policy: DeliverPolicy::New,
        ack_policy: AckPolicy::None,
        memory_storage: true,
        num_replicas: 1,
        inactive_threshold: INACTIVE_READER,
        ..pull::Config::default()
    };
    let opened = async {
        let consumer: Consumer<pull::Config> =
            core.jetstream.create_consumer_on_stream(config, subjects::LOG_STREAM).await.map_err(unavailable)?;
        consumer.stream().heartbeat(SERVER_TIMEOUT).messages().await.map_err(unavailable)
    };
    opened.await
}

/// Hands on what the reader brings, until it fails.
async fn forward(mut reader: pull::Stream, writer: &LogWriter) {
    while let Some(arrived) = reader.next().await {
        let message = match arrived {
            Ok(message) => message,
            Err(error) => {
                tracing::debug!(%error, "the log reader has failed and is opened again");
                return;
            }
        };
        match Message::new(message.message.payload).decode::<Commit>() {
            Ok(commit) => drop(writer.push(LogItem::Commit(Arc::new(commit)))),
            Err(error) => {
                tracing::error!(%error, "a message of the log stream cannot be read; the ledger is asked instead");
                writer.push(LogItem::Interrupted);
            }
        }
    }
}
