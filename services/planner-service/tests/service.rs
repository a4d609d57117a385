//! The planner as a service, over the in-process bus, with a ledger that keeps its log in memory.

mod support;

use muster_planner_service::Config;
use muster_schemas::{
    Timestamp,
    command::{Command, RefusedStart, Reply},
    event::{Actor, Event, WaitingJob},
    job::WaitReason,
    plan::ProposedPlan,
    policy::{Policy, Turns, UsageRule},
};
use std::collections::BTreeSet;
use support::{Ledger, start_planner, started};

#[tokio::test]
async fn jobs_are_started_once_in_plans_of_bounded_size() {
    let mut ledger = Ledger::start(1, 8).await;
    let policy = Box::new(Policy { max_starts: 3, ..Policy::default() });
    ledger.command(&Actor::Ledger, Command::SetPolicy { policy }).await;
    for _ in 0..5 {
        ledger.submit(1, None).await;
    }
    let _planner = start_planner(&ledger.bus, Config::default()).await;
    assert_eq!(started(&ledger.commit_next_plan().await.0).len(), 3);
    assert_eq!(started(&ledger.commit_next_plan().await.0).len(), 2);
    for _ in 0..3 {
        ledger.submit(1, None).await;
    }
    let mut all = BTreeSet::new();
    while all.len() < 3 {
        for job in started(&ledger.commit_next_plan().await.0) {
            assert!(all.insert(job), "job {job} is started twice");
        }
    }
}

/// OAR-G-09: a planner whose passes have no time says whom they leave out, does not try again at once, and plans in time where it can.
#[tokio::test]
async fn a_pass_without_time_says_whom_it_leaves_out() {
    let mut ledger = Ledger::start(1, 8).await;
    let jobs = [ledger.submit(1, None).await, ledger.submit(1, None).await];
    let config = || Config { predict: false, ..Config::default() };
    let planner = start_planner(&ledger.bus, Config { pass_limit_seconds: 0, ..config() }).await;
    let (plan, _) = ledger.commit_next_plan().await;
    assert_eq!((plan.cut_after, started(&plan)), (Some(0), Vec::new()));
    let left_out: Vec<_> = plan.reasons.iter().map(|waiting| (waiting.job, waiting.reason.clone())).collect();
    assert_eq!(left_out, jobs.map(|job| (job, WaitReason::LeftOut)));
    let third = ledger.submit(1, None).await;
    let (next, _) = ledger.commit_next_plan().await;
    assert_eq!(next.reasons, [WaitingJob { job: third, reason: WaitReason::LeftOut }], "the others know");
    drop(planner);
    let _planner = start_planner(&ledger.bus, config()).await;
    let (whole, _) = ledger.commit_next_plan().await;
    assert_eq!((whole.cut_after, started(&whole)), (None, vec![jobs[0], jobs[1], third]));
}

/// PBS-C-02, PBS-C-07: under turns another cycle follows one that started a job, which has nothing to say; the cycle that
/// publishes what users have used is one of the clock.
#[tokio::test]
async fn cycles_of_turns_tell_why_they_are() {
    let mut ledger = Ledger::start(1, 1).await;
    let usage = UsageRule { sync_seconds: 1, ..UsageRule::default() };
    let turns = Some(Box::new(Turns { usage: Some(usage), ..Turns::default() }));
    let policy = Box::new(Policy { turns, ..Policy::default() });
    ledger.command(&Actor::Ledger, Command::SetPolicy { policy }).await;
    let _planner = start_planner(&ledger.bus, Config { predict: false, ..Config::default() }).await;
    let reasons = |plan: &ProposedPlan| plan.cycle.as_ref().expect("a cycle").reasons.clone();
    let (first, _) = ledger.commit_next_plan().await;
    assert_eq!(reasons(&first), ["SCH_SCHEDULE_FIRST"]);
    let job = ledger.submit(1, None).await;
    let mut starting = ledger.commit_next_plan().await.0;
    while started(&starting) != [job] {
        assert_eq!(reasons(&starting), ["SCH_SCHEDULE_TIME"]);
        starting = ledger.commit_next_plan().await.0;
    }
    assert_eq!(reasons(&starting)[0], "SCH_SCHEDULE_NEW");
    ledger.report_started(job).await;
    let (next, _) = ledger.commit_next_plan().await;
    assert_eq!(reasons(&next)[0], "SCH_SCHEDULE_TIME");
    let was_quiet = next.pass >= starting.pass + 2;
    assert!(was_quiet || reasons(&next)[1] == "SCH_SCHEDULE_RECYC", "{next:?} after pass {}", starting.pass);
}

/// HPC-F-61, HPC-F-89: passes are counted from 1 for each planner, and each planner has its own epoch.
#[tokio::test]
async fn plans_tell_which_pass_of_which_planner_they_are() {
    let mut ledger = Ledger::start(1, 8).await;
    for epoch in 1..=2 {
        let planner = start_planner(&ledger.bus, Config { predict: false, ..Config::default() }).await;
        let mut last = 0;
        for _ in 0..2 {
            ledger.submit(1, None).await;
            let (plan, _) = ledger.commit_next_plan().await;
            assert_eq!(plan.epoch, epoch);
            assert!(plan.pass > last, "pass {} after {last}", plan.pass);
            assert!(last > 0 || plan.pass <= 2, "the first plan of a planner is pass {}", plan.pass);
            last = plan.pass;
        }
        drop(planner);
    }
}

/// M-PLAN-26: of two planners the one that started last plans, and when it is gone the other one takes over.
#[tokio::test]
async fn a_second_planner_stands_by_and_takes_over() {
    let mut ledger = Ledger::start(1, 64).await;
    let config = || Config { predict: false, takeover_seconds: 1, ..Config::default() };
    let _first = start_planner(&ledger.bus, config()).await;
    ledger.submit(1, None).await;
    assert_eq!(ledger.commit_next_plan().await.0.epoch, 1);
    let second = start_planner(&ledger.bus, config()).await;
    ledger.serve_until_event(|event| matches!(event, Event::PlannerStarted { epoch: 2 })).await;
    for _ in 0..5 {
        let job = ledger.submit(1, None).await;
        let (plan, _) = ledger.commit_next_plan().await;
        assert_eq!((plan.epoch, started(&plan)), (2, vec![job]));
    }
    drop(second);
    let mut job = ledger.submit(1, None).await;
    let mut plan = ledger.commit_next_plan().await.0;
    if plan.epoch == 2 {
        // It was making that one when it was told to end.
        job = ledger.submit(1, None).await;
        plan = ledger.commit_next_plan().await.0;
    }
    assert_eq!((plan.epoch, plan.pass, started(&plan)), (3, 1, vec![job]));
}

#[tokio::test]
async fn a_planner_that_comes_late_starts_what_waits() {
    let mut ledger = Ledger::start(1, 2).await;
    let job = ledger.submit(1, None).await;
    let _planner = start_planner(&ledger.bus, Config::default()).await;
    assert_eq!(started(&ledger.commit_next_plan().await.0), [job]);
}

#[tokio::test]
async fn a_refused_start_is_tried_again_when_something_has_changed() {
    let mut ledger = Ledger::start(1, 2).await;
    let _planner = start_planner(&ledger.bus, Config::default()).await;
    let first = ledger.submit(1, None).await;
    let (request, plan) = ledger.next_plan().await;
    assert_eq!(started(&plan), [first]);
    let refused = RefusedStart { job: first, reason: "the state has moved on".into() };
    ledger.answer(request, Reply::Planned(vec![refused]));
    ledger.submit(1, None).await;
    let mut all = BTreeSet::new();
    while all.len() < 2 {
        all.extend(started(&ledger.commit_next_plan().await.0));
    }
}

#[tokio::test]
async fn another_planner_goes_on_with_the_same_promises() {
    let mut ledger = Ledger::start(1, 2).await;
    let policy = Box::new(Policy::built_in("conservative").expect("there is one"));
    ledger.command(&Actor::Ledger, Command::SetPolicy { policy }).await;
    let running = ledger.submit(2, Some(3600)).await;
    let first = ledger.submit(2, Some(600)).await;
    let second = ledger.submit(2, Some(600)).await;
    let planner = start_planner(&ledger.bus, Config::default()).await;
    let promised =
        |ledger: &Ledger, job| ledger.state.job(job).and_then(|job| job.slot.as_ref()).map(|slot| slot.start);
    while promised(&ledger, second).is_none() {
        ledger.commit_next_plan().await;
    }
    let promises = (promised(&ledger, first), promised(&ledger, second));
    assert!(promises.0 > Some(Timestamp::now()) && promises.1 > promises.0, "{promises:?}");
    drop(planner);

    let _planner = start_planner(&ledger.bus, Config { predict: false, ..Config::default() }).await;
    let third = ledger.submit(2, Some(600)).await;
    while promised(&ledger, third).is_none() {
        ledger.commit_next_plan().await;
    }
    assert_eq!((promised(&ledger, first), promised(&ledger, second)), promises);
    assert!(promised(&ledger, third) > promises.1);
    ledger.end(running).await;
    assert_eq!(
        started(&ledger.commit_next_plan().await.0),
        [first],
        "the promise is renewed when something ends early"
    );
}

#[tokio::test]
async fn starts_of_waiting_jobs_are_predicted() {
    let mut ledger = Ledger::start(1, 2).await;
    ledger.submit(2, Some(3600)).await;
    let waiting = ledger.submit(2, Some(600)).await;
    let _planner = start_planner(&ledger.bus, Config::default()).await;
    let predicted = |ledger: &Ledger| ledger.state.job(waiting).and_then(|job| job.predicted_start);
    while predicted(&ledger).is_none() {
        ledger.commit_next_plan().await;
    }
    let wait_seconds = predicted(&ledger).map_or(0, |start| start.micros_since(Timestamp::now()) / 1_000_000);
    assert!((3000..=3600).contains(&wait_seconds), "{wait_seconds}");
}
