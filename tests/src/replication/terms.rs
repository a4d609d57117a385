//! The terms of a simulation of several ledgers, and its results.

use super::stream::{BrokenPromise, Sabotage};
use muster_schemas::Timestamp;
use std::fmt;

pub(super) const SECOND: i64 = 1_000_000;
pub(super) const BEGIN: Timestamp = Timestamp::from_unix_seconds(1_000_000);

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

/// The events of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Commands that were acknowledged.
    pub acknowledged: u64,
    /// Reigns that began.
    pub reigns: u64,
    /// Reigns that were ended by their ledgers, which handed over.
    pub handed_over: u64,
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
        self.handed_over += other.handed_over;
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
    /// The fault.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, at_micros, what } = self;
        write!(f, "seed {seed}, after {} ms: {what}", at_micros / 1000)
    }
}
