//! A scheduling program with its cycles: triggers in, decisions out.

use crate::{
    basl::Basl,
    cycle::{Bounds, Cycle, Decision, Docket, End},
    cycles::{Begun, Cycles},
    external::External,
    policy_word::ProgramWord,
    program::Program,
    site::Site,
    tcl::{Files, Tcl},
    trigger::Command,
};
use jiff::tz::TimeZone;
use muster_basl::Globals;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Default of the print file (PBS-X-14).
pub const DEFAULT_PRINT_FILE: &str = "sched_out";

/// Where and how a program runs.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The folder of the scheduler. Other paths are below it unless they are absolute.
    pub folder: PathBuf,
    /// What takes the output of processes, as with `-p`.
    pub print: Option<PathBuf>,
    /// What a Tcl program runs at its end, as with `-t`.
    pub termination: Option<PathBuf>,
    /// The configuration of a BaSL program, as with `-c` (PBS-X-12).
    pub config: Option<PathBuf>,
    /// The zone of local times, such as `Europe/Zurich`; UTC if there is none.
    pub zone: Option<String>,
    /// Bounds of cycles and processes.
    pub bounds: Bounds,
    /// Globals of a BaSL program from its last cycle before a restart (PBS-X-07). Those that do not fit are dropped.
    pub globals: Option<Globals>,
}

impl Setup {
    /// A setup in a folder, with all defaults.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            print: Some(DEFAULT_PRINT_FILE.into()),
            termination: None,
            config: None,
            zone: None,
            bounds: Bounds::default(),
            globals: None,
        }
    }
}

/// The time of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hour {
    /// In seconds since 1970.
    pub now: i64,
    /// Whether it is prime time.
    pub is_prime: bool,
    /// Whether it is dedicated time.
    pub is_dedicated: bool,
}

impl Hour {
    /// Prime time.
    pub const fn prime(now: i64) -> Self {
        Self { now, is_prime: true, is_dedicated: false }
    }
}

/// What a cycle left. The decisions and the globals are what a log has to keep: a replay runs no program (PBS-X-25).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Report {
    /// Number and reasons.
    pub begun: Begun,
    /// Its time, in seconds since 1970.
    pub now: i64,
    /// Actions and answers, in order.
    pub decisions: Vec<Decision>,
    /// Jobs that were started.
    pub started: usize,
    /// Log lines.
    pub lines: Vec<String>,
    /// How it ended.
    pub end: End,
    /// Whether the program failed too often in a row: scheduling is off, and the caller stores that and tells operators
    /// (PBS-X-24).
    pub gave_up: bool,
    /// Globals of a BaSL program, to be stored with the end of the cycle.
    pub globals: Option<Globals>,
}

/// A program in force, and its cycles.
pub struct Scheduler {
    cycles: Cycles,
    program: Box<dyn Program>,
    bounds: Bounds,
    zone: TimeZone,
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduler").field("cycles", &self.cycles).finish_non_exhaustive()
    }
}

impl Scheduler {
    /// Puts a program in force.
    ///
    /// # Errors
    /// All reasons why it cannot be, such as mistakes in a BaSL program or that there is no tclsh.
    pub fn new(word: &ProgramWord, setup: Setup, cycles: Cycles, now: i64) -> Result<Self, Vec<String>> {
        let zone = match setup.zone.as_deref() {
            None => TimeZone::UTC,
            Some(name) => TimeZone::get(name).map_err(|_| vec![format!("there is no time zone {name}")])?,
        };
        if !setup.folder.is_dir() {
            return Err(vec![format!("{}: there is no such folder", setup.folder.display())]);
        }
        let Setup { folder, print, termination, config, zone: zone_name, bounds, globals } = setup;
        let program: Box<dyn Program> = match word {
            ProgramWord::Basl { file } => {
                let begun = Begun { seq: cycles.seq(), reason: Command::Configure, triggers: Vec::new() };
                let cycle = cycle_at(begun, Hour::prime(now), &zone);
                let config = config.map(|config| folder.join(config));
                Box::new(Basl::new(&folder.join(file), config, globals, &cycle)?)
            }
            ProgramWord::Tcl { body, init } => {
                let files = Files { folder, body: body.clone(), init: init.clone(), termination, print };
                Box::new(Tcl::new(files, zone_name, &bounds)?)
            }
            ProgramWord::External { command } => {
                Box::new(External::new(command.clone(), folder, print, zone_name, &bounds)?)
            }
        };
        Ok(Self { cycles, program, bounds, zone })
    }

    /// The cycles.
    pub const fn cycles(&self) -> &Cycles {
        &self.cycles
    }

    /// Notes a trigger (PBS-C-01).
    pub fn note(&mut self, trigger: Command) {
        self.cycles.note(trigger);
    }

    /// Sets `scheduling` (PBS-C-03). True also lets a program try again that failed too often.
    pub fn set_scheduling(&mut self, is_scheduling: bool) {
        if is_scheduling {
            self.program.forgive();
        }
        self.cycles.set_scheduling(is_scheduling);
    }

    /// Sets `schedule_iteration` (PBS-C-07).
    pub fn set_iteration(&mut self, seconds: u32) {
        self.cycles.set_iteration(seconds);
    }

    /// Sets the zone of local times by its name (PBS-T-07). A name that is none of a zone changes nothing.
    pub fn set_zone(&mut self, name: &str, now: i64) {
        let Some(zone) = TimeZone::get(name).ok().filter(|zone| *zone != self.zone) else { return };
        self.zone = zone;
        self.program.set_zone(name, now);
    }

    /// When [`Self::step`] will run a cycle, in seconds since 1970; `None` unless something happens before. A program
    /// that failed rests for a while, and its triggers wait.
    pub fn due(&self) -> Option<i64> {
        let due = self.cycles.due()?;
        Some(self.program.health().resting_until().map_or(due, |rested| due.max(rested)))
    }

    /// Runs a cycle, if one is due.
    pub fn step(&mut self, hour: Hour, site: &mut dyn Site) -> Option<Report> {
        if self.program.health().resting_until().is_some_and(|rested| hour.now < rested) {
            return None;
        }
        let begun = self.cycles.begin(hour.now)?;
        let cycle = cycle_at(begun, hour, &self.zone);
        let mut docket = Docket::new(site, &self.bounds);
        let end = self.program.cycle(&cycle, &mut docket);
        let started = docket.started();
        let (decisions, lines) = (std::mem::take(&mut docket.decisions), std::mem::take(&mut docket.lines));
        self.cycles.end(started);
        let gave_up = end.is_failure() && self.program.health().is_hopeless();
        if gave_up {
            self.cycles.set_scheduling(false);
        } else if end.is_failure() {
            // The cycle was not what its triggers asked for.
            cycle.begun.triggers.iter().for_each(|trigger| self.cycles.note(*trigger));
        }
        let globals = self.program.globals().cloned();
        let lines = lines.into_list();
        Some(Report { begun: cycle.begun, now: hour.now, decisions, started, lines, end, gave_up, globals })
    }

    /// Reads the files again, between two cycles (PBS-C-14).
    ///
    /// # Errors
    /// All mistakes. The old program continues.
    pub fn reload(&mut self, now: i64) -> Result<(), Vec<String>> {
        let begun = Begun { seq: self.cycles.seq(), reason: Command::Configure, triggers: Vec::new() };
        let cycle = cycle_at(begun, Hour::prime(now), &self.zone);
        self.program.reload(&cycle)
    }

    /// Goes on where an earlier planner was: with the number of the last cycle, and with the globals of a BaSL program as
    /// they were after it (PBS-X-07).
    pub fn resume(&mut self, last_seq: u64, globals: Option<Globals>) {
        self.cycles.resume(last_seq);
        if let Some(globals) = globals {
            self.program.resume(globals);
        }
    }

    /// The files that the program is made of, with the SHA-256 of each.
    pub fn sources(&self) -> Vec<(String, String)> {
        self.program.sources()
    }

    /// Answers what an external program says between two cycles. It does not wait.
    pub fn tend(&mut self) {
        self.program.tend();
    }

    /// Lets the program end.
    pub fn quit(mut self, now: i64) {
        self.program.quit(now);
    }
}

fn cycle_at(begun: Begun, hour: Hour, zone: &TimeZone) -> Cycle {
    let Hour { now, is_prime, is_dedicated } = hour;
    Cycle { begun, now, zone: zone.clone(), is_prime, is_dedicated }
}
