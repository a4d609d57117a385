//! `tracejob`.

use super::operands::ids;
use crate::{getopt, job_id::PbsJobId, refusal::Refusal, text::decimal};

/// The most days that are looked at.
const MOST_DAYS: u32 = 36_600;
/// The narrowest output, in columns.
const LEAST_COLUMNS: usize = 40;

/// A request of `tracejob`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceRequest {
    /// The number of days, today included (`-n`).
    pub days: u32,
    /// The letters of events that are left out: `S` the server's, `L` the scheduler's, `M` the nodes' (`-s -l -m`).
    pub hidden: String,
    /// At most this many lines with the same text (`-c`).
    pub repeats: Option<usize>,
    /// The columns of a line (`-w`).
    pub columns: Option<usize>,
    /// The jobs.
    pub jobs: Vec<PbsJobId>,
}

/// Reads a command line.
///
/// # Errors
/// An unknown option, a wrong value, or no job.
pub fn tracejob(words: &[String]) -> Result<TraceRequest, Refusal> {
    let read = getopt::read("aslmvzw:p:n:f:c:", words)?;
    for (letter, why) in
        [('p', "the events are in the log of the system"), ('f', "-s, -l and -m leave events out, by their origin")]
    {
        if read.has(letter) {
            return Err(Refusal::unsupported(&format!("-{letter}"), why));
        }
    }
    let number = |letter: char, expected: &str| {
        let one = |text: &str| {
            let fits = decimal::<u32>(text).filter(|number| (1..=MOST_DAYS).contains(number));
            fits.ok_or_else(|| Refusal::value(&format!("-{letter}"), text, format!("expected {expected}")))
        };
        read.value(letter).map(one).transpose()
    };
    let days = number('n', "a number of days from 1 to 36600")?.unwrap_or(1);
    let repeats = number('c', "a number from 1 to 36600")?;
    let columns = number('w', "a number of columns from 40 to 36600")?;
    if columns.is_some_and(|columns| (columns as usize) < LEAST_COLUMNS) {
        return Err(Refusal::value("-w", read.value('w').unwrap_or_default(), "expected at least 40 columns"));
    }
    let hidden = ['s', 'l', 'm'].into_iter().filter(|letter| read.has(*letter));
    Ok(TraceRequest {
        days,
        hidden: hidden.map(|letter| letter.to_ascii_uppercase()).collect(),
        repeats: repeats.map(|repeats| repeats as usize),
        columns: columns.map(|columns| columns as usize),
        jobs: ids(&read.all_operands())?,
    })
}
