//! Tells people and programs what became of jobs: by mail, and by commands run as the job's owner.
//!
//! The ledger puts each notification on a work queue. A notifier delivers it at least once, under a key that never changes
//! ([`NotifyItem::key`](muster_schemas::notify::NotifyItem::key)), tries again with growing pauses while it fails, and
//! tells the ledger what came of it. Nothing here can hold up a job.
//!
//! Commands and mail programs run under a *supervisor* ([`supervise_commands_if_asked`]), a small process for each, which
//! changes the user and leaves nothing running that it started.

mod account;
mod command;
mod error;
mod mail;
mod message;
mod retry;
mod service;
mod supervisor;

pub use command::CommandConfig;
pub use mail::{MailConfig, MailTls};
pub use retry::RetryConfig;
pub use service::serve;
pub use supervisor::{ARGUMENT, supervise_commands_if_asked};

use error::DeliveryError;
use serde::Deserialize;
use std::path::PathBuf;

/// Settings of a notifier.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// At most so many deliveries at a time, 1 to 1,000.
    pub max_deliveries: usize,
    /// When a delivery that failed is tried again.
    pub retry: RetryConfig,
    /// How mail is sent.
    pub mail: MailConfig,
    /// How commands are run.
    pub command: CommandConfig,
    /// The program that supervisors of commands and mail programs are started from: this muster, or another that calls
    /// [`supervise_commands_if_asked`] first.
    #[serde(skip)]
    pub supervisor: PathBuf,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_deliveries: 8,
            retry: RetryConfig::default(),
            mail: MailConfig::default(),
            command: CommandConfig::default(),
            supervisor: "/proc/self/exe".into(),
        }
    }
}
