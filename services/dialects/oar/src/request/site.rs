//! What a site says about requests.

use crate::resources::{
    property::{self, Fields},
    table::Table,
};

/// The properties, names and defaults that requests are read with.
#[derive(Clone, Debug)]
pub struct Site {
    /// The properties of its resources.
    pub fields: Fields,
    /// The property whose values are nodes (`OARSUB_NODES_RESOURCES`).
    pub node_level: String,
    /// Other names of that level. A property of the same name goes first.
    pub node_aliases: Vec<String>,
    /// The demand of a job without one (`OARSUB_DEFAULT_RESOURCES`).
    pub default_demand: String,
    /// The walltime of an alternative without one, in seconds.
    pub default_walltime: i64,
}

impl Site {
    /// A site with the resources of a table and the usual defaults.
    pub fn of(table: &Table) -> Self {
        Self {
            fields: table.fields().clone(),
            node_level: property::NODE.to_owned(),
            node_aliases: vec!["nodes".to_owned(), "host".to_owned()],
            default_demand: "/resource_id=1".to_owned(),
            default_walltime: 7200,
        }
    }

    /// The property of a level's name; `None` if there is none.
    pub fn level(&self, name: &str) -> Option<String> {
        let small = name.to_ascii_lowercase();
        if self.fields.contains_key(&small) {
            return Some(small);
        }
        self.node_aliases.contains(&small).then(|| self.node_level.clone())
    }

    /// The names that levels may have, for suggestions.
    pub fn level_names(&self) -> impl Iterator<Item = &str> {
        let names = self.fields.keys().filter(|name| !property::is_system(name));
        names.chain(&self.node_aliases).map(String::as_str)
    }
}
