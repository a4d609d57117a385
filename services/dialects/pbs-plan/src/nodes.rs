//! Requests for whole nodes (PBS-Q-10).

use crate::resources::Resources;
use muster_pbs_policy::values;
use muster_schemas::resources::{
    Count, Level, LevelCount, Memory, NodeFilter, Per, PropertyValue, Relation, Request, Sharing,
};
use std::collections::BTreeSet;

/// The property of the node that stands for the server: jobs that ask for no nodes are on it.
pub const SERVER: &str = "the server";
/// The property with the number of processors of a node.
pub const PROCESSORS: &str = "processors";
/// Maximum number of parts of a request, and of nodes of a part.
const MOST: u64 = 100_000;

/// The name of a property of a node, which no other word of the planner has.
pub fn property(name: &str) -> String {
    format!("property {name}")
}

/// The request of a job that asks for no nodes.
pub fn none() -> Request {
    let filter = Some(NodeFilter::Has(SERVER.into()));
    Request { tasks: Some(1), memory: Some(Memory { bytes: 0, per: Per::Node }), filter, ..Request::default() }
}

/// The property of nodes that jobs which ask for none share.
pub const TIMESHARED: &str = "timeshared";
/// The property with the memory of a timeshared node, in kilobytes.
pub const MEMORY: &str = "memory";
/// The properties with the name and the architecture of a timeshared node.
const NAMED: [&str; 2] = ["host", "arch"];

/// The name of the property that a resource asks for as text.
pub fn named(resource: &str) -> String {
    format!("the {resource}")
}

/// The request of a job that asks for no nodes if loads choose one (PBS-Q-09): `ncpus` and `mem` as numbers, `host` and
/// `arch` as texts.
pub fn timeshared(asked: &Resources) -> Request {
    let at_least = |(resource, property): (&str, &str)| {
        let value = PropertyValue::Number(i64::try_from(asked.number(resource)?).ok()?);
        Some(NodeFilter::Compare { property: property.to_owned(), relation: Relation::GreaterOrEqual, value })
    };
    let equal = |resource: &str| {
        let value = PropertyValue::Text(asked.text(resource)?.to_owned());
        Some(NodeFilter::Compare { property: named(resource), relation: Relation::Equal, value })
    };
    let filters = [NodeFilter::Has(TIMESHARED.into())]
        .into_iter()
        .chain([("ncpus", PROCESSORS), ("mem", MEMORY)].into_iter().filter_map(at_least))
        .chain(NAMED.into_iter().filter_map(equal));
    Request { filter: Some(NodeFilter::All(filters.collect())), ..none() }
}

/// Reads `N`, `N:property`, `name` and `property`, joined by `+`; `ppn=N` asks for nodes with as many processors. The
/// result has the number of nodes.
pub fn read(text: &str, names: &BTreeSet<&str>) -> Result<(Vec<Request>, u64), String> {
    let parts: Vec<&str> = text.split('+').collect();
    if parts.len() as u64 > MOST {
        return Err(format!("expected at most {MOST} parts"));
    }
    let mut requests = Vec::with_capacity(parts.len());
    let mut all = 0;
    for part in parts {
        let (request, count) = one(part, names)?;
        requests.push(request);
        all += u64::from(count);
    }
    Ok((requests, all))
}

fn one(part: &str, names: &BTreeSet<&str>) -> Result<(Request, u32), String> {
    let mut words = part.split(':');
    let first = words.next().unwrap_or_default();
    let mut filters = vec![NodeFilter::Not(Box::new(NodeFilter::Has(SERVER.into())))];
    let mut request = Request::default();
    let mut count = 1;
    match values::decimal(first) {
        Some(number @ 1..=MOST) => count = u32::try_from(number).unwrap_or(u32::MAX),
        Some(number) => return Err(format!("expected 1 to {MOST} nodes, found {number}")),
        None if first.is_empty() => return Err(format!("expected N, N:property or a name, found `{part}`")),
        None if names.contains(first) => request.nodes.push(first.to_owned()),
        None => filters.push(NodeFilter::Has(property(first))),
    }
    for word in words {
        filters.push(match word.strip_prefix("ppn=") {
            None if word.is_empty() => return Err(format!("expected a property after the colon in `{part}`")),
            None => NodeFilter::Has(property(word)),
            Some(processors) => {
                let least = values::decimal(processors).and_then(|number| i64::try_from(number).ok());
                let value = least.ok_or_else(|| format!("expected a number of processors in `{part}`"))?;
                let (property, value) = (PROCESSORS.to_owned(), PropertyValue::Number(value));
                NodeFilter::Compare { property, relation: Relation::GreaterOrEqual, value }
            }
        });
    }
    let request = Request {
        path: vec![LevelCount { level: Level::Node, count: Count::exactly(count) }],
        memory: Some(Memory { bytes: 0, per: Per::Node }),
        filter: Some(NodeFilter::All(filters)),
        sharing: Sharing::Exclusive,
        ..request
    };
    Ok((request, count))
}
