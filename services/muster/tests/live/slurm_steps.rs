//! `salloc`, `srun`, `sattach` and `sbcast` on the reference cluster of the dialect's specification.

use crate::{
    slurm::Site,
    system::{Output, System},
};

/// Twelve nodes with four CPUs each, two partitions, features and licences.
const REFERENCE_CLUSTER: &str = r#"
[cluster]
name = "alpha"
default_queue = "debug"

[[queues]]
name = "debug"
default_walltime_seconds = 1800

[[queues]]
name = "p2"
nodes = ["nid[00001-00005]"]
max_walltime_seconds = 3600

[[nodes]]
name = "nid00001"
cores = 4
memory = "4000M"
properties = { alpha = true, haswell = true }

[[nodes]]
name = "nid[00002-00007]"
cores = 4
memory = "4000M"
properties = { gamma = true }

[[nodes]]
name = "nid[00008-00012]"
cores = 4
memory = "4000M"
properties = { beta = true, knl = true }

[licences]
ansys = 4
matlab = 2
"#;

fn reference() -> Site {
    let mut system = System::stopped();
    system.write("cluster.toml", REFERENCE_CLUSTER);
    system.restart(&["--config", "cluster.toml"]);
    system.ok(&["install-commands", "bin"]);
    Site { system }
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// Text without what stands at the beginning of each line.
fn unindented(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim_start())).collect()
}

/// SL-C-22, SL-R-23
#[test]
fn a_step_outside_of_an_allocation_gets_one_that_ends_with_it() {
    let site = reference();
    let Output { status, stdout, stderr } = site.run("srun -N2 -l printenv SLURMD_NODENAME SLURM_JOB_ID SLURM_STEP_ID");
    assert_eq!((status, stderr.as_str()), (0, ""));
    assert_eq!(sorted(&stdout), ["0: 0", "0: 1", "0: nid00001", "1: 0", "1: 1", "1: nid00002"]);
    assert_eq!(
        site.fails("srun -n3 sh -c 'exit 3'"),
        (3, "srun: error: nid00001: tasks 0-2: Exited with exit code 3\n".to_owned())
    );
    assert_eq!(site.fails("srun sh -c 'kill -9 $$'"), (137, "srun: error: nid00001: task 0: Killed\n".to_owned()));
    let (status, told) = site.fails("srun nosuch");
    assert!(status == 2 && told.contains("execve(): nosuch: No such file or directory\n"), "{status} {told}");
    assert_eq!(site.fails("srun -n1"), (1, "srun: fatal: No command given to execute.\n".to_owned()));
    assert_eq!(
        site.fails("srun -p nope true"),
        (
            1,
            "srun: error: invalid partition specified: nope\n\
             srun: error: Unable to allocate resources: Invalid partition name specified\n"
                .to_owned()
        )
    );
    assert_eq!(
        site.ok("sacct -n -P -j 1,2 -o JobID,JobName,State,ExitCode"),
        "1|printenv|COMPLETED|0:0\n1.0|printenv|COMPLETED|0:0\n2|sh|FAILED|3:0\n2.0|sh|FAILED|3:0\n"
    );
    assert_eq!(site.ok("squeue -h"), "");
}

/// EX-02's script form: SL-R-01, SL-R-14, SL-R-22, SL-R-25, SL-E-07
#[test]
fn a_script_runs_steps_on_what_its_job_has() {
    let site = reference();
    site.system.write(
        "steps.sh",
        "#!/bin/sh\n#SBATCH -N2 -n4 --ntasks-per-node=2 -o out\n\
         srun -l printenv SLURMD_NODENAME | sort -n\n\
         echo hello | srun -n2 cat\n\
         srun -n1 -w nid00002 printenv SLURM_STEP_ID SLURM_STEP_NODELIST SLURM_STEP_NUM_TASKS\n\
         srun -n9 true\n",
    );
    let Output { status, .. } = site.run("sbatch -W steps.sh");
    assert_eq!(status, 1);
    assert_eq!(
        site.system.read("out"),
        unindented(
            "0: nid00001
             1: nid00001
             2: nid00002
             3: nid00002
             hello
             hello
             srun: Warning: can't run 1 processes on 2 nodes, setting nnodes to 1
             2
             nid00002
             1
             srun: error: Unable to create step for job 1: More processors requested than permitted"
        )
    );
}

/// EX-11, EX-12: SL-S-16, SL-E-01, SL-E-02, SL-E-03, SL-E-04, SL-E-05, SL-E-06
#[test]
fn a_heterogeneous_allocation_has_variables_for_each_component_and_its_steps_one_world() {
    let site = reference();
    let said = site.run(
        "salloc -N1 : -N2 sh -c '
            env | grep ^SLURM | sort > variables
            srun --het-group=1 printenv SLURM_JOB_ID > of_one
            srun --het-group=1 printenv SLURM_JOB_ID_HET_GROUP_1 >> of_one
            srun --het-group=0 printenv SLURM_JOB_ID SLURM_JOB_ID_HET_GROUP_0 >> of_one
            srun --het-group=0,1 -o world.%t env'",
    );
    assert_eq!((said.status, said.stdout.as_str()), (0, ""), "{}", said.stderr);
    assert_eq!(
        said.stderr,
        unindented(
            "salloc: Pending job allocation 1
             salloc: job 1 queued and waiting for resources
             salloc: job 1 has been allocated resources
             salloc: Granted job allocation 1
             salloc: Relinquishing job allocation 1"
        )
    );
    let variables = site.system.read("variables");
    for line in [
        "SLURM_HET_SIZE=2",
        "SLURM_JOB_ID=1",
        "SLURM_JOB_ID_HET_GROUP_0=1",
        "SLURM_JOB_ID_HET_GROUP_1=2",
        "SLURM_JOB_NODELIST_HET_GROUP_0=nid00001",
        "SLURM_JOB_NODELIST_HET_GROUP_1=nid[00002-00003]",
        "SLURM_JOB_NODES_HET_GROUP_0=1",
        "SLURM_JOB_NODES_HET_GROUP_1=2",
        "SLURM_JOB_NUM_NODES_HET_GROUP_0=1",
        "SLURM_JOB_NUM_NODES_HET_GROUP_1=2",
    ] {
        assert!(variables.lines().any(|known| known == line), "{line} is missing:\n{variables}");
    }
    assert!(!variables.contains("SLURM_JOB_NODELIST="), "{variables}");
    assert_eq!(site.system.read("of_one"), "1\n1\n2\n2\n1\n1\n");
    for rank in 0..3 {
        let of_task = site.system.read(&format!("world.{rank}"));
        for line in [
            "SLURM_JOB_ID=1",
            "SLURM_JOB_NODELIST=nid[00001-00003]",
            "SLURM_NTASKS=3",
            "SLURM_NPROCS=3",
            "SLURM_NNODES=3",
            "SLURM_JOB_CPUS_PER_NODE=1(x3)",
            "SLURM_TASKS_PER_NODE=1(x3)",
            &format!("SLURM_PROCID={rank}"),
            &format!("SLURM_NODEID={rank}"),
            "SLURM_LOCALID=0",
        ] {
            assert!(of_task.lines().any(|known| known == line), "{line} is missing:\n{of_task}");
        }
    }
}
