//! Shared by the tests of this folder.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// The muster binary of the same build. Without it there is nothing to test.
pub fn muster() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_muster-loadtest")).with_file_name("muster");
    assert!(path.is_file(), "{} is missing: build it with `cargo build -p muster`", path.display());
    path
}

/// The repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package is a folder of the repository")
}

/// Replays the repository's window of a real trace; returns whether it succeeded, and its output.
pub fn replay(arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_muster-loadtest"));
    command.arg("replay").arg(repository().join("tests/data/hpc2n-window.swf")).args(arguments);
    run(command)
}

/// Runs a command to its end; returns whether it succeeded, and its output.
pub fn run(mut command: Command) -> (bool, String) {
    let Output { status, stdout, stderr } = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    (status.success(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}
