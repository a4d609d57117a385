//! Nodes from the output of `oarnodes -J`.

use super::toml::quoted;
use crate::{
    resources::property::{BESTEFFORT, CPUSET, DEPLOY, DESKTOP_COMPUTING, DRAIN, ID, NODE, is_system},
    text::{decimal, printable, shown},
};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

/// How deep documents of resources may be nested: by node, by resource, properties.
const DEEPEST: usize = 6;
/// Properties that name single resources of a node.
const OF_RESOURCES: [&str; 7] = ["cpu", "core", "thread", CPUSET, "host", "gpu", "gpudevice"];
/// Properties with the memory of a node, in MiB.
const OF_MEMORY: [&str; 3] = ["memnode", "mem_node", "memory"];

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    name: String,
    cores: usize,
    sockets: usize,
    memory_mebibytes: u64,
    gpus: usize,
    model: String,
    properties: BTreeMap<String, String>,
}

impl Node {
    /// Writes its part of the configuration file.
    pub(super) fn write(&self, out: &mut String) {
        let Self { name, cores, sockets, memory_mebibytes, gpus, model, properties } = self;
        let _ = writeln!(out, "\n[[nodes]]\nname = {}\ncores = {cores}\nsockets = {sockets}", quoted(name));
        let _ = writeln!(out, "memory = \"{memory_mebibytes}M\"");
        if *gpus > 0 {
            let _ = writeln!(out, "gpus = [{}]", vec![quoted(model); *gpus].join(", "));
        }
        if !properties.is_empty() {
            let pair = |(name, value): (&String, &String)| format!("{} = {value}", quoted(name));
            let _ = writeln!(out, "properties = {{ {} }}", properties.iter().map(pair).collect::<Vec<_>>().join(", "));
        }
    }
}

/// A resource: its properties, those inside `properties` with the others.
type Resource = BTreeMap<String, Value>;

/// Reads the output.
pub(super) fn read(text: &str, warnings: &mut Vec<String>) -> Result<Vec<Node>, String> {
    let document: Value =
        serde_json::from_str(text).map_err(|error| format!("the output of `oarnodes -J` cannot be read: {error}"))?;
    let mut resources = Vec::new();
    collect(&document, DEEPEST, &mut resources);
    if resources.is_empty() {
        return Err("the output of `oarnodes -J` has no resources".to_owned());
    }
    resources.sort_by_key(|one| word(one, ID).and_then(|id| decimal::<u64>(&id)));
    let mut others: BTreeMap<String, usize> = BTreeMap::new();
    let mut by_node: Vec<(String, Vec<Resource>)> = Vec::new();
    for resource in resources {
        let kind = word(&resource, "type").unwrap_or_else(|| "default".to_owned());
        let name = word(&resource, NODE).filter(|name| !name.is_empty());
        let Some(name) = name.filter(|_| kind == "default") else {
            *others.entry(kind).or_default() += 1;
            continue;
        };
        match by_node.iter_mut().rfind(|(known, _)| *known == name) {
            Some((_, own)) => own.push(resource),
            None => by_node.push((name, vec![resource])),
        }
    }
    for (kind, count) in others {
        let what = if count == 1 { "resource" } else { "resources" };
        warnings.push(format!(
            "oarnodes: {count} {what} of type {} without a node: [licences] has such things",
            shown(&kind)
        ));
    }
    Ok(by_node.into_iter().filter_map(|(name, own)| node(name, own, warnings)).collect())
}

/// The resources in a document, however they are nested.
fn collect(value: &Value, depth: usize, found: &mut Vec<Resource>) {
    match value {
        Value::Object(entries) if entries.contains_key(ID) => {
            let mut resource = Resource::new();
            flat(entries, &mut resource);
            found.push(resource);
        }
        Value::Object(entries) if depth > 0 => entries.values().for_each(|entry| collect(entry, depth - 1, found)),
        Value::Array(entries) if depth > 0 => entries.iter().for_each(|entry| collect(entry, depth - 1, found)),
        _ => {}
    }
}

fn flat(entries: &Map<String, Value>, resource: &mut Resource) {
    for (name, value) in entries {
        match value {
            Value::Object(inner) if name == "properties" => flat(inner, resource),
            Value::Object(_) | Value::Array(_) | Value::Null => {}
            value => drop(resource.insert(name.to_ascii_lowercase(), value.clone())),
        }
    }
}

fn word(resource: &Resource, name: &str) -> Option<String> {
    match resource.get(name)? {
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn distinct(own: &[Resource], name: &str) -> usize {
    own.iter().filter_map(|one| word(one, name)).filter(|value| !value.is_empty()).collect::<BTreeSet<_>>().len()
}

fn node(name: String, own: Vec<Resource>, warnings: &mut Vec<String>) -> Option<Node> {
    let shown_name: String = name.chars().map(printable).collect();
    if own.iter().all(|one| word(one, "state").as_deref() == Some("Dead")) {
        warnings.push(format!("oarnodes: node {shown_name}: Dead, so it is left out"));
        return None;
    }
    let mut warn = |text: String| warnings.push(format!("oarnodes: node {shown_name}: {text}"));
    let cores = match distinct(&own, "core") {
        0 => own.len(),
        cores => cores,
    };
    let sockets = distinct(&own, "cpu").max(1);
    let sockets = if cores.is_multiple_of(sockets) {
        sockets
    } else {
        warn(format!("{sockets} cpus cannot share {cores} cores equally; it gets one"));
        1
    };
    let numbers = |name: &str| own.iter().find_map(|one| decimal::<u64>(&word(one, name)?));
    let memory = OF_MEMORY.iter().find_map(|name| numbers(name));
    let memory = memory.or_else(|| Some(numbers("memcore")?.saturating_mul(cores as u64)));
    let memory_mebibytes = memory.filter(|memory| *memory > 0).unwrap_or_else(|| {
        warn("no memory is known (memnode, in MiB); it gets 1 GiB for each core".to_owned());
        1024 * cores as u64
    });
    if own.iter().any(|one| word(one, DRAIN).as_deref() == Some("YES")) {
        warn("it drains: `oarnodesetting -d on -h` does so again".to_owned());
    }
    let gpus = distinct(&own, "gpu").max(distinct(&own, "gpudevice"));
    let model = own.iter().find_map(|one| word(one, "gpu_model")).unwrap_or_else(|| "gpu".to_owned());
    let names: BTreeSet<&String> = own.iter().flat_map(BTreeMap::keys).collect();
    let mut properties = BTreeMap::new();
    for property in names.into_iter().filter(|property| is_taken_over(property)) {
        let mut values: Vec<Option<&Value>> = own.iter().map(|one| one.get(property)).collect();
        values.dedup();
        match values[..] {
            [Some(value)] => properties.extend(literal(property, value).map(|value| (in_model(property), value))),
            _ => warn(format!("{} differs inside the node, so it is left out", shown(property))),
        }
    }
    Some(Node { name, cores, sockets, memory_mebibytes, gpus, model, properties })
}

fn is_taken_over(property: &str) -> bool {
    let is_own = [BESTEFFORT, DEPLOY, DESKTOP_COMPUTING].contains(&property);
    let is_place = OF_RESOURCES.contains(&property) || property == ID || property == NODE || property == "jobs";
    is_own || !(is_system(property) || is_place)
}

/// The name of a property in the model.
fn in_model(property: &str) -> String {
    if property == DESKTOP_COMPUTING { "pull".to_owned() } else { property.to_owned() }
}

/// A value as TOML has it. Usual values of properties that every resource has are left out.
fn literal(property: &str, value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let usual = match property {
        BESTEFFORT => "YES",
        DEPLOY | DESKTOP_COMPUTING => "NO",
        _ => "",
    };
    match text.as_str() {
        "" => None,
        text if text == usual => None,
        "YES" | "true" => Some("true".to_owned()),
        "NO" | "false" => Some("false".to_owned()),
        text => Some(text.parse::<i64>().map_or_else(|_| quoted(text), |number| number.to_string())),
    }
}
