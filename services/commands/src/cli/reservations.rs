//! The grammar of reservations and closures of nodes.

use super::QueryOptions;
use crate::values;
use clap::{ArgGroup, Args, ValueEnum};
use muster_schemas::{Timestamp, plan::Replaced, resources::NodeFilter};

/// `muster reserve`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("extent").args(["end", "duration"]).required(true)))]
#[command(group(ArgGroup::new("which").args(["nodes", "count"]).required(true)))]
pub struct ReserveOptions {
    /// Its name, by which jobs ask for it: `muster submit --reservation NAME`
    pub name: String,
    /// When it begins: `22:00`, `2026-11-20 08:30`, `+2h`, `now`
    #[arg(long, value_name = "WHEN", value_parser = values::parse_future)]
    pub start: Timestamp,
    /// When it ends
    #[arg(long, value_name = "WHEN", value_parser = values::parse_future)]
    pub end: Option<Timestamp>,
    /// How long it lasts: `30m`, `1:30:00`, `2-12:00:00`; a number alone is minutes
    #[arg(long, value_name = "TIME", value_parser = values::parse_walltime)]
    pub duration: Option<u64>,
    /// These nodes, such as `node[1-4]`
    #[arg(long, value_name = "NODES")]
    pub nodes: Option<String>,
    /// This many nodes, chosen by the planner
    #[arg(long, value_name = "N", value_parser = values::parse_positive)]
    pub count: Option<u32>,
    /// With --count: only nodes with these properties: `gpu & !old`, `mem>=64`
    #[arg(long = "where", value_name = "CONDITION", value_parser = values::parse_condition, conflicts_with = "nodes")]
    pub condition: Option<NodeFilter>,
    /// With --count: only nodes that serve this queue
    #[arg(short = 'q', long, value_name = "QUEUE", conflicts_with = "nodes")]
    pub queue: Option<String>,
    /// Only jobs of this user; can be repeated; without any --user and --account, everybody's
    #[arg(short = 'u', long = "user", value_name = "USER")]
    pub users: Vec<String>,
    /// Only jobs of this account; can be repeated
    #[arg(short = 'A', long = "account", value_name = "ACCOUNT")]
    pub accounts: Vec<String>,
    /// It begins again this long after each beginning: `1-00:00:00` is every day
    #[arg(long, value_name = "TIME", value_parser = values::parse_walltime)]
    pub repeat: Option<u64>,
    /// It may have nodes of other reservations at the same time: there its jobs start, and theirs wait
    #[arg(long)]
    pub overlap: bool,
    /// Jobs that may use it and name no reservation may have its nodes while it lasts
    #[arg(long)]
    pub attract: bool,
    /// Its jobs may start before it, outlast it and have other nodes too
    #[arg(long)]
    pub flexible: bool,
    /// Once it has begun, it ends when no job has run in it or waited for it for this long
    #[arg(long, value_name = "TIME", value_parser = values::parse_walltime)]
    pub until_idle: Option<u64>,
    /// With --count: idle nodes take the place of its nodes that are lost or drained; with `used` also of those on which a job
    /// runs
    #[arg(long, value_name = "WHICH", conflicts_with = "nodes")]
    pub replace: Option<ReplacedNodes>,
}

/// The nodes of a reservation that others take the place of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReplacedNodes {
    /// Lost or drained ones.
    Lost,
    /// These, and those on which a job runs.
    Used,
}

impl From<ReplacedNodes> for Replaced {
    fn from(which: ReplacedNodes) -> Self {
        match which {
            ReplacedNodes::Lost => Self::Lost,
            ReplacedNodes::Used => Self::Used,
        }
    }
}

/// `muster reservations`.
#[derive(Debug, Args)]
pub struct ReservationsOptions {
    /// When, and in which form.
    #[command(flatten)]
    pub query: QueryOptions,
}

/// `muster node close`.
#[derive(Debug, Args)]
pub struct CloseOptions {
    /// When it begins: `22:00`, `2026-11-20 08:30`, `+2h`, `now`
    #[arg(long, value_name = "WHEN", value_parser = values::parse_future)]
    pub from: Timestamp,
    /// When it is over [default: when somebody opens the nodes]
    #[arg(long, value_name = "WHEN", value_parser = values::parse_future)]
    pub until: Option<Timestamp>,
    /// Why, for people
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub reason: String,
    /// The nodes, such as `node[1-4]`
    pub nodes: String,
}
