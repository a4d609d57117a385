//! A node, as `sinfo` and `scontrol show node` list it.

use crate::{
    features, size,
    words::{NodeFacts, NodeState},
};
use muster_schemas::{resources::PropertyValue, time::Timestamp, views::NodeView};

/// A node.
#[derive(Clone, Debug)]
pub struct NodeRecord {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: NodeState,
    /// Cores that jobs may use.
    pub cpus: u32,
    /// Cores that jobs hold.
    pub cpus_used: u32,
    /// Sockets.
    pub sockets: u32,
    /// Memory that jobs may use, in megabytes.
    pub megabytes: u64,
    /// Memory that jobs hold, in megabytes.
    pub megabytes_used: u64,
    /// Its weight: jobs get nodes of less weight first.
    pub weight: u64,
    /// Its disk for temporary files, in megabytes: its property `tmp_disk_mb`.
    pub tmp_disk_megabytes: u64,
    /// The switch that it is on: its property `switch`.
    pub switch: Option<String>,
    /// Its features, separated by commas.
    pub features: String,
    /// Its generic resources that can be used: `gpu:a100:4`.
    pub gres: String,
    /// Its generic resources that are out of service: `gpu:a100:1`.
    pub gres_drained: String,
    /// Generic resources that jobs hold: `gpu:1`.
    pub gres_used: String,
    /// GPUs.
    pub gpus: u64,
    /// GPUs that jobs hold.
    pub gpus_used: u64,
    /// Why it is out of service.
    pub reason: Option<String>,
    /// The login name of the user who gave the reason.
    pub reason_user: Option<String>,
    /// When the reason was given.
    pub reason_time: Option<Timestamp>,
    /// Its load in millionths, if it is measured.
    pub load_millionths: Option<u64>,
    /// The reservations that have begun and have it, separated by commas.
    pub reservation: String,
}

impl NodeRecord {
    /// The record of a node at a moment.
    pub fn of(view: &NodeView, facts: NodeFacts, now: Timestamp) -> Self {
        let spec = &view.spec;
        let flags = spec.properties.iter().filter(|(_, value)| **value == PropertyValue::Flag(true));
        let named: Vec<&str> = flags.map(|(name, _)| name.as_str()).collect();
        let gpus_used = match view.gpus_used {
            0 => String::new(),
            count => format!("gpu:{count}"),
        };
        let is_faulty = |gpu: u32| view.gpu_faults.iter().any(|fault| fault.gpu == gpu);
        Self {
            name: spec.name.clone(),
            state: NodeState::of(view, facts, now),
            cpus: spec.cores,
            cpus_used: view.cores_used,
            sockets: spec.sockets.max(1),
            megabytes: spec.memory_bytes / size::MEGABYTE,
            megabytes_used: view.memory_used_bytes / size::MEGABYTE,
            weight: u64::try_from(spec.weight()).unwrap_or(0),
            switch: spec.properties.get(features::SWITCH).map(ToString::to_string),
            tmp_disk_megabytes: features::tmp_disk_megabytes(&spec.properties),
            features: named.join(","),
            gres: gpus(spec.gpus.iter().zip(0..).filter(|(_, gpu)| !is_faulty(*gpu)).map(|(model, _)| model)),
            gres_drained: gpus(spec.gpus.iter().zip(0..).filter(|(_, gpu)| is_faulty(*gpu)).map(|(model, _)| model)),
            gres_used: gpus_used,
            gpus: view.gpus_in_service(),
            gpus_used: u64::from(view.gpus_used),
            reason: view.reason.clone().filter(|reason| !reason.is_empty()).or_else(|| missing_gpus(view)),
            reason_user: view.taken_out_by.clone(),
            reason_time: view.taken_out,
            load_millionths: view.load.map(|load| load.millionths),
            reservation: String::new(),
        }
    }

    /// Cores of each socket.
    pub fn cores_per_socket(&self) -> u32 {
        (self.cpus / self.sockets).max(1)
    }

    /// The number of cores in use, free, unusable, and in total (SL-C-29).
    pub fn cpu_counts(&self) -> [u64; 4] {
        let (all, used) = (u64::from(self.cpus), u64::from(self.cpus_used.min(self.cpus)));
        let serves = self.state.serves();
        let rest = all - used;
        [used, if serves { rest } else { 0 }, if serves { 0 } else { rest }, all]
    }
}

/// Slurm's reason for a node with fewer GPUs than its configuration says.
fn missing_gpus(view: &NodeView) -> Option<String> {
    let (usable, all) = (view.gpus_in_service(), view.spec.gpus.len());
    let lower = format!("gres/gpu count reported lower than configured ({usable} < {all})");
    (!view.gpu_faults.is_empty()).then_some(lower)
}

fn gpus<'a>(models: impl Iterator<Item = &'a String>) -> String {
    let mut parts: Vec<(&str, usize)> = Vec::new();
    for model in models {
        match parts.last_mut() {
            Some((known, count)) if known == model => *count += 1,
            _ => parts.push((model, 1)),
        }
    }
    let text = |(model, count): &(&str, usize)| match *model {
        "" => format!("gpu:{count}"),
        model => format!("gpu:{model}:{count}"),
    };
    parts.iter().map(text).collect::<Vec<_>>().join(",")
}
