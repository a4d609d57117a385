//! Public events: what they contain, what they must not, and the documents that describe them.
//!
//! The documents in `schemas/` are written by `MUSTER_BLESS=1 cargo nextest run -p muster-schemas`.

use muster_schemas::{
    NodeId, Sequence,
    event::{Event, Record, uuid_bytes::UuidBytes},
    public::{Names, catalogue, cloud_event, documents},
    testing::samples,
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// Knows node 1 only.
struct FewNames;

impl Names for FewNames {
    fn node_name(&self, node: NodeId) -> Option<&str> {
        (node == NodeId(1)).then_some("node1")
    }

    fn cluster_name(&self, _: Sequence) -> &str {
        "my cluster"
    }

    fn log_id(&self, _: Sequence) -> UuidBytes {
        UuidBytes([1; 16])
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

fn event_of(record: &Record) -> Value {
    serde_json::from_str(&cloud_event(record, Some(Sequence(7)), &FewNames).json).unwrap()
}

/// The subset of JSON Schema that the generated documents use.
fn check(schema: &Value, value: &Value, root: &Value, place: &str) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.strip_prefix("#/$defs/").ok_or_else(|| format!("{place}: reference {reference}"))?;
        let target = root["$defs"].get(name).ok_or_else(|| format!("{place}: no definition {name}"))?;
        return check(target, value, root, place);
    }
    if let Some(expected) = schema.get("const") {
        return (expected == value).then_some(()).ok_or_else(|| format!("{place}: {value} is not {expected}"));
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        check(part, value, root, place)?;
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(choices) = schema[key].as_array() {
            let matching = choices.iter().filter(|choice| check(choice, value, root, place).is_ok()).count();
            if matching == 0 || (key == "oneOf" && matching > 1) {
                return Err(format!("{place}: {value} matches {matching} of {key} {choices:?}"));
            }
        }
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        return Err(format!("{place}: {value} is none of {words:?}"));
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let fits = |name: &&str| match *name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    if !types.is_empty() && !types.iter().any(fits) {
        return Err(format!("{place}: {value} is not of type {types:?}"));
    }
    if let Some(object) = value.as_object() {
        for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !object.contains_key(required) {
                return Err(format!("{place}: `{required}` is missing"));
            }
        }
        for (key, entry) in object {
            let at = format!("{place}.{key}");
            if let Some(property) = schema["properties"].get(key) {
                check(property, entry, root, &at)?;
            } else if schema["additionalProperties"] == Value::Bool(false) {
                return Err(format!("{at}: not in the schema"));
            } else if schema["additionalProperties"].is_object() {
                check(&schema["additionalProperties"], entry, root, &at)?;
            }
        }
    }
    if let (Some(items), true) = (value.as_array(), schema["items"].is_object()) {
        for (index, item) in items.iter().enumerate() {
            check(&schema["items"], item, root, &format!("{place}[{index}]"))?;
        }
    }
    Ok(())
}

/// Every public event matches its schema (M-PUB-2).
#[test]
fn every_event_matches_its_schema() {
    let schemas: BTreeMap<String, Value> = documents::json_schemas().into_iter().collect();
    let mut seen = BTreeSet::new();
    let golden = samples();
    // The golden log has a node that is taken down.
    let event = Event::NodeTakenOut { node: NodeId(1), reason: "fan".into(), is_down: false };
    let drained = Record { event, ..golden[0].clone() };
    for record in golden.into_iter().chain([drained]) {
        let event = event_of(&record);
        let file = format!("{}.json", event["type"].as_str().unwrap());
        let schema = schemas.get(&file).unwrap_or_else(|| panic!("no schema {file}"));
        if let Err(error) = check(schema, &event, schema, "event") {
            panic!("{file}: {error}\n{event:#}");
        }
        let data_keys = &schema["$defs"][catalogue_entry(&file)];
        let known = known_keys(data_keys, schema);
        for key in event["data"].as_object().unwrap().keys() {
            assert!(known.contains(key.as_str()), "{file}: `data.{key}` is not in the schema");
        }
        seen.insert(file);
    }
    let all: BTreeSet<String> = schemas.into_keys().collect();
    assert_eq!(seen, all, "each type of the catalogue has a golden record");
}

#[test]
fn every_event_has_a_sentence_of_its_own() {
    let mut seen = BTreeSet::new();
    for record in samples() {
        let event = event_of(&record);
        let sentence = event["summary"].as_str().unwrap_or_default().to_owned();
        assert!(sentence.len() > 5 && !sentence.contains('\n'), "{}: {sentence:?}", event["type"]);
        assert!(seen.insert(sentence.clone()), "two events say {sentence:?}");
    }
}

fn catalogue_entry(file: &str) -> &'static str {
    catalogue().iter().find(|event| format!("{}.json", event.type_name()) == file).unwrap().data_name
}

/// The keys named by a schema and its parts.
fn known_keys<'a>(schema: &'a Value, root: &'a Value) -> BTreeSet<&'a str> {
    let mut keys: BTreeSet<&str> =
        schema["properties"].as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    if let Some(reference) = schema["$ref"].as_str() {
        keys.extend(known_keys(&root["$defs"][reference.strip_prefix("#/$defs/").unwrap()], root));
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        keys.extend(known_keys(part, root));
    }
    keys
}

#[test]
fn catalogue_agrees_with_the_events_kinds() {
    let types: BTreeSet<(&str, &str)> = catalogue().iter().map(|event| (event.kind, event.verb)).collect();
    assert_eq!(types.len(), catalogue().len(), "no type twice");
    for record in samples() {
        assert!(types.contains(&record.event.kind_verb()), "{:?} is missing", record.event.kind_verb());
    }
}

#[test]
fn secrets_of_a_job_stay_with_it() {
    let record = samples().into_iter().find(|record| matches!(record.event, Event::JobSubmitted { .. })).unwrap();
    let json = cloud_event(&record, None, &FewNames).json;
    let Event::JobSubmitted { spec, .. } = &record.event else { unreachable!() };
    assert!(!spec.environment.is_empty() && spec.notifications.len() == 2, "the golden job has what could leak");
    for secret in ["#!/bin/sh", "LANG", "ada@example.org", "echo", "slurm.comment"] {
        assert!(!json.contains(secret), "`{secret}` leaked: {json}");
    }
}

#[test]
fn an_event_is_one_line_and_says_where_it_comes_from() {
    let record = samples().into_iter().find(|record| matches!(record.event, Event::RunStarted { .. })).unwrap();
    let public = cloud_event(&record, None, &FewNames);
    assert!(!public.json.contains('\n'));
    let event: Value = serde_json::from_str(&public.json).unwrap();
    assert_eq!(event["specversion"], "1.0");
    assert_eq!(event["id"], record.sequence.to_string());
    assert_eq!(event["source"], "/muster/my%20cluster/01010101-0101-0101-0101-010101010101");
    assert_eq!(event["type"], "muster.job.started.v1");
    assert_eq!(public.bus_subject, format!("muster.events.job.started.{}", event["subject"].as_str().unwrap()));
    assert!(event["time"].as_str().unwrap().ends_with('Z'));
}

/// The schemas in the repository match the types (M-PUB-1).
#[test]
fn documents_in_the_repository_are_those_of_the_types() {
    let mut documents: BTreeMap<String, String> = documents::json_schemas()
        .into_iter()
        .map(|(name, schema)| (format!("events/{name}"), format!("{schema:#}\n")))
        .collect();
    documents.insert("asyncapi.json".to_owned(), format!("{:#}\n", documents::asyncapi()));
    documents.insert("../docs/reference/events.md".to_owned(), documents::event_catalogue());
    let bless = std::env::var_os("MUSTER_BLESS").is_some();
    for (name, text) in &documents {
        let path = folder().join(name);
        let mut found = std::fs::read_to_string(&path).unwrap_or_default();
        if found != *text && bless {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            found.clone_from(text);
        }
        assert!(found == *text, "{} differs from the types: write it with MUSTER_BLESS=1, review it", path.display());
    }
    let files: BTreeSet<String> = std::fs::read_dir(folder().join("events"))
        .unwrap()
        .map(|entry| format!("events/{}", entry.unwrap().file_name().to_string_lossy()))
        .collect();
    let wanted: BTreeSet<String> = documents.into_keys().filter(|name| name.starts_with("events/")).collect();
    assert_eq!(files, wanted, "no document of an event that is no more");
}
