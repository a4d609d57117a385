//! Recognises command lines of this dialect by the program's name or by the form of their options.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

/// The program names of this dialect's commands.
pub const TOOLS: [&str; 3] = ["job", "jobtemplate", "cluscfg"];
/// Verbs of both muster's own `job` and this dialect's.
const SHARED: [&str; 3] = ["cancel", "modify", "requeue"];
/// Options before the command that take a value.
const CONNECTION: [&str; 3] = ["--data", "--server", "--token"];

/// The command whose name the program was called by, through a link.
fn tool(path: &OsStr) -> Option<&'static str> {
    let name = Path::new(path).file_stem()?.to_str()?;
    TOOLS.into_iter().find(|tool| tool.eq_ignore_ascii_case(name))
}

/// Whether the program was called as one of this dialect's commands.
pub fn is_link(path: &OsStr) -> bool {
    tool(path).is_some()
}

/// The arguments in the form of muster's own command line: `job view 7 /xml`, called through a link, becomes
/// `muster job hpcpack view 7 /xml`, and so does `muster job cancel 7 /force`. `own` is the grammar of muster's own
/// `job`.
pub fn rewritten(arguments: Vec<OsString>, own: impl FnOnce() -> clap::Command) -> Vec<OsString> {
    match arguments.first().and_then(|path| tool(path)) {
        Some("job") => with_prefix(&arguments, &["job", "hpcpack"]),
        Some(tool) => with_prefix(&arguments, &[tool]),
        None => shared_verb(arguments, own),
    }
}

fn with_prefix(arguments: &[OsString], prefix: &[&str]) -> Vec<OsString> {
    let prefix = prefix.iter().map(OsString::from);
    ["muster".into()].into_iter().chain(prefix).chain(arguments.iter().skip(1).cloned()).collect()
}

fn shared_verb(mut arguments: Vec<OsString>, own: impl FnOnce() -> clap::Command) -> Vec<OsString> {
    let Some(at) = job_at(&arguments) else { return arguments };
    let verb = arguments.get(at + 1).and_then(|verb| verb.to_str());
    let Some(verb) = verb.filter(|verb| SHARED.iter().any(|shared| shared.eq_ignore_ascii_case(verb))) else {
        return arguments;
    };
    if is_of_dialect(&own(), verb, &arguments[at + 2..]) {
        arguments.insert(at + 1, "hpcpack".into());
    }
    arguments
}

/// The position of the command `job`, after connection options.
fn job_at(arguments: &[OsString]) -> Option<usize> {
    let mut at = 1;
    loop {
        let word = arguments.get(at)?.to_str()?;
        match word {
            "job" => return Some(at),
            _ if CONNECTION.contains(&word) => at += 2,
            _ if CONNECTION.iter().any(|option| word.starts_with(&format!("{option}="))) => at += 1,
            _ => return None,
        }
    }
}

/// Whether the options belong to the dialect: `/name...`, or `--name=value` where muster's own verb has no such option
/// or takes no such value.
fn is_of_dialect(own: &clap::Command, verb: &str, arguments: &[OsString]) -> bool {
    let known: Vec<String> = own
        .find_subcommand(verb)
        .into_iter()
        .flat_map(|verb| verb.get_arguments().filter_map(|argument| argument.get_long().map(str::to_owned)))
        .collect();
    arguments.iter().filter_map(|argument| argument.to_str()).any(|argument| {
        if argument.starts_with('/') {
            return true;
        }
        let Some(option) = argument.strip_prefix("--").filter(|option| !option.is_empty()) else { return false };
        let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let is_name = name == "priority" && value.is_some_and(|value| value.parse::<i64>().is_err());
        is_name
            || !CONNECTION.contains(&&*format!("--{name}"))
                && name != "help"
                && !known.iter().any(|known| known == name)
    })
}
