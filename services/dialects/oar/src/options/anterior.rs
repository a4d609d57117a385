//! The jobs that must end before a job starts: `-a 10`, `-a 10:always`.

use crate::{
    refusal::{Code, Refusal},
    text::{decimal, shown},
};

/// The greatest number of jobs that a job depends on.
const MOST: usize = 10_000;

/// Which end of a job lets those start that depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The end of its command with exit code 0 (OAR-D-02).
    Strict,
    /// Any end (OAR-D-03).
    Always,
    /// Any end but that of its command with another exit code than 0 (OAR-D-04).
    ErrorPasses,
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Strict, Self::Always, Self::ErrorPasses];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Always => "always",
            Self::ErrorPasses => "error-passes",
        }
    }

    /// The policy of a word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.word() == word)
    }
}

/// A job that must end before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anterior {
    /// Its id.
    pub job: u64,
    /// Which end counts; `None` is the policy of the queue.
    pub policy: Option<Policy>,
}

/// Reads the values of all `-a`; a job counts once, as it was named first.
///
/// # Errors
/// The first value that is wrong.
pub fn read(values: &[&str]) -> Result<Vec<Anterior>, Refusal> {
    let mut all: Vec<Anterior> = Vec::new();
    for text in values {
        let one = anterior(text)?;
        if !all.iter().any(|known| known.job == one.job) {
            all.push(one);
        }
        if all.len() > MOST {
            return Err(wrong(format!("a job depends on at most {MOST} others")));
        }
    }
    Ok(all)
}

fn anterior(text: &str) -> Result<Anterior, Refusal> {
    let text = text.trim();
    let (job, policy) = match text.split_once(':') {
        None => (text, None),
        Some((job, word)) => {
            let unknown =
                || wrong(format!("expected strict, always or error-passes after ':', found '{}'", shown(word)));
            (job, Some(Policy::named(word).ok_or_else(unknown)?))
        }
    };
    let job = decimal::<u64>(job).filter(|job| *job > 0);
    let job = job.ok_or_else(|| wrong(format!("expected the id of a job, found '{}'", shown(text))))?;
    Ok(Anterior { job, policy })
}

fn wrong(why: String) -> Refusal {
    Refusal::option(Code::Rule, "-a", why)
}
