//! Job identifiers: `123.server`, `123[].server`, `123[4].server`, `123[4-7].server`, TORQUE's `123-4`.

use crate::{refusal::Refusal, text::decimal};
use muster_schemas::{ids::JobId, resources::IndexSet};
use std::{fmt, str::FromStr};

/// The longest identifier.
const MOST_BYTES: usize = 4_096;
/// The most tasks that one identifier names.
const MOST_TASKS: u64 = 10_000_000;

/// The part of a job that an identifier names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A plain job.
    Job,
    /// An array as a whole: `[]`.
    Array,
    /// One task of an array: `[4]`.
    Task(u32),
    /// Tasks of an array: `[4-7]`.
    Tasks(IndexSet),
}

/// An identifier as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PbsJobId {
    /// The job's number, from 1.
    pub number: u64,
    /// The part of it.
    pub part: Part,
    /// The server that it was submitted to, after the dot.
    pub server: Option<String>,
    /// The server where it is to be looked for, after the at sign.
    pub at: Option<String>,
}

impl PbsJobId {
    /// The identifier of a job of this server. Whether it is an array is not in the model's id.
    pub fn of(job: JobId, is_array: bool, server: &str) -> Self {
        let part = match job.index {
            Some(index) => Part::Task(index),
            None if is_array => Part::Array,
            None => Part::Job,
        };
        let server = (!server.is_empty()).then(|| server.to_owned());
        Self { number: job.number, part, server, at: None }
    }

    /// The model's ids of what it names: the job or array, or its tasks.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        let (whole, one, many) = match &self.part {
            Part::Job | Part::Array => (Some(JobId::job(self.number)), None, None),
            Part::Task(index) => (None, Some(JobId::task(self.number, *index)), None),
            Part::Tasks(indices) => (None, None, Some(indices)),
        };
        let tasks = many.into_iter().flat_map(IndexSet::iter).map(|index| JobId::task(self.number, index));
        whole.into_iter().chain(one).chain(tasks)
    }

    /// The model's id, if it names one job, array or task.
    pub fn single(&self) -> Option<JobId> {
        let mut jobs = self.jobs();
        jobs.next().filter(|_| jobs.next().is_none())
    }

    /// Whether a word looks like an identifier, so that it is not the name of a queue.
    pub fn is_meant(word: &str) -> bool {
        word.starts_with(|c: char| c.is_ascii_digit())
    }
}

impl FromStr for PbsJobId {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let wrong = || Refusal::value("job identifier", text, "expected one such as 123.server or 123[4].server");
        if text.len() > MOST_BYTES {
            return Err(wrong());
        }
        let (id, at) = match text.split_once('@') {
            None => (text, None),
            Some((id, at)) => (id, Some(server(at).ok_or_else(wrong)?)),
        };
        let digits = id.len() - id.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number = decimal::<u64>(&id[..digits]).filter(|number| *number > 0).ok_or_else(wrong)?;
        let (part, rest) = part(&id[digits..]).ok_or_else(wrong)?;
        let server = match rest {
            "" => None,
            rest => Some(rest.strip_prefix('.').and_then(server).ok_or_else(wrong)?),
        };
        Ok(Self { number, part, server, at })
    }
}

/// The part of the job, and what follows.
fn part(text: &str) -> Option<(Part, &str)> {
    if let Some(bracketed) = text.strip_prefix('[') {
        let (inside, rest) = bracketed.split_once(']')?;
        return Some((in_brackets(inside)?, rest));
    }
    if let Some(dashed) = text.strip_prefix('-') {
        let digits = dashed.len() - dashed.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        return Some((Part::Task(decimal(&dashed[..digits])?), &dashed[digits..]));
    }
    Some((Part::Job, text))
}

fn in_brackets(inside: &str) -> Option<Part> {
    if inside.is_empty() {
        return Some(Part::Array);
    }
    if let Some(index) = decimal(inside) {
        return Some(Part::Task(index));
    }
    let indices = inside.parse::<IndexSet>().ok()?;
    match indices.len() {
        0 => None,
        1 => indices.first().map(Part::Task),
        many => (many <= MOST_TASKS).then_some(Part::Tasks(indices)),
    }
}

/// A server's name.
fn server(text: &str) -> Option<String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
    let fits = !text.is_empty() && text.len() <= 255 && !text.starts_with(['-', '.']);
    (fits && text.bytes().all(is_name)).then(|| text.to_owned())
}

impl fmt::Display for PbsJobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)?;
        match &self.part {
            Part::Job => {}
            Part::Array => f.write_str("[]")?,
            Part::Task(index) => write!(f, "[{index}]")?,
            Part::Tasks(indices) => write!(f, "[{indices}]")?,
        }
        if let Some(server) = &self.server {
            write!(f, ".{server}")?;
        }
        if let Some(at) = &self.at {
            write!(f, "@{at}")?;
        }
        Ok(())
    }
}
