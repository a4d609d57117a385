//! Agents: nodes that no order reaches ask this gateway for their orders (OAR-K). The gateway speaks for such a node as its
//! executor would, so that to the ledger and the planner it is a node like others.
//!
//! An agent is trusted with nothing but its own node: its token names the node, and what it says of other nodes and of runs
//! that are not there is refused and put on record.

pub(crate) mod archives;
pub(crate) mod identity;
pub(crate) mod orders;
pub(crate) mod reports;
pub(crate) mod tidying;
pub(crate) mod tokens;
mod unpacking;
