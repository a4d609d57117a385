//! Limits on what queues allow.

use crate::validate::{MAX_SECONDS, count, name, number};
use muster_schemas::{command::Refusal, walltimes::WalltimeIncreases};

/// The most users in a list.
const MAX_USERS: usize = 10_000;

/// How far owners may lengthen their walltimes in a queue.
pub(crate) fn increases(rule: &WalltimeIncreases) -> Result<(), Refusal> {
    let WalltimeIncreases { max_seconds, min_walltime_seconds, apply_seconds, step_seconds, may_force, may_delay } =
        rule;
    let seconds = [
        ("max_seconds", max_seconds),
        ("min_walltime_seconds", min_walltime_seconds),
        ("apply_seconds", apply_seconds),
        ("step_seconds", step_seconds),
    ];
    for (key, value) in seconds {
        number(&format!("walltime_increases.{key}"), *value, 0, MAX_SECONDS)?;
    }
    for (key, users) in [("may_force", may_force), ("may_delay", may_delay)] {
        let field = format!("walltime_increases.{key}");
        count(&field, users.len(), MAX_USERS)?;
        users.iter().filter(|user| *user != "*").try_for_each(|user| name(&field, user))?;
    }
    Ok(())
}
