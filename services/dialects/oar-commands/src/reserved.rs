//! Reservations: the answer of the planner (OAR-G-11), and how many of a user wait (OAR-G-15).

use super::{
    ended::{Ended, Failure, print},
    site::{Site, user_name},
};
use muster_cli::stderr_line;
use muster_client::{JobQuery, Moment};
use muster_schemas::{
    JobId,
    job::{JobState, JobType},
    views::JobView,
};
use std::time::Duration;

/// Jobs that are looked up at a time.
const MOST_AT_A_TIME: usize = 1_000;
/// The exit status if the start cannot be promised.
const REFUSED: u8 = 10;
/// The time between two looks at a job, at first and at most.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Waits until each of the reservations is valid or refused, and says so.
pub fn wait(site: &mut Site, jobs: &[JobId]) -> Ended {
    print("Reservation mode: waiting validation...\n");
    let mut status = 0;
    for job in jobs {
        if let Some(why) = refusal(site, *job)? {
            print("Reservation not valid --> KO\n");
            stderr_line!("oarsub: job {job}: {why}");
            status = REFUSED;
        } else {
            print("Reservation valid --> OK\n");
        }
    }
    Ok(status)
}

/// Why a reservation is not valid.
fn refusal(site: &mut Site, job: JobId) -> Result<Option<String>, Failure> {
    let mut pause = PAUSE;
    loop {
        let view = site.client.job(job, Moment::Now)?.job;
        if let Some(outcome) = &view.outcome {
            return Ok((!has_run(&view)).then(|| outcome.to_string()));
        }
        if view.slot_start.is_some() || has_run(&view) {
            return Ok(None);
        }
        if view.state == JobState::Held {
            stderr_line!("oarsub: warning: job {job} is held: it is validated once it is resumed");
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn has_run(view: &JobView) -> bool {
    let waits = matches!(view.state, JobState::Queued | JobState::Held);
    view.started.is_some() || !waits && view.outcome.is_none()
}

/// How many reservations of the user wait.
pub fn waiting(site: &mut Site) -> Result<usize, Failure> {
    let states = vec![JobState::Queued, JobState::Held];
    let query = JobQuery { user: Some(user_name()), states, ..JobQuery::default() };
    let ids: Vec<JobId> = site.client.jobs(&query)?.jobs.iter().map(|view| view.id).collect();
    let mut count = 0;
    for ids in ids.chunks(MOST_AT_A_TIME) {
        let details = site.client.job_details(ids, false)?.jobs;
        count += details.iter().filter(|detail| detail.spec.types.contains(&JobType::FixedStart)).count();
    }
    Ok(count)
}
