//! The policy files of PBS against their specification. The ids above the tests are those of its requirements, and W1 to
//! W15 are its worked examples.

mod checks;
mod dedicated;
mod examples;
mod fair_share;
mod holidays;
mod loads;
mod preset_times;
mod presets;
mod properties;
mod reports;
mod sched_config;
mod shares;
mod sorts;
mod support;
mod values;
