//! Conditions on nodes in requests.

use super::size::Size;
use crate::{refusal::Refusal, text::is_name, value::Size as Bytes};
use muster_schemas::resources::{NodeFilter, PropertyValue, Relation};

/// The property equals a text.
pub(super) fn equals(property: &str, text: &str) -> NodeFilter {
    let value = PropertyValue::Text(text.to_owned());
    NodeFilter::Compare { property: property.to_owned(), relation: Relation::Equal, value }
}

/// A site's own resource of a chunk: a condition on a property of its node.
///
/// # Errors
/// An amount of memory or disk, which is not counted here.
pub(super) fn custom(size: &mut Size, name: &str, value: &str) -> Result<NodeFilter, Refusal> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "t" | "y" | "yes" => return Ok(NodeFilter::Has(name.to_owned())),
        "false" | "f" | "n" | "no" => return Ok(NodeFilter::Not(Box::new(NodeFilter::Has(name.to_owned())))),
        _ => {}
    }
    if let Ok(number) = value.parse::<i64>() {
        size.warnings.push(format!(
            "warning: {name}={value} of a chunk is a condition on the property `{name}` of its node: jobs do not use it up"
        ));
        let (property, value) = (name.to_owned(), PropertyValue::Number(number));
        return Ok(NodeFilter::Compare { property, relation: Relation::GreaterOrEqual, value });
    }
    if Bytes::parse(value).is_some() {
        return Err(Refusal::unsupported(&format!("{name}={value}"), "of sizes, only mem is counted in a chunk"));
    }
    Ok(equals(name, value))
}

/// `feature=a:b` has all of these properties, `feature=a|b` one of them.
///
/// # Errors
/// A word that is not the name of a property.
pub(super) fn features(value: &str) -> Result<NodeFilter, Refusal> {
    let names = |separator: char| {
        let has = |name: &str| match is_name(name) {
            true => Ok(NodeFilter::Has(name.to_owned())),
            false => Err(Refusal::value("-l", value, "feature: expected properties such as a:b or a|b")),
        };
        value.split(separator).map(has).collect::<Result<Vec<_>, _>>()
    };
    match value.contains('|') {
        true => names('|').map(NodeFilter::Any),
        false => names(':').map(NodeFilter::All),
    }
}
