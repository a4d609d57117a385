//! Reports results of calls: those that come while earlier reports are answered go together.

use super::Service;
use muster_schemas::{
    CommandId, codec,
    command::{CallOutcome, CallReport, Command, CommandEnvelope},
    event::TraceContext,
    filter::{CallId, FileAfter},
};
use std::sync::Arc;
use tokio::sync::mpsc;

/// The most reports that are sent together.
const AT_A_TIME: usize = 256;
/// Room for the envelope of the reports.
const OVERHEAD_BYTES: usize = 16 << 10;

/// Sends reports until every sender is gone.
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

/// Groups reports so that each group fits into one message.
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

/// The report and its size. If it is too large for the bus, the large part is replaced by a text that says so.
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

/// Sends reports together or, if that is refused, each separately, so that a bad one does not spoil the others.
async fn report_all(service: &Service, reports: Vec<CallReport>) {
    let single = if reports.len() > 1 { reports.clone() } else { Vec::new() };
    if report(service, reports).await {
        return;
    }
    for one in single {
        report(service, vec![one]).await;
    }
}

/// Tells the ledger until it answers; returns whether it took the reports. After a long outage they are late, but still
/// recorded.
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
