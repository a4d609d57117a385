//! `oaraccounting`, and `oarstat --accounting`. The system keeps the books itself, from its log.

use super::{
    configuration::{ACCOUNTING_BEGIN, config, configure, with_attribute},
    ended::{Ended, Failure, print},
    site::{Site, user_name},
    words::{self, Known, Takes, Words},
};
use muster_cli::connection::ConnectionOptions;
use muster_client::Moment;
use muster_oar::{
    accounting::Summary,
    show::{
        accounting::{document, of_user, span, table},
        document::{Form, written},
    },
    text::{decimal, shown},
};
use muster_schemas::{
    Timestamp,
    cluster::ClusterConfig,
    usage::{UsageAmounts, UsageAnswer, UsageDimension, UsageQuery, UsageRow},
};
use std::collections::BTreeMap;

const OPTIONS: [Known; 4] = [
    ('\0', "reinitialize", Takes::Nothing),
    ('\0', "delete-before", Takes::Value),
    ('h', "help", Takes::Nothing),
    ('V', "version", Takes::Nothing),
];
const ALL: [UsageDimension; 4] =
    [UsageDimension::Window, UsageDimension::User, UsageDimension::Account, UsageDimension::Queue];

/// Runs a command line of `oaraccounting`.
pub fn run(connection: &ConnectionOptions, line: &[String]) -> Ended {
    let words = words::read(line, &OPTIONS)?;
    if words.has("help") {
        print("usage: oaraccounting [--reinitialize | --delete-before=SECONDS]\n");
        return Ok(0);
    }
    if let Some(word) = words.operands.first() {
        return Err(Failure::new(format_args!("expected an option, found '{}'", shown(word))));
    }
    let mut site = Site::open(connection)?;
    if let Some(word) = words.value("delete-before") {
        let wrong = || Failure::new(format_args!("--delete-before: expected seconds, found '{}'", shown(word)));
        let age = decimal::<i64>(word).ok_or_else(wrong)?;
        let begin = site.now().saturating_sub(age);
        return begin_at(&mut site, Some(begin));
    }
    if words.has("reinitialize") {
        return recount(&mut site);
    }
    let answer = site.client.usage(&UsageQuery { by: ALL.to_vec(), ..UsageQuery::default() }, Moment::Now)?;
    print(&format!("The books are kept up to record {}: {} rows.\n", answer.sequence, answer.rows.len()));
    Ok(0)
}

/// Windows that ended before are dropped from what is shown (OAR-A-05). The log keeps them, so they can come back.
fn begin_at(site: &mut Site, begin: Option<i64>) -> Ended {
    let config = config(site)?;
    let before = begin_of(&config);
    let begin = begin.map(|begin| before.map_or(begin, |before| before.max(begin)));
    configure(site, &with_attribute(&config, ACCOUNTING_BEGIN, begin.map(|begin| begin.to_string())))?;
    if let Some(begin) = begin {
        let when = muster_oar::options::date::written(begin, &site.zone);
        print(&format!("Windows that ended before {when} are dropped.\n"));
    }
    Ok(0)
}

fn begin_of(config: &ClusterConfig) -> Option<i64> {
    config.settings.attributes.get(ACCOUNTING_BEGIN)?.parse().ok()
}

/// Counts the log again from its beginning, and compares the result with the books (OAR-A-04, OAR-A-05).
fn recount(site: &mut Site) -> Ended {
    let query = UsageQuery { by: ALL.to_vec(), ..UsageQuery::default() };
    let kept = site.client.usage(&query, Moment::Now)?;
    let again = site.client.usage(&query, Moment::Sequence(kept.sequence))?;
    // Jobs run between the two answers, so only those that have ended are the same.
    let (ended, recounted) = (ends(&kept), ends(&again));
    if ended != recounted {
        return Err(Failure::new(format_args!(
            "the books have {} runs that ended, the log has {}: the accounting service needs a new start without its \
             snapshot; nothing was changed",
            total(&ended),
            total(&recounted)
        )));
    }
    begin_at(site, None)?;
    print(&format!("Counted again up to record {}: {} runs, as in the books.\n", again.sequence, total(&ended)));
    Ok(0)
}

type Ends = BTreeMap<(Option<Timestamp>, Option<String>, Option<String>, Option<String>), u64>;

/// The numbers of runs that ended, by window, user, project and queue.
fn ends(answer: &UsageAnswer) -> Ends {
    let mut ends = Ends::new();
    for row in &answer.rows {
        let UsageAmounts { completed_runs, other_runs, .. } = row.amounts;
        let key = (row.window_start, row.user.clone(), row.account.clone(), row.queue.clone());
        *ends.entry(key).or_default() += completed_runs + other_runs;
    }
    ends.retain(|_, count| *count > 0);
    ends
}

fn total(ends: &Ends) -> u64 {
    ends.values().sum()
}

/// `oarstat --accounting "YYYY-MM-DD, YYYY-MM-DD"`, with the detail of projects for one user (OAR-A-06).
pub fn shown_for(site: &mut Site, text: &str, words: &Words, form: Option<Form>) -> Ended {
    let (from, to) = span(text, &site.zone).map_err(Failure::new)?;
    let user = words.value("user").map(|user| if user.is_empty() { user_name() } else { user.to_owned() });
    let begin = begin_of(&config(site)?).unwrap_or(i64::MIN);
    let time = |seconds: i64| Timestamp::from_unix_seconds(seconds);
    // Windows whose last second is behind `from`, and that end at `begin` or later.
    let after = from.saturating_add(1).max(begin.saturating_sub(1));
    let query = UsageQuery {
        from: Some(time(after)),
        to: Some(time(to)),
        user: user.clone(),
        by: ALL.to_vec(),
        ..UsageQuery::default()
    };
    let answer = site.client.usage(&query, Moment::Now)?;
    let sums = sums(&answer, |row| row.user.clone().unwrap_or_default());
    let projects = sums_of_projects(&answer);
    let text = match (form, &user) {
        (Some(form), _) => written(&document(&sums, &projects), form),
        (None, Some(user)) => of_user(user, sums.get(user).copied(), &projects, &site.zone),
        (None, None) => table(&sums, &site.zone),
    };
    print(&text);
    Ok(0)
}

fn sums_of_projects(answer: &UsageAnswer) -> BTreeMap<String, Summary> {
    sums(answer, |row| row.account.clone().unwrap_or_else(|| "default".to_owned()))
}

/// Sums of the rows of an answer by a key.
fn sums(answer: &UsageAnswer, key: impl Fn(&UsageRow) -> String) -> BTreeMap<String, Summary> {
    let size = i64::try_from(answer.window_seconds).unwrap_or(i64::MAX);
    let mut sums: BTreeMap<String, Summary> = BTreeMap::new();
    for row in &answer.rows {
        let first = row.window_start.map_or(0, super::site::seconds);
        let last = first.saturating_add(size).saturating_sub(1);
        let sum = sums.entry(key(row)).or_insert(Summary { asked: 0, used: 0, first, last });
        sum.asked = sum.asked.saturating_add(row.amounts.asked_core_seconds());
        sum.used = sum.used.saturating_add(row.amounts.used_core_seconds());
        (sum.first, sum.last) = (sum.first.min(first), sum.last.max(last));
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(window: i64, user: &str, account: &str, asked: u64, used: u64) -> UsageRow {
        let micros = |seconds: u64| u128::from(seconds) * 1_000_000;
        UsageRow {
            window_start: Some(Timestamp::from_unix_seconds(window)),
            user: Some(user.to_owned()),
            account: Some(account.to_owned()),
            queue: Some("default".to_owned()),
            amounts: UsageAmounts {
                asked_core_micros: micros(asked),
                used_core_micros: micros(used),
                completed_runs: 1,
                ..UsageAmounts::default()
            },
        }
    }

    /// OAR-A-01, OAR-A-02, OAR-A-06, W3: rows of windows are summed up by user and by project.
    #[test]
    fn w3_rows_are_summed_up() {
        let rows = vec![
            row(950_400, "ann", "bio", 147_200, 147_200),
            row(1_036_800, "ann", "bio", 345_600, 345_600),
            row(1_123_200, "ann", "bio", 198_400, 107_200),
            row(1_123_200, "bob", "geo", 10, 5),
        ];
        let answer = UsageAnswer { window_seconds: 86_400, rows, ..UsageAnswer::default() };
        let sums = sums(&answer, |row| row.user.clone().unwrap_or_default());
        let ann = Summary { asked: 691_200, used: 600_000, first: 950_400, last: 1_209_599 };
        assert_eq!(sums["ann"], ann);
        assert_eq!(sums_of_projects(&answer)["bio"], ann);
        assert_eq!(total(&ends(&answer)), 4);
    }
}
