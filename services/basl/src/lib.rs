//! BaSL, the batch scheduling language of PBS: checks programs and runs them, one scheduling cycle at a time.
//!
//! [`Program::check`] reads a text and lists every mistake in it. A [`Machine`] is a program with the values of its
//! global variables; [`Machine::cycle`] runs `sched_main` on a [`Snapshot`] of server, queues, nodes and jobs and hands
//! what the program decides to [`Actions`]. Nothing here does I/O or looks at a clock: the time is an input.
//!
//! Requirement ids such as PBS-X-07 are those of the specification of PBS scheduling.
//!
//! ```
//! use jiff::tz::TimeZone;
//! use muster_basl::{Action, Actions, Answer, Clock, Limits, Machine, Program, Snapshot};
//!
//! struct Started(Vec<usize>);
//!
//! impl Actions for Started {
//!     fn act(&mut self, job: usize, action: Action, _: &str) -> Answer {
//!         assert_eq!(action, Action::SyncRun);
//!         self.0.push(job);
//!         Answer::Done
//!     }
//! }
//!
//! let text = "sched_main() {
//!   Set Job jobs; Job j;
//!   jobs = ServerJobsGet(AllServersLocalHostGet());
//!   foreach(j in jobs) { if( JobStateGet(j) EQ QUEUED ) { JobAction(j, SYNCRUN, NULLSTR); } }
//! }";
//! let program = Program::check("all.basl", text).map_err(|faults| faults[0].to_string())?;
//! let clock = Clock::new(895_200_000, TimeZone::UTC);
//! let mut machine = Machine::new(program.into(), &clock, &mut Limits::default()).map_err(|fault| fault.to_string())?;
//!
//! let jobs = [("1", "R"), ("2", "Q")].map(|(id, state)| muster_basl::Job { id: id.into(), state: state.into(), ..Default::default() });
//! let snapshot = Snapshot { jobs: jobs.into(), ..Default::default() };
//! let mut started = Started(Vec::new());
//! let outcome = machine.cycle(&snapshot, &clock, &mut started, &mut Limits::default());
//! assert_eq!((outcome.fault, outcome.started, started.0), (None, 1, vec![1]));
//! # Ok::<(), String>(())
//! ```

pub mod config;

mod actions;
mod code;
mod compile;
mod constants;
mod fault;
mod functions;
mod getters;
mod globals;
mod lexer;
mod limits;
mod machine;
mod moment;
mod parser;
mod program;
mod size;
mod snapshot;
mod syntax;
mod text;
mod types;
mod values;
mod vm;
mod words;
mod world;

pub use actions::{Action, Actions, Answer};
pub use fault::Fault;
pub use globals::{Globals, Misfit, Saved};
pub use limits::Limits;
pub use machine::{Machine, Outcome};
pub use moment::Clock;
pub use program::Program;
pub use snapshot::{Amount, Amounts, Job, Node, Queue, Server, Snapshot};
