//! The configuration file of a BaSL scheduler (PBS-X-12): who may connect, which servers and monitors there are, and
//! which query to a monitor gives the value of which function.

use crate::{
    fault::{Fault, Faults, Position},
    getters::{Getter, Named},
    types::Kind,
    words::suggestion,
};

/// A host and a port; 0 is the default port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The host's name.
    pub name: String,
    /// Its port.
    pub port: u16,
}

/// Which query gives the value of a function for a node, or for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The node; nothing for `*`.
    pub node: Option<String>,
    /// The function, as `CNodeLoadAveGet`.
    pub function: String,
    /// The name in brackets behind it, as `real` in `CNodeMemTotalGet[real]`.
    pub argument: Option<String>,
    /// What the monitor is asked.
    pub query: String,
}

impl Mapping {
    /// The key of the value among [`crate::Node::values`].
    pub fn key(&self) -> String {
        match &self.argument {
            Some(argument) => format!("{}[{argument}]", self.function),
            None => self.function.clone(),
        }
    }

    /// Whether the value is asked for only at the first cycle and when the configuration is read again, not in each
    /// cycle.
    pub fn is_static(&self) -> bool {
        STATIC.contains(&self.function.as_str())
    }
}

/// A configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Hosts whose clients may connect to the scheduler.
    pub clients: Vec<String>,
    /// Servers besides the local one.
    pub servers: Vec<Host>,
    /// Monitors of nodes.
    pub monitors: Vec<Host>,
    /// All mappings in the order in which later ones win; the preset ones come first.
    pub mappings: Vec<Mapping>,
}

/// Functions whose values do not change while a node runs.
const STATIC: [&str; 16] = [
    "CNodePropertiesGet",
    "CNodeVendorGet",
    "CNodeNumCpusGet",
    "CNodeOsGet",
    "CNodeMemTotalGet",
    "CNodeNetworkBwGet",
    "CNodeSwapSpaceTotalGet",
    "CNodeDiskSpaceTotalGet",
    "CNodeDiskInBwGet",
    "CNodeDiskOutBwGet",
    "CNodeTapeSpaceTotalGet",
    "CNodeTapeInBwGet",
    "CNodeTapeOutBwGet",
    "CNodeSrfsSpaceTotalGet",
    "CNodeSrfsInBwGet",
    "CNodeSrfsOutBwGet",
];

/// Getters that look at the snapshot and not at a monitor.
const NOT_MAPPED: [Getter; 3] = [Getter::CNodeNameGet, Getter::CNodeStateGet, Getter::CNodeTypeGet];

const PRESET: [(&str, &str); 3] =
    [("CNodeOsGet", "arch"), ("CNodeLoadAveGet", "loadave"), ("CNodeIdletimeGet", "idletime")];

const DIRECTIVES: [&str; 4] = ["$clienthost", "$serverhost", "$momhost", "$node"];

/// Bytes of a file.
const LONGEST: usize = 1 << 20;

impl Config {
    /// Reads a configuration file. Empty lines and those that start with `#` are skipped.
    ///
    /// # Errors
    /// All mistakes, in the order of the lines.
    pub fn parse(file_name: &str, text: &str) -> Result<Self, Vec<Fault>> {
        let mut faults = Faults::new(file_name);
        if text.len() > LONGEST {
            faults.add(Position::START, "", format!("the file has {} bytes; the maximum is {LONGEST}", text.len()));
            return Err(faults.into_list());
        }
        let mut config = Self { mappings: PRESET.map(preset).into(), ..Self::default() };
        for (number, whole) in (1..).zip(text.lines()) {
            let line = whole.trim();
            if !line.is_empty() && !line.starts_with('#') {
                config.line(&mut Line { number, text: whole, faults: &mut faults }, line);
            }
        }
        if faults.is_empty() { Ok(config) } else { Err(faults.into_list()) }
    }

    fn line(&mut self, at: &mut Line<'_>, line: &str) {
        let (directive, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match directive {
            "$clienthost" => self.clients.extend(at.words(rest, ["a host"]).map(|[host]| host.to_owned())),
            "$serverhost" => self.servers.extend(at.host(rest)),
            "$momhost" => self.monitors.extend(at.host(rest)),
            "$node" => self.mappings.extend(at.mapping(rest)),
            _ => {
                let known = DIRECTIVES.join(", ");
                let near = suggestion(directive, DIRECTIVES);
                at.fault(directive, format!("unknown directive; known are {known}{near}"));
            }
        }
    }

    /// The mappings that hold for a node: of those for the same function and argument, the last one.
    pub fn mappings_of<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a Mapping> {
        let is_for = move |mapping: &Mapping| mapping.node.as_ref().is_none_or(|name| name == node);
        let is_replaced = move |place: usize, mapping: &Mapping| {
            let is_same = |later: &Mapping| later.function == mapping.function && later.argument == mapping.argument;
            self.mappings.iter().skip(place + 1).any(|later| is_for(later) && is_same(later))
        };
        self.mappings
            .iter()
            .enumerate()
            .filter(move |(place, mapping)| is_for(mapping) && !is_replaced(*place, mapping))
            .map(|(_, mapping)| mapping)
    }
}

fn preset((function, query): (&str, &str)) -> Mapping {
    Mapping { node: None, function: function.to_owned(), argument: None, query: query.to_owned() }
}

/// A line of the file.
struct Line<'f> {
    number: u32,
    text: &'f str,
    faults: &'f mut Faults,
}

impl Line<'_> {
    fn fault(&mut self, token: &str, message: impl Into<String>) {
        self.faults.add(Position { line: self.number, column: self.column(token) }, token, message);
    }

    /// Where a part of the line begins.
    fn column(&self, part: &str) -> u32 {
        let bytes = (part.as_ptr() as usize).checked_sub(self.text.as_ptr() as usize);
        let before = bytes.and_then(|bytes| self.text.get(..bytes)).unwrap_or_default();
        Position::START.after(before).column
    }

    /// Exactly these words.
    fn words<'w, const N: usize>(&mut self, rest: &'w str, needed: [&str; N]) -> Option<[&'w str; N]> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        if let Some(extra) = words.get(N) {
            self.fault(extra, format!("expected the end of the line after {}", needed.join(", ")));
            return None;
        }
        if let Some(missing) = needed.get(words.len()) {
            self.fault(rest.trim(), format!("expected {missing}"));
            return None;
        }
        words.try_into().ok()
    }

    fn host(&mut self, rest: &str) -> Option<Host> {
        let [name, port] = self.words(rest, ["a host", "a port"])?;
        match port.parse() {
            Ok(port) => Some(Host { name: name.to_owned(), port }),
            Err(_) => {
                self.fault(port, "expected a port from 0 to 65535");
                None
            }
        }
    }

    /// `name-or-* Getter[argument] query`; the query is the rest of the line.
    fn mapping(&mut self, rest: &str) -> Option<Mapping> {
        let rest = rest.trim();
        let (node, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let (function, query) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
        if node.is_empty() || function.is_empty() || query.trim().is_empty() {
            self.fault(rest.trim(), "expected a node or *, a function and a query");
            return None;
        }
        let (name, argument) = match function.split_once('[') {
            Some((name, argument)) => (name, Some(argument.strip_suffix(']'))),
            None => (function, None),
        };
        if matches!(argument, Some(None | Some(""))) {
            self.fault(function, "expected a name and ']' after '['");
            return None;
        }
        let argument = argument.flatten();
        self.function(name, argument.is_some())?;
        let node = (node != "*").then(|| node.to_owned());
        let query = query.trim().to_owned();
        Some(Mapping { node, function: name.to_owned(), argument: argument.map(str::to_owned), query })
    }

    /// Whether a function can be mapped, with or without an argument.
    fn function(&mut self, name: &str, has_argument: bool) -> Option<()> {
        let plain = Getter::ALL.iter().filter(|(_, getter, ..)| !NOT_MAPPED.contains(getter));
        let plain = plain.filter(|(_, _, kind, _)| *kind == Kind::CNode).map(|(name, ..)| *name);
        let named = Named::ALL.iter().filter(|(_, _, kind, _)| *kind == Kind::CNode).map(|(name, ..)| *name);
        let (is_plain, is_named) = (plain.clone().any(|known| known == name), named.clone().any(|known| known == name));
        match (is_plain, is_named, has_argument) {
            (true, _, false) | (_, true, true) => return Some(()),
            (true, _, true) => self.fault(name, "this function takes no name in brackets"),
            (_, true, false) => self.fault(name, "this function takes a name in brackets, as CNodeMemTotalGet[real]"),
            _ => {
                let near = suggestion(name, plain.chain(named));
                self.fault(name, format!("no function whose value a monitor gives{near}"));
            }
        }
        None
    }
}
