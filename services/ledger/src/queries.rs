//! Queries that the ledger answers off the decide loop's thread.

use crate::{
    bundle::BundleError,
    causes, descriptions,
    fence::Fence,
    handle::EngineHandle,
    log::{Head, LogError},
    storage::Storage,
    tokens::JobTokens,
    verify::{Fault, Verification},
};
use muster_schemas::{
    codec,
    command::{Query, QueryAnswer, Refusal, RefusalCode},
    event::{Commit, Record},
    ids::Sequence,
};
use std::sync::{Arc, Mutex, TryLockError};
use tokio::sync::{Semaphore, watch};

/// The largest page of records or part of a snapshot.
const MAX_PAGE_BYTES: usize = 4 << 20;
/// The number of queries answered at a time; others wait.
const AT_A_TIME: usize = 4;

/// Answers queries.
pub(crate) struct Queries {
    storage: Arc<Storage>,
    tokens: Arc<JobTokens>,
    engine: EngineHandle,
    head: watch::Receiver<Head>,
    fence: Fence,
    max_page_bytes: usize,
    room: Arc<Semaphore>,
    /// The verification that the next query may continue.
    verification: Mutex<Option<Verification>>,
}

impl Queries {
    /// Answers with what the storage has; the bus carries at most `max_payload_bytes`.
    pub(crate) fn new(
        (storage, tokens): (Arc<Storage>, Arc<JobTokens>),
        engine: EngineHandle,
        head: watch::Receiver<Head>,
        fence: Fence,
        max_payload_bytes: usize,
    ) -> Self {
        // The envelope of a page takes some bytes as well.
        let max_page_bytes = MAX_PAGE_BYTES.min(max_payload_bytes - max_payload_bytes / 4);
        let room = Arc::new(Semaphore::new(AT_A_TIME));
        Self { storage, tokens, engine, head, fence, max_page_bytes, room, verification: Mutex::new(None) }
    }

    /// Answers a query: at once if that takes no time, else from another thread.
    pub(crate) fn answer(self: Arc<Self>, query: Query, reply: impl FnOnce(QueryAnswer) + Send + 'static) {
        if matches!(query, Query::Head | Query::JobToken(_)) {
            return reply(self.answer_now(query));
        }
        tokio::spawn(async move {
            let Ok(_room) = Arc::clone(&self.room).acquire_owned().await else { return };
            let answered = tokio::task::spawn_blocking(move || self.answer_now(query)).await;
            reply(answered.unwrap_or_else(|error| refused(RefusalCode::Unavailable, error.to_string())));
        });
    }

    /// Answers a query on this thread.
    pub(crate) fn answer_now(&self, query: Query) -> QueryAnswer {
        if let Some(refusal) = self.fence.objection() {
            return QueryAnswer::Refused(refusal);
        }
        self.find(query).unwrap_or_else(|error| refused(code(&error), error.to_string()))
    }

    fn find(&self, query: Query) -> Result<QueryAnswer, BundleError> {
        let log = self.storage.log()?;
        Ok(match query {
            Query::Head => self.find_head()?,
            Query::Replay { from, max_bytes } => {
                let max_bytes = self.max_page_bytes.min(max_bytes as usize);
                QueryAnswer::Records(self.page(Sequence(from.0.max(1)), max_bytes)?)
            }
            Query::Snapshot { at_or_before, offset } => {
                let at_or_before = at_or_before.unwrap_or(Sequence(u64::MAX));
                let part = self.storage.snapshot_part(at_or_before, offset, self.max_page_bytes)?;
                let (sequence, part, total_bytes) = part.unwrap_or_default();
                QueryAnswer::Snapshot { sequence, part, total_bytes }
            }
            Query::JobHistory { job, from } => QueryAnswer::Records(log.history(job, from, self.max_page_bytes)?),
            Query::SequenceAt { time } => QueryAnswer::Sequence(log.sequence_at(time)?),
            Query::JobSpec { job } => match descriptions::documents(&log, job)? {
                Some(documents) => QueryAnswer::JobSpec(Box::new(documents.spec)),
                None => refused(RefusalCode::NotFound, format!("there is no job {job}")),
            },
            Query::JobDocuments { job } => match descriptions::documents(&log, job)? {
                Some(documents) => QueryAnswer::JobDocuments(Box::new(documents)),
                None => refused(RefusalCode::NotFound, format!("there is no job {job}")),
            },
            Query::JobOfNumber { number, tasks_from } => {
                QueryAnswer::JobOfNumber(descriptions::job_of_number(&log, number, tasks_from)?)
            }
            Query::Causes { of } => match of.iter().max().filter(|newest| **newest > self.head.borrow().sequence) {
                Some(newest) => refused(RefusalCode::NotFound, format!("there is no record {newest} yet")),
                None => QueryAnswer::Causes(causes::of_all(&of, &self.storage)?),
            },
            Query::Verify { from, max_records } => self.verify(from, max_records)?,
            Query::JobToken(token) => QueryAnswer::JobToken(self.tokens.is_own(&token)),
            Query::Rounds { .. } => refused(RefusalCode::Invalid, "other ledgers ask the ledger of a name for this"),
        })
    }

    fn find_head(&self) -> Result<QueryAnswer, BundleError> {
        let Head { sequence: last, hash: last_hash, .. } = *self.head.borrow();
        let first = self.storage.log()?.first()?;
        let cluster_id = self.storage.identity()?.cluster_id.0;
        Ok(QueryAnswer::Head { last, first, cluster_id, last_hash, feature_level: codec::FEATURE_LEVEL })
    }

    /// A page of records, from an archive if they have left the log.
    fn page(&self, from: Sequence, max_bytes: usize) -> Result<Commit, BundleError> {
        let log = self.storage.log()?;
        let first = log.first()?;
        if from >= first {
            return Ok(log.page(from, max_bytes)?);
        }
        let mut records: Vec<Record> = Vec::new();
        let mut bytes = 0;
        let mut is_full = false;
        let read = self.storage.read(from, Sequence(first.0 - 1), |stored| {
            bytes += stored.value.len();
            is_full = bytes > max_bytes && !records.is_empty();
            if is_full {
                return Err(LogError::Closed.into());
            }
            records.push(stored.record()?);
            Ok(())
        });
        match read {
            Err(_) if is_full => Ok(Commit { records }),
            read => read.map(|()| Commit { records }),
        }
    }

    fn verify(&self, from: Sequence, max_records: u64) -> Result<QueryAnswer, BundleError> {
        let mut cached = match self.verification.try_lock() {
            Ok(cached) => cached,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // It must not take the room of other queries while it waits.
            Err(TryLockError::WouldBlock) => {
                return Ok(refused(RefusalCode::Unavailable, "another verification is running; try again"));
            }
        };
        let from = Sequence(from.0.max(1));
        let mut verification = match cached.take() {
            Some(verification) if verification.verified().next() == from => verification,
            _ => Verification::begin(&self.storage, from)?,
        };
        let before = verification.checkpoints();
        let mut progress = verification.advance(&self.storage, max_records.max(1), |_| {})?;
        let complete = progress.is_complete();
        if complete && progress.fault.is_none() && verification.is_from(self.storage.log()?.first()?) {
            progress.fault = self.compare_live(&mut verification)?;
        }
        let (to, checkpoints) = (verification.verified(), verification.checkpoints() - before);
        if !complete {
            *cached = Some(verification);
        }
        Ok(QueryAnswer::Verified {
            to,
            complete,
            checkpoints,
            unsigned_records: progress.unsigned.records,
            unsigned_since: progress.unsigned.since,
            fault_kind: progress.fault.as_ref().map(|fault| fault.kind),
            fault: progress.fault.map(|fault| fault.detail),
        })
    }

    /// The fault if the state in memory differs from the one that the records lead to. Only for clients that had all
    /// records verified: the loop computes the digest, which is expensive.
    fn compare_live(&self, verification: &mut Verification) -> Result<Option<Fault>, BundleError> {
        let Some((sequence, digest)) = self.engine.digest() else {
            return Ok(Some(Fault::unproven(
                "the state in memory could not be compared with the log: the ledger is not able to tell it now",
            )));
        };
        let more = sequence.0.saturating_sub(verification.verified().0);
        let progress = verification.advance(&self.storage, more, |_| {})?;
        if progress.fault.is_some() {
            return Ok(progress.fault);
        }
        let is_same = verification.verified() == sequence && verification.state_digest() == digest;
        let fault = || {
            Fault::invalid(format!(
                "the state in memory after record {sequence} is not the one that the records lead to: restart the ledger"
            ))
        };
        Ok((!is_same).then(fault))
    }
}

fn code(error: &BundleError) -> RefusalCode {
    match error {
        BundleError::Log(LogError::Closed) => RefusalCode::Unavailable,
        BundleError::Log(LogError::Archived { .. }) => RefusalCode::NotFound,
        _ => RefusalCode::StorageFailed,
    }
}

fn refused(code: RefusalCode, message: impl Into<String>) -> QueryAnswer {
    QueryAnswer::Refused(Refusal::new(code, message))
}
