//! The filters of `-p`, of groups and of `--sql`: text in, a typed predicate out (OAR-R-13, OAR-R-14).
//!
//! The language is a small part of SQL over a fixed list of fields. No part of the text reaches a database, a shell or an
//! interpreter.

mod check;
pub mod like;
mod parse;
mod term;
mod token;

pub use check::read;
pub use term::{Comparison, Operand, Predicate};
