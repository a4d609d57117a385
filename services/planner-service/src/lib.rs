//! The planner as a service: it follows the log, plans when something happened that can change the plan, and asks the
//! ledger to carry the plan out. The library `muster-planner`, or a program of the site, does the planning.

mod config;
mod cycle_log;
mod cycle_time;
mod external;
mod planner;
mod predictor;
mod reload;
mod script;
mod standby;

pub use config::{Config, ExternalLink};
pub use reload::Reload;

use anyhow::Context as _;
use muster_bus::{BusError, SharedBus};
use planner::Planner;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Plans until `shutdown`. The ledger need not be available yet when this signals `ready`. `reload` has a scheduling program
/// read again.
///
/// # Errors
/// The configuration contradicts itself; the bus is closed or cannot be used.
pub async fn serve(
    bus: SharedBus,
    config: Config,
    reload: Reload,
    ready: oneshot::Sender<()>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let (mut external, mut script) = (config.external(&bus)?, config.script()?);
    let _ = ready.send(());
    let work = async {
        loop {
            let mut planner = Planner::open(bus.clone(), &config, &mut external, &mut script, &reload).await?;
            match planner.run().await {
                Err(BusError::Refused(refusal)) => {
                    tracing::warn!("the records that come next were archived, beginning with a snapshot: {refusal}");
                }
                result => return result,
            }
        }
    };
    let result = shutdown.run_until_cancelled(work).await.unwrap_or(Ok(()));
    result.context("the planner cannot follow the log")
}
