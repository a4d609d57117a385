//! muster: the one binary of all roles and commands.

mod cells;
mod cli;
mod commands;
mod complete;
mod config;
mod descriptions;
mod dialects;
mod examples;
mod grammar;
mod job_options;
mod job_table;
mod output_files;
mod picture;
mod policies;
mod records;
mod roles;
mod script;
#[cfg(test)]
mod testing;
mod whole_file;
mod wrong_line;

use clap::{CommandFactory as _, FromArgMatches as _, parser::ValueSource};
use cli::{Cli, Command, SubmitCli};
use dialects::DIALECTS;
use grammar::{grammar, submission};
use muster_cli::{
    allocator::Allocator,
    connection, exit,
    process::{leave_at_once, occupy_standard_streams},
    show, story, table, terminal, values,
};
use muster_executor::SHIM_SERVER;
use muster_hpcpack_commands as hpcpack;
use muster_slurm_commands::{is_brief_link, link};
use std::{ffi::CStr, process::ExitCode};

/// What must start quickly runs before the C++ initialisers of RocksDB, which it does not need: the fork server and the
/// supervisors of filters and commands, whose memory all that they start would copy, `muster submit`, and the commands of Slurm.
#[used]
#[unsafe(link_section = ".init_array.00100")]
static EARLY: extern "C" fn(libc::c_int, *const *const libc::c_char) = {
    extern "C" fn early(count: libc::c_int, words: *const *const libc::c_char) {
        // SAFETY: the GNU C library, which muster is built with, hands its initialisers the words of the command line, of
        // which there are that many, and they stay as long as the process. Nothing has run yet that could have allocated or
        // made a thread.
        unsafe {
            let word = |place| (place < count).then(|| CStr::from_ptr(*words.offset(place as isize)).to_bytes());
            let is_brief = word(1).is_some_and(|word| word == b"submit" || word == SHIM_SERVER.as_bytes());
            if is_brief || word(0).is_some_and(is_brief_link) {
                ALLOCATOR.be_brief();
            }
        }
        occupy_standard_streams();
        if let Some(status) = link() {
            leave_at_once(status);
        }
        muster_executor::serve_shims_if_asked(DIALECTS);
        muster_filter_runner::supervise_filters_if_asked();
        muster_notifier::supervise_commands_if_asked();
        if is_submission() {
            leave_at_once(finish(commands::run(parse())));
        }
    }
    early
};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator::new();

fn main() -> ExitCode {
    complete::answer_if_asked();
    let cli = parse();
    if matches!(cli.command, Command::Up(_) | Command::Serve(_)) {
        return ExitCode::from(finish(commands::run(cli)));
    }
    die_quietly_when_nobody_reads();
    let status = finish(commands::run(cli));
    leave_at_once(status)
}

fn finish(result: exit::CommandResult) -> u8 {
    match result {
        Ok(status) => status,
        Err(mut failure) => {
            failure.message = show::with_local_times(&failure.message, &jiff::tz::TimeZone::system());
            failure.report()
        }
    }
}

/// Whether this is `muster submit`. A dialect's command of that name is called through a link of another name.
fn is_submission() -> bool {
    let mut arguments = std::env::args_os();
    let is_link = arguments.next().is_some_and(|path| hpcpack::is_link(&path));
    !is_link && arguments.next().is_some_and(|first| first == "submit")
}

/// The arguments with the verbs of the HPC Pack dialect in its own part of the grammar.
fn rewritten(arguments: Vec<std::ffi::OsString>) -> Vec<std::ffi::OsString> {
    hpcpack::rewritten(arguments, || Cli::command().find_subcommand("job").cloned().unwrap_or_default())
}

fn parse() -> Cli {
    let is_submission = is_submission();
    let arguments: Vec<_> = std::env::args_os().collect();
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
    // What was typed beats the environment, also where it is about another option.
    let typed = |option| matches.value_source(option) == Some(ValueSource::CommandLine);
    if typed("data") && !typed("server") {
        cli.connection.server = None;
    }
    cli
}

/// `muster jobs | head` ends like any other program when `head` has seen enough.
fn die_quietly_when_nobody_reads() {
    // SAFETY: no other thread exists yet, and the default action of a signal needs no handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> String {
        let arguments = rewritten(line.split(' ').map(std::ffi::OsString::from).collect());
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
