//! Several ledgers on a model of the stream of rounds, in one thread, under a seeded scheduler.
//!
//! The ledgers are the production code: decide loop, log in RocksDB, what follows and what claims. The stream is a model
//! that keeps JetStream's promises and has its faults: acknowledgements get lost, appends are stored later than they are
//! given up, reads are old, elections take four to nine seconds, renewals vanish, old messages are dropped. Ledgers stop,
//! pause, lose the stream, and come back with an old copy of their data. If it is asked to, the stream breaks its promises
//! too: it loses its end, or everything, or goes another way.
//!
//! After every step it checks that the stream has one line of reigns, that every ledger's log is a prefix of it, that
//! nothing is answered before it stands in both or while its fate is unknown, that whoever names the end of the log names
//! the real one, and that no command gets two answers. At the end the faults stop: all ledgers then have the same log, with
//! every acknowledged command in it once.

mod hosts;
mod stream;
mod truth;

pub use stream::{BrokenPromise, Sabotage};

use hosts::Hosts;
use muster_schemas::Timestamp;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::fmt;
use stream::{Shared, Stream};

const SECOND: i64 = 1_000_000;
const BEGIN: Timestamp = Timestamp::from_unix_seconds(1_000_000);

/// What happens in a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The simulated seconds with faults and new commands.
    pub troubled_seconds: i64,
    /// A promise that the stream breaks half-way.
    pub broken: Option<BrokenPromise>,
    /// A rule that is not kept, to see that the checks notice.
    pub sabotage: Option<Sabotage>,
}

impl Default for Options {
    fn default() -> Self {
        Self { troubled_seconds: 30, broken: None, sabotage: None }
    }
}

/// What has happened in a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Commands that were acknowledged.
    pub acknowledged: u64,
    /// Reigns that began.
    pub reigns: u64,
    /// Ledgers that were stopped.
    pub crashes: u64,
    /// Ledgers that stood still.
    pub pauses: u64,
    /// Elections of the stream's leader.
    pub elections: u64,
    /// Ledgers that came back with an old copy of their data.
    pub restored: u64,
    /// Pages that ledgers read from each other.
    pub pages: u64,
    /// Appends whose fate was unknown.
    pub unknown: u64,
    /// Answers to the question for the end of the log.
    pub reads: u64,
    /// Ledgers that had stopped with an alarm at the end.
    pub alarms: u64,
}

impl Report {
    /// Adds the report of another simulation.
    pub fn add(&mut self, other: Self) {
        self.acknowledged += other.acknowledged;
        self.reigns += other.reigns;
        self.crashes += other.crashes;
        self.pauses += other.pauses;
        self.elections += other.elections;
        self.restored += other.restored;
        self.pages += other.pages;
        self.unknown += other.unknown;
        self.reads += other.reads;
        self.alarms += other.alarms;
    }
}

/// A rule that was broken.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// Simulated microseconds from the beginning.
    pub at_micros: i64,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, at_micros, what } = self;
        write!(f, "seed {seed}, after {} ms: {what}", at_micros / 1000)
    }
}

/// Runs the simulation with a seed.
///
/// # Errors
/// The first rule that was broken.
pub fn run(seed: u64, options: Options) -> Result<Report, Failure> {
    let mut random = SmallRng::seed_from_u64(seed);
    let stream = Stream::new(BEGIN, SmallRng::seed_from_u64(random.random()), options.sabotage);
    let shared = Shared::new(stream);
    let failure = |at_micros, what| Failure { seed, at_micros, what };
    let mut hosts =
        Hosts::new(&shared, SmallRng::seed_from_u64(random.random()), options).map_err(|what| failure(0, what))?;
    let troubled_until = BEGIN.plus_micros(options.troubled_seconds * SECOND);
    let breaks_at = BEGIN.plus_micros(options.troubled_seconds * SECOND / 2);
    let mut now = BEGIN;
    let mut broken = options.broken;
    while now < troubled_until {
        now = now.plus_micros(random.random_range(1_000..25_000));
        if let Some(promise) = broken.filter(|_| now >= breaks_at) {
            hosts.note_broken(shared.with(|stream| stream.break_promise(promise, now)));
            broken = None;
        }
        hosts.trouble(now);
        hosts.step(now).map_err(|what| failure(now.micros_since(BEGIN), what))?;
    }
    hosts.calm_down(now).map_err(|what| failure(now.micros_since(BEGIN), what))?;
    // Longer than a doubt lasts, and an election and a lease after it.
    let end = now.plus_micros(50 * SECOND);
    while now < end {
        now = now.plus_micros(random.random_range(5_000..40_000));
        hosts.step(now).map_err(|what| failure(now.micros_since(BEGIN), what))?;
    }
    hosts.check_end().map_err(|what| failure(now.micros_since(BEGIN), what))
}
