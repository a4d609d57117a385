//! Samples of the events of components that are held or ended alone.

use super::Fixture;
use muster_schemas::{
    event::{Event, StopReason},
    job::{Holds, Outcome, Usage},
};

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
    ]
}
