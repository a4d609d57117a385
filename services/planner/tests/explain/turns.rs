//! Explanations and predictions under a policy by turns.

use crate::world::{World, node, queue, tasks};
use muster_schemas::{
    cluster::QueueSpec,
    job::JobSpec,
    policy::{OnRefusal, Period, Policy, TurnRules, Turns, Windows},
    views::{ChangeKind, ReasonWord},
};

fn policy(turns: Turns) -> Policy {
    Policy { name: "turns".into(), order: Vec::new(), turns: Some(Box::new(turns)), ..Policy::default() }
}

fn world(turns: Turns) -> World {
    let queues = vec![queue("default"), QueueSpec { priority: 9, ..queue("high") }, queue("own")];
    World::new(&policy(turns), vec![node("n1", 4, 0)], queues)
}

fn in_queue(queue: &str, mut spec: JobSpec) -> JobSpec {
    spec.components[0].queue = Some(queue.into());
    spec
}

/// The jobs in front are those that are looked at first; the reason, the expected start and what helps are those of the cycle
/// by turns.
#[test]
fn a_job_is_explained_by_the_turns_in_front_of_it() {
    let rules = TurnRules { on_refusal: OnRefusal::BlocksQueue, ..TurnRules::default() };
    let mut world = world(Turns { rules, ..Turns::default() });
    let runs = world.run(tasks(3, 600));
    assert!(world.has_started(runs));
    let early = world.run(tasks(2, 60));
    let behind = world.run(tasks(1, 60));
    let urgent = world.run(in_queue("high", tasks(2, 60)));
    let explanation = world.explain(behind);
    assert_eq!((explanation.reason.code, explanation.reason.job), (ReasonWord::BehindJob, Some(early)));
    let ahead: Vec<_> = explanation.first_ahead.iter().map(|ahead| ahead.job).collect();
    assert_eq!(ahead, [urgent, early], "the queue with the higher priority has its turns first");
    assert!(!explanation.starts_now && explanation.fits_alone == Some(true));
    assert_eq!(explanation.expected_start, Some(world.now.plus_seconds(660)), "both in front of it run first");
    let explanation = world.explain(early);
    assert_eq!(explanation.reason.code, ReasonWord::Resources);
    assert_eq!(explanation.expected_start, Some(world.now.plus_seconds(600)));
    let fewer = explanation.changes.iter().find(|change| change.kind == ChangeKind::Tasks);
    assert_eq!(fewer.map(|change| change.text.as_str()), Some("1 task instead of 2"), "{explanation:#?}");
}

/// A job that may run past the border of a window starts when it is over, and would start now if it were shorter.
#[test]
fn what_a_window_holds_back_is_expected_after_it() {
    let start = World::new(&Policy::default(), vec![node("n1", 4, 0)], vec![queue("default")]).now;
    let period = Period { from: start.plus_seconds(300), until: start.plus_seconds(900) };
    let windows = Windows { queue_prefix: "own".into(), periods: vec![period] };
    let mut world = world(Turns { windows: Some(windows), ..Turns::default() });
    let long = world.run(tasks(1, 600));
    let explanation = world.explain(long);
    assert_eq!(explanation.expected_start, Some(period.until), "{explanation:#?}");
    let shorter = explanation.changes.iter().find(|change| change.kind == ChangeKind::Walltime);
    assert!(shorter.is_some_and(|change| change.text.starts_with("walltime 5 ")), "{:?}", explanation.changes);
}

/// PBS-C-14: under a policy that starts nothing, all wait for another one, and that is what they are told.
#[test]
fn a_policy_that_starts_nothing_says_why() {
    let why = Some("the files have 2 errors".to_owned());
    let policy = Policy { starts_nothing: why, ..Policy::default() };
    let mut world = World::new(&policy, vec![node("n1", 4, 0)], vec![queue("default")]);
    let job = world.run(tasks(1, 60));
    assert!(!world.has_started(job));
    let explanation = world.explain(job);
    assert_eq!(explanation.reason.code, ReasonWord::Limit);
    assert_eq!(explanation.reason.text, "limit reached: the policy in force starts nothing: the files have 2 errors");
    assert_eq!((explanation.changes.len(), explanation.expected_start), (0, None));
    world.must(
        &muster_schemas::event::Actor::Ledger,
        muster_schemas::command::Command::SetPolicy { policy: Box::default() },
    );
    world.settle();
    assert!(world.has_started(job));
}
