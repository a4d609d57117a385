//! MPI programs that the launchers of their libraries start inside jobs: `mpirun` of Open MPI and `mpiexec` of MPICH.

use crate::{
    hpcpack::submitted,
    mpi::{LEAVE, RING, STAY, built, ring, sorted},
    oar, pbs,
    slurm::Site,
    system::Output,
};
use std::fs;

const MUSTER: &str = env!("CARGO_BIN_EXE_muster");
/// The compilers and launchers of the libraries.
const LAUNCHERS: [(&str, &str); 2] =
    [("mpicc.mpich", "mpiexec.hydra"), ("mpicc.openmpi", "mpirun.openmpi --allow-run-as-root")];

/// Has a job run the ring by the launcher of each library, into the file `out`, with a process on each of these hosts.
fn by_each_launcher(site: &Site, hosts: &[&str], run: impl Fn(&str)) {
    for (compiler, launcher) in LAUNCHERS {
        if built(&site.system, compiler, RING, "ring") {
            run(launcher);
            let said = site.system.read("out");
            // Open MPI says so if its child has begun before it could be put into a group of its own.
            let lines = said.lines().filter(|line| !line.contains("plm:rsh: Warning: setpgid"));
            let said = lines.map(|line| format!("{line}\n")).collect::<String>();
            assert_eq!(sorted(&said), ring(hosts), "{launcher}");
            fs::remove_file(site.system.path("out")).expect("it is the job's");
        }
    }
}

const TWO_NODES: [&str; 4] = ["node1", "node1", "node2", "node2"];
const FOUR_NODES: [&str; 8] = ["node1", "node1", "node2", "node2", "node3", "node3", "node4", "node4"];

/// SL-W-07: the launchers of the libraries find the nodes and slots of a job, and leave nothing behind.
#[test]
fn launchers_of_mpi_libraries_use_the_jobs_nodes() {
    let site = Site::start();
    for (nodes, tasks, hosts) in [(2, 4, &TWO_NODES[..]), (4, 8, &FOUR_NODES)] {
        by_each_launcher(&site, hosts, |launcher| {
            let script = format!("#!/bin/sh\n#SBATCH -N{nodes} -n{tasks}\n{launcher} ./ring > out 2>&1\n");
            site.system.write("job.sh", &script);
            site.ok("sbatch --wait job.sh");
        });
    }
}

/// SL-W-07: launchers that run at the same time share the job: the second one's daemons do not wait for the cores of the
/// first one's.
#[test]
fn two_launchers_at_the_same_time_share_the_job() {
    let site = Site::start();
    for (compiler, launcher) in LAUNCHERS {
        if !built(&site.system, compiler, STAY, "stay") {
            return;
        }
        let stay = site.system.path("stay").display().to_string();
        let script = format!(
            "#!/bin/sh -e\n#SBATCH -N2 -n2 -o said\nmkdir first second\n\
             (cd first; exec {launcher} {stay}) &\nfirst=$!\n\
             until [ -e first/inside ]; do sleep 0.05; done\n\
             (cd second; exec {launcher} {stay})\n\
             touch first/go\nwait $first\nrm -r first second\n"
        );
        site.system.write("job.sh", &script);
        let job = site.ok("sbatch --parsable job.sh").trim().to_owned();
        let is_in = || site.system.path("second/inside").exists();
        site.system.wait_until("the processes of both launchers have met", is_in);
        assert!(!site.system.path("first/go").exists(), "{launcher}: the first still runs");
        site.system.write("second/go", "");
        site.is_over(&job);
        let state = site.ok(&format!("sacct -n -P -X -j {job} -o State"));
        assert_eq!(state, "COMPLETED\n", "{launcher}: {}", site.system.read("said"));
    }
}

/// SL-W-07: the launcher of a heterogeneous job has the nodes of the component that its script belongs to, as in Slurm.
#[test]
fn launchers_in_heterogeneous_jobs_have_the_nodes_of_their_component() {
    let site = Site::start();
    by_each_launcher(&site, &TWO_NODES, |launcher| {
        let script =
            format!("#!/bin/sh\n#SBATCH -N2 -n4\n#SBATCH hetjob\n#SBATCH -N1 -n2\n{launcher} ./ring > out 2>&1\n");
        site.system.write("job.sh", &script);
        site.ok("sbatch --wait job.sh");
    });
}

/// SL-W-07: in jobs of PBS the launchers have a process for each line of the node file, also on four nodes.
#[test]
fn launchers_in_jobs_of_qsub_use_the_jobs_nodes() {
    let site = pbs::site();
    for (nodes, hosts) in [(2, &TWO_NODES[..]), (4, &FOUR_NODES)] {
        by_each_launcher(&site, hosts, |launcher| {
            let script = format!(
                "#!/bin/sh\n#PBS -l select={nodes}:ncpus=2:mpiprocs=2 -l place=scatter\ncd $PBS_O_WORKDIR\n\
                 {launcher} ./ring > out 2>&1\n"
            );
            site.system.write("job.sh", &script);
            site.ok("qsub -W block=true job.sh");
        });
    }
}

/// SL-W-07: in jobs of OAR the launchers have a process for each core.
#[test]
fn launchers_in_jobs_of_oarsub_use_the_jobs_nodes() {
    let site = oar::site();
    for (job, (nodes, hosts)) in (0..).zip([(2, &TWO_NODES[..]), (4, &FOUR_NODES)]) {
        let next = std::cell::Cell::new(2 * job + 1);
        by_each_launcher(&site, hosts, |launcher| {
            site.system.write("job.sh", &format!("#!/bin/sh\n{launcher} ./ring > out 2>&1\n"));
            site.ok("chmod +x job.sh");
            site.ok(&format!("oarsub -l nodes={nodes}/core=2 ./job.sh"));
            oar::wait_for(&site, next.get(), "Terminated");
            next.set(next.get() + 1);
        });
    }
}

/// SL-W-07: a task of HPC Pack that is a launcher has a process for each core of the task.
#[test]
fn launchers_in_tasks_of_hpc_pack_use_the_tasks_cores() {
    let site = Site::start();
    by_each_launcher(&site, &["node1"; 4], |launcher| {
        site.system.write("task.sh", &format!("#!/bin/sh\n{launcher} ./ring > out 2>&1\n"));
        let job = submitted(&site.ok("job new /numcores:4"));
        site.ok(&format!("job add {job} /numcores:4 sh task.sh"));
        site.ok(&format!("job submit /id:{job}"));
        site.system.wait_for_state(&job, "finished");
    });
}

/// SL-W-07: in a job of muster's own, launchers reach the other nodes by `muster-rsh`, which works inside the job alone.
#[test]
fn launchers_in_jobs_without_slurm_reach_the_nodes_by_muster_rsh() {
    let site = Site::start();
    for (nodes, tasks, hosts) in [("2", "4", &TWO_NODES[..]), ("4", "8", &FOUR_NODES)] {
        by_each_launcher(&site, hosts, |launcher| {
            site.system.write("job.sh", &format!("#!/bin/sh\n{launcher} ./ring > out 2>&1\n"));
            let job = site.system.submit(&["-N", nodes, "-n", tasks, "job.sh"]);
            site.system.wait_for_state(&job, "finished");
        });
    }
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

/// The processes of a job, on all emulated nodes.
fn processes_of(site: &Site, job: &str) -> Vec<String> {
    let variables = [format!("MUSTER_DATA={}", site.system.path("data").display()), format!("MUSTER_JOB_ID={job}")]
        .map(String::into_bytes);
    let entries = fs::read_dir("/proc").expect("there is /proc").flatten().map(|entry| entry.path());
    let is_of_job = |process: &std::path::PathBuf| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        variables
            .iter()
            .all(|wanted| environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_slice()))
    };
    let name = |process: std::path::PathBuf| fs::read_to_string(process.join("comm")).unwrap_or_default();
    entries.filter(is_of_job).map(name).collect()
}

/// SL-W-07: a job that is cancelled leaves neither processes of the program nor of its launcher on any of its nodes, whoever
/// started them.
#[test]
fn what_launchers_have_started_ends_with_a_cancelled_job() {
    let site = Site::with(pbs::CONFIGURATION);
    for (compiler, launcher) in LAUNCHERS {
        if !built(&site.system, compiler, STAY, "stay") {
            return;
        }
        site.system.write("job.sh", &format!("#!/bin/sh\ncd {}\n{launcher} ./stay\n", site.system.path("").display()));
        for (submit, cancel) in [
            ("sbatch --parsable -N2 -n4 job.sh", "scancel"),
            ("qsub -l select=2:ncpus=2:mpiprocs=2 -l place=scatter job.sh", "qdel"),
            ("oarsub -l nodes=2/core=2 'sh job.sh' | sed s/OAR_JOB_ID=//", "oardel"),
            (&format!("{MUSTER} submit --parsable -N 2 -n 4 job.sh"), &format!("{MUSTER} job cancel")),
        ] {
            let submitted = site.ok(submit);
            let job = submitted.trim().split('.').next().unwrap_or_default();
            site.system.wait_until("the processes have met", || site.system.path("inside").exists());
            let names = processes_of(&site, job);
            assert_eq!(names.iter().filter(|name| *name == "stay\n").count(), 4, "{submit}, {launcher}: {names:?}");
            site.ok(&format!("{cancel} {job}"));
            site.system.wait_for_state(job, "finished");
            site.system.wait_until("its processes are gone", || processes_of(&site, job).is_empty());
            fs::remove_file(site.system.path("inside")).expect("it is the program's");
        }
    }
}

/// SL-W-06, SL-W-07: a process that aborts on another node than the launcher ends the whole program. The launcher fails with its
/// status, and with it the job; nothing is left. `mpiexec` of MPICH says nothing in one of six cases, also without muster: it
/// may end before it has passed on what the process said.
#[test]
fn a_process_that_aborts_ends_the_program_of_its_launcher() {
    let site = Site::start();
    for (compiler, launcher) in LAUNCHERS {
        if !built(&site.system, compiler, LEAVE, "leave") {
            return;
        }
        for nodes in [2, 4] {
            let script = format!("#!/bin/sh\n#SBATCH -N{nodes} -n{nodes} -o said\n{launcher} ./leave abort 2>&1\n");
            site.system.write("job.sh", &script);
            let Output { status, stdout, .. } = site.run("sbatch --parsable --wait job.sh");
            let (job, said) = (stdout.trim(), site.system.read("said"));
            assert_eq!(status, 3, "{launcher} on {nodes}: {said}");
            let is_told = ["MPI_Abort", "MPI_ABORT", "BAD TERMINATION"].iter().any(|words| said.contains(words));
            let may_be_silent = launcher == "mpiexec.hydra" && said.is_empty();
            assert!(is_told || may_be_silent, "{launcher} on {nodes}: `{said}`");
            let record = site.ok(&format!("sacct -n -P -X -j {job} -o State,ExitCode"));
            assert_eq!(record, "FAILED|3:0\n", "{launcher}: {said}");
            site.system.wait_until("its processes are gone", || processes_of(&site, job).is_empty());
        }
    }
}
