//! A cluster in memory: the domain decides its commands, the production planner plans its jobs, and its runs take as
//! long as the log says.

use super::history::{History, Input, PastRun, What, cores};
use crate::projection::Projection;
use muster_domain::{State, decide_owned, runs::Run};
use muster_schemas::{
    CommandId, JobId, NodeId, PartId, RunId, Timestamp,
    cluster::{ClusterSettings, NodeCondition},
    command::{Command, JobSelection, Refusal, Reply},
    event::{Actor, EndCause, Event, NodeExit, Record, TraceContext},
    job::{ExitStatus, Outcome, Usage},
    policy::Policy,
    resources::Placement,
};
use serde::Serialize;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
    sync::Arc,
};

/// If only timers are left and this many in a row have no effect, nothing more will happen.
const MAX_IDLE_STEPS: u32 = 100;

/// The result of a replay.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// Every run of each job or task, in order.
    pub(super) runs: BTreeMap<JobId, Vec<NewRun>>,
    /// Deviations that could not be avoided.
    pub(super) notes: Notes,
    /// Cores of the cluster at the end.
    pub(super) cores: u64,
}

/// A run of the replay.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewRun {
    pub start: Timestamp,
    /// `None` if it had not ended when the replay did.
    pub end: Option<Timestamp>,
    pub cores: u64,
}

/// Deviations of a replay from the log, and guesses in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Notes {
    /// Runs whose length the log does not say, because it ends before they did or they never were: they took their
    /// walltime.
    pub runs_of_walltime: u64,
    /// As these, but without a walltime: they have not ended.
    pub runs_without_end: u64,
    /// Cancellations of waiting jobs that had started by then: the job ran on.
    pub started_before_cancelled: u64,
    /// Holds, releases, changes and requeues that were refused: the job was elsewhere in its life by then.
    pub refused_commands: u64,
    /// Starts that were refused by the rules.
    pub refused_starts: u64,
}

/// Replays a history. Without a policy the one that was in force at each time is followed. `observe` is shown every
/// record that the replay adds to the log, which is a log in itself.
///
/// Deterministic: the same history and policy give the same records.
pub fn replay(history: &History, policy: Option<&Arc<Policy>>, observe: &mut dyn FnMut(&Record)) -> Replayed {
    let mut cluster = Cluster::new(history, policy, observe);
    while let Some(now) = cluster.next_instant() {
        cluster.step(now);
    }
    cluster.finish()
}

struct Cluster<'h> {
    observe: &'h mut dyn FnMut(&Record),
    history: &'h History,
    projection: Projection,
    follows_log: bool,
    now: Timestamp,
    taken_in: usize,
    /// Runs by when they end.
    ends: BinaryHeap<Reverse<(Timestamp, RunId)>>,
    /// How the runs that hold resources will end.
    endings: BTreeMap<RunId, Ending>,
    is_plan_due: bool,
    wake: Option<Timestamp>,
    left_out: BTreeSet<JobId>,
    /// Changes to the cluster that wait until nothing prevents them.
    deferred: Vec<Event>,
    /// Runs that began in the last decisions.
    begun: Vec<(JobId, RunId)>,
    /// Steps since anything last happened.
    idle_steps: u32,
    result: Replayed,
}

/// How a run ends.
#[derive(Clone, Debug)]
struct Ending {
    job: JobId,
    /// The number of the run among those of the replay.
    number: usize,
    outcome: Outcome,
    /// The processor time that it used, in microseconds.
    cpu_time_micros: u64,
}

impl<'h> Cluster<'h> {
    fn new(history: &'h History, policy: Option<&Arc<Policy>>, observe: &'h mut dyn FnMut(&Record)) -> Self {
        let mut cluster = Self {
            observe,
            history,
            projection: Projection::of(history.beginning.clone()),
            follows_log: policy.is_none(),
            now: history.beginning.time().max(history.from),
            taken_in: 0,
            ends: BinaryHeap::new(),
            endings: BTreeMap::new(),
            is_plan_due: true,
            wake: None,
            left_out: BTreeSet::new(),
            deferred: Vec::new(),
            begun: Vec::new(),
            idle_steps: 0,
            result: Replayed::default(),
        };
        cluster.wake_all();
        if let Some(policy) = policy {
            cluster.apply(&ledger(), Event::PolicySet { policy: policy.clone() });
        }
        cluster.go_on_with_runs();
        cluster
    }

    /// No node sleeps in a replay: nobody would run the programs.
    fn wake_all(&mut self) {
        let state = self.projection.state();
        let settings = ClusterSettings { energy: None, ..state.settings().clone() };
        let nodes: Vec<NodeId> = state.nodes().map(|node| node.id).filter(|id| state.power_of(*id).is_some()).collect();
        if state.settings().energy.is_some() {
            self.apply(&ledger(), Event::SettingsChanged { settings: Arc::new(settings) });
        }
        for node in nodes {
            self.apply(&ledger(), Event::NodeUp { node, boot_id: "awake".to_owned() });
        }
    }

    /// Runs that hold resources when the replay begins end when they did.
    fn go_on_with_runs(&mut self) {
        let runs: Vec<(RunId, JobId)> = self.projection.state().runs().map(|run| (run.id, run.job)).collect();
        for (run, job) in runs {
            let past = self.history.run(run).and_then(|(job, number)| self.history.job(job)?.runs.get(number));
            let ended = past.and_then(|past| past.ended.clone());
            let cpu_time_micros = past.map_or(0, |past| past.cpu_time_micros);
            let (end, outcome) = match ended {
                Some((end, outcome)) => (Some(end), outcome),
                None => (self.end_by_walltime(run), Outcome::Completed),
            };
            self.endings.insert(run, Ending { job, number: usize::MAX, outcome, cpu_time_micros });
            self.start_processes(run);
            self.ends.extend(end.map(|end| Reverse((end.max(self.now), run))));
        }
    }

    fn next_instant(&self) -> Option<Timestamp> {
        if self.is_plan_due {
            return Some(self.now);
        }
        let input = self.history.inputs.get(self.taken_in).map(|input| input.time);
        let end = self.ends.peek().map(|Reverse((end, _))| *end);
        let events = [input, end].into_iter().flatten().min();
        let state = self.projection.state();
        // Without events, time advances only as long as it changes something for unfinished jobs.
        let may_wait = events.is_some() || state.unfinished_jobs() > 0 && self.idle_steps < MAX_IDLE_STEPS;
        let timers = [state.next_timer(), self.wake].into_iter().flatten().filter(|_| may_wait);
        events.into_iter().chain(timers).min().map(|time| time.max(self.now))
    }

    /// First ends, then inputs, then what is due by time, and then one plan.
    fn step(&mut self, now: Timestamp) {
        self.now = now;
        self.idle_steps += 1;
        while let Some(Reverse((end, run))) = self.ends.peek().copied()
            && end <= now
        {
            self.ends.pop();
            self.end_run(run);
        }
        while let Some(input) = self.history.inputs.get(self.taken_in).filter(|input| input.time <= now) {
            self.taken_in += 1;
            self.take_in(input);
        }
        self.apply_deferred();
        self.tick();
        if self.is_plan_due {
            self.left_out.clear();
        }
        if self.is_plan_due || self.wake.is_some_and(|wake| wake <= now) {
            self.plan();
        }
    }

    fn tick(&mut self) {
        while self.projection.state().next_timer().is_some_and(|due| due <= self.now) {
            if self.decide(&ledger(), Command::Tick).is_ok_and(|events| events == 0) {
                return;
            }
        }
    }

    fn plan(&mut self) {
        loop {
            let planned = self.projection.plan(self.now, &self.left_out);
            self.wake = planned.next_wake.filter(|wake| *wake > self.now);
            let plan = planned.plan;
            let (asked, refused_before) = (plan.starts.len(), self.left_out.len());
            let command = Command::CommitPlan { plan: Box::new(plan) };
            // Only the planner's own mistakes are refused here, and those singly.
            let _ = self.decide(&Arc::new(Actor::Planner), command);
            let begun = std::mem::take(&mut self.begun);
            // Jobs may start inside at once (OAR-T-14).
            let opens = |(job, _): &(JobId, RunId)| {
                self.projection.state().job(*job).is_some_and(|job| job.opens_domain().is_some())
            };
            let opens_domain = begun.iter().any(opens);
            for (job, run) in begun {
                self.begin_run(job, run);
            }
            let has_refused = self.left_out.len() > refused_before;
            if !(has_refused || opens_domain || planned.is_cut_short && asked > 0) {
                self.is_plan_due = false;
                return;
            }
        }
    }

    /// A run that was just allocated: its processes start at once, and end when the log says.
    fn begin_run(&mut self, job: JobId, run: RunId) {
        self.start_processes(run);
        let number = self.result.runs.get(&job).map_or(0, |runs| runs.len() - 1);
        let before = self.projection.state().job(job).map_or(0, |job| job.attempts.saturating_sub(1) as usize);
        let past = self.history.job(job).map_or(&[][..], |past| &past.runs);
        let ended = |past: &PastRun| {
            let (end, outcome) = past.ended.clone()?;
            Some((end.micros_since(past.allocated), outcome, past.cpu_time_micros))
        };
        let known = past.get(before).and_then(ended);
        // A job that runs more often than it did takes as long as the last time, and is then over.
        let again = || past.last().and_then(ended).map(|(micros, _, cpu)| (micros, Outcome::Completed, cpu));
        let (end, outcome, cpu_time_micros) = match known.or_else(again) {
            Some((micros, outcome, cpu)) => (Some(self.now.plus_micros(micros.max(0))), outcome, cpu),
            None => (self.end_by_walltime(run), Outcome::Completed, 0),
        };
        self.endings.insert(run, Ending { job, number, outcome, cpu_time_micros });
        self.ends.extend(end.map(|end| Reverse((end, run))));
    }

    fn end_by_walltime(&mut self, run: RunId) -> Option<Timestamp> {
        let state = self.projection.state();
        let expected = state.run(run).and_then(|run| Some(crate::projection::expected_end(state.job(run.job)?, run)));
        let end = expected.filter(|end| *end < Timestamp::MAX);
        match end {
            Some(_) => self.result.notes.runs_of_walltime += 1,
            None => self.result.notes.runs_without_end += 1,
        }
        end
    }

    fn start_processes(&mut self, run: RunId) {
        for (executor, part) in self.executors(run) {
            // A node that was lost meanwhile no longer has a part of it.
            let _ = self.decide(&executor, Command::NodeStarted { part });
        }
    }

    fn end_run(&mut self, run: RunId) {
        let Some(Ending { job, outcome, cpu_time_micros, .. }) = self.endings.get(&run).cloned() else { return };
        let jobs = JobSelection::Ids(vec![job]);
        let stop = match outcome {
            Outcome::Cancelled => Some(Command::Cancel { jobs }),
            Outcome::Requeued | Outcome::Preempted => Some(Command::Requeue { jobs, hold: false, delay_seconds: 0 }),
            _ => None,
        };
        if let Some(stop) = stop {
            // A job that is gone needs no stop.
            let _ = self.decide(&ledger(), stop);
        }
        let mut exit = exit_of(&outcome, self.now);
        // The first part reports what all of them used: the sum counts.
        exit.usage.cpu_time_micros = cpu_time_micros;
        for (executor, part) in self.executors(run) {
            // As above.
            let _ = self.decide(&executor, Command::NodeEnded { part, exit: exit.clone() });
            exit.usage.cpu_time_micros = 0;
        }
    }

    /// The executors of the nodes of a run, each with a part that it has.
    fn executors(&self, run: RunId) -> Vec<(Arc<Actor>, PartId)> {
        let state = self.projection.state();
        let name = |node: NodeId| Arc::new(Actor::Executor(state.node_name(node).into_owned()));
        let parts = |run: &Run| run.parts.iter().map(|part| (name(part.node), state.part_id(run, part))).collect();
        state.run(run).map(parts).unwrap_or_default()
    }

    fn take_in(&mut self, input: &Input) {
        match &input.what {
            What::Event(Event::PolicySet { .. }) if !self.follows_log => {}
            What::Event(event) if self.is_possible(event) => self.apply(&input.actor, event.clone()),
            What::Event(event) => self.deferred.push(event.clone()),
            What::Command(command) => self.take_in_command(&input.actor, command),
        }
    }

    fn take_in_command(&mut self, actor: &Arc<Actor>, command: &Command) {
        match command {
            Command::Cancel { jobs: JobSelection::Ids(ids) } => self.cancel(actor, ids),
            Command::NodeSilent { .. } => {
                let _ = self.decide(&ledger(), command.clone());
            }
            _ => {
                let is_refused = self.decide(actor, command.clone()).is_err();
                self.result.notes.refused_commands += u64::from(is_refused);
            }
        }
    }

    /// Cancels those of the jobs that still wait.
    fn cancel(&mut self, actor: &Arc<Actor>, ids: &[JobId]) {
        for id in ids {
            let state = self.projection.state();
            let has_started = match state.job(*id) {
                Some(job) => !job.is_waiting(),
                None => id.index.is_none(),
            };
            if has_started {
                self.result.notes.started_before_cancelled += 1;
                continue;
            }
            let command = Command::Cancel { jobs: JobSelection::Ids(vec![*id]) };
            let is_refused = self.decide(actor, command).is_err();
            self.result.notes.refused_commands += u64::from(is_refused);
        }
    }

    /// Whether a change to the cluster can happen now: nodes and queues that are in use are not taken away or changed.
    fn is_possible(&self, event: &Event) -> bool {
        let state = self.projection.state();
        match event {
            Event::NodeRemoved { node } | Event::NodeChanged { node, .. } => {
                state.node(*node).is_none_or(|node| node.runs.is_empty())
            }
            Event::QueueRemoved { name } => {
                let is_of_queue = |job: &muster_domain::jobs::Job| job.queues().any(|queue| **queue == **name);
                !state.jobs().any(|job| !job.is_finished() && is_of_queue(job))
            }
            _ => true,
        }
    }

    fn apply_deferred(&mut self) {
        for event in std::mem::take(&mut self.deferred) {
            if self.is_possible(&event) {
                self.apply(&ledger(), event);
            } else {
                self.deferred.push(event);
            }
        }
    }

    /// Decides a command and applies what it leads to; how many events that were.
    fn decide(&mut self, actor: &Arc<Actor>, command: Command) -> Result<usize, Refusal> {
        let decision = decide_owned(self.projection.state(), actor, command, self.now)?;
        if let Reply::Planned(refused) = decision.reply {
            self.result.notes.refused_starts += refused.len() as u64;
            self.left_out.extend(refused.into_iter().map(|start| start.job));
        }
        let count = decision.events.len();
        for event in decision.events {
            self.apply(actor, event);
        }
        Ok(count)
    }

    fn apply(&mut self, actor: &Arc<Actor>, event: Event) {
        let record = Record {
            sequence: self.projection.state().sequence().next(),
            time: self.now,
            actor: actor.clone(),
            command: CommandId(Default::default()),
            trace: TraceContext::default(),
            event,
            epoch: 0,
        };
        match &record.event {
            Event::RunAllocated { job, run, placement } => self.note_start(*job, *run, placement),
            Event::RunEnded { run, .. } => self.note_end(*run),
            _ => {}
        }
        self.idle_steps = 0;
        (self.observe)(&record);
        // Whatever it is, this world is only thought of.
        self.is_plan_due |= self.projection.apply(&record).unwrap_or(true);
    }

    fn note_start(&mut self, job: JobId, run: RunId, placement: &Placement) {
        let new = NewRun { start: self.now, end: None, cores: cores(placement) };
        self.result.runs.entry(job).or_default().push(new);
        self.begun.push((job, run));
    }

    fn note_end(&mut self, run: RunId) {
        let Some(Ending { job, number, .. }) = self.endings.remove(&run) else { return };
        if let Some(new) = self.result.runs.get_mut(&job).and_then(|runs| runs.get_mut(number)) {
            new.end = Some(self.now);
        }
    }

    fn finish(mut self) -> Replayed {
        self.result.cores = total_cores(self.projection.state());
        self.result
    }
}

fn total_cores(state: &State) -> u64 {
    let up = state.nodes().filter(|node| node.condition == NodeCondition::Up);
    up.map(|node| u64::from(node.spec.cores)).sum()
}

fn ledger() -> Arc<Actor> {
    Arc::new(Actor::Ledger)
}

/// What each node of a run reports for it to end so.
fn exit_of(outcome: &Outcome, now: Timestamp) -> NodeExit {
    let success = Some(ExitStatus::Code(0));
    let (status, cause) = match outcome {
        Outcome::Failed(status) => (Some(*status), EndCause::Itself),
        Outcome::TimedOut => (None, EndCause::Walltime),
        Outcome::OutOfMemory => (None, EndCause::OutOfMemory),
        Outcome::LaunchFailed(why) => (None, EndCause::LaunchFailed(why.clone())),
        Outcome::NodeLost(why) => (None, EndCause::Lost(why.clone())),
        Outcome::Cancelled | Outcome::Requeued | Outcome::Preempted => (None, EndCause::Killed),
        Outcome::Completed
        | Outcome::DeadlineMissed
        | Outcome::DependencyNeverMet
        | Outcome::Refused(_)
        | Outcome::DeclaredFinished => (success, EndCause::Itself),
    };
    NodeExit { status, cause, usage: Usage::default(), started: Some(now), ended: now }
}
