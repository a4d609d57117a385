//! Under the policy in force a history repeats itself; under another policy it follows that one.

use super::log::{Script, array, at, failed, finished, history, lived, spec, starts, user};
use muster_planner::whatif::{History, Report, courses_of, replay};
use muster_schemas::{
    JobId, NodeId,
    event::{Actor, Event, JobChange, Record},
    job::{Dependency, DependencyKind, Holds, JobSpec, JobType, Outcome, RequeuePolicy},
    policy::{BUILT_IN_POLICIES, FairShare, Policy, ShareTable, TurnRules, Turns, UsageRule, Visit},
};
use proptest::prelude::*;
use std::sync::Arc;

fn built_in(name: &str) -> Policy {
    Policy::built_in(name).unwrap_or_else(|| panic!("{name} is built in"))
}

fn report(records: &[Record], policy: Option<&str>) -> Report {
    let history = history(records);
    let other = policy.map(|name| Arc::new(built_in(name)));
    let replayed = replay(&history, other.as_ref(), &mut |_| {});
    Report::new(&history, &replayed, policy, 0.0)
}

/// A day on two nodes of four cores: job 2 waits for job 1, job 3 overtakes it under easy.
fn three_jobs(policy: &str) -> Script {
    let mut script = Script::new(2, &built_in(policy));
    let first = script.submit(10, "anna", 6, Some(100));
    script.takes(first, 50, Outcome::Completed);
    let second = script.submit(11, "bert", 8, Some(100));
    script.takes(second, 60, Outcome::Completed);
    let third = script.submit(12, "anna", 2, Some(40));
    script.takes(third, 30, failed());
    script
}

#[test]
fn jobs_run_as_long_as_the_log_says_and_end_as_it_says() {
    let records = lived(&history(&three_jobs("fcfs").records()), None);
    let seconds: Vec<f64> = starts(&records).into_values().collect();
    assert_eq!(seconds, [10.0, 60.0, 120.0]);
    let outcomes: Vec<Outcome> = finished(&records).into_values().collect();
    assert_eq!(outcomes, [Outcome::Completed, Outcome::Completed, failed()]);
}

#[test]
fn another_policy_makes_another_history() {
    let records = lived(&history(&three_jobs("fcfs").records()), None);
    let report = report(&records, Some("easy"));
    assert_eq!((report.jobs, report.same, report.earlier, report.later), (3, 2, 1, 0));
    let [gained] = &report.gained[..] else { panic!("{:?}", report.gained) };
    assert_eq!((gained.job, gained.seconds), (JobId::job(3), -108.0));
    assert_eq!((&*gained.user, &*gained.queue), ("anna", "default"));
    assert!(report.lost.is_empty() && report.first_differences.is_empty());
    // Waits before: 0 49 108.
    let before = report.all.before;
    assert_eq!((before.jobs, before.median_wait, before.p95_wait, before.max_wait), (3, 49.0, 108.0, 108.0));
    assert_eq!(report.all.after.max_wait, 49.0);
    let anna = report.users.iter().find(|group| group.name == "anna").expect("anna has jobs");
    assert_eq!((anna.before.jobs, anna.before.mean_wait, anna.after.mean_wait), (2, 54.0, 0.0));
    assert_eq!(anna.before.mean_bsld, (1.0 + 138.0 / 30.0) / 2.0);
}

/// PBS-FS-05: under another policy the processor time that runs used is charged to their owners.
#[test]
fn what_runs_used_decides_under_a_policy_with_shares() {
    let mut script = Script::new(1, &built_in("fcfs"));
    let first = script.submit(10, "anna", 4, Some(100));
    script.uses(first, 50, 200, Outcome::Completed);
    let second = script.submit(11, "anna", 4, Some(100));
    script.uses(second, 60, 240, Outcome::Completed);
    let third = script.submit(12, "bert", 4, Some(100));
    script.uses(third, 30, 120, Outcome::Completed);
    let records = lived(&history(&script.records()), None);
    assert_eq!(starts(&records).into_values().collect::<Vec<_>>(), [10.0, 60.0, 120.0]);
    let rules = TurnRules { visit: Visit::Pool, fair_share: Some(FairShare::default()), ..TurnRules::default() };
    let usage = Some(UsageRule::default());
    let shares = Some(ShareTable { unknown_shares: 10, ..ShareTable::default() });
    let turns = Turns { rules, usage, shares, ..Turns::default() };
    let fair = Policy { name: "fair".into(), turns: Some(Box::new(turns)), ..Policy::default() };
    let records = lived(&history(&records), Some(&fair));
    assert_eq!(starts(&records).into_values().collect::<Vec<_>>(), [10.0, 90.0, 60.0], "bert has used nothing");
}

#[test]
fn the_policy_in_force_repeats_the_history_also_where_it_changed() {
    let mut script = three_jobs("fcfs");
    let administrator = user("root");
    script.add(20, &administrator, Event::PolicySet { policy: Arc::new(built_in("easy")) });
    let records = lived(&history(&script.records()), None);
    assert_eq!(starts(&records)[&JobId::job(3)], 20.0);
    let report = report(&records, None);
    assert_eq!((report.same, report.max_difference_seconds), (3, 0.0));
    assert_eq!(report.notes, Default::default());
}

#[test]
fn a_job_cancelled_while_it_waited_is_cancelled_unless_it_has_started() {
    let mut script = three_jobs("fcfs");
    let waits = script.submit(13, "cleo", 8, Some(70));
    let cancel = Event::JobFinished { job: waits, outcome: Outcome::Cancelled };
    script.add(40, &user("cleo"), cancel);
    let records = lived(&history(&script.records()), None);
    assert_eq!(finished(&records)[&waits], Outcome::Cancelled);
    assert!(!starts(&records).contains_key(&waits));
    // With shortest first it starts before job 2 and before it was cancelled: not here, since the machine
    // is full until 60.
    let mut idle = Script::new(2, &built_in("fcfs"));
    let runs = idle.submit(0, "cleo", 1, Some(70));
    idle.add(5, &user("cleo"), Event::JobFinished { job: runs, outcome: Outcome::Cancelled });
    let past = history(&idle.records());
    let replayed = replay(&past, None, &mut |_| {});
    let report = Report::new(&past, &replayed, None, 0.0);
    assert_eq!((report.jobs, report.started_only_after), (0, 1));
    assert_eq!((report.notes.started_before_cancelled, report.notes.runs_of_walltime), (1, 1));
}

#[test]
fn a_run_that_was_stopped_is_stopped_after_the_same_time() {
    let mut script = Script::new(1, &built_in("fcfs"));
    let cancelled = script.submit(0, "anna", 4, Some(100));
    script.takes(cancelled, 30, Outcome::Cancelled);
    let requeued = script.submit(1, "anna", 4, Some(100));
    script.takes(requeued, 20, Outcome::Requeued);
    script.takes(requeued, 15, Outcome::Completed);
    let mut again = spec(4, Some(50));
    again.requeue = RequeuePolicy { on_exit_codes: vec![3], ..RequeuePolicy::default() };
    let again = script.submit_spec(2, "anna", again);
    script.takes(again, 5, failed());
    script.takes(again, 6, Outcome::Completed);
    let records = lived(&history(&script.records()), None);
    let allocations = |wanted: JobId| {
        let allocated =
            records.iter().filter(|record| matches!(&record.event, Event::RunAllocated { job, .. } if *job == wanted));
        allocated.map(|record| record.time.unix_seconds() - at(0).unix_seconds()).collect::<Vec<_>>()
    };
    assert_eq!(
        (allocations(cancelled), allocations(requeued), allocations(again)),
        (vec![0], vec![30, 55], vec![50, 70])
    );
    let outcomes: Vec<Outcome> = finished(&records).into_values().collect();
    assert_eq!(outcomes, [Outcome::Cancelled, Outcome::Completed, Outcome::Completed]);
    assert_eq!(report(&records, None).max_difference_seconds, 0.0);
}

#[test]
fn jobs_that_have_not_ended_take_their_walltime() {
    let mut script = Script::new(1, &built_in("fcfs"));
    script.submit(0, "anna", 4, Some(100));
    script.submit(1, "anna", 4, None);
    script.submit(2, "anna", 4, Some(10));
    let past = history(&script.records());
    let replayed = replay(&past, None, &mut |_| {});
    let notes = Report::new(&past, &replayed, None, 0.0).notes;
    assert_eq!((notes.runs_of_walltime, notes.runs_without_end), (1, 1));
    assert_eq!(starts(&lived(&past, None)).into_values().collect::<Vec<_>>(), [0.0, 100.0]);
}

#[test]
fn a_replay_can_begin_in_the_middle() {
    let records = lived(&history(&three_jobs("fcfs").records()), None);
    let later = |from: i64, to: i64| {
        let mut history = History::new(Some(at(from)), Some(at(to)));
        records.iter().for_each(|record| history.add(record));
        let easy = Arc::new(built_in("easy"));
        let replayed = replay(&history, Some(&easy), &mut |_| {});
        Report::new(&history, &replayed, Some("easy"), 0.0)
    };
    // At 30 job 1 keeps running until its real end; jobs 2 and 3 wait, and job 3 is backfilled at once.
    let report = later(30, 1_000);
    assert_eq!((report.jobs, report.earlier, report.gained[0].seconds), (2, 1, -90.0));
    assert_eq!(report.notes, Default::default());
    assert_eq!(later(30, 12).jobs, 1);
    assert_eq!(later(10_000, 20_000).jobs, 0);
}

#[test]
fn a_lost_node_is_lost_and_comes_back() {
    let mut script = Script::new(2, &built_in("easy"));
    let mut twice = spec(8, Some(100));
    twice.requeue = RequeuePolicy { on_node_lost: true, ..RequeuePolicy::default() };
    let twice = script.submit_spec(0, "anna", twice);
    script.takes(twice, 30, Outcome::NodeLost("lost".into()));
    script.takes(twice, 40, Outcome::Completed);
    let small = script.submit(1, "bert", 4, Some(50));
    script.takes(small, 50, Outcome::Completed);
    let ledger = Arc::new(Actor::Ledger);
    script.add(30, &ledger, Event::NodeLost { node: NodeId(1), reason: "silent".into() });
    script.add(60, &ledger, Event::NodeUp { node: NodeId(1), boot_id: "second".into() });
    let records = lived(&history(&script.records()), None);
    let seconds = starts(&records);
    assert_eq!((seconds[&twice], seconds[&small]), (0.0, 30.0));
    assert_eq!(finished(&records)[&twice], Outcome::Completed);
    assert_eq!(report(&records, None).max_difference_seconds, 0.0);
}

#[test]
fn the_course_before_and_after_is_drawn() {
    let records = lived(&history(&three_jobs("fcfs").records()), None);
    let history = history(&records);
    let replayed = replay(&history, Some(&Arc::new(built_in("easy"))), &mut |_| {});
    let [before, after] = courses_of(&history, &replayed, "easy");
    assert_eq!((before.machine_procs, &*before.name, &*after.name), (8, "before", "easy"));
    assert_eq!(before.waits_seconds, [0, 49, 108]);
    assert_eq!(after.waits_seconds, [0, 49, 0]);
    assert_eq!(before.procs_in_use, [(0, 6), (50, 8), (110, 2), (140, 0)]);
    assert_eq!(after.jobs_waiting.iter().map(|(_, count)| *count).max(), Some(1));
}

/// The fate of a job in a random history.
#[derive(Clone, Debug)]
enum Fate {
    Plain,
    Fails,
    TimesOut,
    Requeued,
    CancelledRunning,
    CancelledWaiting(i64),
    Held(i64),
    Reprioritised(i64),
    After,
    Array(u32),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => Just(Fate::Plain),
        1 => Just(Fate::Fails),
        1 => Just(Fate::TimesOut),
        1 => Just(Fate::Requeued),
        1 => Just(Fate::CancelledRunning),
        1 => (1..100i64).prop_map(Fate::CancelledWaiting),
        1 => (1..100i64).prop_map(Fate::Held),
        1 => (1..60i64).prop_map(Fate::Reprioritised),
        1 => Just(Fate::After),
        1 => (1..6u32).prop_map(Fate::Array),
    ]
}

/// Submissions with gap, tasks, walltime, used share of the walltime (in tenths), fate.
fn submissions() -> impl Strategy<Value = Vec<(i64, u32, u64, u64, Fate)>> {
    prop::collection::vec((0..30i64, 1..=8u32, 10..100u64, 1..=10u64, fate()), 1..30)
}

fn script(policy: &str, submissions: &[(i64, u32, u64, u64, Fate)]) -> Script {
    let mut script = Script::new(2, &built_in(policy));
    let mut now = 0;
    for (number, (gap, tasks, walltime, tenths, fate)) in submissions.iter().enumerate() {
        now += gap;
        let name = ["anna", "bert", "cleo"][number % 3];
        let runtime = i64::try_from(walltime * tenths / 10).expect("it is small").max(1);
        let mut job_spec = spec(*tasks, Some(*walltime));
        match fate {
            Fate::After if number > 0 => {
                let kind = DependencyKind::Ended;
                let dependency = Dependency { kind, job: Some(JobId::job(number as u64)), delay_seconds: 3 };
                job_spec.components[0].dependencies.all_of = vec![vec![dependency]];
            }
            Fate::Array(indices) => job_spec = array(*tasks, *indices, Some(2), *walltime),
            _ => {}
        }
        let job = script.submit_spec(now, name, job_spec);
        let actor = user(name);
        match fate {
            Fate::Fails => script.takes(job, runtime, failed()),
            Fate::TimesOut => script.takes(job, i64::try_from(*walltime).expect("it is small"), Outcome::TimedOut),
            Fate::Requeued => {
                script.takes(job, runtime, Outcome::Requeued);
                script.takes(job, runtime + 3, Outcome::Completed);
            }
            Fate::CancelledRunning => script.takes(job, runtime, Outcome::Cancelled),
            Fate::CancelledWaiting(after) => {
                script.add(now + after, &actor, Event::JobFinished { job, outcome: Outcome::Cancelled });
            }
            Fate::Held(after) => {
                let holds = Holds { user: true, ..Holds::default() };
                script.add(now, &actor, Event::JobHeld { job, holds, reason: String::new() });
                script.add(now + after, &actor, Event::JobReleased { job, holds });
                script.takes(job, runtime, Outcome::Completed);
            }
            Fate::Reprioritised(after) => {
                let change = JobChange { priority: Some(number as i64), ..JobChange::default() };
                script.add(now + after, &actor, Event::JobModified { job, change: Arc::new(change) });
                script.takes(job, runtime, Outcome::Completed);
            }
            Fate::Array(indices) => {
                for index in 0..*indices {
                    script.takes(JobId::task(job.number, index), runtime + i64::from(index), Outcome::Completed);
                }
            }
            Fate::Plain | Fate::After => script.takes(job, runtime, Outcome::Completed),
        }
    }
    script
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// What-if under the policy in force repeats a simulated history exactly (M-PLAN-16).
    #[test]
    fn a_simulated_history_repeats_itself_to_the_microsecond(
        submissions in submissions(),
        policy in prop::sample::select(&BUILT_IN_POLICIES[..]),
    ) {
        let records = lived(&history(&script(policy, &submissions).records()), None);
        let found = report(&records, None);
        prop_assert_eq!(found.max_difference_seconds, 0.0, "{:?}", found.first_differences);
        prop_assert_eq!((found.same, found.started_only_before, found.started_only_after), (found.jobs, 0, 0));
        // Naming the policy in force gives the same, and the replay is a log that repeats itself to the byte.
        let named = report(&records, Some(policy));
        prop_assert_eq!(named.max_difference_seconds, 0.0);
        let again = lived(&history(&records), None);
        prop_assert_eq!(starts(&again), starts(&records));
        prop_assert_eq!(finished(&again), finished(&records));
    }

    #[test]
    fn another_policy_does_what_it_would_have_done_from_the_beginning(
        submissions in submissions(),
        before in prop::sample::select(&BUILT_IN_POLICIES[..]),
        after in prop::sample::select(&BUILT_IN_POLICIES[..]),
    ) {
        // A refusal because a job was over is not in the log; under another policy the command might
        // have been accepted.
        let depends_on_time = |fate: &Fate| matches!(fate, Fate::CancelledWaiting(_) | Fate::Reprioritised(_));
        let kept: Vec<_> = submissions.into_iter().filter(|(.., fate)| !depends_on_time(fate)).collect();
        let script = script("fcfs", &kept);
        let first = lived(&history(&script.records()), Some(&built_in(before)));
        let other = lived(&history(&first), Some(&built_in(after)));
        let direct = lived(&history(&script.records()), Some(&built_in(after)));
        prop_assert_eq!(starts(&other), starts(&direct));
    }
}

/// OAR-T-14, OAR-T-15: a replay starts jobs inside a planning domain with the job that holds its resources, and ends
/// those that wait when that is over.
#[test]
fn jobs_inside_a_domain_follow_the_job_that_opens_it() {
    let mut script = Script::new(1, &built_in("fcfs"));
    let first = script.submit(0, "anna", 4, Some(50));
    script.takes(first, 30, Outcome::Completed);
    let opening = JobSpec { types: vec![JobType::Container], ..spec(4, Some(100)) };
    let container = script.submit_spec(1, "anna", opening);
    script.takes(container, 80, Outcome::Completed);
    let inside = |walltime| JobSpec { types: vec![JobType::Inner(container)], ..spec(4, Some(walltime)) };
    let inner = script.submit_spec(2, "bert", inside(20));
    script.takes(inner, 10, Outcome::Completed);
    let late = script.submit_spec(3, "bert", inside(95));
    let records = lived(&history(&script.records()), None);
    let started = starts(&records);
    assert_eq!((started[&container], started[&inner], started.get(&late)), (30.0, 30.0, None));
    let why = "planning domain 2 is over: no job opens it any more".to_owned();
    assert_eq!(finished(&records)[&late], Outcome::LaunchFailed(why));
}
