//! Random histories with planning domains (nested, with a fixed start), jobs that share cores, quotas, runs that make way, guard
//! times and orders of nodes.

use crate::{
    requests::{GROUP, LICENCE, alternatives, node_name, one_or_two},
    world::{World, component, node, owner, with_property},
};
use muster_domain::invariants::assert_invariants;
use muster_planner::predict::{Effort, predict};
use muster_schemas::{
    JobId, RunId, Timestamp,
    cluster::{ClusterChange, ClusterConfig, ClusterSettings, ClusterSettingsChange, MakesWay, QueueSpec, WayOut},
    command::{Command, JobSelection, Reply},
    event::Actor,
    job::{Component, JobSpec, JobType},
    policy::Policy,
    quota::{QuotaAmount, QuotaRule, QuotaSet, QuotaSpan, QuotaTable},
    resources::{Alternative, Count, Level, LevelCount, Request, Sharing},
};
use proptest::{prelude::*, sample::Index};
use std::collections::BTreeSet;

const POLICIES: [&str; 4] = ["fcfs", "easy", "conservative", "spt"];

/// Where a job runs.
#[derive(Clone, Copy, Debug)]
enum Place {
    Outside,
    /// Inside the domain of some container; outside if there is none.
    Inside(Index),
    /// In the domain with a name.
    Named,
}

const USERS: [&str; 2] = ["ada", "bob"];

/// What else there is to a job.
#[derive(Clone, Debug)]
struct Extra {
    user: usize,
    /// With whom it shares its cores (OAR-T-40, OAR-T-80).
    sharing: Option<JobType>,
    /// Its fixed start, in seconds from now (OAR-G-11).
    starts_after: Option<u32>,
}

/// Limits on what a user holds at once.
#[derive(Clone, Copy, Debug)]
struct Limits {
    cores: Option<u64>,
    jobs: Option<u64>,
    core_seconds: Option<u64>,
}

/// Limits, and others that bob has; in a span that begins after so many seconds and lasts so many, other ones.
type Rules = ([Limits; 2], Option<(u32, u32, Limits)>);

#[derive(Clone, Debug)]
enum Step {
    /// The job, where it runs, and whether it opens a domain: of its own or the one with a name.
    Submit(Box<JobSpec>, Place, Option<bool>, Box<Extra>),
    /// Quotas come into force, or none.
    Quotas(Option<Box<Rules>>),
    Begin(Index),
    End(Index),
    Pass(u32),
    Cancel(Index),
    Requeue(Index),
    Drain(Index),
    Return(Index),
    Suspend(Index),
    GoOn(Index),
    Policy(&'static str),
    /// Whether runs end with their domain, the guard time, and whether nodes have an order of their own.
    Settings(bool, Option<u32>, bool),
}

fn config() -> ClusterConfig {
    let nodes = vec![
        with_property(node(&node_name(0), 4, 4), GROUP, "a"),
        with_property(node(&node_name(1), 4, 4), GROUP, "a"),
        with_property(node(&node_name(2), 2, 8), GROUP, "b"),
        with_property(node(&node_name(3), 8, 2), GROUP, "b"),
    ];
    let queue = |name: &str| QueueSpec { name: name.into(), ..QueueSpec::default() };
    let side = QueueSpec { nodes: vec![node_name(1), node_name(3)], max_running_jobs: Some(3), ..queue("side") };
    let by = |by| Some(MakesWay { by, grace_seconds: 0 });
    let spare = QueueSpec { priority: -1, makes_way: by(WayOut::Requeue), ..queue("spare") };
    let still = QueueSpec { priority: -2, makes_way: by(WayOut::Suspend), ..queue("still") };
    ClusterConfig {
        nodes,
        queues: vec![queue("default"), side, spare, still],
        licences: [(LICENCE.to_owned(), 3)].into(),
        ..ClusterConfig::default()
    }
}

/// Whole nodes, as containers mostly have.
fn whole() -> impl Strategy<Value = Alternative> {
    (1_u32..=3, 20_u64..200).prop_map(|(nodes, seconds)| {
        let count = Count::exactly(nodes);
        let path = vec![LevelCount { level: Level::Node, count }];
        let request = Request { path, sharing: Sharing::WholeNodes, ..Request::default() };
        Alternative { requests: vec![request], walltime_seconds: Some(seconds), ..Alternative::default() }
    })
}

fn components() -> impl Strategy<Value = Component> {
    let ways = prop_oneof![1 => whole().prop_map(|way| vec![way]), 2 => one_or_two(|| alternatives(1))];
    let queue = prop_oneof![
        6 => Just(None),
        2 => Just(Some("side".to_owned())),
        3 => Just(Some("spare".to_owned())),
        1 => Just(Some("still".to_owned())),
    ];
    (ways, queue).prop_map(|(ways, queue)| Component { queue, ..component(ways) })
}

fn submissions() -> impl Strategy<Value = Step> {
    let place = prop_oneof![
        2 => Just(Place::Outside),
        3 => any::<Index>().prop_map(Place::Inside),
        1 => Just(Place::Named),
    ];
    let opens = prop_oneof![2 => Just(None), 1 => Just(Some(false)), 1 => Just(Some(true))];
    (one_or_two(components), place, opens, extras()).prop_map(|(mut components, place, opens, extra)| {
        if extra.starts_after.is_some() {
            components.truncate(1);
            components.iter_mut().for_each(|component| component.alternatives.truncate(1));
        }
        let spec = JobSpec { components, working_directory: "/tmp".into(), ..JobSpec::default() };
        Step::Submit(Box::new(spec), place, opens, Box::new(extra))
    })
}

fn extras() -> impl Strategy<Value = Extra> {
    let sharing = prop_oneof![
        2 => (any::<bool>(), any::<bool>())
            .prop_map(|(same_user, same_name)| JobType::Timesharing { same_user, same_name }),
        1 => Just(JobType::Placeholder("w".into())),
        1 => Just(JobType::Allowed("w".into())),
    ];
    let sharing = prop::option::weighted(0.15, sharing);
    (0..USERS.len(), sharing, prop::option::weighted(0.1, 1_u32..120)).prop_map(|(user, sharing, starts_after)| Extra {
        user,
        sharing,
        starts_after,
    })
}

fn limits() -> impl Strategy<Value = Limits> {
    let (cores, jobs) = (prop::option::weighted(0.6, 1_u64..16), prop::option::weighted(0.5, 0_u64..5));
    (cores, jobs, prop::option::weighted(0.3, 20_u64..2_000)).prop_map(|(cores, jobs, core_seconds)| Limits {
        cores,
        jobs,
        core_seconds,
    })
}

fn rules() -> impl Strategy<Value = Rules> {
    ([limits(), limits()], prop::option::weighted(0.4, (1_u32..100, 1_u32..100, limits())))
}

fn table(rules: &Rules, now: Timestamp) -> QuotaTable {
    let rule = |user: &str, limits: Limits| {
        let [queue, account, kind] = ["*"; 3].map(str::to_owned);
        let [cores, jobs, core_seconds] =
            [limits.cores, limits.jobs, limits.core_seconds].map(|limit| limit.map(QuotaAmount::Fixed));
        QuotaRule { queue, account, kind, user: user.into(), cores, jobs, core_seconds }
    };
    let ([all, of_bob], span) = rules;
    let mut sets = vec![QuotaSet { name: "always".into(), rules: vec![rule("/", *all), rule("bob", *of_bob)] }];
    sets.extend(span.map(|(.., limits)| QuotaSet { name: "span".into(), rules: vec![rule("/", limits)] }));
    let spans = span.map(|(after, lasts, _)| {
        let begin = now.plus_seconds(after.into());
        QuotaSpan { begin, end: begin.plus_seconds(lasts.into()), set: 1 }
    });
    QuotaTable { sets, spans: spans.into_iter().collect(), ..QuotaTable::default() }
}

fn steps() -> impl Strategy<Value = Step> {
    let index = any::<Index>;
    prop_oneof![
        12 => submissions(),
        8 => index().prop_map(Step::Begin),
        4 => index().prop_map(Step::End),
        2 => (1_u32..60).prop_map(Step::Pass),
        1 => index().prop_map(Step::Cancel),
        1 => index().prop_map(Step::Requeue),
        1 => index().prop_map(Step::Drain),
        1 => index().prop_map(Step::Return),
        1 => index().prop_map(Step::Suspend),
        1 => index().prop_map(Step::GoOn),
        1 => prop::sample::select(&POLICIES[..]).prop_map(Step::Policy),
        1 => (any::<bool>(), prop::option::of(1_u32..20), any::<bool>())
            .prop_map(|(ends, guard, is_ordered)| Step::Settings(ends, guard, is_ordered)),
        2 => prop::option::weighted(0.8, rules()).prop_map(|rules| Step::Quotas(rules.map(Box::new))),
    ]
}

fn running(world: &World) -> Vec<(JobId, RunId)> {
    world.state().runs().map(|run| (run.job, run.id)).collect()
}

fn pick<T: Copy>(all: &[T], at: &Index) -> Option<T> {
    (!all.is_empty()).then(|| all[at.index(all.len())])
}

fn types(world: &World, place: Place, opens: Option<bool>) -> Vec<JobType> {
    let opens = opens.map(|is_named| match is_named {
        true => JobType::OpensDomain("name".into()),
        false => JobType::Container,
    });
    let containers: Vec<JobId> = world
        .state()
        .jobs()
        .filter(|job| !job.is_finished() && job.opens_domain().is_some())
        .map(|job| job.id)
        .collect();
    let inside = match place {
        Place::Outside => None,
        Place::Inside(at) => pick(&containers, &at).map(JobType::Inner),
        Place::Named => Some(JobType::InDomain("name".into())),
    };
    opens.into_iter().chain(inside).collect()
}

fn happen(world: &mut World, step: &Step) {
    let ledger = Actor::Ledger;
    // Commands that make no sense are refused.
    let ask = |world: &mut World, command: Command| drop(world.command(&ledger, command));
    match step {
        Step::Submit(spec, place, opens, extra) => {
            let mut spec = JobSpec { types: types(world, *place, *opens), ..(**spec).clone() };
            let fixed = extra.starts_after.map(|seconds| world.state().time().plus_seconds(i64::from(seconds) + 1));
            if let Some(component) = spec.components.first_mut().filter(|_| fixed.is_some()) {
                component.begin = fixed;
            }
            spec.types.extend(extra.sharing.iter().cloned().chain(fixed.map(|_| JobType::FixedStart)));
            let _ = world.try_submit(USERS[extra.user], spec);
        }
        Step::Quotas(rules) => {
            let quotas = rules.as_ref().map(|rules| table(rules, world.state().time())).unwrap_or_default();
            let settings = ClusterSettingsChange { quotas: Some(Box::new(quotas)), ..ClusterSettingsChange::default() };
            let change = Box::new(ClusterChange { settings, ..ClusterChange::default() });
            world.command(&ledger, Command::Configure { change, keep_unnamed: true }).expect("good quotas");
        }
        Step::Begin(at) => {
            if let Some((job, _)) = pick(&running(world), at) {
                world.report_start(job);
            }
        }
        Step::End(at) => {
            if let Some((_, run)) = pick(&running(world), at) {
                world.end_run(run);
            }
        }
        Step::Pass(seconds) => {
            let unfinished = world.state().jobs().find(|job| !job.is_finished()).map(|job| job.id);
            if let Some(job) = unfinished {
                world.pass(i64::from(*seconds), job);
            }
        }
        Step::Cancel(at) => {
            let jobs: Vec<JobId> = world.state().jobs().map(|job| job.id).collect();
            if let Some(job) = pick(&jobs, at) {
                ask(world, Command::Cancel { jobs: JobSelection::Ids(vec![job]) });
            }
        }
        Step::Requeue(at) => {
            if let Some((job, _)) = pick(&running(world), at) {
                let jobs = JobSelection::Ids(vec![job]);
                ask(world, Command::Requeue { jobs, hold: false, delay_seconds: 0 });
            }
        }
        Step::Drain(at) => world.drain(&[&node_name(at.index(4))]),
        Step::Return(at) => ask(world, Command::ResumeNodes { nodes: vec![node_name(at.index(4))] }),
        Step::Suspend(at) | Step::GoOn(at) => {
            if let Some((job, _)) = pick(&running(world), at) {
                let jobs = JobSelection::Ids(vec![job]);
                let is_stop = matches!(step, Step::Suspend(_));
                ask(world, if is_stop { Command::Suspend { jobs } } else { Command::Resume { jobs } });
            }
        }
        Step::Policy(name) => world.set_policy(Policy::built_in(name).expect("it is built in")),
        Step::Settings(ends_domain_jobs, guard_seconds, is_ordered) => {
            let settings = ClusterSettings {
                ends_domain_jobs: *ends_domain_jobs,
                guard_seconds: *guard_seconds,
                node_order: if *is_ordered { vec![format!("-{GROUP}"), "-name".to_owned()] } else { Vec::new() },
                ..ClusterSettings::default()
            };
            world.configure(ClusterConfig { settings, ..config() });
        }
    }
}

/// Plans and commits until nothing starts any more. The ledger takes every start, except of jobs whose domain or fixed time ends,
/// or whose quotas change, in the second that a command takes here.
fn settle(world: &mut World) {
    let mut left_out = BTreeSet::new();
    loop {
        let plan = world.plan_without(&left_out).plan;
        let starts = plan.starts.len();
        let started: Vec<JobId> = plan.starts.iter().map(|start| start.job).collect();
        match world.command(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) }) {
            Ok(Reply::Planned(refused)) => {
                for refused in refused {
                    let changes = world.state().settings().quotas.as_ref().is_some_and(|table| !table.spans.is_empty());
                    let is_of_span = changes && refused.reason.contains("quota");
                    let ends_meanwhile = ["and planning domain", "its time has passed"];
                    let is_expected = is_of_span || ends_meanwhile.iter().any(|why| refused.reason.contains(why));
                    assert!(is_expected, "job {}: {}", refused.job, refused.reason);
                    left_out.insert(refused.job);
                }
            }
            other => panic!("a plan: {other:?}"),
        }
        assert_invariants(world.state());
        assert_quotas(world, &started);
        if starts == 0 {
            return;
        }
    }
}

/// The users of jobs that have just started hold no more than their quotas let them. Jobs that open a domain do not count.
/// (What is promised is looked at by the tests of quotas.)
fn assert_quotas(world: &World, started: &[JobId]) {
    let state = world.state();
    let Some(table) = &state.settings().quotas else { return };
    let counts = |id: &JobId| state.job(*id).filter(|job| job.opens_domain().is_none() && job.run().is_some());
    let users: BTreeSet<&str> = started.iter().filter_map(counts).map(|job| &*job.owner.user).collect();
    for user in users {
        let set = &table.sets[table.set_at(state.time())];
        let rule = set.rules.iter().find(|rule| rule.user == user).or(set.rules.first());
        let Some(rule) = rule else { continue };
        let (mut cores, mut jobs, mut core_seconds) = (0_u64, 0_u64, 0_u64);
        for run in state.runs() {
            let Some(job) = counts(&run.job).filter(|job| job.owner.user == user) else { continue };
            for (component, placed) in job.components.iter().zip(&run.placement.components) {
                let of_shares: u64 = placed.shares.iter().map(|share| share.cores.len()).sum();
                let walltime = component.shape.alternatives[placed.alternative as usize].walltime_seconds;
                cores += of_shares;
                jobs += u64::from(!placed.shares.is_empty());
                core_seconds = core_seconds.saturating_add(of_shares.saturating_mul(walltime.unwrap_or(u64::MAX)));
            }
        }
        for (held, limit) in [(cores, rule.cores), (jobs, rule.jobs), (core_seconds, rule.core_seconds)] {
            let most = limit.map_or(u64::MAX, |limit| limit.in_cluster(0));
            assert!(held <= most, "{user} holds {held} of {most} after {started:?} by `{rule}`");
        }
    }
}

/// Every waiting job inside has a reason, and none runs where its domain holds nothing.
fn assert_inside(world: &World) {
    let state = world.state();
    for job in state.jobs().filter(|job| job.is_waiting() && job.domain().is_some()) {
        assert!(state.wait_reason(job).is_some(), "job {} waits for no reason", job.id);
    }
    for run in state.runs() {
        let Some(domain) = state.job(run.job).and_then(|job| job.domain().map(|name| name.into_owned())) else {
            continue;
        };
        for share in run.placement.shares() {
            let holder = state.holder_of(run.id, share);
            let all: Vec<RunId> = state.runs_for_domain(&domain).map(|run| run.id).collect();
            // If the run that held it is gone, the share is of the node or of a domain further out.
            let is_own = holder.is_none_or(|holder| all.contains(&holder.id) || holder.id < run.id);
            assert!(is_own, "run {} lies inside {:?}", run.id, holder.map(|holder| holder.id));
        }
    }
}

/// The number of random cases for each property: `MUSTER_CASES`, else 100.
fn cases() -> ProptestConfig {
    let cases = std::env::var("MUSTER_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(100);
    ProptestConfig { cases, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    /// OAR-T-10, OAR-T-11, OAR-T-14, OAR-T-17, OAR-G-05, OAR-G-10, OAR-Q-05, OAR-Q-06: whatever happens, the ledger takes what
    /// is planned, nothing is used twice, at any depth, quotas hold, and a pass always ends.
    #[test]
    fn plans_with_domains_hold(steps in prop::collection::vec(steps(), 1..40)) {
        let mut world = World::configured(config());
        for step in &steps {
            happen(&mut world, step);
            world.tick();
            assert_invariants(world.state());
            settle(&mut world);
            assert_inside(&world);
        }
        predict(world.engine(), Vec::new(), world.state().time(), Effort { max_cycles: 50 });
    }

    /// OAR-T-10: a domain that lasts is planned as a cluster of its nodes would be.
    #[test]
    fn a_domain_is_planned_as_a_cluster_of_its_own(
        policy in prop::sample::select(&POLICIES[..]),
        jobs in prop::collection::vec((one_or_two(components), prop::option::weighted(0.4, any::<Index>())), 1..20),
    ) {
        let mut own = ClusterConfig { nodes: config().nodes.into_iter().take(3).collect(), ..config() };
        own.queues[1].nodes.pop();
        let [mut inner, mut alone] = [World::configured(config()), World::configured(own)];
        for world in [&mut inner, &mut alone] {
            world.set_policy(Policy::built_in(policy).expect("it is built in"));
        }
        let path = vec![LevelCount { level: Level::Node, count: Count::exactly(3) }];
        let request = Request { path, sharing: Sharing::WholeNodes, ..Request::default() };
        let lasting = Alternative { requests: vec![request], walltime_seconds: None, ..Alternative::default() };
        let spec = JobSpec { types: vec![JobType::Container], ..crate::world::job_of(component(vec![lasting])) };
        let container = inner.submit(spec);
        prop_assert_eq!(inner.settle(), [container]);
        inner.report_start(container);
        // The jobs of both clusters have the same numbers, and both the same time.
        let dummy = alone.submit(crate::world::tasks(1));
        let late = inner.state().time().micros_since(alone.state().time()) / 1_000_000;
        alone.pass(late - 1, dummy);
        alone.command(&owner("ada"), Command::Cancel { jobs: JobSelection::Ids(vec![dummy]) }).expect("it waits");
        for (mut components, end) in jobs {
            // Inside a domain nobody is suspended to make way: cores stay there.
            let is_still = |component: &&mut Component| component.queue.as_deref() == Some("still");
            components.iter_mut().filter(is_still).for_each(|component| component.queue = None);
            let spec = JobSpec { components, working_directory: "/tmp".into(), ..JobSpec::default() };
            if alone.try_submit("ada", spec.clone()).is_err() {
                continue;
            }
            inner.submit(JobSpec { types: vec![JobType::Inner(container)], ..spec });
            compare(&mut inner, &mut alone)?;
            let runs: Vec<JobId> = running(&alone).into_iter().map(|(job, _)| job).collect();
            if let Some(job) = end.and_then(|end| pick(&runs, &end)) {
                inner.end(job);
                alone.end(job);
                compare(&mut inner, &mut alone)?;
            }
        }
    }
}

/// The same starts at the same places.
fn compare(inner: &mut World, alone: &mut World) -> Result<(), TestCaseError> {
    prop_assert_eq!(inner.state().time(), alone.state().time());
    let (started, wanted) = (inner.settle(), alone.settle());
    prop_assert_eq!(&started, &wanted);
    for job in started {
        prop_assert_eq!(inner.placement(job), alone.placement(job));
    }
    let late = |world: &World| {
        let starts = predict(world.engine(), Vec::new(), world.state().time(), Effort { max_cycles: 100 });
        starts.into_iter().filter(|one| one.start.is_some()).map(|one| (one.job, one.start)).collect::<Vec<_>>()
    };
    prop_assert_eq!(late(inner), late(alone));
    Ok(())
}
