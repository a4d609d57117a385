//! `--clusters` of the commands that list and control (SL-S-19).

use super::{COMMANDS, Failure, getopt};

/// The clusters that a command is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    list: String,
    /// Whether it comes from the environment, not from the command line.
    is_variable: bool,
}

impl Wish {
    /// The option of a command line, else the variable; `None` without either.
    pub fn of(option: Option<&str>, variable: Option<String>) -> Option<Self> {
        let given = option.map(|text| Self { list: text.to_owned(), is_variable: false });
        given.or_else(|| variable.map(|list| Self { list, is_variable: true })).filter(|wish| !wish.list.is_empty())
    }

    /// Whether it means all clusters.
    pub fn is_all(&self) -> bool {
        self.list.eq_ignore_ascii_case("all")
    }

    /// The names in order, each once.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names: Vec<&str> = self.list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        let is_first = |place: usize, name: &str| !names[..place].contains(&name);
        let firsts: Vec<&str> =
            names.iter().enumerate().filter(|(place, name)| is_first(*place, name)).map(|(_, name)| *name).collect();
        firsts.into_iter()
    }

    /// The message for an unknown cluster name.
    pub fn unknown(&self, command: &str) -> Failure {
        let entry = if self.is_variable { "SLURM_CLUSTERS" } else { "--cluster" };
        let list = &self.list;
        Failure::error(
            command,
            format_args!(
                "'{list}' can't be reached now, or it is an invalid entry for {entry}.  Use 'sacctmgr list clusters' to \
                 see available clusters."
            ),
        )
    }
}

/// The clusters in a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Which.
    pub wish: Wish,
    /// Whether each cluster's list has a heading.
    pub has_headings: bool,
}

/// The clusters in the command line of one of these commands; `None` if it is about the own one, or cannot be read,
/// which the command itself reports.
pub fn asked(command: &str, words: &[impl AsRef<str>], variable: &dyn Fn(&str) -> Option<String>) -> Option<Asked> {
    let (_, _, table) = COMMANDS.iter().find(|(name, ..)| *name == command)?;
    table.iter().find(|option| option.key == "clusters")?;
    let line = getopt::parse(command, table, words).ok()?;
    let wish = Wish::of(line.value("clusters"), variable("SLURM_CLUSTERS"))?;
    let has_headings = matches!(command, "squeue" | "sinfo") && !line.has("noheader");
    Some(Asked { wish, has_headings })
}

/// The heading of a cluster's list: its name, after an empty line if it is not the first.
pub fn heading(name: &str, is_first: bool) -> String {
    format!("{}CLUSTER: {name}\n", if is_first { "" } else { "\n" })
}
