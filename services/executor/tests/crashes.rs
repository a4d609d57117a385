//! The fate of runs when executor, fork server, shim, ledger or machine die.

mod common;

use common::{Node, code, modes, shim_program, until};
use muster_executor::{ContainmentMode, containment::processes, fork_server::ForkServer, protocol};
use muster_schemas::{
    RunId, codec,
    event::{EndCause, StopReason},
    node::NodeOrder,
};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

/// Runs continue without their executor and are found again (M-EXE-2).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_go_on_without_their_executor_and_are_found_again() {
    let mut node = Node::start(ContainmentMode::Auto).await;
    node.launch(node.script(1, "trap 'echo term; exit 7' TERM; echo on; while :; do sleep 0.05; done")).await;
    node.started(1).await;
    node.text("out-1").await;
    node.stop_executor().await;
    assert!(!node.processes_of(1).is_empty());
    node.start_executor().await;
    node.launch(node.script(1, "echo again >> out-1")).await;
    node.stop(1, StopReason::Cancelled, 20).await;
    let exit = node.ended(1).await;
    assert_eq!((exit.status, exit.cause), (code(7), EndCause::Killed));
    assert!(exit.started.is_some());
    assert!(!node.read("out-1").contains("again"));
    node.spool_is_empty().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_without_executor_is_reported_by_the_next() {
    let mut node = Node::start(ContainmentMode::Auto).await;
    node.launch(node.script(1, "while [ ! -e go ]; do sleep 0.01; done; exit 3")).await;
    node.started(1).await;
    node.stop_executor().await;
    fs::write(node.work("go"), "").unwrap();
    until("the result", || node.has_result(1).then_some(())).await;
    node.start_executor().await;
    assert_eq!(node.ended(1).await.status, code(3));
    assert_eq!(node.ends_told(1), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_says_which_runs_it_remembers_when_they_are_long_gone() {
    let mut node = Node::start(ContainmentMode::Auto).await;
    node.launch(node.script(7, "true")).await;
    node.ended(7).await;
    node.spool_is_empty().await;
    node.stop_executor().await;
    node.start_executor().await;
    let notes = node.notes.lock().unwrap();
    let greetings: Vec<_> = notes.commands.iter().filter_map(|envelope| greeting(&envelope.command)).collect();
    assert_eq!(greetings, [None, Some(RunId(7))]);
}

fn greeting(command: &muster_schemas::command::Command) -> Option<Option<RunId>> {
    match command {
        muster_schemas::command::Command::NodeHello { highest_run, .. } => Some(*highest_run),
        _ => None,
    }
}

/// OAR-J-06: a node tells by itself how a run ended, as soon as it is heard, also after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_waits_for_the_ledger() {
    let mut node = Node::start(ContainmentMode::Auto).await;
    node.notes.lock().unwrap().silent = true;
    node.launch(node.script(1, "exit 3")).await;
    until("the result", || node.has_result(1).then_some(())).await;
    node.stop_executor().await;
    node.notes.lock().unwrap().silent = false;
    node.start_executor().await;
    assert_eq!(node.ended(1).await.status, code(3));
    node.spool_is_empty().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_order_comes_with_the_next_heartbeat() {
    let node = Node::start(ContainmentMode::Auto).await;
    let order = NodeOrder::from(node.script(1, "exit 0"));
    node.notes.lock().unwrap().orders.push(order);
    assert_eq!(node.ended(1).await.status, code(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_shim_is_killed_is_lost_and_nothing_is_left_of_it() {
    for mode in modes() {
        let node = Node::start(mode).await;
        node.launch(node.script(1, "setsid sleep 1000 & echo on; sleep 1000")).await;
        node.started(1).await;
        node.text("out-1").await;
        processes::signal_all(&[shim_of(&node, 1)], libc::SIGKILL);
        let exit = node.ended(1).await;
        assert_eq!(exit.cause, EndCause::Lost("its shim was killed".into()), "{mode:?}");
        assert!(exit.started.is_some());
        assert_eq!(node.processes_of(1), [0; 0], "{mode:?}");
    }
}

/// The process that has the log of a run open.
fn shim_of(node: &Node, run: u64) -> i32 {
    let claim = node.spool().canonicalize().unwrap().join(format!("runs/{run}/log"));
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let holds = |process: &i32| {
        let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        files.into_iter().any(|file| fs::read_link(file.path()).is_ok_and(|target| target == claim))
    };
    all.into_iter().find(holds).expect("a shim")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fork_server_that_dies_is_replaced_and_shims_live_on() {
    let node = Node::start(ContainmentMode::Auto).await;
    node.launch(node.script(1, "while [ ! -e go ]; do sleep 0.01; done; exit 3")).await;
    node.started(1).await;
    for run in 2..5 {
        let server = until("a fork server", || fork_server_of(std::process::id() as i32)).await;
        processes::signal_all(&[server], libc::SIGKILL);
        assert_eq!(node.run(node.script(run, "echo x >> \"starts-$MUSTER_RUN_ID\"")).await.status, code(0));
        assert_eq!(node.read(&format!("starts-{run}")), "x\n");
    }
    fs::write(node.work("go"), "").unwrap();
    assert_eq!(node.ended(1).await.status, code(3));
}

#[test]
fn shims_are_not_started_from_a_program_of_another_version() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    for (lines, found) in
        [("echo 0.0.1+0.0 >&0; read -r orders", "found version 0.0.1+0.0"), ("exit 2", "found a program that ended")]
    {
        let program = folder.path().join("program");
        fs::write(&program, format!("#!/bin/sh\n{lines}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let error = ForkServer::start(&program, folder.path()).unwrap_err().to_string();
        assert!(error.starts_with("expected muster of version ") && error.ends_with(found), "{error}");
    }
    ForkServer::start(&shim_program(), folder.path()).unwrap();
}

fn fork_server_of(executor: i32) -> Option<i32> {
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let serves = |process: &i32| {
        let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let alive = fields.next().is_some_and(|state| state != "Z");
        alive
            && fields.next() == Some(&executor.to_string())
            && command.split(|byte| *byte == 0).any(|arg| arg == b"shim-server")
    };
    all.into_iter().find(serves)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_state_of_a_spool_is_continued_from() {
    let mut node = Node::start(ContainmentMode::Auto).await;
    for run in 1..=5 {
        node.launch(node.script(run, "echo x >> \"starts-$MUSTER_RUN_ID\"; while [ ! -e go ]; do sleep 0.01; done"))
            .await;
        node.started(run).await;
    }
    node.stop_executor().await;
    let log = |run: u64| node.spool().join(format!("runs/{run}/log"));
    let saved: Vec<Vec<u8>> = (1..=5).map(|run| fs::read(log(run)).unwrap()).collect();
    let order = |run: usize| protocol::frames(&saved[run - 1]).next().unwrap();
    fs::write(node.work("go"), "").unwrap();
    for run in 1..=5 {
        until("the result", || node.has_result(run).then_some(())).await;
    }
    // Each spool is restored by hand to its state when something died.
    fs::create_dir(node.spool().join("runs/6")).unwrap();
    fs::write(log(6), &order(1)[..50]).unwrap(); // the executor, while it wrote an order
    fs::write(log(2), order(2)).unwrap(); // the executor, before it asked for a shim
    fs::write(log(3), &order(3)[..50]).unwrap(); // the machine, while the order was written
    fs::write(log(4), of_other_boot(order(4))).unwrap(); // the machine, before there was a shim
    fs::write(log(5), &saved[4]).unwrap(); // the shim
    node.start_executor().await;
    for run in [1, 2] {
        assert_eq!(node.ended(run).await.status, code(0));
    }
    for (run, why) in [(3, "damaged"), (4, "the node was restarted"), (5, "its shim was killed")] {
        let exit = node.ended(run).await;
        assert!(matches!(&exit.cause, EndCause::Lost(text) if text.contains(why)), "run {run}: {exit:?}");
    }
    assert_eq!(node.run(node.script(6, "echo x >> starts-6")).await.status, code(0), "it had not begun before");
    node.spool_is_empty().await;
    // Run 2 was started once before its spool was restored by hand, and once after.
    for (run, starts) in [(1, "x\n"), (2, "x\nx\n"), (3, "x\n"), (4, "x\n"), (5, "x\n"), (6, "x\n")] {
        assert_eq!(node.read(&format!("starts-{run}")), starts, "run {run}");
    }
}

/// An order's frame in a log from an earlier boot of the machine.
fn of_other_boot(order: &[u8]) -> Vec<u8> {
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let (boot_id, mut order) = (boot_id.trim().as_bytes(), order.to_vec());
    let at = order.windows(boot_id.len()).position(|window| window == boot_id).unwrap();
    order[at] = if order[at] == b'0' { b'1' } else { b'0' };
    let checksum = crc32fast::hash(&order[codec::HEADER_BYTES..]);
    order[6..10].copy_from_slice(&checksum.to_le_bytes());
    order
}

/// Executors and fork servers are killed at random moments of many launches; every run is started exactly
/// once (M-EXE-6).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_at_random_moments_double_and_lose_nothing() {
    const RUNS: u64 = 200;
    let seed = std::env::var("MUSTER_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand::random);
    println!("MUSTER_TEST_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let folder = tempfile::tempdir().unwrap();
    let kills = until_all_ended(folder.path(), RUNS, &mut random).await;
    assert!(kills > 0, "the executor was never killed");
    for run in 1..=RUNS {
        let cause = fs::read_to_string(folder.path().join(format!("ended-{run}"))).unwrap();
        assert_eq!(
            fs::read_to_string(folder.path().join(format!("starts-{run}"))).unwrap_or_default(),
            "x\n",
            "run {run}: {cause}, seed {seed}"
        );
        assert!(cause.contains("Itself") || cause.contains("launched here before"), "run {run}: {cause}, seed {seed}");
    }
}

async fn until_all_ended(folder: &Path, runs: u64, random: &mut StdRng) -> u32 {
    let mut kills = 0;
    loop {
        let mut executor = executor_process(folder, runs);
        let process = executor.id() as i32;
        // The last rounds are left alone, so that the test ends.
        let patience = Duration::from_millis(if kills < 40 { random.random_range(1..80) } else { 60_000 });
        let kill_fork_server = random.random_bool(0.3);
        let waited = tokio::time::timeout(patience, async {
            loop {
                if let Some(status) = executor.try_wait().unwrap() {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        if let Ok(status) = waited.await {
            assert!(status.success(), "the executor failed: {status}");
            return kills;
        }
        kills += 1;
        if kill_fork_server && let Some(server) = fork_server_of(process) {
            processes::signal_all(&[server], libc::SIGKILL);
            tokio::time::sleep(Duration::from_millis(random.random_range(0..20))).await;
        }
        executor.kill().unwrap();
        executor.wait().unwrap();
    }
}

fn executor_process(folder: &Path, runs: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "executor_for_kills", "--nocapture"])
        .env("MUSTER_TEST_EXECUTOR", folder)
        .env("MUSTER_TEST_RUNS", runs.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Not a test: the process that the test above kills. It orders all runs whose end it has not seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn executor_for_kills() {
    let Ok(folder) = std::env::var("MUSTER_TEST_EXECUTOR") else { return };
    let runs: u64 = std::env::var("MUSTER_TEST_RUNS").unwrap().parse().unwrap();
    let folder = PathBuf::from(folder);
    let node = Node::start_in(&folder).await;
    let seen = |run: u64| folder.join(format!("ended-{run}"));
    let missing: Vec<u64> = (1..=runs).filter(|run| !seen(*run).exists()).collect();
    for run in &missing {
        let mut order = node.script(*run, "echo x >> \"starts-$MUSTER_RUN_ID\"");
        order.working_directory = folder.display().to_string();
        order.launch.stdout = Some("/dev/null".into());
        node.launch(order).await;
    }
    for run in missing {
        let exit = node.ended(run).await;
        let unfinished = folder.join("ended.new");
        fs::write(&unfinished, format!("{:?}", exit.cause)).unwrap();
        fs::rename(&unfinished, seen(run)).unwrap();
    }
}
