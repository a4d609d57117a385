//! Unmodified third-party programs that drive Slurm, against a live system: small workloads run to their end through
//! the commands on PATH. `ops/test` installs the programs; the workloads are in `tests/slurm-clients`.

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
/// `WORKLOADS` in the line is the folder of the workloads.
fn run(site: &Site, line: &str) -> Option<String> {
    let Some(python) = python() else {
        muster_surroundings::skipped("the clients of Slurm are not installed; ops/test says why");
        return None;
    };
    let bin = python.parent().expect("a program is in a folder").display();
    let line = line.replace("WORKLOADS", concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/slurm-clients"));
    Some(site.ok(&format!("HOME=$PWD PATH=$PATH:{bin} exec timeout -k 5 {PATIENCE_SECONDS} {bin}/{line}")))
}

/// SL-C-06, SL-C-08, SL-C-24, SL-C-25, SL-C-31
#[test]
fn psij_runs_follows_and_cancels_jobs() {
    let site = Site::start();
    let Some(said) = run(&site, "python WORKLOADS/with_psij.py") else { return };
    assert_eq!(said, "done\n");
}

/// SL-A-04, SL-A-07, SL-C-12, SL-R-01
#[test]
fn parsl_runs_functions_in_blocks_of_one_and_of_two_nodes() {
    let site = Site::start();
    let Some(said) = run(&site, "python WORKLOADS/with_parsl.py") else { return };
    assert_eq!(said, "done\n");
}

/// SL-C-08, SL-C-14, SL-C-31
#[test]
fn dask_has_workers_that_are_jobs() {
    let site = Site::start();
    let Some(said) = run(&site, "python WORKLOADS/with_dask.py") else { return };
    assert_eq!(said, "done\n");
    site.system.wait_until("its jobs are over", || site.ok("squeue -h").is_empty());
}

/// SL-A-04, SL-A-07, SL-C-17, SL-C-18, SL-E-03, SL-E-08
#[test]
fn submitit_runs_functions_tasks_and_arrays() {
    let site = Site::start();
    let Some(said) = run(&site, "python WORKLOADS/with_submitit.py") else { return };
    assert_eq!(said, "done\n");
}

/// SL-A-04, SL-A-07, SL-C-25, SL-C-29, SL-C-35
#[test]
fn snakemake_runs_a_workflow() {
    let site = Site::start();
    let options = "--executor slurm --jobs 4 --cores 4 --slurm-init-seconds-before-status-checks 1";
    if run(&site, &format!("snakemake --snakefile WORKLOADS/Snakefile {options}")).is_some() {
        assert_eq!(site.system.read("sum.txt"), "14 2\n");
    }
}
