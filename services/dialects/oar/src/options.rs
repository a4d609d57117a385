//! The command line of `oarsub` and the directives of its scripts.

pub mod anterior;
pub mod array;
pub mod date;
pub mod getopt;
pub mod keys;
pub mod notify;
pub mod output;
pub mod perl;
pub mod reservation;
pub mod rules;
pub mod script;
pub mod submission;
pub mod types;
