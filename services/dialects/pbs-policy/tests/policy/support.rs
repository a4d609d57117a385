//! What several tests need.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use muster_pbs_policy::{
    check::{Checked, Policy, check},
    findings::Finding,
    lines::Source,
};

/// The example folder of the book.
pub const SCHED_CONFIG: &str = include_str!("../../../../../docs/examples/pbs/sched_priv/sched_config");
pub const RESOURCE_GROUP: &str = include_str!("../../../../../docs/examples/pbs/sched_priv/resource_group");
pub const HOLIDAYS: &str = include_str!("../../../../../docs/examples/pbs/sched_priv/holidays");
pub const DEDICATED_TIME: &str = include_str!("../../../../../docs/examples/pbs/sched_priv/dedicated_time");
pub const STRICT_CONFIG: &str = include_str!("../../../../../docs/examples/pbs/strict_priority/sched_config");
pub const STRICT_GROUP: &str = include_str!("../../../../../docs/examples/pbs/strict_priority/resource_group");

/// A zone in which clocks change.
pub fn zurich() -> TimeZone {
    TimeZone::get("Europe/Zurich").expect("a known zone")
}

/// A local time in a zone in which it exists once.
pub fn at(local: &str, zone: &TimeZone) -> Timestamp {
    let local: DateTime = local.parse().unwrap_or_else(|error| panic!("{local}: {error}"));
    zone.to_timestamp(local).expect("a time in the calendar")
}

/// The result of checking files with these names and texts, without a preset.
pub fn checked(files: &[(&str, &str)]) -> Checked {
    check(&sources(files), None)
}

pub fn sources(files: &[(&str, &str)]) -> Vec<Source> {
    files.iter().map(|(name, text)| Source::new(name, text)).collect()
}

/// The policy of files without mistakes.
pub fn policy(files: &[(&str, &str)]) -> Policy {
    let checked = checked(files);
    checked.policy.unwrap_or_else(|| panic!("{:?}", shown(&checked.errors)))
}

/// The warnings and errors of one file, without those about other files.
pub fn errors_in(name: &str, text: &str) -> Vec<String> {
    of_file(name, &checked(&[(name, text)]).errors)
}

pub fn warnings_in(name: &str, text: &str) -> Vec<String> {
    let checked = checked(&[(name, text)]);
    assert_eq!(shown(&checked.errors), Vec::<String>::new(), "{text}");
    of_file(name, &checked.warnings)
}

fn of_file(name: &str, findings: &[Finding]) -> Vec<String> {
    findings.iter().filter(|finding| finding.file == name).map(ToString::to_string).collect()
}

pub fn shown(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}
