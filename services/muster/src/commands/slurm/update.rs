//! `scontrol update` (SL-C-36, SL-C-38, SL-M-07, SL-M-08).

use super::{
    Ended, shown,
    site::{Site, now},
};
use muster_client::Moment;
use muster_schemas::{
    CommandId,
    command::JobSelection,
    event::JobChange,
    views::{ClassRequest, DrainRequest, ErrorCode, ModifyRequest, ResumeNodesRequest},
};
use muster_slurm::{
    job_id::IdExpression,
    queries::{
        Failure,
        change::{JobUpdate, job_update},
        nodes::{NodeChange, check_node_change, node_change, partition_state},
        update::{Subject, Update},
    },
    select::{Action, Chosen, choose, listed},
};

/// Changes what a command line names.
pub fn run(site: &mut Site, update: &Update) -> Ended {
    match &update.subject {
        Subject::Jobs(ids) => {
            for id in ids {
                job(site, update, id)?;
            }
            Ok(0)
        }
        Subject::Nodes(names) => nodes(site, update, names),
        Subject::Partition(name) => partition(site, update, name),
        Subject::Reservation(_) | Subject::Step(_) => {
            Err(Failure::plain("slurm_update error: muster does not change reservations and steps"))
        }
    }
}

fn job(site: &mut Site, update: &Update, id: &IdExpression) -> Result<(), Failure> {
    let views = site.named(std::slice::from_ref(id))?;
    let records = site.records(views, true)?;
    let Chosen::Targets(targets) = choose(Action::Update, &id.job, &records, false)? else { return Ok(()) };
    let named = listed(&id.job, &records);
    for target in targets {
        let invalid = || Failure::plain(format_args!("Invalid job id specified for job {id}"));
        let detail = site.detail(target.job)?.ok_or_else(invalid)?;
        let offset = target.component.unwrap_or(0);
        let component = detail.spec.components.get(offset as usize).ok_or_else(invalid)?;
        let of_target = |offset_of: Option<u32>| offset_of.unwrap_or(0) == offset;
        let record = named.iter().find(|record| of_target(record.het.as_ref().map(|het| het.offset)));
        let record = record.ok_or_else(invalid)?;
        let asked = job_update(update, record, &component.alternatives, &id.to_string(), &now())?;
        let class = asked.class.clone();
        let change = supported(asked, target.component)?;
        let is_more = change != JobChange { component: target.component, ..JobChange::default() };
        let request = ModifyRequest { jobs: JobSelection::Ids(vec![target.job]), change };
        let done = class.map_or(Ok(()), |class| {
            let jobs = match target.component {
                Some(component) => JobSelection::Component { job: target.job, component },
                None => JobSelection::Ids(vec![target.job]),
            };
            site.client.change_class(CommandId::new_now(), &ClassRequest { jobs, class }).map(drop)
        });
        let done = done.and_then(|()| match is_more {
            true => site.client.modify(CommandId::new_now(), &request).map(drop),
            false => Ok(()),
        });
        done.map_err(|error| match error.code() {
            Some(ErrorCode::NotFound | ErrorCode::PermissionDenied) if error.to_string().contains("class: ") => {
                Failure::plain(format_args!("Invalid qos specification for job {id}"))
            }
            Some(ErrorCode::PermissionDenied) => Failure::plain(format_args!("Access/permission denied for job {id}")),
            Some(_) => Failure::plain(format_args!("{error} for job {id}")),
            None => site.failure(&error),
        })?;
    }
    Ok(())
}

/// What the core can change of a job that was submitted; anything else is refused as a whole.
fn supported(update: JobUpdate, component: Option<u32>) -> Result<JobChange, Failure> {
    let refused = |what: &str| {
        let lines = vec![format!("muster cannot change {what} of a submitted job yet"), "Request aborted".to_owned()];
        Failure { lines, code: 1 }
    };
    if update.reservation.is_some() {
        return Err(refused("the reservation"));
    }
    if update.deadline.is_some() {
        return Err(refused("the deadline"));
    }
    if let Some(name) = update.attributes.keys().next() {
        return Err(refused(&format!("`{name}`")));
    }
    Ok(JobChange { component, ..update.change })
}

fn nodes(site: &mut Site, update: &Update, names: &[String]) -> Ended {
    let nothing = || Failure::plain("muster changes only the state of nodes; nothing was changed");
    let (change, reason) = node_change(update)?.ok_or_else(nothing)?;
    let known = shown::nodes(site)?;
    for name in names {
        let node = known.iter().find(|node| node.name == *name);
        let node = node.ok_or_else(|| Failure::plain("slurm_update error: Invalid node name specified"))?;
        check_node_change(change, node.state)?;
    }
    let (id, nodes) = (CommandId::new_now(), names.to_vec());
    let done = match change {
        NodeChange::Drain | NodeChange::Fail => site.client.drain(id, &DrainRequest { nodes, reason }),
        NodeChange::Resume | NodeChange::Undrain => site.client.resume_nodes(id, &ResumeNodesRequest { nodes }),
        NodeChange::Down => {
            return Err(Failure::plain("muster cannot declare nodes down yet, drain them; nothing was changed"));
        }
    };
    done.map(|_| 0).map_err(|error| site.failure(&error))
}

fn partition(site: &mut Site, update: &Update, name: &str) -> Ended {
    let nothing = || Failure::plain("muster changes only the state of partitions; nothing was changed");
    let state = partition_state(update)?.ok_or_else(nothing)?;
    let mut config = site.client.config(Moment::Now).map_err(|error| site.failure(&error))?;
    let queue = config.queues.iter_mut().find(|queue| queue.name == name);
    let queue = queue.ok_or_else(|| Failure::plain("slurm_update error: Invalid partition name specified"))?;
    (queue.enabled, queue.started) = (state.is_enabled, state.is_started);
    let done = site.client.configure(CommandId::new_now(), &config, true);
    done.map(|_| 0).map_err(|error| site.failure(&error))
}
