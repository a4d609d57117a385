//! Walltimes of running jobs that grow as far as nobody is delayed (OAR-G-16).
//!
//! A user asks for more time. What delays no job that waits is granted at once; the rest stays pending with the run, and is
//! looked at again by the tick. What was granted is a change of the walltime like any other.

mod apply;
pub(crate) mod decide;
mod room;
pub(crate) mod validate;
