//! The streams that this process makes, as far as it knows.

use async_nats::jetstream::{consumer::pull, stream::Config};
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::watch;

/// The streams that this process makes.
#[derive(Debug)]
pub(super) struct Streams {
    known: Mutex<HashMap<String, Known>>,
    losses: watch::Sender<u64>,
}

#[derive(Debug)]
struct Known {
    pub config: Config,
    /// For the workers, if it is a queue.
    pub consumer: Option<pull::Config>,
    /// When the server made it, in nanoseconds since 1970. A different time means a different stream of the same name.
    pub created: i128,
    /// Whether it is thought to exist.
    pub present: bool,
}

impl Default for Streams {
    fn default() -> Self {
        Self { known: Mutex::default(), losses: watch::Sender::new(0) }
    }
}

impl Streams {
    pub(super) fn losses(&self) -> watch::Receiver<u64> {
        self.losses.subscribe()
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        // Each change is one call on the map.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_present(&self, name: &str) -> bool {
        self.known().get(name).is_some_and(|known| known.present)
    }

    /// The stream was not found where it was expected.
    pub(super) fn forget(&self, name: &str) {
        if let Some(known) = self.known().get_mut(name) {
            known.present = false;
        }
    }

    pub(super) fn forget_all(&self) -> Vec<Wanted> {
        let mut known = self.known();
        known.values_mut().for_each(|known| known.present = false);
        known.values().map(|known| Wanted { config: known.config.clone(), consumer: known.consumer.clone() }).collect()
    }

    /// Notes a stream that was found or made.
    pub(super) fn found(&self, wanted: &Wanted, created: i128) {
        let Wanted { config, consumer } = wanted.clone();
        let name = config.name.clone();
        let before = self.known().insert(name.clone(), Known { config, consumer, created, present: true });
        if before.is_some_and(|before| before.created != created) {
            tracing::warn!(stream = name, "the NATS server lost a stream; it was created again");
            self.losses.send_modify(|losses| *losses += 1);
        }
    }
}

/// A stream as this process wants it to be.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) config: Config,
    /// For the workers, if it is a queue.
    pub(super) consumer: Option<pull::Config>,
}
