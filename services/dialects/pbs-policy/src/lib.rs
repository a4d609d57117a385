//! The policy files of a PBS scheduler, as they lie in its folder `sched_priv`: texts in, tables out.
//!
//! [`check::check`] reads all files together and gives the policy or every mistake. The tables hold no state: usage,
//! times and loads are inputs of pure functions, so a planner that uses them can be replayed. Nothing here does I/O,
//! except [`folder::read`], and nothing looks at a clock. Requirement ids such as PBS-F-04 are those of the dialect's
//! specification.

pub mod allocations;
pub mod check;
pub mod dedicated;
pub mod engine;
pub mod findings;
pub mod folder;
pub mod holidays;
pub mod lines;
mod local_time;
pub mod mode;
pub mod nodes;
pub mod outages;
pub mod past_usage;
pub mod preset;
pub mod prime;
pub mod report;
pub mod routes;
pub mod sched_config;
pub mod shares;
pub mod sort;
pub mod usage;
pub mod values;

pub use muster_schemas::fraction;
