//! The environment of third-party programs that drive the commands of a dialect. `ops/test` installs them.

use crate::slurm::Site;
use std::path::PathBuf;

/// A workload that takes longer hangs: they all take a few seconds.
const PATIENCE_SECONDS: u32 = 240;

/// The Python that has the clients. `None` if `ops/test` could not install them and has said so.
fn python() -> Option<PathBuf> {
    if let Some(python) = std::env::var_os("MUSTER_SLURM_CLIENTS") {
        return Some(PathBuf::from(python)).filter(|python| !python.as_os_str().is_empty());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.expect("set MUSTER_SLURM_CLIENTS to a Python with the clients, or run ops/test");
    let python = target.join("../slurm-clients/bin/python");
    assert!(python.exists(), "{} is missing: set MUSTER_SLURM_CLIENTS, or run ops/test", python.display());
    Some(python)
}

/// Runs a program of the environment to its end, with the folder of the system as its home, and returns its output.
/// `WORKLOADS` in the line is the folder of these workloads.
pub fn run(site: &Site, workloads: &str, line: &str) -> Option<String> {
    let Some(python) = python() else {
        muster_surroundings::skipped("the clients of Slurm and PBS are not installed; ops/test says why");
        return None;
    };
    let bin = python.parent().expect("a program is in a folder").display();
    let line = line.replace("WORKLOADS", &format!("{}/../../tests/{workloads}", env!("CARGO_MANIFEST_DIR")));
    Some(site.ok(&format!("HOME=$PWD PATH=$PATH:{bin} exec timeout -k 5 {PATIENCE_SECONDS} {bin}/{line}")))
}
