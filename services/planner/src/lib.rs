//! Decides which waiting jobs start where: a privileged client of the ledger that owns nothing durable.
//!
//! A cycle is the pure function [`plan`], a pipeline of four stages:
//!
//! - order ([`Order`]): queue priority, job priority, arrival;
//! - gate: what keeps a job from being planned, most of it told by the state, and running limits of queues;
//! - place ([`place`]): first fit over nodes, cores, memory, GPUs and licences, all components together;
//! - commit (the service): the starts and the reasons of those that wait go to the ledger as one command, which checks
//!   them against its state.

pub mod free;
pub mod model;
mod order;
pub mod place;
mod plan;

pub use order::Order;
pub use plan::{Plan, Policy, View, plan};
