//! The real ledger, stopped at the worst moments: its decide loop is driven by hand, and its log is in a real folder
//! whose last write is torn.

use super::{network::Parcel, node};
use muster_ledger::stepped::{Input, Stepped};
use muster_schemas::{
    Sequence, Timestamp, codec, command::Command, event::Record, filter::CallId, filter_order::FilterOrder,
};
use rand::{Rng, rngs::SmallRng};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};
use tempfile::TempDir;

/// Where a crash hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Crash {
    /// Commands have arrived and nothing is decided.
    BeforeTheWrite,
    /// The write is torn at some byte.
    InTheWrite,
    /// Everything is on disk, nobody has an answer.
    AfterTheWrite,
    /// Some have an answer.
    InTheAnswers,
}

impl Crash {
    /// A crash, now and then.
    pub(super) fn perhaps(random: &mut SmallRng) -> Option<Self> {
        (random.random_range(0..60) == 0).then(|| Self::any(random))
    }

    /// Any crash.
    pub(super) fn any(random: &mut SmallRng) -> Self {
        let all = [Self::BeforeTheWrite, Self::InTheWrite, Self::AfterTheWrite, Self::InTheAnswers];
        all[random.random_range(0..all.len())]
    }
}

/// A record as stored in the log.
#[derive(Debug)]
pub(super) struct StoredRecord {
    pub(super) record: Record,
    pub(super) previous_hash: [u8; 32],
    pub(super) hash: [u8; 32],
}

/// The result of a round.
#[derive(Debug, Default)]
pub(super) struct Round {
    pub(super) written: Vec<StoredRecord>,
    pub(super) state_digest: Option<[u8; 32]>,
    pub(super) parcels: Vec<Parcel>,
    /// Calls for the work queue of filters, by key.
    pub(super) calls: Vec<(String, FilterOrder)>,
    pub(super) torn: bool,
}

pub(super) struct LedgerHost {
    folder: TempDir,
    running: Option<Stepped>,
    inbox: Vec<Parcel>,
}

impl LedgerHost {
    /// A ledger on an empty folder. The folder is in memory if the system has such a place: the simulation needs the
    /// loss, not the wait.
    pub(super) fn new(now: Timestamp) -> Result<Self, String> {
        let memory = PathBuf::from("/dev/shm");
        let base = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let folder = tempfile::Builder::new().prefix("muster-simulation").tempdir_in(base).map_err(text)?;
        let mut host = Self { folder, running: None, inbox: Vec::new() };
        host.start(now)?;
        Ok(host)
    }

    pub(super) fn is_up(&self) -> bool {
        self.running.is_some()
    }

    /// Stops it between two rounds. Commands that have arrived are lost.
    pub(super) fn stop(&mut self) {
        self.running = None;
        self.inbox.clear();
    }

    /// Stops it, and copies its folder.
    pub(super) fn keep(&mut self, to: &Path) -> Result<(), String> {
        self.stop();
        crate::copy_folder(self.folder.path(), to).map_err(text)
    }

    /// The calls of filters that the next round decides on.
    pub(super) fn waiting_calls(&self) -> impl Iterator<Item = CallId> {
        let commands = self.inbox.iter().filter_map(|parcel| match parcel {
            Parcel::Command { envelope, .. } => Some(&envelope.command),
            _ => None,
        });
        commands.flat_map(|command| match command {
            Command::ClaimCalls { calls } => calls.iter().map(|(call, _)| *call).collect(),
            Command::ReportCalls { reports, .. } => reports.iter().map(|report| report.call).collect(),
            _ => Vec::new(),
        })
    }

    /// Starts it unless it is running; returns the contents of the log.
    pub(super) fn start(&mut self, now: Timestamp) -> Result<Vec<StoredRecord>, String> {
        if self.running.is_none() {
            self.running = Some(Stepped::open(self.folder.path(), now).map_err(text)?);
        }
        self.read_log()
    }

    pub(super) fn read_log(&self) -> Result<Vec<StoredRecord>, String> {
        let ledger = self.running.as_ref().ok_or("the ledger is not there")?;
        read(ledger, Sequence(1))
    }

    pub(super) fn next_wake(&mut self) -> Option<Timestamp> {
        Some(self.running.as_mut()?.next_wake())
    }

    /// Takes a parcel into the next round; returns whether a round has to be arranged.
    pub(super) fn takes(&mut self, parcel: Parcel) -> bool {
        if self.running.is_none() {
            return false;
        }
        self.inbox.push(parcel);
        self.inbox.len() == 1
    }

    /// One round of the decide loop; `None` if the ledger is stopped.
    pub(super) fn round(
        &mut self,
        now: Timestamp,
        crash: Option<Crash>,
        random: &mut SmallRng,
    ) -> Result<Option<Round>, String> {
        let Some(ledger) = &mut self.running else { return Ok(None) };
        let inbox = std::mem::take(&mut self.inbox);
        if crash == Some(Crash::BeforeTheWrite) {
            self.running = None;
            return Ok(Some(Round::default()));
        }
        let before = ledger.head();
        let log_bytes = wal_bytes(&self.folder)?;
        let mut round = Round { parcels: replays(ledger, &inbox)?, ..Round::default() };
        let output = ledger.round(inputs(&inbox), now);
        if let Some(violation) = output.violation {
            return Err(violation.to_string());
        }
        round.written = read(ledger, before.next())?;
        round.state_digest = Some(ledger.state_digest());
        round.calls = output.calls;
        round.parcels.extend(output.commits.into_iter().map(Parcel::Commit));
        round.parcels.extend(output.orders.into_iter().filter_map(|(name, order)| {
            Some(Parcel::Orders { node: node::number(&name)?, orders: Arc::new(vec![order]) })
        }));
        for (at, answer) in output.answers {
            if let Parcel::Command { from, envelope } = &inbox[at] {
                round.parcels.push(Parcel::Answer { to: *from, id: envelope.id, answer: Arc::new(answer) });
            }
        }
        for (at, briefing) in output.beats {
            if let Parcel::Heartbeat { node, .. } = inbox[at] {
                round.parcels.push(Parcel::Briefed { node, briefing: Arc::new(briefing) });
            }
        }
        if let Some(crash) = crash {
            self.crash(crash, log_bytes, &mut round, random)?;
        }
        Ok(Some(round))
    }

    fn crash(
        &mut self,
        crash: Crash,
        log_bytes_before: (PathBuf, u64),
        round: &mut Round,
        random: &mut SmallRng,
    ) -> Result<(), String> {
        self.running = None;
        let told = if crash == Crash::InTheAnswers { random.random_range(0..=round.parcels.len()) } else { 0 };
        round.parcels.truncate(told);
        round.calls.clear();
        if crash != Crash::InTheWrite {
            return Ok(());
        }
        let (file, before) = log_bytes_before;
        let (same_file, after) = wal_bytes(&self.folder)?;
        if file == same_file && after > before {
            let kept = random.random_range(before..after);
            fs::OpenOptions::new().write(true).open(&file).and_then(|file| file.set_len(kept)).map_err(text)?;
            round.torn = true;
        }
        Ok(())
    }
}

/// The newest write-ahead file of the log, and its length.
fn wal_bytes(folder: &TempDir) -> Result<(PathBuf, u64), String> {
    let log = folder.path().join("ledger/log");
    let mut files = Vec::new();
    for entry in fs::read_dir(&log).map_err(text)? {
        let path = entry.map_err(text)?.path();
        if path.extension().is_some_and(|extension| extension == "log") {
            files.push(path);
        }
    }
    let newest = files.into_iter().max().ok_or("the log has no write-ahead file")?;
    let bytes = fs::metadata(&newest).map_err(text)?.len();
    Ok((newest, bytes))
}

fn inputs(inbox: &[Parcel]) -> Vec<Input> {
    let input = |(at, parcel): (usize, &Parcel)| match parcel {
        Parcel::Command { envelope, .. } => Some(Input::Command(at, Box::new(envelope.as_ref().clone()))),
        Parcel::Heartbeat { heartbeat, .. } => Some(Input::Heartbeat(at, heartbeat.clone())),
        _ => None,
    };
    inbox.iter().enumerate().filter_map(input).collect()
}

/// Replays are read from the log as it is before the round.
fn replays(ledger: &Stepped, inbox: &[Parcel]) -> Result<Vec<Parcel>, String> {
    let mut parcels = Vec::new();
    for parcel in inbox {
        if let Parcel::WantsReplay { from } = parcel {
            let page = ledger.page(*from, 64 << 10).map_err(text)?;
            parcels.push(Parcel::Replay(Arc::new(page)));
        }
    }
    Ok(parcels)
}

fn read(ledger: &Stepped, from: Sequence) -> Result<Vec<StoredRecord>, String> {
    let mut records = Vec::new();
    let mut fault = None;
    ledger
        .each_stored(from, |stored| {
            let decoded = codec::decode::<Record>(&stored[32..]);
            match (decoded, stored.first_chunk::<32>()) {
                (Ok(record), Some(previous_hash)) => records.push(StoredRecord {
                    record,
                    previous_hash: *previous_hash,
                    hash: *blake3::hash(stored).as_bytes(),
                }),
                (Err(error), _) => fault = Some(error.to_string()),
                (_, None) => fault = Some("a record is shorter than a hash".into()),
            }
        })
        .map_err(text)?;
    fault.map_or(Ok(records), Err)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
