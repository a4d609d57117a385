//! `muster quota ...`: limits on what jobs of queues, accounts, kinds and users hold at once.

use crate::{
    cli::{ConnectionOptions, QueryOptions, QuotaCommand},
    exit::{CommandResult, Failure},
    show::{self, local_time},
    table::{Table, left, right},
    terminal,
};
use muster_oar_commands::quota_file::{self, Broken};
use muster_schemas::{
    CommandId,
    cluster::ClusterConfig,
    quota::{QuotaAmount, QuotaRule, QuotaTable},
};
use std::path::Path;

/// The days of a week, from Monday.
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Runs the command.
pub fn run(connection: &ConnectionOptions, command: &QuotaCommand) -> CommandResult {
    match command {
        QuotaCommand::Load { file } => {
            let table = read(file)?;
            let rules = count(&table);
            set(connection, table)?;
            println!("in force: {rules} of {}", file.display());
        }
        QuotaCommand::Check { file } => println!("no mistakes: {}", count(&read(file)?)),
        QuotaCommand::Show(query) => show(connection, query)?,
        QuotaCommand::Clear => {
            set(connection, QuotaTable::default())?;
            println!("no quotas are in force");
        }
    }
    Ok(0)
}

fn read(file: &Path) -> Result<QuotaTable, Failure> {
    quota_file::read(file).map_err(|broken| match broken {
        Broken::Unreadable(error) => Failure::failed(format!("cannot read {}: {error}", file.display())),
        Broken::Wrong { line, column, message } => {
            Failure::in_file(format!("{}:{line}:{column}", file.display()), message)
        }
    })
}

fn count(table: &QuotaTable) -> String {
    show::counted(table.sets.iter().map(|set| set.rules.len() as u64).sum(), "rule")
}

fn set(connection: &ConnectionOptions, table: QuotaTable) -> Result<(), Failure> {
    connection.client()?.configure(CommandId::new_now(), &quota_file::change(table), true)?;
    Ok(())
}

fn show(connection: &ConnectionOptions, query: &QueryOptions) -> Result<(), Failure> {
    let config: ClusterConfig = connection.client()?.config(query.moment())?;
    let quotas = config.settings.quotas.as_deref();
    if query.json {
        return Ok(show::print_json(&quotas)?);
    }
    let Some(table) = quotas else {
        println!("No quotas are in force.");
        return Ok(());
    };
    if let Some(source) = &table.source {
        println!("From {} (SHA-256 {})", source.name, source.sha256);
    }
    if !table.kinds.is_empty() {
        println!("Counted kinds: {}", table.kinds.join(", "));
    }
    terminal::print_table(&rules(table))?;
    print_times(table);
    Ok(())
}

fn rules(table: &QuotaTable) -> Table {
    let mut rows = Table::new([
        left("SET"),
        left("QUEUE"),
        left("ACCOUNT"),
        left("KIND"),
        left("USER"),
        right("CORES"),
        right("JOBS"),
        right("CORE-HOURS"),
    ]);
    for set in &table.sets {
        for rule in &set.rules {
            let QuotaRule { queue, account, kind, user, cores, jobs, core_seconds } = rule;
            rows.push([
                if set.name.is_empty() { "-".into() } else { (&set.name).into() },
                queue.into(),
                account.into(),
                kind.into(),
                user.into(),
                amount(*cores, 1).into(),
                amount(*jobs, 1).into(),
                amount(*core_seconds, 3600).into(),
            ]);
        }
    }
    rows
}

/// An amount in units of this many small ones.
fn amount(amount: Option<QuotaAmount>, units: u64) -> String {
    let in_units = |amount: f64| {
        let text = format!("{:.3}", amount / units as f64);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match amount {
        None => "-".to_owned(),
        Some(QuotaAmount::Fixed(amount)) => in_units(amount as f64),
        Some(QuotaAmount::BillionthsOfCores(part)) => format!("{}*ALL", in_units(part as f64 / 1e9)),
    }
}

fn print_times(table: &QuotaTable) {
    let name = |set: u32| table.sets.get(set as usize).map_or("?", |set| set.name.as_str());
    for span in &table.spans {
        println!("{} to {}: {}", local_time(span.begin), local_time(span.end), name(span.set));
    }
    if table.week.len() > 1 {
        for period in &table.week {
            println!("{} to {}: {}", of_week(period.begin), of_week(period.end), name(period.set));
        }
    }
}

/// A second of the week: `mon 08:00`.
fn of_week(second: u32) -> String {
    let day = (second / 86_400) as usize % DAYS.len();
    format!("{} {:02}:{:02}", DAYS[day], second % 86_400 / 3600, second % 3600 / 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAR-Q-02
    #[test]
    fn amounts_are_shown_in_the_words_of_the_file() {
        assert_eq!(amount(None, 1), "-");
        assert_eq!(amount(Some(QuotaAmount::Fixed(7200)), 3600), "2");
        assert_eq!(amount(Some(QuotaAmount::Fixed(5400)), 3600), "1.5");
        assert_eq!(amount(Some(QuotaAmount::BillionthsOfCores(2 * 3600 * 1_000_000_000)), 3600), "2*ALL");
        assert_eq!([0, 4 * 86_400 + 68_400, 604_800].map(of_week), ["mon 00:00", "fri 19:00", "mon 00:00"]);
    }
}
