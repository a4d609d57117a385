//! The configuration of a BaSL program, and what it makes the program see of nodes (PBS-X-12).

use crate::source;
use muster_basl::{Amount, Amounts, Fault, Node, Server, Snapshot, config::Config};
use std::{collections::BTreeMap, path::PathBuf};

/// The configuration in force, with the answers that are asked for only once.
#[derive(Debug, Default)]
pub struct Monitored {
    /// The file, with the checksum of its text.
    file: Option<(PathBuf, String)>,
    config: Config,
    /// The answers of each node to queries of static functions.
    known: BTreeMap<String, Amounts>,
}

impl Monitored {
    /// Reads a configuration; none has no mappings.
    ///
    /// # Errors
    /// All mistakes in it.
    pub fn read(file: Option<PathBuf>) -> Result<Self, Vec<String>> {
        let Some(file) = file else { return Ok(Self::default()) };
        let text = source::read(&file).map_err(|error| vec![error])?;
        let config = Config::parse(&file.display().to_string(), &text);
        let config = config.map_err(|faults| faults.iter().map(Fault::located).collect::<Vec<_>>())?;
        Ok(Self { file: Some((file, source::sha256(&text))), config, known: BTreeMap::new() })
    }

    /// The file.
    pub fn file(&self) -> Option<PathBuf> {
        self.file.as_ref().map(|(file, _)| file.clone())
    }

    /// Its name and checksum.
    pub fn source(&self) -> Option<(String, String)> {
        self.file.as_ref().map(|(file, sha256)| (source::name(file), sha256.clone()))
    }

    /// Adds further servers and what monitors answer. A query that a monitor does not know leaves the function as it is; static ones
    /// are asked for again in the next cycle then.
    pub fn tell(&mut self, snapshot: &mut Snapshot, ask: &dyn Fn(&str, &str) -> Option<String>) {
        let further = self.config.servers.iter();
        let further = further.map(|host| Server { name: Some(host.name.clone()), ..Server::default() });
        snapshot.other_servers.extend(further);
        for node in &mut snapshot.nodes {
            self.tell_of(node, ask);
        }
    }

    fn tell_of(&mut self, node: &mut Node, ask: &dyn Fn(&str, &str) -> Option<String>) {
        for mapping in self.config.mappings_of(&node.name) {
            let key = mapping.key();
            let known = self.known.get(&node.name).and_then(|known| known.get(&key)).filter(|_| mapping.is_static());
            let Some(value) = known.cloned().or_else(|| ask(&node.name, &mapping.query).map(amount)) else { continue };
            if mapping.is_static() {
                self.known.entry(node.name.clone()).or_default().insert(key.clone(), value.clone());
            }
            node.values.insert(key, value);
        }
    }
}

/// An answer as the amount that it is.
fn amount(text: String) -> Amount {
    match (text.parse(), text.parse::<f64>()) {
        (Ok(number), _) => Amount::Number(number),
        (_, Ok(fraction)) if fraction.is_finite() => Amount::Fraction(fraction),
        _ => Amount::Text(text),
    }
}
