//! The names in `sched_config` (PBS-F-02, PBS-F-03, section 0.2 of the specification).

use super::settings::ModeOptions;

/// What an option sets.
#[derive(Clone, Copy)]
pub enum Setting {
    /// A boolean for each mode.
    Switch(fn(&mut ModeOptions) -> &mut bool),
    SortBy,
    Key,
    LogFilter,
    DedicatedPrefix,
    MaxStarve,
    HalfLife,
    UnknownShares,
    SyncTime,
    IgnoreQueue,
    StrictOrder,
    ResourcesMax,
    StarvingBlocks,
    FairShareModel,
    FairShareCharge,
    HolidaysStale,
    LoadSettle,
    CheckResources,
    Prestage,
}

impl Setting {
    /// Whether the option has a column that says when its line holds.
    pub const fn has_when(self) -> bool {
        matches!(self, Self::Switch(_) | Self::SortBy | Self::Key)
    }

    /// Whether each line adds to the ones before it.
    pub const fn is_list(self) -> bool {
        matches!(self, Self::Key | Self::IgnoreQueue)
    }
}

/// The options under their canonical names.
pub const OPTIONS: [(&str, Setting); 26] = [
    ("round_robin", Setting::Switch(|options| &mut options.round_robin)),
    ("by_queue", Setting::Switch(|options| &mut options.by_queue)),
    ("strict_fifo", Setting::Switch(|options| &mut options.strict_fifo)),
    ("fair_share", Setting::Switch(|options| &mut options.fair_share)),
    ("load_balancing", Setting::Switch(|options| &mut options.load_balancing)),
    ("load_balancing_rr", Setting::Switch(|options| &mut options.load_balancing_rr)),
    ("help_starving_jobs", Setting::Switch(|options| &mut options.help_starving_jobs)),
    ("sort_queues", Setting::Switch(|options| &mut options.sort_queues)),
    ("sort_by", Setting::SortBy),
    ("key", Setting::Key),
    ("log_filter", Setting::LogFilter),
    ("dedicated_prefix", Setting::DedicatedPrefix),
    ("max_starve", Setting::MaxStarve),
    ("half_life", Setting::HalfLife),
    ("unknown_shares", Setting::UnknownShares),
    ("sync_time", Setting::SyncTime),
    ("ignore_queue", Setting::IgnoreQueue),
    ("muster_strict_order", Setting::StrictOrder),
    ("muster_resources_max", Setting::ResourcesMax),
    ("muster_starving_blocks", Setting::StarvingBlocks),
    ("muster_fair_share_model", Setting::FairShareModel),
    ("muster_fair_share_charge", Setting::FairShareCharge),
    ("muster_holidays_stale", Setting::HolidaysStale),
    ("muster_load_settle", Setting::LoadSettle),
    ("muster_check_resources", Setting::CheckResources),
    ("muster_prestage", Setting::Prestage),
];

/// Other names of options, each with the canonical one.
const ALIASES: [(&str, &str); 2] = [("starve_max", "max_starve"), ("strict_ordering", "strict_fifo")];

/// Names of other PBS releases that have no effect, each with the option that does the same, if there is one.
pub const NO_EFFECT: [(&str, Option<&str>); 53] = [
    ("allow_aoe_calendar", None),
    ("assign_ssinodes", None),
    ("backfill", None),
    ("backfill_prime", None),
    ("cpus_per_ssinode", None),
    ("debug_level", None),
    ("dont_preempt_starving", None),
    ("fairshare_decay_factor", None),
    ("fairshare_decay_time", Some("half_life")),
    ("fairshare_enforce_no_shares", None),
    ("fairshare_entity", None),
    ("fairshare_usage_res", Some("muster_fair_share_charge")),
    ("job_sort_formula_threshold", None),
    ("job_sort_key", Some("sort_by")),
    ("max_borrow", None),
    ("max_cons_interrupted_cycles", None),
    ("max_job_check", None),
    ("max_preempt_attempts", None),
    ("mem_per_ssinode", None),
    ("min_interrupted_cycle_length", None),
    ("mom_resources", None),
    ("node_group_key", None),
    ("node_sort_key", None),
    ("nonprimetime_prefix", None),
    ("opt_backfill_fuzzy_time", None),
    ("peer_queue", None),
    ("peer_translation", None),
    ("per_queues_topjobs", None),
    ("per_share_depth", None),
    ("per_share_topjobs", None),
    ("preempt_attempts", None),
    ("preempt_checkpoint", None),
    ("preempt_fairshare", None),
    ("preempt_order", None),
    ("preempt_prio", None),
    ("preempt_queue_prio", None),
    ("preempt_requeue", None),
    ("preempt_sort", None),
    ("preempt_starving", None),
    ("preempt_suspend", None),
    ("preemptive_sched", None),
    ("prime_exempt_anytime_queues", None),
    ("prime_spill", None),
    ("primetime_prefix", None),
    ("provision_policy", None),
    ("resource_unset_infinite", None),
    ("resources", Some("muster_check_resources")),
    ("server_dyn_res", None),
    ("shares_track_only", None),
    ("smp_cluster_dist", None),
    ("sort_nodes", None),
    ("susp_threshold", None),
    ("update_comments", None),
];

/// What a name means.
pub enum Meaning {
    Option(&'static str, Setting),
    /// No effect, and the option that does the same.
    NoEffect(Option<&'static str>),
    Unknown,
}

/// The meaning of a name, in any case.
pub fn meaning(name: &str) -> Meaning {
    let alias = ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name));
    let name = alias.map_or(name, |(_, canonical)| canonical);
    if let Some((name, setting)) = OPTIONS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        return Meaning::Option(name, *setting);
    }
    match NO_EFFECT.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        Some((_, instead)) => Meaning::NoEffect(*instead),
        None => Meaning::Unknown,
    }
}

/// All names that are known.
pub fn known() -> impl Iterator<Item = &'static str> {
    let options = OPTIONS.iter().map(|(name, _)| *name);
    options.chain(ALIASES.iter().map(|(name, _)| *name)).chain(NO_EFFECT.iter().map(|(name, _)| *name))
}
