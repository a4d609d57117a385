//! `seff`: how well a job used what it had, as the script tells it that comes with Slurm.

use super::{Clock, record::MinMemory, sacct::Row, tres};
use crate::words::State;
use std::fmt::Write as _;

/// The report about a job: its line of `sacct`, and those of its steps.
pub fn seff(job: &Row, steps: &[Row], clock: &Clock) -> String {
    let record = &job.job;
    let mut out = format!("Job ID: {}\n", record.number);
    let mut say = |line: String| {
        out.push_str(&line);
        out.push('\n');
    };
    if record.array.is_some() {
        say(format!("Array Job ID: {}", record.shown_id()));
    }
    say(format!("Cluster: {}", job.cluster));
    say(format!("User/Group: {}/{}", record.user, record.person.group));
    let state = job.state();
    match state {
        State::Pending | State::Running => say(format!("State: {}", state.long())),
        _ => say(format!("State: {} (exit code {})", state.long(), record.exit.status)),
    }
    let (cpus, nodes) = (record.cpus.max(1), u64::from(record.node_count.max(1)));
    match cpus {
        1 => say("Cores: 1".to_owned()),
        _ => {
            say(format!("Nodes: {nodes}"));
            say(format!("Cores per node: {}", cpus / nodes));
        }
    }
    if state == State::Pending {
        say("Efficiency not available for jobs in the PENDING state.".to_owned());
        return out;
    }
    let micros = steps.iter().map(|step| step.usage.cpu_time_micros).fold(0, u64::saturating_add);
    // A job without steps of its own was measured as a whole.
    let used = if steps.is_empty() { job.usage.cpu_time_micros } else { micros };
    let seconds = used.saturating_add(500_000) / 1_000_000;
    let wall = job.elapsed_seconds(clock);
    let core_wall = wall.saturating_mul(cpus);
    say(format!("CPU Utilized: {}", time(seconds)));
    say(format!("CPU Efficiency: {:.2}% of {} core-walltime", percent(seconds, core_wall), time(core_wall)));
    say(format!("Job Wall-clock time: {}", time(wall)));
    let of_steps = steps.iter().map(|step| step.usage.peak_memory_bytes).max();
    let memory = of_steps.unwrap_or(job.usage.peak_memory_bytes) / 1024;
    say(format!("Memory Utilized: {}", kilobytes(memory)));
    let given = tres::megabytes_of(record).unwrap_or(0).saturating_mul(1024);
    let each = match record.request().memory {
        Some(MinMemory::PerCpu(_)) => format!("{}/core", kilobytes(given / cpus)),
        _ => format!("{}/node", kilobytes(given / nodes)),
    };
    say(format!("Memory Efficiency: {:.2}% of {} ({each})", percent(memory, given), kilobytes(given)));
    if state == State::Running {
        say(
            "WARNING: Efficiency statistics can only be obtained after the job has ended as seff tool is based on the \
             accounting database data."
                .to_owned(),
        );
    }
    out
}

fn percent(of: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { of as f64 / whole as f64 * 100.0 }
}

/// `[D-]HH:MM:SS`.
fn time(seconds: u64) -> String {
    let mut text = String::new();
    if seconds >= 86_400 {
        // Writing to a string never fails.
        let _ = write!(text, "{}-", seconds / 86_400);
    }
    let rest = seconds % 86_400;
    let _ = write!(text, "{:02}:{:02}:{:02}", rest / 3600, rest % 3600 / 60, rest % 60);
    text
}

/// `1.50 GB`.
fn kilobytes(kilobytes: u64) -> String {
    const UNITS: [&str; 6] = ["KB", "MB", "GB", "TB", "PB", "EB"];
    if kilobytes == 0 {
        return "0.00 MB".to_owned();
    }
    let (mut value, mut unit) = (kilobytes as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.2} {}", UNITS[unit])
}
