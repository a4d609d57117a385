//! Commands that do one thing to each of the jobs that they name. A failure does not keep them from the next job; the
//! exit status is that of the last failure.

use super::{
    ended::{Ended, Failure},
    site::{Site, refused, require_queue, user_name},
};
use jiff::Zoned;
use muster_cli::stderr_line;
use muster_client::{ClientError, Moment};
use muster_pbs::{
    attributes::{Attributes, names},
    job_id::{Part, PbsJobId},
    queries::{self, Deletion, Message, Signal},
    refusal::Refusal,
    submit::{Changed, Present, Reading},
};
use muster_schemas::{
    CommandId, JobId,
    command::{JobEnding, JobFilter, JobSelection},
    event::JobChange,
    job::{Holds, JobState},
    resources::IndexSet,
    views::{
        CopyAheadRequest, EndRequest, HoldRequest, JobsRequest, ModifyRequest, NodeStateWord, ReleaseRequest,
        RequeueRequest, RunJobRequest, SignalRequest, TellRequest,
    },
};

/// Runs a command line of one of these commands.
pub fn run(site: &mut Site, tool: &str, words: &[String]) -> Ended {
    match tool {
        "qdel" => delete(site, tool, queries::qdel(words)?),
        "qhold" => {
            let wanted = queries::qhold(words)?;
            let (jobs, holds) = (with_tasks(wanted.jobs, wanted.tasks.as_deref())?, wanted.holds);
            ask_for_each(site, tool, &jobs, |site, jobs| hold(site, jobs, holds))
        }
        "qrls" => {
            let wanted = queries::qrls(words)?;
            let (jobs, holds) = (with_tasks(wanted.jobs, wanted.tasks.as_deref())?, wanted.holds);
            ask_for_each(site, tool, &jobs, |site, jobs| release(site, jobs, holds))
        }
        "qsig" => {
            let (signal, jobs) = queries::qsig(words)?;
            if signal == Signal::Number(0) {
                return each(site, tool, &jobs, |site, id, _| require_running(site, id));
            }
            ask_for_each(site, tool, &jobs, |site, jobs| send(site, jobs, &signal))
        }
        "qrerun" => {
            let (_, jobs) = queries::qrerun(words)?;
            each(site, tool, &jobs, |site, id, jobs| {
                require_rerunnable(site, id)?;
                let request = RequeueRequest { jobs, hold: false, delay_seconds: 0 };
                site.client.requeue(CommandId::new_now(), &request).map(drop).map_err(|error| failure(id, &error))
            })
        }
        "qmove" => {
            let (destination, jobs) = queries::qmove(words)?;
            let queue =
                destination.queue.ok_or_else(|| Failure::new("a queue is missing: jobs stay at this server"))?;
            destination.server.iter().try_for_each(|server| site.require_server(server))?;
            require_queue(site, &queue)?;
            let change = JobChange { queue: Some(queue), ..JobChange::default() };
            ask_for_each(site, tool, &jobs, |site, jobs| modify(site, jobs, change.clone()))
        }
        "qmsg" => message(site, tool, queries::qmsg(words)?),
        "qrun" => start(site, tool, queries::qrun(words)?),
        "pbs_stagein" => stage_in(site, tool, &queries::pbs_stagein(words)?),
        _ => alter(site, tool, words),
    }
}

/// Sends a message to running jobs. It stands in their standard error.
fn message(site: &mut Site, tool: &str, wanted: Message) -> Ended {
    if wanted.to_output {
        let why = "messages go to the standard error of a job; nothing was sent";
        return Err(Refusal::unsupported("-O", why).into());
    }
    ask_for_each(site, tool, &wanted.jobs, |site, jobs| {
        site.client.tell(CommandId::new_now(), &TellRequest { jobs, text: wanted.text.clone() }).map(drop)
    })
}

/// Has the files of jobs copied ahead of their start (PBS-G-02).
fn stage_in(site: &mut Site, tool: &str, (node, jobs): &(Option<String>, Vec<PbsJobId>)) -> Ended {
    let request = CopyAheadRequest { node: node.clone() };
    each(site, tool, jobs, |site, id, _| {
        let job = id.jobs().next().ok_or_else(|| Failure::new(format!("Unknown Job Id {id}")))?;
        let done = site.client.copy_ahead(CommandId::new_now(), job, &request);
        done.map(drop).map_err(|error| failure(id, &error))
    })
}

/// Starts jobs at once, on these nodes if some are named (PBS-C-09). Nobody waits until they run, so `-a` changes nothing.
fn start(site: &mut Site, tool: &str, (_, nodes, jobs): (bool, Option<String>, Vec<PbsJobId>)) -> Ended {
    let request = RunJobRequest { nodes: nodes.as_deref().map(queries::run_nodes).transpose()?.unwrap_or_default() };
    each(site, tool, &jobs, |site, id, _| {
        for job in id.jobs() {
            let detail = site.client.job(job, Moment::Now).map_err(|error| failure(id, &error))?;
            if !matches!(detail.job.state, JobState::Held | JobState::Queued) {
                let text = format!("Request invalid for state of job {id}");
                return Err(Failure { text, status: 168 });
            }
            site.client.run_job(CommandId::new_now(), job, &request).map_err(|error| failure(id, &error))?;
        }
        Ok(())
    })
}

/// Does to each job what the client is asked for.
fn ask_for_each(
    site: &mut Site,
    tool: &str,
    jobs: &[PbsJobId],
    mut ask: impl FnMut(&mut Site, JobSelection) -> Result<(), ClientError>,
) -> Ended {
    each(site, tool, jobs, |site, id, jobs| ask(site, jobs).map_err(|error| failure(id, &error)))
}

fn failure(id: &PbsJobId, error: &ClientError) -> Failure {
    let (text, status) = refused(id, error);
    Failure { text, status }
}

/// Does something to each job.
fn each(
    site: &mut Site,
    tool: &str,
    jobs: &[PbsJobId],
    mut act: impl FnMut(&mut Site, &PbsJobId, JobSelection) -> Result<(), Failure>,
) -> Ended {
    let mut status = 0;
    for id in jobs {
        let known = site.require_own(id).and_then(|()| site.require_whole(id));
        let done = known.and_then(|()| act(site, &site.in_full(id), JobSelection::Ids(id.jobs().collect())));
        if let Err(Failure { text, status: failed }) = done {
            stderr_line!("{tool}: {text}");
            status = failed;
        }
    }
    Ok(status)
}

fn delete(site: &mut Site, tool: &str, wanted: Deletion) -> Ended {
    if wanted.history {
        stderr_line!("{tool}: warning: to delete the history of a job has no effect here: the log keeps all jobs");
    }
    let is_forced = wanted.force || wanted.delay_seconds == Some(0);
    let ending = JobEnding {
        is_forced,
        grace_seconds: wanted.delay_seconds.filter(|_| !is_forced),
        message: wanted.message.clone().unwrap_or_default(),
        ..JobEnding::default()
    };
    if wanted.all {
        let jobs = JobSelection::Matching(JobFilter { user: Some(user_name()), ..JobFilter::default() });
        site.client.end_jobs(CommandId::new_now(), &EndRequest { jobs, ending })?;
        return Ok(0);
    }
    let jobs = with_tasks(wanted.jobs, wanted.tasks.as_deref())?;
    each(site, tool, &jobs, |site, id, jobs| {
        let gives_up = wanted.force && is_left_by_nodes(site, id).map_err(|error| failure(id, &error))?;
        let ending = if gives_up { JobEnding { gives_up, ..JobEnding::default() } } else { ending.clone() };
        end(site, id, jobs, &ending).map_err(|error| failure(id, &error))
    })
}

/// Ends a job. Tasks of a range that are over keep nobody from ending the others.
fn end(site: &mut Site, id: &PbsJobId, jobs: JobSelection, ending: &JobEnding) -> Result<(), ClientError> {
    let jobs = match &id.part {
        Part::Tasks(indices) => JobSelection::Tasks { job: JobId::job(id.number), indices: indices.clone() },
        _ => jobs,
    };
    site.client.end_jobs(CommandId::new_now(), &EndRequest { jobs, ending: ending.clone() }).map(drop)
}

/// Whether a job is being ended already, and one of its nodes does not report. Such a job is over without its nodes if it is
/// deleted by force (OAR-S-24).
fn is_left_by_nodes(site: &mut Site, id: &PbsJobId) -> Result<bool, ClientError> {
    let Some(job) = id.jobs().next().filter(|_| id.part == Part::Job) else { return Ok(false) };
    let view = site.client.job(job, Moment::Now)?.job;
    if view.state != JobState::Finishing {
        return Ok(false);
    }
    let nodes = site.client.nodes(Moment::Now)?.nodes;
    let is_silent = |state| matches!(state, NodeStateWord::Lost | NodeStateWord::Unknown);
    Ok(nodes.iter().any(|node| is_silent(node.state) && view.nodes.contains(&node.spec.name)))
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
        Signal::Number(signal) => site.client.signal(id, &SignalRequest { jobs, signal: *signal }),
        Signal::Suspend => site.client.suspend(id, &JobsRequest { jobs }),
        Signal::Resume => site.client.resume(id, &JobsRequest { jobs }),
    };
    done.map(drop)
}

/// Requires that a job was not submitted with `-r n`.
fn require_rerunnable(site: &mut Site, id: &PbsJobId) -> Result<(), Failure> {
    let Some(job) = id.jobs().next() else { return Ok(()) };
    let detail = site.client.job(job.whole(), Moment::Now).map_err(|error| failure(id, &error))?;
    match Attributes(&detail.spec.attributes).get(names::RERUNABLE) {
        Some("False") => Err(Failure { text: format!("Job not rerunable {id}"), status: 168 }),
        _ => Ok(()),
    }
}

/// Signal 0 is not sent: it asks whether the job runs.
fn require_running(site: &mut Site, id: &PbsJobId) -> Result<(), Failure> {
    for job in id.jobs() {
        let view = site.client.job(job, Moment::Now).map_err(|error| failure(id, &error))?.job;
        if view.state != JobState::Running {
            return Err(Failure { text: format!("Request invalid for state of job {id}"), status: 168 });
        }
    }
    Ok(())
}

/// The identifiers with the tasks of TORQUE's `-t`: of each array only these are meant.
fn with_tasks(jobs: Vec<PbsJobId>, tasks: Option<&str>) -> Result<Vec<PbsJobId>, Failure> {
    let Some(text) = tasks else { return Ok(jobs) };
    let wrong = || Failure { text: format!("illegal -t value: `{text}`: expected such as 3 or 0-4,7"), status: 2 };
    let indices: IndexSet = text.parse().map_err(|_| wrong())?;
    let narrowed = jobs.into_iter().map(|id| match id.part {
        Part::Job | Part::Array if !indices.is_empty() => Ok(PbsJobId { part: Part::Tasks(indices.clone()), ..id }),
        _ => Err(wrong()),
    });
    narrowed.collect()
}

fn modify(site: &mut Site, jobs: JobSelection, change: JobChange) -> Result<(), ClientError> {
    site.client.modify(CommandId::new_now(), &ModifyRequest { jobs, change }).map(drop)
}

fn alter(site: &mut Site, tool: &str, words: &[String]) -> Ended {
    let now: Zoned = site.now();
    let reading = Reading { now: &now, flavour: site.flavour, array_limit: u32::MAX };
    let alteration = queries::alteration(words, &reading)?;
    let rules = site.rules(&alteration.settings)?;
    let directory = std::env::current_dir().ok().and_then(|path| path.into_os_string().into_string().ok());
    let directory = directory.ok_or_else(|| Failure::new("cannot tell the working directory"))?;
    each(site, tool, &alteration.jobs, |site, id, jobs| {
        let job = id.jobs().next().ok_or_else(|| Failure::new(format!("Unknown Job Id {id}")))?;
        let detail = site.client.job(job.whole(), Moment::Now).map_err(|error| failure(id, &error))?;
        let present = Present {
            spec: &detail.spec,
            owner: &detail.job.owner,
            directory: &directory,
            is_folder: |path| std::path::Path::new(path).is_dir(),
        };
        let Changed { change, warnings } = queries::change(&alteration, &present, &rules)?;
        warnings.iter().for_each(|warning| stderr_line!("{tool}: {warning}"));
        if !change.is_empty() {
            modify(site, jobs.clone(), change).map_err(|error| failure(id, &error))?;
        }
        match &alteration.holds {
            None => Ok(()),
            Some(letters) => set_holds(site, jobs, letters).map_err(|error| failure(id, &error)),
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
