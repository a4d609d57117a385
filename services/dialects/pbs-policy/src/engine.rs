//! The fifo policy as settings of the planner (PBS-F-05 to PBS-F-14): tables in, a policy out.
//!
//! The names of resources become names of attributes: [`attribute`]. Limits of server and queues are limits of the
//! policy, each on running jobs and on what jobs ask for. Local hours become instants, for a range of time.

use crate::{
    check::Policy as Tables,
    mode::Mode,
    nodes::MonitorConfig,
    sched_config::{Charge, ModeOptions, ResourcesMax, SchedConfig, StartsBlocked, StrictOrder},
    sort::SortKey,
};
use jiff::{Timestamp as Instant, tz::TimeZone};
use muster_schemas::{
    Timestamp,
    policy::{
        Backfill, ByLoad, Charge as CoreCharge, FairShare, Limit, LimitPer, LoadTable, LoadedNode, MOST_STARTS,
        OnRefusal, OrderKey, OtherHours, Period, Policy, ShareTable, Starving, TurnRules, Turns, UsageRule, Visit,
        Windows,
    },
};
use std::collections::BTreeMap;

/// Limits of a server or a queue (PBS-Q-02, PBS-Q-05). A limit that is not there does not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Running jobs.
    pub max_running: Option<u64>,
    /// Running jobs of each user.
    pub max_user_run: Option<u64>,
    /// Running jobs of each group.
    pub max_group_run: Option<u64>,
    /// Running jobs of single users.
    pub max_run_of_users: BTreeMap<String, u64>,
    /// Running jobs of single groups, by their numbers.
    pub max_run_of_groups: BTreeMap<u32, u64>,
    /// Running jobs of each project, which is the account of its jobs.
    pub max_project_run: Option<u64>,
    /// Running jobs of single projects.
    pub max_run_of_projects: BTreeMap<String, u64>,
    /// Resources by their names, in seconds, kilobytes or numbers.
    pub resources_available: BTreeMap<String, u64>,
    /// The same, used where `resources_available` has no entry.
    pub resources_max: BTreeMap<String, u64>,
}

/// A range of time, for which local hours are computed.
#[derive(Clone, Debug)]
pub struct Range {
    /// Its begin.
    pub from: Instant,
    /// Its end.
    pub until: Instant,
    /// The zone of local hours.
    pub zone: TimeZone,
}

/// Resources and the attributes that stand for them.
const ATTRIBUTES: [(&str, &str); 5] = [
    ("ncpus", "cores"),
    ("nodect", "nodes"),
    ("mem", "memory_kib"),
    ("walltime", "walltime_seconds"),
    ("cput", "cpu_seconds"),
];

/// The attribute of jobs that stands for a resource: other resources keep their names.
pub fn attribute(resource: &str) -> &str {
    ATTRIBUTES.iter().find(|(name, _)| *name == resource).map_or(resource, |(_, attribute)| attribute)
}

/// The resource that an attribute stands for.
pub fn resource(attribute: &str) -> &str {
    ATTRIBUTES.iter().find(|(_, name)| *name == attribute).map_or(attribute, |(resource, _)| resource)
}

/// Whether jobs of a cluster have an attribute for a resource: others are counted in a dry run only.
pub fn is_counted(resource: &str) -> bool {
    ATTRIBUTES.iter().any(|(name, _)| *name == resource)
}

/// The policy of the planner. Queues are in the order of their creation, each with its limits; timeshared nodes are in the
/// order of the file `nodes`.
pub fn policy(
    tables: &Tables,
    server: &Limits,
    queues: &[(String, Limits)],
    timeshared: Vec<LoadedNode>,
    range: &Range,
) -> Policy {
    let config = &tables.sched_config;
    let (prime, non_prime) = (&config.modes.prime, &config.modes.non_prime);
    // They are there also if they change no rule: cycles and programs are told what hour it is, and cycles begin with them.
    let periods = non_prime_periods(tables, range);
    let other_hours =
        (!periods.is_empty()).then(|| OtherHours { periods, order: order(non_prime), rules: rules(config, non_prime) });
    let turns = Turns {
        rules: rules(config, prime),
        other_hours,
        windows: Some(windows(tables, range)),
        ignored_queues: config.ignored_queues.clone(),
        shares: Some(ShareTable::of(&tables.shares)),
        queues: queues.iter().map(|(name, _)| name.clone()).collect(),
        usage: config.collects_usage().then(|| usage(config)),
        routes: None,
        staged_ahead: config.prestaged_jobs,
        hidden_log_classes: Some(config.log_filter.sum()),
        loads: balances(config)
            .then(|| Box::new(LoadTable { nodes: timeshared, settle_seconds: config.load_settle_seconds })),
    };
    let of_queues = queues.iter().flat_map(|(name, own)| limits(config, own, Some(name)));
    Policy {
        name: "fifo".into(),
        order: order(prime),
        backfill: Backfill::default(),
        limits: limits(config, server, None).into_iter().chain(of_queues).collect(),
        queues: BTreeMap::new(),
        max_starts: MOST_STARTS,
        turns: Some(Box::new(turns)),
        ..Policy::default()
    }
}

/// The options that have been set and have no effect in the planner yet, each with the reason.
pub fn without_effect(config: &SchedConfig) -> Vec<(&'static str, &'static str)> {
    let options = [(config.prestaged_jobs > 0, "muster_prestage", "a dry run copies no files")];
    options.into_iter().filter(|(is_set, ..)| *is_set).map(|(_, option, reason)| (option, reason)).collect()
}

/// Whether loads choose nodes at some time.
pub fn balances(config: &SchedConfig) -> bool {
    Mode::BOTH.iter().any(|mode| by_load(config.modes.get(*mode)).is_some())
}

/// How loads choose nodes (PBS-L-03, PBS-L-07, PBS-L-08).
fn by_load(options: &ModeOptions) -> Option<ByLoad> {
    match (options.load_balancing, options.load_balancing_rr) {
        (true, false) => Some(ByLoad::Least),
        (true, true) => Some(ByLoad::LeastInTurn),
        (false, true) => Some(ByLoad::InTurn),
        (false, false) => None,
    }
}

/// A timeshared node with the limits of its load (PBS-L-02).
pub fn timeshared(name: &str, monitor: MonitorConfig, processors: u32) -> LoadedNode {
    let loads = monitor.loads(processors);
    LoadedNode {
        name: name.to_owned(),
        ideal_millionths: loads.ideal.millionths(),
        max_millionths: loads.max.millionths(),
    }
}

/// The order of jobs (PBS-S-01). A key that stands twice decides once.
fn order(options: &ModeOptions) -> Vec<OrderKey> {
    let mut order = Vec::new();
    for key in options.order().keys().iter().map(|key| order_key(*key)) {
        if !order.contains(&key) {
            order.push(key);
        }
    }
    order
}

fn order_key(key: SortKey) -> OrderKey {
    let of = |resource: &str, descending| {
        let text = format!("attribute(\"{}\")", attribute(resource));
        OrderKey::Formula { text, descending }
    };
    match key {
        SortKey::ShortestJobFirst => of("cput", false),
        SortKey::LongestJobFirst => of("cput", true),
        SortKey::SmallestMemoryFirst => of("mem", false),
        SortKey::LargestMemoryFirst => of("mem", true),
        SortKey::HighPriorityFirst => OrderKey::Priority,
        SortKey::LowPriorityFirst => OrderKey::Formula { text: "priority".into(), descending: false },
        SortKey::LargeWalltimeFirst => of("walltime", true),
        SortKey::ShortWalltimeFirst => of("walltime", false),
        SortKey::FairShare => OrderKey::Share,
    }
}

fn rules(config: &SchedConfig, options: &ModeOptions) -> TurnRules {
    let is_pool = !options.round_robin && !options.by_queue;
    let by_arrival = options.strict_fifo && config.strict_order == StrictOrder::Arrival;
    let visit = match () {
        () if is_pool || by_arrival => Visit::Pool,
        () if options.round_robin => Visit::QueuesInTurn,
        () => Visit::QueueByQueue,
    };
    let on_refusal = match options.strict_fifo {
        false => OnRefusal::Nothing,
        true if is_pool => OnRefusal::BlocksAll,
        true => OnRefusal::BlocksQueue,
    };
    let starving = Starving {
        after_seconds: config.max_starve_seconds,
        only_for_resources: config.starving_blocks == StartsBlocked::Resources,
    };
    TurnRules {
        visit,
        by_creation: !options.sort_queues,
        by_arrival,
        on_refusal,
        starving: options.help_starving_jobs.then_some(starving),
        fair_share: options.fair_share.then(|| fair_share(config)),
        by_load: by_load(options),
    }
}

fn fair_share(config: &SchedConfig) -> FairShare {
    let (charge, times) = match config.fair_share_charge {
        Charge::CpuTime => ("cput", None),
        Charge::CpusTimesWalltime => ("walltime", Some("ncpus")),
    };
    FairShare {
        compare: config.fair_share_model.compare(),
        charge: attribute(charge).into(),
        times: times.map(|times| attribute(times).into()),
    }
}

/// The charge of a run, and how fast it is forgotten (PBS-FS-05, PBS-FS-08, PBS-FS-12).
fn usage(config: &SchedConfig) -> UsageRule {
    let charge = match config.fair_share_charge {
        Charge::CpuTime => CoreCharge::CpuSeconds,
        Charge::CpusTimesWalltime => CoreCharge::CoreSeconds,
    };
    UsageRule { charge, half_life_seconds: config.half_life_seconds, sync_seconds: config.sync_seconds }
}

/// The limits of the server, or of a queue.
pub(crate) fn limits(config: &SchedConfig, own: &Limits, queue: Option<&str>) -> Vec<Limit> {
    let new = |per| Limit { per, queue: queue.map(str::to_owned), ..Limit::default() };
    let mut of_all = Limit { max_running_jobs: own.max_running, ..new(LimitPer::All) };
    for name in checked_resources(config) {
        let (available, max) = (own.resources_available.get(name), own.resources_max.get(name));
        let is_per_job = available.is_none() && config.resources_max == ResourcesMax::PerJob;
        let maxima = if is_per_job { &mut of_all.max_attributes_of_job } else { &mut of_all.max_attributes };
        maxima.extend(available.or(max).map(|most| (attribute(name).to_owned(), *most)));
    }
    let limits = [
        of_all,
        Limit { max_running_jobs: own.max_user_run, ..new(LimitPer::User) },
        Limit { max_running_jobs: own.max_group_run, ..new(LimitPer::Group) },
        Limit { max_running_jobs: own.max_project_run, ..new(LimitPer::Account) },
    ];
    let has_any = |limit: &Limit| {
        let attributes = limit.max_attributes.len() + limit.max_attributes_of_job.len();
        limit.max_running_jobs.is_some() || attributes > 0
    };
    let of_one = |per, name: String, most: &u64| Limit { name: Some(name), max_running_jobs: Some(*most), ..new(per) };
    let users = own.max_run_of_users.iter().map(|(user, most)| of_one(LimitPer::User, user.clone(), most));
    let groups = own.max_run_of_groups.iter().map(|(group, most)| of_one(LimitPer::Group, group.to_string(), most));
    let projects = own.max_run_of_projects.iter().map(|(name, most)| of_one(LimitPer::Account, name.clone(), most));
    limits.into_iter().filter(has_any).chain(users).chain(groups).chain(projects).collect()
}

/// The resources that are tested (PBS-Q-04).
pub fn checked_resources(config: &SchedConfig) -> Vec<&str> {
    match &config.checked_resources {
        Some(names) => names.iter().map(String::as_str).collect(),
        None => SchedConfig::CHECKED_RESOURCES.to_vec(),
    }
}

fn windows(tables: &Tables, range: &Range) -> Windows {
    let windows = tables.dedicated_time.windows(&range.zone);
    let windows = windows.all().iter().filter(|window| window.to > range.from);
    let period = |from: Instant, until: Instant| Period { from: micros(from), until: micros(until) };
    Windows {
        queue_prefix: tables.sched_config.dedicated_prefix.clone(),
        periods: windows.map(|window| period(window.from, window.to)).collect(),
    }
}

/// The times of the range that are not prime.
fn non_prime_periods(tables: &Tables, range: &Range) -> Vec<Period> {
    let stale = tables.sched_config.holidays_stale;
    let mut periods = Vec::new();
    let (mut at, mut mode) = (range.from, tables.mode(range.from, &range.zone));
    while at < range.until {
        let next = tables.holidays.next_change(at, &range.zone, stale);
        let (until, next_mode) = next.filter(|(time, _)| *time < range.until).unwrap_or((range.until, mode));
        if mode == Mode::NonPrime {
            periods.push(Period { from: micros(at), until: micros(until) });
        }
        (at, mode) = (until, next_mode);
    }
    periods
}

pub(crate) fn micros(instant: Instant) -> Timestamp {
    Timestamp(instant.as_microsecond())
}
