//! `qalter`: the options of `qsub` for jobs that are there.

use super::operands::ids;
use crate::{
    getopt,
    job_id::PbsJobId,
    refusal::Refusal,
    submit::{self, Changed, Present, Reading, Rules, Settings},
};

/// The letters of `qalter`: those of `qsub` that change a job that is there.
const LETTERS: &str = "a:A:c:e:h:j:k:l:m:M:N:o:p:P:r:R:S:t:u:v:W:";

/// A request of `qalter`.
#[derive(Clone, Debug, PartialEq)]
pub struct Alteration {
    /// The new values; what was not given has no value.
    pub settings: Settings,
    /// The letters that were given.
    pub letters: Vec<char>,
    /// The holds that replace the present ones, by letter (`-h`).
    pub holds: Option<String>,
    /// The jobs.
    pub jobs: Vec<PbsJobId>,
}

/// Reads a command line.
///
/// # Errors
/// An unknown option, a value that cannot be read, or no job.
pub fn alteration(words: &[String], reading: &Reading<'_>) -> Result<Alteration, Refusal> {
    let read = getopt::read(LETTERS, words)?;
    let holds = read.value('h').map(str::to_owned);
    if let Some(text) = holds.as_ref().filter(|text| text.is_empty() || !text.chars().all(|c| "uosn".contains(c))) {
        return Err(Refusal::value("-h", text, "expected letters of uos, or n"));
    }
    let letters = read.options.iter().map(|given| given.letter).collect();
    let options: Vec<getopt::Given> = read.options.iter().filter(|given| given.letter != 'h').cloned().collect();
    let settings = Settings::read(&[], None, None, &options, reading)?;
    Ok(Alteration { settings, letters, holds, jobs: ids(&read.all_operands())? })
}

/// The change of a job. Holds are no part of it: they are set and released.
///
/// # Errors
/// An option that cannot be changed, or a size that cannot be read.
pub fn change(alteration: &Alteration, present: &Present<'_>, rules: &Rules) -> Result<Changed, Refusal> {
    submit::change(&alteration.settings, &alteration.letters, present, rules)
}
