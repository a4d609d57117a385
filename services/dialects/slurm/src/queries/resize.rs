//! The files that `scontrol` writes after a job became smaller: they give a shell in the job the variables of its new size.

use crate::hostlist::{compress_counts, compress_sorted};

/// The two files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResizeFiles {
    /// For `sh`: its name and its text.
    pub sh: (String, String),
    /// For `csh`.
    pub csh: (String, String),
}

/// The files for the job with this number, which has these nodes now, each with this many CPUs. `is_set` says which variables
/// the caller has: others are not set.
pub fn files(number: u64, nodes: &[(String, u64)], is_set: impl Fn(&str) -> bool) -> ResizeFiles {
    let names: Vec<&String> = nodes.iter().map(|(name, _)| name).collect();
    let list = format!("\"{}\"", compress_sorted(&names));
    let count = nodes.len().to_string();
    let cpus = format!("\"{}\"", compress_counts(&nodes.iter().map(|(_, cpus)| *cpus).collect::<Vec<_>>()));
    let new = [
        ("SLURM_NODELIST", &list),
        ("SLURM_JOB_NODELIST", &list),
        ("SLURM_NNODES", &count),
        ("SLURM_JOB_NUM_NODES", &count),
        ("SLURM_JOB_CPUS_PER_NODE", &cpus),
    ];
    // How many tasks the smaller job has is not known.
    let gone = ["SLURM_NPROCS", "SLURM_NTASKS", "SLURM_TASKS_PER_NODE"];
    let (mut sh, mut csh) = (String::new(), String::new());
    for (name, value) in new.into_iter().filter(|(name, _)| is_set(name)) {
        sh.push_str(&format!("export {name}={value}\n"));
        csh.push_str(&format!("setenv {name} {value}\n"));
    }
    for name in gone.into_iter().filter(|_| is_set("SLURM_TASKS_PER_NODE")) {
        sh.push_str(&format!("unset {name}\n"));
        csh.push_str(&format!("unsetenv {name}\n"));
    }
    let named = |shell: &str| format!("slurm_job_{number}_resize.{shell}");
    ResizeFiles { sh: (named("sh"), sh), csh: (named("csh"), csh) }
}

impl ResizeFiles {
    /// What `scontrol` says about them.
    pub fn advice(&self) -> String {
        format!(
            "To reset Slurm environment variables, execute\n  For bash or sh shells:  . ./{}\n  For csh shells:         \
             source ./{}\n",
            self.sh.0, self.csh.0
        )
    }
}
