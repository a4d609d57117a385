//! A cycle by turns looks only at jobs that could start or have not been told why not, and keeps the tree of shares. Neither
//! shows in its plans.

use muster_planner::{
    Engine,
    model::{ActiveRun, ComponentDemand, Demand, Holder, QueuedJob},
    pass::Plan,
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    cluster::QueueSpec,
    policy::{
        Compare, FairShare, Limit, LimitPer, MOST_STARTS, Policy, Share, ShareTable, Starving, TurnRules, Turns, Visit,
    },
    resources::{Alternative, NodeSpec, Request},
};
use proptest::{prelude::*, sample::select};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The last two are in no table of shares.
const USERS: [&str; 4] = ["ann", "bob", "sue", "tom"];
const QUEUES: [&str; 2] = ["day", "night"];
const NODES: u32 = 3;
const CORES: u32 = 4;

/// A happening, after which a cycle follows.
#[derive(Clone, Debug)]
enum Step {
    Submit {
        user: usize,
        queue: usize,
        cores: u32,
        walltime_seconds: u64,
    },
    End(prop::sample::Index),
    Withdraw(prop::sample::Index),
    /// What each user has used.
    Use([u64; 4]),
    /// Whether a node takes jobs.
    Node(u32, bool),
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4_usize, 0..2_usize, 1..=2 * CORES, 60_u64..600).prop_map(|(user, queue, cores, walltime_seconds)| {
            Step::Submit { user, queue, cores, walltime_seconds }
        }),
        5 => any::<prop::sample::Index>().prop_map(Step::End),
        1 => any::<prop::sample::Index>().prop_map(Step::Withdraw),
        1 => any::<[u8; 4]>().prop_map(|used| Step::Use(used.map(|used| u64::from(used) * 10))),
        1 => (1..=NODES, any::<bool>()).prop_map(|(node, takes)| Step::Node(node, takes)),
    ]
}

prop_compose! {
    fn policies()(
        compare in prop::option::of(select(vec![Compare::Users, Compare::Groups])),
        visit in select(vec![Visit::QueueByQueue, Visit::QueuesInTurn, Visit::Pool]),
        starving in prop::option::weighted(0.3, 5_u64..40),
        most_of_user in prop::option::weighted(0.5, 1_u64..4),
    ) -> Policy {
        let share = |name: &str, parent, shares| Share { name: name.into(), parent, shares };
        let members = vec![share("group", 0, 40), share("ann", 2, 10), share("bob", 2, 30)];
        let fair_share = compare.map(|compare| FairShare { compare, charge: "cores".into(), times: None });
        let starving = starving.map(|after_seconds| Starving { after_seconds, only_for_resources: false });
        let turns = Turns {
            rules: TurnRules { visit, fair_share, starving, ..TurnRules::default() },
            shares: Some(ShareTable { unknown_shares: 10, members }),
            ..Turns::default()
        };
        let limit = most_of_user.map(|most| Limit { per: LimitPer::User, max_running_jobs: Some(most), ..Limit::default() });
        Policy {
            name: "turns".into(),
            limits: limit.into_iter().collect(),
            max_starts: MOST_STARTS,
            turns: Some(Box::new(turns)),
            ..Policy::default()
        }
    }
}

/// A site, of which engines are told as it changes or all at once.
struct Site {
    policy: Arc<Policy>,
    now: Timestamp,
    jobs: BTreeMap<JobId, QueuedJob>,
    runs: BTreeMap<JobId, ActiveRun>,
    used: BTreeMap<Arc<str>, u64>,
    takes_jobs: BTreeMap<u32, bool>,
}

impl Site {
    fn new(policy: Policy) -> Self {
        let takes_jobs = (1..=NODES).map(|node| (node, true)).collect();
        let (jobs, runs, used) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { policy: Arc::new(policy), now: Timestamp(0), jobs, runs, used, takes_jobs }
    }

    fn set_node(&self, engine: &mut Engine, node: u32) {
        let spec = NodeSpec {
            name: format!("n{node}"),
            cores: CORES,
            sockets: 1,
            memory_bytes: 0,
            gpus: Vec::new(),
            properties: BTreeMap::new(),
        };
        engine.set_node(NodeId(node), Arc::new(spec), self.takes_jobs[&node]);
    }

    /// An engine that is told everything at once.
    fn engine(&self) -> Engine {
        let mut engine = Engine::new(self.policy.clone()).expect("no formulas");
        (1..=NODES).for_each(|node| self.set_node(&mut engine, node));
        for (name, priority) in QUEUES.iter().zip([0, 5]) {
            engine.set_queue(&QueueSpec { name: (*name).into(), priority, ..QueueSpec::default() });
        }
        self.runs.values().for_each(|run| engine.begin(run.clone()));
        self.jobs.values().for_each(|job| engine.enqueue(job.clone()));
        engine.set_user_usage(self.used.clone());
        engine
    }

    fn step(&mut self, engine: &mut Engine, number: u64, step: Step) {
        match step {
            Step::Submit { user, queue, cores, walltime_seconds } => {
                let job = self.job(number, USERS[user], QUEUES[queue], cores, walltime_seconds);
                engine.enqueue(job.clone());
                self.jobs.insert(job.id, job);
            }
            Step::End(at) if !self.runs.is_empty() => {
                let job = *at.get(&self.runs.keys().copied().collect::<Vec<_>>());
                self.runs.remove(&job);
                engine.end(job);
                engine.set_capacity_freed(true);
            }
            Step::Withdraw(at) if !self.jobs.is_empty() => {
                let job = *at.get(&self.jobs.keys().copied().collect::<Vec<_>>());
                self.jobs.remove(&job);
                engine.dequeue(job);
            }
            Step::Use(used) => {
                self.used = USERS
                    .iter()
                    .zip(used)
                    .filter(|(_, used)| *used > 0)
                    .map(|(user, used)| ((*user).into(), used))
                    .collect();
                engine.set_user_usage(self.used.clone());
            }
            Step::Node(node, takes) => {
                self.takes_jobs.insert(node, takes);
                self.set_node(engine, node);
            }
            Step::End(_) | Step::Withdraw(_) => {}
        }
    }

    /// What the planner's service does once a plan is in force.
    fn follow(&mut self, engine: &mut Engine, plan: Plan) {
        for waiting in &plan.reasons {
            engine.set_known_reason(waiting.job, Some(Arc::new(waiting.reason.clone())));
        }
        engine.set_capacity_freed(false);
        for start in plan.starts {
            engine.dequeue(start.job);
            let job = self.jobs.remove(&start.job).expect("it waits");
            let seconds = job.demand.components[0].alternatives[0].walltime_seconds.unwrap_or_default();
            let run = ActiveRun {
                job: job.id,
                demand: job.demand,
                holder: job.holder,
                placement: Arc::new(start.placement),
                expected_end: self.now.plus_seconds(seconds as i64),
                attributes: job.attributes,
            };
            engine.begin(run.clone());
            self.runs.insert(run.job, run);
        }
    }

    fn job(&self, number: u64, user: &str, queue: &str, cores: u32, walltime_seconds: u64) -> QueuedJob {
        let requests = vec![Request { tasks: Some(cores), ..Request::default() }];
        let way = Alternative { requests, walltime_seconds: Some(walltime_seconds), ..Alternative::default() };
        let component =
            ComponentDemand { queue: queue.into(), reservation: None, deadline: None, alternatives: [way].into() };
        QueuedJob {
            id: JobId::job(number),
            tasks: None,
            demand: Arc::new(Demand { components: vec![component], sharing: None, fixed: None, guard_seconds: 0 }),
            holder: Arc::new(Holder { user: user.into(), group: 100, account: None, charges: Vec::new(), marks: None }),
            priority: 0,
            is_list: false,
            arrival: self.now,
            attributes: Some(Arc::new([("cores".to_owned(), i64::from(cores))].into())),
            slot: None,
            activation: None,
        }
    }
}

/// PBS-G-07: each cycle lists all jobs whose files could be copied ahead, also those that were told before that they do not
/// fit.
#[test]
fn jobs_that_wait_for_room_are_listed_in_each_cycle() {
    let turns = Turns { staged_ahead: 2, ..Turns::default() };
    let policy =
        Policy { name: "turns".into(), turns: Some(Box::new(turns)), max_starts: MOST_STARTS, ..Policy::default() };
    let mut site = Site::new(policy);
    let mut engine = site.engine();
    for (number, cores) in [(1, NODES * CORES), (2, 2), (3, 1)] {
        let step = Step::Submit { user: 0, queue: 0, cores, walltime_seconds: 60 };
        site.step(&mut engine, number, step);
    }
    let waiting = [2, 3].map(JobId::job);
    let first = engine.pass(site.now, &BTreeSet::new());
    assert_eq!(first.short_of_room, waiting);
    site.follow(&mut engine, first);
    assert_eq!(engine.pass(site.now, &BTreeSet::new()).short_of_room, waiting);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// PBS-F-05, PBS-FS-07: an engine that leaves out jobs and learns of changes one by one starts what one starts that was
    /// told everything just now and looks at all jobs.
    #[test]
    fn jobs_that_are_left_out_change_no_plan(policy in policies(), steps in prop::collection::vec(steps(), 1..60)) {
        let mut site = Site::new(policy);
        let mut engine = site.engine();
        for (number, step) in (1..).zip(steps) {
            site.now = site.now.plus_seconds(1);
            site.step(&mut engine, number, step);
            let (expected, _) = site.engine().pass_traced(site.now);
            let plan = engine.pass(site.now, &BTreeSet::new());
            prop_assert_eq!(&plan.starts, &expected.starts, "second {}", number);
            site.follow(&mut engine, plan);
        }
    }
}
