//! The lease by which a command keeps its job.

use muster_client::Client;
use muster_schemas::{CommandId, JobId};
use std::{sync::mpsc, thread, time::Duration};

/// A command that is silent for twice this time loses its job.
pub const LEASE_SECONDS: u32 = 60;
/// The interval between renewals.
const RENEWAL: Duration = Duration::from_secs(20);

/// Renews the lease of a job. Without it, a job whose command is gone would keep its nodes until the end
/// of its walltime.
pub struct Lease {
    /// Dropped to stop the thread.
    stop: mpsc::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl Lease {
    /// Starts renewing, with a client of its own.
    pub fn of(mut client: Client, job: JobId) -> Self {
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            loop {
                let kept = client.keep_job(CommandId::new_now(), job, Some(LEASE_SECONDS));
                // A job that has ended needs no lease. After any other error the next renewal may succeed.
                if kept.is_err_and(|error| error.is_refusal() && !error.is_unavailable())
                    || stopped.recv_timeout(RENEWAL) != Err(mpsc::RecvTimeoutError::Timeout)
                {
                    return;
                }
            }
        });
        Self { stop, thread }
    }

    /// Stops renewing.
    pub fn end(self) {
        drop(self.stop);
        // The thread ends at its next message; if it panicked it has said so.
        let _ = self.thread.join();
    }
}
