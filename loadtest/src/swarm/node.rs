//! A node without processes: it greets, reports, obeys launches, and says that their processes have ended after a time.

use super::moments::Moments;
use anyhow::{Context as _, Result, anyhow};
use muster_bus::{LedgerClient, SharedBus};
use muster_schemas::{
    JobId, PartId, RunId, Timestamp,
    command::{Command, Reply},
    event::{Actor, EndCause, NodeExit, TraceContext},
    job::ExitStatus,
    node::{Heartbeat, Mark, NodeOrder, OrderEnvelope},
    subjects,
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// What a node is.
pub(super) struct Node {
    pub(super) name: String,
    pub(super) client: LedgerClient,
    pub(super) bus: SharedBus,
    /// From one sign of life to the next.
    pub(super) interval: Duration,
    /// Until the first: nodes do not all report at the same moment.
    pub(super) first: Duration,
    /// How long each part runs.
    pub(super) runs_for: Duration,
    pub(super) moments: Arc<Moments>,
    /// The number of answered signs of life of all nodes.
    pub(super) heartbeats: Arc<AtomicU64>,
    /// From then on it says nothing.
    pub(super) silence: CancellationToken,
}

/// What a node knows of its parts.
#[derive(Default)]
struct Parts {
    /// Those that run, or whose end the ledger does not know yet.
    jobs: BTreeMap<PartId, JobId>,
    /// When those that run will have ended, the first one first: all run equally long.
    ends: VecDeque<(Instant, PartId)>,
    highest_run: Option<RunId>,
    as_of: Option<Mark>,
}

impl Node {
    /// Lives until it is stopped. `greeted` is dropped when the ledger has greeted it.
    pub(super) async fn run(self, greeted: tokio::sync::mpsc::Sender<()>) -> Result<()> {
        let mut orders = self.bus.subscribe(&subjects::node_orders(&self.name)).await?;
        let mut parts = Parts::default();
        let hello =
            Command::NodeHello { boot_id: "boot".to_owned(), parts: Vec::new(), highest_run: None, as_of: None };
        self.ask(hello).await?;
        drop(greeted);
        let mut clock = tokio::time::interval_at(Instant::now() + self.first, self.interval);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.silence.cancelled() => return std::future::pending().await,
                order = orders.next() => {
                    let order = order.context("the bus is closed")?.message.decode::<OrderEnvelope>()?.order;
                    self.obey(&mut parts, order).await?;
                }
                part = next_end(&mut parts.ends) => self.end(&mut parts, part).await?,
                _ = clock.tick() => self.report(&mut parts).await?,
            }
        }
    }

    async fn ask(&self, command: Command) -> Result<Reply> {
        let actor = Actor::Executor(self.name.clone());
        let answer = self.client.command(actor, TraceContext::default(), command).await?;
        answer.result.map_err(|refusal| anyhow!("{}: refused: {refusal}", self.name))
    }

    async fn obey(&self, parts: &mut Parts, order: NodeOrder) -> Result<()> {
        // The script, the environment and so on of a launch may be named by their hashes; nothing here needs them.
        let order = if let NodeOrder::ByHash(short) = order { short.order } else { order };
        match order {
            NodeOrder::Forget { part } => {
                parts.jobs.remove(&part);
                Ok(())
            }
            NodeOrder::Stop { part, .. } => self.end(parts, part).await,
            order => match order.launch() {
                Some(launch) if !parts.jobs.contains_key(&launch.part) => {
                    let (part, job) = (launch.part, launch.job);
                    self.moments.ordered(job);
                    parts.jobs.insert(part, job);
                    parts.highest_run = parts.highest_run.max(Some(part.run()));
                    self.ask(Command::NodeStarted { part }).await?;
                    parts.ends.push_back((Instant::now() + self.runs_for, part));
                    Ok(())
                }
                _ => Ok(()),
            },
        }
    }

    /// Reports the end of a part. The ledger's answer is the record of it.
    async fn end(&self, parts: &mut Parts, part: PartId) -> Result<()> {
        let Some(job) = parts.jobs.get(&part).copied() else { return Ok(()) };
        let now = Timestamp::now();
        let exit = NodeExit {
            status: Some(ExitStatus::Code(0)),
            cause: EndCause::Itself,
            usage: Default::default(),
            started: Some(now),
            ended: now,
        };
        self.ask(Command::NodeEnded { part, exit }).await?;
        self.moments.is_over(job);
        Ok(())
    }

    async fn report(&self, parts: &mut Parts) -> Result<()> {
        let heartbeat = Heartbeat {
            node: self.name.clone(),
            boot_id: "boot".to_owned(),
            parts: parts.jobs.keys().copied().collect(),
            highest_run: parts.highest_run,
            as_of: parts.as_of,
        };
        // A sign of life without an answer is followed by the next one.
        let Ok(briefing) = self.client.heartbeat(&heartbeat).await else { return Ok(()) };
        self.heartbeats.fetch_add(1, Ordering::Relaxed);
        parts.as_of = briefing.mark.or(parts.as_of);
        for order in briefing.orders {
            self.obey(parts, order).await?;
        }
        Ok(())
    }
}

/// The next part whose processes have ended, at that time. Nothing is taken if it is dropped before.
async fn next_end(ends: &mut VecDeque<(Instant, PartId)>) -> PartId {
    let Some((at, part)) = ends.front().copied() else { return std::future::pending().await };
    tokio::time::sleep_until(at).await;
    ends.pop_front();
    part
}
