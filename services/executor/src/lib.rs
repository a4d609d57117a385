//! The executor: what runs on each node.
//!
//! ```text
//! executor ──(which run)──> fork server ──(fork)──> shim ──(fork, exec)──> tasks
//!    │                                               │
//!    └───────────────── spool on disk ───────────────┘
//! ```
//!
//! - [`serve`] is the service: it obeys the ledger's orders and reports the results.
//! - A *shim* ([`shim`]) owns the processes of one run and outlives the executor.
//! - The *fork server* ([`fork_server`]) makes shims out of a small process.
//! - The *spool* ([`spool`]) is what they share, and what a restarted executor continues from.
//! - The *containment* ([`containment`]) keeps the processes of a run together, so that none is left behind.

pub mod cleaning;
mod clients;
pub mod config;
mod contact;
pub mod containment;
mod contents;
pub mod copies;
pub mod environment;
mod fences;
pub mod fork_server;
mod gpu_reports;
pub mod gpus;
mod health;
mod host;
pub mod identity;
pub mod journal;
pub mod key;
pub mod launcher;
mod listed_cpus;
mod load_reports;
pub mod output;
pub mod protocol;
mod reign;
mod removal;
mod reports;
pub mod runtimes;
mod service;
pub mod shim;
mod signals;
pub mod site;
pub mod spool;
mod supervised;
#[cfg(test)]
mod testing;

/// The first argument that makes `muster-services` the server of PMIx programs, with a shim at the other end of its standard
/// input.
pub const PMIX_SERVER: &str = "pmix-server";

pub use config::Config;
pub use containment::ContainmentMode;
pub use fork_server::{SHIM_SERVER, serve_shims_if_asked, shim_server_main};
pub use key::RunKey;
pub use service::serve;
