//! Where the command of a job runs.

use crate::options::types::{Kind, Type};

/// Where the command of a job runs, and what is done on its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// On the first node of the placement; all nodes are prepared and cleaned.
    FirstNode,
    /// On the host for cosystem jobs; nothing is done on the nodes (OAR-T-50).
    CosystemHost,
    /// On the host for deploy jobs; nothing is done on the nodes, which may reboot (OAR-T-60).
    DeployHost,
    /// Nowhere; nothing is done on the nodes (OAR-T-70).
    Nowhere,
}

impl Target {
    /// The target of a job with these types.
    pub fn of(types: &[Type]) -> Self {
        let has = |is_it: fn(&Kind) -> bool| types.iter().any(|one| is_it(&one.kind));
        if has(|kind| matches!(kind, Kind::Noop(_))) {
            Self::Nowhere
        } else if has(|kind| matches!(kind, Kind::Deploy(_))) {
            Self::DeployHost
        } else if has(|kind| matches!(kind, Kind::Cosystem(_))) {
            Self::CosystemHost
        } else {
            Self::FirstNode
        }
    }
}
