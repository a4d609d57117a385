//! Claims calls: those that arrive while earlier claims are answered are claimed together.

use super::{
    calls::{self, Making},
    claim::Claim,
    takers::acknowledge,
};
use muster_bus::{LedgerClient, WorkQueue};
use muster_schemas::{
    command::{Command, Reply},
    event::TraceContext,
};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// The most calls that are claimed together.
const AT_A_TIME: usize = 256;

/// After this time without an answer the queue delivers the items again anyway.
const ANSWER_WITHIN: Duration = WorkQueue::FILTERS.redeliver_after;

/// Claims calls and starts those that it could claim.
pub(super) async fn run(making: Making, mut claims: mpsc::Receiver<Claim>) {
    let ledger = making.service.ledger.clone().with_patience(ANSWER_WITHIN);
    let mut batch = Vec::new();
    while claims.recv_many(&mut batch, AT_A_TIME).await > 0 {
        // Drop a call that came twice in quick succession.
        batch.retain(|claim| making.service.calls.take(claim.order.call));
        if !batch.is_empty() {
            claim(&making, &ledger, std::mem::take(&mut batch)).await;
        }
    }
}

async fn claim(making: &Making, ledger: &LedgerClient, batch: Vec<Claim>) {
    let service = &making.service;
    let command =
        Command::ClaimCalls { calls: batch.iter().map(|claim| (claim.order.call, claim.order.attempt)).collect() };
    let asked = Instant::now();
    let answer = ledger.command(service.actor(), TraceContext::default(), command).await;
    let claimed = match answer.map(|answer| answer.result) {
        Ok(Ok(Reply::Claimed(claimed))) => claimed,
        Ok(Ok(_)) => Vec::new(),
        Ok(Err(refusal)) => {
            tracing::warn!("the ledger does not let this runner make calls: {refusal}");
            Vec::new()
        }
        Err(error) => {
            tracing::warn!(%error, calls = batch.len(), "calls could not be claimed; they come again");
            Vec::new()
        }
    };
    for (at, Claim { item, order, room }) in batch.into_iter().enumerate() {
        match claimed.get(at) {
            Some(true) => {
                let trace = item.message.trace;
                tokio::spawn(acknowledge(item));
                calls::begin(making, order, room, asked, trace);
            }
            // Another runner has it, or it has ended.
            Some(false) => {
                service.calls.drop_call(order.call);
                tokio::spawn(acknowledge(item));
            }
            None => service.calls.drop_call(order.call),
        }
    }
}
