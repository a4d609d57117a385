//! Comma-separated lists, and keywords that can be abbreviated.

use super::failure::Failure;
use crate::{job_id::IdExpression, words::State};
use std::collections::BTreeSet;

/// The words of a comma-separated list; empty ones are skipped.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned)
}

pub(super) fn set(text: &str) -> BTreeSet<String> {
    words(text).collect()
}

/// The names of nodes in a list.
pub(super) fn nodes(command: &str, text: &str) -> Result<BTreeSet<String>, Failure> {
    let names = crate::hostlist::expand(text);
    Ok(names
        .map_err(|_| Failure::error(command, format_args!("Invalid node name specified {text}")))?
        .into_iter()
        .collect())
}

/// The states in a list; the error is the first unknown word.
pub(super) fn states(text: &str) -> Result<Vec<State>, String> {
    words(text).map(|word| State::parse(&word).ok_or(word)).collect()
}

/// All words for states, as messages list them.
pub(super) fn known_states() -> String {
    State::ALL.map(|(_, long, _)| long).join(",")
}

/// The ids of a list.
pub(super) fn ids(text: &str, failure: impl Fn(&str) -> Failure) -> Result<Vec<IdExpression>, Failure> {
    crate::job_id::list(text).map_err(|word| failure(&word))
}

/// Whether a word is a keyword, or an abbreviation of sufficient length, in any case.
pub(super) fn means(word: &str, keyword: &str, least: usize) -> bool {
    word.len() >= least && keyword.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}
