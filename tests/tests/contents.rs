//! A job on two nodes with a script and an environment that are too large to be sent with each order, on real processes
//! and a real NATS server with the permissions of `ops/nats`.

#[expect(dead_code, reason = "the tests of crashes need more of it")]
mod cluster;

use cluster::{Cluster, assert_history_verifies, text, wait_until_all_finished};
use std::{fs, process::Command};

/// The nodes of a job fetch its environment and its script, and its steps run on all of them with it (F8).
#[test]
fn a_large_script_and_environment_reach_all_nodes_of_a_job() {
    let cluster = Cluster::start();
    let folder = cluster.folder.path();
    let long = "y".repeat(40_000);
    let padding = format!("# {}\n", "x".repeat(98)).repeat(1000);
    let script = format!(
        "#!/bin/sh\n{padding}echo script ${{#LONG}} $MUSTER_NNODES >>{0}/said\n\
         {1} run -- sh -c 'echo step $MUSTER_NODE_NAME ${{#LONG}} >>{0}/said'\n",
        folder.display(),
        cluster.muster.display()
    );
    fs::write(folder.join("job.sh"), script).expect("written");
    for _ in 0..2 {
        let mut submit = Command::new(&cluster.muster);
        submit.args(["submit", "--parsable", "-N", "2", "-o", "/dev/null", "job.sh"]).current_dir(folder);
        submit.env("LONG", &long).env("MUSTER_DATA", folder.join("data"));
        let submitted = submit.output().expect("muster can be run");
        assert!(submitted.status.success(), "{}", text(&submitted));
    }
    let finished = wait_until_all_finished(&cluster);
    assert!(finished.values().all(|(_, outcome)| outcome.as_deref() == Some("completed")), "{finished:?}");
    let said = fs::read_to_string(folder.join("said")).expect("the job has said something");
    let mut kinds: Vec<&str> = said.lines().filter_map(|line| line.split(' ').next()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["script", "script", "step", "step", "step", "step"], "{said}");
    assert!(said.lines().filter(|line| line.starts_with("script")).all(|line| line == "script 40000 2"), "{said}");
    assert!(said.lines().filter(|line| line.starts_with("step")).all(|line| line.ends_with(" 40000")), "{said}");
    assert_history_verifies(&cluster);
}
