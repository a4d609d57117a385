//! One cycle: what a program is told about it, what it may do in it, and what it leaves.

use crate::{
    action::{Action, Answer, Code, Refusal},
    cycles::Begun,
    site::Site,
};
use jiff::tz::TimeZone;
use muster_pbs_plan::state_file::StateFile;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Bytes of a log line.
const LONGEST_LINE: usize = 4096;

/// Bytes of a text in an action.
const LONGEST_TEXT: usize = 4096;

/// What bounds a cycle and the process of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How long a cycle may take (PBS-C-13).
    pub cycle: Duration,
    /// How long a process may take until it is ready (PBS-X-22), and to end when it is asked to.
    pub ready: Duration,
    /// Maximum number of actions in a cycle.
    pub actions: usize,
    /// Maximum number of requests in a cycle, actions and questions together.
    pub requests: usize,
    /// Maximum number of log lines that a cycle leaves.
    pub lines: usize,
    /// Maximum number of bytes of a message from a process.
    pub message_bytes: usize,
    /// Maximum number of bytes of a message to a process; more is refused.
    pub reply_bytes: usize,
    /// Memory that a process may have, in bytes.
    pub memory_bytes: u64,
    /// Maximum size of the print file. A full one is renamed to `NAME.1`.
    pub print_bytes: u64,
    /// Maximum number of statements of a BaSL program in a cycle (PBS-X-13).
    pub statements: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            cycle: Duration::from_secs(180),
            ready: Duration::from_secs(10),
            actions: 100_000,
            requests: 1_000_000,
            lines: 1000,
            message_bytes: 1 << 20,
            reply_bytes: 256 << 20,
            memory_bytes: 1 << 30,
            print_bytes: 16 << 20,
            statements: 10_000_000,
        }
    }
}

/// What a program is told when a cycle begins.
#[derive(Clone, Debug)]
pub struct Cycle {
    /// Number and reasons.
    pub begun: Begun,
    /// The time of the cycle, in seconds since 1970.
    pub now: i64,
    /// The zone of local times.
    pub zone: TimeZone,
    /// Whether it is prime time.
    pub is_prime: bool,
    /// Whether it is dedicated time.
    pub is_dedicated: bool,
}

/// A decision: what was asked, and the answer. This is what a log has to keep (PBS-X-25).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Decision {
    /// What the program asked for.
    pub action: Action,
    /// The answer.
    pub answer: Answer,
}

/// How a cycle ended. Actions that were accepted stay valid in any case.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum End {
    /// The program came to its end, with this value of BaSL's `exit`, if any.
    Done(Option<i64>),
    /// An error in the program, for people. It stays in force, and its process runs.
    Fault(String),
    /// Its time was over (PBS-C-13). The process is restarted.
    TimeOver(String),
    /// Its process failed, for people. It is restarted after a pause (PBS-X-24).
    Failed(String),
}

impl End {
    /// Whether the process is no more.
    pub const fn is_failure(&self) -> bool {
        matches!(self, Self::TimeOver(_) | Self::Failed(_))
    }

    /// What went wrong.
    pub fn trouble(&self) -> Option<&str> {
        match self {
            Self::Done(_) => None,
            Self::Fault(what) | Self::TimeOver(what) | Self::Failed(what) => Some(what),
        }
    }
}

/// The site in one cycle: counts what the program does, and notes what it decides.
pub struct Docket<'s> {
    site: &'s mut dyn Site,
    bounds: &'s Bounds,
    /// The actions, with their answers, in order.
    pub decisions: Vec<Decision>,
    /// The log lines.
    pub lines: Lines,
    started: usize,
    requests: usize,
}

impl std::fmt::Debug for Docket<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Docket").field("decisions", &self.decisions).finish_non_exhaustive()
    }
}

impl<'s> Docket<'s> {
    /// Nothing was done.
    pub fn new(site: &'s mut dyn Site, bounds: &'s Bounds) -> Self {
        let lines = Lines { list: Vec::new(), most: bounds.lines, left_out: 0 };
        Self { site, bounds, decisions: Vec::new(), lines, started: 0, requests: 0 }
    }

    /// What bounds the cycle.
    pub const fn bounds(&self) -> &'s Bounds {
        self.bounds
    }

    /// What there is now.
    pub fn state(&self) -> &StateFile {
        self.site.state()
    }

    /// The answer of a node's monitor.
    pub fn fact(&self, node: &str, query: &str) -> Option<String> {
        self.site.fact(node, query)
    }

    /// Jobs that were started.
    pub const fn started(&self) -> usize {
        self.started
    }

    /// Counts a request.
    ///
    /// # Errors
    /// There were too many.
    pub fn count(&mut self) -> Result<(), Refusal> {
        self.requests = self.requests.saturating_add(1);
        if self.requests > self.bounds.requests {
            let text = format!("a cycle may have {} requests", self.bounds.requests);
            return Err(Refusal::new(Code::TooMany, text));
        }
        Ok(())
    }

    /// Has the site carry an action out. Actions beyond the bound, or with texts that nobody means, are refused and not
    /// noted.
    pub fn act(&mut self, action: Action) -> Answer {
        if self.decisions.len() >= self.bounds.actions {
            let text = format!("a cycle may have {} actions", self.bounds.actions);
            return Err(Refusal::new(Code::TooMany, text));
        }
        let is_sane = |text: &&str| text.len() <= LONGEST_TEXT && !text.contains(char::is_control);
        if !action.texts().iter().all(is_sane) {
            let text = format!("expected texts of one line and at most {LONGEST_TEXT} bytes");
            return Err(Refusal::new(Code::BadRequest, text));
        }
        let answer = self.site.act(&action);
        if answer.is_ok() && action.is_start() {
            self.started += 1;
        }
        self.decisions.push(Decision { action, answer: answer.clone() });
        answer
    }
}

/// Log lines, up to a bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    list: Vec<String>,
    most: usize,
    left_out: usize,
}

impl Lines {
    /// Adds a text, line by line. Control characters become blanks, and long lines are cut.
    pub fn add(&mut self, text: &str) {
        for line in text.lines() {
            if self.list.len() >= self.most {
                self.left_out += 1;
                continue;
            }
            let cut = line.get(..line.floor_char_boundary(LONGEST_LINE)).unwrap_or_default();
            self.list.push(cut.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect());
        }
    }

    /// The lines; the last one tells how many were left out.
    pub fn into_list(mut self) -> Vec<String> {
        if self.left_out > 0 {
            self.list.push(format!("{} more lines were left out", self.left_out));
        }
        self.list
    }
}
