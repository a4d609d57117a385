//! Verbs that people type, the output of jobs, and messages about wrong lines.

use crate::system::{Output, System};
use nix::sys::signal::Signal;
use std::io::{BufRead as _, BufReader};

#[test]
fn verbs_that_people_type_have_an_answer() {
    let system = System::start(2);
    let job = system.submit(&["-N", "1", "-c", "2", "--name", "long", "--", "sleep", "1000"]);
    system.wait_for_state(&job, "running");
    let waiting = system.submit(&["--hold", "--name", "short", "--", "true"]);

    let status = system.ok(&["status"]);
    for text in ["2 up", "2 of 8 in use", "1 running, 0 queued, 1 held", "default*"] {
        assert!(status.contains(text), "{text}: {status}");
    }
    let overview = system.json(&["status", "--json"]);
    assert_eq!((&overview["nodes"]["up"], &overview["held"]), (&2.into(), &1.into()));
    assert!(system.ok(&["status", &waiting]).contains("held"));
    let top = system.ok(&["top"]);
    assert!(top.contains("2 of 8 in use") && top.contains("long") && top.contains("short"), "{top}");
    assert!(system.ok(&["ps"]).contains("long"));
    assert!(system.ok(&["version"]).starts_with("muster "));
    system.ok(&["cancel", &job, &waiting]);
    system.wait_for_state(&job, "finished");

    for (line, command) in [
        (&["queue"][..], "`muster jobs`"),
        (&["info"], "`muster status`"),
        (&["watch"], "`muster top`"),
        (&["show", "1"], "`muster job show JOB`"),
        (&["attach", "1"], "`muster shell JOB`"),
        (&["exec", "1", "--", "ls"], "`muster step run JOB -- COMMAND`"),
    ] {
        let Output { status, stderr, .. } = system.run(line);
        assert!(status == 2 && stderr.contains(command) && stderr.lines().count() == 1, "{line:?}: {stderr}");
    }
}

#[test]
fn lists_have_the_rows_columns_and_order_asked_for() {
    let system = System::start(3);
    system.ok(&["node", "drain", "--reason", "disk", "node2"]);
    let drained = system.ok(&["nodes", "--state", "drained"]);
    assert!(drained.contains("node2") && !drained.contains("node1"), "{drained}");
    let summary = system.ok(&["nodes", "--summary"]);
    assert_eq!(summary.lines().count(), 3, "{summary}");
    assert!(summary.contains("node[1,3]") && summary.contains("0/8"), "{summary}");

    for (name, cpus) in [("b", "1"), ("a", "1"), ("c", "2")] {
        system.submit(&["--hold", "--name", name, "-c", cpus, "--", "true"]);
    }
    let jobs = system.ok(&["jobs", "--sort", "-cpus,name", "--columns", "name,account,cpus"]);
    let rows: Vec<Vec<&str>> = jobs.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows, [vec!["NAME", "ACCOUNT", "CPUS"], vec!["c", "2"], vec!["a", "1"], vec!["b", "1"]]);
    assert_eq!(system.run(&["jobs", "--columns", "size"]).status, 2);

    system.submit(&["--name", "done", "--", "true"]);
    system.ok(&["job", "wait", "4"]);
    let finished = system.ok(&["jobs", "-a", "-s", "finished"]);
    assert!(finished.contains("done") && finished.lines().count() == 2, "{finished}");
}

#[test]
fn what_a_job_writes_is_shown_while_it_runs_and_when_it_is_over() {
    let system = System::start(1);
    let script = "#!/bin/sh\n#MUSTER --name talk -o %x-%j.out -e talk.err\necho first\necho wrong >&2\n\
                  while [ ! -e go ]; do sleep 0.05; done\necho last\n";
    system.write("talk.sh", script);
    let job = system.submit(&["talk.sh"]);
    system.wait_until("it has written", || system.read(&format!("talk-{job}.out")) == "first\n");
    let shown = system.ok(&["job", "show", &job]);
    let name = system.path(&format!("talk-{job}.out")).canonicalize().unwrap();
    assert!(shown.contains(&name.display().to_string()) && shown.contains("talk.err"), "{shown}");
    assert_eq!(system.ok(&["logs", &job]), "first\n");
    system.wait_until("its errors are there", || system.read("talk.err") == "wrong\n");
    assert_eq!(system.ok(&["logs", "--stderr", &job]), "wrong\n");
    assert_eq!(system.ok(&["logs", "--path", &job]).trim(), name.display().to_string());
    // It is a step of the job, and so it is in its history.
    assert!(system.ok(&["step", "list", &job]).contains("logs"));

    let mut follower = system.spawn(&["logs", "--follow", &job]);
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "first");
    system.write("go", "");
    assert_eq!(lines.next().unwrap().unwrap(), "last");
    assert!(lines.next().is_none());
    assert!(follower.wait().unwrap().success());
    system.ok(&["job", "wait", &job]);
    assert_eq!(system.ok(&["logs", &job]), "first\nlast\n");
    assert_eq!(system.ok(&["logs", "-n", "1", &job]), "last\n");

    let held = system.submit(&["--hold", "--", "true"]);
    let Output { status, stderr, .. } = system.run(&["logs", &held]);
    assert!(status == 1 && stderr.contains("has not written anything: it is held"), "{stderr}");
    let array = system.submit(&["--array", "0-1", "--", "echo", "task"]);
    system.ok(&["job", "wait", &array]);
    assert!(system.run(&["logs", &array]).stderr.contains(&format!("name one, such as {array}_0")));
    assert_eq!(system.ok(&["logs", &format!("{array}_1")]), "task\n");
    system.ok(&["cancel", &held]);
}

/// The output of a job is only for its owner.
#[test]
fn others_may_not_read_what_a_job_wrote() {
    let system = System::start_for_others();
    let job = system.submit(&["--", "sh", "-c", "echo secret; sleep 1000"]);
    system.wait_for_state(&job, "running");
    for line in [&["logs", &job][..], &["logs", "--path", &job], &["shell", &job, "--", "true"]] {
        let Output { status, stdout, .. } = system.run_as_nobody(line);
        assert!(status == 3 && stdout.is_empty(), "{line:?}: {status} {stdout}");
    }
}

#[test]
fn a_shell_runs_in_a_job_or_has_a_job_of_its_own() {
    let system = System::start(1);
    let job = system.submit(&["-c", "4", "--", "sleep", "1000"]);
    system.wait_for_state(&job, "running");
    assert_eq!(system.ok(&["shell", &job, "--", "sh", "-c", "echo in $MUSTER_JOB_ID"]), format!("in {job}\n"));
    assert_eq!(system.run(&["shell", &job, "--", "sh", "-c", "exit 7"]).status, 7);
    system.ok(&["cancel", &job]);
    let said = system.run(&["shell", "-c", "2", "-t", "5", "--", "sh", "-c", "echo in $MUSTER_JOB_ID"]);
    assert_eq!((said.status, said.stdout.as_str()), (0, "in 2\n"), "{said:?}");
    system.wait_for_state("2", "finished");
    assert!(system.ok(&["job", "show", "2"]).contains("completed"));
}

#[test]
fn signals_come_first_and_a_clear_order_is_taken() {
    let system = System::start(1);
    let job = system.submit(&["--", "sleep", "1000"]);
    system.wait_for_state(&job, "running");
    for line in [["USR1", "1.1"], ["1.2", "USR1"]] {
        let sleep = "echo ready; exec sleep 1000";
        let mut step = system.spawn(&["step", "run", "-n", "1", "--overlap", &job, "--", "sh", "-c", sleep]);
        let mut said = BufReader::new(step.stdout.take().unwrap()).lines();
        assert_eq!(said.next().unwrap().unwrap(), "ready");
        system.ok(&["step", "signal", line[0], line[1]]);
        assert_eq!(step.wait().unwrap().code(), Some(128 + 10));
    }
}

#[test]
fn wrong_lines_are_told_in_words_that_help() {
    let system = System::start(1);
    let Output { status, stderr, .. } = system.run(&["jobs", "--nonsense"]);
    assert!(
        status == 2 && stderr.contains("Usage: muster jobs [OPTIONS]") && !stderr.contains("--data <DIR>"),
        "{stderr}"
    );
    for (line, told) in [
        (&["jobs", "--at", "2099-01-01"][..], "has not been yet"),
        (&["submit", "--deadline", "-1h", "--", "true"], "has passed already"),
        (&["submit", "--env", "A B=1", "--", "true"], "contains a blank"),
    ] {
        let Output { status, stderr, .. } = system.run(line);
        assert!(status == 2 && stderr.contains(told), "{line:?}: {stderr}");
    }
    assert_eq!(system.run(&["events", "--job", "99999"]).status, 4);
    system.write("slurm.sh", "#!/bin/sh\n#SBATCH -N 9\ntrue\n");
    let Output { status, stderr, .. } = system.run(&["submit", "slurm.sh"]);
    assert!(status == 0 && stderr.contains("options of sbatch and are ignored"), "{stderr}");
    let Output { status, stderr, .. } = system.run(&["submit", "-C", "gpu", "-N", "1", "--mem", "400G", "--", "true"]);
    assert!(status == 1 && stderr.contains("match `gpu`"), "{stderr}");
    let Output { status, stderr, .. } = system.run(&["submit", "--mem", "400G", "--", "true"]);
    assert!(status == 1 && stderr.contains("400 GiB"), "{stderr}");
}

#[test]
fn a_bundle_can_be_written_to_standard_output() {
    let system = System::start(1);
    system.ok(&["submit", "--wait", "--", "true"]);
    let Output { status, stdout, stderr } = system.run(&["audit", "export", "-"]);
    assert_eq!(status, 0, "{stderr}");
    assert!(
        !stdout.is_empty() && !stdout.contains("wrote records") && stderr.contains("wrote records 1 to"),
        "{stderr}"
    );
    assert!(!system.path("-").exists());
    system.ok(&["audit", "export", "--to", "5", "bundle"]);
    let first = |bundle: &str| bundle.lines().next().unwrap().to_owned();
    let is_json = |line: String| serde_json::from_str::<serde_json::Value>(&line).is_ok();
    assert!(is_json(first(&stdout)) && is_json(first(&system.read("bundle"))), "{stdout}");
}

/// Processes started at a terminal end with it; with a configuration file the signal means something else.
#[test]
fn a_hang_up_without_a_configuration_file_is_the_end() {
    let mut system = System::start(1);
    assert!(system.log().contains("CPU binding: none"), "{}", system.log());
    system.signal(Signal::SIGHUP);
    system.wait_until("it has ended", || system.run(&["jobs"]).status == 5);
    system.stop();
    assert!(system.ok(&["audit", "verify", "--offline"]).starts_with("the history verifies"));
    system.restart(&[]);
}

/// F19: RocksDB is C++, which used to end with a line of its runtime, or to wait without end for a lock of its own.
#[test]
fn without_room_for_its_storage_it_says_so() {
    for limit_kib in [200_000, 300_000, 500_000, 700_000, 900_000, 1_100_000, 1_300_000, 1_500_000] {
        let system = System::stopped();
        let limited = format!("ulimit -v {limit_kib}; exec timeout --signal=KILL 120 muster up --nodes 1");
        let Output { status, stderr, .. } = system.shell(&limited);
        assert!(status == 1 && !stderr.contains("terminate called"), "{limit_kib} KiB, {status}: {stderr}");
        assert!(stderr.contains("muster: the storage got no memory or no thread"), "{limit_kib} KiB: {stderr}");
        assert!(stderr.contains("`ulimit -v`"), "{limit_kib} KiB: {stderr}");
    }
}

#[test]
fn shells_complete_what_the_system_has() {
    let system = System::start(2);
    let job = system.submit(&["--hold", "--name", "first", "--", "true"]);
    let completed = |words: &str| {
        let last = words.split(' ').next_back().unwrap();
        let script = format!(
            "COMP_WORDS=({words} ''); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_TYPE=9; _clap_complete_muster muster '' {last}; \
             printf '%s\n' \"${{COMPREPLY[@]}}\""
        );
        system.write("complete.bash", &format!("eval \"$(muster completions bash)\"\n{script}\n"));
        let output = system.shell("bash complete.bash");
        assert_eq!(output.status, 0, "{output:?}");
        output.stdout
    };
    for (words, candidate) in [
        ("muster job show", job.as_str()),
        ("muster cancel", &job),
        ("muster jobs --queue", "default"),
        ("muster submit -q", "default"),
        ("muster node drain", "node2"),
        ("muster config apply --policy", "conservative"),
        ("muster", "submit"),
    ] {
        let shown = completed(words);
        assert!(shown.split_whitespace().any(|word| word == candidate), "{words}: {shown}");
    }
    system.ok(&["cancel", &job]);
}

#[test]
fn who_waits_sees_what_the_job_writes_how_it_ended_and_that_it_goes_on() {
    let system = System::start(1);
    let followed = system.run(&["submit", "--follow", "--", "sh", "-c", "echo one; echo two; exit 3"]);
    assert_eq!((followed.status, followed.stdout.as_str()), (3, "submitted job 1\none\ntwo\n"));
    assert!(followed.stderr.contains("job 1: ") && followed.stderr.contains("3"), "{}", followed.stderr);

    let mut waiting = system.spawn(&["submit", "--wait", "--", "sleep", "1000"]);
    system.wait_until("it is submitted", || system.run(&["job", "show", "2"]).status == 0);
    system.wait_for_state("2", "running");
    let id = nix::unistd::Pid::from_raw(waiting.id() as i32);
    system.wait_until("it waits", || {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).map(str::trim);
        // The second bit is SIGINT.
        caught.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask & 2 != 0)
    });
    nix::sys::signal::kill(id, Signal::SIGINT).unwrap();
    assert_eq!(waiting.wait().unwrap().code(), Some(128 + 2));
    assert_eq!(system.state("2"), "running");
    system.ok(&["cancel", "2"]);
}

/// D26: the examples of the manual pages work as written. Those that never end, need another program or change the host
/// are executed elsewhere or not at all.
#[test]
fn examples_of_manual_pages_work() {
    let system = System::start(4);
    system.ok(&["man", "pages"]);
    system.write("job.sh", "#!/bin/sh\ntrue\n");
    system.write("step", "#!/bin/sh\nexec sleep 1000\n");
    assert_eq!(system.shell("chmod +x step").status, 0);
    system.write("muster.toml", "[cluster]\nname = \"alpha\"\n");
    system.write("job.xml", "<Job><Tasks><Task CommandLine=\"true\"/></Tasks></Job>");
    for _ in 1..=6 {
        system.submit(&["--hold", "--", "true"]);
    }
    let pages = [
        "job-new",
        "job-add",
        "job-submit",
        "job-view",
        "job-list",
        "job-listtasks",
        "job-clone",
        "job-finish",
        "job",
        "node-close",
        "node-open",
        "reserve",
        "reservations",
        "unreserve",
        "filter",
        "filter-list",
        "config",
        "config-policies",
        "config-reference",
        "jobtemplate",
        "cluscfg",
        "slurm",
        "audit",
        "version",
        "node",
    ];
    for page in pages {
        let text = system.read(&format!("pages/muster-{page}.1"));
        let examples = text.split(".SH EXAMPLES").nth(1).and_then(|text| text.split(".SH").next()).unwrap_or_default();
        let lines: Vec<String> = examples
            .lines()
            .filter_map(|line| line.strip_prefix("\\fB")?.strip_suffix("\\fR"))
            .map(|line| line.replace("\\-", "-").replace("\\*(Aq", "'").replace("\\\\", "\\"))
            .collect();
        assert!(!lines.is_empty(), "{page}: {text}");
        for line in lines {
            let output = system.shell(&line);
            assert_eq!(output.status, 0, "{page}: {line}: {output:?}");
        }
    }
}

/// A node of a cluster has an executor and no gateway: that is no fault.
#[test]
fn a_host_without_a_gateway_is_no_fault_where_the_roles_are_on_several() {
    let system = System::stopped();
    std::fs::create_dir(system.path("data")).expect("a folder");
    system.write("node.toml", "[bus]\nurl = \"nats://127.0.0.1:1\"\n[executor]\nnode = \"n001\"\n");
    let gateway = |arguments: &[&str]| {
        let findings: serde_json::Value = serde_json::from_str(&system.run(arguments).stdout).expect("JSON");
        let is_gateway = |finding: &&serde_json::Value| finding["what"] == "gateway";
        findings.as_array().into_iter().flatten().find(is_gateway).expect("a finding").clone()
    };
    let of_node = gateway(&["doctor", "--json", "--config", "node.toml"]);
    assert_eq!(of_node["verdict"], "warning", "{of_node}");
    assert_eq!(gateway(&["doctor", "--json"])["verdict"], "bad");
}
