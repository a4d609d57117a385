//! Tests of programs: what the checker says of them, and what they do.

mod checks;
mod config;
mod cycles;
mod examples;
mod expressions;
mod getters;
mod limits;
mod properties;
mod queues;
mod support;
