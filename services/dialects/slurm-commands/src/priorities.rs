//! `sprio` and `sshare`: what orders waiting jobs, and what accounts and users have used of their shares.

use super::{Ended, print, site::Site, wanted};
use muster_client::Moment;
use muster_schemas::{
    Timestamp,
    accounts::AssociationKey,
    fair_tree::{Factors, compare},
    usage::{UsageAnswer, UsageDimension, UsageQuery},
};
use muster_slurm::{
    queries::{Failure, sprio, sshare},
    select::listed,
    show::{
        columns::FormatError,
        record::JobRecord,
        sacctmgr::names,
        sprio::{self as priorities, has_factors},
        sshare::{self as tables, Running, Share},
    },
    words::State,
};

/// Runs a command line of `sprio`.
pub fn sprio(site: &mut Site, words: &[String]) -> Ended {
    let request = sprio::parse(words, &site.surroundings())?;
    let Some(command) = wanted(site, request) else { return Ok(0) };
    let rules = rules(site)?;
    let jobs = if command.weights { Vec::new() } else { waiting(site, &command)? };
    if jobs.is_empty() && !command.ids.is_empty() && !command.weights {
        print("Unable to find jobs matching user/id(s) specified\n");
        return Ok(0);
    }
    let report = priorities::Report {
        names_users: !command.users.is_empty(),
        format: command.format,
        is_long: command.is_long,
        is_normalized: command.is_normalized,
        weights: command.weights,
        no_header: command.no_header,
    };
    let no_column =
        |FormatError(name)| Failure::error("sprio", format_args!("Invalid job format specification: {name}"));
    print(&priorities::sprio(jobs, &rules, &report, &site.clock).map_err(no_column)?);
    Ok(0)
}

fn rules(site: &mut Site) -> Result<priorities::Rules, Failure> {
    let policy = site.client.policy(Moment::Now).map_err(|error| site.failure(&error))?;
    let queues = &site.queues()?.queues;
    let partitions = queues.iter().map(|queue| (queue.spec.name.clone(), queue.spec.priority)).collect();
    let accounts = site.client.accounts(Moment::Now).map_err(|error| site.failure(&error))?;
    let highest_class = accounts.classes.iter().map(|class| class.priority).max().unwrap_or(0);
    let used = tables::used(&accounts, None);
    let of = |key: &AssociationKey| used.get(key).copied().unwrap_or(0) as f64;
    let fair_factors = Factors::of(&compare(&accounts.accounts, &accounts.associations, of));
    Ok(priorities::Rules { policy, partitions, highest_class, fair_factors })
}

/// The waiting jobs that are meant, with what they ask for.
fn waiting(site: &mut Site, command: &sprio::Sprio) -> Result<Vec<JobRecord>, Failure> {
    let views = match command.ids.as_slice() {
        [] => site.current(None, None, false)?,
        ids => site.named(ids)?,
    };
    let now = site.clock.now;
    let known = site.records(views, true)?;
    let mut records = match command.ids.as_slice() {
        [] => known,
        ids => ids.iter().flat_map(|id| listed(&id.job, &known)).collect(),
    };
    records.retain(|job| {
        let is_of = command.users.is_empty()
            || command.users.contains(&job.user)
            || command.users.contains(&job.person.uid.to_string());
        let is_in = command.partitions.is_empty() || command.partitions.contains(&job.partition);
        is_of && is_in && has_factors(job, now)
    });
    Ok(records)
}

/// Runs a command line of `sshare`.
pub fn sshare(site: &mut Site, words: &[String]) -> Ended {
    let request = sshare::parse(words, &site.surroundings())?;
    let Some(command) = wanted(site, request) else { return Ok(0) };
    if command.field_names {
        print(&names::<Share>());
        return Ok(0);
    }
    let mut rows = shares(site)?;
    let total: u64 = rows.iter().map(|row| u64::from(row.member.shares)).sum();
    rows.retain(|row| takes(&command, row));
    if let Some(format) = command.data {
        let text = site.with_asker(words, |asker, _| format.text(&asker.one("shares", tables::data(&rows, total))))?;
        print(&text);
        return Ok(0);
    }
    let format = command.format.unwrap_or_else(|| tables::usual(command.is_long, command.partitions));
    let no_column = |FormatError(name)| Failure::error("sshare", format_args!("Invalid field requested: \"{name}\""));
    let text = tables::sshare(&rows, &format, &command.style, command.no_header, &site.clock).map_err(no_column)?;
    print(&text);
    Ok(0)
}

/// Accounts are listed for all their users; users only if they are meant.
fn takes(command: &sshare::Sshare, row: &Share) -> bool {
    let of = &row.member.of;
    let is_in = command.accounts.is_empty() || command.accounts.contains(&of.account);
    is_in
        && match &of.user {
            Some(user) => command.users.as_ref().is_none_or(|users| users.contains(user)),
            None => !command.users_only,
        }
}

fn shares(site: &mut Site) -> Result<Vec<Share>, Failure> {
    let page = site.client.accounts(Moment::Now).map_err(|error| site.failure(&error))?;
    let is_counted = page.settings.usage_half_life_seconds > 0;
    let books = if is_counted { None } else { Some(books(site)?) };
    let used = tables::used(&page, books.as_ref());
    let name = site.client.config(Moment::Now).map_err(|error| site.failure(&error))?.settings.name;
    let views = site.current(None, None, false)?;
    let now = site.clock.now;
    let running: Vec<Running> = site.records(views, false)?.iter().filter_map(|job| running(job, now)).collect();
    Ok(tables::shares(&page, &name, &used, &running))
}

/// What the accounting has counted, of all time.
fn books(site: &mut Site) -> Result<UsageAnswer, Failure> {
    let by = vec![UsageDimension::User, UsageDimension::Account, UsageDimension::Queue];
    let query = UsageQuery { by, ..UsageQuery::default() };
    site.client.usage(&query, Moment::Now).map_err(|error| site.failure(&error))
}

/// What a job may still use, if it runs.
fn running(job: &JobRecord, now: Timestamp) -> Option<Running> {
    let left = u64::try_from(job.end()?.micros_since(now)).unwrap_or(0) / 60_000_000;
    job.state.is_in(&[State::Running]).then(|| Running {
        account: job.account.clone().unwrap_or_default(),
        user: job.user.clone(),
        partition: job.partition.clone(),
        minutes: left.saturating_mul(job.cpus),
    })
}
