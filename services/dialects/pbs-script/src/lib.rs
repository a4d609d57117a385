//! Scheduling programs of PBS sites: policies that are code (PBS-X). A program runs cycle by cycle against a [`site`],
//! and what it decides is handed to the caller; nothing here changes a cluster.
//!
//! - [`policy_word`] reads `scheduler_policy`: `basl:FILE`, `tcl:BODY[,INIT]` or `external:COMMAND`.
//! - [`cycles`] says when cycles run and why.
//! - [`scheduler`] has both, and gives a report for each cycle.
//!
//! Time is an input. Only the deadlines of cycles and processes are measured here.
//!
//! ```
//! use muster_pbs_plan::state_file::StateFile;
//! use muster_pbs_script::{
//!     cycles::Cycles, policy_word::ProgramWord, scheduler::{Hour, Scheduler, Setup}, state_site::StateSite,
//! };
//!
//! let folder = std::env::temp_dir().join(format!("muster-doc-{}", std::process::id()));
//! std::fs::create_dir_all(&folder)?;
//! let text = "sched_main() { Job j; foreach(j in ServerJobsGet(AllServersLocalHostGet())) { JobAction(j, SYNCRUN, NULLSTR); } }";
//! std::fs::write(folder.join("all.basl"), text)?;
//! let word = ProgramWord::parse("basl:all.basl")?;
//! let setup = Setup::new(&folder);
//! let mut scheduler = Scheduler::new(&word, setup, Cycles::new(true, 0), 895_200_000).map_err(|faults| faults.join("\n"))?;
//!
//! let state = r#"{"now": 895200000, "queues": [{"name": "batch", "type": "execution"}],
//!     "jobs": [{"id": "1", "queue": "batch", "user": "ann", "state": "Q"}]}"#;
//! let mut site = StateSite::new(StateFile::read(state.as_bytes())?);
//! let report = scheduler.step(Hour::prime(895_200_000), &mut site).expect("the first cycle is due");
//! assert_eq!((report.started, report.begun.reason.name()), (1, "SCH_SCHEDULE_FIRST"));
//! # std::fs::remove_dir_all(folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod action;
pub mod basl;
mod child;
pub mod cycle;
pub mod cycles;
mod duplex;
pub mod external;
pub mod health;
pub mod policy_word;
mod printed;
pub mod program;
pub mod scheduler;
pub mod site;
mod source;
pub mod specification;
pub mod state_site;
pub mod tcl;
pub mod trigger;
