//! The log stream on JetStream: one message for each commit, or several if the commit is larger than a message may be.

use super::{Core, headers, streams, unavailable};
use crate::{
    BusError, LogId, LogItem, LogStream, LogTail, Message,
    feed::from_sequence,
    log_stream::{LogWriter, log_queue},
};
use async_nats::{
    HeaderMap,
    jetstream::{context::PublishErrorKind, message::PublishMessage, stream::LastRawMessageErrorKind},
};
use futures::StreamExt;
use muster_schemas::{
    codec,
    event::{Commit, Record},
    ids::Sequence,
    subjects,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Appends to the log stream. It knows where the stream ends, and the server refuses an append anywhere else.
#[derive(Debug)]
pub(super) struct LogAppender {
    /// Distinguishes the appends of this process from those of others.
    writer: [u8; 16],
    log: Mutex<LogId>,
    end: Mutex<End>,
}

/// Where the log stream ends, as far as this writer knows.
#[derive(Clone, Copy, Debug, Default)]
enum End {
    /// Never asked.
    #[default]
    Unknown,
    /// Learned from the server, or from an append of this writer.
    Known(KnownEnd),
    /// An append failed, or is in progress.
    Doubtful(KnownEnd),
}

#[derive(Clone, Copy, Debug)]
struct KnownEnd {
    /// JetStream's number of the last message.
    message: u64,
    /// The last record, or `None` if the stream holds none.
    record: Option<Sequence>,
}

impl Default for LogAppender {
    fn default() -> Self {
        let writer = uuid::Uuid::new_v4().into_bytes();
        Self { writer, log: Mutex::default(), end: Mutex::default() }
    }
}

impl LogAppender {
    fn replace(&self, end: End) -> End {
        std::mem::replace(&mut *self.end.lock().unwrap_or_else(PoisonError::into_inner), end)
    }

    fn log(&self) -> MutexGuard<'_, LogId> {
        // It is set as a whole.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn find_tail(&self, core: &Core) -> Result<LogTail, BusError> {
        let (message, tail) = find_tail(core, self.writer).await?;
        self.replace(End::Known(KnownEnd { message, record: tail.sequence() }));
        Ok(tail)
    }

    pub(super) async fn claim(&self, core: &Core, log: LogId, last: Record) -> Result<(), BusError> {
        *self.log() = log;
        let end = self.take_end(core).await?;
        let (first, commit) = (last.sequence, Commit { records: vec![last] });
        let part = match encode(&commit)? {
            payload if payload.len() <= core.max_payload_bytes() => Part { first, last: first, payload },
            // Readers get the record from the ledger; the headers say who the writer is.
            _ => Part { first, last: first, payload: encode(&Commit { records: Vec::new() })? },
        };
        let end = self.append_part(core, end, part).await?;
        self.replace(End::Known(end));
        Ok(())
    }

    pub(super) async fn clear(&self, core: &Core) -> Result<(), BusError> {
        let name = subjects::LOG_STREAM;
        let stream = core.jetstream.get_stream_no_info(name).await.map_err(unavailable)?;
        stream.purge().await.map_err(unavailable)?;
        self.find_tail(core).await.map(drop)
    }

    pub(super) async fn append(&self, core: &Core, commit: Arc<Commit>) -> Result<(), BusError> {
        core.check_connected()?;
        let mut end = self.take_end(core).await?;
        let next = end.record.map_or(Sequence(0), Sequence::next);
        if let Some(commit) = from_sequence(commit, next) {
            let mut parts = Vec::new();
            split(commit.as_ref(), core.max_payload_bytes(), &mut parts)?;
            for part in parts {
                end = self.append_part(core, end, part).await?;
            }
        }
        self.replace(End::Known(end));
        Ok(())
    }

    /// The end to append at. Until the append succeeds, the end is in doubt.
    async fn take_end(&self, core: &Core) -> Result<KnownEnd, BusError> {
        let end = match *self.end.lock().unwrap_or_else(PoisonError::into_inner) {
            End::Known(end) => Some(end),
            End::Unknown => None,
            End::Doubtful(end) => return Err(fenced(end)),
        };
        let end = match end {
            Some(end) => end,
            None => {
                let (message, tail) = find_tail(core, self.writer).await?;
                KnownEnd { message, record: tail.sequence() }
            }
        };
        self.replace(End::Doubtful(end));
        Ok(end)
    }

    async fn append_part(&self, core: &Core, end: KnownEnd, part: Part) -> Result<KnownEnd, BusError> {
        let log = *self.log();
        let message = PublishMessage::build()
            .header(headers::FIRST_SEQUENCE, part.first.to_string())
            .header(headers::LAST_SEQUENCE, part.last.to_string())
            .header(headers::LOG, headers::hexadecimal(log))
            .header(headers::WRITER, headers::hexadecimal(self.writer))
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
}

const fn fenced(end: KnownEnd) -> BusError {
    BusError::Fenced {
        expected: match end.record {
            Some(record) => record,
            None => Sequence(0),
        },
    }
}

/// JetStream's number of the last message, and the message.
async fn find_tail(core: &Core, own: [u8; 16]) -> Result<(u64, LogTail), BusError> {
    let info = core.find_or_make(&streams::log_stream(&core.config)).await?;
    let message = info.state.last_sequence;
    if info.state.messages == 0 {
        return Ok((message, LogTail::Empty));
    }
    let stream = core.jetstream.get_stream_no_info(subjects::LOG_STREAM).await.map_err(unavailable)?;
    match stream.get_raw_message(message).await {
        Ok(last) => Ok((message, tail_of(&last.headers, last.payload, own))),
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok((message, LogTail::Empty)),
        Err(error) => Err(unavailable(error)),
    }
}

/// The meaning of the last message of the stream.
fn tail_of(headers: &HeaderMap, payload: bytes::Bytes, own: [u8; 16]) -> LogTail {
    let log = headers::sixteen_bytes(headers, headers::LOG);
    let writer = headers::sixteen_bytes(headers, headers::WRITER);
    let last = headers::number(headers, headers::LAST_SEQUENCE).map(Sequence);
    let (Some(log), Some(writer), Some(last)) = (log, writer, last) else {
        return LogTail::Rubbish("its last message does not say which log it belongs to".to_owned());
    };
    match Message::new(payload).decode::<Commit>() {
        Ok(Commit { mut records }) => {
            LogTail::Record { log, is_own: writer == own, last, record: records.pop().map(Box::new) }
        }
        Err(error) => LogTail::Rubbish(format!("its last message is no part of a log: {error}")),
    }
}

fn encode(commit: &Commit) -> Result<Vec<u8>, BusError> {
    codec::encode(commit).map_err(|source| BusError::Malformed { subject: subjects::LOG_SUBJECT.to_owned(), source })
}

/// A message of the log stream.
struct Part {
    first: Sequence,
    last: Sequence,
    payload: Vec<u8>,
}

/// Splits a commit into messages.
fn split(commit: &Commit, max_bytes: usize, parts: &mut Vec<Part>) -> Result<(), BusError> {
    let payload = encode(commit)?;
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

/// Commits appended from now on: the server republishes what it has stored on a separate subject. After a reconnection
/// the reader gets what it missed from the ledger.
pub(super) async fn follow(core: Arc<Core>) -> Result<LogStream, BusError> {
    let (writer, stream) = log_queue();
    let subject = subjects::LOG_STORED_SUBJECT.to_owned();
    let stored = core.client.subscribe(subject).await.map_err(unavailable)?;
    core.round_trip().await;
    let connections = core.connections.clone();
    core.spawn(async move {
        tokio::select! {
            () = writer.abandoned() => {}
            () = forward(stored, connections, &writer) => {}
        }
    });
    Ok(stream)
}

/// Passes on what the server republishes, until the client is closed.
async fn forward(mut stored: async_nats::Subscriber, mut connections: watch::Receiver<u64>, writer: &LogWriter) {
    connections.mark_unchanged();
    loop {
        let arrived = tokio::select! {
            arrived = stored.next() => arrived,
            Ok(()) = connections.changed() => {
                writer.push(LogItem::Interrupted);
                continue;
            }
        };
        let Some(message) = arrived else { return };
        let is_of_log = message.headers.as_ref().is_some_and(|found| found.get(headers::LOG).is_some());
        if super::is_delivery(&message) || !is_of_log {
            tracing::warn!("a message of the log stream does not come from the ledger; the ledger is asked instead");
            writer.push(LogItem::Interrupted);
            continue;
        }
        match Message::new(message.payload).decode::<Commit>() {
            Ok(commit) if is_in_order(&commit) => drop(writer.push(LogItem::Commit(Arc::new(commit)))),
            Ok(_) => drop(writer.push(LogItem::Interrupted)),
            Err(error) => {
                tracing::warn!(%error, "a message of the log stream is no part of a log; the ledger is asked instead");
                writer.push(LogItem::Interrupted);
            }
        }
    }
}

/// Whether a commit has records and their sequences follow each other.
fn is_in_order(commit: &Commit) -> bool {
    !commit.records.is_empty() && commit.records.windows(2).all(|pair| pair[0].sequence.next() == pair[1].sequence)
}
