//! MPI programs as people start them: built here with a real MPI library, over emulated nodes.

use crate::{
    slurm::Site,
    system::{Output, System},
};
use muster_surroundings::skipped;
use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

pub const RING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/mpi/ring.c");
const LEAVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/mpi/leave.c");

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
        assert_eq!(site.system.read(&format!("array.{task}")).lines().count(), 2, "task {task}");
    }
}

/// SL-W-03
#[test]
fn kinds_of_mpi_are_listed_and_unknown_ones_start_nothing() {
    let site = Site::with("[slurm]\nmpi_default = \"none\"\n");
    assert_eq!(site.ok("srun --mpi=list"), "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\n");
    let error = "srun: error: Invalid MPI type 'openmpi', --mpi=list for acceptable types\n";
    assert_eq!(site.fails("srun --mpi=openmpi touch started"), (1, error.to_owned()));
    assert_eq!(site.fails("SLURM_MPI_TYPE=openmpi srun touch started"), (1, error.to_owned()));
    assert!(!site.system.path("started").exists() && site.ok("squeue -h").is_empty());
    assert!(site.ok("scontrol show config").lines().any(|line| line.replace(' ', "") == "MpiDefault=none"));
    assert_eq!(site.ok("srun sh -c 'echo [$PMI_RANK]'"), "[]\n", "as the site says");
    assert_eq!(site.ok("srun --mpi=pmi2 sh -c 'echo [$PMI_RANK]'"), "[0]\n");
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
        for nodes in 1..=2 {
            let (status, error) = site.fails(&format!("srun --mpi={kind} -N{nodes} -n2 ./leave {way}"));
            let line = format!("srun: error: node{nodes}: {reason}");
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
    let states = site.ok("sacct -n -P -X -o state");
    assert!(!states.is_empty() && states.lines().all(|state| state == "FAILED"), "{states}");
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

/// Has a job on two nodes run the ring by the launcher of each library, into the file `out`.
fn by_each_launcher(site: &Site, run: impl Fn(&str)) {
    for (compiler, launcher) in
        [("mpicc.mpich", "mpiexec.hydra"), ("mpicc.openmpi", "mpirun.openmpi --allow-run-as-root")]
    {
        if built(&site.system, compiler, RING, "ring") {
            run(launcher);
            let said = site.system.read("out");
            // Open MPI says so if its child has begun before it could be put into a group of its own.
            let lines = said.lines().filter(|line| !line.contains("plm:rsh: Warning: setpgid"));
            let said = lines.map(|line| format!("{line}\n")).collect::<String>();
            assert_eq!(sorted(&said), ring(&["node1", "node1", "node2", "node2"]), "{launcher}");
        }
    }
}

/// SL-W-07: the launchers of the libraries find the nodes and slots of a job, and leave nothing behind.
#[test]
fn launchers_of_mpi_libraries_use_the_jobs_nodes() {
    let site = Site::start();
    by_each_launcher(&site, |launcher| {
        let script = format!("#!/bin/sh\n#SBATCH -N2 -n4\n{launcher} ./ring > out 2>&1\n");
        site.system.write("job.sh", &script);
        site.ok("sbatch --wait job.sh");
    });
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

/// SL-W-07: in a job of muster's own, launchers reach the other nodes by `muster-rsh`, which works inside the job alone.
#[test]
fn launchers_in_jobs_without_slurm_reach_the_nodes_by_muster_rsh() {
    let site = Site::start();
    by_each_launcher(&site, |launcher| {
        site.system.write("job.sh", &format!("#!/bin/sh\n{launcher} ./ring > out 2>&1\n"));
        let job = site.system.submit(&["-N", "2", "-n", "4", "job.sh"]);
        site.system.wait_for_state(&job, "finished");
    });
    let script = "#!/bin/sh\nrsh=$HYDRA_LAUNCHER_EXEC\n$rsh node2 hostname '&&' exit 7; echo $?\n$rsh node3 true; echo $?\n\
                  $rsh -l nobody node2 true; echo $?\nunset MUSTER_JOB_ID; $rsh node2 true; echo $?\n";
    site.system.write("job.sh", script);
    let job = site.system.submit(&["-N", "2", "-n", "2", "-o", "said", "job.sh"]);
    site.system.wait_for_state(&job, "finished");
    let said = site.system.read("said");
    let expected = format!(
        "node2\n7\nmuster: `node3` is not a node of job {job}\n1\n\
         muster: job {job} is not a job of user `nobody`\n1\nmuster: it works inside a job, where MUSTER_JOB_ID is set\n1\n"
    );
    assert_eq!(said, expected);
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
