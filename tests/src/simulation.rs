//! The whole system in one thread, under a seeded scheduler, with every fault that the simulation knows.
//!
//! The ledger's decide loop and its log in RocksDB, the domain and the planner are the production code. Bus, clock,
//! executors, filter-runners and users are models: messages come late, twice, out of order or never; ledger, planner,
//! executors and whole nodes stop at any point and come back later; the disk tears the current write at any byte.
//!
//! After every step it checks that no acknowledged command is lost, that no run and no step is started twice on a node,
//! that replaying the log gives the ledger's state, and that the hash chain is whole. At the end the faults stop, and
//! every acknowledged job must come to its end, with the log and the nodes in agreement about what ran.
//!
//! The same seed gives the same history, so [`run`] with a seed repeats it.

mod aims;
mod chains;
mod components;
mod effects;
mod filters;
mod kills;
mod ledger;
mod machine_room;
mod mechanisms;
mod network;
mod node;
mod pauses;
mod planner;
mod runner;
mod script;
mod tasks;
mod truth;
mod user;

pub use aims::Kills;
use aims::{Blow, Victim};
use chains::Phase;
use ledger::LedgerHost;
pub use mechanisms::Counts;
use mechanisms::Room;
use muster_schemas::{
    CommandId, Sequence, Timestamp,
    cluster::{ClusterConfig, ClusterSettings, QueueSpec},
    command::{Command, CommandEnvelope, JobFilter, JobSelection},
    energy::PowerOrder,
    event::{Actor, Owner, TraceContext},
    filter_order::FilterOrder,
    job::Holds,
    policy::{BUILT_IN_POLICIES, Policy},
    resources::NodeSpec,
    scheduling::{Preemption, SchedulingMode, SchedulingSettings},
};
use network::{Network, Parcel, Party};
use node::NodeHost;
use planner::PlannerHost;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use runner::RunnerHost;
use script::HostileScript;
use std::{collections::BTreeMap, fmt, sync::Arc};
use truth::Truth;
use user::UserHost;

/// The size of the simulated world, and how long it has faults.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Nodes of the cluster.
    pub nodes: usize,
    /// Users who submit and change jobs.
    pub users: usize,
    /// The simulated seconds with faults and new commands.
    pub troubled_seconds: i64,
    /// Filter-runners; with none there are no filters.
    pub runners: usize,
    /// Whether users mostly submit jobs with several components, and act on single ones.
    pub components: bool,
    /// Whether a scheduling program plans that does what programs must not do.
    pub hostile_script: bool,
    /// Whether there are planning domains, quotas, runs that make way, fixed starts, nodes that sleep, and a node whose agent asks
    /// for its orders.
    pub mechanisms: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nodes: 3,
            users: 3,
            troubled_seconds: 60,
            runners: 0,
            components: false,
            hostile_script: false,
            mechanisms: false,
        }
    }
}

/// The result of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Happenings.
    pub steps: u64,
    /// Jobs whose submission was acknowledged.
    pub jobs: u64,
    /// Parts of runs, and instances of tasks, that were started on nodes.
    pub starts: u64,
    /// Instances of tasks that ended by themselves.
    pub instances: u64,
    /// Times that a running job gained or lost resources.
    pub resizes: u64,
    /// Times that a service, or a node, was stopped.
    pub crashes: u64,
    /// Times that an executor or the ledger was paused.
    pub pauses: u64,
    /// Writes that were torn.
    pub torn_writes: u64,
    /// Records in the log at the end.
    pub records: u64,
    /// Chains of filters that ended.
    pub chains: u64,
    /// Filters that were asked to revert.
    pub reverts: u64,
    /// Attempts to run a job with several components that started.
    pub attempts: u64,
    /// Attempts in which components of a job shared a node.
    pub shared: u64,
    /// Components that ended alone.
    pub ended_alone: u64,
    /// Times that a job with several components was put back into the queue.
    pub requeued: u64,
    /// Stops that hit a chain of filters.
    pub kills: Kills,
    /// Cycles that a hostile scheduling program has harmed.
    pub misdeeds: u64,
    /// Domains, quotas, runs that make way, and nodes that sleep or vanish.
    pub mechanisms: Counts,
}

impl Report {
    /// Adds the result of another simulation.
    pub fn add(&mut self, other: Self) {
        self.steps += other.steps;
        self.jobs += other.jobs;
        self.starts += other.starts;
        self.instances += other.instances;
        self.resizes += other.resizes;
        self.crashes += other.crashes;
        self.pauses += other.pauses;
        self.torn_writes += other.torn_writes;
        self.records += other.records;
        self.chains += other.chains;
        self.reverts += other.reverts;
        self.attempts += other.attempts;
        self.shared += other.shared;
        self.ended_alone += other.ended_alone;
        self.requeued += other.requeued;
        self.kills.add(other.kills);
        self.misdeeds += other.misdeeds;
        self.mechanisms.add(other.mechanisms);
    }
}

/// A promise that was broken.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// Whether the simulation had jobs with several components.
    pub components: bool,
    /// Whether it had planning domains, quotas and the like.
    pub mechanisms: bool,
    /// Simulated microseconds from the beginning.
    pub at_micros: i64,
    /// The promise, and how it was broken.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.at_micros as f64 / 1e6;
        writeln!(f, "seed {} after {seconds:.6} simulated seconds: {}", self.seed, self.what)?;
        let components = if self.components { " --components" } else { "" };
        let mechanisms = if self.mechanisms { " --mechanisms" } else { "" };
        let seed = self.seed;
        write!(
            f,
            "repeat it: cargo run -p muster-loadtest -- simulation --from {seed} --seeds 1{components}{mechanisms}"
        )
    }
}

impl std::error::Error for Failure {}

/// In the year 2096: the log forgets old answers by the machine's clock, and these must not look old.
const BEGINNING: i64 = 4_000_000_000_000_000;
const SECOND: i64 = 1_000_000;
/// Once the faults stop, everything acknowledged must be done within this many simulated seconds.
const PEACE_SECONDS: i64 = 3_600;

/// Something that can happen next.
#[derive(Debug)]
enum Happening {
    Arrives(Parcel),
    LedgerRound,
    LedgerWakes,
    LedgerReturns,
    PlannerReturns,
    PlannerWakes,
    ExecutorReturns(usize),
    ExecutorGoesOn(usize),
    Heartbeat(usize),
    PartEnds {
        node: usize,
        part: node::Key,
    },
    /// A program that changes the power of nodes is at its work.
    PowerProgram {
        order: Arc<PowerOrder>,
        of: Sequence,
    },
    UserActs(usize),
    AskAgain(Party, CommandId),
    RunnerReturns(usize),
    CallEnds {
        runner: usize,
        order: Arc<FilterOrder>,
    },
    OfferCalls,
    TakeAim(Phase),
    Strike {
        victim: Victim,
        phase: Phase,
        runner: usize,
    },
    Trouble,
    Peace,
}

/// Future happenings, in order of time; those of the same time in the order in which they were added.
#[derive(Debug)]
struct Agenda {
    now: i64,
    entries: BTreeMap<(i64, u64), Happening>,
    count: u64,
}

impl Agenda {
    fn after(&mut self, micros: i64, happening: Happening) {
        self.count += 1;
        self.entries.insert((self.now + micros.max(1), self.count), happening);
    }
}

struct World {
    random: SmallRng,
    agenda: Agenda,
    network: Network,
    ledger: LedgerHost,
    planner: PlannerHost,
    nodes: Vec<NodeHost>,
    users: Vec<UserHost>,
    runners: Vec<RunnerHost>,
    /// What plans in place of the planner, as long as there is trouble.
    script: Option<HostileScript>,
    /// The work queue of filters: calls that no runner has taken.
    queue: BTreeMap<String, Arc<FilterOrder>>,
    truth: Truth,
    /// The power of nodes, and the orders that agents have not asked for.
    room: Room,
    has_mechanisms: bool,
    troubled: bool,
    /// Paused executors, and the happenings that wait for them.
    paused: BTreeMap<usize, Vec<Happening>>,
    /// The ledger is paused until then.
    ledger_goes_on: i64,
    /// The next blow for a call of a filter, by phase.
    aims: BTreeMap<Phase, Blow>,
    /// When the ledger wakes by itself.
    wake_at: Option<i64>,
    /// The last time at which the planner asked to be woken.
    planner_wakes_at: Option<i64>,
    report: Report,
}

/// Runs the simulation of a seed.
///
/// # Errors
/// The first promise that was broken.
pub fn run(seed: u64, options: Options) -> Result<Report, Failure> {
    let Options { components, mechanisms, .. } = options;
    let failed = |at_micros, what| Failure { seed, components, mechanisms, at_micros, what };
    let mut world = World::new(seed, options).map_err(|what| failed(0, what))?;
    let result = world.live();
    let at_micros = world.agenda.now - BEGINNING;
    result.map(|()| world.report()).map_err(|what| failed(at_micros, what))
}

/// As [`run`], and copies the final data folder of the ledger to `folder`.
///
/// # Errors
/// As [`run`]; or the folder cannot be copied.
pub fn run_and_keep(seed: u64, options: Options, folder: &std::path::Path) -> Result<Report, Failure> {
    let Options { components, mechanisms, .. } = options;
    let failed = |what| Failure { seed, components, mechanisms, at_micros: 0, what };
    let mut world = World::new(seed, options).map_err(failed)?;
    world.live().map_err(failed)?;
    world.ledger.keep(folder).map_err(failed)?;
    Ok(world.report())
}

impl World {
    fn new(seed: u64, options: Options) -> Result<Self, String> {
        let mut agenda = Agenda { now: BEGINNING, entries: BTreeMap::new(), count: 0 };
        let ledger = LedgerHost::new(Timestamp(BEGINNING))?;
        for node in 0..options.nodes {
            agenda.after(SECOND / 10 * (node as i64 + 1), Happening::ExecutorReturns(node));
        }
        for user in 0..options.users {
            agenda.after(SECOND / 2, Happening::UserActs(user));
        }
        agenda.after(SECOND / 100, Happening::PlannerReturns);
        agenda.after(SECOND, Happening::Trouble);
        agenda.after(options.troubled_seconds * SECOND, Happening::Peace);
        let mut world = Self {
            random: SmallRng::seed_from_u64(seed),
            agenda,
            network: Network::default(),
            ledger,
            planner: PlannerHost::default(),
            nodes: (0..options.nodes).map(NodeHost::new).collect(),
            users: (0..options.users)
                .map(|number| UserHost::new(number, options.components, options.mechanisms))
                .collect(),
            runners: (0..options.runners).map(|_| RunnerHost::new()).collect(),
            script: options.hostile_script.then(HostileScript::default),
            queue: BTreeMap::new(),
            truth: Truth::default(),
            room: Room::default(),
            has_mechanisms: options.mechanisms,
            troubled: true,
            paused: BTreeMap::new(),
            ledger_goes_on: BEGINNING,
            aims: BTreeMap::new(),
            wake_at: None,
            planner_wakes_at: None,
            report: Report::default(),
        };
        let log = world.ledger.read_log()?;
        world.truth.ledger_restarted(&log)?;
        world.ask(
            Party::Operator,
            operator_command(
                Command::Configure { change: Box::new(configuration(&options).into()), keep_unnamed: false },
                CommandId::derived(&[b"configure"]),
            ),
        );
        let name = BUILT_IN_POLICIES[world.random.random_range(0..BUILT_IN_POLICIES.len())];
        if let Some(mut policy) = Policy::built_in(name) {
            policy.backfill.components.share_nodes = world.random.random_bool(0.5);
            let command = Command::SetPolicy { policy: Box::new(policy) };
            world.ask(Party::Operator, operator_command(command, CommandId::derived(&[b"policy"])));
        }
        world.set_scheduling();
        if options.runners > 0 {
            world.set_filters();
        }
        Ok(world)
    }

    /// Sets a mode beside the policy, or none; sizes change often.
    fn set_scheduling(&mut self) {
        let mode = [None, Some(SchedulingMode::Queued), Some(SchedulingMode::Balanced)][self.random.random_range(0..3)];
        let preemption = [Preemption::None, Preemption::Graceful, Preemption::Immediate];
        let preemption = Some(preemption[self.random.random_range(0..preemption.len())]);
        let settings = SchedulingSettings {
            mode,
            preemption,
            balanced_preemption: preemption,
            rebalance_seconds: Some(self.random.random_range(1..5)),
            release_timeout_seconds: Some(self.random.random_range(1..4)),
            task_preemption: Some(self.random.random_bool(0.5)),
            growth_by_preemption: Some(self.random.random_bool(0.3)),
            ..SchedulingSettings::default()
        };
        let command = Command::SetParameters { filters: None, scheduling: Some(Box::new(settings)) };
        self.ask(Party::Operator, operator_command(command, CommandId::derived(&[b"scheduling"])));
    }

    fn live(&mut self) -> Result<(), String> {
        loop {
            let Some(((time, _), happening)) = self.agenda.entries.pop_first() else {
                return Err("nothing is left to happen".into());
            };
            self.agenda.now = time;
            self.report.steps += 1;
            self.step(happening)?;
            self.truth.check()?;
            if !self.troubled && self.is_all_done() {
                return self.final_checks();
            }
            if self.agenda.now > BEGINNING + PEACE_SECONDS * SECOND {
                return Err(format!("not all is done long after the faults stopped: {}", self.what_is_left()));
            }
        }
    }

    fn step(&mut self, happening: Happening) -> Result<(), String> {
        let Some(happening) = self.unless_paused(happening) else { return Ok(()) };
        match happening {
            Happening::Arrives(parcel) => self.arrives(parcel),
            Happening::LedgerRound => self.ledger_round(),
            Happening::LedgerWakes if self.wake_at == Some(self.agenda.now) => self.ledger_round(),
            Happening::LedgerWakes => Ok(()),
            Happening::LedgerReturns => self.ledger_returns(),
            Happening::PlannerReturns => {
                self.planner.start();
                self.planner_looks()
            }
            Happening::PlannerWakes => self.planner_looks(),
            Happening::ExecutorReturns(node) => {
                self.executor_returns(node);
                Ok(())
            }
            Happening::ExecutorGoesOn(node) => {
                self.executor_goes_on(node);
                Ok(())
            }
            Happening::Heartbeat(node) => {
                self.heartbeat(node);
                Ok(())
            }
            Happening::PartEnds { node, part } => {
                self.part_ends(node, part);
                Ok(())
            }
            Happening::PowerProgram { order, of } => {
                self.power_program(&order, of);
                Ok(())
            }
            Happening::UserActs(user) => {
                self.user_acts(user);
                Ok(())
            }
            Happening::AskAgain(party, id) => {
                self.ask_again(party, id);
                Ok(())
            }
            Happening::RunnerReturns(runner) => {
                self.runners[runner].starts();
                Ok(())
            }
            Happening::CallEnds { runner, order } => {
                self.call_ends(runner, &order);
                Ok(())
            }
            Happening::OfferCalls => {
                self.offer_calls();
                self.agenda.after(SECOND, Happening::OfferCalls);
                Ok(())
            }
            Happening::TakeAim(phase) => {
                self.take_aim(phase);
                Ok(())
            }
            Happening::Strike { victim, phase, runner } => {
                self.strike(victim, phase, runner);
                Ok(())
            }
            Happening::Trouble => {
                self.trouble();
                Ok(())
            }
            Happening::Peace => {
                self.peace();
                Ok(())
            }
        }
    }

    /// Sends a parcel, once, several times, or not at all.
    fn send(&mut self, parcel: Parcel) {
        for delay in self.network.delays(&mut self.random, self.troubled, self.agenda.now) {
            self.agenda.after(delay, Happening::Arrives(parcel.clone()));
        }
    }

    /// Sends a command and repeats it until it is answered.
    fn ask(&mut self, party: Party, envelope: CommandEnvelope) {
        let id = envelope.id;
        self.network.open.insert(id, (party, Arc::new(envelope)));
        self.ask_again(party, id);
    }

    fn ask_again(&mut self, party: Party, id: CommandId) {
        let Some((_, envelope)) = self.network.open.get(&id) else { return };
        self.send(Parcel::Command { from: party, envelope: Arc::clone(envelope) });
        self.agenda.after(SECOND, Happening::AskAgain(party, id));
    }

    fn arrives(&mut self, parcel: Parcel) -> Result<(), String> {
        match parcel {
            Parcel::Command { .. } | Parcel::Heartbeat { .. } | Parcel::WantsReplay { .. } => {
                if self.ledger.takes(parcel) {
                    let pause = self.random.random_range(50..2_000);
                    self.agenda.after(pause, Happening::LedgerRound);
                }
                Ok(())
            }
            Parcel::Answer { to, id, answer } => self.answered(to, id, &answer),
            Parcel::Briefed { node, briefing } => {
                for order in self.nodes[node].briefed(&briefing) {
                    self.node_order(node, &order);
                }
                Ok(())
            }
            Parcel::Orders { node, orders } => {
                for order in self.posted(node, &orders) {
                    self.node_order(node, &order);
                }
                Ok(())
            }
            Parcel::Pulled { node, orders } => {
                for order in orders.iter() {
                    self.node_order(node, order);
                }
                Ok(())
            }
            Parcel::Offered { runner, order } => {
                self.call_offered(runner, order);
                Ok(())
            }
            Parcel::Commit(commit) | Parcel::Replay(commit) => {
                self.planner.receives(&commit);
                self.planner_looks()
            }
        }
    }

    fn answered(&mut self, to: Party, id: CommandId, answer: &muster_schemas::command::Answer) -> Result<(), String> {
        self.truth.acknowledged(id, answer)?;
        if self.network.open.remove(&id).is_none() {
            return Ok(());
        }
        match to {
            Party::Planner => {
                self.planner.answered(id, answer);
                self.planner_looks()?;
            }
            Party::Node(node) => {
                for order in self.nodes[node].answered(id, answer) {
                    self.node_order(node, &order);
                }
            }
            Party::Runner(runner) => {
                self.claim_answered(runner, id, answer);
            }
            Party::User(_) | Party::Operator => {}
        }
        Ok(())
    }

    fn ledger_round(&mut self) -> Result<(), String> {
        if !self.ledger.is_up() {
            return Ok(());
        }
        let crash = self.crash_of_round();
        let now = Timestamp(self.agenda.now);
        let Some(outcome) = self.ledger.round(now, crash.map(|(crash, _)| crash), &mut self.random)? else {
            return Ok(());
        };
        self.truth.round(&outcome)?;
        if !outcome.torn {
            self.check_losses(&outcome.written)?;
            if self.has_mechanisms {
                mechanisms::check(&outcome.written, self.truth.state())?;
            }
            self.give_power_orders(&outcome.written);
        }
        for parcel in outcome.parcels {
            self.send(parcel);
        }
        self.enqueue_calls(outcome.calls);
        if let Some((_, aimed_at)) = crash {
            self.ledger_crashed(aimed_at, outcome.torn);
        }
        self.set_alarm();
        Ok(())
    }

    fn set_alarm(&mut self) {
        let wake = self.ledger.next_wake().map(|wake| wake.0.max(self.agenda.now + 1_000));
        if wake != self.wake_at {
            self.wake_at = wake;
            let pause = wake.map_or(0, |wake| wake - self.agenda.now);
            self.agenda.after(pause, Happening::LedgerWakes);
        }
    }

    fn ledger_returns(&mut self) -> Result<(), String> {
        let log = self.ledger.start(Timestamp(self.agenda.now))?;
        self.truth.ledger_restarted(&log)?;
        self.give_power_orders(&log);
        self.agenda.after(1_000, Happening::LedgerRound);
        Ok(())
    }

    fn planner_looks(&mut self) -> Result<(), String> {
        if let Some(from) = self.planner.missing(self.agenda.now) {
            self.send(Parcel::WantsReplay { from });
        }
        if let Some(command) = self.planner.plan(self.agenda.now)? {
            let commands = match &mut self.script {
                Some(script) if self.troubled => script.answers(command, self.truth.state(), &mut self.random),
                _ => vec![command],
            };
            if commands.is_empty() {
                self.planner.looks_again(self.agenda.now + SECOND);
            }
            for command in commands {
                let id = self.fresh_id();
                self.planner.outstanding = Some(id);
                let envelope = CommandEnvelope { id, actor: Actor::Planner, trace: TraceContext::default(), command };
                self.ask(Party::Planner, envelope);
            }
        }
        if let Some(wake) = self.planner.wake()
            && self.planner_wakes_at != Some(wake)
        {
            self.planner_wakes_at = Some(wake);
            self.agenda.after(wake - self.agenda.now, Happening::PlannerWakes);
        }
        Ok(())
    }

    fn user_acts(&mut self, user: usize) {
        if !self.troubled {
            return;
        }
        let has_filters = !self.runners.is_empty();
        let command = self.users[user].command(&mut self.random, self.truth.state(), has_filters);
        let id = self.fresh_id();
        let actor = Actor::User(self.users[user].owner());
        self.ask(Party::User(user), CommandEnvelope { id, actor, trace: TraceContext::default(), command });
        let pause = self.random.random_range(SECOND / 20..2 * SECOND);
        self.agenda.after(pause, Happening::UserActs(user));
    }

    fn fresh_id(&mut self) -> CommandId {
        CommandId::derived(&[&self.random.random::<u128>().to_le_bytes()])
    }

    fn executor_returns(&mut self, node: usize) {
        if self.nodes[node].is_up() {
            return;
        }
        let commands = self.nodes[node].starts(Timestamp(self.agenda.now));
        self.node_asks(node, commands);
        self.agenda.after(SECOND, Happening::Heartbeat(node));
    }

    fn heartbeat(&mut self, node: usize) {
        if let Some(heartbeat) = self.nodes[node].heartbeat() {
            self.send(Parcel::Heartbeat { node, heartbeat });
            self.agent_asks(node);
            self.agenda.after(4 * SECOND, Happening::Heartbeat(node));
        }
    }

    fn node_order(&mut self, node: usize, order: &muster_schemas::node::NodeOrder) {
        let now = Timestamp(self.agenda.now);
        let crash = self.troubled && self.random.random_range(0..200) == 0;
        let effects = self.nodes[node].obeys(order, now, crash, &mut self.random);
        for part in effects.started {
            self.truth.started(part, node);
        }
        for part in effects.held {
            self.truth.held(part);
        }
        for (part, micros) in effects.ends {
            self.agenda.after(micros, Happening::PartEnds { node, part });
        }
        self.node_asks(node, effects.commands);
        if crash {
            self.stop_executor(node, None);
            self.agenda.after(SECOND, Happening::ExecutorReturns(node));
        }
    }

    fn part_ends(&mut self, node: usize, part: node::Key) {
        let now = Timestamp(self.agenda.now);
        match self.nodes[node].ends(part, now, &mut self.random) {
            node::End::NotNow(micros) => self.agenda.after(micros, Happening::PartEnds { node, part }),
            node::End::Reports(commands) => self.node_asks(node, commands),
        }
    }

    fn node_asks(&mut self, node: usize, commands: Vec<(CommandId, Command)>) {
        for (id, command) in commands {
            let actor = Actor::Executor(node::name(node));
            self.ask(Party::Node(node), CommandEnvelope { id, actor, trace: TraceContext::default(), command });
        }
    }

    /// From here on everything works, and nobody asks for anything new except to release holds. Releases are repeated,
    /// because earlier commands of users may arrive late.
    fn peace(&mut self) {
        self.troubled = false;
        self.network.cut_until = 0;
        let all = || JobSelection::Matching(JobFilter::default());
        let holds = Holds { user: true, operator: true, system: true };
        let commands = [
            Command::ResumeNodes { nodes: (0..self.nodes.len()).map(node::name).collect() },
            Command::Release { jobs: all(), holds },
            Command::Resume { jobs: all() },
            Command::HoldUntil { jobs: all(), until: None },
        ];
        for command in commands {
            let id = self.fresh_id();
            self.ask(Party::Operator, operator_command(command, id));
        }
        if self.has_mechanisms {
            self.lift_quotas();
            self.give_up_homeless();
            self.switch_on();
        }
        self.agenda.after(60 * SECOND, Happening::Peace);
    }

    fn is_all_done(&self) -> bool {
        let services_up = self.ledger.is_up()
            && self.planner.is_up()
            && (0..self.nodes.len()).all(|node| self.nodes[node].is_up() || self.has_mechanisms && self.sleeps(node));
        services_up
            && self.network.open.is_empty()
            && self.nodes.iter().all(NodeHost::is_idle)
            && self.runners.iter().all(RunnerHost::is_idle)
            && self.truth.chains().open().next().is_none()
            && self.truth.state().unfinished_jobs() == 0
    }

    fn what_is_left(&self) -> String {
        let state = self.truth.state();
        let jobs: Vec<String> = state
            .jobs()
            .filter(|job| !job.is_finished())
            .map(|job| {
                let reason = state.wait_reason(job).map_or(String::new(), |reason| format!(" ({reason})"));
                let conditions: Vec<String> =
                    job.components.iter().map(|component| format!("{:?}", component.extras)).collect();
                format!("job {} is {}{reason} {}", job.id, state.job_state(job).word(), conditions.join(" "))
            })
            .collect();
        let open: Vec<String> =
            self.network.open.values().map(|(party, envelope)| format!("{party:?}: {:?}", envelope.command)).collect();
        let nodes: Vec<String> = self.nodes.iter().map(NodeHost::describe).collect();
        let runs: Vec<String> = state.runs().map(|run| format!("{run:?}")).collect();
        format!(
            "runs: {}; {}; open: {}; nodes: {}",
            runs.join(", "),
            jobs.join(", "),
            open.join(", "),
            nodes.join(", ")
        )
    }

    fn final_checks(&mut self) -> Result<(), String> {
        let log = self.ledger.read_log()?;
        self.truth.final_checks(&log)
    }

    fn report(&self) -> Report {
        Report {
            jobs: self.truth.acknowledged_jobs(),
            starts: self.truth.starts(),
            instances: self.truth.tasks().ended,
            resizes: self.truth.tasks().resizes,
            records: self.truth.state().sequence().0,
            chains: self.truth.chains().completed,
            reverts: self.truth.chains().reverts,
            attempts: self.truth.components().started,
            shared: self.truth.components().shared,
            ended_alone: self.truth.components().ended_alone,
            requeued: self.truth.components().requeued,
            mechanisms: *self.truth.mechanisms(),
            misdeeds: self.script.as_ref().map_or(0, |script| script.misdeeds),
            ..self.report
        }
    }
}

fn operator_command(command: Command, id: CommandId) -> CommandEnvelope {
    let root = Owner { user: "root".into(), uid: 0, gid: 0 };
    CommandEnvelope { id, actor: Actor::User(root), trace: TraceContext::default(), command }
}

fn configuration(options: &Options) -> ClusterConfig {
    let node = |number: usize| NodeSpec {
        name: node::name(number),
        cores: 4,
        sockets: 1,
        memory_bytes: 8 << 30,
        gpus: Vec::new(),
        properties: BTreeMap::new(),
    };
    let config = ClusterConfig {
        settings: ClusterSettings {
            node_lost_after_seconds: 20,
            launch_timeout_seconds: 15,
            cancel_never_met: true,
            ..ClusterSettings::default()
        },
        queues: vec![QueueSpec { name: "default".into(), ..QueueSpec::default() }],
        nodes: (0..options.nodes).map(node).collect(),
        licences: [("tool".to_owned(), 2)].into(),
        ..ClusterConfig::default()
    };
    if options.mechanisms { mechanisms::configured(config) } else { config }
}
