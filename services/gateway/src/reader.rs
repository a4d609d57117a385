//! The states that queries are answered from: present and past.

use crate::{error::ApiError, params::MomentParams};
use muster_bus::{BusError, LedgerClient, Message, Projection, SharedBus, load_snapshot};
use muster_domain::{OrderHead, State, nodes::Violation};
use muster_schemas::{
    JobId, Sequence, Timestamp,
    command::{Query, QueryAnswer},
    event::Record,
    subjects,
};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// How long a query waits for the projection to reach what it must see.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the ledger may take to report the end of the log.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Past states that are kept for a while, because one query about a moment is often followed by another.
const KEPT_STATES: usize = 2;
/// How long they are kept.
const KEEP_TIME: Duration = Duration::from_secs(30);
/// How long the ledger may take to give a snapshot.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of records asked for at a time.
const PAGE_BYTES: u32 = 4 << 20;
/// The number of records whose causes are requested at a time.
const CAUSES_AT_A_TIME: usize = 10_000;

/// Reads states.
pub(crate) struct Reader {
    bus: SharedBus,
    ledger: LedgerClient,
    projection: Projection,
    /// The highest sequence among this gateway's answers to commands.
    answered: AtomicU64,
    past: Mutex<VecDeque<(Instant, Arc<State>)>>,
    /// One past state is built at a time: each can be large.
    making: tokio::sync::Mutex<()>,
    head: Arc<KnownHead>,
}

impl Reader {
    pub(crate) fn new(bus: SharedBus, projection: Projection) -> Self {
        Self {
            ledger: LedgerClient::new(bus.clone()),
            bus,
            projection,
            answered: AtomicU64::new(0),
            past: Mutex::default(),
            making: tokio::sync::Mutex::default(),
            head: Arc::default(),
        }
    }

    /// The state kept up to date.
    pub(crate) const fn projection(&self) -> &Projection {
        &self.projection
    }

    /// Every later query sees at least this.
    pub(crate) fn note_answer(&self, sequence: Sequence) {
        self.answered.fetch_max(sequence.0, Ordering::Relaxed);
    }

    /// Waits until the present state has everything that any gateway had answered before this call.
    pub(crate) async fn catch_up(&self, wait_seq: Option<Sequence>) -> Result<(), ApiError> {
        let wait_seq = wait_seq.unwrap_or_default();
        let head = self.head().await?;
        if let Some(head) = head.filter(|head| *head < wait_seq) {
            return Err(ApiError::invalid(format!("there is no record {wait_seq} yet: the log ends at {head}")));
        }
        let answered = Sequence(self.answered.load(Ordering::Relaxed));
        let wanted = head.unwrap_or_default().max(answered).max(wait_seq);
        let unseen = |_| ApiError::unavailable(format!("the gateway has not seen record {wanted} of the log yet"));
        self.projection.wait_for(wanted, CATCH_UP_TIMEOUT).await.map_err(unseen)
    }

    /// The end of the log; `None` while there is no ledger, which then answers nobody.
    async fn head(&self) -> Result<Option<Sequence>, ApiError> {
        let unreadable = |source| BusError::Malformed { subject: subjects::QUERY.to_owned(), source };
        let question = Message::encode(&Query::Head).map_err(unreadable)?;
        let reply = match self.bus.request(subjects::QUERY, question, HEAD_TIMEOUT).await {
            Err(BusError::NoResponder { .. }) => return Ok(None),
            reply => reply?,
        };
        match reply.decode().map_err(unreadable)? {
            QueryAnswer::Head { last, .. } => Ok(Some(last)),
            // The ledger is starting or stopping.
            QueryAnswer::Refused(_) => Ok(None),
            other => Err(unexpected(&other)),
        }
    }

    /// Looks at the state of the requested moment.
    pub(crate) async fn read<T>(
        &self,
        moment: MomentParams,
        look: impl FnOnce(&State) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        self.catch_up(moment.wait_seq).await?;
        match self.past_of(moment).await? {
            Some(state) => look(&state),
            None => self.projection.read(look),
        }
    }

    /// A source of the state of the requested moment for repeated looks.
    pub(crate) async fn source(&self, moment: MomentParams) -> Result<Source, ApiError> {
        self.catch_up(moment.wait_seq).await?;
        // The present moves on between the looks; a moment that was asked for does not.
        Ok(match self.sequence_of(moment).await? {
            Some(target) => Source::Past(self.past(target).await?),
            None => Source::Now(self.projection.clone(), self.head.clone()),
        })
    }

    /// The state of a past moment; `None` for the present.
    pub(crate) async fn past_of(&self, moment: MomentParams) -> Result<Option<Arc<State>>, ApiError> {
        match self.sequence_of(moment).await? {
            Some(target) if target != self.projection.sequence() => self.past(target).await.map(Some),
            _ => Ok(None),
        }
    }

    /// The last record before a moment; `None` for the present.
    pub(crate) async fn sequence_of(&self, moment: MomentParams) -> Result<Option<Sequence>, ApiError> {
        let target = match (moment.at_seq, moment.at) {
            (Some(sequence), _) => sequence,
            (None, Some(time)) => self.sequence_at(time).await?,
            (None, None) => return Ok(None),
        };
        let now = self.projection.sequence();
        if target > now {
            return Err(ApiError::invalid(format!("there is no record {target} yet: the log ends at {now}")));
        }
        Ok(Some(target))
    }

    async fn sequence_at(&self, time: Timestamp) -> Result<Sequence, ApiError> {
        match self.ledger.query(&Query::SequenceAt { time }).await? {
            QueryAnswer::Sequence(sequence) => Ok(sequence),
            other => Err(unexpected(&other)),
        }
    }

    /// The state after a record.
    pub(crate) async fn past(&self, target: Sequence) -> Result<Arc<State>, ApiError> {
        let _turn = self.making.lock().await;
        if let Some(state) = self.kept(target) {
            return Ok(state);
        }
        let late = |_| ApiError::unavailable("the ledger has not given a snapshot in time");
        let snapshot = tokio::time::timeout(SNAPSHOT_TIMEOUT, load_snapshot(&self.ledger, Some(target)));
        let mut state = snapshot.await.map_err(late)??;
        while state.sequence() < target {
            let records = self.replay(state.sequence().next(), PAGE_BYTES).await?;
            if records.is_empty() {
                return Err(ApiError::unavailable(format!(
                    "the ledger does not give record {}",
                    state.sequence().next()
                )));
            }
            state = fold(state, records, target).await?;
        }
        let state = Arc::new(state);
        self.keep(state.clone());
        Ok(state)
    }

    fn kept(&self, sequence: Sequence) -> Option<Arc<State>> {
        let past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        past.iter().find(|(_, state)| state.sequence() == sequence).map(|(_, state)| state.clone())
    }

    fn keep(&self, state: Arc<State>) {
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        past.push_back((Instant::now(), state));
        while past.len() > KEPT_STATES {
            past.pop_front();
        }
    }

    /// Drops past states that nobody asked for lately.
    pub(crate) async fn forget_past_states(&self) {
        loop {
            tokio::time::sleep(KEEP_TIME).await;
            let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
            past.retain(|(since, _)| since.elapsed() < KEEP_TIME);
            if past.is_empty() {
                past.shrink_to_fit();
            }
        }
    }

    /// Records from a sequence on, about `max_bytes` in all, but at least one if there is any.
    pub(crate) async fn replay(&self, from: Sequence, max_bytes: u32) -> Result<Vec<Record>, ApiError> {
        match self.ledger.query(&Query::Replay { from, max_bytes }).await? {
            QueryAnswer::Records(commit) => Ok(commit.records),
            other => Err(unexpected(&other)),
        }
    }

    /// All records of a job up to a sequence, for an array including those of its tasks, for a task including those of
    /// its array.
    pub(crate) async fn job_history(&self, job: JobId, up_to: Option<Sequence>) -> Result<Vec<Record>, ApiError> {
        let mut records: Vec<Record> = Vec::new();
        let beyond = |record: &Record| up_to.is_some_and(|last| record.sequence > last);
        loop {
            let from = records.last().map_or(Sequence(1), |record| record.sequence.next());
            let page = self.history_page(job, from).await?;
            let ended = page.is_empty();
            records.extend(page);
            if ended || records.last().is_some_and(beyond) {
                records.retain(|record| !beyond(record));
                return Ok(records);
            }
        }
    }

    /// The causes of each of these records of the log.
    pub(crate) async fn causes(
        &self,
        records: impl Iterator<Item = Sequence>,
    ) -> Result<Vec<Option<Sequence>>, ApiError> {
        let records: Vec<Sequence> = records.collect();
        let mut causes = Vec::with_capacity(records.len());
        for of in records.chunks(CAUSES_AT_A_TIME) {
            match self.ledger.query(&Query::Causes { of: of.to_vec() }).await? {
                QueryAnswer::Causes(some) if some.len() == of.len() => causes.extend(some),
                other => return Err(unexpected(&other)),
            }
        }
        Ok(causes)
    }

    /// Records of a job from a sequence on, as many as the ledger gives at a time.
    pub(crate) async fn history_page(&self, job: JobId, from: Sequence) -> Result<Vec<Record>, ApiError> {
        match self.ledger.query(&Query::JobHistory { job, from }).await? {
            QueryAnswer::Records(commit) => Ok(commit.records),
            other => Err(unexpected(&other)),
        }
    }
}

/// A state to look at.
#[derive(Clone)]
pub(crate) enum Source {
    /// The present one, which continues between two looks. Nothing is applied during a look, so be quick.
    Now(Projection, Arc<KnownHead>),
    /// A past state.
    Past(Arc<State>),
}

impl Source {
    /// Looks at it, on a thread that may wait.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        match self {
            Self::Now(projection, _) => projection.read_long(look),
            Self::Past(state) => look(state),
        }
    }

    /// The head of the order in this state, if it is known.
    pub(crate) fn known_head(&self, state: &State) -> Option<OrderHead> {
        let Self::Now(_, known) = self else { return None };
        let (of, head) = *known.0.lock().unwrap_or_else(PoisonError::into_inner);
        (of == state.sequence()).then_some(head)
    }

    /// Keeps the head of the order for others who look at the same state: to find it, all waiting jobs are looked at.
    pub(crate) fn keep_head(&self, state: &State, head: OrderHead) {
        if let Self::Now(_, known) = self {
            *known.0.lock().unwrap_or_else(PoisonError::into_inner) = (state.sequence(), head);
        }
    }
}

/// The head of the order in the state after a record.
#[derive(Debug, Default)]
pub(crate) struct KnownHead(Mutex<(Sequence, OrderHead)>);

/// The state with the records up to a target, computed on a blocking thread.
async fn fold(mut state: State, records: Vec<Record>, target: Sequence) -> Result<State, ApiError> {
    let folded = tokio::task::spawn_blocking(move || {
        records.iter().take_while(|record| record.sequence <= target).try_for_each(|record| state.apply(record))?;
        Ok(state)
    });
    let folded = folded.await.map_err(|_| ApiError::unavailable("the gateway is stopping"))?;
    folded.map_err(|violation: Violation| {
        tracing::error!(%violation, "a state of the past cannot be shown");
        BusError::Unusable(violation.to_string()).into()
    })
}

/// The ledger's answer does not fit the question.
pub(crate) fn unexpected(answer: &QueryAnswer) -> ApiError {
    tracing::error!(?answer, "the ledger's answer does not fit the question");
    BusError::Unusable("the ledger's answer does not fit the question".to_owned()).into()
}
