//! Dry runs of the fifo policy (`pbs.md`): the worked examples of section 11, through the planner's engine.

mod cycles;
mod errors;
mod examples;
mod support;
