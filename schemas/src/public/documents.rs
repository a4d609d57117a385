//! The documents that describe public events to programs: JSON Schema (2020-12) and AsyncAPI 3, generated from the
//! types.

use super::{CloudEvent, EventType, catalogue, type_name};
use crate::subjects;
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, fmt::Write as _};
use utoipa::{PartialSchema as _, ToSchema as _};

/// The place of schemas in an OpenAPI or AsyncAPI document.
const COMPONENTS: &str = "#/components/schemas/";
/// The place of further schemas in a JSON Schema document.
const DEFINITIONS: &str = "#/$defs/";

/// The JSON Schema of each type of event: file name and document.
pub fn json_schemas() -> Vec<(String, Value)> {
    catalogue().iter().map(|event| (format!("{}.json", event.type_name()), json_schema(event))).collect()
}

impl EventType {
    /// The `type` of its CloudEvents.
    pub fn type_name(&self) -> String {
        type_name(self.kind, self.verb)
    }

    /// The schema of the whole CloudEvent.
    fn envelope(&self) -> Value {
        let mut schema = to_value(&CloudEvent::schema());
        schema["title"] = self.type_name().into();
        schema["description"] = self.summary.into();
        schema["properties"]["specversion"] = json!({ "const": "1.0" });
        schema["properties"]["type"] = json!({ "const": self.type_name() });
        schema["properties"]["datacontenttype"] = json!({ "const": "application/json" });
        schema["properties"]["data"] = json!({ "$ref": format!("{COMPONENTS}{}", self.data_name) });
        schema
    }

    /// The schema of its data and all schemas that it refers to, by name.
    fn data_schemas(&self) -> BTreeMap<String, Value> {
        let mut referred = Vec::new();
        (self.schemas)(&mut referred);
        let mut schemas: BTreeMap<String, Value> =
            referred.iter().map(|(name, schema)| (name.clone(), to_value(schema))).collect();
        schemas.insert(self.data_name.to_owned(), to_value(&(self.schema)()));
        schemas
    }
}

fn json_schema(event: &EventType) -> Value {
    let mut definitions = event.data_schemas();
    definitions.extend(envelope_schemas());
    let mut schema = event.envelope();
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["$defs"] = json!(definitions);
    point_references_to(DEFINITIONS, &mut schema);
    schema
}

/// The JSON Schema of a type, with the schemas of all its parts.
pub(crate) fn json_schema_of<T: utoipa::ToSchema>(title: &str) -> Value {
    let mut referred = Vec::new();
    T::schemas(&mut referred);
    let definitions: BTreeMap<String, Value> =
        referred.iter().map(|(name, schema)| (name.clone(), to_value(schema))).collect();
    let mut schema = to_value(&T::schema());
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = title.into();
    schema["$defs"] = json!(definitions);
    point_references_to(DEFINITIONS, &mut schema);
    schema
}

/// The AsyncAPI 3 document of the event stream.
pub fn asyncapi() -> Value {
    let events = catalogue();
    let mut schemas = envelope_schemas();
    let (mut messages, mut message_references) = (Map::new(), Map::new());
    for event in &events {
        schemas.extend(event.data_schemas());
        let name = event.type_name();
        messages.insert(
            name.clone(),
            json!({
                "name": name,
                "title": event.summary,
                "contentType": "application/cloudevents+json",
                "payload": event.envelope(),
            }),
        );
        message_references.insert(name.clone(), json!({ "$ref": format!("#/components/messages/{name}") }));
    }
    json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "muster events",
            "version": super::VERSION,
            "description": "What happens in a muster cluster: CloudEvents 1.0 in JSON, at least once and in the order \
                            of their ids, which are the sequences of the log.",
        },
        "defaultContentType": "application/cloudevents+json",
        "channels": {
            "events": {
                "address": "muster.events.{kind}.{verb}.{id}",
                "description": format!("Subjects of the JetStream stream {}.", subjects::EVENTS_STREAM),
                "parameters": {
                    "kind": { "description": "The kind of thing that it happens to, such as `job`." },
                    "verb": { "description": "The event, such as `started`." },
                    "id": {
                        "description": "The id of the job or the name of the node, queue, licence or cluster. Bytes \
                                        other than letters, digits, `-` and `_` are `%` and two hex digits.",
                    },
                },
                "messages": message_references,
            },
        },
        "operations": {
            "receiveEvents": { "action": "receive", "channel": { "$ref": "#/channels/events" } },
        },
        "components": { "messages": messages, "schemas": schemas },
    })
}

/// The catalogue of all events for people, in Markdown.
pub fn event_catalogue() -> String {
    let mut text = String::from(CATALOGUE_HEAD);
    push_fields(&mut text, &to_value(&CloudEvent::schema()), &envelope_schemas());
    text.push_str("\n## Types of events\n");
    for event in &catalogue() {
        let (schemas, name) = (event.data_schemas(), event.type_name());
        // Writing to memory cannot fail.
        let _ = write!(text, "\n### `{name}`\n\n{}\n\n", event.summary);
        push_fields(&mut text, &schemas[event.data_name], &schemas);
    }
    text
}

const CATALOGUE_HEAD: &str = "# Event catalogue

<!-- Written from the code by `MUSTER_BLESS=1 cargo nextest run -p muster-schemas`. -->

Every event is a [CloudEvent](https://cloudevents.io) 1.0 in JSON. On NATS it is published on
`muster.events.KIND.VERB.ID`, where `ID` is the event's subject; the gateway sends the same as server-sent events on
`GET /v1/events`. Events come at least once and in the order of their ids, which are the sequences of the log, so a
double is known by its id. The JSON Schema of each type is in `schemas/events/`, the AsyncAPI document of all is
`schemas/asyncapi.json`.

An event holds no script, arguments, environment, mail address or notification command of a job.

## Every event

";

/// The fields of an object as a table.
fn push_fields(text: &mut String, schema: &Value, schemas: &BTreeMap<String, Value>) {
    text.push_str("| field | type | meaning |\n|---|---|---|\n");
    for (name, field) in fields(schema, schemas) {
        let meaning = field["description"].as_str().unwrap_or_default().replace('\n', " ");
        let _ = writeln!(text, "| `{name}` | {} | {meaning} |", type_text(field));
    }
}

/// The fields of an object and of the objects that it includes.
fn fields<'a>(schema: &'a Value, schemas: &'a BTreeMap<String, Value>) -> Vec<(&'a str, &'a Value)> {
    let referred = schema["$ref"].as_str().and_then(|reference| schemas.get(reference.strip_prefix(COMPONENTS)?));
    let parts = schema["allOf"].as_array().into_iter().flatten().chain(referred);
    let own = schema["properties"].as_object().into_iter().flatten().map(|(name, field)| (name.as_str(), field));
    own.chain(parts.flat_map(|part| fields(part, schemas))).collect()
}

/// The type of a value, in a few words.
fn type_text(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix(COMPONENTS)) {
        return name.to_owned();
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        return choices.iter().map(type_text).collect::<Vec<_>>().join(" or ");
    }
    match &schema["type"] {
        Value::String(kind) if kind == "array" => format!("list of {}", type_text(&schema["items"])),
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "any".to_owned(),
    }
}

fn envelope_schemas() -> BTreeMap<String, Value> {
    let mut referred = Vec::new();
    CloudEvent::schemas(&mut referred);
    referred.iter().map(|(name, schema)| (name.clone(), to_value(schema))).collect()
}

fn to_value(schema: &utoipa::openapi::RefOr<utoipa::openapi::Schema>) -> Value {
    serde_json::to_value(schema).unwrap_or_default()
}

/// Moves references from the place where OpenAPI keeps schemas to that of another document.
fn point_references_to(place: &str, value: &mut Value) {
    match value {
        Value::Object(entries) => {
            for (key, entry) in entries {
                match entry {
                    Value::String(reference) if key == "$ref" => {
                        if let Some(name) = reference.strip_prefix(COMPONENTS) {
                            *reference = format!("{place}{name}");
                        }
                    }
                    _ => point_references_to(place, entry),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| point_references_to(place, item)),
        _ => {}
    }
}
