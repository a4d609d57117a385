//! Checks that the times of a component fit together (SL-C-13).

use super::Settings;
use crate::{
    duration::TimeLimit,
    messages::{Refusal, Rejection},
    moment::{self, Now},
};
use jiff::Zoned;
use muster_schemas::time::Timestamp;

/// The time limit of a component in seconds, if it has one. With `--time-min` it is as long as `--deadline` allows.
pub(super) fn walltime_seconds(settings: &Settings, now: &Now) -> Result<Option<u64>, Refusal> {
    let limit = |name| settings.value(name, TimeLimit::parse).and_then(TimeLimit::seconds);
    let moment = |name| settings.value(name, |text| moment::parse(text, now));
    let (longest, least) = (limit("time"), limit("time-min"));
    let rejected = |rejection| Err(Refusal::Rejected(rejection));
    if least > longest && longest.is_some() {
        return rejected(Rejection::TimeMin);
    }
    let Some(deadline) = moment("deadline") else {
        return Ok(settings.value("time", TimeLimit::parse).map(TimeLimit::walltime_seconds));
    };
    let begin = moment("begin");
    if begin.is_some_and(|begin| begin > deadline) {
        return Err(Refusal::DeadlineBeforeBegin);
    }
    let Some(room) = seconds_until(deadline, now) else { return rejected(Rejection::TimeLimit) };
    if least > Some(room) {
        return rejected(Rejection::TimeMin);
    }
    match (longest, least) {
        (Some(longest), None) if longest > room => rejected(Rejection::TimeLimit),
        (Some(longest), Some(_)) => Ok(Some(longest.min(room))),
        _ => Ok(longest),
    }
}

/// The time limits to try for a job with a deadline, longest first: the time left, and less in case it starts later,
/// down to `--time-min` or a minute.
pub fn limits_until_deadline(settings: &Settings, room_seconds: u64) -> Vec<u64> {
    let least =
        settings.value("time-min", TimeLimit::parse).and_then(TimeLimit::seconds).unwrap_or(60).min(room_seconds);
    // It does not start at the very moment of its submission.
    let almost_all = [1, 10, 60].map(|seconds| room_seconds.saturating_sub(seconds));
    let parts = [3, 2, 1].map(|quarters| room_seconds * quarters / 4);
    let mut limits: Vec<u64> =
        almost_all.into_iter().chain(parts).filter(|limit| *limit > least).chain([least]).collect();
    limits.sort_unstable_by(|one, other| other.cmp(one));
    limits.dedup();
    limits
}

/// How long it is until then; `None` if that has passed.
pub fn seconds_until(moment: Timestamp, now: &Zoned) -> Option<u64> {
    let micros = moment.0.checked_sub(now.timestamp().as_microsecond())?;
    u64::try_from(micros / 1_000_000).ok().filter(|_| micros >= 0)
}
