//! The events of a job: what `tracejob` prints.

use super::cells::printable;
use crate::queries::TraceRequest;
use jiff::tz::TimeZone;
use muster_schemas::time::Timestamp;
use std::{collections::BTreeMap, fmt::Write};

/// The columns before the text of an event.
const INDENT: usize = 26;

/// An event of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// When it was recorded.
    pub time: Timestamp,
    /// Whose event it is: `planner`, `node:NAME` and others.
    pub actor: String,
    /// One sentence.
    pub text: String,
}

/// The letter of the log in which the family has the event: `L` of the scheduler, `M` of a node, `S` of the server.
fn origin(actor: &str) -> char {
    match actor.split(':').next().unwrap_or_default() {
        "planner" => 'L',
        "node" => 'M',
        _ => 'S',
    }
}

/// The events of a job since a moment, each in a line; `None` if there are none.
pub fn trace(
    job: &str,
    events: &[TraceEvent],
    since: Timestamp,
    request: &TraceRequest,
    zone: &TimeZone,
) -> Option<String> {
    let mut told: BTreeMap<&str, usize> = BTreeMap::new();
    let mut lines = String::new();
    for event in events.iter().filter(|event| event.time >= since) {
        let letter = origin(&event.actor);
        let count = told.entry(&event.text).or_default();
        *count += 1;
        if request.hidden.contains(letter) || request.repeats.is_some_and(|most| *count > most) {
            continue;
        }
        let time = event.time.to_jiff().to_zoned(zone.clone()).strftime("%m/%d/%Y %H:%M:%S").to_string();
        let text = wrapped(&printable(&event.text), request.columns);
        let _ = writeln!(lines, "{time}  {letter:<5}{text}");
    }
    (!told.is_empty()).then(|| format!("\nJob: {job}\n\n{lines}"))
}

/// The text in lines of at most this many columns, broken at blanks where possible.
fn wrapped(text: &str, columns: Option<usize>) -> String {
    let Some(width) = columns.map(|columns| columns.saturating_sub(INDENT).max(1)) else { return text.to_owned() };
    let mut out = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            let _ = write!(out, "\n{:INDENT$}", "");
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out
}
