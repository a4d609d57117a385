//! A call to be claimed.

use super::lanes::Place;
use muster_bus::WorkItem;
use muster_schemas::filter_order::FilterOrder;
use tokio::sync::OwnedSemaphorePermit;

/// A call to be claimed, and the room for it.
pub(super) struct Claim {
    pub(super) item: WorkItem,
    pub(super) order: FilterOrder,
    pub(super) room: Room,
}

/// What a call occupies while it is made.
pub(super) enum Room {
    /// One of several equal places.
    Slot(#[expect(dead_code, reason = "it is held until the call is over")] OwnedSemaphorePermit),
    /// A place in the lane of its persistent filter.
    Lane(Place),
}
