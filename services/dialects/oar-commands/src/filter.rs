//! The filters of requests, as conditions on nodes.

use super::cluster::{CORE, CPU, Cluster, HOST};
use muster_oar::{
    predicate::{Comparison, Operand, Predicate, like},
    resources::{
        property::{BESTEFFORT, DEPLOY, DESKTOP_COMPUTING, DRAIN, ID, NODE, STATE, is_system},
        value::{Value, property_text},
    },
};
use muster_schemas::resources::{NodeFilter, NodeSpec, PropertyValue, Relation};

/// The fact about every node that has its name.
const NAME: &str = "name";

/// A condition on nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// All nodes.
    Always,
    /// No node.
    Never,
    /// Those that match.
    If(NodeFilter),
}

/// The condition that says what a predicate says. A comparison with an unset property selects no node, negated or not, so
/// negations are moved to the comparisons (OAR-R-13).
///
/// # Errors
/// What the planner cannot be told, as a sentence.
pub fn condition(predicate: &Predicate, cluster: &Cluster) -> Result<Condition, String> {
    translate(predicate, false, cluster)
}

fn translate(predicate: &Predicate, negated: bool, cluster: &Cluster) -> Result<Condition, String> {
    let each =
        |terms: &[Predicate]| terms.iter().map(|term| translate(term, negated, cluster)).collect::<Result<Vec<_>, _>>();
    match predicate {
        Predicate::Not(term) => translate(term, !negated, cluster),
        Predicate::All(terms) if negated => Ok(any(each(terms)?)),
        Predicate::Any(terms) if negated => Ok(all(each(terms)?)),
        Predicate::All(terms) => Ok(all(each(terms)?)),
        Predicate::Any(terms) => Ok(any(each(terms)?)),
        leaf => comparison(leaf, negated, cluster),
    }
}

fn all(terms: Vec<Condition>) -> Condition {
    let mut filters = Vec::new();
    for term in terms {
        match term {
            Condition::Always => {}
            Condition::Never => return Condition::Never,
            Condition::If(filter) => filters.push(filter),
        }
    }
    match filters.len() {
        0 => Condition::Always,
        1 => filters.pop().map_or(Condition::Always, Condition::If),
        _ => Condition::If(NodeFilter::All(filters)),
    }
}

fn any(terms: Vec<Condition>) -> Condition {
    let mut filters = Vec::new();
    for term in terms {
        match term {
            Condition::Never => {}
            Condition::Always => return Condition::Always,
            Condition::If(filter) => filters.push(filter),
        }
    }
    match filters.len() {
        0 => Condition::Never,
        1 => filters.pop().map_or(Condition::Never, Condition::If),
        _ => Condition::If(NodeFilter::Any(filters)),
    }
}

/// A comparison with one property.
fn comparison(leaf: &Predicate, negated: bool, cluster: &Cluster) -> Result<Condition, String> {
    let name = match leaf {
        Predicate::Compare(Operand::Property(name), _, Operand::Literal(_))
        | Predicate::Compare(Operand::Literal(_), _, Operand::Property(name))
        | Predicate::Like(name, _)
        | Predicate::In(name, _)
        | Predicate::Unset(name) => name.as_str(),
        other => {
            return Err(format!("'{other}' compares two properties; the planner compares a property with a value"));
        }
    };
    if name == NODE || name == HOST {
        let names: Vec<PropertyValue> =
            cluster.nodes.iter().map(|node| PropertyValue::Text(node.name.clone())).collect();
        return of_property(leaf, negated, NAME, &names);
    }
    if is_system(name) {
        return of_system(leaf, negated, name, cluster);
    }
    if [CPU, CORE, ID].contains(&name) {
        return Err(format!("'{leaf}' chooses a single {name}; the planner chooses those inside nodes"));
    }
    let Some(property) = cluster.properties.get(name) else { return Ok(Condition::Never) };
    let values: Vec<PropertyValue> = property.values.iter().cloned().collect();
    of_property(leaf, negated, &property.name, &values)
}

/// System properties are the same for all nodes, or are named by the nodes that have the value.
fn of_system(leaf: &Predicate, negated: bool, name: &str, cluster: &Cluster) -> Result<Condition, String> {
    let is_planners = matches!(name, STATE | DRAIN);
    let wanted = match leaf {
        Predicate::Compare(_, Comparison::Equal, Operand::Literal(Value::Text(word))) => word.as_str(),
        _ => "",
    };
    match (is_planners, negated, name, wanted) {
        (true, false, STATE, "Alive") | (true, false, DRAIN, "NO") => return Ok(Condition::Always),
        // Jobs that do not ask for such nodes never get them.
        (false, false, DESKTOP_COMPUTING, "YES") | (false, true, DESKTOP_COMPUTING, "NO") => {
            return Ok(equal(NodeSpec::PULL, PropertyValue::Flag(true)));
        }
        (false, false, DESKTOP_COMPUTING, "NO") | (false, true, DESKTOP_COMPUTING, "YES") => {
            return Ok(Condition::Always);
        }
        (true, ..) => return Err(format!("'{leaf}': jobs are planned on nodes that take jobs, and on no others")),
        _ => {}
    }
    let term = if negated { Predicate::Not(Box::new(leaf.clone())) } else { leaf.clone() };
    let matching = cluster
        .nodes
        .iter()
        .filter(|node| cluster.table.resource(node.first).is_some_and(|resource| term.matches(resource.values())));
    let names: Vec<Condition> = matching.map(|node| equal(NAME, PropertyValue::Text(node.name.clone()))).collect();
    if !names.is_empty() && matches!(name, BESTEFFORT | DEPLOY) && matches!(wanted, "YES" | "NO") {
        return Ok(yes_or_no(name, (wanted == "YES") != negated));
    }
    Ok(if names.len() == cluster.nodes.len() { Condition::Always } else { any(names) })
}

/// The property may change, and nodes may be added, while a job waits: so the condition is on the property. A node takes best-effort
/// jobs unless it says otherwise, and no jobs of deployment (OAR-T-20, OAR-T-61).
fn yes_or_no(name: &str, is_yes: bool) -> Condition {
    let usual = name == BESTEFFORT;
    let unusual = [PropertyValue::Flag(!usual), PropertyValue::Text(if usual { "NO" } else { "YES" }.to_owned())];
    match any(unusual.map(|value| equal(name, value)).into()) {
        Condition::If(filter) if is_yes == usual => Condition::If(NodeFilter::Not(Box::new(filter))),
        unusual => unusual,
    }
}

fn compare(name: &str, relation: Relation, value: PropertyValue) -> Condition {
    Condition::If(NodeFilter::Compare { property: name.to_owned(), relation, value })
}

fn equal(name: &str, value: PropertyValue) -> Condition {
    compare(name, Relation::Equal, value)
}

/// One of these values; negated, any other value.
fn one_of(name: &str, values: Vec<PropertyValue>, negated: bool) -> Condition {
    match negated {
        false => any(values.into_iter().map(|value| equal(name, value)).collect()),
        true if values.is_empty() => present(name),
        true => all(values.into_iter().map(|value| compare(name, Relation::NotEqual, value)).collect()),
    }
}

/// Whether the property has any value.
fn present(name: &str) -> Condition {
    let least = [PropertyValue::Flag(false), PropertyValue::Number(i64::MIN), PropertyValue::Text(String::new())];
    any(least.map(|value| compare(name, Relation::GreaterOrEqual, value)).into())
}

/// A comparison with a property that has these values at nodes.
fn of_property(leaf: &Predicate, negated: bool, name: &str, values: &[PropertyValue]) -> Result<Condition, String> {
    Ok(match leaf {
        Predicate::Unset(_) if negated => present(name),
        Predicate::Unset(_) => match present(name) {
            Condition::If(filter) => Condition::If(NodeFilter::Not(Box::new(filter))),
            other => other,
        },
        Predicate::In(_, list) => one_of(name, list.iter().flat_map(|value| spelled(value, values)).collect(), negated),
        Predicate::Like(_, pattern) => {
            let matching = values.iter().filter(|value| like::matches(pattern, &property_text(value))).cloned();
            one_of(name, matching.collect(), negated)
        }
        Predicate::Compare(left, sign, right) => {
            let (sign, value) = match (left, right) {
                (Operand::Literal(value), _) => (mirrored(*sign), value),
                (_, Operand::Literal(value)) => (*sign, value),
                _ => return Err(format!("'{leaf}' has no value")),
            };
            let sign = if negated { opposite(sign) } else { sign };
            match (sign, relation(sign)) {
                (Comparison::Equal, _) => one_of(name, spelled(value, values), false),
                (Comparison::NotEqual, _) => one_of(name, spelled(value, values), true),
                (_, relation) => {
                    let is_mixed = matches!(value, Value::Text(_))
                        && values.iter().any(|value| !matches!(value, PropertyValue::Text(_)));
                    if is_mixed {
                        return Err(format!("'{leaf}': not all values of {name} are texts, so they have no order"));
                    }
                    compare(name, relation, plain(value))
                }
            }
        }
        other => return Err(format!("'{other}' is no comparison")),
    })
}

fn plain(value: &Value) -> PropertyValue {
    match value {
        Value::Integer(number) => PropertyValue::Number(*number),
        Value::Text(text) => PropertyValue::Text(text.clone()),
    }
}

/// The values of nodes that OAR would write like this one, and the value itself.
fn spelled(value: &Value, values: &[PropertyValue]) -> Vec<PropertyValue> {
    let plain = plain(value);
    let word = value.to_string();
    let mut found = vec![plain.clone()];
    found.extend(values.iter().filter(|known| **known != plain && property_text(known) == word).cloned());
    found
}

const fn mirrored(sign: Comparison) -> Comparison {
    match sign {
        Comparison::Less => Comparison::Greater,
        Comparison::AtMost => Comparison::AtLeast,
        Comparison::Greater => Comparison::Less,
        Comparison::AtLeast => Comparison::AtMost,
        same => same,
    }
}

const fn opposite(sign: Comparison) -> Comparison {
    match sign {
        Comparison::Equal => Comparison::NotEqual,
        Comparison::NotEqual => Comparison::Equal,
        Comparison::Less => Comparison::AtLeast,
        Comparison::AtMost => Comparison::Greater,
        Comparison::Greater => Comparison::AtMost,
        Comparison::AtLeast => Comparison::Less,
    }
}

const fn relation(sign: Comparison) -> Relation {
    match sign {
        Comparison::Equal => Relation::Equal,
        Comparison::NotEqual => Relation::NotEqual,
        Comparison::Less => Relation::Less,
        Comparison::AtMost => Relation::LessOrEqual,
        Comparison::Greater => Relation::Greater,
        Comparison::AtLeast => Relation::GreaterOrEqual,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::{fixture, node};
    use muster_oar::predicate;

    fn said(text: &str, cluster: &Cluster) -> String {
        let predicate = predicate::read(text, cluster.table.fields()).expect("it can be read");
        match condition(&predicate, cluster) {
            Ok(Condition::Always) => "always".to_owned(),
            Ok(Condition::Never) => "never".to_owned(),
            Ok(Condition::If(filter)) => filter.to_string(),
            Err(why) => why,
        }
    }

    /// OAR-R-13, OAR-R-14: what the planner can be told is the same condition; the rest is refused by name. OAR-T-20, OAR-T-61: what
    /// nodes take may change while a job waits.
    #[test]
    fn filters_become_conditions_on_nodes() {
        let number = |mem| [("mem", PropertyValue::Number(mem)), ("gpu", PropertyValue::Flag(mem > 64))];
        let switch = |name: &str| ("switch", PropertyValue::Text(name.to_owned()));
        let one = [&number(64)[..], &[switch("s1")]].concat();
        let cluster =
            Cluster::of(&[node("n1", 4, 2, &one), node("n2", 4, 2, &number(128)), node("m1", 4, 2, &number(256))]);
        for (text, meaning) in [
            ("switch = 's1'", "switch=s1"),
            ("mem >= 64 AND mem < '200'", "mem>=64&mem<200"),
            ("64 < mem", "mem>64"),
            ("NOT (mem = 64 OR switch = 's1')", "mem!=64&switch!=s1"),
            ("gpu = 'YES'", "gpu=YES|gpu=true"),
            ("host = 'n1'", "name=n1"),
            ("network_address LIKE 'n%'", "name=n1|name=n2"),
            ("host NOT LIKE 'n%'", "name!=n1&name!=n2"),
            ("host LIKE 'x%'", "never"),
            ("switch IN ('s1', 's2')", "switch=s1|switch=s2"),
            ("switch NOT IN ('s1')", "switch!=s1"),
            ("switch IS NULL", "!(switch>=false|switch>=-9223372036854775808|switch>=)"),
            ("mem BETWEEN 64 AND 128", "mem>=64&mem<=128"),
            ("type = 'default' AND state = 'Alive'", "always"),
            ("besteffort = 'NO'", "never"),
            ("besteffort = 'YES'", "!(besteffort=false|besteffort=NO)"),
            ("NOT besteffort = 'NO'", "!(besteffort=false|besteffort=NO)"),
            ("deploy = 'NO'", "!(deploy=true|deploy=YES)"),
        ] {
            assert_eq!(said(text, &cluster), meaning, "{text}");
        }
        for (text, why) in [
            ("core <= 2", "chooses a single core"),
            ("switch = host", "compares two properties"),
            ("state = 'Absent'", "nodes that take jobs"),
            ("gpu > 'NO'", "they have no order"),
        ] {
            assert!(said(text, &cluster).contains(why), "{text}: {}", said(text, &cluster));
        }
        assert_eq!(said("", &fixture()), "always");
    }
}
