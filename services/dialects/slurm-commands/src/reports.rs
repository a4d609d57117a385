//! `sreport`: what the accounting says was used in a time.

use super::{
    Ended,
    forgotten::{details_with_first_tasks, forgotten},
    print,
    site::Site,
    wanted,
};
use muster_client::Moment;
use muster_schemas::usage::{UsageDimension, UsageQuery};
use muster_slurm::{
    queries::{
        Failure,
        sreport::{Report, Sreport, parse},
    },
    show::{
        columns::FormatError,
        sreport::{Cluster, sizes, sreport},
    },
};

/// Runs a command line of `sreport`.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    let request = parse(words, &site.surroundings())?;
    let Some(command) = wanted(site, request) else { return Ok(0) };
    let cluster = cluster(site)?;
    let text = match command.report {
        Report::Sizes => of_jobs(site, &command, &cluster)?,
        _ => of_books(site, &command, &cluster)?,
    };
    print(&text);
    Ok(0)
}

fn cluster(site: &mut Site) -> Result<Cluster, Failure> {
    let name = site.client.config(Moment::Now).map_err(|error| site.failure(&error))?.settings.name;
    let nodes = site.client.nodes(Moment::Now).map_err(|error| site.failure(&error))?.nodes;
    let cpus = nodes.iter().map(|node| u64::from(node.spec.cores)).sum();
    let gpus = nodes.iter().map(|node| node.spec.gpus.len() as u64).sum();
    Ok(Cluster { name, cpus, gpus })
}

fn of_books(site: &mut Site, command: &Sreport, cluster: &Cluster) -> Result<String, Failure> {
    let query = UsageQuery {
        from: Some(command.from),
        to: Some(command.to),
        by: vec![UsageDimension::User, UsageDimension::Account],
        ..UsageQuery::default()
    };
    let used = site.client.usage(&query, Moment::Now).map_err(|error| site.failure(&error))?;
    let no_column = |FormatError(name)| Failure::plain(format_args!(" Unknown field '{name}'"));
    sreport(command, &used.rows, cluster, &site.clock).map_err(no_column)
}

/// The books do not tell jobs apart, so this is about the jobs that `sacct` lists for that time.
fn of_jobs(site: &mut Site, command: &Sreport, cluster: &Cluster) -> Result<String, Failure> {
    let mut views = site.client.all_jobs(None, None, true).map_err(|error| site.failure(&error))?.jobs;
    let forgotten = forgotten(site, (command.from, Some(command.to)), &views)?;
    views.extend(details_with_first_tasks(site, &forgotten, false)?.jobs.into_iter().map(|detail| detail.job));
    views.sort_by_key(|view| view.id);
    views.dedup_by_key(|view| view.id);
    views.retain(|view| view.started.is_some_and(|started| started < command.to));
    views.retain(|view| view.ended.is_none_or(|ended| ended > command.from));
    let jobs = site.records(views, false)?;
    Ok(sizes(command, &jobs, cluster, &site.clock))
}
