//! Jobs of several dialects side by side: each belongs to the dialect whose command submitted it.

use crate::{slurm::Site, system::Output};

/// The number of Slurm variables in the output of a job.
fn count_of_slurm(said: &str) -> usize {
    said.lines().filter(|line| line.starts_with("SLURM_")).count()
}

/// SL-E-08: a job submitted with `muster submit` is not Slurm's, whatever environment it inherits: it has the inherited
/// variables and no more, even inside a Slurm script, and its end is not reported in Slurm's words.
#[test]
fn a_job_is_of_the_dialect_that_submitted_it_whatever_it_inherits() {
    let site = Site::start();
    let system = &site.system;
    system.write("job.sh", "#!/bin/sh\nenv | grep ^SLURM_\n");
    system.ok(&["submit", "--wait", "--env", "SLURM_SUBMIT_HOST=x", "-o", "plain", "job.sh"]);
    assert_eq!(system.read("plain"), "SLURM_SUBMIT_HOST=x\n");

    // The same inside a Slurm script: inherited variables are passed on unchanged.
    let muster = env!("CARGO_BIN_EXE_muster");
    let inner = format!("env | grep ^SLURM_ >outer; exec {muster} submit --wait -o inner job.sh");
    site.ok(&format!("sbatch -W -o log --wrap '{inner}'"));
    let (outer, inner) = (system.read("outer"), system.read("inner"));
    assert!(count_of_slurm(&outer) > 25, "{outer}");
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(sorted(&inner), sorted(&outer));

    // Its end is not reported in Slurm's words.
    system.write("long.sh", "#!/bin/sh\necho ready\nsleep 1000\n");
    let job = system.submit(&["--env", "SLURM_SUBMIT_HOST=x", "-o", "ended", "long.sh"]);
    system.wait_until("it runs", || system.read("ended") == "ready\n");
    system.ok(&["cancel", &job]);
    system.wait_for_state(&job, "finished");
    assert_eq!(system.read("ended"), "ready\n");
}

/// SL-E-13: a step launched by `srun` is Slurm's, even in another dialect's job: its tasks have Slurm's
/// limits and variables.
#[test]
fn a_step_is_of_the_dialect_that_launched_it() {
    let site = Site::start();
    let system = &site.system;
    let srun = system.path("bin/srun").display().to_string();
    let step = format!("{srun} --jobid=$MUSTER_JOB_ID -n1 sh -c 'ulimit -S -n; env | grep ^SLURM_'");
    system.write("job.sh", &format!("#!/bin/sh\nenv | grep -c ^SLURM_\nulimit -S -n 77\n{step}\n"));
    system.ok(&["submit", "--wait", "-o", "said", "job.sh"]);
    let said = system.read("said");
    assert_eq!(said.lines().take(2).collect::<Vec<_>>(), ["0", "77"], "{said}");
    assert!(count_of_slurm(&said) > 25, "{said}");
}

/// Every form of the list shows a job's dialect.
#[test]
fn a_job_shows_its_dialect() {
    let site = Site::start();
    let system = &site.system;
    let plain = system.submit(&["--hold", "--", "true"]);
    site.ok("sbatch --hold --wrap true");
    site.ok("job submit /holduntil:60 true");
    let jobs = system.json(&["jobs", "--json"]);
    let of: Vec<&str> =
        jobs["jobs"].as_array().unwrap().iter().map(|job| job["dialect"].as_str().unwrap_or("")).collect();
    assert_eq!(of, ["", "slurm", "hpcpack"]);
    let dialect = |job: &str| system.json(&["job", "show", job, "--json"])["job"]["dialect"].clone();
    assert_eq!((dialect(&plain), dialect("2")), (serde_json::Value::Null, "slurm".into()));
    let Output { stdout, .. } = system.run(&["job", "show", "2"]);
    assert!(stdout.lines().any(|line| line.split_whitespace().eq(["Dialect", "slurm"])), "{stdout}");
}
