//! The order of waiting jobs (PBS-S-01 to PBS-S-05).

use crate::fraction::Fraction;
use std::cmp::Ordering;

/// The maximum number of keys in each mode (PBS-S-04).
pub const MOST_KEYS: usize = 11;

/// A sort by one property of jobs (PBS-S-01).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SortKey {
    /// Requested `cput`, ascending.
    ShortestJobFirst,
    /// Requested `cput`, descending.
    LongestJobFirst,
    /// Requested `mem`, ascending.
    SmallestMemoryFirst,
    /// Requested `mem`, descending.
    LargestMemoryFirst,
    /// Priority, descending.
    HighPriorityFirst,
    /// Priority, ascending.
    LowPriorityFirst,
    /// Requested `walltime`, descending.
    LargeWalltimeFirst,
    /// Requested `walltime`, ascending.
    ShortWalltimeFirst,
    /// The owner's part of the machine, descending; usage has no influence (PBS-FS-10).
    FairShare,
}

impl SortKey {
    /// All keys.
    pub const ALL: [Self; 9] = [
        Self::ShortestJobFirst,
        Self::LongestJobFirst,
        Self::SmallestMemoryFirst,
        Self::LargestMemoryFirst,
        Self::HighPriorityFirst,
        Self::LowPriorityFirst,
        Self::LargeWalltimeFirst,
        Self::ShortWalltimeFirst,
        Self::FairShare,
    ];

    /// Its name in `sched_config`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ShortestJobFirst => "shortest_job_first",
            Self::LongestJobFirst => "longest_job_first",
            Self::SmallestMemoryFirst => "smallest_memory_first",
            Self::LargestMemoryFirst => "largest_memory_first",
            Self::HighPriorityFirst => "high_priority_first",
            Self::LowPriorityFirst => "low_priority_first",
            Self::LargeWalltimeFirst => "large_walltime_first",
            Self::ShortWalltimeFirst => "short_walltime_first",
            Self::FairShare => "fair_share",
        }
    }

    /// The key with a name, in any case; `cmp_job_walltime_asc` is another name of `short_walltime_first`.
    pub fn parse(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("cmp_job_walltime_asc") {
            return Some(Self::ShortWalltimeFirst);
        }
        Self::ALL.into_iter().find(|key| key.name().eq_ignore_ascii_case(name))
    }

    fn compare<J: SortedJob + ?Sized>(self, left: &J, right: &J) -> Ordering {
        match self {
            Self::ShortestJobFirst => ascending(left.cput_seconds(), right.cput_seconds()),
            Self::LongestJobFirst => descending(left.cput_seconds(), right.cput_seconds()),
            Self::SmallestMemoryFirst => ascending(left.memory_kilobytes(), right.memory_kilobytes()),
            Self::LargestMemoryFirst => descending(left.memory_kilobytes(), right.memory_kilobytes()),
            Self::HighPriorityFirst => right.priority().cmp(&left.priority()),
            Self::LowPriorityFirst => left.priority().cmp(&right.priority()),
            Self::LargeWalltimeFirst => descending(left.walltime_seconds(), right.walltime_seconds()),
            Self::ShortWalltimeFirst => ascending(left.walltime_seconds(), right.walltime_seconds()),
            Self::FairShare => right.part().cmp(left.part()),
        }
    }
}

/// What `sort_by` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortBy {
    /// The order of arrival.
    NoSort,
    /// One key.
    Key(SortKey),
    /// The keys of the `key` lines, in their order.
    MultiSort,
}

impl SortBy {
    /// Its name in `sched_config`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoSort => "no_sort",
            Self::Key(key) => key.name(),
            Self::MultiSort => "multi_sort",
        }
    }

    /// The sort with a name, in any case.
    pub fn parse(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "no_sort" => Some(Self::NoSort),
            "multi_sort" => Some(Self::MultiSort),
            _ => SortKey::parse(name).map(Self::Key),
        }
    }
}

/// What the order of jobs depends on. Requests include the defaults of queue and server.
pub trait SortedJob {
    /// Requested CPU time, in seconds; `None` if unset.
    fn cput_seconds(&self) -> Option<u64>;
    /// Requested memory, in kilobytes; `None` if unset.
    fn memory_kilobytes(&self) -> Option<u64>;
    /// Requested walltime, in seconds; `None` if unset.
    fn walltime_seconds(&self) -> Option<u64>;
    /// The job's priority; 0 if unset (PBS-S-01).
    fn priority(&self) -> i64;
    /// The owner's part of the machine.
    fn part(&self) -> &Fraction;
}

/// The keys that order jobs, the first one deciding (PBS-S-04). Without keys the order is that of arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    keys: Vec<SortKey>,
}

impl Order {
    /// The order by these keys.
    pub fn new(keys: Vec<SortKey>) -> Self {
        Self { keys }
    }

    /// Its keys.
    pub fn keys(&self) -> &[SortKey] {
        &self.keys
    }

    /// Compares two jobs. A job whose resource is unset follows all jobs that have it, in every order (PBS-S-03).
    pub fn compare<J: SortedJob + ?Sized>(&self, left: &J, right: &J) -> Ordering {
        self.keys.iter().map(|key| key.compare(left, right)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// Sorts jobs that are in the order of arrival. Equal jobs stay in it (PBS-S-02).
    pub fn sort<J: SortedJob>(&self, jobs: &mut [J]) {
        jobs.sort_by(|left, right| self.compare(left, right));
    }
}

fn ascending(left: Option<u64>, right: Option<u64>) -> Ordering {
    unset_last(left, right, |left, right| left.cmp(right))
}

fn descending(left: Option<u64>, right: Option<u64>) -> Ordering {
    unset_last(left, right, |left, right| right.cmp(left))
}

fn unset_last(left: Option<u64>, right: Option<u64>, compare: impl Fn(&u64, &u64) -> Ordering) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) => compare(&left, &right),
        _ => left.is_none().cmp(&right.is_none()),
    }
}
