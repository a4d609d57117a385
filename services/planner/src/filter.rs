//! Whether a node is what a request wants.

use muster_schemas::resources::{NodeFilter, NodeSpec, PropertyValue, Relation};
use std::cmp::Ordering;

/// Whether the node passes the filter.
pub fn matches(filter: &NodeFilter, spec: &NodeSpec) -> bool {
    match filter {
        NodeFilter::Has(property) => spec.properties.get(property).is_some_and(is_set),
        NodeFilter::Compare { property, relation, value } => {
            spec.properties.get(property).is_some_and(|found| compares(found, *relation, value))
        }
        NodeFilter::All(filters) => filters.iter().all(|filter| matches(filter, spec)),
        NodeFilter::Any(filters) => filters.iter().any(|filter| matches(filter, spec)),
        NodeFilter::Not(filter) => !matches(filter, spec),
    }
}

fn is_set(value: &PropertyValue) -> bool {
    match value {
        PropertyValue::Flag(flag) => *flag,
        PropertyValue::Number(number) => *number != 0,
        PropertyValue::Text(text) => !text.is_empty(),
    }
}

/// Values of different kinds are not equal and stand in no order.
fn compares(found: &PropertyValue, relation: Relation, wanted: &PropertyValue) -> bool {
    let order = match (found, wanted) {
        (PropertyValue::Flag(found), PropertyValue::Flag(wanted)) => Some(found.cmp(wanted)),
        (PropertyValue::Number(found), PropertyValue::Number(wanted)) => Some(found.cmp(wanted)),
        (PropertyValue::Text(found), PropertyValue::Text(wanted)) => Some(found.cmp(wanted)),
        _ => None,
    };
    match relation {
        Relation::Equal => order == Some(Ordering::Equal),
        Relation::NotEqual => order != Some(Ordering::Equal),
        Relation::Less => order == Some(Ordering::Less),
        Relation::LessOrEqual => order.is_some_and(Ordering::is_le),
        Relation::Greater => order == Some(Ordering::Greater),
        Relation::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
    }
}
