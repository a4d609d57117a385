//! Unmodified third-party programs that drive PBS, against a live system: small workloads run to their end through the
//! commands on PATH. `ops/test` installs the programs; the workloads are in `tests/pbs-clients`.

use crate::{clients, pbs, slurm::Site};

fn run(site: &Site, line: &str) -> Option<String> {
    clients::run(site, "pbs-clients", line)
}

#[test]
fn psij_runs_follows_and_cancels_jobs() {
    let site = pbs::site();
    let Some(said) = run(&site, "python WORKLOADS/with_psij.py") else { return };
    assert_eq!(said, "done\n");
}

#[test]
fn parsl_runs_functions_in_blocks() {
    let site = pbs::site();
    let Some(said) = run(&site, "python WORKLOADS/with_parsl.py") else { return };
    assert_eq!(said, "done\n");
}

#[test]
fn dask_has_workers_that_are_jobs() {
    let site = pbs::site();
    let Some(said) = run(&site, "python WORKLOADS/with_dask.py") else { return };
    assert_eq!(said, "done\n");
    site.system.wait_until("its jobs are over", || site.ok("qselect").is_empty());
}

/// Snakemake knows no PBS by itself: it is told the commands.
#[test]
fn snakemake_runs_a_workflow() {
    let site = pbs::site();
    let submit = "--cluster-generic-submit-cmd 'qsub -V -d $PWD -l ncpus={threads},walltime=0:10:00'";
    let others = "--cluster-generic-status-cmd WORKLOADS/status --cluster-generic-cancel-cmd qdel";
    let options = "--executor cluster-generic --jobs 4 --cores 4 --seconds-between-status-checks 1";
    let line = format!("snakemake --snakefile WORKLOADS/Snakefile {options} {others} {submit}");
    if run(&site, &line).is_some() {
        assert_eq!(site.system.read("sum.txt"), "14 2\n");
    }
}
