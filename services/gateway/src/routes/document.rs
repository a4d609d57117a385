//! Additions to the OpenAPI document, apart from the operations themselves, so that validators accept it and generators
//! can build clients from it: who may call, where, what answers mean, examples.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use utoipa::{
    Modify,
    openapi::{
        Components, Content, KnownFormat, ObjectBuilder, OpenApi, Ref, RefOr, Response, Schema, SchemaFormat, Server,
        path::{Operation, PathItem},
        schema::{ArrayItems, SchemaType, Type},
        security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme},
    },
};

/// The name of the security scheme.
const TOKEN: &str = "token";
/// Addresses that answer without a token.
const OPEN: [&str; 2] = ["/healthz", "/openapi.json"];
/// The content type of data in muster's own encoding.
const BYTES: &str = "application/octet-stream";

/// Completes the document.
pub(super) struct Complete;

impl Modify for Complete {
    fn modify(&self, document: &mut OpenApi) {
        let mut server = Server::new("http://127.0.0.1:7457");
        server.description =
            Some("A gateway, at its `listen` address; `https://` where it has a certificate.".to_owned());
        document.servers = Some(vec![server]);
        document.security = Some(vec![SecurityRequirement::new(TOKEN, Vec::<String>::new())]);
        for (path, item) in &mut document.paths.paths {
            for operation in operations(item) {
                complete(operation, OPEN.contains(&path.as_str()));
            }
        }
        let components = document.components.get_or_insert_with(Components::default);
        let mut token = Http::new(HttpAuthScheme::Bearer);
        token.description = Some(
            "A token of the gateway's `tokens_file`, or that of a job. On the Unix socket the kernel says who calls."
                .to_owned(),
        );
        components.security_schemes.insert(TOKEN.to_owned(), SecurityScheme::Http(token).into());
        name_variants(&mut components.schemas);
        components.schemas.values_mut().for_each(plain_tuples);
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete].into_iter().flatten()
}

fn complete(operation: &mut Operation, is_open: bool) {
    if is_open {
        operation.security = Some(Vec::new());
    }
    let summary = operation.summary.clone().unwrap_or_default();
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(Response { description, content, .. }) = response else { continue };
        if description.is_empty() {
            *description = match status.as_str() {
                "default" => "It was not done: `code` says why to programs, `message` to people.".to_owned(),
                _ => format!("It was done: {}.", decapitalised(&summary)),
            };
        }
        content.iter_mut().for_each(|(kind, content)| say_bytes(kind, content));
    }
    let example = operation.operation_id.as_deref().and_then(example);
    if let Some(RefOr::T(body)) = &mut operation.request_body {
        body.content.iter_mut().for_each(|(kind, content)| say_bytes(kind, content));
        if let Some(RefOr::T(content)) = body.content.get_mut("application/json") {
            content.example = example;
        }
    }
}

fn decapitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// Gives bytes a schema, without which generators ignore them.
fn say_bytes(kind: &str, content: &mut RefOr<Content>) {
    if let RefOr::T(content) = content
        && kind == BYTES
        && content.schema.is_none()
    {
        let format = SchemaFormat::KnownFormat(KnownFormat::Binary);
        let bytes = ObjectBuilder::new().schema_type(SchemaType::new(Type::String)).format(Some(format)).build();
        content.schema = Some(RefOr::T(Schema::Object(bytes)));
    }
}

/// Gives the variants of enumerations with fields their own names: generators cannot name a type that refers to itself
/// from within.
fn name_variants(schemas: &mut BTreeMap<String, RefOr<Schema>>) {
    let mut named: Vec<(String, RefOr<Schema>)> = Vec::new();
    for (name, schema) in schemas.iter_mut() {
        let RefOr::T(Schema::OneOf(one_of)) = schema else { continue };
        for variant in &mut one_of.items {
            let RefOr::T(Schema::Object(object)) = &*variant else { continue };
            let mut keys = object.properties.keys();
            let (Some(key), None) = (keys.next(), keys.next()) else { continue };
            let name = format!("{name}{}", camel_case(key));
            let inner = std::mem::replace(variant, RefOr::Ref(Ref::from_schema_name(&name)));
            named.push((name, inner));
        }
    }
    schemas.extend(named);
}

/// `best_effort` as `BestEffort`.
fn camel_case(word: &str) -> String {
    let parts = word.split(['_', '-']).map(|part| {
        let mut letters = part.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>()).unwrap_or_default()
    });
    parts.collect()
}

/// Makes a pair of numbers a list of numbers with two entries: `items: false` means nothing to most generators.
fn plain_tuples(schema: &mut RefOr<Schema>) {
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => object.properties.values_mut().for_each(plain_tuples),
        Schema::OneOf(one_of) => one_of.items.iter_mut().for_each(plain_tuples),
        Schema::Array(array) => {
            let is_uniform = array.prefix_items.windows(2).all(|pair| pair[0] == pair[1]);
            let entries = array.prefix_items.len();
            match (&mut array.items, array.prefix_items.first()) {
                (ArrayItems::False, Some(first)) if is_uniform => {
                    array.items = ArrayItems::RefOrSchema(Box::new(RefOr::T(first.clone())));
                    (array.min_items, array.max_items) = (Some(entries), Some(entries));
                    array.prefix_items.clear();
                }
                (ArrayItems::RefOrSchema(items), _) => plain_tuples(items),
                (ArrayItems::False, _) => {}
            }
        }
        _ => {}
    }
}

/// The example of a request's body; `None` for operations without one.
pub(crate) fn example(operation: &str) -> Option<Value> {
    Some(match operation {
        "submit_jobs" => json!({"jobs": [{
            "name": "simulate",
            "working_directory": "/home/ada",
            "environment": {"PATH": "/usr/bin:/bin"},
            "components": [{
                "launch": {"program": {"script": {"text": "#!/bin/sh\n./simulate input.dat\n", "args": []}}},
                "alternatives": [{
                    "requests": [{
                        "path": [
                            {"level": "node", "count": {"range": {"min": 1, "max": 1}}},
                            {"level": "core", "count": {"range": {"min": 4, "max": 4}}},
                        ],
                    }],
                    "walltime_seconds": 3600,
                }],
            }],
        }]}),
        "cancel" | "suspend" | "resume" => json!({"jobs": {"ids": ["12"]}}),
        "hold" => {
            json!({"jobs": {"ids": ["12", "13_4"]}, "holds": {"user": true}, "reason": "until the data is there"})
        }
        "tell" => json!({"jobs": {"ids": ["12"]}, "text": "write a checkpoint soon"}),
        "shrink" => json!({"nodes": 2}),
        "signal_jobs" => json!({"jobs": {"matching": {"user": "ada"}}, "signal": 10}),
        "drain" => json!({"nodes": ["node7"], "reason": "a new disk"}),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::views::{
        DrainRequest, HoldRequest, JobsRequest, ShrinkRequest, SignalRequest, SubmitRequest, TellRequest,
    };
    use serde::de::DeserializeOwned;

    fn is<T: DeserializeOwned>(operation: &str) {
        let example = example(operation).unwrap_or_else(|| panic!("{operation} has no example"));
        serde_json::from_value::<T>(example).unwrap_or_else(|error| panic!("{operation}: {error}"));
    }

    #[test]
    fn examples_are_what_the_gateway_takes() {
        is::<SubmitRequest>("submit_jobs");
        ["cancel", "suspend", "resume"].into_iter().for_each(is::<JobsRequest>);
        is::<HoldRequest>("hold");
        is::<TellRequest>("tell");
        is::<ShrinkRequest>("shrink");
        is::<SignalRequest>("signal_jobs");
        is::<DrainRequest>("drain");
    }
}
