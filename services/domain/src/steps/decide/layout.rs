//! Which nodes of a job a step gets that names none.

use crate::{decide::{invalid, refuse}, jobs::Job, runs::Run, state::State};
use muster_schemas::{command::{Refusal, RefusalCode}, resources::{IndexSet, NodeShare}, steps::{StepGroup, StepPlace, StepProgram, StepSpec}};

/// So many tasks on a node, for a component.
struct Dealt<'a> {
    component: u32,
    share: &'a NodeShare,
    tasks: u32,
}

/// Gives a step whose only group has no places those of its run.
pub(crate) fn with_places(state: &State, run: &Run, spec: StepSpec) -> Result<StepSpec, Refusal> {
    let [group] = &spec.groups[..] else { return Ok(spec) };
    let Some(job) = state.job(run.job).filter(|_| group.places.is_empty()) else { return Ok(spec) };
    let [program] = &group.programs[..] else {
        return Err(invalid("groups.programs: a group without places has one program"));
    };
    let mut groups: Vec<StepGroup> = Vec::new();
    let mut next = 0;
    for Dealt { component, share, tasks } in lay_out(job, run, group.tasks, group.nodes)? {
        let ranks = IndexSet::from_range(next, next + tasks - 1);
        next += tasks;
        let cores = spec.overlaps.then(|| u32::try_from(share.cores.len()).unwrap_or(u32::MAX));
        let place = StepPlace { node: state.node_name(share.node).into_owned(), ranks: ranks.clone(), cores };
        let cpus_per_task = match group.cpus_per_task {
            0 => cpus_per_task(job, run, component),
            given => given,
        };
        match groups.last_mut().filter(|last| last.component == component) {
            Some(last) => {
                last.places.push(place);
                last.programs.iter_mut().for_each(|program| program.ranks = program.ranks.union(&ranks));
            }
            None => groups.push(StepGroup {
                component,
                places: vec![place],
                cpus_per_task,
                programs: vec![StepProgram { ranks, argv: program.argv.clone() }],
                tasks: None,
                nodes: None,
                ..group.clone()
            }),
        }
    }
    Ok(StepSpec { groups, ..spec })
}

/// As a component asked for each of its own tasks.
fn cpus_per_task(job: &Job, run: &Run, component: u32) -> u32 {
    let at = component as usize;
    let alternative = run.placement.components.get(at).map_or(0, |placed| placed.alternative as usize);
    let asked = job.components.get(at).and_then(|component| component.shape.alternatives.get(alternative));
    asked.and_then(|asked| asked.requests.first()).map_or(1, |request| request.cpus_per_task.max(1))
}

/// How many tasks of a step go to which node. Without a number of nodes they fill the job's task places in order; with
/// one they are dealt out evenly to the first so many nodes.
fn lay_out<'a>(job: &Job, run: &'a Run, tasks: Option<u32>, nodes: Option<u32>) -> Result<Vec<Dealt<'a>>, Refusal> {
    // On a node that components share, such a step is in the first of them.
    let may_use = |component, node| {
        run.part(node).is_some_and(|part| part.component == component) && job.single_end(component).is_none()
    };
    let shares = run.placement.shares_by_component().filter(|(component, share)| may_use(*component, share.node));
    let mut dealt: Vec<Dealt> = shares.map(|(component, share)| Dealt { component, share, tasks: 0 }).collect();
    let shares = || dealt.iter().map(|dealt| dealt.share);
    let most: u64 = shares().map(|share| share.cores.len().max(u64::from(share.tasks))).sum();
    let wanted = tasks.unwrap_or_else(|| shares().fold(0, |sum: u32, share| sum.saturating_add(share.tasks)).max(1));
    if wanted == 0 || u64::from(wanted) > most {
        return Err(limit(format!("tasks: {wanted} are wanted, the job has room for 1 to {most}")));
    }
    let Some(nodes) = nodes else {
        fill(&mut dealt, wanted);
        return Ok(dealt);
    };
    if nodes == 0 || nodes as usize > dealt.len() || nodes > wanted {
        let most = dealt.len().min(wanted as usize);
        return Err(limit(format!("nodes: {nodes} are wanted, 1 to {most} are possible for {wanted} tasks")));
    }
    let (each, more) = (wanted / nodes, wanted % nodes);
    dealt.truncate(nodes as usize);
    dealt.iter_mut().zip(0..).for_each(|(dealt, at)| dealt.tasks = each + u32::from(at < more));
    Ok(dealt)
}

/// First the places for tasks that the job asked for, then its other cores.
fn fill(dealt: &mut Vec<Dealt>, wanted: u32) {
    let mut left = wanted;
    let places = |share: &NodeShare| share.tasks;
    let cores = |share: &NodeShare| u32::try_from(share.cores.len()).unwrap_or(u32::MAX).saturating_sub(share.tasks);
    for room in [&places as &dyn Fn(&NodeShare) -> u32, &cores] {
        for one in dealt.iter_mut() {
            let more = room(one.share).min(left);
            one.tasks += more;
            left -= more;
        }
    }
    dealt.retain(|one| one.tasks > 0);
}

fn limit(message: String) -> Refusal {
    refuse(RefusalCode::LimitReached, message)
}
