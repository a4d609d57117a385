//! The command lines of `sbatch`, `salloc` and `srun` (SL-C-01, SL-C-02, SL-S-01 to S-04).
//!
//! Options are parsed like `getopt_long` does: long options may be abbreviated while only one fits, and take their
//! value as `--opt=v` or `--opt v`; short options may be glued together and to their value. Options end at the first
//! word that is not one, so that a script or command keeps its own.

mod command;
mod getopt;
mod help;
pub mod site;
mod table;
pub mod values;

use crate::{
    getopt::{Step, next},
    messages::Refusal,
    moment::Now,
};
pub use command::{Argument, Command};
use getopt::Own;
pub use help::{RELEASE, help, usage, version};
pub use site::SiteOptions;
pub use table::{ALIASES, Commands, Heading, OPTIONS, OptionSpec, Place, find};

/// An option as given.
#[derive(Clone, Debug)]
pub struct Given {
    /// The option.
    pub option: &'static OptionSpec,
    /// Its value, as written.
    pub value: Option<String>,
}

impl PartialEq for Given {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.option, other.option) && self.value == other.value
    }
}

impl Given {
    /// The value; empty if none was given.
    pub fn text(&self) -> &str {
        self.value.as_deref().unwrap_or_default()
    }

    /// This option, or the nodes in the file of `--nodefile`; `read` reads the file.
    ///
    /// # Errors
    /// The file contains no names, or cannot be read.
    pub fn with_file(self, read: impl Fn(&str) -> Option<String>) -> Result<Self, Refusal> {
        let named = OPTIONS.iter().find(|option| option.name == "nodelist").filter(|_| self.option.name == "nodefile");
        let Some(option) = named else { return Ok(self) };
        let names = read(self.text()).and_then(|text| values::hosts_of_file(&text)).ok_or(Refusal::NodeFile)?;
        Ok(Self { option, value: Some(names) })
    }

    /// Checks the value. Relative times are counted from `now`.
    ///
    /// # Errors
    /// [`Refusal::BadValue`] (SL-C-02).
    pub fn check(&self, now: &Now) -> Result<(), Refusal> {
        let Some(kind) = self.option.kind() else { return Ok(()) };
        let fits = match (&self.value, self.option.argument) {
            (None, _) => true,
            (Some(value), Argument::Optional(_)) if value.is_empty() => true,
            (Some(value), _) => kind.accepts(value, now),
        };
        if fits { Ok(()) } else { Err(Refusal::BadValue(self.option.name)) }
    }
}

/// The options of one component, and the program that `srun` runs there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// The options, in order.
    pub options: Vec<Given>,
    /// The program and its arguments; empty if the group has none. Only the last group of `sbatch` and `salloc` has
    /// one.
    pub words: Vec<String>,
}

/// A command line, in groups separated by `:` (SL-S-01).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandLine {
    /// The groups, at least one.
    pub groups: Vec<Group>,
}

impl CommandLine {
    /// Whether an option is given in any group.
    pub fn gives(&self, name: &str) -> bool {
        self.groups.iter().flat_map(|group| &group.options).any(|given| given.option.name == name)
    }

    /// The value of an option in the first group that has it.
    pub fn first(&self, name: &str) -> Option<&str> {
        let mut all = self.groups.iter().flat_map(|group| group.options.iter().rev());
        all.find(|given| given.option.name == name).map(Given::text)
    }

    /// The script or command of `sbatch` and `salloc`, with its arguments; empty if there is none.
    pub fn words(&self) -> &[String] {
        self.groups.last().map_or(&[], |group| &group.words)
    }

    /// The command line with the nodes from files of `--nodefile`.
    ///
    /// # Errors
    /// See [`Given::with_file`].
    pub fn with_files(mut self, read: impl Fn(&str) -> Option<String>) -> Result<Self, Refusal> {
        for group in &mut self.groups {
            let options = std::mem::take(&mut group.options);
            group.options = options.into_iter().map(|given| given.with_file(&read)).collect::<Result<_, _>>()?;
        }
        Ok(self)
    }

    /// The command line with the nodes of `SLURM_HOSTFILE`, a file with a node for each task, in groups that name no
    /// nodes: their tasks are distributed as it says.
    pub fn with_host_file(mut self, file: Option<String>) -> Self {
        let Some(file) = file.filter(|file| !file.is_empty()) else { return self };
        let option = |name: &str| OPTIONS.iter().find(|option| option.name == name);
        for group in &mut self.groups {
            if group.options.iter().any(|given| matches!(given.option.name, "nodelist" | "nodefile")) {
                continue;
            }
            let given = [("nodefile", &file), ("distribution", &"arbitrary".to_owned())];
            let given = given.into_iter().filter_map(|(name, value)| Some((option(name)?, value.clone())));
            group.options.extend(given.map(|(option, value)| Given { option, value: Some(value) }));
        }
        self
    }

    /// The number of `--verbose` options (SL-C-08).
    pub fn verbosity(&self) -> usize {
        let all = self.groups.iter().flat_map(|group| &group.options);
        all.filter(|given| given.option.name == "verbose").count()
    }
}

/// Reads a command line, without the command's own name.
///
/// # Errors
/// An unknown or ambiguous option, or a missing or superfluous value.
pub fn parse(command: Command, arguments: &[impl AsRef<str>]) -> Result<CommandLine, Refusal> {
    parse_with(command, SiteOptions::default(), arguments)
}

/// The same with the options of a site (SL-S-22).
///
/// # Errors
/// See [`parse`].
pub fn parse_with(command: Command, site: SiteOptions, arguments: &[impl AsRef<str>]) -> Result<CommandLine, Refusal> {
    let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    let table = Own { command, site };
    match command {
        Command::Srun => parse_programs(&table, &arguments),
        Command::Sbatch | Command::Salloc => parse_before_script(&table, &arguments),
    }
}

/// `sbatch` and `salloc`: the first word that is not an option is the script, and the rest belongs to it (SL-S-04).
fn parse_before_script(table: &Own, arguments: &[&str]) -> Result<CommandLine, Refusal> {
    let mut groups = Vec::new();
    let mut rest = arguments;
    loop {
        let (options, words) = parse_options(table, rest)?;
        match words {
            [":", after @ ..] => {
                groups.push(Group { options, words: Vec::new() });
                rest = after;
            }
            words => {
                groups.push(Group { options, words: owned(words) });
                return Ok(CommandLine { groups });
            }
        }
    }
}

/// `srun`: each group has its own program; a separate `:` always separates groups (SL-S-03).
fn parse_programs(table: &Own, arguments: &[&str]) -> Result<CommandLine, Refusal> {
    let mut groups = Vec::new();
    let mut rest = arguments;
    loop {
        let (options, words) = parse_options(table, rest)?;
        let end = words.iter().position(|word| *word == ":");
        groups.push(Group { options, words: owned(&words[..end.unwrap_or(words.len())]) });
        let Some(end) = end else { return Ok(CommandLine { groups }) };
        rest = &words[end + 1..];
    }
}

/// The options at the beginning, and the words after them.
fn parse_options<'a, 'b>(table: &Own, arguments: &'a [&'b str]) -> Result<(Vec<Given>, &'a [&'b str]), Refusal> {
    let mut options = Vec::new();
    let mut at = 0;
    let mut take = |option, value| options.push(Given { option, value });
    while next(table, arguments, &mut at, &mut take)? == Step::Options {}
    Ok((options, &arguments[at..]))
}

/// Reads words that must all be options, as in a script's option lines.
///
/// # Errors
/// See [`parse`]; [`Refusal::InvalidDirective`] for a word that is not an option.
pub fn parse_words(command: Command, site: SiteOptions, words: &[impl AsRef<str>]) -> Result<Vec<Given>, Refusal> {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let (options, rest) = parse_options(&Own { command, site }, &words)?;
    match rest {
        [] => Ok(options),
        [word, ..] => Err(Refusal::InvalidDirective((*word).to_owned())),
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
