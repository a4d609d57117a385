//! Demands on the tree of resources.

use crate::{
    predicate::{Comparison, Operand, Predicate},
    resources::{
        property::{DEFAULT_TYPE, TYPE},
        value::Value,
    },
    text::hours,
};
use std::fmt;

/// How many items of a level are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Count {
    /// This number, at least 1.
    Exactly(u32),
    /// Every item that matches, free together.
    All,
    /// As many as are free, at least one.
    Best,
    /// Half of those that are free, rounded down, at least one.
    BestHalf,
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(number) => write!(f, "{number}"),
            Self::All => f.write_str("ALL"),
            Self::Best => f.write_str("BEST"),
            Self::BestHalf => f.write_str("BESTHALF"),
        }
    }
}

/// A step of a path through the hierarchy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// The property whose values are the items.
    pub level: String,
    /// How many of them, inside each item of the step before.
    pub count: Count,
}

/// A demand: a path, over the resources that a filter matches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// The filter of this group alone.
    pub filter: Predicate,
    /// At least one step.
    pub path: Vec<Step>,
}

impl Group {
    /// The whole filter of this group (OAR-R-05, OAR-R-11): those of the job and the site, and its own; without a word
    /// about the type in its own, resources of nodes.
    pub fn whole_filter(&self, job: &Predicate, site: &Predicate) -> Predicate {
        let filter = job.clone().and(self.filter.clone()).and(site.clone());
        if self.filter.mentions(TYPE) { filter } else { filter.and(is_default()) }
    }
}

fn is_default() -> Predicate {
    let (property, value) = (Operand::Property(TYPE.to_owned()), Operand::Literal(Value::text(DEFAULT_TYPE)));
    Predicate::Compare(property, Comparison::Equal, value)
}

/// One shape of a job: groups that start together, on different resources, for the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// At least one group.
    pub groups: Vec<Group>,
    /// How long, in seconds.
    pub walltime: i64,
    /// Whether the walltime is the request's own and not the site's default.
    pub has_own_walltime: bool,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}={}", self.level, self.count)
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.filter != Predicate::ALWAYS {
            write!(f, "{{{}}}", self.filter)?;
        }
        self.path.iter().try_for_each(|step| step.fmt(f))
    }
}

/// Written so that reading it gives the same alternative.
impl fmt::Display for Alternative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, group) in self.groups.iter().enumerate() {
            write!(f, "{}{group}", if place > 0 { "+" } else { "" })?;
        }
        write!(f, ",walltime={}", hours(self.walltime))
    }
}
