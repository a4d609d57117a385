//! The server of PMIx programs on a node, which a shim starts (SL-W-05).

use std::{
    io,
    os::{fd::AsFd as _, unix::net::UnixStream},
    process::ExitCode,
};

/// Serves the shim at the other end of the standard input. Nobody reads its messages: the shim has been told what failed.
pub fn serve() -> ExitCode {
    let socket = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
    match socket {
        Ok(socket) if muster_pmix::serve(&socket).is_ok() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
