//! Values as people write them: on the command line, in `#MUSTER` lines and in the configuration.
//!
//! Each parser takes text and returns the value or a message that says what was expected. None of them panics on any
//! input.

mod binding;
mod condition;
mod hosts;
mod text;
mod time;

pub use binding::{parse_core_binding, parse_memory_binding};
pub use condition::parse_condition;
pub use hosts::{compress_hosts, parse_hosts};
pub use text::shorten;
pub use time::{format_duration, parse_at, parse_deadline, parse_future, parse_past, parse_walltime};

use muster_schemas::{
    JobId,
    job::{ArraySpec, Dependency, DependencyKind, Occasion, image_from},
    resources::{Count, IndexSet},
};
use nix::sys::signal::Signal;
use std::{collections::BTreeMap, str::FromStr};

/// The image of a container; a path that begins with `.` becomes one of this process's working directory.
pub fn parse_image(text: &str) -> Result<String, String> {
    let here = std::env::current_dir().map_err(|error| format!("the working directory is not known: {error}"))?;
    Ok(image_from(&here.to_string_lossy(), text))
}

/// A switch in the words of PBS's start option (PBS-C-05).
///
/// # Errors
/// It is none of them.
pub fn parse_switch(text: &str) -> Result<bool, String> {
    match text {
        "true" | "t" | "True" | "T" | "1" => Ok(true),
        "false" | "f" | "False" | "F" | "0" => Ok(false),
        other => Err(format!("`{}` is not true, t, True, T, 1, false, f, False, F or 0", shorten(other))),
    }
}

/// A number of bytes: `512M`, `4G`, `1.5T`; units K, M, G, T, P are powers of 1,024, with or without `B` or `iB`.
///
/// A number alone is refused (other schedulers take it for MiB), except 0.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let expected = || format!("`{}` is not a size such as 512M or 4G", shorten(text));
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.strip_suffix("iB").or_else(|| unit.strip_suffix('B')).unwrap_or(unit) {
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        "T" | "t" => 40,
        "P" | "p" => 50,
        "" if unit == "B" || number == "0" => 0,
        "" if !number.is_empty() => {
            return Err(format!("`{}` has no unit; write {number}M for MiB or {number}G for GiB", shorten(text)));
        }
        _ => return Err(expected()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > 6 || fraction.contains('.') || (number.contains('.') && fraction.is_empty()) {
        return Err(expected());
    }
    let whole: u64 = whole.parse().map_err(|_| expected())?;
    let too_large = || format!("`{}` is more than can be counted", shorten(text));
    let mut bytes = u128::from(whole) << shift;
    if !fraction.is_empty() {
        let parts: u64 = fraction.parse().map_err(|_| expected())?;
        bytes += (u128::from(parts) << shift) / 10u128.pow(fraction.len() as u32);
    }
    u64::try_from(bytes).map_err(|_| too_large())
}

/// A number of bytes in the largest unit that keeps it exact or to one decimal: `512M`, `1.5G`.
pub fn format_size(bytes: u64) -> String {
    const UNITS: [(&str, u32); 5] = [("P", 50), ("T", 40), ("G", 30), ("M", 20), ("K", 10)];
    for (unit, shift) in UNITS {
        if bytes >> shift > 0 {
            let tenths = (u128::from(bytes) * 10) >> shift;
            return if tenths % 10 == 0 {
                format!("{}{unit}", tenths / 10)
            } else {
                format!("{}.{}{unit}", tenths / 10, tenths % 10)
            };
        }
    }
    format!("{bytes}B")
}

/// A whole number of at least `min`, in decimal digits.
fn parse_number<T: FromStr>(text: &str, what: &str) -> Result<T, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten().ok_or_else(|| format!("`{}` is not {what}", shorten(text)))
}

/// At least 1.
pub fn parse_positive(text: &str) -> Result<u32, String> {
    match parse_number(text, "a whole number from 1 to 4,294,967,295")? {
        0 => Err("it must be at least 1".into()),
        number => Ok(number),
    }
}

/// A count: `4`, a range `2-4`, or `all`.
pub fn parse_count(text: &str) -> Result<Count, String> {
    if text == "all" {
        return Ok(Count::All);
    }
    let (min, max) = text.split_once('-').unwrap_or((text, text));
    let (min, max) = (parse_positive(min)?, parse_positive(max)?);
    if min > max {
        return Err(format!("the range `{text}` ends before it begins"));
    }
    Ok(Count::Range { min, max })
}

/// A signal by name (`USR1`, `SIGUSR1`, in any case) or number, 1 to 64.
pub fn parse_signal(text: &str) -> Result<u8, String> {
    let error = || format!("`{}` is not a signal such as USR1, SIGTERM or 12", shorten(text));
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().filter(|number| (1..=64).contains(number)).ok_or_else(error);
    }
    let upper = text.to_ascii_uppercase();
    let name = if upper.starts_with("SIG") { upper } else { format!("SIG{upper}") };
    Signal::from_str(&name).map(|signal| signal as i32 as u8).map_err(|_| error())
}

/// The name of a signal without `SIG`, or its number if it has no name.
pub fn signal_name(number: u8) -> String {
    Signal::try_from(i32::from(number))
        .map_or_else(|_| number.to_string(), |signal| signal.as_str().trim_start_matches("SIG").to_owned())
}

/// A signal to send before the end of the walltime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalBefore {
    /// The signal's number.
    pub signal: u8,
    /// How long before the end.
    pub seconds_before_end: u32,
}

/// `SIGNAL@SECONDS`, or `SIGNAL` alone for 60 seconds.
pub fn parse_signal_before(text: &str) -> Result<SignalBefore, String> {
    let (signal, seconds) = text.split_once('@').unwrap_or((text, "60"));
    Ok(SignalBefore {
        signal: parse_signal(signal)?,
        seconds_before_end: parse_number(seconds, "a number of seconds after the `@`")?,
    })
}

/// The tasks of an array: `0-9`, `1,3,5-9:2`, at most two at a time `0-9%2`.
pub fn parse_array(text: &str) -> Result<ArraySpec, String> {
    let (indices, max_running) = match text.split_once('%') {
        None => (text, None),
        Some((indices, limit)) => (indices, Some(parse_positive(limit)?)),
    };
    let indices: IndexSet = indices.parse().map_err(|error| format!("{error}"))?;
    Ok(ArraySpec { indices, max_running })
}

/// Dependencies: `KIND:ID[:ID...][+DELAY]`, several separated by `,` (all must be met) or by `?` (one is enough), or
/// `singleton`.
///
/// Alternatives bind tighter: `ok:1?ok:2,ended:3` waits for 3 and for one of 1 and 2.
pub fn parse_after(text: &str) -> Result<Vec<Vec<Dependency>>, String> {
    let mut all_of = Vec::new();
    for group in text.split(',') {
        let mut any_of = Vec::new();
        let conditions: Vec<&str> = group.split('?').collect();
        for condition in &conditions {
            let jobs = parse_dependency(condition)?;
            if conditions.len() == 1 {
                all_of.extend(jobs.into_iter().map(|dependency| vec![dependency]));
            } else {
                any_of.extend(jobs);
            }
        }
        if !any_of.is_empty() {
            all_of.push(any_of);
        }
    }
    Ok(all_of)
}

fn parse_dependency(text: &str) -> Result<Vec<Dependency>, String> {
    const KINDS: &str = "started, ended, ok, failed, not-failed, same-index, running or singleton";
    if text == "singleton" {
        return Ok(vec![Dependency { kind: DependencyKind::Singleton, job: None, delay_seconds: 0 }]);
    }
    let (kind, jobs) =
        text.split_once(':').ok_or_else(|| format!("`{}` is not KIND:JOB, where KIND is {KINDS}", shorten(text)))?;
    let kind = match kind {
        "started" | "after" => DependencyKind::Started,
        "ended" | "afterany" => DependencyKind::Ended,
        "ok" | "succeeded" | "afterok" => DependencyKind::Succeeded,
        "failed" | "notok" | "afternotok" => DependencyKind::Failed,
        "not-failed" => DependencyKind::NotFailed,
        "same-index" | "aftercorr" => DependencyKind::SameIndexSucceeded,
        "running" => DependencyKind::Running,
        _ => return Err(format!("`{}` is not a kind of dependency: {KINDS}", shorten(kind))),
    };
    jobs.split(':')
        .map(|job| {
            let (job, delay_seconds) = match job.split_once('+') {
                None => (job, 0),
                Some((job, delay)) => {
                    let seconds = parse_walltime(delay)?;
                    (job, u32::try_from(seconds).map_err(|_| format!("the delay `{}` is too long", shorten(delay)))?)
                }
            };
            let job: JobId = job.parse().map_err(|error| format!("{error}"))?;
            Ok(Dependency { kind, job: Some(job), delay_seconds })
        })
        .collect()
}

/// Floating licences: `matlab:2,ansys`; a name without a number means one.
pub fn parse_licences(text: &str) -> Result<BTreeMap<String, u32>, String> {
    let mut licences = BTreeMap::new();
    for part in text.split(',') {
        let (name, count) = part.split_once(':').unwrap_or((part, "1"));
        if name.is_empty() {
            return Err(format!("`{}` is not NAME:COUNT", shorten(part)));
        }
        if licences.insert(name.to_owned(), parse_positive(count)?).is_some() {
            return Err(format!("the licence `{}` is named twice", shorten(name)));
        }
    }
    Ok(licences)
}

/// A number of GPUs, of any model or of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuCount {
    /// How many.
    pub count: u32,
    /// Of which model; `None` means any.
    pub model: Option<String>,
}

/// `2`, or `MODEL:2`.
pub fn parse_gpus(text: &str) -> Result<GpuCount, String> {
    match text.rsplit_once(':') {
        None => Ok(GpuCount { count: parse_positive(text)?, model: None }),
        Some(("", _)) => Err(format!("`{}` has no model before the `:`", shorten(text))),
        Some((model, count)) => Ok(GpuCount { count: parse_positive(count)?, model: Some(model.to_owned()) }),
    }
}

/// An environment variable to set (`NAME=VALUE`) or to take over from the caller (`NAME`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentEntry {
    /// The variable.
    pub name: String,
    /// Its value; `None` means the caller's.
    pub value: Option<String>,
}

/// `NAME=VALUE` or `NAME`.
pub fn parse_environment_entry(text: &str) -> Result<EnvironmentEntry, String> {
    let (name, value) = match text.split_once('=') {
        None => (text, None),
        Some((name, value)) => (name, Some(value.to_owned())),
    };
    if name.is_empty() || text.contains('\0') {
        return Err(format!("`{}` is not NAME=VALUE or NAME", shorten(text)));
    }
    // A shell can neither set nor read such a variable: two were probably meant.
    if name.contains(|character: char| character.is_whitespace() || character.is_control()) {
        return Err(format!("the name `{}` contains a blank; use a separate --env for each variable", shorten(name)));
    }
    Ok(EnvironmentEntry { name: name.to_owned(), value })
}

/// An occasion for a notification: `started`, `ended`, `failed`, `requeued`, `suspended`, `held`, `walltime_over`,
/// `end_asked`; and `each_task`.
pub fn parse_occasion(text: &str) -> Result<Occasion, String> {
    Ok(match text {
        "started" => Occasion::Started,
        "ended" => Occasion::Ended,
        "failed" => Occasion::Failed,
        "requeued" => Occasion::Requeued,
        "suspended" => Occasion::Suspended,
        "held" => Occasion::Held,
        "walltime_over" => Occasion::WalltimeOver,
        "each_task" => Occasion::EachTask,
        "end_asked" => Occasion::EndAsked,
        _ => {
            return Err(
                "it is one of started, ended, failed, requeued, suspended, held, walltime_over, end_asked, each_task"
                    .into(),
            );
        }
    })
}

#[cfg(test)]
mod tests;
