//! Job traces in the Standard Workload Format, version 2.2, plain or gzip-compressed.
//!
//! A trace has one line of 18 numbers for each job and comments that start with `;`, some of which are headers
//! (`; Key: value`). Lines that cannot be replayed are dropped and counted by reason, never guessed at.

use serde::Serialize;
use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::Path,
};

/// Numbers on a job's line.
const FIELDS: usize = 18;
/// The first bytes of a gzip file.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SwfError {
    /// The file cannot be read, or is not the gzip file that it begins as.
    #[error("{path}: {source}")]
    Unreadable {
        /// The file's name.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// Neither the headers nor the caller say how many processors the machine has.
    #[error("{path}: no header `MaxProcs` or `MaxNodes` gives the size of the machine; name it with --procs")]
    UnknownMachineSize {
        /// The file's name.
        path: String,
    },
}

/// A trace as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Processors of the machine.
    pub machine_procs: u64,
    /// All headers.
    pub headers: Headers,
    /// The accepted jobs in queue order: by submit time, then by place in the file.
    pub jobs: Vec<TraceJob>,
    /// The dropped lines.
    pub dropped: Dropped,
}

/// A job of a trace. The label and the numbers of people and programs are -1 if unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceJob {
    /// Field 1: a label without further meaning.
    pub id: i64,
    /// Field 2: when it was submitted, from the start of the log; 0 or more.
    pub submit_seconds: i64,
    /// Field 4, at least 1: how long it ran.
    pub runtime_seconds: i64,
    /// Field 9 (requested time), or the run time where that is larger.
    pub estimate_seconds: i64,
    /// Field 8 (requested processors) if above 0, else field 5 (allocated); 1 to the size of the machine.
    pub procs: u64,
    /// Field 12.
    pub user: i64,
    /// Field 13.
    pub group: i64,
    /// Field 14.
    pub application: i64,
    /// Field 15.
    pub queue: i64,
    /// Field 16.
    pub partition: i64,
}

/// How many lines were dropped, each under the first reason that applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// Not 18 numbers.
    pub malformed: u64,
    /// A part of a checkpointed job (status 2, 3 or 4).
    pub partial: u64,
    /// A run time below 0.
    pub runtime: u64,
    /// A submit time below 0.
    pub submit: u64,
    /// No processor count above 0.
    pub procs: u64,
    /// More processors than the machine has.
    pub size: u64,
}

impl Dropped {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.malformed + self.partial + self.runtime + self.submit + self.procs + self.size
    }
}

/// The headers of a trace, in the order of the file. A key may occur several times (`Queue`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// The value of the key's first occurrence.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.all(key).next()
    }

    /// The values of all occurrences of the key.
    pub fn all<'a>(&'a self, key: &str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(found, _)| found == key).map(|(_, value)| value.as_str())
    }

    /// The first run of digits in the value of the key's first occurrence.
    fn first_number(&self, key: &str) -> Option<u64> {
        let value = self.get(key)?;
        let digits = value.split(|character: char| !character.is_ascii_digit()).find(|run| !run.is_empty())?;
        digits.parse().ok()
    }

    fn add_comment(&mut self, comment: &str) {
        if let Some((key, value)) = comment.split_once(':') {
            self.0.push((key.trim().to_owned(), value.trim().to_owned()));
        }
    }
}

impl Trace {
    /// Reads a trace file. `procs` overrides what the headers say of the machine's size.
    ///
    /// # Errors
    /// If the file cannot be read or the size of the machine is not known.
    pub fn open(path: &Path, procs: Option<u64>) -> Result<Self, SwfError> {
        let name = path.display().to_string();
        File::open(path)
            .and_then(|file| Lines::read(BufReader::new(file)))
            .map_err(|source| SwfError::Unreadable { path: name.clone(), source })?
            .into_trace(procs)
            .ok_or(SwfError::UnknownMachineSize { path: name })
    }

    /// Reads a trace from any reader; errors use `name` as the file's name.
    ///
    /// # Errors
    /// As [`Trace::open`].
    pub fn read(input: impl BufRead, name: &str, procs: Option<u64>) -> Result<Self, SwfError> {
        Lines::read(input)
            .map_err(|source| SwfError::Unreadable { path: name.to_owned(), source })?
            .into_trace(procs)
            .ok_or_else(|| SwfError::UnknownMachineSize { path: name.to_owned() })
    }

    /// The jobs after the first `skip`, at most `limit` of them.
    pub fn window(&self, skip: usize, limit: usize) -> &[TraceJob] {
        let rest = self.jobs.get(skip..).unwrap_or_default();
        &rest[..limit.min(rest.len())]
    }
}

/// The lines before the machine's size is known: headers may appear anywhere in the file.
#[derive(Default)]
struct Lines {
    headers: Headers,
    jobs: Vec<TraceJob>,
    dropped: Dropped,
}

impl Lines {
    fn read(mut input: impl BufRead) -> io::Result<Self> {
        let mut lines = Self::default();
        if input.fill_buf()?.starts_with(&GZIP_MAGIC) {
            lines.add_all(BufReader::new(flate2::bufread::MultiGzDecoder::new(input)))?;
        } else {
            lines.add_all(input)?;
        }
        Ok(lines)
    }

    fn add_all(&mut self, mut input: impl BufRead) -> io::Result<()> {
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line)? > 0 {
            self.add(&String::from_utf8_lossy(&line));
            line.clear();
        }
        Ok(())
    }

    fn add(&mut self, line: &str) {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix(';') {
            self.headers.add_comment(comment);
        } else if !line.is_empty() {
            match numbers(line) {
                Some(fields) => self.add_job(&fields),
                None => self.dropped.malformed += 1,
            }
        }
    }

    fn add_job(&mut self, fields: &[i64; FIELDS]) {
        let field = |number: usize| fields[number - 1];
        let requested_procs = if field(8) > 0 { field(8) } else { field(5) };
        let dropped = &mut self.dropped;
        let reason = match () {
            () if matches!(field(11), 2..=4) => &mut dropped.partial,
            () if field(4) < 0 => &mut dropped.runtime,
            () if field(2) < 0 => &mut dropped.submit,
            () if requested_procs <= 0 => &mut dropped.procs,
            () => {
                let runtime_seconds = field(4).max(1);
                self.jobs.push(TraceJob {
                    id: field(1),
                    submit_seconds: field(2),
                    runtime_seconds,
                    estimate_seconds: field(9).max(runtime_seconds),
                    procs: requested_procs.unsigned_abs(),
                    user: field(12),
                    group: field(13),
                    application: field(14),
                    queue: field(15),
                    partition: field(16),
                });
                return;
            }
        };
        *reason += 1;
    }

    fn into_trace(mut self, procs: Option<u64>) -> Option<Trace> {
        let headers = &self.headers;
        let machine_procs =
            procs.or_else(|| headers.first_number("MaxProcs")).or_else(|| headers.first_number("MaxNodes"))?;
        let candidates = self.jobs.len();
        self.jobs.retain(|job| job.procs <= machine_procs);
        self.dropped.size += (candidates - self.jobs.len()) as u64;
        self.jobs.sort_by_key(|job| job.submit_seconds);
        Some(Trace { machine_procs, headers: self.headers, jobs: self.jobs, dropped: self.dropped })
    }
}

/// Exactly 18 numbers, or nothing.
fn numbers(line: &str) -> Option<[i64; FIELDS]> {
    let mut fields = [0; FIELDS];
    let mut words = line.split_ascii_whitespace();
    for field in &mut fields {
        *field = number(words.next()?)?;
    }
    words.next().is_none().then_some(fields)
}

/// A number, truncated toward zero and clamped to the range of `i64`.
fn number(word: &str) -> Option<i64> {
    word.parse::<i64>()
        .ok()
        .or_else(|| word.parse::<f64>().ok().filter(|value| value.is_finite()).map(|value| value as i64))
}

#[cfg(test)]
mod tests;
