//! The agent of a node that no order reaches (OAR-K): it asks a gateway for the node's orders, over HTTP, and nobody ever
//! opens a connection to it.
//!
//! ```text
//! gateway <──HTTP── relay ──bus of this process── executor ── shims ── jobs
//!                     │
//!                     └── folders of jobs, files that they bring, files that they leave
//! ```
//!
//! The executor is the same as on other nodes. The [relay](Relay) stands where the ledger stands for others: it takes the
//! executor's reports to the gateway, and brings its orders back, changed so that each job runs in a fresh folder, as the
//! user of the agent.

mod cache;
mod config;
mod local;
mod relay;
mod server;
mod work;

pub use config::Config;
pub use relay::Relay;
