//! What records do to walltimes that are asked for.

use crate::{runs::walltime::walltime, state::State};
use muster_schemas::{JobId, event::JobChange};

impl State {
    /// Notes what a run was granted and what it still wants, before the change of its walltime is applied.
    pub(crate) fn walltime_asked_for(&mut self, id: JobId, change: &JobChange) {
        let Some(increase) = change.increase else { return };
        let Some(job) = self.job(id) else { return };
        let Some(run) = job.run().and_then(|run| self.run(run)) else { return };
        let before = walltime(job, &run.placement, 0).unwrap_or(0);
        let granted = change.walltime_seconds.map_or(0, |after| after.saturating_sub(before));
        let asked = self.altered.walltimes.entry(run.id).or_default();
        asked.granted_seconds = asked.granted_seconds.saturating_add(granted);
        asked.pending = increase;
    }
}
