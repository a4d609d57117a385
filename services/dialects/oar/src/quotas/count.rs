//! Counts the jobs of a plan against the rules.

use super::{
    calendar::Calendar,
    rule::{Limits, Pattern},
};
use crate::planning::gantt::{Attributes, Gantt, Placement, Standing};
use std::fmt;

/// The type that lifts all limits (OAR-Q-09).
const NO_QUOTAS: &str = "no_quotas";

/// The quotas of a site.
#[derive(Clone, Debug)]
pub struct Quotas {
    /// The rules of all times.
    pub calendar: Calendar,
    /// The types that are counted.
    pub counted_types: Vec<String>,
}

/// What a rule counts, at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Resources.
    Resources,
    /// Jobs.
    Jobs,
    /// Resource-seconds.
    ResourceSeconds,
}

/// A limit that a placement would break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The rule.
    pub rule: Pattern,
    /// What it counts.
    pub measure: Measure,
    /// Its limit.
    pub limit: u64,
    /// What it would come to.
    pub would_be: u64,
    /// When.
    pub at: i64,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, limit, would_be, at, .. } = self;
        let what = match self.measure {
            Measure::Resources => "resources",
            Measure::Jobs => "jobs",
            Measure::ResourceSeconds => "resource-seconds",
        };
        write!(f, "the rule {rule} allows {limit} {what}, there would be {would_be} at {at}")
    }
}

impl Quotas {
    /// Whether a placement keeps all limits at every moment that it is there (OAR-Q-05). `counts` says which resources
    /// count (OAR-Q-07).
    ///
    /// # Errors
    /// The first limit that it would break.
    pub fn check(&self, candidate: &Placement, gantt: &Gantt, counts: &dyn Fn(u32) -> bool) -> Result<(), Box<Breach>> {
        if candidate.opens.is_some() || candidate.attributes.types.iter().any(|kind| kind == NO_QUOTAS) {
            return Ok(());
        }
        let until = candidate.end.saturating_add(gantt.guard);
        let borders = self.calendar.changes(candidate.start, until - 1);
        let begins = [candidate.start].into_iter().chain(borders.iter().copied());
        let ends = borders.iter().copied().chain([until]);
        for (begin, end) in begins.zip(ends) {
            let rules = self.calendar.at(begin);
            let Some((pattern, limits)) = rules.of(&candidate.attributes, &self.counted_types) else { continue };
            let part = Part { pattern, limits, begin, end };
            self.check_part(&part, candidate, gantt, counts)?;
        }
        Ok(())
    }

    /// Checks the part of a placement in which the same rule applies. Counts only grow when a job begins.
    fn check_part(
        &self,
        part: &Part<'_>,
        candidate: &Placement,
        gantt: &Gantt,
        counts: &dyn Fn(u32) -> bool,
    ) -> Result<(), Box<Breach>> {
        let together =
            |other: &&Placement| other.job != candidate.job && self.is_counted(part.pattern, other, candidate);
        let others: Vec<&Placement> = gantt.placements.iter().filter(together).collect();
        let begins = others.iter().map(|other| other.start).filter(|start| part.begin < *start && *start < part.end);
        for at in begins.chain([part.begin]) {
            let there = others.iter().filter(|other| other.start <= at && at < other.end.saturating_add(gantt.guard));
            let all = there.copied().chain([candidate]);
            let sum = all.fold(Sum::default(), |sum, placement| sum.with(placement, counts));
            part.check(&sum, at)?;
        }
        Ok(())
    }

    /// Whether a placement is counted together with a candidate (OAR-Q-06): containers never are, and best-effort jobs
    /// only among themselves.
    fn is_counted(&self, pattern: &Pattern, other: &Placement, candidate: &Placement) -> bool {
        let is_seen = other.standing == Standing::Firm || candidate.standing == Standing::BestEffort;
        let same: (&Attributes, &Attributes) = (&other.attributes, &candidate.attributes);
        is_seen && other.opens.is_none() && pattern.counts(same.0, same.1, &self.counted_types)
    }
}

/// A time in which one rule applies.
struct Part<'p> {
    pattern: &'p Pattern,
    limits: &'p Limits,
    begin: i64,
    end: i64,
}

impl Part<'_> {
    fn check(&self, sum: &Sum, at: i64) -> Result<(), Box<Breach>> {
        let Limits { resources, jobs, resource_seconds } = *self.limits;
        for (measure, limit, would_be) in [
            (Measure::Resources, resources, sum.resources),
            (Measure::Jobs, jobs, sum.jobs),
            (Measure::ResourceSeconds, resource_seconds, sum.resource_seconds),
        ] {
            if let Some(limit) = limit.filter(|limit| would_be > *limit) {
                return Err(Box::new(Breach { rule: self.pattern.clone(), measure, limit, would_be, at }));
            }
        }
        Ok(())
    }
}

#[derive(Default)]
struct Sum {
    resources: u64,
    jobs: u64,
    resource_seconds: u64,
}

impl Sum {
    fn with(self, placement: &Placement, counts: &dyn Fn(u32) -> bool) -> Self {
        let resources = placement.resources.iter().filter(|id| counts(**id)).count() as u64;
        let walltime = placement.end.saturating_sub(placement.start).max(0).unsigned_abs();
        Self {
            resources: self.resources + resources,
            jobs: self.jobs + 1,
            resource_seconds: self.resource_seconds.saturating_add(resources.saturating_mul(walltime)),
        }
    }
}
