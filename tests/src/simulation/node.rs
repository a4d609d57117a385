//! A model of a node: an executor that stops and comes back, shims and results that outlive it, a disk that outlives
//! both. It obeys orders by the rules of the real one: a launch is noted on disk before its first process exists, and a
//! run that was once noted is never started again.

use muster_schemas::{
    CommandId, PartId, RunId, StepId, Timestamp,
    command::{Answer, Command, Refusal, RefusalCode, Reply},
    event::{EndCause, NodeExit},
    job::{ExitStatus, Program, Usage},
    node::{Briefing, Heartbeat, LaunchOrder, Mark, NodeOrder},
};
use rand::{Rng, rngs::SmallRng};
use std::collections::{BTreeMap, BTreeSet};

const SECOND: i64 = 1_000_000;
/// The step number of a run's own part.
const WHOLE: StepId = StepId(0);

/// A part of a run on the node: its own, or that of a step.
pub(super) type Key = (PartId, StepId);

/// The number of a node, from its name.
pub(super) fn number(name: &str) -> Option<usize> {
    name.strip_prefix("node")?.parse::<usize>().ok()?.checked_sub(1)
}

/// The name of a node.
pub(super) fn name(number: usize) -> String {
    format!("node{}", number + 1)
}

#[derive(Debug)]
pub(super) struct NodeHost {
    number: usize,
    disk: Disk,
    boot: u32,
    up: bool,
    /// The last mark that the executor received.
    mark: Option<Mark>,
    /// Unanswered requests of the executor, and what they are about.
    asked: BTreeMap<CommandId, Asked>,
}

/// Everything that outlives the executor: the spool, and (until the machine boots) the processes.
#[derive(Debug, Default)]
struct Disk {
    journal: BTreeSet<Key>,
    runs: BTreeMap<Key, LocalRun>,
}

#[derive(Debug)]
struct LocalRun {
    status: Status,
    suspended: bool,
    /// It only holds resources, and can come to this node again.
    holds: bool,
}

impl LocalRun {
    const fn new(status: Status) -> Self {
        Self { status, suspended: false, holds: false }
    }
}

#[derive(Debug)]
enum Status {
    /// Noted but not started: the executor stopped in between.
    Noted,
    /// Its processes run, or are held for steps.
    Running { since: Timestamp, stopping: bool },
    /// They are gone.
    Ended(NodeExit),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Hello,
    Started,
    Ended(Key),
}

/// The effects of an order.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// Parts whose processes were started.
    pub(super) started: Vec<Key>,
    /// Parts of runs that only hold resources from now on.
    pub(super) held: Vec<PartId>,
    /// Parts that end after this many microseconds.
    pub(super) ends: Vec<(Key, i64)>,
    /// Reports of the executor.
    pub(super) commands: Vec<(CommandId, Command)>,
}

/// The result when a run ends.
pub(super) enum End {
    /// It is suspended: later.
    NotNow(i64),
    /// The executor's reports; none if it is stopped.
    Reports(Vec<(CommandId, Command)>),
}

impl NodeHost {
    pub(super) fn new(number: usize) -> Self {
        Self { number, disk: Disk::default(), boot: 1, up: false, mark: None, asked: BTreeMap::new() }
    }

    pub(super) fn is_up(&self) -> bool {
        self.up
    }

    /// Whether it has nothing to do and nothing to report.
    pub(super) fn is_idle(&self) -> bool {
        self.disk.runs.is_empty()
    }

    pub(super) fn describe(&self) -> String {
        format!("{} up={} {:?}", name(self.number), self.up, self.disk.runs)
    }

    pub(super) fn stops(&mut self) {
        self.up = false;
        self.mark = None;
        self.asked.clear();
    }

    /// The machine boots: its processes are gone without results.
    pub(super) fn reboots(&mut self, now: Timestamp) {
        self.boot += 1;
        for run in self.disk.runs.values_mut() {
            if !matches!(run.status, Status::Ended(_)) {
                run.status = Status::Ended(lost("the machine was started anew", now));
            }
        }
    }

    /// The executor starts: it sends a greeting, and reports what it finds.
    pub(super) fn starts(&mut self, now: Timestamp) -> Vec<(CommandId, Command)> {
        self.up = true;
        for run in self.disk.runs.values_mut() {
            if matches!(run.status, Status::Noted) {
                run.status = Status::Ended(lost("the executor stopped during the launch", now));
            }
        }
        let mut commands = vec![self.greets(now)];
        let known: Vec<Key> = self.disk.runs.keys().copied().collect();
        for key in known {
            commands.extend(self.start_report(key).or_else(|| self.end_report(key)));
        }
        commands
    }

    /// The executor reports what it knows, and waits for orders.
    pub(super) fn greets(&mut self, now: Timestamp) -> (CommandId, Command) {
        let id = self.id(&[b"hello", &now.0.to_le_bytes()]);
        self.asked.insert(id, Asked::Hello);
        (id, self.hello())
    }

    /// Whether a run has processes here, or holds resources.
    pub(super) fn runs(&self, run: RunId) -> bool {
        let is_its = |(part, step): &Key| part.run() == run && *step == WHOLE;
        self.disk.runs.iter().any(|(key, known)| is_its(key) && matches!(known.status, Status::Running { .. }))
    }

    pub(super) fn heartbeat(&self) -> Option<Heartbeat> {
        let highest_run = self.highest_run();
        self.up.then(|| Heartbeat {
            node: name(self.number),
            boot_id: self.boot_id(),
            parts: self.parts(),
            highest_run,
            as_of: self.mark,
        })
    }

    fn hello(&self) -> Command {
        let (boot_id, parts, highest_run) = (self.boot_id(), self.parts(), self.highest_run());
        Command::NodeHello { boot_id, parts, highest_run, as_of: self.mark }
    }

    fn parts(&self) -> Vec<PartId> {
        self.disk.runs.keys().filter(|(_, step)| *step == WHOLE).map(|(part, _)| *part).collect()
    }

    fn highest_run(&self) -> Option<RunId> {
        self.disk.journal.iter().map(|(part, _)| part.run()).max()
    }

    /// The parts of a run and of its steps.
    fn keys_of(&self, part: PartId) -> Vec<Key> {
        self.disk.runs.range((part, WHOLE)..=(part, StepId(u32::MAX))).map(|(key, _)| *key).collect()
    }

    /// Obeys an order. A crash happens between noting a launch and starting it.
    pub(super) fn obeys(&mut self, order: &NodeOrder, now: Timestamp, crash: bool, random: &mut SmallRng) -> Effects {
        let mut effects = Effects::default();
        if !self.up {
            return effects;
        }
        match order {
            NodeOrder::Launch { order, tasks: None } => self.launch(order, now, crash, random, &mut effects),
            NodeOrder::Hold(order) => self.hold(order, now, crash, &mut effects),
            NodeOrder::Stop { part, .. } => {
                self.stop((*part, WHOLE), now, random, &mut effects);
                for key in self.keys_of(*part) {
                    self.stop(key, now, random, &mut effects);
                }
            }
            NodeOrder::StopStep { part, step, .. } => self.stop((*part, *step), now, random, &mut effects),
            NodeOrder::Suspend { part } => self.set_suspended(*part, true),
            NodeOrder::Resume { part } => self.set_suspended(*part, false),
            NodeOrder::Forget { part } => {
                for key in self.keys_of(*part) {
                    match self.disk.runs[&key].status {
                        Status::Ended(_) => {
                            self.disk.runs.remove(&key);
                        }
                        _ => self.stop(key, now, random, &mut effects),
                    }
                }
            }
            // Resizes, signals and messages end nothing here.
            NodeOrder::Resize { .. }
            | NodeOrder::Signal { .. }
            | NodeOrder::SetWalltime { .. }
            | NodeOrder::SetStepWalltime { .. } => {}
            NodeOrder::Launch { tasks: Some(_), .. } | NodeOrder::SignalStep { .. } | NodeOrder::Tell { .. } => {}
            // Nothing submitted here is that large.
            NodeOrder::ByHash(_) => {}
            // No job here has files to copy.
            NodeOrder::Copy(_) | NodeOrder::StopCopy { .. } => {}
        }
        effects
    }

    fn launch(
        &mut self,
        order: &LaunchOrder,
        now: Timestamp,
        crash: bool,
        random: &mut SmallRng,
        effects: &mut Effects,
    ) {
        let key = (order.part, order.step);
        if !self.disk.journal.insert(key) {
            return;
        }
        self.disk.runs.insert(key, LocalRun::new(Status::Noted));
        if crash {
            return;
        }
        if random.random_range(0..40) == 0 {
            self.set_status(key, Status::Ended(failed_launch(now)));
            effects.commands.extend(self.end_report(key));
            return;
        }
        self.set_status(key, Status::Running { since: now, stopping: false });
        effects.started.push(key);
        let holds_only = match &order.launch.program {
            Program::None => true,
            Program::Script { .. } => false,
            Program::Tasks { .. } => order.nodes[order.node_index as usize].tasks == 0,
        };
        if !holds_only {
            let longest = if order.step == WHOLE { 20 } else { 5 };
            effects.ends.push((key, random.random_range(SECOND / 1000..longest * SECOND)));
        }
        effects.commands.extend(self.start_report(key));
    }

    /// Holds the node's part of a run of tasks until it is stopped or its time is over.
    fn hold(&mut self, order: &LaunchOrder, now: Timestamp, crash: bool, effects: &mut Effects) {
        let key = (order.part, WHOLE);
        self.disk.journal.insert(key);
        if self.disk.runs.contains_key(&key) {
            return;
        }
        self.disk.runs.insert(key, LocalRun { holds: true, ..LocalRun::new(Status::Noted) });
        if crash {
            return;
        }
        self.set_status(key, Status::Running { since: now, stopping: false });
        effects.held.push(order.part);
        let seconds = order.walltime_seconds.and_then(|seconds| i64::try_from(seconds).ok());
        effects.ends.extend(seconds.map(|seconds| (key, seconds.max(1).saturating_mul(SECOND))));
        effects.commands.extend(self.start_report(key));
    }

    fn stop(&mut self, key: Key, now: Timestamp, random: &mut SmallRng, effects: &mut Effects) {
        match self.disk.runs.get_mut(&key) {
            Some(LocalRun { status: Status::Running { stopping, .. }, suspended, .. }) => {
                *suspended = false;
                if !*stopping {
                    *stopping = true;
                    effects.ends.push((key, random.random_range(SECOND / 1000..3 * SECOND)));
                }
            }
            Some(_) => effects.commands.extend(self.end_report(key)),
            None => {
                // A late launch of it must not start it.
                self.disk.journal.insert(key);
                let exit = NodeExit { cause: EndCause::Killed, ..lost("", now) };
                // A part that only holds resources may come again.
                self.disk.runs.insert(key, LocalRun { holds: true, ..LocalRun::new(Status::Ended(exit)) });
                effects.commands.extend(self.end_report(key));
            }
        }
    }

    /// Ends the processes of a part; a run's own part takes those of its steps with it.
    pub(super) fn ends(&mut self, key: Key, now: Timestamp, random: &mut SmallRng) -> End {
        let Some(LocalRun { status: Status::Running { since, stopping }, suspended, holds }) = self.disk.runs.get(&key)
        else {
            return End::Reports(Vec::new());
        };
        if *suspended {
            return End::NotNow(SECOND);
        }
        let (status, cause) = match (stopping, *holds, random.random_range(0..8)) {
            (true, ..) => (ExitStatus::Signal(15), EndCause::Killed),
            (false, true, _) => (ExitStatus::Signal(9), EndCause::Walltime),
            (false, false, 0) => (ExitStatus::Code(7), EndCause::Itself),
            (false, false, 1) => (ExitStatus::Signal(9), EndCause::Walltime),
            (false, false, _) => (ExitStatus::Code(0), EndCause::Itself),
        };
        let usage = Usage { cpu_time_micros: 1000, peak_memory_bytes: 4096, ..Usage::default() };
        let exit = NodeExit { status: Some(status), cause, usage, started: Some(*since), ended: now };
        self.set_status(key, Status::Ended(exit));
        let mut ended = vec![key];
        if key.1 == WHOLE {
            for step in self.keys_of(key.0).into_iter().filter(|(_, step)| *step != WHOLE) {
                if let Status::Running { since, .. } = self.disk.runs[&step].status {
                    let status = Some(ExitStatus::Signal(9));
                    let exit = NodeExit { status, cause: EndCause::Killed, usage, started: Some(since), ended: now };
                    self.set_status(step, Status::Ended(exit));
                    ended.push(step);
                }
            }
        }
        End::Reports(if self.up {
            ended.into_iter().filter_map(|key| self.end_report(key)).collect()
        } else {
            Vec::new()
        })
    }

    /// Takes the ledger's answer; returns the orders that came with it.
    pub(super) fn answered(&mut self, id: CommandId, answer: &Answer) -> Vec<NodeOrder> {
        match (self.asked.remove(&id), &answer.result) {
            (Some(Asked::Ended(_)), Err(Refusal { code: RefusalCode::Unavailable, .. })) => Vec::new(),
            (Some(Asked::Ended(key)), _) => {
                self.disk.runs.remove(&key);
                Vec::new()
            }
            (Some(Asked::Hello), Ok(Reply::NodeOrders(briefing))) => self.briefed(briefing),
            _ => Vec::new(),
        }
    }

    /// Takes the mark of an answer; returns the orders that came with it.
    pub(super) fn briefed(&mut self, briefing: &Briefing) -> Vec<NodeOrder> {
        if self.up && briefing.mark.is_some() {
            self.mark = briefing.mark;
        }
        briefing.orders.clone()
    }

    /// The report that the run's own part has started.
    fn start_report(&mut self, key: Key) -> Option<(CommandId, Command)> {
        let (part, step) = key;
        let known = self.disk.runs.get(&key).filter(|_| step == WHOLE)?;
        let Status::Running { since, .. } = known.status else { return None };
        let id = self.report_id(b"started", key, since, known.holds);
        self.asked.insert(id, Asked::Started);
        Some((id, Command::NodeStarted { part }))
    }

    fn end_report(&mut self, key: Key) -> Option<(CommandId, Command)> {
        let (part, step) = key;
        let known = self.disk.runs.get(&key)?;
        let Status::Ended(exit) = &known.status else { return None };
        let exit = exit.clone();
        let id = self.report_id(b"ended", key, exit.ended, known.holds);
        let command = match step {
            WHOLE => Command::NodeEnded { part, exit },
            step => Command::NodeStepEnded { part, step, exit, statuses: Vec::new() },
        };
        self.asked.insert(id, Asked::Ended(key));
        Some((id, command))
    }

    /// The same report again has the same id; for parts that can come to this node again the id includes the time.
    fn report_id(&self, kind: &[u8], (part, step): Key, time: Timestamp, can_come_again: bool) -> CommandId {
        let time = if can_come_again { time.0 } else { 0 };
        self.id(&[kind, &part.to_number().to_le_bytes(), &step.0.to_le_bytes(), &time.to_le_bytes()])
    }

    fn set_suspended(&mut self, part: PartId, suspended: bool) {
        for (_, known) in self.disk.runs.range_mut((part, WHOLE)..=(part, StepId(u32::MAX))) {
            known.suspended = suspended;
        }
    }

    fn set_status(&mut self, key: Key, status: Status) {
        if let Some(run) = self.disk.runs.get_mut(&key) {
            run.status = status;
        }
    }

    fn boot_id(&self) -> String {
        format!("boot{}", self.boot)
    }

    fn id(&self, parts: &[&[u8]]) -> CommandId {
        let number = self.number.to_le_bytes();
        let parts: Vec<&[u8]> = [&[&number[..]], parts].concat();
        CommandId::derived(&parts)
    }
}

fn lost(why: &str, now: Timestamp) -> NodeExit {
    NodeExit { status: None, cause: EndCause::Lost(why.into()), usage: Usage::default(), started: None, ended: now }
}

fn failed_launch(now: Timestamp) -> NodeExit {
    NodeExit { cause: EndCause::LaunchFailed("no such directory".into()), ..lost("", now) }
}
