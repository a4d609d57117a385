//! The commands of the PBS dialect, under their own names or as `muster pbs NAME`: they read files, ask the system and
//! print. `muster-pbs`, which does none of that, knows words and tables.

mod configuration;
mod ended;
mod node_file;
mod nodes;
mod order;
mod pbsdsh;
mod pbsnodes;
mod policy;
pub mod policy_folder;
mod program;
mod qmgr;
mod qselect;
mod qstat;
mod qsub;
mod simple;
mod site;
mod switches;
mod tracejob;

pub use site::{FLAVOUR, KEPT_RESOURCES, NODES_ARE_WHOLE, SERVER};

use ended::{Ended, print};
use muster_cli::{
    connection::ConnectionOptions,
    link::{self, Linked},
    stderr_line,
};
use muster_pbs::NAME;
use site::Site;

/// The program names of this dialect's commands.
pub const TOOLS: [&str; 23] = [
    "qsub",
    "qstat",
    "qdel",
    "qhold",
    "qrls",
    "qsig",
    "qrerun",
    "qmove",
    "qalter",
    "qselect",
    "pbsnodes",
    "qenable",
    "qdisable",
    "qstart",
    "qstop",
    "qmgr",
    "qmsg",
    "qrun",
    "qorder",
    "tracejob",
    "pbs_stagein",
    "printjob",
    "pbsdsh",
];

/// Carries the command line out if the program was called through the link of a command of PBS; `None` if it was not.
pub fn link() -> Option<u8> {
    match link::called_as(TOOLS)? {
        Ok(Linked { tool, words, connection }) => Some(run(&connection, tool, &words)),
        Err(status) => Some(status),
    }
}

/// `muster basl ...`.
pub fn basl(words: &[String]) -> u8 {
    status_of("muster basl", program::run(words))
}

/// `muster pbs NAME ...`.
pub fn words(connection: &ConnectionOptions, words: &[String]) -> u8 {
    match words.split_first() {
        Some((word, rest)) if word == "check" => return status_of("muster pbs check", policy::run(rest)),
        Some((word, rest)) if word == "load" => {
            return status_of("muster pbs load", policy_folder::run(connection, rest));
        }
        Some((word, rest)) if word == "nodes" => return status_of("muster pbs nodes", node_file::run(rest)),
        Some((word, rest)) if word == "plan" => return status_of("muster pbs plan", policy::plan_dry(rest)),
        _ => {}
    }
    let known = words.split_first().and_then(|(name, rest)| Some((TOOLS.into_iter().find(|tool| tool == name)?, rest)));
    match known {
        Some((tool, rest)) => run(connection, tool, rest),
        None => {
            stderr_line!("muster: usage: muster {NAME} check|load|nodes|plan|{} ...", TOOLS.join("|"));
            2
        }
    }
}

fn run(connection: &ConnectionOptions, tool: &'static str, words: &[String]) -> u8 {
    if words == ["--version"] {
        print(&format!("pbs_version = {}\n", site::version()));
        return 0;
    }
    if words.first().is_some_and(|word| word == "--help" || word == "--about") {
        print(&format!(
            "{tool}: the options are those of PBS; docs/pbs.md says what differs, and --version the version\n"
        ));
        return 0;
    }
    let ended = Site::open(connection).and_then(|mut site| match tool {
        "qsub" => qsub::run(&mut site, connection, words),
        "qstat" => qstat::run(&mut site, words),
        "qselect" => qselect::run(&mut site, words),
        "pbsnodes" => pbsnodes::run(&mut site, words),
        "qmgr" => qmgr::run(&mut site, words),
        "qorder" => order::run(&mut site, words),
        "tracejob" => tracejob::run(&mut site, words),
        "printjob" => qstat::print_jobs(&mut site, words),
        "pbsdsh" => pbsdsh::run(&mut site, words),
        "qenable" | "qdisable" | "qstart" | "qstop" => switches::run(&mut site, tool, words),
        _ => simple::run(&mut site, tool, words),
    });
    status_of(tool, ended)
}

/// The exit status of a command; a failure is told.
fn status_of(tool: &str, ended: Ended) -> u8 {
    ended.unwrap_or_else(|failure| {
        stderr_line!("{tool}: {}", failure.text);
        failure.status
    })
}
