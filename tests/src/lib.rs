//! What the whole-system tests share with the load generators: the simulation with faults.

pub mod simulation;
