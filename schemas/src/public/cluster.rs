//! The cluster, its queues and licences, and its log.

use super::declare::public_events;
use crate::{
    cluster::{ClusterSettings, QueueSpec},
    energy::PowerWay,
    ids::{JobId, RunId, Sequence},
    time::Timestamp,
    trigger::TriggerOn,
};
use std::{fmt, sync::Arc};

public_events! { ClusterData
    /// The log began: the first event of every cluster.
    "cluster" "initialised" ClusterInitialised about cluster {
        /// Identifies this log uniquely: a UUID.
        cluster_id: String,
        /// The Ed25519 public key that checkpoints are signed with, in hex.
        public_key: String,
    }
    says |data, f| write!(f, "the log of cluster {} begins", data.cluster_id);

    /// The settings of the cluster changed.
    "cluster" "settings_changed" ClusterSettingsChanged about cluster {
        /// All settings from now on.
        settings: Arc<ClusterSettings>,
    }
    says |_, f| f.write_str("the cluster's settings changed");

    /// A queue was added or changed.
    "queue" "set" QueueSet about queue.name {
        /// The queue from now on.
        queue: Arc<QueueSpec>,
    }
    says |data, f| write!(f, "queue {} was set", data.queue.name);

    /// A queue was removed.
    "queue" "removed" QueueRemoved about queue {
        /// Its name.
        queue: String,
    }
    says |data, f| write!(f, "queue {} was removed", data.queue);

    /// The number of a floating licence changed.
    "licence" "set" LicenceSet about licence {
        /// Its name.
        licence: String,
        /// The total number; 0 means that it was removed.
        total: u32,
    }
    says |data, f| match data.total {
        0 => write!(f, "licence {} was removed", data.licence),
        total => write!(f, "there are {total} of licence {}", data.licence),
    };

    /// A trigger was set: a program that runs when something happens.
    "trigger" "set" TriggerSet about trigger {
        /// Its number.
        trigger: u32,
        /// The user who has set it.
        user: String,
        /// What it watches.
        on: TriggerOn,
    }
    says |data, f| write!(f, "{} set trigger {}", data.user, data.trigger);

    /// Triggers were cleared.
    "trigger" "cleared" TriggersCleared about cluster {
        /// Their numbers.
        triggers: Vec<u32>,
    }
    says |data, f| match &data.triggers[..] {
        [trigger] => write!(f, "trigger {trigger} was cleared"),
        triggers => write!(f, "{} triggers were cleared", triggers.len()),
    };

    /// A trigger fired: its program is run once.
    "trigger" "fired" TriggerFired about trigger {
        /// Its number.
        trigger: u32,
        /// The number of the job, or a list of the nodes.
        argument: String,
    }
    says |data, f| write!(f, "trigger {} fired: {}", data.trigger, data.argument);

    /// A user has another table of repeated jobs, or none.
    "crontab" "set" CrontabSet about user {
        /// The user's login name.
        user: String,
        /// The jobs of the table; empty if there is none.
        jobs: Vec<JobId>,
    }
    says |data, f| match data.jobs.len() {
        0 => write!(f, "{} has no table of repeated jobs", data.user),
        1 => write!(f, "{} has a table with one repeated job", data.user),
        jobs => write!(f, "{} has a table of {jobs} repeated jobs", data.user),
    };

    /// Nodes remember runs that the restored log does not have: the numbers of those runs are skipped.
    "cluster" "run_numbers_raised" ClusterRunNumbersRaised about cluster {
        /// The lowest number for the next run.
        next: RunId,
    }
    says |data, f| {
        write!(f, "nodes remember runs up to {}: the next numbers are higher", data.next.0.saturating_sub(1))
    };

    /// The numbering of jobs changed: an array takes a number for each task, and the first is its own.
    "cluster" "job_numbers_set" ClusterJobNumbersSet about cluster {
        /// The lowest number for new jobs.
        first: u64,
    }
    says |data, f| {
        write!(f, "job numbers begin at {}; each array task has its own", data.first)
    };

    /// The state was signed by the ledger.
    "log" "checkpoint" LogCheckpoint about cluster {
        /// BLAKE3 digest of the state, in hex.
        state_digest: String,
        /// Ed25519 signature, in hex.
        signature: String,
    }
    says |_, f| f.write_str("the ledger signed the state");

    /// Old records were moved to an archive file.
    "log" "archived" LogArchived about cluster {
        /// The first of the range.
        first: Sequence,
        /// The last of the range.
        last: Sequence,
        /// BLAKE3 hash of the last record of the range, in hex.
        last_hash: String,
        /// The file's name in the archive folder.
        file: String,
    }
    says |data, f| {
        write!(f, "records {} to {} were moved to archive {}", data.first, data.last, data.file)
    };

    /// The log was restored from a backup; later records are lost and their numbers given again, under a new `source`.
    "log" "restored" LogRestored about cluster {
        /// The last record of the backup.
        to: Sequence,
        /// The last record known to be lost, if any is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        lost_to: Option<Sequence>,
        /// Identifies the log uniquely from this record on: a UUID, the last part of `source`.
        log_id: String,
        /// The name of the backup.
        backup: String,
        /// The lowest number for the next run.
        next_run: RunId,
    }
    says |data, f| match data.lost_to {
        Some(lost) => write!(
            f,
            "the log was restored from backup {}, which ends with record {}; it had {lost} records or more",
            data.backup, data.to
        ),
        None => write!(f, "the log was restored from backup {}, which ends with record {}", data.backup, data.to),
    };

    /// One of several ledgers leads from here on.
    "ledger" "leads" LedgerLeads about cluster {
        /// The epoch of its reign.
        epoch: u64,
        /// Its name.
        ledger: String,
        /// When the stream was created in which the ledgers order their records.
        stream_created: Timestamp,
    }
    says |data, f| write!(f, "ledger {} leads from here on, in epoch {}", data.ledger, data.epoch);

    /// The leading one of several ledgers was told to hand over.
    "ledger" "hands_over" LedgerHandsOver about cluster {
        /// Its name.
        ledger: String,
        /// The name of the ledger that is to lead next; any other if it is left out.
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<String>,
    }
    says |data, f| match &data.to {
        Some(to) => write!(f, "ledger {} hands over to {to}", data.ledger),
        None => write!(f, "ledger {} hands over to another one", data.ledger),
    };

    /// An operator asked for nodes to sleep or to wake.
    "power" "asked" PowerAsked about cluster {
        /// The change of power.
        way: PowerWay,
        /// Their names.
        nodes: Vec<String>,
    }
    says |data, f| write!(f, "{} nodes are to {}", data.nodes.len(), data.way);

    /// Nodes are put to sleep or woken by a program of the site.
    "power" "ordered" PowerOrdered about cluster {
        /// The change of power.
        way: PowerWay,
        /// Their names.
        nodes: Vec<String>,
        /// When they have failed if they have not obeyed.
        until: Timestamp,
    }
    says |data, f| write!(f, "{} nodes are ordered to {}: {}", data.nodes.len(), data.way, data.nodes.join(", "));

    /// The program that puts nodes to sleep or wakes them has ended.
    "power" "told" PowerTold about cluster {
        /// The record of the order.
        order: Sequence,
        /// What the nodes do.
        way: PowerWay,
        /// Why the program has failed, if it has.
        error: Option<String>,
    }
    says |data, f| match &data.error {
        None => write!(f, "the program for nodes to {} has ended", data.way),
        Some(error) => write!(f, "the program for nodes to {} has failed: {error}", data.way),
    };
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
