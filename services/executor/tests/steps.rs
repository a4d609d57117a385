//! Steps with places of their own: their tasks, the variables of these, and the streams between them and their client.
//! With real processes.

mod common;

use common::{NODE, Node, code, until};
use muster_bus::{BusError, Message};
use muster_executor::{ContainmentMode, RunKey, containment::processes, spool::RunFolder};
use muster_schemas::{
    JobId, PartId, RunId, StepId,
    command::Command,
    event::{EndCause, NodeExit, StopReason},
    job::{ExitStatus, Program},
    node::{LaunchOrder, NodeOrder, OrderNode},
    resources::IndexSet,
    step_io::{Content, Frame, IoAsk, IoReply, IoRequest},
    steps::{
        StepInput, StepOutput, StepProgram, StepStreams, StepTasks, TaskStatus, TaskVariable, TerminalSize, grouped,
    },
    subjects,
};
use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};

const RUN: u64 = 1;
const STEP: u32 = 1;
/// Anything that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);
/// The output that may wait for the client; see `MAX_AHEAD_BYTES` of the shim.
const AHEAD: u64 = 64 << 20;

/// A run that holds the node.
async fn holding(node: &Node) {
    let mut order = node.tasks(RUN, &["true"]);
    order.launch.program = Program::None;
    node.order(NodeOrder::Hold(Box::new(order))).await;
    node.started(RUN).await;
}

fn ranks(text: &str) -> IndexSet {
    text.parse().unwrap()
}

struct StepOrder {
    launch: LaunchOrder,
    tasks: StepTasks,
}

/// A step of a shell command on some ranks, whose output goes to the client.
fn shell(node: &Node, tasks: &str, text: &str) -> StepOrder {
    let mut launch = node.tasks(RUN, &["sh"]);
    launch.step = StepId(STEP);
    let set = ranks(tasks);
    launch.total_tasks = set.len() as u32;
    launch.nodes = vec![OrderNode { name: NODE.into(), tasks: set.len() as u32, component: 0, facts: None }].into();
    let argv = ["sh", "-c", text].map(str::to_owned).into();
    let programs = vec![StepProgram { ranks: set.clone(), argv }];
    let streams = StepStreams { stderr: Some(StepOutput::Client), ..StepStreams::default() };
    StepOrder { launch, tasks: StepTasks { ranks: set, programs, streams, ..StepTasks::default() } }
}

async fn launch(node: &Node, StepOrder { launch, tasks }: StepOrder) {
    node.order(NodeOrder::Launch { order: Box::new(launch), tasks: Some(Box::new(tasks)) }).await;
}

async fn step_ended(node: &Node) -> (NodeExit, Vec<TaskStatus>) {
    node.told("the end of the step", |command| match command {
        Command::NodeStepEnded { step: StepId(STEP), exit, statuses, .. } => Some((exit.clone(), statuses.clone())),
        _ => None,
    })
    .await
}

async fn ask(node: &Node, ask: IoAsk) -> Result<IoReply, BusError> {
    ask_step(node, STEP, ask).await
}

async fn ask_step(node: &Node, step: u32, ask: IoAsk) -> Result<IoReply, BusError> {
    let subject = subjects::step_io(JobId::job(RUN), StepId(step), "all", "ask", NODE);
    let request = IoRequest { part: PartId::new(RunId(RUN), 0), step: StepId(step), ask };
    let message = Message::encode(&request).unwrap();
    Ok(node.bus.request(&subject, message, Duration::from_secs(20)).await?.decode().unwrap())
}

/// A client that has read this far, and takes the frames apart.
#[derive(Default)]
struct Reader {
    offset: u64,
    bytes: Vec<u8>,
    output: BTreeMap<u32, Vec<u8>>,
    errors: BTreeMap<u32, Vec<u8>>,
    statuses: BTreeMap<u32, ExitStatus>,
}

impl Reader {
    /// Asks once; returns whether that was all.
    async fn read(&mut self, node: &Node, max_bytes: u32) -> bool {
        let (from, acknowledged) = (self.offset, Some(self.offset - self.bytes.len() as u64));
        let read = IoAsk::Read { reader: 1, from, acknowledged, max_bytes, wait_millis: 5_000 };
        match ask(node, read).await {
            Ok(IoReply::Output { from, bytes, is_last }) => {
                assert_eq!(from, self.offset, "a gap or something twice");
                self.offset += bytes.len() as u64;
                self.bytes.extend(bytes);
                self.take();
                is_last
            }
            // The step, or the executor, is not there yet.
            Ok(IoReply::Unknown) | Err(_) => {
                tokio::time::sleep(Duration::from_millis(5)).await;
                false
            }
            Ok(other) => panic!("{other:?}"),
        }
    }

    fn take(&mut self) {
        let mut done = 0;
        while let Some((frame, length)) = Frame::first_of(&self.bytes[done..]).unwrap() {
            match frame.content {
                Content::Output(bytes) => self.output.entry(frame.rank).or_default().extend(bytes),
                Content::Error(bytes) => self.errors.entry(frame.rank).or_default().extend(bytes),
                Content::Ended(status) => {
                    assert_eq!(self.statuses.insert(frame.rank, status), None, "a task ends once");
                }
            }
            done += length;
        }
        self.bytes.drain(..done);
    }

    async fn read_all(node: &Node) -> Self {
        let mut reader = Self::default();
        reader.finish(node, 1 << 20).await;
        reader
    }

    async fn finish(&mut self, node: &Node, max_bytes: u32) {
        let deadline = Instant::now() + PATIENCE;
        while !self.read(node, max_bytes).await {
            assert!(Instant::now() < deadline, "it does not end; task 0 said: {}", self.text(0));
        }
        assert!(self.bytes.is_empty(), "half a frame is left");
    }

    /// Reads until a task has written this text.
    async fn until_said(&mut self, node: &Node, rank: u32, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.text(rank).contains(text) {
            assert!(Instant::now() < deadline, "no `{text}` in: {}", self.text(rank));
            assert!(!self.read(node, 1 << 20).await, "it ended without `{text}`: {}", self.text(rank));
        }
    }

    fn text(&self, rank: u32) -> String {
        String::from_utf8_lossy(self.output.get(&rank).map_or(&[], Vec::as_slice)).into_owned()
    }
}

/// Sends all bytes, however few the node takes at a time. Each piece is sent twice, as by a client that
/// lost the answer.
async fn say(node: &Node, bytes: &[u8], is_last: bool) {
    let mut offset = 0;
    while offset < bytes.len() as u64 || is_last {
        let begin = offset;
        let piece = &bytes[begin as usize..(begin as usize + 300_000).min(bytes.len())];
        let ends = is_last && begin as usize + piece.len() == bytes.len();
        for _ in 0..2 {
            let write = IoAsk::Write { offset: begin, bytes: piece.into(), is_last: ends };
            match ask(node, write).await {
                Ok(IoReply::Input(length)) => offset = offset.max(length.min(bytes.len() as u64)),
                _ => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
        if ends && offset == bytes.len() as u64 {
            return;
        }
    }
}

/// SL-R-25, SL-E-06, M-STEP-3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_tasks_run_each_once_with_a_rank_of_its_own() {
    let node = Node::start(ContainmentMode::Auto).await;
    holding(&node).await;
    // Every second rank: those of a cyclic distribution on two nodes.
    let mut order = shell(&node, "1-1999:2", "echo $RANK $LOCAL $MUSTER_TASK_RANK");
    order.tasks.variables =
        [("RANK".to_owned(), TaskVariable::Rank), ("LOCAL".to_owned(), TaskVariable::LocalRank)].into();
    // A task's own variables override those from outside.
    order.launch.environment.insert("RANK".into(), "x".into());
    order.launch.environment.insert("MUSTER_TASK_RANK".into(), "x".into());
    launch(&node, order).await;
    let reader = Reader::read_all(&node).await;
    assert_eq!(reader.statuses.len(), 1_000);
    for (local, rank) in (1..2_000).step_by(2).enumerate() {
        assert_eq!(reader.text(rank), format!("{rank} {local} {rank}\n"));
    }
    let (exit, statuses) = step_ended(&node).await;
    assert_eq!((exit.status, exit.cause), (code(0), EndCause::Itself));
    assert_eq!(statuses, [TaskStatus { ranks: ranks("1-1999:2"), status: ExitStatus::Code(0) }]);
}

/// SL-R-23, SL-R-24
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranks_have_programs_of_their_own_and_a_missing_one_is_the_end_of_its_task_alone() {
    let node = Node::start(ContainmentMode::Auto).await;
    holding(&node).await;
    let mut order = shell(&node, "0-3", "exit 3");
    let argv = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    order.tasks.programs = vec![
        StepProgram { ranks: ranks("0,2"), argv: argv(&["echo", "even"]) },
        StepProgram { ranks: ranks("1"), argv: argv(&["nosuch", "x"]) },
        StepProgram { ranks: ranks("3"), argv: argv(&["sh", "-c", "kill -9 $$"]) },
    ];
    launch(&node, order).await;
    let reader = Reader::read_all(&node).await;
    assert_eq!((reader.text(0), reader.text(2)), ("even\n".into(), "even\n".into()));
    let error = String::from_utf8_lossy(&reader.errors[&1]).into_owned();
    assert_eq!(error, "error: execve(): nosuch: No such file or directory\n");
    let expected = grouped([
        (0, ExitStatus::Code(0)),
        (1, ExitStatus::Code(2)),
        (2, ExitStatus::Code(0)),
        (3, ExitStatus::Signal(9)),
    ]);
    assert_eq!(step_ended(&node).await.1, expected);
    assert_eq!(grouped(reader.statuses), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_of_tasks_are_named_by_their_patterns() {
    let node = Node::start(ContainmentMode::Auto).await;
    holding(&node).await;
    let mut order = shell(&node, "2-3", "echo $MUSTER_TASK_RANK; echo no >&2");
    order.tasks.streams = StepStreams {
        stdout: StepOutput::File("out.%s.%n.%t".into()),
        stderr: Some(StepOutput::Discarded),
        ..StepStreams::default()
    };
    fs::write(node.work("out.0.0.2"), "old\n").unwrap();
    launch(&node, order).await;
    step_ended(&node).await;
    assert_eq!((node.read("out.0.0.2"), node.read("out.0.0.3")), ("2\n".into(), "3\n".into()));
}

/// Output of a task waits with the task while the client does not listen, and none of it is lost (M-STEP-4).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_megabytes_come_whole_through_a_client_that_is_slow() {
    let node = Node::start(ContainmentMode::Auto).await;
    holding(&node).await;
    launch(&node, shell(&node, "0-1", "seq 1 6900000")).await;
    let output =
        RunFolder::of(node.spool(), RunKey { part: PartId::new(RunId(RUN), 0), step: StepId(STEP) }).file("output");
    let length = || output.metadata().map_or(0, |file| file.len());
    until("a spool that is full", || (length() >= AHEAD).then_some(())).await;
    let mut reader = Reader::default();
    assert!(!reader.read(&node, 1).await, "there is more");
    assert!(length() < AHEAD + (4 << 20), "the tasks are not waited for: {}", length());
    reader.finish(&node, 1 << 20).await;
    let expected: String = (1..=6_900_000).map(|number| format!("{number}\n")).collect();
    for rank in 0..2 {
        assert!(reader.output[&rank] == expected.as_bytes(), "the output of task {rank} is not what it said");
    }
    assert!(reader.offset > 100_000_000);
    step_ended(&node).await;
}

/// SL-R-25, M-STEP-6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_client_says_comes_whole_to_every_task() {
    let node = Node::start(ContainmentMode::Auto).await;
    holding(&node).await;
    // One of them reads nothing, and delays no other.
    let mut order = shell(&node, "0-3", "[ $MUSTER_TASK_RANK = 3 ] || exec md5sum");
    order.tasks.streams.stdin = StepInput::AllTasks;
    launch(&node, order).await;
    let text: Vec<u8> = (0..1_500_000u32).flat_map(|number| format!("{number}\n").into_bytes()).collect();
    say(&node, &text, true).await;
    let reader = Reader::read_all(&node).await;
    fs::write(node.work("said"), &text).unwrap();
    let sum = std::process::Command::new("md5sum").stdin(fs::File::open(node.work("said")).unwrap()).output().unwrap();
    for rank in 0..3 {
        assert_eq!(reader.text(rank), String::from_utf8_lossy(&sum.stdout));
    }
    assert_eq!(reader.text(3), "");
}

/// In each of many steps the client ends its input before, while or after the shim starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_client_says_is_heard_however_early_it_is_said() {
    let node = Node::start(ContainmentMode::Auto).await;
    holding(&node).await;
    for step in 1..=20 {
        let mut order = shell(&node, "0-1", "cat; echo over");
        order.launch.step = StepId(step);
        order.tasks.streams.stdin = StepInput::AllTasks;
        launch(&node, order).await;
        let write = IoAsk::Write { offset: 0, bytes: b"said\n".to_vec(), is_last: true };
        while !matches!(ask_step(&node, step, write.clone()).await, Ok(IoReply::Input(5))) {
            tokio::task::yield_now().await;
        }
        let status = node
            .told("the end of the step", |command| match command {
                Command::NodeStepEnded { step: StepId(ended), statuses, .. } if *ended == step => {
                    Some(statuses.clone())
                }
                _ => None,
            })
            .await;
        assert_eq!(status, [TaskStatus { ranks: ranks("0-1"), status: ExitStatus::Code(0) }]);
    }
}

/// SL-R-21
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_client_says_comes_to_one_task_if_it_is_meant_for_one() {
    let node = Node::start(ContainmentMode::Auto).await;
    holding(&node).await;
    let mut order = shell(&node, "0-2", "cat");
    order.tasks.streams.stdin = StepInput::Task(1);
    launch(&node, order).await;
    say(&node, b"hello\n", true).await;
    let reader = Reader::read_all(&node).await;
    assert_eq!([0, 1, 2].map(|rank| reader.text(rank)), ["", "hello\n", ""]);
}

/// SL-R-21
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_task_can_have_a_terminal() {
    let node = Node::start(ContainmentMode::Auto).await;
    holding(&node).await;
    // A signal that a shell traps ends its `read`.
    let text = "test -t 0 && test -t 2 && stty size; trap 'stty size' WINCH; echo ready; \
                read line || read line; echo got $line; cat";
    let mut order = shell(&node, "0-1", text);
    order.tasks.streams.stdout = StepOutput::Discarded;
    order.tasks.streams.stderr = None;
    order.tasks.streams.terminal = Some(TerminalSize { rows: 30, columns: 90 });
    launch(&node, order).await;
    let mut reader = Reader::default();
    reader.until_said(&node, 0, "ready").await;
    assert!(reader.text(0).starts_with("30 90\r\n"), "{}", reader.text(0));
    assert_eq!(ask(&node, IoAsk::Resize(TerminalSize { rows: 31, columns: 91 })).await.unwrap(), IoReply::Done);
    reader.until_said(&node, 0, "31 91").await;
    let mut said = b"hello\n".to_vec();
    say(&node, &said, false).await;
    reader.until_said(&node, 0, "got hello").await;
    said.extend(b"more\n");
    say(&node, &said, true).await;
    reader.finish(&node, 1 << 20).await;
    assert!(reader.text(0).ends_with("more\r\n"), "{}", reader.text(0));
    assert_eq!(reader.text(1), "");
    let (exit, _) = step_ended(&node).await;
    assert_eq!(exit.cause, EndCause::Itself);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_goes_on_where_it_was_when_the_executor_comes_back() {
    let mut node = Node::start(ContainmentMode::Auto).await;
    holding(&node).await;
    launch(&node, shell(&node, "0-1", "for i in $(seq 1 20); do seq 1 20000; sleep 0.02; done")).await;
    let mut reader = Reader::default();
    while reader.offset < 500_000 {
        reader.read(&node, 100_000).await;
    }
    node.stop_executor().await;
    assert!(ask(&node, IoAsk::Resize(TerminalSize::default())).await.is_err(), "nobody is there");
    node.start_executor().await;
    reader.finish(&node, 100_000).await;
    let once: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    let expected = once.repeat(20);
    for rank in 0..2 {
        assert!(reader.output[&rank] == expected.as_bytes(), "the output of task {rank} is not what it said");
    }
    let (exit, statuses) = step_ended(&node).await;
    assert_eq!((exit.status, statuses.len()), (code(0), 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_said_before_the_shim_was_killed_can_be_read() {
    let node = Node::start(ContainmentMode::Auto).await;
    holding(&node).await;
    launch(&node, shell(&node, "0", "echo before; echo $PPID > shim; sleep 1000")).await;
    let mut reader = Reader::default();
    reader.until_said(&node, 0, "before").await;
    let shim: i32 = node.text("shim").await.trim().parse().unwrap();
    processes::signal_all(&[shim], libc::SIGKILL);
    let (exit, statuses) = step_ended(&node).await;
    assert_eq!((exit.cause, statuses), (EndCause::Lost("its shim was killed".into()), vec![]));
    reader.finish(&node, 1 << 20).await;
    assert_eq!(reader.text(0), "before\n");
}

/// SL-R-26, SL-M-15
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_is_signalled_and_ended_alone() {
    let node = Node::start(ContainmentMode::Auto).await;
    holding(&node).await;
    let text = "trap 'echo usr1' USR1; trap 'echo term; exit 4' TERM; echo on; while :; do sleep 0.05; done";
    launch(&node, shell(&node, "0-1", text)).await;
    let mut reader = Reader::default();
    for rank in 0..2 {
        reader.until_said(&node, rank, "on").await;
    }
    let (run, step) = (RunId(RUN), StepId(STEP));
    node.order(NodeOrder::SignalStep { part: PartId::new(run, 0), step, signal: libc::SIGUSR1 as u8 }).await;
    for rank in 0..2 {
        reader.until_said(&node, rank, "usr1").await;
    }
    node.order(NodeOrder::StopStep { part: PartId::new(run, 0), step, grace_seconds: 20 }).await;
    reader.finish(&node, 1 << 20).await;
    let (exit, statuses) = step_ended(&node).await;
    assert_eq!(exit.cause, EndCause::Killed);
    assert_eq!(statuses, [TaskStatus { ranks: ranks("0-1"), status: ExitStatus::Code(4) }]);
    node.stop(RUN, StopReason::PeerEnded, 0).await;
    assert_eq!(node.ended(RUN).await.cause, EndCause::Itself, "the run went on without it");
}

/// SL-C-38: a running step that gets a time limit ends at it, and the run around it goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_ends_at_the_time_limit_that_it_is_given_later() {
    let node = Node::start(ContainmentMode::Auto).await;
    holding(&node).await;
    launch(&node, shell(&node, "0", "echo on; exec sleep 1000")).await;
    let mut reader = Reader::default();
    reader.until_said(&node, 0, "on").await;
    let (part, step) = (PartId::new(RunId(RUN), 0), StepId(STEP));
    node.order(NodeOrder::SetStepWalltime { part, step, walltime_seconds: Some(1) }).await;
    reader.finish(&node, 1 << 20).await;
    let (exit, _) = step_ended(&node).await;
    assert_eq!(exit.cause, EndCause::Walltime);
    node.stop(RUN, StopReason::PeerEnded, 0).await;
    assert_eq!(node.ended(RUN).await.cause, EndCause::Itself, "the run went on without it");
}

/// SL-R-21
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_task_that_fails_ends_the_others_if_the_step_wants_it_so() {
    let node = Node::start(ContainmentMode::Auto).await;
    holding(&node).await;
    let mut order = shell(&node, "0-2", "[ $MUSTER_TASK_RANK = 1 ] && exit 5; exec sleep 1000");
    order.tasks.ends_on_failure = true;
    launch(&node, order).await;
    let (exit, statuses) = step_ended(&node).await;
    assert_eq!(exit.cause, EndCause::Killed);
    let expected = grouped([(0, ExitStatus::Signal(15)), (1, ExitStatus::Code(5)), (2, ExitStatus::Signal(15))]);
    assert_eq!(statuses, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_leaves_the_spool_when_its_client_has_everything() {
    let node = Node::start(ContainmentMode::Auto).await;
    holding(&node).await;
    launch(&node, shell(&node, "0", "echo all")).await;
    step_ended(&node).await;
    let folder = RunFolder::of(node.spool(), RunKey { part: PartId::new(RunId(RUN), 0), step: StepId(STEP) });
    let mut reader = Reader::read_all(&node).await;
    assert!(folder.path().exists(), "not all of it is acknowledged");
    reader.read(&node, 1).await;
    until("a spool without the step", || (!folder.path().exists()).then_some(())).await;
    let read = IoAsk::Read { reader: 1, from: 0, acknowledged: None, max_bytes: 1, wait_millis: 0 };
    assert_eq!(ask(&node, read).await.unwrap(), IoReply::Unknown);
}
