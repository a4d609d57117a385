//! Properties of every history. Each record is also checked against the domain's invariants: nothing is given twice,
//! and no more than there is.

use crate::{
    requests::{GROUP, LICENCE, MODELS, alternatives, node_name, one_or_two},
    world::{GIB, World, component, node, with_property},
};
use muster_domain::invariants::assert_invariants;
use muster_schemas::{
    JobId, RunId,
    cluster::{ClusterConfig, QueueSpec},
    command::{Command, JobSelection},
    event::{Actor, JobChange},
    job::{ArraySpec, Component, Dependencies, Dependency, DependencyKind, Holds, JobSpec, JobType, WaitReason},
    policy::{
        Compare, FairShare, Limit, LimitPer, OnRefusal, OrderKey, Policy, Share, ShareTable, Starving, TurnRules,
        Turns, Visit,
    },
    resources::{IndexSet, NodeSpec},
};
use proptest::{prelude::*, sample::select};

/// A happening between two plans.
#[derive(Clone, Debug)]
enum Step {
    Submit(usize, Box<JobSpec>),
    EndRun(prop::sample::Index),
    Cancel(prop::sample::Index),
    Hold(prop::sample::Index),
    Release(prop::sample::Index),
    Priority(prop::sample::Index, i64),
    Requeue(prop::sample::Index),
    Drain(prop::sample::Index),
    Resume(prop::sample::Index),
    Lose(prop::sample::Index),
    Suspend(prop::sample::Index),
    GoOn(prop::sample::Index),
    Policy(&'static str),
    Turns(TurnRules),
}

const USERS: [&str; 2] = ["ada", "bob"];

fn config() -> ClusterConfig {
    let gpus = MODELS.map(str::to_owned).into();
    let names = [1, 2, 3, 4].map(node_name);
    let nodes = vec![
        with_property(node(&names[0], 4, 4), GROUP, "a"),
        with_property(NodeSpec { sockets: 2, ..node(&names[1], 4, 4) }, GROUP, "a"),
        with_property(NodeSpec { gpus, ..node(&names[2], 2, 8) }, GROUP, "b"),
        with_property(node(&names[3], 8, 2), GROUP, "b"),
    ];
    let queue = |name: &str| QueueSpec { name: name.into(), ..QueueSpec::default() };
    let queues = vec![
        queue("default"),
        QueueSpec { nodes: names[..2].to_vec(), priority: 3, ..queue("left") },
        QueueSpec { nodes: names[2..].to_vec(), max_running_jobs: Some(3), ..queue("right") },
        QueueSpec { max_running_jobs_per_user: Some(2), ..queue("limited") },
    ];
    let mut config = ClusterConfig { nodes, queues, ..ClusterConfig::default() };
    config.licences.insert(LICENCE.into(), 2);
    config.settings.default_memory_per_core_bytes = Some(GIB / 8);
    config
}

prop_compose! {
    fn components()(
        alternatives in one_or_two(|| alternatives(GIB / 8)),
        queue in select(vec!["default", "default", "left", "right", "limited"]),
        priority in prop::option::weighted(0.3, 0_i64..3),
        after in prop::option::weighted(0.1, 1_u64..5),
    ) -> Component {
        let dependency = |number| Dependency { kind: DependencyKind::Ended, job: Some(JobId::job(number)), delay_seconds: 0 };
        Component {
            queue: Some(queue.into()),
            priority,
            dependencies: Dependencies { all_of: after.map(|number| vec![dependency(number)]).into_iter().collect() },
            ..component(alternatives)
        }
    }
}

/// With whom a job shares its cores (OAR-T-40, OAR-T-80).
fn sharing() -> impl Strategy<Value = JobType> {
    prop_oneof![
        3 => (any::<bool>(), any::<bool>()).prop_map(|(same_user, same_name)| JobType::Timesharing { same_user, same_name }),
        2 => Just(JobType::Placeholder("w".into())),
        2 => Just(JobType::Allowed("w".into())),
    ]
}

prop_compose! {
    fn jobs()(
        components in one_or_two(components),
        array in prop::option::weighted(0.2, (1_u32..6, prop::option::of(1_u32..3))),
        sharing in prop::option::weighted(0.4, sharing()),
    ) -> JobSpec {
        let array = array.filter(|_| components.len() == 1);
        let sharing = sharing.filter(|_| components.len() == 1);
        JobSpec {
            components,
            array: array.map(|(tasks, max_running)| ArraySpec { indices: IndexSet::first_n(tasks), max_running }),
            types: sharing.into_iter().collect(),
            working_directory: "/".into(),
            ..JobSpec::default()
        }
    }
}

fn steps() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        8 => (0..USERS.len(), jobs()).prop_map(|(user, spec)| Step::Submit(user, Box::new(spec))),
        6 => index().prop_map(Step::EndRun),
        1 => index().prop_map(Step::Cancel),
        1 => index().prop_map(Step::Hold),
        1 => index().prop_map(Step::Release),
        1 => (index(), 0_i64..5).prop_map(|(job, priority)| Step::Priority(job, priority)),
        1 => index().prop_map(Step::Requeue),
        1 => index().prop_map(Step::Drain),
        1 => index().prop_map(Step::Resume),
        1 => index().prop_map(Step::Lose),
        3 => index().prop_map(Step::Suspend),
        2 => index().prop_map(Step::GoOn),
        1 => select(vec!["fcfs", "conservative"]).prop_map(Step::Policy),
        1 => turn_rules().prop_map(Step::Turns),
    ]
}

prop_compose! {
    fn turn_rules()(
        visit in select(vec![Visit::QueueByQueue, Visit::QueuesInTurn, Visit::Pool]),
        on_refusal in select(vec![OnRefusal::Nothing, OnRefusal::BlocksQueue, OnRefusal::BlocksAll]),
        by_creation in any::<bool>(),
        by_arrival in any::<bool>(),
        starving in prop::option::of((0_u64..20, any::<bool>())),
        compare in prop::option::of(select(vec![Compare::Users, Compare::Groups])),
    ) -> TurnRules {
        let starving = starving.map(|(after_seconds, only_for_resources)| Starving { after_seconds, only_for_resources });
        let fair_share = compare.map(|compare| FairShare { compare, charge: "cores".into(), times: None });
        TurnRules { visit, by_creation, by_arrival, on_refusal, starving, fair_share, by_load: None }
    }
}

/// By turns, with limits on what jobs ask for and a user with most of the machine.
fn by_turns() -> Policy {
    let ada = Share { name: "ada".into(), parent: 0, shares: 3 };
    let shares = Some(ShareTable { unknown_shares: 1, members: vec![ada] });
    let turns = Turns { shares, queues: vec!["right".into(), "left".into()], ..Turns::default() };
    let limit = Limit {
        per: LimitPer::User,
        max_running_jobs: Some(4),
        max_attributes: [("cores".to_owned(), 12)].into(),
        ..Limit::default()
    };
    let order = vec![OrderKey::Share, OrderKey::Priority];
    Policy { name: "turns".into(), order, limits: vec![limit], turns: Some(Box::new(turns)), ..Policy::default() }
}

/// Does a step. Many make no sense at their moment and are refused, which is fine.
fn happen(world: &mut World, step: &Step) {
    let job = |world: &World, at: &prop::sample::Index| {
        let jobs: Vec<JobId> = world.state().jobs().map(|job| job.id).collect();
        (!jobs.is_empty()).then(|| JobSelection::Ids(vec![jobs[at.index(jobs.len())]]))
    };
    let node = |world: &World, at: &prop::sample::Index| {
        let nodes: Vec<_> = world.state().nodes().map(|node| (node.id, node.spec.name.clone())).collect();
        nodes[at.index(nodes.len())].clone()
    };
    let user_hold = Holds { user: true, ..Holds::default() };
    let command = match step {
        Step::Submit(user, spec) => {
            let _ = world.try_submit(USERS[*user], (**spec).clone());
            return;
        }
        Step::EndRun(at) => {
            let runs: Vec<RunId> = world.state().runs().map(|run| run.id).collect();
            if !runs.is_empty() {
                world.end_run(runs[at.index(runs.len())]);
            }
            return;
        }
        Step::Suspend(at) => {
            let runs = world.state().runs().filter(|run| run.stopping.is_none());
            let jobs: Vec<JobId> = runs.map(|run| run.job).collect();
            if !jobs.is_empty() {
                world.suspend(jobs[at.index(jobs.len())]);
            }
            return;
        }
        Step::GoOn(at) => {
            let runs = world.state().runs().filter(|run| run.stopping.is_none() && run.is_suspended());
            let jobs: Vec<JobId> = runs.map(|run| run.job).collect();
            if !jobs.is_empty() {
                world.resume(jobs[at.index(jobs.len())]);
            }
            return;
        }
        Step::Cancel(at) => job(world, at).map(|jobs| Command::Cancel { jobs }),
        Step::Hold(at) => job(world, at).map(|jobs| Command::Hold { jobs, holds: user_hold, reason: "test".into() }),
        Step::Release(at) => job(world, at).map(|jobs| Command::Release { jobs, holds: user_hold }),
        Step::Priority(at, priority) => job(world, at).map(|jobs| {
            let change = JobChange { priority: Some(*priority), ..JobChange::default() };
            Command::Modify { jobs, change }
        }),
        Step::Requeue(at) => job(world, at).map(|jobs| Command::Requeue { jobs, hold: false, delay_seconds: 0 }),
        Step::Drain(at) => {
            Some(Command::DrainNodes { nodes: vec![node(world, at).1], reason: "test".into(), is_down: false })
        }
        Step::Resume(at) => {
            // A lost node comes back, a drained one takes jobs again.
            let (_, name) = node(world, at);
            let hello =
                Command::NodeHello { boot_id: "boot".into(), parts: Vec::new(), highest_run: None, as_of: None };
            world.command(&Actor::Executor(name.clone()), hello).expect("heard");
            Some(Command::ResumeNodes { nodes: vec![name] })
        }
        Step::Policy(name) => {
            world.set_policy(Policy::built_in(name).expect("it is built in"));
            None
        }
        Step::Turns(rules) => {
            let turns = Turns { rules: rules.clone(), ..by_turns().turns.map(|turns| *turns).unwrap_or_default() };
            world.set_policy(Policy { turns: Some(Box::new(turns)), ..by_turns() });
            None
        }
        Step::Lose(at) => {
            let (node, _) = node(world, at);
            Some(Command::NodeSilent { node, reason: "test".into() })
        }
    };
    if let Some(command) = command {
        let _ = world.command(&Actor::Ledger, command);
    }
}

/// After a plan every waiting job has a reason, and a job that is behind another is behind a waiting one.
fn assert_reasons(world: &World) {
    for job in world.state().jobs().filter(|job| job.is_waiting()) {
        match world.state().wait_reason(job) {
            None => panic!("job {} waits for nothing", job.id),
            Some(WaitReason::NotPlannedYet) => panic!("nobody looked at job {}", job.id),
            Some(WaitReason::BehindJob(other)) => {
                let other = world.state().job(other).expect("it is known");
                assert!(other.is_waiting(), "job {} waits behind job {}, which does not wait", job.id, other.id);
            }
            Some(_) => {}
        }
    }
}

proptest! {
    /// Plans are the same for the same view, are accepted as they are, and leave no job without a reason. (The world
    /// checks the first two in `settle`.) (M-PLAN-1, PBS-C-12).
    #[test]
    fn plans_are_accepted_and_everybody_knows_why_he_waits(steps in prop::collection::vec(steps(), 1..40)) {
        let mut world = World::configured(config());
        for step in &steps {
            happen(&mut world, step);
            assert_invariants(world.state());
            world.settle();
            assert_reasons(&world);
            if world.state().resuming().next().is_some() {
                world.tick();
                world.settle();
            }
        }
    }

    /// When all runs end, every waiting job that can be served at all has its turn (M-PLAN-3).
    #[test]
    fn nobody_waits_for_ever(specs in prop::collection::vec((0..USERS.len(), jobs()), 1..20)) {
        let mut world = World::configured(config());
        for (user, spec) in specs {
            let _ = world.try_submit(USERS[user], spec);
        }
        loop {
            world.settle();
            let Some(run) = world.state().runs().next().map(|run| run.id) else { break };
            world.end_run(run);
        }
        for job in world.state().jobs().filter(|job| job.is_waiting()) {
            let reason = world.state().wait_reason(job);
            let is_hopeless = matches!(reason, Some(WaitReason::NeverFits(_) | WaitReason::Dependency(_) | WaitReason::DependencyNeverMet(_)));
            prop_assert!(is_hopeless, "nothing runs, and job {} waits: {reason:?}", job.id);
        }
    }

    /// All components of a run are placed, on separate nodes (M-PLAN-2).
    #[test]
    fn all_components_start_together(spec in jobs(), busy in jobs()) {
        let mut world = World::configured(config());
        let _ = world.try_submit("bob", busy);
        let _ = world.try_submit("ada", spec);
        for start in world.plan().plan.starts {
            let job = world.state().job(start.job).or_else(|| world.state().job(start.job.whole())).expect("known");
            prop_assert_eq!(start.placement.components.len(), job.components.len());
            prop_assert!(start.placement.components.iter().all(|component| !component.shares.is_empty()));
            let mut nodes: Vec<_> = start.placement.shares().map(|share| share.node).collect();
            let shares = nodes.len();
            nodes.sort_unstable();
            nodes.dedup();
            prop_assert_eq!(nodes.len(), shares);
        }
    }
}
