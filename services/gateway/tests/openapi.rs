//! The OpenAPI document in `schemas/` is that of the code. `MUSTER_BLESS=1` writes it.

use muster_schemas::views::ErrorCode;
use serde_json::Value;
use std::{collections::BTreeMap, path::Path};

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(entries) => {
            for (key, entry) in entries {
                if let (true, Some(reference)) = (key == "$ref", entry.as_str()) {
                    found.push(reference.to_owned());
                }
                references(entry, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[test]
fn document_in_the_repository_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas/openapi.json");
    let document = muster_gateway::openapi().to_pretty_json().unwrap() + "\n";
    let mut found = std::fs::read_to_string(&path).unwrap_or_default();
    // What is unchanged is not written: nearly everything is built again when this file is newer.
    if found != document && std::env::var_os("MUSTER_BLESS").is_some() {
        std::fs::write(&path, &document).unwrap();
        found.clone_from(&document);
    }
    assert!(
        found == document,
        "schemas/openapi.json differs from the code: write it with MUSTER_BLESS=1 and review it"
    );
}

#[test]
fn every_reference_leads_somewhere_and_every_operation_is_described() {
    let document = serde_json::to_value(muster_gateway::openapi()).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let pointer = reference.strip_prefix('#').expect("references stay in the document");
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let summary = operation["summary"].as_str().unwrap_or_default();
            assert!(!summary.is_empty(), "{method} {path} has no summary");
            assert!(operation["responses"]["200"].is_object(), "{method} {path} has no answer");
        }
    }
}

/// Visits each value in a document with its path.
fn visit(value: &Value, place: &str, look: &mut impl FnMut(&str, &Value)) {
    look(place, value);
    match value {
        Value::Object(entries) => entries.iter().for_each(|(key, entry)| visit(entry, &format!("{place}/{key}"), look)),
        Value::Array(items) => items.iter().zip(0..).for_each(|(item, at)| visit(item, &format!("{place}/{at}"), look)),
        _ => {}
    }
}

/// D5 of the operators' findings: requirements of validators and generators of clients.
#[test]
fn the_document_is_one_that_programs_take() {
    let document = serde_json::to_value(muster_gateway::openapi()).unwrap();
    let mut ids = BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let (place, id) = (format!("{method} {path}"), operation["operationId"].as_str().expect("an operationId"));
            assert_eq!(ids.insert(id.to_owned(), place.clone()), None, "{place} has the id `{id}` of another");
            for (status, response) in operation["responses"].as_object().unwrap() {
                let description = response["description"].as_str().unwrap_or_default();
                assert!(!description.is_empty(), "{place}: the response {status} has no description");
            }
        }
    }
    visit(&document, "", &mut |place, value| {
        assert!(!(place.ends_with("/items") && value.is_boolean()), "{place} is {value}");
        let variants = value["oneOf"].as_array().into_iter().flatten();
        let inline = variants.filter(|variant| variant["properties"].as_object().is_some_and(|known| known.len() == 1));
        assert_eq!(inline.count(), 0, "{place} has variants without a name");
    });
    assert!(document["servers"][0]["url"].is_string());
    let scheme = document["security"][0].as_object().and_then(|known| known.keys().next()).expect("a scheme");
    assert_eq!(document["components"]["securitySchemes"][scheme]["scheme"], "bearer");
    assert_eq!(document["paths"]["/healthz"]["get"]["security"], serde_json::json!([]));
    assert!(document.pointer("/paths/~1v1~1jobs/post/requestBody/content/application~1json/example").is_some());
}

/// The page of the book that lists the paths.
fn page(document: &Value) -> String {
    let mut text = String::from(
        "# HTTP API\n\n\
         <!-- Written from the code by `MUSTER_BLESS=1 cargo nextest run -p muster-gateway`. -->\n\n",
    );
    text.push_str(document["info"]["description"].as_str().unwrap());
    text.push_str(
        "\n\nThe OpenAPI 3.1 document with all types is `schemas/openapi.json`, and every gateway serves it at \
         `/openapi.json`. A request that is not done is answered with a `code` for programs and a `message` for people:\n\n\
         | code | HTTP status |\n|---|---|\n",
    );
    for code in document["components"]["schemas"]["ErrorCode"]["enum"].as_array().unwrap() {
        let status = serde_json::from_value::<ErrorCode>(code.clone()).unwrap().status();
        text.push_str(&format!("| `{}` | {status} |\n", code.as_str().unwrap()));
    }
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let summary = operation["summary"].as_str().unwrap();
            text.push_str(&format!("\n## `{} {path}`\n\n{summary}.\n", method.to_uppercase()));
            if let Some(description) = operation["description"].as_str() {
                text.push_str(&format!("\n{description}\n"));
            }
            if let Some(body) = operation.pointer("/requestBody/content/application~1json/schema/$ref") {
                let name = body.as_str().unwrap().rsplit('/').next().unwrap();
                text.push_str(&format!("\nBody: `{name}`.\n"));
            }
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let parameters: Vec<&Value> = parameters.collect();
            if !parameters.is_empty() {
                text.push_str("\n| parameter | in | meaning |\n|---|---|---|\n");
            }
            for parameter in parameters {
                let (name, place) = (parameter["name"].as_str().unwrap(), parameter["in"].as_str().unwrap());
                let meaning = parameter["description"].as_str().unwrap_or_default().replace('\n', " ");
                text.push_str(&format!("| `{name}` | {place} | {meaning} |\n"));
            }
        }
    }
    text
}

#[test]
fn page_in_the_book_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/http-api.md");
    let text = page(&serde_json::to_value(muster_gateway::openapi()).unwrap());
    if std::env::var_os("MUSTER_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "docs/reference/http-api.md differs from the code: write it with MUSTER_BLESS=1, review it");
}
