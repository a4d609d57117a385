//! The limits of accounts and service classes in plans.

use crate::world::{GIB, World, component, nodes, owner};
use muster_domain::{
    jobs::{Job, Phase},
    runs::{Run, Suspension},
};
use muster_planner::explain::explain;
use muster_schemas::{
    JobId, RunId,
    accounts::{
        AccountChange, AccountSettings, AccountSpec, AssociationKey, AssociationSpec, Bounds, Budget, ClassSpec,
        JobBounds, Remaining, UseLimits, UserSpec,
    },
    cluster::{ClusterConfig, MakesWay, QueueSpec, WayOut},
    command::{Command, JobSelection, RefusalCode},
    event::Actor,
    job::{ArraySpec, Component, JobSpec, JobState, JobType, Outcome, RequeuePolicy, WaitReason},
    policy::{Limit, LimitPer, OrderKey, Policy},
    resources::{Alternative, Count, IndexSet, Level, LevelCount, Memory, NodeShare, Per, Request, Sharing},
};
use proptest::{prelude::*, sample::select};
use std::collections::BTreeMap;

fn settings() -> AccountSettings {
    AccountSettings { limits: true, ..AccountSettings::default() }
}

fn association(account: &str, user: Option<&str>, limits: UseLimits) -> AccountChange {
    let of = AssociationKey { account: account.into(), user: user.map(Into::into), queue: None };
    AccountChange::Association {
        before: None,
        after: Some(AssociationSpec { of, limits, ..AssociationSpec::default() }),
    }
}

fn class(name: &str, priority: i64, limits: UseLimits) -> AccountChange {
    let spec = ClassSpec { name: name.into(), priority, limits, ..ClassSpec::default() };
    AccountChange::Class { before: None, after: Some(spec) }
}

/// Accounts `test` and `abc` below `top`, users `ada` and `bob` with `test` as their own, and further changes.
fn world(settings: AccountSettings, more: Vec<AccountChange>) -> World {
    let queue = |name: &str| QueueSpec { name: name.into(), ..QueueSpec::default() };
    let queues = vec![queue("default"), queue("night")];
    let mut world = World::configured(ClusterConfig {
        nodes: nodes(6, 4),
        queues,
        accounts: Some(settings),
        ..ClusterConfig::default()
    });
    let account = |name: &str, parent: Option<&str>| {
        let spec = AccountSpec { name: name.into(), parent: parent.map(Into::into), ..AccountSpec::default() };
        AccountChange::Account { before: None, after: Some(spec) }
    };
    let user = |name: &str| {
        let spec = UserSpec { name: name.into(), default_account: "test".into() };
        AccountChange::User { before: None, after: Some(spec) }
    };
    let base =
        [account("top", None), account("test", Some("top")), account("abc", Some("top")), user("ada"), user("bob")];
    let changes = base.into_iter().chain(more).collect();
    world.command(&Actor::Ledger, Command::ChangeAccounts { changes }).expect("good accounts");
    world
}

fn part(cores: u32) -> Component {
    shared(cores, Sharing::Shared)
}

/// This many cores of nodes with this sharing; a whole node has four.
fn shared(cores: u32, sharing: Sharing) -> Component {
    let request = Request { tasks: Some(cores), sharing, ..Request::default() };
    component(vec![Alternative { requests: vec![request], walltime_seconds: Some(600), ..Alternative::default() }])
}

fn job(parts: &[u32]) -> JobSpec {
    JobSpec { components: parts.iter().map(|cores| part(*cores)).collect(), ..JobSpec::default() }
}

fn each_user(bounds: Bounds) -> UseLimits {
    UseLimits { each_user: bounds, ..UseLimits::default() }
}

fn running(most: u64) -> Bounds {
    Bounds { running_jobs: Some(most), ..Bounds::default() }
}

fn limit(text: &str) -> Option<WaitReason> {
    Some(WaitReason::Limit(text.into()))
}

const MAX_JOBS: &str = "2 running jobs of each user in association test/ada";

/// EX-15, SL-L-05: with MaxJobs=2 a plain job starts while a job of three components waits, none of which ever runs.
#[test]
fn a_job_of_more_components_than_may_run_never_starts_partly() {
    let mut world = world(settings(), vec![association("test", Some("ada"), each_user(running(2)))]);
    let three = world.submit(job(&[1, 1, 1]));
    let plain = world.submit(job(&[1]));
    assert_eq!(world.settle(), [plain]);
    assert_eq!(world.reason(three), limit(MAX_JOBS));
    world.end(plain);
    assert_eq!(world.settle(), []);
    assert_eq!(world.reason(three), limit(MAX_JOBS));
    assert!(world.state().runs().next().is_none());
}

/// EX-15: with two components the job runs, and a further plain job waits.
#[test]
fn a_job_of_as_many_components_as_may_run_keeps_others_waiting() {
    let mut world = world(settings(), vec![association("test", Some("ada"), each_user(running(2)))]);
    let two = world.submit(job(&[1, 1]));
    let plain = world.submit(job(&[1]));
    let others = world.submit_as("bob", job(&[1]));
    assert_eq!(world.settle(), [two, others]);
    assert_eq!(world.reason(plain), limit(MAX_JOBS));
    world.end(two);
    assert_eq!(world.settle(), [plain]);
}

/// SL-L-05: if the site is so configured it is refused at once.
#[test]
fn a_job_of_more_components_than_may_run_is_refused_where_the_site_says_so() {
    let strict = AccountSettings { refuses_hopeless: true, ..settings() };
    let mut world = world(strict, vec![association("test", Some("ada"), each_user(running(2)))]);
    let refusal = world.try_submit("ada", job(&[1, 1, 1])).expect_err("three are more than two");
    assert_eq!((refusal.code, refusal.message), (RefusalCode::LimitReached, format!("limit reached: {MAX_JOBS}")));
    world.submit(job(&[1, 1]));
}

/// SL-C-39: each kind of limit, and the reason that it gives a held job.
#[test]
fn every_kind_of_limit_holds_jobs_and_says_so() {
    let together = |bounds| UseLimits { together: bounds, ..UseLimits::default() };
    let each_account = |bounds| UseLimits { each_account: bounds, ..UseLimits::default() };
    let each_job = |bounds| UseLimits { each_job: bounds, ..UseLimits::default() };
    let cores = |most| Bounds { cores: Some(most), ..Bounds::default() };
    let of_nodes = |most| Bounds { nodes: Some(most), ..Bounds::default() };
    let of_job = |most| JobBounds { cores: Some(most), ..JobBounds::default() };
    let wall = JobBounds { walltime_seconds: Some(60), ..JobBounds::default() };
    let cases: Vec<(AccountChange, &str)> = vec![
        (association("top", None, together(running(1))), "1 running jobs of all in association top"),
        (association("top", None, together(cores(3))), "3 cores of all in association top"),
        (association("test", None, together(of_nodes(1))), "1 nodes of all in association test"),
        (association("test", None, each_user(running(1))), "1 running jobs of each user in association test/ada"),
        (association("test", Some("ada"), each_job(of_job(1))), "1 cores of each job in association test/ada"),
        (association("test", None, each_job(wall)), "60 seconds of walltime of each job in association test/ada"),
        (class("normal", 0, together(running(1))), "1 running jobs of all in class normal"),
        (class("normal", 0, together(cores(3))), "3 cores of all in class normal"),
        (class("normal", 0, each_user(running(1))), "1 running jobs of each user in class normal"),
        (class("normal", 0, each_user(cores(3))), "3 cores of each user in class normal"),
        (class("normal", 0, each_account(running(1))), "1 running jobs of each account in class normal"),
        (class("normal", 0, each_job(of_job(1))), "1 cores of each job in class normal"),
    ];
    for (change, text) in cases {
        let is_of_job = text.contains("each job");
        let mut world = world(settings(), vec![change]);
        let first = world.submit(job(&[2]));
        let second = world.submit(job(&[2]));
        let started = world.settle();
        assert_eq!(started, if is_of_job { Vec::new() } else { vec![first] }, "{text}");
        assert_eq!(world.reason(second), limit(text));
    }
}

/// `explain` reports for each limit on a job how much is in use and what the job would add.
#[test]
fn an_explanation_names_the_limits_of_accounts() {
    let together = UseLimits { together: Bounds { cores: Some(6), ..Bounds::default() }, ..each_user(running(2)) };
    let mut world = world(settings(), vec![association("test", Some("ada"), together)]);
    world.submit(job(&[2, 2]));
    let waits = world.submit(job(&[3]));
    world.settle();
    let (state, now) = (world.state(), world.state().time());
    let job = state.job(waits).expect("it waits");
    let explanation = explain(world.engine(), state, job, now).expect("it waits");
    let limits: Vec<_> =
        explanation.limits.iter().map(|limit| (limit.text.as_str(), limit.used, limit.wanted, limit.most)).collect();
    assert_eq!(limits, [("6 cores of all in association test/ada", 4, 3, 6), (MAX_JOBS, 2, 1, 2)]);
}

/// The class contributes to the priority of a job.
#[test]
fn jobs_of_a_higher_class_go_first() {
    let changes = vec![
        class("normal", 0, UseLimits::default()),
        class("high", 50, UseLimits::default()),
        association("test", None, UseLimits { together: running(1), ..UseLimits::default() }),
    ];
    let mut world = world(settings(), changes);
    let plain = world.submit(job(&[1]));
    let mut spec = job(&[1]);
    spec.components[0].class = Some("high".into());
    let high = world.submit(spec);
    assert_eq!(world.settle(), [high]);
    world.end(high);
    assert_eq!(world.settle(), [plain]);
}

/// Who used less of an equal share goes first; half of what was used is forgotten after each half-life.
#[test]
fn jobs_are_ordered_by_fair_share() {
    let counted = AccountSettings { usage_half_life_seconds: 100, ..AccountSettings::default() };
    let changes =
        ["ada", "bob"].map(|user| association("test", Some(user), UseLimits::default())).into_iter().collect();
    let mut world = world(counted, changes);
    let order = OrderKey::Formula { text: "100 * fair_share".into(), descending: true };
    world.set_policy(Policy { order: vec![order], ..Policy::default() });
    let submit = |world: &mut World, user: &str, cores: u32| {
        let mut spec = job(&[cores]);
        spec.components[0].account = Some("test".into());
        world.submit_as(user, spec)
    };
    let used = |world: &World, user: &str| {
        let now = world.state().time();
        let of = AssociationKey { account: "test".into(), user: Some(user.into()), queue: None };
        world.state().fair_use(now).get(&of).copied().unwrap_or(0)
    };
    let all = submit(&mut world, "ada", 24);
    assert_eq!(world.settle(), [all]);
    world.report_start(all);
    let first = submit(&mut world, "ada", 24);
    let second = submit(&mut world, "bob", 24);
    assert!(used(&world, "ada") >= 24, "what runs counts: {}", used(&world, "ada"));
    world.end(all);
    assert_eq!(world.settle(), [second], "bob has used nothing");
    let before = used(&world, "ada");
    world.report_start(second);
    world.pass(100, second);
    let after = used(&world, "ada");
    assert!(after <= before / 2 && after * 20 >= before * 9, "{before} core seconds are {after} after a half-life");
    let third = submit(&mut world, "bob", 24);
    world.end(second);
    assert_eq!(world.settle(), [first], "bob has used far more since");
    world.end(first);
    assert_eq!(world.settle(), [third]);
}

/// A budget holds jobs whose whole walltime does not fit in any more, in addition to that of running jobs and to what
/// ended ones used. The rest of a job that ends early is free again.
#[test]
fn budgets_count_what_was_used_and_what_running_jobs_may_use() {
    for (budget, words, per_job) in [
        (Budget { core_seconds: Some(2_500), ..Budget::default() }, "2500 core seconds", 2),
        (Budget { run_seconds: Some(1_250), ..Budget::default() }, "1250 run seconds", 1),
        (Budget { node_seconds: Some(1_250), ..Budget::default() }, "1250 node seconds", 1),
    ] {
        let limits = UseLimits { budget, ..UseLimits::default() };
        let mut world = world(settings(), vec![association("test", None, limits.clone())]);
        let [first, second] = ["ada", "bob"].map(|user| world.submit_as(user, job(&[2])));
        let third = world.submit(job(&[2]));
        assert_eq!(world.settle(), [first, second], "{words}: 600 seconds each");
        assert_eq!(world.reason(third), limit(&format!("{words} of all in association test")));
        let now = world.state().time();
        let explained = explain(world.engine(), world.state(), world.state().job(third).unwrap(), now).unwrap();
        let told = explained.limits.iter().find(|limit| limit.text.contains(words)).expect("the budget is listed");
        assert_eq!((told.used, told.wanted), (1_200 * per_job, 600 * per_job));
        world.report_start(first);
        world.pass(30, first);
        world.end(first);
        assert_eq!(world.settle(), [third], "{words}: it used 30 seconds, and another 600 are committed");
        world.report_start(second);
        world.pass(90, second);
        world.end(second);
        world.report_start(third);
        let fourth = world.submit(job(&[2]));
        assert_eq!(world.settle(), [], "{words}: 120 are used and 600 committed");
        let long = |most: u64| most * 2;
        let raised = Budget {
            core_seconds: budget.core_seconds.map(long),
            run_seconds: budget.run_seconds.map(long),
            node_seconds: budget.node_seconds.map(long),
            ..Budget::default()
        };
        let spec = |budget| AssociationSpec {
            of: AssociationKey { account: "test".into(), ..AssociationKey::default() },
            limits: UseLimits { budget, ..limits.clone() },
            ..AssociationSpec::default()
        };
        let change = AccountChange::Association { before: Some(spec(budget)), after: Some(spec(raised)) };
        world.command(&Actor::Ledger, Command::ChangeAccounts { changes: vec![change] }).expect("a good change");
        assert_eq!(world.settle(), [fourth], "{words}: raised");
    }
}

/// Without a walltime nobody knows what a job will use.
#[test]
fn a_job_without_walltime_does_not_start_on_a_budget() {
    let limits =
        UseLimits { budget: Budget { core_seconds: Some(u64::MAX - 1), ..Budget::default() }, ..UseLimits::default() };
    let mut world = world(settings(), vec![class("normal", 0, limits)]);
    let mut endless = job(&[1]);
    endless.components[0].alternatives[0].walltime_seconds = None;
    let endless = world.submit(endless);
    let finite = world.submit(job(&[1]));
    assert_eq!(world.settle(), [finite]);
    assert!(matches!(world.reason(endless), Some(WaitReason::Limit(text)) if text.ends_with("of all in class normal")));
}

/// With a half-life, what was used counts ever less.
#[test]
fn what_was_used_of_a_budget_is_forgotten_with_the_half_life() {
    let counted = AccountSettings { usage_half_life_seconds: 100, ..settings() };
    let limits = UseLimits { budget: Budget { core_seconds: Some(700), ..Budget::default() }, ..UseLimits::default() };
    let mut world = world(counted, vec![association("test", None, limits), class("free", 0, UseLimits::default())]);
    let first = world.submit(job(&[1]));
    assert_eq!(world.settle(), [first]);
    world.report_start(first);
    world.pass(400, first);
    world.end(first);
    let second = world.submit(job(&[1]));
    assert_eq!(world.settle(), [], "400 of 700 are used");
    assert!(world.plan().next_wake.is_some(), "it is looked at again although nothing happens");
    let mut other = job(&[1]);
    other.components[0].account = Some("abc".into());
    let other = world.submit(other);
    assert_eq!(world.settle(), [other]);
    world.report_start(other);
    world.pass(300, other);
    assert_eq!(world.settle(), [second], "50 of them count");
}

/// `GrpTRESRunMins`: a job waits until the walltimes that running jobs still have leave room for its own. A job without a
/// walltime does not start.
#[test]
fn a_limit_on_what_is_left_to_running_jobs() {
    let remaining = Remaining { core_seconds: Some(700), ..Remaining::default() };
    let limits = UseLimits { remaining, ..UseLimits::default() };
    let mut world = world(settings(), vec![association("test", None, limits)]);
    let first = world.submit(job(&[1]));
    assert_eq!(world.settle(), [first]);
    world.report_start(first);
    let second = world.submit(job(&[1]));
    let mut endless = job(&[1]);
    endless.components[0].alternatives[0].walltime_seconds = None;
    let endless = world.submit(endless);
    assert_eq!(world.settle(), []);
    let text = "700 core seconds left of all in association test";
    assert_eq!(world.reason(second), limit(text));
    let job = world.state().job(second).expect("it waits");
    let explained = explain(world.engine(), world.state(), job, world.state().time()).expect("it waits");
    let told: Vec<_> =
        explained.limits.iter().filter(|view| view.text == text).map(|view| (view.wanted, view.most)).collect();
    assert_eq!(told, [(600, 700)], "{:?}", explained.limits);
    assert!(world.plan().next_wake.is_some(), "it is looked at again although nothing happens");
    world.pass(400, first);
    assert_eq!(world.settle(), [], "200 are left of the first");
    world.pass(120, first);
    assert_eq!(world.settle(), [second]);
    world.end(first);
    world.end(second);
    assert_eq!(world.settle(), []);
    assert_eq!(world.reason(endless), limit(text));
}

/// Classes whose runs make way: `urgent` for none, `low` and `spare` for `urgent`.
fn preempting(spare_is_cancelled: bool) -> World {
    let made = |name: &str, priority, preempts: &[&str], cancels_preempted| AccountChange::Class {
        before: None,
        after: Some(ClassSpec {
            name: name.into(),
            priority,
            preempts: preempts.iter().map(|name| (*name).to_owned()).collect(),
            cancels_preempted,
            ..ClassSpec::default()
        }),
    };
    let mut world = world(
        settings(),
        vec![
            made("low", 0, &[], false),
            made("spare", 0, &[], spare_is_cancelled),
            made("urgent", 100, &["low", "spare"], false),
        ],
    );
    world.set_policy(Policy { order: vec![OrderKey::Priority], ..Policy::default() });
    world
}

/// A job of a class on all cores of this many of the six nodes, which may run again.
fn of_class(world: &mut World, class: &str, nodes: usize) -> JobId {
    let mut spec = job(&[4 * u32::try_from(nodes).unwrap()]);
    spec.components[0].class = Some(class.into());
    spec.requeue = RequeuePolicy { on_node_lost: true, max_runs: 5, ..RequeuePolicy::default() };
    world.submit(spec)
}

/// Running jobs make way for a job whose class preempts theirs: the last started of the fewest that are enough, others
/// not at all. They wait again, and run later.
#[test]
fn runs_make_way_for_a_class_that_preempts_theirs() {
    let mut world = preempting(false);
    let normal = of_class(&mut world, "normal", 1);
    let lows = [2, 1, 2].map(|nodes| {
        let low = of_class(&mut world, "low", nodes);
        world.settle();
        low
    });
    assert_eq!(world.state().runs().count(), 4);
    let urgent = of_class(&mut world, "urgent", 2);
    let planned = world.plan().plan;
    let [preemption] = &planned.preemptions[..] else { panic!("{:?}", planned.preemptions) };
    assert_eq!(
        (preemption.for_job, &preemption.victims[..]),
        (urgent, &[lows[2]][..]),
        "the last of two nodes is enough"
    );
    assert_eq!(world.settle(), []);
    assert!(world.plan().plan.preemptions.is_empty(), "enough is on its way");
    world.end(lows[2]);
    assert_eq!(world.settle(), [urgent]);
    assert!(world.state().job(lows[2]).unwrap().is_waiting(), "it waits again");
    world.end(urgent);
    assert_eq!(world.settle(), [lows[2]]);
    assert!(world.state().job(normal).unwrap().run().is_some());
}

/// SL-C-38: running jobs make way for jobs of a queue with a higher priority if their queue lets them, in the way that it
/// says. Queues of the same priority, and those that say nothing, do not.
#[test]
fn runs_make_way_for_queues_with_a_higher_priority() {
    let way = |by| Some(MakesWay { by, grace_seconds: 0 });
    for (makes_way, comes_back) in
        [(None, None), (way(WayOut::Requeue), Some(true)), (way(WayOut::Cancel), Some(false))]
    {
        let queue = |name: &str, priority, makes_way| QueueSpec {
            name: name.into(),
            priority,
            makes_way,
            ..QueueSpec::default()
        };
        let queues = vec![queue("default", 1, makes_way), queue("equal", 1, None), queue("night", 2, None)];
        let mut world = World::configured(ClusterConfig { nodes: nodes(2, 4), queues, ..ClusterConfig::default() });
        let submit = |world: &mut World, queue: &str, nodes: u32| {
            let mut spec = job(&[4 * nodes]);
            spec.components[0].queue = Some(queue.into());
            spec.requeue = RequeuePolicy { on_node_lost: true, max_runs: 5, ..RequeuePolicy::default() };
            world.submit(spec)
        };
        let lows = [1, 1].map(|nodes| {
            let low = submit(&mut world, "default", nodes);
            world.settle();
            low
        });
        submit(&mut world, "equal", 1);
        assert!(world.plan().plan.preemptions.is_empty(), "its priority is not higher");
        let high = submit(&mut world, "night", 1);
        let planned = world.plan().plan.preemptions;
        let Some(comes_back) = comes_back else {
            assert!(planned.is_empty(), "{planned:?}");
            continue;
        };
        let made: Vec<_> = planned.iter().map(|one| (one.for_job, &one.victims[..])).collect();
        assert_eq!(made, [(high, &lows[1..])], "the last started of the fewest that are enough");
        world.settle();
        world.end(lows[1]);
        assert_eq!(world.settle(), [high]);
        assert_eq!(world.state().job(lows[1]).is_some_and(Job::is_waiting), comes_back);
        assert!(world.state().job(lows[0]).unwrap().run().is_some(), "it goes on");
    }
}

/// Classes whose runs make way for `urgent`: those of `low` are suspended, those of `spare` wait again.
fn suspending() -> World {
    let mut world = preempting(false);
    let low = |suspends_preempted| ClassSpec { name: "low".into(), suspends_preempted, ..ClassSpec::default() };
    let change = AccountChange::Class { before: Some(low(false)), after: Some(low(true)) };
    world.command(&Actor::Ledger, Command::ChangeAccounts { changes: vec![change] }).expect("a good change");
    world
}

/// A job of a class on this many cores of one node, with this much of its 8 GiB of memory.
fn on_one_node(class: &str, cores: u32, gibibytes: u64) -> JobSpec {
    let memory = Some(Memory { bytes: gibibytes * GIB, per: Per::Node });
    let path = vec![LevelCount { level: Level::Node, count: Count::exactly(1) }];
    let request = Request { path, tasks: Some(cores), memory, ..Request::default() };
    let alternative = Alternative { requests: vec![request], walltime_seconds: Some(600), ..Alternative::default() };
    let mut spec = JobSpec { components: vec![component(vec![alternative])], ..JobSpec::default() };
    spec.components[0].class = Some(class.into());
    spec.requeue = RequeuePolicy { on_node_lost: true, max_runs: 5, ..RequeuePolicy::default() };
    spec
}

fn state_of(world: &World, job: JobId) -> JobState {
    world.state().job_state(world.state().job(job).expect("it is known"))
}

/// Runs start, plans are made and time comes, until nothing changes any more.
fn quiet(world: &mut World) -> Vec<JobId> {
    let mut started = Vec::new();
    for _ in 0..30 {
        let before = world.state().sequence();
        started.extend(world.settle());
        let launching: Vec<JobId> = world
            .state()
            .runs()
            .filter(|run| run.started.is_none() && run.stopping.is_none())
            .map(|run| run.job)
            .collect();
        launching.into_iter().for_each(|job| world.report_start(job));
        world.tick();
        if world.state().sequence() == before {
            return started;
        }
    }
    panic!("plans change something for ever");
}

fn is_suspended(world: &World, job: JobId) -> bool {
    state_of(world, job) == JobState::Suspended
}

/// A run whose class says so is suspended to make way: the other starts on its cores, and it continues when that ends.
/// Nobody new gets its cores but another job that it makes way for, which gets them without it continuing in between, and
/// jobs that start together with that one on what it leaves.
#[test]
fn a_run_that_makes_way_is_suspended_and_continues_afterwards() {
    let mut world = suspending();
    let low = of_class(&mut world, "low", 6);
    assert_eq!(quiet(&mut world), [low]);
    let urgent = of_class(&mut world, "urgent", 6);
    let planned = world.plan().plan;
    assert_eq!(planned.preemptions[0].victims, [low]);
    assert_eq!(quiet(&mut world), [urgent]);
    assert!(is_suspended(&world, low));
    let late = of_class(&mut world, "normal", 1);
    let again = of_class(&mut world, "urgent", 2);
    assert_eq!(quiet(&mut world), []);
    world.end(urgent);
    assert!(is_suspended(&world, low));
    assert_eq!(quiet(&mut world), [again, late]);
    let later = of_class(&mut world, "normal", 1);
    assert_eq!(quiet(&mut world), [], "the other job finds the cores taken that the run wants back");
    assert!(is_suspended(&world, low));
    let run = world.state().job(low).and_then(|job| job.run()).expect("it keeps its run");
    assert!(world.state().run(run).is_some_and(|run| run.suspension != Suspension::Resumed), "it never continued");
    world.end(again);
    assert_eq!(quiet(&mut world), []);
    world.end(late);
    assert_eq!(quiet(&mut world), []);
    assert_eq!(state_of(&world, low), JobState::Running);
    world.end(low);
    assert_eq!(quiet(&mut world), [later]);
}

/// A suspended run keeps its memory: nobody is suspended for a job that needs it.
#[test]
fn nobody_is_suspended_for_a_job_that_lacks_memory() {
    let mut world = suspending();
    let lows = [0; 6].map(|_| world.submit(on_one_node("low", 4, 6)));
    assert_eq!(quiet(&mut world), lows);
    let large = world.submit(on_one_node("urgent", 1, 3));
    assert!(world.plan().plan.preemptions.is_empty());
    assert_eq!(quiet(&mut world), []);
    let small = world.submit(on_one_node("urgent", 1, 2));
    world.command(&owner("ada"), Command::Cancel { jobs: JobSelection::Ids(vec![large]) }).expect("it waits");
    assert_eq!(quiet(&mut world), [small]);
    assert_eq!(lows.iter().filter(|low| is_suspended(&world, **low)).count(), 1);
}

/// It stays suspended while others that make way as well still end, and continues if the job is gone before it started.
#[test]
fn a_suspended_run_waits_for_the_others_that_make_way() {
    let mut world = suspending();
    let (low, spare) = (of_class(&mut world, "low", 3), of_class(&mut world, "spare", 3));
    assert_eq!(quiet(&mut world), [low, spare]);
    let urgent = of_class(&mut world, "urgent", 6);
    assert_eq!(quiet(&mut world), []);
    assert!(is_suspended(&world, low) && world.state().job(spare).is_some_and(|job| job.run().is_some()));
    assert_eq!(quiet(&mut world), []);
    assert!(is_suspended(&world, low), "the job that it made way for still waits");
    world.end(spare);
    assert_eq!(quiet(&mut world), [urgent]);
    world.end(urgent);
    assert_eq!(quiet(&mut world), [spare]);
    assert_eq!(state_of(&world, low), JobState::Running);
    let gone = of_class(&mut world, "urgent", 6);
    assert_eq!(quiet(&mut world), []);
    assert!(is_suspended(&world, low));
    world.command(&owner("ada"), Command::Cancel { jobs: JobSelection::Ids(vec![gone]) }).expect("it waits");
    assert_eq!(quiet(&mut world), []);
    assert_eq!(state_of(&world, low), JobState::Running);
}

/// Where all jobs have promises, runs make way for the first waiting job, and for none behind it that could use the same.
#[test]
fn runs_make_way_where_starts_are_promised_too() {
    let mut world = preempting(false);
    let conservative = Policy::built_in("conservative").expect("it is built in");
    world.set_policy(Policy { order: vec![OrderKey::Priority], ..conservative });
    let low = of_class(&mut world, "low", 6);
    assert_eq!(world.settle(), [low]);
    let urgent = of_class(&mut world, "urgent", 3);
    let behind = of_class(&mut world, "urgent", 2);
    let planned = world.plan().plan;
    let made: Vec<_> = planned.preemptions.iter().map(|one| (one.for_job, &one.victims[..])).collect();
    assert_eq!(made, [(urgent, &[low][..])]);
    assert_eq!(world.settle(), []);
    assert!(world.plan().plan.preemptions.is_empty(), "enough is on its way");
    world.end(low);
    assert_eq!(world.settle(), [urgent, behind]);
    assert!(world.state().job(low).unwrap().is_waiting(), "it waits again");
    world.end(urgent);
    world.end(behind);
    assert_eq!(world.settle(), [low]);
}

/// A promise to another is not broken for it.
#[test]
fn promises_are_kept_when_runs_could_make_way() {
    let mut world = preempting(false);
    let conservative = Policy::built_in("conservative").expect("it is built in");
    world.set_policy(Policy { order: vec![OrderKey::Priority], ..conservative });
    let low = of_class(&mut world, "low", 6);
    assert_eq!(world.settle(), [low]);
    let promised = of_class(&mut world, "normal", 6);
    assert_eq!(world.settle(), []);
    of_class(&mut world, "urgent", 6);
    assert!(world.plan().plan.preemptions.is_empty(), "it would run into what is promised to {promised}");
}

/// OAR-T-24: of two ways to make room the one with fewer runs; a run of another class never.
#[test]
fn no_more_runs_make_way_than_needed_and_none_of_other_classes() {
    let mut world = preempting(false);
    let large = of_class(&mut world, "low", 4);
    world.settle();
    let smalls = [1, 1].map(|nodes| {
        let small = of_class(&mut world, "spare", nodes);
        world.settle();
        small
    });
    let urgent = of_class(&mut world, "urgent", 4);
    let planned = world.plan().plan;
    assert_eq!(planned.preemptions[0].victims, [large], "with the large one away, the small ones need not go");
    world.settle();
    world.end(large);
    assert_eq!(world.settle(), [urgent]);
    let more = of_class(&mut world, "urgent", 3);
    assert!(world.plan().plan.preemptions.is_empty(), "two nodes are not enough: nobody is stopped in vain");
    let two = of_class(&mut world, "urgent", 2);
    world.command(&owner("ada"), Command::Cancel { jobs: JobSelection::Ids(vec![more]) }).expect("it waits");
    let planned = world.plan().plan;
    assert_eq!(planned.preemptions[0].for_job, two);
    assert_eq!(planned.preemptions[0].victims.len(), 2);
    assert!(planned.preemptions[0].victims.iter().all(|victim| smalls.contains(victim)));
}

/// OAR-T-21, OAR-T-22, OAR-G-03, W5: a best-effort job, whose priority is below that of others, makes way for a later one and
/// waits again behind it, however often.
#[test]
fn best_effort_makes_way_and_waits_again_behind() {
    let class = |name: &str, preempts: &[&str]| AccountChange::Class {
        before: None,
        after: Some(ClassSpec {
            name: name.into(),
            preempts: preempts.iter().map(|name| (*name).to_owned()).collect(),
            ..ClassSpec::default()
        }),
    };
    let mut world = world(settings(), vec![class("besteffort", &[]), class("firm", &["besteffort"])]);
    let mut weak = job(&[24]);
    weak.components[0].class = Some("besteffort".into());
    weak.components[0].priority = Some(-1_000_000);
    weak.types = vec![JobType::BestEffort { requeue: true }];
    weak.requeue.max_runs = 1;
    let weak = world.submit(weak);
    assert_eq!(world.settle(), [weak]);
    for _ in 0..3 {
        let mut firm = job(&[4]);
        firm.components[0].class = Some("firm".into());
        let firm = world.submit(firm);
        assert_eq!(world.settle(), []);
        world.end(weak);
        assert_eq!(world.settle(), [firm]);
        assert!(world.state().job(weak).unwrap().is_waiting(), "it waits again");
        world.end(firm);
        assert_eq!(world.settle(), [weak]);
    }
}

/// OAR-T-27: nobody makes way as long as idle nodes are enough, which are taken first.
#[test]
fn idle_nodes_go_before_those_of_runs_that_could_make_way() {
    let mut world = preempting(true);
    let spare = of_class(&mut world, "spare", 2);
    assert_eq!(world.settle(), [spare]);
    let urgent = of_class(&mut world, "urgent", 4);
    let planned = world.plan().plan;
    assert!(planned.preemptions.is_empty(), "{:?}", planned.preemptions);
    assert_eq!(world.settle(), [urgent]);
    assert_eq!(world.state().runs().count(), 2, "both run");
}

/// A run that would wait ahead of the job again does not make way; one that is cancelled for good does.
#[test]
fn a_run_that_comes_back_ahead_does_not_make_way() {
    for (cancelled, makes_way) in [(false, false), (true, true)] {
        let mut world = preempting(cancelled);
        world.set_policy(Policy { order: vec![OrderKey::Fcfs], ..Policy::default() });
        let spare = of_class(&mut world, "spare", 6);
        assert_eq!(world.settle(), [spare]);
        let urgent = of_class(&mut world, "urgent", 1);
        assert_eq!(!world.plan().plan.preemptions.is_empty(), makes_way, "first come, first served");
        if makes_way {
            world.settle();
            world.end(spare);
            assert_eq!(world.settle(), [urgent]);
            let phase = &world.state().job(spare).unwrap().phase;
            assert!(matches!(phase, Phase::Finished(end) if end.outcome == Outcome::Preempted), "{phase:?}");
        }
    }
}

/// A job in whose class another budget holds still counts for that of its account, whoever comes first.
#[test]
fn a_budget_of_a_class_does_not_hide_use_from_that_of_the_account() {
    let budget =
        |most| UseLimits { budget: Budget { core_seconds: Some(most), ..Budget::default() }, ..UseLimits::default() };
    let changes = vec![association("test", None, budget(1_300)), class("own", 0, budget(1_000_000))];
    let mut world = world(settings(), changes);
    let mut own = job(&[1]);
    own.components[0].class = Some("own".into());
    let own = world.submit(own);
    assert_eq!(world.settle(), [own]);
    let [plain, third] = [world.submit(job(&[1])), world.submit(job(&[1]))];
    assert_eq!(world.settle(), [plain]);
    assert_eq!(world.reason(third), limit("1300 core seconds of all in association test"));
    world.end(own);
    assert_eq!(world.settle(), [third]);
}

/// Nobody is stopped for a job that a limit would keep from starting in their place.
#[test]
fn nobody_makes_way_for_a_job_that_a_limit_holds() {
    let mut world = preempting(false);
    let limits = UseLimits { together: Bounds { cores: Some(2), ..Bounds::default() }, ..UseLimits::default() };
    let urgent = |limits| ClassSpec {
        name: "urgent".into(),
        priority: 100,
        preempts: vec!["low".into(), "spare".into()],
        limits,
        ..ClassSpec::default()
    };
    let change = AccountChange::Class { before: Some(urgent(UseLimits::default())), after: Some(urgent(limits)) };
    world.command(&Actor::Ledger, Command::ChangeAccounts { changes: vec![change] }).expect("a good change");
    let low = of_class(&mut world, "low", 6);
    assert_eq!(world.settle(), [low]);
    let mut whole = JobSpec { components: vec![shared(1, Sharing::WholeNodes)], ..JobSpec::default() };
    whole.components[0].class = Some("urgent".into());
    world.submit(whole);
    assert!(world.plan().plan.preemptions.is_empty(), "one core is allowed, a whole node is not");
}

/// Changed limits count what already runs; another class lets a waiting job start.
#[test]
fn changed_limits_and_classes_count_from_then_on() {
    let mut world =
        world(settings(), vec![class("normal", 0, each_user(running(1))), class("wide", 0, UseLimits::default())]);
    let first = world.submit(job(&[1]));
    let (second, third) = (world.submit(job(&[1])), world.submit(job(&[1])));
    assert_eq!(world.settle(), [first]);
    let jobs = JobSelection::Ids(vec![second]);
    world.command(&owner("ada"), Command::ChangeClass { jobs, class: "wide".into() }).expect("it waits");
    assert_eq!(world.settle(), [second]);
    let spec = |most| ClassSpec { name: "normal".into(), limits: each_user(running(most)), ..ClassSpec::default() };
    let change = AccountChange::Class { before: Some(spec(1)), after: Some(spec(2)) };
    world.command(&Actor::Ledger, Command::ChangeAccounts { changes: vec![change] }).expect("a good change");
    assert_eq!(world.settle(), [third]);
}

/// SL-L-01: each component counts as one job for the limits of queues and of the policy too, by its own
/// queue and account.
#[test]
fn components_count_singly_for_queues_and_policies() {
    let mut world = World::configured(ClusterConfig {
        nodes: nodes(6, 4),
        queues: vec![
            QueueSpec { name: "default".into(), max_running_jobs: Some(2), ..QueueSpec::default() },
            QueueSpec { name: "night".into(), ..QueueSpec::default() },
        ],
        ..ClusterConfig::default()
    });
    let three = world.submit(job(&[1, 1, 1]));
    let mut spec = job(&[1, 1, 1]);
    spec.components[0].queue = Some("night".into());
    let mixed = world.submit(spec);
    assert_eq!(world.settle(), [mixed]);
    assert_eq!(world.reason(three), limit("2 running jobs in queue default"));
    world.end(mixed);
    let per_account = Limit { per: LimitPer::Account, max_running_jobs: Some(1), ..Limit::default() };
    world.set_policy(Policy { limits: vec![per_account], ..Policy::default() });
    let on = |accounts: [&str; 2]| {
        let mut spec = job(&[1, 1]);
        for (component, account) in spec.components.iter_mut().zip(accounts) {
            component.queue = Some("night".into());
            component.account = Some(account.into());
        }
        spec
    };
    let same = world.submit(on(["a", "a"]));
    let apart = world.submit(on(["a", "b"]));
    assert_eq!(world.settle(), [apart]);
    assert_eq!(world.reason(same), limit("1 running jobs of account a"));
}

/// SL-L-01: for limits of accounts, queues and the policy. A component that has ended no longer counts
/// while others run.
#[test]
fn components_and_tasks_count_singly_until_they_end() {
    let queue = |most| QueueSpec { name: "default".into(), max_running_jobs: most, ..QueueSpec::default() };
    let of_user = Limit { per: LimitPer::User, max_running_jobs: Some(2), ..Limit::default() };
    let limited = Policy { limits: vec![of_user], ..Policy::default() };
    let cases = [
        (running(2), None, Policy::default(), MAX_JOBS),
        (Bounds::default(), Some(2), Policy::default(), "2 running jobs in queue default"),
        (Bounds::default(), None, limited, "2 running jobs of ada"),
    ];
    for (of_account, of_queue, policy, text) in cases {
        let mut world = world(settings(), vec![association("test", Some("ada"), each_user(of_account))]);
        let queues = vec![queue(of_queue)];
        world.configure(ClusterConfig { nodes: nodes(6, 4), queues, accounts: Some(settings()), ..Default::default() });
        world.set_policy(policy);
        let two = world.submit(job(&[1, 1]));
        let plain = world.submit(job(&[1]));
        assert_eq!(world.settle(), [two]);
        assert_eq!(world.reason(plain), limit(text));
        world.end_component(two, 1);
        assert_eq!(world.settle(), [plain], "{text}");
        let third = world.submit(job(&[1]));
        assert_eq!(world.settle(), []);
        assert_eq!(world.reason(third), limit(text));
        [two, plain].into_iter().for_each(|job| world.end(job));
        let array = ArraySpec { indices: IndexSet::first_n(2), max_running: None };
        let array = world.submit(JobSpec { array: Some(array), ..job(&[1]) });
        assert_eq!(world.settle(), [third, JobId::task(array.number, 0)]);
        assert_eq!(world.reason(array), limit(text));
    }
}

/// SL-L-06: it is admitted with the one core that it asks for, and would get all four of a node.
#[test]
fn what_a_job_gets_is_held_against_the_limits_when_it_is_to_start() {
    for policy in ["fcfs", "easy", "conservative"] {
        let few = Bounds { cores: Some(3), ..Bounds::default() };
        let strict = AccountSettings { refuses_hopeless: true, ..settings() };
        let mut world = world(strict, vec![association("test", Some("ada"), each_user(few))]);
        world.set_policy(Policy::built_in(policy).expect("it is built in"));
        let whole = world.submit(JobSpec { components: vec![shared(1, Sharing::WholeNodes)], ..JobSpec::default() });
        let plain = world.submit(job(&[1]));
        assert_eq!(world.settle(), [plain], "{policy}");
        assert_eq!(world.reason(whole), limit("3 cores of each user in association test/ada"), "{policy}");
    }
}

/// The first node, for one of these numbers of cores, each with its seconds.
fn in_ways(ways: &[(u32, u64)]) -> Component {
    let way = |(cores, seconds): &(u32, u64)| Alternative {
        requests: vec![Request { tasks: Some(*cores), nodes: vec!["n1".into()], ..Request::default() }],
        walltime_seconds: Some(*seconds),
        ..Alternative::default()
    };
    component(ways.iter().map(way).collect())
}

const WAYS: [(u32, u64); 2] = [(4, 1800), (1, 7200)];

/// A limit per job leaves a job the alternatives within it, whichever ends first or fits now.
#[test]
fn a_job_is_served_in_a_way_that_is_within_the_limits() {
    let each_job = |bounds| UseLimits { each_job: bounds, ..UseLimits::default() };
    let short = each_job(JobBounds { walltime_seconds: Some(3600), ..JobBounds::default() });
    let narrow = each_job(JobBounds { cores: Some(2), ..JobBounds::default() });
    let neither = each_job(JobBounds { walltime_seconds: Some(3600), cores: Some(2), ..JobBounds::default() });
    for policy in ["fcfs", "easy", "conservative"] {
        let make = |limits: &UseLimits| {
            let mut world =
                world(settings(), vec![class("normal", 0, limits.clone()), class("wide", 0, UseLimits::default())]);
            world.set_policy(Policy::built_in(policy).expect("it is built in"));
            world
        };
        let spec = || JobSpec { components: vec![in_ways(&WAYS)], ..JobSpec::default() };
        // The second alternative fits, but takes too long.
        let mut world = make(&short);
        let mut other = JobSpec { components: vec![in_ways(&[(3, 10_000)])], ..JobSpec::default() };
        other.components[0].class = Some("wide".into());
        let other = world.submit(other);
        let waits = world.submit(spec());
        assert_eq!(world.settle(), [other], "{policy}");
        world.end(other);
        assert_eq!(world.settle(), [waits], "{policy}");
        assert_eq!(world.placement(waits)[0].alternative, 0);
        // The first alternative ends first, but takes too much.
        let mut world = make(&narrow);
        let job = world.submit(spec());
        assert_eq!(world.settle(), [job], "{policy}");
        assert_eq!(world.placement(job)[0].alternative, 1);
        // Neither alternative is within both limits.
        let mut world = make(&neither);
        let job = world.submit(spec());
        assert_eq!(world.settle(), [], "{policy}");
        assert_eq!(world.reason(job), limit("2 cores of each job in class normal"), "{policy}");
    }
}

/// The same for each component of a job.
#[test]
fn each_component_is_served_in_a_way_that_is_within_the_limits() {
    let narrow = JobBounds { cores: Some(2), ..JobBounds::default() };
    let mut world = world(settings(), vec![class("normal", 0, UseLimits { each_job: narrow, ..UseLimits::default() })]);
    let mut spec = JobSpec { components: vec![in_ways(&WAYS), in_ways(&[(2, 600), (4, 60)])], ..JobSpec::default() };
    for way in &mut spec.components[1].alternatives {
        way.requests[0].nodes = vec!["n2".into()];
    }
    let job = world.submit(spec);
    assert_eq!(world.settle(), [job]);
    let ways: Vec<u32> = world.placement(job).iter().map(|placed| placed.alternative).collect();
    assert_eq!(ways, [1, 0]);
}

/// A happening between two plans.
#[derive(Clone, Debug)]
enum Step {
    Submit(&'static str, Box<JobSpec>),
    EndRun(prop::sample::Index),
    Reclass(prop::sample::Index, &'static str),
}

const CLASSES: [&str; 3] = ["normal", "high", "unlimited"];

prop_compose! {
    fn parts()(
        cores in 1_u32..4,
        account in select(vec!["test", "abc"]),
        class in prop::option::of(select(CLASSES.to_vec())),
        queue in select(vec!["default", "night"]),
        sharing in select(vec![Sharing::Shared, Sharing::WholeNodes]),
    ) -> Component {
        let (account, class, queue) = (Some(account.into()), class.map(Into::into), Some(queue.into()));
        Component { account, class, queue, ..shared(cores, sharing) }
    }
}

fn steps() -> impl Strategy<Value = Step> {
    let tasks = prop::option::weighted(0.3, 1_u32..5);
    let spec = (prop::collection::vec(parts(), 1..4), tasks).prop_map(|(components, tasks)| {
        let tasks = tasks.filter(|_| components.len() == 1);
        let array = tasks.map(|tasks| ArraySpec { indices: IndexSet::first_n(tasks), max_running: None });
        Box::new(JobSpec { components, array, ..JobSpec::default() })
    });
    let index = any::<prop::sample::Index>;
    prop_oneof![
        4 => (select(vec!["ada", "bob"]), spec).prop_map(|(user, spec)| Step::Submit(user, spec)),
        2 => index().prop_map(Step::EndRun),
        1 => (index(), select(CLASSES.to_vec())).prop_map(|(job, class)| Step::Reclass(job, class)),
    ]
}

/// Small limits of a few kinds, or none.
fn bounds() -> impl Strategy<Value = Bounds> {
    let most = || prop::option::weighted(0.4, 1_u64..6);
    (most(), most(), most()).prop_map(|(running_jobs, cores, nodes)| Bounds {
        running_jobs,
        cores,
        nodes,
        ..Bounds::default()
    })
}

fn limits() -> impl Strategy<Value = UseLimits> {
    (bounds(), bounds()).prop_map(|(together, each_user)| UseLimits { together, each_user, ..UseLimits::default() })
}

/// Jobs, cores and nodes in use by somebody, summed from the runs.
#[derive(Clone, Copy, Default)]
struct InUse {
    jobs: u64,
    cores: u64,
    nodes: u64,
}

type Sums = BTreeMap<(String, Option<String>), InUse>;

/// By account, by account and user, by class, by class and user; computed without the code under test.
fn in_use(world: &World, of_class: bool) -> Sums {
    let mut sums = Sums::new();
    for run in world.state().runs() {
        let job = world.state().job(run.job).expect("it runs");
        for (component, placed) in job.components.iter().zip(&run.placement.components) {
            let account = component.account.as_deref().unwrap_or_default();
            let class = component.class().map_or("", |class| &**class);
            let names: Vec<&str> = if of_class { vec![class] } else { vec![account, "top"] };
            for name in names {
                for user in [None, Some(job.owner.user.clone())] {
                    let sum = sums.entry((name.to_owned(), user)).or_default();
                    sum.jobs += 1;
                    sum.nodes += placed.shares.len() as u64;
                    sum.cores += placed.shares.iter().map(|share| share.cores.len()).sum::<u64>();
                }
            }
        }
    }
    sums
}

fn assert_within(used: InUse, bounds: &Bounds, whose: &str) {
    for (used, most) in [(used.jobs, bounds.running_jobs), (used.cores, bounds.cores), (used.nodes, bounds.nodes)] {
        assert!(most.is_none_or(|most| used <= most), "{used} in use of {whose}, at most {most:?} may be");
    }
}

fn happen(world: &mut World, step: &Step) {
    match step {
        Step::Submit(user, spec) => {
            world.submit_as(user, (**spec).clone());
        }
        Step::EndRun(at) => {
            let runs: Vec<RunId> = world.state().runs().map(|run| run.id).collect();
            if !runs.is_empty() {
                world.end_run(runs[at.index(runs.len())]);
            }
        }
        Step::Reclass(at, class) => {
            let jobs: Vec<JobId> = world.state().jobs().map(|job| job.id).collect();
            if let Some(job) = (!jobs.is_empty()).then(|| jobs[at.index(jobs.len())]) {
                let owner = world.state().job(job).expect("it is there").owner.clone();
                let jobs = JobSelection::Ids(vec![job]);
                // For jobs that have started this is refused: only operators may exceed limits in this way.
                let _ = world
                    .command(&Actor::User((*owner).clone()), Command::ChangeClass { jobs, class: (*class).into() });
            }
        }
    }
}

/// What happens to jobs of classes that make way for each other.
#[derive(Clone, Debug)]
enum Happening {
    /// A job of a class on this many cores of a node, with this much memory.
    Comes(&'static str, u32, u64),
    /// The run of one of the jobs ends, counted from the first that runs.
    Ends(usize),
    /// A waiting job is cancelled.
    Goes(usize),
    /// An operator suspends or resumes a run.
    Turned(usize),
}

fn happenings() -> impl Strategy<Value = Happening> {
    let class = select(vec!["low", "low", "spare", "normal", "urgent", "urgent"]);
    prop_oneof![
        5 => (class, 1u32..=4, 1u64..=5).prop_map(|(class, cores, memory)| Happening::Comes(class, cores, memory)),
        3 => any::<usize>().prop_map(Happening::Ends),
        1 => any::<usize>().prop_map(Happening::Goes),
        1 => any::<usize>().prop_map(Happening::Turned),
    ]
}

fn befall(world: &mut World, happening: &Happening) {
    let running: Vec<JobId> = world.state().runs().map(|run| run.job).collect();
    let waiting: Vec<JobId> = world.state().jobs().filter(|job| job.is_waiting()).map(|job| job.id).collect();
    let one = |jobs: &[JobId], number: usize| jobs.get(number % jobs.len().max(1)).copied();
    match happening {
        Happening::Comes(class, cores, memory) => {
            world.submit(on_one_node(class, *cores, *memory));
        }
        Happening::Ends(number) => one(&running, *number).into_iter().for_each(|job| world.end(job)),
        Happening::Goes(number) => one(&waiting, *number).into_iter().for_each(|job| {
            let jobs = JobSelection::Ids(vec![job]);
            world.command(&owner("ada"), Command::Cancel { jobs }).expect("it waits");
        }),
        Happening::Turned(number) => one(&running, *number).into_iter().for_each(|job| {
            let jobs = JobSelection::Ids(vec![job]);
            let command = match is_suspended(world, job) {
                true => Command::Resume { jobs },
                false => Command::Suspend { jobs },
            };
            // One that is ending is neither.
            let _ = world.command(&Actor::Ledger, command);
        }),
    }
}

/// Runs that made way continue once their cores are free, unless they wait for a job that others still make way for.
fn assert_nobody_is_forgotten(world: &World) {
    let state = world.state();
    let is_coming = state.runs().any(|run| run.stopping.is_some());
    for run in state.made_way() {
        let has_its_cores = |other: &&Run| {
            let meets = |one: &NodeShare, two: &NodeShare| {
                one.node == two.node && !one.cores.intersection(&two.cores).is_empty()
            };
            let shares = || other.placement.shares();
            other.id != run.id && run.placement.shares().any(|share| shares().any(|theirs| meets(share, theirs)))
        };
        let is_used = state.runs().any(|other| has_its_cores(&other));
        assert!(is_used || is_coming, "job {} is suspended for nobody", run.job);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]

    /// Whatever comes, ends and is suspended: plans come to rest, every core has one run that is not suspended, memory
    /// suffices for all, and a run that made way continues as soon as nobody uses its cores.
    #[test]
    fn runs_that_make_way_are_never_forgotten(
        policy in select(vec!["fcfs", "easy", "conservative"]),
        happenings in prop::collection::vec(happenings(), 1..30),
    ) {
        let mut world = suspending();
        let built_in = Policy::built_in(policy).expect("it is built in");
        world.set_policy(Policy { order: vec![OrderKey::Priority], ..built_in });
        world.drain(&["n3", "n4", "n5", "n6"]);
        for happening in &happenings {
            befall(&mut world, happening);
            quiet(&mut world);
            assert_nobody_is_forgotten(&world);
        }
    }
}

/// A history that such a search has found: plans come to rest although an operator has suspended runs that others make way for.
#[test]
fn plans_come_to_rest_beside_runs_that_an_operator_has_suspended() {
    let mut world = suspending();
    let built_in = Policy::built_in("fcfs").expect("it is built in");
    world.set_policy(Policy { order: vec![OrderKey::Priority], ..built_in });
    world.drain(&["n3", "n4", "n5", "n6"]);
    let happenings = [
        Happening::Comes("low", 3, 1),
        Happening::Comes("low", 2, 1),
        Happening::Comes("low", 3, 1),
        Happening::Comes("low", 1, 1),
        Happening::Turned(11_581_351_503_865_744_532),
        Happening::Turned(10_321_662_363_801_681_092),
        Happening::Comes("urgent", 3, 1),
        Happening::Comes("urgent", 2, 1),
    ];
    for happening in &happenings {
        befall(&mut world, happening);
        quiet(&mut world);
        assert_nobody_is_forgotten(&world);
    }
}

/// An operator moves a running job to a class, whatever its limits are.
fn reclass_running(world: &mut World, at: prop::sample::Index, class: &str) {
    let running: Vec<JobId> = world.state().runs().map(|run| run.job).collect();
    if running.is_empty() {
        return;
    }
    let jobs = JobSelection::Ids(vec![running[at.index(running.len())]]);
    world.command(&Actor::Ledger, Command::ChangeClass { jobs, class: class.into() }).expect("operators may");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// SL-L-01, SL-L-02: whatever is submitted, ends and changes, no plan exceeds a limit of association or class, and
    /// a job that a limit holds waits for it.
    #[test]
    fn no_plan_exceeds_a_limit(
        of_top in limits(),
        of_test in limits(),
        of_normal in limits(),
        of_high in limits(),
        policy in select(vec!["fcfs", "easy", "conservative"]),
        steps in prop::collection::vec(steps(), 1..25),
    ) {
        let changes = vec![
            association("top", None, of_top.clone()),
            association("test", None, of_test.clone()),
            class("normal", 0, of_normal.clone()),
            class("high", 5, of_high.clone()),
            class("unlimited", 1, UseLimits::default()),
        ];
        let mut world = world(settings(), changes);
        world.set_policy(Policy::built_in(policy).expect("it is built in"));
        for step in &steps {
            happen(&mut world, step);
            world.settle();
            // A limit of the class replaces that of the association: then only the class counts.
            let has = |pick: fn(&UseLimits) -> Bounds| [&of_normal, &of_high].iter().any(|one| pick(one) != Bounds::default());
            for ((name, user), used) in in_use(&world, true) {
                let limits = match name.as_str() { "normal" => &of_normal, "high" => &of_high, _ => continue };
                let bounds = if user.is_some() { &limits.each_user } else { &limits.together };
                assert_within(used, bounds, &name);
            }
            for ((name, user), used) in in_use(&world, false) {
                let (pick, limits): (fn(&UseLimits) -> Bounds, _) = match (name.as_str(), user) {
                    ("top", None) => (|one| one.together, &of_top),
                    ("test", None) => (|one| one.together, &of_test),
                    // The limit for each user in `top` also applies in each account below it without its own.
                    ("test", Some(_)) => (|one| one.each_user, &of_test),
                    _ => continue,
                };
                if !has(pick) {
                    assert_within(used, &pick(limits), &name);
                }
            }
        }
    }

    /// OAR-T-26, SL-C-36: an operator may move running jobs into a class that is full. The class then has more than it may, and
    /// no plan starts anything more there until it has room; plans stay those that a planner makes anew, and none is refused.
    #[test]
    fn nothing_more_starts_in_a_class_that_an_operator_has_filled(
        of_normal in limits(),
        of_high in limits(),
        policy in select(vec!["fcfs", "easy", "conservative"]),
        steps in prop::collection::vec(steps(), 1..25),
    ) {
        let changes = vec![
            class("normal", 0, of_normal.clone()),
            class("high", 5, of_high.clone()),
            class("unlimited", 1, UseLimits::default()),
        ];
        let mut world = world(settings(), changes);
        world.set_policy(Policy::built_in(policy).expect("it is built in"));
        for step in &steps {
            match step {
                Step::Reclass(at, to) => reclass_running(&mut world, *at, to),
                step => happen(&mut world, step),
            }
            let before = in_use(&world, true);
            world.settle();
            for (whose, after) in in_use(&world, true) {
                let limits = match whose.0.as_str() { "normal" => &of_normal, "high" => &of_high, _ => continue };
                let bounds = if whose.1.is_some() { &limits.each_user } else { &limits.together };
                let had = before.get(&whose).copied().unwrap_or_default();
                let allowed = |most: Option<u64>, had: u64| most.map(|most| most.max(had));
                let raised = Bounds {
                    running_jobs: allowed(bounds.running_jobs, had.jobs),
                    cores: allowed(bounds.cores, had.cores),
                    nodes: allowed(bounds.nodes, had.nodes),
                    ..Bounds::default()
                };
                assert_within(after, &raised, &whose.0);
            }
        }
    }
}
