//! `salloc`, `srun`, `sattach` and `sbcast` on the reference cluster of the dialect's specification.

use crate::{
    slurm::Site,
    system::{Output, System},
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _},
};

/// Twelve nodes with four CPUs each, two partitions, features and licences.
pub const REFERENCE_CLUSTER: &str = r#"
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

pub fn reference() -> Site {
    reference_from(1)
}

/// The configuration of the reference cluster, with job numbers from this one on.
pub fn reference_cluster(first_job_number: u64) -> String {
    REFERENCE_CLUSTER.replacen("[cluster]\n", &format!("[cluster]\nfirst_job_number = {first_job_number}\n"), 1)
}

/// The reference cluster, with job numbers from this one on.
pub fn reference_from(first_job_number: u64) -> Site {
    let mut system = System::stopped();
    system.write("cluster.toml", &reference_cluster(first_job_number));
    system.restart(&["--config", "cluster.toml"]);
    system.ok(&["install-commands", "bin"]);
    Site { system }
}

/// Waits until no job has any resources, so that the next begins on the first node.
pub fn nothing_runs(site: &Site) {
    site.system.wait_until("no job is left", || site.ok("squeue -h").is_empty());
}

pub fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// Text without the indentation of its lines.
pub fn unindented(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim_start())).collect()
}

/// SL-C-22, SL-R-23
#[test]
fn a_step_outside_of_an_allocation_gets_one_that_ends_with_it() {
    let site = reference();
    let fails = |line: &str| {
        let failed = site.fails(line);
        nothing_runs(&site);
        failed
    };
    let Output { status, stdout, stderr } = site.run("srun -N2 -l printenv SLURMD_NODENAME SLURM_JOB_ID SLURM_STEP_ID");
    assert_eq!((status, stderr.as_str()), (0, ""));
    assert_eq!(sorted(&stdout), ["0: 0", "0: 1", "0: nid00001", "1: 0", "1: 1", "1: nid00002"]);
    nothing_runs(&site);
    assert_eq!(
        fails("srun -n3 sh -c 'exit 3'"),
        (3, "srun: error: nid00001: tasks 0-2: Exited with exit code 3\n".to_owned())
    );
    assert_eq!(fails("srun sh -c 'kill -9 $$'"), (137, "srun: error: nid00001: task 0: Killed\n".to_owned()));
    let (status, told) = fails("srun nosuch");
    assert!(status == 2 && told.contains("execve(): nosuch: No such file or directory\n"), "{status} {told}");
    assert_eq!(fails("srun -n1"), (1, "srun: fatal: No command given to execute.\n".to_owned()));
    assert_eq!(
        fails("srun -p nope true"),
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

/// EX-03, EX-10, EX-16, EX-17: SL-R-02, SL-R-03, SL-R-04, SL-R-05, SL-R-06, SL-R-09, SL-R-12, SL-R-13, SL-R-15, SL-R-17,
/// SL-R-18, SL-S-15
#[test]
fn tasks_go_where_groups_and_distributions_send_them() {
    let site = reference();
    let inside = |allocation: &str, line: &str| {
        site.system.write("line.sh", &format!("{line}\n"));
        let Output { status, stdout, stderr } = site.run(&format!("salloc {allocation} sh line.sh"));
        nothing_runs(&site);
        let told = stderr.lines().filter(|line| !line.starts_with("salloc: ")).map(|line| format!("{line}\n"));
        (status, stdout, told.collect::<String>())
    };
    let lists = |allocation: &str, line: &str, nodes: &[u32]| {
        let expected: String =
            (0..).zip(nodes).map(|(rank, node): (u32, _)| format!("{rank}: nid{node:05}\n")).collect();
        assert_eq!(inside(allocation, &format!("{line} | sort -n")), (0, expected, String::new()), "{line}");
    };
    let two = "-N2 -n4 --ntasks-per-node=2 -m cyclic : -N2 -n4 --ntasks-per-node=2";
    lists(two, "srun -l --het-group=0,1 printenv SLURMD_NODENAME", &[1, 2, 1, 2, 3, 4, 3, 4]);
    lists(two, "srun -l -m block --pack-group=0-1 printenv SLURMD_NODENAME", &[1, 1, 2, 2, 3, 3, 4, 4]);
    lists("-N2 -n8", "srun -l -n4 -m plane=2 printenv SLURMD_NODENAME", &[1, 1, 2, 2]);
    lists("-N2 -n8", "srun -l -n3 -m arbitrary -w nid00002,nid00001,nid00002 printenv SLURMD_NODENAME", &[2, 1, 2]);

    let bounds = "-n1 -C alpha : -n2 -N2 -C beta";
    lists(bounds, "srun -l --het-group=0,1 printenv SLURMD_NODENAME", &[1, 8, 9]);
    let refused = |line: &str, text: &str| {
        assert_eq!(inside(bounds, line), (1, String::new(), format!("srun: {text}\n")), "{line}");
    };
    refused(
        "srun hostname : date : id",
        "error: Attempt to run a job step with het group value of 2, but the job allocation has maximum value of 1",
    );
    refused("srun --het-group=5 id", "error: Requested het-group offset exceeds highest hetjob index (5 > 1)");
    refused("srun --het-group=x id", "error: Invalid --het-group value: x");
    let twice = "fatal: Duplicate het groups in single srun not supported";
    refused("srun --het-group=0 id : --het-group=0 id", twice);
    refused(
        "srun --multi-prog --het-group=0,1 id",
        "fatal: --multi-prog option not supported with multiple het groups",
    );
    refused("srun -n1", "fatal: No command given to execute.");

    let labels = "-n2 -w nid00012 : -n1 -w nid00011";
    lists(labels, "srun --label -n2 : -n1 printenv SLURMD_NODENAME", &[12, 12, 11]);
    assert_eq!(
        inside(labels, "srun -l --het-group=1 echo first : --het-group=0 echo second | sort -n"),
        (0, "0: second\n1: second\n2: first\n".to_owned(), String::new())
    );
    assert_eq!(site.ok("srun -t1 -l -n1 echo one : -n2 echo two | sort -n"), "0: one\n1: two\n2: two\n");

    nothing_runs(&site);
    let split = "srun -l -N1 -n2 printenv SLURMD_NODENAME : -N1 -n1 printenv SLURMD_NODENAME";
    lists("-N2 -n8", split, &[1, 1, 2]);
    let (status, _, told) = inside("-N2 -n8", "srun -w nid00001 id : -w nid00001 id");
    assert!(status == 1 && told.contains("overlaps with excluded nid00001"), "{status} {told}");
}

/// SL-R-11
#[test]
fn where_the_site_says_so_no_step_spans_components() {
    let site = Site::with("[slurm]\nscheduler_parameters = \"disable_hetjob_steps\"\n");
    let (status, told) = site.fails("salloc -Q -n1 : -n1 srun --het-group=0,1 touch started");
    let text = "srun: error: Heterogeneous job steps are disabled (SchedulerParameters=disable_hetjob_steps)\n";
    assert_eq!((status, told.as_str()), (1, text));
    assert!(!site.system.path("started").exists(), "nothing was started");
    assert_eq!(site.ok("salloc -Q -n1 : -n1 srun --het-group=1 echo one"), "one\n");
}

/// SL-R-06, SL-R-18: groups on one component divide its nodes among them.
#[test]
fn where_the_site_says_so_a_component_takes_part_in_a_step_more_than_once() {
    let site = Site::with("[slurm]\nscheduler_parameters = \"repeat_het_groups\"\n");
    site.system.write(
        "line.sh",
        "srun -l --het-group=0,1 sh -c 'echo a $SLURMD_NODENAME $SLURM_NTASKS' : \\\n  \
         --het-group=0 -n2 sh -c 'echo b $SLURMD_NODENAME $SLURM_NTASKS' | sort -n\n\
         srun --het-group=1 id : --het-group=1 id\n",
    );
    let Output { status, stdout, stderr } = site.run("salloc -Q -N2 -n4 : -N1 -n1 sh line.sh");
    let told = "srun: error: Allocation failure of 1 nodes: job size of 1, already allocated 1 nodes to previous components.\n";
    assert_eq!((status, stderr.as_str()), (1, told));
    let of: Vec<Vec<&str>> = stdout.lines().map(|line| line.split(' ').collect()).collect();
    let [first, second, third, fourth] = &of[..] else { panic!("{stdout}") };
    assert_eq!([first[0], second[0], third[0], fourth[0]], ["0:", "1:", "2:", "3:"]);
    assert_eq!([first[1], second[1], third[1], fourth[1]], ["a", "b", "b", "a"]);
    assert!(first[2] != second[2] && second[2] == third[2] && fourth[2] != first[2], "{stdout}");
    assert!(of.iter().all(|words| words[3] == "4"), "one world: {stdout}");
    assert_eq!(site.ok("sacct -n -P -j 1 -o JobIDRaw,NTasks | grep '[.]0'"), "1.0|3\n2.0|1\n");
}

/// EX-09: SL-R-07, SL-R-10, SL-R-16, SL-R-20, SL-A-05
#[test]
fn steps_count_through_the_whole_job_and_each_is_a_world_of_its_own() {
    let site = reference();
    site.ok("salloc --no-shell -n1 : -n2");
    for groups in ["0,1", "0", "0,1"] {
        site.ok(&format!("srun --jobid=1 --het-group={groups} sh -c 'echo $SLURM_STEP_ID: $SLURM_NTASKS' >> said"));
    }
    assert_eq!(sorted(&site.system.read("said")), ["0: 3", "0: 3", "0: 3", "1: 1", "2: 3", "2: 3", "2: 3"]);
    assert_eq!(site.ok("sacct -n -P -j 1 -o JobIDRaw,NTasks | grep '[.]'"), "1.0|1\n1.1|1\n1.2|1\n2.0|2\n2.2|2\n");
    // Files of steps over several components are appended to, others are truncated.
    for _ in 0..2 {
        site.ok("srun --jobid=1 --het-group=0,1 -o whole echo word");
        site.ok("srun --jobid=1 --het-group=0 -o one echo word");
    }
    assert_eq!((site.system.read("whole").lines().count(), site.system.read("one").as_str()), (6, "word\n"));
    let apart = "srun --jobid=1 --het-group=0 printenv SLURM_NTASKS & srun --jobid=1 --het-group=1 printenv SLURM_NTASKS & wait";
    assert_eq!(sorted(&site.ok(apart)), ["1", "2", "2"]);
    site.ok("scancel 1");
    site.is_over("1");
    let gone = "srun: error: Unable to create step for job 1: Job/step already completing or completed\n";
    assert_eq!(site.fails("srun --jobid=1 true"), (1, gone.to_owned()));
    let (status, told) = site.fails("srun --jobid=99 true");
    assert!(status == 1 && told.contains("Invalid job id specified"), "{status} {told}");
}

/// SL-R-19, SL-R-21, SL-R-24, SL-R-25, SL-E-13
#[test]
fn streams_programs_and_surroundings_of_tasks_are_options() {
    let site = reference();
    site.ok("salloc --no-shell -N2 -n4 --ntasks-per-node=2");
    let srun = |line: &str| site.run(&format!("export SLURM_JOB_ID=1; {line}"));
    let said = |line: &str| {
        let Output { status, stdout, stderr } = srun(line);
        assert_eq!(status, 0, "{line}\n{stdout}{stderr}");
        stdout
    };
    site.system.write("ranks", "# who does what\n0 echo master %t\n1-2 echo worker %o of %t\n* echo rest %o\n");
    assert_eq!(sorted(&said("srun -n4 --multi-prog ranks")), ["master 0", "rest 0", "worker 0 of 1", "worker 1 of 2"]);
    assert_eq!(sorted(&said("echo word | srun -l -i 2 cat")), ["2: word"]);
    assert_eq!(sorted(&said("echo word | srun -l cat")), ["0: word", "1: word", "2: word", "3: word"]);
    assert_eq!(said("echo word | srun -l --input=none cat"), "");
    site.system.write("text", "from a file\n");
    assert_eq!(said("srun -n1 -N1 -i text cat"), "from a file\n");
    assert_eq!(said("srun -o none echo word"), "");
    assert_eq!(said("srun -l -o 3 echo word"), "3: word\n");
    assert_eq!(said("srun -o out.%t.%n.%N.%j.%s printenv SLURM_PROCID; cat out.2.1.nid00002.1.*"), "2\n");
    assert_eq!(
        said("srun -l -n2 -o both -e both sh -c 'echo out; echo err >&2'; sort both"),
        "0: err\n0: out\n1: err\n1: out\n"
    );
    let Output { status, stdout, stderr } = srun("srun -n1 -N1 -e errors sh -c 'echo out; echo err >&2'");
    assert_eq!((status, stdout.as_str(), stderr.as_str()), (0, "out\n", ""));
    assert_eq!(site.system.read("errors"), "err\n");

    std::fs::create_dir(site.system.path("inner")).expect("a folder");
    assert!(said("srun -n1 -N1 -D inner pwd").ends_with("/inner\n"));
    assert_eq!(said("OWN=1 srun -n1 -N1 sh -c 'echo $OWN'"), "1\n");
    assert_eq!(said("OWN=1 srun -n1 -N1 --export=NONE sh -c 'echo $OWN$SLURM_NTASKS'"), "1\n");
    assert_eq!(said("OWN=1 srun -n1 -N1 --export=TWO=2 sh -c 'echo $OWN$TWO'"), "2\n");
    assert_eq!(said("umask 027; srun -n1 -N1 sh -c umask"), "0027\n");
    let accepted = "srun -n1 -N1 -c1 -r1 -x nid00001 -J named -t1 --mem=10 --exact --overlap --exclusive -K -W5 -q -u \
                    --cpu-bind=none --mpi=none --resv-ports=2 --task-prolog=/bin/true --task-epilog=/bin/true -Q \
                    printenv SLURMD_NODENAME";
    assert_eq!(said(accepted), "nid00002\n");
    assert!(said("srun --mpi=list").starts_with("MPI plugin types are...\n\tnone\n\tpmi2\n"));
    assert_eq!(said("srun -n1 -N1 --prolog=/bin/echo --epilog=/bin/echo echo word"), "echo word\nword\necho word\n");
    site.ok("scancel 1");
}

/// SL-R-24
#[test]
fn a_file_of_programs_is_checked_before_anything_is_submitted() {
    let site = reference();
    let refused = |line: &str, file: &str, told: &str| {
        site.system.write("ranks", file);
        assert_eq!(site.fails(line), (1, told.to_owned()), "{line}\n{file}");
    };
    let invalid = |why: &str, line: u32| {
        format!("srun: error: {why}\nsrun: error: Line {line} of configuration file ranks invalid\n")
    };
    refused("srun -n2 --multi-prog ranks", "5 true\n", &invalid("Invalid task id, 5 >= ntasks", 1));
    refused("srun -n2 --multi-prog ranks", "0 true\n0 true\n", &invalid("Duplicate record for task 0", 2));
    let missing = "srun: error: Configuration file ranks invalid, no record for task id 1\n";
    refused("srun -n2 --multi-prog ranks", "0 true\n", missing);
    refused("srun --multi-prog ranks", "0 true\n2 true\n", missing);
    assert_eq!(site.ok("squeue -h -t all"), "");
    site.system.write("ranks", "0 echo \\\n one\n1-2 echo %t\n");
    assert_eq!(sorted(&site.ok("srun --multi-prog ranks")), ["1", "2", "one"]);
}

/// SL-E-13: whatever is exported, commands inside a job find the instance of their submitter.
#[test]
fn commands_inside_a_job_find_the_instance_whatever_is_exported() {
    let site = reference();
    let srun = site.system.path("bin").join("srun").display().to_string();
    let data = site.system.path("data").display().to_string();
    for export in ["NONE", "NIL", "OWN=1"] {
        let script = format!("{srun} -n1 sh -c \"echo \\$MUSTER_DATA \\$MUSTER_TOKEN\"");
        site.ok(&format!("MUSTER_TOKEN=secret sbatch -W -o said --export={export} --wrap '{script}'"));
        assert_eq!(site.system.read("said"), format!("{data}\n"), "{export}");
        let task = format!("srun -n1 --export={export} sh -c 'echo $MUSTER_DATA'");
        assert_eq!(site.ok(&format!("salloc -Q {task}")), format!("{data}\n"), "{export}");
    }
}

/// SL-E-13: variables that `--export` leaves out come from a login on the node; exported ones take precedence.
#[test]
fn a_batch_script_has_the_environment_of_a_login() {
    let site = reference();
    let variables = |text: &str| {
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<BTreeMap<_, _>>()
    };
    let seen = |options: &str| {
        site.ok(&format!("OWN=1 GIVEN=2 sbatch -W -o said {options} --wrap env"));
        variables(&site.system.read("said"))
    };
    let mut login = variables(&site.ok("su - $(id -un) -c env < /dev/null 2> /dev/null || HOME=~ $SHELL -l -c env"));
    let is_of_login =
        |name: &str| ["DISPLAY", "OLDPWD", "PWD", "SHLVL", "TERM", "_"].contains(&name) || name.starts_with("XDG_");
    login.retain(|name, _| name != "HOME" && !is_of_login(name));
    let loaded = seen("--export=GIVEN,HOME=/elsewhere");
    for (name, value) in [("GIVEN", "2"), ("HOME", "/elsewhere"), ("SLURM_GET_USER_ENV", "1")] {
        assert_eq!(loaded.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert_eq!(loaded.get("OWN"), None);
    assert!(login.contains_key("PATH"), "{login:?}");
    for (name, value) in &login {
        assert_eq!(loaded.get(name), Some(value), "{name}");
    }
    assert_eq!(seen("--export=NIL").get("SLURM_GET_USER_ENV"), None);
    let both = seen("--get-user-env");
    assert_eq!(
        (both.get("OWN").map(String::as_str), both.get("SLURM_GET_USER_ENV").map(String::as_str)),
        (Some("1"), Some("1"))
    );
}

/// SL-R-08, SL-R-22
#[test]
fn a_step_waits_until_no_other_has_what_it_asks_for() {
    let site = reference();
    site.ok("salloc --no-shell -N1 -n4 && mkfifo first");
    let mut first = site.spawn("srun --jobid=1 -n1 cat first");
    site.system.wait_until("the first step runs", || site.ok("squeue -s -h -o %i").contains("1.0"));
    assert_eq!(site.ok("srun --jobid=1 -n1 --overlap echo beside"), "beside\n");
    let refused = "srun: error: Unable to create step for job 1: Requested nodes are busy\n";
    assert_eq!(site.fails("srun --jobid=1 -n1 -I true"), (1, refused.to_owned()));
    let second = site.spawn("srun --jobid=1 -n1 echo behind 2> told");
    let waiting = "srun: Job 1 step creation temporarily disabled, retrying (Requested nodes are busy)\n";
    site.system.wait_until("the second says that it waits", || site.system.read("told") == waiting);
    site.ok("echo word > first");
    let ended = second.wait_with_output().expect("it ends");
    assert_eq!((ended.status.code(), ended.stdout.as_slice()), (Some(0), &b"behind\n"[..]));
    assert_eq!(site.system.read("told"), format!("{waiting}srun: Step created for job 1\n"));
    assert!(first.wait().expect("it ends").success());
    // With --exact, steps that fit together run together.
    let mut third = site.spawn("srun --jobid=1 -n1 --exact cat first");
    site.system.wait_until("the third step runs", || !site.ok("squeue -s -h -o %i").is_empty());
    assert_eq!(site.run("srun --jobid=1 -n3 --exact true 2>&1").stdout, "");
    site.ok("echo word > first");
    assert!(third.wait().expect("it ends").success());
    assert_eq!(
        site.fails("srun --jobid=1 -N3 true"),
        (1, "srun: error: Only allocated 1 nodes asked for 3\n".to_owned())
    );
    let foreign = "srun: error: Unable to create step for job 1: Requested node configuration is not available\n";
    assert_eq!(site.fails("srun --jobid=1 -w nid00009 true"), (1, foreign.to_owned()));
    assert_eq!(site.ok("srun --jobid=1 -n6 -O echo over").lines().count(), 6);
    site.ok("scancel 1");
}

/// SL-R-26: interactive sessions outlive restarts of gateway, planner and ledger.
#[test]
fn an_allocation_and_its_step_go_on_though_the_system_is_started_anew() {
    let mut site = reference();
    let say = "for i in $(seq 1 200); do echo $SLURM_PROCID $i; sleep 0.02; done; exit 3";
    let mut session = site.spawn(&format!("salloc -N2 srun sh -c '{say}'"));
    let mut output = BufReader::new(session.stdout.take().expect("it is piped"));
    let mut text = String::new();
    for _ in 0..20 {
        output.read_line(&mut text).expect("text");
    }
    site.system.signal(Signal::SIGKILL);
    site.system.restart(&["--config", "cluster.toml"]);
    output.read_to_string(&mut text).expect("text");
    let ended = session.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(3));
    for rank in 0..2 {
        let expected: Vec<String> = (1..=200).map(|number| format!("{rank} {number}")).collect();
        let said: Vec<&str> = text.lines().filter(|line| line.starts_with(&format!("{rank} "))).collect();
        assert_eq!(said, expected);
    }
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(told.ends_with("salloc: Relinquishing job allocation 1\n"), "{told}");
    nothing_runs(&site);
    assert_eq!(site.ok("sacct -n -P -X -j 1 -o State,ExitCode"), "FAILED|3:0\n");
}

/// SL-A-05, SL-A-08, SL-R-23: with the highest status of its tasks, and the resources they used.
#[test]
fn each_component_of_a_step_has_a_record_of_its_own_end() {
    let site = reference();
    site.ok("salloc --no-shell -n2 : -n1");
    let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let said = site.run(&format!(
        "export SLURM_JOB_ID=1; srun -n2 sh -c 'exit $((SLURM_PROCID == 0 ? 2 : 4))' : -n1 sh -c '{busy}'"
    ));
    assert_eq!(said.status, 4, "{}", said.stderr);
    assert_eq!(
        site.ok("sacct -n -P -X -j 1+0 -o DerivedExitCode; sacct -n -P -X -j 1+1 -o DerivedExitCode"),
        "4:0\n0:0\n"
    );
    site.ok("export SLURM_JOB_ID=1; srun -n2 -m cyclic true : true");
    assert_eq!(site.ok("sacct -n -P -j 1+0.1,1+1.0 -o JobID,Layout"), "1+0.1|Cyclic\n1+1.0|Block\n");
    let records = site.ok("sacct -n -P -j 1 -o JobID,State,ExitCode,TotalCPU");
    let steps: Vec<Vec<&str>> =
        records.lines().filter(|line| line.contains(".0|")).map(|line| line.split('|').collect()).collect();
    assert_eq!(steps[0][..3], ["1+0.0", "FAILED", "4:0"], "{records}");
    assert_eq!(steps[1][..3], ["1+1.0", "COMPLETED", "0:0"], "{records}");
    assert!(steps[0][3] < steps[1][3], "the loop ran in one of them: {records}");
}

/// SL-O-01, SL-O-03, SL-O-07: options of a group of a step apply to it and to later groups.
#[test]
fn each_group_of_a_step_has_streams_folders_and_variables_of_its_own() {
    let site = reference();
    site.ok("salloc --no-shell -n1 : -n1 : -n1");
    let step = |line: &str| site.ok(&format!("export SLURM_JOB_ID=1; {line}"));
    step("srun -o p1.%t -n1 echo a : -o p2.%t -n1 echo b : -n1 echo c");
    assert_eq!(site.ok("cat p1.0 p2.1 p2.2; ls p?.? | wc -l"), "a\nb\nc\n3\n");
    let says = "sh -c 'echo out; echo err >&2'";
    let shown = step(&format!("srun -n1 {says} : -e errors -n1 {says} : -o none -n1 {says} 2>own"));
    assert_eq!((shown.as_str(), site.ok("cat own; cat errors").as_str()), ("out\nout\n", "err\nerr\nerr\n"));
    assert_eq!(step("srun -o both -l -n1 echo a : -n1 echo b; sort both"), "0: a\n1: b\n");
    assert_eq!(sorted(&step("srun -n1 echo a : -l -n1 echo b : -n1 echo c")), ["1: b", "2: c", "a"]);
    let exports = "srun -l -n1 sh -c 'echo $ZZ$HERE' : --export=ALL,ZZ=1 -n1 sh -c 'echo $ZZ$HERE' : --export=ZZ=2 -n1";
    let exported = step(&format!("export HERE=x; {exports} sh -c 'echo $ZZ$HERE'"));
    assert_eq!(sorted(&exported), ["0: x", "1: 1x", "2: 2"]);

    site.ok("mkdir one two; echo from a file >text");
    let folders = step("srun -l -n1 pwd : -D one -n1 pwd : -n1 pwd");
    let folders: Vec<&str> = sorted(&folders).into_iter().map(|line| line.rsplit('/').next().unwrap_or("")).collect();
    assert_eq!(folders[1..], ["one", "one"], "{folders:?}");
    assert_ne!(folders[0], "one");
    let read = |line: &str| sorted(&step(line)).join("\n");
    assert_eq!(
        read("echo word | srun -l -i none -n1 cat : -i all -n1 cat : -i text -n1 cat"),
        "1: word\n2: from a file"
    );
    assert_eq!(read("echo word | srun -l -n1 cat : -i 1 -n1 cat : -n1 cat"), "0: word\n1: word");
    assert_eq!(read("srun -l -i text -n1 cat : -i none -n1 cat : -n1 cat </dev/null"), "0: from a file");
    // A pipe without a writer holds up no other group: this one's task writes to it.
    site.ok("mkfifo pipe");
    assert_eq!(read("srun -l -i pipe -n1 cat : -i none -n1 sh -c 'echo word >pipe'"), "0: word");
}

/// SL-R-23, SL-R-26
#[test]
fn signals_are_for_the_tasks_and_two_interrupts_end_the_step() {
    let site = reference();
    let loops = "while :; do sleep 0.05; done";
    let started = |line: &str| {
        let mut step = site.spawn(line);
        let mut output = BufReader::new(step.stdout.take().expect("it is piped")).lines();
        for _ in 0..2 {
            assert_eq!(output.next().expect("a line").expect("text"), "ready");
        }
        (step, output)
    };
    let send = |step: &std::process::Child, signal: Signal| {
        kill(Pid::from_raw(i32::try_from(step.id()).expect("a process")), signal).expect("it runs");
    };
    let (step, mut output) = started(&format!("srun -n2 sh -c 'trap \"echo told; exit 5\" USR1; echo ready; {loops}'"));
    send(&step, Signal::SIGUSR1);
    assert_eq!(output.next().expect("a line").expect("text"), "told");
    let ended = step.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(5));
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(told.ends_with("srun: error: nid00001: tasks 0-1: Exited with exit code 5\n"), "{told}");

    nothing_runs(&site);
    let (mut step, _output) = started(&format!("srun -n2 sh -c 'echo ready; {loops}'"));
    let mut told = BufReader::new(step.stderr.take().expect("it is piped")).lines();
    let mut next = || told.next().expect("a line").expect("text");
    send(&step, Signal::SIGINT);
    assert_eq!(next(), "srun: interrupt (one more within 1 sec to abort)");
    assert_eq!(next(), "srun: StepId=2.0 tasks 0-1: running");
    // Late tasks are asked again.
    loop {
        send(&step, Signal::SIGINT);
        if next() == "srun: sending Ctrl-C to StepId=2.0" {
            break;
        }
        assert_eq!(next(), "srun: StepId=2.0 tasks 0-1: running");
    }
    // A request to end follows the interrupt; whichever a task sees first ends it.
    let mut told = next();
    if told.starts_with("slurmstepd: error: *** STEP 2.0 ON nid00001 CANCELLED AT 20") {
        told = next();
    }
    assert!(told.starts_with("srun: error: nid00001: task"), "{told}");
    assert!(told.ends_with(": Interrupt") || told.ends_with(": Terminated"), "{told}");
    let status = step.wait().expect("it ends").code();
    assert!(matches!(status, Some(130 | 143)), "{status:?}");
    site.is_over("2");
}

/// SL-R-26: with `-X` a single interrupt goes to the tasks and nothing is reported, with `--quit-on-interrupt`
/// it ends the step.
#[test]
fn a_single_interrupt_does_what_an_option_says() {
    let site = reference();
    for (option, handler, status) in [("-X", "echo told; exit 7", 7), ("--quit-on-interrupt", "", 130)] {
        let handles = if handler.is_empty() { String::new() } else { format!("trap \"{handler}\" INT; ") };
        let script = format!("{handles}echo ready; while :; do sleep 0.05; done");
        let mut step = site.spawn(&format!("srun {option} -n2 sh -c '{script}'"));
        let mut output = BufReader::new(step.stdout.take().expect("it is piped")).lines();
        let mut next = || output.next().expect("a line").expect("text");
        assert_eq!([next(), next()], ["ready", "ready"]);
        kill(Pid::from_raw(i32::try_from(step.id()).expect("a process")), Signal::SIGINT).expect("it runs");
        if !handler.is_empty() {
            assert_eq!([next(), next()], ["told", "told"], "each task hears it");
        }
        let ended = step.wait_with_output().expect("it ends");
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(told.contains("srun: sending Ctrl-C to StepId="), "{told}");
        assert!(!told.contains("one more within 1 sec"), "{told}");
        // A request to end follows the interrupt that ends the step; whichever a task sees first ends it.
        let is_it = ended.status.code() == Some(status) || (status == 130 && ended.status.code() == Some(143));
        assert!(is_it, "{option}: {:?} {told}", ended.status);
        nothing_runs(&site);
    }
}

/// SL-C-21
#[test]
fn a_command_holds_its_allocation_until_it_or_somebody_else_ends_it() {
    let site = reference();
    let granted = |job: u32| format!("salloc: Granted job allocation {job}\n");
    let given_back = |job: u32| format!("{}salloc: Relinquishing job allocation {job}\n", granted(job));
    let Output { status, stdout, stderr } =
        site.run("salloc -n2 sh -c 'echo $SLURM_JOB_NODELIST $SLURM_NTASKS; exit 4'");
    assert_eq!((status, stdout.as_str(), stderr), (4, "nid00001 2\n", given_back(1)));
    nothing_runs(&site);
    assert_eq!(site.ok("sacct -n -P -X -j 1 -o JobName,State,ExitCode"), "interactive|FAILED|4:0\n");
    assert_eq!(site.run("salloc --no-shell -w nid00001 --exclusive").stderr, granted(2));
    assert_eq!(site.ok("squeue -h -o '%i %j %t'"), "2 no-shell R\n");
    let (status, told) = site.fails("salloc -w nid00001 -I true");
    assert_eq!(status, 1);
    assert_eq!(told, "salloc: error: Job submit/allocate failed: Job can not start immediately\n");
    let (status, told) = site.fails("salloc -p nope true");
    assert_eq!(status, 1);
    assert!(told.ends_with("salloc: error: Job submit/allocate failed: Invalid partition name specified\n"), "{told}");

    // An interrupt gives up waiting.
    let mut waits = site.spawn("salloc -w nid00001 true");
    let mut told = BufReader::new(waits.stderr.take().expect("it is piped")).lines();
    let mut next = || told.next().expect("a line").expect("text");
    assert_eq!(next(), "salloc: Pending job allocation 4");
    assert_eq!(next(), "salloc: job 4 queued and waiting for resources");
    kill(Pid::from_raw(i32::try_from(waits.id()).expect("a process")), Signal::SIGINT).expect("it runs");
    assert_eq!(next(), "salloc: Job allocation 4 has been revoked.");
    assert_eq!(waits.wait().expect("it ends").code(), Some(1));
    site.is_over("4");

    // The allocation arrives.
    let mut waits = site.spawn("salloc -w nid00001 echo there");
    let mut told = BufReader::new(waits.stderr.take().expect("it is piped")).lines();
    let mut next = || told.next().expect("a line").expect("text");
    assert_eq!(next(), "salloc: Pending job allocation 5");
    assert_eq!(next(), "salloc: job 5 queued and waiting for resources");
    site.ok("scancel 2");
    assert_eq!(next(), "salloc: job 5 has been allocated resources");
    assert_eq!(next(), "salloc: Granted job allocation 5");
    assert_eq!(next(), "salloc: Relinquishing job allocation 5");
    let ended = waits.wait_with_output().expect("it ends");
    assert_eq!((ended.status.code(), ended.stdout.as_slice()), (Some(0), &b"there\n"[..]));
    // Somebody else ends it; the command keeps running, unless it is to be told.
    let revoked = |job: u32| format!("{}salloc: Job allocation {job} has been revoked.\n", granted(job));
    let waits_for_end = "until [ -e over ]; do sleep 0.05; done; echo on";
    let goes_on = site.spawn(&format!("salloc sh -c 'scancel $SLURM_JOB_ID; {waits_for_end}'"));
    let is_cancelled = || site.ok("sacct -n -P -X -j 6 -o State").starts_with("CANCELLED");
    site.system.wait_until("job 6 is cancelled", is_cancelled);
    let told = site.run("salloc -K sh -c 'scancel $SLURM_JOB_ID; while :; do sleep 0.05; done'");
    assert_eq!((told.status, told.stderr), (1, revoked(7)));
    site.system.write("over", "");
    let ended = goes_on.wait_with_output().expect("it ends");
    assert_eq!((ended.status.code(), ended.stdout.as_slice()), (Some(0), &b"on\n"[..]));
    assert_eq!(String::from_utf8_lossy(&ended.stderr), revoked(6));

    // A step that waits for its allocation says the same, whoever gives it up.
    let held = site.run("salloc --no-shell -w nid00001 --exclusive").stderr;
    assert!(held.ends_with(&granted(8)), "{held}");
    for (job, is_interrupted) in [(9, true), (10, false)] {
        let mut waits = site.spawn("srun -w nid00001 true");
        let mut told = BufReader::new(waits.stderr.take().expect("it is piped")).lines();
        let mut next = || told.next().expect("a line").expect("text");
        assert_eq!(next(), format!("srun: job {job} queued and waiting for resources"));
        if is_interrupted {
            kill(Pid::from_raw(i32::try_from(waits.id()).expect("a process")), Signal::SIGINT).expect("it runs");
        } else {
            site.ok(&format!("scancel {job}"));
        }
        assert_eq!(next(), format!("srun: Job allocation {job} has been revoked."));
        assert_eq!(waits.wait().expect("it ends").code(), Some(1));
        site.is_over(&job.to_string());
    }
    site.ok("scancel 8");
}

/// SL-M-12, SL-M-13
#[test]
fn a_file_is_copied_to_the_nodes_that_are_meant() {
    let site = reference();
    site.ok("salloc --no-shell -N1 : -N2 && salloc --no-shell -N2");
    site.system.write("file", "text\n");
    site.ok("chmod 640 file && touch -d @1000000000 file");
    let copied = |line: &str| {
        site.ok(&format!("rm -f copy.*; {line}"));
        site.ok("ls -d copy.* | sort | tr '\\n' ' '")
    };
    let all = "copy.nid00001 copy.nid00002 copy.nid00003 ";
    assert_eq!(copied("SLURM_JOB_ID=1 sbcast file copy.%N"), all);
    assert_eq!(site.ok("cat copy.nid00003"), "text\n");
    assert_eq!(copied("sbcast --jobid=1 file copy.%N"), all);
    assert_eq!(copied("sbcast --jobid=1.1 file copy.%N"), "copy.nid00002 copy.nid00003 ");
    assert_eq!(copied("sbcast --jobid=1+0 file copy.%N"), "copy.nid00001 ");
    assert_eq!(copied("sbcast -p -j 3 file copy.%N"), "copy.nid00001 copy.nid00002 ");
    assert_eq!(site.ok("stat -c '%a %Y' copy.nid00001"), "640 1000000000\n");
    let (status, told) = site.fails("sbcast -j 3 file copy.%N");
    assert!(status == 1 && told.contains("copy.nid00001: File exists"), "{status} {told}");
    site.ok("sbcast -f -j 3 file copy.%N");
    for unknown in ["1+2", "99"] {
        let (status, told) = site.fails(&format!("sbcast -f -j {unknown} file copy"));
        assert!(status == 1 && told.contains("Invalid job id specified"), "{status} {told}");
    }
    let (status, told) = site.fails("sbcast -f -j 3 nofile copy");
    assert!(status == 1 && told.contains("nofile"), "{status} {told}");
    site.system.write("program", "#!/bin/sh\necho $0\n");
    site.ok("chmod 755 program");
    let folder = site.ok("mkdir inner && cd inner && pwd -P").trim().to_owned();
    assert_eq!(
        site.ok(&format!("srun --jobid=1 --het-group=1 -N1 -n1 --bcast={folder}/ ./program")),
        format!("{folder}/slurm_bcast_1_program\n")
    );
    site.ok("scancel 1 3");
}

/// SL-M-14
#[test]
fn a_running_step_is_attached_to() {
    let site = reference();
    site.ok("salloc --no-shell -n1 : -n2");
    let waits = |file: &str| format!("until [ -e {file} ]; do echo on; sleep 0.05; done");
    let tasks = format!("{}; echo there; {}; exit 3", waits("go"), waits("end"));
    let mut step = site.spawn(&format!("srun --jobid=1 --het-group=0,1 sh -c '{tasks}' > said"));
    site.system.wait_until("the step runs", || site.ok("squeue -s -h -o %i").contains("1+0.0"));
    assert_eq!(
        site.ok("sattach --layout 2.0"),
        "Job step layout:\n\t2 tasks, 1 nodes (nid00002)\n\n\tNode 0 (nid00002), 2 task(s): 1 2 \n"
    );
    let attached = ["1.0", "1+1.0"].map(|id| {
        let mut process = site.spawn(&format!("sattach -l {id}"));
        let mut output = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        let line = output.next().expect("a line").expect("text");
        assert!(line.ends_with(": on"), "{line}");
        (process, output)
    });
    site.system.write("go", "");
    // A client that only watches may miss part of the very end.
    for ((mut process, mut output), ranks) in attached.into_iter().zip([vec![0], vec![1, 2]]) {
        let mut expected: Vec<String> = ranks.iter().map(|rank| format!("{rank}: there")).collect();
        while !expected.is_empty() {
            let line = output.next().expect("a line").expect("text");
            let is_of_task = |rank: &u32| line == format!("{rank}: on") || line == format!("{rank}: there");
            assert!(ranks.iter().any(is_of_task), "{line}");
            expected.retain(|known| *known != line);
        }
        process.kill().expect("it runs");
        process.wait().expect("it ends");
    }
    site.system.write("end", "");
    assert_eq!(step.wait().expect("it ends").code(), Some(3));
    let text = "sattach: error: Attaching to several components at a time is not supported\n";
    assert_eq!(site.fails("sattach 1.0,2.0"), (1, text.to_owned()));
    let (status, told) = site.fails("sattach 1.7");
    assert!(status == 1 && told.contains("Invalid job id specified"), "{status} {told}");
    site.ok("scancel 1");
}

/// SL-R-21, SL-O-01: prolog and epilog of tasks, which apply to later groups too.
#[test]
fn tasks_have_a_prolog_and_an_epilog_on_their_nodes() {
    let site = reference();
    let program = |name: &str, text: &str| {
        site.system.write(name, &format!("#!/bin/sh\n{text}\n"));
        site.ok(&format!("chmod +x {name}"));
    };
    program("prolog", "echo export OWN=$SLURM_PROCID.$(id -un)\necho unset GONE\necho print begins $SLURM_PROCID");
    program("epilog", "echo $SLURM_PROCID $SLURMD_NODENAME $OWN$GONE >> ends");
    let line = "GONE=1 srun -Q -l -n2 --task-prolog=prolog --task-epilog=$PWD/epilog sh -c 'echo $OWN$GONE' : \
                -n1 sh -c 'echo $OWN$GONE; exit 3'";
    let Output { status, stdout, stderr } = site.run(line);
    let user = site.ok("id -un").trim().to_owned();
    let expected: Vec<String> =
        (0..3).flat_map(|rank| [format!("{rank}: {rank}.{user}"), format!("{rank}: begins {rank}")]).collect();
    assert_eq!((status, sorted(&stdout)), (3, expected.iter().map(String::as_str).collect()), "{stderr}");
    assert_eq!(stderr, "srun: error: nid00002: task 2: Exited with exit code 3\n");
    assert_eq!(sorted(&site.system.read("ends")), ["0 nid00001 1", "1 nid00001 1", "2 nid00002 1"]);
    // By variables; a task that the prolog refuses has its epilog too.
    program("prolog", "exit 5");
    let (status, told) = site.fails("SLURM_TASK_PROLOG=prolog SLURM_TASK_EPILOG=epilog srun -Q -n1 true");
    assert_eq!(status, 5);
    assert!(told.contains("error: --task-prolog failed status=5\n"), "{told}");
    assert_eq!(site.system.read("ends").lines().count(), 4);
    // The signal that ends a task is its status, and the step is named after its program.
    let (status, told) = site.fails("srun -Q -n1 --task-epilog=epilog sh -c 'kill -9 $$'");
    assert_eq!((status, told.as_str()), (137, "srun: error: nid00001: task 0: Killed\n"));
    assert_eq!(site.ok("sacct -n -P -j 4.0 -o JobName,ExitCode"), "sh|0:9\n");
}
