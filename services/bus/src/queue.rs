//! The work queues.

use muster_schemas::subjects;
use std::{borrow::Cow, time::Duration};

/// A work queue. All its users name it with the same values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkQueue {
    /// Its name: that of a JetStream stream on NATS.
    pub name: Cow<'static, str>,
    /// The subject of its items.
    pub subject: Cow<'static, str>,
    /// An item that is not acknowledged this long after its delivery is delivered again.
    pub redeliver_after: Duration,
}

impl WorkQueue {
    /// Notifications to deliver.
    pub const NOTIFY: Self = Self {
        name: Cow::Borrowed(subjects::NOTIFY_STREAM),
        subject: Cow::Borrowed(subjects::NOTIFY_SUBJECT),
        redeliver_after: Duration::from_secs(30),
    };

    /// Calls of filters that start a program. A runner acknowledges an item once its claim of the call is answered:
    /// from then on the ledger watches over the call.
    pub const FILTERS: Self = Self {
        name: Cow::Borrowed(subjects::FILTERS_STREAM),
        subject: Cow::Borrowed(subjects::FILTERS_SUBJECT),
        redeliver_after: Duration::from_secs(5),
    };

    /// Calls that start no program, of persistent filters and of the checks after the filters; acknowledged like those
    /// of [`WorkQueue::FILTERS`].
    pub const CHECKS: Self = Self {
        name: Cow::Borrowed(subjects::CHECKS_STREAM),
        subject: Cow::Borrowed(subjects::CHECKS_SUBJECT),
        redeliver_after: Duration::from_secs(5),
    };
}
