//! `qstat`.

use super::{
    ended::{Ended, Failure, print},
    site::{Site, host, refused, require_queue, unknown, unknown_queue, version},
};
use muster_cli::stderr_line;
use muster_client::{JobQuery, Moment};
use muster_pbs::{
    flavour::Flavour,
    job_id::PbsJobId,
    queries::{Destination, Format, Mode, Operand, StatRequest, is_listed, printjob, qstat},
    show::{self, Alternate, Header, List, Status},
};
use muster_schemas::{
    JobId,
    job::JobState,
    views::{JobDetail, JobView},
};
use std::collections::BTreeSet;

/// How many jobs are asked for in one request when all attributes are shown.
const DETAILS_AT_A_TIME: usize = 500;

/// Runs a command line of `qstat`.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    let request = qstat(words, site.flavour)?;
    if request.version {
        print(&format!("pbs_version = {}\n", version()));
        return Ok(0);
    }
    match request.mode {
        Mode::Jobs => jobs(site, &request),
        Mode::Queues => queues(site, &request),
        Mode::Servers => servers(site, &request),
    }
}

/// `printjob`: what is kept of jobs.
pub fn print_jobs(site: &mut Site, words: &[String]) -> Ended {
    let (brief, jobs) = printjob(words)?;
    let mut status = 0;
    for id in &jobs {
        match site.require_own(id).and_then(|()| detail_of(site, id)) {
            Ok(detail) => print(&show::printed(&show::of_detail(&detail, &site.sources()), &site.zone, !brief)),
            Err(Failure { text, status: failed }) => {
                stderr_line!("printjob: {text}");
                status = failed;
            }
        }
    }
    Ok(status)
}

fn detail_of(site: &mut Site, id: &PbsJobId) -> Result<JobDetail, Failure> {
    let job = id.single().ok_or_else(|| Failure::new(format_args!("{id} names several jobs; name one")))?;
    let detail = site.client.job(job, Moment::Now).map_err(|error| {
        let (text, status) = refused(id, &error);
        Failure { text, status }
    })?;
    if detail.job.id == job { Ok(detail) } else { Err(unknown(id)) }
}

/// Jobs to show, and the exit status for those that are not there.
struct Found {
    views: Vec<JobView>,
    status: u8,
}

fn jobs(site: &mut Site, request: &StatRequest) -> Ended {
    let mut found = find(site, request)?;
    found.views.retain(|view| is_listed(view, request, site.flavour));
    if matches!(request.format, Format::List) && !request.percent {
        print(&show::list_of_views(&found.views, &layout(site, request), &site.sources()));
        // To give back each part of very many jobs takes longer than the end of the process, which does so at once.
        std::mem::forget(found.views);
        return Ok(found.status);
    }
    let statuses = detailed(site, &found.views)?;
    print(&shown(site, request, &statuses));
    Ok(found.status)
}

fn layout(site: &Site, request: &StatRequest) -> List<'static> {
    List { flavour: site.flavour, wide: request.wide, percent: request.percent, comment: None }
}

fn find(site: &mut Site, request: &StatRequest) -> Result<Found, Failure> {
    let states = match includes_ended(request, site.flavour) {
        true => JobState::ALL.to_vec(),
        false => Vec::new(),
    };
    let mut found = Found { views: Vec::new(), status: 0 };
    if request.operands.is_empty() {
        let user = only(&request.users);
        found.views = site.client.all_jobs(user.as_deref(), None, !states.is_empty())?.jobs;
        return Ok(found);
    }
    for operand in &request.operands {
        match operand {
            Operand::Destination(Destination { queue, server }) => {
                server.iter().try_for_each(|server| site.require_server(server))?;
                let user = only(&request.users);
                let query = JobQuery { queue: queue.clone(), user, states: states.clone(), ..JobQuery::default() };
                let jobs = site.client.jobs(&query)?.jobs;
                if jobs.is_empty() {
                    queue.iter().try_for_each(|queue| require_queue(site, queue))?;
                }
                found.views.extend(jobs);
            }
            Operand::Job(id) => named(site, request, id, &mut found)?,
        }
    }
    Ok(found)
}

/// The only user that is asked for, whom the gateway selects by.
fn only(users: &[String]) -> Option<String> {
    match users {
        [only] => Some(only.clone()),
        _ => None,
    }
}

/// TORQUE shows jobs that are over until it forgets them.
fn includes_ended(request: &StatRequest, flavour: Flavour) -> bool {
    request.history || (flavour == Flavour::Torque && !request.without_complete)
}

fn named(site: &mut Site, request: &StatRequest, id: &PbsJobId, found: &mut Found) -> Result<(), Failure> {
    let mut tell = |text: String, status: u8| {
        stderr_line!("qstat: {text}");
        found.status = status;
    };
    if let Err(Failure { text, status }) = site.require_own(id) {
        tell(text, status);
        return Ok(());
    }
    let ids: Vec<JobId> = id.jobs().collect();
    let answer = site.client.jobs(&JobQuery { ids: ids.clone(), ..JobQuery::default() });
    let views = match answer {
        Ok(page) => page.jobs,
        Err(error) => {
            let (text, status) = refused(&site.in_full(id), &error);
            tell(text, status);
            return Ok(());
        }
    };
    let asked: Vec<JobView> = views.into_iter().filter(|view| ids.contains(&view.id) || request.tasks).collect();
    let is_over = |view: &JobView| view.state == JobState::Finished;
    match asked.as_slice() {
        [] => {
            let Failure { text, status } = unknown(&site.in_full(id));
            tell(text, status);
        }
        all if all.iter().all(is_over) && !includes_ended(request, site.flavour) => {
            tell(
                format!("{} Job has finished, use -x or -H to obtain historical job information", site.in_full(id)),
                35,
            );
        }
        _ => found.views.extend(asked),
    }
    Ok(())
}

/// The jobs with all their attributes. One that has gone meanwhile is left out.
fn detailed(site: &mut Site, views: &[JobView]) -> Result<Vec<Status>, Failure> {
    let mut details: Vec<JobDetail> = Vec::new();
    for some in views.chunks(DETAILS_AT_A_TIME) {
        let ids: Vec<JobId> = some.iter().map(|view| view.id).collect();
        details.extend(site.client.job_details(&ids, false)?.jobs);
    }
    let asked: BTreeSet<JobId> = views.iter().map(|view| view.id).collect();
    let sources = site.sources();
    Ok(details
        .iter()
        .filter(|detail| asked.contains(&detail.job.id))
        .map(|detail| show::of_detail(detail, &sources))
        .collect())
}

fn shown(site: &Site, request: &StatRequest, jobs: &[Status]) -> String {
    let now = site.now();
    match &request.format {
        Format::List => show::list(jobs, &layout(site, request)),
        Format::Alternate => show::alternate(
            jobs,
            &Alternate {
                flavour: site.flavour,
                server: &site.server,
                comment: None,
                nodes: request.nodes,
                comments: request.comments,
                one_line: request.one_line,
                wide: request.wide,
                estimates: request.estimates,
                units: request.units,
                now: &now,
            },
        ),
        _ => full(site, request, jobs),
    }
}

fn full(site: &Site, request: &StatRequest, things: &[Status]) -> String {
    let version = version();
    match &request.format {
        Format::Dsv(delimiter) => show::dsv(things, &site.zone, delimiter),
        Format::Json => {
            let header = Header { now: site.sources().now, version: &version, server: &site.server };
            show::json(things, &site.zone, &header)
        }
        Format::Xml => show::xml(things),
        _ => show::text(things, &site.zone, request.wide),
    }
}

/// The names in the operands, if there are any.
fn wanted_names(request: &StatRequest) -> BTreeSet<&str> {
    let queues = request.operands.iter().filter_map(|operand| match operand {
        Operand::Destination(Destination { queue, .. }) => queue.as_deref(),
        Operand::Job(_) => None,
    });
    queues.collect()
}

/// Queues and servers are those of this server.
fn require_servers(site: &Site, request: &StatRequest) -> Result<(), Failure> {
    let servers = request.operands.iter().filter_map(|operand| match operand {
        // A name without an at sign is that of a server if servers are asked for.
        Operand::Destination(Destination { queue: Some(name), server: None }) if request.mode == Mode::Servers => {
            Some(name)
        }
        Operand::Destination(Destination { server, .. }) => server.as_ref(),
        Operand::Job(_) => None,
    });
    servers.into_iter().try_for_each(|server| site.require_server(server))
}

fn queues(site: &mut Site, request: &StatRequest) -> Ended {
    require_servers(site, request)?;
    let page = site.client.queues(Moment::Now)?;
    let wanted = wanted_names(request);
    if let Some(unknown) = wanted.iter().find(|name| !page.queues.iter().any(|queue| queue.spec.name == **name)) {
        return Err(unknown_queue(unknown));
    }
    let is_wanted = |name: &str| wanted.is_empty() || wanted.contains(name);
    let views = page.queues.iter().filter(|view| is_wanted(&view.spec.name));
    let statuses: Vec<Status> = views.map(|view| show::of_queue(view, site.flavour)).collect();
    let text = match request.format {
        Format::Alternate => show::queue_limits(&statuses, &site.server, site.flavour),
        Format::List => show::queues(&statuses, site.flavour),
        _ => full(site, request, &statuses),
    };
    print(&text);
    Ok(0)
}

fn servers(site: &mut Site, request: &StatRequest) -> Ended {
    require_servers(site, request)?;
    let config = site.client.config(Moment::Now)?;
    let info = site.client.info(Moment::Now)?;
    let missing = site.missing_policy()?;
    let (host, version) = (host(), version());
    let facts = site.server_facts(&config, (&info.jobs, info.held_until), &host, &version, missing.as_deref());
    let status = [show::of_server(&facts, site.flavour)];
    let text = match request.format {
        Format::List | Format::Alternate => show::servers(&status, site.flavour),
        _ => full(site, request, &status),
    };
    print(&text);
    Ok(0)
}
