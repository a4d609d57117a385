//! How things are shown to people: times, states, lists of jobs.

use crate::{
    table::{Cell, Style, Table},
    terminal,
};
use jiff::tz::TimeZone;
use muster_commands::stderr_line;
use muster_schemas::{
    Timestamp,
    job::JobState,
    views::{ArrayView, JobView, NodeStateWord, OutcomeWord},
};
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

/// A text in which points of time in UTC stand in this zone, to the second, as in columns: `2026-11-20 08:30:00`.
pub fn with_local_times(text: &str, zone: &TimeZone) -> String {
    with_times(text, zone, "%Y-%m-%d %H:%M:%S")
}

/// The same, and the zone is told as by [`local_time`]: `2026-11-20 08:30:00 CET`.
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

/// So many things: `1 node`, `2 nodes`.
pub fn counted(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// A job's state, or once it has ended its outcome.
pub fn state_cell(job: &JobView) -> Cell {
    if let Some(outcome) = &job.outcome {
        let style = match outcome.outcome {
            OutcomeWord::Completed => Style::Good,
            OutcomeWord::Cancelled | OutcomeWord::Requeued | OutcomeWord::Preempted => Style::Dim,
            _ => Style::Bad,
        };
        return Cell::styled(outcome.outcome.word(), style);
    }
    let style = match job.state {
        JobState::Running => Style::Good,
        JobState::Held | JobState::Suspended => Style::Warning,
        JobState::Finished => Style::Dim,
        JobState::Queued | JobState::Launching | JobState::Finishing => Style::Plain,
    };
    Cell::styled(job.state.word(), style)
}

/// A node's state.
pub fn node_state_cell(state: NodeStateWord) -> Cell {
    let style = match state {
        NodeStateWord::Up => Style::Good,
        NodeStateWord::Drained => Style::Warning,
        NodeStateWord::Lost => Style::Bad,
        NodeStateWord::Unknown => Style::Dim,
    };
    Cell::styled(state.word(), style)
}

/// An id as people read it: of an array with the tasks that have not started, `12_[4-9%2]`.
pub fn job_id_text(job: &JobView) -> String {
    match &job.array {
        Some(array) if !array.remaining.is_empty() => {
            let limit = array.max_running.map(|limit| format!("%{limit}")).unwrap_or_default();
            format!("{}_[{}{limit}]", job.id, array.remaining)
        }
        _ => job.id.to_string(),
    }
}

/// What has become of an array's tasks: `2 running, 5 completed, 1 failed`.
pub fn array_text(array: &ArrayView) -> String {
    let counts = [(array.waiting, "waiting"), (array.running, "running")];
    let counts = counts.into_iter().chain(array.finished.iter().map(|(outcome, count)| (*count, outcome.word())));
    let texts: Vec<String> =
        counts.filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    texts.join(", ")
}

/// How long a job has run, or ran, to the nearest second; `None` before its first run.
pub fn elapsed_seconds(job: &JobView, now: Timestamp) -> Option<i64> {
    let started = job.started.filter(|_| job.array.is_none())?;
    let until = job.ended.unwrap_or(now);
    Some((until.micros_since(started).max(0) + 500_000) / 1_000_000)
}

/// Why a job waits, or what else there is to say of it.
pub fn remark(job: &JobView) -> String {
    let array = job.array.as_ref().filter(|array| array.waiting < array.total).map(array_text);
    let reason = job.reason.as_ref().map(|reason| with_local_times(&reason.text, &TimeZone::system()));
    let message = job.filtering.as_ref().and_then(|filtering| filtering.message.clone());
    let ended = job.outcome.as_ref().and_then(|outcome| match (&outcome.detail, outcome.exit_status) {
        (Some(detail), _) => Some(detail.clone()),
        (None, Some(status)) if !status.is_success() => Some(status.to_string()),
        _ => None,
    });
    let parts: Vec<String> = [array, reason, ended, message].into_iter().flatten().collect();
    parts.join("; ")
}

/// Prints `KEY  value` lines, keys padded to one width. Lines without a value are left out.
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

/// Prints a table, or `empty` on standard error if it has no rows and a person reads it.
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
pub mod tests {
    use super::*;
    use muster_schemas::{JobId, job::Holds};

    pub fn job(number: u64) -> JobView {
        JobView {
            id: JobId::job(number),
            number,
            name: "relax".into(),
            owner: "anna".into(),
            queue: "default".into(),
            account: None,
            class: None,
            priority: 0,
            state: JobState::Queued,
            reason: None,
            holds: Holds::default(),
            outcome: None,
            submitted: Timestamp::from_unix_seconds(0),
            begin: None,
            started: None,
            ended: None,
            walltime_seconds: None,
            nodes: Vec::new(),
            node_count: 2,
            tasks: 2,
            cores: 8,
            components: 1,
            run: None,
            runs: 0,
            reservation: None,
            slot_start: None,
            stopping: None,
            predicted_start: None,
            array: None,
            filtering: None,
            elastic: None,
            by_component: Vec::new(),
        }
    }

    #[test]
    fn run_times_are_rounded_to_the_nearest_second() {
        for (micros, seconds) in [(1_995_000, 2), (2_004_000, 2), (499_999, 0), (500_000, 1), (-5_000_000, 0)] {
            let job = JobView { started: Some(Timestamp(7)), ended: Some(Timestamp(7 + micros)), ..job(1) };
            assert_eq!(elapsed_seconds(&job, Timestamp(0)), Some(seconds), "{micros} \u{b5}s");
        }
    }

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
