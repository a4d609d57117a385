//! The options of the fifo policy with their defaults (PBS-F-02).

use crate::{
    mode::{Mode, PerMode},
    sort::{Order, SortBy, SortKey},
};
use muster_schemas::policy::{Compare, LogFilter};

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// The options of the fifo policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedConfig {
    /// The options that differ between prime and non-prime time.
    pub modes: PerMode<ModeOptions>,
    /// Classes of log lines that are not logged.
    pub log_filter: LogFilter,
    /// The beginning of the names of dedicated queues; never empty.
    pub dedicated_prefix: String,
    /// After this many seconds in the queue a job is starving.
    pub max_starve_seconds: u64,
    /// The time in which usage is halved, in seconds; never 0.
    pub half_life_seconds: u64,
    /// The shares of all users together who are not in the tree.
    pub unknown_shares: u32,
    /// The longest time between two published snapshots of the usage, in seconds.
    pub sync_seconds: u64,
    /// Queues that are not planned, a maximum of 16 (PBS-Q-12).
    pub ignored_queues: Vec<String>,
    /// Which order `strict_fifo` guards (`muster_strict_order`).
    pub strict_order: StrictOrder,
    /// What `resources_max` stands for (`muster_resources_max`).
    pub resources_max: ResourcesMax,
    /// When a starving job keeps others from starting (`muster_starving_blocks`).
    pub starving_blocks: StartsBlocked,
    /// Where fair share compares users (`muster_fair_share_model`).
    pub fair_share_model: FairShareModel,
    /// What fair share charges (`muster_fair_share_charge`).
    pub fair_share_charge: Charge,
    /// What holds if the holidays are those of another year (`muster_holidays_stale`).
    pub holidays_stale: HolidaysStale,
    /// How long a started job counts toward the load of its node, in seconds (`muster_load_settle`).
    pub load_settle_seconds: u64,
    /// The resources that are tested at server and queue, if not `mem`, `ncpus` and `nodect`
    /// (`muster_check_resources`, PBS-Q-04).
    pub checked_resources: Option<Vec<String>>,
    /// The number of jobs whose files are staged ahead (`muster_prestage`, PBS-G-07).
    pub prestaged_jobs: u32,
}

/// The options with a value for each mode (PBS-F-14).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeOptions {
    /// One job of each queue in turn. It overrides `by_queue`.
    pub round_robin: bool,
    /// All jobs of a queue before those of the next one.
    pub by_queue: bool,
    /// A refused job blocks the jobs behind it.
    pub strict_fifo: bool,
    /// Shares and usage choose the next job.
    pub fair_share: bool,
    /// Timeshared nodes are chosen by their load.
    pub load_balancing: bool,
    /// Timeshared nodes are chosen in turn.
    pub load_balancing_rr: bool,
    /// Starving jobs go first and keep others from starting.
    pub help_starving_jobs: bool,
    /// Queues are visited by their priority.
    pub sort_queues: bool,
    /// The sort of jobs.
    pub sort_by: SortBy,
    /// The keys of `key` lines, used if `sort_by` is `multi_sort`.
    pub keys: Vec<SortKey>,
}

impl ModeOptions {
    /// The order of jobs that `sort_by` and the keys give.
    pub fn order(&self) -> Order {
        match self.sort_by {
            SortBy::NoSort => Order::default(),
            SortBy::Key(key) => Order::new(vec![key]),
            SortBy::MultiSort => Order::new(self.keys.clone()),
        }
    }
}

impl Default for ModeOptions {
    fn default() -> Self {
        Self {
            round_robin: false,
            by_queue: true,
            strict_fifo: false,
            fair_share: false,
            load_balancing: false,
            load_balancing_rr: false,
            help_starving_jobs: false,
            sort_queues: true,
            sort_by: SortBy::Key(SortKey::ShortestJobFirst),
            keys: Vec::new(),
        }
    }
}

impl Default for SchedConfig {
    /// The values of options that a file leaves out.
    fn default() -> Self {
        Self {
            modes: PerMode::default(),
            log_filter: LogFilter::new(256),
            dedicated_prefix: "ded".to_owned(),
            max_starve_seconds: DAY,
            half_life_seconds: DAY,
            unknown_shares: 10,
            sync_seconds: HOUR,
            ignored_queues: Vec::new(),
            strict_order: StrictOrder::Sorted,
            resources_max: ResourcesMax::Capacity,
            starving_blocks: StartsBlocked::Always,
            fair_share_model: FairShareModel::Leaf,
            fair_share_charge: Charge::CpuTime,
            holidays_stale: HolidaysStale::Apply,
            load_settle_seconds: 0,
            checked_resources: None,
            prestaged_jobs: 0,
        }
    }
}

impl SchedConfig {
    /// The resources that are tested if `muster_check_resources` does not name others (PBS-Q-04).
    pub const CHECKED_RESOURCES: [&'static str; 3] = ["mem", "ncpus", "nodect"];

    /// The policy that holds if there is no file (PBS-F-02).
    pub fn shipped() -> Self {
        let mut shipped = Self::default();
        for mode in Mode::BOTH {
            shipped.modes.get_mut(mode).help_starving_jobs = true;
        }
        shipped
    }

    /// Whether usage is charged: fair share is on in either mode (PBS-F-13).
    pub const fn collects_usage(&self) -> bool {
        self.modes.prime.fair_share || self.modes.non_prime.fair_share
    }

    /// Whether a queue is not planned.
    pub fn ignores(&self, queue: &str) -> bool {
        self.ignored_queues.iter().any(|ignored| ignored == queue)
    }
}

/// Which order `strict_fifo` guards (PBS-F-07).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrictOrder {
    /// The one of `sort_by` or fair share.
    Sorted,
    /// The one of arrival at the server.
    Arrival,
}

/// What `resources_max` stands for if `resources_available` is unset (PBS-Q-06).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourcesMax {
    /// What all running jobs may have together.
    Capacity,
    /// What one job may ask for.
    PerJob,
}

/// When a starving job keeps others from starting (PBS-F-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartsBlocked {
    /// Whatever refused it.
    Always,
    /// If it lacks resources, not if a running-job limit or dedicated time refused it.
    Resources,
}

/// Where fair share compares users (PBS-FS-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FairShareModel {
    /// By their own parts and usage.
    Leaf,
    /// By those of the groups where their paths part.
    Tree,
}

impl FairShareModel {
    /// The setting of planning by turns.
    pub const fn compare(self) -> Compare {
        match self {
            Self::Leaf => Compare::Users,
            Self::Tree => Compare::Groups,
        }
    }
}

/// What fair share charges a user for a job (PBS-FS-05, PBS-FS-12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// CPU time.
    CpuTime,
    /// Walltime times the number of CPUs.
    CpusTimesWalltime,
}

/// What holds if the holidays are those of another year (PBS-T-05).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HolidaysStale {
    /// The days of the file, by their numbers.
    Apply,
    /// No holidays.
    Ignore,
}
