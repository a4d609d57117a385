//! Placements in time.

use super::{domain::Domain, share::Sharing};
use std::collections::BTreeSet;

/// The attributes of a job that limits count by (OAR-Q-01).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Its queue.
    pub queue: String,
    /// Its project; may be empty.
    pub project: String,
    /// Its user.
    pub user: String,
    /// Its types, in the order given.
    pub types: Vec<String>,
}

/// What jobs of other queues do to a placement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It stays.
    #[default]
    Firm,
    /// It makes way: jobs of other queues are planned as if it were not there.
    BestEffort,
}

/// Resources that a job holds in the half-open interval from start to end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The job.
    pub job: u64,
    /// From when on, in seconds since the epoch.
    pub start: i64,
    /// Until when.
    pub end: i64,
    /// What it holds.
    pub resources: BTreeSet<u32>,
    /// The planning domain in which it holds them.
    pub domain: Domain,
    /// The domain that it opens, if it is a container.
    pub opens: Option<String>,
    /// What it shares.
    pub sharing: Sharing,
    /// Whether it makes way.
    pub standing: Standing,
    /// What limits count it by.
    pub attributes: Attributes,
}

/// All placements that are known: running, accepted and planned ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gantt {
    /// The seconds between the end of a placement and the start of the next on the same resource.
    pub guard: i64,
    /// The placements.
    pub placements: Vec<Placement>,
}

impl Gantt {
    /// The resources that a candidate cannot have, of its domain. The candidate's own resources do not count.
    pub fn blocked(&self, candidate: &Placement) -> BTreeSet<u32> {
        let blocking = self.placements.iter().filter(|placement| self.hinders(placement, candidate));
        blocking.flat_map(|placement| &placement.resources).copied().collect()
    }

    /// Whether a placement keeps a candidate of the same time from its resources.
    fn hinders(&self, placement: &Placement, candidate: &Placement) -> bool {
        let is_seen = placement.standing == Standing::Firm || candidate.standing == Standing::BestEffort;
        let overlaps = placement.start < candidate.end.saturating_add(self.guard)
            && candidate.start < placement.end.saturating_add(self.guard);
        is_seen
            && overlaps
            && placement.domain == candidate.domain
            && !placement.sharing.may_overlap(&candidate.sharing)
    }

    /// The moments from a time on at which resources become free, or limits have room.
    pub fn releases(&self, from: i64) -> BTreeSet<i64> {
        let ends = self.placements.iter().map(|placement| placement.end.saturating_add(self.guard));
        ends.filter(|end| *end > from).collect()
    }

    /// The first two placements that hold a resource at the same time although they must not (OAR-G-05). Best-effort
    /// placements that others were planned over do not count.
    pub fn conflict(&self) -> Option<(u64, u64, u32)> {
        self.placements.iter().enumerate().find_map(|(place, one)| {
            self.placements[place + 1..].iter().find_map(|other| {
                let is_wrong = one.standing == other.standing && one.domain == other.domain;
                let overlaps = one.start < other.end && other.start < one.end;
                let shared = one.resources.intersection(&other.resources).next();
                let shared = shared.filter(|_| is_wrong && overlaps && !one.sharing.may_overlap(&other.sharing))?;
                Some((one.job, other.job, *shared))
            })
        })
    }
}
