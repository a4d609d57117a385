//! The file `nodes` of PBS and the config of its monitors (PBS-L-01, PBS-L-02).

use crate::{
    findings::Findings,
    lines::{self, Word},
    values::{self, Decimal},
};
use std::collections::BTreeMap;

/// The suffix of timeshared nodes.
const TIMESHARED: &str = ":ts";

/// A node of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Whether it is shared by jobs in time, not given to one of them.
    pub is_timeshared: bool,
    /// Its properties, in the order of the file.
    pub properties: Vec<String>,
    /// The number of its processors (`np`), at least 1.
    pub processors: u32,
}

/// The loads at which a node is well used and full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loads {
    /// Up to this load the node is among the first that are chosen.
    pub ideal: Decimal,
    /// Up to this load it is chosen at all.
    pub max: Decimal,
}

/// What a monitor's config file says of loads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MonitorConfig {
    /// `ideal_load`.
    pub ideal: Option<Decimal>,
    /// `max_load`.
    pub max: Option<Decimal>,
}

impl MonitorConfig {
    /// The loads of a node. A load that is left out equals the node's CPUs, but ideal is never above max.
    pub fn loads(self, cpus: u32) -> Loads {
        let cpus = Decimal::whole(cpus);
        let ideal = self.ideal.unwrap_or_else(|| self.max.map_or(cpus, |max| max.min(cpus)));
        Loads { ideal, max: self.max.unwrap_or_else(|| cpus.max(ideal)) }
    }
}

/// Reads the nodes of a file, in its order. Mistakes are added to the findings.
pub fn read(bytes: &[u8], findings: &mut Findings) -> Vec<Node> {
    let (mut nodes, mut seen) = (Vec::new(), BTreeMap::new());
    for line in lines::lines(bytes).filter(|line| !lines::is_comment(line)) {
        let words = lines::words(&line);
        let Some(node) = words.split_first().and_then(|(name, rest)| read_node(*name, rest, findings)) else {
            continue;
        };
        if let Some(first) = seen.insert(node.name.clone(), line.number) {
            findings.error(words[0], format!("the node is in line {first}, too"));
            continue;
        }
        nodes.push(node);
    }
    nodes
}

fn read_node(name: Word, rest: &[Word], findings: &mut Findings) -> Option<Node> {
    let (bare, is_timeshared) = match name.text.strip_suffix(TIMESHARED) {
        Some(bare) => (bare, true),
        None => (name.text, false),
    };
    if bare.is_empty() || bare.contains([':', '=', ',']) || name.is_garbled() {
        findings.error(name, "expected the name of a node, with ':ts' if it is timeshared");
        return None;
    }
    let mut node = Node { name: bare.to_owned(), is_timeshared, properties: Vec::new(), processors: 1 };
    for word in rest {
        match word.text.split_once('=') {
            None => node.properties.push(word.text.to_owned()),
            Some(("np", number)) => node.processors = read_processors(*word, number, findings)?,
            Some(_) => findings.warning(*word, "has no effect here"),
        }
    }
    Some(node)
}

fn read_processors(word: Word, number: &str, findings: &mut Findings) -> Option<u32> {
    let number = values::decimal(number).and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0);
    if number.is_none() {
        findings.error(word, "expected np=n with an integer above zero");
    }
    number
}

/// Reads the loads in a monitor's config file. All other lines are left to the monitor.
pub fn read_monitor(bytes: &[u8], findings: &mut Findings) -> MonitorConfig {
    let mut config = MonitorConfig::default();
    for line in lines::lines(bytes).filter(|line| !lines::is_comment(line)) {
        let words = lines::words(&line);
        let Some(name) = words.first().map(|word| word.text.strip_prefix('$').unwrap_or(word.text)) else { continue };
        let field = match name {
            "ideal_load" => &mut config.ideal,
            "max_load" => &mut config.max,
            _ => continue,
        };
        let Some(load) = read_load(&words, findings) else { continue };
        *field = Some(load);
        // The line that is read later is the one that does not fit.
        if config.ideal.zip(config.max).is_some_and(|(ideal, max)| ideal > max) {
            findings.error(words[1], "expected an ideal_load that is not above max_load");
        }
    }
    config
}

fn read_load(words: &[Word], findings: &mut Findings) -> Option<Decimal> {
    let word = words.get(1).or(words.first())?;
    let load = words.get(1).and_then(|word| Decimal::parse(word.text));
    if load.is_none() {
        findings.error(*word, "expected a load, such as 50 or 2.5");
    }
    load
}
