//! Hold times (HPC-H-02, HPC-H-07).

use crate::{
    codes::{Code, Refusal},
    description::values::Value as _,
};
use muster_schemas::{policy::words::shorten, time::Timestamp};
use std::ops::RangeInclusive;

/// Allowed values of `DefaultHoldDuration`, in seconds (HPC-H-02).
pub const DEFAULT_DURATION_RANGE: RangeInclusive<i64> = 60..=604_800;

/// Reads the value of `/holduntil`: a time, or minutes from now. Empty or `0` clears the hold: `None` (HPC-H-07).
///
/// # Errors
/// `HoldUntilNotValid` and `HoldUntilTooLong`, as for [`check`].
pub fn parse(text: &str, now: Timestamp) -> Result<Option<Timestamp>, Refusal> {
    let text = text.trim();
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let time = match text.parse::<u32>() {
        _ if text.is_empty() => return Ok(None),
        Ok(0) if is_number => return Ok(None),
        Ok(minutes) if is_number => now.plus_seconds(i64::from(minutes) * 60),
        _ if is_number => return Err(too_long(text)),
        _ => Timestamp::read(text).map_err(|_| {
            let text = format!("`{}`: expected a time such as 2026-11-20T08:30:00Z, or minutes", shorten(text));
            Refusal::new(Code::HoldUntilNotValid, text)
        })?,
    };
    check(time, now).map(Some)
}

/// Whether a hold may be set to this time.
///
/// # Errors
/// `HoldUntilNotValid` if it is not in the future, `HoldUntilTooLong` if it is more than one year ahead (HPC-H-07).
pub fn check(time: Timestamp, now: Timestamp) -> Result<Timestamp, Refusal> {
    if time <= now {
        return Err(Refusal::new(Code::HoldUntilNotValid, format!("{time} is not in the future")));
    }
    match one_year_after(now) {
        Some(latest) if time > latest => Err(too_long(&time.to_string())),
        _ => Ok(time),
    }
}

fn too_long(text: &str) -> Refusal {
    Refusal::new(Code::HoldUntilTooLong, format!("{} is more than one year ahead", shorten(text)))
}

fn one_year_after(now: Timestamp) -> Option<Timestamp> {
    let now = now.to_jiff().to_zoned(jiff::tz::TimeZone::UTC);
    let later = now.checked_add(jiff::Span::new().try_years(1).ok()?).ok()?;
    Some(Timestamp(later.timestamp().as_microsecond()))
}
