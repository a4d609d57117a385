//! Slurm's commands while the head is away: they wait for it, and give up in Slurm's words.

use crate::slurm::Site;
use nix::sys::signal::Signal;

/// The options of `Site::start`.
const NODES: [&str; 6] = ["--nodes", "4", "--cpus", "4", "--memory", "4G"];
/// The number of steps in a script.
const STEPS: usize = 40;

/// SL-R-08, SL-R-23, SL-C-06: neither an orderly restart of the head nor its sudden end loses a step of a script, or runs one
/// twice.
#[test]
fn each_step_of_a_script_runs_once_while_the_head_is_restarted() {
    let mut site = Site::start();
    let script = |name: &str| {
        format!(
            "#!/bin/sh\n#SBATCH -n2 -N1\nfor number in $(seq 1 {STEPS}); do\n\
             srun -n2 sh -c \"echo $number.\\$SLURM_PROCID >> {name}.ran\" || echo $number >> {name}.failed\ndone\n"
        )
    };
    for name in ["a", "b", "c"] {
        site.system.write(&format!("{name}.sh"), &script(name));
        site.ok(&format!("sbatch -o {name}.out {name}.sh"));
    }
    let ran = |site: &Site, name: &str| site.system.read(&format!("{name}.ran")).lines().count();
    for restart in 1..=4 {
        let enough = restart * STEPS / 4;
        site.system.wait_until("some more steps ran", || ["a", "b", "c"].iter().any(|name| ran(&site, name) >= enough));
        match restart % 2 {
            0 => site.system.stop(),
            _ => site.system.signal(Signal::SIGKILL),
        }
        // Nobody answers while this runs.
        assert_ne!(site.run("MUSTER_WAIT_SECONDS=0 squeue").status, 0, "the head is away");
        site.system.restart(&NODES);
    }
    for (job, name) in [("1", "a"), ("2", "b"), ("3", "c")] {
        site.is_over(job);
        let mut lines: Vec<String> = site.system.read(&format!("{name}.ran")).lines().map(str::to_owned).collect();
        lines.sort_unstable();
        let mut expected: Vec<String> =
            (1..=STEPS).flat_map(|number| [format!("{number}.0"), format!("{number}.1")]).collect();
        expected.sort_unstable();
        let said = site.system.read(&format!("{name}.out"));
        assert_eq!(lines, expected, "{said}");
        assert_eq!(site.system.read(&format!("{name}.failed")), "", "{said}");
        let steps = site.ok(&format!("sacct -n -P -j {job} -o JobID,State"));
        let own = steps.lines().filter(|line| line.starts_with(&format!("{job}.")) && !line.contains("batch"));
        assert_eq!(own.filter(|line| line.ends_with("|COMPLETED")).count(), STEPS, "{steps}");
        assert_eq!(site.ok(&format!("sacct -X -n -P -j {job} -o State")), "COMPLETED\n");
    }
}

/// SL-C-09, SL-C-24, SL-C-25: programs recognise by Slurm's words that the system is away, and do not take a running
/// job for an unknown one.
#[test]
fn who_gives_up_says_so_in_slurm_s_words_and_lists_nothing() {
    let mut site = Site::start();
    site.system.stop();
    let why = "Unable to contact slurm controller (connect failure)";
    for (line, status, said) in [
        ("squeue", 1, "slurm_load_jobs error: "),
        ("squeue -h -j 1 -o '%T %B'", 1, "slurm_load_jobs error: "),
        ("squeue -s", 1, "slurm_load_jobs error: "),
        ("sinfo", 1, "slurm_load_partitions: "),
        ("scancel 1", 1, "slurm_load_jobs error: "),
        ("scontrol show job 1", 1, "slurm_load_jobs error: "),
        ("scontrol show node", 1, "slurm_load_node error: "),
        ("scontrol show partition", 1, "slurm_load_partitions error: "),
        ("scontrol show reservation", 1, "slurm_load_reservations error: "),
        ("scontrol hold 1", 1, "slurm_load_jobs error: "),
        ("sacct", 1, "sacct: error: Problem talking to the database: "),
        ("sacctmgr list users", 1, "sacctmgr: error: Problem talking to the database: "),
        ("sbatch --wrap true", 1, "sbatch: error: Batch job submission failed: "),
        ("salloc -n1 true", 1, "salloc: error: Job submit/allocate failed: "),
        ("srun -n1 true", 1, "srun: error: Unable to allocate resources: "),
        ("SLURM_JOB_ID=1 srun -n1 true", 1, "srun: error: Unable to confirm allocation for job 1: "),
    ] {
        let told = site.run(&format!("export MUSTER_WAIT_SECONDS=1; {line}"));
        assert_eq!((told.status, told.stdout.as_str()), (status, ""), "{line}: {}", told.stderr);
        assert_eq!(told.stderr, format!("{said}{why}\n"), "{line}");
    }
    let told = site.run("MUSTER_WAIT_SECONDS=soon squeue");
    let expected = "squeue: error: MUSTER_WAIT_SECONDS is `soon`, and must be 0 to 86400\n";
    assert_eq!((told.status, told.stderr.as_str()), (1, expected));
    // A waiting command gets its answer as soon as there is one.
    let waiting = site.spawn("sbatch --parsable --wrap true");
    site.system.restart(&NODES);
    let waited = waiting.wait_with_output().expect("it ends");
    assert_eq!((waited.status.code(), waited.stdout.as_slice()), (Some(0), b"1\n".as_slice()));
    site.is_over("1");
}
