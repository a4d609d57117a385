//! The HPC Pack dialect against its specification. The ids above the tests are those of its requirements.

mod description;
mod jobs;
mod properties;
mod support;
