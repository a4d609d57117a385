//! Commands that do one thing to each of the jobs that they name. A failure does not keep them from the next job; the
//! exit status is that of the last failure.

use super::{
    ended::{Ended, Failure},
    site::{Site, refused, user_name},
};
use jiff::Zoned;
use muster_cli::stderr_line;
use muster_client::ClientError;
use muster_pbs::{
    job_id::PbsJobId,
    queries::{self, Alteration, Deletion, Signal},
    submit::Reading,
};
use muster_schemas::{
    CommandId, JobId,
    command::{JobFilter, JobSelection},
    event::JobChange,
    job::Holds,
    views::{HoldRequest, JobsRequest, ModifyRequest, ReleaseRequest, RequeueRequest, SignalRequest},
};

/// Runs a command line of one of these commands.
pub fn run(site: &mut Site, tool: &str, words: &[String]) -> Ended {
    match tool {
        "qdel" => delete(site, tool, queries::qdel(words)?),
        "qhold" => {
            let wanted = queries::qhold(words)?;
            each(site, tool, &wanted.jobs, |site, jobs| hold(site, jobs, wanted.holds))
        }
        "qrls" => {
            let wanted = queries::qrls(words)?;
            each(site, tool, &wanted.jobs, |site, jobs| release(site, jobs, wanted.holds))
        }
        "qsig" => {
            let (signal, jobs) = queries::qsig(words)?;
            each(site, tool, &jobs, |site, jobs| send(site, jobs, &signal))
        }
        "qrerun" => {
            let (_, jobs) = queries::qrerun(words)?;
            each(site, tool, &jobs, |site, jobs| {
                let request = RequeueRequest { jobs, hold: false, delay_seconds: 0 };
                site.client.requeue(CommandId::new_now(), &request).map(drop)
            })
        }
        "qmove" => {
            let (destination, jobs) = queries::qmove(words)?;
            let queue =
                destination.queue.ok_or_else(|| Failure::new("a queue is missing: jobs stay at this server"))?;
            let change = JobChange { queue: Some(queue), ..JobChange::default() };
            each(site, tool, &jobs, |site, jobs| modify(site, jobs, change.clone()))
        }
        _ => alter(site, tool, words),
    }
}

/// Does something to each job.
fn each(
    site: &mut Site,
    tool: &str,
    jobs: &[PbsJobId],
    mut act: impl FnMut(&mut Site, JobSelection) -> Result<(), ClientError>,
) -> Ended {
    let mut status = 0;
    for id in jobs {
        let done = site.require_own(id).and_then(|()| {
            let ids: Vec<JobId> = id.jobs().collect();
            act(site, JobSelection::Ids(ids)).map_err(|error| {
                let (text, status) = refused(id, &error);
                Failure { text, status }
            })
        });
        if let Err(Failure { text, status: failed }) = done {
            stderr_line!("{tool}: {text}");
            status = failed;
        }
    }
    Ok(status)
}

fn delete(site: &mut Site, tool: &str, wanted: Deletion) -> Ended {
    if wanted.all {
        let jobs = JobSelection::Matching(JobFilter { user: Some(user_name()), ..JobFilter::default() });
        site.client.cancel(CommandId::new_now(), &JobsRequest { jobs })?;
        return Ok(0);
    }
    each(site, tool, &wanted.jobs, |site, jobs| {
        site.client.cancel(CommandId::new_now(), &JobsRequest { jobs }).map(drop)
    })
}

fn hold(site: &mut Site, jobs: JobSelection, holds: Holds) -> Result<(), ClientError> {
    if holds.is_empty() {
        return Ok(());
    }
    let request = HoldRequest { jobs, holds, reason: "qhold".to_owned() };
    site.client.hold(CommandId::new_now(), &request).map(drop)
}

fn release(site: &mut Site, jobs: JobSelection, holds: Holds) -> Result<(), ClientError> {
    if holds.is_empty() {
        return Ok(());
    }
    site.client.release(CommandId::new_now(), &ReleaseRequest { jobs, holds }).map(drop)
}

fn send(site: &mut Site, jobs: JobSelection, signal: &Signal) -> Result<(), ClientError> {
    let id = CommandId::new_now();
    let done = match signal {
        // Only asks whether the job runs.
        Signal::Number(0) => return Ok(()),
        Signal::Number(signal) => site.client.signal(id, &SignalRequest { jobs, signal: *signal }),
        Signal::Suspend => site.client.suspend(id, &JobsRequest { jobs }),
        Signal::Resume => site.client.resume(id, &JobsRequest { jobs }),
    };
    done.map(drop)
}

fn modify(site: &mut Site, jobs: JobSelection, change: JobChange) -> Result<(), ClientError> {
    site.client.modify(CommandId::new_now(), &ModifyRequest { jobs, change }).map(drop)
}

fn alter(site: &mut Site, tool: &str, words: &[String]) -> Ended {
    let now: Zoned = site.now();
    let reading = Reading { now: &now, flavour: site.flavour, array_limit: u32::MAX };
    let Alteration { settings, letters, holds, jobs } = queries::alteration(words, &reading)?;
    if let Some(letter) = letters.iter().find(|letter| !"aAhlNpqW".contains(**letter)) {
        return Err(Failure::new(format!("-{letter} of a job that is there is not changed here; nothing was changed")));
    }
    let walltime = settings.resources.iter().find(|request| request.name == "walltime");
    let other = settings.resources.iter().find(|request| request.name != "walltime");
    if let Some(other) = other {
        let text = format!("-l {} of a job that is there is not changed here; nothing was changed", other.name);
        return Err(Failure::new(text));
    }
    let walltime_seconds = match walltime {
        None => None,
        Some(request) => {
            let seconds = muster_pbs::value::parse_seconds(&request.value);
            Some(seconds.ok_or_else(|| Failure::new(format!("illegal -l value: walltime={}", request.value)))?)
        }
    };
    let change = JobChange {
        name: settings.name.clone(),
        queue: settings.queue.clone(),
        account: settings.account.clone(),
        priority: settings.priority,
        begin: settings.begin,
        walltime_seconds,
        dependencies: letters.contains(&'W').then(|| settings.dependencies.clone()),
        ..JobChange::default()
    };
    each(site, tool, &jobs, |site, jobs| {
        if !change.is_empty() {
            modify(site, jobs.clone(), change.clone())?;
        }
        match &holds {
            None => Ok(()),
            Some(letters) => set_holds(site, jobs, letters),
        }
    })
}

/// Replaces the holds of jobs by those of the letters.
fn set_holds(site: &mut Site, jobs: JobSelection, letters: &str) -> Result<(), ClientError> {
    let holds = Holds { user: letters.contains('u'), operator: letters.contains('o'), system: letters.contains('s') };
    let others = Holds { user: true, ..Holds::default() }.without(holds);
    release(site, jobs.clone(), others)?;
    hold(site, jobs, holds)
}
