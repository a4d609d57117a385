//! The planner's guarantees, over random clusters, queues and histories.

mod agreement;
mod capacity;
mod clusters;
mod history;
mod jobs;
mod promises;
mod reasons;
#[path = "../reference/mod.rs"]
mod reference;
mod renewals;
#[path = "../common/requests.rs"]
mod requests;
mod twin;
