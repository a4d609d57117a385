//! One of several ledgers, driven by hand like [`Stepped`].

use super::{Input, Output, Stepped};
use crate::{
    config::Config,
    lead::Ended,
    log::{Head, LogError},
    opened::Opened,
    replication::{Peers, Standby, Step},
    service,
    storage::StateAfter,
    tokens::JobTokens,
    work::refusal,
};
use muster_bus::rounds::Rounds;
use muster_domain::State;
use muster_schemas::{Sequence, Timestamp, command::RefusalCode};
use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

/// How often a standby looks at the stream.
const LOOK_EVERY: Duration = Duration::from_millis(30);
/// The most messages that a standby takes in one step.
const AT_A_TIME: usize = 64;

/// What a ledger does at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// It follows.
    Standby,
    /// It leads, in this epoch.
    Leader(u64),
    /// It has stopped, for this reason.
    Stopped(String),
}

enum Phase {
    Following(Box<Standby>),
    Leading(Box<Stepped>, Box<dyn Peers>),
    Stopped(String),
}

/// A ledger without threads and without a bus, on a stream of rounds.
pub struct Member {
    name: String,
    phase: Phase,
    /// A moment, and the monotonic time that belongs to it.
    origin: (Timestamp, Instant),
    wake: Timestamp,
}

impl Member {
    /// Opens a data folder, whose log has been begun, as a ledger of this name. `promoted` is the record up to which a
    /// person wants it to lead on an empty stream.
    ///
    /// # Errors
    /// As [`service::serve`](crate::serve), as far as it is about the folder.
    pub fn open(
        data_dir: &Path,
        name: &str,
        (rounds, peers): (Box<dyn Rounds>, Box<dyn Peers>),
        promoted: Option<Sequence>,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let config = Config { data_dir: data_dir.to_owned(), accept_log_end: true, ..Config::default() };
        let opened = service::open(&config, now)?;
        let origin = (now, Instant::now());
        let standby = Standby::new(opened, name, (rounds, peers), promoted, origin.1)?;
        let phase = Phase::Following(Box::new(standby));
        Ok(Self { name: name.to_owned(), phase, origin, wake: now })
    }

    /// What it does.
    pub fn role(&self) -> Role {
        match &self.phase {
            Phase::Following(_) => Role::Standby,
            Phase::Leading(stepped, _) => Role::Leader(stepped.engine().epoch()),
            Phase::Stopped(why) => Role::Stopped(why.clone()),
        }
    }

    /// One step at this time of its own clock: a round of decisions, or what the stream has brought.
    pub fn step(&mut self, inputs: Vec<Input>, now: Timestamp) -> Output {
        let monotonic = self.monotonic(now);
        self.wake = now.plus_micros(1_000_000);
        match &mut self.phase {
            Phase::Stopped(_) => Output::default(),
            Phase::Following(standby) => {
                let last = standby.head().sequence;
                let (step, wait) = follow(standby, now, monotonic);
                // Nothing wakes it when the stream brings something.
                let wait = wait.min(LOOK_EVERY);
                self.wake = now.plus_micros(i64::try_from(wait.as_micros()).unwrap_or(0));
                match step {
                    Ok(false) => {}
                    Ok(true) => self.lead(now, monotonic),
                    Err(why) => self.phase = Phase::Stopped(why),
                }
                refuse(inputs, last)
            }
            Phase::Leading(stepped, _) => {
                let output = stepped.round(inputs, now);
                self.wake = stepped.next_wake();
                if stepped.engine().is_over() || output.violation.is_some() {
                    self.step_down(now, monotonic);
                }
                output
            }
        }
    }

    /// When the next step is due although nothing arrives.
    pub fn next_wake(&self) -> Timestamp {
        self.wake
    }

    /// The end of the log that it names when it is asked; `None` if it may not answer.
    pub fn answer_head(&self, now: Timestamp) -> Option<Sequence> {
        match &self.phase {
            Phase::Leading(stepped, _) if stepped.engine().may_answer_reads(self.monotonic(now)) => {
                Some(stepped.head())
            }
            _ => None,
        }
    }

    /// The last record of its log, and its hash; of one that has stopped, the end of what is on disk.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn head(&self) -> Result<(Sequence, [u8; 32]), LogError> {
        let head = match &self.phase {
            Phase::Following(standby) => standby.head(),
            Phase::Leading(stepped, _) => stepped.storage.log()?.head()?,
            Phase::Stopped(_) => Head::EMPTY,
        };
        Ok((head.sequence, head.hash))
    }

    /// The digest of its state in memory, if it has one.
    pub fn state_digest(&self) -> Option<[u8; 32]> {
        match &self.phase {
            Phase::Following(standby) => Some(standby.opened().state.digest()),
            Phase::Leading(stepped, _) => Some(stepped.state_digest()),
            Phase::Stopped(_) => None,
        }
    }

    /// A page of its log for other ledgers.
    ///
    /// # Errors
    /// The log cannot be read, or the ledger has stopped.
    pub fn page_for_others(&self, from: Sequence, max_bytes: usize) -> Result<Vec<u8>, LogError> {
        let storage = match &self.phase {
            Phase::Following(standby) => &standby.opened().storage,
            Phase::Leading(stepped, _) => &stepped.storage,
            Phase::Stopped(_) => return Err(LogError::Closed),
        };
        storage.log()?.page_for_others(from, max_bytes)
    }

    /// Visits the stored bytes of all records: the hash of the record before, and the payload.
    ///
    /// # Errors
    /// The log cannot be read, or the ledger has stopped.
    pub fn each_stored(&self, mut visit: impl FnMut(&[u8])) -> Result<(), LogError> {
        let storage = match &self.phase {
            Phase::Following(standby) => &standby.opened().storage,
            Phase::Leading(stepped, _) => &stepped.storage,
            Phase::Stopped(_) => return Err(LogError::Closed),
        };
        let log = storage.log()?;
        let mut entries = log.entries(Sequence(1));
        while let Some(stored) = entries.next()? {
            visit(stored.value);
        }
        Ok(())
    }

    fn monotonic(&self, now: Timestamp) -> Instant {
        let (time, instant) = self.origin;
        instant + Duration::from_micros(u64::try_from(now.micros_since(time)).unwrap_or(0))
    }

    fn stop(&mut self, why: impl ToString) {
        self.phase = Phase::Stopped(why.to_string());
    }

    fn lead(&mut self, now: Timestamp, monotonic: Instant) {
        let before = std::mem::replace(&mut self.phase, Phase::Stopped("it changes its role".into()));
        let Phase::Following(standby) = before else { return };
        match standby.lead() {
            Ok((opened, reign, peers)) => {
                let mut stepped = Stepped::assemble(opened, Some(reign), now, monotonic);
                self.wake = stepped.next_wake();
                self.phase = Phase::Leading(Box::new(stepped), peers);
            }
            Err(standby) => self.phase = Phase::Following(standby),
        }
    }

    fn step_down(&mut self, now: Timestamp, monotonic: Instant) {
        let before = std::mem::replace(&mut self.phase, Phase::Stopped("it changes its role".into()));
        let Phase::Leading(stepped, peers) = before else { return };
        let storage = Arc::clone(&stepped.storage);
        let (rounds, hands_over) = match stepped.into_engine().end() {
            Ok((ended @ (Ended::SteppedDown | Ended::HandsOver(_) | Ended::Stopped), Some(rounds))) => {
                (rounds, matches!(ended, Ended::HandsOver(_)))
            }
            Ok((Ended::LogFailed(why), _)) => return self.stop(why),
            Ok((_, None)) => return self.stop("it had no stream"),
            Err(violation) => return self.stop(violation),
        };
        let opened = (|| {
            let head = storage.log()?.head()?;
            let StateAfter { state, .. } = storage.state_after(head.sequence)?;
            let signer = Arc::new(service::signer_of(&storage, &storage.identity()?)?);
            let tokens = Arc::new(JobTokens::new(&signer, None));
            anyhow::Ok(Opened { storage, signer, tokens, state, head })
        })();
        let standby = opened.and_then(|opened| Ok(Standby::new(opened, &self.name, (rounds, peers), None, monotonic)?));
        match standby {
            Ok(standby) if hands_over => self.phase = Phase::Following(Box::new(standby.holding_back())),
            Ok(standby) => self.phase = Phase::Following(Box::new(standby)),
            Err(why) => self.stop(format!("{why:#}")),
        }
        self.wake = now;
    }

    /// The state at the end of its log, computed from its records.
    ///
    /// # Errors
    /// The log cannot be read, or the ledger has stopped.
    pub fn replayed(&self) -> anyhow::Result<State> {
        let storage = match &self.phase {
            Phase::Following(standby) => &standby.opened().storage,
            Phase::Leading(stepped, _) => &stepped.storage,
            Phase::Stopped(why) => anyhow::bail!("{why}"),
        };
        let head = storage.log()?.head()?;
        Ok(storage.state_after(head.sequence)?.state)
    }
}

/// Takes what the stream has brought. Returns whether the ledger leads, or why it must stop, and when more is due.
fn follow(standby: &mut Standby, now: Timestamp, monotonic: Instant) -> (Result<bool, String>, Duration) {
    for _ in 0..AT_A_TIME {
        match standby.step(monotonic, now, Duration::ZERO) {
            Ok(Step::GoOn) => {}
            Ok(Step::Wait(wait)) => return (Ok(false), wait),
            Ok(Step::Leads) => return (Ok(true), Duration::ZERO),
            Err(fault) => return (Err(fault.to_string()), Duration::ZERO),
        }
    }
    (Ok(false), Duration::ZERO)
}

/// A standby takes no commands, and answers no reports.
fn refuse(inputs: Vec<Input>, last: Sequence) -> Output {
    let mut output = Output::default();
    for input in inputs {
        if let Input::Command(number, _) = input {
            output.answers.push((number, refusal(last, RefusalCode::Unavailable, "another ledger leads")));
        }
    }
    output
}
