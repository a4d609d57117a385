//! The effect of a configuration change, for people.

use crate::values::compress_hosts;
use muster_schemas::cluster::{ClusterChange, ClusterConfig};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What the configuration would be after the change.
pub fn outcome(change: &ClusterChange, from: &ClusterConfig, keeps_unnamed: bool) -> ClusterConfig {
    if keeps_unnamed {
        return change.onto(from.clone());
    }
    let mut to = change.onto(ClusterConfig::default());
    if change.settings.quotas.is_none() {
        to.settings.quotas.clone_from(&from.settings.quotas);
    }
    to.accounts = to.accounts.or_else(|| from.accounts.clone());
    to.first_job_number = to.first_job_number.or(from.first_job_number);
    let default = &to.settings.default_queue;
    let kept = from.queues.iter().find(|queue| queue.name == *default);
    if let Some(kept) = kept.filter(|_| !to.queues.iter().any(|queue| queue.name == *default)) {
        to.queues.push(kept.clone());
    }
    to
}

/// One line for each setting that differs, and one for each queue and each set of similar nodes that are
/// added or removed.
pub fn differences(from: &ClusterConfig, to: &ClusterConfig) -> Vec<String> {
    let mut lines = fields(&settings(from), &settings(to));
    lines.extend(by_name("queue", &named(&from.queues), &named(&to.queues)));
    lines.extend(by_name("node", &named(&from.nodes), &named(&to.nodes)));
    lines
}

/// The lists of users that would become empty: nobody could administer any more, or everybody could use a queue. In the
/// words of [`differences`].
pub fn emptied(from: &ClusterConfig, to: &ClusterConfig) -> Vec<String> {
    let is_emptied = |from: &[String], to: &[String]| !from.is_empty() && to.is_empty();
    let settings = [
        ("cluster.administrators", &from.settings.administrators, &to.settings.administrators),
        ("cluster.operators", &from.settings.operators, &to.settings.operators),
    ];
    let mut lists: Vec<String> = Vec::new();
    lists.extend(settings.iter().filter(|(_, from, to)| is_emptied(from, to)).map(|(name, ..)| (*name).to_owned()));
    for queue in &to.queues {
        let before = from.queues.iter().find(|known| known.name == queue.name);
        if before.is_some_and(|before| is_emptied(&before.users, &queue.users)) {
            lists.push(format!("the users of queue {}", queue.name));
        }
    }
    lists
}

type Fields = BTreeMap<String, Value>;

/// The settings outside queues and nodes, by their names in the file.
fn settings(config: &ClusterConfig) -> Fields {
    let ClusterConfig { settings, queues: _, nodes: _, licences, staging, accounts, first_job_number } = config;
    let sections = [
        ("cluster", json!(settings)),
        ("cluster", json!({ "first_job_number": first_job_number })),
        ("licences", json!(licences)),
        ("staging", json!(staging)),
        ("accounts", json!(accounts)),
    ];
    let mut all = Fields::new();
    for (section, value) in sections {
        all.extend(members(value).into_iter().map(|(key, value)| (format!("{section}.{key}"), value)));
    }
    all
}

fn members(value: Value) -> Fields {
    match value {
        Value::Object(members) => members.into_iter().collect(),
        _ => Fields::new(),
    }
}

/// Queues or nodes by their names.
fn named<T: Serialize>(entries: &[T]) -> BTreeMap<String, Fields> {
    let entry = |entry: &T| {
        let mut fields = members(json!(entry));
        let name = fields.remove("name").and_then(|name| name.as_str().map(str::to_owned));
        (name.unwrap_or_default(), fields)
    };
    entries.iter().map(entry).collect()
}

/// Entries with the same change share a line.
fn by_name(kind: &str, from: &BTreeMap<String, Fields>, to: &BTreeMap<String, Fields>) -> Vec<String> {
    let names: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
    let mut happenings: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in names {
        let happens = match (from.get(name), to.get(name)) {
            (Some(from), Some(to)) => fields(from, to),
            (Some(_), None) => vec!["removed".into()],
            (None, _) => vec!["new".into()],
        };
        for happening in happens {
            happenings.entry(happening).or_default().push(name);
        }
    }
    happenings.into_iter().map(|(what, names)| format!("{kind} {}: {what}", compress_hosts(&names))).collect()
}

fn fields(from: &Fields, to: &Fields) -> Vec<String> {
    let names: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
    let shown = |value: Option<&Value>| match value {
        None | Some(Value::Null) => "not set".to_owned(),
        Some(value) => value.to_string(),
    };
    names
        .into_iter()
        .filter(|name| from.get(*name) != to.get(*name))
        .map(|name| format!("{name}: {} -> {}", shown(from.get(name)), shown(to.get(name))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::cluster::{ClusterSettings, QueueSpec};

    #[test]
    fn what_changes_is_told_by_the_names_of_the_file() {
        let queue = QueueSpec { name: "default".into(), users: vec!["ada".into()], ..QueueSpec::default() };
        let settings = ClusterSettings { administrators: vec!["ada".into()], ..ClusterSettings::default() };
        let from = ClusterConfig { settings, queues: vec![queue], ..ClusterConfig::default() };
        assert_eq!(differences(&from, &from), Vec::<String>::new());
        let change: ClusterChange =
            serde_json::from_value(json!({"settings": {"administrators": []}, "licences": {"matlab": 2},
                "nodes": [{"name": "n1", "cores": 4, "memory_bytes": 1}, {"name": "n2", "cores": 4, "memory_bytes": 1}]}))
            .unwrap();
        assert_eq!(
            differences(&from, &outcome(&change, &from, true)),
            [r#"cluster.administrators: ["ada"] -> []"#, "licences.matlab: not set -> 2", "node n[1-2]: new"]
        );
        let unnamed = outcome(&ClusterChange::default(), &from, false);
        assert_eq!(unnamed.queues, from.queues, "the default queue stays");
    }
}
