//! How times, fields and lists are shown to people.

use crate::{stderr_line, table::Table, terminal};
use jiff::tz::TimeZone;
use muster_schemas::Timestamp;
use serde::Serialize;
use std::io::Write;

/// Prints a value as JSON.
pub fn print_json<T: Serialize>(value: &T) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    out.flush()
}

/// A point in time in this host's zone: `2026-11-20 08:30:00 CET`.
pub fn local_time(time: Timestamp) -> String {
    time.to_jiff().to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
}

/// As [`local_time`], to the millisecond and without the zone, for columns.
pub fn local_time_column(time: Timestamp, zone: &TimeZone) -> String {
    time.to_jiff().to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S%.3f").to_string()
}

/// A text with its UTC times converted to this zone, to the second, as in columns: `2026-11-20 08:30:00`.
pub fn with_local_times(text: &str, zone: &TimeZone) -> String {
    with_times(text, zone, "%Y-%m-%d %H:%M:%S")
}

/// As [`with_local_times`], with the zone as in [`local_time`]: `2026-11-20 08:30:00 CET`.
pub fn with_zoned_times(text: &str, zone: &TimeZone) -> String {
    with_times(text, zone, "%Y-%m-%d %H:%M:%S %Z")
}

fn with_times(text: &str, zone: &TimeZone, format: &str) -> String {
    const DATE_BYTES: usize = "2026-11-20T".len();
    let mut local = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|character: char| character.is_ascii_digit()) {
        let (before, from) = rest.split_at(at);
        local.push_str(before);
        let is_part = |byte: &u8| byte.is_ascii_digit() || b"-:.TZ".contains(byte);
        let word = &from[..from.bytes().take_while(|byte| is_part(byte)).count()];
        let end = word.rfind('Z').map_or(0, |end| end + 1);
        match word[..end].parse::<jiff::Timestamp>() {
            Ok(time) if end > DATE_BYTES => {
                local.push_str(&time.to_zoned(zone.clone()).strftime(format).to_string());
                rest = &from[end..];
            }
            _ => {
                local.push_str(word);
                rest = &from[word.len()..];
            }
        }
    }
    local.push_str(rest);
    local
}

/// A count with its noun: `1 node`, `2 nodes`.
pub fn counted(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// Prints `KEY  value` lines, with keys padded to one width. Keys without a value are left out.
pub fn print_fields(fields: &[(&str, Option<String>)]) -> std::io::Result<()> {
    let width =
        fields.iter().filter(|(_, value)| value.is_some()).map(|(key, _)| key.chars().count()).max().unwrap_or(0);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for (key, value) in fields {
        if let Some(value) = value {
            writeln!(out, "{key:width$}  {}", crate::table::printable(value))?;
        }
    }
    out.flush()
}

/// Prints a table. If it has no rows, prints `empty` on standard error instead, at a terminal only.
pub fn print_or_say(table: &Table, empty: &str) -> std::io::Result<()> {
    if table.is_empty() {
        if std::io::IsTerminal::is_terminal(&std::io::stdout()) {
            stderr_line!("{empty}");
        }
        return Ok(());
    }
    terminal::print_table(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_texts_are_those_of_this_zone() {
        let zone = TimeZone::fixed(jiff::tz::offset(1));
        let local = |text: &str| with_local_times(text, &zone);
        assert_eq!(
            local("has a reservation from 2026-11-23T21:00:03.533979Z, on 4 nodes"),
            "has a reservation from 2026-11-23 22:00:03, on 4 nodes"
        );
        assert_eq!(
            local("from 2026-11-23T21:00:03Z to 2026-11-24T00:00:00Z."),
            "from 2026-11-23 22:00:03 to 2026-11-24 01:00:00."
        );
        for text in ["", "job 7 is ahead of it", "node1.2Z 2026-11-23", "Z 9", "é2é", "99-99Z", "2026-11-23T"] {
            assert_eq!(local(text), text);
        }
    }

    #[test]
    fn one_thing_is_not_many() {
        assert_eq!([counted(0, "task"), counted(1, "CPU"), counted(2, "node")], ["0 tasks", "1 CPU", "2 nodes"]);
    }
}
