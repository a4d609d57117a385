//! Messages about wrong command lines. They do not mention options from the environment, and for verbs of other
//! programs they name the one to use here.

use clap::{
    Command,
    error::{ContextKind, ContextValue},
};
use std::ffi::OsString;

/// Verbs that people type, and what to type instead.
const VERBS: [(&[&str], &str); 17] = [
    (&["queue", "q", "list", "ls"], "`muster jobs` lists jobs, `muster queues` lists queues"),
    (&["info", "cluster"], "`muster status` says how the cluster is doing, `muster nodes` lists its nodes"),
    (&["watch", "monitor"], "`muster top` refreshes it, `muster events --follow` shows what happens"),
    (
        &["show", "describe", "inspect"],
        "`muster job show JOB`, `muster node show NODE` and `muster config show` show things",
    ),
    (&["attach"], "`muster step attach JOB.STEP` shows a step's output, `muster shell JOB` opens a shell in the job"),
    (&["exec", "ssh"], "`muster step run JOB -- COMMAND` runs a command in a running job, `muster shell JOB` a shell"),
    (&["log", "output", "cat", "tail", "peek"], "`muster logs JOB` shows what a job wrote"),
    (&["kill", "delete", "del", "rm", "abort", "stop"], "`muster cancel JOB` cancels a job"),
    (
        &["hold", "release", "suspend", "resume", "requeue", "signal", "modify", "wait"],
        "`muster job VERB JOB` does that to a job",
    ),
    (&["drain", "undrain", "close", "open"], "`muster node VERB NODES` does that to nodes"),
    (&["history"], "`muster job events JOB` shows a job's history, `muster events` that of the cluster"),
    (&["start", "init", "server"], "`muster up` runs a whole system here, `muster serve ROLE` runs a role"),
    (&["check", "health", "ping"], "`muster doctor` says what is wrong with this installation"),
    (&["stats", "report", "accounting"], "`muster usage` says what was used"),
    (&["interactive", "alloc", "bash", "sh"], "`muster shell` opens a shell in a job"),
    (
        &["sbatch", "srun", "squeue", "sinfo", "scancel", "scontrol", "sacct", "salloc", "sattach"],
        "`muster slurm NAME` is the command of that name",
    ),
    (
        &["qsub", "qstat", "qdel", "bsub", "bjobs", "bkill"],
        "`muster submit`, `muster jobs` and `muster cancel` do that",
    ),
];

/// What to type instead of an unknown verb.
fn advice(verb: &str) -> Option<&'static str> {
    VERBS.iter().find(|(verbs, _)| verbs.contains(&verb)).map(|(_, advice)| *advice)
}

/// Reports the error, or prints what was asked for instead of a command (help, the version), and ends the process.
pub fn tell(error: clap::Error, grammar: impl Fn() -> Command, arguments: &[OsString]) -> ! {
    if let Some(text) = text_for_verb(&error, &grammar(), arguments) {
        muster_cli::stderr_line!("muster: {text}");
        std::process::exit(muster_cli::exit::Status::Usage as i32);
    }
    as_typed(error, grammar(), arguments).exit()
}

/// The message for an unknown verb of `muster` itself; `muster job` has verbs of its own.
fn text_for_verb(error: &clap::Error, grammar: &Command, arguments: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(verb)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let mut before = arguments.iter().skip(1).take_while(|word| *word != verb.as_str());
    let is_first = before.all(|word| grammar.find_subcommand(word).is_none());
    let advice = advice(verb).filter(|_| is_first)?;
    Some(format!("there is no command `{verb}`: {advice}"))
}

/// The same error without the environment. Otherwise its usage would list all options that are set, and tell people
/// that `--data` and `--token`, which they did not type, are required.
fn as_typed(error: clap::Error, grammar: Command, arguments: &[OsString]) -> clap::Error {
    match without_environment(grammar).try_get_matches_from(arguments) {
        Err(other) if first_line(&other) == first_line(&error) => other,
        // The environment caused the error, or supplied what the rest needs.
        _ => error,
    }
}

fn first_line(error: &clap::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

fn without_environment(command: Command) -> Command {
    command.mut_args(|argument| argument.env(None::<&str>)).mut_subcommands(without_environment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory as _;

    fn text(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = Cli::command().try_get_matches_from(&words).unwrap_err();
        text_for_verb(&error, &Cli::command(), &words)
    }

    #[test]
    fn verbs_of_other_programs_are_led_to_the_right_command() {
        for (line, command) in [
            ("muster queue", "muster jobs"),
            ("muster --data /x info", "muster status"),
            ("muster watch", "muster top"),
            ("muster show 7", "muster job show"),
            ("muster attach 7", "muster step attach"),
            ("muster exec 7 -- ls", "muster step run"),
            ("muster kill 7", "muster cancel"),
        ] {
            let text = text(line).unwrap_or_default();
            assert!(text.contains(command), "{line}: {text}");
        }
        assert_eq!(text("muster job kill 7"), None);
        assert_eq!(text("muster nonsense"), None);
    }

    /// An existing verb must not have advice, and advised commands must exist.
    #[test]
    fn advice_is_about_commands_that_exist() {
        let command = Cli::command();
        for (verbs, advice) in VERBS {
            assert!(verbs.iter().all(|verb| command.find_subcommand(verb).is_none()), "{verbs:?}");
            for quoted in advice.split('`').skip(1).step_by(2) {
                let mut found = &command;
                for word in quoted.split(' ').skip(1).take_while(|word| word.chars().all(char::is_lowercase)) {
                    found = found.find_subcommand(word).unwrap_or_else(|| panic!("{quoted}"));
                }
            }
        }
    }
}
