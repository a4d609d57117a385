//! `scontrol show`: records of `Key=value` pairs (SL-C-33 to C-35).

mod buffer;
mod config;
mod job;
mod json;
mod node;
mod other;
mod partition;
mod step;

pub use buffer::buffers;
pub use config::{SETTINGS, config, ping};
pub use job::{job, job_in_detail};
pub use json::{licence_data, ping_data, reservation_data, step_data};
pub use node::{NodeExtras, node};
pub use other::{associations, completing, daemons, topology, update_line};
pub use partition::{licences, partition, reservation};
pub use step::step;

use crate::hostlist::{self, HostlistError};

/// Where a record's lines are broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lines {
    /// Where Slurm breaks them, the rest indented.
    #[default]
    Several,
    /// Nowhere (`-o`).
    One,
}

/// A record under construction.
struct Record {
    text: String,
    lines: Lines,
}

impl Record {
    fn new(lines: Lines) -> Self {
        Self { text: String::new(), lines }
    }

    /// Adds a pair to the current line. A value always stays on one line, whatever its source.
    fn pair(&mut self, key: &str, value: impl std::fmt::Display) -> &mut Self {
        if !self.text.is_empty() && !self.text.ends_with(' ') {
            self.text.push(' ');
        }
        let value = value.to_string();
        let value = if value.contains(char::is_control) { value.replace(char::is_control, " ") } else { value };
        self.text.extend([key, "=", &value]);
        self
    }

    /// Begins a line.
    fn line(&mut self) -> &mut Self {
        self.text.push_str(match self.lines {
            Lines::Several => "\n   ",
            Lines::One => " ",
        });
        self
    }

    /// The finished record, with an empty line after it unless it is on one line.
    fn end(mut self) -> String {
        self.text.push('\n');
        if self.lines == Lines::Several {
            self.text.push('\n');
        }
        self.text
    }
}

/// A text, or `(null)`.
fn or_null(text: Option<&str>) -> &str {
    text.filter(|text| !text.is_empty()).unwrap_or(super::cells::NULL)
}

/// A point in time, or `none` without one.
fn moment(time: Option<muster_schemas::time::Timestamp>, none: &str, clock: &super::Clock) -> String {
    let mut text = String::new();
    super::cells::moment(time, none, clock, &mut text);
    text
}

/// A point in time as records show it.
pub fn time(time: muster_schemas::time::Timestamp, clock: &super::Clock) -> String {
    moment(Some(time), "Unknown", clock)
}

/// A length of time, `UNLIMITED` for none.
fn limit(seconds: Option<u64>) -> String {
    let mut text = String::new();
    super::cells::long_limit(seconds, &mut text);
    text
}

/// The text if there is nothing to show: `No jobs in the system` (SL-C-33).
pub fn nothing(of: &str) -> String {
    format!("No {of} in the system\n")
}

/// The error about a node, partition, step or reservation that does not exist: `Node zzz not found` (SL-C-34).
pub fn not_found(kind: &str, name: &str) -> String {
    format!("{kind} {name} not found")
}

/// `scontrol show hostnames`: the names in a list, one per line (SL-C-05).
///
/// # Errors
/// An invalid list.
pub fn hostnames(list: &str) -> Result<String, HostlistError> {
    Ok(hostlist::expand(list)?.into_iter().map(|name| name + "\n").collect())
}

/// `scontrol show hostlist`, or `hostlistsorted`: names as one list (SL-C-05).
///
/// # Errors
/// Invalid names.
pub fn hostlist(names: &str, is_sorted: bool) -> Result<String, HostlistError> {
    let names = hostlist::expand(names)?;
    Ok(if is_sorted { hostlist::compress_sorted(&names) } else { hostlist::compress(&names) } + "\n")
}
