//! Job arrays: `-J 0-9:2%3` and `-t 0-9,12%2`.

use crate::{refusal::Refusal, text::decimal};
use muster_schemas::{job::ArraySpec, resources::IndexSet};

/// The longest text of an array's indices.
const MOST_BYTES: usize = 65_536;

/// Reads the indices of an array: numbers and ranges, separated by commas, the ranges with an optional step, and the
/// most tasks that run at a time after `%`. `option` is the option's name in messages; an index is below `limit`.
///
/// # Errors
/// The part that is wrong, and what is expected.
pub fn parse(option: &str, text: &str, limit: u32) -> Result<ArraySpec, Refusal> {
    let text = text.trim();
    let (indices, most) = match text.split_once('%') {
        None => (text, None),
        Some((indices, most)) => (indices, Some(most)),
    };
    if text.len() > MOST_BYTES {
        return Err(Refusal::value(option, text, format!("at most {MOST_BYTES} bytes are taken")));
    }
    let max_running = match most {
        None => None,
        Some(most) => match decimal::<u32>(most).filter(|most| *most > 0) {
            Some(most) => Some(most),
            None => return Err(Refusal::value(option, most, "the most tasks that run at a time is a number from 1")),
        },
    };
    // The last index bounds the set before it is built.
    for part in indices.split(',') {
        check(option, part, limit)?;
    }
    match indices.parse::<IndexSet>() {
        Ok(set) if !set.is_empty() => Ok(ArraySpec { indices: set, max_running }),
        Ok(_) => Err(Refusal::value(option, indices, "the array has no index")),
        Err(wrong) => Err(Refusal::value(option, &wrong.token, "expected a number or a range such as 0-9 or 0-9:2")),
    }
}

fn check(option: &str, part: &str, limit: u32) -> Result<(), Refusal> {
    let wrong = |why: String| Err(Refusal::value(option, part, why));
    let (range, step) = match part.split_once(':') {
        None => (part, Some(1)),
        Some((range, step)) => (range, decimal::<u32>(step)),
    };
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    match (decimal::<u32>(first), decimal::<u32>(last), step) {
        (_, _, Some(0)) => wrong("the step is at least 1".to_owned()),
        (Some(first), Some(last), Some(_)) if first > last => wrong("the range goes down".to_owned()),
        (Some(_), Some(last), Some(_)) if last >= limit => wrong(format!("indices are below {limit}")),
        (Some(_), Some(_), Some(_)) => Ok(()),
        _ => wrong("expected a number or a range such as 0-9 or 0-9:2".to_owned()),
    }
}
