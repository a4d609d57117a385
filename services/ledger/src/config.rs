//! Settings of a ledger.

use crate::retention;
use anyhow::ensure;
use muster_schemas::{cluster::ClusterChange, ids::Sequence};
use serde::Deserialize;
use std::path::PathBuf;

/// Whether a ledger is alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replication {
    /// It is the only one of its cluster.
    #[default]
    Alone,
    /// Several ledgers keep one history, and order what they decide in a stream of the NATS servers.
    Stream,
}

/// Settings of a ledger.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The data folder. The ledger keeps its log, snapshots and archives in `ledger/` and its key in `ledger.key`.
    pub data_dir: PathBuf,
    /// Number of records between snapshots of the state. A query of the past replays at most this many while its
    /// snapshot is kept. At least 1,000.
    pub snapshot_every_records: u64,
    /// Number of newest snapshots that are all kept; older ones are thinned out. At least 1.
    pub keep_snapshots: u64,
    /// Number of records between signed checkpoints of log and state. Checkpoints never take more than a tenth of one
    /// processor. At least 100.
    pub checkpoint_every_records: u64,
    /// Longest time that records wait for a checkpoint, within the same bound. At least 1.
    pub checkpoint_every_seconds: u64,
    /// A command that is repeated within this time gets its first answer. At least 86,400.
    pub command_retention_seconds: u64,
    /// Records older than this are moved to archive files, with the next snapshot and only if there are enough for a
    /// file (`snapshot_every_records`). Records of jobs that are not over stay. `None` keeps everything in the log.
    pub archive_after_days: Option<u32>,
    /// The address of a gateway that all nodes reach, such as `https://head:7457`: jobs call it there, each with its
    /// own token. Without it they call the gateway that their submitter called.
    pub public_address: Option<String>,
    /// Whether this is the only ledger (`"alone"`), or one of several that keep one history (`"stream"`), of which one leads
    /// and another takes its place if it fails. The others need the file `ledger.key` of the first, three NATS servers, and
    /// each a [`name`](Self::name).
    pub replication: Replication,
    /// The name of this ledger among several, such as that of its host: letters, digits, `-`, `_` and `.`, at most 64.
    pub name: String,
    /// Whether answers wait until another ledger has what they say in its own log, on disk. Only if there are several, and the
    /// same in all of them. While none of the others follows, nothing is decided.
    pub wait_for_standby: bool,
    /// The desired cluster, applied at each start. Anything that it does not name stays as it is.
    pub cluster: Option<ClusterChange>,
    /// Begin a new log although a key or [`traces`](Self::traces) of an earlier one exist.
    #[serde(skip)]
    pub new_log: bool,
    /// Continue from the present end of the log although its witness names another one, or no witness can be believed.
    #[serde(skip)]
    pub accept_log_end: bool,
    /// Lead on an empty stream although this log was written with another one, if the log ends at this record.
    #[serde(skip)]
    pub promoted: Option<Sequence>,
    /// Files that a cluster leaves behind. If one of them exists but no log, the log was lost.
    #[serde(skip)]
    pub traces: Vec<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("/var/lib/muster"),
            snapshot_every_records: 20_000,
            keep_snapshots: 64,
            checkpoint_every_records: 10_000,
            checkpoint_every_seconds: 60,
            command_retention_seconds: 172_800,
            archive_after_days: None,
            public_address: None,
            replication: Replication::Alone,
            name: String::new(),
            wait_for_standby: false,
            cluster: None,
            new_log: false,
            accept_log_end: false,
            promoted: None,
            traces: Vec::new(),
        }
    }
}

impl Config {
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let at_least = |name: &str, value: u64, least: u64| {
            ensure!(value >= least, "`{name}` is {value}, but must be at least {least}");
            Ok(())
        };
        at_least("snapshot_every_records", self.snapshot_every_records, 1000)?;
        at_least("keep_snapshots", self.keep_snapshots, 1)?;
        at_least("checkpoint_every_records", self.checkpoint_every_records, 100)?;
        at_least("checkpoint_every_seconds", self.checkpoint_every_seconds, 1)?;
        at_least("command_retention_seconds", self.command_retention_seconds, retention::Commands::LEAST_SECONDS)?;
        if let Some(address) = &self.public_address {
            let is_address = address.starts_with("https://") || address.starts_with("http://");
            ensure!(is_address, "`public_address` is `{address}`, but must be an address such as https://head:7457");
        }
        ensure!(
            !self.wait_for_standby || self.replication == Replication::Stream,
            "`wait_for_standby` is `true`, but this ledger has no others: it needs `replication = \"stream\"`"
        );
        if self.replication == Replication::Stream {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
            let is_name = (1..=64).contains(&self.name.len()) && self.name.bytes().all(is_part);
            ensure!(
                is_name,
                "`name` is `{}`, but one of several ledgers needs a name of letters, digits, `-`, `_` and `.`, at most 64, such as that \
                 of its host",
                self.name
            );
        }
        Ok(())
    }
}
