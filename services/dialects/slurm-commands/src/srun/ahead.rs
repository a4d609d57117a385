//! The signal that a job wants some time before its limit, sent to its steps (SL-C-13).

use jiff::Timestamp;
use muster_client::{Client, ClientError, Moment, StepAddress};
use muster_schemas::{
    CommandId,
    views::{JobDetail, JobView, StepSignalRequest},
};
use muster_slurm::{
    attributes::{Attributes, component},
    options::values::SignalAhead,
};
use std::{thread, time::Duration};

/// The limit may change meanwhile: it is checked this often.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Sends the step that signal in time, unless it is for the batch script.
pub fn signal_ahead(client: &Client, detail: &JobDetail, address: StepAddress) {
    let text = Attributes(&detail.spec.attributes).component(0, component::SIGNAL);
    let Some(ahead) = text.and_then(SignalAhead::parse).filter(|ahead| !ahead.batch_script) else { return };
    let mut client = client.another();
    // The thread ends with the command, which waits for the step.
    thread::spawn(move || {
        // A finished step or job needs no signal.
        let _ = wait_and_signal(&mut client, ahead, address);
    });
}

fn wait_and_signal(client: &mut Client, ahead: SignalAhead, address: StepAddress) -> Result<(), ClientError> {
    loop {
        let view = client.job(address.job, Moment::Now)?.job;
        let Some(seconds) = seconds_left(&view) else { return Ok(()) };
        let wait = seconds - f64::from(ahead.seconds_before_end);
        if wait <= 0.0 {
            break;
        }
        thread::sleep(Duration::from_secs_f64(wait).min(LOOK_EVERY));
    }
    let request = StepSignalRequest { signal: ahead.signal, component: None };
    client.signal_step(CommandId::new_now(), address.job, address.step, &request).map(drop)
}

/// How long the job may still run; `None` if it has no limit, or does not run.
fn seconds_left(job: &JobView) -> Option<f64> {
    let started = job.started?.to_jiff();
    let limit = job.walltime_seconds?;
    Some(limit as f64 - Timestamp::now().duration_since(started).as_secs_f64())
}
