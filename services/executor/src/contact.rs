//! Contact with the ledger: greetings and heartbeats, whose answers are orders.

use crate::{Config, reign::Reign};
use futures::{FutureExt as _, future::BoxFuture};
use muster_bus::{BusError, LedgerClient};
use muster_schemas::{
    PartId, RunId,
    command::{Answer, Command, Reply},
    event::{Actor, TraceContext},
    node::{Briefing, Heartbeat, Mark, NodeOrder},
};
use std::{sync::Arc, time::Duration};
use tokio::time::{self, Instant};

/// How soon a ledger that does not answer is asked again; doubles up to the heartbeat.
const FIRST_RETRY: Duration = Duration::from_millis(50);

/// The next event of the contact.
#[derive(Debug)]
pub enum Moment {
    /// It is time to report the parts of runs on the node.
    Speak,
    /// The ledger has answered.
    Orders(Vec<NodeOrder>),
    /// The ledger has not answered or does not accept the node; there will be a next time.
    Silence,
}

enum Talk {
    Briefing(Briefing),
    /// A ledger that no longer leads has answered.
    Deposed,
    Refused(String),
    Failed(BusError),
}

/// The contact of one node.
pub struct Contact {
    ledger: LedgerClient,
    reign: Arc<Reign>,
    node: String,
    boot_id: String,
    heartbeat: Duration,
    retry: Duration,
    /// Whether the last exchange went well; after a failure the node greets again.
    greeted: bool,
    /// Whether the loss of contact was logged.
    lost: bool,
    /// The last mark from the ledger: the next report states the node as of it.
    mark: Option<Mark>,
    talk: Option<BoxFuture<'static, Talk>>,
    due: Instant,
}

impl Contact {
    /// No contact yet; due at once.
    pub fn new(ledger: LedgerClient, reign: Arc<Reign>, config: &Config, boot_id: String) -> Self {
        let heartbeat = Duration::from_secs(config.heartbeat_seconds.into());
        Self {
            ledger,
            reign,
            node: config.node.clone(),
            boot_id,
            heartbeat,
            retry: FIRST_RETRY.min(heartbeat),
            greeted: false,
            lost: false,
            mark: None,
            talk: None,
            due: Instant::now(),
        }
    }

    /// The next event. Cancel safe.
    pub async fn next(&mut self) -> Moment {
        let Some(talk) = &mut self.talk else {
            time::sleep_until(self.due).await;
            return Moment::Speak;
        };
        let talk = talk.await;
        self.talk = None;
        self.take(talk)
    }

    fn take(&mut self, talk: Talk) -> Moment {
        let talk = match talk {
            Talk::Briefing(briefing) if !self.reign.obeys(briefing.epoch) => Talk::Deposed,
            talk => talk,
        };
        if let Talk::Briefing(Briefing { mark, orders, .. }) = talk {
            if std::mem::take(&mut self.lost) {
                tracing::info!(node = self.node, "contact with the ledger is back");
            }
            self.greeted = true;
            self.retry = FIRST_RETRY.min(self.heartbeat);
            self.due = Instant::now() + self.heartbeat;
            if mark.is_some() {
                self.mark = mark;
            }
            return Moment::Orders(orders);
        }
        let node = &self.node;
        match talk {
            Talk::Refused(message) => tracing::warn!(node, message, "the ledger does not accept this node yet"),
            Talk::Failed(error) if self.greeted => {
                tracing::warn!(node, %error, "lost contact with the ledger; runs continue");
                self.lost = true;
            }
            Talk::Failed(error) if !error.is_retryable() => tracing::warn!(node, %error, "no contact with the ledger"),
            Talk::Failed(error) => tracing::debug!(node, %error, "no contact with the ledger yet"),
            // That was said in the log already.
            Talk::Deposed => self.lost = true,
            Talk::Briefing(_) => {}
        }
        self.greeted = false;
        self.retry = (self.retry * 2).min(self.heartbeat);
        self.due = Instant::now() + self.retry;
        Moment::Silence
    }

    /// Tells the ledger which parts of runs are here, and the highest run that the node remembers.
    pub fn speak(&mut self, parts: Vec<PartId>, highest_run: Option<RunId>) {
        self.talk = Some(if self.greeted { self.beat(parts, highest_run) } else { self.greet(parts, highest_run) });
    }

    fn greet(&self, parts: Vec<PartId>, highest_run: Option<RunId>) -> BoxFuture<'static, Talk> {
        let (ledger, actor) = (self.ledger.clone(), Actor::Executor(self.node.clone()));
        let command = Command::NodeHello { boot_id: self.boot_id.clone(), parts, highest_run, as_of: self.mark };
        async move {
            match ledger.command(actor, TraceContext::default(), command).await {
                Ok(Answer { result: Ok(Reply::NodeOrders(briefing)), .. }) => Talk::Briefing(briefing),
                Ok(Answer { result: Ok(_), .. }) => Talk::Briefing(Briefing::default()),
                Ok(Answer { result: Err(refusal), .. }) => Talk::Refused(refusal.message),
                Err(error) => Talk::Failed(error),
            }
        }
        .boxed()
    }

    fn beat(&self, parts: Vec<PartId>, highest_run: Option<RunId>) -> BoxFuture<'static, Talk> {
        let heartbeat =
            Heartbeat { node: self.node.clone(), boot_id: self.boot_id.clone(), parts, highest_run, as_of: self.mark };
        let ledger = self.ledger.clone();
        async move { ledger.heartbeat(&heartbeat).await.map_or_else(Talk::Failed, Talk::Briefing) }.boxed()
    }
}
