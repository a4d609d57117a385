//! Nodes that stay awake although they are idle (OAR-E-07).

use crate::{
    mistake::Mistake,
    predicate::{self, Predicate},
    resources::{property::Fields, state::State, table::Table},
    text::decimal,
};
use std::collections::BTreeSet;

/// How many idle nodes stay awake, of those that a filter matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// The filter.
    pub filter: Predicate,
    /// The number.
    pub count: usize,
}

impl KeepAlive {
    /// Reads `FILTER:NUMBER & FILTER:NUMBER`. A `&` or `:` in quotes belongs to the filter.
    ///
    /// # Errors
    /// The first mistake.
    pub fn read(text: &str, fields: &Fields) -> Result<Vec<Self>, Mistake> {
        let mut at = 0;
        let mut all = Vec::new();
        for part in split_outside_quotes(text, '&') {
            all.push(one(part, fields).map_err(|mistake| mistake.moved(text[..at].chars().count()))?);
            at += part.len() + 1;
        }
        Ok(all)
    }
}

fn one(part: &str, fields: &Fields) -> Result<KeepAlive, Mistake> {
    let pieces = split_outside_quotes(part, ':');
    let count_length = pieces.last().map_or(0, |count| count.len());
    if pieces.len() < 2 {
        return Err(Mistake::at(part, part.len(), "expected : and a number of nodes"));
    }
    let begin = part.len() - count_length;
    let filter = predicate::read(&part[..begin - 1], fields)?;
    let count = decimal(part[begin..].trim()).ok_or_else(|| Mistake::at(part, begin, "expected a number of nodes"))?;
    Ok(KeepAlive { filter, count })
}

fn split_outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let mut quote = None;
    let is_separator = |character: char| {
        match (quote, character) {
            (Some(open), character) if open == character => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, character) => return character == separator,
            _ => {}
        }
        false
    };
    text.split(is_separator).collect()
}

/// How a rule stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// This number of nodes must be woken.
    Missing(usize),
    /// This number of the idle nodes may sleep.
    Spare(usize),
}

/// How a rule stands, given which nodes are idle.
pub fn stand(rule: &KeepAlive, table: &Table, is_idle: &dyn Fn(&str) -> bool) -> Stand {
    let matching = table.resources().filter(|one| one.state() == State::Alive && rule.filter.matches(one.values()));
    let nodes: BTreeSet<&str> =
        matching.map(|one| one.node()).filter(|node| !node.is_empty() && is_idle(node)).collect();
    if nodes.len() < rule.count {
        Stand::Missing(rule.count - nodes.len())
    } else {
        Stand::Spare(nodes.len() - rule.count)
    }
}
