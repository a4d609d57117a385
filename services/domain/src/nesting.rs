//! Planning domains: the resources of running jobs on which other jobs run (OAR-T-10).
//!
//! A job that opens a domain holds its resources for the jobs inside, which take nothing from the nodes: what a run holds
//! is free for the runs inside the domain and for nobody else. Nesting is seen from the runs themselves: a run lies inside
//! the latest earlier run that opens a domain and has all of its cores on a node. So a run that is still there when its
//! domain ends has its share of the node from then on as any other run has.

mod apply;
mod checks;
pub(crate) mod decide;
pub(crate) mod index;
pub(crate) mod invariants;
mod queries;
