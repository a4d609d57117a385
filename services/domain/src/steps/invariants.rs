//! Invariants of steps with separate places, and of jobs that end with their clients.

use crate::{invariants::ensure, runs::Run, state::State, steps::Step};
use muster_schemas::{NodeId, StepId, resources::IndexSet};
use std::collections::BTreeMap;

pub(crate) fn check(state: &State) -> Result<(), String> {
    for (id, steps) in &state.clients.steps {
        let run = state.run(*id).ok_or_else(|| format!("run {id} is over, and has steps"))?;
        ensure(!steps.is_empty(), || format!("run {id}: an empty list of steps"))?;
        run_steps(run, steps)?;
    }
    for id in state.clients.kept.keys() {
        let lives = state.job(*id).is_some_and(|job| !job.is_finished());
        ensure(lives, || format!("job {id} is over, and its client is waited for"))?;
    }
    Ok(())
}

/// Every step is known to its run and uses cores and GPUs of the run, and none of them is given to two steps unless one
/// of them overlaps others (SL-R-08).
fn run_steps(run: &Run, steps: &BTreeMap<StepId, Step>) -> Result<(), String> {
    let mut used: BTreeMap<NodeId, (IndexSet, IndexSet)> = BTreeMap::new();
    for (id, step) in steps {
        let name = || format!("run {} step {id}", run.id);
        let known = run.steps.get(id).ok_or_else(|| format!("{}: the run does not know it", name()))?;
        ensure(*id < run.next_step, || format!("{}: its number would be given again", name()))?;
        ensure(known.parts.len() == step.parts.len(), || format!("{}: its parts differ", name()))?;
        for (part, known) in step.parts.iter().zip(&known.parts) {
            let share = &part.share;
            ensure(share.node == known.node, || format!("{}: its parts are in another order", name()))?;
            // A part that has ended may belong to a component that has given back its resources.
            let held = run.share_of(share.node, share.component);
            let is_held = known.exit.is_some() || held.is_some_and(|held| held.cores.contains_all(&share.cores));
            ensure(is_held, || format!("{}: its cores {} are not the run's", name(), share.cores))?;
            let is_bound = |bound: &IndexSet| !bound.is_empty() && share.cores.contains_all(bound);
            ensure(share.bound.iter().all(is_bound), || format!("{}: a task is bound to no core of the step", name()))?;
            let gpus = share.gpus.clone().unwrap_or_default();
            let has_gpus = known.exit.is_some() || held.is_some_and(|held| held.gpus.contains_all(&gpus));
            ensure(has_gpus, || format!("{}: its GPUs {gpus} are not the run's", name()))?;
            if step.overlaps || known.exit.is_some() {
                continue;
            }
            let (cores, gpus_before) = used.entry(share.node).or_default();
            ensure(cores.intersection(&share.cores).is_empty(), || {
                format!("{}: a core of node {} is another step's", name(), share.node)
            })?;
            ensure(gpus_before.intersection(&gpus).is_empty(), || {
                format!("{}: a GPU of node {} is another step's", name(), share.node)
            })?;
            *cores = cores.union(&share.cores);
            *gpus_before = gpus_before.union(&gpus);
        }
    }
    Ok(())
}
