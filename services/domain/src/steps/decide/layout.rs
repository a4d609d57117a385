//! The nodes for a step that names none.

use crate::{
    decide::{invalid, refuse},
    jobs::Job,
    runs::Run,
    state::State,
    steps::validate,
};
use muster_schemas::{
    command::{Refusal, RefusalCode},
    resources::{IndexSet, NodeShare},
    steps::{StepGroup, StepPlace, StepProgram, StepSpec},
};

/// The number of tasks of a step on a node, for a component.
struct Dealt<'a> {
    component: u32,
    share: &'a NodeShare,
    /// The maximum number.
    room: u32,
    tasks: u32,
}

/// Gives places of the run to a step whose only group has none.
pub(crate) fn with_places(state: &State, run: &Run, spec: StepSpec) -> Result<StepSpec, Refusal> {
    let [group] = &spec.groups[..] else { return Ok(spec) };
    let Some(job) = state.job(run.job).filter(|_| group.places.is_empty()) else { return Ok(spec) };
    let [program] = &group.programs[..] else {
        return Err(invalid("groups.programs: a group without places has one program"));
    };
    let dealt = lay_out(state, job, run, &spec, group)?;
    // Each component of the job gets a copy of the group.
    validate::carried(&spec, dealt.chunk_by(|one, next| one.component == next.component).count())?;
    let mut groups: Vec<StepGroup> = Vec::new();
    let mut next = 0;
    for Dealt { component, share, tasks, .. } in dealt {
        let ranks = IndexSet::from_range(next, next + tasks - 1);
        next += tasks;
        let cores = spec.overlaps.then(|| u32::try_from(share.cores.len()).unwrap_or(u32::MAX));
        let place = StepPlace { node: state.node_name(share.node).into_owned(), ranks: ranks.clone(), cores };
        let cpus_per_task = cpus_per_task(job, run, group, component);
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

/// The cores per task that the group asks for, else those that the component asked for.
fn cpus_per_task(job: &Job, run: &Run, group: &StepGroup, component: u32) -> u32 {
    if group.cpus_per_task > 0 {
        return group.cpus_per_task;
    }
    let at = component as usize;
    let alternative = run.placement.components.get(at).map_or(0, |placed| placed.alternative as usize);
    let asked = job.components.get(at).and_then(|component| component.shape.alternatives.get(alternative));
    asked.and_then(|asked| asked.requests.first()).map_or(1, |request| request.cpus_per_task.max(1))
}

/// How many tasks of a step go to which node. Without a number of nodes they fill the job's task slots in order; with
/// one they are spread evenly over the first nodes.
fn lay_out<'a>(
    state: &State,
    job: &Job,
    run: &'a Run,
    spec: &StepSpec,
    group: &StepGroup,
) -> Result<Vec<Dealt<'a>>, Refusal> {
    // On a node shared by components, such a step belongs to the first of them.
    let may_use = |component, node| {
        let is_its = run.part(node).is_some_and(|part| part.component == component);
        is_its && run.keeps(node) && job.single_end(component).is_none()
    };
    let shares = run.placement.shares_by_component().filter(|(component, share)| may_use(*component, share.node));
    let mut dealt: Vec<Dealt> = shares
        .map(|(component, share)| {
            let cores = u32::try_from(share.cores.len()).unwrap_or(u32::MAX);
            let in_cores = cores / cpus_per_task(job, run, group, component);
            let room = if spec.overlaps { cores.max(share.tasks) } else { in_cores };
            Dealt { component, share, room, tasks: 0 }
        })
        .collect();
    let most: u64 = dealt.iter().map(|one| u64::from(one.room)).sum();
    let of_job = || dealt.iter().fold(0, |sum: u32, one| sum.saturating_add(one.share.tasks)).max(1);
    let wanted = group.tasks.unwrap_or_else(of_job);
    if wanted == 0 || u64::from(wanted) > most {
        return Err(limit(format!("tasks: {wanted} are wanted, the job has room for {}", room_text(most))));
    }
    let Some(nodes) = group.nodes else {
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
    match dealt.iter().find(|one| one.tasks > one.room) {
        Some(Dealt { share, room, tasks, .. }) => {
            let (node, room) = (state.node_name(share.node), room_text(u64::from(*room)));
            Err(limit(format!("tasks: {tasks} are wanted on node {node}, where the job has room for {room}")))
        }
        None => Ok(dealt),
    }
}

fn room_text(most: u64) -> String {
    if most == 0 { "none".into() } else { format!("1 to {most}") }
}

/// Fills the slots for tasks that the job asked for, then its other cores.
fn fill(dealt: &mut Vec<Dealt>, wanted: u32) {
    let mut left = wanted;
    let places = |one: &Dealt| one.share.tasks.min(one.room);
    let others = |one: &Dealt| one.room.saturating_sub(one.share.tasks);
    for room in [&places as &dyn Fn(&Dealt) -> u32, &others] {
        for one in dealt.iter_mut() {
            let more = room(one).min(left);
            one.tasks += more;
            left -= more;
        }
    }
    dealt.retain(|one| one.tasks > 0);
}

fn limit(message: String) -> Refusal {
    refuse(RefusalCode::LimitReached, message)
}
