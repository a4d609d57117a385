//! What the server tells its schedulers, kept as attributes of the cluster's configuration: how long after a cycle the next one
//! begins at the latest, the zone of local times, and the policy (PBS-C-07, PBS-P-01, PBS-T-07).

use super::{
    command::Change,
    problem::Problem,
    values::{assigned, key, seconds},
};
use crate::{flavour::Flavour, refusal::shown};
use jiff::tz::TimeZone;
use std::collections::BTreeMap;

/// The attributes of a server.
type Attributes = BTreeMap<String, String>;

const ITERATION: &str = "pbs.schedule_iteration";
const ZONE: &str = "pbs.timezone";
const POLICY: &str = "pbs.scheduler_policy";
/// Both names of the first, the canonical one first.
const NAMES_OF_ITERATION: [&str; 2] = ["schedule_iteration", "scheduler_iteration"];
/// Policies that are made of files; a program of the site is another kind.
const POLICIES: [&str; 5] = ["fifo", "sgi_origin", "ibm_sp", "cray_t3e", "multitask"];
/// The longest time between two cycles, in seconds: a year.
const MOST_SECONDS: u64 = 31_536_000;

/// The longest time from the start of a cycle to that of the next, in seconds; `None` if it was not set.
pub fn schedule_iteration(attributes: &Attributes) -> Option<u32> {
    attributes.get(ITERATION)?.parse().ok()
}

/// The zone of local times in policy files, if it was set.
pub fn time_zone(attributes: &Attributes) -> Option<TimeZone> {
    TimeZone::get(attributes.get(ZONE)?).ok()
}

/// The policy that policy files are for, if it was set: `fifo` or a preset.
pub fn scheduler_policy(attributes: &Attributes) -> Option<&str> {
    attributes.get(POLICY).map(String::as_str)
}

/// The name of the first under a member of the family.
pub(super) const fn name_of_iteration(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::PbsPro => NAMES_OF_ITERATION[0],
        Flavour::Torque => NAMES_OF_ITERATION[1],
    }
}

/// Where an attribute is kept, if it is one of these.
fn kept(change: &Change) -> Option<&'static str> {
    match key(change).as_str() {
        name if NAMES_OF_ITERATION.contains(&name) => Some(ITERATION),
        "timezone" => Some(ZONE),
        "scheduler_policy" => Some(POLICY),
        _ => None,
    }
}

/// Sets one of them. Whether the attribute is one.
pub(super) fn set(attributes: &mut Attributes, change: &Change) -> Result<bool, Problem> {
    let Some(name) = kept(change) else { return Ok(false) };
    let value = match name {
        ITERATION => match seconds(change)? {
            seconds @ 1..=MOST_SECONDS => seconds.to_string(),
            other => return Err(Problem(format!("expected 1 to {MOST_SECONDS} seconds, found {other}"))),
        },
        ZONE => {
            let zone = assigned(change)?;
            let known = TimeZone::get(zone);
            known.map_err(|_| {
                Problem(format!("there is no time zone `{}`: expected one such as Europe/Zurich", shown(zone)))
            })?;
            zone.to_owned()
        }
        _ => policy(assigned(change)?)?,
    };
    attributes.insert(name.to_owned(), value);
    Ok(true)
}

fn policy(value: &str) -> Result<String, Problem> {
    let lower = value.to_ascii_lowercase();
    if POLICIES.contains(&lower.as_str()) {
        return Ok(lower);
    }
    let is_program = ["basl:", "tcl:", "external:"].iter().any(|kind| lower.starts_with(kind));
    match is_program {
        true => Err(Problem::unsupported("the host of the planner names its program: [planner] scheduler_policy")),
        false => Err(Problem(format!("illegal value `{}`: expected one of {}", shown(value), POLICIES.join(", ")))),
    }
}

/// Takes one of them away. Whether the attribute is one.
pub(super) fn unset(attributes: &mut Attributes, change: &Change) -> bool {
    let name = kept(change);
    name.into_iter().for_each(|name| drop(attributes.remove(name)));
    name.is_some()
}
