//! What a scheduling program decided, in the words of planner and ledger.

use super::commands::job_of;
use crate::external::waiting_in_order;
use muster_domain::State;
use muster_pbs_script::{action::Action, cycle::End, scheduler::Report};
use muster_schemas::{
    JobId,
    event::WaitingJob,
    external_planner::{ExternalComponent, ExternalShare, ExternalStart},
    job::WaitReason,
};
use std::collections::BTreeMap;

/// Bytes of a reason that are shown.
const LONGEST_REASON: usize = 1024;

/// The start of a job as the program names it. For an array that is its next task.
///
/// # Errors
/// There is no such job.
pub(crate) fn start_of(state: &State, name: &str, hosts: &[String]) -> Result<ExternalStart, String> {
    let job = job_of(state, name).map_err(|refusal| refusal.text)?;
    let next = job.array.as_ref().and_then(|array| state.startable(job, array).iter().next());
    let share = |name: &String| ExternalShare { name: name.clone(), ..ExternalShare::default() };
    let component = ExternalComponent { alternative: 0, nodes: hosts.iter().map(share).collect() };
    let components = if hosts.is_empty() { Vec::new() } else { vec![component] };
    Ok(ExternalStart { job: next.map_or(job.id, |index| JobId::task(job.id.number, index)), components })
}

/// Why jobs wait: the program's comment, what went wrong with it, or that it did not start them.
pub(crate) fn reasons(state: &State, most: usize, report: &Report) -> impl Iterator<Item = WaitingJob> {
    let comments: BTreeMap<&str, &str> = report
        .decisions
        .iter()
        .filter(|decision| decision.answer.is_ok())
        .filter_map(|decision| match &decision.action {
            Action::Comment { job, text } => Some((job.as_str(), text.as_str())),
            _ => None,
        })
        .collect();
    let trouble = report.end.trouble().map(|trouble| match &report.end {
        End::Fault(_) => format!("error in the scheduling program: {trouble}"),
        _ if report.gave_up => format!("the scheduling program failed too often, and scheduling is off: {trouble}"),
        _ => trouble.to_owned(),
    });
    let waiting: Vec<JobId> = waiting_in_order(state).into_iter().take(most).map(|job| job.id).collect();
    let reason = |job: JobId| {
        let reason = match (comments.get(job.to_string().as_str()), &trouble) {
            (Some(comment), _) => WaitReason::ExternalPlanner(cut(comment)),
            (None, Some(trouble)) => WaitReason::PlannerFailed(cut(trouble)),
            (None, None) => WaitReason::ExternalPlanner("the scheduling program did not start it".into()),
        };
        WaitingJob { job, reason }
    };
    let reasons: Vec<WaitingJob> = waiting.into_iter().map(reason).collect();
    reasons.into_iter()
}

fn cut(text: &str) -> String {
    text.get(..text.floor_char_boundary(LONGEST_REASON)).unwrap_or_default().to_owned()
}

/// Logs a cycle.
pub(crate) fn log(report: &Report) {
    let (seq, reason) = (report.begun.seq, report.begun.reason.name());
    tracing::debug!(seq, reason, started = report.started, "cycle of the scheduling program");
    for line in &report.lines {
        tracing::info!(seq, "scheduling program: {line}");
    }
    if let Some(trouble) = report.end.trouble() {
        tracing::warn!(seq, "scheduling program: {trouble}");
    }
    if report.gave_up {
        tracing::error!("the scheduling program failed too often: scheduling is switched off");
    }
}
