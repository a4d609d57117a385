//! How a command keeps the job that it holds.

use muster_client::Client;
use muster_schemas::{CommandId, JobId};
use std::{sync::mpsc, thread, time::Duration};

/// A command that is not heard of for so long, and as long again, has lost its job.
pub const LEASE_SECONDS: u32 = 60;
/// So often it says that it lives.
const RENEWAL: Duration = Duration::from_secs(20);

/// Says again and again that this command lives: without it the job would hold its nodes until its walltime is over.
pub struct Lease {
    /// It stops when this is dropped.
    stop: mpsc::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl Lease {
    /// Begins to say so, by a client of its own.
    pub fn of(mut client: Client, job: JobId) -> Self {
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            loop {
                let kept = client.keep_job(CommandId::new_now(), job, Some(LEASE_SECONDS));
                // A job that is over needs nobody. If it is not heard for another reason, the next one may be.
                if kept.is_err_and(|error| error.is_refusal() && !error.is_unavailable())
                    || stopped.recv_timeout(RENEWAL) != Err(mpsc::RecvTimeoutError::Timeout)
                {
                    return;
                }
            }
        });
        Self { stop, thread }
    }

    /// Nothing is said behind this.
    pub fn end(self) {
        drop(self.stop);
        // It ends at its next word; if it panicked it has said so.
        let _ = self.thread.join();
    }
}
