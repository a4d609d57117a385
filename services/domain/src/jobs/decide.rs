//! Commands about jobs.

pub(crate) mod arrays;
pub(crate) mod clients;
pub(crate) mod control;
pub(crate) mod endings;
pub(crate) mod modify;
pub(crate) mod moves;
pub(crate) mod passing;
pub(crate) mod queues;
pub(crate) mod select;
pub(crate) mod submit;
