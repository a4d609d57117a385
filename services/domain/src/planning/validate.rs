//! Limits on policies.

use crate::validate::invalid;
use muster_schemas::{command::Refusal, policy::Policy};

/// A policy. Its queues, users and accounts do not have to exist.
pub(crate) fn policy(policy: &Policy) -> Result<(), Refusal> {
    if policy.turns.as_ref().is_some_and(|turns| turns.routes.is_some()) {
        // A start in the log names no queue.
        return invalid("policy: `turns.routes`: expected none: jobs start in the queue in which they wait".to_owned());
    }
    let faults: Vec<String> = policy.faults().iter().map(ToString::to_string).collect();
    if faults.is_empty() { Ok(()) } else { invalid(format!("policy: {}", faults.join("; "))) }
}
