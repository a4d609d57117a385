//! OAR's commands for users inside and around jobs: connections, files, properties, walltimes, charts and usage.

use crate::{
    oar::{CONFIGURATION, site, state, wait_for},
    slurm::Site,
    system::{Output, System},
};
use std::path::Path;

const MUSTER: &str = env!("CARGO_BIN_EXE_muster");

/// A site with these lines in addition to the usual ones.
fn site_with(lines: &str) -> Site {
    Site::on(System::stopped_in(Path::new("/var/tmp")), &format!("{CONFIGURATION}{lines}"))
}

/// OAR-C-13, OAR-X-04: commands and files reach the nodes of a job, from inside and by its id from outside, as parts
/// of the job that end with it; other nodes, other jobs and callers without a job are refused.
#[test]
fn commands_and_files_reach_the_nodes_of_a_job_alone() {
    let site = site();
    site.system.write(
        "job.sh",
        "#!/bin/sh\nPATH=$PWD/bin:$PATH\nfor node in $(sort -u $OAR_NODEFILE); do oarsh -q $node 'echo $MUSTER_NODE_NAME $OAR_JOB_ID $(sort -u \
         $OAR_NODEFILE | wc -l)'; done\noarsh node2 exit 7; echo status $?\necho given | oarsh node2 cat\n\
         oarsh node2 sleep 600 &\ntouch ready\nsleep 600\n",
    );
    site.ok("chmod +x job.sh");
    site.ok("oarsub -l nodes=2 ./job.sh");
    site.system.wait_until("it has reached its nodes", || site.system.path("ready").exists());
    let said = site.system.read("OAR.1.stdout");
    assert_eq!(said.lines().collect::<Vec<_>>(), ["node1 1 2", "node2 1 2", "status 7", "given"], "{said}");
    // From outside, with the id of the job.
    assert_eq!(site.ok("OAR_JOB_ID=1 oarsh root@node2 -- echo '$((1+1))'"), "2\n");
    site.ok("mkdir -p files/deep");
    site.system.write("files/a file", "content\n");
    site.system.write("files/deep/b", "more\n");
    site.ok("mkdir there && OAR_JOB_ID=1 oarcp 'files/a file' node2:$PWD/there");
    assert_eq!(site.system.read("there/a file"), "content\n");
    site.ok("OAR_JOB_ID=1 oarcp -r node1:$PWD/files node2:$PWD/there/copy");
    assert_eq!(site.system.read("there/copy/deep/b"), "more\n");
    site.ok("OAR_JOB_ID=1 oarcp \"node2:$PWD/there/a file\" here.txt");
    assert_eq!(site.system.read("here.txt"), "content\n");
    for (line, status, text) in [
        ("oarsh node1 true", 255, "it reaches the nodes of a job"),
        ("oarcp here.txt node1:/tmp", 255, "it reaches the nodes of a job"),
        ("OAR_JOB_ID=1 oarsh node3 true", 255, "'node3' is no node of job 1"),
        ("OAR_JOB_ID=1 oarsh -l nobody node1 true", 255, "not a job of user 'nobody'"),
        ("OAR_JOB_ID=x oarsh node1 true", 255, "'x' is no id of a job"),
        ("OAR_JOB_ID=77 oarsh node1 true", 255, "77"),
        ("OAR_JOB_ID=1 oarcp files node1:$PWD/there", 1, "is a directory"),
        ("OAR_JOB_ID=1 oarcp nothing node1:$PWD/there", 1, "does not exist"),
        ("OAR_JOB_ID=1 oarcp here.txt node3:/tmp", 1, "is no node of job 1"),
        ("oarcp one", 1, "usage: oarcp"),
    ] {
        let (exit, error) = site.fails(line);
        assert!(error.contains(text), "{line}: {error}");
        assert_eq!(exit, status, "{line}: {error}");
    }
    site.ok("oardel 1");
    wait_for(&site, 1, "Error");
    let (exit, error) = site.fails("OAR_JOB_ID=1 oarsh node2 true");
    assert!(exit == 255 && error.contains("job 1 does not run"), "{exit} {error}");
}

/// OAR-C-13, OAR-J-15: the properties of a job's resources, one line for each value of one of them.
#[test]
fn properties_of_resources_are_printed_by_key() {
    let site = site();
    site.ok("oarsub -l /nodes=2/core=2 'PATH=$PWD/bin:$PATH; oarprint host -P host,core -F \"host: % cores: %\" -C+; sleep 600'");
    site.system.wait_until("it has printed", || site.system.read("OAR.1.stdout").lines().count() == 2);
    assert_eq!(site.system.read("OAR.1.stdout"), "host: node1 cores: 1+2\nhost: node2 cores: 5+6\n");
    assert_eq!(site.ok("oarprint -j 1 core"), "1\n2\n5\n6\n");
    assert_eq!(site.ok("oarstat -p -j 1 | oarprint host -f - -P cpu,resource_id"), "1 1,2\n2 5,6\n");
    assert!(site.ok("oarprint -j 1 -l").starts_with("List of properties:\n"));
    assert_eq!(site.fails("oarprint -j 1 bogus"), (1, "oarprint: a resource has no property 'bogus'\n".to_owned()));
    assert!(site.fails("oarprint host").1.contains("no input data available"));
}

/// OAR-G-16: less walltime is given at once, more as far as nobody is delayed; the rest stays pending until nobody waits.
#[test]
fn walltimes_of_running_jobs_change() {
    let site = site();
    let walltime = |job: u64| {
        let json: serde_json::Value = serde_json::from_str(&site.ok(&format!("oarstat -J -j {job}"))).expect("JSON");
        json[job.to_string()]["walltime"].as_i64()
    };
    site.ok("oarsub -l nodes=4,walltime=2 'sleep 600'");
    wait_for(&site, 1, "Running");
    assert_eq!(site.ok("oarwalltime 1 -0:30"), "Accepted: the walltime of job 1 is 1:30:0.\n");
    assert_eq!(walltime(1), Some(5400));
    assert_eq!(site.ok("oarwalltime 1 +1:0"), "Accepted: the walltime of job 1 is 2:30:0.\n");
    let status = site.ok("oarwalltime 1");
    assert!(status.contains("  Current walltime:      2:30:0\n"), "{status}");
    assert!(status.contains("  Already granted:        1:0:0\n"), "{status}");
    assert!(status.contains("  Pending/unsatisfied:    0:0:0\n"), "{status}");
    // Somebody waits for the end of the job.
    site.ok("oarsub -l nodes=4,walltime=1 true");
    site.system.wait_until("its start is known", || !site.ok("oarstat -f -j 2").contains("no prediction"));
    let said = site.ok("oarwalltime --whole 1 +1");
    assert_eq!(said, "Accepted: the walltime of job 1 is 2:30:0; 1:0:0 more stay pending until they delay no job.\n");
    let status = site.ok("oarwalltime 1");
    assert!(status.contains("  Possible increase:      0:0:0\n"), "{status}");
    assert!(status.contains("  Pending/unsatisfied:    1:0:0 (whole)\n"), "{status}");
    // It is granted when the other one is gone.
    site.ok("oardel 2");
    site.system.wait_until("the rest is granted", || walltime(1) == Some(12_600));
    assert!(site.ok("oarwalltime 1").contains("  Already granted:        2:0:0\n"));
    site.ok("oarsub -l nodes=4,walltime=1 true");
    site.system.wait_until("its start is known", || !site.ok("oarstat -f -j 3").contains("no prediction"));
    assert!(site.ok("oarwalltime 1 +1").contains("1:0:0 more stay pending"));
    assert_eq!(site.ok("oarwalltime 1 +0"), "Accepted: the walltime of job 1 is 3:30:0.\n");
    assert!(site.ok("oarwalltime 1").contains("  Pending/unsatisfied:    0:0:0\n"));
    let forced = site.ok("oarwalltime --force --delay-next-jobs 1 +1");
    assert_eq!(forced, "Accepted: the walltime of job 1 is 4:30:0.\n");
    assert_eq!(walltime(1), Some(16_200));
    for (line, status, text) in [
        ("oarwalltime 3 +1", 1, "is not running"),
        ("oarwalltime 77", 2, "77"),
        ("oarwalltime 1 much", 4, "expected a walltime"),
        ("oarwalltime", 4, "usage"),
    ] {
        let (exit, error) = site.fails(line);
        assert!(exit == status && error.contains(text), "{line}: {exit} {error}");
    }
}

/// OAR-C-08, OAR-G-18: what ran, runs and is to run in a span, with the states of resources there; arrays in one line.
#[test]
fn the_chart_has_past_current_and_predicted_jobs() {
    let site = site();
    site.ok("oarnodesetting -s Suspected -h node4");
    site.ok("oarsub -l nodes=1 true");
    wait_for(&site, 1, "Terminated");
    site.ok("oarsub -l nodes=3,walltime=1 'sleep 600'");
    wait_for(&site, 2, "Running");
    site.ok("oarsub -l nodes=3,walltime=1 true");
    site.system.wait_until("its start is known", || !site.ok("oarstat -f -j 3").contains("no prediction"));
    let span = "\"$(date -d '-1 hour' '+%F %T'), $(date -d '+1 day' '+%F %T')\"";
    let json: serde_json::Value = serde_json::from_str(&site.ok(&format!("oarstat -J --gantt {span}"))).expect("JSON");
    let job = |id: &str| json["jobs"][id].clone();
    assert_eq!((&job("1")["state"], &job("1")["resources"]), (&"Terminated".into(), &serde_json::json!([1, 2, 3, 4])));
    assert_eq!((&job("2")["state"], &job("2")["prediction"]), (&"Running".into(), &false.into()));
    assert_eq!(job("2")["stop_time"].as_i64(), job("2")["start_time"].as_i64().map(|start| start + 3600));
    assert_eq!((&job("3")["state"], &job("3")["prediction"]), (&"Waiting".into(), &true.into()));
    assert!(job("3")["start_time"].as_i64() >= job("2")["stop_time"].as_i64(), "{json}");
    let spans = json["resources"]["13"]["dead_resources"].as_array().expect("a list");
    assert_eq!(spans.last().map(|span| &span["state"]), Some(&"Suspected".into()), "{json}");
    assert!(site.ok(&format!("oarstat --gantt {span}")).starts_with("{\n"));
    let later = "\"$(date -d '+2 day' '+%F %T'), $(date -d '+3 day' '+%F %T')\"";
    let json: serde_json::Value = serde_json::from_str(&site.ok(&format!("oarstat -J -g {later}"))).expect("JSON");
    assert_eq!(json["jobs"], serde_json::json!({}));
    let (status, error) = site.fails("oarstat --gantt yesterday");
    assert!(status == 1 && error.contains("Bad syntax for --gantt"), "{error}");
    site.ok("oarsub --hold --array 3 true");
    let rows = site.ok("oarstat -c");
    let of_array: Vec<&str> = rows.lines().filter(|row| row.starts_with("4@ ")).collect();
    assert!(of_array.len() == 1 && of_array[0].contains(" H "), "{rows}");
    assert!(!rows.contains("\n5 "), "{rows}");
    assert_eq!(site.fails("oarstat -c -J").0, 1);
}

/// OAR-A-01, OAR-A-02, OAR-A-03, OAR-A-04, OAR-A-05, OAR-A-06: usage in windows of the site's size, recounted from the log
/// with the same result, and dropped by age.
#[test]
fn usage_is_kept_in_windows_recounted_and_dropped() {
    let site = site_with("\n[accounting]\nwindow_seconds = 2\n");
    site.ok("oarsub --project bio -l core=4,walltime=0:0:40 'sleep 4.5'");
    site.ok("oarsub --hold --project bio true");
    wait_for(&site, 1, "Terminated");
    site.ok("oardel 2");
    let accounting = |options: &str| -> serde_json::Value {
        let span = "\"$(date -d -1day +%F), $(date -d +2day +%F)\"";
        serde_json::from_str(&site.ok(&format!("oarstat -J --accounting {span} {options}"))).expect("JSON")
    };
    let before = accounting("-u");
    let root = &before["users"]["root"];
    assert_eq!(root["ASKED"], 160, "{before}");
    let used = root["USED"].as_i64().expect("a number");
    assert!((18..=60).contains(&used), "four cores for some 4.5 seconds: {before}");
    let (begin, end) = (root["begin"].as_i64().expect("a time"), root["end"].as_i64().expect("a time"));
    assert!(begin % 2 == 0 && end % 2 == 1 && end - begin >= 39, "windows of two seconds: {before}");
    assert_eq!(before["projects"]["bio"], *root);
    let text = site.ok("oarstat -u --accounting '1970-01-02, 2100-01-01'");
    assert!(text.contains("Asked consumption: 160 (0:2:40)") && text.contains("\n  bio:\n"), "{text}");
    assert!(site.ok("oarstat --accounting '1970-01-02, 2100-01-01'").contains("root "));
    assert_eq!(site.ok("oarstat -J --accounting '1970-01-02, 1970-01-05'").matches("ASKED").count(), 0);
    let said = site.ok("oaraccounting --reinitialize");
    assert!(said.contains(": 1 runs, as in the books."), "{said}");
    assert_eq!(accounting("-u"), before, "a job counts once");
    // Those windows that have ended, but not all: what was asked for reaches into the future.
    site.ok("oaraccounting --delete-before=0");
    let after = accounting("");
    assert!(after["users"]["root"]["ASKED"].as_i64() < Some(160), "{after}");
    assert!(after["users"]["root"]["USED"].as_i64().unwrap_or(0) < used, "{after}");
    site.ok("oaraccounting --reinitialize");
    assert_eq!(accounting("-u"), before, "the log has kept them");
    assert_eq!(site.fails("oarstat --accounting today").0, 1);
    assert_eq!(site.fails("oaraccounting --delete-before=x").0, 1);
}

/// OAR-J-25: events have the names of OAR.
#[test]
fn events_have_their_names() {
    let site = site();
    let names = |job: u64| {
        let said = site.ok(&format!("oarstat -e -j {job}"));
        let name = |line: &str| line.split("] ").nth(1).and_then(|rest| rest.split(':').next()).map(str::to_owned);
        said.lines().filter_map(name).collect::<Vec<_>>()
    };
    let has = |job: u64, name: &str| {
        let all = names(job);
        assert_eq!(all.iter().filter(|known| *known == name).count(), 1, "job {job}, {name}: {all:?}");
    };
    site.ok("oarsub -l walltime=0:0:1 'sleep 600'");
    site.ok("oarsub 'trap \"\" USR2; touch ready; sleep 600'");
    site.system.wait_until("it ignores the signal", || site.system.path("ready").exists());
    wait_for(&site, 2, "Running");
    site.ok("oarhold -r 2");
    wait_for(&site, 2, "Suspended");
    site.ok("oarresume 2");
    wait_for(&site, 2, "Running");
    site.ok("oardel -c 2");
    site.ok("oardel 2");
    wait_for(&site, 2, "Error");
    wait_for(&site, 1, "Error");
    site.ok("oarsub --hold true");
    site.ok("oarresume 3");
    wait_for(&site, 3, "Terminated");
    site.ok("oarsub -d /nowhere/at/all true");
    wait_for(&site, 4, "Error");
    has(1, "WALLTIME");
    for name in ["HOLD_RUNNING_JOB", "RESUME_JOB", "CHECKPOINT", "FRAG_JOB_REQUEST", "SWITCH_INTO_ERROR_STATE"] {
        has(2, name);
    }
    for name in ["RESUME_JOB", "SWITCH_INTO_TERMINATE_STATE"] {
        has(3, name);
    }
    has(4, "WORKING_DIRECTORY");
    site.ok("oarsub -a 2 true");
    site.ok("oarhold 5");
    site.ok("oardel 5");
    for name in ["HOLD_WAITING_JOB", "FRAG_JOB_REQUEST", "SWITCH_INTO_ERROR_STATE"] {
        has(5, name);
    }
}

/// OAR-C-13: what a job uses on its nodes is told again and again until it ends.
#[test]
fn running_jobs_are_monitored() {
    let site = site();
    site.ok("oarsub -l nodes=2 'while :; do :; done'");
    wait_for(&site, 1, "Running");
    let mut monitor = site.spawn("oarmonitor -f 1 -j 1 > monitor.txt");
    let busy = |line: &str| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        matches!(cells[..], [_, "node1", processes, cpu, memory]
            if processes.parse::<u32>().is_ok_and(|n| n > 0)
                && cpu.parse::<f64>().is_ok_and(|n| n > 0.0)
                && memory.parse::<u64>().is_ok_and(|n| n > 0))
    };
    site.system.wait_until("it tells", || site.system.read("monitor.txt").lines().any(busy));
    assert!(site.system.read("monitor.txt").contains(" node2 "));
    site.ok("oardel 1");
    wait_for(&site, 1, "Error");
    assert!(monitor.wait().is_ok_and(|status| status.success()), "it ends with the job");
    assert_eq!(site.fails("oarmonitor -j 1").0, 4);
    assert_eq!(site.fails("oarmonitor").0, 2);
}

/// OAR-C-13: a configuration that was made from that of another system works.
#[test]
fn a_site_is_imported() {
    let old = site();
    old.ok("oarproperty -a mem && oarnodesetting -h node2 -p mem=64 && oarnodes -J > nodes.json");
    old.system.write(
        "oar.conf",
        "DEAD_SWITCH_TIME=\"600\"\nACCOUNTING_WINDOW=3600\nNONSENSE=1\nSCHEDULER_JOB_SECURITY_TIME=\"60\"\n",
    );
    let Output { status, stdout, stderr } =
        old.run(&format!("{MUSTER} oar import --name lyon --nodes nodes.json --conf oar.conf"));
    assert_eq!(status, 0, "{stderr}");
    for part in ["oar.conf, line 1: DEAD_SWITCH_TIME is '600': ", "oar.conf, line 3: NONSENSE is not known here"] {
        assert!(stderr.contains(part), "{stderr}");
    }
    assert!(stdout.contains("guard_seconds = 60"), "{stdout}");
    let mut system = System::stopped_in(Path::new("/var/tmp"));
    system.write("site.toml", &stdout);
    let config = system.path("site.toml").display().to_string();
    system.restart(&["--config", &config]);
    system.ok(&["install-commands", "bin"]);
    let new = Site { system };
    assert_eq!(new.ok("oarnodes -l"), "node1\nnode2\nnode3\nnode4\n");
    assert_eq!(new.ok("oarnodes --sql 'mem = 64' -s").lines().count(), 4);
    new.ok("oarsub -q admin -p 'mem = 64' true || oarsub -p 'mem = 64' true");
    wait_for(&new, 1, "Terminated");
    assert_eq!(state(&new, 1), "Terminated");
    assert_eq!(new.fails(&format!("{MUSTER} oar import")).0, 2);
    assert_eq!(new.fails(&format!("{MUSTER} oar import --nodes /nowhere")).0, 1);
}

/// OAR-N-01, OAR-N-02, OAR-N-03, OAR-N-04, OAR-N-05, OAR-N-06, OAR-N-07, OAR-N-08, OAR-N-09: users are told by mail and by a
/// program, once for each tag that they want, also over a restart; a program that fails is an event and changes nothing.
#[test]
fn users_are_told_by_mail_and_by_program() {
    let mut system = System::stopped_in(Path::new("/var/tmp"));
    let (calls, told) = (system.path("calls"), system.path("told"));
    system.write("mailer", &format!("#!/bin/sh\ncat >/dev/null; echo \"$2 -> $4\" >>{}\n", calls.display()));
    system.write(
        "hook",
        &format!("#!/bin/sh\nfor word; do printf '[%s]' \"$word\"; done >>{0}; echo >>{0}\n", told.display()),
    );
    system.write("calls", "");
    for (path, mode) in [("", 0o755), ("mailer", 0o755), ("hook", 0o755), ("calls", 0o666)] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(system.path(path), mode).expect("it is ours");
    }
    let mail = format!("\n[notifier.mail]\nprogram = \"{}\"\n", system.path("mailer").display());
    let configuration = format!("{CONFIGURATION}{mail}");
    system.write("site.toml", &configuration);
    let config = system.path("site.toml").display().to_string();
    let options = ["--nodes", "4", "--cpus", "4", "--memory", "4G", "--config", &config];
    system.restart(&options);
    system.ok(&["install-commands", "bin"]);
    let mut site = Site { system };
    let lines = |site: &Site, file: &str, count: usize| {
        let read = || std::fs::read_to_string(site.system.path(file)).unwrap_or_default();
        site.system.wait_until(&format!("{file} has {count} lines"), || read().lines().count() >= count);
        read().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let hook = site.system.path("hook").display().to_string();
    site.ok("oarsub -n first --notify mail:adam true");
    site.ok("oarsub --notify '[ end, ERROR ]mail:eve' 'exit 3'");
    wait_for(&site, 2, "Terminated");
    let mut mails = lines(&site, "calls", 3);
    mails.sort();
    assert_eq!(
        mails,
        [
            "*OAR* [END]: 1 (first) on alpha -> adam",
            "*OAR* [END]: 2 () on alpha -> eve",
            "*OAR* [RUNNING]: 1 (first) on alpha -> adam"
        ]
    );
    site.ok(&format!("oarsub -n 'my run' --notify '[END,ERROR]exec:{hook} --site lyon' true"));
    assert_eq!(lines(&site, "told", 1), ["[--site][lyon][3][my run][END][completed]"]);
    site.ok(&format!("oarsub --notify '[ERROR]exec:{hook}' 'sleep 600'"));
    wait_for(&site, 4, "Running");
    site.ok("oardel 4");
    assert!(lines(&site, "told", 2)[1].starts_with("[4][][ERROR]["), "{}", site.system.read("told"));
    site.ok("oarsub --notify 'exec:/bin/false' true");
    wait_for(&site, 5, "Terminated");
    site.system.stop();
    site.system.restart(&options);
    site.ok(&format!("oarsub --notify '[END]exec:{hook}' true"));
    wait_for(&site, 6, "Terminated");
    assert_eq!(lines(&site, "told", 3).len(), 3, "nothing is told again: {}", site.system.read("told"));
    assert_eq!(lines(&site, "calls", 3).len(), 3);
    for (line, status, code) in [
        ("oarsub --notify telegraph:x true", 8, "(job id -6)"),
        ("oarsub --notify 'exec:/bin/a;b' true", 16, "exec takes"),
        ("oarsub -n \"$(printf 'a\\nBcc: x')\" true", 8, ""),
        ("oarsub --notify \"mail:$(printf 'a\\nBcc: x')\" true", 8, ""),
    ] {
        let (exit, error) = site.fails(line);
        assert!(exit == status && error.contains(code), "{line}: {exit} {error}");
    }
}
