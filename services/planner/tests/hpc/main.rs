//! Scheduling modes: windows, growth, shares and preemption, and the effect of activation filters on plans.

mod driver;
mod gates;
mod growth;
mod histories;
mod lists;
mod preemption;
mod properties;
mod shares;
mod staging;
mod verdicts;
mod windows;
mod world;
