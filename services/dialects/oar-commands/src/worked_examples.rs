//! The worked example of hierarchies, holes and shapes (W2): requests as users write them, planned by the planner.

use crate::{cluster::testing::fixture, demand};
use muster_oar::{
    predicate::Predicate,
    request::{self, site::Site},
};
use muster_planner::{
    Engine,
    model::{ActiveRun, ComponentDemand, Demand, Holder, QueuedJob},
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    policy::Policy,
    resources::{Alternative, ComponentPlacement, IndexSet, NodeShare, NodeSpec, Placement, PropertyValue, Request},
};
use std::{collections::BTreeSet, sync::Arc};

/// The cores of each of the four nodes of the fixture.
const CORES: u32 = 4;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_seconds(seconds)
}

fn holder() -> Arc<Holder> {
    Arc::new(Holder { user: "ann".into(), group: 100, account: None, charges: Vec::new(), marks: None })
}

fn demand_of(alternatives: Vec<Alternative>) -> Arc<Demand> {
    let alternatives = alternatives.into();
    let component = ComponentDemand { queue: "default".into(), reservation: None, deadline: None, alternatives };
    Arc::new(Demand { components: vec![component], sharing: None, fixed: None, guard_seconds: 0 })
}

/// The fixture S under a policy that promises each job its place.
struct S {
    engine: Engine,
    jobs: u64,
    /// How long resources are kept free after each job, in seconds.
    guard: u32,
}

impl S {
    fn new() -> Self {
        Self::guarded(0)
    }

    fn guarded(guard: u32) -> Self {
        let mut engine = Engine::new(Arc::new(Policy::built_in("conservative").expect("there is one"))).expect("good");
        for (node, switch) in (1..).zip(["s1", "s1", "s2", "s2"]) {
            let spec = NodeSpec {
                name: format!("n{node}"),
                cores: CORES,
                sockets: 2,
                memory_bytes: 1 << 30,
                gpus: Vec::new(),
                properties: [("switch".to_owned(), PropertyValue::Text(switch.to_owned()))].into(),
            };
            engine.set_node(NodeId(node), Arc::new(spec), true);
        }
        Self { engine, jobs: 0, guard }
    }

    /// The same, while a job holds resources until a time.
    fn busy(mut self, resources: &[u32], until: i64) -> Self {
        for resource in resources {
            self.jobs += 1;
            let share = NodeShare {
                node: NodeId((resource - 1) / CORES + 1),
                cores: IndexSet::from_range((resource - 1) % CORES, (resource - 1) % CORES),
                gpus: IndexSet::new(),
                memory_bytes: 0,
                tasks: 1,
                exclusive: false,
            };
            let components = vec![ComponentPlacement { alternative: 0, shares: vec![share] }];
            let requests = vec![Request { tasks: Some(1), ..Request::default() }];
            self.engine.begin(ActiveRun {
                job: JobId::job(self.jobs),
                demand: demand_of(vec![Alternative { requests, ..Alternative::default() }]),
                holder: holder(),
                placement: Arc::new(Placement { components }),
                expected_end: at(until + i64::from(self.guard)),
                attributes: None,
            });
        }
        self
    }

    /// A job with these shapes, each with its walltime in seconds.
    fn submit(&mut self, shapes: &[(&str, u64)]) -> JobId {
        let cluster = fixture();
        let always = (&Predicate::ALWAYS, &Predicate::ALWAYS);
        let lowered = |(text, seconds): &(&str, u64)| {
            let shape = request::alternative(text, &Site::of(&cluster.table)).expect("a request");
            let shape = demand::alternative(&shape, always, false, &cluster).expect("it can be served");
            Alternative { walltime_seconds: Some(*seconds), ..shape }
        };
        self.jobs += 1;
        let id = JobId::job(self.jobs);
        let demand = Demand::clone(&demand_of(shapes.iter().map(lowered).collect()));
        self.engine.enqueue(QueuedJob {
            id,
            tasks: None,
            demand: Arc::new(demand.guarded(self.guard.into())),
            holder: holder(),
            priority: 0,
            is_list: false,
            arrival: at(0),
            attributes: None,
            slot: None,
            activation: None,
        });
        id
    }

    /// When and where each of the jobs starts if it is planned at 0, with its resources in order.
    fn plan(&mut self, jobs: &[JobId]) -> Vec<(i64, Vec<u32>)> {
        let plan = self.engine.pass(at(0), &BTreeSet::new());
        let place = |job: &JobId| {
            let now = plan.starts.iter().find(|start| start.job == *job).map(|start| (at(0), &start.placement));
            let later = || {
                let slot = plan.slots.iter().find(|(id, _)| id == job).and_then(|(_, slot)| slot.as_ref());
                slot.map(|slot| (slot.start, &*slot.placement))
            };
            let (start, placement) = now.or_else(later).expect("it has a place");
            let of = |share: &NodeShare| {
                let node = share.node.0;
                share.cores.iter().map(move |core| (node - 1) * CORES + core + 1).collect::<Vec<_>>()
            };
            let mut resources: Vec<u32> = placement.shares().flat_map(of).collect();
            resources.sort_unstable();
            (start.unix_seconds(), resources)
        };
        jobs.iter().map(place).collect()
    }
}

/// The resources of ranges such as `1-4, 9`.
fn ids(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        first.parse().expect("a number")..=last.parse::<u32>().expect("a number")
    };
    text.split(", ").flat_map(range).collect()
}

/// OAR-R-06, OAR-R-07, OAR-R-08, OAR-R-09, OAR-R-10, OAR-G-01, OAR-G-02, W2: the first hole that holds the demand.
#[test]
fn the_first_hole_that_holds_the_demand() {
    type Part<'p> = (&'p [u32], i64);
    let rows: [(&[Part], &str, i64, &str); 9] = [
        (&[], "/switch=1/nodes=2/cpu=1", 0, "1-2, 5-6"),
        (&[], "/switch=2/nodes=1", 0, "1-4, 9-12"),
        (&[(&[1], 100)], "/switch=1", 0, "9-16"),
        (&[(&[1], 100), (&[5], 50)], "/switch=2/nodes=1", 50, "5-8, 9-12"),
        (&[(&[1, 2, 5, 6], 100)], "/nodes=1/core=3", 0, "9-11"),
        (&[(&[1], 100)], "/nodes=BEST", 0, "5-16"),
        (&[(&[1], 100)], "/nodes=BESTHALF", 0, "5-8"),
        (&[(&[1], 100)], "/nodes=ALL", 100, "1-16"),
        (&[], "/nodes=1+{switch='s1'}/nodes=2", 0, "1-12"),
    ];
    for (busy, request, start, resources) in rows {
        let mut s = busy.iter().fold(S::new(), |s, (resources, until)| s.busy(resources, *until));
        let job = s.submit(&[(request, 60)]);
        assert_eq!(s.plan(&[job]), [(start, ids(resources))], "{busy:?}: {request}");
    }
}

/// OAR-G-02, OAR-G-04, W2 with G=0 and with G=10: later jobs use holes, and delay no earlier one.
#[test]
fn later_jobs_use_holes_and_delay_no_earlier_one() {
    for (guard, starts) in [(0, [0, 100, 60, 160]), (10, [0, 110, 70, 180])] {
        let mut s = S::guarded(guard).busy(&[1, 2, 3, 4], 100);
        let jobs = [("/nodes=3", 60), ("/nodes=4", 60), ("/nodes=1", 30), ("/nodes=1", 50)].map(|one| s.submit(&[one]));
        let places = s.plan(&jobs);
        let resources = ["5-16", "1-16", "5-8", "1-4"].map(ids);
        assert_eq!(places, starts.into_iter().zip(resources).collect::<Vec<_>>(), "G={guard}");
    }
}

/// OAR-G-08, W2: of several shapes the one that ends first, and among equals the one that was given first.
#[test]
fn the_shape_that_ends_first() {
    for (seconds, expected) in [(120, (0, "9-16")), (150, (100, "1-16")), (200, (100, "1-16"))] {
        let mut s = S::new().busy(&ids("1-8"), 100);
        let job = s.submit(&[("nodes=4", 50), ("nodes=2", seconds)]);
        assert_eq!(s.plan(&[job]), [(expected.0, ids(expected.1))], "{seconds}");
    }
}
