//! Which GPUs of the job a step gets, if it asks for some of its own.

use crate::{decide::refuse, requests, runs::Run, state::State};
use muster_schemas::{
    command::{Refusal, RefusalCode},
    resources::{Gpus, IndexSet, Per},
    steps::{StepGroup, StepShare, StepSpec},
};

/// The GPUs of a job on a node that a group could have.
struct Choice {
    /// Those of the right model.
    all: IndexSet,
    /// Those of them that no other step has.
    free: IndexSet,
}

/// Gives the groups that ask for GPUs of their own the lowest that no other step has; `shares` are those of all places,
/// in their order.
///
/// # Errors
/// The job has too few of them there, or too few are free of other steps.
pub(crate) fn deal(state: &State, run: &Run, spec: &StepSpec, shares: &mut [StepShare]) -> Result<(), Refusal> {
    let mut rest = shares;
    for group in &spec.groups {
        let (of_group, others) = rest.split_at_mut(group.places.len());
        rest = others;
        for wanted in group.gpus.iter().chain(&group.more_gpus) {
            let choices: Vec<Choice> = of_group.iter().map(|share| choice(state, run, spec, share, wanted)).collect();
            let counts = match wanted.per {
                Per::Request => over_places(run, group, wanted, &choices)?,
                _ => of_group.iter().map(|share| on_node(wanted, share)).collect(),
            };
            for ((share, choice), count) in of_group.iter_mut().zip(choices).zip(counts) {
                let node = state.node_name(share.node);
                let whose = || format!("on node {node}, component {} of job {}", share.component, run.job);
                let taken = taken(&choice, count, wanted, &whose)?;
                share.gpus = Some(share.gpus.take().map_or(taken.clone(), |gpus| gpus.union(&taken)));
            }
        }
    }
    Ok(())
}

fn choice(state: &State, run: &Run, spec: &StepSpec, share: &StepShare, wanted: &Gpus) -> Choice {
    let held = run.share_of(share.node, share.component).map(|held| held.gpus.clone()).unwrap_or_default();
    let is_right = |gpu: &u32| {
        let node = state.node(share.node);
        node.is_some_and(|node| requests::is_of_model(&node.spec, *gpu, wanted.model.as_deref()))
    };
    let all: IndexSet = held.iter().filter(is_right).collect();
    let in_use = if spec.overlaps { IndexSet::new() } else { state.in_use(run, share.node, share.component).gpus };
    Choice { free: all.difference(&in_use), all }
}

fn on_node(wanted: &Gpus, share: &StepShare) -> u64 {
    let each = u64::from(wanted.count);
    if wanted.per == Per::Task { each.saturating_mul(u64::from(share.tasks)) } else { each }
}

/// A number for a whole group: its nodes get one each in turn, as long as they have free ones.
fn over_places(run: &Run, group: &StepGroup, wanted: &Gpus, choices: &[Choice]) -> Result<Vec<u64>, Refusal> {
    let sum = |of: fn(&Choice) -> &IndexSet| choices.iter().map(|choice| of(choice).len()).sum::<u64>();
    let count = u64::from(wanted.count);
    let whose = || format!("on the step's nodes, component {} of job {}", group.component, run.job);
    enough(count, sum(|choice| &choice.all), sum(|choice| &choice.free), wanted, &whose)?;
    let mut counts = vec![0; choices.len()];
    let mut left = count;
    while left > 0 {
        for (count, choice) in counts.iter_mut().zip(choices) {
            let more = u64::from(*count < choice.free.len()).min(left);
            *count += more;
            left -= more;
        }
    }
    Ok(counts)
}

fn taken(choice: &Choice, count: u64, wanted: &Gpus, whose: &dyn Fn() -> String) -> Result<IndexSet, Refusal> {
    enough(count, choice.all.len(), choice.free.len(), wanted, whose)?;
    Ok(choice.free.smallest(count))
}

fn enough(count: u64, all: u64, free: u64, wanted: &Gpus, whose: &dyn Fn() -> String) -> Result<(), Refusal> {
    let model = wanted.model.as_ref().map(|model| format!(" of model {model}")).unwrap_or_default();
    if count > all {
        let message = format!("groups.gpus: {count} GPUs{model} are wanted {} has {all}", whose());
        return Err(refuse(RefusalCode::LimitReached, message));
    }
    if count > free {
        let message = format!("{count} GPUs{model} are wanted {} has {free} that are free of other steps", whose());
        return Err(refuse(RefusalCode::Busy, message));
    }
    Ok(())
}
