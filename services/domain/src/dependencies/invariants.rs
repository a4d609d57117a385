//! Invariants of dependencies.

use crate::{invariants::ensure, state::State};

/// Among the jobs that wait for others of their owner and name, the oldest does not wait, and all others do.
pub(crate) fn singletons(state: &State) -> Result<(), String> {
    for job in state.index.singletons.iter().filter_map(|id| state.job(*id)) {
        let first = state.index.namesakes(&job.owner.user, &job.name).next();
        let ahead = u32::from(first.is_some_and(|first| first < job.id.whole()));
        let waiting = job.components.iter().filter_map(|component| component.extras.as_ref());
        let mut waiting = waiting.filter(|extras| extras.waits_for_namesakes());
        ensure(waiting.all(|extras| extras.singletons_ahead == ahead), || {
            format!("job {}: {ahead} namesakes ahead, not so counted", job.id)
        })?;
    }
    Ok(())
}
