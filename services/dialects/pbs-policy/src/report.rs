//! What `muster pbs check DIR` prints.

use crate::{
    check::{Checked, Policy},
    findings::{Finding, escaped},
    holidays::{Holidays, Hours},
    mode::Mode,
    preset::{self, PresetConfig},
    sched_config::{
        Charge, FairShareModel, HolidaysStale, ModeOptions, ResourcesMax, SchedConfig, StartsBlocked, StrictOrder,
    },
    shares::Shares,
    sort::SortBy,
    values::show_seconds,
};
use jiff::{Timestamp, civil::Weekday, tz::TimeZone};

/// The width of the column with names of options and members.
const NAME_WIDTH: usize = 26;

/// The width of other columns.
const WIDTH: usize = 22;

/// The names of weekdays, Monday first.
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// The lines about a checked folder: errors, then warnings, each as
/// `FILE:LINE: column N: message (token 'T')`; then what is in
/// force, or that nothing is. Local times are those of the zone, and windows that are over at the given time are marked.
pub fn lines(checked: &Checked, zone: &TimeZone, now: Timestamp) -> Vec<String> {
    let mut lines: Vec<String> = checked.errors.iter().map(Finding::located).collect();
    lines.extend(checked.warnings.iter().map(|warning| format!("warning: {}", warning.located())));
    let counts = format!("{}, {}", counted(checked.errors.len(), "error"), counted(checked.warnings.len(), "warning"));
    let Some(policy) = &checked.policy else {
        lines.push(format!("{counts}: the policy cannot be put in force"));
        return lines;
    };
    lines.push(format!("{counts}: the policy can be put in force"));
    lines.push(String::new());
    lines.extend(checked.digests.iter().map(|digest| row(&digest.file, &format!("sha256 {}", digest.sha256))));
    lines.extend(policy_lines(policy, zone, now));
    lines
}

fn policy_lines(policy: &Policy, zone: &TimeZone, now: Timestamp) -> Vec<String> {
    let mut lines = Vec::new();
    let mut section = |title: &str, content: Vec<String>| {
        if !content.is_empty() {
            lines.extend([String::new(), title.to_owned()]);
            lines.extend(content.into_iter().map(|line| format!("  {line}")));
        }
    };
    if let Some(preset) = &policy.preset {
        section("Preset", preset_lines(preset));
    } else {
        let modes = &policy.sched_config.modes;
        section(&three("Option", "prime", "non-prime"), mode_lines(&modes.prime, &modes.non_prime));
        section("Options for all times", option_lines(&policy.sched_config));
        section(&three("Member of the tree", "shares", "part of the machine"), share_lines(&policy.shares));
    }
    section("Prime time", hour_lines(&policy.holidays));
    section("Holidays", holiday_lines(&policy.holidays));
    section("Mode", change_lines(policy, zone, now));
    section("Dedicated time", window_lines(policy, zone, now));
    if let Some(nodes) = &policy.nodes {
        let timeshared = nodes.iter().filter(|node| node.is_timeshared).count();
        section("Nodes", vec![format!("{} timeshared, {} others", timeshared, nodes.len() - timeshared)]);
    }
    lines
}

fn counted(count: usize, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}

fn row(name: &str, value: &str) -> String {
    format!("{:NAME_WIDTH$} {}", escaped(name), escaped(value))
}

fn three(name: &str, first: &str, second: &str) -> String {
    // Rows of a section are indented by two.
    format!("{:width$} {first:WIDTH$} {second}", name, width = NAME_WIDTH + 2)
}

fn pair(name: &str, first: &str, second: &str) -> String {
    format!("{:NAME_WIDTH$} {:WIDTH$} {}", escaped(name), escaped(first), escaped(second))
}

/// The value of a boolean option.
type Switch = fn(&ModeOptions) -> bool;

fn mode_lines(prime: &ModeOptions, non_prime: &ModeOptions) -> Vec<String> {
    let switches: [(&str, Switch); 8] = [
        ("round_robin", |options| options.round_robin),
        ("by_queue", |options| options.by_queue),
        ("strict_fifo", |options| options.strict_fifo),
        ("fair_share", |options| options.fair_share),
        ("load_balancing", |options| options.load_balancing),
        ("load_balancing_rr", |options| options.load_balancing_rr),
        ("help_starving_jobs", |options| options.help_starving_jobs),
        ("sort_queues", |options| options.sort_queues),
    ];
    let mut lines: Vec<String> = switches
        .iter()
        .map(|(name, value)| pair(name, &value(prime).to_string(), &value(non_prime).to_string()))
        .collect();
    lines.push(pair("sort_by", prime.sort_by.name(), non_prime.sort_by.name()));
    let key = |options: &ModeOptions, place: usize| {
        let keys = if options.sort_by == SortBy::MultiSort { options.keys.as_slice() } else { &[] };
        keys.get(place).map(|key| key.name())
    };
    for place in 0.. {
        let keys = (key(prime, place), key(non_prime, place));
        if keys == (None, None) {
            break;
        }
        lines.push(pair("key", keys.0.unwrap_or("-"), keys.1.unwrap_or("-")));
    }
    lines
}

fn option_lines(config: &SchedConfig) -> Vec<String> {
    let filter = format!("{} (hides {})", config.log_filter.sum(), or_nothing(config.log_filter.shown()));
    let checked = config.checked_resources.clone();
    let checked = checked.unwrap_or_else(|| SchedConfig::CHECKED_RESOURCES.map(str::to_owned).to_vec());
    let rows = [
        ("log_filter", filter),
        ("dedicated_prefix", config.dedicated_prefix.clone()),
        ("max_starve", show_seconds(config.max_starve_seconds)),
        ("half_life", show_seconds(config.half_life_seconds)),
        ("unknown_shares", config.unknown_shares.to_string()),
        ("sync_time", show_seconds(config.sync_seconds)),
        ("ignore_queue", or_nothing(config.ignored_queues.join(", "))),
        ("muster_check_resources", checked.join(",")),
        ("muster_strict_order", choice(config.strict_order == StrictOrder::Sorted, "sorted", "arrival")),
        ("muster_resources_max", choice(config.resources_max == ResourcesMax::Capacity, "capacity", "per_job")),
        ("muster_starving_blocks", choice(config.starving_blocks == StartsBlocked::Always, "always", "resources")),
        ("muster_fair_share_model", choice(config.fair_share_model == FairShareModel::Leaf, "leaf", "tree")),
        ("muster_fair_share_charge", choice(config.fair_share_charge == Charge::CpuTime, "cput", "ncpus*walltime")),
        ("muster_holidays_stale", choice(config.holidays_stale == HolidaysStale::Apply, "apply", "ignore")),
        ("muster_load_settle", show_seconds(config.load_settle_seconds)),
        ("muster_prestage", config.prestaged_jobs.to_string()),
    ];
    rows.iter().map(|(name, value)| row(name, value)).collect()
}

fn choice(is_first: bool, first: &str, second: &str) -> String {
    (if is_first { first } else { second }).to_owned()
}

fn or_nothing(text: String) -> String {
    if text.is_empty() { "nothing".to_owned() } else { text }
}

/// The members below the root, each under its parent.
fn share_lines(shares: &Shares) -> Vec<String> {
    let (children, members) = (shares.children(), shares.members());
    let mut lines = Vec::with_capacity(members.len());
    let mut next: Vec<usize> = children[Shares::ROOT].iter().rev().copied().collect();
    while let Some(index) = next.pop() {
        let member = &members[index];
        let indent = usize::try_from(member.depth).unwrap_or_default().saturating_sub(1) * 2;
        let name = format!("{:indent$}{}", "", member.name);
        lines.push(pair(&name, &member.shares.to_string(), &member.part.to_string()));
        next.extend(children[index].iter().rev());
    }
    lines
}

fn preset_lines(config: &PresetConfig) -> Vec<String> {
    let mut lines = vec![config.preset.name().to_owned()];
    if config.preset.is_reconstruction() {
        let what = "This preset is a reconstruction: its sources and its table of options are not public.";
        lines.push(what.to_owned());
    }
    lines.extend(preset::options(config).iter().map(|(name, value)| row(name, value)));
    lines
}

fn hour_lines(holidays: &Holidays) -> Vec<String> {
    let Some(year) = holidays.year else { return vec!["at all times".to_owned()] };
    let mut lines = vec![row("year", &year.to_string())];
    lines.extend(WEEKDAYS.iter().zip(0i8..).map(|(name, offset)| {
        let hours = Weekday::from_monday_zero_offset(offset).ok().and_then(|weekday| holidays.hours_on(weekday));
        row(name, &show_hours(hours))
    }));
    lines
}

fn show_hours(hours: Option<Hours>) -> String {
    match hours.map(|hours| (hours, hours.all_day())) {
        None | Some((_, Some(Mode::Prime))) => "prime all day".to_owned(),
        Some((_, Some(Mode::NonPrime))) => "non-prime all day".to_owned(),
        Some((hours, None)) => format!("prime from {}, non-prime from {}", hours.prime, hours.non_prime),
    }
}

fn holiday_lines(holidays: &Holidays) -> Vec<String> {
    holidays.holidays.values().map(|holiday| row(&format!("day {}", holiday.day), &holiday.words)).collect()
}

/// The mode at the given time, and when it changes.
fn change_lines(policy: &Policy, zone: &TimeZone, now: Timestamp) -> Vec<String> {
    let (holidays, stale) = (&policy.holidays, policy.sched_config.holidays_stale);
    let at = |time: Timestamp| zone.to_datetime(time).strftime("%Y-%m-%d %H:%M").to_string();
    let mode = holidays.mode(now, zone, stale);
    let change = match holidays.next_change(now, zone, stale) {
        Some((time, mode)) => format!("{mode} from {}", at(time)),
        None => "with no change to come".to_owned(),
    };
    let mut lines = vec![format!("{mode} at {}, {change}", at(now))];
    if let Some(year) = holidays.year.filter(|_| holidays.is_stale(zone.to_datetime(now).date())) {
        let effect = match stale {
            HolidaysStale::Apply => "its holidays count by the numbers of the days",
            HolidaysStale::Ignore => "its holidays do not count",
        };
        lines.push(format!("the file is for {year}: {effect}"));
    }
    lines
}

fn window_lines(policy: &Policy, zone: &TimeZone, now: Timestamp) -> Vec<String> {
    let windows = policy.dedicated_time.windows(zone);
    let at = |time: Timestamp| zone.to_datetime(time).strftime("%Y-%m-%d %H:%M").to_string();
    let shown = windows.all().iter().map(|window| {
        let state = match (window.to <= now, window.from <= now) {
            (true, _) => " (over)",
            (false, true) => " (open)",
            _ => "",
        };
        format!("{} to {}{state}", at(window.from), at(window.to))
    });
    shown.collect()
}
