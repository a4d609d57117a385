//! The planner as a service: follows the log, plans when something happened that can change the plan, and asks the ledger
//! to make it so. What plans is the library `muster-planner`, or a program of the site's own.

mod cycle_time;
mod external;
mod planner;
mod predictor;

use anyhow::{Context as _, bail};
use external::External;
use muster_bus::{BusError, SharedBus};
use muster_planner::predict::Tolerance;
use planner::Planner;
use serde::Deserialize;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Settings of the planner.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// A program that plans in place of the built-in planner, with its arguments; empty for none.
    pub command: Vec<String>,
    /// Where else such a program is.
    pub external: Option<ExternalLink>,
    /// It has so long for each answer, 1 to 3,600 seconds.
    pub answer_timeout_seconds: u64,
    /// It is shown at most so many of the jobs that wait, 1 to 1,000,000.
    pub max_waiting: usize,
    /// While it does not work, plan by the policy in force rather than start no job.
    pub fallback: bool,
    /// Whether starts of waiting jobs are predicted. An external planner does it itself.
    pub predict: bool,
    /// A prediction is news if it differs from the one that is known by more seconds than this, ...
    pub prediction_change_seconds: u64,
    /// ... and by more percent of what is left of the wait, 0 to 100.
    pub prediction_change_percent: u32,
}

/// How an external planner is reached that is not started by this service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExternalLink {
    /// It serves the subject [`muster_schemas::subjects::PLANNER_EXTERNAL`] of the bus.
    Bus,
}

impl Default for Config {
    fn default() -> Self {
        let Tolerance { seconds, percent } = Tolerance::default();
        Self {
            command: Vec::new(),
            external: None,
            answer_timeout_seconds: 30,
            max_waiting: 10_000,
            fallback: false,
            predict: true,
            prediction_change_seconds: seconds,
            prediction_change_percent: percent,
        }
    }
}

impl Config {
    fn tolerance(&self) -> Tolerance {
        Tolerance { seconds: self.prediction_change_seconds, percent: self.prediction_change_percent }
    }

    fn external(&self, bus: &SharedBus) -> anyhow::Result<Option<External>> {
        let answer_timeout = Duration::from_secs(self.answer_timeout_seconds.clamp(1, 3600));
        Ok(match (self.command.is_empty(), self.external) {
            (true, None) => None,
            (false, None) => Some(External::program(self.command.clone(), answer_timeout)),
            (true, Some(ExternalLink::Bus)) => Some(External::on_bus(bus.clone(), answer_timeout)),
            (false, Some(_)) => bail!("[planner] names two external planners: `command` and `external`; name one"),
        })
    }
}

/// Plans until `shutdown`. The ledger need not be there yet when this says that it is `ready`.
///
/// # Errors
/// The configuration contradicts itself; the bus is closed or cannot be used.
pub async fn serve(
    bus: SharedBus,
    config: Config,
    ready: oneshot::Sender<()>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let mut external = config.external(&bus)?;
    let _ = ready.send(());
    let work = async {
        loop {
            let mut planner = Planner::open(bus.clone(), &config, &mut external).await?;
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
