//! The gateway: muster's HTTP/JSON API, on a Unix socket for the users of a host and over TCP for those with a token.
//!
//! It answers queries from a projection of the log and passes commands on to the ledger. What it has answered, and what
//! any other gateway has, every later query sees. The API is described by `schemas/openapi.json`, which [`openapi`]
//! makes from the code.

mod app;
mod body;
mod caller;
mod error;
mod listen;
mod live;
mod metrics;
mod names;
mod params;
mod planning;
mod reader;
mod routes;
mod statistics;
mod steps;
mod views;

pub use routes::openapi;

use anyhow::{Context as _, bail};
use app::App;
use muster_bus::SharedBus;
use serde::Deserialize;
use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// How a gateway is set up.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The Unix socket to listen on; everybody on the host may connect, and the kernel says who it is.
    pub socket: Option<PathBuf>,
    /// The TCP address to listen on, such as `127.0.0.1:7457`. Callers show a token. The connection is not encrypted:
    /// put a proxy in front of it where that is needed.
    pub listen: Option<SocketAddr>,
    /// The tokens that are accepted over TCP: on each line a token of at least 16 characters and the login name of whom
    /// it speaks for. Its mode is 0600. It is read again when it changes.
    pub tokens_file: Option<PathBuf>,
    /// The largest request body, in bytes: 1,024 to 1,073,741,824.
    pub max_body_bytes: usize,
    /// What commands of dialects ask for, by dialect and name. The gateway only passes it on.
    #[serde(skip)]
    pub dialects: BTreeMap<String, BTreeMap<String, String>>,
}

impl Default for Config {
    fn default() -> Self {
        Self { socket: None, listen: None, tokens_file: None, max_body_bytes: 64 << 20, dialects: BTreeMap::new() }
    }
}

impl Config {
    fn check(&self) -> anyhow::Result<()> {
        if self.socket.is_none() && self.listen.is_none() {
            bail!("the gateway has nothing to listen on: set `socket` or `listen`");
        }
        if self.listen.is_some() && self.tokens_file.is_none() {
            bail!("the gateway listens on TCP and has no `tokens_file`: nobody could use it");
        }
        if !(1 << 10..=1 << 30).contains(&self.max_body_bytes) {
            bail!("`max_body_bytes` is {}, and must be 1024 to 1073741824", self.max_body_bytes);
        }
        Ok(())
    }
}

/// Runs a gateway until `shutdown`. It is ready once it listens and knows the state.
///
/// # Errors
/// The configuration makes no sense, an address is taken, or the state cannot be got.
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
    // Who waits for it may have gone; the gateway serves all the same.
    let _ = ready.send(());
    let background = app.run_background();
    let served = listeners.serve(routes::router(app), shutdown).await;
    background.abort();
    served.context("the gateway stopped")
}
