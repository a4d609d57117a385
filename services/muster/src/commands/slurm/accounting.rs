//! `sacct` (SL-A-02 to A-11).

use super::{Ended, print, shown, site::Site, wanted};
use muster_client::{JobQuery, Moment};
use muster_schemas::{
    job::JobState,
    views::{JobDetail, JobView},
};
use muster_slurm::{
    queries::{
        Failure,
        sacct::{Sacct, parse},
    },
    select::of_accounting,
    show::{
        record::{ArrayTasks, of_detail},
        sacct::{Beside, Row, field_names, json, list, rows},
    },
};
use std::sync::Arc;

/// Does what a command line of `sacct` asks.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    let request = parse(words, &site.surroundings())?;
    let Some(command) = wanted(site.tool, request) else { return Ok(0) };
    if command.field_names {
        print(&field_names());
        return Ok(0);
    }
    let rows = of_accounting(&command.ids, all_rows(site, &command)?, command.whole_hetjob);
    let text = match command.json {
        true => format!("{:#}\n", json(env!("CARGO_PKG_VERSION"), &rows)),
        false => list(rows, &command.wanted, &command.report, &site.clock).map_err(Failure::plain)?,
    };
    print(&text);
    Ok(0)
}

fn all_rows(site: &mut Site, command: &Sacct) -> Result<Vec<Row>, Failure> {
    let views = match command.ids.as_slice() {
        [] => every(site)?,
        ids => site.named(ids)?,
    };
    let info = site.client.info(Moment::Now).map_err(|error| site.failure(&error))?;
    let cluster: Arc<str> = info.cluster.into();
    let in_window = |view: &JobView| {
        command.wanted.from.is_none_or(|from| view.ended.is_none_or(|ended| ended >= from))
            && command.wanted.to.is_none_or(|to| view.submitted <= to)
    };
    let mut all = Vec::new();
    for view in views.into_iter().filter(in_window) {
        let Some(detail) = site.detail(view.id)? else { continue };
        all.extend(rows_of(site, command, &detail, &cluster)?);
    }
    Ok(all)
}

fn every(site: &mut Site) -> Result<Vec<JobView>, Failure> {
    let mut views = site.views(&JobQuery::default())?;
    views.extend(site.views(&JobQuery { states: vec![JobState::Finished], ..JobQuery::default() })?);
    Ok(views)
}

fn rows_of(site: &mut Site, command: &Sacct, detail: &JobDetail, cluster: &Arc<str>) -> Result<Vec<Row>, Failure> {
    let records = site.with_sources(|sources| of_detail(detail, sources));
    let steps = match command.wanted.jobs_only || detail.job.run.is_none() {
        true => Vec::new(),
        false => site.client.steps(detail.job.id, Moment::Now).map_err(|error| site.failure(&error))?.steps,
    };
    let steps = shown::step_records(&steps, &records);
    let mut found = site.with_sources(|sources| {
        let beside = Beside { sources, cluster: Arc::clone(cluster), steps, cancelled_by: None };
        rows(detail, &beside, command.duplicates)
    });
    found.retain(|row| {
        let tasks = row.job.array.as_ref().map(|array| &array.tasks);
        !matches!(tasks, Some(ArrayTasks::Waiting(indices)) if indices.is_empty())
    });
    Ok(found)
}
