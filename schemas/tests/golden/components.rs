//! Samples of the events of components that are held or ended alone, and of staging.

use super::Fixture;
use muster_schemas::{
    event::{Event, StopReason},
    filter::StagingSettings,
    job::{Holds, Outcome, Usage},
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
