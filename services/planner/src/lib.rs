//! Decides which waiting jobs start where: a pure library, without clock, input or output, and without anything durable.
//!
//! A cycle is [`Engine::pass`], a pipeline of four stages:
//!
//! - order: the keys of the policy, formulas among them;
//! - gate: what keeps a job from being planned, most of it told by the state, and limits of queues and of the policy;
//! - place ([`place`]): over nodes, cores, memory, GPUs and licences, all components together, now or at the first moment
//!   at which they fit;
//! - commit: the starts, promises and reasons go to the ledger as one command ([`projection::Projection::plan`]), which
//!   checks them against its state.
//!
//! A [`projection::Projection`] keeps an engine in step with the log. The rest of the library asks the same engine other
//! questions: simulation of traces, predicted starts, what-if, explanations, decision replay.

pub mod chart;
mod class;
mod engine;
pub mod explain;
pub mod forecast;
pub mod free;
mod limits;
mod machine;
pub mod model;
pub mod pass;
pub mod place;
pub mod policy_file;
pub mod predict;
pub mod projection;
mod queue;
mod resize;
mod search;
pub mod simulate;
mod timeline;
pub mod timetable;
pub mod verify;
pub mod whatif;

pub use class::Size;
pub use engine::Engine;

/// The policy cannot be planned by.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the policy's order: {0}")]
pub struct PolicyError(pub muster_schemas::policy::formula::FormulaError);
