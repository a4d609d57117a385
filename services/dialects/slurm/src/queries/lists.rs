//! Lists with commas, and keywords that can be shortened.

use super::failure::Failure;
use crate::{job_id::IdExpression, words::State};
use std::collections::BTreeSet;

/// The words of a list with commas; empty ones do not count.
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

/// The states of a list; a word that is none and the words that are known.
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

/// Whether a word is a keyword, or enough letters of its beginning, in any case.
pub(super) fn means(word: &str, keyword: &str, least: usize) -> bool {
    word.len() >= least && keyword.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}
