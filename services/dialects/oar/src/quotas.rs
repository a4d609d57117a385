//! Quotas: limits on the resources, jobs and resource-hours of queues, projects, types and users (OAR-Q).

pub mod calendar;
mod count;
mod file;
mod json;
pub mod rule;
mod table;

pub use count::{Breach, Measure, Quotas};
pub use file::{Broken, File, parse, read};
