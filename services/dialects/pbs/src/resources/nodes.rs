//! The nodes of OpenPBS and TORQUE: `nodes=2:ppn=4:fast+n17:gpus=1#shared` (PBS-Q-10).

use super::place::Exclusion;
use crate::{
    refusal::Refusal,
    text::{decimal, is_name},
};
use std::fmt;

/// The most entries in one request.
const MOST_ENTRIES: usize = 10_000;
/// The most nodes, and the most processors on each, in one request.
const MOST_NODES: u32 = 1_000_000;

/// What an entry begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// A number of nodes, at least 1.
    Count(u32),
    /// The name of a node. TORQUE also takes a property there.
    Name(String),
}

/// Equal nodes, or one by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// How many, or which.
    pub head: Head,
    /// `ppn`: processors on each.
    pub ppn: Option<u32>,
    /// `gpus`: GPUs on each.
    pub gpus: Option<u32>,
    /// `mem`: memory on each, as written.
    pub mem: Option<String>,
    /// Properties that each has.
    pub properties: Vec<String>,
}

impl Entry {
    /// The number of nodes.
    pub fn count(&self) -> u32 {
        match self.head {
            Head::Count(count) => count,
            Head::Name(_) => 1,
        }
    }
}

/// The value of `nodes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodesSpec {
    /// The entries, at least one.
    pub entries: Vec<Entry>,
    /// `#shared` or `#excl` at its end.
    pub exclusion: Option<Exclusion>,
}

impl NodesSpec {
    /// Reads the value.
    ///
    /// # Errors
    /// The part that is wrong, and what is expected.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let (entries, exclusion) = match text.split_once('#') {
            None => (text, None),
            Some((entries, "shared")) => (entries, Some(Exclusion::Shared)),
            Some((entries, "excl")) => (entries, Some(Exclusion::Excl)),
            Some((_, word)) => return Err(Refusal::value("nodes", word, "expected #shared or #excl")),
        };
        let parts: Vec<&str> = entries.split('+').collect();
        if parts.len() > MOST_ENTRIES {
            return Err(Refusal::value("nodes", text, format!("at most {MOST_ENTRIES} entries are taken")));
        }
        let spec = Self { entries: parts.into_iter().map(entry).collect::<Result<_, _>>()?, exclusion };
        if spec.count() > u64::from(MOST_NODES) {
            return Err(Refusal::value("nodes", text, format!("at most {MOST_NODES} nodes are taken")));
        }
        Ok(spec)
    }

    /// The number of nodes: `nodect`.
    pub fn count(&self) -> u64 {
        self.entries.iter().map(|entry| u64::from(entry.count())).sum()
    }

    /// The number of processors: one for each node that names none.
    pub fn processors(&self) -> u64 {
        self.entries.iter().map(|entry| u64::from(entry.count()) * u64::from(entry.ppn.unwrap_or(1))).sum()
    }
}

fn entry(text: &str) -> Result<Entry, Refusal> {
    let mut parts = text.trim().split(':');
    let first = parts.next().unwrap_or_default();
    let head = match decimal::<u32>(first) {
        Some(count) if (1..=MOST_NODES).contains(&count) => Head::Count(count),
        Some(_) => {
            return Err(Refusal::value("nodes", first, format!("the number of nodes is 1 to {MOST_NODES}")));
        }
        None if is_node_name(first) => Head::Name(first.to_owned()),
        None => return Err(Refusal::value("nodes", text, "expected a number or the name of a node")),
    };
    let mut entry = Entry { head, ppn: None, gpus: None, mem: None, properties: Vec::new() };
    for part in parts {
        take(&mut entry, part)?;
    }
    Ok(entry)
}

fn take(entry: &mut Entry, part: &str) -> Result<(), Refusal> {
    let wrong = |why: &str| Err(Refusal::value("nodes", part, why));
    let number = |value: &str| decimal::<u32>(value).filter(|number| (1..=MOST_NODES).contains(number));
    match part.split_once('=') {
        None if is_name(part) => entry.properties.push(part.to_owned()),
        None => return wrong("this is not the name of a property"),
        Some(("ppn", value)) if entry.ppn.is_none() => match number(value) {
            Some(ppn) => entry.ppn = Some(ppn),
            None => return wrong("ppn is a number from 1"),
        },
        Some(("gpus", value)) if entry.gpus.is_none() => match number(value) {
            Some(gpus) => entry.gpus = Some(gpus),
            None => return wrong("gpus is a number from 1"),
        },
        Some(("mem", value)) if entry.mem.is_none() => entry.mem = Some(value.to_owned()),
        Some(("ppn" | "gpus" | "mem", _)) => return wrong("it is given twice"),
        Some((name, _)) => {
            return Err(Refusal::unsupported(
                &format!("nodes=...:{name}=..."),
                "ppn, gpus, mem and properties are known in an entry of nodes",
            ));
        }
    }
    Ok(())
}

/// Whether the text can be the name of a node.
fn is_node_name(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    begins && text.len() <= 255 && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.head {
            Head::Count(count) => write!(f, "{count}")?,
            Head::Name(name) => f.write_str(name)?,
        }
        if let Some(ppn) = self.ppn {
            write!(f, ":ppn={ppn}")?;
        }
        if let Some(gpus) = self.gpus {
            write!(f, ":gpus={gpus}")?;
        }
        if let Some(mem) = &self.mem {
            write!(f, ":mem={mem}")?;
        }
        self.properties.iter().try_for_each(|property| write!(f, ":{property}"))
    }
}

impl fmt::Display for NodesSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, entry) in self.entries.iter().enumerate() {
            write!(f, "{}{entry}", if place > 0 { "+" } else { "" })?;
        }
        f.write_str(match self.exclusion {
            Some(Exclusion::Shared) => "#shared",
            Some(_) => "#excl",
            None => "",
        })
    }
}
