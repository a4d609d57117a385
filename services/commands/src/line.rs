//! Reading the command line.

use crate::{
    cli::{Cli, SubmitCli},
    grammar::{grammar, submission},
    wrong_line,
};
use clap::{CommandFactory as _, FromArgMatches as _, parser::ValueSource};
use muster_hpcpack_commands as hpcpack;
use std::{ffi::OsString, path::Path};

/// Parses the command line. If it is wrong, or asks for help, prints that and ends the process.
pub fn parse() -> Cli {
    let arguments = as_rsh(std::env::args_os().collect());
    let is_submission = is_submission(&arguments);
    let arguments = if is_submission { arguments } else { rewritten(arguments) };
    let grammar = if is_submission { submission } else { grammar };
    let read = grammar().try_get_matches_from(&arguments);
    let matches = read.unwrap_or_else(|error| wrong_line::tell(error, grammar, &arguments));
    let parsed = if is_submission {
        SubmitCli::from_arg_matches(&matches).map(Cli::from)
    } else {
        Cli::from_arg_matches(&matches)
    };
    let mut cli = parsed.unwrap_or_else(|error| error.exit());
    // A typed option overrides the environment, even one for another option.
    let typed = |option| matches.value_source(option) == Some(ValueSource::CommandLine);
    if typed("data") && !typed("server") {
        cli.connection.server = None;
    }
    cli
}

/// The link by which launchers of parallel programs call `muster rsh`: they take the name of a program, without words.
pub const RSH_LINK: &str = "muster-rsh";

fn as_rsh(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments.first().and_then(|path| Path::new(path).file_name());
    if name.is_some_and(|name| name == RSH_LINK) {
        arguments.insert(1, "rsh".into());
    }
    arguments
}

/// Whether this is `muster submit`. A dialect's command of that name is called through a link.
fn is_submission(arguments: &[OsString]) -> bool {
    matches!(arguments, [path, first, ..] if !hpcpack::is_link(path) && first == "submit")
}

/// The arguments, with the verbs of the HPC Pack dialect moved to its own part of the grammar.
fn rewritten(arguments: Vec<OsString>) -> Vec<OsString> {
    hpcpack::rewritten(arguments, || Cli::command().find_subcommand("job").cloned().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> String {
        let arguments = rewritten(line.split(' ').map(OsString::from).collect());
        arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    /// HPC-C-01
    #[test]
    fn links_and_options_lead_to_the_dialect_and_muster_s_own_verbs_stay() {
        for (typed, meant) in [
            ("/usr/bin/job view 7 /xml", "muster job hpcpack view 7 /xml"),
            ("job submit hostname", "muster job hpcpack submit hostname"),
            ("./cluscfg listparams", "muster cluscfg listparams"),
            ("JobTemplate.exe list", "muster jobtemplate list"),
            ("muster job cancel 7 /force", "muster job hpcpack cancel 7 /force"),
            ("muster --data x job modify 7 /priority:Normal", "muster --data x job hpcpack modify 7 /priority:Normal"),
            ("muster job modify 7 --priority=Normal+5", "muster job hpcpack modify 7 --priority=Normal+5"),
            ("muster job modify 7 --priority=5", "muster job modify 7 --priority=5"),
            ("muster job cancel 7", "muster job cancel 7"),
            ("muster job cancel --matching --user x", "muster job cancel --matching --user x"),
            ("muster job cancel 7 --message=enough", "muster job hpcpack cancel 7 --message=enough"),
            ("muster job requeue --hold 7", "muster job requeue --hold 7"),
            ("muster jobs --json", "muster jobs --json"),
            ("muster submit -- job cancel /force", "muster submit -- job cancel /force"),
        ] {
            assert_eq!(of(typed), meant);
        }
    }
}
