//! One interface for all kinds of scheduling programs.

use crate::{
    cycle::{Cycle, Docket, End},
    health::Health,
};
use muster_basl::Globals;

/// A scheduling program in force.
pub trait Program: Send {
    /// Runs one cycle. Everything it decides is in the docket.
    fn cycle(&mut self, cycle: &Cycle, docket: &mut Docket<'_>) -> End;

    /// Reads its files again (`SCH_CONFIGURE`, SIGHUP), and starts a new process if it has one.
    ///
    /// # Errors
    /// All mistakes. The program continues as it was.
    fn reload(&mut self, cycle: &Cycle) -> Result<(), Vec<String>>;

    /// Local times are those of another zone from now on. A process that was told the old one ends; the next cycle starts another.
    fn set_zone(&mut self, _zone: &str, _now: i64) {}

    /// Lets the program end (`SCH_QUIT`).
    fn quit(&mut self, now: i64);

    /// The state of its process.
    fn health(&self) -> Health {
        Health::default()
    }

    /// Forgets failures: a person wants it to try again.
    fn forgive(&mut self) {}

    /// Answers what it says between two cycles, without waiting.
    fn tend(&mut self) {}

    /// What survives a restart of the planner (PBS-X-07).
    fn globals(&self) -> Option<&Globals> {
        None
    }

    /// Goes on with the globals of an earlier cycle. Those that do not fit the program are dropped.
    fn resume(&mut self, _: Globals) {}

    /// The files that it is made of, each with the SHA-256 of its bytes in hexadecimal digits (PBS-C-14).
    fn sources(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}
