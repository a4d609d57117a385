//! Quotas in plans: which jobs wait for them, until when, and what the ledger says to a plan that breaks them.

use crate::world::{World, component, job_of, nodes};
use muster_planner::explain::explain;
use muster_schemas::{
    JobId, Timestamp,
    accounts::{AccountChange, ClassSpec},
    cluster::{ClusterChange, ClusterConfig, ClusterSettingsChange, QueueSpec},
    command::{Command, Refusal, RefusalCode, RefusedStart, Reply, Start},
    event::Actor,
    job::{ArraySpec, JobSpec, JobType, WaitReason},
    plan::ProposedPlan,
    policy::Policy,
    quota::{QuotaAmount, QuotaPeriod, QuotaRule, QuotaSet, QuotaTable, WEEK_SECONDS},
    resources::{Alternative, IndexSet, Request},
};
use proptest::prelude::*;

/// A rule `queue,account,kind,user` with limits on cores, jobs and core-seconds; negative for none.
fn rule((text, limits): (&str, [i64; 3])) -> QuotaRule {
    let fields: Vec<String> = text.split(',').map(str::to_owned).collect();
    let [queue, account, kind, user] = fields.try_into().unwrap();
    let [cores, jobs, core_seconds] = limits.map(|limit| u64::try_from(limit).ok().map(QuotaAmount::Fixed));
    QuotaRule { queue, account, kind, user, cores, jobs, core_seconds }
}

fn table<const N: usize>(rules: [(&str, [i64; 3]); N]) -> QuotaTable {
    let sets = vec![QuotaSet { name: String::new(), rules: rules.map(rule).into() }];
    QuotaTable { sets, kinds: vec!["night".into()], ..QuotaTable::default() }
}

fn try_set_quotas(world: &mut World, table: QuotaTable) -> Result<Reply, Refusal> {
    let settings = ClusterSettingsChange { quotas: Some(Box::new(table)), ..ClusterSettingsChange::default() };
    let change = Box::new(ClusterChange { settings, ..ClusterChange::default() });
    world.command(&Actor::Ledger, Command::Configure { change, keep_unnamed: true })
}

/// Four nodes of four cores, under a policy that has this name.
fn world<const N: usize>(policy: &str, rules: [(&str, [i64; 3]); N]) -> World {
    let mut world = World::new(nodes(4, 4));
    world.set_policy(Policy::built_in(policy).unwrap());
    try_set_quotas(&mut world, table(rules)).unwrap();
    world
}

/// A job with this many cores, in any account.
fn cores(count: u32, walltime_seconds: u64, account: Option<&str>) -> JobSpec {
    let request = Request { tasks: Some(count), ..Request::default() };
    let walltime_seconds = Some(walltime_seconds);
    let mut component =
        component(vec![Alternative { requests: vec![request], walltime_seconds, ..Alternative::default() }]);
    component.account = account.map(Into::into);
    job_of(component)
}

const W4: [(&str, [i64; 3]); 3] = [("*,*,*,/", [8, -1, -1]), ("*,bio,*,*", [-1, 1, -1]), ("*,*,*,ann", [12, 2, -1])];

/// The jobs A, B, C and D of W4.
fn four_jobs(world: &mut World) -> [JobId; 4] {
    let of_ann = [(); 2].map(|()| world.submit_as("ann", cores(8, 100, None)));
    let of_bob = [(); 2].map(|()| world.submit_as("bob", cores(4, 50, Some("bio"))));
    [of_ann[0], of_ann[1], of_bob[0], of_bob[1]]
}

/// When a job starts by the plan of this moment, in seconds from now.
fn starts(world: &mut World, jobs: &[JobId]) -> Vec<Option<i64>> {
    let now = world.state().time();
    let plan = world.plan().plan;
    let start = |job: &JobId| match plan.starts.iter().any(|start| start.job == *job) {
        true => Some(0),
        false => {
            let slot = plan.slots.iter().find(|slot| slot.job == *job).and_then(|slot| slot.slot.clone());
            slot.map(|slot| slot.start.micros_since(now) / 1_000_000)
        }
    };
    jobs.iter().map(start).collect()
}

/// W4, OAR-Q-01, OAR-Q-04, OAR-Q-05: the planner takes the first later place where all limits hold.
#[test]
fn four_jobs_start_as_soon_as_all_limits_hold() {
    let mut world = world("conservative", W4);
    let jobs = four_jobs(&mut world);
    assert_eq!(starts(&mut world, &jobs), [Some(0), Some(100), Some(0), Some(50)]);
    assert_eq!(world.settle(), [jobs[0], jobs[2]]);
    world.end(jobs[2]);
    assert_eq!(world.settle(), [jobs[3]], "its rule holds earlier than promised");
    world.end(jobs[0]);
    assert_eq!(world.settle(), [jobs[1]]);
}

/// OAR-Q-07: licences do not count, only cores.
#[test]
fn only_cores_count() {
    let mut config = ClusterConfig { nodes: nodes(1, 4), ..ClusterConfig::default() };
    config.queues = vec![QueueSpec { name: "default".into(), ..QueueSpec::default() }];
    config.licences.insert("solver".into(), 9);
    let mut world = World::configured(config);
    try_set_quotas(&mut world, table([("*,*,*,*", [2, -1, -1])])).unwrap();
    let with_licences = |count| {
        let mut spec = cores(count, 100, None);
        spec.components[0].alternatives[0].licences = [("solver".to_owned(), 4)].into();
        spec
    };
    let [first, second] = [with_licences(2), with_licences(1)].map(|spec| world.submit(spec));
    assert_eq!(world.settle(), [first]);
    assert_eq!(world.reason(second), Some(WaitReason::Limit("quota `*,*,*,*`: 2 cores".into())));
}

/// W4: without promises too, and each job is told which rule holds it.
#[test]
fn a_waiting_job_is_told_the_rule() {
    let mut world = world("easy", W4);
    let [a, b, c, d] = four_jobs(&mut world);
    assert_eq!(world.settle(), [a, c]);
    assert_eq!(world.reason(b), Some(WaitReason::Limit("quota `*,*,*,ann`: 12 cores".into())));
    assert_eq!(world.reason(d), Some(WaitReason::Limit("quota `*,bio,*,*`: 1 job".into())));
    let explained =
        explain(world.engine(), world.state(), world.state().job(d).unwrap(), world.state().time()).unwrap();
    let told: Vec<_> = explained.limits.iter().map(|one| (one.text.as_str(), one.used, one.wanted, one.most)).collect();
    assert_eq!(told, [("quota `*,bio,*,*`: 1 job", 1, 1, 1)]);
    let wait = explained.expected_start.map(|start| start.micros_since(world.state().time()) / 1_000_000);
    assert!(wait.is_some_and(|wait| (40..=50).contains(&wait)), "{wait:?}");
    world.end(c);
    assert_eq!(world.settle(), [d]);
}

/// OAR-Q-05: hours are those of the whole walltimes of what runs together; what never fits does not stop others (OAR-G-10).
#[test]
fn what_never_fits_is_told_and_stops_nobody() {
    for policy in ["conservative", "easy"] {
        let mut world = world(policy, [("*,*,*,/", [-1, -1, 7200])]);
        let never = world.submit_as("ann", cores(2, 3601, None));
        let (fits, later) = (cores(2, 3600, None), cores(1, 60, None));
        let (fits, later) = (world.submit_as("ann", fits), world.submit_as("ann", later));
        let other = world.submit_as("bob", cores(1, 60, None));
        assert_eq!(world.settle(), [fits, other], "{policy}");
        assert_eq!(world.reason(never), Some(WaitReason::Limit("quota `*,*,*,/`: 2 core-hours".into())), "{policy}");
        world.end(fits);
        assert_eq!(world.settle(), [later], "{policy}");
    }
}

/// OAR-Q-05: the ledger does not trust a planner: a start that breaks a rule is refused, and says which.
#[test]
fn the_ledger_refuses_a_start_that_breaks_a_rule() {
    let mut world = world("easy", W4);
    let [a, b, c, d] = four_jobs(&mut world);
    // What a planner without rules would do.
    let mut without = World::new(nodes(4, 4));
    let same = four_jobs(&mut without);
    let starts = without.plan().plan.starts;
    let placement =
        |job: usize| starts.iter().find(|start| start.job == same[job]).map(|start| start.placement.clone());
    let start = |job, at| placement(at).map(|placement| Start { job, placement });
    let plan = ProposedPlan {
        seen: world.state().sequence(),
        at: world.state().time(),
        starts: [start(a, 0), start(b, 1), start(c, 2), start(d, 3)].into_iter().flatten().collect(),
        ..ProposedPlan::default()
    };
    assert_eq!(plan.starts.iter().map(|start| start.job).collect::<Vec<_>>(), [a, b], "16 cores are full");
    let reply = world.command(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) });
    let refused = RefusedStart { job: b, reason: "quota `*,*,*,ann`: 12 cores".into() };
    assert_eq!(reply, Ok(Reply::Planned(vec![refused])));
    assert_eq!(world.settle(), [c]);
}

/// OAR-Q-10: the day allows 4 cores, the night 16; a job fits the rule of each part of its time.
#[test]
fn a_job_waits_for_the_period_whose_rules_it_fits() {
    let period = |begin, end, set| QuotaPeriod { begin, end, set };
    let set = |name: &str, cores| QuotaSet { name: name.into(), rules: vec![rule(("*,*,*,*", [cores, -1, -1]))] };
    // Each day is a day of six hours and a night of eighteen.
    let week = (0..7).flat_map(|day| {
        let begin = day * 86_400;
        [period(begin, begin + 6 * 3600, 0), period(begin + 6 * 3600, begin + 86_400, 1)]
    });
    let table =
        QuotaTable { sets: vec![set("day", 4), set("night", 16)], week: week.collect(), ..QuotaTable::default() };
    assert_eq!(table.week.last().unwrap().end, WEEK_SECONDS);
    for policy in ["conservative", "easy"] {
        let mut world = World::new(nodes(4, 4));
        world.set_policy(Policy::built_in(policy).unwrap());
        try_set_quotas(&mut world, table.clone()).unwrap();
        let small = world.submit(cores(4, 3600, None));
        let large = world.submit(cores(8, 3600, None));
        assert_eq!(world.settle(), [small], "it is day");
        let now = world.state().time();
        let night = now.plus_seconds(6 * 3600 - now.unix_seconds());
        let planned = world.plan();
        match policy {
            "easy" => assert_eq!(planned.next_wake, Some(night), "other rules hold without any event"),
            _ => assert_eq!(world.reason(large), Some(WaitReason::Reserved { start: night })),
        }
        world.end(small);
        assert_eq!(world.settle(), [], "it is still day: {policy}");
        world.pass(night.micros_since(world.state().time()) / 1_000_000, large);
        assert_eq!(world.settle(), [large], "{policy}");
        // A job that would run into the day waits, although nothing runs.
        world.end(large);
        let until_day = 86_400 - world.state().time().unix_seconds();
        let (fits, crosses) = (until_day - 10, until_day + 10);
        let fits = world.submit(cores(8, fits.unsigned_abs(), None));
        let crosses = world.submit(cores(8, crosses.unsigned_abs(), None));
        assert_eq!(world.settle(), [fits], "{policy}");
        assert!(world.reason(crosses).is_some());
    }
}

/// OAR-Q-09: only operators lift quotas for a job; it counts for others.
#[test]
fn only_operators_lift_quotas() {
    let mut world = world("easy", [("*,*,*,*", [4, -1, -1])]);
    let free = JobSpec { exceeds_quotas: true, ..cores(8, 60, None) };
    let refusal = world.try_submit("ann", free.clone()).unwrap_err();
    assert_eq!(refusal.code, RefusalCode::PermissionDenied);
    let named = ClusterSettingsChange { operators: Some(vec!["oper".into()]), ..ClusterSettingsChange::default() };
    let change = Box::new(ClusterChange { settings: named, ..ClusterChange::default() });
    world.command(&Actor::Ledger, Command::Configure { change, keep_unnamed: true }).unwrap();
    let (free, other) = (world.submit_as("oper", free), world.submit_as("ann", cores(1, 60, None)));
    assert_eq!(world.settle(), [free]);
    assert_eq!(world.reason(other), Some(WaitReason::Limit("quota `*,*,*,*`: 4 cores".into())));
}

/// OAR-Q-04: kinds are tried in the order given. OAR-Q-06: jobs that others run in are neither held back nor counted.
#[test]
fn jobs_are_counted_by_kind() {
    let mut world = world("easy", [("*,*,night,*", [-1, 1, -1]), ("*,*,*,*", [8, -1, -1])]);
    let night = JobSpec { kinds: vec!["other".into(), "night".into()], ..cores(1, 60, None) };
    let jobs = [night.clone(), night].map(|spec| world.submit(spec));
    let outer = world.submit(JobSpec { types: vec![JobType::Container], ..cores(8, 60, None) });
    let plain = world.submit(cores(7, 60, None));
    assert_eq!(world.settle(), [jobs[0], outer, plain]);
    assert_eq!(world.reason(jobs[1]), Some(WaitReason::Limit("quota `*,*,night,*`: 1 job".into())));
}

/// OAR-Q-06: jobs whose class makes way for another are counted among themselves only.
#[test]
fn jobs_that_make_way_count_among_themselves() {
    let mut world = world("easy", [("*,*,*,/", [4, -1, -1])]);
    let class = |name: &str, preempts: &[&str]| {
        let preempts = preempts.iter().map(|name| (*name).to_owned()).collect();
        AccountChange::Class {
            before: None,
            after: Some(ClassSpec { name: name.into(), preempts, ..ClassSpec::default() }),
        }
    };
    let changes = vec![class("spare", &[]), class("urgent", &["spare"])];
    world.command(&Actor::Ledger, Command::ChangeAccounts { changes }).unwrap();
    let spare = || {
        let mut spec = cores(4, 60, None);
        spec.components[0].class = Some("spare".into());
        spec
    };
    let jobs = [spare(), cores(4, 60, None), spare()].map(|spec| world.submit(spec));
    assert_eq!(world.settle(), jobs[..2], "the second does not see the first, the third sees both");
    assert_eq!(world.reason(jobs[2]), Some(WaitReason::Limit("quota `*,*,*,/`: 4 cores".into())));
}

/// Each task of an array counts.
#[test]
fn tasks_of_an_array_count_each() {
    let mut world = world("easy", [("*,*,*,*", [-1, 3, -1])]);
    let indices: IndexSet = "0-9".parse().unwrap();
    let array = world.submit(JobSpec { array: Some(ArraySpec { indices, max_running: None }), ..cores(1, 60, None) });
    assert_eq!(world.settle().len(), 3);
    assert_eq!(world.reason(array), Some(WaitReason::Limit("quota `*,*,*,*`: 3 jobs".into())));
}

/// Of several ways to serve a job, the first to end within all limits is taken, now or later.
#[test]
fn a_job_takes_the_way_that_quotas_leave_it() {
    for policy in ["conservative", "easy"] {
        let mut world = world(policy, [("*,*,*,*", [4, -1, -1])]);
        let way = |tasks, seconds| {
            let request = Request { tasks: Some(tasks), ..Request::default() };
            Alternative { requests: vec![request], walltime_seconds: Some(seconds), ..Alternative::default() }
        };
        let job = world.submit(job_of(component(vec![way(8, 10), way(4, 60), way(2, 100)])));
        assert_eq!(world.settle(), [job], "{policy}");
        assert_eq!(world.placement(job)[0].alternative, 1, "{policy}");
    }
}

/// OAR-Q-11: a table that is not sound is refused as a whole, and the rules in force stay; so they do if the configuration does not
/// name them.
#[test]
fn the_last_good_rules_stay() {
    let mut world = world("easy", W4);
    let good = world.state().settings().quotas.clone();
    assert!(good.is_some());
    let gap = QuotaPeriod { begin: 0, end: 3600, set: 0 };
    for (table, why) in [
        (QuotaTable { week: vec![gap], ..table(W4) }, "quotas.week: ends at 3600, expected 604800"),
        (table([("*,*,*,ann", [1, 1, 1]), ("*,*,*,ann", [2, 1, 1])]), "quotas: two rules are `*,*,*,ann`"),
        (table([("*,*,/,*", [1, 1, 1])]), "quotas: `/` is not allowed for the kind, because a job has several"),
        (table([("*,*,,*", [1, 1, 1])]), "quotas: the kind of a rule: is empty"),
    ] {
        assert_eq!(try_set_quotas(&mut world, table).unwrap_err().message, why);
        assert_eq!(world.state().settings().quotas, good);
    }
    let queues = vec![muster_schemas::cluster::QueueSpec { name: "default".into(), ..Default::default() }];
    let same = ClusterConfig { nodes: nodes(4, 4), queues, ..ClusterConfig::default() };
    let mut change = ClusterChange::from(same);
    change.settings.quotas = None;
    let change = Box::new(change);
    world.command(&Actor::Ledger, Command::Configure { change, keep_unnamed: false }).unwrap();
    assert_eq!(world.state().settings().quotas, good);
    try_set_quotas(&mut world, QuotaTable::default()).unwrap();
    assert_eq!(world.state().settings().quotas, None, "an empty table removes all");
    let jobs = four_jobs(&mut world);
    assert_eq!(world.settle().len(), 2, "{jobs:?} fill all cores");
}

/// Rules that come into force take promises back that break them, and those that go let jobs start earlier.
#[test]
fn promises_follow_the_rules() {
    let mut world = world("conservative", [("*,*,*,*", [16, -1, -1])]);
    let first = world.submit(cores(16, 100, None));
    let others = [(); 2].map(|()| world.submit(cores(8, 100, None)));
    assert_eq!(world.settle(), [first]);
    let promised = |world: &World| {
        let began = world.state().runs().next().unwrap().allocated;
        others.map(|job| {
            world.state().job(job).unwrap().slot.as_ref().map(|slot| slot.start.micros_since(began) / 1_000_000)
        })
    };
    assert_eq!(promised(&world), [Some(100), Some(100)]);
    try_set_quotas(&mut world, table([("*,*,*,*", [-1, 1, -1])])).unwrap();
    assert_eq!(world.settle(), []);
    assert_eq!(promised(&world), [Some(100), Some(200)]);
    try_set_quotas(&mut world, table([("*,*,*,*", [-1, 2, -1])])).unwrap();
    assert_eq!(world.settle(), []);
    assert_eq!(promised(&world), [Some(100), Some(100)]);
}

/// An operator who orders a start goes past quotas, and the others wait for it.
#[test]
fn an_ordered_start_goes_past_quotas() {
    let mut world = world("easy", [("*,*,*,*", [-1, 1, -1])]);
    let (first, second) = (world.submit(cores(1, 60, None)), world.submit(cores(1, 60, None)));
    let placement = world.plan().plan.starts[0].placement.clone();
    assert_eq!(world.settle(), [first]);
    let mut elsewhere = placement;
    elsewhere.components[0].shares[0].node = muster_schemas::NodeId(3);
    let run = Command::RunJob { job: second, placement: elsewhere };
    world.command(&Actor::Ledger, run).unwrap();
    assert_eq!(world.state().runs().count(), 2);
}

/// Something that happens to a cluster.
#[derive(Clone, Debug)]
enum Step {
    Submit(usize, u32, u64),
    Pass(i64),
    End(usize),
}

/// OAR-Q-08: a fixed start that would break a limit is refused, with the rule; an accepted one counts.
#[test]
fn fixed_starts_keep_quotas() {
    for policy in ["fcfs", "easy", "conservative"] {
        let mut world = world(policy, [("*,*,*,/", [8, -1, -1])]);
        let start = world.state().time().plus_seconds(1000);
        let mut reserve = |user: &str, count: u32| {
            let mut spec = cores(count, 100, None);
            spec.types = vec![JobType::FixedStart];
            spec.components[0].begin = Some(start);
            let id = world.submit_as(user, spec);
            assert_eq!(world.settle(), [], "{policy}");
            let job = world.state().job(id).expect("it is remembered");
            (job.slot.as_ref().map(|slot| slot.start), format!("{:?}", job.phase))
        };
        let (slot, phase) = reserve("ann", 9);
        assert!(slot.is_none() && phase.contains("quota `*,*,*,/`: 8 cores"), "{policy}: {phase}");
        assert_eq!(reserve("ann", 6).0, Some(start), "{policy}");
        let (slot, phase) = reserve("ann", 4);
        assert!(slot.is_none() && phase.contains("it could start at"), "{policy}: {phase}");
        assert_eq!(reserve("bob", 8).0, Some(start), "{policy}: of each user");
    }
}

const USERS: [&str; 3] = ["ann", "bob", "cleo"];

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_usize..3, 1_u32..8, 1_u64..60).prop_map(|(user, cores, seconds)| Step::Submit(user, cores, seconds)),
        2 => (1_i64..30).prop_map(Step::Pass),
        2 => (0_usize..4).prop_map(Step::End),
    ]
}

/// What a user's jobs hold: `[start, end)` and cores.
fn held(world: &World, user: &str) -> Vec<(Timestamp, Timestamp, u64)> {
    let of_user = world.state().jobs().filter(|job| job.owner.user == user);
    let placed = of_user.filter_map(|job| {
        let run = job.run().and_then(|run| world.state().run(run));
        let (start, placement) = match (run, &job.slot) {
            (Some(run), _) => (run.allocated, &run.placement),
            (None, slot) => slot.as_ref().map(|slot| (slot.start, &slot.placement))?,
        };
        let walltime = job.components[0].shape.alternatives[0].walltime_seconds?;
        let cores = placement.shares().map(|share| share.cores.len()).sum();
        Some((start, start.plus_seconds(walltime.try_into().ok()?), cores))
    });
    placed.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// OAR-Q-05: whatever happens, no start is refused by the ledger, and runs and promises together keep all limits at each moment as
    /// long as runs keep to their walltimes.
    #[test]
    fn runs_and_promises_keep_all_limits(
        steps in prop::collection::vec(steps(), 1..25),
        (most_cores, most_jobs, most_core_seconds) in (2_i64..12, 1_i64..4, 20_i64..400),
        is_conservative in any::<bool>(),
    ) {
        let policy = if is_conservative { "conservative" } else { "easy" };
        let limits = [most_cores, most_jobs, most_core_seconds];
        let mut world = world(policy, [("*,*,*,/", limits), ("*,*,*,cleo", [most_cores, -1, -1])]);
        for step in steps {
            match step {
                Step::Submit(user, count, seconds) => drop(world.submit_as(USERS[user], cores(count, seconds, None))),
                Step::Pass(seconds) => {
                    // Runs end when their walltime is over.
                    let later = world.state().time().plus_seconds(seconds);
                    let over = |world: &World| {
                        let ends = world.state().runs().map(|run| {
                            let job = world.state().job(run.job).unwrap();
                            let walltime = job.components[0].shape.alternatives[0].walltime_seconds.unwrap();
                            (run.allocated.plus_seconds(walltime.try_into().unwrap()), run.id)
                        });
                        ends.filter(|(end, _)| end.plus_seconds(-1) <= later).min().map(|(_, run)| run)
                    };
                    while let Some(run) = over(&world) {
                        world.end_run(run);
                    }
                    let now = world.state().time();
                    let job = world.state().jobs().find(|job| job.is_waiting()).map(|job| job.id);
                    if let Some(job) = job.filter(|_| now < later) {
                        world.pass(later.micros_since(now) / 1_000_000, job);
                    }
                }
                Step::End(at) => {
                    let run = world.state().runs().nth(at).map(|run| run.id);
                    run.into_iter().for_each(|run| world.end_run(run));
                }
            }
            world.settle();
            for user in USERS {
                let held = held(&world, user);
                for (moment, ..) in &held {
                    let there = held.iter().filter(|(start, end, _)| start <= moment && moment < end);
                    let sums = there.fold((0, 0, 0), |sums, (start, end, cores)| {
                        let cores = i64::try_from(*cores).unwrap();
                        (sums.0 + cores, sums.1 + 1, sums.2 + cores * (end.micros_since(*start) / 1_000_000))
                    });
                    prop_assert!(sums.0 <= most_cores, "{user} holds {sums:?}: {held:?}");
                    if user != "cleo" {
                        prop_assert!(sums.1 <= most_jobs && sums.2 <= most_core_seconds, "{user} {sums:?}: {held:?}");
                    }
                }
            }
        }
    }
}
