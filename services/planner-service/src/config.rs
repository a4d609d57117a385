//! Settings of the planner.

use crate::{
    external::External,
    script::{ProgramWord, Script, Setup},
};
use anyhow::{Context as _, bail};
use muster_bus::SharedBus;
use muster_planner::predict::Tolerance;
use serde::Deserialize;
use std::{path::PathBuf, time::Duration};

/// Settings of the planner.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// A program that plans in place of the built-in planner, with its arguments; empty for none.
    pub command: Vec<String>,
    /// Another place of such a program.
    pub external: Option<ExternalLink>,
    /// How long it has for each answer, 1 to 3,600 seconds.
    pub answer_timeout_seconds: u64,
    /// The most waiting jobs that it is shown, 1 to 1,000,000.
    pub max_waiting: usize,
    /// Whether to plan by the policy in force while it does not work, rather than start no job.
    pub fallback: bool,
    /// A scheduling program that plans in place of the built-in planner, as `tcl:BODY[,INIT]`.
    pub scheduler_policy: Option<String>,
    /// The folder with its files, in which it runs.
    pub scheduler_folder: Option<PathBuf>,
    /// The file in that folder for what it prints; `sched_out` if there is none (PBS-X-14).
    pub scheduler_print_file: Option<PathBuf>,
    /// A script in that folder that a Tcl program runs at its end (PBS-X-14).
    pub scheduler_end_script: Option<PathBuf>,
    /// The configuration of a BaSL program, in that folder (PBS-X-12).
    pub scheduler_config_file: Option<PathBuf>,
    /// The name of the server that scheduling programs see. The process sets it.
    #[serde(skip)]
    pub server_name: String,
    /// The zone of its local times; that of the server if there is none, or else UTC.
    pub scheduler_time_zone: Option<String>,
    /// How long each of its cycles may take, 1 to 3,600 seconds (PBS-C-13).
    pub scheduler_alarm_seconds: u64,
    /// How long after the start of a cycle the next one starts at the latest, from 1 second (PBS-C-07).
    pub schedule_iteration_seconds: u32,
    /// Whether starts of waiting jobs are predicted. An external planner does so itself.
    pub predict: bool,
    /// A prediction is news if it differs from the known one by more seconds than this, ...
    pub prediction_change_seconds: u64,
    /// ... and by more percent of the rest of the wait, 0 to 100.
    pub prediction_change_percent: u32,
    /// How long a pass of the built-in planner may look at jobs, 1 to 3,600 seconds (OAR-G-09).
    pub pass_limit_seconds: u64,
    /// How long a plan may be due before a planner that stands by takes over, 1 to 3,600 seconds.
    pub takeover_seconds: u64,
}

/// The connection to an external planner that this service does not start.
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
            scheduler_policy: None,
            scheduler_folder: None,
            scheduler_print_file: None,
            scheduler_end_script: None,
            scheduler_config_file: None,
            server_name: "muster".to_owned(),
            scheduler_time_zone: None,
            scheduler_alarm_seconds: 180,
            schedule_iteration_seconds: 600,
            predict: true,
            prediction_change_seconds: seconds,
            prediction_change_percent: percent,
            pass_limit_seconds: 30,
            takeover_seconds: 3,
        }
    }
}

impl Config {
    pub(crate) fn tolerance(&self) -> Tolerance {
        Tolerance { seconds: self.prediction_change_seconds, percent: self.prediction_change_percent }
    }

    /// How long a pass may look at jobs.
    pub(crate) fn pass_limit(&self) -> Duration {
        Duration::from_secs(self.pass_limit_seconds)
    }

    /// How long a planner that stands by waits for a plan. A program that plans has its own time besides: a scheduling
    /// program for its next cycle, another one for its answer.
    pub(crate) fn takeover_patience(&self) -> Duration {
        let program_seconds = if self.scheduler_policy.is_some() {
            self.scheduler_alarm_seconds.clamp(1, 3600) + u64::from(self.schedule_iteration_seconds)
        } else if self.external.is_some() || !self.command.is_empty() {
            self.answer_timeout_seconds.clamp(1, 3600)
        } else {
            0
        };
        Duration::from_secs(self.takeover_seconds.clamp(1, 3600) + program_seconds)
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

    /// The scheduling program. Mistakes in it are reasons not to start, and all are told.
    pub(crate) fn script(&self) -> anyhow::Result<Option<Script>> {
        let Some(policy) = &self.scheduler_policy else { return Ok(None) };
        if !self.command.is_empty() || self.external.is_some() {
            bail!("[planner] names two programs that plan: `scheduler_policy`, and `command` or `external`; name one");
        }
        let word = ProgramWord::parse(policy).context("[planner]")?;
        let Some(folder) = &self.scheduler_folder else {
            bail!("[planner] names a `scheduler_policy`, and no `scheduler_folder` with its files");
        };
        let mut setup = Setup::new(folder);
        setup.zone.clone_from(&self.scheduler_time_zone);
        setup.print = self.scheduler_print_file.clone().or(setup.print);
        setup.termination.clone_from(&self.scheduler_end_script);
        setup.config.clone_from(&self.scheduler_config_file);
        setup.bounds.cycle = Duration::from_secs(self.scheduler_alarm_seconds.clamp(1, 3600));
        Script::start(word, setup, self.schedule_iteration_seconds).map(Some)
    }
}
