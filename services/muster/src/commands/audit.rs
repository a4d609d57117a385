//! `muster audit ...` and `muster replay`.

use crate::{
    cli::{AuditCommand, ConnectionOptions, ReplayOptions},
    exit::{CommandResult, Failure, Status},
    show,
    terminal::Progress,
};
use muster_domain::State;
use muster_ledger::{bundle::BundleError, storage::Storage};
use muster_schemas::{Sequence, event::Record};
use serde::Serialize;
use std::{path::Path, time::Instant};

/// At most so many bytes of records are asked for at a time.
const PAGE_BYTES: u32 = 4 << 20;

/// Verifies or exports the history.
pub fn run(connection: &ConnectionOptions, command: &AuditCommand) -> CommandResult {
    match command {
        AuditCommand::Verify { offline: true, json } => verify_folder(&connection.data_dir()?, *json),
        AuditCommand::Verify { offline: false, json } => verify_running(connection, *json),
        AuditCommand::Export { from, to, file } => export(&connection.data_dir()?, *from, *to, file),
    }
}

/// What a verification found.
#[derive(Serialize)]
struct Verdict {
    verified_to: Sequence,
    last: Sequence,
    checkpoints: u64,
    fault: Option<String>,
}

impl Verdict {
    fn tell(&self, json: bool) -> CommandResult {
        if json {
            show::print_json(self)?;
        }
        match &self.fault {
            Some(fault) => Err(Failure::failed(format!(
                "the history does not verify: after record {} of {}: {fault}",
                self.verified_to, self.last
            ))),
            None => {
                if !json {
                    println!(
                        "the history verifies: {} records in one chain, {} signed checkpoints, every digest reached again",
                        self.verified_to, self.checkpoints
                    );
                }
                Ok(0)
            }
        }
    }
}

fn verify_running(connection: &ConnectionOptions, json: bool) -> CommandResult {
    let mut progress = Progress::new();
    let report = connection.client()?.verify(Sequence(1), |report| {
        progress.show(|| format!("verified {} of {} records", report.to, report.head));
    })?;
    drop(progress);
    if !report.complete && report.fault.is_none() {
        return Err(Failure::failed(format!("the verification ended early, after record {}", report.to)));
    }
    let last = Sequence(report.head.0.max(report.to.0));
    Verdict { verified_to: report.to, last, checkpoints: report.checkpoints, fault: report.fault }.tell(json)
}

fn verify_folder(data_dir: &Path, json: bool) -> CommandResult {
    let mut progress = Progress::new();
    let report = muster_ledger::verify_folder(data_dir, |report| {
        progress.show(|| format!("verified {} of {} records", report.verified, report.last));
    });
    drop(progress);
    let report = report.map_err(|error| unreadable(&error))?;
    Verdict { verified_to: report.verified, last: report.last, checkpoints: report.checkpoints, fault: report.fault }
        .tell(json)
}

fn unreadable(error: &BundleError) -> Failure {
    Failure::failed(error.to_string())
}

fn export(data_dir: &Path, from: Option<u64>, to: Option<u64>, path: &Path) -> CommandResult {
    let cannot = |error: std::io::Error| Failure::failed(format!("cannot write {}: {error}", path.display()));
    let out = std::io::BufWriter::new(std::fs::File::create(path).map_err(cannot)?);
    let mut progress = Progress::new();
    let (first, last) = (Sequence(from.unwrap_or(1)), Sequence(to.unwrap_or(0)));
    let exported = muster_ledger::export(data_dir, first, last, out, |sequence| {
        progress.show(|| format!("exported up to record {sequence}"));
    });
    drop(progress);
    let exported = exported.map_err(|error| unreadable(&error))?;
    println!("wrote records {} to {} to {}", exported.first, exported.last, path.display());
    if !exported.signed {
        eprintln!("muster: the bundle is not signed: the cluster's key cannot be read");
    }
    println!("verify it with: ops/verify-bundle {}", path.display());
    Ok(0)
}

/// What a replay came to.
#[derive(Serialize)]
struct Replayed {
    records: u64,
    digest: String,
    jobs: usize,
    seconds: f64,
    verified: bool,
}

/// Folds the log from its beginning.
pub fn replay(connection: &ConnectionOptions, options: &ReplayOptions) -> CommandResult {
    let started = Instant::now();
    let replay = match &connection.server {
        Some(_) => replay_remote(connection, options)?,
        None => replay_folder(&connection.data_dir()?, options)?,
    };
    let result = Replayed {
        records: replay.state.sequence().0,
        digest: hex(&replay.state.digest()),
        jobs: replay.state.jobs().len(),
        seconds: started.elapsed().as_secs_f64(),
        verified: options.verify,
    };
    if options.json {
        show::print_json(&result)?;
        return Ok(0);
    }
    println!("{} records folded in {:.3} s; {} jobs in the state", result.records, result.seconds, result.jobs);
    println!("digest {}", result.digest);
    if options.verify {
        println!(
            "{} checkpoints and the state of the newest snapshot have the digests of this replay",
            replay.compared
        );
    }
    Ok(0)
}

/// A state that is being folded, with the digests that it must have had.
#[derive(Default)]
struct Replay {
    state: State,
    /// Checkpoints that were compared.
    compared: u64,
    /// Digests at the records that checkpoints can still name, newest last; empty unless verifying.
    expected: std::collections::BTreeMap<Sequence, [u8; 32]>,
}

impl Replay {
    fn apply(&mut self, record: &Record) -> Result<(), Failure> {
        self.state.apply(record);
        let Some(digest) = self.expected.remove(&record.sequence) else { return Ok(()) };
        if self.state.digest() != digest {
            let message = format!("the state after record {} is not the one that was signed", record.sequence);
            return Err(Failure::failed(message));
        }
        self.compared += 1;
        Ok(())
    }
}

fn replay_folder(data_dir: &Path, options: &ReplayOptions) -> Result<Replay, Failure> {
    let storage = Storage::open_read_only(data_dir).map_err(|error| Failure::failed(error.to_string()))?;
    let head = storage.log().and_then(|log| log.head()).map_err(|error| Failure::failed(error.to_string()))?.sequence;
    let last = Sequence(options.at_seq.unwrap_or(head.0).min(head.0));
    let mut replay = Replay::default();
    if options.verify {
        replay.expected = signed_digests(&storage, last)?;
    }
    let mut progress = Progress::new();
    read(&storage, last, |record| {
        progress.show(|| format!("folded {} of {last} records", record.sequence));
        replay.apply(record)
    })?;
    if options.verify {
        let restored = storage.state_after(last).map_err(|error| unreadable(&error))?.state;
        if restored.digest() != replay.state.digest() {
            return Err(Failure::failed("the state of the newest snapshot is not the one that the log leads to"));
        }
    }
    Ok(replay)
}

/// The digests that checkpoints up to a record state.
fn signed_digests(
    storage: &Storage,
    last: Sequence,
) -> Result<std::collections::BTreeMap<Sequence, [u8; 32]>, Failure> {
    let mut digests = std::collections::BTreeMap::new();
    read(storage, last, |record| {
        if let muster_schemas::event::Event::Checkpoint { of, state_digest, .. } = &record.event {
            digests.insert(*of, *state_digest);
        }
        Ok(())
    })?;
    Ok(digests)
}

fn read(
    storage: &Storage,
    last: Sequence,
    mut visit: impl FnMut(&Record) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut failure = Ok(());
    let read = storage.read(Sequence(1), last, |stored| {
        if failure.is_ok() {
            failure = visit(&stored.record()?);
        }
        Ok(())
    });
    read.map_err(|error| unreadable(&error))?;
    failure
}

fn replay_remote(connection: &ConnectionOptions, options: &ReplayOptions) -> Result<Replay, Failure> {
    if options.verify {
        let message = "--verify reads the data folder: use it on the ledger's host, or `muster audit verify`";
        return Err(Failure::new(Status::Usage, message));
    }
    let mut client = connection.client()?;
    let mut replay = Replay::default();
    let mut progress = Progress::new();
    loop {
        let page = client.records(replay.state.sequence().next(), PAGE_BYTES)?;
        if page.records.is_empty() {
            return Ok(replay);
        }
        for record in &page.records {
            if options.at_seq.is_some_and(|last| record.sequence.0 > last) {
                return Ok(replay);
            }
            replay.apply(record)?;
        }
        progress.show(|| format!("folded {} records", replay.state.sequence()));
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
