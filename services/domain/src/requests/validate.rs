//! Limits on requests.

use crate::requests::pulled;
use crate::validate::{
    MAX_COUNT, MAX_FILTER_DEPTH, MAX_LIST, MAX_MEMORY_BYTES, MAX_NODE_NAMES, count, invalid, name, number, optional,
    walltime,
};
use muster_schemas::{
    command::Refusal,
    resources::{Alternative, Count, Gpus, Level, NodeFilter, Request},
};
use std::collections::BTreeSet;

/// How long a job can wait for nodes in few groups, in seconds: a year.
const LONGEST_WAIT_SECONDS: u64 = 365 * 86_400;

/// The alternatives of a component.
pub(crate) fn alternatives(alternatives: &[Alternative]) -> Result<(), Refusal> {
    count("alternatives", alternatives.len(), MAX_LIST)?;
    alternatives.iter().try_for_each(alternative)
}

fn alternative(alternative: &Alternative) -> Result<(), Refusal> {
    if let Some(seconds) = alternative.walltime_seconds {
        walltime(seconds)?;
    }
    count("licences", alternative.licences.len(), MAX_LIST)?;
    for (licence, wanted) in &alternative.licences {
        name("licences: a name", licence)?;
        number("licences: a number", u64::from(*wanted), 1, u64::from(MAX_COUNT))?;
    }
    if let Some(few) = &alternative.groups {
        name("groups.property", &few.property)?;
        number("groups.most", u64::from(few.most), 1, u64::from(MAX_COUNT))?;
        number("groups.wait_seconds", few.wait_seconds, 0, LONGEST_WAIT_SECONDS)?;
    }
    count("requests", alternative.requests.len(), MAX_LIST)?;
    alternative.requests.iter().try_for_each(request)?;
    pulled::alternative(alternative)
}

fn request(request: &Request) -> Result<(), Refusal> {
    let most = u64::from(MAX_COUNT);
    count("request.path", request.path.len(), 16)?;
    for part in &request.path {
        if let Level::Group(group) = &part.level {
            name("request.path: a group", group)?;
        }
        if let Count::Range { min, max } = part.count {
            number("request.path: a least number", u64::from(min), 1, most)?;
            number("request.path: a largest number", u64::from(max), u64::from(min), most)?;
        }
    }
    descending(request)?;
    number("request.tasks", u64::from(request.tasks.unwrap_or(1)), 1, most)?;
    number("request.tasks_per_node", u64::from(request.tasks_per_node.unwrap_or(1)), 1, most)?;
    number("request.cpus_per_task", u64::from(request.cpus_per_task), 1, most)?;
    if let Some(memory) = request.memory {
        number("request.memory.bytes", memory.bytes, 0, MAX_MEMORY_BYTES)?;
    }
    if let Some(gpus) = &request.gpus {
        number("request.gpus.count", u64::from(gpus.count), 0, most)?;
        optional("request.gpus.model", gpus.model.as_ref(), name)?;
    }
    models("request", request.gpus.as_ref(), &request.more_gpus)?;
    number("request.least_nodes", u64::from(request.least_nodes.unwrap_or(1)), 1, most)?;
    let least_nodes = u64::from(request.least_nodes.unwrap_or(1));
    number("request.most_nodes", u64::from(request.most_nodes.unwrap_or(MAX_COUNT)), least_nodes, most)?;
    count("request.nodes", request.nodes.len(), MAX_NODE_NAMES)?;
    count("request.excluded_nodes", request.excluded_nodes.len(), MAX_NODE_NAMES)?;
    request.filter.as_ref().map_or(Ok(()), |filter| self::filter(filter, 0))
}

/// The greatest number of models of GPUs in one request.
const MAX_MODELS: usize = 16;

/// GPUs of several models, each of which is named once.
pub(crate) fn models(field: &str, first: Option<&Gpus>, more: &[Gpus]) -> Result<(), Refusal> {
    let field = format!("{field}.more_gpus");
    count(&field, more.len(), MAX_MODELS)?;
    if more.is_empty() {
        return Ok(());
    }
    let mut named = BTreeSet::new();
    for gpus in first.into_iter().chain(more) {
        number(&format!("{field}: a count"), u64::from(gpus.count), 1, u64::from(MAX_COUNT))?;
        let Some(model) = &gpus.model else {
            return invalid(format!("{field}: GPUs of several models are all named by their model"));
        };
        name(&format!("{field}: a model"), model)?;
        if !named.insert(model) {
            return invalid(format!("{field}: model `{model}` is named twice"));
        }
    }
    if first.is_none() {
        return invalid(format!("{field}: they are beside those of gpus, which is not given"));
    }
    Ok(())
}

/// A path descends the tree: groups, then nodes, then resources of nodes.
fn descending(request: &Request) -> Result<(), Refusal> {
    let depth = |level: &Level| match level {
        Level::Group(_) => 0,
        Level::Node => 1,
        Level::Socket => 2,
        Level::Core | Level::Gpu => 3,
    };
    let down = request.path.windows(2).all(|pair| {
        let (above, below) = (depth(&pair[0].level), depth(&pair[1].level));
        above < below || (above == 0 && below == 0)
    });
    if down { Ok(()) } else { invalid("request.path: does not go down from groups to nodes, sockets and cores".into()) }
}

pub(crate) fn filter(filter: &NodeFilter, depth: usize) -> Result<(), Refusal> {
    if depth > MAX_FILTER_DEPTH {
        return invalid(format!("request.filter: nests deeper than {MAX_FILTER_DEPTH}"));
    }
    match filter {
        NodeFilter::Has(property) => name("request.filter: a property", property),
        NodeFilter::Compare { property, .. } => name("request.filter: a property", property),
        NodeFilter::All(filters) | NodeFilter::Any(filters) => {
            count("request.filter", filters.len(), MAX_LIST)?;
            filters.iter().try_for_each(|filter| self::filter(filter, depth + 1))
        }
        NodeFilter::Not(filter) => self::filter(filter, depth + 1),
    }
}
