//! The time of a reservation, as it stands now.

use muster_schemas::{plan::ReservationSpec, time::Timestamp};

/// Its beginning and end. The beginning of one that stays ahead moves with the time, and its end with it.
pub(super) fn of(spec: &ReservationSpec, now: Timestamp) -> (Timestamp, Timestamp) {
    match i64::try_from(spec.stays_ahead_seconds) {
        Ok(seconds) if seconds > 0 => {
            let start = now.plus_seconds(seconds);
            (start, start.plus_micros(spec.end.micros_since(spec.start)))
        }
        _ => (spec.start, spec.end),
    }
}
