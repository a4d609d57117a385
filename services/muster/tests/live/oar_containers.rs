//! OAR's containers and inner jobs on a live system.

use crate::{
    oar::{site, site_with, state, wait_for},
    slurm::Site,
};

/// A command that runs until the file `go` is there, after it has told its nodes.
const UNTIL_GO: &str = "sort $OAR_NODEFILE | uniq -c; while ! test -e go; do sleep 0.05; done";

fn nodes(site: &Site, job: u64) -> String {
    let said = || site.system.read(&format!("OAR.{job}.stdout"));
    site.system.wait_until("it has told its nodes", || !said().is_empty());
    said().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn wait_for_reason(site: &Site, job: u64, reason: &str) {
    site.system.wait_until(&format!("job {job} waits: {reason}"), || {
        site.ok(&format!("oarstat -f -j {job}")).contains(reason)
    });
}

/// OAR-T-10, OAR-T-12, OAR-T-14, W1: inner jobs run on what their container holds while it runs, others do not, and
/// what is larger than the container says so.
#[test]
fn inner_jobs_run_on_what_their_container_holds() {
    let site = site();
    site.ok("oarsub --hold -t container -l nodes=2,walltime=1 'sleep 600'");
    site.ok(&format!("oarsub -t inner=1 -l nodes=1,walltime=0:10 '{UNTIL_GO}'"));
    wait_for_reason(&site, 2, "no job runs that holds resources for planning domain 1");
    site.ok("oarresume 1");
    wait_for(&site, 1, "Running");
    wait_for(&site, 2, "Running");
    site.ok(&format!("oarsub -t inner=1 -l nodes=1,walltime=0:10 '{UNTIL_GO}'"));
    wait_for(&site, 3, "Running");
    assert_eq!((nodes(&site, 2).as_str(), nodes(&site, 3).as_str()), ("4 node1", "4 node2"));
    site.ok("oarsub -t inner=1 -l nodes=3,walltime=0:10 true");
    wait_for_reason(&site, 4, "planning domain 1 holds 2 nodes, 3 asked");
    site.ok("oarsub -t inner=1 -l nodes=1,walltime=2 true");
    wait_for_reason(&site, 5, "room before planning domain 1 ends");
    site.ok("oarsub -l nodes=2,walltime=0:10 'sort $OAR_NODEFILE | uniq -c'");
    wait_for(&site, 6, "Terminated");
    assert_eq!(nodes(&site, 6), "4 node3 4 node4");
    site.ok("oarsub -t inner=1 -l nodes=2,walltime=0:10 'sort $OAR_NODEFILE | uniq -c'");
    site.system.wait_until("the next one is promised both nodes", || {
        let plan = site.system.ok(&["plan"]);
        plan.lines().any(|line| line.split_whitespace().any(|word| word == "7"))
    });
    assert_eq!(state(&site, 7), "Waiting");
    site.system.write("go", "");
    wait_for(&site, 7, "Terminated");
    assert_eq!(nodes(&site, 7), "4 node1 4 node2");
    assert_eq!((state(&site, 4).as_str(), state(&site, 1).as_str()), ("Waiting", "Running"));
    assert_eq!(site.system.ok(&["submit", "--in-domain", "1", "-t", "5m", "--", "true"]).lines().count(), 1);
    wait_for(&site, 8, "Terminated");
}

/// OAR-T-13, OAR-T-15: containers that do not exist or are over, and reservations in those that are none.
#[test]
fn containers_that_cannot_be_are_refused() {
    let site = site();
    site.ok("oarsub 'sleep 600'");
    site.ok("oarsub -t container -l walltime=1 true");
    wait_for(&site, 2, "Terminated");
    site.ok("oarsub -t container -l walltime=1 'sleep 600'");
    for (line, text) in [
        ("oarsub -t inner=77 true", "no container has the id or name 77"),
        ("oarsub -t inner=1 true", "no container has the id or name 1"),
        ("oarsub -t inner=2 true", "the container 2 has ended"),
        ("oarsub -t inner=4 true", "no container has the id or name 4"),
        ("oarsub -t inner=course true", "planning domain `course` does not exist"),
        ("oarsub -t container=course -t inner=course true", "planning domain `course` does not exist"),
        ("oarsub -r '2035-01-01 00:00:00' -t inner=3 true", "cannot be a reservation: its container is none"),
    ] {
        let (status, error) = site.fails(line);
        assert!(error.contains(text), "{line}: {error}");
        assert_eq!(status, 8, "{line}: {error}");
    }
    assert_eq!(site.ok("oarstat").lines().count(), 4);
}

/// OAR-T-15, OAR-T-16: what waits inside fails with the container; what runs there goes on, or ends if the site says so.
#[test]
fn the_end_of_a_container() {
    for ends in [false, true] {
        let site = site_with(&format!("ends_domain_jobs = {ends}"));
        site.ok("oarsub -t container -l nodes=2,walltime=1 'sleep 600'");
        site.ok(&format!("oarsub -t inner=1 -l nodes=2,walltime=0:10 '{UNTIL_GO}'"));
        site.ok("oarsub -t inner=1 -l nodes=1,walltime=0:10 true");
        wait_for(&site, 2, "Running");
        site.ok("oarsub -l nodes=3,walltime=0:10 'sort $OAR_NODEFILE | uniq -c'");
        site.ok("oardel 1");
        wait_for(&site, 1, "Error");
        wait_for(&site, 3, "Error");
        let why = site.ok("oarstat -f -j 3");
        assert!(why.contains("planning domain 1 is over"), "{why}");
        if ends {
            wait_for(&site, 2, "Error");
        } else {
            assert_eq!((state(&site, 2).as_str(), state(&site, 4).as_str()), ("Running", "Waiting"));
            site.system.write("go", "");
            wait_for(&site, 2, "Terminated");
        }
        wait_for(&site, 4, "Terminated");
        assert_eq!(nodes(&site, 4), "4 node1 4 node2 4 node3");
    }
}

/// OAR-T-17: a container inside a container, and two of one name, also after the ledger has started again.
#[test]
fn containers_nest_and_join() {
    let mut site = site();
    site.ok("oarsub -t container=course -l nodes=1,walltime=1 'sleep 600'");
    site.ok("oarsub -t container=course -l nodes=2,walltime=1 'sleep 600'");
    wait_for(&site, 1, "Running");
    wait_for(&site, 2, "Running");
    site.ok("oarsub -t inner=course -t container -l nodes=2,walltime=0:30 'sleep 600'");
    wait_for(&site, 3, "Running");
    site.ok(&format!("oarsub -t inner=3 -l nodes=2,walltime=0:10 '{UNTIL_GO}'"));
    wait_for(&site, 4, "Running");
    assert_eq!(nodes(&site, 4), "4 node1 4 node2");
    site.system.stop();
    let config = site.system.path("site.toml").display().to_string();
    site.system.restart(&["--nodes", "4", "--cpus", "4", "--memory", "4G", "--config", &config]);
    site.ok("oarsub -t inner=1 -l nodes=1,walltime=0:10 'sort $OAR_NODEFILE | uniq -c'");
    wait_for(&site, 5, "Terminated");
    assert_eq!(nodes(&site, 5), "4 node3");
    site.ok("oarsub -t inner=3 -l nodes=1,walltime=0:10 true");
    wait_for(&site, 4, "Running");
    assert_eq!(state(&site, 6), "Waiting");
    site.system.write("go", "");
    wait_for(&site, 6, "Terminated");
    wait_for(&site, 4, "Terminated");
    // The decisions of the planner can be repeated, and the log contradicts nowhere what is free and used.
    let verified = site.system.ok(&["replay", "--verify"]);
    assert!(verified.contains("digest "), "{verified}");
}
