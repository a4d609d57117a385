//! Limits on policies.

use crate::validate::invalid;
use muster_schemas::{command::Refusal, policy::Policy};

/// A policy. Its queues, users and accounts do not have to exist.
pub(crate) fn policy(policy: &Policy) -> Result<(), Refusal> {
    let faults: Vec<String> = policy.faults().iter().map(ToString::to_string).collect();
    if faults.is_empty() { Ok(()) } else { invalid(format!("policy: {}", faults.join("; "))) }
}
