//! Verifying the log: that nobody altered, removed or inserted a record, that the checkpoints and the witness of the
//! end are signed by the cluster's key, that replaying the records gives the signed states, and that the indexes agree
//! with the records.

mod indexes;

use crate::{
    bundle::BundleError,
    log::{Hash, Head, Identity, Log, LogError, Stored, check_link},
    signing,
    storage::{StateAfter, Storage},
    witness::{self, Unsigned},
};
use indexes::Indexes;
use muster_domain::State;
use muster_schemas::{
    command::FaultKind,
    event::{Event, Record, SignatureBytes},
    ids::Sequence,
    time::Timestamp,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// The progress of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The last record that was found to be good.
    pub verified: Sequence,
    /// The last record there is.
    pub last: Sequence,
    /// Checkpoints whose signature and state were found to be right.
    pub checkpoints: u64,
    /// The records at the end that no signature covers; known once all are verified.
    pub unsigned: Unsigned,
    /// The first fault, if there is one.
    pub fault: Option<Fault>,
}

/// A fault that a verification found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of fault.
    pub kind: FaultKind,
    /// A description of the fault, for people.
    pub detail: String,
}

impl Fault {
    /// Something is contradictory.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self { kind: FaultKind::Invalid, detail: detail.into() }
    }

    /// Nothing is contradictory, but the proof is missing.
    pub fn unproven(detail: impl Into<String>) -> Self {
        Self { kind: FaultKind::Unproven, detail: detail.into() }
    }

    fn of(error: &BundleError) -> Self {
        Self { kind: kind_of(error), detail: error.to_string() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl Progress {
    /// Whether there is nothing more to do.
    pub fn is_complete(&self) -> bool {
        self.fault.is_some() || self.verified >= self.last
    }
}

/// A verification that can be continued.
pub struct Verification {
    identity: Identity,
    state: State,
    hash: Hash,
    time: Timestamp,
    checkpoints: u64,
    /// Signed records ahead, whose states have to be digested on the way.
    signed: BTreeSet<Sequence>,
    /// The hash and digest at records whose checkpoint follows later.
    passed: BTreeMap<Sequence, Found>,
    /// Pairs: from the first record on, the checkpoints up to the second were known.
    known: Vec<(Sequence, Sequence)>,
    /// Where it began: earlier signed states cannot be compared.
    began_after: Sequence,
    /// The last record with a correct checkpoint signature.
    signed_to: Sequence,
    indexes: Indexes,
}

struct Found {
    hash: Hash,
    digest: Hash,
}

impl Found {
    /// The hash and digest that replaying the log up to a record gives.
    fn by_replay(storage: &Storage, of: Sequence) -> Result<Self, String> {
        let StateAfter { state, hash } = storage.state_after(of).map_err(|error| error.to_string())?;
        Ok(Self { hash, digest: state.digest() })
    }
}

impl Verification {
    /// Begins with a record; 1 verifies everything, a later one trusts the state before it.
    ///
    /// # Errors
    /// If the state before it cannot be computed.
    pub fn begin(storage: &Storage, from: Sequence) -> Result<Self, BundleError> {
        let before = Sequence(from.0.saturating_sub(1));
        let StateAfter { state, hash } = storage.state_after(before)?;
        let mut verification = Self {
            identity: storage.identity()?,
            time: state.time(),
            state,
            hash,
            checkpoints: 0,
            signed: BTreeSet::new(),
            passed: BTreeMap::new(),
            known: Vec::new(),
            began_after: before,
            signed_to: Sequence(0),
            indexes: Indexes::new(before),
        };
        verification.look_ahead(storage)?;
        verification.note_if_signed(before);
        Ok(verification)
    }

    /// The last record that was found to be good.
    pub fn verified(&self) -> Sequence {
        self.state.sequence()
    }

    /// Checkpoints whose signature and state were found to be right.
    pub fn checkpoints(&self) -> u64 {
        self.checkpoints
    }

    /// Whether it began with a record, or before it.
    pub fn is_from(&self, first: Sequence) -> bool {
        self.began_after < first
    }

    /// The digest of the state after the last record that was found to be good.
    pub fn state_digest(&self) -> Hash {
        self.state.digest()
    }

    /// Verifies at most `max_records` more, and calls `progress` now and then.
    ///
    /// # Errors
    /// If the log cannot be read. Wrong contents are reported as a [`Progress::fault`] instead.
    pub fn advance(
        &mut self,
        storage: &Storage,
        max_records: u64,
        mut progress: impl FnMut(&Progress),
    ) -> Result<Progress, BundleError> {
        const REPORT_EVERY_RECORDS: u64 = 10_000;
        let log = storage.log()?;
        let head = log.head()?;
        let last = head.sequence;
        let to = Sequence(last.0.min(self.verified().0.saturating_add(max_records)));
        self.look_ahead(storage)?;
        if self.known.last().is_none_or(|(_, known_to)| *known_to < last) {
            self.known.push((self.verified().next(), last));
        }
        let read = storage.read(self.verified().next(), to, |stored| {
            self.check(storage, &log, head, stored)?;
            if stored.sequence.0.is_multiple_of(REPORT_EVERY_RECORDS) {
                progress(&self.progress(last, None));
            }
            Ok(())
        });
        let fault = match read {
            Err(error) if is_fault(&error) => Some(Fault::of(&error)),
            Err(error) => return Err(error),
            Ok(()) => None,
        };
        let mut progress = self.progress(last, fault);
        if progress.fault.is_none() && progress.is_complete() {
            match self.conclude(storage, &log, head) {
                Ok(unsigned) => {
                    progress.fault = unsigned.objection(self.time).map(Fault::unproven);
                    progress.unsigned = unsigned;
                }
                Err(error) if is_fault(&error) => progress.fault = Some(Fault::of(&error)),
                Err(error) => return Err(error),
            }
        }
        Ok(progress)
    }

    /// Checks what is outside the records: the witness, which has to belong to this log, and the indexes. Returns the
    /// records that no signature covers.
    fn conclude(&mut self, storage: &Storage, log: &Log, head: Head) -> Result<Unsigned, BundleError> {
        let witnessed = storage.witness()?.map_or(Sequence(0), |witness| witness.sequence);
        self.indexes.conclude(log, self.state.sequence(), head.time)?;
        Ok(witness::unsigned(log, witnessed.max(self.signed_to), self.verified())?)
    }

    fn progress(&self, last: Sequence, fault: Option<Fault>) -> Progress {
        let unsigned = Unsigned::default();
        Progress { verified: self.verified(), last, checkpoints: self.checkpoints, unsigned, fault }
    }

    /// Learns which states have been signed by now. A checkpoint missing here is later found to be a fault.
    fn look_ahead(&mut self, storage: &Storage) -> Result<(), BundleError> {
        let checkpoints = storage.log()?.checkpoints(self.verified())?;
        self.signed = checkpoints.into_iter().map(|(of, _)| of).collect();
        Ok(())
    }

    fn check(&mut self, storage: &Storage, log: &Log, head: Head, stored: &Stored<'_>) -> Result<(), BundleError> {
        check_link(stored, &self.hash)?;
        let record = stored.record()?;
        if record.time < self.time {
            let detail = format!("its time {} is earlier than that of the record before it", record.time);
            return Err(contradiction(&record, detail));
        }
        self.check_event(storage, &record).map_err(|detail| contradiction(&record, detail))?;
        self.indexes.pass(log, &record, head.time)?;
        self.state.apply(&record).map_err(|violation| contradiction(&record, violation.fault))?;
        (self.hash, self.time) = (stored.hash(), record.time);
        self.note_if_signed(record.sequence);
        Ok(())
    }

    fn check_event(&mut self, storage: &Storage, record: &Record) -> Result<(), String> {
        match &record.event {
            Event::ClusterInitialised { cluster_id, public_key } => {
                let found = Identity { cluster_id: *cluster_id, public_key: *public_key };
                if record.sequence != Sequence(1) || found != self.identity {
                    return Err("it begins another cluster's log".into());
                }
                Ok(())
            }
            Event::Checkpoint { of, state_digest, signature } => {
                let found = match self.passed.remove(of) {
                    Some(found) => found,
                    None if *of < self.began_after => return Ok(()),
                    None if self.is_late(*of, record.sequence) => Found::by_replay(storage, *of)?,
                    None => return Err(format!("it signs record {of}, which the index of checkpoints does not say")),
                };
                self.check_checkpoint(*of, &found, state_digest, signature)
            }
            _ => Ok(()),
        }
    }

    /// Whether a checkpoint did not exist yet when the record that it signs was passed: a running ledger signs earlier
    /// records.
    fn is_late(&self, of: Sequence, checkpoint: Sequence) -> bool {
        let known_to = self.known.iter().rfind(|(first, _)| *first <= of);
        known_to.is_none_or(|(_, known_to)| checkpoint > *known_to)
    }

    fn check_checkpoint(
        &mut self,
        of: Sequence,
        found: &Found,
        digest: &Hash,
        signature: &SignatureBytes,
    ) -> Result<(), String> {
        let text = signing::checkpoint_text(self.identity.cluster_id, of, &found.hash, digest);
        if !signing::is_signed(&self.identity.public_key, text.as_bytes(), signature) {
            return Err(format!("its signature of record {of} is not the cluster's"));
        }
        if found.digest != *digest {
            return Err(format!("replaying the log up to record {of} gives another state than the one signed"));
        }
        self.checkpoints += 1;
        self.signed_to = self.signed_to.max(of);
        Ok(())
    }

    fn note_if_signed(&mut self, sequence: Sequence) {
        if self.signed.remove(&sequence) {
            self.passed.insert(sequence, Found { hash: self.hash, digest: self.state.digest() });
        }
    }
}

/// A record with impossible contents.
fn contradiction(record: &Record, detail: String) -> BundleError {
    LogError::DamagedRecord { sequence: record.sequence, detail }.into()
}

/// Whether an error means that the log is wrong, rather than unreadable at present.
fn is_fault(error: &BundleError) -> bool {
    kind_of(error) == FaultKind::Invalid || matches!(error, BundleError::Log(LogError::Damaged { .. }))
}

/// What an error means for the history: it was altered, or it cannot be read.
pub fn kind_of(error: &BundleError) -> FaultKind {
    match error {
        BundleError::Malformed { .. }
        | BundleError::Log(
            LogError::DamagedRecord { .. }
            | LogError::OtherForm { .. }
            | LogError::Index { .. }
            | LogError::Witness { .. },
        ) => FaultKind::Invalid,
        BundleError::Log(_) | BundleError::Io(_) | BundleError::NoSuchRange { .. } | BundleError::Unverified { .. } => {
            FaultKind::Damaged
        }
    }
}

/// Verifies a whole data folder, even while a ledger is running, and calls `progress` now and then.
///
/// # Errors
/// If the log cannot be opened or read.
pub fn verify_folder(data_dir: &std::path::Path, progress: impl FnMut(&Progress)) -> Result<Progress, BundleError> {
    let storage = Storage::open_read_only(data_dir)?;
    Verification::begin(&storage, Sequence(1))?.advance(&storage, u64::MAX, progress)
}
