//! Features of nodes: the language of `--constraint` (SL-C-12).
//!
//! ```text
//! any   = all  { "|" all }           one of them
//! all   = term { ("&" | ",") term }  all of them
//! term  = ( NAME | "(" any ")" | "[" any "]" ) [ "*" N ]
//! ```
//! Brackets ask for the same one of the features on all nodes, `*N` for that many nodes of a kind.

use crate::options::values::count;
use muster_schemas::resources::{NodeFilter, PropertyValue, Relation};
use std::collections::BTreeMap;

/// The most ways to meet a constraint.
const MOST_WAYS: usize = 64;
/// The deepest nesting of a constraint.
const DEEPEST: usize = 32;

/// One way to meet a constraint: nodes of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// Conditions for every node.
    pub every_node: Vec<NodeFilter>,
    /// Further conditions, each for this number of nodes.
    pub some_nodes: Vec<(NodeFilter, u32)>,
}

impl Way {
    /// The conditions for every node, as one filter.
    pub fn filter(&self) -> Option<NodeFilter> {
        joined(self.every_node.clone())
    }

    fn and(mut self, other: &Self) -> Self {
        self.every_node.extend(other.every_node.iter().cloned());
        self.some_nodes.extend(other.some_nodes.iter().cloned());
        self
    }
}

/// The filter for nodes with at least this many CPUs (`--mincpus`).
pub fn with_cpus(least: u32) -> NodeFilter {
    NodeFilter::Compare {
        property: CPUS.to_owned(),
        relation: Relation::GreaterOrEqual,
        value: PropertyValue::Number(least.into()),
    }
}

/// The filter for nodes with at least this many sockets (`--sockets-per-node`).
pub fn with_sockets(least: u32) -> NodeFilter {
    NodeFilter::Compare {
        property: SOCKETS.to_owned(),
        relation: Relation::GreaterOrEqual,
        value: PropertyValue::Number(least.into()),
    }
}

/// The filter for nodes with at least this much disk for temporary files, in megabytes (`--tmp`).
pub fn with_tmp_disk(least: u64) -> NodeFilter {
    NodeFilter::Compare {
        property: TMP_DISK.to_owned(),
        relation: Relation::GreaterOrEqual,
        value: PropertyValue::Number(i64::try_from(least).unwrap_or(i64::MAX)),
    }
}

/// The parts of a filter that [`with_cpus`], [`with_sockets`] and [`with_tmp_disk`] made: those for which there are options of their own.
pub fn of_other_options(filter: &NodeFilter) -> Vec<&NodeFilter> {
    match filter {
        NodeFilter::Compare { property, .. } if OF_OPTIONS.contains(&property.as_str()) => vec![filter],
        NodeFilter::All(parts) => parts.iter().flat_map(of_other_options).collect(),
        _ => Vec::new(),
    }
}

/// A filter without those parts: what is left is about features.
pub fn without_other_options(filter: &NodeFilter) -> Option<NodeFilter> {
    joined(without(filter, &OF_OPTIONS))
}

/// A filter with another least disk for temporary files, in megabytes; 0 means none.
pub fn with_other_tmp_disk(filter: Option<&NodeFilter>, least: u64) -> Option<NodeFilter> {
    let mut kept = filter.map_or_else(Vec::new, |filter| without(filter, &[TMP_DISK]));
    kept.extend((least > 0).then(|| with_tmp_disk(least)));
    joined(kept)
}

/// The conditions of a filter but for those that compare one of these properties.
fn without(filter: &NodeFilter, properties: &[&str]) -> Vec<NodeFilter> {
    match filter {
        NodeFilter::Compare { property, .. } if properties.contains(&property.as_str()) => Vec::new(),
        NodeFilter::All(parts) => parts.iter().flat_map(|part| without(part, properties)).collect(),
        filter => vec![filter.clone()],
    }
}

/// The megabytes of disk for temporary files that a node has: the whole number in its property `tmp_disk_mb`, otherwise 0.
pub fn tmp_disk_megabytes(properties: &BTreeMap<String, PropertyValue>) -> u64 {
    match properties.get(TMP_DISK) {
        Some(PropertyValue::Number(megabytes)) => u64::try_from(*megabytes).unwrap_or(0),
        _ => 0,
    }
}

/// The property with the CPUs of a node.
const CPUS: &str = "cores";
/// The property with the sockets of a node.
const SOCKETS: &str = "sockets";
/// The property with the megabytes of disk that a node has for temporary files.
const TMP_DISK: &str = "tmp_disk_mb";
/// Whether a node with these features matches a filter. Relations to values are no matter of features, and hold here.
pub fn fits(filter: &NodeFilter, features: &[&str]) -> bool {
    match filter {
        NodeFilter::Has(name) => features.contains(&name.as_str()),
        NodeFilter::Compare { .. } => true,
        NodeFilter::All(filters) => filters.iter().all(|filter| fits(filter, features)),
        NodeFilter::Any(filters) => filters.iter().any(|filter| fits(filter, features)),
        NodeFilter::Not(filter) => !fits(filter, features),
    }
}

/// The properties that options of their own compare.
const OF_OPTIONS: [&str; 3] = [CPUS, SOCKETS, TMP_DISK];
/// The property with the name of the switch that a node is on.
pub const SWITCH: &str = "switch";
/// How long a job waits at most for few switches where the site does not say, in seconds (`max_switch_wait`).
pub const SWITCH_WAIT_SECONDS: u64 = 300;

fn joined(mut filters: Vec<NodeFilter>) -> Option<NodeFilter> {
    if filters.len() > 1 { Some(NodeFilter::All(filters)) } else { filters.pop() }
}

/// The ways to meet a constraint, in the order of the text; `None` if it cannot be read or has more than 64.
pub fn parse(text: &str) -> Option<Vec<Way>> {
    let mut reader = Reader { rest: text.trim(), depth: 0 };
    let ways = reader.any()?;
    reader.rest.is_empty().then_some(ways)
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl Reader<'_> {
    fn take(&mut self, token: char) -> bool {
        let rest = self.rest.trim_start();
        match rest.strip_prefix(token) {
            Some(after) => {
                self.rest = after.trim_start();
                true
            }
            None => false,
        }
    }

    /// A choice for each node separately, if no branch concerns other nodes.
    fn any(&mut self) -> Option<Vec<Way>> {
        let mut branches = vec![self.all()?];
        while self.take('|') {
            branches.push(self.all()?);
        }
        if branches.len() == 1 {
            return branches.pop();
        }
        let plain: Option<Vec<NodeFilter>> = branches.iter().map(|ways| only_filter(ways)).collect();
        match plain {
            Some(filters) => Some(vec![every(NodeFilter::Any(filters))]),
            None => bounded(branches.into_iter().flatten().collect()),
        }
    }

    fn all(&mut self) -> Option<Vec<Way>> {
        let mut ways = self.term()?;
        while self.take('&') || self.take(',') {
            let more = self.term()?;
            ways = bounded(ways.iter().flat_map(|way| more.iter().map(|other| way.clone().and(other))).collect())?;
        }
        Some(ways)
    }

    fn term(&mut self) -> Option<Vec<Way>> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let ways = if self.take('(') {
            let ways = self.any()?;
            self.take(')').then_some(ways)?
        } else if self.take('[') {
            let ways = self.choice()?;
            self.take(']').then_some(ways)?
        } else {
            vec![every(NodeFilter::Has(self.name()?))]
        };
        self.depth -= 1;
        if !self.take('*') {
            return Some(ways);
        }
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let nodes = count(&self.rest[..digits])?;
        self.rest = self.rest[digits..].trim_start();
        let counted = |way: &Way| Some(Way { every_node: Vec::new(), some_nodes: vec![(way.filter()?, nodes)] });
        ways.iter().map(counted).collect()
    }

    /// The inside of brackets: each branch is a separate way.
    fn choice(&mut self) -> Option<Vec<Way>> {
        let mut ways = self.all()?;
        while self.take('|') {
            ways.extend(self.all()?);
        }
        bounded(ways)
    }

    fn name(&mut self) -> Option<String> {
        let end = self.rest.find(|c: char| "|&,()[]*".contains(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        let name = name.trim_end();
        self.rest = rest;
        let fits = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control());
        fits.then(|| name.to_owned())
    }
}

fn every(filter: NodeFilter) -> Way {
    Way { every_node: vec![filter], some_nodes: Vec::new() }
}

/// The filter of a constraint with one way and no node counts.
fn only_filter(ways: &[Way]) -> Option<NodeFilter> {
    match ways {
        [way] if way.some_nodes.is_empty() => way.filter(),
        _ => None,
    }
}

fn bounded(ways: Vec<Way>) -> Option<Vec<Way>> {
    (ways.len() <= MOST_WAYS).then_some(ways)
}

/// The names of features in a constraint, in the order of the text.
pub fn names(text: &str) -> impl Iterator<Item = String> + '_ {
    let words = text.split(['&', '|', '[', ']', '(', ')', ',']);
    let names = words.map(|word| word.split('*').next().unwrap_or_default().trim().trim_start_matches('!'));
    names.filter(|name| !name.is_empty() && !name.bytes().all(|byte| byte.is_ascii_digit())).map(str::to_owned)
}
