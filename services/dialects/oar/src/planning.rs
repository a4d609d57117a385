//! Notions of planning as pure functions: placements in time, planning domains, share keys, labels, and a whole pass.

pub mod besteffort;
pub mod container;
pub mod dependency;
pub mod domain;
pub mod gantt;
pub mod pass;
pub mod queue;
pub mod queues;
pub mod reason;
pub mod reservation;
pub mod search;
pub mod share;
pub mod start;
pub mod walltime;
