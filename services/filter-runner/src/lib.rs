//! The filter-runner runs a site's filters. It makes calls and reports how they ended; the domain decides what that
//! means for a job.
//!
//! ```text
//! runner ──(order, over a socket)──> supervisor ──(fork, exec)──> filter ──> whatever the filter starts
//! ```
//!
//! - [`Runner`] takes calls, as many at the same time as it has slots, and hands each to a free supervisor. It does
//!   nothing that can block: no files, no fork.
//! - [`serve`] is the service around it: it takes calls from the work queues, claims and reports them.
//! - A *supervisor* ([`supervise_filters_if_asked`]) is a small process with one thread that makes one call at a time.
//!   It checks the program, makes the call's private folder, starts the filter, keeps its time and ends everything
//!   that it started.
//! - The *contract* with filters is the specification's sections 4.3 and 4.5, one module here.
//!
//! # Why a process in between, and not a control group
//!
//! A filter may start children that leave its process group and session, and all of them must end with the call
//! (HPC-F-06). A control group would hold them, but writing to one needs rights that a runner often does not have, and
//! making and removing one costs about as much as a short filter. A sub-reaper needs no rights: orphans below it become
//! its children, so "no child left" means "nothing left", which one system call tells. It has one call at a time, so
//! everything below it belongs to that call. The runner's process, which can have many threads and much memory, never
//! forks; and if the runner is killed, its supervisors see the end of their sockets and end what they run.

mod account;
mod call;
mod config;
mod contract;
mod descriptions;
mod error;
mod pool;
mod protocol;
mod runner;
mod scratch;
mod service;
mod supervisor;
mod trial;

pub use call::{
    Answer, Call, Captured, FileAfter, MAX_DOCUMENT_BYTES, MAX_OUTPUT_BYTES, MAX_RESULT_FILE_BYTES, SurplusAnswer,
};
pub use config::RunnerConfig;
pub use descriptions::{Description, Descriptions, Judgement};
pub use error::SetupError;
pub use runner::{RunError, Runner};
pub use service::serve;
pub use supervisor::{ARGUMENT, supervise_filters_if_asked};
