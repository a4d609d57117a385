//! The table of `strigger --get`.

use super::cells::put;
use crate::queries::strigger::{Happening, Which};
use muster_schemas::trigger::{TriggerOn, TriggerView, WatchedNodes};

const HEADER: &str = "TRIG_ID RES_TYPE   RES_ID TYPE                                OFFSET USER     FLAGS PROGRAM\n";

/// What a trigger waits for.
pub const fn happening(on: &TriggerOn) -> Happening {
    match on {
        TriggerOn::JobEnds(_) => Happening::Fini,
        TriggerOn::WalltimeEnds(_) => Happening::Time,
        TriggerOn::Nodes { turn, .. } => Happening::Node(*turn),
    }
}

/// Whether a trigger is meant.
pub fn takes(which: &Which, trigger: &TriggerView) -> bool {
    let is_of_nodes = trigger.spec.on.job().is_none();
    which.id.is_none_or(|id| id == trigger.trigger)
        && which.job.is_none_or(|job| trigger.job_number == Some(job))
        && which.user.as_ref().is_none_or(|user| *user == trigger.user)
        && (!which.of_nodes || is_of_nodes)
        && which.on.iter().all(|on| *on == happening(&trigger.spec.on))
}

/// The triggers that are meant, in a table; nothing if there are none.
pub fn list(triggers: &[TriggerView], which: &Which, no_header: bool) -> String {
    let mut out = String::new();
    for trigger in triggers.iter().filter(|trigger| takes(which, trigger)) {
        if out.is_empty() && !no_header {
            out.push_str(HEADER);
        }
        let kind = if trigger.job_number.is_some() { "job" } else { "node" };
        let flags = if trigger.spec.is_permanent { "PERM" } else { "" };
        put(
            format_args!(
                "{:>7} {kind:<9} {:>7} {:<35} {:>6} {:<8} {flags:<5} {}\n",
                trigger.trigger,
                subject(trigger),
                happening(&trigger.spec.on).word(),
                trigger.spec.offset_seconds,
                trigger.user,
                trigger.spec.program.join(" "),
            ),
            &mut out,
        );
    }
    out
}

/// The number of the job, or the nodes.
fn subject(trigger: &TriggerView) -> String {
    match (&trigger.spec.on, trigger.job_number) {
        (_, Some(number)) => number.to_string(),
        (TriggerOn::Nodes { nodes: WatchedNodes::Named(names), .. }, None) => crate::hostlist::compress_sorted(names),
        _ => "*".to_owned(),
    }
}
