//! `muster replay`: folds the log and repeats the planner's decisions.

use crate::{
    cli::{ConnectionOptions, ReplayOptions},
    exit::{CommandResult, Failure},
    policies, show,
    terminal::Progress,
};
use muster_domain::State;
use muster_ledger::storage::Storage;
use muster_planner::verify::{Verdict, Verifier};
use muster_schemas::{
    Sequence,
    event::{Event, Record},
};
use serde::Serialize;
use std::{collections::BTreeMap, path::Path, sync::Arc, time::Instant};

/// The maximum number of bytes of records in one request.
const PAGE_BYTES: u32 = 4 << 20;
/// The maximum number of different decisions that are printed.
const TOLD_DIFFERENCES: usize = 20;

/// The result of a replay.
#[derive(Serialize)]
struct Replayed {
    records: u64,
    digest: String,
    jobs: usize,
    seconds: f64,
    verified: bool,
    /// The repeated decisions, if they were asked for.
    decisions: Option<Verdict>,
}

/// Folds the log.
pub fn replay(connection: &ConnectionOptions, options: &ReplayOptions) -> CommandResult {
    let started = Instant::now();
    let mut replay = match &connection.server {
        Some(_) => replay_remote(connection, options)?,
        None => replay_folder(&connection.data_dir()?, options)?,
    };
    let result = Replayed {
        records: replay.state.sequence().0,
        digest: hex(&replay.state.digest()),
        jobs: replay.state.jobs().len(),
        seconds: started.elapsed().as_secs_f64(),
        verified: options.verify,
        decisions: replay.verifier.take().map(Verifier::finish),
    };
    if options.json {
        show::print_json(&result)?;
    } else {
        print(&result, &replay);
    }
    match &result.decisions {
        Some(verdict) if options.verify && verdict.differing > 0 => {
            Err(Failure::failed(format!("{} of the planner's decisions came out differently", verdict.differing)))
        }
        _ => Ok(0),
    }
}

fn print(result: &Replayed, replay: &Replay) {
    println!("{} records folded in {:.3} s; {} jobs in the state", result.records, result.seconds, result.jobs);
    println!("digest {}", result.digest);
    if result.verified && replay.is_local {
        println!(
            "{} checkpoints and the state of the newest snapshot have the digests of this replay",
            replay.compared
        );
    }
    let Some(verdict) = &result.decisions else { return };
    println!(
        "{} decisions of the planner made again: {} as recorded, {} different",
        verdict.decisions, verdict.equal, verdict.differing
    );
    if verdict.external > 0 {
        println!("{} plans of an external planner were not made again", verdict.external);
    }
    if verdict.out_of_reach > 0 {
        println!("{} plans were made from a state before the first record read", verdict.out_of_reach);
    }
    println!("digest of the decisions {}", verdict.digest);
    for difference in &verdict.differences {
        println!("{difference}");
    }
    let told = verdict.differences.len();
    if told == TOLD_DIFFERENCES {
        println!("only the first {told} differences are shown");
    }
}

/// A state being folded, with the digests that it must have.
#[derive(Default)]
struct Replay {
    state: State,
    is_local: bool,
    /// The number of checkpoints compared.
    compared: u64,
    /// Digests after the records that checkpoints can still name, newest last; empty unless verifying.
    expected: BTreeMap<Sequence, [u8; 32]>,
    verifier: Option<Verifier>,
}

impl Replay {
    /// Starts from a state, and repeats decisions if the options ask for it.
    fn from(state: State, options: &ReplayOptions) -> Result<Self, Failure> {
        let verifier = || Verifier::new(state.clone(), TOLD_DIFFERENCES);
        let verifier = match &options.against {
            Some(policy) => Some(verifier().against(Arc::new(policies::load(policy)?))),
            None => options.verify.then(verifier),
        };
        Ok(Self { verifier, state, ..Self::default() })
    }

    fn apply(&mut self, record: &Record) -> Result<(), Failure> {
        self.state.apply(record).map_err(|violation| Failure::failed(violation.to_string()))?;
        if let Some(verifier) = &mut self.verifier {
            verifier.read(record);
        }
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
    crate::roles::speak_when_libraries_give_up();
    let cannot = |error: &dyn std::fmt::Display| Failure::failed(error.to_string());
    let storage = Storage::open_read_only(data_dir).map_err(|error| cannot(&error))?;
    let head = storage.log().and_then(|log| log.head()).map_err(|error| cannot(&error))?.sequence;
    let last = Sequence(options.at_seq.unwrap_or(head.0).min(head.0));
    let state = match options.from_seq {
        None => State::default(),
        Some(from) if from > last.0 => {
            return Err(Failure::usage(format!("there is no record {from} to begin with: the last is {last}")));
        }
        Some(from) => storage.state_after(Sequence(from - 1)).map_err(|error| cannot(&error))?.state,
    };
    let first = state.sequence().next();
    let mut replay = Replay { is_local: true, ..Replay::from(state, options)? };
    if options.verify {
        replay.expected = signed_digests(&storage, first, last)?;
    }
    let mut progress = Progress::new();
    read(&storage, first, last, |record| {
        progress.show(|| format!("folded {} of {last} records", record.sequence));
        replay.apply(record)
    })?;
    if options.verify {
        let restored = storage.state_after(last).map_err(|error| cannot(&error))?.state;
        if restored.digest() != replay.state.digest() {
            return Err(Failure::failed("the state of the newest snapshot is not the one that the log leads to"));
        }
    }
    Ok(replay)
}

/// The digests that checkpoints up to `last` state for records from `first` on.
fn signed_digests(storage: &Storage, first: Sequence, last: Sequence) -> Result<BTreeMap<Sequence, [u8; 32]>, Failure> {
    let mut digests = BTreeMap::new();
    read(storage, first, last, |record| {
        if let Event::Checkpoint { of, state_digest, .. } = &record.event
            && *of >= first
        {
            digests.insert(*of, *state_digest);
        }
        Ok(())
    })?;
    Ok(digests)
}

fn read(
    storage: &Storage,
    first: Sequence,
    last: Sequence,
    mut visit: impl FnMut(&Record) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut failure = Ok(());
    let read = storage.read(first, last, |stored| {
        if failure.is_ok() {
            failure = visit(&stored.record()?);
        }
        Ok(())
    });
    read.map_err(|error| Failure::failed(error.to_string()))?;
    failure
}

/// A gateway only has records: digests are not compared, and the replay begins with the first record.
fn replay_remote(connection: &ConnectionOptions, options: &ReplayOptions) -> Result<Replay, Failure> {
    if options.from_seq.is_some() {
        return Err(Failure::usage("--from-seq needs the snapshots of the data folder: use it on the ledger's host"));
    }
    let mut client = connection.client()?;
    let mut replay = Replay::from(State::default(), options)?;
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
