//! Runs of tasks: parts that only hold resources, grow, shrink, leave a node and come back, and the steps in them. With
//! real processes, as root.

mod common;

use common::{NODE, Node, code, modes, until};
use muster_executor::ContainmentMode;
use muster_schemas::{
    PartId, RunId, StepId,
    command::Command,
    event::{EndCause, NodeExit, StopReason},
    job::Program,
    node::{LaunchOrder, NodeOrder},
    resources::IndexSet,
};
use nix::{
    sched::{CpuSet, sched_getaffinity},
    unistd::Pid,
};
use std::{collections::BTreeSet, fs};

const RUN: u64 = 1;

/// The node's part of the run.
fn hold(node: &Node, cores: IndexSet) -> NodeOrder {
    let mut order = node.tasks(RUN, &["true"]);
    order.launch.program = Program::None;
    order.cores = cores;
    NodeOrder::Hold(Box::new(order))
}

/// A shell as a step of the run.
fn step(node: &Node, number: u32, text: &str, cores: IndexSet) -> LaunchOrder {
    let mut order = node.tasks(RUN, &["sh", "-c", text]);
    order.step = StepId(number);
    order.launch.stdout = Some(format!("step-{number}"));
    order.cores = cores;
    order
}

async fn step_ended(node: &Node, number: u32) -> NodeExit {
    node.told(&format!("the end of step {number}"), |command| match command {
        Command::NodeStepEnded { step, exit, .. } if *step == StepId(number) => Some(exit.clone()),
        _ => None,
    })
    .await
}

/// How often the start of the run was reported, without retries of one command.
fn starts_told(node: &Node) -> usize {
    let notes = node.notes.lock().unwrap();
    let starts = notes.commands.iter().filter(|envelope| matches!(envelope.command, Command::NodeStarted { .. }));
    starts.map(|envelope| envelope.id).collect::<BTreeSet<_>>().len()
}

fn first_cores(count: u32) -> IndexSet {
    IndexSet::first_n(count)
}

fn affinity_of(process: i32) -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(process)) else { return vec![] };
    (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect()
}

/// HPC-S-09, HPC-S-10
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_that_grows_or_shrinks_binds_what_runs_in_it_anew() {
    let usable = affinity_of(0);
    if usable.len() < 2 {
        return muster_surroundings::skipped("this host has one CPU");
    }
    for mode in modes() {
        let node = Node::start(mode).await;
        node.order(hold(&node, first_cores(1))).await;
        node.started(RUN).await;
        node.launch(step(&node, 1, "echo $$; exec sleep 1000", first_cores(1))).await;
        let process: i32 = node.text("step-1").await.trim().parse().unwrap();
        until("one CPU", || (affinity_of(process) == usable[..1]).then_some(())).await;
        for cores in [2, 1] {
            let resize =
                NodeOrder::Resize { part: PartId::new(RunId(RUN), 0), cores: first_cores(cores), memory_bytes: 0 };
            node.order(resize.clone()).await;
            node.order(resize).await;
            let expected = &usable[..cores as usize];
            until(&format!("{cores} CPUs under {mode:?}"), || (affinity_of(process) == expected).then_some(())).await;
        }
        node.stop(RUN, StopReason::TasksEnded, 1).await;
        node.ended(RUN).await;
        // The signal that ends the run can reach the process before the shim of the step learns of it.
        let cause = step_ended(&node, 1).await.cause;
        assert!(matches!(cause, EndCause::Killed | EndCause::Itself), "{cause:?} under {mode:?}");
        node.spool_is_empty().await;
    }
}

/// HPC-S-10
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_leaves_a_node_and_comes_back() {
    for mode in modes() {
        let node = Node::start(mode).await;
        for time in 1..=2u32 {
            node.order(hold(&node, first_cores(1))).await;
            until(&format!("start {time} under {mode:?}"), || (starts_told(&node) == time as usize).then_some(()))
                .await;
            node.order(hold(&node, first_cores(1))).await;
            node.launch(step(&node, time, "echo here; exit 3", first_cores(1))).await;
            assert_eq!(step_ended(&node, time).await.status, code(3), "{mode:?}");
            node.stop(RUN, StopReason::PeerEnded, 0).await;
            until("its end", || (node.ends_told(RUN) == time as usize).then_some(())).await;
            node.spool_is_empty().await;
        }
        assert_eq!((node.read("step-1"), node.read("step-2")), ("here\n".into(), "here\n".into()));
        // A step that has started a process is never started again, whatever its run does.
        node.launch(step(&node, 1, "echo again", first_cores(1))).await;
        node.order(hold(&node, first_cores(1))).await;
        until("a third start", || (starts_told(&node) == 3).then_some(())).await;
        assert_eq!(node.read("step-1"), "here\n", "{mode:?}");
        node.stop(RUN, StopReason::TasksEnded, 0).await;
        until("a third end", || (node.ends_told(RUN) == 3).then_some(())).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_is_stopped_alone_and_one_that_has_not_come_yet_never_starts() {
    for mode in modes() {
        let node = Node::start(mode).await;
        node.order(hold(&node, first_cores(1))).await;
        node.started(RUN).await;
        let sleep = "trap 'echo term; exit 5' TERM; echo on; while :; do sleep 0.05; done";
        for number in [1, 2] {
            node.launch(step(&node, number, sleep, first_cores(1))).await;
            node.text(&format!("step-{number}")).await;
        }
        let stop =
            |step| NodeOrder::StopStep { part: PartId::new(RunId(RUN), 0), step: StepId(step), grace_seconds: 20 };
        node.order(stop(1)).await;
        node.order(stop(1)).await;
        let exit = step_ended(&node, 1).await;
        assert_eq!((exit.status, exit.cause), (code(5), EndCause::Killed), "{mode:?}");
        node.order(stop(3)).await;
        assert_eq!(step_ended(&node, 3).await.status, None);
        node.launch(step(&node, 3, "echo never", first_cores(1))).await;
        node.launch(step(&node, 4, "echo last", first_cores(1))).await;
        step_ended(&node, 4).await;
        assert!(!node.work("step-3").exists(), "{mode:?}");
        assert_eq!(node.read("step-2"), "on\n", "the other step goes on under {mode:?}");
        node.stop(RUN, StopReason::TasksEnded, 5).await;
        node.ended(RUN).await;
        step_ended(&node, 2).await;
        assert_eq!(node.processes_of(RUN), [0; 0], "{mode:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_part_and_its_steps_outlive_the_executor() {
    let mut node = Node::start(ContainmentMode::Auto).await;
    node.order(hold(&node, first_cores(1))).await;
    node.started(RUN).await;
    nix::unistd::mkfifo(&node.work("release"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    node.launch(step(&node, 1, "echo on; read line < release; exit 7", first_cores(1))).await;
    node.text("step-1").await;
    node.stop_executor().await;
    node.start_executor().await;
    node.order(hold(&node, first_cores(1))).await;
    node.launch(step(&node, 1, "echo twice", first_cores(1))).await;
    fs::write(node.work("release"), "go\n").unwrap();
    assert_eq!(step_ended(&node, 1).await.status, code(7));
    assert_eq!(node.read("step-1"), "on\n");
    node.stop(RUN, StopReason::TasksEnded, 1).await;
    assert_eq!(node.ended(RUN).await.status, None);
    node.spool_is_empty().await;
}

/// HPC-J-22
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_instances_of_a_sweep_run_one_after_the_other() {
    let node = Node::start(ContainmentMode::Auto).await;
    node.order(hold(&node, first_cores(1))).await;
    node.started(RUN).await;
    for number in 1..=50 {
        let order = step(&node, number, &format!("echo {number} >> all; exit $(({number} % 3))"), first_cores(1));
        assert_eq!(order.nodes[0].name, NODE);
        node.launch(order).await;
    }
    for number in 1..=50u32 {
        assert_eq!(step_ended(&node, number).await.status, code((number % 3) as u8));
    }
    let mut values: Vec<u32> = node.read("all").lines().map(|line| line.parse().unwrap()).collect();
    values.sort_unstable();
    assert_eq!(values, (1..=50).collect::<Vec<_>>(), "each once");
    node.stop(RUN, StopReason::TasksEnded, 1).await;
    node.ended(RUN).await;
}
