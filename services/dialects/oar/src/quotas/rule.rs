//! Rules and their limits.

use crate::planning::gantt::Attributes;
use std::{collections::BTreeMap, fmt};

/// What a rule says about one attribute of jobs (OAR-Q-03).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// Jobs with this value.
    Is(String),
    /// `/`: jobs of each value, each with a counter of its own.
    Each,
    /// `*`: all jobs together.
    Any,
}

impl Field {
    /// The field of a word.
    pub fn of(word: &str) -> Self {
        match word {
            "/" => Self::Each,
            "*" => Self::Any,
            word => Self::Is(word.to_owned()),
        }
    }

    /// Whether a job is counted together with a candidate.
    fn counts(&self, job: &str, candidate: &str) -> bool {
        match self {
            Self::Is(value) => value == job,
            Self::Each => job == candidate,
            Self::Any => true,
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Is(value) => value,
            Self::Each => "/",
            Self::Any => "*",
        })
    }
}

/// The limits of a rule; `None` for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits<N = u64> {
    /// The resources held at a time.
    pub resources: Option<N>,
    /// The jobs at a time.
    pub jobs: Option<N>,
    /// The sum of resources times walltime of the jobs at a time, in resource-seconds.
    pub resource_seconds: Option<N>,
}

/// Whose jobs a rule is about: queue, project, type and user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pattern {
    /// The queue.
    pub queue: Field,
    /// The project.
    pub project: Field,
    /// One of the counted types; never [`Field::Each`].
    pub kind: Field,
    /// The user.
    pub user: Field,
}

impl Pattern {
    /// Whether a job is counted together with a candidate. Only types of the list count.
    pub fn counts(&self, job: &Attributes, candidate: &Attributes, counted: &[String]) -> bool {
        let has_type = match &self.kind {
            Field::Is(kind) => counted.contains(kind) && job.types.contains(kind),
            Field::Each | Field::Any => true,
        };
        has_type
            && self.queue.counts(&job.queue, &candidate.queue)
            && self.project.counts(&job.project, &candidate.project)
            && self.user.counts(&job.user, &candidate.user)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{},{}", self.queue, self.project, self.kind, self.user)
    }
}

/// Rules of which at most one applies to a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(pub BTreeMap<Pattern, Limits>);

impl Rules {
    /// The rule that applies to a job (OAR-Q-04). Queue, project, type and user are decided in that order, each by its
    /// literal value, else `/`, else `*`; what is decided stays, even if nothing matches behind it.
    pub fn of(&self, job: &Attributes, counted: &[String]) -> Option<(&Pattern, &Limits)> {
        let mut left: Vec<(&Pattern, &Limits)> = self.0.iter().collect();
        decide(&mut left, |pattern| &pattern.queue, &[&job.queue]);
        decide(&mut left, |pattern| &pattern.project, &[&job.project]);
        let types: Vec<&str> = job.types.iter().filter(|kind| counted.contains(kind)).map(String::as_str).collect();
        decide(&mut left, |pattern| &pattern.kind, &types);
        decide(&mut left, |pattern| &pattern.user, &[&job.user]);
        left.first().copied()
    }
}

/// Keeps the rules with the first of the values that one of them has, else those with `/`, else those with `*`.
fn decide(left: &mut Vec<(&Pattern, &Limits)>, field: impl Fn(&Pattern) -> &Field, values: &[&str]) {
    let literal = values.iter().map(|value| Field::Is((*value).to_owned()));
    let mut choices = literal.chain([Field::Each, Field::Any]);
    let chosen = choices.find(|choice| left.iter().any(|(pattern, _)| field(pattern) == choice));
    left.retain(|(pattern, _)| Some(field(pattern)) == chosen.as_ref());
}
