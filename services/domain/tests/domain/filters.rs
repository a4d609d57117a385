//! Chains of filters: their calls, the meaning of their answers, and rollback.

mod activation;
mod chains;
pub mod components;
mod events;
mod growth;
mod histories;
mod holds;
mod intake;
mod settings;
mod submission;
pub mod support;
mod verdicts;
