//! Accounting as a service: follows the log and answers queries.

use crate::{Books, snapshot};
use anyhow::Context as _;
use muster_bus::{BusError, Feed, LedgerClient, Message, Request, SharedBus};
use muster_schemas::{
    Sequence, Timestamp,
    command::{Query, QueryAnswer},
    event::{Event, Record},
    subjects,
    usage::{UsageAnswer, UsageQuery},
};
use muster_telemetry::trace;
use serde::Deserialize;
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    sync::{Semaphore, oneshot},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

/// Settings of accounting.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The length of a window in seconds, from 1 second to 100 years; windows are counted from 1970-01-01 00:00 UTC.
    pub window_seconds: u64,
    /// A file to keep the books in between starts. Without one, or if it cannot be used, the log is counted again.
    pub snapshot_file: Option<PathBuf>,
    /// Number of records after which the file is rewritten; it is also rewritten at a clean stop.
    pub snapshot_every_records: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { window_seconds: 86_400, snapshot_file: None, snapshot_every_records: 1_000_000 }
    }
}

/// A query that needs records which do not arrive is dropped after this time; the caller has given up by then.
const PATIENCE: Duration = Duration::from_secs(30);
/// The bytes of records requested at a time to count the log up to a past moment.
const PAGE_BYTES: u32 = 4 << 20;

/// Answers queries on [`subjects::ACCOUNTING_USAGE`] until `shutdown`. `ready` is signalled once queries are accepted;
/// those that name a record are answered once it is counted.
///
/// # Errors
/// The bus cannot be used, or the ledger cannot give the records that are needed.
pub async fn serve(
    bus: SharedBus,
    config: Config,
    ready: oneshot::Sender<()>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let mut requests = bus.serve(subjects::ACCOUNTING_USAGE).await.context("usage cannot be served")?;
    let ledger = LedgerClient::new(bus.clone());
    let Some(books) = shutdown.run_until_cancelled(kept_books(&config, &ledger)).await else { return Ok(()) };
    let books = books?.unwrap_or_else(|| Books::new(config.window_seconds));
    let mut feed =
        Feed::open(bus.clone(), books.sequence().next()).await.context("accounting cannot follow the log")?;
    let _ = ready.send(());
    let mut desk = Desk {
        saved: books.sequence(),
        books,
        ledger,
        waiting: Vec::new(),
        looking_back: Arc::new(Semaphore::new(1)),
        config,
    };
    let work = async {
        loop {
            tokio::select! {
                commit = feed.next() => match commit {
                    Ok(commit) => desk.count(&commit.records).await?,
                    // Archived: records that the books miss cannot be counted here any more.
                    Err(BusError::Refused(refusal)) => {
                        let first = first_record(&desk.ledger).await?;
                        tracing::error!("usage between records {} and {first} is not counted: {refusal}", feed.position());
                        feed = Feed::open(bus.clone(), first).await?;
                    }
                    Err(error) => return Err(error).context("accounting cannot follow the log"),
                },
                request = requests.next() => match request {
                    Some(request) => desk.take(request),
                    None => return Ok(()),
                },
            }
            desk.answer_waiting();
        }
    };
    let result = shutdown.run_until_cancelled(work).await.unwrap_or(Ok(()));
    desk.save();
    result
}

/// The books of the last stop, if they belong to the ledger's present history: another one, such as a backup, may have
/// replaced it.
async fn kept_books(config: &Config, ledger: &LedgerClient) -> anyhow::Result<Option<Books>> {
    let Some(path) = &config.snapshot_file else { return Ok(None) };
    let Some(books) = snapshot::load(path, config.window_seconds) else { return Ok(None) };
    loop {
        match ledger.query(&Query::Replay { from: books.sequence(), max_bytes: 1 }).await {
            Ok(QueryAnswer::Records(page)) if page.records.first().is_some_and(|record| books.end_with(record)) => {
                return Ok(Some(books));
            }
            Ok(QueryAnswer::Records(_)) => {
                tracing::warn!(
                    path = %path.display(),
                    "the books belong to another history than the ledger's: recounting the log"
                );
                return Ok(None);
            }
            // It is in an archive that was removed: records up to there cannot be counted again.
            Err(BusError::Refused(_)) => return Ok(Some(books)),
            Err(error) if error.is_retryable() => tracing::info!(%error, "waiting for the ledger"),
            Err(error) => return Err(error).context("the books kept cannot be compared with the log"),
            Ok(_) => anyhow::bail!("the ledger gave an answer to another question"),
        }
    }
}

struct Desk {
    books: Books,
    ledger: LedgerClient,
    /// Queries that need records which are not counted yet.
    waiting: Vec<Waiting>,
    saved: Sequence,
    /// Taken while the log is counted up to a past moment: one at a time.
    looking_back: Arc<Semaphore>,
    config: Config,
}

struct Waiting {
    query: UsageQuery,
    request: Request,
    until: Instant,
}

impl Desk {
    async fn count(&mut self, records: &[Record]) -> anyhow::Result<()> {
        for record in records {
            learn(&mut self.books, &self.ledger, record).await?;
            if let Event::RunEnded { job, .. } = record.event {
                let span = trace::in_trace(tracing::debug_span!("account", %job), record.trace);
                span.in_scope(|| self.books.apply(record));
            } else {
                self.books.apply(record);
            }
        }
        if self.books.sequence().0 - self.saved.0 >= self.config.snapshot_every_records.max(1) {
            self.save();
        }
        Ok(())
    }

    fn take(&mut self, request: Request) {
        match request.message.decode::<UsageQuery>() {
            Ok(query) if query.at.is_some() => self.look_back(query, request),
            Ok(query) => self.waiting.push(Waiting { query, request, until: Instant::now() + PATIENCE }),
            Err(error) => tracing::warn!(%error, "a question about usage cannot be read"),
        }
    }

    fn answer_waiting(&mut self) {
        let counted = self.books.sequence();
        let is_due = |waiting: &mut Waiting| waiting.query.at_least.is_none_or(|wanted| wanted <= counted);
        for Waiting { query, request, .. } in self.waiting.extract_if(.., is_due) {
            reply(request, &self.books.answer(&query, Timestamp::now()));
        }
        let now = Instant::now();
        self.waiting.retain(|waiting| waiting.until > now);
    }

    /// Answers as of a past moment, from separate books: what has been counted cannot be undone.
    fn look_back(&self, query: UsageQuery, request: Request) {
        let (turn, ledger, window_seconds) =
            (self.looking_back.clone(), self.ledger.clone(), self.books.window_seconds());
        tokio::spawn(async move {
            let Some(moment) = query.at else { return };
            let Ok(_turn) = turn.acquire().await else { return };
            match books_at(&ledger, window_seconds, moment.sequence).await {
                Ok((books, time)) => reply(request, &books.answer(&query, moment.time.unwrap_or(time))),
                Err(error) => tracing::warn!(%error, "usage of a past moment cannot be counted"),
            }
        });
    }

    fn save(&mut self) {
        let Some(path) = &self.config.snapshot_file else { return };
        if self.saved == self.books.sequence() {
            return;
        }
        match snapshot::save(path, &self.books) {
            Ok(()) => self.saved = self.books.sequence(),
            Err(error) => tracing::warn!("the books are not kept: {error:#}"),
        }
    }
}

/// The first record that has not been archived.
async fn first_record(ledger: &LedgerClient) -> Result<Sequence, BusError> {
    match ledger.query(&Query::Head).await? {
        QueryAnswer::Head { first, .. } => Ok(first),
        _ => Err(BusError::Unavailable("the ledger does not say where the log begins".to_owned())),
    }
}

/// Learns the job of a record again, if it was forgotten.
async fn learn(books: &mut Books, ledger: &LedgerClient, record: &Record) -> Result<(), BusError> {
    let Some(job) = books.unknown_job(record) else { return Ok(()) };
    match ledger.query(&Query::JobHistory { job, from: Sequence(1) }).await {
        Ok(QueryAnswer::Records(history)) => books.learn(&history.records),
        Ok(_) | Err(BusError::Refused(_)) => {
            tracing::error!(%job, "the ledger cannot tell the history of the job: the run is not counted");
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// The books after a record, and the time of that record. The log is counted from its beginning.
async fn books_at(ledger: &LedgerClient, window_seconds: u64, last: Sequence) -> Result<(Books, Timestamp), BusError> {
    let (mut books, mut time) = (Books::new(window_seconds), Timestamp::default());
    while books.sequence() < last {
        let query = Query::Replay { from: books.sequence().next(), max_bytes: PAGE_BYTES };
        let QueryAnswer::Records(page) = ledger.query(&query).await? else {
            return Err(BusError::Unavailable("the ledger's answer is no page of records".to_owned()));
        };
        if page.records.is_empty() {
            return Err(BusError::Unavailable(format!("the log ends before record {last}")));
        }
        for record in page.records.iter().take_while(|record| record.sequence <= last) {
            learn(&mut books, ledger, record).await?;
            books.apply(record);
            time = record.time;
        }
        tokio::task::yield_now().await;
    }
    Ok((books, time))
}

fn reply(request: Request, answer: &UsageAnswer) {
    match Message::encode(answer) {
        Ok(answer) => request.reply(answer),
        Err(error) => tracing::warn!(%error, "an answer about usage is too large"),
    }
}
