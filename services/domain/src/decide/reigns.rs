//! The lead among several ledgers.

use super::{Access, Decision, conflict, invalid};
use muster_schemas::{command::Refusal, event::Event, ledgers::MAX_LEDGER_NAME_BYTES};

/// An operator wants another ledger to lead. Which ledgers there are is not known here: if the one that is named does not
/// take the lead, another one does.
pub(crate) fn hand_over(access: &Access, to: Option<String>) -> Result<Decision, Refusal> {
    access.require_operator("let another ledger lead")?;
    let Some(reign) = access.state.reign() else {
        return Err(conflict("this ledger has no others that it could hand over to (`replication` is `alone`)"));
    };
    if let Some(name) = &to {
        if name.is_empty() || name.len() > MAX_LEDGER_NAME_BYTES || name.chars().any(char::is_control) {
            return Err(invalid(format!(
                "`to`: the name of a ledger has 1 to {MAX_LEDGER_NAME_BYTES} bytes without control characters"
            )));
        }
        if *name == reign.ledger {
            return Err(conflict(format!("ledger {name} leads already")));
        }
    }
    Ok(Decision::done(vec![Event::LedgerHandsOver { ledger: reign.ledger.clone(), to }]))
}
