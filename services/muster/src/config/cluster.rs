//! The part of a configuration that belongs to the cluster, and its conversion for the ledger.

use crate::{exit::Failure, values};
use muster_commands::{cluster_toml::ENFORCED, energy_toml::EnergyEntry};
use muster_schemas::{
    accounts::AccountSettings,
    cluster::{
        ClusterChange, ClusterConfig, ClusterSettingsChange, NodeSpecChange, QueueSpec, QueueSpecChange, Removed,
    },
    filter::StagingSettings,
    resources::PropertyValue,
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// `[cluster]`, `[[queues]]`, `[[nodes]]`, `[licences]`, `[staging]`, `[accounts]` and `[energy]` of a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ClusterFile {
    cluster: ClusterEntry,
    queues: Vec<QueueSpecChange>,
    nodes: Vec<NodeEntry>,
    licences: BTreeMap<String, u32>,
    staging: Option<StagingSettings>,
    accounts: Option<AccountsEntry>,
    energy: Option<EnergyEntry>,
}

/// `[accounts]`: which rules about accounts and classes are enforced.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AccountsEntry {
    enforce: Vec<String>,
    queue_classes: BTreeMap<String, String>,
    usage_half_life_seconds: u64,
}

impl AccountsEntry {
    fn settings(&self) -> Result<AccountSettings, String> {
        if let Some(unknown) = self.enforce.iter().find(|word| !ENFORCED.contains(&word.as_str())) {
            return Err(format!("accounts.enforce: `{unknown}` is none of {}", ENFORCED.join(", ")));
        }
        let has = |word: &str| self.enforce.iter().any(|known| known == word);
        Ok(AccountSettings {
            associations: has("associations"),
            limits: has("limits") || has("safe"),
            classes: has("classes"),
            refuses_hopeless: has("safe"),
            queue_classes: self.queue_classes.clone(),
            usage_half_life_seconds: self.usage_half_life_seconds,
        })
    }
}

/// `[cluster]`.
#[derive(Clone, Debug, Default)]
struct ClusterEntry {
    settings: ClusterSettingsChange,
    first_job_number: Option<u64>,
}

impl<'de> Deserialize<'de> for ClusterEntry {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The settings take no unknown keys, so the other keys are taken out first.
        let mut table = toml::Table::deserialize(deserializer)?;
        let first =
            table.remove("first_job_number").map(u64::deserialize).transpose().map_err(serde::de::Error::custom)?;
        let settings = ClusterSettingsChange::deserialize(table).map_err(serde::de::Error::custom)?;
        Ok(Self { settings, first_job_number: first })
    }
}

/// `[[nodes]]`: one node, or several of one kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeEntry {
    name: String,
    cores: u32,
    sockets: Option<u32>,
    memory: Size,
    gpus: Option<Vec<String>>,
    properties: Option<BTreeMap<String, Property>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Size {
    Bytes(u64),
    Text(String),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Property {
    Flag(bool),
    Number(i64),
    Text(String),
}

impl ClusterFile {
    /// The name of the cluster, if the file gives it one.
    pub fn name(&self) -> Option<&str> {
        self.cluster.settings.name.as_deref()
    }

    /// How long a launch may take, if the file says so.
    pub const fn launch_timeout_seconds(&self) -> Option<u32> {
        self.cluster.settings.launch_timeout_seconds
    }

    /// Checks what involves several values: node lists, names used twice. `place` tells where a value is.
    pub fn check(&self, place: impl Fn(&str) -> String) -> Result<(), Failure> {
        let in_file = |message: String| {
            let path = message.split(": ").next().unwrap_or_default();
            Failure::in_file(place(path), message)
        };
        self.to_change().map(|_| ()).map_err(in_file)
    }

    /// The configuration made from the file alone, with defaults for what it does not name.
    pub fn to_config(&self) -> Result<ClusterConfig, String> {
        let mut config = self.to_change()?.onto(ClusterConfig::default());
        let default = &config.settings.default_queue;
        if !config.queues.iter().any(|queue| queue.name == *default) {
            config.queues.push(QueueSpec { name: default.clone(), ..QueueSpec::default() });
        }
        Ok(config)
    }

    /// The change that the file describes. A default queue that it names but does not describe is created if the
    /// cluster lacks it.
    pub fn to_change(&self) -> Result<ClusterChange, String> {
        let ClusterEntry { mut settings, first_job_number } = self.cluster.clone();
        settings.energy = self.energy.as_ref().map(EnergyEntry::settings).transpose()?.or(settings.energy);
        let mut queues = self.queues.clone();
        let default = settings.default_queue.clone().filter(|name| !queues.iter().any(|queue| queue.name == *name));
        queues.extend(default.map(|name| QueueSpecChange { name, ..QueueSpecChange::default() }));
        for queue in &mut queues {
            queue.nodes = queue.nodes.as_deref().map(expand_all).transpose()?;
        }
        let mut nodes = Vec::new();
        for entry in &self.nodes {
            nodes.extend(entry.expand()?);
        }
        refuse_doubles(queues.iter().map(|queue| queue.name.as_str()), "queue")?;
        refuse_doubles(nodes.iter().map(|node| node.name.as_str()), "node")?;
        let accounts = self.accounts.as_ref().map(AccountsEntry::settings).transpose()?;
        let (licences, staging) = (self.licences.clone(), self.staging.clone());
        Ok(ClusterChange {
            settings,
            queues,
            nodes,
            licences,
            staging,
            accounts,
            first_job_number,
            removed: Removed::default(),
        })
    }
}

/// A warning for each queue whose jobs are to make way: under planning by turns, as all policies of PBS plan, nobody does.
pub fn makes_way_in_vain(queues: &[QueueSpec]) -> impl Iterator<Item = String> {
    queues.iter().filter(|queue| queue.makes_way.is_some()).map(|queue| {
        format!(
            "queue `{}`: `makes_way` has no effect under a policy of PBS, which plans by turns: no job makes way for another",
            queue.name
        )
    })
}

fn expand_all(lists: &[String]) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for list in lists {
        names.extend(values::parse_hosts(list)?);
    }
    Ok(names)
}

fn refuse_doubles<'a>(names: impl Iterator<Item = &'a str>, what: &str) -> Result<(), String> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(format!("the {what} `{name}` is described twice"));
        }
    }
    Ok(())
}

impl NodeEntry {
    fn expand(&self) -> Result<Vec<NodeSpecChange>, String> {
        let memory_bytes = match &self.memory {
            Size::Bytes(bytes) => *bytes,
            Size::Text(text) => values::parse_size(text)?,
        };
        let property = |property: &Property| match property {
            Property::Flag(flag) => PropertyValue::Flag(*flag),
            Property::Number(number) => PropertyValue::Number(*number),
            Property::Text(text) => PropertyValue::Text(text.clone()),
        };
        let properties = |given: &BTreeMap<String, Property>| -> BTreeMap<String, PropertyValue> {
            given.iter().map(|(name, value)| (name.clone(), property(value))).collect()
        };
        let properties = self.properties.as_ref().map(properties);
        let names = values::parse_hosts(&self.name)?;
        let node = |name| NodeSpecChange {
            name,
            cores: Some(self.cores),
            sockets: self.sockets,
            memory_bytes: Some(memory_bytes),
            gpus: self.gpus.clone(),
            properties: properties.clone(),
        };
        Ok(names.into_iter().map(node).collect())
    }
}
