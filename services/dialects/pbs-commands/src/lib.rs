//! The commands of the PBS dialect, under their own names or as `muster pbs NAME`: they read files, ask the system and
//! print. `muster-pbs`, which does none of that, knows words and tables.

mod qselect;
mod qstat;
mod qsub;
mod simple;
mod site;

pub use site::{FLAVOUR, SERVER};

use muster_cli::{
    connection::ConnectionOptions,
    link::{self, Linked},
    stderr_line,
};
use muster_client::ClientError;
use muster_pbs::{NAME, refusal::Refusal};
use site::Site;
use std::{fmt, io::Write as _};

/// The program names of this dialect's commands.
pub const TOOLS: [&str; 10] =
    ["qsub", "qstat", "qdel", "qhold", "qrls", "qsig", "qrerun", "qmove", "qalter", "qselect"];

/// Carries the command line out if the program was called through the link of a command of PBS; `None` if it was not.
pub fn link() -> Option<u8> {
    match link::called_as(TOOLS)? {
        Ok(Linked { tool, words, connection }) => Some(run(&connection, tool, &words)),
        Err(status) => Some(status),
    }
}

/// `muster pbs NAME ...`.
pub fn words(connection: &ConnectionOptions, words: &[String]) -> u8 {
    let known = words.split_first().and_then(|(name, rest)| Some((TOOLS.into_iter().find(|tool| tool == name)?, rest)));
    match known {
        Some((tool, rest)) => run(connection, tool, rest),
        None => {
            stderr_line!("muster: usage: muster {NAME} {} ...", TOOLS.join("|"));
            2
        }
    }
}

fn run(connection: &ConnectionOptions, tool: &'static str, words: &[String]) -> u8 {
    if words.iter().any(|word| word == "--version") {
        print(&format!("pbs_version = {}\n", site::version()));
        return 0;
    }
    let ended = Site::open(connection).and_then(|mut site| match tool {
        "qsub" => qsub::run(&mut site, connection, words),
        "qstat" => qstat::run(&mut site, words),
        "qselect" => qselect::run(&mut site, words),
        _ => simple::run(&mut site, tool, words),
    });
    ended.unwrap_or_else(|failure| {
        stderr_line!("{tool}: {}", failure.text);
        failure.status
    })
}

/// Prints all at once, and ignores a closed output.
fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// The result of a command: its exit status, or why it does nothing.
type Ended = Result<u8, Failure>;

/// Why a command does nothing.
struct Failure {
    text: String,
    status: u8,
}

impl Failure {
    fn new(text: impl fmt::Display) -> Self {
        Self { text: text.to_string(), status: 1 }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self { text: refusal.to_string(), status: refusal.exit_status() }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::new(error)
    }
}
