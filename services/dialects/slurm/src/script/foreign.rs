//! `#BSUB` and `#PBS` lines, translated as Slurm's `sbatch` does (SL-C-16). Options without a translation are reported.

mod bsub;
mod pbs;
mod translation;

use super::{ScriptOptions, split_words};
use crate::messages::Refusal;
use translation::Translation;

/// How many lines that are no comments are read in search of foreign ones, as in Slurm.
const MOST_OTHER_LINES: usize = 100;

/// Lines of schedulers that Slurm's `sbatch` does not translate: to it they are comments.
const COMMENTS: [&str; 5] = ["#$", "#COBALT", "#MSUB", "#MUSTER", "#OAR"];

impl ScriptOptions {
    /// Adds what the `#BSUB` or else the `#PBS` lines of the script ask for, to every component and over its `#SBATCH`
    /// lines, as Slurm does. Other foreign lines are comments; a warning says so.
    ///
    /// # Errors
    /// An option that the other scheduler does not have, an unclosed quote, or a value that cannot be translated.
    pub fn with_foreign_lines(mut self, text: &str) -> Result<Self, Refusal> {
        let lsf = words("#BSUB", text)?;
        let pbs = words("#PBS", text)?;
        let translation = match (&lsf, &pbs) {
            (Some(words), _) => bsub::translate(words)?,
            (None, Some(words)) => pbs::translate(words)?,
            (None, None) => Translation::default(),
        };
        if lsf.is_some() && pbs.is_some() {
            self.warnings.push("lines that begin with #PBS are ignored, because others begin with #BSUB".to_owned());
        }
        for marker in COMMENTS.into_iter().filter(|marker| lines(marker, text).next().is_some()) {
            self.warnings.push(format!("lines that begin with {marker} are comments here: their options do not count"));
        }
        for section in &mut self.sections {
            section.extend(translation.options.iter().cloned());
        }
        self.warnings.extend(translation.warnings);
        self.umask = translation.umask;
        Ok(self)
    }
}

/// The words of all lines with this marker; `None` without such a line.
fn words(marker: &str, text: &str) -> Result<Option<Vec<String>>, Refusal> {
    let mut all = None;
    for (number, rest) in lines(marker, text) {
        all.get_or_insert_with(Vec::new).extend(split_words(rest, number)?);
    }
    Ok(all)
}

/// The lines with this marker, each with its number from 1 and without the marker.
fn lines<'t>(marker: &str, text: &'t str) -> impl Iterator<Item = (usize, &'t str)> {
    let mut others = 0;
    let near = text.lines().take_while(move |line| {
        others += usize::from(!line.starts_with('#'));
        others <= MOST_OTHER_LINES
    });
    let begins = |rest: &&str| rest.is_empty() || rest.starts_with(|c: char| c == '-' || c.is_ascii_whitespace());
    near.zip(1..).filter_map(move |(line, number)| Some((number, line.strip_prefix(marker).filter(begins)?)))
}
