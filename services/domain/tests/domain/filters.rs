//! Chains of filters: what they are asked, what their answers mean, what is taken back.

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
