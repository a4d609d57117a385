//! Which work queues there are.

use muster_schemas::subjects;
use std::{borrow::Cow, time::Duration};

/// A work queue. All who use it name it with the same values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkQueue {
    /// Its name: that of a JetStream stream on NATS.
    pub name: Cow<'static, str>,
    /// The subject of its items.
    pub subject: Cow<'static, str>,
    /// An item that was not acknowledged for so long after its delivery is delivered again.
    pub redeliver_after: Duration,
}

impl WorkQueue {
    /// Notifications to deliver.
    pub const NOTIFY: Self = Self {
        name: Cow::Borrowed(subjects::NOTIFY_STREAM),
        subject: Cow::Borrowed(subjects::NOTIFY_SUBJECT),
        redeliver_after: Duration::from_secs(30),
    };

    /// Calls of filters for which a program is started. A runner acknowledges an item when its claim of the call is answered: from then on
    /// the ledger watches over the call.
    pub const FILTERS: Self = Self {
        name: Cow::Borrowed(subjects::FILTERS_STREAM),
        subject: Cow::Borrowed(subjects::FILTERS_SUBJECT),
        redeliver_after: Duration::from_secs(5),
    };

    /// Calls for which none is started, of persistent filters and of the checks behind the filters; acknowledged as those of
    /// [`WorkQueue::FILTERS`].
    pub const CHECKS: Self = Self {
        name: Cow::Borrowed(subjects::CHECKS_STREAM),
        subject: Cow::Borrowed(subjects::CHECKS_SUBJECT),
        redeliver_after: Duration::from_secs(5),
    };
}
