//! MPI programs over NATS, with every executor a process of its own: what a fence needs of the bus and its permissions,
//! and what is left of it when processes are killed.

#[allow(dead_code, reason = "the tests with marks of jobs use the rest")]
mod cluster;

use cluster::{Cluster, text};
use muster_surroundings::skipped;
use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const RING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../services/muster/tests/live/mpi/ring.c");
const MEET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mpi/meet.c");
/// Longer than anything here takes on a working machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A job on two nodes, with a program in its folder; `None` if there is no MPI library to build it with.
struct Job {
    cluster: Cluster,
    id: String,
    /// How tasks of its steps find each other.
    kind: &'static str,
}

impl Job {
    fn start() -> Option<Self> {
        Self::of("mpicc.mpich", "pmi2")
    }

    /// The same with a program of the library of this compiler, and the kind of MPI that it is built for.
    fn of(compiler: &str, kind: &'static str) -> Option<Self> {
        let cluster = Cluster::start();
        let built = Command::new(compiler).args(["-o", "ring", RING]).current_dir(cluster.folder.path()).output();
        let Ok(built) = built else {
            skipped(&format!("there is no {compiler}; ops/prerequisites --tests installs it"));
            return None;
        };
        assert!(built.status.success(), "{}", text(&built));
        let mut job = Self { cluster, id: String::new(), kind };
        let submitted = job.muster(&["submit", "--parsable", "-N", "2", "-n", "2", "--", "sleep", "600"]).output();
        let submitted = submitted.expect("muster can be run");
        assert!(submitted.status.success(), "{}", text(&submitted));
        job.id = String::from_utf8_lossy(&submitted.stdout).trim().to_owned();
        wait_until("the job runs", || {
            cluster::jobs(&job.cluster)
                .is_some_and(|jobs| jobs.get(&job.id).is_some_and(|(state, _)| state == "running"))
        });
        Some(job)
    }

    fn muster(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.cluster.muster);
        command.args(words).env("MUSTER_DATA", self.file("data")).current_dir(self.cluster.folder.path());
        command.stdin(Stdio::null());
        command
    }

    /// Starts a step with a task on each node.
    fn step(&self, line: &str) -> Child {
        let mut command =
            self.muster(&["step", "run", "-N", "2", "-n", "2", "--overlap", "--mpi", self.kind, &self.id]);
        command.args(["--", "sh", "-c", line]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("muster can be run")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.cluster.folder.path().join(name)
    }

    fn control(&self, word: &str, process: &str) {
        let output = self.cluster.control(&[word], &[process]);
        assert!(output.status.success(), "{word} {process}: {}", text(&output));
    }

    /// Number of nodes whose tasks are in a fence.
    fn nodes_in_fence(&self) -> usize {
        let found = Command::new("find").arg(self.cluster.folder.path()).args(["-name", "fence"]).output();
        String::from_utf8_lossy(&found.expect("there is find").stdout).lines().count()
    }

    /// The job ends, and with it the test.
    fn end(self) {
        let cancelled = self.cluster.muster(&["cancel", &self.id]).output().expect("muster can be run");
        assert!(cancelled.status.success(), "{}", text(&cancelled));
        cluster::wait_until_all_finished(&self.cluster);
        cluster::assert_history_verifies(&self.cluster);
    }
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn sorted(output: &[u8]) -> Vec<String> {
    let mut lines: Vec<String> = String::from_utf8_lossy(output).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn host() -> String {
    nix::unistd::gethostname().unwrap().to_string_lossy().into_owned()
}

fn ring() -> Vec<String> {
    (0..2).map(|rank| format!("rank {rank} of 2 on {}: number {}, sum 1", host(), rank + 1)).collect()
}

/// SL-W-01, SL-W-04, SL-W-08: executors that are killed while tasks wait for each other bring the answer once they are
/// there again; the ledger and the gateway are not needed for it.
#[test]
fn a_fence_outlives_executors_ledger_and_gateway() {
    let Some(job) = Job::start() else { return };
    outlives(&job);
    job.end();
}

/// SL-W-05, SL-W-08: the same with PMIx, where what the tasks tell each other goes from executor to executor too; also when
/// each asks for what it needs, from node to node.
#[test]
fn a_fence_of_pmix_outlives_executors_ledger_and_gateway() {
    let Some(job) = Job::of("mpicc.openmpi", "pmix") else { return };
    outlives(&job);
    let step = job.step("OMPI_MCA_pmix_base_collect_data=0 exec ./ring");
    let output = step.wait_with_output().expect("it ends");
    assert_eq!(sorted(&output.stdout), ring(), "{}", text(&output));
    job.end();
}

fn outlives(job: &Job) {
    let line = "r=$MUSTER_TASK_RANK; touch in.$r; [ $r = 0 ] || until [ -e go ]; do sleep 0.05; done; exec ./ring";
    let step = job.step(line);
    wait_until("both tasks have begun", || (0..2).all(|rank| job.file(&format!("in.{rank}")).exists()));
    wait_until("the first task waits for the second", || job.nodes_in_fence() == 1);
    for process in ["node1", "node2", "ledger", "gateway"] {
        job.control("kill", process);
    }
    std::fs::write(job.file("go"), "").unwrap();
    wait_until("the second is there, and nobody knows it", || job.nodes_in_fence() == 2);
    for process in ["ledger", "gateway", "node2", "node1"] {
        job.control("restart", process);
    }
    let output = step.wait_with_output().expect("it ends");
    assert_eq!(sorted(&output.stdout), ring(), "{}", text(&output));
}

/// SL-W-08: the node that leads continues with the fence after the last that was over.
#[test]
fn the_node_that_leads_remembers_which_fences_are_over() {
    let Some(job) = Job::start() else { return };
    let built = Command::new("cc").args(["-o", "meet", MEET]).current_dir(job.cluster.folder.path()).output();
    let built = built.expect("there is cc");
    assert!(built.status.success(), "{}", text(&built));
    let step = job.step("exec ./meet go");
    wait_until("both tasks have met twice", || (0..2).all(|rank| job.file(&format!("met.{rank}")).exists()));
    for process in ["node1", "node2"] {
        job.control("kill", process);
        job.control("restart", process);
    }
    std::fs::write(job.file("go"), "").unwrap();
    let output = step.wait_with_output().expect("it ends");
    assert_eq!(sorted(&output.stdout), ["0: 1 has come", "1: 0 has come"], "{}", text(&output));
    job.end();
}

/// SL-W-08: a shim that is killed takes its tasks out of the program; those of the other node do not wait for them.
#[test]
fn nobody_waits_for_tasks_whose_shim_was_killed() {
    let Some(job) = Job::start() else { return };
    let line = "[ $PMI_RANK = 0 ] || { ps -o ppid= -p $$ > shim; sleep 600; }; exec ./ring";
    let step = job.step(line);
    wait_until("the first task waits for the second", || job.nodes_in_fence() == 1);
    let shim = || std::fs::read_to_string(job.file("shim")).ok()?.trim().parse::<i32>().ok();
    wait_until("the second task has named its shim", || shim().is_some());
    let shim = nix::unistd::Pid::from_raw(shim().unwrap());
    assert!(Path::new(&format!("/proc/{shim}/comm")).exists());
    nix::sys::signal::kill(shim, nix::sys::signal::Signal::SIGKILL).expect("it lives");
    let output = step.wait_with_output().expect("it ends");
    assert!(!output.status.success(), "{}", text(&output));
    job.end();
}

/// SL-W-08: tasks do not wait for those of a node that falls silent and is lost; when the node is back, they end there too.
#[test]
fn nobody_waits_for_tasks_of_a_lost_node() {
    let Some(job) = Job::start() else { return };
    let line = "echo $$ > pid.$PMI_RANK; [ $PMI_RANK = 0 ] || sleep 600; exec ./ring";
    let step = job.step(line);
    let pid = |rank: u32| std::fs::read_to_string(job.file(&format!("pid.{rank}"))).ok()?.trim().parse::<i32>().ok();
    wait_until("both tasks have begun", || (0..2).all(|rank| pid(rank).is_some()));
    wait_until("the first task waits for the second", || job.nodes_in_fence() == 1);
    let is_gone = |pid: i32| !Path::new(&format!("/proc/{pid}")).exists();
    let pids = [0, 1].map(|rank| pid(rank).expect("it has begun"));
    job.control("kill", "node2");
    let output = step.wait_with_output().expect("it ends");
    assert!(!output.status.success(), "{}", text(&output));
    wait_until("the first task is gone", || is_gone(pids[0]));
    job.control("restart", "node2");
    wait_until("the second task is gone", || is_gone(pids[1]));
    // The loss of the node has ended the job, or it waits again.
    let _ = job.cluster.muster(&["cancel", &job.id]).output().expect("muster can be run");
    cluster::wait_until_all_finished(&job.cluster);
    cluster::assert_history_verifies(&job.cluster);
}
