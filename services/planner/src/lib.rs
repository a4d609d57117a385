//! Decides which waiting jobs start where: a privileged client of the ledger that owns nothing durable.
//!
//! A cycle is the pure function [`plan`], a pipeline of four stages:
//!
//! - order ([`Order`]): queue priority, job priority, arrival;
//! - gate: what keeps a job from being planned, most of it told by the state, and running limits of queues;
//! - place ([`place`]): first fit over nodes, cores, memory, GPUs and licences, all components together;
//! - commit (the service): the starts and the reasons of those that wait go to the ledger as one command, which checks
//!   them against its state.

pub mod chart;
mod class;
mod engine;
pub mod explain;
pub mod free;
mod limits;
mod machine;
pub mod model;
mod order;
pub mod pass;
pub mod place;
mod plan;
pub mod policy_file;
pub mod predict;
pub mod projection;
mod queue;
mod search;
pub mod simulate;
mod timeline;
pub mod timetable;
pub mod verify;
pub mod whatif;

pub use class::Size;
pub use engine::Engine;
pub use order::Order;
pub use plan::{Plan, Policy, View, plan};

/// The policy cannot be planned by.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the policy's order: {0}")]
pub struct PolicyError(pub muster_schemas::policy::formula::FormulaError);
