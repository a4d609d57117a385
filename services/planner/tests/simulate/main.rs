//! `simulate` against the specification: its worked example, a naive implementation of its text, and real traces.

mod charts;
mod common;
mod naive;
mod policies;
mod properties;
mod sleep;
mod traces;
mod worked_example;
