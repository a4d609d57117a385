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

/// PBS-P-01, PBS-C-15: a preset is named by an option, or by the state.
#[test]
fn presets_are_planned() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/examples/pbs/preset").display().to_string();
    let other = tempfile::tempdir().expect("a folder");
    let state = other.path().join("state.json");
    fs::write(&state, STATE).expect("written");
    let (example, state) = (format!("{folder}/state.json"), state.display().to_string());
    let plan = |words: &[&str]| {
        let words: Vec<String> = ["plan"].iter().chain(words).map(|word| (*word).to_owned()).collect();
        muster_pbs_commands::words(&ConnectionOptions::default(), &words)
    };
    assert_eq!(plan(&[&folder, "--state", &example]), 0);
    assert_eq!(plan(&["--preset", "cray_t3e", "--carried", &folder, "--state", &state]), 0);
    assert_eq!(plan(&["--preset", "fifo", &folder, "--state", &state]), 2, "no such preset");
    let empty = other.path().display().to_string();
    assert_eq!(
        plan(&["--preset", "ibm_sp", &empty, "--state", &state]),
        2,
        "the options that must be set are not there"
    );
    let unknown = STATE.replacen('{', r#"{"server": {"scheduler_policy": "basl:x"}, "#, 1);
    fs::write(&state, unknown).expect("written");
    assert_eq!(plan(&[&empty, "--state", &state]), 3, "no such policy");
}
