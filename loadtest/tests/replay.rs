//! A window of a real trace, replayed as real processes on a real system, and verified.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// The muster binary of the same build. Without it there is nothing to test.
fn muster() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_muster-loadtest")).with_file_name("muster");
    assert!(path.is_file(), "{} is missing: build it with `cargo build -p muster`", path.display());
    path
}

fn replay(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_muster-loadtest"))
        .arg("replay")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/hpc2n-window.swf"))
        .args(arguments)
        .output()
        .expect("the load generator of this build runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_window_of_a_real_trace_runs_as_it_did() {
    let muster = muster();
    // A machine that is busy with other tests launches slowly: what is checked here is that nothing is lost, doubled or
    // miscounted, not how fast it is.
    let arguments = ["--jobs", "120", "--speedup", "20000", "--verify", "--overhead-seconds", "10"];
    let (success, text) = replay(&[&arguments[..], &["--muster", muster.to_str().expect("a path in UTF-8")]].concat());
    assert!(success, "{text}");
    for expected in ["processes: each of 120 was started once", "runs: one for each job", "usage: ", "verified"] {
        assert!(text.contains(expected), "`{expected}` is missing in:\n{text}");
    }
}

#[test]
fn what_cannot_be_replayed_is_told() {
    let (success, text) = replay(&["--speedup", "0"]);
    assert!(!success && text.contains("must be above 0"), "{text}");
    let (success, text) = replay(&["--skip", "1000"]);
    assert!(!success && text.contains("has no jobs there"), "{text}");
    let (success, text) = replay(&["--data", "/nonexistent"]);
    assert!(!success && text.contains("no gateway at /nonexistent/muster.sock"), "{text}");
}
