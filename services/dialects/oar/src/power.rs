//! Nodes that can be had only for a time, and nodes that sleep (OAR-E).

mod keep_alive;
mod orders;

pub use keep_alive::{KeepAlive, Stand, stand};
pub use orders::{Idle, KeptOrders, Pending, Timeouts, batches, may_sleep, to_wake};

use crate::resources::{state::State, table::Resource};

/// The value of `available_upto` of a node that is never woken nor put to sleep.
pub const NEVER: i64 = 0;
/// The value of one that is never woken but may sleep.
pub const NEVER_WOKEN: i64 = 1;
/// The value of one that may be woken and is never put to sleep.
pub const NEVER_SLEEPS: i64 = 2_147_483_647;
/// The value of one that may be woken and put to sleep without end.
pub const ALWAYS: i64 = 2_147_483_646;

/// What resources are planned for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// A job that starts when it can.
    #[default]
    Batch,
    /// A job with a fixed start.
    Reservation,
    /// A job that takes absent and suspected resources too (`state=permissive`).
    Permissive,
}

/// Whether a resource can be planned for something that ends at a time (OAR-R-18, OAR-E-02).
pub fn is_available(resource: &Resource, purpose: Purpose, end: i64) -> bool {
    let upto = resource.available_upto();
    match (resource.state(), purpose) {
        (State::Dead, _) => false,
        (State::Alive, _) => !is_date(upto) || upto >= end,
        (State::Absent, Purpose::Batch) => upto >= end,
        (State::Suspected, Purpose::Batch) => false,
        (State::Absent | State::Suspected, _) => true,
    }
}

/// Whether the value of `available_upto` is a moment at which the node goes away.
pub const fn is_date(upto: i64) -> bool {
    !matches!(upto, NEVER | NEVER_WOKEN | NEVER_SLEEPS | ALWAYS)
}

/// Whether a node may be woken.
pub const fn may_be_woken(upto: i64) -> bool {
    upto > NEVER_WOKEN
}

/// Whether a node may be put to sleep.
pub const fn may_be_put_to_sleep(upto: i64) -> bool {
    upto > NEVER && upto < NEVER_SLEEPS
}
