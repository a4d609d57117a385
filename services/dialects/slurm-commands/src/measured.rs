//! `sstat` and `seff`: what steps and jobs used.

use super::{
    Ended, accounting, print, shown,
    site::{Site, number},
    wanted,
};
use muster_cli::stderr_line;
use muster_slurm::{
    job_id::StepName,
    queries::{
        Failure,
        sstat::{self, Sstat},
    },
    select::of_steps,
    show::{
        columns::FormatError, record::JobRecord, sacct::Row, sacctmgr::names, seff::seff as report, sstat as table,
        step::StepRecord,
    },
    words::State,
};

/// Runs a command line of `sstat`.
pub fn sstat(site: &mut Site, words: &[String]) -> Ended {
    let Some(command) = wanted(site, sstat::parse(words)?) else { return Ok(0) };
    if command.field_names {
        print(&names::<StepRecord>());
        return Ok(0);
    }
    let (steps, mut errors) = running(site, &command)?;
    let no_column = |FormatError(name)| Failure::error("sstat", format_args!("Invalid field requested: \"{name}\""));
    let text = table::sstat(&steps, &command.format, &command.style, command.no_header, &site.clock);
    print(&text.map_err(no_column)?);
    errors.drain(..).for_each(|error| stderr_line!("sstat: error: {error}"));
    Ok(0)
}

/// The running steps that are meant, and the errors about jobs without one. If an id names no step, the first `srun`
/// step of its job is meant, or all of them.
fn running(site: &mut Site, command: &Sstat) -> Result<(Vec<StepRecord>, Vec<String>), Failure> {
    let steps = shown::running_steps(site)?;
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    for id in &command.ids {
        let mut own = match id.step {
            Some(StepName::Batch) => batch(site, number(&id.job))?,
            _ => of_steps(std::slice::from_ref(id), steps.clone()),
        };
        if own.is_empty() {
            errors.push(format!("no steps running for job {}", id.job));
        }
        if id.step.is_none() && !command.all_steps {
            own.sort_by_key(|step| match step.step {
                StepName::Number(number) => number,
                _ => 0,
            });
            own.truncate(1);
        }
        found.extend(own);
    }
    Ok((found, errors))
}

/// The script of a running job, as a step.
fn batch(site: &mut Site, job: u64) -> Result<Vec<StepRecord>, Failure> {
    let views = site.current(None, None, false)?;
    let views = views.into_iter().filter(|view| view.has_number(job)).collect();
    let is_it = |record: &JobRecord| record.number == job && record.state.is_in(&[State::Running]);
    let step = |record: &JobRecord| {
        let mut step = StepRecord::of_job(record, StepName::Batch, "batch");
        step.nodes.truncate(1);
        step.tasks = 1;
        step
    };
    Ok(site.records(views, true)?.iter().filter(|record| is_it(record)).map(step).collect())
}

/// Runs a command line of `seff`.
pub fn seff(site: &mut Site, words: &[String]) -> Ended {
    let Some(id) = wanted(site, sstat::seff(words)?) else { return Ok(1) };
    let rows = accounting::rows_of_job(site, id)?;
    let is_job = |row: &&Row| row.step.is_none();
    let Some(job) = rows.iter().find(is_job) else {
        return Err(Failure { lines: vec!["Job not found.".to_owned()], code: 2 });
    };
    let steps: Vec<Row> = rows.iter().filter(|row| !is_job(row) && row.job.number == job.job.number).cloned().collect();
    print(&report(job, &steps, &site.clock));
    Ok(0)
}
