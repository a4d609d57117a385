//! Changes of steps by `scontrol update` (SL-C-38).

use super::{
    Failure,
    update::{Change, Update},
};
use crate::duration::TimeLimit;

/// The time limit in seconds that an update gives to a step with this one; `None` means as long as its job.
///
/// # Errors
/// It gives none, or one that is added to or taken from a step without a limit, or nothing is left.
pub fn step_limit(update: &Update, now: Option<u64>) -> Result<Option<u64>, Failure> {
    let Some(pair) = update.pairs.iter().rev().find(|pair| pair.key == "TimeLimit") else {
        return Err(Failure::plain("No changes specified"));
    };
    let (change, text) = match (pair.value.strip_prefix('+'), pair.value.strip_prefix('-')) {
        (Some(text), _) => (Change::Add, text),
        // Minus one minute is how Slurm writes that there is no limit.
        (_, Some(text)) if pair.value != "-1" => (Change::Subtract, text),
        _ => (pair.change, pair.value.as_str()),
    };
    let given = TimeLimit::parse(text).map(TimeLimit::seconds);
    let seconds = match (change, given, now) {
        (Change::Set, Some(seconds), _) => Some(seconds),
        (Change::Add, Some(Some(more)), Some(now)) => now.checked_add(more).map(Some),
        (Change::Subtract, Some(Some(less)), Some(now)) => now.checked_sub(less).filter(|left| *left > 0).map(Some),
        _ => None,
    };
    seconds.ok_or_else(|| Failure {
        lines: vec![format!("Invalid TimeLimit value: {}", pair.value), "Request aborted".to_owned()],
        code: 1,
    })
}
