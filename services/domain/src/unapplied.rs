//! Kinds of events that reach a feature which has no arm for them.

use muster_schemas::event::Event;

/// [`State::apply`](crate::State::apply) sends this kind to a feature that does nothing with it. Tests panic, since an arm was
/// forgotten; in production the record changes nothing.
pub(crate) fn no_arm(event: &Event) {
    debug_assert!(false, "no feature applies {event:?}");
}

#[cfg(test)]
mod tests {
    use crate::State;
    use muster_schemas::{ids::Sequence, testing::samples};

    #[test]
    fn every_kind_of_event_has_an_arm_where_it_is_sent() {
        for mut record in samples() {
            record.sequence = Sequence(1);
            // A new state may contradict a record: it knows none of its jobs and nodes.
            let _ = State::new().apply(&record);
        }
    }
}
