//! `sacct` (SL-A-02 to A-11).

use super::{
    Ended,
    forgotten::{details_with_first_tasks, forgotten},
    print, shown,
    site::{Site, number, was_refused},
    wanted,
};
use muster_client::Moment;
use muster_schemas::{
    JobId,
    views::{JobDetail, JobView, StepDetail},
};
use muster_slurm::{
    job_id::IdExpression,
    queries::{
        Failure, Request,
        sacct::{Sacct, Submitted, parse},
    },
    select::of_accounting,
    show::{
        record::{ArrayTasks, of_detail},
        sacct::{Beside, Row, choose, document, environment_of, field_names, list, rows, script_of},
        sacctmgr::association_of,
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Runs a command line of `sacct`.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    let request = parse(words, &site.surroundings())?;
    let Some(command) = wanted(site, request) else { return Ok(0) };
    if command.field_names {
        print(&field_names());
        return Ok(0);
    }
    if let Some(submitted) = command.submitted {
        print(&submissions(site, &command.ids, submitted)?);
        return Ok(0);
    }
    let rows = of_accounting(&command.ids, all_rows(site, &command)?, command.whole_hetjob);
    let text = match command.data {
        Some(format) => {
            let chosen = choose(rows, &command.wanted);
            site.with_asker(words, |asker, clock| format.text(&document(&chosen, asker, clock)))?
        }
        None => list(rows, &command.wanted, &command.report, &site.clock).map_err(Failure::plain)?,
    };
    print(&text);
    Ok(0)
}

/// The lines of one job and its steps, with all that is known of them.
pub fn rows_of_job(site: &mut Site, id: IdExpression) -> Result<Vec<Row>, Failure> {
    let words = ["-j".to_owned(), id.to_string(), "-o".to_owned(), "all".to_owned()];
    let Request::Run(command) = parse(&words, &site.surroundings())? else { return Ok(Vec::new()) };
    Ok(of_accounting(&[id], all_rows(site, &command)?, None))
}

/// What each job was submitted with. The details of one job are complete, those of a list lack long texts.
fn submissions(site: &mut Site, ids: &[IdExpression], submitted: Submitted) -> Result<String, Failure> {
    let mut text = String::new();
    for job in named(site, ids)? {
        let Some(detail) = site.detail(job)? else { continue };
        text.push_str(&match submitted {
            Submitted::Script => script_of(&detail),
            Submitted::Environment => environment_of(&detail),
        });
    }
    Ok(text)
}

fn all_rows(site: &mut Site, command: &Sacct) -> Result<Vec<Row>, Failure> {
    let with_steps = !command.wanted.jobs_only || command.report.tells_of_steps();
    let page = match command.ids.as_slice() {
        [] => {
            let jobs = in_window(site, command)?;
            details_with_first_tasks(site, &jobs, with_steps)?
        }
        ids => {
            let jobs = named(site, ids)?;
            site.details(&jobs, with_steps)?
        }
    };
    let cluster: Arc<str> = cluster(site, command)?.into();
    let mut steps: BTreeMap<JobId, Vec<StepDetail>> = BTreeMap::new();
    for step in page.steps {
        steps.entry(step.job).or_default().push(step);
    }
    let entered = page.jobs.iter().filter(|detail| !was_refused(&detail.job));
    let rows = entered.flat_map(|detail| {
        let steps = steps.get(&detail.job.id).map_or(&[][..], Vec::as_slice);
        rows_of(site, command, detail, steps, &cluster)
    });
    let mut rows: Vec<Row> = rows.collect();
    if command.report.tells_of_associations() || !command.wanted.associations.is_empty() {
        let page = site.client.accounts(Moment::Now).map_err(|error| site.failure(&error))?;
        for row in &mut rows {
            let account = row.job.account.as_deref().unwrap_or_default();
            row.association = association_of(&page, account, &row.job.user, &row.job.partition);
        }
    }
    Ok(rows)
}

/// The jobs that fall into the wanted time.
fn in_window(site: &mut Site, command: &Sacct) -> Result<Vec<JobId>, Failure> {
    let wanted = &command.wanted;
    let all = site.client.all_jobs(None, None, true).map_err(|error| site.failure(&error))?.jobs;
    let only = |set: &BTreeSet<String>| if set.len() == 1 { set.first().cloned() } else { None };
    let user = only(&wanted.users).filter(|user| user.parse::<u32>().is_err());
    let name = only(&wanted.names);
    let is_in = |view: &&JobView| {
        user.as_ref().is_none_or(|user| view.owner == *user)
            && name.as_ref().is_none_or(|name| view.name == *name)
            && wanted.from.is_none_or(|from| view.ended.is_none_or(|ended| ended >= from))
            && wanted.to.is_none_or(|to| view.submitted <= to)
            && !was_refused(view)
    };
    let mut jobs: Vec<JobId> = all.iter().filter(is_in).map(|view| view.id).collect();
    if let Some(from) = wanted.from {
        jobs.extend(forgotten(site, (from, wanted.to), &all)?);
    }
    Ok(jobs)
}

/// The jobs that the ids name. Jobs no longer in memory may be in the log.
fn named(site: &mut Site, ids: &[IdExpression]) -> Result<Vec<JobId>, Failure> {
    let found = site.named(ids)?;
    let mut jobs: BTreeSet<JobId> = found.iter().map(|view| view.id).collect();
    for id in ids {
        let number = number(&id.job);
        if !found.iter().any(|view| view.has_number(number)) {
            jobs.insert(id.job.single().unwrap_or(JobId::job(number)));
        }
    }
    Ok(jobs.into_iter().collect())
}

/// The name of the cluster, if it is shown.
fn cluster(site: &mut Site, command: &Sacct) -> Result<String, Failure> {
    let shows = |name: &str| ["all", "cluster"].contains(&name.trim().to_ascii_lowercase().as_str());
    let names = command.report.format.split(',').map(|name| name.split('%').next().unwrap_or_default());
    if command.data.is_none() && !names.into_iter().any(shows) {
        return Ok(String::new());
    }
    Ok(site.client.config(Moment::Now).map_err(|error| site.failure(&error))?.settings.name)
}

fn rows_of(site: &Site, command: &Sacct, detail: &JobDetail, steps: &[StepDetail], cluster: &Arc<str>) -> Vec<Row> {
    let mut found = site.with_sources(|sources| {
        let steps = shown::step_records(steps, &of_detail(detail, sources));
        let beside = Beside { sources, cluster: Arc::clone(cluster), steps };
        rows(detail, &beside, command.duplicates)
    });
    found.retain(|row| {
        let tasks = row.job.array.as_ref().map(|array| &array.tasks);
        !matches!(tasks, Some(ArrayTasks::Waiting(indices)) if indices.is_empty())
    });
    found
}
