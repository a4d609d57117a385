//! What becomes of jobs that a preset finds in its batch queues when it begins (PBS-P-15).

use super::{LoadError, PolicyFolder};
use muster_client::{ClientError, JobQuery};
use muster_pbs_policy::preset::{PresetConfig, RestartAction};
use muster_schemas::{
    CommandId, JobId,
    command::JobSelection,
    event::JobChange,
    job::JobState,
    views::{ModifyRequest, RunJobRequest},
};

impl PolicyFolder {
    /// Jobs that wait in a batch queue go back to the queue in which jobs are submitted, or start at once whatever the gates say,
    /// as `SCHED_RESTART_ACTION` has it. For the moment at which the files of a folder are in force for the first time.
    ///
    /// Returns what could not be done, for people: such a job stays where it is, and is looked at with the others.
    ///
    /// # Errors
    /// If the system does not answer.
    pub fn restart_stranded(&mut self) -> Result<Vec<String>, LoadError> {
        let Some((tables, hashes)) = self.accepted.take() else { return Ok(Vec::new()) };
        let done = tables.preset.as_ref().map_or(Ok(Vec::new()), |preset| self.restart(preset));
        self.accepted = Some((tables, hashes));
        done
    }

    fn restart(&mut self, preset: &PresetConfig) -> Result<Vec<String>, LoadError> {
        let mut failed = Vec::new();
        if preset.restart_action == RestartAction::None || preset.test_only {
            return Ok(failed);
        }
        for queue in &preset.batch_queues {
            let waiting = JobQuery {
                queue: Some(queue.queue.clone()),
                // While scheduling is off, or its queue is stopped, a job without any hold counts as held.
                states: vec![JobState::Queued, JobState::Held],
                ..JobQuery::default()
            };
            for job in self.client.jobs(&waiting)?.jobs.into_iter().filter(|job| job.holds.is_empty()) {
                match self.restart_one(preset, job.id) {
                    Ok(()) => {}
                    Err(error) if error.code().is_some() => failed.push(format!("job {}: {error}", job.id)),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(failed)
    }

    fn restart_one(&mut self, preset: &PresetConfig, job: JobId) -> Result<(), ClientError> {
        let id = CommandId::new_now();
        match (preset.restart_action, &preset.submit_queue) {
            (RestartAction::Rerun, _) => self.client.run_job(id, job, &RunJobRequest::default()).map(drop),
            (RestartAction::Resubmit, Some(submit)) => {
                let change = JobChange { queue: Some(submit.queue.clone()), ..JobChange::default() };
                self.client.modify(id, &ModifyRequest { jobs: JobSelection::Ids(vec![job]), change }).map(drop)
            }
            _ => Ok(()),
        }
    }
}
