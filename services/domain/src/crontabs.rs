//! Tables of jobs that are repeated at certain times.
//!
//! A job of a table is an ordinary job with a begin time. When its run has ended it is put back into the queue, with the next
//! of its times as its begin time: so it runs once at a time. When it is over, because somebody has cancelled it or it was
//! refused, its lines in the table are disabled.

mod apply;
pub(crate) mod decide;
mod queries;
mod state;

pub use state::{Crontab, RepeatedJob};
