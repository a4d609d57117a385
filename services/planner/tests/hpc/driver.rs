//! A cluster that carries out plans: an engine, and a clock that is moved by hand.

use muster_domain::tasks::Elastic;
use muster_planner::{
    Engine,
    model::{Activation, ActiveRun, ComponentDemand, Demand, ElasticRun, Holder, QueuedJob},
    pass::Plan,
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    cluster::QueueSpec,
    policy::{Backfill, OrderKey, Policy},
    resources::{
        Alternative, Count, Level, LevelCount, NodeFilter, NodeSpec, Placement, PropertyValue, Request, Sharing,
    },
    scheduling::{SchedulingMode, SchedulingSettings},
    tasks::SizeUnit,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The priorities of the examples.
pub const BELOW_NORMAL: i64 = 1000;
pub const NORMAL: i64 = 2000;
pub const ABOVE_NORMAL: i64 = 3000;

/// A job as the examples describe it.
#[derive(Clone, Debug)]
pub struct Job {
    pub unit: SizeUnit,
    pub min: u32,
    pub max: u32,
    pub minutes: Option<u64>,
    pub priority: i64,
    /// How many more units it could use, while it runs.
    pub work: u32,
    pub preemptable: bool,
    /// Only nodes of this group.
    pub group: Option<&'static str>,
    /// Instead, only nodes of one of these groups, all from the same one.
    pub one_of: &'static [&'static str],
    pub is_filtered: bool,
    /// Whether it is a list of tasks, as the jobs of the examples are.
    pub is_list: bool,
}

/// A job with this many cores.
pub fn cores(min: u32, max: u32) -> Job {
    Job {
        unit: SizeUnit::Core,
        min,
        max,
        minutes: None,
        priority: NORMAL,
        work: 0,
        preemptable: true,
        group: None,
        one_of: &[],
        is_filtered: false,
        is_list: true,
    }
}

/// A job with this many whole nodes.
pub fn nodes(min: u32, max: u32) -> Job {
    Job { unit: SizeUnit::Node, ..cores(min, max) }
}

impl Job {
    pub fn minutes(self, minutes: u64) -> Self {
        Self { minutes: Some(minutes), ..self }
    }

    pub fn priority(self, priority: i64) -> Self {
        Self { priority, ..self }
    }

    pub fn work(self, work: u32) -> Self {
        Self { work, ..self }
    }

    pub fn group(self, group: &'static str) -> Self {
        Self { group: Some(group), ..self }
    }

    /// Makes it one program and no list of tasks, like jobs of other dialects.
    pub fn plain(self) -> Self {
        Self { is_list: false, ..self }
    }

    pub fn filtered(self) -> Self {
        Self { is_filtered: true, ..self }
    }

    pub fn demand(&self) -> Arc<Demand> {
        let level = if self.unit == SizeUnit::Node { Level::Node } else { Level::Core };
        let request = |group: Option<&str>| Request {
            path: vec![LevelCount { level: level.clone(), count: Count::Range { min: self.min, max: self.max } }],
            filter: group.map(|group| NodeFilter::Has(group.into())),
            sharing: if self.unit == SizeUnit::Node { Sharing::WholeNodes } else { Sharing::Shared },
            ..Request::default()
        };
        let walltime_seconds = self.minutes.map(|minutes| minutes * 60);
        let alternative = |group: Option<&str>| Alternative {
            requests: vec![request(group)],
            walltime_seconds,
            ..Alternative::default()
        };
        let alternatives: Vec<Alternative> = match self.one_of {
            [] => vec![alternative(self.group)],
            groups => groups.iter().map(|group| alternative(Some(group))).collect(),
        };
        let component = ComponentDemand {
            queue: "default".into(),
            reservation: None,
            deadline: None,
            alternatives: alternatives.into(),
        };
        Arc::new(Demand { components: vec![component], sharing: None, fixed: None, guard_seconds: 0 })
    }
}

#[derive(Clone)]
pub struct Cluster {
    pub engine: Engine,
    pub now: Timestamp,
    jobs: BTreeMap<JobId, Job>,
    running: BTreeMap<JobId, ActiveRun>,
    allocated: BTreeMap<JobId, Timestamp>,
    /// Runs that were backfilled, which do not grow.
    backfilled: BTreeSet<JobId>,
    last: u64,
}

pub fn settings(mode: SchedulingMode) -> SchedulingSettings {
    SchedulingSettings { mode: Some(mode), ..SchedulingSettings::default() }
}

pub fn queued() -> SchedulingSettings {
    settings(SchedulingMode::Queued)
}

pub fn balanced() -> SchedulingSettings {
    settings(SchedulingMode::Balanced)
}

impl Cluster {
    /// Nodes with this many cores each; the first half is in group `a`, the others are in group `b`.
    pub fn new(nodes: u32, cores: u32, settings: SchedulingSettings) -> Self {
        Self::with_backfill(nodes, cores, settings, Backfill::default())
    }

    /// As [`Self::new`], with this backfill while there is no scheduling mode.
    pub fn with_backfill(nodes: u32, cores: u32, settings: SchedulingSettings, backfill: Backfill) -> Self {
        let order = vec![OrderKey::Priority];
        Self::with_policy(nodes, cores, settings, Policy { order, backfill, ..Policy::default() })
    }

    pub fn with_policy(nodes: u32, cores: u32, settings: SchedulingSettings, policy: Policy) -> Self {
        let mut engine = Engine::new(Arc::new(policy)).expect("a plain policy");
        for number in 1..=nodes {
            let group = if number <= nodes / 2 { "a" } else { "b" };
            let spec = NodeSpec {
                name: format!("n{number}"),
                cores,
                sockets: 1,
                memory_bytes: 1 << 30,
                gpus: Vec::new(),
                properties: [(group.to_owned(), PropertyValue::Flag(true))].into(),
            };
            engine.set_node(NodeId(number), Arc::new(spec), true);
        }
        engine.set_queue(&QueueSpec { name: "default".into(), ..QueueSpec::default() });
        engine.set_scheduling(Arc::new(settings), None);
        Self {
            engine,
            now: Timestamp::from_unix_seconds(1_000_000),
            jobs: BTreeMap::new(),
            running: BTreeMap::new(),
            allocated: BTreeMap::new(),
            backfilled: BTreeSet::new(),
            last: 0,
        }
    }

    pub fn set(&mut self, settings: SchedulingSettings) {
        self.engine.set_scheduling(Arc::new(settings), None);
    }

    pub fn pass_seconds(&mut self, seconds: i64) {
        self.now = self.now.plus_seconds(seconds);
    }

    pub fn pass_minutes(&mut self, minutes: i64) {
        self.pass_seconds(60 * minutes);
    }

    fn holder() -> Arc<Holder> {
        Arc::new(Holder { user: "ada".into(), group: 100, account: None, charges: Vec::new(), marks: None })
    }

    /// Puts a job into the queue.
    pub fn wait(&mut self, job: Job) -> JobId {
        self.last += 1;
        let id = JobId::job(self.last);
        let activation = job.is_filtered.then(|| Activation { is_filtered: true, ..Activation::default() });
        self.jobs.insert(id, job);
        self.wait_with(id, activation);
        id
    }

    /// Queues a job that must be served by one of these groups alone.
    pub fn wait_for_one_of(&mut self, job: Job, one_of: &'static [&'static str]) -> JobId {
        self.wait(Job { one_of, ..job })
    }

    /// Sets the state of activation filters for a waiting job.
    pub fn wait_with(&mut self, id: JobId, activation: Option<Activation>) {
        let job = &self.jobs[&id];
        let arrival = Timestamp::from_unix_seconds(i64::try_from(id.number).expect("small"));
        self.engine.enqueue(QueuedJob {
            id,
            tasks: None,
            demand: job.demand(),
            holder: Self::holder(),
            priority: job.priority,
            is_list: job.is_list,
            arrival,
            attributes: None,
            slot: None,
            activation: activation.map(Arc::new),
        });
    }

    /// Keeps resources for a waiting job, as its filter's verdict says.
    pub fn keep(&mut self, id: JobId, placement: Placement, ask_again: Timestamp) {
        let kept = Arc::new(placement);
        let run = ActiveRun {
            job: id,
            demand: self.jobs[&id].demand(),
            holder: Self::holder(),
            placement: kept.clone(),
            expected_end: Timestamp::MAX,
            attributes: None,
        };
        self.engine.begin(run);
        let activation =
            Activation { is_filtered: true, ask_again: Some(ask_again), kept: Some(kept), ..Activation::default() };
        self.wait_with(id, Some(activation));
    }

    /// Plans. The same engine gives the same plan.
    pub fn plan(&mut self) -> Plan {
        let again = self.engine.clone().pass(self.now, &BTreeSet::new());
        let plan = self.engine.pass(self.now, &BTreeSet::new());
        assert_eq!(plan, again, "equal inputs give equal plans");
        let once_more = self.engine.pass(self.now, &BTreeSet::new());
        assert_eq!(plan, once_more, "a pass changes nothing that the next one sees");
        plan
    }

    /// Carries out a plan, as the ledger would if all filters passed at once. Runs that must shrink do so at once, as
    /// if they had no tasks there, and those that must make way are requeued.
    pub fn commit(&mut self, plan: &Plan) {
        for shrink in &plan.shrinks {
            let run = self.running[&shrink.job].clone();
            let placement = Arc::new(without(&run.placement, &shrink.removed));
            self.hold(ActiveRun { placement, ..run });
        }
        for victim in plan.preemptions.iter().flat_map(|preemption| &preemption.victims) {
            self.end(*victim);
            self.wait_with(*victim, None);
        }
        for growth in &plan.growths {
            let run = self.running[&growth.job].clone();
            let placement = Arc::new(merged(&run.placement, &growth.added));
            self.hold(ActiveRun { placement, ..run });
        }
        let around: BTreeSet<JobId> = plan.facts.iter().filter(|facts| facts.backfill).map(|facts| facts.job).collect();
        for start in &plan.starts {
            if around.contains(&start.job) {
                self.backfilled.insert(start.job);
            }
            self.begin(start.job, start.placement.clone());
        }
    }

    /// Plans and carries out the plan.
    pub fn go(&mut self) -> Plan {
        let plan = self.plan();
        self.commit(&plan);
        plan
    }

    /// Plans and carries out plans until nothing more starts or grows; returns the started jobs.
    pub fn settle(&mut self) -> Vec<JobId> {
        let mut started = Vec::new();
        for _ in 0..100 {
            let plan = self.go();
            started.extend(plan.starts.iter().map(|start| start.job));
            if plan.starts.is_empty() && plan.growths.is_empty() && plan.shrinks.is_empty() {
                return started;
            }
        }
        panic!("it does not come to rest");
    }

    fn begin(&mut self, id: JobId, placement: Placement) {
        self.engine.dequeue(id);
        let job = &self.jobs[&id];
        let expected_end = job
            .minutes
            .map_or(Timestamp::MAX, |minutes| self.now.plus_seconds(60 * i64::try_from(minutes).expect("few")));
        self.allocated.insert(id, self.now);
        let (demand, holder) = (job.demand(), Self::holder());
        let placement = Arc::new(placement);
        self.hold(ActiveRun { job: id, demand, holder, placement, expected_end, attributes: None });
    }

    fn hold(&mut self, run: ActiveRun) {
        let id = run.job;
        self.engine.begin(run.clone());
        self.running.insert(id, run);
        self.assert_nothing_is_given_twice();
        if self.jobs[&id].is_list {
            self.tell_elastic(id);
        }
    }

    fn tell_elastic(&mut self, id: JobId) {
        let job = &self.jobs[&id];
        let current = self.size(id);
        let size = Elastic {
            unit: job.unit,
            min: job.min,
            max: job.max,
            current,
            wanted: job.work,
            idle: 0,
            preemptable: job.preemptable,
        };
        let elastic = ElasticRun {
            job: id,
            priority: job.priority,
            arrival: Timestamp::from_unix_seconds(i64::try_from(id.number).expect("small")),
            allocated: self.allocated[&id],
            size,
            busy: BTreeMap::new(),
            barred: BTreeSet::new(),
            shrinking: None,
            is_leaving: false,
            may_grow: !self.backfilled.contains(&id),
            is_filtered: job.is_filtered,
            ask_again: None,
        };
        self.engine.set_elastic(id, Some(elastic));
    }

    /// Changes the facts about a run that can use more or fewer resources.
    pub fn change_elastic(&mut self, id: JobId, change: impl FnOnce(&mut ElasticRun)) {
        let mut elastic = self.engine.elastic(id).expect("it runs").clone();
        change(&mut elastic);
        self.engine.set_elastic(id, Some(elastic));
    }

    /// The end of a run.
    pub fn end(&mut self, id: JobId) {
        self.engine.end(id);
        self.engine.set_elastic(id, None);
        self.running.remove(&id).expect("it runs");
    }

    /// Ends the runs whose time is over.
    pub fn end_all_due(&mut self) {
        let due: Vec<JobId> =
            self.running.values().filter(|run| run.expected_end <= self.now).map(|run| run.job).collect();
        due.into_iter().for_each(|id| self.end(id));
    }

    /// The units that a job runs on; 0 if it does not run.
    pub fn size(&self, id: JobId) -> u32 {
        let unit = self.jobs[&id].unit;
        self.running.get(&id).map_or(0, |run| units(unit, &run.placement))
    }

    pub fn job(&self, id: JobId) -> &Job {
        &self.jobs[&id]
    }

    /// The jobs that have not run yet.
    pub fn waiting(&self) -> Vec<JobId> {
        self.jobs.keys().copied().filter(|id| !self.allocated.contains_key(id)).collect()
    }

    /// The order of the queue.
    pub fn place(&self, id: JobId) -> impl Ord + use<> {
        (std::cmp::Reverse(self.jobs[&id].priority), id)
    }

    pub fn running(&self) -> Vec<JobId> {
        self.running.keys().copied().collect()
    }

    pub fn is_running(&self, id: JobId) -> bool {
        self.running.contains_key(&id)
    }

    pub fn run(&self, id: JobId) -> &ActiveRun {
        &self.running[&id]
    }

    fn assert_nothing_is_given_twice(&self) {
        let mut given = BTreeSet::new();
        for run in self.running.values() {
            for share in run.placement.shares() {
                for core in share.cores.iter() {
                    assert!(given.insert((share.node, core)), "core {core} of {:?} is given twice", share.node);
                }
            }
        }
    }
}

pub fn units(unit: SizeUnit, placement: &Placement) -> u32 {
    let of_share = |cores: u64| if unit == SizeUnit::Node { 1 } else { u32::try_from(cores).expect("few") };
    placement.shares().map(|share| of_share(share.cores.len())).sum()
}

/// The jobs that a plan starts.
pub fn started(plan: &Plan) -> Vec<JobId> {
    plan.starts.iter().map(|start| start.job).collect()
}

pub fn merged(base: &Placement, added: &Placement) -> Placement {
    let mut all = base.clone();
    for share in added.shares() {
        let shares = &mut all.components[0].shares;
        match shares.iter_mut().find(|known| known.node == share.node) {
            Some(known) => known.cores = known.cores.union(&share.cores),
            None => shares.push(share.clone()),
        }
    }
    all
}

fn without(base: &Placement, removed: &Placement) -> Placement {
    let mut rest = base.clone();
    for share in removed.shares() {
        for known in rest.components[0].shares.iter_mut().filter(|known| known.node == share.node) {
            known.cores = known.cores.difference(&share.cores);
        }
    }
    rest.components[0].shares.retain(|share| !share.cores.is_empty());
    rest
}
