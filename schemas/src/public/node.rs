//! Nodes.

use super::{declare::public_events, words::Because};
use crate::{
    energy::PowerWay,
    node::{GpuFault, PartUse, load_text},
    plan::NodeClosure,
    resources::NodeSpec,
};
use std::sync::Arc;

public_events! { NodeData
    /// A node was added.
    "node" "added" NodeAdded about node {
        /// Its name.
        node: String,
        /// Its specification.
        spec: Arc<NodeSpec>,
    }
    says |data, f| write!(f, "node {} was added with {} cores", data.node, data.spec.cores);

    /// The specification of a node changed.
    "node" "changed" NodeChanged about node {
        /// Its name.
        node: String,
        /// Its specification from now on.
        spec: Arc<NodeSpec>,
    }
    says |data, f| write!(f, "node {} was changed", data.node);

    /// A node was removed.
    "node" "removed" NodeRemoved about node {
        /// Its name.
        node: String,
    }
    says |data, f| write!(f, "node {} was removed", data.node);

    /// A node reported for the first time, or again after it was lost.
    "node" "up" NodeUp about node {
        /// Its name.
        node: String,
        /// Changes when the machine boots.
        boot_id: String,
    }
    says |data, f| write!(f, "node {} is up", data.node);

    /// A node has not reported for too long.
    "node" "lost" NodeLost about node {
        /// Its name.
        node: String,
        /// Why it is considered lost.
        reason: String,
    }
    says |data, f| write!(f, "node {} is lost: {}", data.node, data.reason);

    /// A node takes no new jobs.
    "node" "drained" NodeDrained about node {
        /// Its name.
        node: String,
        /// The operator's reason.
        reason: String,
    }
    says |data, f| write!(f, "node {} is drained{}", data.node, Because(&data.reason));

    /// A node takes no new jobs, and its runs are stopped as if the node were lost.
    "node" "down" NodeDown about node {
        /// Its name.
        node: String,
        /// The operator's reason.
        reason: String,
    }
    says |data, f| write!(f, "node {} is down{}", data.node, Because(&data.reason));

    /// A drained node takes jobs again.
    "node" "resumed" NodeResumed about node {
        /// Its name.
        node: String,
    }
    says |data, f| write!(f, "node {} takes jobs again", data.node);

    /// The times in which a node serves no jobs changed.
    "node" "closures_set" NodeClosuresSet about node {
        /// Its name.
        node: String,
        /// The times from now on, in order; empty if the node is open.
        closures: Vec<NodeClosure>,
    }
    says |data, f| match data.closures.first() {
        None => write!(f, "node {} no longer has a closure", data.node),
        Some(first) => write!(f, "node {} is closed from {}{}", data.node, first.from, Because(&first.reason)),
    };

    /// The GPUs of a node that take no new jobs changed.
    "node" "gpus_checked" NodeGpusChecked about node {
        /// Its name.
        node: String,
        /// All that are out of service from now on, in order of their numbers; empty if all can be used.
        faults: Vec<GpuFault>,
    }
    says |data, f| match &data.faults[..] {
        [] => write!(f, "all GPUs of node {} can be used", data.node),
        [one] => write!(f, "GPU {} of node {} is out of service: {}", one.gpu, data.node, one.why),
        [first, ..] => {
            let (count, node) = (data.faults.len(), &data.node);
            write!(f, "{count} GPUs of node {node} are out of service, the first is {}: {}", first.gpu, first.why)
        }
    };

    /// The load of a node was measured.
    "node" "load_measured" NodeLoadMeasured about node {
        /// Its name.
        node: String,
        /// The average number of processes that run or could run, over the last minute, in millionths.
        load_millionths: u64,
        /// The percentage of its time that the system itself took since the measurement before; `None` if it is not known.
        system_percent: Option<u32>,
        /// The processor time of its runs that counts for the shares of their owners.
        used: Vec<PartUse>,
    }
    says |data, f| write!(f, "node {} has a load of {}", data.node, load_text(data.load_millionths));

    /// A node that was ordered to sleep does not report any more.
    "node" "asleep" NodeAsleep about node {
        /// Its name.
        node: String,
    }
    says |data, f| write!(f, "node {} sleeps", data.node);

    /// A node did not obey an order to sleep, and is drained; or one to wake, and is lost.
    "node" "power_failed" NodePowerFailed about node {
        /// Its name.
        node: String,
        /// What it was ordered to do.
        way: PowerWay,
        /// Why it has failed.
        reason: String,
    }
    says |data, f| write!(f, "node {} did not {}: {}", data.node, data.way, data.reason);
}

/// A node out of service.
pub(super) fn taken_out(node: String, reason: &str, is_down: bool) -> NodeData {
    let reason = reason.to_owned();
    if is_down { NodeDown { node, reason }.into() } else { NodeDrained { node, reason }.into() }
}
