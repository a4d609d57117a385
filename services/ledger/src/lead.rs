//! The lead among several ledgers, as the decide loop has it. While the fate of a round is unknown, nothing is decided and
//! nothing leaves: what arrives waits here.

use crate::{
    log::{Head, Place, Sealed},
    replication::{COMMAND_BYTES, InFlight, Reign, Told},
    work::{Work, refusal},
};
use muster_bus::rounds::Rounds;
use muster_schemas::{
    codec,
    command::{Refusal, RefusalCode},
    event::Event,
    ids::Sequence,
};
use std::{
    collections::VecDeque,
    sync::mpsc::Receiver,
    time::{Duration, Instant},
};

/// The most commands that wait while the fate of a round is unknown.
const MAX_PARKED: usize = 4096;
/// A ledger that stops does not wait longer than this for the fate of its last round, or for one that follows to have it:
/// that takes milliseconds.
const STOPS_WITHIN: Duration = Duration::from_secs(3);

/// Why a decide loop has ended.
pub(crate) enum Ended {
    /// It was told to.
    Stopped,
    /// It leads no longer.
    SteppedDown,
    /// It was told to let another ledger lead: the one of this name, or any.
    HandsOver(Option<String>),
    /// A round that stands in the stream could not be written to the log, or the log cannot be read.
    LogFailed(String),
}

/// A round that stands in the stream: what is to be written to the log, with its place, and what is to be told.
pub(crate) struct Standing<N> {
    pub(crate) sealed: Option<Sealed>,
    pub(crate) place: Place,
    pub(crate) news: N,
}

/// The lead among several ledgers. `N` is what is told to others once a round is durable.
pub(crate) struct Lead<N> {
    reign: Reign,
    /// A round whose fate is unknown.
    doubt: Option<InFlight<N>>,
    /// News of a round that stands and is in this log, which wait until a ledger that follows has it too, and since when.
    withheld: Option<(Place, N, Instant)>,
    /// Commands that arrived meanwhile.
    parked: VecDeque<Work>,
    /// Whether it was said that news wait for long.
    has_complained: bool,
    /// Why it is over, if it is.
    over: Option<Ended>,
}

impl<N> Lead<N> {
    pub(crate) fn new(reign: Reign) -> Self {
        Self { reign, doubt: None, withheld: None, parked: VecDeque::new(), has_complained: false, over: None }
    }

    /// Whether this ledger leads no longer.
    pub(crate) fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// Whether the fate of a round is unknown.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.doubt.is_some()
    }

    /// Whether news wait until a ledger that follows has their round.
    pub(crate) fn is_withholding(&self) -> bool {
        self.withheld.is_some()
    }

    /// The news of a round that stands at a place and is in this log, unless they have to wait for a ledger that follows.
    pub(crate) fn unless_withheld(&mut self, place: Place, news: N, now: Instant) -> Option<N> {
        if self.reign.is_copied(place) {
            return Some(news);
        }
        tracing::debug!(%place.position, "answers wait until another ledger has their round");
        self.withheld = Some((place, news, now));
        None
    }

    /// The news that have waited, once a ledger that follows has their round. A ledger that stops does not wait for ever:
    /// whoever asked gets no answer, and a retry finds it.
    pub(crate) fn take_withheld(&mut self, now: Instant, is_told_to_stop: bool) -> Option<N> {
        let (place, news, since) = self.withheld.take()?;
        if self.reign.is_copied(place) {
            return Some(news);
        }
        let is_long = now.saturating_duration_since(since) >= STOPS_WITHIN;
        if is_long && !self.has_complained {
            tracing::warn!("no ledger that follows has the last round: answers wait (`wait_for_standby`)");
        }
        self.has_complained = is_long;
        self.withheld = (!is_long || !is_told_to_stop).then_some((place, news, since));
        None
    }

    /// Whether commands wait here.
    pub(crate) fn has_parked(&self) -> bool {
        !self.parked.is_empty()
    }

    /// Whether no other ledger can lead at this time.
    pub(crate) fn holds(&self, now: Instant) -> bool {
        self.over.is_none() && self.reign.lease().holds(now)
    }

    /// When the next proof is due that this ledger leads.
    pub(crate) fn next_proof(&self) -> Instant {
        self.reign.next_proof()
    }

    /// A message after `head`: a commit and its body, or, without one, the proof that this ledger leads.
    pub(crate) fn prepare(&self, head: Head, commit: Option<(Sealed, Vec<u8>)>, news: N, now: Instant) -> InFlight<N> {
        self.reign.prepare(head, commit, news, now)
    }

    /// Appends a round to the stream. `None` if it does not stand, or nobody knows.
    pub(crate) fn send(&mut self, in_flight: InFlight<N>) -> Option<Standing<N>> {
        match self.reign.send(in_flight) {
            Told::Stands(sealed, news) => Some(Standing { sealed, place: self.reign.place(), news }),
            Told::Beaten => {
                self.step_down("another ledger has appended to the stream");
                None
            }
            Told::Unknown(in_flight, why) => {
                tracing::debug!(why, "the fate of a round is unknown");
                self.doubt = Some(in_flight);
                None
            }
        }
    }

    /// The round whose fate is unknown, to be sent again; the reign is over if that has lasted for too long.
    pub(crate) fn take_doubt(&mut self, now: Instant, is_told_to_stop: bool) -> Option<InFlight<N>> {
        let in_flight = self.doubt.take()?;
        let is_too_late = is_told_to_stop && now.saturating_duration_since(in_flight.tried) > STOPS_WITHIN;
        if in_flight.is_hopeless(now) || is_too_late {
            self.step_down("the stream has not told for too long whether the last round stands");
            return None;
        }
        Some(in_flight)
    }

    /// The next command that has waited.
    pub(crate) fn next_parked(&mut self) -> Option<Work> {
        self.parked.pop_front()
    }

    /// Puts aside what has arrived, in its order. Returns whether the loop is told to stop.
    pub(crate) fn park(&mut self, first: Option<Work>, inbox: &Receiver<Work>, last: Sequence) -> bool {
        let arrived = first.into_iter().chain(std::iter::from_fn(|| inbox.try_recv().ok()));
        for work in arrived.take(MAX_PARKED) {
            match work {
                // Reports of nodes wait elsewhere; runners report again.
                Work::Beats | Work::RunnerBeat(..) => {}
                Work::Command(_, reply) if self.parked.len() >= MAX_PARKED => {
                    let message = "the ledger waits for the servers that order its records, and more commands wait than it \
                                   can take in; try again";
                    reply(refusal(last, RefusalCode::Unavailable, message));
                }
                work => self.parked.push_back(work),
            }
        }
        self.parked.iter().any(|work| matches!(work, Work::Stop))
    }

    /// Ends the reign. Whoever waits for an answer gets none: a retry gets the first one, or is decided again, by
    /// whoever leads then.
    fn step_down(&mut self, why: &str) {
        tracing::warn!(why, epoch = self.reign.epoch(), "this ledger leads no longer");
        self.give_up(Ended::SteppedDown);
    }

    /// Ends the reign for this reason.
    pub(crate) fn give_up(&mut self, ended: Ended) {
        self.reign.lease().drop_it();
        self.over = Some(ended);
    }

    /// Why the loop has ended, and the stream. One that was told to stop, or to hand over, lets the others know, with the
    /// end of its log.
    pub(crate) fn end(self, head: Head) -> (Ended, Box<dyn Rounds>) {
        let Self { mut reign, over, .. } = self;
        match &over {
            None => reign.yield_now(head, None),
            Some(Ended::HandsOver(to)) => reign.yield_now(head, to.as_deref()),
            Some(Ended::Stopped | Ended::SteppedDown | Ended::LogFailed(_)) => {}
        }
        (over.unwrap_or(Ended::Stopped), reign.end())
    }
}

/// Refuses a command whose records are more than one message to other ledgers can carry: they are written as a whole or
/// not at all.
pub(crate) fn fits_into_message(events: &[Event]) -> Result<(), Refusal> {
    let mut bytes = Vec::new();
    for event in events {
        // What cannot be encoded is refused where it is written.
        let _ = codec::encode_into(event, &mut bytes);
    }
    if bytes.len() <= COMMAND_BYTES {
        return Ok(());
    }
    let message = format!(
        "the command would write {} bytes at once, and where several ledgers keep one history a command may write {COMMAND_BYTES}: \
         split it into smaller ones",
        bytes.len()
    );
    Err(Refusal::new(RefusalCode::Invalid, message))
}
