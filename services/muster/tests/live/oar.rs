//! OAR's commands on a live system.

use crate::{
    slurm::Site,
    system::{Output, System},
};
use std::path::Path;

/// The lines of its configuration.
pub const CONFIGURATION: &str = r#"
[cluster]
name = "alpha"
default_queue = "default"

[[queues]]
name = "default"

[[queues]]
name = "long"
"#;

/// A site of four nodes with four cores each. Nodes have a `/tmp` of their own, and jobs wait for files of the test.
pub fn site() -> Site {
    site_with("")
}

/// The same, with these settings of the cluster.
pub fn site_with(settings: &str) -> Site {
    let configuration = CONFIGURATION.replace("[cluster]\n", &format!("[cluster]\n{settings}\n"));
    Site::on(System::stopped_in(Path::new("/var/tmp")), &configuration)
}

/// The state of a job, as `oarstat -s` tells it.
pub fn state(site: &Site, job: u64) -> String {
    let said = site.ok(&format!("oarstat -s -j {job}"));
    said.trim().rsplit(": ").next().unwrap_or_default().to_owned()
}

/// Waits until a job is in a state.
pub fn wait_for(site: &Site, job: u64, wanted: &str) {
    site.system.wait_until(&format!("job {job} is {wanted}"), || state(site, job) == wanted);
}

/// OAR-C-02, OAR-C-03, OAR-C-05, OAR-J-05, OAR-J-13, OAR-J-14, OAR-J-16: a script with directives runs once on the first
/// node, with OAR's variables, node file and output files.
#[test]
fn a_script_runs_with_its_variables_and_its_output_is_where_oar_puts_it() {
    let site = site();
    let script = "#!/bin/sh\n#OAR -n first\n#OAR -l nodes=2,walltime=0:10\n#OAR --project bio\n\
                  #PBS -N other\nenv | grep ^OAR_\necho nodes: $(sort $OAR_FILE_NODES | uniq -c)\necho $1\necho bad >&2\nexit 3\n";
    site.system.write("job.sh", script);
    site.ok("chmod +x job.sh");
    let Output { status, stdout, stderr } = site.run("oarsub -S './job.sh hello'");
    assert_eq!((status, stdout.as_str()), (0, "OAR_JOB_ID=1\n"), "{stderr}");
    assert!(stderr.contains("line 5: #PBS lines are options of qsub and are ignored here"), "{stderr}");
    wait_for(&site, 1, "Terminated");
    let said = site.system.read("OAR.first.1.stdout");
    let directory = site.system.path("").display().to_string();
    for line in [
        "OAR_JOB_ID=1",
        "OAR_ARRAY_INDEX=1",
        "OAR_JOB_NAME=first",
        "OAR_PROJECT_NAME=bio",
        "OAR_JOB_WALLTIME=0:10:0",
        "OAR_JOB_WALLTIME_SECONDS=600",
        "OAR_STDERR=OAR.first.1.stderr",
        &format!("OAR_WORKDIR={}", directory.trim_end_matches('/')),
        "nodes: 4 node1 4 node2",
        "hello",
    ] {
        assert!(said.lines().any(|known| known.trim_end_matches('/') == line), "{line} is missing:\n{said}");
    }
    assert_eq!(site.system.read("OAR.first.1.stderr"), "bad\n");
    let full = site.ok("oarstat -f -j 1");
    for line in [
        "    state = Terminated",
        "    exit_code = 768 (3,0,0)",
        "    wanted_resources = -l \"/network_address=2,walltime=0:10:0\" ",
        "    assigned_hostnames = node1+node2",
        "    assigned_resources = 1+2+3+4+5+6+7+8",
        "    command = ./job.sh hello",
        "    project = bio",
        "    jobType = PASSIVE",
    ] {
        assert!(full.lines().any(|known| known == line), "{line}:\n{full}");
    }
}

/// OAR-S-01, OAR-S-20, OAR-S-25, OAR-C-08, OAR-C-12: jobs are listed in their states, held, resumed and deleted.
#[test]
fn jobs_are_listed_held_resumed_and_deleted() {
    let site = site();
    assert_eq!(site.ok("oarsub -n sleeper 'sleep 600'"), "OAR_JOB_ID=1\n");
    assert_eq!(site.ok("oarsub --hold -q long 'sleep 600'"), "OAR_JOB_ID=2\n");
    wait_for(&site, 1, "Running");
    assert_eq!(state(&site, 2), "Hold");
    let listed = site.ok("oarstat");
    let rows: Vec<Vec<&str>> = listed.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((rows[0][0], rows[0][1], rows[0][2]), ("1", "sleeper", "root"), "{listed}");
    assert_eq!((rows[0].last(), rows[1].last()), (Some(&"default"), Some(&"long")), "{listed}");
    assert_eq!(site.ok("oarstat --sql \"queue_name = 'long'\"").lines().count(), 3);
    assert_eq!(site.ok("oarresume 2"), "[2] Resume request was sent to the OAR server.\n");
    wait_for(&site, 2, "Running");
    let (status, error) = site.fails("oarhold 2");
    assert_eq!(
        (status, error.as_str()),
        (1, "/!\\ Cannot hold 2 : the job is not in the right state (try '-r' option).\n")
    );
    site.ok("oarhold -r 2");
    wait_for(&site, 2, "Suspended");
    site.ok("oarresume 2");
    wait_for(&site, 2, "Running");
    let said = site.ok("oardel 1 2");
    assert_eq!(
        said,
        "Deleting the job = 1 ...REGISTERED.\nDeleting the job = 2 ...REGISTERED.\n\
         The job(s) [ 1 2 ] will be deleted in a near future.\n"
    );
    wait_for(&site, 1, "Error");
    wait_for(&site, 2, "Error");
    assert_eq!(site.ok("oarstat"), "");
    assert_eq!(site.ok("oardel 1"), "Deleting the job = 1 ...REGISTERED.\n");
    assert_eq!(site.fails("oardel x").0, 4);
    assert_eq!(site.fails("oarhold 77"), (1, "/!\\ Cannot hold 77 : this job does not exist.\n".to_owned()));
    assert_eq!(site.fails("oardel -c 1"), (5, "Cannot checkpoint 1 ; This job is not running.\n".to_owned()));
    assert_eq!(site.fails("oarstat -j 77"), (1, "oarstat: job 77 does not exist\n".to_owned()));
    let json: serde_json::Value = serde_json::from_str(&site.ok("oarstat -J -j 1")).expect("JSON");
    assert_eq!((&json["1"]["state"], &json["1"]["command"]), (&"Error".into(), &"sleep 600".into()));
    let events = site.ok("oarstat -e -j 1");
    assert!(events.lines().all(|line| line.contains("> [1] ")) && !events.is_empty(), "{events}");
}

/// OAR-S-24: a job is closed without its nodes only if it has been ending for longer than they and the server can need.
#[test]
fn a_job_is_closed_without_its_nodes_only_after_a_while() {
    let site = site();
    assert_eq!(site.ok("oarsub \"trap '' TERM; while :; do sleep 1; done\""), "OAR_JOB_ID=1\n");
    wait_for(&site, 1, "Running");
    let close = "oardel --force-terminate-finishing-job 1";
    assert_eq!(site.fails(close), (8, "Cannot close 1 ; This job is not being ended.\n".to_owned()));
    site.ok("oardel 1");
    let (status, error) = site.fails(close);
    let is_told = error.starts_with("Cannot close 1 ; It has been ending for ") && error.contains("closed after 120 s");
    assert!(status == 8 && is_told, "{status}: {error}");
}

/// OAR-C-06: an array is jobs of their own with one array id, also with a file of parameters.
#[test]
fn arrays_are_jobs_of_their_own() {
    let site = site();
    let said = site.ok("oarsub --array 3 'echo $OAR_ARRAY_ID $OAR_ARRAY_INDEX'");
    assert_eq!(said, "OAR_JOB_ID=1\nOAR_JOB_ID=2\nOAR_JOB_ID=3\nOAR_ARRAY_ID=1\n");
    for index in 1..=3 {
        wait_for(&site, index, "Terminated");
        assert_eq!(site.system.read(&format!("OAR.{index}.stdout")), format!("1 {index}\n"));
    }
    site.system.write("parameters", "a b # first\n\n\"\"\n'c  d'\n");
    let said = site.ok("oarsub --hold --array-param-file parameters 'printf %s,'");
    assert_eq!(said, "OAR_JOB_ID=4\nOAR_JOB_ID=5\nOAR_JOB_ID=6\nOAR_ARRAY_ID=4\n");
    let rows = site.ok("oarstat --array 4");
    let index = |row: &str| row.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    assert_eq!(rows.lines().skip(2).map(index).collect::<Vec<_>>(), ["4 4 1", "5 4 2", "6 4 3"], "{rows}");
    site.ok("oarresume --array 4");
    wait_for(&site, 6, "Terminated");
    wait_for(&site, 4, "Terminated");
    assert_eq!(
        (site.system.read("OAR.4.stdout").as_str(), site.system.read("OAR.6.stdout").as_str()),
        ("a,b,", "c  d,")
    );
}

/// OAR-D-01, OAR-D-02: a dependent waits for the end of another job, and for good if that is deleted.
#[test]
fn dependents_wait() {
    let site = site();
    site.ok("oarsub 'while ! test -e go; do sleep 0.05; done'");
    site.ok("oarsub -a 1 true");
    site.ok("oarsub 'sleep 600'");
    site.ok("oarsub -a 3 true");
    wait_for(&site, 1, "Running");
    wait_for(&site, 3, "Running");
    assert_eq!(state(&site, 2), "Waiting");
    site.system.write("go", "");
    wait_for(&site, 2, "Terminated");
    site.ok("oardel 3");
    wait_for(&site, 3, "Error");
    site.system.wait_until("the reason is known", || site.ok("oarstat -f -j 4").contains("can no longer satisfy it"));
    assert_eq!(state(&site, 4), "Waiting");
}

/// OAR-G-08, OAR-R-06, OAR-R-11: of several shapes the one that ends first is taken; a whole node is taken as a whole.
#[test]
fn the_shape_that_ends_first_is_taken() {
    let site = site();
    site.ok("oarsub -l nodes=3,walltime=1 'sleep 600'");
    wait_for(&site, 1, "Running");
    site.ok("oarsub -l nodes=4,walltime=0:30 -l nodes=1/core=2,walltime=1:20 'cat $OAR_NODEFILE; sleep 600'");
    wait_for(&site, 2, "Running");
    site.system.wait_until("it has its node file", || site.system.read("OAR.2.stdout").lines().count() == 2);
    // One core is in use there, so no whole node is free.
    site.ok("oarsub -l nodes=1 true");
    site.ok("oarsub -l core=2 true");
    wait_for(&site, 4, "Terminated");
    assert_eq!(state(&site, 3), "Waiting");
}

/// OAR-R-05, OAR-R-07, OAR-R-09, OAR-R-13: hierarchies and filters over typed properties of nodes.
#[test]
fn requests_follow_hierarchies_and_properties() {
    let mut configuration = CONFIGURATION.to_owned();
    for (node, switch, mem) in [("n1", "s1", 64), ("n2", "s1", 128), ("n3", "s2", 128), ("n4", "s2", 256)] {
        configuration += &format!(
            "\n[[nodes]]\nname = \"{node}\"\ncores = 4\nsockets = 2\nmemory = \"1G\"\n\
             properties = {{ switch = \"{switch}\", mem = {mem} }}\n"
        );
    }
    let mut system = System::stopped();
    system.write("site.toml", &configuration);
    let config = system.path("site.toml").display().to_string();
    system.restart(&["--config", &config]);
    system.ok(&["install-commands", "bin"]);
    let site = Site { system };
    let nodes = |line: &str| {
        let job: u64 = site
            .ok(&format!("oarsub {line} 'sort $OAR_NODEFILE | uniq -c'"))
            .trim()
            .trim_start_matches("OAR_JOB_ID=")
            .parse()
            .expect("a number");
        wait_for(&site, job, "Terminated");
        let said = site.system.read(&format!("OAR.{job}.stdout"));
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(nodes("-l /switch=1/nodes=2/cpu=1"), "2 n1 2 n2");
    assert_eq!(nodes("-l /switch=1"), "4 n1 4 n2");
    assert_eq!(nodes("-l /nodes=1/core=3 -p \"switch = 's2' AND mem > 128\""), "3 n4");
    assert_eq!(nodes("-l nodes=1+\"{switch='s1'}\"/nodes=1 -p 'mem BETWEEN 100 AND 200'"), "4 n2 4 n3");
    assert_eq!(nodes("-p \"host LIKE '%3'\" -l core=2"), "2 n3");
    let full = site.ok("oarnodes -r 16");
    assert_eq!(
        full,
        "network_address: n4\nresource_id: 16\nstate: Alive\nproperties: core=16, cpu=8, host=n4, mem=256, \
         network_address=n4, resource_id=16, switch=s2\n\n"
    );
    assert_eq!(site.ok("oarnodes --sql 'mem = 64' -s"), "1: Alive\n2: Alive\n3: Alive\n4: Alive\n");
}

/// OAR-C-04, OAR-R-02, OAR-R-15, OAR-T-01: what cannot be is refused with OAR's status, and nothing is submitted.
#[test]
fn what_cannot_be_is_refused_by_name() {
    let site = site();
    site.system.write("bad.sh", "#!/bin/sh\n#OAR --bogus\n");
    for (line, status, text) in [
        ("oarsub", 5, "nothing to run"),
        ("oarsub -l nodes=many true", 18, "-l, column 7: expected a count"),
        ("oarsub -l bogus=1 true", 8, "no level is called 'bogus'"),
        ("oarsub -l nodes=5 true", 8, "not enough resources: nodes: 5 asked, 4 match"),
        ("oarsub -p \"bogus = 1\" true", 8, "no property is called 'bogus' (job id -5)"),
        ("oarsub -p \"core < 3\" true", 8, "is not supported"),
        ("oarsub -q nope true", 8, "no queue is called 'nope' (job id -8)"),
        ("oarsub -t cosystem=standby true", 8, "-t cosystem=standby: is not supported"),
        ("oarsub -t besteffort true", 8, "needs a service class 'besteffort'"),
        ("oarsub -t bogus true", 8, "no type is called 'bogus'"),
        ("oarsub --array 0 true", 6, "--array: "),
        ("oarsub -I --array 2", 8, "an array cannot be interactive"),
        ("oarsub -I", 11, "a terminal"),
        ("oarsub -C 7", 20, "job 7 does not exist"),
        ("oarsub --resubmit 7", 4, "it does not exist (job id -2)"),
        ("oarsub -S ./bad.sh", 12, "script, line 2"),
        ("oarsub -S ./nothere.sh", 12, "./nothere.sh"),
        ("oarsub --notify exec:/bin/x;y true", 16, "exec takes letters"),
        ("oarsub --notify bogus:x true", 8, "(job id -6)"),
        ("oarsub --stagein x true", 1, "--stagein: is for jobs of the type desktop_computing"),
        ("oarsub -a 99 true", 8, "job 99"),
        ("oarnodes nope", 1, "no node is called 'nope'"),
        ("oarstat --gantt x", 1, "Bad syntax for --gantt"),
        ("oardel --force-terminate-finishing-job 7", 4, "Cannot close 7 ; This job does not exist."),
    ] {
        let line = line.replace("exec:/bin/x;y", "'exec:/bin/x;y'");
        let (exit, error) = site.fails(&line);
        assert!(error.contains(text), "{line}: {error}");
        assert_eq!(exit, status, "{line}: {error}");
    }
    assert_eq!(site.ok("oarstat"), "");
}

/// OAR-J-21, OAR-J-22, OAR-T-70: a job that has ended is submitted again under a new id; one without command holds its
/// resources until it is deleted.
#[test]
fn jobs_are_submitted_again_and_hold_resources() {
    let site = site();
    site.ok("oarsub -n again 'echo $OAR_JOB_ID'");
    wait_for(&site, 1, "Terminated");
    assert_eq!(site.ok("oarsub --resubmit 1"), "OAR_JOB_ID=2\n");
    wait_for(&site, 2, "Terminated");
    assert_eq!(site.system.read("OAR.again.2.stdout"), "2\n");
    assert!(site.ok("oarstat -f -j 2").contains("    resubmit_job_id = 1\n"));
    site.ok("oarsub -t noop -l nodes=2");
    wait_for(&site, 3, "Running");
    assert_eq!(site.fails("oarsub --resubmit 3").0, 4);
    assert_eq!(site.fails("oarsub -C 3").0, 17);
    let jobs = site.ok("oarnodes");
    assert_eq!(jobs.lines().filter(|line| *line == "jobs: 3").count(), 8, "{jobs}");
    site.ok("oardel 3");
    wait_for(&site, 3, "Terminated");
}

/// OAR-S-30, OAR-S-31, OAR-S-32: signals reach the command.
#[test]
fn signals_reach_the_command() {
    let site = site();
    let trap = "trap \"echo saved\" USR2; trap \"echo told\" HUP; echo ready; while :; do sleep 0.05; done";
    let said = |job: u64| site.system.read(&format!("OAR.{job}.stdout"));
    site.ok(&format!("oarsub '{trap}'"));
    site.system.wait_until("it runs", || said(1).starts_with("ready"));
    assert_eq!(site.ok("oardel -c 1"), "The job 1 was sent the signal.\n");
    site.system.wait_until("it saves", || said(1).contains("saved"));
    let events = |job: u64| site.ok(&format!("oarstat -e -j {job}"));
    let has_saved = |events: &str| events.contains("] CHECKPOINT:") && events.contains("] CHECKPOINT_SUCCESS:");
    site.system.wait_until("its signal is on record", || has_saved(&events(1)));
    site.ok("oardel -s HUP 1");
    site.system.wait_until("it is told", || said(1).contains("told"));
    assert_eq!(state(&site, 1), "Running");
    site.ok(&format!("oarsub -l walltime=0:0:5 --checkpoint 4 '{trap}'"));
    site.system.wait_until("it saves before its end", || said(2).contains("saved"));
    wait_for(&site, 2, "Error");
    let events = events(2);
    assert!(has_saved(&events), "the node sent it by itself: {events}");
}

/// OAR-J-10: a shell whose terminal goes away while it waits never runs, and its place is free.
#[test]
fn a_waiting_shell_that_is_given_up_never_runs() {
    let site = site();
    site.ok("oarsub -l nodes=4,walltime=1 'while ! test -e go; do sleep 0.05; done'");
    wait_for(&site, 1, "Running");
    let mut terminal = site.spawn("script -qec 'oarsub -I -l nodes=4,walltime=2' /dev/null");
    site.system.wait_until("the shell waits", || site.ok("oarstat").lines().count() == 4);
    terminal.kill().and_then(|()| terminal.wait()).expect("it runs");
    wait_for(&site, 2, "Error");
    site.system.write("go", "");
    wait_for(&site, 1, "Terminated");
    site.ok("oarsub -l nodes=4 true");
    wait_for(&site, 3, "Terminated");
    assert!(!site.ok("oarstat -f -j 2").contains("assigned_hostnames = node"), "it had nothing");
}

/// OAR-J-08, OAR-J-12, OAR-D-08: a shell in a job has its variables and all its nodes, and the job ends with it.
#[test]
fn shells_run_in_jobs() {
    let site = site();
    let typed = "(sleep 2; echo 'echo \"<$OAR_JOB_ID $(sort -u $OAR_NODEFILE | wc -l)>\"'; echo exit; sleep 2)";
    let Output { status, stdout, stderr } =
        site.run(&format!("{typed} | script -qec 'oarsub -I -l nodes=2' /dev/null"));
    assert_eq!(status, 0, "{stdout}{stderr}");
    for text in ["OAR_JOB_ID=1", "Interactive mode: waiting...", "Connect to OAR job 1 via the node node1", "<1 2>"] {
        assert!(stdout.contains(text), "{text}: {stdout}");
    }
    wait_for(&site, 1, "Terminated");
    site.ok("oarsub 'sleep 600'");
    wait_for(&site, 2, "Running");
    let Output { stdout, .. } = site.run(&format!("{typed} | script -qec 'oarsub -C 2' /dev/null"));
    assert!(stdout.contains("<2 1>"), "{stdout}");
    assert_eq!(state(&site, 2), "Running");
    // A shell that has been left has no exit code, which counts as success.
    site.ok("oarsub -a 1 true");
    wait_for(&site, 3, "Terminated");
}
