//! The forms of `oarnodes`.

use crate::resources::{
    property::{AVAILABLE_UPTO, ID, NODE, is_system},
    table::{Resource, Table},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

/// The jobs on each resource.
pub type Jobs = BTreeMap<u32, Vec<u64>>;

/// Everything about resources: `oarnodes`, `oarnodes -r`, `oarnodes --sql`.
pub fn full(resources: &[&Resource], jobs: &Jobs, now: i64) -> String {
    let mut out = String::new();
    for resource in resources {
        let _ = writeln!(out, "network_address: {}", resource.node());
        let _ = writeln!(out, "resource_id: {}", resource.id());
        let _ = writeln!(out, "state: {}", state(resource, now));
        if let Some(ids) = jobs.get(&resource.id()).filter(|ids| !ids.is_empty()) {
            let _ = writeln!(out, "jobs: {}", listed(ids));
        }
        let own = resource.values().iter().filter(|(name, _)| !is_system(name));
        let pairs: Vec<String> = own.map(|(name, value)| format!("{name}={value}")).collect();
        let _ = writeln!(out, "properties: {}\n", pairs.join(", "));
    }
    out
}

fn listed(ids: &[u64]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn state(resource: &Resource, now: i64) -> &'static str {
    resource.state().shown(resource.available_upto(), now)
}

/// The states of the resources of nodes: `oarnodes -s`.
pub fn states(table: &Table, nodes: &[String], now: i64) -> String {
    let mut out = String::new();
    for (node, resources) in by_node(table, nodes) {
        let _ = writeln!(out, "{node}:");
        for resource in resources {
            let _ = writeln!(out, "    {}: {}", resource.id(), state(resource, now));
        }
    }
    out
}

/// The resources of each node; without names, of all nodes.
fn by_node<'t>(table: &'t Table, nodes: &[String]) -> BTreeMap<&'t str, Vec<&'t Resource>> {
    let mut found: BTreeMap<&str, Vec<&Resource>> = BTreeMap::new();
    let is_meant = |resource: &&Resource| nodes.is_empty() || nodes.iter().any(|node| node == resource.node());
    for resource in table.resources().filter(|one| !one.node().is_empty()).filter(is_meant) {
        found.entry(resource.node()).or_default().push(resource);
    }
    found
}

/// The names of the nodes: `oarnodes -l`.
pub fn list(table: &Table) -> String {
    let names: BTreeSet<&str> = by_node(table, &[]).into_keys().collect();
    names.into_iter().fold(String::new(), |out, name| out + name + "\n")
}

/// The resources as a document, by id.
pub fn document(resources: &[&Resource], jobs: &Jobs, now: i64) -> Value {
    let one = |resource: &&Resource| {
        let plain = |value: &crate::resources::value::Value| match value {
            crate::resources::value::Value::Integer(number) => json!(number),
            crate::resources::value::Value::Text(text) => json!(text),
        };
        let own = resource.values().iter().filter(|(name, _)| !is_system(name) && *name != ID && *name != NODE);
        let properties: BTreeMap<&str, Value> = own.map(|(name, value)| (name.as_str(), plain(value))).collect();
        let document = json!({
            "resource_id": resource.id(),
            "network_address": resource.node(),
            "state": state(resource, now),
            "available_upto": resource.integer(AVAILABLE_UPTO),
            "jobs": jobs.get(&resource.id()).cloned().unwrap_or_default(),
            "properties": properties,
        });
        (resource.id().to_string(), document)
    };
    json!(resources.iter().map(one).collect::<BTreeMap<String, Value>>())
}
