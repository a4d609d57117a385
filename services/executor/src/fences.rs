//! Fences of parallel programs, between the shims of a step on its nodes (SL-W-04).
//!
//! A shim leaves what its tasks contribute in its folder, as `fence`. Its executor takes it to the node that leads the
//! step's fences, and leaves the answer as `fence-met`. Both files begin with the number of the fence, so that an executor
//! that restarts knows what is still to be done. The node that leads keeps the answer in its own folder before it gives it
//! to anybody: after a restart it continues with the next fence.

mod leader;
mod meeting;
mod member;

pub use leader::Leader;
pub use member::Members;
