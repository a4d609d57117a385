//! The submitter and the site.

use crate::flavour::Flavour;
use std::collections::BTreeSet;

/// What a job takes from the process that submits it.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Its user's login name.
    pub user: String,
    /// The groups of its user, by name.
    pub groups: Vec<String>,
    /// Its user's home folder, absolute; empty if unknown.
    pub home: String,
    /// Its user's login shell; empty if unknown.
    pub shell: String,
    /// Its working directory, absolute.
    pub directory: String,
    /// Its environment.
    pub environment: Vec<(String, String)>,
    /// The host that it runs on.
    pub host: String,
    /// Its command line, without the command's name.
    pub arguments: String,
    /// Whether there is a folder of this absolute path. Output files of a folder get their default names in it.
    pub is_folder: fn(&str) -> bool,
}

impl Default for Caller {
    fn default() -> Self {
        Self {
            user: String::new(),
            groups: Vec::new(),
            home: String::new(),
            shell: String::new(),
            directory: "/".to_owned(),
            environment: Vec::new(),
            host: String::new(),
            arguments: String::new(),
            is_folder: |_| false,
        }
    }
}

impl Caller {
    /// A variable of its environment.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A path as seen from its working directory.
    pub fn absolute(&self, path: &str) -> String {
        if path.starts_with('/') {
            return path.to_owned();
        }
        format!("{}/{path}", self.directory.trim_end_matches('/'))
    }
}

/// The site's rules for submissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The member of the family (`pbs.flavour`).
    pub flavour: Flavour,
    /// The server's name: the part of job identifiers after the dot.
    pub server: String,
    /// Whether `nodes=N` without `ppn` asks for whole nodes (PBS-Q-10, `pbs.nodes_are_whole`).
    pub nodes_are_whole: bool,
    /// The names of the nodes. If known, a word of `nodes` that is none of them is a property.
    pub node_names: Option<BTreeSet<String>>,
    /// Resources of the site that are only kept and shown (`pbs.kept_resources`).
    pub kept_resources: BTreeSet<String>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            flavour: Flavour::PbsPro,
            server: String::new(),
            nodes_are_whole: true,
            node_names: None,
            kept_resources: BTreeSet::new(),
        }
    }
}

impl Rules {
    /// Whether a word of `nodes` is the name of a node.
    pub(super) fn names_node(&self, word: &str) -> bool {
        self.node_names.as_ref().is_none_or(|names| names.contains(word))
    }

    /// Whether a name is that of the server, in full or without its domain.
    pub(super) fn is_server(&self, name: &str) -> bool {
        let short = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
        name.eq_ignore_ascii_case(&self.server) || (!name.contains('.') && short(&self.server) == short(name))
    }
}
