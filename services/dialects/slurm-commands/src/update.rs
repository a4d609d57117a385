//! `scontrol update` (SL-C-36, SL-C-38, SL-M-07, SL-M-08).

use super::{
    Ended, partition, print, reservation, shown,
    site::{Site, now, variable},
};
use crate::holds::{holds_of, released};
use muster_cli::stderr_line;
use muster_client::{ClientError, Moment};
use muster_schemas::{
    CommandId, JobId, StepId,
    cluster::{ClusterChange, NodeSpecChange},
    command::JobSelection,
    event::JobChange,
    job::{Holds, JobState},
    resources::{NodeSpec, PropertyValue},
    views::{
        ClassRequest, DrainRequest, ErrorCode, HoldRequest, JobDetail, JobView, ModifyRequest, ReleaseRequest,
        ResumeNodesRequest, ShrinkRequest, StepWalltimeRequest,
    },
};
use muster_slurm::{
    job_id::{IdExpression, StepName},
    queries::{
        Failure,
        change::{JobUpdate, Part, job_updates},
        nodes::{NodeChange, check_node_change, node_change, node_features, node_reason, node_weight},
        resize,
        steps::step_limit,
        update::{Subject, Update},
    },
    select::{Action, Chosen, Target, choose, listed},
    show::record::JobRecord,
};
use std::{
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
};

/// Makes the changes of a command line.
pub fn run(site: &mut Site, update: &Update) -> Ended {
    match &update.subject {
        Subject::Jobs(ids) => {
            for id in ids {
                job(site, update, id)?;
            }
            Ok(0)
        }
        Subject::Nodes(names) => nodes(site, update, names),
        Subject::Partition(name) => partition::change(site, update, name),
        Subject::Reservation(name) => reservation::change(site, update, name.as_deref()),
        Subject::Step(id) => step(site, update, id),
    }
}

/// Gives a running step another time limit: it is the only thing of a step that Slurm changes.
fn step(site: &mut Site, update: &Update, id: &IdExpression) -> Ended {
    let refused = |text: &str| Failure::plain(format_args!("slurm_update error: {text}"));
    let unknown = || refused("Invalid job id specified");
    // The script and what an administrator sees as steps beside it have the limit of their job.
    let Some(StepName::Number(number)) = id.step else { return Err(unknown()) };
    let view = site.named(std::slice::from_ref(id))?.into_iter().next().ok_or_else(unknown)?;
    let job = id.job.single().filter(|job| job.index.is_some()).unwrap_or(view.id);
    let step = StepId(number.saturating_add(1));
    let steps = site.client.steps(job, Moment::Now).map_err(|error| site.failure(&error))?.steps;
    let known = steps.iter().find(|known| known.step == step && known.ended.is_none()).ok_or_else(unknown)?;
    let walltime_seconds = step_limit(update, known.walltime_seconds)?;
    let request = StepWalltimeRequest { walltime_seconds };
    let done = site.client.set_step_walltime(CommandId::new_now(), job, step, &request);
    done.map(|_| 0).map_err(|error| match error.code() {
        Some(ErrorCode::PermissionDenied) => refused("Access/permission denied"),
        Some(ErrorCode::NotFound) => unknown(),
        Some(_) => refused(&error.to_string()),
        None => site.failure(&error),
    })
}

fn job(site: &mut Site, update: &Update, id: &IdExpression) -> Result<(), Failure> {
    let views = site.named(std::slice::from_ref(id))?;
    let records = site.records(views, true)?;
    let Chosen::Targets(targets) = choose(Action::Update, &id.job, &records, false)? else { return Ok(()) };
    let named = listed(&id.job, &records);
    for target in targets {
        let invalid = || Failure::plain(format_args!("Invalid job id specified for job {id}"));
        let detail = site.detail(target.job)?.ok_or_else(invalid)?;
        let parts = parts(target, &detail, &named).ok_or_else(invalid)?;
        let mut changes = job_updates(update, &parts, &id.to_string(), &now())?;
        wait_no_longer(&mut changes, site.parameters()?.most_switch_wait_seconds);
        if changes.iter().any(|(_, asked)| asked.needs_operator) && !site.is_operator()? {
            return Err(Failure::plain(format_args!("Access/permission denied for job {id}")));
        }
        for (component, asked) in changes {
            let is_own = detail.job.owner == site.caller()?;
            if let Some(kept) = &asked.kept {
                shrink(site, id, &detail, &ShrinkRequest { component, ..kept.clone() })?;
            }
            carry_out(site, Target { component, ..target }, asked, &detail, is_own)
                .map_err(|error| refusal(site, id, &error))?;
        }
    }
    Ok(())
}

/// Jobs wait for few switches no longer than the site lets them.
fn wait_no_longer(changes: &mut [(Option<u32>, JobUpdate)], most_seconds: u64) {
    let asked = changes.iter_mut().filter_map(|(_, update)| update.change.alternatives.as_mut()).flatten();
    for few in asked.filter_map(|alternative| alternative.groups.as_mut()) {
        few.wait_seconds = few.wait_seconds.min(most_seconds);
    }
}

/// Makes a running job smaller, and writes the files that give a shell in a job the variables of its new size.
fn shrink(site: &mut Site, id: &IdExpression, detail: &JobDetail, kept: &ShrinkRequest) -> Result<(), Failure> {
    let job = detail.job.id;
    site.client.shrink(CommandId::new_now(), job, kept).map_err(|error| refusal(site, id, &error))?;
    // Outside of a job there are no variables to replace, and those of components are not about one of them.
    if variable("SLURM_JOBID").is_none() || detail.spec.components.len() > 1 {
        return Ok(());
    }
    let Some(detail) = site.detail(job)? else { return Ok(()) };
    let Some(run) = detail.runs.iter().rev().find(|run| run.ended.is_none()) else { return Ok(()) };
    let nodes: Vec<(String, u64)> = run.nodes.iter().map(|node| (node.node.clone(), node.cores.len())).collect();
    let files = resize::files(detail.job.own_number(), &nodes, |name| variable(name).is_some());
    for (name, text) in [&files.csh, &files.sh] {
        if let Err(error) = write_program(name, text) {
            stderr_line!("Could not create file {name}: {error}");
            return Ok(());
        }
    }
    print(&files.advice());
    Ok(())
}

/// Writes a file that its owner can execute, in place of an older one.
fn write_program(name: &str, text: &str) -> io::Result<()> {
    match std::fs::remove_file(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o700).open(name)?;
    file.write_all(text.as_bytes())
}

/// The parts of a target: all components of a heterogeneous job, else one.
fn parts<'a>(target: Target, detail: &'a JobDetail, records: &'a [JobRecord]) -> Option<Vec<Part<'a>>> {
    let components = &detail.spec.components;
    let part = |offset: u32, component| {
        let is_its = |record: &&JobRecord| record.het.as_ref().map_or(0, |het| het.offset) == offset;
        let record = records.iter().find(is_its)?;
        Some(Part { component, record, alternatives: &components.get(offset as usize)?.alternatives })
    };
    match target.component {
        Some(offset) => Some(vec![part(offset, Some(offset))?]),
        None if components.len() < 2 => Some(vec![part(0, None)?]),
        None => (0..).take(components.len()).map(|offset| part(offset, Some(offset))).collect(),
    }
}

/// Requests the changes of a job or component.
fn carry_out(
    site: &mut Site,
    target: Target,
    asked: JobUpdate,
    detail: &JobDetail,
    is_own: bool,
) -> Result<(), ClientError> {
    let Target { job, component } = target;
    let jobs = || match component {
        Some(component) => JobSelection::Component { job, component },
        None => JobSelection::Ids(vec![job]),
    };
    if let Some(class) = &asked.class {
        let request = ClassRequest { jobs: jobs(), class: class.clone() };
        site.client.change_class(CommandId::new_now(), &request)?;
    }
    match asked.hold {
        Some(true) => {
            let holds = Holds { user: is_own, operator: !is_own, ..Holds::default() };
            let request = HoldRequest { jobs: jobs(), holds, reason: String::new() };
            site.client.hold(CommandId::new_now(), &request)?;
        }
        Some(false) => {
            let holds = released(holds_of(std::slice::from_ref(&detail.job), target), is_own);
            site.client.release(CommandId::new_now(), &ReleaseRequest { jobs: jobs(), holds })?;
        }
        None => {}
    }
    let change = asked.in_components(component, detail.spec.components.len());
    if change.is_empty() && (asked.class.is_some() || asked.hold.is_some() || asked.kept.is_some()) {
        return Ok(());
    }
    let request = ModifyRequest { jobs: JobSelection::Ids(vec![job]), change };
    site.client.modify(CommandId::new_now(), &request).map(drop)
}

/// Why a job was not changed, in Slurm's words if it has some (SL-M-08, SL-C-09).
fn refusal(site: &Site, id: &IdExpression, error: &ClientError) -> Failure {
    let says = |text: &str| error.to_string().contains(text);
    let text = match error.code() {
        None => return site.failure(error),
        Some(ErrorCode::NotFound | ErrorCode::PermissionDenied) if says("reservation `") => {
            "Requested reservation is invalid"
        }
        Some(ErrorCode::NotFound | ErrorCode::PermissionDenied) if says("class: ") => "Invalid qos specification",
        Some(ErrorCode::PermissionDenied) => "Access/permission denied",
        Some(ErrorCode::NotFound) if says("queue `") => "Invalid partition name specified",
        Some(ErrorCode::NotFound) => "Job dependency problem",
        // Slurm has no more words for it, so the reason follows in a line of its own.
        Some(ErrorCode::Conflict | ErrorCode::Invalid) if says("cannot grow") || says("nodes: is 0") => {
            let first = format!("Node count specification invalid for job {id}");
            return Failure { lines: vec![first, error.to_string()], code: 1 };
        }
        Some(ErrorCode::Conflict) if says("no longer waits") => "Job is no longer pending execution",
        Some(ErrorCode::Conflict) if says("is over") => "Job/step already completing or completed",
        Some(ErrorCode::Invalid) if says("deadline") => "Invalid time specified",
        Some(ErrorCode::Invalid) if says("licence") => "Invalid license specification",
        Some(ErrorCode::Invalid) if says("asks for node `") => "Invalid node name specified",
        Some(ErrorCode::Invalid) if says("can never run") => "Requested node configuration is not available",
        Some(_) => return Failure::plain(format_args!("{error} for job {id}")),
    };
    Failure::plain(format_args!("{text} for job {id}"))
}

/// `scontrol top`: moves jobs before the others that wait. A user who is not an operator moves them before the user's
/// own others, if the site allows it (`enable_user_top`): these go back by one, so that no other user waits longer
/// (SL-C-33).
pub fn top(site: &mut Site, ids: &[IdExpression]) -> Ended {
    let is_operator = site.is_operator()?;
    if !is_operator && !site.parameters()?.enable_user_top {
        return Err(failed_top(ids, "Access/permission denied"));
    }
    let user = site.caller()?;
    let waiting = site.current((!is_operator).then_some(user.as_str()), None, false)?;
    let waiting: Vec<JobView> = waiting.into_iter().filter(waits).collect();
    let mut chosen = Vec::new();
    for id in ids {
        let views = site.named(std::slice::from_ref(id))?;
        let view = views.into_iter().next().ok_or_else(|| failed_top(ids, "Invalid job id specified"))?;
        if !waits(&view) {
            return Err(failed_top(ids, "Job is no longer pending execution"));
        }
        if !is_operator && view.owner != user {
            return Err(failed_top(ids, "Access/permission denied"));
        }
        chosen.push(view.id);
    }
    for (priority, jobs) in order(&waiting, &chosen, is_operator) {
        let change = JobChange { priority: Some(priority), ..JobChange::default() };
        let request = ModifyRequest { jobs: JobSelection::Ids(jobs), change };
        let done = site.client.modify(CommandId::new_now(), &request);
        done.map_err(|error| site.failure(&error))?;
    }
    Ok(0)
}

fn failed_top(ids: &[IdExpression], text: &str) -> Failure {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    Failure::plain(format_args!("{text} for job {}", ids.join(",")))
}

fn waits(view: &JobView) -> bool {
    matches!(view.state, JobState::Held | JobState::Queued)
}

/// The priorities that move the chosen jobs, in order, before the others that wait.
fn order(waiting: &[JobView], chosen: &[JobId], is_operator: bool) -> Vec<(i64, Vec<JobId>)> {
    let highest = waiting.iter().map(|view| view.priority).max().unwrap_or(0);
    let count = i64::try_from(chosen.len()).unwrap_or(i64::MAX);
    if is_operator {
        let priorities = (1..=count).rev().map(|place| highest.saturating_add(place));
        return priorities.zip(chosen).map(|(priority, job)| (priority, vec![*job])).collect();
    }
    let first_of_others = highest.saturating_sub(count);
    let others = waiting.iter().filter(|view| view.priority > first_of_others && !chosen.contains(&view.id));
    let others: Vec<JobId> = others.map(|view| view.id).collect();
    let own =
        (0..count).map(|place| highest.saturating_sub(place)).zip(chosen).map(|(priority, job)| (priority, vec![*job]));
    let back = (!others.is_empty()).then_some((first_of_others, others));
    own.chain(back).collect()
}

fn nodes(site: &mut Site, update: &Update, names: &[String]) -> Ended {
    let known = shown::nodes(site)?;
    let is_known = |name: &String| known.iter().any(|node| node.name == *name);
    if !names.iter().all(is_known) {
        return Err(Failure::plain("slurm_update error: Invalid node name specified"));
    }
    let (state, features, weight) = (node_change(update)?, node_features(update)?, node_weight(update)?);
    let reason = node_reason(update).filter(|_| state.is_none());
    if state.is_none() && features.is_none() && weight.is_none() && reason.is_none() {
        return Err(Failure::plain("No changes specified"));
    }
    let reasoned = reason.map(|reason| with_reason(site, names, reason)).transpose()?.unwrap_or_default();
    if let Some((change, _)) = &state {
        for node in known.iter().filter(|node| names.contains(&node.name)) {
            check_node_change(*change, node.state)?;
        }
    }
    if features.is_some() || weight.is_some() {
        set_properties(site, names, features.as_deref(), weight)?;
    }
    for request in reasoned {
        let done = site.client.drain(CommandId::new_now(), &request);
        done.map_err(|error| site.failure(&error))?;
    }
    let Some((change, reason)) = state else { return Ok(0) };
    let (id, nodes) = (CommandId::new_now(), names.to_vec());
    let done = match change {
        NodeChange::Drain | NodeChange::Fail | NodeChange::Down => {
            let is_down = change == NodeChange::Down;
            site.client.drain(id, &DrainRequest { nodes, reason, is_down })
        }
        NodeChange::Resume | NodeChange::Undrain => site.client.resume_nodes(id, &ResumeNodesRequest { nodes }),
    };
    done.map(|_| 0).map_err(|error| site.failure(&error))
}

/// What gives nodes that are out of service another reason, and leaves them as they are otherwise.
fn with_reason(site: &mut Site, names: &[String], reason: String) -> Result<Vec<DrainRequest>, Failure> {
    let page = site.client.nodes(Moment::Now).map_err(|error| site.failure(&error))?;
    let (mut down, mut drained) = (Vec::new(), Vec::new());
    for node in page.nodes.iter().filter(|node| names.contains(&node.spec.name)) {
        if node.taken_out.is_none() {
            let text = "is not out of service, and muster keeps no reasons of other nodes; nothing was changed";
            return Err(Failure::plain(format_args!("slurm_update error: node {} {text}", node.spec.name)));
        }
        let list = if node.is_down { &mut down } else { &mut drained };
        list.push(node.spec.name.clone());
    }
    let request = |(nodes, is_down)| DrainRequest { nodes, reason: reason.clone(), is_down };
    Ok([(down, true), (drained, false)].into_iter().filter(|(nodes, _)| !nodes.is_empty()).map(request).collect())
}

/// Gives nodes these features in place of those that they have, and this weight. Their other properties stay.
fn set_properties(
    site: &mut Site,
    names: &[String],
    features: Option<&[String]>,
    weight: Option<i64>,
) -> Result<(), Failure> {
    let config = site.client.config(Moment::Now).map_err(|error| site.failure(&error))?;
    let changed = config.nodes.iter().filter(|spec| names.contains(&spec.name)).map(|spec| {
        let mut properties = spec.properties.clone();
        if let Some(features) = features {
            properties.retain(|_, value| *value != PropertyValue::Flag(true));
            properties.extend(features.iter().map(|name| (name.clone(), PropertyValue::Flag(true))));
        }
        if let Some(weight) = weight {
            properties.insert(NodeSpec::WEIGHT.to_owned(), PropertyValue::Number(weight));
        }
        NodeSpecChange { name: spec.name.clone(), properties: Some(properties), ..Default::default() }
    });
    let change = ClusterChange { nodes: changed.collect(), ..ClusterChange::default() };
    site.client.configure(CommandId::new_now(), &change, true).map(drop).map_err(|error| site.failure(&error))
}
