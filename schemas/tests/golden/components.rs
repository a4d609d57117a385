//! Samples of the events of components that are held or ended alone, and of staging.

use super::Fixture;
use muster_schemas::{
    Timestamp,
    event::{Event, StopReason},
    filter::StagingSettings,
    job::{Holds, Outcome, Usage, WaitReason},
    plan::{BackfillPass, ComponentMode, PlannedComponent, PlannedComponents},
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
            usage: Usage { cpu_time_micros: 5, peak_memory_bytes: 6, system_time_micros: 0 },
        },
        Event::StagingSet {
            old: Arc::default(),
            settings: Arc::new(StagingSettings {
                program: Some("/opt/stage".into()),
                stage_in_timeout_seconds: 60,
                stage_out_timeout_seconds: 30,
                ..StagingSettings::default()
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

/// The events of later changes by people.
pub fn altered(fixture: &Fixture) -> Vec<Event> {
    let Fixture { job_id: job, run, node, .. } = fixture.clone();
    vec![
        Event::NodeTakenOut { node, reason: "bad disk".into(), is_down: true },
        Event::JobTold { job, run, text: "save your work".into() },
    ]
}
