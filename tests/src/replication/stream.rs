//! The model of the stream of rounds.

use muster_bus::rounds::{Next, Outcome, Position, RoundHeader, RoundKind, RoundMessage, Rounds, StreamInfo};
use muster_schemas::Timestamp;
use rand::{Rng, rngs::SmallRng};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Messages with records that are kept; older ones are dropped, with everything before them.
const KEPT: usize = 30;
/// How long a renewal is kept.
const RENEWAL_MICROS: i64 = 10_000_000;

/// A promise that the stream can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenPromise {
    /// Its last messages are gone.
    LosesItsEnd,
    /// It is another, empty one.
    IsEmptied,
    /// Its last message with records is another one.
    GoesAnotherWay,
}

/// A rule that is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// The stream takes every append, wherever it was to stand.
    NoFence,
    /// An append is said to stand when it was only sent.
    AnswersEarly,
    /// An append whose fate is unknown is taken for standing if a read finds a message in its place.
    ReadsInsteadOfRetries,
    /// The clock by which a ledger trusts its lease is late.
    LateClock,
}

#[derive(Clone, Debug)]
struct Stored {
    message: RoundMessage,
    id: String,
    at: Timestamp,
}

/// The connection of a ledger to the stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link {
    /// It reaches no server.
    pub(super) is_cut: bool,
    /// The last append has an unknown fate.
    pub(super) is_in_doubt: bool,
    /// How many appends are known to stand.
    pub(super) stands: u64,
}

pub(super) struct Stream {
    created: Timestamp,
    messages: BTreeMap<u64, Stored>,
    last: u64,
    pub(super) now: Timestamp,
    /// Until when it has no leader.
    pub(super) down_until: Timestamp,
    /// Appends that were given up, and may be stored yet.
    late: Vec<(u64, RoundMessage)>,
    pub(super) links: Vec<Link>,
    /// All messages that were ever stored since the last look, for whoever keeps the truth.
    news: Vec<(u64, RoundMessage)>,
    pub(super) is_calm: bool,
    pub(super) unknown: u64,
    random: SmallRng,
    sabotage: Option<Sabotage>,
}

impl Stream {
    pub(super) fn new(now: Timestamp, random: SmallRng, sabotage: Option<Sabotage>) -> Self {
        Self {
            created: now,
            messages: BTreeMap::new(),
            last: 0,
            now,
            down_until: now,
            late: Vec::new(),
            links: Vec::new(),
            news: Vec::new(),
            is_calm: false,
            unknown: 0,
            random,
            sabotage,
        }
    }

    pub(super) fn take_news(&mut self) -> Vec<(u64, RoundMessage)> {
        std::mem::take(&mut self.news)
    }

    /// Time passes: late appends arrive once there is a leader, renewals vanish.
    pub(super) fn advance(&mut self, now: Timestamp) {
        self.now = now;
        if now >= self.down_until {
            for (after, message) in std::mem::take(&mut self.late) {
                if after == self.last && self.random.random_bool(0.5) {
                    self.store(after, message);
                }
            }
        }
        self.messages.retain(|_, stored| {
            stored.message.header.kind != RoundKind::Renewal || now.micros_since(stored.at) < RENEWAL_MICROS
        });
        let with_records = self.messages.iter().filter(|(_, stored)| stored.message.header.has_records());
        let oldest_kept = with_records.map(|(at, _)| *at).rev().nth(KEPT);
        if let Some(oldest_kept) = oldest_kept {
            self.messages = self.messages.split_off(&oldest_kept);
        }
    }

    /// Breaks a promise; returns the last message with records that is gone, with its place.
    pub(super) fn break_promise(&mut self, promise: BrokenPromise, now: Timestamp) -> Option<(u64, RoundHeader)> {
        let last = self.messages.iter_mut().rev().find(|(_, stored)| stored.message.header.has_records());
        let (at, stored) = last?;
        let gone = (*at, stored.message.header.clone());
        match promise {
            BrokenPromise::LosesItsEnd => {
                self.messages.split_off(&gone.0);
                self.last = gone.0 - 1;
                Some(gone)
            }
            BrokenPromise::IsEmptied => {
                self.messages.clear();
                (self.last, self.created) = (0, now);
                Some(gone)
            }
            BrokenPromise::GoesAnotherWay => {
                stored.message.header.after = [9; 32];
                None
            }
        }
    }

    fn is_away(&self, ledger: usize) -> bool {
        self.links[ledger].is_cut || self.now < self.down_until
    }

    fn store(&mut self, after: u64, message: RoundMessage) -> Position {
        self.last += 1;
        let id = message.header.id(Position(after));
        self.news.push((self.last, message.clone()));
        self.messages.insert(self.last, Stored { message, id, at: self.now });
        Position(self.last)
    }

    /// What became of an append at the server.
    fn judge(&mut self, after: u64, message: &RoundMessage) -> Outcome {
        let id = message.header.id(Position(after));
        if let Some((at, _)) = self.messages.iter().rev().find(|(_, stored)| stored.id == id) {
            return Outcome::Stands(Position(*at));
        }
        if after == self.last || self.sabotage == Some(Sabotage::NoFence) {
            return Outcome::Stands(self.store(after, message.clone()));
        }
        match after < self.last {
            true => Outcome::Beaten { last: Position(self.last) },
            false => Outcome::Unknown(format!("the stream ends at {}", self.last)),
        }
    }

    fn append(&mut self, ledger: usize, after: u64, message: &RoundMessage) -> Outcome {
        let outcome = self.try_append(ledger, after, message);
        let outcome = match (outcome, self.sabotage) {
            (Outcome::Unknown(_), Some(Sabotage::AnswersEarly)) => Outcome::Stands(Position(after + 1)),
            (Outcome::Unknown(why), Some(Sabotage::ReadsInsteadOfRetries)) => {
                match self.messages.contains_key(&(after + 1)) {
                    true => Outcome::Stands(Position(after + 1)),
                    false => Outcome::Unknown(why),
                }
            }
            (outcome, _) => outcome,
        };
        let is_unknown = matches!(outcome, Outcome::Unknown(_));
        self.unknown += u64::from(is_unknown);
        self.links[ledger].is_in_doubt = is_unknown;
        self.links[ledger].stands += u64::from(matches!(outcome, Outcome::Stands(_)));
        outcome
    }

    fn try_append(&mut self, ledger: usize, after: u64, message: &RoundMessage) -> Outcome {
        let unknown = |why: &str| Outcome::Unknown(why.to_owned());
        if self.links[ledger].is_cut {
            return unknown("no server can be reached");
        }
        if self.now < self.down_until {
            // A leader that dies may have proposed it.
            if self.random.random_bool(0.3) {
                self.late.push((after, message.clone()));
            }
            return unknown("the stream has no leader");
        }
        if self.is_calm {
            return self.judge(after, message);
        }
        match self.random.random_range(0..200) {
            // It gets lost on its way.
            0..4 => unknown("it was not acknowledged in time"),
            // The acknowledgement gets lost.
            4..10 => {
                self.judge(after, message);
                unknown("it was not acknowledged in time")
            }
            // It is on its way into the stream.
            10..12 => {
                self.late.push((after, message.clone()));
                unknown("the first copy is being stored")
            }
            _ => self.judge(after, message),
        }
    }

    /// The end of the stream as a read sees it, which may be old.
    fn seen(&mut self) -> u64 {
        match self.is_calm || self.random.random_bool(0.9) {
            true => self.last,
            false => self.last.saturating_sub(self.random.random_range(1..4)),
        }
    }

    fn next(&mut self, ledger: usize, after: u64) -> Next {
        if self.is_away(ledger) {
            return Next::Unreachable("no server answers".into());
        }
        let seen = self.seen();
        if seen <= after {
            return Next::Nothing;
        }
        let first = self.messages.keys().next().copied().unwrap_or(self.last + 1);
        match self.messages.range(after + 1..=seen).next() {
            Some(_) if first > after + 1 => Next::Gone { first: Position(first) },
            Some((at, stored)) => Next::Message(Position(*at), stored.message.clone()),
            None => Next::Nothing,
        }
    }

    fn info(&mut self, ledger: usize) -> Result<StreamInfo, String> {
        if self.is_away(ledger) {
            return Err("no server answers".into());
        }
        let last = self.seen();
        let first = self.messages.keys().next().copied().unwrap_or(self.last + 1);
        Ok(StreamInfo { created: self.created, first: Position(first), last: Position(last) })
    }
}

/// The stream, shared by those who use it.
#[derive(Clone)]
pub(super) struct Shared {
    stream: Arc<Mutex<Stream>>,
}

impl Shared {
    pub(super) fn new(stream: Stream) -> Self {
        Self { stream: Arc::new(Mutex::new(stream)) }
    }

    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Stream) -> T) -> T {
        work(&mut self.stream.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The connection of a ledger.
    pub(super) fn connect(&self, ledger: usize) -> Connection {
        Connection { shared: self.clone(), ledger }
    }
}

pub(super) struct Connection {
    shared: Shared,
    ledger: usize,
}

impl Rounds for Connection {
    fn append(&mut self, after: Position, message: &RoundMessage) -> Outcome {
        self.shared.with(|stream| stream.append(self.ledger, after.0, message))
    }

    fn next(&mut self, after: Position, _wait: Duration) -> Next {
        self.shared.with(|stream| stream.next(self.ledger, after.0))
    }

    fn info(&mut self) -> Result<StreamInfo, String> {
        self.shared.with(|stream| stream.info(self.ledger))
    }
}
