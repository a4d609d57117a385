//! The part of a configuration that belongs to the cluster: what it becomes for the ledger, and back to text.

use crate::{exit::Failure, values};
use muster_schemas::{
    accounts::AccountSettings,
    cluster::{
        ClusterChange, ClusterConfig, ClusterSettings, ClusterSettingsChange, NodeSpecChange, QueueSpec,
        QueueSpecChange,
    },
    filter::StagingSettings,
    resources::{NodeSpec, PropertyValue},
};
use serde::Deserialize;
use std::{collections::BTreeMap, fmt::Write as _};

/// `[cluster]`, `[[queues]]`, `[[nodes]]`, `[licences]`, `[staging]` and `[accounts]` of a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ClusterFile {
    cluster: ClusterEntry,
    queues: Vec<QueueSpecChange>,
    nodes: Vec<NodeEntry>,
    licences: BTreeMap<String, u32>,
    staging: Option<StagingSettings>,
    accounts: Option<AccountsEntry>,
}

/// `[accounts]`: what of accounts and classes is enforced.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AccountsEntry {
    enforce: Vec<String>,
    queue_classes: BTreeMap<String, String>,
}

/// What can be enforced, as the file has it.
const ENFORCED: [&str; 4] = ["associations", "limits", "classes", "safe"];

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
        // The settings take no unknown keys, so that the others are taken out first.
        let mut table = toml::Table::deserialize(deserializer)?;
        let first =
            table.remove("first_job_number").map(u64::deserialize).transpose().map_err(serde::de::Error::custom)?;
        let settings = ClusterSettingsChange::deserialize(table).map_err(serde::de::Error::custom)?;
        Ok(Self { settings, first_job_number: first })
    }
}

/// `[[nodes]]`: one node, or many of one kind.
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

    /// Checks what a single value cannot tell: node lists, names used twice.
    pub fn check(&self, name: &str) -> Result<(), Failure> {
        self.to_change().map(|_| ()).map_err(|message| Failure::in_file(name, message))
    }

    /// What the file makes of nothing: a cluster with defaults for what it does not name.
    pub fn to_config(&self) -> Result<ClusterConfig, String> {
        let mut config = self.to_change()?.onto(ClusterConfig::default());
        let default = &config.settings.default_queue;
        if !config.queues.iter().any(|queue| queue.name == *default) {
            config.queues.push(QueueSpec { name: default.clone(), ..QueueSpec::default() });
        }
        Ok(config)
    }

    /// What the file names. A default queue that it names and does not describe is made if the cluster does not have it.
    pub fn to_change(&self) -> Result<ClusterChange, String> {
        let ClusterEntry { settings, first_job_number } = self.cluster.clone();
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
        Ok(ClusterChange { settings, queues, nodes, licences, staging, accounts, first_job_number })
    }
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

/// A cluster's configuration in the form of the configuration file. Nodes of one kind that stand side by side become one
/// entry.
pub fn cluster_to_toml(config: &ClusterConfig) -> String {
    let mut text = String::from("[cluster]\n");
    write_settings(&mut text, &config.settings);
    write_optional(&mut text, "first_job_number", config.first_job_number);
    for queue in &config.queues {
        text.push_str("\n[[queues]]\n");
        write_queue(&mut text, queue);
    }
    let mut nodes = &config.nodes[..];
    while let Some(first) = nodes.first() {
        let alike =
            nodes.iter().take_while(|node| NodeSpec { name: first.name.clone(), ..(*node).clone() } == *first).count();
        let names: Vec<&str> = nodes[..alike].iter().map(|node| node.name.as_str()).collect();
        write_node(&mut text, &values::compress_hosts(&names), first);
        nodes = &nodes[alike..];
    }
    if !config.licences.is_empty() {
        text.push_str("\n[licences]\n");
        for (name, total) in &config.licences {
            let _ = writeln!(text, "{} = {total}", quote(name));
        }
    }
    write_staging(&mut text, &config.staging);
    if let Some(accounts) = config.accounts.as_ref().filter(|accounts| **accounts != AccountSettings::default()) {
        write_accounts(&mut text, accounts);
    }
    text
}

fn write_staging(text: &mut String, staging: &StagingSettings) {
    let StagingSettings { program, stage_in_timeout_seconds, stage_out_timeout_seconds } = staging;
    let Some(program) = program else { return };
    let _ = writeln!(text, "\n[staging]\nprogram = {}", quote(program));
    let _ = writeln!(text, "stage_in_timeout_seconds = {stage_in_timeout_seconds}");
    let _ = writeln!(text, "stage_out_timeout_seconds = {stage_out_timeout_seconds}");
}

fn write_accounts(text: &mut String, settings: &AccountSettings) {
    let AccountSettings { associations, limits, classes, refuses_hopeless, queue_classes } = settings;
    let set = ENFORCED.into_iter().zip([*associations, *limits, *classes, *refuses_hopeless]);
    let enforced: Vec<String> = set.filter(|(_, is_set)| *is_set).map(|(word, _)| word.to_owned()).collect();
    let classes: Vec<String> =
        queue_classes.iter().map(|(queue, class)| format!("{} = {}", quote(queue), quote(class))).collect();
    let _ = writeln!(text, "\n[accounts]\nenforce = {}", quote_all(&enforced));
    if !classes.is_empty() {
        let _ = writeln!(text, "queue_classes = {{ {} }}", classes.join(", "));
    }
}

/// Text as a TOML string; also right for a quoted key.
fn quote(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn quote_all(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quote(text)).collect();
    format!("[{}]", quoted.join(", "))
}

fn write_settings(text: &mut String, settings: &ClusterSettings) {
    let ClusterSettings {
        name,
        default_queue,
        operators,
        administrators,
        finished_job_retention_seconds,
        node_lost_after_seconds,
        launch_timeout_seconds,
        kill_grace_seconds,
        default_memory_per_core_bytes,
        cancel_never_met,
        max_jobs,
    } = settings;
    let _ = writeln!(text, "name = {}", quote(name));
    let _ = writeln!(text, "default_queue = {}", quote(default_queue));
    let _ = writeln!(text, "operators = {}", quote_all(operators));
    let _ = writeln!(text, "administrators = {}", quote_all(administrators));
    let _ = writeln!(text, "finished_job_retention_seconds = {finished_job_retention_seconds}");
    let _ = writeln!(text, "node_lost_after_seconds = {node_lost_after_seconds}");
    let _ = writeln!(text, "launch_timeout_seconds = {launch_timeout_seconds}");
    let _ = writeln!(text, "kill_grace_seconds = {kill_grace_seconds}");
    write_optional(text, "default_memory_per_core_bytes", *default_memory_per_core_bytes);
    let _ = writeln!(text, "cancel_never_met = {cancel_never_met}");
    let _ = writeln!(text, "max_jobs = {max_jobs}");
}

fn write_queue(text: &mut String, queue: &QueueSpec) {
    let QueueSpec {
        name,
        priority,
        default_job_priority,
        enabled,
        started,
        default_walltime_seconds,
        max_walltime_seconds,
        nodes,
        users,
        max_running_jobs,
        max_running_jobs_per_user,
        max_jobs,
    } = queue;
    let _ = writeln!(text, "name = {}", quote(name));
    let _ = writeln!(text, "priority = {priority}");
    let _ = writeln!(text, "default_job_priority = {default_job_priority}");
    let _ = writeln!(text, "enabled = {enabled}");
    let _ = writeln!(text, "started = {started}");
    write_optional(text, "default_walltime_seconds", *default_walltime_seconds);
    write_optional(text, "max_walltime_seconds", *max_walltime_seconds);
    if !nodes.is_empty() {
        let _ = writeln!(text, "nodes = [{}]", quote(&values::compress_hosts(nodes)));
    }
    if !users.is_empty() {
        let _ = writeln!(text, "users = {}", quote_all(users));
    }
    write_optional(text, "max_running_jobs", max_running_jobs.map(u64::from));
    write_optional(text, "max_running_jobs_per_user", max_running_jobs_per_user.map(u64::from));
    write_optional(text, "max_jobs", max_jobs.map(u64::from));
}

fn write_optional(text: &mut String, key: &str, value: Option<u64>) {
    if let Some(value) = value {
        let _ = writeln!(text, "{key} = {value}");
    }
}

fn write_node(text: &mut String, names: &str, node: &NodeSpec) {
    let NodeSpec { name: _, cores, sockets, memory_bytes, gpus, properties } = node;
    let exact = values::parse_size(&values::format_size(*memory_bytes)) == Ok(*memory_bytes);
    let memory = if exact { quote(&values::format_size(*memory_bytes)) } else { memory_bytes.to_string() };
    let _ =
        write!(text, "\n[[nodes]]\nname = {}\ncores = {cores}\nsockets = {sockets}\nmemory = {memory}\n", quote(names));
    if !gpus.is_empty() {
        let _ = writeln!(text, "gpus = {}", quote_all(gpus));
    }
    if !properties.is_empty() {
        let property = |(name, value): (&String, &PropertyValue)| match value {
            PropertyValue::Flag(flag) => format!("{} = {flag}", quote(name)),
            PropertyValue::Number(number) => format!("{} = {number}", quote(name)),
            PropertyValue::Text(value) => format!("{} = {}", quote(name), quote(value)),
        };
        let properties: Vec<String> = properties.iter().map(property).collect();
        let _ = writeln!(text, "properties = {{ {} }}", properties.join(", "));
    }
}
