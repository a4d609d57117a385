//! When cycles run: triggers in, cycles out (PBS-C-01 to PBS-C-07). Time is an input, in seconds since 1970.

use crate::trigger::{Command, IN_ORDER};
use serde::{Deserialize, Serialize};

/// Default of `schedule_iteration` in seconds (PBS-C-07).
pub const DEFAULT_ITERATION_SECONDS: u32 = 600;

/// Which cycle comes next, and when. At most one runs at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycles {
    is_scheduling: bool,
    iteration_seconds: u32,
    pending: Triggers,
    is_running: bool,
    /// Start of the previous cycle.
    last_start: Option<i64>,
    /// Number of the previous cycle.
    seq: u64,
}

/// A cycle that begins.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Begun {
    /// The cycle's number; numbers grow by one.
    pub seq: u64,
    /// The reason that a program is told.
    pub reason: Command,
    /// All triggers that it answers, in the order of precedence.
    pub triggers: Vec<Command>,
}

/// A set of triggers, by their places in the order of precedence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Triggers([bool; IN_ORDER.len()]);

impl Triggers {
    fn add(&mut self, trigger: Command) {
        for (is_in, known) in self.0.iter_mut().zip(IN_ORDER) {
            *is_in |= known == trigger;
        }
    }

    fn list(self) -> Vec<Command> {
        self.0.into_iter().zip(IN_ORDER).filter_map(|(is_in, trigger)| is_in.then_some(trigger)).collect()
    }

    fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl Cycles {
    /// The server comes up: if scheduling is on, a FIRST cycle is due. The number is that of the last cycle before.
    pub fn new(is_scheduling: bool, last_seq: u64) -> Self {
        let mut cycles = Self {
            is_scheduling,
            iteration_seconds: DEFAULT_ITERATION_SECONDS,
            pending: Triggers::default(),
            is_running: false,
            last_start: None,
            seq: last_seq,
        };
        cycles.note(Command::First);
        cycles
    }

    /// Goes on with the number of the last cycle before.
    pub fn resume(&mut self, last_seq: u64) {
        self.seq = self.seq.max(last_seq);
    }

    /// Whether cycles run.
    pub const fn is_scheduling(&self) -> bool {
        self.is_scheduling
    }

    /// The number of the latest cycle.
    pub const fn seq(&self) -> u64 {
        self.seq
    }

    /// Whether a cycle is in progress.
    pub const fn is_running(&self) -> bool {
        self.is_running
    }

    /// Sets `schedule_iteration`, from 1 second.
    pub fn set_iteration(&mut self, seconds: u32) {
        self.iteration_seconds = seconds.max(1);
    }

    /// Sets `scheduling` (PBS-C-03). True makes a CMD cycle due, also if it was true. False forgets triggers; a cycle
    /// in progress ends by itself.
    pub fn set_scheduling(&mut self, is_scheduling: bool) {
        self.is_scheduling = is_scheduling;
        if is_scheduling {
            self.note(Command::Cmd);
        } else {
            self.pending = Triggers::default();
        }
    }

    /// Notes a trigger. Those that arrive during a cycle wait for its end, and share the next one. While scheduling is
    /// off they are not remembered. Commands that start no cycle are not noted.
    pub fn note(&mut self, trigger: Command) {
        if self.is_scheduling {
            self.pending.add(trigger);
        }
    }

    /// When a cycle is due; `None` unless something happens before.
    pub fn due(&self) -> Option<i64> {
        if !self.is_scheduling || self.is_running {
            return None;
        }
        if !self.pending.is_empty() {
            return Some(i64::MIN);
        }
        self.last_start.map(|start| start.saturating_add(self.iteration_seconds.into()))
    }

    /// Begins a cycle, if one is due.
    pub fn begin(&mut self, now: i64) -> Option<Begun> {
        if !self.is_scheduling || self.is_running {
            return None;
        }
        // A clock that was set back must not keep the cluster waiting.
        let is_time_over = |start: i64| now.saturating_sub(start) >= self.iteration_seconds.into() || now < start;
        if self.last_start.is_some_and(is_time_over) {
            self.pending.add(Command::Time);
        }
        let triggers = std::mem::take(&mut self.pending).list();
        let reason = *triggers.first()?;
        self.seq += 1;
        self.is_running = true;
        self.last_start = Some(now);
        Some(Begun { seq: self.seq, reason, triggers })
    }

    /// The cycle in progress ends, with this number of jobs started. After exactly one a RECYC cycle is due (PBS-C-02).
    pub fn end(&mut self, started: usize) {
        if std::mem::take(&mut self.is_running) && started == 1 {
            self.note(Command::Recyc);
        }
    }
}
