//! What-if over logs written by a simulated system.

mod log;
mod replays;
