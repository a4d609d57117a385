//! Whether settings for nodes that sleep can be used.

use crate::{
    decide::invalid,
    validate::{self, shown},
};
use muster_schemas::{
    command::Refusal,
    energy::{EnergySettings, WakeTimeout},
};

const MAX_WORDS: usize = 64;
const MAX_PROGRAM_BYTES: usize = 4_096;
const MAX_SECONDS: u64 = 7 * 86_400;
const MAX_NODES_AT_ONCE: u64 = 10_000;
const MAX_GROUPS: usize = 100;

/// Refuses settings that cannot be used, with the place of the mistake (OAR-E-07).
pub(crate) fn energy(settings: &EnergySettings) -> Result<(), Refusal> {
    program("energy.sleep_program", &settings.sleep_program)?;
    program("energy.wake_program", &settings.wake_program)?;
    validate::name("energy.account", &settings.account)?;
    if settings.account == "root" {
        return Err(invalid("energy.account: is root, and these programs never run as root"));
    }
    let times = [
        ("energy.idle_seconds", settings.idle_seconds, 1),
        ("energy.sleep_seconds", settings.sleep_seconds, 0),
        ("energy.wake_up_seconds", settings.wake_up_seconds, 0),
        ("energy.sleep_timeout_seconds", settings.sleep_timeout_seconds, 1),
        ("energy.program_timeout_seconds", settings.program_timeout_seconds, 1),
        ("energy.pause_seconds", settings.pause_seconds, 0),
    ];
    for (name, value, least) in times {
        validate::number(name, u64::from(value), least, MAX_SECONDS)?;
    }
    validate::number("energy.nodes_at_once", u64::from(settings.nodes_at_once), 1, MAX_NODES_AT_ONCE)?;
    wake_timeouts(&settings.wake_timeouts)?;
    validate::count("energy.keep_awake", settings.keep_awake.len(), MAX_GROUPS)?;
    for (at, group) in settings.keep_awake.iter().enumerate() {
        if group.nodes == 0 {
            return Err(invalid(format!("energy.keep_awake[{at}].nodes: is 0, at least 1 is needed")));
        }
    }
    Ok(())
}

fn program(field: &str, words: &[String]) -> Result<(), Refusal> {
    let Some(path) = words.first() else { return Ok(()) };
    validate::count(field, words.len(), MAX_WORDS)?;
    validate::bytes(field, words.iter().map(|word| word.len() + 1).sum(), MAX_PROGRAM_BYTES)?;
    validate::path(field, path)?;
    if !path.starts_with('/') {
        let path = shown(path);
        return Err(invalid(format!("{field}: `{path}` is not a full path, which begins with `/`")));
    }
    words.iter().try_for_each(|word| validate::text(field, word))
}

/// Steps begin at 1 and rise.
fn wake_timeouts(steps: &[WakeTimeout]) -> Result<(), Refusal> {
    validate::count("energy.wake_timeouts", steps.len(), MAX_GROUPS)?;
    let mut before = 0;
    for (at, step) in steps.iter().enumerate() {
        validate::number(&format!("energy.wake_timeouts[{at}].seconds"), u64::from(step.seconds), 1, MAX_SECONDS)?;
        if step.nodes <= before || at == 0 && step.nodes != 1 {
            let wanted = if at == 0 { "1".to_owned() } else { format!("more than {before}") };
            return Err(invalid(format!(
                "energy.wake_timeouts[{at}].nodes: is {}, expected {wanted}: steps begin at 1 and rise",
                step.nodes
            )));
        }
        before = step.nodes;
    }
    Ok(())
}
