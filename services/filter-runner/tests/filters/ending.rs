//! The end of calls: by themselves, by the time limit, by a cancellation, and never by what they leave behind.

use crate::site::{Site, number_in, runs, submission, until};
use muster_filter_runner::{Call, RunError};
use muster_schemas::filter::FilterExit;
use std::time::{Duration, Instant};

fn limited(seconds: u32, call: Call) -> Call {
    Call { time_limit_seconds: seconds, ..call }
}

/// HPC-F-05
#[tokio::test]
async fn time_in_the_queue_of_a_runner_does_not_count() {
    let site = Site::with(|config| config.slots = 1);
    let call = limited(5, submission(site.script("sleep 1.5")));
    let answers = tokio::join!(site.run(&call), site.run(&call), site.run(&call), site.run(&call));
    let answers = [answers.0, answers.1, answers.2, answers.3];
    assert!(answers.iter().all(|answer| answer.result == FilterExit::Code(0)), "{answers:?}");
}

/// HPC-F-05, HPC-F-06
#[tokio::test]
async fn at_the_limit_a_filter_is_told_to_end_and_has_timed_out_whatever_it_exits_with() {
    let site = Site::new();
    let told = site.state("told");
    let path = site.script(&format!("trap 'echo 1 > {}; exit 0' TERM; sleep 60 & wait", told.display()));
    let answer = site.run(&limited(1, submission(path))).await;
    assert_eq!(answer.result, FilterExit::TimedOut);
    assert_eq!(number_in(&told).await, 1);
    assert!(answer.duration >= Duration::from_secs(1));
}

/// HPC-F-06
#[tokio::test]
async fn who_ignores_that_is_killed_two_seconds_later() {
    let site = Site::new();
    let (process, goes_on) = (site.state("process"), site.state("goes-on"));
    let text = "trap 'echo 1 > GOES-ON' TERM; echo $$ > PROCESS; while :; do sleep 0.01; done";
    let text = text.replace("PROCESS", &process.display().to_string());
    let path = site.script(&text.replace("GOES-ON", &goes_on.display().to_string()));
    let begun = Instant::now();
    let answer = site.run(&limited(1, submission(path))).await;
    let lasted = begun.elapsed();
    assert_eq!(answer.result, FilterExit::TimedOut);
    assert!(!runs(number_in(&process).await));
    assert_eq!(number_in(&goes_on).await, 1);
    // One second of time limit and two of grace: a slow machine takes longer, never less.
    assert!(lasted >= Duration::from_secs(3), "{lasted:?}");
}

/// A child that leaves session, group and parent, and ignores signals.
const ESCAPE: &str = "setsid sh -c 'trap \"\" TERM HUP; (echo $$ > PROCESS.new; mv PROCESS.new PROCESS; \
     while :; do sleep 0.01; done) & wait' &
     until [ -e PROCESS ]; do sleep 0.01; done";

/// HPC-F-06
#[tokio::test]
async fn children_that_left_the_session_end_at_the_limit_too() {
    let site = Site::new();
    let process = site.state("process");
    let escape = ESCAPE.replace("PROCESS", &process.display().to_string());
    let answer = site.run(&limited(1, submission(site.script(&format!("{escape}\nsleep 60"))))).await;
    assert_eq!(answer.result, FilterExit::TimedOut);
    assert!(!runs(number_in(&process).await));
}

/// HPC-F-06
#[tokio::test]
async fn children_left_behind_are_killed_and_delay_nothing_though_they_keep_the_output_open() {
    let site = Site::new();
    let process = site.state("process");
    let escape = ESCAPE.replace("PROCESS", &process.display().to_string());
    let answer = site.run_script(&format!("{escape}\necho done; exit 1")).await;
    assert_eq!(answer.result, FilterExit::Code(1));
    assert_eq!(answer.stdout.text(), "done\n");
    assert!(!runs(number_in(&process).await));
}

/// HPC-F-06, M-FIL-2.
#[tokio::test]
async fn children_that_fork_on_and_on_are_killed_all_the_same() {
    let site = Site::new();
    // One is gone, and has started the next, before anybody could have looked; the other leaves every group at once.
    for (name, text) in [("comet", "\"$0\" &"), ("hydra", "sleep 0.02; setsid \"$0\" &")] {
        let list = site.state(name);
        let program = site.program(name, &format!("#!/bin/sh\n{text}\necho $! >> {}\n", list.display()), 0o755);
        let (program, list) = (program.display(), list.display());
        let started =
            format!(": > {list}; {program} & {program} & until [ $(wc -l < {list}) -gt 20 ]; do sleep 0.01; done");
        assert_eq!(site.run_script(&started).await.result, FilterExit::Code(0));
        assert_eq!(processes_of(&program.to_string()), 0, "{name}");
    }
}

/// The number of processes with this in their command line.
fn processes_of(program: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let command_line = |process: String| std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    processes.map(command_line).filter(|line| String::from_utf8_lossy(line).contains(program)).count()
}

/// HPC-F-07, HPC-F-91
#[tokio::test]
async fn a_program_that_is_not_there_is_not_found() {
    let site = Site::new();
    let path = site.programs().join("none");
    assert_eq!(site.judge(&path).await.result, FilterExit::NotFound(path.display().to_string()));
    let below_a_file = site.script("exit 0").join("none");
    assert_eq!(site.judge(&below_a_file).await.result, FilterExit::NotFound(below_a_file.display().to_string()));
}

/// HPC-F-07
#[tokio::test]
async fn a_script_whose_interpreter_is_not_there_is_not_found() {
    let site = Site::new();
    let path = site.program("script", "#! /no/such/interpreter -x\n", 0o755);
    let FilterExit::NotFound(what) = site.judge(&path).await.result else { panic!() };
    assert!(what.contains("/no/such/interpreter") && what.contains(path.to_str().unwrap()), "{what}");
}

/// HPC-F-07
#[tokio::test]
async fn what_is_there_but_no_program_is_not_runnable() {
    let site = Site::new();
    let folder = site.programs().join("folder");
    std::fs::create_dir(&folder).unwrap();
    let cases = [
        (site.program("plain", "#!/bin/sh\n", 0o644), "not executable"),
        (site.program("text", "echo this would pass if a shell read it\n", 0o755), "no format"),
        (folder, "not a regular file"),
    ];
    for (path, why) in cases {
        let FilterExit::NotRunnable(told) = site.judge(&path).await.result else { panic!("{}", path.display()) };
        assert!(told.contains(why) && told.contains(path.to_str().unwrap()), "{told}");
    }
}

/// HPC-F-08
#[tokio::test]
async fn death_by_signal_is_recorded_as_128_and_the_signal() {
    let site = Site::new();
    for (signal, code) in [("SEGV", 139), ("KILL", 137), ("TERM", 143), ("RTMAX", 192)] {
        // `sh` does not know the names of real-time signals.
        let answer = site.run_script(&format!("bash -c 'kill -{signal} $$'; code=$?; kill -$((code - 128)) $$")).await;
        assert_eq!(answer.result.code(), Some(code), "{signal}");
        assert!(matches!(answer.result, FilterExit::Signal(_)), "{signal}");
    }
    assert_eq!(site.run_script("exit 255").await.result, FilterExit::Code(255));
}

/// HPC-F-23
#[tokio::test]
async fn who_drops_a_call_ends_it_and_all_that_it_started() {
    let site = Site::new();
    let (process, escaped) = (site.state("process"), site.state("escaped"));
    let escape = ESCAPE.replace("PROCESS", &escaped.display().to_string());
    let path = site.script(&format!("{escape}\necho $$ > {}; sleep 120", process.display()));
    // Much longer than this test waits: the limit does not end it.
    let call = limited(120, submission(path));
    let started = async { (number_in(&process).await, number_in(&escaped).await) };
    let (process, escaped) = tokio::select! {
        answer = site.run(&call) => panic!("{answer:?}"),
        processes = started => processes,
    };
    until("the end of all processes", || (!runs(process) && !runs(escaped)).then_some(())).await;
    until("the end of the call's folder", || site.leftovers().is_empty().then_some(())).await;
    assert_eq!(site.run_script("exit 0").await.result, FilterExit::Code(0));
}

/// HPC-F-85, M-FIL-1.
#[tokio::test]
async fn a_call_whose_supervisor_is_killed_is_no_verdict_and_its_filter_does_not_go_on() {
    let site = Site::new();
    let (process, supervisor) = (site.state("process"), site.state("supervisor"));
    let text = format!("echo $PPID > {}; echo $$ > {}; sleep 60", supervisor.display(), process.display());
    let call = submission(site.script(&text));
    let kill = async {
        let supervisor = nix::unistd::Pid::from_raw(number_in(&supervisor).await);
        let process = number_in(&process).await;
        nix::sys::signal::kill(supervisor, nix::sys::signal::Signal::SIGKILL).unwrap();
        process
    };
    let (answer, process) = tokio::join!(site.runner.run(&call), kill);
    assert!(matches!(answer, Err(RunError::Supervisor { .. })), "{answer:?}");
    until("the filter's end", || (!runs(process)).then_some(())).await;
    assert_eq!(site.run_script("exit 0").await.result, FilterExit::Code(0));
}

#[tokio::test]
async fn folders_that_killed_runners_left_behind_go_when_the_next_starts() {
    let folder = tempfile::tempdir().unwrap();
    let left = folder.path().join("scratch/runner-1-0/7");
    std::fs::create_dir_all(&left).unwrap();
    let first = muster_filter_runner::Runner::new(crate::site::config(folder.path())).unwrap();
    assert!(!left.exists());
    // A living one keeps its own.
    let _second = muster_filter_runner::Runner::new(crate::site::config(folder.path())).unwrap();
    assert_eq!(std::fs::read_dir(folder.path().join("scratch")).unwrap().count(), 2);
    drop(first);
    assert_eq!(std::fs::read_dir(folder.path().join("scratch")).unwrap().count(), 1);
}
