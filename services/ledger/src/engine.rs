//! The decide loop: one thread that decides every command, and the only one that writes the log.
//!
//! It takes the commands that have arrived, decides each against the state in memory, writes the records of all of
//! them as one batch, syncs once, and only then answers. Commands that arrive during the sync are the next batch.
//!
//! Later commands of a batch see the effects of earlier ones, so the state runs ahead of the disk within a round. If
//! writing fails, the whole round is refused; then the log is reopened, the remains of the failed batch are removed,
//! and the state is computed from disk. Until that succeeds every command is refused.
//!
//! If it leads other ledgers, a round is appended to their stream first, then written and synced, then answered.

use crate::{
    beats::{Beats, Waiting},
    calls::{self, Offers},
    clock::Clock,
    dispatch::{self, ReplyToNode},
    lead::{Ended, Lead, Standing, fits_into_message},
    limits::{self, TemplateLimits},
    liveness::Liveness,
    log::{Added, Batch, CommandKey, Fingerprint, Hash, Head, Log, LogError, Remembered},
    metrics::Metrics,
    opened::Opened,
    outbox::Outlets,
    refusals::{self, Refusals},
    replication::{InFlight, ROUND_BYTES, Reign, TRY_AGAIN_AFTER},
    runners::{self, Runners},
    signing::{self, Signer},
    storage::{StateAfter, Storage},
    work::{ReplyTo, Work, own, refusal},
};
use muster_bus::rounds::Rounds;
use muster_domain::{
    Decision, State,
    nodes::Violation,
    orders::{self, OrderSeed, Sketches},
};
use muster_schemas::{
    codec,
    command::{Answer, Command, CommandEnvelope, Refusal, RefusalCode},
    event::{Actor, Commit, Event, Record, TraceContext},
    ids::{CommandId, JobId, NodeId, PartId, Sequence},
    node::{Briefing, Heartbeat, Mark},
    time::Timestamp,
};
use muster_telemetry::trace;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};
use tracing::Span;

/// The most commands in one round, so that an answer never waits for very many others.
const MAX_ROUND: usize = 4096;
/// The most reports of nodes that are answered in one round: commands come first.
const MAX_ROUND_BEATS: usize = 512;
/// A round takes no more commands after this many bytes of records.
const MAX_ROUND_BYTES: usize = 16 << 20;
/// The pause between attempts to reopen a broken log.
const RETRY_STORAGE_AFTER: Duration = Duration::from_secs(1);
/// The loop looks at its timers at least this often: the system's clock can be set forward meanwhile.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);
/// A due timer whose tick changes nothing is not tried again before this.
const SHORTEST_TICK: Duration = Duration::from_millis(10);
/// The time to the next tick after one that did nothing.
const IDLE_TICK: Duration = Duration::from_millis(100);

/// What a command leads to: [`muster_domain::decide_owned`], but for tests.
pub(crate) type Decide = fn(&State, &Actor, Command, Timestamp) -> Result<Decision, Refusal>;

/// What records say about where they come from.
struct AskedBy {
    actor: Arc<Actor>,
    command: CommandId,
    trace: TraceContext,
}

/// An answer that leaves once the round is on disk.
enum Pending {
    Answer(ReplyTo<Answer>, Answer),
    /// Its orders follow from the state at the end of the round: the node, and the parts that it reported.
    Hello(ReplyTo<Answer>, Sequence, NodeId, Vec<PartId>),
    Heartbeat(ReplyTo<Briefing>, NodeId, Vec<PartId>),
    Unknown(ReplyTo<Briefing>),
    Digest(ReplyTo<(Sequence, Hash)>),
}

enum Health {
    Good,
    /// Writing failed: the error, possible remains of the batch, and when to try again.
    Failed {
        detail: String,
        added: Added,
        retry_at: Instant,
    },
}

/// One round of decisions, before it is on disk.
struct Round<'log> {
    log: &'log Log,
    batch: Batch<'log>,
    now: Timestamp,
    bytes: usize,
    /// With this many bytes of records it takes no more commands.
    most_bytes: usize,
    records: Vec<Record>,
    answers: HashMap<CommandKey, Remembered>,
    pending: Vec<Pending>,
    orders: Vec<(NodeId, OrderSeed)>,
    /// Jobs whose call became outstanding, or is offered again.
    calls: Vec<JobId>,
    notices: bool,
    /// One for each record of a job, from its decision until it is on disk. Empty while spans are not exported.
    spans: Vec<Span>,
}

/// The news for others, told once a round is durable.
struct News {
    records: Vec<Record>,
    pending: Vec<Pending>,
    orders: Vec<(NodeId, OrderSeed)>,
    calls: Vec<JobId>,
    notices: bool,
    spans: Vec<Span>,
}

/// The loop and its books.
pub(crate) struct Engine {
    storage: Arc<Storage>,
    signer: Arc<Signer>,
    limits: Arc<dyn TemplateLimits>,
    state: State,
    head: Head,
    clock: Clock,
    /// When this ledger began, which tells its marks from those of other ledgers.
    session: Timestamp,
    beats: Arc<Beats>,
    liveness: Liveness,
    runners: Runners,
    refusals: Refusals,
    offers: Offers,
    outlets: Outlets,
    metrics: Metrics,
    health: Health,
    /// Why nothing is written any more, if it is so.
    violation: Option<Violation>,
    decide: Decide,
    tick_not_before: Instant,
    is_stopping: bool,
    /// The epoch that records and orders carry; 0 as long as there was only one ledger.
    epoch: u64,
    /// None if this is the only ledger.
    lead: Option<Box<Lead<News>>>,
}

impl Engine {
    /// A loop that continues after the end of the log.
    pub(crate) fn new(
        opened: Opened,
        limits: Arc<dyn TemplateLimits>,
        mut clock: Clock,
        outlets: Outlets,
        beats: Arc<Beats>,
    ) -> Self {
        let Opened { storage, signer, state, head, .. } = opened;
        let epoch = state.epoch();
        let (now, session) = (clock.monotonic(), clock.now());
        let liveness = Liveness::new(now);
        let (runners, offers) = (Runners::new(now, head.time), Offers::new(now));
        let metrics = Metrics::new();
        Self {
            storage,
            signer,
            limits,
            state,
            head,
            clock,
            session,
            beats,
            liveness,
            runners,
            refusals: Refusals::default(),
            offers,
            outlets,
            metrics,
            health: Health::Good,
            violation: None,
            decide: muster_domain::decide_owned,
            tick_not_before: now,
            is_stopping: false,
            epoch,
            lead: None,
        }
    }

    /// Decides until told to stop, or until nobody can ask any longer.
    ///
    /// # Errors
    /// It has decided something that cannot be true.
    pub(crate) fn run(mut self, inbox: &Receiver<Work>) -> Result<(Ended, Option<Box<dyn Rounds>>), Violation> {
        loop {
            let first = match inbox.recv_timeout(self.sleep()) {
                Ok(work) => Some(work),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Work::Stop),
            };
            if self.serve(first, inbox) {
                return self.end();
            }
        }
    }

    /// Leads other ledgers.
    pub(crate) fn leading(mut self, reign: Reign) -> Self {
        self.epoch = reign.epoch();
        self.lead = Some(Box::new(Lead::new(reign)));
        self
    }

    /// Why the loop has ended, and the stream if there is one.
    pub(crate) fn end(self) -> Result<(Ended, Option<Box<dyn Rounds>>), Violation> {
        let Self { lead, violation, head, .. } = self;
        let (ended, rounds) = match lead {
            Some(lead) => {
                let (ended, rounds) = lead.end(head);
                (ended, Some(rounds))
            }
            None => (Ended::Stopped, None),
        };
        violation.map_or(Ok((ended, rounds)), Err)
    }

    /// Whether this ledger may answer at this time what needs no append.
    pub(crate) fn may_answer_reads(&self, now: Instant) -> bool {
        self.lead.as_ref().is_none_or(|lead| lead.holds(now))
    }

    /// The epoch of its records and orders.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// One round at a time set by hand, with the contents of the inbox and the reports of nodes.
    pub(crate) fn step(&mut self, inbox: &Receiver<Work>, beats: Vec<Waiting>, now: Timestamp) {
        if self.violation.is_some() {
            return;
        }
        self.clock.set(now);
        for (beat, reply) in beats {
            self.beats.arrive(beat, reply, self.clock.monotonic());
        }
        let first = inbox.try_recv().ok();
        self.serve(first, inbox);
    }

    /// When the next round is due even if nothing arrives; see [`Engine::sleep`].
    pub(crate) fn next_wake(&mut self) -> Timestamp {
        let sleep = self.sleep();
        self.clock.now().plus_micros(i64::try_from(sleep.as_micros()).unwrap_or(i64::MAX))
    }

    /// Lets a test decide what commands lead to.
    #[cfg(test)]
    pub(crate) fn decide_by(&mut self, decide: Decide) {
        self.decide = decide;
    }

    /// Why it writes nothing any more, if it is so.
    pub(crate) fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// The digest of the state in memory.
    pub(crate) fn state_digest(&self) -> [u8; 32] {
        self.state.digest()
    }

    /// How long there is nothing to do unless something arrives.
    fn sleep(&mut self) -> Duration {
        let now = self.clock.monotonic();
        if let Some(lead) = &self.lead {
            if lead.is_in_doubt() {
                return TRY_AGAIN_AFTER;
            }
            if lead.is_withholding() {
                // The waiting is done where the answer comes.
                return Duration::ZERO;
            }
            if lead.has_parked() {
                return Duration::ZERO;
            }
        }
        if let Health::Failed { retry_at, .. } = &self.health {
            return retry_at.saturating_duration_since(now);
        }
        if self.beats.is_waiting() {
            return Duration::ZERO;
        }
        let mut sleep = LONGEST_SLEEP.min(self.liveness.next_check().saturating_duration_since(now));
        if let Some(lead) = &self.lead {
            sleep = sleep.min(lead.next_proof().saturating_duration_since(now));
        }
        if self.state.outstanding_calls().next().is_some() {
            sleep = sleep.min(self.offers.next_look().saturating_duration_since(now));
        }
        if let Some(timer) = self.state.next_timer() {
            let until = u64::try_from(timer.micros_since(self.clock.now())).unwrap_or(0);
            let not_before = self.tick_not_before.saturating_duration_since(now);
            sleep = sleep.min(Duration::from_micros(until).max(not_before));
        }
        sleep
    }

    /// One round; returns whether it was the last.
    fn serve(&mut self, first: Option<Work>, inbox: &Receiver<Work>) -> bool {
        let Some(first) = self.settle_doubt(first, inbox) else { return self.is_over() };
        if !self.is_healthy() {
            return self.refuse(first);
        }
        let log = match self.storage.log() {
            Ok(log) => log,
            Err(error) => {
                self.fail(&error, Added::nothing_after(self.head.sequence));
                return self.refuse(first);
            }
        };
        let now = self.clock.now();
        let mut round = Round::new(&log, self.head, now, self.lead.is_some());
        match self.fill(first, inbox, &mut round) {
            Ok(()) => self.finish(round),
            Err(error) => {
                let Round { batch, pending, .. } = round;
                let added = batch.abandon();
                self.refuse_all(pending, &Refusal::new(RefusalCode::StorageFailed, error.to_string()));
                match error {
                    LogError::Contradiction(violation) => self.give_up(violation),
                    error => self.fail(&error, added),
                }
            }
        }
        self.prove_lead();
        self.is_over()
    }

    /// Whether the loop must end.
    pub(crate) fn is_over(&self) -> bool {
        let lead = self.lead.as_ref();
        lead.is_some_and(|lead| lead.is_over()) || self.is_stopping && !lead.is_some_and(|lead| lead.is_in_doubt())
    }

    /// Tries to find out whether the last round stands, if that is unknown. Returns what comes next, or `None` if nothing
    /// may be decided now: what arrives meanwhile waits.
    fn settle_doubt(&mut self, first: Option<Work>, inbox: &Receiver<Work>) -> Option<Option<Work>> {
        let Some(lead) = &mut self.lead else { return Some(first) };
        let (now, last) = (self.clock.monotonic(), self.head.sequence);
        if !lead.is_in_doubt() && !lead.is_withholding() && !lead.is_over() && !lead.has_parked() {
            return Some(first);
        }
        let is_told_to_stop = lead.park(first, inbox, last) || self.is_stopping;
        if lead.is_in_doubt() {
            let in_flight = lead.take_doubt(now, is_told_to_stop)?;
            self.send(in_flight);
        }
        self.tell_withheld(is_told_to_stop);
        let lead = self.lead.as_mut()?;
        let may_decide = !lead.is_in_doubt() && !lead.is_withholding() && !lead.is_over() && !self.is_stopping;
        may_decide.then(|| lead.next_parked())
    }

    /// Tells what has waited for a ledger that follows; until then this ledger shows that it leads, and does nothing else.
    fn tell_withheld(&mut self, is_told_to_stop: bool) {
        let now = self.clock.monotonic();
        let Some(lead) = self.lead.as_mut().filter(|lead| lead.is_withholding() && !lead.is_in_doubt()) else { return };
        match lead.take_withheld(now, is_told_to_stop) {
            Some(news) => self.tell_round(news),
            None => self.prove_lead(),
        }
    }

    /// Shows that this ledger still leads, if it was idle for long enough.
    fn prove_lead(&mut self) {
        let Some(lead) = &self.lead else { return };
        let now = self.clock.monotonic();
        if lead.is_in_doubt() || lead.is_over() || self.is_stopping || now < lead.next_proof() {
            return;
        }
        let proof = lead.prepare(self.head, None, News::nothing(), now);
        self.send(proof);
    }

    /// Appends a round to the stream, then writes it to the log, then tells of it.
    fn send(&mut self, in_flight: InFlight<News>) {
        let started = Instant::now();
        let Some(Standing { sealed, place, news }) = self.lead.as_mut().and_then(|lead| lead.send(in_flight)) else {
            return;
        };
        if let Some(mut sealed) = sealed {
            let written = self.storage.log().and_then(|log| {
                sealed.stand_at(&log, place);
                log.write(sealed).map_err(|(error, _)| error)
            });
            match written {
                Ok(head) => self.head = head,
                Err(error) => {
                    tracing::error!(%error, "a round stands in the stream and cannot be written to the log");
                    return self.give_up_lead(Ended::LogFailed(error.to_string()));
                }
            }
        }
        if !news.records.is_empty() {
            self.metrics.committed(news.records.len(), started.elapsed());
        }
        let now = self.clock.monotonic();
        let told = match &mut self.lead {
            // What waits comes first.
            Some(lead) if lead.is_withholding() => None,
            Some(lead) if !news.records.is_empty() => lead.unless_withheld(place, news, now),
            _ => Some(news),
        };
        if let Some(news) = told {
            self.tell_round(news);
        }
    }

    /// Tells of a round of one of several ledgers, and hands over if it says so.
    fn tell_round(&mut self, news: News) {
        let successor = news.records.iter().rev().find_map(|record| match &record.event {
            Event::LedgerHandsOver { to, .. } => Some(to.clone()),
            _ => None,
        });
        self.tell(news, None);
        if let Some(to) = successor {
            tracing::info!(to, "this ledger hands over");
            self.give_up_lead(Ended::HandsOver(to));
        }
    }

    fn give_up_lead(&mut self, ended: Ended) {
        if let Some(lead) = &mut self.lead {
            lead.give_up(ended);
        }
    }

    /// Decides what has arrived. After an error the state cannot be trusted.
    fn fill(&mut self, first: Option<Work>, inbox: &Receiver<Work>, round: &mut Round<'_>) -> Result<(), LogError> {
        let mut next = first;
        let mut taken = 0;
        while let Some(work) = next {
            taken += 1;
            match work {
                Work::Stop => {
                    self.is_stopping = true;
                    return self.last_words(round);
                }
                Work::Command(envelope, reply) => self.command(*envelope, reply, round)?,
                // Reports are looked at once the commands are decided.
                Work::Beats => {}
                Work::RunnerBeat(heartbeat, reply) => {
                    self.runners.beat(&heartbeat, self.clock.monotonic(), round.now);
                    if self.may_answer_reads(self.clock.monotonic()) {
                        reply(runners::briefing(&self.state, &heartbeat.calls));
                    }
                }
                Work::Digest(reply) => round.pending.push(Pending::Digest(reply)),
            }
            let is_full = taken >= MAX_ROUND || round.bytes >= round.most_bytes;
            next = if is_full {
                None
            } else {
                self.lead.as_mut().and_then(|lead| lead.next_parked()).or_else(|| inbox.try_recv().ok())
            };
        }
        for (beat, reply) in self.beats.take(MAX_ROUND_BEATS) {
            self.heartbeat(beat, reply, round)?;
        }
        self.own_commands(round)
    }

    fn command(
        &mut self,
        mut envelope: CommandEnvelope,
        reply: ReplyTo<Answer>,
        round: &mut Round<'_>,
    ) -> Result<(), LogError> {
        self.heed_runner(&mut envelope, round.now);
        self.heed_mark(&mut envelope.command);
        let key = CommandKey::new(&envelope.actor, envelope.id);
        let earlier = match round.answers.get(&key) {
            Some(known) => Ok(Some(known.clone())),
            None => round.log.answer(&key),
        };
        match earlier {
            Ok(Some(known)) => {
                let is_retry = known.fingerprint == Fingerprint::of(&envelope.actor, &envelope.command);
                let answer = if is_retry { known.answer } else { self.other_command() };
                round.pending.push(Pending::Answer(reply, answer));
            }
            Ok(None) => {
                let hello = self.hello(&envelope);
                // Whoever sent the command that breaks a round is refused with all others of the round.
                let (answer, broken) = match self.decide(envelope, round) {
                    Ok(answer) => (answer, Ok(())),
                    Err(error) => {
                        let answer = refusal(self.head.sequence, RefusalCode::StorageFailed, error.to_string());
                        (answer, Err(error))
                    }
                };
                round.pending.push(match hello {
                    Some((node, runs)) if answer.result.is_ok() => Pending::Hello(reply, answer.sequence, node, runs),
                    _ => Pending::Answer(reply, answer),
                });
                return broken;
            }
            Err(error) => {
                tracing::error!(%error, command = %envelope.id, "cannot tell whether a command is a retry");
                let answer = refusal(self.head.sequence, RefusalCode::StorageFailed, error.to_string());
                round.pending.push(Pending::Answer(reply, answer));
            }
        }
        Ok(())
    }

    /// The answer to a command whose id was used for another one.
    fn other_command(&self) -> Answer {
        let message = "the key of this command was used for another one before, and nothing was done: a retry says the \
                       same as the first try, and a new command has a new key";
        refusal(self.head.sequence, RefusalCode::Conflict, message)
    }

    /// Notes that a runner that claims or reports calls is alive, and adds whether there are others, which only the
    /// ledger knows.
    fn heed_runner(&mut self, envelope: &mut CommandEnvelope, time: Timestamp) {
        let Actor::Runner(name) = &envelope.actor else { return };
        let now = self.clock.monotonic();
        self.runners.acted(name, now, time);
        if let Command::ReportCalls { has_others, .. } = &mut envelope.command {
            *has_others = self.runners.has_others(name, now);
        }
    }

    /// A mark that another ledger gave says nothing about the records of this one.
    fn heed_mark(&self, command: &mut Command) {
        if let Command::NodeHello { as_of, .. } = command {
            *as_of = self.own_mark(*as_of);
        }
    }

    fn own_mark(&self, mark: Option<Mark>) -> Option<Mark> {
        mark.filter(|mark| mark.session == self.session)
    }

    /// Notes that a node is alive. The answer to a greeting lists the node's orders, which are known at the end of the
    /// round.
    fn hello(&mut self, envelope: &CommandEnvelope) -> Option<(NodeId, Vec<PartId>)> {
        let Actor::Executor(name) = &envelope.actor else { return None };
        let node = self.state.node_by_name(name)?.id;
        // These come also from a node whose executor hangs.
        if !matches!(envelope.command, Command::NodeLoadMeasured { .. } | Command::NoteRefusal { .. }) {
            self.liveness.heard(node, self.clock.monotonic());
        }
        match &envelope.command {
            Command::NodeHello { parts, .. } => Some((node, parts.clone())),
            _ => None,
        }
    }

    /// A heartbeat of a node that is up costs no record. From any other node, or from one that remembers more than the
    /// log or has forgotten what it started, it counts as a greeting.
    fn heartbeat(
        &mut self,
        heartbeat: Heartbeat,
        reply: ReplyTo<Briefing>,
        round: &mut Round<'_>,
    ) -> Result<(), LogError> {
        let Heartbeat { node: name, boot_id, parts, highest_run, as_of } = heartbeat;
        let as_of = self.own_mark(as_of);
        let Some(node) = self.state.node_by_name(&name) else {
            tracing::debug!(node = name, "a node that is not configured reports");
            round.pending.push(Pending::Unknown(reply));
            return Ok(());
        };
        let id = node.id;
        let has_forgotten = as_of.is_some_and(|mark| orders::has_forgotten(&self.state, id, &parts, mark.sequence));
        let is_known = dispatch::is_up(node, &boot_id) && highest_run < Some(self.state.next_run()) && !has_forgotten;
        if !is_known {
            let command = Command::NodeHello { boot_id, parts: parts.clone(), highest_run, as_of };
            let envelope = CommandEnvelope {
                id: CommandId::new_now(),
                actor: Actor::Executor(name),
                trace: TraceContext::default(),
                command,
            };
            self.decide(envelope, round)?;
        }
        round.pending.push(Pending::Heartbeat(reply, id, parts));
        Ok(())
    }

    /// The ledger's own commands: for due timers, silent nodes, and missing runners.
    fn own_commands(&mut self, round: &mut Round<'_>) -> Result<(), LogError> {
        let now = self.clock.monotonic();
        let may_tick = now >= self.tick_not_before;
        if may_tick && self.state.next_timer().is_some_and(|timer| timer <= round.now) {
            let before = self.state.sequence();
            self.decide(own(Command::Tick), round)?;
            // A timer that was due by the last record's time may not be due any more.
            let has_done_something = self.state.sequence() > before;
            self.tick_not_before = now + if has_done_something { SHORTEST_TICK } else { IDLE_TICK };
        }
        for (node, reason) in self.liveness.silent(&self.state, &self.beats, now) {
            self.decide(own(Command::NodeSilent { node, reason }), round)?;
        }
        let lost = self.runners.lost_calls(&self.state, now);
        if !lost.is_empty() {
            self.decide(own(Command::CallsLost { calls: lost }), round)?;
        }
        if let Some(since) = self.runners.missing(&self.state, now, round.now) {
            self.decide(own(Command::RunnersMissing { since }), round)?;
        }
        Ok(())
    }

    /// The checkpoint of a clean stop, unless the last record is one that signs everything before it.
    fn last_words(&mut self, round: &mut Round<'_>) -> Result<(), LogError> {
        let Head { sequence, hash, .. } = round.batch.head();
        match round.last_event()? {
            None => return Ok(()),
            Some(Event::Checkpoint { of, .. }) if of.next() == sequence => return Ok(()),
            Some(_) => {}
        }
        let Some(cluster) = self.state.cluster() else { return Ok(()) };
        let cluster_id = muster_schemas::event::uuid_bytes::UuidBytes(cluster.cluster_id);
        let state_digest = self.state.digest();
        let text = signing::checkpoint_text(cluster_id, sequence, &hash, &state_digest);
        let signature = self.signer.sign(text.as_bytes());
        self.decide(own(Command::Checkpoint { of: sequence, state_digest, signature }), round).map(drop)
    }

    /// Decides one command and applies its events. After an error the state cannot be trusted.
    fn decide(&mut self, envelope: CommandEnvelope, round: &mut Round<'_>) -> Result<Answer, LogError> {
        let CommandEnvelope { id, actor, trace, command } = envelope;
        if let Command::NotificationDone { of, notification, .. } = &command {
            round.batch.remove_notice(*of, *notification);
        }
        let audited = refusals::audited(&command);
        let noted = refusals::noted(&command);
        let (fingerprint, is_note) = (Fingerprint::of(&actor, &command), noted.is_some());
        // The log of a ledger that has no others now may have the reigns of those that it had.
        let leads_nobody = self.lead.is_none() && matches!(command, Command::HandOver { .. });
        let decision = (self.decide)(&self.state, &actor, command, round.now);
        let decision = decision.and_then(|decision| if leads_nobody { Err(without_others()) } else { Ok(decision) });
        let decision = decision.and_then(|decision| {
            limits::check(&*self.limits, &self.state, &actor, &decision.events)?;
            if self.lead.is_some() && actor != Actor::Ledger {
                fits_into_message(&decision.events)?;
            }
            Ok(decision)
        });
        let asked_by = AskedBy { actor: Arc::new(actor), command: id, trace };
        let now = self.clock.monotonic();
        let (result, events) = match decision {
            Err(refusal) => {
                let told = audited.and_then(|what| self.refusals.record(&asked_by.actor, what, &refusal, now));
                (Err(refusal), Vec::from_iter(told))
            }
            Ok(mut decision) => {
                let told = noted.and_then(|(what, why)| self.refusals.record(&asked_by.actor, &what, &why, now));
                decision.events.extend(told);
                (Ok(decision.reply), decision.events)
            }
        };
        let has_events = !events.is_empty();
        for event in events {
            self.record(event, &asked_by, round)?;
        }
        let answer = Answer { sequence: round.batch.head().sequence, result };
        // Commands that changed nothing and do not come from a person can be decided again, as can a note that the log
        // has enough of.
        if has_events || matches!(*asked_by.actor, Actor::User(_)) && !is_note {
            let key = CommandKey::new(&asked_by.actor, id);
            let remembered = Remembered { fingerprint, answer: answer.clone() };
            round.batch.remember(key, round.now, &remembered)?;
            round.answers.insert(key, remembered);
        }
        Ok(answer)
    }

    fn record(&mut self, event: Event, asked_by: &AskedBy, round: &mut Round<'_>) -> Result<(), LogError> {
        let job = event.job();
        let sequence = round.batch.head().sequence.next();
        let trace = round.span(sequence, job, &event, self.trace_of(job, asked_by.trace));
        let record = Record {
            sequence,
            time: round.now,
            actor: Arc::clone(&asked_by.actor),
            command: asked_by.command,
            trace,
            event,
            epoch: self.epoch,
        };
        round.bytes += round.batch.append(&record, job)?;
        self.state.apply(&record).map_err(LogError::Contradiction)?;
        round.orders.extend(orders::follow_up(&self.state, &record));
        round.calls.extend(calls::offered(&self.state, &record));
        for item in muster_domain::notify::items(&self.state, &record) {
            let payload = codec::encode(&item).map_err(LogError::Unencodable)?;
            round.batch.add_notice(record.sequence, item.notification, &payload);
            round.notices = true;
        }
        round.records.push(record);
        Ok(())
    }

    /// One job is one trace: its records belong to the trace that it was submitted in. A command of the same trace is
    /// the nearer parent. A task that starts for the first time is not yet a separate job: its array is.
    fn trace_of(&self, job: Option<JobId>, of_command: TraceContext) -> TraceContext {
        let job = job.and_then(|job| self.state.job(job).or_else(|| self.state.job(job.whole())));
        match job.map(|job| job.trace).filter(TraceContext::is_some) {
            Some(of_job) if of_job.trace_id != of_command.trace_id => of_job,
            _ => of_command,
        }
    }

    /// Makes the round durable, then answers, then publishes.
    fn finish(&mut self, round: Round<'_>) {
        let Round { batch, records, pending, orders, calls, notices, spans, .. } = round;
        let news = News { records, pending, orders, calls, notices, spans };
        if let Some(lead) = &self.lead {
            let now = self.clock.monotonic();
            if batch.is_empty() && (news.is_nothing() || lead.holds(now)) {
                let objection = self.outlets.objection();
                return self.tell(news, objection);
            }
            // Without a commit, a proof that this ledger leads: what it answers is then true.
            let commit = (!batch.is_empty()).then(|| batch.seal());
            let in_flight = lead.prepare(self.head, commit, news, now);
            return self.send(in_flight);
        }
        if !batch.is_empty() {
            let started = Instant::now();
            match batch.commit() {
                Ok(head) => self.head = head,
                Err((error, added)) => {
                    self.refuse_all(news.pending, &Refusal::new(RefusalCode::StorageFailed, error.to_string()));
                    self.fail(&error, added);
                    return;
                }
            }
            self.metrics.committed(news.records.len(), started.elapsed());
        }
        // A round of a ledger that may have a rival is in this log; whether it is in the one that counts is unknown, so
        // it is not acknowledged.
        let objection = self.outlets.objection();
        self.tell(news, objection);
    }

    /// Answers, and publishes, what is durable.
    fn tell(&mut self, news: News, objection: Option<Refusal>) {
        let News { records, pending, orders, calls, notices, spans } = news;
        drop(spans);
        // Before the answers: a client that has one and asks for the end of the log must not be told an earlier one.
        self.outlets.durable(self.head);
        let mut sketches = Sketches::new(&self.state);
        match objection {
            None => pending.into_iter().for_each(|answer| self.answer(answer, &mut sketches)),
            Some(refusal) => self.refuse_all(pending, &refusal),
        }
        let sketch = |(node, seed)| Some((Arc::clone(&self.state.node(node)?.spec), sketches.sketch(node, seed)?));
        self.outlets.orders.order(orders.into_iter().filter_map(sketch).collect());
        self.offer_calls(calls);
        if records.is_empty() {
            return;
        }
        self.outlets.committed(&Arc::new(Commit { records }), notices);
    }

    /// Puts calls into their queues: those that this round offered, and those that are in no queue.
    fn offer_calls(&mut self, mut offered: Vec<JobId>) {
        let now = self.clock.monotonic();
        // A received job waits for its check until the next record begins its chain: only the last call is real.
        offered.sort_unstable();
        offered.dedup();
        offered.into_iter().for_each(|job| self.offer_call(job, now));
        if now < self.offers.next_look() {
            return;
        }
        self.metrics.calls_wait(self.state.unclaimed_calls().count());
        let is_free = self.runners.is_one_free(now);
        let overdue = self.offers.overdue(&self.state, is_free, self.outlets.losses(), now);
        overdue.into_iter().for_each(|job| self.offer_call(job, now));
    }

    fn offer_call(&mut self, job: JobId, now: Instant) {
        let Some(offer) = self.offers.offer(&self.state, job, now) else { return };
        if !self.outlets.call(offer) {
            self.offers.forget(job);
        }
    }

    fn answer(&self, pending: Pending, sketches: &mut Sketches<'_>) {
        match pending {
            Pending::Answer(reply, answer) => reply(answer),
            Pending::Unknown(reply) => reply(Briefing { epoch: self.epoch, ..Briefing::default() }),
            Pending::Digest(reply) => reply((self.head.sequence, self.state.digest())),
            Pending::Heartbeat(reply, node, parts) => {
                self.brief(ReplyToNode::Heartbeat(reply), node, &parts, sketches);
            }
            Pending::Hello(reply, sequence, node, parts) => {
                self.brief(ReplyToNode::Greeting(reply, sequence), node, &parts, sketches);
            }
        }
    }

    /// Answers a report of a node from the state on disk. Mostly there is nothing to do; otherwise the order writer
    /// answers.
    fn brief(&self, reply: ReplyToNode, node: NodeId, parts: &[PartId], sketches: &mut Sketches<'_>) {
        let mark = Mark { session: self.session, sequence: self.head.sequence };
        let seeds = orders::reconcile(&self.state, node, parts);
        let orders: Vec<_> = seeds.into_iter().filter_map(|seed| sketches.sketch(node, seed)).collect();
        match self.state.node(node).filter(|_| !orders.is_empty()) {
            Some(node) => self.outlets.orders.brief(reply, Arc::clone(&node.spec), mark, orders),
            None => reply.brief(Briefing { mark: Some(mark), epoch: self.epoch, ..Briefing::default() }),
        }
    }

    fn is_healthy(&mut self) -> bool {
        let Health::Failed { detail, retry_at, added } = &self.health else { return true };
        if self.clock.monotonic() < *retry_at {
            return false;
        }
        match recover(&self.storage, self.head, added) {
            Ok(state) => {
                tracing::info!("the log can be written again");
                self.state = state;
                self.health = Health::Good;
                true
            }
            Err(error) => {
                tracing::warn!(%error, first = detail, "the log cannot be written yet");
                let added = added.clone();
                let detail = error.to_string();
                self.health = Health::Failed { detail, added, retry_at: self.clock.monotonic() + RETRY_STORAGE_AFTER };
                false
            }
        }
    }

    /// What was decided cannot be true: nothing of the round is written, and nothing after it.
    fn give_up(&mut self, violation: Violation) {
        tracing::error!(%violation, "the ledger stops: it has decided something that cannot be true, and has not written it");
        self.violation = Some(violation);
        self.is_stopping = true;
    }

    fn fail(&mut self, error: &LogError, added: Added) {
        if self.lead.is_some() {
            tracing::error!(%error, "the log cannot be used: another ledger has to lead");
            return self.give_up_lead(Ended::LogFailed(error.to_string()));
        }
        tracing::error!(%error, "the log cannot be written: every command is refused until it can");
        let retry_at = self.clock.monotonic() + RETRY_STORAGE_AFTER;
        self.health = Health::Failed { detail: error.to_string(), added, retry_at };
    }

    /// Refuses a command while the log is broken; returns whether the loop must end.
    fn refuse(&self, work: Option<Work>) -> bool {
        let Health::Failed { detail, .. } = &self.health else { return false };
        match work {
            Some(Work::Command(_, reply)) => {
                reply(refusal(self.head.sequence, RefusalCode::StorageFailed, detail.clone()));
                false
            }
            Some(Work::Stop) => true,
            // Without a reply the executor sends its next heartbeat when it is due.
            Some(Work::Beats | Work::RunnerBeat(..) | Work::Digest(..)) | None => false,
        }
    }

    /// Heartbeats get no answer: nodes send the next one when it is due.
    fn refuse_all(&self, pending: Vec<Pending>, refusal: &Refusal) {
        for pending in pending {
            if let Pending::Answer(reply, _) | Pending::Hello(reply, ..) = pending {
                reply(Answer { sequence: self.head.sequence, result: Err(refusal.clone()) });
            }
        }
    }
}

/// The answer of a ledger that is alone to a command that only one of several can obey.
fn without_others() -> Refusal {
    Refusal::new(
        RefusalCode::Conflict,
        "this ledger has no others that it could hand over to (`replication` is `alone`)",
    )
}

impl News {
    fn nothing() -> Self {
        let (records, pending, orders, calls) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { records, pending, orders, calls, notices: false, spans: Vec::new() }
    }

    fn is_nothing(&self) -> bool {
        self.pending.is_empty() && self.calls.is_empty() && self.orders.is_empty()
    }
}

impl<'log> Round<'log> {
    fn new(log: &'log Log, head: Head, now: Timestamp, leads_others: bool) -> Self {
        let (batch, most_bytes) = match leads_others {
            false => (log.batch(head), MAX_ROUND_BYTES),
            true => (log.batch(head).for_others(), ROUND_BYTES),
        };
        Self {
            log,
            batch,
            now,
            bytes: 0,
            most_bytes,
            records: Vec::new(),
            answers: HashMap::new(),
            pending: Vec::new(),
            orders: Vec::new(),
            calls: Vec::new(),
            notices: false,
            spans: Vec::new(),
        }
    }

    /// Opens a span for a record, and returns the context for what follows from it.
    fn span(&mut self, sequence: Sequence, job: Option<JobId>, event: &Event, trace: TraceContext) -> TraceContext {
        let Some(job) = job else { return trace };
        let (kind, verb) = event.kind_verb();
        tracing::debug!(%job, %sequence, "{kind} {verb}");
        let span = trace::in_trace(tracing::debug_span!("record", %job, %sequence, kind, verb), trace);
        let context = trace::context_of(&span, trace);
        if !span.is_disabled() {
            self.spans.push(span);
        }
        context
    }

    /// The last event, in this round or before it.
    fn last_event(&self) -> Result<Option<Event>, LogError> {
        if let Some(record) = self.records.last() {
            return Ok(Some(record.event.clone()));
        }
        Ok(self.log.record(self.batch.head().sequence)?.map(|record| record.event))
    }
}

/// Reopens the log, removes the remains of a failed batch, and computes the state at `head`.
fn recover(storage: &Storage, head: Head, added: &Added) -> Result<State, LogError> {
    let log = storage.reopen()?;
    log.take_back(added)?;
    let found = log.head()?;
    drop(log);
    let lost = |detail: String| LogError::Damaged { folder: storage.layout().log(), detail };
    if found != head {
        return Err(lost(format!("it ends at record {}, and not at {}", found.sequence, head.sequence)));
    }
    let StateAfter { state, .. } = storage.state_after(head.sequence).map_err(|error| lost(error.to_string()))?;
    Ok(state)
}
