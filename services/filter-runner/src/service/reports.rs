//! Reporting what calls came to: what has come while the last reports were answered is reported together.

use super::Service;
use muster_schemas::{
    CommandId, codec,
    command::{CallOutcome, CallReport, Command, CommandEnvelope},
    event::TraceContext,
    filter::{CallId, FileAfter},
};
use std::sync::Arc;
use tokio::sync::mpsc;

/// At most so many reports are sent together.
const AT_A_TIME: usize = 256;
/// What carries the reports takes some bytes as well.
const OVERHEAD_BYTES: usize = 16 << 10;

/// Reports until nobody has anything to report any more.
pub(super) async fn run(service: Arc<Service>, mut reports: mpsc::Receiver<CallReport>) {
    let mut arrived = Vec::new();
    while reports.recv_many(&mut arrived, AT_A_TIME).await > 0 {
        for batch in batches(std::mem::take(&mut arrived), service.max_payload_bytes.saturating_sub(OVERHEAD_BYTES)) {
            let calls: Vec<CallId> = batch.iter().map(|report| report.call).collect();
            report_all(&service, batch).await;
            calls.into_iter().for_each(|call| service.calls.drop_call(call));
        }
    }
}

/// Reports that fit into one message each.
fn batches(reports: Vec<CallReport>, max_bytes: usize) -> Vec<Vec<CallReport>> {
    let mut batches = vec![Vec::new()];
    let mut bytes = 0;
    for report in reports {
        let (report, size) = fitting(report, max_bytes);
        if bytes + size > max_bytes {
            batches.push(Vec::new());
            bytes = 0;
        }
        bytes += size;
        if let Some(last) = batches.last_mut() {
            last.push(report);
        }
    }
    batches.retain(|batch| !batch.is_empty());
    batches
}

/// The report and its size. If the bus cannot carry it, what is too large is left out, and that is said instead.
fn fitting(mut report: CallReport, max_bytes: usize) -> (CallReport, usize) {
    let size = |report: &CallReport| codec::encode(report).map_or(usize::MAX, |bytes| bytes.len());
    let before = size(&report);
    if before <= max_bytes {
        return (report, before);
    }
    let why = format!("the description takes {before} bytes, and the bus carries {max_bytes}");
    match &mut report.outcome {
        CallOutcome::Called(called) => called.file = FileAfter::Bad(why),
        outcome => *outcome = CallOutcome::Refused(format!("[SizeNotValid] {why}")),
    }
    let after = size(&report);
    (report, after)
}

/// Reports together, or if that is refused each for itself, so that one that cannot be taken spoils no other.
async fn report_all(service: &Service, reports: Vec<CallReport>) {
    let single = if reports.len() > 1 { reports.clone() } else { Vec::new() };
    if report(service, reports).await {
        return;
    }
    for one in single {
        report(service, vec![one]).await;
    }
}

/// Tells the ledger until it has answered; whether it took the reports. It may be gone for long; then they are late, and
/// recorded all the same.
async fn report(service: &Service, reports: Vec<CallReport>) -> bool {
    let envelope = CommandEnvelope {
        id: CommandId::new_now(),
        actor: service.actor(),
        trace: TraceContext::default(),
        command: Command::ReportCalls { reports, has_others: false },
    };
    loop {
        match service.ledger.send(&envelope).await.map(|answer| answer.result) {
            Ok(Ok(_)) => return true,
            Ok(Err(refusal)) => {
                tracing::error!("the ledger does not take what calls came to: {refusal}");
                return false;
            }
            Err(error) if !error.is_retryable() => {
                tracing::error!(%error, "what calls came to cannot be reported");
                return false;
            }
            Err(error) => tracing::warn!(%error, "reporting what calls came to again"),
        }
    }
}
