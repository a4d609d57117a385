//! The tables and documents of `oarstat`, `oarnodes` and `oaraccounting`.

pub mod accounting;
pub mod document;
pub mod gantt;
pub mod jobs;
pub mod nodes;
pub mod printed;
pub mod query;
pub mod submitted;
