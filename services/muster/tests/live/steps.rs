//! Steps inside running jobs, with their input and output at the command that runs them, and jobs that hold
//! resources for a client.

use crate::system::{Output, System};
use muster_client::{Client, Endpoint, Moment};
use muster_schemas::{
    CommandId, JobId,
    job::{Component, ExitStatus, JobSpec, JobState},
    resources::{Alternative, Count, Level, LevelCount, Request},
    steps::{StepGroup, StepPlace, StepProgram, StepSpec},
    views::{JobView, OutcomeWord},
};
use nix::sys::signal::Signal;
use std::io::{BufRead as _, BufReader, Read as _};

const NODES: [&str; 6] = ["--nodes", "2", "--cpus", "4", "--memory", "4G"];

/// A running job with four cores on each of two nodes.
fn with_job(system: &System) -> String {
    let job = system.submit(&["-N", "2", "-n", "8", "--", "sleep", "1000"]);
    system.wait_for_state(&job, "running");
    job
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// SL-R-08, SL-R-14, SL-R-23, SL-R-25
#[test]
fn a_step_has_its_output_and_status_here_and_stays_in_the_list() {
    let system = System::start(2);
    let job = with_job(&system);
    let say = "echo $MUSTER_TASK_RANK on $MUSTER_NODE_NAME of $MUSTER_NTASKS";
    let shown = system.ok(&["step", "run", "-n", "6", "--label", &job, "--", "sh", "-c", say]);
    let expected: Vec<String> =
        (0..6).map(|rank| format!("{rank}: {rank} on node{} of 6", if rank < 4 { 1 } else { 2 })).collect();
    assert_eq!(sorted(&shown), expected);
    let Output { status, stderr, .. } =
        system.run(&["step", "run", "-N", "2", &job, "--", "sh", "-c", "echo no >&2; exit $MUSTER_TASK_RANK"]);
    assert_eq!((status, stderr.as_str()), (1, "no\nno\n"));
    let said = system.run_with(&["step", "run", "-n", "2", "-i", "1", &job, "--", "cat"], b"hello\n");
    assert_eq!((said.status, said.stdout.as_str()), (0, "hello\n"));
    let Output { status, stderr, .. } = system.run(&["step", "run", "-n", "1", &job, "--", "nosuch"]);
    assert_eq!((status, stderr.as_str()), (2, "error: execve(): nosuch: No such file or directory\n"));
    let Output { status, stderr, .. } = system.run(&["step", "run", "-n", "9", &job, "--", "true"]);
    assert_eq!((status, stderr.as_str()), (1, "muster: the job has room for 8 tasks of 1 cores\n"));

    let steps = system.json(&["step", "list", &job, "--json"])["steps"].clone();
    let statuses = |at: usize| steps[at]["statuses"].to_string();
    assert_eq!(steps.as_array().map(Vec::len), Some(4));
    assert_eq!(statuses(0), r#"[{"ranks":"0-5","status":{"code":0}}]"#);
    assert_eq!(statuses(1), r#"[{"ranks":"0","status":{"code":0}},{"ranks":"1","status":{"code":1}}]"#);
    assert_eq!(steps[0]["nodes"][1]["node"], "node2");
    assert_eq!(steps[0]["nodes"][1]["cores"], "0-1");
    let table = system.ok(&["step", "list", &job]);
    assert!(table.contains(&format!("{job}.2")) && table.contains("exit status 1"), "{table}");
    assert_eq!(system.ok(&["step", "list"]), "", "none runs");
    system.ok(&["job", "cancel", &job]);
    system.wait_for_state(&job, "finished");
    assert_eq!(system.json(&["step", "list", &job, "--json"])["steps"], steps, "the log has them");
}

/// SL-R-08, SL-M-14
#[test]
fn a_step_waits_for_cores_that_another_has_and_can_be_watched_and_ended() {
    let system = System::start(2);
    let job = with_job(&system);
    let mut first = system.spawn(&["step", "run", &job, "--", "sh", "-c", "echo on; exec sleep 1000"]);
    let mut lines = BufReader::new(first.stdout.take().expect("it is piped")).lines();
    for _ in 0..8 {
        assert_eq!(lines.next().expect("a line").expect("it can be read"), "on");
    }
    let Output { status, stderr, .. } = system.run(&["step", "run", "-n", "1", "--now", &job, "--", "true"]);
    assert_eq!((status, stderr.as_str()), (1, "muster: 1 cores are wanted on node node1, 0 are free of other steps\n"));
    assert_eq!(system.ok(&["step", "run", "-n", "1", "--overlap", &job, "--", "echo", "beside"]), "beside\n");
    let second = system.spawn(&["step", "run", "-n", "1", &job, "--", "echo", "behind"]);
    let running = system.json(&["step", "list", "--json"])["steps"].clone();
    assert_eq!((running.as_array().map(Vec::len), &running[0]["ended"]), (Some(1), &serde_json::Value::Null));
    let mut watching = system.spawn(&["step", "attach", &format!("{job}.1"), "-l"]);
    system.ok(&["step", "end", &format!("{job}.1")]);
    assert_eq!(first.wait().expect("it ends").code(), Some(128 + 15));
    let waited = second.wait_with_output().expect("it ends");
    assert_eq!((waited.status.code(), waited.stdout.as_slice()), (Some(0), &b"behind\n"[..]));
    assert!(watching.wait().expect("it ends").success());
}

/// SL-R-25: neither gateway nor ledger, planner or executor need live as long as a step (M-STEP-5).
#[test]
fn what_a_step_says_comes_whole_though_everything_but_it_is_started_anew() {
    let mut system = System::start(2);
    let job = with_job(&system);
    let say = "for i in $(seq 1 400); do echo $MUSTER_TASK_RANK $i; sleep 0.02; done; cat; exit 3";
    let mut step = system.spawn(&["step", "run", "-N", "2", &job, "--", "sh", "-c", say]);
    let mut output = BufReader::new(step.stdout.take().expect("it is piped"));
    let mut text = String::new();
    for _ in 0..20 {
        output.read_line(&mut text).expect("it can be read");
    }
    system.stop();
    system.restart(&NODES);
    for _ in 0..200 {
        output.read_line(&mut text).expect("it can be read");
    }
    system.signal(Signal::SIGKILL);
    system.restart(&NODES);
    output.read_to_string(&mut text).expect("it can be read");
    let status = step.wait().expect("it ends").code();
    let mut of_ranks = [String::new(), String::new()];
    for line in text.lines() {
        let (rank, number) = line.split_once(' ').unwrap_or_else(|| panic!("`{line}`"));
        of_ranks[rank.parse::<usize>().expect("a rank")] += &format!("{number}\n");
    }
    let expected: String = (1..=400).map(|number| format!("{number}\n")).collect();
    assert!(of_ranks.iter().all(|said| *said == expected), "{of_ranks:?}");
    assert_eq!(status, Some(3));
    system.wait_until("the step has ended", || {
        system.json(&["step", "list", &job, "--json"])["steps"][0]["exit_status"]["code"] == 3
    });
}

fn client(system: &System) -> Client {
    Client::new(Endpoint::Unix(system.path("data/muster.sock")))
}

/// A job of two components without a program of its own.
fn allocation(system: &System) -> JobSpec {
    let path = vec![
        LevelCount { level: Level::Node, count: Count::exactly(1) },
        LevelCount { level: Level::Core, count: Count::exactly(2) },
    ];
    let component = Component {
        alternatives: vec![Alternative {
            requests: vec![Request { path, ..Request::default() }],
            ..Alternative::default()
        }],
        ..Component::default()
    };
    let working_directory = system.path("").to_string_lossy().into_owned();
    JobSpec { name: "interactive".into(), components: vec![component; 2], working_directory, ..JobSpec::default() }
}

fn running(client: &mut Client, job: JobId) -> JobView {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let view = client.job(job, Moment::Now).expect("it can be shown").job;
        if view.state == JobState::Running {
            return view;
        }
        assert!(std::time::Instant::now() < deadline, "job {job} is {:?}", view.state);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// SL-C-21, SL-I-12
#[test]
fn a_client_holds_resources_runs_steps_on_their_components_and_says_how_it_ends() {
    let system = System::start(2);
    let mut client = client(&system);
    for (code, word) in [(0, OutcomeWord::Completed), (3, OutcomeWord::Failed)] {
        let job = client.submit(CommandId::new_now(), &[allocation(&system)]).expect("it is accepted").jobs[0];
        client.keep_job(CommandId::new_now(), job, Some(60)).expect("it waits or runs");
        let view = running(&mut client, job);
        let group = |component: u32, rank: u32, argv: &[&str]| StepGroup {
            component,
            places: vec![StepPlace {
                node: view.nodes[component as usize].clone(),
                ranks: [rank].into_iter().collect(),
                cores: None,
            }],
            programs: vec![StepProgram {
                ranks: [rank].into_iter().collect(),
                argv: argv.iter().map(|word| (*word).into()).collect(),
            }],
            ..StepGroup::default()
        };
        let groups = vec![group(0, 0, &["echo", "zero"]), group(1, 1, &["echo", "one"])];
        let spec = StepSpec { name: "two".into(), groups, ..StepSpec::default() };
        let step = client.launch_step(CommandId::new_now(), job, &spec, 10).expect("it fits");
        let address = muster_client::StepAddress { job, run: step.run, step: step.step };
        let mut reader = muster_client::OutputReader::of(address);
        let mut said = vec![String::new(); 2];
        let mut take = |frame: muster_schemas::step_io::Frame<'_>| {
            if let muster_schemas::step_io::Content::Output(bytes) = frame.content {
                said[frame.rank as usize] += &String::from_utf8_lossy(bytes);
            }
        };
        while reader.read(&mut client, &mut take).expect("the gateway answers") {}
        assert_eq!(said, ["zero\n", "one\n"]);
        client.conclude_job(CommandId::new_now(), job, ExitStatus::Code(code)).expect("it runs");
        let outcome = client.wait_for_job(job).expect("it ends").outcome.expect("it is over");
        assert_eq!((outcome.outcome, outcome.exit_status), (word, Some(ExitStatus::Code(code))));
    }
}

/// SL-C-21: within twice its own interval, which is at least 10 s.
#[test]
fn a_job_whose_client_is_not_heard_of_is_cancelled() {
    let system = System::start(2);
    let mut client = client(&system);
    let job = client.submit(CommandId::new_now(), &[allocation(&system)]).expect("it is accepted").jobs[0];
    client.keep_job(CommandId::new_now(), job, Some(10)).expect("it waits or runs");
    running(&mut client, job);
    let outcome = client.wait_for_job(job).expect("it ends").outcome.expect("it is over");
    assert_eq!(outcome.outcome, OutcomeWord::Cancelled);
    let events = system.ok(&["job", "events", &job.to_string()]);
    assert!(events.contains("its client no longer reports"), "{events}");
}
