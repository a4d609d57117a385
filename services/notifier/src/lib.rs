//! Tells people and programs how jobs ended: by mail, and by commands run as the job's owner.
//!
//! The ledger puts each notification on a work queue. A notifier delivers it at least once, under a key that never
//! changes ([`NotifyItem::key`](muster_schemas::notify::NotifyItem::key)), retries with growing pauses after failures,
//! and reports the result to the ledger. Nothing here can hold up a job.
//!
//! Commands and mail programs each run under a small process, the *supervisor* ([`supervise_commands_if_asked`]), which
//! changes the user and leaves nothing running.

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
    /// The most deliveries at a time, 1 to 1,000.
    pub max_deliveries: usize,
    /// When a failed delivery is tried again.
    pub retry: RetryConfig,
    /// How mail is sent.
    pub mail: MailConfig,
    /// How commands are run.
    pub command: CommandConfig,
    /// The program that becomes the supervisor of a command or mail program: this muster, or another one that first
    /// calls [`supervise_commands_if_asked`].
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
