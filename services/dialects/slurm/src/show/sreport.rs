//! `sreport`: what was used in a time, by accounts and users.

use super::{
    Clock,
    cells::put,
    columns::{Field, FormatError, ListStyle},
    record::JobRecord,
    sacctmgr::{Listed, list},
};
use crate::{
    accounts::ROOT,
    moment,
    queries::sreport::{Report, Resource, Sreport, Unit},
};
use muster_schemas::{time::Timestamp, usage::UsageRow};
use std::collections::BTreeMap;

/// A line across the page.
const RULE: &str = "--------------------------------------------------------------------------------\n";
/// The sizes of jobs in processors: each group begins at one of these.
const SIZES: [u64; 5] = [0, 50, 250, 500, 1000];

impl Unit {
    const fn words(self) -> &'static str {
        match self {
            Self::Seconds => "Seconds",
            Self::Minutes => "Minutes",
            Self::Hours => "Hours",
            Self::Percent => "Percentage of Total",
            Self::SecondsPercent => "Seconds/Percentage of Total",
            Self::MinutesPercent => "Minutes/Percentage of Total",
            Self::HoursPercent => "Hours/Percentage of Total",
        }
    }

    const fn is_double(self) -> bool {
        matches!(self, Self::SecondsPercent | Self::MinutesPercent | Self::HoursPercent)
    }

    /// A time in this unit.
    fn show(self, seconds: u64, total: u64) -> String {
        let percent = if total == 0 { 0.0 } else { seconds as f64 / total as f64 * 100.0 };
        let (minutes, hours) = (seconds as f64 / 60.0, seconds as f64 / 3600.0);
        match self {
            Self::Seconds => seconds.to_string(),
            Self::Minutes => format!("{minutes:.0}"),
            Self::Hours => format!("{hours:.0}"),
            Self::Percent => format!("{percent:.2}%"),
            Self::SecondsPercent => format!("{seconds}({percent:.2}%)"),
            Self::MinutesPercent => format!("{minutes:.0}({percent:.2}%)"),
            Self::HoursPercent => format!("{hours:.0}({percent:.2}%)"),
        }
    }
}

impl Resource {
    const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gres/gpu",
        }
    }

    fn seconds(self, row: &UsageRow) -> u64 {
        let micros = match self {
            Self::Cpu => row.amounts.used_core_micros,
            Self::Gpu => row.amounts.used_gpu_micros,
        };
        u64::try_from(micros / 1_000_000).unwrap_or(u64::MAX)
    }
}

/// The cluster that a report is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// How many cores it has.
    pub cpus: u64,
    /// How many GPUs it has.
    pub gpus: u64,
}

impl Cluster {
    const fn count(&self, resource: Resource) -> u64 {
        match resource {
            Resource::Cpu => self.cpus,
            Resource::Gpu => self.gpus,
        }
    }
}

/// What was used, and by whom.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Used {
    cluster: String,
    account: String,
    user: String,
    resource: &'static str,
    seconds: u64,
    total: u64,
    unit: Unit,
}

/// What became of the cluster's time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Utilization {
    cluster: String,
    resource: &'static str,
    count: u64,
    allocated: u64,
    total: u64,
    unit: Unit,
}

macro_rules! field {
    ($names:expr, $header:literal, $width:literal, $write:expr) => {
        Field { letter: None, names: $names, header: $header, width: $width, write: $write, is_detailed: false }
    };
}

impl Listed for Used {
    const FIELDS: &'static [Field<Self>] = &[
        field!(&["Accounts"], "Account", 15, |row, _, out| out.push_str(&row.account)),
        field!(&["Cluster"], "Cluster", 9, |row, _, out| out.push_str(&row.cluster)),
        field!(&["Login"], "Login", 9, |row, _, out| out.push_str(&row.user)),
        field!(&["Proper"], "Proper Name", 15, |_, _, _| {}),
        field!(&["TresName"], "TRES Name", 14, |row, _, out| out.push_str(row.resource)),
        field!(&["Used"], "Used", 10, |row, _, out| out.push_str(&row.unit.show(row.seconds, row.total))),
        field!(&["Energy"], "Energy", 8, |row, _, out| out.push_str(&row.unit.show(0, 0))),
    ];
    const USUAL: &'static str = "";
}

impl Listed for Utilization {
    const FIELDS: &'static [Field<Self>] = &[
        field!(&["Allocated"], "Allocated", 12, |row, _, out| out.push_str(&row.unit.show(row.allocated, row.total))),
        field!(&["Cluster"], "Cluster", 9, |row, _, out| out.push_str(&row.cluster)),
        field!(&["Down"], "Down", 10, |row, _, out| out.push_str(&row.unit.show(0, row.total))),
        field!(&["Idle"], "Idle", 12, |row, _, out| {
            out.push_str(&row.unit.show(row.total.saturating_sub(row.allocated), row.total));
        }),
        field!(&["Overcommitted"], "Over Comm", 9, |row, _, out| out.push_str(&row.unit.show(0, row.total))),
        field!(&["Planned", "Reserved"], "Planned", 9, |row, _, out| out.push_str(&row.unit.show(0, row.total))),
        field!(&["PlannedDown", "PLNDDown"], "PLND Down", 10, |row, _, out| out.push_str(&row.unit.show(0, row.total))),
        field!(&["Reported"], "Reported", 12, |row, _, out| out.push_str(&row.unit.show(row.total, row.total))),
        field!(&["TresCount", "CpuCount", "Count"], "TRES Count", 10, |row, _, out| put(row.count, out)),
        field!(&["TresName"], "TRES Name", 14, |row, _, out| out.push_str(row.resource)),
    ];
    const USUAL: &'static str = "";
}

/// The core or GPU seconds that the cluster had in the time of a report, as far as it has passed.
fn total(command: &Sreport, cluster: &Cluster, resource: Resource, now: Timestamp) -> u64 {
    let micros = command.to.min(now.max(command.from)).micros_since(command.from);
    (u64::try_from(micros).unwrap_or(0) / 1_000_000).saturating_mul(cluster.count(resource))
}

/// A whole report from what the books say: rows by user and account.
///
/// # Errors
/// A column that does not exist.
pub fn sreport(command: &Sreport, rows: &[UsageRow], cluster: &Cluster, clock: &Clock) -> Result<String, FormatError> {
    let resources = command.resources.clone().unwrap_or_else(|| vec![Resource::Cpu]);
    let named = command.resources.is_some();
    let mut out = if command.no_header { String::new() } else { heading(command, clock) };
    let used = |resource| Used {
        cluster: cluster.name.clone(),
        resource: Resource::name(resource),
        total: total(command, cluster, resource, clock.now),
        unit: command.unit,
        ..Used::default()
    };
    let usual = |format: &str| {
        let format =
            if named { format.replace("Used", "TresName,Used").replace(",Energy", "") } else { format.to_owned() };
        let wide = |name: &str| match name {
            "Used" if command.unit.is_double() => "Used%18".to_owned(),
            "Allocated" | "Idle" | "Reported" if command.unit.is_double() => format!("{name}%20"),
            "Down" | "PlannedDown" | "Planned" if command.unit.is_double() => format!("{name}%18"),
            name => name.to_owned(),
        };
        command.format.clone().unwrap_or_else(|| format.split(',').map(wide).collect::<Vec<_>>().join(","))
    };
    let table = match command.report {
        Report::Utilization => {
            let format = if named { "Cluster,TresName,Allocated" } else { "Cluster,Allocated" };
            let format = usual(&format!("{format},Down,PlannedDown,Idle,Planned,Reported"));
            let rows: Vec<Utilization> = resources
                .iter()
                .map(|resource| Utilization {
                    cluster: cluster.name.clone(),
                    resource: resource.name(),
                    count: cluster.count(*resource),
                    allocated: rows.iter().map(|row| resource.seconds(row)).fold(0, u64::saturating_add),
                    total: total(command, cluster, *resource, clock.now),
                    unit: command.unit,
                })
                .collect();
            list(&rows, &format, &command.style, command.no_header, clock)?
        }
        Report::Sizes => String::new(),
        Report::AccountsByUser => {
            let rows = by_account(command, rows, &resources, used);
            list(&rows, &usual("Cluster,Accounts,Login,Proper,Used,Energy"), &command.style, command.no_header, clock)?
        }
        Report::UsersByAccount => {
            let rows = by_user(command, rows, &resources, used);
            list(&rows, &usual("Cluster,Login,Proper,Accounts,Used,Energy"), &command.style, command.no_header, clock)?
        }
        Report::TopUsers => {
            let mut rows = by_user(command, rows, &resources, used);
            rows.truncate(command.top.saturating_mul(resources.len()));
            list(&rows, &usual("Cluster,Login,Proper,Accounts,Used,Energy"), &command.style, command.no_header, clock)?
        }
    };
    out.push_str(&table);
    Ok(out)
}

fn heading(command: &Sreport, clock: &Clock) -> String {
    let time = |time: Timestamp| moment::show(time, &clock.zone);
    // The last second of the time.
    let (from, to) = (time(command.from), time(command.to.plus_seconds(-1)));
    let seconds = command.to.micros_since(command.from) / 1_000_000;
    let title = match command.report {
        Report::Utilization => format!("Cluster Utilization {from} - {to}"),
        Report::AccountsByUser => format!("Cluster/Account/User Utilization {from} - {to} ({seconds} secs)"),
        Report::UsersByAccount => format!("Cluster/User/Account Utilization {from} - {to} ({seconds} secs)"),
        Report::TopUsers => format!("Top {} Users {from} - {to} ({seconds} secs)", command.top),
        Report::Sizes => format!("Job Sizes {from} - {to} ({seconds} secs)"),
    };
    let what = if command.resources.is_some() { "TRES" } else { "CPU" };
    let unit = match (command.report, command.unit) {
        (Report::Sizes, unit) => format!("Time reported in {}", unit.words()),
        (_, Unit::Percent) => format!("Usage reported in {}", Unit::Percent.words()),
        (_, unit) => format!("Usage reported in {what} {}", unit.words()),
    };
    format!("{RULE}{title}\n{unit}\n{RULE}")
}

/// What was used, by account and user.
type Sums = BTreeMap<(String, String), u64>;

fn sums(command: &Sreport, rows: &[UsageRow], resource: Resource) -> Sums {
    let mut sums = Sums::new();
    for row in rows {
        let (account, user) = (row.account.clone().unwrap_or_default(), row.user.clone().unwrap_or_default());
        let is_in = command.accounts.is_empty() || command.accounts.contains(&account);
        if is_in && (command.users.is_empty() || command.users.contains(&user)) {
            let sum = sums.entry((account, user)).or_default();
            *sum = sum.saturating_add(resource.seconds(row));
        }
    }
    sums.retain(|_, seconds| *seconds > 0);
    sums
}

/// The cluster as a whole, each account as a whole, and its users.
fn by_account(
    command: &Sreport,
    rows: &[UsageRow],
    resources: &[Resource],
    used: impl Fn(Resource) -> Used,
) -> Vec<Used> {
    let mut found: BTreeMap<(String, String), Vec<Used>> = BTreeMap::new();
    for resource in resources {
        let mut lines: Sums = sums(command, rows, *resource);
        let own: Vec<_> = lines.iter().map(|((account, _), seconds)| (account.clone(), *seconds)).collect();
        let is_restricted = !command.accounts.is_empty() || !command.users.is_empty();
        for (account, seconds) in own {
            if !account.is_empty() {
                *lines.entry((account, String::new())).or_default() += seconds;
            }
            if !is_restricted {
                *lines.entry((String::new(), String::new())).or_default() += seconds;
            }
        }
        for ((account, user), seconds) in lines {
            let shown = if account.is_empty() && user.is_empty() { ROOT.to_owned() } else { account.clone() };
            let line = Used { account: shown, user: user.clone(), seconds, ..used(*resource) };
            found.entry((account, user)).or_default().push(line);
        }
    }
    found.into_values().flatten().collect()
}

/// Each user in each account, those who used most first.
fn by_user(command: &Sreport, rows: &[UsageRow], resources: &[Resource], used: impl Fn(Resource) -> Used) -> Vec<Used> {
    let mut found: BTreeMap<(String, String), Vec<Used>> = BTreeMap::new();
    for resource in resources {
        for ((account, user), seconds) in sums(command, rows, *resource) {
            let key = (user.clone(), if command.groups { String::new() } else { account.clone() });
            let lines = found.entry(key).or_default();
            match lines.iter_mut().find(|line| line.resource == resource.name()) {
                Some(line) => {
                    line.seconds = line.seconds.saturating_add(seconds);
                    line.account = format!("{},{account}", line.account);
                }
                None => lines.push(Used { account, user, seconds, ..used(*resource) }),
            }
        }
    }
    let mut found: Vec<Vec<Used>> = found.into_values().collect();
    found.sort_by_key(|lines| std::cmp::Reverse(lines.first().map_or(0, |line| line.seconds)));
    found.into_iter().flatten().collect()
}

/// The report about the sizes of jobs: what those of each group of sizes used, by account.
pub fn sizes(command: &Sreport, jobs: &[JobRecord], cluster: &Cluster, clock: &Clock) -> String {
    let mut sums: BTreeMap<&str, [u64; SIZES.len()]> = BTreeMap::new();
    for job in jobs {
        let account = job.account.as_deref().unwrap_or(ROOT);
        let is_in = command.accounts.is_empty() || command.accounts.contains(account);
        let (Some(started), true) = (job.started, is_in) else { continue };
        let until = job.ended.unwrap_or(clock.now).min(command.to);
        let micros = u64::try_from(until.micros_since(started.max(command.from))).unwrap_or(0);
        let group = SIZES.iter().rposition(|least| job.cpus >= *least).unwrap_or(0);
        let sum = &mut sums.entry(account).or_default()[group];
        *sum = sum.saturating_add(micros.saturating_mul(job.cpus).div_ceil(1_000_000));
    }
    sums.retain(|_, groups| groups.iter().any(|seconds| *seconds > 0));
    let all = sums.values().flatten().copied().fold(0, u64::saturating_add);
    let (mut header, mut widths) = (vec!["Cluster".to_owned(), "Account".to_owned()], vec![9, 9]);
    for (place, least) in SIZES.iter().enumerate() {
        header.push(match SIZES.get(place + 1) {
            Some(next) => format!("{least}-{} CPUs", next - 1),
            None => format!(">= {least} CPUs"),
        });
        widths.push(13);
    }
    header.push("% of cluster".to_owned());
    widths.push(12);
    let mut out = String::new();
    if !command.no_header {
        out.push_str(&heading(command, clock));
        line(&header, &widths, &command.style, &mut out);
        if command.style == ListStyle::Columns {
            let dashes: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            line(&dashes, &widths, &command.style, &mut out);
        }
    }
    for (account, groups) in sums {
        let own = groups.iter().copied().fold(0, u64::saturating_add);
        let cells = [cluster.name.clone(), account.to_owned()]
            .into_iter()
            .chain(groups.iter().map(|seconds| command.unit.show(*seconds, own)))
            .chain([Unit::Percent.show(own, all)]);
        line(&cells.collect::<Vec<_>>(), &widths, &command.style, &mut out);
    }
    out
}

/// A row of a table whose columns are not known before.
fn line(cells: &[String], widths: &[usize], style: &ListStyle, out: &mut String) {
    for (place, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let cell = cell.replace(char::is_control, "?");
        match style {
            ListStyle::Columns => put(format_args!("{cell:>width$.width$} "), out),
            ListStyle::Separated { by, ends } => {
                out.push_str(&cell);
                if *ends || place + 1 < cells.len() {
                    out.push_str(by);
                }
            }
        }
    }
    out.push('\n');
}
