//! Jobs that hold resources for a command.

use crate::{
    lease::{LEASE_SECONDS, Lease},
    stderr_line,
};
use muster_client::Client;
use muster_schemas::{CommandId, JobId, command::JobSelection, job::ExitStatus, views::JobsRequest};

/// A job that holds resources for a command of this process, as long as the process shows that it lives.
pub struct HeldJob {
    job: JobId,
    lease: Lease,
}

impl HeldJob {
    /// Holds a job that has just been submitted.
    pub fn of(client: &Client, job: JobId) -> Self {
        Self { job, lease: Lease::of(client.another(), job) }
    }

    /// Gives it back: with the status of its command, or cancelled if that never ran. A failure is told by a command of
    /// this name, and is not one of the command: the job's resources are free soon anyway.
    pub fn give_back(self, client: &mut Client, status: Option<u8>, tool: &str) {
        let job = self.job;
        self.lease.end();
        let given_back = match status {
            Some(status) => client.conclude_job(CommandId::new_now(), job, ExitStatus::Code(status)),
            None => client.cancel(CommandId::new_now(), &JobsRequest { jobs: JobSelection::Ids(vec![job]) }),
        };
        match given_back {
            // It may have ended, at its walltime or because somebody cancelled it.
            Err(error) if !error.is_refusal() => {
                stderr_line!("{tool}: job {job} may hold its nodes for another {} s: {error}", 2 * LEASE_SECONDS);
            }
            _ => {}
        }
    }
}
