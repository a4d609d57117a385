use crate::{
    BusError, Message, SharedBus,
    pause::{Backoff, after},
};
use muster_schemas::{
    codec::{FEATURE_LEVEL, OLDEST_FEATURE_LEVEL},
    command::{Answer, Command, CommandEnvelope, Query, QueryAnswer, RefusalCode},
    content::{ContentAnswer, ContentHash, ContentRequest},
    event::{Actor, TraceContext},
    filter_order::{RunnerBriefing, RunnerHeartbeat},
    ids::CommandId,
    node::{Briefing, Heartbeat},
    subjects,
};
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::time::Instant;

/// How long one attempt waits for its reply.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// The first pause between attempts; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Talks to the ledger and is patient: it waits while the ledger or the bus restarts.
#[derive(Clone, Debug)]
pub struct LedgerClient {
    bus: SharedBus,
    patience: Duration,
    attempt: Duration,
}

impl LedgerClient {
    /// A client that gives up after 30 seconds.
    pub const fn new(bus: SharedBus) -> Self {
        Self { bus, patience: Duration::from_secs(30), attempt: ATTEMPT_TIMEOUT }
    }

    /// The same client with another patience.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The same client with another time, by default 10 seconds, that one attempt waits for its reply. It asks again
    /// before that if a ledger says that it answers from now on, and whenever its own connection was lost.
    pub fn with_attempts_of(self, attempt: Duration) -> Self {
        Self { attempt, ..self }
    }

    /// Asks for a change, under a fresh command id.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn command(&self, actor: Actor, trace: TraceContext, command: Command) -> Result<Answer, BusError> {
        self.send(&CommandEnvelope { id: CommandId::new_now(), actor, trace, command }).await
    }

    /// Asks for a change, and repeats it under the same id until there is an answer; a repetition has no second effect.
    ///
    /// # Errors
    /// There was no answer within this client's patience: the change may or may not have happened; asking again with
    /// the same id tells.
    pub async fn send(&self, envelope: &CommandEnvelope) -> Result<Answer, BusError> {
        let subject = command_subject(&envelope.actor)?;
        let message = encode(&subject, envelope)?.with_trace(envelope.trace);
        let unavailable =
            |answer: &Answer| matches!(&answer.result, Err(refusal) if refusal.code == RefusalCode::Unavailable);
        self.ask(&subject, message, unavailable).await
    }

    /// Reads from the ledger.
    ///
    /// # Errors
    /// [`BusError::Refused`] if the ledger cannot answer; else there was no answer within this client's patience.
    pub async fn query(&self, query: &Query) -> Result<QueryAnswer, BusError> {
        self.ask_query(subjects::QUERY, query).await
    }

    async fn ask_query(&self, subject: &str, query: &Query) -> Result<QueryAnswer, BusError> {
        let unavailable = |answer: &QueryAnswer| matches!(answer, QueryAnswer::Refused(refusal) if refusal.code == RefusalCode::Unavailable);
        match self.ask(subject, encode(subject, query)?, unavailable).await? {
            QueryAnswer::Refused(refusal) => Err(BusError::Refused(refusal)),
            QueryAnswer::Head { feature_level, .. } if feature_level > FEATURE_LEVEL => {
                Err(BusError::Unusable(format!(
                    "the ledger writes what this muster cannot read (feature level {feature_level}, this one has \
                 {FEATURE_LEVEL}): upgrade this one"
                )))
            }
            QueryAnswer::Head { feature_level, .. } if feature_level < OLDEST_FEATURE_LEVEL => {
                Err(BusError::Unusable(format!(
                    "the ledger sends what this muster no longer reads (feature level {feature_level}, expected \
                     {OLDEST_FEATURE_LEVEL} or more): upgrade the ledger"
                )))
            }
            answer => Ok(answer),
        }
    }

    /// Asks for the end of the log and the cluster's id: a [`QueryAnswer::Head`]. Roles that may read nothing else may
    /// ask this.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub async fn head(&self) -> Result<QueryAnswer, BusError> {
        self.ask_query(subjects::HEAD, &Query::Head).await
    }

    /// Reports that a node is alive, and learns what it should be doing and is not. It is sent once: the next one
    /// follows soon.
    ///
    /// # Errors
    /// There was no answer.
    pub async fn heartbeat(&self, heartbeat: &Heartbeat) -> Result<Briefing, BusError> {
        let subject = subjects::heartbeat(&heartbeat.node);
        let reply = self.attempt(&subject, &encode(&subject, heartbeat)?, self.patience).await?;
        decode(&subject, &reply)
    }

    /// Fetches a content that an order to a node named. The caller checks its hash.
    ///
    /// # Errors
    /// [`BusError::Refused`] if the ledger does not give it to this node; else there was no answer within this client's
    /// patience.
    pub async fn content(&self, node: &str, hash: ContentHash) -> Result<Vec<u8>, BusError> {
        let subject = subjects::content(node);
        let unavailable = |answer: &ContentAnswer| matches!(answer, ContentAnswer::Refused(refusal) if refusal.code == RefusalCode::Unavailable);
        let mut bytes = Vec::new();
        loop {
            let request = ContentRequest { node: node.to_owned(), hash, offset: bytes.len() as u64 };
            match self.ask(&subject, encode(&subject, &request)?, unavailable).await? {
                ContentAnswer::Refused(refusal) => return Err(BusError::Refused(refusal)),
                ContentAnswer::Part { total_bytes, part } => {
                    bytes.extend_from_slice(&part.0);
                    if part.0.is_empty() || bytes.len() as u64 >= total_bytes {
                        return Ok(bytes);
                    }
                }
            }
        }
    }

    /// Reports that a filter-runner is alive, and learns what it has to know. It is sent once, like a node's.
    ///
    /// # Errors
    /// There was no answer.
    pub async fn runner_heartbeat(&self, heartbeat: &RunnerHeartbeat) -> Result<RunnerBriefing, BusError> {
        let subject = subjects::runner_heartbeat(&heartbeat.runner);
        let reply = self.attempt(&subject, &encode(&subject, heartbeat)?, self.patience).await?;
        decode(&subject, &reply)
    }

    /// Asks once, as far as the ledger knows. While the reply is missing, the same message is sent again whenever a
    /// ledger says that it answers from now on: the one that was asked may be gone.
    async fn attempt(&self, subject: &str, message: &Message, within: Duration) -> Result<Message, BusError> {
        let mut reigns = self.bus.reigns();
        let deadline = after(within.min(self.attempt));
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            tokio::select! {
                biased;
                reply = self.bus.request(subject, message.clone(), left) => return reply,
                Ok(()) = reigns.changed() => tracing::debug!(subject, "a ledger answers from now on: asking again"),
            }
        }
    }

    /// Asks until there is an answer other than "not now", or the patience is exhausted.
    async fn ask<T: DeserializeOwned>(
        &self,
        subject: &str,
        message: Message,
        not_now: impl Fn(&T) -> bool,
    ) -> Result<T, BusError> {
        let deadline = after(self.patience);
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let reply = self.attempt(subject, &message, left).await;
            let last_attempt = Instant::now() + backoff.next_pause() >= deadline;
            match reply {
                Ok(reply) => {
                    let answer = decode(subject, &reply)?;
                    if last_attempt || !not_now(&answer) {
                        return Ok(answer);
                    }
                }
                Err(error) if last_attempt || !error.is_retryable() => return Err(error),
                Err(error) => tracing::debug!(%error, subject, "asking again"),
            }
            backoff.pause().await;
        }
    }
}

/// Where an actor's commands go: the subject vouches for the kind of actor.
fn command_subject(actor: &Actor) -> Result<String, BusError> {
    match actor {
        Actor::User(_) => Ok(subjects::COMMAND_USER.to_owned()),
        Actor::Planner => Ok(subjects::COMMAND_PLANNER.to_owned()),
        Actor::Executor(node) => Ok(subjects::command_node(node)),
        Actor::Notifier => Ok(subjects::COMMAND_NOTIFIER.to_owned()),
        Actor::Runner(name) => Ok(subjects::command_runner(name)),
        Actor::Ledger => Err(BusError::Unusable("the ledger's own commands do not travel".to_owned())),
    }
}

fn encode<T: serde::Serialize>(subject: &str, value: &T) -> Result<Message, BusError> {
    Message::encode(value).map_err(|source| BusError::Malformed { subject: subject.to_owned(), source })
}

fn decode<T: DeserializeOwned>(subject: &str, message: &Message) -> Result<T, BusError> {
    message.decode().map_err(|source| BusError::Malformed { subject: subject.to_owned(), source })
}
