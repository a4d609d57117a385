//! Dry runs of the fifo policy and of the presets (`pbs.md`): the worked examples of section 11, through the planner's
//! engine.

mod cycles;
mod errors;
mod examples;
mod gates;
mod presets;
mod support;
mod traces;
