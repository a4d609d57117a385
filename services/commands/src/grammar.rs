//! The grammar of the command line, with examples in its help.

use crate::{
    cli::{Cli, SubmitCli},
    examples,
};
use clap::CommandFactory as _;

/// The grammar of the command line.
pub fn grammar() -> clap::Command {
    examples::added_to(Cli::command())
}

/// The grammar of `muster submit` alone.
pub fn submission() -> clap::Command {
    examples::added_to(SubmitCli::command())
}
