//! Quotas: limits on the resources, jobs and resource-hours of queues, projects, types and users (OAR-Q).

pub mod calendar;
mod file;
mod json;
pub mod rule;
mod table;

pub use file::{Broken, File, parse};
