//! The server of a program, as the shim starts it: the socket to the shim is file descriptor 0. For tests, and to try a
//! new version of the library.

use std::os::{fd::AsFd as _, unix::net::UnixStream};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    Ok(muster_pmix::serve(&socket)?)
}
