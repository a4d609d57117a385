//! What a ledger that follows tells the one that leads: up to where it has written and synced its log.

use crate::{log::Place, replication::Copies};
use muster_bus::{Message, SharedBus, rounds::Position};
use muster_schemas::{ledgers::RoundKept, subjects};
use std::time::Duration;
use tokio::{sync::watch, task::JoinHandle};

/// The pause before listening is tried again.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Tells each place that `kept` gets, or the last one if they come faster than they can be told.
pub(super) fn tell(bus: SharedBus, mut kept: watch::Receiver<Option<Place>>) -> JoinHandle<()> {
    tokio::spawn(async move {
        while kept.changed().await.is_ok() {
            let Some(Place { created, position }) = *kept.borrow_and_update() else { continue };
            let told = match Message::encode(&RoundKept { stream_created: created, position: position.0 }) {
                Ok(message) => bus.publish(subjects::ROUNDS_KEPT, message).await.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            if let Err(error) = told {
                // The next one says more; an idle leader sends something four times a second.
                tracing::debug!(error, "the leader is not told what this ledger has written");
            }
        }
    })
}

/// Notes what other ledgers tell.
pub(super) fn listen(bus: SharedBus, copies: Copies) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            match bus.subscribe(subjects::ROUNDS_KEPT).await {
                Ok(mut told) => {
                    while let Some(published) = told.next().await {
                        match published.message.decode::<RoundKept>() {
                            Ok(RoundKept { stream_created: created, position }) => {
                                copies.note(Place { created, position: Position(position) });
                            }
                            Err(error) => tracing::debug!(%error, "another ledger says something strange"),
                        }
                    }
                }
                Err(error) => tracing::warn!(%error, "what other ledgers have written is not known yet"),
            }
            tokio::time::sleep(LISTEN_AGAIN_AFTER).await;
        }
    })
}
