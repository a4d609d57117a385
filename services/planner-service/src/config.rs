//! Settings of the planner.

use crate::external::External;
use anyhow::bail;
use muster_bus::SharedBus;
use muster_planner::predict::Tolerance;
use serde::Deserialize;
use std::time::Duration;

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
    pub(crate) fn tolerance(&self) -> Tolerance {
        Tolerance { seconds: self.prediction_change_seconds, percent: self.prediction_change_percent }
    }

    pub(crate) fn external(&self, bus: &SharedBus) -> anyhow::Result<Option<External>> {
        let answer_timeout = Duration::from_secs(self.answer_timeout_seconds.clamp(1, 3600));
        Ok(match (self.command.is_empty(), self.external) {
            (true, None) => None,
            (false, None) => Some(External::program(self.command.clone(), answer_timeout)),
            (true, Some(ExternalLink::Bus)) => Some(External::on_bus(bus.clone(), answer_timeout)),
            (false, Some(_)) => bail!("[planner] names two external planners: `command` and `external`; name one"),
        })
    }
}
