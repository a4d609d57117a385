//! Chains of filters, templates, and holds until a time.

use super::{Decision, access::Access, invalid};
use muster_schemas::{
    Timestamp,
    command::{Command, Refusal},
};

pub(super) fn decide(_access: &Access, _command: Command, _now: Timestamp) -> Result<Decision, Refusal> {
    Err(invalid("not there yet"))
}
