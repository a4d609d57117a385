//! Ids, sets and headers as people and programs write them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_schemas::{JobId, event::TraceContext, resources::IndexSet, subjects};

fuzz_target!(|text: &str| {
    if let Ok(id) = text.parse::<JobId>() {
        assert_eq!(id.to_string().parse::<JobId>(), Ok(id));
    }
    if let Ok(set) = text.parse::<IndexSet>() {
        assert_eq!(set.to_string().parse::<IndexSet>(), Ok(set));
    }
    if let Some(context) = TraceContext::from_traceparent(text) {
        assert!(context.to_traceparent().is_some());
    }
    let token = subjects::token(text);
    assert!(!token.contains(['.', '*', '>', ' ']), "{token:?} is more than one token of a subject");
});
