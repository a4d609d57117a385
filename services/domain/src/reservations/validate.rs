//! Limits on reservations and closures.

use crate::{
    jobs::validate::attributes,
    requests::validate::filter,
    validate::{MAX_COUNT, MAX_NODE_NAMES, MAX_SECONDS, count, identifier, invalid, name, number, text},
};
use muster_schemas::{
    Timestamp,
    command::Refusal,
    plan::{NodeClosure, Replaced, ReservationSpec, ReservedNodes},
};
use std::collections::BTreeSet;

/// The greatest number of users, and of accounts, of one reservation.
const MAX_HOLDERS: usize = 10_000;

/// The length of a day, in seconds.
const DAY_SECONDS: u64 = 86_400;

/// The days of a week from the day of a beginning on, as bits.
const WEEK: u8 = 0b111_1111;

/// A reservation, as far as it can be checked without the state.
pub(crate) fn reservation(spec: &ReservationSpec) -> Result<(), Refusal> {
    identifier("reservation.name", &spec.name)?;
    if spec.end <= spec.start {
        return invalid(format!("reservation.end: {} is not after the start, {}", spec.end, spec.start));
    }
    attributes(&spec.attributes)?;
    let lasts = u64::try_from(spec.end.micros_since(spec.start).div_euclid(1_000_000)).unwrap_or(0);
    if spec.repeats_after_seconds != 0 && spec.repeats_after_seconds < lasts {
        return invalid(format!(
            "reservation.repeats_after_seconds: it lasts {lasts} s, and cannot begin again after {} s",
            spec.repeats_after_seconds
        ));
    }
    number("reservation.repeats_after_seconds", spec.repeats_after_seconds, 0, MAX_SECONDS)?;
    number("reservation.ends_after_idle_seconds", spec.ends_after_idle_seconds, 0, MAX_SECONDS)?;
    number("reservation.stays_ahead_seconds", spec.stays_ahead_seconds, 0, MAX_SECONDS)?;
    if spec.stays_ahead_seconds > 0 && spec.repeats_after_seconds > 0 {
        return invalid("reservation.stays_ahead_seconds: it never begins, so it cannot begin again".to_owned());
    }
    let is_daily = spec.repeats_after_seconds == DAY_SECONDS;
    if spec.skipped_days != 0 && (!is_daily || spec.skipped_days >= WEEK) {
        let message = "reservation.skipped_days: bits 0 to 6 but not all, of a reservation that repeats each day";
        return invalid(message.to_owned());
    }
    if spec.replaces != Replaced::None && matches!(spec.nodes, ReservedNodes::Named(_)) {
        return invalid("reservation.replaces: nodes that are named are not replaced".to_owned());
    }
    match &spec.nodes {
        ReservedNodes::Named(names) => {
            number("reservation.nodes: names", names.len() as u64, 1, MAX_NODE_NAMES as u64)?;
        }
        ReservedNodes::Count { count, filter: wanted, .. } => {
            number("reservation.nodes: count", u64::from(*count), 1, u64::from(MAX_COUNT))?;
            wanted.as_ref().map_or(Ok(()), |wanted| filter(wanted, 0))?;
        }
    }
    for (field, holders) in [("reservation.users", &spec.users), ("reservation.accounts", &spec.accounts)] {
        count(field, holders.len(), MAX_HOLDERS)?;
        holders.iter().try_for_each(|holder| name(field, holder))?;
        let distinct: BTreeSet<&String> = holders.iter().collect();
        if distinct.len() < holders.len() {
            return invalid(format!("{field}: a name is given twice"));
        }
    }
    Ok(())
}

/// The closures of a node.
pub(crate) fn closures(closures: &[NodeClosure], most: usize) -> Result<(), Refusal> {
    count("closures", closures.len(), most)?;
    for closure in closures {
        text("closures.reason", &closure.reason)?;
        if closure.until <= closure.from {
            return invalid(format!("closures.until: {} is not after from, {}", closure.until, closure.from));
        }
        if closure.until > Timestamp::MAX {
            return invalid(format!("closures.until: is later than {}", Timestamp::MAX));
        }
    }
    match closures.windows(2).find(|pair| pair[1].from < pair[0].until) {
        Some(pair) => invalid(format!(
            "closures: one begins at {} before the one ahead of it is over at {}",
            pair[1].from, pair[0].until
        )),
        None => Ok(()),
    }
}
