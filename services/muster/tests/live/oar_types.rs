//! Types of jobs of OAR that say where a command runs and who makes way, on a live system.

use crate::{
    oar::{CONFIGURATION, state, wait_for},
    slurm::Site,
    system::System,
};
use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

/// A site of four nodes, the last of which is for commands of jobs that leave their nodes alone, and has a queue of its own.
fn site() -> Site {
    let queue = "name = \"default\"\nnodes = [\"node1\", \"node2\", \"node3\"]\nattributes = { \"oar.cosystem_host\" = \
                 \"node4\", \"oar.deploy_host\" = \"node4\", \"oar.front_queue\" = \"front\" }";
    let lines = "\n[[queues]]\nname = \"front\"\nnodes = [\"node4\"]\n\n[licences]\nmatlab = 2\n";
    let configuration = CONFIGURATION.replacen("name = \"default\"", queue, 1) + lines;
    Site::on(System::stopped_in(Path::new("/var/tmp")), &configuration)
}

/// The value of a line of `oarstat -f`.
fn shown(site: &Site, job: u64, what: &str) -> String {
    let full = site.ok(&format!("oarstat -f -j {job}"));
    let line = full.lines().find_map(|line| line.trim().strip_prefix(&format!("{what} = ")).map(str::to_owned));
    line.unwrap_or_else(|| panic!("no {what}:\n{full}"))
}

/// OAR-T-50, OAR-T-60, OAR-T-61, OAR-S-02, OAR-C-08, OAR-C-09: the command runs on the host that the queue names, the job's nodes are its own and do
/// nothing; without such a host the first node runs it.
#[test]
fn commands_run_apart_from_the_nodes_of_their_jobs() {
    let site = site();
    let command = "echo $MUSTER_NODE_NAME; sort -u $OAR_NODEFILE; while ! test -e go; do sleep 0.05; done; exit 3";
    site.ok(&format!("oarsub -t cosystem -l nodes=2 '{command}'"));
    wait_for(&site, 1, "Running");
    site.system.wait_until("it says where it runs", || site.system.read("OAR.1.stdout").lines().count() == 3);
    assert_eq!(site.system.read("OAR.1.stdout"), "node4\nnode1\nnode2\n");
    assert_eq!(shown(&site, 1, "assigned_hostnames"), "node1+node2");
    assert_eq!(shown(&site, 1, "assigned_resources"), "1+2+3+4+5+6+7+8");
    assert_eq!(shown(&site, 1, "types"), "cosystem");
    assert_eq!(shown(&site, 1, "queue"), "default", "not that of the host of its command");
    let table = site.ok("oarstat");
    assert!(table.lines().any(|row| row.starts_with("1 ") && row.trim().ends_with(" default")), "{table}");
    assert_eq!(site.fails("oarhold -r 1").0, 2);
    let (status, error) = site.fails("OAR_JOB_ID=1 oarsh node2 true");
    assert!(status == 255 && error.contains("starts nothing there"), "{error}");
    // Such a job has two parts, and two numbers.
    site.ok("oarsub -l nodes=2,walltime=3 true");

    let (status, error) = site.fails("oarsub -t deploy -l nodes=1 true");
    assert!(status == 8 && error.contains("(job id -5)"), "no node is for that: {error}");
    site.ok("oarnodesetting -h node3 -p deploy=YES");
    assert_eq!(site.fails("oarsub -t deploy -l core=1 true").0, 8, "whole nodes only");
    site.ok("oarsub -t deploy -l nodes=1,walltime=0:10 'echo $MUSTER_NODE_NAME; sleep 600'");
    wait_for(&site, 4, "Running");
    site.system.wait_until("it says where it runs", || site.system.read("OAR.4.stdout") == "node4\n");
    assert_eq!(shown(&site, 4, "assigned_hostnames"), "node3");
    site.ok("oardel 4");
    wait_for(&site, 4, "Error");
    assert_eq!(state(&site, 3), "Waiting", "the nodes of the first job are taken");
    site.system.write("go", "");
    wait_for(&site, 1, "Terminated");
    assert_eq!(shown(&site, 1, "exit_code"), "768 (3,0,0)");
    wait_for(&site, 3, "Terminated");
    site.ok("oarsub -q long -t cosystem -l nodes=2 'echo $MUSTER_NODE_NAME'");
    wait_for(&site, 6, "Terminated");
    assert_eq!(site.system.read("OAR.6.stdout"), "node1\n");
}

/// OAR-T-26, OAR-T-21, OAR-T-85, OAR-J-24: an operator turns a running job into best effort, and it makes way; tokens are licences.
#[test]
fn running_jobs_are_turned_into_best_effort() {
    let site = site();
    assert_eq!(site.fails("oardel -b 1").0, 5);
    site.ok("oarsub -l nodes=3,walltime=3 'sleep 600'");
    wait_for(&site, 1, "Running");
    let (status, error) = site.fails("oardel -b 1");
    assert!(status == 8 && error.contains("no service class 'besteffort'"), "{error}");
    site.ok("sacctmgr -i add qos besteffort && sacctmgr -i add qos normal preempt=besteffort");
    site.ok("oarsub -l nodes=2,walltime=1 'sleep 600'");
    assert_eq!(site.ok("oardel -b 1"), "The job 1 makes way for others now.\n");
    wait_for(&site, 1, "Error");
    wait_for(&site, 2, "Running");
    assert!(shown(&site, 1, "types").contains("besteffort"));
    assert_eq!(site.ok("oardel -b 2"), "The job 2 makes way for others now.\n");
    assert_eq!(site.ok("oardel -b 2"), "The job 2 no longer makes way for others.\n");
    site.ok("oarsub -l nodes=3,walltime=1 true");
    for _ in 0..2 {
        site.ok("oarsub -t token:matlab=2 -l core=1,walltime=0:10 'sleep 600'");
    }
    wait_for(&site, 4, "Running");
    assert_eq!((state(&site, 2), state(&site, 5)), ("Running".to_owned(), "Waiting".to_owned()));
    site.ok("oardel 4");
    wait_for(&site, 5, "Running");
    assert!(site.fails("oarsub -t token:abaqus=1 true").1.contains("there is none of this name"));
    assert!(site.system.ok(&["audit", "verify"]).starts_with("the history verifies"), "also what was turned");
}

/// OAR-T-21, OAR-T-22, OAR-G-03, OAR-J-25, W5: a best-effort job makes way for a later one; if it is idempotent, it waits again and runs when
/// there is room, else it is in Error.
#[test]
fn best_effort_jobs_make_way_and_come_back() {
    let site = site();
    site.ok("sacctmgr -i add qos besteffort && sacctmgr -i add qos normal preempt=besteffort");
    site.ok("oarsub -t besteffort -t idempotent -l nodes=3,walltime=1 'sleep 600'");
    wait_for(&site, 1, "Running");
    site.ok("oarsub -l nodes=1,walltime=1 'while ! test -e go; do sleep 0.05; done'");
    wait_for(&site, 2, "Running");
    wait_for(&site, 1, "Waiting");
    site.system.write("go", "");
    wait_for(&site, 2, "Terminated");
    wait_for(&site, 1, "Running");
    let events = site.ok("oarstat -e -j 1");
    for name in ["BESTEFFORT_KILL", "RESUBMIT_JOB_AUTOMATICALLY"] {
        assert!(events.contains(&format!("] {name}:")), "{name}:\n{events}");
    }
    site.ok("oardel 1");
    wait_for(&site, 1, "Error");
    site.ok("oarsub -t besteffort -l nodes=3,walltime=1 'sleep 600'");
    wait_for(&site, 3, "Running");
    site.ok("oarsub -l nodes=1,walltime=1 true");
    wait_for(&site, 4, "Terminated");
    wait_for(&site, 3, "Error");
}

/// OAR-T-25, OAR-G-11: a reservation is promised the node of a best-effort job, which keeps it for the time being and is ended ahead of
/// the start; one on another node stays.
#[test]
fn best_effort_jobs_end_ahead_of_a_reservation() {
    let site = site();
    site.ok("sacctmgr -i add qos besteffort && sacctmgr -i add qos normal preempt=besteffort");
    for job in [1, 2] {
        site.ok("oarsub -t besteffort -l nodes=1,walltime=3 'sleep 600'");
        wait_for(&site, job, "Running");
    }
    site.ok("oarsub -l nodes=1,walltime=3 'sleep 600'");
    wait_for(&site, 3, "Running");
    let start = site.ok("date -d '+2 hours' '+%F %T'");
    let said = site.ok(&format!("oarsub -r '{}' -l nodes=1,walltime=1 true", start.trim()));
    assert!(said.ends_with("Reservation valid --> OK\n"), "{said}");
    assert_eq!((state(&site, 1), state(&site, 2)), ("Running".to_owned(), "Running".to_owned()), "it is too early");
    // It is to be there within the time that runs have to make way.
    let start = site.ok("date -d '+25 seconds' '+%F %T'");
    let said = site.ok(&format!("oarsub -r '{}' -l nodes=1,walltime=0:10 'sleep 600'", start.trim()));
    assert!(said.ends_with("Reservation valid --> OK\n"), "{said}");
    wait_for(&site, 2, "Error");
    assert_eq!((state(&site, 1), state(&site, 5)), ("Running".to_owned(), "Waiting".to_owned()), "it starts then");
    assert!(site.ok("oarstat -e -j 2").contains("] BESTEFFORT_KILL:"));
    site.ok("oarsub -t besteffort -l nodes=1,walltime=1 'sleep 600'");
    wait_for(&site, 5, "Running");
    assert_eq!(state(&site, 6), "Waiting", "it would have been in the way");
    assert!(site.system.ok(&["audit", "verify"]).starts_with("the history verifies"));
    let verified = site.system.json(&["replay", "--verify", "--json"]);
    assert_eq!(verified["decisions"]["differing"], 0, "every plan can be repeated: {verified}");
}

/// OAR-J-15, OAR-C-13, OAR-X-03: a job finds the properties of its cores in a file, also its shells; whatever it leaves behind
/// is gone with it.
#[test]
fn jobs_find_the_properties_of_their_resources() {
    let site = site();
    site.ok("oarproperty -a mem && oarnodesetting -h node2 -p mem=64");
    let command = "PATH=$PWD/bin:$PATH; cat $OAR_RESOURCE_PROPERTIES_FILE; setsid sleep 4321 & touch ready; sleep 600";
    site.ok(&format!("oarsub -p \"mem = 64\" -l nodes=1/core=2 '{command}'"));
    site.system.wait_until("it has read the file", || site.system.path("ready").exists());
    let lines = |first: u32| {
        format!(
            "core = '{first}', cpu = '2', host = 'node2', mem = '64', network_address = 'node2', resource_id = '{first}'\n"
        )
    };
    assert_eq!(site.system.read("OAR.1.stdout"), lines(5) + &lines(6));
    let printed = "oarprint core -P core,mem -F %/% -f $OAR_RESOURCE_PROPERTIES_FILE";
    assert_eq!(
        site.ok(&format!("OAR_JOB_ID=1 oarsh node2 '{printed}'").replace("oarprint", "$PWD/bin/oarprint")),
        "5/64\n6/64\n"
    );
    let left = || site.run("pgrep -f '[s]leep 4321'").stdout;
    assert!(!left().is_empty());
    site.ok("oardel 1");
    wait_for(&site, 1, "Error");
    site.system.wait_until("nothing is left", || left().trim().is_empty());
}

/// OAR-S-04: programs of the site run right after a job was suspended and right before it continues. If the first one fails, the
/// job continues; if the second one fails, the job is in Error. Both are events of the job.
#[test]
fn the_site_acts_beside_suspensions() {
    let system = System::stopped_in(Path::new("/var/tmp"));
    fs::set_permissions(system.path(""), fs::Permissions::from_mode(0o777)).expect("its own folder");
    let program = |name: &str| {
        let folder = system.path("").display().to_string();
        let text = format!("#!/bin/sh\ncd {folder}\ntest ! -e broken-{name} || exit 1\necho {name} $1 >> log\n");
        system.write(name, &text);
        fs::set_permissions(system.path(name), fs::Permissions::from_mode(0o755)).expect("its own file");
        format!("{folder}/{name}")
    };
    let (after, before) = (program("after"), program("before"));
    system.write("log", "");
    fs::set_permissions(system.path("log"), fs::Permissions::from_mode(0o666)).expect("its own file");
    let executor = format!("\n[executor]\nafter_suspend_program = \"{after}\"\nbefore_resume_program = \"{before}\"\n");
    let site = Site::on(system, &(CONFIGURATION.to_owned() + &executor));
    let log =
        |text: &str| site.system.wait_until(&format!("the programs say {text:?}"), || site.system.read("log") == text);
    site.ok("oarsub -l nodes=2,walltime=1 'sleep 600'");
    wait_for(&site, 1, "Running");
    site.ok("oarhold -r 1");
    wait_for(&site, 1, "Suspended");
    log("after 1\n");
    site.ok("oarresume 1");
    wait_for(&site, 1, "Running");
    log("after 1\nbefore 1\n");
    site.system.write("broken-after", "");
    site.ok("oarhold -r 1");
    log("after 1\nbefore 1\nbefore 1\n");
    wait_for(&site, 1, "Running");
    fs::remove_file(site.system.path("broken-after")).expect("it is there");
    site.system.write("broken-before", "");
    site.ok("oarhold -r 1");
    log("after 1\nbefore 1\nbefore 1\nafter 1\n");
    site.ok("oarresume 1");
    wait_for(&site, 1, "Error");
    let events = site.ok("oarstat -e -j 1");
    for name in ["SUSPEND_SCRIPT_ERROR", "RESUME_SCRIPT_ERROR"] {
        assert_eq!(events.matches(&format!("] {name}:")).count(), 1, "{name}:\n{events}");
    }
    assert!(!site.ok("oarnodes -s").contains("Suspected"), "the node is not at fault");
}
