//! Unmodified third-party programs that drive Slurm, against a live system: small workloads run to their end through
//! the commands on PATH. `ops/test` installs the programs; the workloads are in `tests/slurm-clients`.

use crate::{clients, slurm::Site};

fn run(site: &Site, line: &str) -> Option<String> {
    clients::run(site, "slurm-clients", line)
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
