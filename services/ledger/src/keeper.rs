//! Background work: checkpoints, snapshots, archives. It reads the log like any reader and never touches the live
//! state, so the decide loop does not notice; and it takes at most a tenth of the time.

use crate::{
    Config,
    bundle::BundleError,
    handle::EngineHandle,
    log::{Head, LogError, check_link},
    signing::{self, Signer},
    snapshots::Snapshot,
    storage::{StateAfter, Storage},
    work::own,
};
use muster_domain::{State, jobs::Job};
use muster_schemas::{
    command::{Answer, Command},
    event::Event,
    ids::Sequence,
    time::Timestamp,
};
use std::{
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::{Duration, Instant},
};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

/// How often the keeper looks for work.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After a round, the pause lasts this many times as long as the round did.
const REST: u32 = 9;
/// A tenth of the share of others on busy processors, so that its locks are not held for ever.
const NICENESS: i32 = 10;
/// The decide loop answers within this time, or is stopping.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Why a round of the keeper was given up; the next one tries again.
#[derive(Debug, thiserror::Error)]
enum KeeperError {
    #[error(transparent)]
    Read(#[from] BundleError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("a file cannot be written: {0}")]
    Write(#[from] std::io::Error),
    #[error("the ledger did not take it: {0}")]
    Refused(String),
    #[error("there is no thread for it, or it ended early: {0}")]
    Thread(#[source] std::io::Error),
}

/// Runs work on a thread of low priority: a snapshot of a large state takes seconds of work, and on a machine with few
/// cores clients of the ledger would wait.
async fn giving_way<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> std::io::Result<T> {
    let (done, result) = oneshot::channel();
    std::thread::Builder::new().name("muster-keeper".to_owned()).spawn(move || {
        // SAFETY: the call has no effect on memory; 0 is this thread. If it is refused, the work is only less
        // considerate.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
        // Nobody waits once the service has stopped.
        drop(done.send(work()));
    })?;
    result.await.map_err(std::io::Error::other)
}

/// Everything needed to keep a log.
pub(crate) struct Keeper {
    pub(crate) storage: Arc<Storage>,
    pub(crate) signer: Arc<Signer>,
    pub(crate) engine: EngineHandle,
    pub(crate) config: Config,
    /// The last signed record, and since when records after it are known.
    pub(crate) unsigned: Mutex<Option<(Sequence, Instant)>>,
}

impl Keeper {
    /// Keeps the log until `shutdown`, and then makes the due snapshot, so that the next start is fast.
    pub(crate) async fn run(self, head: watch::Receiver<Head>, shutdown: CancellationToken) {
        let keeper = Arc::new(self);
        let round = async |is_last: bool| {
            let (keeper, head) = (Arc::clone(&keeper), *head.borrow());
            let work = move || keeper.round(head, is_last);
            let done = match is_last {
                false => giving_way(work).await,
                // Whoever stops the ledger waits for this.
                true => tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other),
            };
            if let Err(error) = done.map_err(KeeperError::Thread).flatten() {
                tracing::warn!(%error, "checkpoint, snapshot or archive not made; trying again later");
            }
        };
        let mut rest = LOOK_EVERY;
        while shutdown.run_until_cancelled(tokio::time::sleep(rest)).await.is_some() {
            let started = Instant::now();
            round(false).await;
            rest = LOOK_EVERY.max(started.elapsed() * REST);
        }
        round(true).await;
    }

    /// Does what is due for a log that ends at `head`. The last checkpoint is made by the decide loop instead.
    fn round(&self, head: Head, is_last: bool) -> Result<(), KeeperError> {
        let places = self.snapshots_due(head.sequence);
        let is_checkpoint_due = !is_last && self.is_checkpoint_due(head.sequence)?;
        if places.is_empty() && !is_checkpoint_due {
            return Ok(());
        }
        self.keep(head, &places, is_checkpoint_due)
    }

    fn keep(&self, head: Head, places: &[Sequence], is_checkpoint_due: bool) -> Result<(), KeeperError> {
        let mut after = self.storage.state_after(places.first().copied().unwrap_or(head.sequence))?;
        for place in places {
            self.advance(&mut after, *place)?;
            self.snapshot(*place, &after)?;
        }
        if !places.is_empty() {
            self.archive(&after.state)?;
        }
        if is_checkpoint_due {
            self.advance(&mut after, head.sequence)?;
            self.checkpoint(head, &after)?;
        }
        Ok(())
    }

    /// The places after the newest snapshot that have none yet, and those of unusable snapshots, oldest first: a burst
    /// of records leaves no gap that a query of the past would have to replay.
    fn snapshots_due(&self, last: Sequence) -> Vec<Sequence> {
        let every = self.config.snapshot_every_records.max(1);
        let snapshots = self.storage.snapshots();
        let newest = snapshots.list().last().copied().unwrap_or_default();
        let missing = (newest.0 / every + 1..=last.0 / every).map(|place| place * every);
        let bad =
            snapshots.bad().into_iter().map(|sequence| sequence.0).filter(|sequence| sequence.is_multiple_of(every));
        let oldest_kept = (last.0 / every).saturating_sub(self.config.keep_snapshots) * every;
        let mut due: Vec<_> =
            missing.chain(bad).filter(|place| (oldest_kept + 1..=last.0).contains(place)).map(Sequence).collect();
        due.sort_unstable();
        due.dedup();
        due
    }

    /// True after this many records, or if records have been without a signature for this long.
    fn is_checkpoint_due(&self, last: Sequence) -> Result<bool, LogError> {
        let log = self.storage.log()?;
        let signed = log.last_signed()?;
        let behind = last.0.saturating_sub(signed.0);
        if behind >= self.config.checkpoint_every_records.max(1) {
            return Ok(true);
        }
        let mut unsigned = self.unsigned.lock().unwrap_or_else(PoisonError::into_inner);
        // The record of the checkpoint itself needs no further one.
        let only_itself = || -> Result<bool, LogError> {
            Ok(log.record(last)?.is_some_and(|record| matches!(record.event, Event::Checkpoint { .. })))
        };
        if behind == 0 || behind == 1 && only_itself()? {
            *unsigned = None;
            return Ok(false);
        }
        let since = match *unsigned {
            Some((known, since)) if known == signed => since,
            _ => unsigned.insert((signed, Instant::now())).1,
        };
        Ok(since.elapsed() >= Duration::from_secs(self.config.checkpoint_every_seconds))
    }

    fn snapshot(&self, sequence: Sequence, after: &StateAfter) -> Result<(), KeeperError> {
        let snapshots = self.storage.snapshots();
        let body = after.state.to_snapshot_bytes().map_err(LogError::Unencodable)?;
        let cluster_id = self.storage.identity()?.cluster_id;
        snapshots.store(&Snapshot { sequence, record_hash: after.hash, body }, cluster_id, &self.signer)?;
        snapshots.thin_out(self.config.snapshot_every_records, self.config.keep_snapshots);
        tracing::debug!(%sequence, "snapshot made");
        Ok(())
    }

    fn advance(&self, after: &mut StateAfter, to: Sequence) -> Result<(), BundleError> {
        let StateAfter { state, hash } = after;
        if state.sequence() >= to {
            return Ok(());
        }
        self.storage.read(state.sequence().next(), to, |stored| {
            check_link(stored, hash)?;
            state.apply(&stored.record()?).map_err(LogError::Contradiction)?;
            *hash = stored.hash();
            Ok(())
        })
    }

    fn checkpoint(&self, head: Head, after: &StateAfter) -> Result<(), KeeperError> {
        let of = head.sequence;
        let state_digest = after.state.digest();
        let cluster_id = self.storage.identity()?.cluster_id;
        let text = signing::checkpoint_text(cluster_id, of, &after.hash, &state_digest);
        let signature = self.signer.sign(text.as_bytes());
        self.ask(Command::Checkpoint { of, state_digest, signature })?;
        tracing::debug!(%of, "checkpoint made");
        Ok(())
    }

    /// Moves the oldest records to an archive: those older than the configured age, up to the first one that an
    /// unfinished job needs.
    fn archive(&self, state: &State) -> Result<(), KeeperError> {
        let Some(days) = self.config.archive_after_days else { return Ok(()) };
        let log = self.storage.log()?;
        let before = Timestamp(Timestamp::now().0.saturating_sub(i64::from(days).saturating_mul(86_400_000_000)));
        let first = log.first()?;
        let needed = state.jobs().map(first_needed).min().unwrap_or(state.sequence());
        // Not beyond the state: its snapshot was just made, and a start needs no record before that.
        let last = Sequence(log.sequence_at(before)?.0.min(needed.0.saturating_sub(1)).min(state.sequence().0));
        if last.0 + 1 < first.0 + self.config.snapshot_every_records {
            return Ok(());
        }
        let identity = self.storage.identity()?;
        let (archive, last_hash) = self.storage.archives().store(&log, &identity, first, last, &self.signer)?;
        self.ask(Command::Archived { first, last, last_hash, file: archive.file_name() })?;
        log.remove_archived(last)?;
        tracing::info!(%first, %last, file = %archive.path.display(), "records moved to an archive");
        Ok(())
    }

    fn ask(&self, command: Command) -> Result<(), KeeperError> {
        let (sender, answers) = mpsc::sync_channel::<Answer>(1);
        self.engine.command(Box::new(own(command)), Box::new(move |answer| drop(sender.send(answer))));
        let answer = answers.recv_timeout(ANSWER_WITHIN).map_err(|error| KeeperError::Refused(error.to_string()))?;
        answer.result.map(drop).map_err(|refusal| KeeperError::Refused(refusal.message))
    }
}

/// The first record that may still be read for a job.
fn first_needed(job: &Job) -> Sequence {
    let received = job.filters.as_ref().and_then(|filtering| filtering.received);
    job.submitted_sequence.min(received.unwrap_or(job.submitted_sequence))
}
