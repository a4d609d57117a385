//! JetStream streams: made when missing, made again when lost, with a report of the loss.

use super::{Core, NatsConfig, StreamLimits, kept::Wanted, unavailable};
use crate::{BusError, LogId, PublicEvent, WorkQueue, pause::Backoff};
use async_nats::{
    header::NATS_MESSAGE_ID,
    jetstream::{
        self, ErrorCode,
        consumer::{AckPolicy, pull},
        context::{CreateStreamErrorKind, GetStreamErrorKind, PublishErrorKind, RequestErrorKind},
        stream::{
            Config, DiscardPolicy, External, Info, LastRawMessageErrorKind, Republish, RetentionPolicy, Source,
            StorageType,
        },
    },
};
use muster_schemas::{ids::Sequence, subjects};
use std::{collections::HashMap, sync::Arc, time::Duration};

/// Duplicates within this time are dropped.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// The number of public events on their way to the server at a time.
const EVENTS_IN_FLIGHT: usize = 1000;

/// The durable consumer that all workers of a queue share.
pub(super) const WORKERS: &str = "workers";
/// In the metadata of a mirror: when the mirrored stream was made.
const ORIGIN: &str = "muster-origin";

impl Core {
    /// Makes sure that a stream exists. Cheap if it is known to.
    pub(super) async fn ensure(&self, wanted: &Wanted) -> Result<(), BusError> {
        match self.streams.is_present(&wanted.config.name) {
            true => Ok(()),
            false => self.find_or_make(wanted).await.map(drop),
        }
    }

    /// The current state of a stream; a missing stream is made, with everything that belongs to it.
    pub(super) async fn find_or_make(&self, wanted: &Wanted) -> Result<Info, BusError> {
        let config = &wanted.config;
        let found = self.jetstream.get_stream(&config.name).await;
        let info = match found {
            Ok(stream) => self.adjust(config, stream.cached_info().clone()).await,
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                    self.make(config).await?
                }
                _ => return Err(unavailable(error)),
            },
        };
        if let Some(consumer) = &wanted.consumer {
            let made = self.jetstream.create_consumer_on_stream(consumer.clone(), &config.name).await;
            made.map_err(unavailable)?;
        }
        let created = info.created.unix_timestamp_nanos();
        if config.name == subjects::EVENTS_STREAM {
            self.mirror_for_integrations(config, created).await?;
        }
        self.streams.found(wanted, created);
        Ok(info)
    }

    /// If the server is configured so, integrations have their own account and in it a mirror of the public
    /// events: nothing they do there reaches muster. A mirror of a stream that was lost since is made again.
    async fn mirror_for_integrations(&self, config: &Config, created: i128) -> Result<(), BusError> {
        let mut theirs = jetstream::with_prefix(self.client.clone(), subjects::INTEGRATION_API);
        theirs.set_timeout(super::SERVER_TIMEOUT);
        let origin = created.to_string();
        match theirs.get_stream(&config.name).await {
            Ok(mirror) if mirror.cached_info().config.metadata.get(ORIGIN) == Some(&origin) => return Ok(()),
            Ok(_) => {
                tracing::warn!(
                    stream = config.name,
                    "the mirror for integrations belongs to a stream that no longer exists; it is created again"
                );
                theirs.delete_stream(&config.name).await.map_err(unavailable)?;
            }
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {}
                // There is no such account.
                _ if has_no_responders(&error) => return Ok(()),
                _ => return Err(unavailable(error)),
            },
        }
        let mirrored = Source {
            name: config.name.clone(),
            external: Some(External {
                api_prefix: subjects::MIRROR_API.to_owned(),
                delivery_prefix: Some(subjects::MIRROR_DELIVERY.to_owned()),
            }),
            ..Source::default()
        };
        let metadata = HashMap::from([(ORIGIN.to_owned(), origin)]);
        // The mirrored stream already drops duplicates.
        let duplicate_window = Duration::ZERO;
        let mirror =
            Config { subjects: Vec::new(), mirror: Some(mirrored), metadata, duplicate_window, ..config.clone() };
        theirs.create_stream(mirror).await.map(drop).map_err(unavailable)
    }

    async fn make(&self, config: &Config) -> Result<Info, BusError> {
        match self.jetstream.create_stream(config).await {
            Ok(stream) => Ok(stream.cached_info().clone()),
            Err(error) => match error.kind() {
                CreateStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NAME_EXIST => {
                    let made_by_another = self.jetstream.get_stream(&config.name).await.map_err(unavailable)?;
                    Ok(made_by_another.cached_info().clone())
                }
                _ => Err(unavailable(format!("cannot make the stream {}: {error}", config.name))),
            },
        }
    }

    /// Gives a stream the configured limits and subjects. If that fails, the stream is used all the same.
    async fn adjust(&self, wanted: &Config, info: Info) -> Info {
        let has = &info.config;
        let fits = has.max_age == wanted.max_age
            && has.max_bytes == wanted.max_bytes
            && has.subjects == wanted.subjects
            && has.republish == wanted.republish;
        if fits || wanted.retention == RetentionPolicy::WorkQueue {
            return info;
        }
        let config = Config {
            max_age: wanted.max_age,
            max_bytes: wanted.max_bytes,
            subjects: wanted.subjects.clone(),
            republish: wanted.republish.clone(),
            ..info.config.clone()
        };
        self.jetstream.update_stream(config).await.unwrap_or_else(|error| {
            tracing::warn!(stream = wanted.name, %error, "the stream keeps its old configuration");
            info
        })
    }

    pub(super) async fn publish_events(&self, events: Vec<PublicEvent>) -> Result<(), BusError> {
        let stream = events_stream(&self.config);
        self.check_connected()?;
        self.ensure(&stream).await?;
        let mut events = events.into_iter().peekable();
        while events.peek().is_some() {
            let mut acknowledgements = Vec::new();
            for event in events.by_ref().take(EVENTS_IN_FLIGHT) {
                let message = self.kept(&key_of_event(event.sequence, event.log), event.message);
                acknowledgements.push(self.jetstream.send_publish(event.subject, message).await.map_err(unavailable)?);
            }
            for acknowledgement in acknowledgements {
                self.acknowledged(&stream.config.name, acknowledgement.into_future()).await?;
            }
        }
        Ok(())
    }

    /// Waits until the server has stored a message.
    pub(super) async fn acknowledged<T>(
        &self,
        stream: &str,
        acknowledgement: impl Future<Output = Result<T, async_nats::jetstream::context::PublishError>>,
    ) -> Result<T, BusError> {
        let lost = || BusError::Unavailable("the connection was lost before the acknowledgement came".to_owned());
        self.unless_reconnected(acknowledgement).await.ok_or_else(lost)?.map_err(|error| {
            if error.kind() == PublishErrorKind::StreamNotFound {
                self.streams.forget(stream);
            }
            unavailable(error)
        })
    }

    pub(super) async fn public_events_tail(&self) -> Result<Option<(Sequence, Option<LogId>)>, BusError> {
        let wanted = events_stream(&self.config);
        let info = self.find_or_make(&wanted).await?;
        if info.state.messages == 0 {
            return Ok(None);
        }
        let stream = self.jetstream.get_stream_no_info(&wanted.config.name).await.map_err(unavailable)?;
        match stream.get_raw_message(info.state.last_sequence).await {
            Ok(message) => Ok(message.headers.get(NATS_MESSAGE_ID).and_then(|key| event_of_key(key.as_str()))),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(unavailable(error)),
        }
    }
}

/// The key of a public event: the record, and behind a dash the id of a log that was restored.
fn key_of_event(sequence: Sequence, log: Option<LogId>) -> String {
    log.map_or_else(|| sequence.to_string(), |log| format!("{sequence}-{}", super::headers::hexadecimal(log)))
}

/// What [`key_of_event`] made a key of.
fn event_of_key(key: &str) -> Option<(Sequence, Option<LogId>)> {
    let (sequence, log) = key.split_once('-').map_or((key, None), |(sequence, log)| (sequence, Some(log)));
    let log = log.map(|log| u128::from_str_radix(log, 16).map(u128::to_be_bytes)).transpose().ok()?;
    Some((Sequence(sequence.parse().ok()?), log))
}

/// The server's answer when there is nobody to ask.
fn has_no_responders(error: &async_nats::jetstream::context::GetStreamError) -> bool {
    let cause = std::error::Error::source(error);
    let request = cause.and_then(|cause| cause.downcast_ref::<async_nats::jetstream::context::RequestError>());
    request.is_some_and(|request| request.kind() == RequestErrorKind::NoResponders)
}

/// The stream of the log. The server republishes what it has stored, and nothing else, to those who follow the log:
/// they need no consumers, which could be made to deliver anywhere.
pub(super) fn log_stream(config: &NatsConfig) -> Wanted {
    let republish = Republish {
        source: subjects::LOG_SUBJECT.to_owned(),
        destination: subjects::LOG_STORED_SUBJECT.to_owned(),
        headers_only: false,
    };
    let stream = kept_for_a_while(config, subjects::LOG_STREAM, subjects::LOG_SUBJECT, config.log);
    Wanted { config: Config { republish: Some(republish), ..stream }, consumer: None }
}

fn events_stream(config: &NatsConfig) -> Wanted {
    let stream = kept_for_a_while(config, subjects::EVENTS_STREAM, subjects::EVENTS_SUBJECTS, config.events);
    Wanted { config: stream, consumer: None }
}

fn kept_for_a_while(config: &NatsConfig, name: &str, subject: &str, limits: StreamLimits) -> Config {
    Config {
        max_age: Duration::from_secs(limits.max_age_seconds),
        max_bytes: i64::try_from(limits.max_bytes).unwrap_or(i64::MAX),
        retention: RetentionPolicy::Limits,
        ..stream(config, name, subject)
    }
}

/// The stream of a work queue, and the consumer that its workers share.
pub(super) fn queue_stream(config: &NatsConfig, queue: &WorkQueue) -> Wanted {
    let stream = Config { retention: RetentionPolicy::WorkQueue, ..stream(config, &queue.name, &queue.subject) };
    let consumer = pull::Config {
        durable_name: Some(WORKERS.to_owned()),
        ack_policy: AckPolicy::Explicit,
        ack_wait: queue.redeliver_after,
        ..pull::Config::default()
    };
    Wanted { config: stream, consumer: Some(consumer) }
}

fn stream(config: &NatsConfig, name: &str, subject: &str) -> Config {
    Config {
        name: name.to_owned(),
        subjects: vec![subject.to_owned()],
        storage: StorageType::File,
        discard: DiscardPolicy::Old,
        duplicate_window: DUPLICATE_WINDOW,
        num_replicas: config.replicas,
        ..Config::default()
    }
}

/// Looks for all streams again after each reconnection, since the server may have come back without its store.
pub(super) async fn watch_over(core: Arc<Core>) {
    let mut connections = core.connections.clone();
    connections.mark_unchanged();
    while connections.changed().await.is_ok() {
        let mut missing = core.streams.forget_all();
        let mut backoff = Backoff::patient();
        while !missing.is_empty() {
            let wanted = missing.swap_remove(0);
            if let Err(error) = core.ensure(&wanted).await {
                tracing::warn!(stream = wanted.config.name, %error, "waiting for a stream");
                missing.push(wanted);
                backoff.pause().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same number under another log is another event, and both are told apart at the end of the stream.
    #[test]
    fn keys_of_events_name_the_log() {
        for log in [None, Some([0x0b; 16]), Some([0; 16])] {
            assert_eq!(event_of_key(&key_of_event(Sequence(7), log)), Some((Sequence(7), log)));
        }
        assert_eq!(key_of_event(Sequence(7), None), "7");
        for rubbish in ["", "x", "7-", "7-x", "-7"] {
            assert_eq!(event_of_key(rubbish), None, "{rubbish}");
        }
    }
}
