//! MPI programs as people start them: built here with a real MPI library, over emulated nodes.

use crate::{
    slurm::Site,
    system::{Output, System},
};
use muster_surroundings::skipped;
use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

pub const RING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/mpi/ring.c");
pub const STAY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/mpi/stay.c");
const SPAWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../pmix/tests/programs/spawn.c");
pub const LEAVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/mpi/leave.c");

/// Whether emulated nodes can be hosts of their own.
fn has_namespaces() -> bool {
    let tried = Command::new("unshare").args(["--mount", "--uts", "true"]).status();
    let has = tried.is_ok_and(|status| status.success());
    if !has {
        skipped("emulated nodes cannot have namespaces of their own here");
    }
    has
}

/// Builds a program in the system's folder with the compiler of an MPI library. Returns whether there is that library, and
/// emulated nodes are hosts of their own.
pub fn built(system: &System, compiler: &str, source: &str, name: &str) -> bool {
    if !has_namespaces() {
        return false;
    }
    let output = Command::new(compiler).args(["-o", name, source]).current_dir(system.path("")).output();
    let Ok(output) = output else {
        skipped(&format!("there is no {compiler}; ops/prerequisites --tests installs it"));
        return false;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    true
}

/// What the processes of `ring.c` print, in order of rank: on which host each is.
pub fn ring(hosts: &[&str]) -> Vec<String> {
    let size = hosts.len();
    let sum: usize = (0..size).sum();
    let line = |(rank, host)| format!("rank {rank} of {size} on {host}: number {}, sum {sum}", rank + 1);
    hosts.iter().enumerate().map(line).collect()
}

pub fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// SL-W-01, SL-W-04, SL-W-09: one world over two and four nodes, whatever the distribution, and each process is on the
/// host of its node.
#[test]
fn the_tasks_of_an_srun_are_one_world() {
    let site = Site::start();
    if !built(&site.system, "mpicc.mpich", RING, "ring") {
        return;
    }
    assert_eq!(sorted(&site.ok("srun -n1 ./ring")), ring(&["node1"]));
    assert_eq!(sorted(&site.ok("srun -N2 -n4 ./ring")), ring(&["node1", "node1", "node2", "node2"]));
    let cyclic = ["node1", "node2", "node3", "node4", "node1", "node2", "node3", "node4"];
    assert_eq!(sorted(&site.ok("srun -N4 -n8 -m cyclic --mpi=pmi2 ./ring")), ring(&cyclic));
    // Some of the nodes of a job are a world too.
    let one_of_two = "salloc -Q -N2 -n4 -w node[1-2] srun -N1 -n2 -w node2 ./ring";
    assert_eq!(sorted(&site.ok(one_of_two)), ring(&["node2", "node2"]));
}

/// SL-W-01, SL-W-02: the components of one `srun` are one world, and two at the same time are two.
#[test]
fn components_are_one_world_and_steps_are_apart() {
    let site = Site::start();
    if !built(&site.system, "mpicc.mpich", RING, "ring") {
        return;
    }
    let script = "#!/bin/sh\n#SBATCH -n2\n#SBATCH hetjob\n#SBATCH -N2 -n2\n\
                  srun --het-group=0,1 ./ring > together\n\
                  srun --het-group=0 ./ring > apart.0 &\nsrun --het-group=1 ./ring > apart.1 &\nwait\n";
    site.system.write("job.sh", script);
    site.ok("sbatch --wait job.sh");
    assert_eq!(sorted(&site.system.read("together")), ring(&["node1", "node1", "node2", "node3"]));
    assert_eq!(sorted(&site.system.read("apart.0")), ring(&["node1", "node1"]));
    assert_eq!(sorted(&site.system.read("apart.1")), ring(&["node2", "node3"]));
}

/// SL-W-01, SL-W-04: `muster run` starts MPI programs too, and tasks of an array each have a world of their own.
#[test]
fn musters_own_steps_and_arrays_of_jobs_are_worlds() {
    let site = Site::start();
    if !built(&site.system, "mpicc.mpich", RING, "ring") {
        return;
    }
    let job = site.system.submit(&["-N", "2", "-n", "4", "--", "sleep", "600"]);
    site.system.wait_for_state(&job, "running");
    let output = site.system.ok(&["step", "run", "-n", "4", "--overlap", &job, "--", "./ring"]);
    assert_eq!(output.lines().count(), 4, "{output}");
    assert!(sorted(&output)[3].starts_with("rank 3 of 4 on node"), "{output}");
    let Output { status, stdout, .. } = site.system.run(&[
        "step",
        "run",
        "-n",
        "2",
        "--overlap",
        "--mpi",
        "none",
        &job,
        "--",
        "sh",
        "-c",
        "echo $PMI_RANK",
    ]);
    assert_eq!((status, stdout.as_str()), (0, "\n\n"), "no process management was asked for");
    site.system.write("array.sh", "#!/bin/sh\n#SBATCH -n2 -a 1-3 -o array.%a\nsrun ./ring\n");
    site.ok("sbatch --wait array.sh");
    for task in 1..=3 {
        let said = sorted(&site.system.read(&format!("array.{task}")));
        assert_eq!(said.len(), 2, "task {task}: {said:?}");
        for (rank, line) in said.iter().enumerate() {
            assert!(line.starts_with(&format!("rank {rank} of 2 on node")), "task {task}: {said:?}");
        }
    }
}

/// Whether this host has the library of PMIx.
fn has_pmix() -> bool {
    Path::new(LIBRARIES).join("libpmix.so.2").exists()
}

/// The list of kinds on a host that has the library of PMIx, or has not.
fn kinds(has_pmix: bool) -> String {
    format!("MPI plugin types are...\n\tnone\n\tpmi2\n{}", if has_pmix { "\tpmix\n" } else { "" })
}

/// SL-W-03
#[test]
fn kinds_of_mpi_are_listed_and_unknown_ones_start_nothing() {
    let site = Site::with("[slurm]\nmpi_default = \"none\"\n");
    assert_eq!(site.ok("srun --mpi=list"), kinds(has_pmix()));
    if has_pmix() && has_namespaces() {
        let library = fs::canonicalize(Path::new(LIBRARIES).join("libpmix.so.2")).expect("it is there");
        site.system.write("hide.sh", &format!("mount --bind /dev/null {}\nexec srun --mpi=list\n", library.display()));
        let listed = site.ok("unshare --mount sh -e hide.sh");
        assert_eq!(listed, kinds(false), "a kind whose library this host lacks");
    }
    let error = "srun: error: Invalid MPI type 'openmpi', --mpi=list for acceptable types\n";
    assert_eq!(site.fails("srun --mpi=openmpi touch started"), (1, error.to_owned()));
    assert_eq!(site.fails("SLURM_MPI_TYPE=openmpi srun touch started"), (1, error.to_owned()));
    assert!(!site.system.path("started").exists() && site.ok("squeue -h").is_empty());
    assert!(site.ok("scontrol show config").lines().any(|line| line.replace(' ', "") == "MpiDefault=none"));
    assert_eq!(site.ok("srun sh -c 'echo [$PMI_RANK]'"), "[]\n", "as the site says");
    assert_eq!(site.ok("srun --mpi=pmi2 sh -c 'echo [$PMI_RANK]'"), "[0]\n");
    // Steps of muster's own go by the same settings.
    let job = site.system.submit(&["-N", "1", "-n", "1", "--", "sleep", "600"]);
    site.system.wait_for_state(&job, "running");
    for (variable, option, said) in
        [("", "", "[]\n"), ("SLURM_MPI_TYPE=pmi2", "", "[0]\n"), ("SLURM_MPI_TYPE=none", "--mpi pmi2", "[0]\n")]
    {
        let step = format!("{variable} muster step run --overlap {option} {job} -- sh -c 'echo [$PMI_RANK]'");
        assert_eq!(site.system.shell(&step).stdout, said, "{step}");
    }
    let script = "#!/bin/sh\nmuster run sh -c 'echo [$PMI_RANK]' > run\nSLURM_MPI_TYPE=pmi2 muster run sh -c 'echo [$PMI_RANK]' >> run\n\
                  SLURM_MPI_TYPE=openmpi muster run touch started 2>> run || echo $? >> run\n";
    site.system.write("job.sh", script);
    let inside = site.system.submit(&["job.sh"]);
    site.system.wait_for_state(&inside, "finished");
    let wrong = "muster: SLURM_MPI_TYPE: `openmpi` is none of none, pmi2 and pmix; nothing is started\n2\n";
    assert_eq!(site.system.read("run"), format!("[]\n[0]\n{wrong}"));
    // What a task inherits is not for the jobs that it submits.
    let inner =
        "srun --mpi=pmi2 sh -c 'unset SLURM_JOB_ID SLURM_JOBID; sbatch --wait --wrap \"echo [\\$PMI_FD]\" -o inner'";
    site.ok(inner);
    assert_eq!(site.system.read("inner"), "[]\n");
}

/// SL-W-06, SL-W-08: however a process leaves the others, on its node or another one, the step ends and says which.
fn ends_with_whoever_leaves(compiler: &str, kind: &str) {
    let site = Site::start();
    if !built(&site.system, compiler, LEAVE, "leave") {
        return;
    }
    for (way, reason) in [
        ("abort", "task 1: it aborted the program"),
        ("exit", "task 1: it left without finalizing"),
        ("kill", "task 1: it left without finalizing"),
    ] {
        for (nodes, tasks, of_it) in [(1, 2, 1), (2, 2, 2), (4, 4, 2)] {
            let (status, error) = site.fails(&format!("srun --mpi={kind} -N{nodes} -n{tasks} ./leave {way}"));
            let line = format!("srun: error: node{of_it}: {reason}");
            assert!(error.lines().any(|found| found == line), "{way} on {nodes}: {error}");
            assert!(status == 137 || status == 143, "{way} on {nodes}: {status} {error}");
            let exited = error.contains("task 1: Exited with exit code 3");
            assert_eq!(exited, way == "abort", "the status that it asked for: {error}");
        }
    }
    let (_, error) = site.fails(&format!("srun --mpi={kind} -N1 -n2 ./leave never"));
    assert!(error.contains("srun: error: node1: task 1: it ended, and others wait for it"), "{error}");
    let (_, error) = site.fails(&format!("srun --mpi={kind} -N2 -n2 ./leave never"));
    assert!(error.contains("srun: error: node1: its tasks on node2 have ended, and others wait for them"), "{error}");
    // The last job may end a moment after its srun.
    site.system.wait_until("all jobs have failed", || {
        let states = site.ok("sacct -n -P -X -o state");
        !states.is_empty() && states.lines().all(|state| state == "FAILED")
    });
    // The components of a heterogeneous job are on nodes of their own, and so is each of these tasks.
    let components = format!("salloc -Q -n1 : -n1 srun --mpi={kind} --het-group=0,1 ./leave abort");
    let (status, error) = site.fails(&components);
    assert!(error.contains("srun: error: node2: task 1: it aborted the program"), "{error}");
    assert_ne!(status, 0, "{error}");
    let job = site.system.submit(&["-N", "2", "-n", "2", "--", "sleep", "600"]);
    site.system.wait_for_state(&job, "running");
    let step = ["step", "run", "--overlap", "-N", "2", "-n", "2", "--mpi", kind, &job, "--", "./leave", "abort"];
    let Output { status, stderr, .. } = site.system.run(&step);
    assert!(stderr.contains(": task 1: it aborted the program"), "{stderr}");
    assert!(status == 137 || status == 143, "{status}: {stderr}");
    site.system
        .write("job.sh", &format!("#!/bin/sh\nmuster run --mpi {kind} ./leave abort 2> said\necho $? >> said\n"));
    let inside = site.system.submit(&["-N", "2", "-n", "4", "job.sh"]);
    site.system.wait_for_state(&inside, "finished");
    let said = site.system.read("said");
    assert!(said.contains(": task 1: it aborted the program"), "{said}");
    assert!(said.ends_with("137\n") || said.ends_with("143\n"), "{said}");
}

/// SL-W-06, SL-W-08
#[test]
fn a_process_that_leaves_the_others_ends_the_step() {
    ends_with_whoever_leaves("mpicc.mpich", "pmi2");
}

/// SL-W-05, SL-W-06, SL-W-08
#[test]
fn a_process_that_leaves_the_others_ends_the_step_with_pmix_too() {
    ends_with_whoever_leaves("mpicc.openmpi", "pmix");
}

/// SL-W-01, SL-W-02, SL-W-05: programs of Open MPI over nodes, components and groups apart.
#[test]
fn the_tasks_of_a_step_with_pmix_are_one_world() {
    let site = Site::with("[slurm]\nmpi_default = \"pmix\"\n");
    if !built(&site.system, "mpicc.openmpi", RING, "ring") {
        return;
    }
    assert_eq!(sorted(&site.ok("srun -n1 ./ring")), ring(&["node1"]));
    let cyclic = ["node1", "node2", "node3", "node4", "node1", "node2", "node3", "node4"];
    assert_eq!(sorted(&site.ok("srun -N4 -n8 -m cyclic ./ring")), ring(&cyclic));
    // Processes that ask for each address when they need it, over other nodes too.
    let asks = "OMPI_MCA_pmix_base_collect_data=0 srun -N2 -n4 ./ring";
    assert_eq!(sorted(&site.ok(asks)), ring(&["node1", "node1", "node2", "node2"]));
    let script = "#!/bin/sh\n#SBATCH -n2\n#SBATCH hetjob\n#SBATCH -N2 -n2\n\
                  srun --het-group=0,1 ./ring > together\n\
                  srun --het-group=0 ./ring > apart.0 &\nsrun --het-group=1 ./ring > apart.1 &\nwait\n";
    site.system.write("job.sh", script);
    site.ok("sbatch --wait job.sh");
    assert_eq!(sorted(&site.system.read("together")), ring(&["node1", "node1", "node2", "node3"]));
    assert_eq!(sorted(&site.system.read("apart.0")), ring(&["node1", "node1"]));
    assert_eq!(sorted(&site.system.read("apart.1")), ring(&["node2", "node3"]));
    let job = site.system.submit(&["-N", "2", "-n", "4", "--", "sleep", "600"]);
    site.system.wait_for_state(&job, "running");
    let output = site.system.ok(&["step", "run", "-n", "4", "--overlap", "--mpi", "pmix", &job, "--", "./ring"]);
    assert!(sorted(&output)[3].starts_with("rank 3 of 4 on node"), "{output}");
    let servers = Command::new("pgrep").args(["-f", "pmix-server"]).output().expect("there is pgrep").stdout;
    let own = site.system.path("data").display().to_string();
    let is_own =
        |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/environ")).is_ok_and(|all| all.contains(&own));
    assert!(!String::from_utf8_lossy(&servers).lines().any(is_own), "no server outlives its step");
}

/// SL-W-03: a step that asks for PMIx on a node without its library is not started, and says what is missing.
#[test]
fn a_step_with_pmix_is_not_started_where_the_library_is_missing() {
    if !has_namespaces() {
        return;
    }
    if !has_pmix() {
        return skipped("there is no libpmix.so.2; ops/prerequisites --tests installs it");
    }
    let library = fs::canonicalize(Path::new(LIBRARIES).join("libpmix.so.2")).expect("it is there");
    let hide = format!("mount --bind /dev/null {} && exec \"$@\"", library.display());
    let mut system = System::stopped();
    system.launch_through(&["unshare", "--mount", "sh", "-c", &hide, "sh"], &["--nodes", "1", "--cpus", "4"]);
    let line = system.await_ready();
    assert!(line.starts_with("muster is ready: "), "it said `{line}`, and:\n{}", system.log());
    system.ok(&["install-commands", "bin"]);
    let site = Site { system };
    let (status, error) = site.fails("srun --mpi=pmix -n2 touch started");
    assert_eq!(status, 1, "{error}");
    assert!(error.contains("srun: error: ") && error.contains("install the package libpmix2"), "{error}");
    assert!(!site.system.path("started").exists());
    assert_eq!(site.ok("srun --mpi=pmi2 -n2 echo others run"), "others run\n".repeat(2));
}

/// SL-W-03: a program of another interface is told so, and is no set of programs that each believe to be alone.
#[test]
fn a_program_of_another_interface_is_told_so() {
    let site = Site::start();
    if !built(&site.system, "mpicc.mpich", RING, "ring") {
        return;
    }
    let (_, error) = site.fails("srun --mpi=pmix -n2 ./ring");
    assert!(error.contains("it asks for PMI, and the step offers PMIx"), "{error}");
}

/// How often a text says that more processes were asked for.
fn refusals(text: &str) -> usize {
    text.matches(" asked for more processes (MPI_Comm_spawn)").count()
}

/// Asks for more processes in the words of PMI-1.
const ASKS: &str = "printf 'cmd=init pmi_version=1 pmi_subversion=1\\n' >&$PMI_FD; read -u $PMI_FD line\n\
                    printf 'mcmd=spawn\\nnprocs=2\\nexecname=true\\nendcmd\\n' >&$PMI_FD; read -u $PMI_FD answer\n\
                    printf 'cmd=finalize\\n' >&$PMI_FD; read -u $PMI_FD line\n\
                    echo \"$answer\" | cut -d' ' -f1-3\n";

/// SL-W-04, SL-W-10: who asks a step with PMI for more processes gets an error that it can read, and people are told once.
#[test]
fn a_step_with_pmi_refuses_to_spawn_and_says_so() {
    let site = Site::start();
    site.system.write("asks.sh", ASKS);
    let Output { status, stdout, stderr } = site.run("srun --mpi=pmi2 -N1 -n2 bash asks.sh");
    assert_eq!((status, stdout.as_str()), (0, "cmd=spawn_result rc=-1 status=-1\n".repeat(2).as_str()), "{stderr}");
    assert_eq!(refusals(&stderr), 1, "{stderr}");
}

/// SL-W-10: a step with PMIx refuses it and says so, whether the program goes on or ends of it. The launcher of the library
/// starts further processes in the job.
#[test]
fn programs_spawn_under_the_launcher_of_pmix_and_steps_refuse_it() {
    let site = Site::start();
    if !built(&site.system, "mpicc.openmpi", SPAWN, "spawn") {
        return;
    }
    let Output { status, stdout, stderr } = site.run("srun --mpi=pmix -N1 -n2 ./spawn");
    assert_eq!(
        (status, sorted(&stdout)),
        (0, [0, 1].map(|rank| format!("rank {rank}: it is refused")).to_vec()),
        "{stderr}"
    );
    assert_eq!(refusals(&stderr), 1, "{stderr}");
    let (status, stderr) = site.fails("srun --mpi=pmix -n1 ./spawn fatal");
    assert!(status != 0 && refusals(&stderr) == 1, "{status}: {stderr}");
    let script = "#!/bin/sh\n#SBATCH -N2 -n6 -o spawned\nmpirun.openmpi --allow-run-as-root -n 2 ./spawn\n";
    site.system.write("job.sh", script);
    let Output { status, stdout, stderr } = site.run("sbatch --wait job.sh");
    let spawned = site.system.read("spawned");
    assert_eq!(status, 0, "{stdout}{stderr}{spawned}");
    assert_eq!(sorted(&spawned), ["rank 0: 4 from its children", "rank 1: 4 from its children"]);
}

/// How often a text warns of tasks that do not find each other, by this library.
fn warnings(text: &str, library: &str) -> usize {
    let begin = |line: &&str| line.starts_with("muster: warning: task ") && line.contains(library);
    text.lines().filter(begin).filter(|line| line.contains("its tasks do not find each other")).count()
}

/// SL-W-03: programs of another interface than their step offers, which would each believe to be alone, are told so once,
/// on the standard error of a task.
#[test]
fn programs_that_find_no_server_are_told_so() {
    let site = Site::start();
    if !built(&site.system, "mpicc.openmpi", RING, "ring") {
        return;
    }
    let job = site.system.submit(&["-N", "2", "-n", "4", "--", "sleep", "600"]);
    site.system.wait_for_state(&job, "running");
    let run = |options: &[&str]| {
        let all = [&["step", "run", "--overlap"][..], options, &[&job, "--", "./ring"]].concat();
        let Output { status, stdout, stderr } = site.system.run(&all);
        assert_eq!(status, 0, "{options:?}: {stdout}{stderr}");
        (stdout, stderr)
    };
    // One on each host: those of Open MPI that start at the same time on the same host can fail over their folder there.
    let (stdout, stderr) = run(&["-N", "2", "-n", "2"]);
    assert!(stdout.lines().all(|line| line.starts_with("rank 0 of 1 on node")), "{stdout}");
    assert_eq!(warnings(&stderr, "uses libmpi.so.40 and has not asked for the PMI "), 1, "{stderr}");
    assert!(stderr.contains("Start it with --mpi=pmix"), "{stderr}");
    for fine in [&["-n", "4", "--mpi", "pmix"][..], &["-N", "2", "-n", "2", "--mpi", "none"], &["-n", "1"]] {
        let (_, stderr) = run(fine);
        assert_eq!(stderr, "", "{fine:?}");
    }
    let found = site.ok("SLURM_MPI_TYPE=pmix srun -N2 -n2 ./ring");
    assert!(found.lines().count() == 2 && found.lines().all(|line| line.contains(" of 2 on node")), "{found}");
    let stderr = site.run("srun -N2 -n2 ./ring").stderr;
    assert_eq!(warnings(&stderr, "libmpi.so.40"), 1, "{stderr}");
    site.run("srun -N2 -n2 -e errors ./ring");
    assert_eq!(warnings(&site.system.read("errors"), "libmpi.so.40"), 1, "{}", site.system.read("errors"));
    if built(&site.system, "mpicc.mpich", RING, "ring") {
        assert_eq!(site.run("srun -N2 -n4 ./ring").stderr, "", "they have found each other");
    }
}

/// SL-W-03: the program that a script starts is found among its processes.
#[test]
fn programs_of_scripts_that_find_no_server_are_told_so() {
    let site = Site::start();
    if !built(&site.system, "mpicc.openmpi", STAY, "stay") {
        return;
    }
    // The program ends after the first task has been seen to end.
    let script = "#!/bin/sh\nif [ $MUSTER_TASK_RANK = 0 ]; then\n  echo $$ > pid.new; mv pid.new pid\n\
                  until [ -e inside ]; do sleep 0.02; done\n  exit\nfi\n./stay &\n\
                  until [ -e pid ]; do sleep 0.02; done\nwhile kill -0 $(cat pid); do sleep 0.02; done 2> /dev/null\n\
                  touch go\nwait\n";
    site.system.write("job.sh", script);
    let job = site.system.submit(&["-N", "1", "-n", "2", "--", "sleep", "600"]);
    site.system.wait_for_state(&job, "running");
    let said = site.system.run(&["step", "run", "--overlap", "-n", "2", &job, "--", "sh", "job.sh"]);
    assert_eq!(warnings(&said.stderr, "task 1 uses lib"), 1, "{said:?}");
}

/// SL-W-09
#[test]
fn emulated_nodes_are_hosts_of_their_own() {
    if !has_namespaces() {
        return;
    }
    let site = Site::start();
    let hosts = "srun -N4 sh -c 'hostname; touch /tmp/of-$(hostname) /dev/shm/of-$(hostname)'";
    assert_eq!(sorted(&site.ok(hosts)), ["node1", "node2", "node3", "node4"]);
    let seen = site.ok("srun -w node2 sh -c 'ls -d /tmp/of-* /dev/shm/of-*; getent hosts node4; pwd'");
    let here = site.system.path("").canonicalize().unwrap().display().to_string();
    let lines: Vec<&str> = seen.lines().collect();
    assert_eq!(lines[..2], ["/dev/shm/of-node2", "/tmp/of-node2"], "its own of an earlier job: {seen}");
    assert!(lines[2].starts_with("127.1.0.4") && lines[2].ends_with("node4"), "{seen}");
    assert_eq!(lines[3], here.trim_end_matches('/'), "the working directory is there although it is below /tmp");
    assert!(!std::path::Path::new("/tmp/of-node2").exists());
}

/// SL-W-09: where emulated nodes cannot be hosts of their own, the operator is warned and their programs run nevertheless.
#[test]
fn emulated_nodes_that_cannot_be_hosts_are_warned_of() {
    // Without this capability, which root lacks in many containers and other users do in any case, there are no namespaces.
    let words: &[&str] = match nix::unistd::Uid::effective().is_root() {
        true => &["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"],
        false => &["env"],
    };
    let mut system = System::stopped();
    system.launch_through(words, &["--nodes", "2", "--cpus", "4"]);
    let line = system.await_ready();
    assert!(line.starts_with("muster is ready: "), "it said `{line}`, and:\n{}", system.log());
    system.ok(&["install-commands", "bin"]);
    let site = Site { system };
    assert_eq!(site.ok("srun -w node2 hostname"), site.ok("hostname"));
    let warning = "programs on the emulated nodes share this host's name, /dev/shm and /tmp";
    assert!(site.system.log().contains(warning), "{}", site.system.log());
}

/// A program in Python: each rank says where it is and what all ranks are together.
const PYTHON_RING: &str = "\
from mpi4py import MPI
world = MPI.COMM_WORLD
host = MPI.Get_processor_name()
print(f\"rank {world.rank} of {world.size} on {host}: sum {world.allreduce(world.rank)}\", flush=True)
";

/// The libraries of MPICH and Open MPI, by the names that Debian gives them.
const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu";

/// SL-W-01: mpi4py from the package registry, with the library of MPICH and with that of Open MPI; its latency program over
/// two nodes.
#[test]
fn programs_in_python_are_worlds_too() {
    let site = Site::start();
    let python = std::env::var("MUSTER_PYTHON").expect("set MUSTER_PYTHON to a Python with mpi4py, or run ops/test");
    let mpich = Path::new(LIBRARIES).join("libmpich.so.12");
    if !has_namespaces() {
        return;
    }
    if !mpich.exists() || !Path::new(LIBRARIES).join("libmpi.so.40").exists() {
        return skipped("MPICH and Open MPI are not installed; ops/prerequisites --tests installs them");
    }
    site.system.write("ring.py", PYTHON_RING);
    // Wheels ask for the common name of the ABI, which Debian's MPICH does not have.
    let libraries = site.system.path("lib");
    fs::create_dir(&libraries).expect("the folder is the test's");
    symlink(&mpich, libraries.join("libmpi.so.12")).expect("the folder is empty");
    let with_mpich = format!("env MPI4PY_MPIABI=mpich LD_LIBRARY_PATH={} {python}", libraries.display());
    let with_open_mpi = format!("env MPI4PY_MPIABI=openmpi {python}");
    for (kind, python) in [("pmi2", &with_mpich), ("pmix", &with_open_mpi)] {
        let expected = ["node1", "node1", "node2", "node2"].iter().enumerate();
        let expected: Vec<String> = expected.map(|(rank, host)| format!("rank {rank} of 4 on {host}: sum 6")).collect();
        assert_eq!(sorted(&site.ok(&format!("srun -N2 -n4 --mpi={kind} {python} ring.py"))), expected, "{kind}");
        let latency = site.ok(&format!(
            "srun -N2 -n2 --mpi={kind} {python} -m mpi4py.bench pingpong -n 64 -l 20 -s 2 -a none --no-stats"
        ));
        assert!(latency.contains("Bandwidth [MB/s]"), "{latency}");
    }
}
