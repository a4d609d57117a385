//! The site's check of the node's health.

use crate::{reports, site::SitePrograms};
use muster_bus::LedgerClient;
use std::time::Duration;
use tokio::{task, time};

/// Checks again and again, and has the node drained when the check fails. Its return to service is up to an operator.
pub async fn watch(ledger: LedgerClient, node: String, site: SitePrograms, every: Duration) {
    let mut due = time::interval(every);
    due.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    loop {
        due.tick().await;
        let (checked, name) = (site.clone(), node.clone());
        let Ok(Err(why)) = task::spawn_blocking(move || checked.check_health(&name)).await else { continue };
        tracing::warn!(node, why, "the node is not healthy");
        if let Err(error) = reports::drain(&ledger, &node, &why).await {
            tracing::warn!(node, error, "the ledger does not take the node out of service");
        }
    }
}
