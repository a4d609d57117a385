//! A node as a model: an executor that stops and comes back, shims and results that outlive it, a disk that outlives
//! both. It obeys orders by the rules of the real one: a launch is noted on disk before its first process exists, and a
//! run that was once noted is never started again.

use muster_schemas::{
    CommandId, RunId, Timestamp,
    command::{Answer, Command, Reply},
    event::{EndCause, NodeExit},
    job::{ExitStatus, Program, Usage},
    node::{Heartbeat, LaunchOrder, NodeOrder},
};
use rand::{Rng, rngs::SmallRng};
use std::collections::{BTreeMap, BTreeSet};

const SECOND: i64 = 1_000_000;

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
    /// What the executor has asked and not been answered, and what of.
    asked: BTreeMap<CommandId, Asked>,
}

/// What outlives the executor: the spool, and (until the machine boots) the processes.
#[derive(Debug, Default)]
struct Disk {
    journal: BTreeSet<RunId>,
    runs: BTreeMap<RunId, LocalRun>,
}

#[derive(Debug)]
struct LocalRun {
    status: Status,
    suspended: bool,
}

#[derive(Debug)]
enum Status {
    /// Noted, and no process started: the executor stopped in between.
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
    Ended(RunId),
}

/// What came of an order.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// Runs whose processes were started.
    pub(super) started: Vec<RunId>,
    /// Runs that end after so many microseconds.
    pub(super) ends: Vec<(RunId, i64)>,
    /// What the executor has to report.
    pub(super) commands: Vec<(CommandId, Command)>,
}

/// What came of the end of a run.
pub(super) enum End {
    /// It is suspended: later.
    NotNow(i64),
    /// What the executor has to report; nothing if it is not there.
    Reports(Vec<(CommandId, Command)>),
}

impl NodeHost {
    pub(super) fn new(number: usize) -> Self {
        Self { number, disk: Disk::default(), boot: 1, up: false, asked: BTreeMap::new() }
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
        self.asked.clear();
    }

    /// The machine boots: its processes are gone and left no result.
    pub(super) fn reboots(&mut self, now: Timestamp) {
        self.boot += 1;
        for run in self.disk.runs.values_mut() {
            if !matches!(run.status, Status::Ended(_)) {
                run.status = Status::Ended(lost("the machine was started anew", now));
            }
        }
    }

    /// The executor starts: it greets, and reports what it finds.
    pub(super) fn starts(&mut self, now: Timestamp) -> Vec<(CommandId, Command)> {
        self.up = true;
        for run in self.disk.runs.values_mut() {
            if matches!(run.status, Status::Noted) {
                run.status = Status::Ended(lost("the executor stopped during the launch", now));
            }
        }
        let runs: Vec<RunId> = self.disk.runs.keys().copied().collect();
        let hello = Command::NodeHello { boot_id: self.boot_id(), runs: runs.clone(), highest_run: self.highest_run() };
        let id = self.id(&[b"hello", &now.0.to_le_bytes()]);
        self.asked.insert(id, Asked::Hello);
        let mut commands = vec![(id, hello)];
        commands.extend(runs.into_iter().filter_map(|run| self.end_report(run)));
        commands
    }

    pub(super) fn heartbeat(&self) -> Option<Heartbeat> {
        let runs = self.disk.runs.keys().copied().collect();
        let highest_run = self.highest_run();
        self.up.then(|| Heartbeat { node: name(self.number), boot_id: self.boot_id(), runs, highest_run })
    }

    fn highest_run(&self) -> Option<RunId> {
        self.disk.journal.last().copied()
    }

    /// Obeys an order. If it crashes, it does so between noting a launch and starting it.
    pub(super) fn obeys(&mut self, order: &NodeOrder, now: Timestamp, crash: bool, random: &mut SmallRng) -> Effects {
        let mut effects = Effects::default();
        if !self.up {
            return effects;
        }
        match order {
            NodeOrder::Launch(order) if order.step.0 == 0 => self.launch(order, now, crash, random, &mut effects),
            NodeOrder::Hold(_) | NodeOrder::Resize { .. } | NodeOrder::StopStep { .. } => {}
            NodeOrder::LaunchTasks(_) | NodeOrder::SignalStep { .. } => {}
            NodeOrder::Stop { run, .. } => self.stop(*run, now, random, &mut effects),
            NodeOrder::Suspend { run } => self.set_suspended(*run, true),
            NodeOrder::Resume { run } => self.set_suspended(*run, false),
            NodeOrder::Forget { run } => {
                let over = self.disk.runs.get(run).is_some_and(|run| matches!(run.status, Status::Ended(_)));
                if over {
                    self.disk.runs.remove(run);
                }
            }
            NodeOrder::Launch(_) | NodeOrder::Signal { .. } | NodeOrder::SetWalltime { .. } => {}
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
        let run = order.run;
        if !self.disk.journal.insert(run) {
            return;
        }
        self.disk.runs.insert(run, LocalRun { status: Status::Noted, suspended: false });
        if crash {
            return;
        }
        if random.random_range(0..40) == 0 {
            self.set_status(run, Status::Ended(failed_launch(now)));
            effects.commands.extend(self.end_report(run));
            return;
        }
        self.set_status(run, Status::Running { since: now, stopping: false });
        effects.started.push(run);
        let holds_only = match &order.launch.program {
            Program::None => true,
            Program::Script { .. } => false,
            Program::Tasks { .. } => order.nodes[order.node_index as usize].tasks == 0,
        };
        if !holds_only {
            effects.ends.push((run, random.random_range(SECOND / 1000..20 * SECOND)));
        }
        let id = self.id(&[b"started", &run.0.to_le_bytes()]);
        self.asked.insert(id, Asked::Started);
        effects.commands.push((id, Command::NodeStarted { run }));
    }

    fn stop(&mut self, run: RunId, now: Timestamp, random: &mut SmallRng, effects: &mut Effects) {
        match self.disk.runs.get_mut(&run) {
            Some(LocalRun { status: Status::Running { stopping, .. }, suspended }) => {
                *suspended = false;
                if !*stopping {
                    *stopping = true;
                    effects.ends.push((run, random.random_range(SECOND / 1000..3 * SECOND)));
                }
            }
            Some(_) => effects.commands.extend(self.end_report(run)),
            None => {
                // A launch of it that comes late must not start it.
                self.disk.journal.insert(run);
                let exit = NodeExit { cause: EndCause::Killed, ..lost("", now) };
                self.disk.runs.insert(run, LocalRun { status: Status::Ended(exit), suspended: false });
                effects.commands.extend(self.end_report(run));
            }
        }
    }

    /// The processes of a run are gone.
    pub(super) fn ends(&mut self, run: RunId, now: Timestamp, random: &mut SmallRng) -> End {
        let Some(LocalRun { status: Status::Running { since, stopping }, suspended }) = self.disk.runs.get(&run) else {
            return End::Reports(Vec::new());
        };
        if *suspended {
            return End::NotNow(SECOND);
        }
        let (status, cause) = match (stopping, random.random_range(0..8)) {
            (true, _) => (ExitStatus::Signal(15), EndCause::Killed),
            (false, 0) => (ExitStatus::Code(7), EndCause::Itself),
            (false, 1) => (ExitStatus::Signal(9), EndCause::Walltime),
            (false, _) => (ExitStatus::Code(0), EndCause::Itself),
        };
        let usage = Usage { cpu_time_micros: 1000, peak_memory_bytes: 4096 };
        let exit = NodeExit { status: Some(status), cause, usage, started: Some(*since), ended: now };
        self.set_status(run, Status::Ended(exit));
        End::Reports(if self.up { self.end_report(run).into_iter().collect() } else { Vec::new() })
    }

    /// The ledger answered; the orders that came with it.
    pub(super) fn answered(&mut self, id: CommandId, answer: &Answer) -> Vec<NodeOrder> {
        match (self.asked.remove(&id), &answer.result) {
            (Some(Asked::Ended(run)), Ok(_)) => {
                self.disk.runs.remove(&run);
                Vec::new()
            }
            (Some(Asked::Hello), Ok(Reply::NodeOrders(orders))) => orders.clone(),
            _ => Vec::new(),
        }
    }

    fn end_report(&mut self, run: RunId) -> Option<(CommandId, Command)> {
        let Status::Ended(exit) = &self.disk.runs.get(&run)?.status else { return None };
        let command = Command::NodeEnded { run, exit: exit.clone() };
        let id = self.id(&[b"ended", &run.0.to_le_bytes()]);
        self.asked.insert(id, Asked::Ended(run));
        Some((id, command))
    }

    fn set_suspended(&mut self, run: RunId, suspended: bool) {
        if let Some(run) = self.disk.runs.get_mut(&run) {
            run.suspended = suspended;
        }
    }

    fn set_status(&mut self, run: RunId, status: Status) {
        if let Some(run) = self.disk.runs.get_mut(&run) {
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
