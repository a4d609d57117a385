//! Waits for the verdict of submission filters on a job.

use muster_client::{Client, ClientError, EventStream, Moment};
use muster_schemas::{
    JobId,
    views::{JobDetail, JobView},
};
use std::time::{Duration, Instant};

/// How long to keep watching a submission while the gateway cannot be reached.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause before the next attempt.
const PAUSE: Duration = Duration::from_millis(200);

/// The job once it is in the queue, or refused. Its events tell when to look again.
///
/// # Errors
/// The gateway refuses, or cannot be reached for too long.
pub fn wait_until_decided(client: &mut Client, job: JobId) -> Result<JobView, ClientError> {
    let mut last_contact = Instant::now();
    let mut events = None;
    loop {
        match look(client, job, &mut events) {
            Ok(Some(view)) => return Ok(view),
            Ok(None) => last_contact = Instant::now(),
            Err(error) if error.is_refusal() && !error.is_unavailable() || last_contact.elapsed() > PATIENCE => {
                return Err(error);
            }
            Err(_) => {
                events = None;
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// Looks at the job; if it is not decided, waits until something happens to it.
fn look(client: &mut Client, job: JobId, events: &mut Option<EventStream>) -> Result<Option<JobView>, ClientError> {
    let stream = match events {
        Some(stream) => stream,
        None => events.insert(client.events(None, Some(job), &[])?),
    };
    let JobDetail { job: view, .. } = client.job(job, Moment::Now)?;
    if view.is_decided() {
        return Ok(Some(view));
    }
    stream.next_until_caught_up()?;
    Ok(None)
}
