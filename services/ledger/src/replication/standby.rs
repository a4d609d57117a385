//! A ledger that follows, until it leads.

use super::{
    GIVE_UP_AFTER, InFlight, LEASE, MARGIN, Peers, Reign, SPREAD, StreamFault, TRY_AGAIN_AFTER, reign::Author,
};
use crate::{
    log::{Batch, Hash, Head, LogError, Place, body::Body},
    opened::Opened,
};
use bytes::Bytes;
use muster_bus::rounds::{Next, Outcome, Position, RoundHeader, RoundKind, RoundMessage, Rounds, StreamInfo};
use muster_domain::{Reign as ReignInLog, notify};
use muster_schemas::{
    codec::{self, FEATURE_LEVEL},
    event::{Actor, Event, Record, TraceContext},
    ids::{CommandId, Sequence},
    time::Timestamp,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// The pause before a stream that cannot be reached, or a ledger that does not answer, is asked again.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// What a step has come to.
pub(crate) enum Step {
    /// There may be more to do at once.
    GoOn,
    /// There is nothing to do for this time.
    Wait(Duration),
    /// This ledger leads.
    Leads,
}

/// An attempt to lead.
struct Claim {
    in_flight: InFlight<Record>,
    after: Position,
    /// Its place, once it stands.
    stands: Option<Position>,
}

/// A claim that stands.
struct Won {
    author: Author,
    created: Timestamp,
    position: Position,
    tried: Instant,
}

/// A ledger that follows.
pub(crate) struct Standby {
    opened: Opened,
    rounds: Box<dyn Rounds>,
    peers: Box<dyn Peers>,
    name: String,
    cluster: [u8; 16],
    /// The stream, once it was found to be the one of this log.
    created: Option<Timestamp>,
    /// The record up to which a person wants this ledger to lead on an empty stream.
    promoted: Option<Sequence>,
    position: Position,
    /// The hash of the last record at the message at `position`, if this process has read that.
    at_position: Option<Hash>,
    /// Whether messages may have left the stream unread: then the end of this log is unproven until a message continues it.
    is_unproven: bool,
    highest_epoch: u64,
    /// When the last message came.
    heard: Instant,
    /// Whether the leader has ended its reign itself, and this ledger may lead.
    is_vacant: bool,
    /// Whether the leader has named this ledger to lead next.
    is_named: bool,
    /// Whether this ledger has handed over, and lets others lead first.
    holds_back: bool,
    /// Whether everything that the stream had when it was looked at is applied.
    is_at_end: bool,
    was_away: bool,
    claim: Option<Claim>,
    won: Option<Won>,
    /// What was said about the stream last, so that it is said once.
    complaint: Option<String>,
}

impl Standby {
    /// A ledger that has just started, or has stepped down. `promoted` is the record up to which a person wants it to
    /// lead on an empty stream.
    pub(crate) fn new(
        opened: Opened,
        name: &str,
        (rounds, peers): (Box<dyn Rounds>, Box<dyn Peers>),
        promoted: Option<Sequence>,
        now: Instant,
    ) -> Result<Self, StreamFault> {
        let cluster = opened.storage.identity().map_err(in_log)?.cluster_id.0;
        let highest_epoch = opened.state.epoch();
        Ok(Self {
            opened,
            rounds,
            peers,
            name: name.to_owned(),
            cluster,
            created: None,
            promoted,
            position: Position(0),
            at_position: None,
            is_unproven: false,
            highest_epoch,
            heard: now,
            is_vacant: false,
            is_named: false,
            holds_back: false,
            is_at_end: false,
            was_away: false,
            claim: None,
            won: None,
            complaint: None,
        })
    }

    /// A ledger that has just handed over: it leads again only if nobody else does.
    pub(crate) fn holding_back(self) -> Self {
        Self { holds_back: true, ..self }
    }

    /// The epoch of the reign that it follows; 0 if it knows none.
    pub(crate) fn epoch(&self) -> u64 {
        self.opened.state.epoch()
    }

    /// Up to where its log has what the stream has; `None` if it has not found its place yet.
    pub(crate) fn place(&self) -> Option<Place> {
        self.created.map(|created| Place { created, position: self.position })
    }

    /// Whether everything that the stream had when it was looked at last is applied.
    pub(crate) fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// How many messages of the stream it has not applied yet; `None` if the stream cannot be asked.
    pub(crate) fn lag(&mut self) -> Option<u64> {
        let info = self.rounds.info().ok()?;
        (Some(info.created) == self.created).then(|| info.last.0.saturating_sub(self.position.0))
    }

    /// The end of this ledger's log.
    pub(crate) fn head(&self) -> Head {
        self.opened.head
    }

    /// The state at the end of this ledger's log.
    pub(crate) fn opened(&self) -> &Opened {
        &self.opened
    }

    /// The log and the state of the ledger that leads, and its reign; after [`Step::Leads`].
    pub(crate) fn lead(self) -> Result<(Opened, Reign, Box<dyn Peers>), Box<Self>> {
        match self.won {
            Some(Won { author, created, position, tried }) => {
                let reign = Reign::new(self.rounds, author, created, position, tried);
                Ok((self.opened, reign, self.peers))
            }
            None => Err(Box::new(self)),
        }
    }

    /// One message at most, waiting for it no longer than `wait`.
    ///
    /// # Errors
    /// The stream and this log do not belong together, or the log cannot be used: it must stop.
    pub(crate) fn step(&mut self, now: Instant, wall: Timestamp, wait: Duration) -> Result<Step, StreamFault> {
        if self.claim.is_some() {
            return self.pursue_claim(now);
        }
        if self.created.is_none() {
            return self.enter(now);
        }
        match self.rounds.next(self.position, wait) {
            Next::Message(position, message) => {
                self.is_at_end = false;
                self.came_back(now);
                self.follow(position, &message, now)
            }
            Next::Nothing => {
                self.is_at_end = true;
                self.came_back(now);
                self.perhaps_claim(now, wall)
            }
            Next::Gone { first } => {
                tracing::warn!(%first, "the stream begins later than this ledger's log ends: other ledgers are asked for what lies between");
                self.is_unproven = true;
                self.at_position = None;
                self.position = Position(first.0.saturating_sub(1));
                Ok(Step::GoOn)
            }
            Next::Strange(at, why) => Err(StreamFault::Damaged { at, why }),
            Next::Unreachable(why) => Ok(self.is_away(why)),
        }
    }

    /// When it may claim if it hears nothing.
    fn suspects_at(&self) -> Instant {
        let hash = blake3::hash(self.name.as_bytes());
        let [high, low, ..] = *hash.as_bytes();
        let share = u32::from(u16::from_be_bytes([high, low]));
        let spread = if self.is_named { Duration::ZERO } else { SPREAD * share / u32::from(u16::MAX) };
        let patience = if self.is_vacant && !self.holds_back { Duration::ZERO } else { LEASE + MARGIN };
        self.heard + patience + spread
    }

    /// A stream that comes back after an outage brings its leader back too: silence counts from here.
    fn came_back(&mut self, now: Instant) {
        self.complaint = None;
        if std::mem::take(&mut self.was_away) {
            self.heard = now;
        }
    }

    fn is_away(&mut self, why: String) -> Step {
        self.was_away = true;
        self.complain(why);
        Step::Wait(ASK_AGAIN_AFTER)
    }

    fn complain(&mut self, why: String) {
        if self.complaint.as_ref() != Some(&why) {
            tracing::warn!(why, "this ledger cannot follow at present");
            self.complaint = Some(why);
        }
    }

    /// Finds the place in the stream from which this log is continued.
    fn enter(&mut self, now: Instant) -> Result<Step, StreamFault> {
        let info = match self.rounds.info() {
            Ok(info) => info,
            Err(why) => return Ok(self.is_away(why)),
        };
        self.came_back(now);
        let place = self.opened.storage.log().and_then(|log| log.place()).map_err(in_log)?;
        let known = place.map(|place| place.created).or(self.opened.state.reign().map(|reign| reign.stream_created));
        match known {
            Some(known) if known != info.created => self.enter_another(info, known)?,
            _ => self.position = place.map_or(Position(0), |place| place.position),
        }
        self.created = Some(info.created);
        // Nobody can lead on a stream that never had a message.
        self.is_vacant = info.last == Position(0);
        Ok(Step::GoOn)
    }

    /// A stream of another time is followed if a person has let a ledger lead on it whose log continues this one: it
    /// begins with that ledger's claim. An empty one is followed if a person wants this ledger to lead on it.
    fn enter_another(&mut self, info: StreamInfo, known: Timestamp) -> Result<(), StreamFault> {
        let last = self.head().sequence;
        let is_promoted = self.promoted == Some(last) && info.last == Position(0);
        let begins_anew = matches!(
            self.rounds.next(Position(0), Duration::ZERO),
            Next::Message(_, RoundMessage { header: RoundHeader { kind: RoundKind::Claim, .. }, .. })
        );
        if !is_promoted && !begins_anew {
            return Err(StreamFault::AnotherStream { found: info.created, known, last });
        }
        tracing::warn!(created = %info.created, "the ledgers order their records in another stream now");
        self.position = Position(0);
        Ok(())
    }

    fn follow(&mut self, at: Position, message: &RoundMessage, now: Instant) -> Result<Step, StreamFault> {
        let header = &message.header;
        self.check(at, header)?;
        if self.is_void(header)? {
            tracing::warn!(ledger = header.ledger, epoch = header.epoch, "a claim that came too early is passed over");
        } else {
            if header.first > self.head().sequence.next() && !self.catch_up(at, header)? {
                return Ok(Step::Wait(ASK_AGAIN_AFTER));
            }
            self.take(at, message)?;
            self.is_unproven = false;
            let is_over = header.kind == RoundKind::Yield;
            self.is_named = is_over && message.body == self.name.as_bytes();
            self.is_vacant = is_over && (message.body.is_empty() || self.is_named);
            self.holds_back &= header.ledger == self.name;
        }
        self.at_position = Some(header.after);
        self.highest_epoch = self.highest_epoch.max(header.epoch);
        (self.position, self.heard) = (at, now);
        Ok(Step::GoOn)
    }

    fn check(&self, at: Position, header: &RoundHeader) -> Result<(), StreamFault> {
        if header.cluster != self.cluster {
            let [found, own] = [header.cluster, self.cluster].map(uuid::Uuid::from_bytes);
            return Err(StreamFault::AnotherCluster { found, own });
        }
        if header.feature_level > FEATURE_LEVEL {
            return Err(StreamFault::Newer { ledger: header.ledger.clone(), found: header.feature_level });
        }
        if header.first.0 == 0 || header.last.0.saturating_add(1) < header.first.0 || header.epoch == 0 {
            return Err(StreamFault::Damaged { at, why: "its records have impossible numbers".into() });
        }
        Ok(())
    }

    /// Whether it is a claim that was appended before everything in front of it had been applied. Nobody heeds it, not
    /// even the ledger that appended it. Everybody sees that in the same way: it continues an earlier record than the
    /// last one in front of it.
    fn is_void(&self, header: &RoundHeader) -> Result<bool, StreamFault> {
        let is_late = header.kind == RoundKind::Claim && header.first <= self.head().sequence && self.position.0 > 0;
        Ok(is_late
            && self.has(Sequence(header.first.0 - 1), &header.before)?
            && !self.has(header.first, &header.after)?)
    }

    /// Whether this log has a record with this hash. Of records that were archived nobody knows.
    fn has(&self, sequence: Sequence, hash: &Hash) -> Result<bool, StreamFault> {
        let head = self.head();
        if sequence == head.sequence {
            return Ok(head.hash == *hash);
        }
        match self.opened.storage.log().and_then(|log| log.hash_of(sequence)) {
            Ok(found) => Ok(found == *hash),
            Err(LogError::DamagedRecord { .. }) if sequence < head.sequence => Ok(true),
            Err(error) => Err(in_log(error)),
        }
    }

    fn another_history(&self, at: Position, header: &RoundHeader, what: impl Into<String>) -> StreamFault {
        let (ledger, epoch, last) = (header.ledger.clone(), header.epoch, self.head().sequence);
        StreamFault::AnotherHistory { at, ledger, epoch, last, what: what.into() }
    }

    /// Takes what this log does not have yet of a message that does not begin behind its end.
    fn take(&mut self, at: Position, message: &RoundMessage) -> Result<(), StreamFault> {
        let header = &message.header;
        let head = self.head();
        if !self.has(Sequence(header.first.0 - 1), &header.before)? {
            return Err(self.another_history(at, header, format!("record {} is another", header.first.0 - 1)));
        }
        if header.last < head.sequence || header.last == head.sequence && header.has_records() {
            return match self.has(header.last, &header.after)? {
                true => Ok(()),
                false => Err(self.another_history(at, header, format!("record {} is another", header.last))),
            };
        }
        self.check_reign(at, header)?;
        let has_nothing_for_the_log = message.body.is_empty() || header.kind == RoundKind::Yield;
        if has_nothing_for_the_log && !header.has_records() {
            return Ok(());
        }
        let damaged = |why: &str| StreamFault::Damaged { at, why: why.to_owned() };
        let body = Body::read(&message.body).ok_or_else(|| damaged("its body is cut short, or of another kind"))?;
        if body.records.len() as u64 != header.last.0 + 1 - header.first.0 {
            return Err(damaged("it has another number of records than it says"));
        }
        let known = usize::try_from(head.sequence.0 + 1 - header.first.0).unwrap_or(usize::MAX);
        let place = self.created.map(|created| Place { created, position: at });
        let epoch = Some(header.epoch);
        let new = Body { records: body.records.into_iter().skip(known).collect(), ..body };
        self.write(at, &new, epoch, Some(header.after), place, header)
    }

    /// Between two claims there is one leader, and claims have rising epochs.
    fn check_reign(&self, at: Position, header: &RoundHeader) -> Result<(), StreamFault> {
        let reign = self.opened.state.reign();
        if header.kind == RoundKind::Claim {
            return match header.epoch > self.opened.state.epoch() {
                true => Ok(()),
                false => Err(self.another_history(at, header, "its epoch is over")),
            };
        }
        match reign {
            Some(ReignInLog { epoch, ledger, .. }) if *epoch == header.epoch && *ledger == header.ledger => Ok(()),
            Some(ReignInLog { epoch, ledger, .. }) => {
                Err(self.another_history(at, header, format!("ledger {ledger} leads, in epoch {epoch}")))
            }
            None => Err(self.another_history(at, header, "no ledger leads")),
        }
    }

    /// Gets the records in front of a message from another ledger; returns whether that was possible.
    fn catch_up(&mut self, at: Position, header: &RoundHeader) -> Result<bool, StreamFault> {
        let before = Sequence(header.first.0 - 1);
        let others = self.whom_to_ask(header);
        while self.head().sequence < before {
            let from = self.head().sequence.next();
            let Some(page) = self.page_of_others(&others, from) else { return Ok(false) };
            let wanted = usize::try_from(before.0 + 1 - from.0).unwrap_or(usize::MAX);
            let damaged = || StreamFault::Damaged { at, why: "a page of the log before it is damaged".into() };
            let mut body = Body::read(&page).ok_or_else(damaged)?;
            body.records.truncate(wanted);
            self.write(at, &body, None, None, None, header)?;
        }
        match self.has(before, &header.before)? {
            true => Ok(true),
            false => Err(self.another_history(at, header, format!("record {before} is another"))),
        }
    }

    /// The ledgers that have what this one misses: who leads now, and who appended the message. It may have been this one
    /// itself, before its log was put back to an earlier state.
    fn whom_to_ask(&mut self, header: &RoundHeader) -> Vec<String> {
        let last = self.rounds.info().map_or(Position(0), |info| info.last);
        let leader = match self.rounds.next(Position(last.0.saturating_sub(1)), Duration::ZERO) {
            Next::Message(_, message) => Some(message.header.ledger),
            _ => None,
        };
        let mut others: Vec<String> = leader.into_iter().chain([header.ledger.clone()]).collect();
        others.dedup();
        others.retain(|name| *name != self.name);
        others
    }

    /// The records from a sequence on, of the first ledger that has any.
    fn page_of_others(&mut self, others: &[String], from: Sequence) -> Option<Bytes> {
        let mut why = "no other ledger is known that could have them".to_owned();
        for name in others {
            match self.peers.page(name, from) {
                Ok(page) if Body::read(&page).is_none_or(|body| !body.records.is_empty()) => return Some(page),
                Ok(_) => why = format!("ledger {name} has none"),
                Err(error) => why = error,
            }
        }
        self.complain(format!("records from {from} on are no longer in the stream: {why}"));
        None
    }

    /// Writes records and answers to this ledger's log, and then applies them.
    fn write(
        &mut self,
        at: Position,
        body: &Body<'_>,
        epoch: Option<u64>,
        after: Option<Hash>,
        place: Option<Place>,
        header: &RoundHeader,
    ) -> Result<(), StreamFault> {
        let log = self.opened.storage.log().map_err(in_log)?;
        let mut batch = log.batch(self.head());
        let damaged = |error: LogError| StreamFault::Damaged { at, why: error.to_string() };
        let mut records = Vec::with_capacity(body.records.len());
        for payload in &body.records {
            let record = batch.append_stored(payload).map_err(damaged)?;
            if epoch.is_some_and(|epoch| record.epoch != epoch) {
                return Err(self.another_history(at, header, format!("record {} has another epoch", record.sequence)));
            }
            records.push(record);
        }
        if after.is_some_and(|after| after != batch.head().hash) {
            return Err(self.another_history(at, header, "its records are not those that it names"));
        }
        for (command, value) in &body.answers {
            batch.remember_stored(*command, value).map_err(damaged)?;
        }
        for record in &records {
            apply(&mut self.opened, record, &mut batch).map_err(in_log)?;
        }
        for (of, number) in &body.done {
            batch.remove_notice(*of, *number);
        }
        let (mut sealed, _) = batch.seal();
        if let Some(place) = place {
            sealed.stand_at(&log, place);
        }
        self.opened.head = log.write(sealed).map_err(|(error, _)| in_log(error))?;
        Ok(())
    }

    /// Claims, if nobody leads any more as far as this ledger can tell, and its log is complete.
    fn perhaps_claim(&mut self, now: Instant, wall: Timestamp) -> Result<Step, StreamFault> {
        let due = self.suspects_at().saturating_duration_since(now);
        if !due.is_zero() {
            return Ok(Step::Wait(due));
        }
        let info = match self.rounds.info() {
            Ok(info) => info,
            Err(why) => return Ok(self.is_away(why)),
        };
        let known = self.created.unwrap_or(info.created);
        if info.created > known {
            return Err(StreamFault::AnotherStream { found: info.created, known, last: self.head().sequence });
        }
        if info.created < known {
            // An answer from before.
            return Ok(Step::Wait(ASK_AGAIN_AFTER));
        }
        if self.is_unproven {
            self.complain(format!(
                "messages have left the stream unread, and no ledger leads that could tell whether record {} is the last",
                self.head().sequence
            ));
            return Ok(Step::Wait(ASK_AGAIN_AFTER));
        }
        if info.last > self.position
            && let Next::Message(position, message) = self.rounds.next(self.position, Duration::ZERO)
        {
            // The first answer was old.
            return self.follow(position, &message, now);
        }
        if let Some(fault) = self.fault_at_end() {
            return Err(fault);
        }
        let after = self.position.max(info.last);
        self.claim = Some(self.make_claim(after, info.created, now, wall).map_err(in_log)?);
        self.pursue_claim(now)
    }

    /// Whether the stream has another message than the one that this log ends with.
    fn fault_at_end(&mut self) -> Option<StreamFault> {
        let position = self.position;
        let known = self.at_position.unwrap_or(self.head().hash);
        match self.rounds.next(Position(position.0.checked_sub(1)?), Duration::ZERO) {
            Next::Message(at, RoundMessage { header, .. }) if at == position && header.after != known => {
                Some(self.another_history(at, &header, "another message stood there before"))
            }
            _ => None,
        }
    }

    fn make_claim(
        &self,
        after: Position,
        stream_created: Timestamp,
        now: Instant,
        wall: Timestamp,
    ) -> Result<Claim, LogError> {
        let head = self.head();
        let author = self.author();
        let record = Record {
            sequence: head.sequence.next(),
            time: wall.max(head.time),
            actor: Arc::new(Actor::Ledger),
            command: CommandId::new_now(),
            trace: TraceContext::default(),
            event: Event::LedgerLeads { epoch: author.epoch, ledger: self.name.clone(), stream_created },
            epoch: author.epoch,
        };
        let log = self.opened.storage.log()?;
        let mut batch = log.batch(head).for_others();
        batch.append(&record, None)?;
        let (sealed, body) = batch.seal();
        let message = author.message(RoundKind::Claim, head, sealed.head(), body);
        Ok(Claim {
            in_flight: InFlight { message, sealed: Some(sealed), told: record, tried: now },
            after,
            stands: None,
        })
    }

    fn author(&self) -> Author {
        let epoch = self.highest_epoch.max(self.opened.state.epoch()) + 1;
        Author { cluster: self.cluster, ledger: self.name.clone(), epoch }
    }

    fn pursue_claim(&mut self, now: Instant) -> Result<Step, StreamFault> {
        let Some(mut claim) = self.claim.take() else { return Ok(Step::GoOn) };
        if claim.stands.is_none() {
            match self.rounds.append(claim.after, &claim.in_flight.message) {
                Outcome::Stands(position) => claim.stands = Some(position),
                Outcome::Beaten { last } if last > claim.after => {
                    self.heard = now;
                    return Ok(Step::GoOn);
                }
                // The stream ends before a place that it had, or an old answer says so.
                Outcome::Beaten { .. } | Outcome::Unknown(_) => return self.claim_again(claim, now),
            }
        }
        let Some(position) = claim.stands else { return Ok(Step::GoOn) };
        // Whether there was nothing unread in front of it, the stream tells only once the claim stands: who can read it
        // can read everything in front of it.
        if claim.after > self.position {
            match self.rounds.next(self.position, Duration::ZERO) {
                Next::Message(first, message) if first == position && message == claim.in_flight.message => {}
                // It came too early, or nobody can tell: this ledger follows what there is, its claim included.
                Next::Message(..) | Next::Gone { .. } => return Ok(Step::GoOn),
                _ => return self.claim_again(claim, now),
            }
        }
        self.begin_reign(claim, position)
    }

    fn claim_again(&mut self, claim: Claim, now: Instant) -> Result<Step, StreamFault> {
        if now.saturating_duration_since(claim.in_flight.tried) < GIVE_UP_AFTER {
            self.claim = Some(claim);
            return Ok(Step::Wait(TRY_AGAIN_AFTER));
        }
        self.heard = now;
        match self.rounds.info() {
            Ok(info) if Some(info.created) == self.created && info.last < self.position => {
                Err(StreamFault::LostItsEnd { found: info.last, known: self.position })
            }
            _ => Ok(Step::GoOn),
        }
    }

    fn begin_reign(&mut self, claim: Claim, position: Position) -> Result<Step, StreamFault> {
        let author = self.author();
        let InFlight { sealed, told: record, tried, .. } = claim.in_flight;
        let created = self.created.unwrap_or_default();
        let log = self.opened.storage.log().map_err(in_log)?;
        if let Some(mut sealed) = sealed {
            sealed.stand_at(&log, Place { created, position });
            self.opened.head = log.write(sealed).map_err(|(error, _)| in_log(error))?;
        }
        self.opened.state.apply(&record).map_err(|violation| in_log(LogError::Contradiction(violation)))?;
        tracing::info!(epoch = author.epoch, record = %record.sequence, "this ledger leads");
        self.won = Some(Won { author, created, position, tried });
        Ok(Step::Leads)
    }
}

/// Applies a record of another ledger, and adds what follows from it.
fn apply(opened: &mut Opened, record: &Record, batch: &mut Batch<'_>) -> Result<(), LogError> {
    opened.state.apply(record).map_err(LogError::Contradiction)?;
    if let Event::NotificationDone { of, notification, .. } = &record.event {
        batch.remove_notice(*of, *notification);
    }
    if let Event::PowerTold { order, .. } = &record.event {
        batch.remove_notice(*order, 0);
    }
    for item in notify::items(&opened.state, record) {
        let payload = codec::encode(&item).map_err(LogError::Unencodable)?;
        batch.add_notice(record.sequence, item.notification, &payload);
    }
    Ok(())
}

fn in_log(error: LogError) -> StreamFault {
    StreamFault::Log(error.to_string())
}
