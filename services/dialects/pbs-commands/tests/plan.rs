//! `muster pbs plan`: the exit status for good and bad files.

use muster_cli::connection::ConnectionOptions;
use std::{fs, path::Path};

const STATE: &str = r#"{"now": 5, "queues": [{"name": "q", "type": "e", "started": true}],
    "jobs": [{"id": "1", "queue": "q", "user": "ann", "state": "Q"}]}"#;

fn status(folder: &Path, state: &Path) -> u8 {
    let words = ["plan", &folder.display().to_string(), "--state", &state.display().to_string()].map(str::to_owned);
    muster_pbs_commands::words(&ConnectionOptions::default(), &words)
}

/// PBS-C-15: 0 all well, 2 policy errors, 3 a bad state file.
#[test]
fn the_exit_status_tells_policy_errors_from_a_bad_state() {
    let folder = tempfile::tempdir().expect("a folder");
    let (config, state) = (folder.path().join("sched_config"), folder.path().join("state.json"));
    fs::write(&config, "sort_by: no_sort\n").expect("written");
    assert_eq!(status(folder.path(), &state), 3, "there is no state file");
    fs::write(&state, STATE).expect("written");
    assert_eq!(status(folder.path(), &state), 0);
    fs::write(&state, STATE.replace("ann", "ann\", \"x\": \"")).expect("written");
    assert_eq!(status(folder.path(), &state), 3, "there is no such field");
    assert_eq!(status(folder.path(), folder.path()), 3, "a folder is no state file");
    fs::write(&config, "sort_by: sortest_job_first\n").expect("written");
    assert_eq!(status(folder.path(), &state), 2);
    assert_eq!(status(&folder.path().join("none"), &state), 2, "there is no such folder");
    let usage = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        muster_pbs_commands::words(&ConnectionOptions::default(), &words)
    };
    assert_eq!(usage(&["plan"]), 2);
    assert_eq!(usage(&["plan", "--data", "--state", "x"]), 2);
}
