//! The command lines of the commands that list and control: `squeue`, `sinfo`, `sacct`, `scancel`, `scontrol`,
//! `sacctmgr`, `sbcast`, `sattach`, `sdiag`, `seff`, `sprio`, `sreport`, `sshare`, `sstat`, `strigger`.

pub mod change;
pub mod clusters;
mod commands;
pub mod copy;
mod failure;
pub mod getopt;
mod lists;
pub mod nodes;
pub mod partitions;
mod request;
pub mod reservation;
pub mod reservation_flags;
pub mod resize;
pub mod sacct;
pub mod sacctmgr;
pub mod scancel;
pub mod scontrol;
pub mod scrontab;
pub mod sdiag;
pub mod shell;
pub mod sinfo;
pub mod sprio;
pub mod squeue;
pub mod sreport;
pub mod sshare;
pub mod sstat;
pub mod steps;
pub mod strigger;
pub mod update;
pub mod words;

pub use failure::Failure;
pub use request::{Request, Surroundings};

use lists::{ids, known_states, means, nodes, set, states, words};
use request::{data_format, iterate, printed_only};

/// The commands, their arguments other than options, and their options.
static COMMANDS: [(&str, &str, &[getopt::Opt]); 16] = [
    ("sacct", "", sacct::OPTIONS),
    ("sacctmgr", "COMMAND ENTITY [CONDITIONS...]", sacctmgr::OPTIONS),
    ("sattach", "JOB.STEP", copy::SATTACH_OPTIONS),
    ("sbcast", "SOURCE DESTINATION", copy::SBCAST_OPTIONS),
    ("scancel", "[JOB[.STEP]...]", scancel::OPTIONS),
    ("scontrol", "COMMAND [WORDS...]", scontrol::OPTIONS),
    ("scrontab", "[FILE|-]", scrontab::OPTIONS),
    ("sdiag", "", sdiag::OPTIONS),
    ("seff", "JOB", sstat::SEFF_OPTIONS),
    ("sinfo", "", sinfo::OPTIONS),
    ("sprio", "", sprio::OPTIONS),
    ("squeue", "", squeue::OPTIONS),
    ("sreport", "KIND REPORT [CONDITIONS...]", sreport::OPTIONS),
    ("sshare", "", sshare::OPTIONS),
    ("sstat", "[JOB[.STEP]...]", sstat::OPTIONS),
    ("strigger", "", strigger::OPTIONS),
];

/// The output of a command's `--help`; `None` if it is not one of these.
pub fn help(command: &str) -> Option<String> {
    let (name, operands, table) = COMMANDS.iter().find(|(name, ..)| *name == command)?;
    Some(getopt::help(name, operands, table) + &commands::help(name))
}

/// The output of a command's `--usage`; `None` if it is not one of these.
pub fn usage(command: &str) -> Option<String> {
    let (name, operands, table) = COMMANDS.iter().find(|(name, ..)| *name == command)?;
    Some(getopt::usage(name, operands, table))
}

/// Refuses unknown node names (SL-C-26).
///
/// # Errors
/// The first such name.
pub fn check_nodes<'a>(
    command: &str,
    wanted: impl IntoIterator<Item = &'a String>,
    is_known: impl Fn(&str) -> bool,
) -> Result<(), Failure> {
    match wanted.into_iter().find(|name| !is_known(name)) {
        Some(name) => Err(Failure::error(command, format_args!("Invalid node name {name}"))),
        None => Ok(()),
    }
}
