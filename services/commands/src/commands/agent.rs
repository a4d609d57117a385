//! `muster agent token`.

use crate::cli::{AgentCommand, AgentOptions};
use muster_cli::{
    exit::{CommandResult, Failure},
    stderr_line,
};
use std::{
    fs::File,
    io::{Read as _, Write as _},
};

/// The random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// Makes a token: the gateway knows only its hash.
pub fn token(options: &AgentOptions) -> CommandResult {
    let Some(AgentCommand::Token { node }) = &options.command else {
        return Err(Failure::usage("this program runs no agent; call `muster` instead"));
    };
    if node.is_empty() || node.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(Failure::usage("the name of a node has no spaces, and is not empty"));
    }
    let mut bytes = [0; TOKEN_BYTES];
    File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes))?;
    let token = muster_schemas::agent::to_hex(&bytes);
    let hash = blake3::hash(token.as_bytes()).to_hex();
    writeln!(std::io::stdout(), "{token}")?;
    stderr_line!("Add this line to the agents_file of the gateway:\n{hash} {node}");
    Ok(0)
}
