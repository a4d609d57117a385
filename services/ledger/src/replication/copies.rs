//! Which rounds a ledger that follows has in its own log.

use crate::log::Place;
use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

/// The furthest place that any ledger that follows has written and synced. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies(Arc<(Mutex<Option<Place>>, Condvar)>);

impl Copies {
    /// A ledger that follows has everything up to this place.
    pub(crate) fn note(&self, place: Place) {
        let (furthest, changed) = &*self.0;
        let mut furthest = furthest.lock().unwrap_or_else(PoisonError::into_inner);
        // Of another stream, a place says nothing.
        if furthest.is_none_or(|known| known.created != place.created || known.position < place.position) {
            *furthest = Some(place);
            changed.notify_all();
        }
    }

    /// Whether a ledger that follows has the message at this place, for which it waits no longer than `within`.
    pub(crate) fn wait_for(&self, place: Place, within: Duration) -> bool {
        let (furthest, changed) = &*self.0;
        let furthest = furthest.lock().unwrap_or_else(PoisonError::into_inner);
        let lacks = |furthest: &mut Option<Place>| {
            furthest.is_none_or(|known| known.created != place.created || known.position < place.position)
        };
        match changed.wait_timeout_while(furthest, within, lacks) {
            Ok((_, waited)) => !waited.timed_out(),
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_bus::rounds::Position;
    use muster_schemas::time::Timestamp;

    #[test]
    fn only_later_places_of_the_same_stream_count() {
        let copies = Copies::default();
        let place = |created, position| Place { created: Timestamp(created), position: Position(position) };
        assert!(!copies.wait_for(place(1, 5), Duration::ZERO));
        copies.note(place(1, 5));
        copies.note(place(1, 4));
        assert!(copies.wait_for(place(1, 5), Duration::ZERO) && copies.wait_for(place(1, 3), Duration::ZERO));
        assert!(!copies.wait_for(place(1, 6), Duration::ZERO) && !copies.wait_for(place(2, 3), Duration::ZERO));
        let other = copies.clone();
        let noting = std::thread::spawn(move || other.note(place(1, 6)));
        assert!(copies.wait_for(place(1, 6), Duration::from_secs(3600)));
        noting.join().unwrap();
    }
}
