//! A window of a real trace, replayed as real processes on a real system, and verified.

use crate::common;

/// A window of a real trace runs as it did (M-SYS-4).
#[test]
fn a_window_of_a_real_trace_runs_as_it_did() {
    let muster = common::muster();
    // A machine busy with other tests launches slowly: this checks that nothing is lost, doubled or
    // miscounted, not the speed.
    let arguments = ["--jobs", "120", "--speedup", "20000", "--verify", "--overhead-seconds", "10"];
    let muster = ["--muster", muster.to_str().expect("a path in UTF-8")];
    let (success, text) = common::replay(&[&arguments[..], &muster[..]].concat());
    assert!(success, "{text}");
    for expected in ["processes: each of 120 was started once", "runs: one for each job", "usage: ", "verified"] {
        assert!(text.contains(expected), "`{expected}` is missing in:\n{text}");
    }
}

#[test]
fn what_cannot_be_replayed_is_told() {
    let (success, text) = common::replay(&["--speedup", "0"]);
    assert!(!success && text.contains("must be above 0"), "{text}");
    let (success, text) = common::replay(&["--skip", "1000"]);
    assert!(!success && text.contains("has no jobs there"), "{text}");
    let (success, text) = common::replay(&["--data", "/nonexistent"]);
    assert!(!success && text.contains("no gateway at /nonexistent/muster.sock"), "{text}");
}
