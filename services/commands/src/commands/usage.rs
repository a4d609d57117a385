//! `muster usage`

use crate::{
    cli::{ConnectionOptions, UsageKey, UsageOptions},
    exit::{CommandResult, Failure},
    show,
    table::{Table, left, right},
    terminal::waiting,
    values::format_duration,
};
use jiff::tz::TimeZone;
use muster_schemas::usage::{UsageAnswer, UsageDimension, UsageQuery, UsageRow};
use std::{borrow::Cow, io::Write};

/// Prints requested and used resources.
pub fn usage(connection: &ConnectionOptions, options: &UsageOptions) -> CommandResult {
    let by = if options.by.is_empty() {
        vec![UsageDimension::User, UsageDimension::Account, UsageDimension::Queue]
    } else {
        options.by.iter().map(|key| dimension(*key)).collect()
    };
    let query = UsageQuery {
        from: options.from,
        to: options.to,
        user: options.user.clone(),
        account: options.account.clone(),
        queue: options.queue.clone(),
        by,
        ..UsageQuery::default()
    };
    let mut client = connection.client()?;
    let answer = waiting("reading usage", || client.usage(&query, options.query.moment()))?;
    if options.query.json {
        show::print_json(&answer)?;
    } else if options.csv {
        print_csv(&answer)?;
    } else {
        show::print_or_say(&table(&answer), "no usage")?;
    }
    Ok(0)
}

fn dimension(key: UsageKey) -> UsageDimension {
    match key {
        UsageKey::Window => UsageDimension::Window,
        UsageKey::User => UsageDimension::User,
        UsageKey::Account => UsageDimension::Account,
        UsageKey::Queue => UsageDimension::Queue,
    }
}

fn core_time(micros: u128) -> String {
    format_duration(i64::try_from(micros.saturating_add(500_000) / 1_000_000).unwrap_or(i64::MAX))
}

fn table(answer: &UsageAnswer) -> Table {
    let zone = TimeZone::system();
    let mut table = Table::new([
        left("WINDOW FROM"),
        left("USER"),
        left("ACCOUNT"),
        left("QUEUE"),
        right("RUNS"),
        right("COMPLETED"),
        right("OTHER"),
        right("ASKED CORE TIME"),
        right("USED CORE TIME"),
        right("CPU TIME"),
        right("GPU TIME"),
    ]);
    for UsageRow { window_start, user, account, queue, amounts } in &answer.rows {
        let window =
            window_start.map(|start| start.to_jiff().to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string());
        let gpu = if amounts.used_gpu_micros == 0 { String::new() } else { core_time(amounts.used_gpu_micros) };
        table.push([
            window.unwrap_or_else(|| "all".into()).into(),
            user.clone().unwrap_or_default().into(),
            account.clone().unwrap_or_default().into(),
            queue.clone().unwrap_or_default().into(),
            amounts.started_runs.to_string().into(),
            amounts.completed_runs.to_string().into(),
            amounts.other_runs.to_string().into(),
            core_time(amounts.asked_core_micros).into(),
            core_time(amounts.used_core_micros).into(),
            core_time(amounts.cpu_time_micros).into(),
            gpu.into(),
        ]);
    }
    table
}

fn print_csv(answer: &UsageAnswer) -> Result<(), Failure> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    out.write_all(
        b"window_start,user,account,queue,started_runs,completed_runs,other_runs,asked_core_seconds,used_core_seconds,used_gpu_seconds,cpu_seconds\n",
    )?;
    for UsageRow { window_start, user, account, queue, amounts } in &answer.rows {
        let texts = [window_start.map(|start| start.to_string()), user.clone(), account.clone(), queue.clone()];
        let texts = texts.iter().map(|text| csv_field(text.as_deref().unwrap_or_default()).into_owned());
        let counts = [amounts.started_runs, amounts.completed_runs, amounts.other_runs].map(|count| count.to_string());
        let seconds =
            [amounts.asked_core_micros, amounts.used_core_micros, amounts.used_gpu_micros, amounts.cpu_time_micros]
                .map(|micros| format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000));
        let fields: Vec<String> = texts.chain(counts).chain(seconds).collect();
        writeln!(out, "{}", fields.join(","))?;
    }
    out.flush()?;
    Ok(())
}

/// A field as RFC 4180 writes it.
fn csv_field(text: &str) -> Cow<'_, str> {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_are_quoted() {
        assert_eq!(csv_field("plain"), "plain");
        assert_eq!(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
    }

    #[test]
    fn core_time_is_rounded_to_seconds() {
        assert_eq!(core_time(1_499_999), "0:01");
        assert_eq!(core_time(1_500_000), "0:02");
        assert!(core_time(u128::MAX).ends_with(":07"), "the most there is, and no panic");
    }
}
