//! How the tasks of a step find each other if they are an MPI program: `srun --mpi` (SL-W-03).

use muster_schemas::steps::ProcessManagement;

/// The kind of steps that name none, unless the site has another: MPICH and what is built for PMI-1 or PMI-2 works, and
/// programs of any other kind are not disturbed.
pub const DEFAULT_MPI: &str = "pmi2";

/// The kinds that there are, by Slurm's names.
const KINDS: [(&str, Option<ProcessManagement>); 3] =
    [("none", None), ("pmi2", Some(ProcessManagement::Pmi)), ("pmix", Some(ProcessManagement::Pmix))];

/// The process management of a kind.
///
/// # Errors
/// The message of `srun` if there is no such kind.
pub fn process_management(kind: &str) -> Result<Option<ProcessManagement>, String> {
    let known = KINDS.iter().find(|(name, _)| *name == kind).map(|(_, management)| *management);
    known.ok_or_else(|| format!("Invalid MPI type '{kind}', --mpi=list for acceptable types"))
}

/// The output of `--mpi=list` on a host that has the library of PMIx, or has not.
pub fn mpi_list(has_pmix: bool) -> String {
    let is_there = |management: Option<ProcessManagement>| has_pmix || management != Some(ProcessManagement::Pmix);
    let kinds = KINDS.iter().filter(|(_, management)| is_there(*management));
    let names: String = kinds.map(|(name, _)| format!("\t{name}\n")).collect();
    format!("MPI plugin types are...\n{names}")
}
