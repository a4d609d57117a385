//! Samples of the events of components that are held or ended alone, and of staging.

use super::{Fixture, exit};
use muster_schemas::{
    StepId, Timestamp,
    event::{Event, FurtherChange, StopReason},
    filter::StagingSettings,
    job::{ExitStatus, Holds, Outcome, Usage, WaitReason},
    plan::{BackfillPass, ComponentMode, PlannedComponent, PlannedComponents},
    resources::IndexSet,
    steps::TaskStatus,
};
use std::sync::Arc;

pub fn events(fixture: &Fixture) -> Vec<Event> {
    let Fixture { job_id: job, run, .. } = fixture.clone();
    let (component, holds) = (2, Holds { user: true, ..Holds::default() });
    vec![
        Event::ComponentHeld { job, component, holds, reason: "later".into() },
        Event::ComponentReleased { job, component, holds },
        Event::ComponentStopping { job, run, component, reason: StopReason::Cancelled },
        Event::ComponentEnded {
            job,
            run,
            component,
            outcome: Outcome::Cancelled,
            usage: Usage { cpu_time_micros: 5, peak_memory_bytes: 6 },
        },
        Event::StagingSet {
            old: Arc::default(),
            settings: Arc::new(StagingSettings {
                program: Some("/opt/stage".into()),
                stage_in_timeout_seconds: 60,
                stage_out_timeout_seconds: 30,
            }),
        },
    ]
}

/// The event of a backfill pass.
pub fn passed(fixture: &Fixture) -> Vec<Event> {
    let Fixture { job_id: job, node, .. } = fixture.clone();
    let reason = WaitReason::Reserved { start: Timestamp(9_000_000) };
    let first = PlannedComponent { start: Some(Timestamp(9_000_000)), nodes: vec![node] };
    let components = vec![first, PlannedComponent::default()];
    let jobs = vec![PlannedComponents { job, reason, components }];
    let pass = BackfillPass { number: 4, at: Timestamp(8_000_000), mode: ComponentMode::Together, jobs };
    vec![Event::BackfillPassed { pass: Arc::new(pass) }]
}

/// The events of what people change later.
pub fn altered(fixture: &Fixture) -> Vec<Event> {
    let Fixture { job_id: job, run, node, .. } = fixture.clone();
    let component = 2;
    vec![
        Event::NodeTakenOut { node, reason: "bad disk".into(), is_down: true },
        Event::JobAltered {
            job,
            change: Arc::new(FurtherChange {
                reservation: Some("r1".into()),
                deadline: Some(Timestamp::from_unix_seconds(1_750_000_000)),
                requeue_on_node_lost: Some(true),
                attributes: [("slurm.0.comment".to_owned(), "later".to_owned())].into(),
                component: Some(component),
            }),
        },
        Event::JobTold { job, run, text: "save your work".into() },
    ]
}

/// The events of components that share a node.
pub fn on_a_shared_node(fixture: &Fixture) -> Vec<Event> {
    let Fixture { job_id: job, run, node, .. } = fixture.clone();
    let (component, step) = (1, StepId(2));
    let statuses = vec![TaskStatus { ranks: IndexSet::first_n(2), status: ExitStatus::Code(0) }];
    vec![
        Event::RunPartStarted { job, run, node, component },
        Event::RunPartEnded { job, run, node, component, exit: exit() },
        Event::StepPartEnded { job, run, step, node, component, exit: exit(), statuses },
    ]
}
