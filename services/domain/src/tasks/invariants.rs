//! Invariants of lists of tasks.

use crate::{
    invariants::ensure,
    jobs::Job,
    runs::Run,
    state::State,
    tasks::{TaskBook, state::count},
};
use muster_schemas::NodeId;
use std::collections::BTreeMap;

pub(crate) fn check(state: &State) -> Result<(), String> {
    let lists = state.jobs().filter_map(|job| Some((job, job.tasks.as_deref()?)));
    for (job, tasks) in lists {
        instances(job, tasks)?;
        match job.run().and_then(|run| state.run(run)) {
            Some(run) => used(job, tasks, run)?,
            None => idle(job, tasks)?,
        }
    }
    Ok(())
}

/// Each instance is in one place only.
fn instances(job: &Job, tasks: &TaskBook) -> Result<(), String> {
    for (task, place) in tasks.tasks.iter().zip(0..) {
        let id = job.id;
        let running = tasks.running.values().filter(|running| running.instance.task == place).count();
        ensure(running == task.running as usize, || {
            format!("job {id}: {running} of task {place} run, {} counted", task.running)
        })?;
        if task.instances() > 0 {
            let ended = u64::from(task.finished) + task.failed.len();
            let left = u64::from(task.instances().saturating_sub(task.next)) + task.again.len();
            let total = ended + left + u64::from(task.running);
            ensure(total == u64::from(task.instances()), || format!("job {id}: {total} instances of task {place}"))?;
        }
    }
    Ok(())
}

/// Tasks run where the run has resources, and use no more than those.
fn used(job: &Job, tasks: &TaskBook, run: &Run) -> Result<(), String> {
    let id = job.id;
    let mut used: BTreeMap<NodeId, u32> = BTreeMap::new();
    for (step, running) in &tasks.running {
        ensure(run.steps.contains_key(step), || format!("job {id}: step {step} is no step of its run"))?;
        for (node, cores) in &running.cores {
            *used.entry(*node).or_default() += cores;
        }
    }
    ensure(used == tasks.used, || format!("job {id}: its tasks use {used:?}, counted {:?}", tasks.used))?;
    for (node, cores) in used {
        let held = run.share(node).map_or(0, |share| count(&share.cores));
        ensure(cores <= held, || format!("job {id}: tasks use {cores} cores of node {node}, it has {held}"))?;
    }
    for share in tasks.shrinking.iter().flat_map(|(removed, _)| removed.shares()) {
        let holds = run.share(share.node).is_some_and(|held| held.cores.contains_all(&share.cores));
        ensure(holds, || format!("job {id}: it is to give up what it does not have of node {}", share.node))?;
    }
    let joined = [&tasks.prepared, &tasks.released, &tasks.resized];
    let all_here = joined.into_iter().flatten().chain(tasks.joined.keys()).all(|node| run.part(*node).is_some());
    ensure(all_here, || format!("job {id}: it remembers nodes that its run does not have"))?;
    let back = tasks.leaving.iter().find(|node| run.part(**node).is_some());
    ensure(back.is_none(), || format!("job {id}: it came to node {back:?} before it had left it"))
}

/// Without a run, there is nothing left of one.
fn idle(job: &Job, tasks: &TaskBook) -> Result<(), String> {
    let fresh = TaskBook {
        running: BTreeMap::new(),
        used: BTreeMap::new(),
        prepared: Default::default(),
        released: Default::default(),
        joined: BTreeMap::new(),
        leaving: Default::default(),
        resized: Default::default(),
        shrinking: None,
        ending: None,
        ..tasks.clone()
    };
    ensure(*tasks == fresh, || format!("job {}: it has no run, and tasks of one: {tasks:?}", job.id))
}
