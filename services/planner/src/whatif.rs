//! How another policy would have done: the log of a live system, replayed with the rules of the domain and the planner
//! that plans in production.
//!
//! Actions of people and machines are taken from the log ([`History`]): submissions, cancellations, holds, changes,
//! nodes that came and went, and how long every run took. Their consequences (which job starts when and where, which
//! gate opens, what becomes of a job after its run) are decided again ([`replay()`]). The two outcomes are then
//! compared ([`Report`]).
//!
//! Under the policy that was in force the starts are those of the log, except for what a live system adds: the time
//! between an event and the plan that follows it, and starts that were refused because the state had moved on.

mod history;
mod replay;
mod report;

pub use history::History;
pub use replay::{Notes, Replayed, replay};
pub use report::{Difference, Figures, Group, JobDifference, Report, courses_of};
