//! Claiming calls: what has arrived while the last claims were answered is claimed together.

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

/// At most so many calls are claimed together.
const AT_A_TIME: usize = 256;

/// Without an answer within this time the items come again anyway.
const ANSWER_WITHIN: Duration = WorkQueue::FILTERS.redeliver_after;

/// Claims calls, and has those made that could be claimed.
pub(super) async fn run(making: Making, mut claims: mpsc::Receiver<Claim>) {
    let ledger = making.service.ledger.clone().with_patience(ANSWER_WITHIN);
    let mut batch = Vec::new();
    while claims.recv_many(&mut batch, AT_A_TIME).await > 0 {
        // A call that came twice within a moment.
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
            // Somebody else has it, or it is over.
            Some(false) => {
                service.calls.drop_call(order.call);
                tokio::spawn(acknowledge(item));
            }
            None => service.calls.drop_call(order.call),
        }
    }
}
