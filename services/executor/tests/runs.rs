//! The executor as users see it: scripts, tasks, files, limits. With real processes, as root.

mod common;

use common::{MODES, NODE, Node, code, modes, until};
use muster_executor::ContainmentMode;
use muster_schemas::{
    JobId, PartId, RunId, StepId,
    command::Command,
    event::{EndCause, StopReason},
    job::{Checkpoint, ExitStatus, Program, WarningSignal},
    node::{NodeOrder, OrderNode},
    resources::IndexSet,
};
use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    sync::Arc,
    time::Duration,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_runs_and_its_end_is_reported() {
    let node = Node::start(ContainmentMode::Auto).await;
    let mut order = node.script(1, "echo \"$MUSTER_JOB_ID $MUSTER_RUN_ID $1 $PWD\"; echo oops >&2; exit 3");
    if let Program::Script { args, .. } = &mut order.launch.program {
        args.push("an argument".into());
    }
    let exit = node.run(order).await;
    assert_eq!((exit.status, &exit.cause), (code(3), &EndCause::Itself));
    assert!(exit.started.unwrap() <= exit.ended);
    let work = node.work("");
    assert_eq!(node.read("out-1"), format!("1 1 an argument {}\noops\n", work.display()));
    node.spool_is_empty().await;
}

/// F20
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_shims_have_to_say_is_for_the_executor_s_user_alone() {
    let node = Node::start(ContainmentMode::Auto).await;
    let mode = fs::metadata(node.spool().join("shims.log")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
}

/// A launch that is ordered twice runs once (M-EXE-1).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_launch_twice_runs_once() {
    let node = Node::start(ContainmentMode::Auto).await;
    let order = node.script(1, "echo x >> starts");
    node.launch(order.clone()).await;
    node.launch(order.clone()).await;
    node.ended(1).await;
    node.spool_is_empty().await;
    node.launch(order).await;
    assert_eq!(node.run(node.script(2, "exit 0")).await.status, code(0));
    assert_eq!(node.read("starts"), "x\n");
    assert_eq!(node.ends_told(1), 1, "the late order has led to another command");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_have_ranks_and_a_node_file() {
    let node = Node::start(ContainmentMode::Auto).await;
    let line = "echo $MUSTER_TASK_RANK $MUSTER_LOCAL_RANK $MUSTER_NTASKS $MUSTER_NODELIST $MUSTER_NODE_RANK";
    let mut order = node.tasks(
        1,
        &[
            "sh",
            "-c",
            &format!("{line}; [ $MUSTER_TASK_RANK = 3 ] && cat $MUSTER_NODEFILE > nodes; exit $MUSTER_TASK_RANK"),
        ],
    );
    let other = |tasks| OrderNode { name: "n0".into(), tasks, component: 0, facts: None };
    order.nodes = vec![other(2), OrderNode { name: NODE.into(), tasks: 3, component: 0, facts: None }].into();
    (order.node_index, order.first_rank, order.total_tasks) = (1, 2, 5);
    let exit = node.run(order).await;
    assert_eq!(exit.status, code(2), "the first status by rank that is not 0");
    let output = node.read("out-1");
    let mut lines: Vec<&str> = output.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["2 0 5 n0,n1 1", "3 1 5 n0,n1 1", "4 2 5 n0,n1 1"]);
    assert_eq!(node.read("nodes"), "n0\nn0\nn1\nn1\nn1\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_files_follow_their_patterns() {
    let node = Node::start(ContainmentMode::Auto).await;
    let mut order = node.tasks(1, &["sh", "-c", "echo out; echo err >&2"]);
    order.job = JobId::task(12, 3);
    Arc::make_mut(&mut order.nodes)[0].tasks = 2;
    order.total_tasks = 2;
    order.launch.stdout = Some("%A.%a.%t.%x.%N.%u".into());
    order.launch.stderr = Some("err-%j".into());
    fs::write(node.work("err-12_3"), "old\n").unwrap();
    node.run(order.clone()).await;
    assert_eq!(node.read("12.3.0.test.n1.root"), "out\n");
    assert_eq!(node.read("12.3.1.test.n1.root"), "out\n");
    assert_eq!(node.read("err-12_3"), "err\nerr\n");
    order.part = PartId::new(RunId(2), 0);
    order.launch.append_output = true;
    order.launch.stdout = None;
    node.run(order).await;
    assert_eq!(node.read("err-12_3"), "err\nerr\nerr\nerr\n");
    assert_eq!(node.read("muster-12_3.out").trim_end_matches('\n').lines().count(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_share_an_output_file_empty_it_once() {
    let node = Node::start(ContainmentMode::Auto).await;
    fs::write(node.work("out-1"), "old\n").unwrap();
    let mut order = node.tasks(1, &["sh", "-c", "echo $MUSTER_TASK_RANK"]);
    Arc::make_mut(&mut order.nodes).push(OrderNode { name: "n2".into(), tasks: 1, component: 0, facts: None });
    order.node_index = 1;
    order.first_rank = 1;
    node.run(order.clone()).await;
    // The other node's part, as if it arrived later: the same run in another spool.
    let other = Node::start(ContainmentMode::Auto).await;
    order.node_index = 0;
    order.first_rank = 0;
    other.run(order).await;
    assert_eq!(node.read("out-1"), "1\n0\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_tasks_holds_its_place_until_it_is_stopped() {
    let node = Node::start(ContainmentMode::Auto).await;
    let mut order = node.script(1, "echo never");
    Arc::make_mut(&mut order.nodes).insert(0, OrderNode { name: "n0".into(), tasks: 1, component: 0, facts: None });
    order.node_index = 1;
    node.launch(order).await;
    node.started(1).await;
    node.stop(1, StopReason::PeerEnded, 5).await;
    let exit = node.ended(1).await;
    assert_eq!((exit.status, exit.cause), (None, EndCause::Itself));
    assert!(!node.work("out-1").exists());
}

/// Tests of runs, steps, tasks and crashes try every way of containment that there is.
#[test]
fn every_way_of_containment_is_there_to_be_tried() {
    let found = modes();
    assert!(found.contains(&ContainmentMode::Process), "{found:?}");
    let missing: Vec<_> = MODES.into_iter().filter(|mode| !found.contains(mode)).collect();
    if !missing.is_empty() {
        muster_surroundings::skipped(&format!("tests of runs do without {missing:?}, which this host does not have"));
    }
}

/// A run over its walltime is warned, then ended by force (M-EXE-4, OAR-S-23).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_over_its_walltime_is_warned_then_ended_by_force() {
    for mode in modes() {
        let node = Node::start(mode).await;
        // Only the script is warned; its children would say so.
        let child = "(trap 'echo child' USR1; while :; do sleep 0.05; done)";
        let wait = "trap 'echo usr1' USR1; trap 'echo term' TERM; while :; do sleep 0.05; done";
        let mut order = node.script(1, &format!("{child} & {wait}"));
        order.walltime_seconds = Some(2);
        order.launch.warning = Some(WarningSignal { signal: 10, seconds_before_end: 1 });
        let exit = node.run(order).await;
        assert_eq!((exit.status, exit.cause), (Some(ExitStatus::Signal(9)), EndCause::Walltime), "{mode:?}");
        assert_eq!(node.read("out-1").replace("Terminated\n", ""), "usr1\nterm\n", "{mode:?}");
        let lived = exit.ended.micros_since(exit.started.unwrap());
        assert!(lived >= 3_000_000, "{lived} us under {mode:?}: walltime and grace were cut");
        assert_eq!(signals_told(&node), [(10, true, 1)], "{mode:?}: before its end is told, so is this");
    }
}

/// OAR-S-02, OAR-S-03, OAR-S-06, OAR-X-11: all processes of a suspended run stand still, its walltime does too, and they continue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_run_stands_still_and_its_walltime_too() {
    for mode in modes() {
        let node = Node::start(mode).await;
        let mut order = node.script(1, "trap 'echo continued' CONT; while :; do echo x; sleep 0.05; done");
        order.walltime_seconds = Some(2);
        order.kill_grace_seconds = 0;
        node.launch(order).await;
        node.started(1).await;
        node.order(NodeOrder::Suspend { part: PartId::new(RunId(1), 0) }).await;
        // It is stopped once its output has not grown for longer than it otherwise would.
        let mut length = 0;
        until("a standstill", || {
            std::thread::sleep(Duration::from_millis(300));
            let now = node.read("out-1").len();
            let still = now == length && now > 0;
            length = now;
            still.then_some(())
        })
        .await;
        // The whole walltime passes, as another run shows.
        let mut other = node.script(2, "sleep 1000");
        other.walltime_seconds = Some(2);
        other.kill_grace_seconds = 0;
        assert_eq!(node.run(other).await.cause, EndCause::Walltime);
        assert_eq!(node.read("out-1").len(), length, "{mode:?}");
        assert_eq!(node.ends_told(1), 0, "the walltime ran on under {mode:?}");
        node.order(NodeOrder::Resume { part: PartId::new(RunId(1), 0) }).await;
        until("its continuation", || node.read("out-1").contains("continued").then_some(())).await;
        assert_eq!(node.ended(1).await.cause, EndCause::Walltime);
    }
}

/// The signals that the ledger was told of, with whether each was due, and how many processes took it.
fn signals_told(node: &Node) -> Vec<(u8, bool, u32)> {
    let told = |command: &Command| match command {
        Command::NodeSignalled { signal, was_due, processes, .. } => Some((*signal, *was_due, *processes)),
        _ => None,
    };
    node.notes.lock().unwrap().commands.iter().filter_map(|envelope| told(&envelope.command)).collect()
}

/// OAR-S-30: the ledger is told of each signal, and of how many processes took it; only once, and by the first node alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signals_are_told() {
    for mode in modes() {
        let node = Node::start(mode).await;
        let trap = "trap 'echo usr2' USR2; echo on; while :; do sleep 0.05; done";
        node.launch(node.script(1, trap)).await;
        let mut elsewhere = node.tasks(2, &["sh", "-c", &format!("exec > out-2; {trap}")]);
        let first = OrderNode { name: "n0".into(), tasks: 1, component: 0, facts: None };
        Arc::make_mut(&mut elsewhere.nodes).insert(0, first);
        elsewhere.node_index = 1;
        node.launch(elsewhere).await;
        node.text("out-1").await;
        node.text("out-2").await;
        for run in [2, 1] {
            node.order(NodeOrder::SignalStep { part: PartId::new(RunId(run), 0), step: StepId(0), signal: 12 }).await;
        }
        until("the report", || (!signals_told(&node).is_empty()).then_some(())).await;
        for run in [2, 1] {
            node.stop(run, StopReason::Cancelled, 0).await;
            node.ended(run).await;
        }
        assert_eq!(signals_told(&node), [(12, false, 1)], "{mode:?}");
    }
}

/// OAR-S-08: it is asked to end as any other is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_run_can_be_stopped() {
    for mode in modes() {
        let node = Node::start(mode).await;
        node.launch(node.script(1, "trap 'echo term; exit 7' TERM; echo on; while :; do sleep 0.05; done")).await;
        node.text("out-1").await;
        node.order(NodeOrder::Suspend { part: PartId::new(RunId(1), 0) }).await;
        node.stop(1, StopReason::Cancelled, 20).await;
        let exit = node.ended(1).await;
        assert_eq!((exit.status, exit.cause), (code(7), EndCause::Killed), "{mode:?}");
    }
}

/// SL-C-30: by its own signal or somebody else's; the executor knows nothing of that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_has_been_stopped_hears_that_it_is_to_end() {
    for mode in modes() {
        let node = Node::start(mode).await;
        node.launch(
            node.script(1, "trap 'echo term; exit 7' TERM; echo on; kill -STOP $$; while :; do sleep 0.05; done"),
        )
        .await;
        node.text("out-1").await;
        node.stop(1, StopReason::Cancelled, 600).await;
        let exit = node.ended(1).await;
        assert_eq!((exit.status, exit.cause), (code(7), EndCause::Killed), "{mode:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signals_reach_all_processes() {
    for mode in modes() {
        let node = Node::start(mode).await;
        let script = "(trap 'echo child; exit' USR2; echo on; while :; do sleep 0.05; done) & trap 'echo parent' USR2; wait; wait";
        node.launch(node.script(1, script)).await;
        node.text("out-1").await;
        node.started(1).await;
        node.order(NodeOrder::Signal { part: PartId::new(RunId(1), 0), signal: 12 }).await;
        node.ended(1).await;
        let output = node.read("out-1");
        let mut lines: Vec<&str> = output.lines().filter(|line| !line.starts_with("User")).collect();
        lines.sort_unstable();
        assert_eq!(lines, ["child", "on", "parent"], "{mode:?}");
    }
}

/// OAR-T-23: it makes way by itself, long before the time to save is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preempted_run_is_told_to_save_first() {
    let node = Node::start(ContainmentMode::Auto).await;
    let mut order = node.script(1, "trap 'echo saved; exit 0' USR1; echo on; while :; do sleep 0.05; done");
    order.checkpoint = Some(Checkpoint { signal: 10, seconds_before_end: 20 });
    node.launch(order).await;
    node.text("out-1").await;
    node.stop(1, StopReason::Preempted, 20).await;
    let exit = node.ended(1).await;
    assert_eq!((exit.status, exit.cause), (code(0), EndCause::Killed));
    assert!(node.read("out-1").contains("saved"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_longer_walltime_is_obeyed() {
    let node = Node::start(ContainmentMode::Auto).await;
    let mut order = node.script(1, "sleep 3; exit 5");
    order.walltime_seconds = Some(2);
    node.launch(order).await;
    node.started(1).await;
    node.order(NodeOrder::SetWalltime { part: PartId::new(RunId(1), 0), walltime_seconds: Some(60) }).await;
    assert_eq!(node.ended(1).await.status, code(5));
}

/// Nothing is left of a run, not even processes that fork away or change session (M-EXE-3).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_a_run() {
    // Forks away, changes session, ignores all signals it can, and has closed its files.
    let daemons = "trap '' TERM HUP; for i in 1 2 3; do setsid sh -c '(trap \"\" TERM HUP; exec sleep 1000) & ' < /dev/null > /dev/null 2>&1; done; \
                   (setsid sh -c 'exec sleep 1000' &) ; echo on";
    for mode in modes() {
        let node = Node::start(mode).await;
        node.launch(node.script(1, &format!("{daemons}; read line < release; exit 0"))).await;
        nix::unistd::mkfifo(&node.work("release"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        node.text("out-1").await;
        until("four daemons", || (node.processes_of(1).len() >= 5).then_some(())).await;
        fs::write(node.work("release"), "go\n").unwrap();
        let exit = node.ended(1).await;
        assert_eq!(node.processes_of(1), [0; 0], "{mode:?}");
        assert_eq!(exit.cause, EndCause::Itself);
        assert_eq!(groups_of(&node), [""; 0], "{mode:?}");
    }
}

fn groups_of(node: &Node) -> Vec<String> {
    let mut groups = vec![];
    for hierarchy in fs::read_dir("/sys/fs/cgroup").unwrap().flatten() {
        for executor in fs::read_dir(hierarchy.path().join("muster")).into_iter().flatten().flatten() {
            groups.extend(
                fs::read_dir(executor.path())
                    .into_iter()
                    .flatten()
                    .flatten()
                    .filter(|entry| {
                        entry.file_name().to_string_lossy().starts_with("run-")
                            && executor.file_name().to_string_lossy()
                                == muster_executor::containment::instance(NODE, &node.spool().canonicalize().unwrap())
                    })
                    .map(|entry| entry.path().display().to_string()),
            );
        }
    }
    groups
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn use_of_resources_is_counted() {
    for mode in modes() {
        let node = Node::start(mode).await;
        let mut order = node.script(
            1,
            "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; head -c 50000000 /dev/zero | tail -c 1 | wc -c",
        );
        order.memory_bytes = 500_000_000;
        let exit = node.run(order).await;
        assert_eq!(exit.status, code(0), "{mode:?}");
        assert!(exit.usage.cpu_time_micros > 20_000, "{:?} under {mode:?}", exit.usage);
        assert!(exit.usage.peak_memory_bytes > 500_000, "{:?} under {mode:?}", exit.usage);
    }
}

/// OAR-X-11: the memory of a job is that of its group.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_over_its_memory_is_ended_and_says_so() {
    let node = Node::start(ContainmentMode::Auto).await;
    let mut order = node.script(1, "x=$(head -c 200000000 /dev/zero | tr \"\\0\" x); echo ${#x}");
    order.memory_bytes = 30_000_000;
    let exit = node.run(order).await;
    assert_eq!((exit.status, exit.cause), (Some(ExitStatus::Signal(9)), EndCause::OutOfMemory));
}

/// A run belongs to its user (M-EXE-5).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_belongs_to_its_user() {
    let node = Node::start(ContainmentMode::Auto).await;
    let mut order = node.script(1, "id -u; id -g; id -G; umask; echo $HOME; touch $MUSTER_TMPDIR/x && echo tmp; cat $MUSTER_NODEFILE; stat -c %a:%u $MUSTER_NODEFILE; cat ../spool/runs/1/log");
    order.owner.user = "nobody".into();
    order.umask = Some(0o027);
    let exit = node.run(order).await;
    assert_eq!(exit.status, code(1), "the order holds the environment and is not for others to read");
    let output = node.read("out-1");
    assert!(output.starts_with("65534\n65534\n65534\n0027\n/nonexistent\ntmp\nn1\n600:65534\n"), "{output}");
    assert!(output.contains("Permission denied"), "{output}");
    let meta = fs::metadata(node.work("out-1")).unwrap();
    assert_eq!((meta.uid(), meta.mode() & 0o777), (65534, 0o640));
}

/// OAR-J-17: a directory that cannot be entered, and a file that cannot be written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_started_says_why() {
    let node = Node::start(ContainmentMode::Auto).await;
    let mut run = 0;
    let mut order = |change: &dyn Fn(&mut muster_schemas::node::LaunchOrder)| {
        run += 1;
        let mut order = node.tasks(run, &["true"]);
        change(&mut order);
        order
    };
    let program = |argv: &[&str]| Program::Tasks { argv: argv.iter().map(|arg| (*arg).into()).collect() };
    let script = |text: &str| Program::Script { text: text.into(), args: vec![] };
    fs::write(node.work("plain"), "x").unwrap();
    let cases: Vec<(muster_schemas::node::LaunchOrder, &str)> = vec![
        (
            order(&|order| order.working_directory = "/no/such/place".into()),
            "the working directory `/no/such/place` cannot be entered: No such file or directory",
        ),
        (order(&|order| order.owner.user = "no-such-user".into()), "user `no-such-user` does not exist on this node"),
        (
            order(&|order| order.launch.program = program(&["no-such-command"])),
            "command `no-such-command` not found in PATH (/usr/bin:/bin)",
        ),
        (
            order(&|order| order.launch.program = program(&["./plain"])),
            "task 0 cannot be started: `./plain`: Permission denied",
        ),
        (order(&|order| order.launch.program = program(&[])), "the command is empty"),
        (
            order(&|order| order.launch.program = script("#!/no/such/shell\n")),
            "the script cannot be started: the interpreter of its first line `#!/no/such/shell` does not exist",
        ),
        (
            order(&|order| order.launch.program = script("echo x\n")),
            "the script cannot be started: its first line names no interpreter (`#!/bin/sh`)",
        ),
        (
            order(&|order| order.launch.stdout = Some("no/such/out".into())),
            "the output file `no/such/out` cannot be opened: No such file or directory",
        ),
        (
            order(&|order| order.launch.stdin = Some("no-input".into())),
            "the input file `no-input` cannot be opened: No such file or directory",
        ),
        (
            order(&|order| {
                order.owner.user = "nobody".into();
                order.working_directory = "/root".into()
            }),
            "the working directory `/root` cannot be entered: Permission denied",
        ),
        (order(&|order| order.node_index = 5), "the order is for node 5 of 1"),
    ];
    for (order, expected) in cases {
        let exit = node.run(order).await;
        assert_eq!((exit.status, exit.started), (None, None));
        assert_eq!(exit.cause, EndCause::LaunchFailed(expected.into()));
    }
    node.spool_is_empty().await;
    assert_eq!(groups_of(&node), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_run_that_is_stopped_has_ended_and_never_starts() {
    let node = Node::start(ContainmentMode::Auto).await;
    node.stop(1, StopReason::Cancelled, 1).await;
    let exit = node.ended(1).await;
    assert_eq!((exit.status, exit.cause, exit.started), (None, EndCause::Killed, None));
    node.launch(node.script(1, "echo x >> starts")).await;
    assert_eq!(node.run(node.script(2, "exit 0")).await.status, code(0));
    assert!(!node.work("starts").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_run_inside_their_run_and_end_with_it() {
    for mode in modes() {
        let node = Node::start(mode).await;
        node.launch(node.script(1, "echo on; read line < release")).await;
        nix::unistd::mkfifo(&node.work("release"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        node.started(1).await;
        let step = |number, argv: &[&str]| {
            let mut order = node.tasks(1, argv);
            order.step = StepId(number);
            order.launch.stdout = Some(format!("step-{number}"));
            order
        };
        node.launch(step(1, &["sh", "-c", "echo $MUSTER_STEP_ID; exit 4"])).await;
        let ended = |number| {
            move |command: &muster_schemas::command::Command| match command {
                muster_schemas::command::Command::NodeStepEnded { step: StepId(step), exit, .. } if *step == number => {
                    Some(exit.clone())
                }
                _ => None,
            }
        };
        assert_eq!(node.told("the end of step 1", ended(1)).await.status, code(4), "{mode:?}");
        assert_eq!(node.read("step-1"), "1\n");
        node.launch(step(2, &["sh", "-c", "setsid sleep 1000 & echo on; sleep 1000"])).await;
        node.text("step-2").await;
        fs::write(node.work("release"), "go\n").unwrap();
        assert_eq!(node.ended(1).await.status, code(0), "{mode:?}");
        node.told("the end of step 2", ended(2)).await;
        node.spool_is_empty().await;
        let sleeps = muster_executor::containment::processes::marked(&[format!("PWD={}", node.work("").display())]);
        assert_eq!(sleeps, [0; 0], "{mode:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_are_bound_to_their_cores() {
    for mode in modes() {
        let node = Node::start(mode).await;
        let mut order = node.script(1, "grep Cpus_allowed_list /proc/self/status; ulimit -Sn");
        order.cores = IndexSet::from_range(1, 1);
        node.run(order).await;
        assert_eq!(node.read("out-1"), "Cpus_allowed_list:\t1\n1024\n", "{mode:?}");
        let mut order = node.script(2, "grep Cpus_allowed_list /proc/self/status");
        order.cores = IndexSet::from_range(1, 999);
        node.run(order).await;
        assert_ne!(node.read("out-2"), "Cpus_allowed_list:\t1\n", "a core that the host has not binds nobody");
    }
}

/// A stop does not wait for the prolog, and nothing of the job is started after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_is_to_end_during_its_prolog_starts_nothing() {
    let mut node = Node::start(ContainmentMode::Auto).await;
    node.stop_executor().await;
    let program = |name: &str, text: &str| {
        let path = node.work(name);
        fs::write(&path, format!("#!/bin/sh\ncd {}\n{text}\n", node.work("").display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Some(path)
    };
    let (prolog, epilog) = (program("prolog", "touch begun; sleep 600"), program("epilog", "touch over"));
    (node.config.prolog, node.config.epilog, node.config.site_program_timeout_seconds) = (prolog, epilog, 600);
    node.start_executor().await;
    node.launch(node.script(1, "touch ran")).await;
    until("the prolog", || node.work("begun").exists().then_some(())).await;
    node.stop(1, StopReason::Cancelled, 1).await;
    let exit = node.ended(1).await;
    assert_eq!((exit.status, exit.cause, exit.started), (None, EndCause::Killed, None));
    assert_eq!(["ran", "over"].map(|name| node.work(name).exists()), [false, true]);
    assert_eq!(muster_executor::site::unfit(node.spool()), None);
}
