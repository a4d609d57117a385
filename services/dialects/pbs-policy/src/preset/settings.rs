//! The options of the presets with their defaults (PBS-P-03).

use super::kinds::{BackfillMode, Enforced, Preset, QueueName, RestartAction, Variance};
use crate::values::Decimal;

const HOUR: u64 = 3600;

/// The options of a preset. Those that the preset does not read have their defaults. Times are in seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresetConfig {
    /// The preset that reads them.
    pub preset: Preset,
    /// `SUBMIT_QUEUE`: where jobs wait. `None` only for a preset that does not read it.
    pub submit_queue: Option<QueueName>,
    /// `BATCH_QUEUES`: where jobs run, the smallest first; never empty.
    pub batch_queues: Vec<QueueName>,
    /// `SPECIAL_QUEUE`: where privileged jobs wait.
    pub special_queue: Option<QueueName>,
    /// `EXTERNAL_QUEUES`: queues that are planned in place, after all others.
    pub external_queues: Vec<QueueName>,
    /// `DEDICATED_QUEUES`: queues that are used during outages only.
    pub dedicated_queues: Vec<QueueName>,
    /// `CHALLENGE_QUEUE_NAME`: the queue of important jobs.
    pub challenge_queue: Option<String>,
    /// `BACKGROUND_QUEUE_NAME`: the queue of unimportant jobs.
    pub background_queue: Option<String>,
    /// `INTERACTIVE_QUEUES`: queues that are used in prime time.
    pub interactive_queues: Vec<QueueName>,
    /// `MAX_JOBS`: the maximum of jobs that run on a host; 0 is no limit.
    pub max_jobs: u32,
    /// `MIN_JOBS`: below this many jobs on a host the load does not matter.
    pub min_jobs: u32,
    /// `MAX_USER_RUN_JOBS`: the maximum of jobs of a user that run.
    pub max_user_run_jobs: u32,
    /// `MAX_DEDICATED_JOBS`: the maximum of jobs that run in a dedicated queue; 0 is no limit.
    pub max_dedicated_jobs: u32,
    /// `TARGET_LOAD_PCT`: the load that is aimed at, in percent of the CPUs.
    pub target_load_percent: u32,
    /// `TARGET_LOAD_VARIANCE`.
    pub target_load_variance: Variance,
    /// `HIGH_SYSTIME`: no job starts above this percentage of system time; 0 is no limit.
    pub high_system_time_percent: u32,
    /// `ENFORCE_PRIME_TIME`.
    pub enforce_prime_time: Enforced,
    /// `PRIME_TIME_START`: seconds from midnight.
    pub prime_time_start: u64,
    /// `PRIME_TIME_END`: seconds from midnight.
    pub prime_time_end: u64,
    /// `PRIME_TIME_WALLT_LIMIT`: the most of a job's time that lies within prime time; 0 is no limit.
    pub prime_time_walltime_limit: u64,
    /// `PRIME_TIME_SMALL_NODE_LIMIT`: jobs up to this many nodes have the next limit; 0 is none.
    pub prime_time_small_node_limit: u32,
    /// `PRIME_TIME_SMALL_WALLT_LIMIT`; 0 is no limit.
    pub prime_time_small_walltime_limit: u64,
    /// `SMALL_JOB_MAX`: jobs up to this many nodes are small; 0 turns the next two limits off.
    pub small_job_max: u32,
    /// `WALLT_LIMIT_SMALL_JOB`: longer small jobs are rejected; 0 is no limit.
    pub walltime_limit_small_job: u64,
    /// `WALLT_LIMIT_LARGE_JOB`: longer large jobs are rejected; 0 is no limit.
    pub walltime_limit_large_job: u64,
    /// `NONPRIME_DRAIN_SYS`: no job runs from prime into non-prime time.
    pub nonprime_drain_system: bool,
    /// `NP_DRAIN_BACKTIME`: prime time may end this much early for an idle queue.
    pub nonprime_drain_backtime: u64,
    /// `NP_DRAIN_IDLETIME`: after this time a queue is idle.
    pub nonprime_drain_idletime: u64,
    /// `MAX_QUEUED_TIME`: after this time a batch job is waiting; 0 is never.
    pub max_queued_time: u64,
    /// `INTERACTIVE_LONG_WAIT`: after its walltime and this time an interactive job is waiting; 0 is never.
    pub interactive_long_wait: u64,
    /// `SMALL_QUEUED_TIME`: waiting jobs of at least this walltime come first.
    pub small_queued_time: u64,
    /// `SORT_BY_PAST_USAGE`.
    pub sort_by_past_usage: bool,
    /// `DECAY_FACTOR`: what is left of the usage after a day.
    pub decay_factor: Decimal,
    /// `OA_DECAY_FACTOR`: the same for groups above their allocation.
    pub over_allocation_decay_factor: Decimal,
    /// `ENFORCE_ALLOCATION`.
    pub enforce_allocation: Enforced,
    /// `SCHED_ACCT_DIR`: the folder with allocations.
    pub accounting_folder: Option<String>,
    /// `ENFORCE_DEDICATED_TIME`.
    pub enforce_dedicated_time: Enforced,
    /// `DEDICATED_TIME_COMMAND`: the program that prints outages.
    pub dedicated_time_command: Option<String>,
    /// `DEDICATED_TIME_CACHE_SECS`: how long its answers are kept.
    pub dedicated_time_cache_seconds: u32,
    /// `SYSTEM_NAME`: the host whose outages are those of all hosts.
    pub system_name: Option<String>,
    /// `USAGE_WEIGHT`, 0 to 10.
    pub usage_weight: u32,
    /// `NODES_WEIGHT`, 0 to 10.
    pub nodes_weight: u32,
    /// `TIMEQ_WEIGHT`, 0 to 10.
    pub queued_time_weight: u32,
    /// `AVOID_FRAGMENTATION`.
    pub avoid_fragmentation: bool,
    /// `SCHED_RESTART_ACTION`.
    pub restart_action: RestartAction,
    /// `SORTED_JOB_DUMPFILE`: the file for the sorted list of jobs.
    pub sorted_job_dumpfile: Option<String>,
    /// `TEST_ONLY`: plan, and change nothing.
    pub test_only: bool,
    /// `FAKE_MACHINE_MULT`: the capacity is multiplied by this.
    pub fake_machine_multiplier: u32,
    /// `BACKFILL_MODE`.
    pub backfill_mode: BackfillMode,
    /// `NODE_CPUS`: the CPUs of a node.
    pub node_cpus: u32,
    /// `NODE_MEM`: the memory of a node, in kilobytes.
    pub node_memory_kilobytes: u64,
}

impl PresetConfig {
    /// The options of a preset for a file without any.
    pub fn new(preset: Preset) -> Self {
        Self {
            preset,
            submit_queue: None,
            batch_queues: Vec::new(),
            special_queue: None,
            external_queues: Vec::new(),
            dedicated_queues: Vec::new(),
            challenge_queue: None,
            background_queue: None,
            interactive_queues: Vec::new(),
            max_jobs: 0,
            min_jobs: 0,
            max_user_run_jobs: 10,
            max_dedicated_jobs: 0,
            target_load_percent: 90,
            target_load_variance: Variance { minus: 15, plus: 10 },
            high_system_time_percent: 0,
            enforce_prime_time: Enforced::Never,
            prime_time_start: 0,
            prime_time_end: 0,
            prime_time_walltime_limit: 0,
            prime_time_small_node_limit: 0,
            prime_time_small_walltime_limit: 0,
            small_job_max: 0,
            walltime_limit_small_job: 0,
            walltime_limit_large_job: 0,
            nonprime_drain_system: false,
            nonprime_drain_backtime: 0,
            nonprime_drain_idletime: 0,
            max_queued_time: 0,
            interactive_long_wait: 0,
            small_queued_time: 12 * HOUR,
            sort_by_past_usage: true,
            decay_factor: Decimal::from_millionths(750_000),
            over_allocation_decay_factor: Decimal::from_millionths(950_000),
            enforce_allocation: Enforced::Never,
            accounting_folder: None,
            enforce_dedicated_time: Enforced::Never,
            dedicated_time_command: None,
            dedicated_time_cache_seconds: 0,
            system_name: None,
            usage_weight: 10,
            nodes_weight: 7,
            queued_time_weight: 1,
            avoid_fragmentation: true,
            restart_action: RestartAction::None,
            sorted_job_dumpfile: None,
            test_only: false,
            fake_machine_multiplier: 1,
            backfill_mode: if preset == Preset::IbmSp { BackfillMode::Dynamic } else { BackfillMode::Static },
            node_cpus: 2,
            node_memory_kilobytes: 256 * 1024,
        }
    }
}
