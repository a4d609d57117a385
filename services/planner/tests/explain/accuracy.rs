//! The accuracy of predictions.

use crate::world::{World, node, queue, tasks};
use muster_domain::State;
use muster_planner::timetable::Accuracy;
use muster_schemas::{
    command::Command,
    event::Actor,
    plan::{PredictedStart, ProposedPlan},
    policy::Policy,
    views::PlanAccuracy,
};

fn predict(world: &mut World, job: muster_schemas::JobId, seconds: i64) {
    let predictions = vec![PredictedStart { job, start: Some(world.now.plus_seconds(seconds)) }];
    let plan = ProposedPlan { seen: world.state().sequence(), at: world.now, predictions, ..ProposedPlan::default() };
    world.must(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) });
}

fn report(world: &World, from: usize) -> PlanAccuracy {
    let mut state = State::new();
    let (before, records) = world.records.split_at(from);
    before.iter().for_each(|record| state.apply(record).unwrap());
    let since = state.time();
    let mut accuracy = Accuracy::from(state, since);
    records.iter().for_each(|record| accuracy.read(record));
    accuracy.finish()
}

/// A job that was first predicted to start after 1,000 s, an hour later after 200 s, and started after 100 s.
fn history() -> World {
    let mut world = World::new(&Policy::default(), vec![node("n1", 4, 0)], vec![queue("default")]);
    let first = world.run(tasks(4, 10_000));
    let second = world.run(tasks(4, 60));
    predict(&mut world, second, 1_000);
    world.wait(3_600);
    predict(&mut world, second, 200);
    world.wait(100);
    world.end(first);
    world.settle();
    assert!(world.has_started(second));
    world
}

#[test]
fn the_first_prediction_and_those_in_force_before_the_start_are_compared() {
    let report = report(&history(), 0);
    assert_eq!((report.started, report.unforeseen), (2, 1));
    assert_eq!((report.first.count, report.first.mean_seconds, report.first.kept_share), (1, 2_700.0, 0.0));
    let leads: Vec<_> =
        report.leads.iter().map(|lead| (lead.lead_seconds, lead.errors.count, lead.errors.median_seconds)).collect();
    assert_eq!(leads, [(600, 1, 2_700.0), (3_600, 1, 2_700.0), (21_600, 0, 0.0), (86_400, 0, 0.0)]);
    assert_eq!((report.queues[0].queue.as_str(), report.queues[0].errors.count), ("default", 1));
    assert_eq!(report.worst[0].started.micros_since(report.worst[0].predicted), 2_700_000_000);
}

#[test]
fn what_was_predicted_before_the_period_counts_from_its_beginning() {
    let world = history();
    let last = world.records.iter().rposition(|record| {
        matches!(&record.event, muster_schemas::event::Event::Planned { plan } if !plan.predictions.is_empty())
    });
    let report = report(&world, last.expect("there are predictions") + 1);
    assert_eq!((report.started, report.first.count, report.first.mean_seconds), (1, 1, 100.0));
    assert_eq!(report.first.kept_share, 1.0);
}

#[test]
fn a_period_without_starts_has_no_errors() {
    let world = history();
    let report = report(&world, world.records.len());
    assert_eq!((report.started, report.first.count, report.first.p95_seconds), (0, 0, 0.0));
}
