//! Setting and removing tables.

use crate::{
    decide::{Access, Decision, invalid},
    jobs::{
        Job, Phase,
        decide::{endings::end_job, submit::submit},
    },
    state::State,
    validate,
};
use muster_schemas::{
    Timestamp,
    command::{JobEnding, Refusal, Reply},
    crontab::{CronEntry, CronJob, CronLines, Schedule},
    event::Event,
    job::{JobSpec, Outcome},
    resources::IndexSet,
};

/// The most jobs of a table.
const MAX_JOBS: usize = 100;
/// The greatest length of a table, in bytes.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// The greatest length of a rule for a time zone, in bytes.
const MAX_ZONE_BYTES: usize = 100;

/// Sets the table of the caller in place of the present one, or removes one. Jobs of the present one that wait are cancelled,
/// those that run are not repeated any more.
pub(crate) fn set(
    access: &Access,
    text: &str,
    entries: Vec<CronEntry>,
    user: Option<&str>,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let owner = access.require_user()?;
    let user = user.unwrap_or(&owner.user);
    if user != owner.user {
        access.require_administrator("remove the table of another user")?;
        if !text.is_empty() || !entries.is_empty() {
            return Err(invalid(
                "user: the table of another user can be removed, not set: its jobs would be the caller's",
            ));
        }
    }
    validate::bytes("text", text.len(), MAX_TEXT_BYTES)?;
    validate::no_nul("text", text)?;
    validate::count("entries", entries.len(), MAX_JOBS)?;
    let lines = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    let mut events = ended(access.state, user)?;
    let (mut specs, mut placed): (Vec<JobSpec>, Vec<CronLines>) = (Vec::new(), Vec::new());
    for CronEntry { lines: own, mut spec } in entries {
        let begin = check(&own, lines, now)?;
        if spec.array.is_some() {
            return Err(invalid(format!("entries: line {}: an array of jobs is not repeated", own.last + 1)));
        }
        spec.components.iter_mut().for_each(|component| component.begin = Some(begin));
        specs.push(spec);
        placed.push(own);
    }
    let mut jobs = Vec::new();
    if !specs.is_empty() {
        let submitted = submit(access.state, access, specs, now)?;
        if let Reply::Submitted(ids) = submitted.reply {
            jobs = ids.into_iter().zip(placed).map(|(job, lines)| CronJob { job, lines }).collect();
        }
        events.extend(submitted.events);
    }
    let reply = Reply::Submitted(jobs.iter().map(|job| job.job).collect());
    events.push(Event::CrontabSet { user: user.to_owned(), text: text.to_owned(), jobs });
    Ok(Decision { events, reply })
}

/// Checks the lines and times of an entry; returns its first time.
fn check(own: &CronLines, lines: u32, now: Timestamp) -> Result<Timestamp, Refusal> {
    let CronLines { first, last, schedule } = own;
    if first > last || *last >= lines {
        return Err(invalid(format!("entries: lines {first} to {last}: the text has {lines}")));
    }
    let line = last + 1;
    validate::bytes("entries.lines.schedule.zone", schedule.zone.len(), MAX_ZONE_BYTES)?;
    let Schedule { minutes, hours, days, months, weekdays, .. } = schedule;
    let within = |set: &IndexSet, first: u32, last: u32| IndexSet::from_range(first, last).contains_all(set);
    let is_valid = within(minutes, 0, 59)
        && within(hours, 0, 23)
        && within(days, 1, 31)
        && within(months, 1, 12)
        && within(weekdays, 0, 6);
    if !is_valid {
        return Err(invalid(format!("entries: line {line}: a minute, hour, day or month does not exist")));
    }
    schedule.next_after(now).ok_or_else(|| invalid(format!("entries: line {line}: its time never comes")))
}

/// Cancels the jobs of a user's present table that wait.
fn ended(state: &State, user: &str) -> Result<Vec<Event>, Refusal> {
    let jobs = state.crontab(user).into_iter().flat_map(|crontab| &crontab.jobs).filter(|job| !job.is_over);
    let waiting = jobs.filter_map(|job| state.job(job.job)).filter(|job: &&Job| job.phase == Phase::Waiting);
    let mut events = Vec::new();
    for job in waiting {
        events.extend(end_job(state, job, &JobEnding::default(), Outcome::Cancelled)?);
    }
    Ok(events)
}
