//! Nodes that sleep while nothing runs on them, and are woken for jobs (OAR-E-01 to OAR-E-10).

use crate::{
    ids::NodeId,
    resources::{NodeSpec, PropertyValue},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};
use utoipa::ToSchema;

/// What a site says about nodes that sleep. Without programs no node is woken or put to sleep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EnergySettings {
    /// The program that puts nodes to sleep, with its words; empty means that none is put to sleep. It gets the names of
    /// the nodes on its standard input, one a line.
    pub sleep_program: Vec<String>,
    /// The program that wakes nodes, in the same way; empty means that none is woken.
    pub wake_program: Vec<String>,
    /// The account that both programs run as, if the notifier runs as root. It must not be root's.
    pub account: String,
    /// A node is put to sleep after it has been without job for this long.
    pub idle_seconds: u32,
    /// It is not put to sleep if something is planned on it within this time.
    pub sleep_seconds: u32,
    /// How long a node takes to wake: it is woken so long before something is planned on it.
    pub wake_up_seconds: u32,
    /// How long nodes may take to report after their wake-up was ordered, by the number of nodes that are woken together:
    /// the last step with no more nodes counts. Empty means 900 seconds.
    pub wake_timeouts: Vec<WakeTimeout>,
    /// How long a node may still report after it was ordered to sleep.
    pub sleep_timeout_seconds: u32,
    /// A program is killed after this time and has failed.
    pub program_timeout_seconds: u32,
    /// The most nodes that are woken, and that are put to sleep, in one period.
    pub nodes_at_once: u32,
    /// The length of a period.
    pub pause_seconds: u32,
    /// Idle nodes that are kept awake.
    pub keep_awake: Vec<KeepAwake>,
    /// What nodes use, for estimates of energy; `None` if it is not known.
    pub watts: Option<NodeWatts>,
}

/// The account that the programs run as unless another one is named.
const DEFAULT_ACCOUNT: &str = "nobody";

impl Default for EnergySettings {
    fn default() -> Self {
        Self {
            sleep_program: Vec::new(),
            wake_program: Vec::new(),
            account: DEFAULT_ACCOUNT.into(),
            idle_seconds: 600,
            sleep_seconds: 600,
            wake_up_seconds: 600,
            wake_timeouts: Vec::new(),
            sleep_timeout_seconds: 900,
            program_timeout_seconds: 120,
            nodes_at_once: 25,
            pause_seconds: 60,
            keep_awake: Vec::new(),
            watts: None,
        }
    }
}

impl EnergySettings {
    /// The time that nodes have to report if as many are woken together (OAR-E-06), in seconds.
    pub fn wake_timeout_seconds(&self, nodes: u32) -> u32 {
        const WITHOUT_STEPS: u32 = 900;
        let step = self.wake_timeouts.iter().rev().find(|step| step.nodes <= nodes);
        step.or(self.wake_timeouts.first()).map_or(WITHOUT_STEPS, |step| step.seconds)
    }

    /// The program for a way.
    pub fn program(&self, way: PowerWay) -> &[String] {
        match way {
            PowerWay::Sleep => &self.sleep_program,
            PowerWay::Wake => &self.wake_program,
        }
    }
}

/// How long nodes may take to wake if at least this many are woken together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WakeTimeout {
    /// From this number of nodes on; the first step begins at 1, and steps rise.
    pub nodes: u32,
    /// The time, in seconds.
    pub seconds: u32,
}

/// A number of idle nodes that are kept awake (OAR-E-07).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KeepAwake {
    /// Only nodes with these properties count; empty means all.
    pub properties: BTreeMap<String, PropertyValue>,
    /// How many.
    pub nodes: u32,
}

impl KeepAwake {
    /// Whether a node counts.
    pub fn counts(&self, spec: &NodeSpec) -> bool {
        self.properties.iter().all(|(name, value)| spec.properties.get(name) == Some(value))
    }
}

/// What a node uses, in watts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NodeWatts {
    /// With jobs on it.
    pub busy: u32,
    /// Awake, without jobs.
    pub idle: u32,
    /// Asleep.
    pub asleep: u32,
    /// While it falls asleep or wakes.
    pub waking: u32,
}

/// What a node is ordered to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PowerWay {
    /// To sleep.
    #[default]
    Sleep,
    /// To wake.
    Wake,
}

impl fmt::Display for PowerWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sleep => "sleep",
            Self::Wake => "wake",
        })
    }
}

/// The power state of a node that is not simply awake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PowerPhase {
    /// It was ordered to sleep and still reports.
    FallingAsleep,
    /// It sleeps, and does not report.
    Asleep,
    /// It was ordered to wake and does not report yet.
    Waking,
}

impl fmt::Display for PowerPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FallingAsleep => "falling asleep",
            Self::Asleep => "asleep",
            Self::Waking => "waking",
        })
    }
}

/// The power rule of a node, by its properties (OAR-E-01). A node without these properties may be woken and put to
/// sleep without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerRule {
    /// Whether it may be put to sleep: not if its property [`PowerRule::SLEEPS`] is no.
    pub sleeps: bool,
    /// Whether it may be woken: not if its property [`PowerRule::WAKES`] is no.
    pub wakes: bool,
    /// When it goes away: no job is placed on it that could last longer. The whole number, in seconds since the epoch, in its
    /// property [`PowerRule::UNTIL`].
    pub until: Option<Timestamp>,
}

impl PowerRule {
    /// The property that says whether a node may be put to sleep.
    pub const SLEEPS: &str = "sleeps";
    /// The property that says whether a node may be woken.
    pub const WAKES: &str = "wakes";
    /// The property that says until when a node can be had.
    pub const UNTIL: &str = "available_until";

    /// The rule of a node.
    pub fn of(spec: &NodeSpec) -> Self {
        // No program of the site reaches the host of an agent.
        let may = |name: &str| !spec.is_pulled() && spec.properties.get(name) != Some(&PropertyValue::Flag(false));
        let until = match spec.properties.get(Self::UNTIL) {
            Some(PropertyValue::Number(seconds)) => Some(Timestamp::from_unix_seconds(*seconds)),
            _ => None,
        };
        Self { sleeps: may(Self::SLEEPS), wakes: may(Self::WAKES), until }
    }

    /// Whether the node can be had at a time.
    pub fn is_there(self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// A program of the site that a notifier runs: without a shell, and with nothing that comes from users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteProgram {
    /// The program and its words.
    pub words: Vec<String>,
    /// Its standard input.
    pub input: String,
    /// It is killed after this time, in seconds, and has failed.
    pub limit_seconds: u32,
    /// It is not run any more from then on.
    pub until: Timestamp,
}

/// An order to nodes, by a program of the site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PowerOrder {
    /// What the nodes do.
    pub way: PowerWay,
    /// The nodes, in order of their numbers, each once.
    pub nodes: Vec<NodeId>,
    /// The program and its words.
    pub program: Vec<String>,
    /// The account that it runs as.
    pub account: String,
    /// It is killed after this time, in seconds, and has failed.
    pub limit_seconds: u32,
    /// When the nodes have failed if they have not obeyed.
    pub until: Timestamp,
}

/// The power state of a node, for people and programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PowerView {
    /// The state.
    pub phase: PowerPhase,
    /// Since when.
    pub since: Timestamp,
    /// Whether it can be woken, so that jobs can be placed on it.
    pub wakes: bool,
}
