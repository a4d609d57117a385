//! The planner as a service, over the in-process bus, with a ledger that keeps its log in memory.

mod support;

use muster_planner_service::Config;
use muster_schemas::{
    command::{Command, RefusedStart, Reply},
    event::Actor,
    policy::Policy,
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
