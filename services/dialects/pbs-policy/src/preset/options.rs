//! The names of the presets' options, their kinds, and which presets read them (PBS-P-03).

use super::{
    kinds::{
        Enforced, Preset,
        Preset::{CrayT3e, IbmSp, Multitask, SgiOrigin},
        QueueName,
    },
    settings::PresetConfig,
};
use crate::values::Decimal;

/// The place of an option's value.
type Field<T> = fn(&mut PresetConfig) -> &mut T;

/// The kind of an option and the place of its value.
#[derive(Clone, Copy)]
pub enum Kind {
    Boolean(Field<bool>),
    /// An integer within these limits.
    Integer(Field<u32>, u32, u32),
    /// A number from 0 to 1.
    Ratio(Field<Decimal>),
    Time(Field<u64>),
    /// A time of day.
    Clock(Field<u64>),
    Path(Field<Option<String>>),
    Host(Field<Option<String>>),
    Text(Field<Option<String>>),
    Queue(Field<Option<QueueName>>),
    Queues(Field<Vec<QueueName>>),
    Enforced(Field<Enforced>),
    /// A size in kilobytes, above zero.
    Size(Field<u64>),
    Variance,
    RestartAction,
    BackfillMode,
    /// Accepted because files have it.
    NoEffect,
}

/// An option of a preset's file.
#[derive(Clone, Copy)]
pub struct PresetOption {
    pub name: &'static str,
    pub readers: &'static [Preset],
    pub kind: Kind,
    pub is_required: bool,
}

const ALL: &[Preset] = &Preset::ALL;
const SGI: &[Preset] = &[SgiOrigin];
const T3E: &[Preset] = &[CrayT3e];
const MULTITASK: &[Preset] = &[Multitask];
const SGI_SP: &[Preset] = &[SgiOrigin, IbmSp];
const SGI_T3E: &[Preset] = &[SgiOrigin, CrayT3e];
const SGI_T3E_SP: &[Preset] = &[SgiOrigin, CrayT3e, IbmSp];
const SGI_T3E_MULTITASK: &[Preset] = &[SgiOrigin, CrayT3e, Multitask];
const SGI_MULTITASK: &[Preset] = &[SgiOrigin, Multitask];

const fn option(name: &'static str, readers: &'static [Preset], kind: Kind) -> PresetOption {
    PresetOption { name, readers, kind, is_required: false }
}

const fn required(name: &'static str, readers: &'static [Preset], kind: Kind) -> PresetOption {
    PresetOption { name, readers, kind, is_required: true }
}

const fn count(field: Field<u32>) -> Kind {
    Kind::Integer(field, 0, u32::MAX)
}

const fn positive(field: Field<u32>) -> Kind {
    Kind::Integer(field, 1, u32::MAX)
}

const fn weight(field: Field<u32>) -> Kind {
    Kind::Integer(field, 0, 10)
}

/// All options.
pub const OPTIONS: [PresetOption; 54] = [
    required("SUBMIT_QUEUE", SGI_T3E_SP, Kind::Queue(|config| &mut config.submit_queue)),
    required("BATCH_QUEUES", ALL, Kind::Queues(|config| &mut config.batch_queues)),
    option("SPECIAL_QUEUE", SGI_T3E_SP, Kind::Queue(|config| &mut config.special_queue)),
    option("EXTERNAL_QUEUES", SGI, Kind::Queues(|config| &mut config.external_queues)),
    option("DEDICATED_QUEUES", SGI_T3E_SP, Kind::Queues(|config| &mut config.dedicated_queues)),
    option("CHALLENGE_QUEUE_NAME", T3E, Kind::Text(|config| &mut config.challenge_queue)),
    option("BACKGROUND_QUEUE_NAME", T3E, Kind::Text(|config| &mut config.background_queue)),
    option("INTERACTIVE_QUEUES", MULTITASK, Kind::Queues(|config| &mut config.interactive_queues)),
    option("MAX_JOBS", SGI_T3E_MULTITASK, count(|config| &mut config.max_jobs)),
    option("MIN_JOBS", SGI_T3E_MULTITASK, count(|config| &mut config.min_jobs)),
    option("MAX_USER_RUN_JOBS", SGI_T3E_MULTITASK, count(|config| &mut config.max_user_run_jobs)),
    option("MAX_DEDICATED_JOBS", SGI_T3E, count(|config| &mut config.max_dedicated_jobs)),
    option("TARGET_LOAD_PCT", SGI_MULTITASK, count(|config| &mut config.target_load_percent)),
    option("TARGET_LOAD_VARIANCE", SGI_MULTITASK, Kind::Variance),
    option("HIGH_SYSTIME", SGI_T3E_MULTITASK, count(|config| &mut config.high_system_time_percent)),
    option("ENFORCE_PRIME_TIME", ALL, Kind::Enforced(|config| &mut config.enforce_prime_time)),
    option("PRIME_TIME_START", ALL, Kind::Clock(|config| &mut config.prime_time_start)),
    option("PRIME_TIME_END", ALL, Kind::Clock(|config| &mut config.prime_time_end)),
    option("PRIME_TIME_WALLT_LIMIT", ALL, Kind::Time(|config| &mut config.prime_time_walltime_limit)),
    option("PRIME_TIME_SMALL_NODE_LIMIT", SGI_T3E_SP, count(|config| &mut config.prime_time_small_node_limit)),
    option(
        "PRIME_TIME_SMALL_WALLT_LIMIT",
        SGI_T3E_SP,
        Kind::Time(|config| &mut config.prime_time_small_walltime_limit),
    ),
    option("SMALL_JOB_MAX", SGI_T3E, count(|config| &mut config.small_job_max)),
    option("WALLT_LIMIT_SMALL_JOB", SGI_T3E, Kind::Time(|config| &mut config.walltime_limit_small_job)),
    option("WALLT_LIMIT_LARGE_JOB", SGI_T3E, Kind::Time(|config| &mut config.walltime_limit_large_job)),
    option("NONPRIME_DRAIN_SYS", SGI_T3E_SP, Kind::Boolean(|config| &mut config.nonprime_drain_system)),
    option("NP_DRAIN_BACKTIME", SGI_T3E, Kind::Time(|config| &mut config.nonprime_drain_backtime)),
    option("NP_DRAIN_IDLETIME", SGI_T3E, Kind::Time(|config| &mut config.nonprime_drain_idletime)),
    option("MAX_QUEUED_TIME", SGI_T3E_SP, Kind::Time(|config| &mut config.max_queued_time)),
    option("INTERACTIVE_LONG_WAIT", SGI_T3E_SP, Kind::Time(|config| &mut config.interactive_long_wait)),
    option("SMALL_QUEUED_TIME", SGI, Kind::Time(|config| &mut config.small_queued_time)),
    option("SORT_BY_PAST_USAGE", SGI_T3E, Kind::Boolean(|config| &mut config.sort_by_past_usage)),
    option("DECAY_FACTOR", SGI_T3E, Kind::Ratio(|config| &mut config.decay_factor)),
    option("OA_DECAY_FACTOR", SGI_T3E, Kind::Ratio(|config| &mut config.over_allocation_decay_factor)),
    option("ENFORCE_ALLOCATION", SGI_T3E, Kind::Enforced(|config| &mut config.enforce_allocation)),
    option("SCHED_ACCT_DIR", SGI_T3E, Kind::Path(|config| &mut config.accounting_folder)),
    option("ENFORCE_DEDICATED_TIME", SGI_T3E_SP, Kind::Enforced(|config| &mut config.enforce_dedicated_time)),
    option("DEDICATED_TIME_COMMAND", SGI_T3E_SP, Kind::Path(|config| &mut config.dedicated_time_command)),
    option("DEDICATED_TIME_CACHE_SECS", SGI_T3E_SP, count(|config| &mut config.dedicated_time_cache_seconds)),
    option("SYSTEM_NAME", SGI_T3E_SP, Kind::Host(|config| &mut config.system_name)),
    option("USAGE_WEIGHT", T3E, weight(|config| &mut config.usage_weight)),
    option("NODES_WEIGHT", T3E, weight(|config| &mut config.nodes_weight)),
    option("TIMEQ_WEIGHT", T3E, weight(|config| &mut config.queued_time_weight)),
    option("AVOID_FRAGMENTATION", SGI_T3E, Kind::Boolean(|config| &mut config.avoid_fragmentation)),
    option("SCHED_RESTART_ACTION", SGI_T3E, Kind::RestartAction),
    option("SORTED_JOB_DUMPFILE", ALL, Kind::Path(|config| &mut config.sorted_job_dumpfile)),
    option("TEST_ONLY", ALL, Kind::Boolean(|config| &mut config.test_only)),
    option("FAKE_MACHINE_MULT", ALL, positive(|config| &mut config.fake_machine_multiplier)),
    option("SCHED_HOST", SGI, Kind::NoEffect),
    option("SERVER_HOST", SGI, Kind::NoEffect),
    option("MANAGE_HPM_COUNTERS", SGI, Kind::NoEffect),
    option("REVOKE_HPM_COUNTERS", SGI, Kind::NoEffect),
    option("BACKFILL_MODE", SGI_SP, Kind::BackfillMode),
    option("NODE_CPUS", SGI, positive(|config| &mut config.node_cpus)),
    option("NODE_MEM", SGI, Kind::Size(|config| &mut config.node_memory_kilobytes)),
];

/// The presets that read an option; `None` if there is no such option.
pub fn readers(name: &str) -> Option<&'static [Preset]> {
    OPTIONS.iter().find(|option| option.name == name).map(|option| option.readers)
}
