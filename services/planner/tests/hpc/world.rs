//! A ledger, a planner, nodes and filters without any process: each command is decided and applied at once, filters
//! answer after a time from a table, and the clock moves from one due happening to the next.

use muster_domain::{State, decide, filters::Chain, invariants::assert_invariants, runs::Run};
use muster_planner::{
    projection::Projection,
    verify::{Verdict, Verifier},
};
use muster_schemas::{
    CommandId, JobId, RunId, Sequence, Timestamp,
    cluster::{ClusterChange, ClusterConfig, QueueSpec},
    command::{CallOutcome, CallReport, Command, RefusedStart, Reply},
    event::{Actor, EndCause, Event, Intake, NodeExit, Owner, Record, TraceContext},
    filter::{
        ActivationOrdering, ActivationParameters, CallId, FilterExit, FilterForm, FilterReport, FilterSettings,
        FilterSpec, StagingSettings, TemplateSpec,
    },
    job::{Component, ComponentStaging, ExitStatus, JobSpec, Launch, Program, Usage, WaitReason},
    resources::{Alternative, Count, Level, LevelCount, NodeSpec, Request},
    scheduling::SchedulingSettings,
    tasks::{SizeUnit, TaskKind, TaskList, TaskSpec},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The template whose jobs have an activation filter.
const FILTERED: &str = "Filtered";

/// A filter's answer, and after how many seconds it comes.
pub type Answer = (i64, FilterExit);

pub struct World {
    projection: Projection,
    start: Timestamp,
    now: Timestamp,
    /// The answers of each job's filters: the first, the second, and so on; the last one is repeated.
    answers: BTreeMap<JobId, Vec<Answer>>,
    /// Calls that a runner has, with the time of the answer.
    called: BTreeMap<CallId, (Timestamp, FilterExit)>,
    /// When each run ends by itself.
    ends: BTreeMap<RunId, Timestamp>,
    plan_is_due: bool,
    wake: Option<Timestamp>,
    passes: u64,
    /// The parameters of activation filters, by job, with the second.
    pub asked: Vec<(i64, JobId, ActivationParameters)>,
    /// All records.
    records: Vec<Record>,
}

#[derive(Clone, Debug)]
pub struct Wanted {
    pub min: u32,
    pub max: u32,
    pub minutes: i64,
    pub priority: i64,
    /// For a list of tasks: the number of its tasks, each with one core.
    pub tasks: u32,
}

pub fn cores(min: u32, max: u32) -> Wanted {
    Wanted { min, max, minutes: 5, priority: 2000, tasks: 0 }
}

impl World {
    /// Nodes with two cores each.
    pub fn new(nodes: u32, settings: SchedulingSettings) -> Self {
        let node = |number: u32| NodeSpec {
            name: format!("n{number}"),
            cores: 2,
            sockets: 1,
            memory_bytes: 1 << 30,
            gpus: Vec::new(),
            properties: Default::default(),
        };
        let queue = QueueSpec { name: "default".into(), ..QueueSpec::default() };
        let config =
            ClusterConfig { nodes: (1..=nodes).map(node).collect(), queues: vec![queue], ..ClusterConfig::default() };
        let start = Timestamp::from_unix_seconds(1_000_000);
        let mut world = Self {
            projection: Projection::of(State::new()),
            start,
            now: start,
            answers: BTreeMap::new(),
            called: BTreeMap::new(),
            ends: BTreeMap::new(),
            plan_is_due: true,
            wake: None,
            passes: 0,
            asked: Vec::new(),
            records: Vec::new(),
        };
        world.command(&Actor::Ledger, Command::Configure { change: Box::new(config.into()), keep_unnamed: false });
        for number in 1..=nodes {
            let hello =
                Command::NodeHello { boot_id: "boot".into(), parts: Vec::new(), highest_run: None, as_of: None };
            world.command(&Actor::Executor(format!("n{number}")), hello);
        }
        world.command(&Actor::Ledger, Command::SetParameters { filters: None, scheduling: Some(Box::new(settings)) });
        let filter = FilterSpec {
            name: "license".into(),
            path: "/filters/license".into(),
            form: FilterForm::Verbs,
            revert_on_unknown: false,
        };
        let template =
            TemplateSpec { name: FILTERED.into(), activation_filters: vec![filter], ..TemplateSpec::default() };
        world.command(&Actor::Ledger, Command::SetTemplate { template: Box::new(template) });
        world
    }

    pub fn set_ordering(&mut self, ordering: ActivationOrdering) {
        let settings = FilterSettings { ordering, ..FilterSettings::default() };
        self.command(&Actor::Ledger, Command::SetParameters { filters: Some(Box::new(settings)), scheduling: None });
    }

    pub fn state(&self) -> &State {
        self.projection.state()
    }

    /// The current second.
    fn second(&self) -> i64 {
        self.now.micros_since(self.start) / 1_000_000
    }

    fn command(&mut self, actor: &Actor, command: Command) -> Reply {
        let decision = decide(self.state(), actor, &command, self.now)
            .unwrap_or_else(|refusal| panic!("{command:?} is refused: {refusal}"));
        let id = CommandId::derived(&[&self.state().sequence().0.to_le_bytes()]);
        for event in decision.events {
            self.record(actor, id, event);
        }
        assert_invariants(self.state());
        decision.reply
    }

    fn record(&mut self, actor: &Actor, command: CommandId, event: Event) {
        if let Event::FilterChainStarted { job, chain } = &event
            && let Some(offer) = &chain.offer
        {
            self.asked.push((self.second(), *job, offer.parameters));
        }
        let sequence = Sequence(self.state().sequence().0 + 1);
        let record = Record {
            sequence,
            time: self.now,
            actor: Arc::new(actor.clone()),
            command,
            trace: TraceContext::default(),
            event,
            epoch: 0,
        };
        self.plan_is_due |= self.projection.apply(&record).unwrap();
        self.records.push(record);
    }

    /// Repeats every decision of the planner from the records.
    pub fn verdict(&self) -> Verdict {
        let mut verifier = Verifier::new(State::new(), 10);
        self.records.iter().for_each(|record| verifier.read(record));
        verifier.finish()
    }

    pub fn submit(&mut self, wanted: &Wanted) -> JobId {
        self.submit_with(wanted, None)
    }

    /// A job with an activation filter, and the filter's answers.
    pub fn submit_filtered(&mut self, wanted: &Wanted, answers: Vec<Answer>) -> JobId {
        let job = self.submit_with(wanted, Some(FILTERED.into()));
        self.answers.insert(job, answers);
        job
    }

    /// A job that arrives in this second.
    pub fn submit_at(&mut self, second: i64, wanted: &Wanted) -> JobId {
        self.now = self.start.plus_seconds(second);
        self.submit(wanted)
    }

    /// From here on requested staging is carried out.
    pub fn set_staging(&mut self) {
        let staging = StagingSettings { program: Some("/site/stage".into()), ..StagingSettings::default() };
        let change = Box::new(ClusterChange { staging: Some(staging), ..ClusterChange::default() });
        self.command(&Actor::Ledger, Command::Configure { change, keep_unnamed: true });
    }

    /// A job with this staging, and the answers of the staging program.
    pub fn submit_staged(&mut self, wanted: &Wanted, staging: ComponentStaging, answers: Vec<Answer>) -> JobId {
        let job = self.submit_as(wanted, None, vec![staging]);
        self.answers.insert(job, answers);
        job
    }

    fn submit_with(&mut self, wanted: &Wanted, template: Option<String>) -> JobId {
        self.submit_as(wanted, template, Vec::new())
    }

    fn submit_as(&mut self, wanted: &Wanted, template: Option<String>, staging: Vec<ComponentStaging>) -> JobId {
        let range = Count::Range { min: wanted.min, max: wanted.max };
        let request = Request { path: vec![LevelCount { level: Level::Core, count: range }], ..Request::default() };
        let walltime_seconds = u64::try_from(60 * wanted.minutes).ok();
        let alternative = Alternative { requests: vec![request], walltime_seconds, ..Alternative::default() };
        let program = |argv: &str| Program::Tasks { argv: vec![argv.into()] };
        let launch =
            Launch { program: if wanted.tasks > 0 { Program::None } else { program("true") }, ..Launch::default() };
        let component = Component {
            launch,
            alternatives: vec![alternative],
            priority: Some(wanted.priority),
            ..Component::default()
        };
        let spec =
            JobSpec { components: vec![component], working_directory: "/".into(), staging, ..JobSpec::default() };
        let task = TaskSpec {
            name: String::new(),
            kind: TaskKind::Sweep { start: 1, increment: 1, steps: wanted.tasks },
            min: 1,
            max: 1,
            run_time_seconds: None,
            after: Vec::new(),
            launch: Launch { program: program("work"), ..Launch::default() },
            environment: BTreeMap::new(),
            working_directory: None,
            valid_exit_codes: Vec::new(),
            rerunnable: false,
        };
        let tasks = (wanted.tasks > 0).then(|| TaskList {
            unit: SizeUnit::Core,
            min: wanted.min,
            max: wanted.max,
            tasks: vec![task],
            ..TaskList::default()
        });
        let intake = Box::new(Intake { template, tasks, ..Intake::default() });
        let owner = Actor::User(Owner { user: "ada".into(), uid: 1000, gid: 100 });
        match self.command(&owner, Command::SubmitDocument { spec: Box::new(spec), intake }) {
            Reply::Submitted(jobs) => jobs[0],
            other => panic!("unexpected reply {other:?}"),
        }
    }

    /// Lets everything happen up to and including this second.
    pub fn to(&mut self, second: i64) {
        let until = self.start.plus_seconds(second);
        loop {
            self.do_what_is_due();
            let next = self.next().filter(|next| *next <= until);
            self.now = next.unwrap_or(until);
            if next.is_none() {
                return self.do_what_is_due();
            }
        }
    }

    fn next(&self) -> Option<Timestamp> {
        let answers = self.called.values().map(|(at, _)| *at);
        let timer = self.state().next_timer();
        answers.chain(self.ends.values().copied()).chain(self.wake).chain(timer).filter(|at| *at > self.now).min()
    }

    fn do_what_is_due(&mut self) {
        for _ in 0..1000 {
            if !(self.tick() | self.launch() | self.end() | self.call() | self.answer() | self.plan()) {
                return;
            }
        }
        panic!("it does not come to rest at second {}", self.second());
    }

    fn tick(&mut self) -> bool {
        let is_due = self.state().next_timer().is_some_and(|at| at <= self.now);
        if is_due {
            self.command(&Actor::Ledger, Command::Tick);
        }
        is_due
    }

    /// Nodes start launched runs at once.
    fn launch(&mut self) -> bool {
        let new: Vec<RunId> =
            self.state().runs().map(|run| run.id).filter(|run| !self.ends.contains_key(run)).collect();
        for run in &new {
            let of = self.state().run(*run).expect("it is there");
            let job = self.state().job(of.job).expect("it is there");
            let seconds = job.lead().shape.alternatives[0].walltime_seconds.unwrap_or(1_000_000);
            let parts: Vec<_> = of.parts.iter().map(|part| (part.node, self.state().part_id(of, part))).collect();
            self.ends.insert(*run, self.now.plus_seconds(i64::try_from(seconds).expect("not for ever")));
            for (node, part) in parts {
                let name = self.state().node_name(node).into_owned();
                self.command(&Actor::Executor(name), Command::NodeStarted { part });
            }
        }
        !new.is_empty()
    }

    fn end(&mut self) -> bool {
        let over: Vec<RunId> = self.ends.iter().filter(|(_, at)| **at <= self.now).map(|(run, _)| *run).collect();
        for run in &over {
            self.ends.remove(run);
            let parts = |run: &Run| {
                run.parts.iter().map(|part| (part.node, self.state().part_id(run, part))).collect::<Vec<_>>()
            };
            for (node, part) in self.state().run(*run).map(parts).unwrap_or_default() {
                let name = self.state().node_name(node).into_owned();
                let exit = NodeExit {
                    status: Some(ExitStatus::Code(0)),
                    cause: EndCause::Itself,
                    usage: Usage::default(),
                    started: Some(self.now),
                    ended: self.now,
                };
                self.command(&Actor::Executor(name), Command::NodeEnded { part, exit });
            }
        }
        !over.is_empty()
    }

    /// A runner takes every call that is offered.
    fn call(&mut self) -> bool {
        let free = self.state().outstanding_calls().filter(|call| call.claimed.is_none());
        let calls: Vec<(CallId, u32)> = free.map(|call| (call.id, call.attempt)).collect();
        if calls.is_empty() {
            return false;
        }
        for (call, _) in &calls {
            let answers = self.answers.get_mut(&call.job).expect("its filter has answers");
            let (seconds, exit) = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
            self.called.insert(*call, (self.now.plus_seconds(seconds), exit));
        }
        self.command(&Actor::Runner("r1".into()), Command::ClaimCalls { calls });
        true
    }

    fn answer(&mut self) -> bool {
        let due = self.called.iter().filter(|(_, (at, _))| *at <= self.now);
        let due: Vec<(CallId, FilterExit)> = due.map(|(call, (_, exit))| (*call, exit.clone())).collect();
        for (call, exit) in &due {
            self.called.remove(call);
            let report = FilterReport { exit: exit.clone(), ..FilterReport::runner_lost() };
            let outcome = CallOutcome::Called(Box::new(report));
            let reports = vec![CallReport { call: *call, attempt: 1, outcome }];
            self.command(&Actor::Runner("r1".into()), Command::ReportCalls { reports, has_others: false });
        }
        !due.is_empty()
    }

    /// Plans as the planner does. A new planner plans the same, and nothing of a plan is refused.
    fn plan(&mut self) -> bool {
        if !self.plan_is_due && self.wake.is_none_or(|wake| wake > self.now) {
            return false;
        }
        self.plan_is_due = false;
        self.passes += 1;
        let nobody = BTreeSet::new();
        let anew = Projection::of(self.state().clone()).plan(self.now, &nobody);
        let mut planned = self.projection.plan(self.now, &nobody);
        assert_eq!(planned, anew, "a projection that is made anew plans otherwise");
        self.wake = planned.next_wake;
        planned.plan.pass = self.passes;
        planned.plan.epoch = 1;
        let plan = Box::new(planned.plan);
        let reply = self.command(&Actor::Planner, Command::CommitPlan { plan: plan.clone() });
        assert_eq!(reply, Reply::Planned(Vec::new()), "at second {}: {plan:?}", self.second());
        true
    }

    /// From here on resources are given with these settings.
    pub fn set(&mut self, settings: SchedulingSettings) {
        self.command(&Actor::Ledger, Command::SetParameters { filters: None, scheduling: Some(Box::new(settings)) });
    }

    /// Plans, and before the plan arrives executes a user's command; returns what is refused of the plan.
    pub fn plan_while(&mut self, command: Command) -> Vec<RefusedStart> {
        let planned = self.projection.plan(self.now, &BTreeSet::new());
        let owner = Actor::User(Owner { user: "ada".into(), uid: 1000, gid: 100 });
        self.command(&owner, command);
        match self.command(&Actor::Planner, Command::CommitPlan { plan: Box::new(planned.plan) }) {
            Reply::Planned(refused) => refused,
            other => panic!("unexpected reply {other:?}"),
        }
    }

    pub fn is_running(&self, job: JobId) -> bool {
        self.state().job(job).is_some_and(|job| job.run().is_some())
    }

    /// The cores that a job has.
    pub fn size(&self, job: JobId) -> u64 {
        let run = self.state().job(job).and_then(|job| self.state().run(job.run()?));
        run.map_or(0, |run| run.placement.shares().map(|share| share.cores.len()).sum())
    }

    /// The cores that are kept for a job.
    pub fn kept(&self, job: JobId) -> u64 {
        let filtering = self.state().job(job).and_then(|job| job.filters.as_deref());
        let kept = filtering.and_then(|filtering| filtering.reserved.as_ref());
        kept.map_or(0, |kept| kept.placement.shares().map(|share| share.cores.len()).sum())
    }

    pub fn chain(&self, job: JobId) -> Option<&Chain> {
        self.state().job(job)?.filters.as_ref()?.chain.as_deref()
    }

    pub fn reason(&self, job: JobId) -> Option<WaitReason> {
        self.state().wait_reason(self.state().job(job).expect("it is known"))
    }

    pub fn warnings(&self, job: JobId) -> Vec<String> {
        let filtering = self.state().job(job).and_then(|job| job.filters.as_deref());
        filtering.map_or_else(Vec::new, |one| one.warnings.iter().map(|warning| warning.code.clone()).collect())
    }

    /// The seconds at which the filters of a job were asked.
    pub fn asked_at(&self, job: JobId) -> Vec<i64> {
        self.asked.iter().filter(|(_, asked, _)| *asked == job).map(|(second, ..)| *second).collect()
    }
}
