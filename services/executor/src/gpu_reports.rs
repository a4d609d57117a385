//! Telling the ledger which of the node's GPUs can be used: a change at once, and all of it again from time to time,
//! because the cluster may expect other GPUs by then.

use crate::gpus::Watch;
use muster_bus::LedgerClient;
use muster_schemas::{
    command::{Command, Refusal},
    event::{Actor, TraceContext},
    node::GpuReport,
};
use std::time::Duration;
use tokio::time::{self, Instant};

/// How soon a report that the ledger has not taken is repeated for the first time; each time it takes twice as long.
const RETRY: Duration = Duration::from_secs(1);
/// How often a report that it has taken is repeated.
const REPEAT: Duration = Duration::from_secs(60);
/// The same for a node without GPUs: hardly one is promised some later.
const REPEAT_WITHOUT: Duration = Duration::from_secs(600);

/// Reports for as long as it is awaited.
pub async fn tell(ledger: LedgerClient, node: String, mut watch: Watch) {
    let mut report = watch.next().await;
    log(&node, &report);
    let mut retry = RETRY;
    loop {
        let pause = if is_taken(&ledger, &node, &report).await {
            retry = RETRY;
            if report.found == 0 { REPEAT_WITHOUT } else { REPEAT }
        } else {
            let pause = retry;
            retry = (retry * 2).min(REPEAT);
            pause
        };
        let due = Instant::now() + pause;
        if let Ok(news) = time::timeout_at(due, watch.next()).await {
            log(&node, &news);
            report = news;
        }
    }
}

async fn is_taken(ledger: &LedgerClient, node: &str, report: &GpuReport) -> bool {
    let command = Command::NodeGpusChecked { report: report.clone() };
    match ledger.command(Actor::Executor(node.to_owned()), TraceContext::default(), command).await {
        Ok(answer) => {
            answer.result.map_err(|refusal: Refusal| tracing::debug!(node, %refusal, "a report on GPUs")).is_ok()
        }
        Err(error) => {
            tracing::debug!(node, %error, "a report on GPUs has not reached the ledger");
            false
        }
    }
}

fn log(node: &str, report: &GpuReport) {
    for (gpu, why) in &report.faults {
        tracing::error!(node, gpu, why, "a GPU is out of service");
    }
    if report.faults.is_empty() && report.found > 0 {
        tracing::info!(node, gpus = report.found, "all GPUs can be used");
    }
}
