//! The tables of `scrontab`: five fields and a command on each line, with `#SCRON` lines of options above it.

use muster_schemas::{
    crontab::{CronLines, Schedule},
    resources::IndexSet,
};
use std::fmt::Write as _;

/// The table that an editor gets if there is none.
pub const EXAMPLE: &str = "\
# Edit this file to introduce tasks to be run by scrontab.
#
# Each line submits a job at certain times: minute, hour, day of the month, month, day of the week, command.
# Lines that begin with #SCRON above it are options of sbatch for it.
#
# For example, an hourly job with a time limit:
# #SCRON --time=10
# 0 * * * * my-program --option
";
/// What begins a line of options.
const OPTIONS: &str = "#SCRON";

/// A job of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its lines and times.
    pub lines: CronLines,
    /// The batch script that is submitted for it.
    pub script: String,
}

/// A line that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Its number, from 0.
    pub number: u32,
    /// Why.
    pub why: String,
}

/// The jobs of a table. Their times are those of `zone`; they run in `home` unless options say otherwise.
///
/// # Errors
/// The first line that cannot be read.
pub fn entries(text: &str, zone: &str, home: &str) -> Result<Vec<Entry>, BadLine> {
    let mut entries = Vec::new();
    let (mut options, mut first) = (Vec::new(), None);
    for (number, line) in (0..).zip(text.lines()) {
        let line = line.trim();
        if let Some(words) = line.strip_prefix(OPTIONS) {
            options.push(words.trim());
            first.get_or_insert(number);
            continue;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bad = |why: &str| BadLine { number, why: why.to_owned() };
        let (times, command) = split(line).ok_or_else(|| bad("five fields and a command are wanted"))?;
        let schedule = schedule(times, zone).map_err(|why| bad(&why))?;
        let lines = CronLines { first: first.take().unwrap_or(number), last: number, schedule };
        entries.push(Entry { lines, script: script(times, command, &std::mem::take(&mut options), home) });
    }
    Ok(entries)
}

/// The text of a table, with these lines marked as disabled.
pub fn with_disabled(text: &str, disabled: &IndexSet) -> String {
    let mut out = String::new();
    for (number, line) in (0..).zip(text.lines()) {
        let mark = if disabled.contains(number) { "#DISABLED: " } else { "" };
        let _ = writeln!(out, "{mark}{line}");
    }
    out
}

/// The times and the command of a line.
fn split(line: &str) -> Option<(&str, &str)> {
    let fields = if line.starts_with('@') { 1 } else { 5 };
    let mut end = 0;
    for _ in 0..fields {
        let rest = &line[end..];
        let start = end + rest.find(|c: char| !c.is_whitespace())?;
        end = start + line[start..].find(char::is_whitespace)?;
    }
    let command = line[end..].trim();
    (!command.is_empty()).then(|| (&line[..end], command))
}

/// The script of a job: its options come after those that every job of a table has.
fn script(times: &str, command: &str, options: &[&str], home: &str) -> String {
    let name = command.split_whitespace().next().unwrap_or_default();
    let mut out = String::from("#!/bin/sh\n# This job was submitted through scrontab\n");
    for own in ["--export=NONE".to_owned(), quoted("--chdir", home), quoted("--job-name", name)] {
        let _ = writeln!(out, "#SBATCH {own}");
    }
    for words in options {
        let _ = writeln!(out, "#SBATCH {words}");
    }
    let _ = writeln!(out, "# crontab time request was: '{times}'\n{command}");
    out
}

/// An option with a value that is one word in a line of options.
fn quoted(name: &str, value: &str) -> String {
    let value: String =
        value.chars().flat_map(|c| ['"', '\\'].contains(&c).then_some('\\').into_iter().chain([c])).collect();
    format!("{name}=\"{value}\"")
}

/// One of the five fields.
struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    /// A greater number that means the least one: 24 is hour 0, 7 is Sunday.
    again: Option<u32>,
    /// Where steps are counted from.
    steps_from: u32,
    words: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { name: "minute", least: 0, most: 59, again: Some(60), steps_from: 0, words: &[] },
    Field { name: "hour", least: 0, most: 23, again: Some(24), steps_from: 0, words: &[] },
    Field { name: "day of the month", least: 1, most: 31, again: None, steps_from: 1, words: &[] },
    Field {
        name: "month",
        least: 1,
        most: 12,
        again: None,
        steps_from: 1,
        words: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    Field {
        name: "day of the week",
        least: 0,
        most: 6,
        again: Some(7),
        steps_from: 1,
        words: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    },
];

/// The times of a line: five fields, or a word such as `@hourly`.
fn schedule(times: &str, zone: &str) -> Result<Schedule, String> {
    let times = match times.strip_prefix('@').map(str::to_ascii_lowercase).as_deref() {
        None => times.to_owned(),
        Some("yearly" | "annually") => "0 0 1 1 *".to_owned(),
        Some("monthly") => "0 0 1 * *".to_owned(),
        Some("weekly") => "0 0 * * 0".to_owned(),
        Some("daily" | "midnight") => "0 0 * * *".to_owned(),
        Some("hourly") => "0 * * * *".to_owned(),
        Some(other) => {
            return Err(format!(
                "`@{other}` is not @yearly, @annually, @monthly, @weekly, @daily, @midnight or @hourly"
            ));
        }
    };
    let words: Vec<&str> = times.split_whitespace().collect();
    let mut sets = Vec::new();
    for (field, text) in FIELDS.iter().zip(&words) {
        let set = numbers(field, text);
        sets.push(set.ok_or_else(|| format!("`{text}` is no {}", field.name))?);
    }
    let Ok([minutes, hours, days, months, weekdays]) = <[IndexSet; 5]>::try_from(sets) else {
        return Err("five fields and a command are wanted".to_owned());
    };
    let is_restricted = |at: usize| words.get(at).is_some_and(|text| *text != "*");
    let is_either_day = is_restricted(2) && is_restricted(4);
    Ok(Schedule { minutes, hours, days, months, weekdays, is_either_day, zone: zone.to_owned() })
}

/// The numbers of a field: `*`, `*/5`, `1-5,7`, `0-30/10`, or one name.
fn numbers(field: &Field, text: &str) -> Option<IndexSet> {
    let (list, step) = match text.split_once('/') {
        Some((list, step)) => (list, step.parse::<u32>().ok().filter(|step| *step > 1)?),
        None => (text, 1),
    };
    let highest = field.again.unwrap_or(field.most);
    let mut set = IndexSet::new();
    let name = |word: &str| field.words.iter().position(|known| word.eq_ignore_ascii_case(known));
    if list == "*" {
        set = IndexSet::from_range(field.least, highest);
    } else if let Some(place) = name(list) {
        set.insert(field.least + u32::try_from(place).ok()?);
    } else {
        for part in list.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
            if first < field.least || first > last || last > highest {
                return None;
            }
            set = set.union(&IndexSet::from_range(first, last));
        }
    }
    let mut stepped = IndexSet::new();
    let is_step = |number: &u32| step == 1 || number.checked_sub(field.steps_from).is_some_and(|from| from % step == 0);
    for number in set.iter().filter(is_step) {
        stepped.insert(if number > field.most { field.least } else { number });
    }
    (!stepped.is_empty()).then_some(stepped)
}
