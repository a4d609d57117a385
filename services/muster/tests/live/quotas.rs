//! Quotas on a live system, for users of several dialects.

use crate::{
    slurm::Site,
    system::{Output, System},
};
use nix::sys::signal::Signal;
use std::path::Path;

const CLUSTER: &str = r#"
[cluster]
name = "alpha"
default_queue = "default"

[[queues]]
name = "default"
"#;

const RULES: &str = r#"{
    "job_types": ["night"],
    "quotas": {
        "*,bio,*,*": [-1, 1, -1],
        "*,chem,*,*": ["0.25*ALL", -1, -1]
    }
}"#;

/// A site of four nodes with four cores each, which follows the file `quotas.json`.
fn site(rules: &str) -> Site {
    let system = System::stopped_in(Path::new("/var/tmp"));
    system.write("quotas.json", rules);
    let file = system.path("quotas.json").display().to_string();
    Site::on(system, &format!("{CLUSTER}\n[quotas]\nfile = \"{file}\"\n"))
}

fn shown(site: &Site) -> String {
    site.system.ok(&["quota", "show"])
}

fn wait_for_rule(site: &Site, rule: &str) {
    site.system.wait_until(&format!("`{rule}` is in force"), || shown(site).contains(rule));
}

fn state(site: &Site, job: u64) -> String {
    let said = site.ok(&format!("oarstat -s -j {job}"));
    said.trim().rsplit(": ").next().unwrap_or_default().to_owned()
}

fn wait_for(site: &Site, job: u64, wanted: &str) {
    site.system.wait_until(&format!("job {job} is {wanted}"), || state(site, job) == wanted);
}

fn explained(site: &Site, job: u64, text: &str) {
    let explain = || site.system.ok(&["explain", &job.to_string()]);
    site.system.wait_until(&format!("job {job} is told `{text}`"), || explain().contains(text));
}

/// OAR-T-01, OAR-Q-02, OAR-Q-04: the kinds of jobs that a site counts are types that its jobs can have.
#[test]
fn types_of_the_site_are_counted() {
    let site = site(r#"{"job_types": ["night"], "quotas": {"*,*,night,*": [-1, 1, -1]}}"#);
    wait_for_rule(&site, "night");
    site.ok("oarsub -t night -l core=1,walltime=1 'sleep 600'");
    wait_for(&site, 1, "Running");
    site.ok("oarsub -t night -l core=1,walltime=1 true");
    explained(&site, 2, "quota `*,*,night,*`: 1 job");
}

/// OAR-Q-01, OAR-Q-02, OAR-Q-11, OAR-D-03: the file is in force from the start; whoever submits a job, it waits for its rule and is
/// told so; a file with a mistake leaves the rules as they are.
#[test]
fn jobs_of_all_dialects_wait_for_quotas_and_are_told() {
    let site = site(RULES);
    wait_for_rule(&site, "bio");
    assert!(shown(&site).contains("0.25*ALL"), "{}", shown(&site));
    let held = "while [ ! -e go ]; do sleep 0.1; done";
    assert_eq!(site.ok(&format!("oarsub --project bio -l core=1,walltime=1 '{held}'")), "OAR_JOB_ID=1\n");
    wait_for(&site, 1, "Running");
    site.ok("oarsub --project bio -l core=1,walltime=1 'exit 3'");
    explained(&site, 2, "quota `*,bio,*,*`: 1 job");
    site.system.write("batch.sh", "#!/bin/sh\ntrue\n");
    site.ok("sbatch -A bio -n 1 -t 10 batch.sh");
    explained(&site, 3, "quota `*,bio,*,*`: 1 job");
    site.ok("oarsub --project chem -l core=5,walltime=1 true");
    explained(&site, 4, "quota `*,chem,*,*`: 4 cores");
    site.ok("oarsub -a 2 -l core=1,walltime=1 true");
    // A mistake changes nothing.
    site.system.write("quotas.json", "{\n  \"quotas\": {\"*,bio,*,*\": [-1, \"many\", -1]}\n}");
    let Output { status, stderr, .. } = site.system.run(&["quota", "check", "quotas.json"]);
    assert_eq!((status, stderr.contains("quotas.json:2:")), (2, true), "{stderr}");
    site.system.signal(Signal::SIGHUP);
    assert_eq!(site.system.run(&["quota", "load", "quotas.json"]).status, 2);
    assert!(shown(&site).contains("0.25*ALL"), "{}", shown(&site));
    site.system.write("go", "");
    wait_for(&site, 1, "Terminated");
    wait_for(&site, 2, "Terminated");
    wait_for(&site, 3, "Terminated");
    // It starts although the job before it has failed.
    wait_for(&site, 5, "Terminated");
    assert_eq!(state(&site, 4), "Waiting");
    // Other rules come into force by the signal.
    site.system.write("quotas.json", "{\"quotas\": {\"*,chem,*,*\": \"0.5*ALL\"}}");
    site.system.signal(Signal::SIGHUP);
    wait_for(&site, 4, "Terminated");
    site.system.ok(&["quota", "clear"]);
    assert!(shown(&site).contains("No quotas"), "{}", shown(&site));
}
