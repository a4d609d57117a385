//! The helper that states an invariant.

pub(crate) fn ensure(holds: bool, violation: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(violation()) }
}
