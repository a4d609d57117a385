//! The figures of simulations for people.

use crate::{
    exit::Failure,
    show::counted,
    table::{Cell, Table, left, right},
    terminal,
    values::format_duration,
};
use muster_cli::stderr_line;
use muster_planner::simulate::{Simulation, Stuck, Summary};
use muster_swf::Dropped;
use std::fmt::Write as _;

/// The text for one policy: a line for each figure.
pub fn text(summary: &Summary) -> String {
    let Summary { policy, procs, jobs, mean_wait, median_wait, p95_wait, max_wait, .. } = summary;
    let Summary { mean_bsld, max_bsld, makespan, utilization, .. } = summary;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<18} {value}");
    };
    line("policy", policy.clone());
    line("machine", counted(*procs, "processor"));
    line("jobs", format!("{jobs}{}", dropped_text(&summary.dropped)));
    if summary.never_started > 0 {
        line("never started", summary.never_started.to_string());
    }
    line(
        "wait",
        format!(
            "mean {}, median {}, 95th percentile {}, most {}",
            duration(*mean_wait),
            duration(*median_wait as f64),
            duration(*p95_wait as f64),
            duration(*max_wait as f64)
        ),
    );
    line("bounded slowdown", format!("mean {mean_bsld:.6}, most {max_bsld:.4}"));
    line("makespan", duration(*makespan as f64));
    line("utilization", format!("{utilization:.6}"));
    if let Some(energy) = &summary.energy {
        let (used, awake) = (energy.sleeping.kilowatt_hours(), energy.always_awake.kilowatt_hours());
        line("energy", format!("{used:.3} kWh, {:.3} kWh less than without sleep", awake - used));
        line("wake-ups", energy.sleeping.wakes.to_string());
    }
    text
}

/// Seconds for people: less than a minute to the millisecond, otherwise also as hours, minutes and seconds.
fn duration(seconds: f64) -> String {
    let exact = format!("{seconds:.3}");
    let exact = exact.trim_end_matches('0').trim_end_matches('.');
    if seconds < 60.0 {
        format!("{exact} s")
    } else {
        format!("{} ({exact} s)", format_duration(seconds.round() as i64))
    }
}

fn dropped_text(dropped: &Dropped) -> String {
    let Dropped { malformed, partial, runtime, submit, procs, size } = *dropped;
    let reasons = [
        (malformed, "malformed"),
        (partial, "partial"),
        (runtime, "runtime"),
        (submit, "submit"),
        (procs, "procs"),
        (size, "size"),
    ];
    let found: Vec<String> =
        reasons.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    if found.is_empty() { String::new() } else { format!(" (dropped lines: {})", found.join(", ")) }
}

/// Several policies side by side.
pub fn table(summaries: &[Summary]) -> Result<String, Failure> {
    let mut columns = vec![
        left("POLICY"),
        right("MEAN WAIT"),
        right("MEDIAN"),
        right("P95"),
        right("MAX"),
        right("MEAN BSLD"),
        right("MAX BSLD"),
        right("MAKESPAN"),
        right("UTILIZATION"),
        right("NEVER STARTED"),
    ];
    let has_energy = summaries.iter().any(|summary| summary.energy.is_some());
    columns.extend(has_energy.then(|| [right("KWH"), right("WITHOUT SLEEP"), right("WAKE-UPS")]).into_iter().flatten());
    let mut table = Table::new(columns);
    for summary in summaries {
        let never = if summary.never_started == 0 { String::new() } else { summary.never_started.to_string() };
        let mut row: Vec<Cell> = vec![
            summary.policy.as_str().into(),
            format_duration(summary.mean_wait.round() as i64).into(),
            format_duration(summary.median_wait).into(),
            format_duration(summary.p95_wait).into(),
            format_duration(summary.max_wait).into(),
            format!("{:.4}", summary.mean_bsld).into(),
            format!("{:.2}", summary.max_bsld).into(),
            format_duration(summary.makespan).into(),
            format!("{:.6}", summary.utilization).into(),
            never.into(),
        ];
        if let Some(energy) = &summary.energy {
            let kilowatt_hours =
                [energy.sleeping, energy.always_awake].map(|one| format!("{:.3}", one.kilowatt_hours()));
            row.extend(kilowatt_hours.map(Cell::from));
            row.push(energy.sleeping.wakes.to_string().into());
        }
        table.push(row);
    }
    let mut bytes = Vec::new();
    table.write(terminal::layout(), &mut bytes)?;
    let mut text = String::from_utf8(bytes).map_err(|error| Failure::failed(error.to_string()))?;
    if let Some(summary) = summaries.first() {
        let jobs = counted(summary.jobs, "job");
        let _ = writeln!(text, "{jobs}{} on {}", dropped_text(&summary.dropped), counted(summary.procs, "processor"));
    }
    Ok(text)
}

/// Reports on standard error that the policy left jobs waiting for ever, with the reason of the first of them.
pub fn tell_stuck(simulation: &Simulation) {
    let Some(Stuck { job_id, reason }) = &simulation.first_stuck else { return };
    let reason = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
    stderr_line!("muster: under policy {} some jobs never start, first job {job_id}{reason}", simulation.policy);
}
