//! The heart of the OAR dialect: requests, filters, options and rule files in; resources, starts, tables and messages out.
//!
//! Nothing here does I/O or looks at a clock: times are inputs, in whole seconds since the epoch. Requirement ids such as
//! OAR-R-13 are those of the dialect's specification.

/// The name of this dialect in the records of jobs and steps.
pub const NAME: &str = "oar";

pub mod accounting;
pub mod dialect;
pub mod import;
pub mod life;
pub mod matching;
pub mod mistake;
pub mod options;
pub mod order;
pub mod power;
pub mod predicate;
pub mod quotas;
pub mod refusal;
pub mod request;
pub mod resources;
pub mod show;
pub mod text;

pub use dialect::Oar;
