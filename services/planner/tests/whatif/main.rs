//! What-if over logs that a simulated system has written.

mod log;
mod replays;
