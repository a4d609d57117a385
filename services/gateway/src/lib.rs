//! The gateway: muster's HTTP/JSON API, on a Unix socket for the users of a host and over TCP for those with a token.
//!
//! It answers queries from a projection of the log and passes commands on to the ledger. Every later query sees
//! everything that this or any other gateway has answered. The API is described by `schemas/openapi.json`, which
//! [`openapi`] makes from the code.

mod agents;
mod app;
mod authentication;
mod body;
mod budgets;
mod caller;
mod config;
mod connections;
mod error;
mod gauges;
mod groups;
mod ledgers;
mod listen;
mod listings;
mod live;
mod metrics;
mod own_job;
mod packing;
mod params;
mod planning;
mod reader;
mod routes;
mod statistics;
mod steps;
mod tls;
mod views;

pub use config::Config;
pub use routes::openapi;

use anyhow::Context as _;
use app::App;
use connections::{Serving, TURNED_AWAY};
use muster_bus::SharedBus;
use std::{sync::Arc, time::Duration};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Runs a gateway until `shutdown`. It is ready once it listens and knows the state.
///
/// # Errors
/// The configuration is contradictory, an address is taken, or the state is unavailable.
pub async fn serve(
    bus: SharedBus,
    config: Config,
    ready: oneshot::Sender<()>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    config.check()?;
    let app = tokio::select! {
        app = App::open(bus, config, shutdown.clone()) => app?,
        () = shutdown.cancelled() => return Ok(()),
    };
    let listeners = listen::bind(&app.config).await?;
    // The receiver may be gone; the gateway serves all the same.
    let _ = ready.send(());
    let background = app.run_background();
    let serving = Serving {
        budgets: app.budgets.clone(),
        metrics: app.metrics.clone(),
        head_time: Duration::from_secs(u64::from(app.config.head_seconds)),
        router: routes::router(app.clone()),
        shutdown,
        tracker: TaskTracker::new(),
        turned_away: Arc::new(Semaphore::new(TURNED_AWAY)),
    };
    let result = tokio::select! {
        () = listeners.serve(serving) => Ok(()),
        // A state that stays as it is would be shown as if it were the present one.
        error = app.reader.projection().broken() => Err(error).context("the gateway cannot follow the log"),
    };
    background.abort();
    result
}
