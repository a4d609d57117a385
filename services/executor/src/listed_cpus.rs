//! The CPUs of cores as a property of the node lists them (OAR-X-02).
//!
//! The value has an entry for each core of the node, in the order of their numbers, with blanks between them; one entry alone is
//! that of every core. An entry lists CPUs with `+` or commas between them: `0+8 1+9`, `1,4`.

use muster_schemas::{
    node::{LaunchOrder, NodeFacts},
    resources::{IndexSet, PropertyValue},
};

/// What an order says about its node, if its job asks for that.
pub fn facts_of(order: &LaunchOrder) -> Option<&NodeFacts> {
    order.nodes.get(order.node_index as usize)?.facts.as_deref()
}

/// The CPUs of these cores by a property of their node; `None` if it does not have the property. They are each named once, in
/// the order of the cores.
///
/// # Errors
/// Why the value is no list, for people.
pub fn listed(facts: &NodeFacts, property: &str, cores: &IndexSet, usable: &[u32]) -> Result<Option<Vec<u32>>, String> {
    let Some(value) = facts.properties.get(property) else { return Ok(None) };
    let wrong = |why: String| Err(format!("the property `{property}` of the node is `{value}`: {why}"));
    let text = match value {
        PropertyValue::Number(number) => number.to_string(),
        PropertyValue::Text(text) => text.clone(),
        PropertyValue::Flag(_) => return wrong("it lists no CPUs".into()),
    };
    let entries: Vec<&str> = text.split_whitespace().collect();
    if entries.len() != 1 && entries.len() != facts.all_cores as usize {
        return wrong(format!("it has {} entries, and the node has {} cores", entries.len(), facts.all_cores));
    }
    let mut cpus = Vec::new();
    for core in cores.iter() {
        let Some(entry) = entries.get(core as usize).or(entries.first().filter(|_| entries.len() == 1)) else {
            return wrong(format!("it has no entry for core {core}"));
        };
        for word in entry.split(['+', ',']) {
            let Ok(cpu) = word.parse::<u32>() else { return wrong(format!("`{word}` is not the number of a CPU")) };
            if !usable.contains(&cpu) {
                return wrong(format!("the executor may not use CPU {cpu}"));
            }
            if !cpus.contains(&cpu) {
                cpus.push(cpu);
            }
        }
    }
    Ok(Some(cpus))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAR-X-02: a value may list several CPUs for each core.
    #[test]
    fn a_property_lists_the_cpus_of_cores() {
        let of = |value: PropertyValue, cores: &str| {
            let properties = [("cpuset".to_owned(), value)].into();
            let facts = NodeFacts { properties, all_cores: 2, ..NodeFacts::default() };
            listed(&facts, "cpuset", &cores.parse().unwrap(), &[0, 1, 4, 8, 9])
        };
        let text = |value: &str, cores: &str| of(PropertyValue::Text(value.into()), cores);
        assert_eq!(text("0+8 1+9", "0"), Ok(Some(vec![0, 8])));
        assert_eq!(text("0+8 1+9", "0-1"), Ok(Some(vec![0, 8, 1, 9])));
        assert_eq!(text("1+4+8", "1"), Ok(Some(vec![1, 4, 8])));
        assert_eq!(text("1,4", "0-1"), Ok(Some(vec![1, 4])));
        assert_eq!(of(PropertyValue::Number(4), "1"), Ok(Some(vec![4])));
        for (value, why) in [
            ("", "it has 0 entries, and the node has 2 cores"),
            ("0 1 4", "it has 3 entries"),
            ("0+", "`` is not the number of a CPU"),
            ("-1", "`-1` is not the number of a CPU"),
            ("a b", "`a` is not the number of a CPU"),
            ("7", "the executor may not use CPU 7"),
        ] {
            let told = text(value, "0").unwrap_err();
            assert!(told.contains(why) && told.starts_with("the property `cpuset` of the node is "), "{value}: {told}");
        }
        assert!(of(PropertyValue::Flag(true), "0").is_err());
        assert!(text("0 1", "0,5").unwrap_err().contains("no entry for core 5"));
        assert_eq!(listed(&NodeFacts::default(), "cpuset", &"0".parse().unwrap(), &[0]), Ok(None));
    }
}
