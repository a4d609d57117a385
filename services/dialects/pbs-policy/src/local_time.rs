//! What a local time means where clocks change (PBS-T-07).

use jiff::{
    Timestamp,
    civil::DateTime,
    tz::{AmbiguousOffset, TimeZone},
};

/// The second instant of a local time that is doubled.
pub fn second_instant(local: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Fold { after, .. } => after.to_timestamp(local).ok(),
        _ => None,
    }
}

/// The instant of a local time: for a time that is skipped the first later instant, for a doubled one its first
/// occurrence. `None` at the ends of the calendar.
pub fn instant(local: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(local).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(local).ok(),
        AmbiguousOffset::Gap { after, .. } => {
            // Read with the later offset, a skipped time is an instant before the clocks change.
            let before_change = after.to_timestamp(local).ok()?;
            zone.following(before_change).next().map(|change| change.timestamp())
        }
    }
}
