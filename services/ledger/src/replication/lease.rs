//! How long a leader may answer without an append.

use super::{LEASE, MARGIN};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

/// The time until which a ledger certainly leads. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lease {
    until: Arc<Mutex<Option<Instant>>>,
}

impl Lease {
    /// Whether no other ledger can lead now.
    pub(crate) fn holds(&self, now: Instant) -> bool {
        self.until().is_some_and(|until| now < until)
    }

    /// An append that was first tried at this time stands.
    pub(crate) fn renew(&self, tried: Instant) {
        let until = tried + (LEASE - MARGIN);
        self.set(Some(until));
    }

    /// Nothing is certain any more: an append has an unknown fate, or this ledger leads no longer.
    pub(crate) fn drop_it(&self) {
        self.set(None);
    }

    fn until(&self) -> Option<Instant> {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, until: Option<Instant>) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_before_others_may_lead() {
        let (lease, tried) = (Lease::default(), Instant::now());
        assert!(!lease.holds(tried));
        lease.renew(tried);
        assert!(lease.holds(tried + (LEASE - MARGIN * 2)));
        assert!(!lease.holds(tried + (LEASE - MARGIN)));
        lease.renew(tried + LEASE);
        lease.clone().drop_it();
        assert!(!lease.holds(tried + LEASE));
    }
}
