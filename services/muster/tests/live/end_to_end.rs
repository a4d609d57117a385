//! The life of a job, as people and scripts see it.

use crate::system::{Output, System};
use serde_json::Value;

#[test]
fn a_script_runs_on_its_nodes_and_its_history_is_told() {
    let system = System::start(2);
    system.write(
        "job.sh",
        "#!/bin/sh\n#MUSTER -N 2 -n 2 --name relax\n#MUSTER -o out.%j\necho \"$MUSTER_NODELIST $1\"\n",
    );
    let submitted = system.ok(&["submit", "job.sh", "argument"]);
    assert_eq!(submitted, "submitted job 1\n");
    system.ok(&["job", "wait", "1"]);
    assert_eq!(system.read("out.1"), "node1,node2 argument\n");

    let table = system.ok(&["jobs", "--all"]);
    assert!(
        table.lines().any(|line| line.contains("relax") && line.contains("completed") && line.contains("node[1-2]")),
        "{table}"
    );
    let shown = system.ok(&["job", "show", "1"]);
    assert!(shown.contains("State      completed"), "{shown}");
    let events = system.ok(&["job", "events", "1"]);
    for word in ["was submitted by", "node1, node2", "completed"] {
        assert!(events.contains(word), "{events}");
    }
    let usage = system.ok(&["usage", "--csv"]);
    assert!(usage.lines().nth(1).is_some_and(|row| row.contains(",default,1,1,0,")), "{usage}");
    assert!(system.ok(&["audit", "verify"]).starts_with("the history verifies"));
    assert!(system.ok(&["replay", "--verify"]).contains("digest "));
}

/// Any query can be asked of the past (M-CLI-4).
#[test]
fn the_past_can_be_asked_for() {
    let system = System::start(1);
    let before = system.json(&["jobs", "--json"])["sequence"].as_u64().unwrap();
    system.ok(&["submit", "--hold", "--", "true"]);
    assert_eq!(system.json(&["jobs", "--json"])["jobs"].as_array().unwrap().len(), 1);
    let past = system.json(&["jobs", "--json", "--at-seq", &before.to_string()]);
    assert_eq!(past["jobs"].as_array().unwrap().len(), 0);
    let long_ago = system.json(&["jobs", "--json", "--at", "2 hours ago"]);
    assert_eq!(long_ago["jobs"].as_array().unwrap().len(), 0);
    system.ok(&["submit", "--wait", "--", "true"]);
    assert_eq!(system.json(&["usage", "--json"])["rows"].as_array().unwrap().len(), 1);
    let past = system.json(&["usage", "--json", "--at-seq", &before.to_string()]);
    assert_eq!(past["rows"].as_array().unwrap().len(), 0);
    let events = system.ok(&["events", "--json", "--from", &(before + 1).to_string()]);
    // The planner may have started after the first question.
    let types = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone());
    let first = types.into_iter().find(|of| of != "muster.planner.started.v1").unwrap();
    assert_eq!(first, "muster.job.submitted.v1");
}

#[test]
fn a_policy_is_checked_put_in_force_and_remembered() {
    let mut system = System::stopped();
    let nodes = ["--nodes", "1", "--cpus", "4", "--memory", "4G"];
    system.restart(&[&nodes[..], &["--policy", "easy"]].concat());
    let easy = system.ok(&["config", "show", "--policy"]);
    assert_eq!(easy, system.ok(&["config", "policies", "easy"]));
    let before = system.json(&["jobs", "--json"])["sequence"].to_string();

    system.write("wrong.toml", "version = 1\norder = [\"sqt\"]\nlimits = 3\n");
    for command in [&["config", "check", "wrong.toml"][..], &["config", "apply", "--policy", "wrong.toml"]] {
        let Output { status, stderr, .. } = system.run(command);
        let lines: Vec<&str> = stderr.lines().collect();
        assert_eq!((status, lines.len()), (2, 2), "{stderr}");
        assert!(lines[0].starts_with("wrong.toml:2:10: ") && lines[0].ends_with("nearest known word is \"spt\""));
        assert!(lines[1].starts_with("wrong.toml:3:1: ") && lines[1].ends_with("nearest known key is `limit`"));
    }
    assert_eq!(system.ok(&["config", "show", "--policy"]), easy);

    system.write(
        "day.toml",
        "version = 1\norder = \"spt\"\n[backfill]\nmode = \"easy\"\n[queue.deep]\norder = \"saf\"\n",
    );
    assert_eq!(system.ok(&["config", "check", "day.toml"]), "day.toml is right: the policy `day`\n");
    let Output { status, stdout, stderr } = system.run(&["config", "apply", "--policy", "day.toml"]);
    assert_eq!(status, 0, "{stderr}");
    assert!(stdout.contains("order: [\"queue_priority\", \"priority\", \"fcfs\"] -> [\"spt\"]\n"), "{stdout}");
    assert!(stderr.contains("names the queue `deep`, which the cluster does not have"), "{stderr}");
    let day = system.ok(&["config", "show", "--policy"]);
    system.write("shown.toml", &day);
    assert_eq!(system.ok(&["config", "apply", "--policy", "shown.toml"]), "the policy `day` is in force already\n");
    assert_eq!(system.ok(&["config", "show", "--policy", "--at-seq", &before]), easy);
    assert_eq!(system.json(&["config", "show", "--policy", "--json"])["order"][0], "spt");
    system.ok(&["submit", "--wait", "--", "true"]);

    system.stop();
    system.restart(&nodes);
    assert_eq!(system.ok(&["config", "show", "--policy"]), day);
}

/// Exit statuses follow the contract (M-CLI-1).
#[test]
fn statuses_follow_the_contract() {
    let system = System::start(1);
    let status = |arguments: &[&str]| system.run(arguments).status;
    assert_eq!(status(&["submit", "--wait", "--", "sh", "-c", "exit 7"]), 7);
    assert_eq!(status(&["submit", "--wait", "--", "sh", "-c", "kill -TERM $$"]), 128 + 15);
    assert_eq!(status(&["submit", "-N", "9", "--", "true"]), 1);
    assert_eq!(status(&["submit", "--nodse", "9", "--", "true"]), 2);
    assert_eq!(status(&["job", "cancel"]), 2);
    assert_eq!(status(&["job", "show", "999"]), 4);
    assert_eq!(status(&["node", "drain", "nosuch"]), 4);
    assert_eq!(status(&["--data", "/nonexistent", "jobs"]), 5);
    assert_eq!(status(&["--server", "http://127.0.0.1:1", "jobs"]), 5);
}

/// A script's error names file, line, column and token and changes nothing (M-CLI-2).
#[test]
fn bad_scripts_are_refused_with_their_place_and_change_nothing() {
    let system = System::start(1);
    let before = system.json(&["jobs", "--json"])["sequence"].as_u64().unwrap();
    system.write("bad.sh", "#!/bin/sh\n#MUSTER --nmae x\n");
    system.write("text.sh", "echo hello\n");
    std::fs::write(system.path("bytes.sh"), b"#!/bin/sh\n\xff\n").unwrap();
    for (script, expected) in [
        ("bad.sh", "bad.sh:2:9: unknown option `--nmae` in #MUSTER line; did you mean `--name`?"),
        ("text.sh", "text.sh:1:1: a script begins with `#!`"),
        ("bytes.sh", "bytes.sh:2:1: the byte 0xff is not UTF-8 text"),
    ] {
        let Output { status, stderr, .. } = system.run(&["submit", script]);
        assert_eq!(status, 2, "{stderr}");
        assert!(stderr.starts_with(expected), "{stderr}");
    }
    let huge = "x".repeat(100_000);
    assert_eq!(system.run(&["submit", "--name", &huge, "--", "true"]).status, 1);
    assert_eq!(system.run(&["submit", "--nodes", "1099511627776", "--", "true"]).status, 2);
    // A refusal by the ledger leaves a record of it, and nothing else (SL-L-10).
    let after = system.json(&["jobs", "--json"])["sequence"].as_u64().unwrap();
    assert!(after <= before + 1, "{before} and then {after}");
    if after > before {
        let events = system.ok(&["events", "--json", "--from", &after.to_string()]);
        assert!(events.contains("muster.command.refused.v1"), "{events}");
    }
}

#[test]
fn jobs_can_be_held_changed_suspended_signalled_and_cancelled() {
    let system = System::start(1);
    let held = system.submit(&["--hold", "--", "true"]);
    assert_eq!(system.state(&held), "held");
    system.ok(&["job", "modify", "--priority", "5", "--set-name", "renamed", &held]);
    assert!(system.ok(&["jobs"]).contains("renamed"));
    system.ok(&["job", "release", &held]);
    system.ok(&["job", "wait", &held]);

    let sleeper = system.submit(&["--", "sleep", "600"]);
    system.wait_for_state(&sleeper, "running");
    system.ok(&["job", "suspend", &sleeper]);
    system.wait_for_state(&sleeper, "suspended");
    system.ok(&["job", "resume", &sleeper]);
    system.wait_for_state(&sleeper, "running");
    system.ok(&["job", "signal", "USR1", &sleeper]);
    assert_eq!(system.run(&["job", "wait", &sleeper]).status, 128 + 10);

    let cancelled = system.submit(&["--", "sleep", "600"]);
    let waiting = system.submit(&["--after", &format!("ok:{cancelled}"), "--", "true"]);
    system.wait_for_state(&cancelled, "running");
    let table = system.ok(&["jobs"]);
    assert!(table.contains(&format!("waits for job {cancelled}")), "{table}");
    system.ok(&["job", "cancel", &cancelled]);
    let Output { status, stderr, .. } = system.run(&["job", "wait", &cancelled]);
    assert_eq!((status, stderr), (1, format!("muster: job {cancelled}: cancelled\n")));
    system.ok(&["job", "cancel", "--matching"]);
    assert_eq!(system.run(&["job", "wait", &waiting]).status, 1);
}

#[test]
fn a_step_writes_where_its_caller_writes() {
    let system = System::start(2);
    let script = "#!/bin/sh\n#MUSTER -N 2 -n 2 -o out\nmuster run -- sh -c 'echo task $MUSTER_TASK_RANK; exit 3'\n\
                  echo status $?\nx=$(muster run -n 1 -- echo captured)\necho x=$x\n";
    system.write("job.sh", script);
    assert_eq!(system.run(&["submit", "--wait", "job.sh"]).status, 0, "{}", system.read("out"));
    let mut lines: Vec<String> = system.read("out").lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["status 3", "task 0", "task 1", "x=captured"]);
}

#[test]
fn an_array_is_compact_and_every_task_runs() {
    let system = System::start(2);
    let array = system.submit(&["--array", "0-9%3", "-o", "out.%a", "--", "sh", "-c", "echo $MUSTER_ARRAY_INDEX"]);
    system.ok(&["job", "wait", &array]);
    for index in 0..10 {
        assert_eq!(system.read(&format!("out.{index}")), format!("{index}\n"));
    }
    let held = system.submit(&["--array", "0-99%3", "--hold", "--", "true"]);
    assert!(system.ok(&["jobs"]).contains(&format!("{held}_[0-99%3]")));
}

#[test]
fn nodes_can_be_drained_and_resumed() {
    let system = System::start(1);
    system.ok(&["node", "drain", "--reason", "new disk", "node1"]);
    let table = system.ok(&["nodes"]);
    assert!(table.contains("drained") && table.contains("new disk"), "{table}");
    let job = system.submit(&["--", "true"]);
    assert_eq!(system.state(&job), "queued");
    system.ok(&["node", "resume", "node1"]);
    system.ok(&["job", "wait", &job]);
    assert!(system.ok(&["node", "show", "node1"]).contains("State   up"));
}

/// Jobs outlive a stop of the whole system, and the history continues (M-CLI-3).
#[test]
fn a_job_outlives_the_system_and_the_history_goes_on() {
    let mut system = System::start(2);
    let job = system.submit(&["-o", "out", "--", "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done; echo done"]);
    system.wait_for_state(&job, "running");
    system.stop();
    assert_eq!(system.run(&["jobs"]).status, 5);
    assert!(system.ok(&["audit", "verify", "--offline"]).starts_with("the history verifies"));
    system.restart(&[]);
    assert_eq!(system.state(&job), "running");
    system.write("go", "");
    system.ok(&["job", "wait", &job]);
    assert_eq!(system.read("out"), "done\n");
    let nodes = system.json(&["nodes", "--json"]);
    assert_eq!(nodes["nodes"].as_array().unwrap().len(), 2, "the nodes of the first start are there again");
}

/// A missing log is reported; no new one is silently begun beside what is left of it. M-LOG-9
#[test]
fn a_lost_log_does_not_become_a_new_cluster() {
    let mut system = System::start(1);
    system.ok(&["submit", "--wait", "--", "true"]);
    system.stop();
    std::fs::remove_dir_all(system.path("data/ledger")).expect("a log");
    for left in ["ledger.key", "accounting.books"] {
        let refused = system.run(&["up"]);
        assert_eq!(refused.status, 1, "{}", refused.stderr);
        let told =
            refused.stderr.contains("of an earlier one: the log was lost") && refused.stderr.contains("--new-log");
        assert!(told && refused.stderr.contains(left), "{}", refused.stderr);
        assert!(!system.path("data/ledger").exists(), "nothing is made");
        let _ = std::fs::remove_file(system.path("data/ledger.key"));
    }
    system.restart(&["--new-log"]);
    system.ok(&["submit", "--wait", "--", "true"]);
}

/// The verification reports how much of the log is signed, even if the system was killed. M-LOG-9
#[test]
fn verifying_says_what_is_signed() {
    let mut system = System::start(1);
    system.ok(&["submit", "--wait", "--", "true"]);
    system.wait_until("the end is signed", || system.ok(&["audit", "verify"]).contains("signatures cover all of them"));
    system.stop();
    assert!(system.ok(&["audit", "verify", "--offline"]).contains("signatures cover all of them"));
    let export = system.run(&["audit", "export", "--from", "9999", "bundle"]);
    assert_eq!(export.status, 1);
    assert!(export.stderr.contains("there is no record from 9999 to "), "{}", export.stderr);
    assert!(!system.path("bundle").exists(), "a file is written whole or not at all");
    system.write("bundle", "an earlier one");
    assert_eq!(system.run(&["audit", "export", "--from", "9999", "bundle"]).status, 1);
    assert_eq!(system.read("bundle"), "an earlier one");
    std::fs::write(system.path("data/ledger/witness"), "rubbish").expect("written");
    let verified = system.run(&["audit", "verify", "--offline"]);
    assert_eq!(verified.status, 1);
    assert!(verified.stderr.contains("its witness cannot be read"), "{}", verified.stderr);
    system.restart(&["--accept-log-end"]);
    assert!(system.ok(&["audit", "verify"]).starts_with("the history verifies"));
}

/// The kind of fault comes first; the status is 1 for every kind. M-LOG-9
#[test]
fn verifying_says_what_kind_of_fault_it_found() {
    let mut system = System::start(1);
    system.ok(&["submit", "--wait", "--", "true"]);
    system.stop();
    let verify = || system.run(&["audit", "verify", "--offline"]);
    let words = |output: &Output| output.stderr.split(':').nth(1).unwrap_or_default().trim().to_owned();
    let witness = std::fs::read(system.path("data/ledger/witness")).expect("read");
    std::fs::remove_file(system.path("data/ledger/witness")).expect("removed");
    let found = verify();
    assert_eq!((found.status, words(&found).as_str()), (1, "the history does not verify, something was altered"));
    std::fs::write(system.path("data/ledger/witness"), witness).expect("written");
    assert_eq!(verify().status, 0);
    system.ok(&["audit", "export", "bundle"]);
    let head: serde_json::Value =
        serde_json::from_str(system.read("bundle").lines().next().expect("a line")).expect("JSON");
    let key = head["public_key"].as_str().expect("a key").to_owned();
    let with_key = |key: &str| system.run(&["audit", "verify", "--offline", "--public-key", key]);
    assert_eq!(with_key(&key).status, 0);
    let other = with_key(&key.replace(|digit: char| digit.is_ascii_digit(), "f"));
    assert_eq!((other.status, words(&other).as_str()), (1, "the history does not verify, something was altered"));
    let files = std::fs::read_dir(system.path("data/ledger/log")).expect("a folder");
    let paths = files.map(|file| file.expect("a file").path());
    let wal = paths.filter(|path| path.extension().is_some_and(|end| end == "log")).max().expect("a write-ahead log");
    let mut bytes = std::fs::read(&wal).expect("read");
    let middle = bytes.len() / 3;
    bytes[middle..middle + 8].fill(0xa5);
    std::fs::write(&wal, bytes).expect("written");
    let found = verify();
    let damaged = "the history cannot be verified, it is damaged or cannot be read";
    assert_eq!((found.status, words(&found).as_str()), (1, damaged), "{}", found.stderr);
    std::fs::rename(system.path("data/ledger/log"), system.path("elsewhere")).expect("moved");
    assert_eq!(verify().status, 4);
}

#[test]
fn jobs_run_after_an_older_ledger_was_restored() {
    let mut system = System::start(1);
    // Jobs waiting in the backup start as soon as the restored system does.
    system.ok(&["submit", "--begin", "now+2s", "--", "true"]);
    system.stop();
    system.copy("data/ledger", "backup");
    system.restart(&[]);
    let later: Vec<String> = (0..3).map(|_| system.submit(&["--", "true"])).collect();
    system.ok(&[&["job", "wait", "1"], &later.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat());
    assert_eq!(completed_runs(&system), 4, "counted, and kept beside the log");
    system.stop();

    std::fs::remove_dir_all(system.path("data/ledger")).expect("a log");
    system.copy("backup", "data/ledger");
    system.restart(&[]);
    system.ok(&["job", "wait", "1"]);
    let again = system.submit(&["--", "true"]);
    assert_eq!(again, later[0], "what was answered after the backup is lost");
    system.ok(&["job", "wait", &again]);
    assert_eq!(completed_runs(&system), 2, "the books of the lost history are not used");
    assert!(system.ok(&["events"]).contains("remember runs"));
}

fn completed_runs(system: &System) -> u64 {
    let usage = system.json(&["usage", "--json"]);
    let rows = usage["rows"].as_array().expect("rows").iter();
    rows.map(|row| row["amounts"]["completed_runs"].as_u64().expect("a number")).sum()
}

#[test]
fn others_cannot_read_the_log() {
    use std::os::unix::fs::PermissionsExt as _;
    let system = System::start(1);
    for private in ["data/ledger", "data/ledger.key"] {
        let mode = std::fs::metadata(system.path(private)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{private}");
    }
}

#[test]
fn a_folder_in_use_is_refused() {
    let system = System::start(1);
    let Output { status, stderr, .. } = system.run(&["up"]);
    assert_eq!(status, 1, "{stderr}");
    assert!(stderr.contains("in use by another ledger"), "{stderr}");
    assert_eq!(system.run(&["jobs"]).status, 0, "the first system is not disturbed");
}

#[test]
fn the_configuration_can_be_shown_checked_and_applied() {
    let system = System::start(1);
    let shown = system.ok(&["config", "show"]);
    system.write("cluster.toml", &shown.replace("[[queues]]", "[[queues]]\nname = \"long\"\n\n[[queues]]"));
    assert!(system.ok(&["config", "check", "cluster.toml"]).contains("1 nodes, 2 queues"));
    system.ok(&["config", "apply", "cluster.toml"]);
    assert!(system.ok(&["queues"]).contains("long"));
    let queue =
        "[[queues]]\nname = \"low\"\nmakes_way = { by = \"cancel\" }\n[pbs]\npolicy_folder = \"/etc/sched_priv\"\n";
    system.write("vain.toml", queue);
    let Output { status, stderr, .. } = system.run(&["config", "check", "vain.toml"]);
    assert_eq!(status, 0);
    assert!(stderr.starts_with("warning: queue `low`: `makes_way` has no effect under a policy of PBS"), "{stderr}");
    system.write("wrong.toml", "[cluster]\n  nam = \"x\"\n");
    let Output { status, stderr, .. } = system.run(&["config", "apply", "wrong.toml"]);
    assert_eq!(status, 2);
    assert_eq!(stderr, "wrong.toml:2:3: unknown key `nam` in [cluster]; nearest known key is `name`\n");
}

#[test]
fn a_changed_file_is_taken_over_on_sighup() {
    let system = System::stopped();
    system.write("muster.toml", "[[nodes]]\nname = \"n[1-2]\"\ncores = 2\nmemory = \"1G\"\n");
    let mut system = system;
    system.restart(&["--config", "muster.toml"]);
    assert!(system.ok(&["nodes"]).contains("n2"));
    system.write(
        "muster.toml",
        "[[nodes]]\nname = \"n[1-2]\"\ncores = 2\nmemory = \"1G\"\n[licences]\nmatlab = 4\n[planner]\nmax_waiting = 5\n",
    );
    system.signal(nix::sys::signal::Signal::SIGHUP);
    system.wait_until("the licence is there", || system.ok(&["queues"]).contains("matlab"));
    assert!(system.log().contains("planner.max_waiting"), "{}", system.log());
    system.write("muster.toml", "nonsense");
    system.signal(nix::sys::signal::Signal::SIGHUP);
    system.wait_until("the error is told", || system.log().contains("nothing changed"));
    assert!(system.ok(&["nodes"]).contains("n2"));
}

#[test]
fn all_roles_can_be_served_by_one_process() {
    let mut system = System::stopped();
    let roles = ["executor", "gateway", "ledger", "planner", "notifier", "accounting", "--node", "solo"];
    system.launch("serve", &roles);
    system.wait_until("the gateway answers", || system.run(&["queues"]).status == 0);
    system.write("muster.toml", "[[nodes]]\nname = \"solo\"\ncores = 1\nmemory = \"1G\"\n");
    system.ok(&["config", "apply", "muster.toml"]);
    assert_eq!(system.await_ready(), "muster is ready: ledger, gateway, planner, notifier, accounting, executor\n");
    system.ok(&["submit", "--wait", "--", "true"]);
}

#[test]
fn an_audit_bundle_can_be_exported() {
    let system = System::start(1);
    system.ok(&["submit", "--wait", "--", "true"]);
    let told = system.ok(&["audit", "export", "bundle"]);
    assert!(told.starts_with("wrote records 1 to "), "{told}");
    assert!(std::fs::metadata(system.path("bundle")).unwrap().len() > 0);
}

#[test]
fn the_doctor_is_content_with_a_running_system() {
    let mut system = System::start(1);
    let found = system.json(&["doctor", "--json"]);
    assert!(found.as_array().unwrap().iter().all(|finding| finding["verdict"] != "bad"), "{found}");
    let told = found.as_array().unwrap().iter().find(|finding| finding["what"] == "containment").unwrap();
    let used = if system.log().contains("cgroup") { "good" } else { "warning" };
    assert_eq!(told["verdict"], used, "what the executor said: {}", system.log());
    system.stop();
    assert_eq!(system.run(&["doctor"]).status, 1);
}

#[test]
fn events_can_be_followed_as_they_happen() {
    let system = System::start(1);
    let mut follower = system.spawn(&["events", "--follow", "--json", "--from", "1", "--kind", "job"]);
    system.ok(&["submit", "--wait", "--", "true"]);
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(follower.stdout.take().unwrap()));
    let finished = lines.by_ref().map_while(Result::ok).any(|line| line.contains("muster.job.finished.v1"));
    assert!(finished, "the stream ended early");
    follower.kill().unwrap();
    follower.wait().unwrap();
}

#[test]
fn completions_and_manual_pages_are_made() {
    let system = System::stopped();
    assert!(system.ok(&["completions", "bash"]).contains("_muster"));
    system.ok(&["man", "man"]);
    assert!(
        system.read("man/muster-submit.1").contains("walltime")
            || system.read("man/muster-submit.1").contains("Walltime")
    );
}
