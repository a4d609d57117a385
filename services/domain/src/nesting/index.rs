//! Which unfinished jobs open domains, and which run or wait inside.

use crate::jobs::Job;
use muster_schemas::JobId;
use std::collections::{BTreeMap, BTreeSet};

/// The domains of an unfinished job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DomainKeys {
    opens: Option<Box<str>>,
    inside: Option<Box<str>>,
    /// Whether a filter judges it, so that it must not end by itself.
    is_judged: bool,
}

impl DomainKeys {
    pub(crate) fn of(job: &Job) -> Self {
        if job.types().is_empty() || job.is_finished() {
            return Self::default();
        }
        let is_whole = job.id.index.is_none();
        Self {
            opens: job.opens_domain().filter(|_| is_whole).map(|name| name.into_owned().into()),
            inside: job.domain().map(|name| name.into_owned().into()),
            is_judged: job.filters.as_ref().is_some_and(|filters| filters.is_judged()),
        }
    }
}

/// The unfinished jobs of each domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Domains {
    opening: BTreeMap<Box<str>, BTreeSet<JobId>>,
    inside: BTreeMap<Box<str>, BTreeSet<JobId>>,
    judged: BTreeSet<JobId>,
}

impl Domains {
    /// Updates the keys of a job.
    pub(crate) fn move_job(&mut self, id: JobId, before: DomainKeys, after: DomainKeys) {
        if before == after {
            return;
        }
        move_member(&mut self.opening, before.opens, after.opens, id);
        move_member(&mut self.inside, before.inside, after.inside, id);
        if after.is_judged {
            self.judged.insert(id);
        } else {
            self.judged.remove(&id);
        }
    }

    /// The unfinished jobs that open a domain, by id.
    pub(crate) fn opening(&self, domain: &str) -> impl Iterator<Item = JobId> + '_ {
        self.opening.get(domain).into_iter().flatten().copied()
    }

    /// The unfinished jobs inside each domain, except those that a filter judges.
    pub(crate) fn inside(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = JobId>)> {
        self.inside.iter().map(|(domain, jobs)| {
            let jobs = jobs.iter().copied().filter(|id| !self.judged.contains(id));
            (&**domain, jobs)
        })
    }
}

fn move_member(
    sets: &mut BTreeMap<Box<str>, BTreeSet<JobId>>,
    before: Option<Box<str>>,
    after: Option<Box<str>>,
    member: JobId,
) {
    if let Some(key) = before
        && let Some(members) = sets.get_mut(&key)
    {
        members.remove(&member);
        if members.is_empty() {
            sets.remove(&key);
        }
    }
    if let Some(key) = after {
        sets.entry(key).or_default().insert(member);
    }
}
