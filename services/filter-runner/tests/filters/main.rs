//! Real programs, run as filters.

mod calls;
mod documents;
mod ending;
mod examples;
mod persistent;
mod security;
mod service;
mod site;
