//! The order of a list of jobs: ranks, and owners who take turns.

use crate::{queue::Place, routes::Owner};
use muster_schemas::{
    JobId, Timestamp,
    policy::routes::{LongWait, Owners},
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, VecDeque},
};

/// A job of a list.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub place: Place,
    pub id: JobId,
    pub owner: Owner,
    pub arrival: Timestamp,
    /// In units.
    pub size: u32,
    pub walltime_seconds: Option<u64>,
    pub is_privileged: bool,
    pub waited_long: bool,
    /// It is promised nothing.
    pub is_background: bool,
}

impl Candidate {
    /// Whether it is promised a start even if others are ahead of it.
    pub const fn is_ranked(&self) -> bool {
        self.is_privileged || self.waited_long
    }
}

/// Whether a job waited long, in these hours.
pub(super) fn waited_long(
    rule: &LongWait,
    wait_seconds: u64,
    walltime_seconds: Option<u64>,
    is_interactive: bool,
    is_usual: bool,
) -> bool {
    let after = match is_interactive {
        false => rule.after_seconds,
        true if !is_usual => None,
        true => rule.interactive_after_seconds.and_then(|after| walltime_seconds?.checked_add(after)),
    };
    after.is_some_and(|after| wait_seconds > after)
}

/// Puts privileged jobs first, then those that waited long, of these the long ones first. The others keep their order.
pub(super) fn by_rank(candidates: &mut [Candidate], long_seconds: u64) {
    candidates.sort_by_key(|job| {
        let is_long = job.walltime_seconds.is_none_or(|seconds| seconds >= long_seconds);
        let rank = match (job.is_privileged, job.waited_long) {
            (true, _) => 0,
            (false, true) => {
                if is_long {
                    1
                } else {
                    2
                }
            }
            (false, false) => 3,
        };
        let ranked = (rank < 3).then_some((Reverse(job.size), job.arrival, job.id));
        (rank, ranked)
    });
}

/// Owners of normal jobs take turns: each time the pointer passes over those who used at least as much as the one that it
/// points at, up to the last one who used less than all before.
pub(super) fn by_owners(jobs: Vec<Candidate>, usage: &BTreeMap<Owner, u64>, rule: &Owners) -> Vec<Candidate> {
    let mut queues: BTreeMap<Owner, VecDeque<Candidate>> = BTreeMap::new();
    for job in jobs {
        queues.entry(job.owner.clone()).or_default().push_back(job);
    }
    let mut owners: Vec<(u64, VecDeque<Candidate>)> =
        queues.into_iter().map(|(owner, jobs)| (usage.get(&owner).copied().unwrap_or(0), jobs)).collect();
    let oldest = |jobs: &VecDeque<Candidate>| jobs.iter().map(|job| (job.arrival, job.id)).min();
    owners.sort_by_cached_key(|(_, jobs)| (jobs.len(), oldest(jobs)));
    let mut ordered = Vec::new();
    let mut pointer = 0;
    while !owners.is_empty() {
        for at in 0..owners.len() {
            if owners[at].0 < owners[pointer].0 {
                pointer = at;
            }
        }
        let (used, jobs) = &mut owners[pointer];
        if let Some(job) = jobs.pop_front() {
            *used = used.saturating_add(rule.charge_of(job.walltime_seconds));
            ordered.push(job);
        }
        if jobs.is_empty() {
            owners.remove(pointer);
        } else {
            pointer += 1;
        }
        if pointer >= owners.len() {
            pointer = 0;
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(number: u64, user: &str, size: u32, walltime: u64) -> Candidate {
        Candidate {
            place: 0,
            id: JobId::job(number),
            owner: (1, user.into()),
            arrival: Timestamp(i64::try_from(number).unwrap_or(0)),
            size,
            walltime_seconds: Some(walltime),
            is_privileged: false,
            waited_long: false,
            is_background: false,
        }
    }

    fn numbers(jobs: &[Candidate]) -> Vec<u64> {
        jobs.iter().map(|job| job.id.number).collect()
    }

    /// PBS-P-06, PBS-P-07: each rank has its order, and the others keep theirs.
    #[test]
    fn ranks_come_first() {
        let privileged = |number, size| Candidate { is_privileged: true, ..job(number, "ann", size, 10) };
        let late = |number, size, walltime| Candidate { waited_long: true, ..job(number, "ann", size, walltime) };
        let mut jobs = vec![
            job(9, "ann", 1, 1),
            late(8, 1, 99),
            late(7, 1, 100),
            late(6, 5, 99),
            late(5, 1, 100),
            job(4, "ann", 9, 1),
            privileged(3, 2),
            privileged(2, 2),
            privileged(1, 1),
        ];
        by_rank(&mut jobs, 100);
        assert_eq!(numbers(&jobs), [2, 3, 1, 5, 7, 6, 8, 9, 4]);
    }

    /// PBS-P-07: when a job counts as one that waited long.
    #[test]
    fn who_waited_long() {
        let rule = LongWait { after_seconds: Some(100), interactive_after_seconds: Some(50), long_seconds: 0 };
        let batch = |wait| waited_long(&rule, wait, Some(10), false, false);
        assert_eq!((batch(100), batch(101)), (false, true));
        let interactive = |wait, is_usual| waited_long(&rule, wait, Some(10), true, is_usual);
        assert_eq!((interactive(60, true), interactive(61, true), interactive(500, false)), (false, true, false));
        assert!(!waited_long(&LongWait::default(), u64::MAX, Some(1), false, true));
    }

    /// PBS-P-09: the pointer wraps at the end, and stays on the next owner when one has no job left.
    #[test]
    fn owners_take_turns() {
        let rule = Owners { short_seconds: 1200, short_charge: 1, charge: 10, ..Owners::default() };
        let jobs = vec![job(1, "ann", 1, 9999), job(2, "ann", 1, 60), job(3, "ann", 1, 60), job(4, "bob", 1, 9999)];
        let of = |ann, bob| {
            let usage = [((1, "ann".into()), ann), ((1, "bob".into()), bob)].into();
            numbers(&by_owners(jobs.clone(), &usage, &rule))
        };
        assert_eq!(of(0, 0), [4, 1, 2, 3], "fewest jobs first");
        assert_eq!(of(0, 1), [1, 4, 2, 3]);
        assert_eq!(of(0, 100), [1, 2, 3, 4]);
        let missing = by_owners(jobs.clone(), &BTreeMap::new(), &rule);
        assert_eq!(numbers(&missing), [4, 1, 2, 3]);
    }
}
