//! `oarproperty`: properties of resources are added, renamed and removed while the system runs (OAR-R-22).

use super::{
    cluster::Cluster,
    configuration::{config, configure, declared, declaring, with_properties},
    ended::{Ended, Failure, print},
    site::Site,
    words::{self, Known, Takes},
};
use muster_cli::connection::ConnectionOptions;
use muster_oar::{
    resources::{property::is_built_in, value::Kind},
    text::shown,
};
use muster_schemas::cluster::{ClusterChange, ClusterConfig};
use std::collections::BTreeMap;

const OPTIONS: [Known; 8] = [
    ('l', "list", Takes::Nothing),
    ('a', "add", Takes::Value),
    ('c', "varchar", Takes::Nothing),
    ('d', "delete", Takes::Value),
    ('r', "rename", Takes::Value),
    ('q', "quiet", Takes::Nothing),
    ('h', "help", Takes::Nothing),
    ('V', "version", Takes::Nothing),
];
const USAGE: &str = "usage: oarproperty -l\n       oarproperty [-q] -a NAME [-c] | -d NAME | -r OLD,NEW ...\n";

/// Runs a command line of `oarproperty`. All that it names is changed, or nothing.
pub fn run(connection: &ConnectionOptions, line: &[String]) -> Ended {
    let words = words::read(line, &OPTIONS)?;
    let changes = ["add", "delete", "rename"].iter().any(|name| words.has(name));
    if words.has("help") {
        print(USAGE);
        return Ok(0);
    }
    if !words.operands.is_empty() || !(changes || words.has("list")) {
        return Err(Failure::new(USAGE.trim_end()));
    }
    let mut site = Site::open(connection)?;
    let config = config(&mut site)?;
    let mut work = Work { cluster: site.cluster()?, declared: declared(&config), config };
    work.cluster.declare(&work.declared);
    if words.has("list") {
        let own = work.cluster.table.fields().keys().filter(|name| !is_built_in(name));
        print(&own.fold(String::new(), |text, name| text + name + "\n"));
    }
    if !changes {
        return Ok(0);
    }
    let mut done = Vec::new();
    for name in words.values("delete") {
        done.push(work.delete(name)?);
    }
    let kind = if words.has("varchar") { Kind::Text } else { Kind::Integer };
    for name in words.values("add") {
        done.push(work.add(name, kind)?);
    }
    for names in words.values("rename") {
        done.push(work.rename(names)?);
    }
    configure(&mut site, &work.change())?;
    if !words.has("quiet") {
        print(&done.iter().fold(String::new(), |text, line| text + line + "\n"));
    }
    Ok(0)
}

/// What the properties are to be.
struct Work {
    cluster: Cluster,
    declared: BTreeMap<String, Kind>,
    config: ClusterConfig,
}

impl Work {
    fn add(&mut self, name: &str, kind: Kind) -> Result<String, Failure> {
        self.cluster.table.add_property(name, kind).map_err(refused)?;
        let small = name.to_ascii_lowercase();
        let text = format!("Added property: {small}");
        self.declared.insert(small, kind);
        Ok(text)
    }

    fn delete(&mut self, name: &str) -> Result<String, Failure> {
        require_own(name)?;
        self.cluster.table.remove_property(name).map_err(refused)?;
        let small = name.to_ascii_lowercase();
        self.declared.remove(&small);
        for node in &mut self.config.nodes {
            node.properties.retain(|known, _| !known.eq_ignore_ascii_case(&small));
        }
        Ok(format!("Removed property: {small}"))
    }

    fn rename(&mut self, names: &str) -> Result<String, Failure> {
        let wrong = || Failure::new(format_args!("expected OLD,NEW, found '{}'; nothing was changed", shown(names)));
        let (old, new) = names.split_once(',').ok_or_else(wrong)?;
        let (old, new) = (old.trim().to_ascii_lowercase(), new.trim().to_ascii_lowercase());
        require_own(&old)?;
        self.cluster.table.rename_property(&old, &new).map_err(refused)?;
        if let Some(kind) = self.declared.remove(&old) {
            self.declared.insert(new.clone(), kind);
        }
        for node in &mut self.config.nodes {
            let known = node.properties.keys().find(|known| known.eq_ignore_ascii_case(&old)).cloned();
            if let Some(value) = known.and_then(|known| node.properties.remove(&known)) {
                node.properties.insert(new.clone(), value);
            }
        }
        Ok(format!("Rename property {old} into {new}"))
    }

    /// One change, so that no node has a property under both names or none.
    fn change(self) -> ClusterChange {
        let settings = declaring(&self.config, &self.declared).settings;
        ClusterChange { settings, ..with_properties(self.config.nodes) }
    }
}

fn refused(problem: impl std::fmt::Display) -> Failure {
    Failure::new(format_args!("{problem}; nothing was changed"))
}

/// The levels that the system numbers itself stay.
fn require_own(name: &str) -> Result<(), Failure> {
    let small = name.to_ascii_lowercase();
    let is_numbered = [super::cluster::CPU, super::cluster::CORE, super::cluster::HOST].contains(&small.as_str());
    match is_numbered {
        true => Err(Failure::new(format_args!("{small} is numbered by the system and stays; nothing was changed"))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::node;
    use muster_schemas::resources::PropertyValue;

    fn work() -> Work {
        let view = node("n1", 2, 1, &[("Mem", PropertyValue::Number(64))]);
        let config = ClusterConfig { nodes: vec![view.spec.clone()], ..ClusterConfig::default() };
        Work { cluster: Cluster::of(&[view]), declared: BTreeMap::new(), config }
    }

    /// OAR-R-22
    #[test]
    fn properties_come_go_and_are_renamed() {
        let mut work = work();
        assert_eq!(work.add("Wing", Kind::Text).ok(), Some("Added property: wing".into()));
        assert_eq!(work.rename("mem, ram").ok(), Some("Rename property mem into ram".into()));
        assert_eq!(work.config.nodes[0].properties, [("ram".to_owned(), PropertyValue::Number(64))].into());
        assert_eq!(work.declared, [("wing".to_owned(), Kind::Text)].into());
        assert!(work.delete("ram").is_ok() && work.config.nodes[0].properties.is_empty());
        for refused in [
            work.add("wing", Kind::Text),
            work.add("a-b", Kind::Integer),
            work.delete("state"),
            work.delete("core"),
            work.rename("wing,state"),
            work.rename("wing"),
            work.rename("host,x"),
            work.delete("nothing"),
        ] {
            let text = refused.expect_err("it is refused").text;
            assert!(text.ends_with("; nothing was changed"), "{text}");
        }
    }
}
