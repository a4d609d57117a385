//! The OpenAPI document in `schemas/` is that of the code. `MUSTER_BLESS=1` writes it.

use serde_json::Value;
use std::path::Path;

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
    if std::env::var_os("MUSTER_BLESS").is_some() {
        std::fs::write(&path, &document).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == document, "schemas/openapi.json differs from the code: write it with MUSTER_BLESS=1 and review it");
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
