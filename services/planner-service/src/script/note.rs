//! A cycle as the log keeps it.

use muster_pbs_script::{
    action::Action,
    cycle::{Decision, End},
    scheduler::{Hour, Report},
};
use muster_schemas::{
    Timestamp,
    cycle::{MOST_GLOBALS_BYTES, MOST_REFUSED_ACTIONS, ProgramCycle, RefusedAction},
    policy::PolicySource,
};

/// What a cycle left (PBS-C-11, PBS-X-25). The ledger gives it its number.
pub(crate) fn note(
    report: &Report,
    hour: Hour,
    policy: &str,
    sources: Vec<PolicySource>,
    milliseconds: u64,
) -> ProgramCycle {
    let count = |is_counted: &dyn Fn(&Decision) -> bool| {
        report.decisions.iter().filter(|decision| is_counted(decision)).count() as u64
    };
    let is_plain = |action: &Action| action.is_start() || matches!(action, Action::Comment { .. });
    let globals = report.globals.as_ref().and_then(|globals| serde_json::to_string(globals).ok());
    let is_kept = globals.as_ref().is_none_or(|globals| globals.len() <= MOST_GLOBALS_BYTES);
    let too_large =
        (!is_kept).then(|| format!("its global variables have more than {MOST_GLOBALS_BYTES} bytes and are not kept"));
    ProgramCycle {
        number: report.begun.seq,
        epoch: 0,
        reasons: report.begun.triggers.iter().map(|trigger| trigger.name().to_owned()).collect(),
        is_prime: hour.is_prime,
        is_dedicated: hour.is_dedicated,
        program: policy.to_owned(),
        sources,
        began: Timestamp(report.now.saturating_mul(1_000_000)),
        milliseconds,
        started: report.started as u64,
        done: count(&|decision| decision.answer.is_ok() && !is_plain(&decision.action)),
        refused: count(&|decision| decision.answer.is_err()),
        refusals: report.decisions.iter().filter_map(refusal).take(MOST_REFUSED_ACTIONS).collect(),
        trouble: report.end.trouble().map(|trouble| told(&report.end, trouble)).or(too_large),
        gave_up: report.gave_up,
        globals: globals.filter(|_| is_kept),
    }
}

fn told(end: &End, trouble: &str) -> String {
    match end {
        End::Fault(_) => format!("error in the scheduling program: {trouble}"),
        _ => trouble.to_owned(),
    }
}

fn refusal(decision: &Decision) -> Option<RefusedAction> {
    let refusal = decision.answer.as_ref().err()?;
    let about = match &decision.action {
        Action::Queue { queue, .. } => queue,
        action => action.job().unwrap_or_default(),
    };
    let action = decision.action.word().to_owned();
    Some(RefusedAction { action, about: about.to_owned(), reason: refusal.text.clone() })
}
