//! Reports to the ledger: those that are due, and those that it has.

use crate::{RunKey, launcher::About, spool::End};
use muster_bus::{BusError, LedgerClient};
use muster_schemas::{
    CommandId, Timestamp,
    command::{Answer, Command, CommandEnvelope, Refusal, RefusalCode},
    event::Actor,
};
use std::{collections::VecDeque, time::Duration};
use tokio::task::JoinSet;

/// So many reports travel at a time; the ledger commits them together.
const MAX_TRAVELLING: usize = 512;
/// After so long without an answer a result is brought to the disk: the ledger may be away for long.
const PATIENCE: Duration = Duration::from_secs(2);
/// Before what has failed for good is tried again all the same.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// A report about a run or step.
#[derive(Clone, Debug)]
pub enum Report {
    /// Its processes have been started; and when this executor came to know of it.
    Started(Timestamp),
    /// It has ended.
    Ended(End),
}

/// The outcome of a report.
#[derive(Debug)]
pub struct Told {
    /// Which run or step.
    pub key: RunKey,
    /// Whether its end was told.
    pub was_end: bool,
    /// Whether it is settled: the ledger knows, or wants not to know. Else it has to be told again.
    pub settled: bool,
}

/// Reports on their way to the ledger.
#[derive(Debug)]
pub struct Reports {
    ledger: LedgerClient,
    node: String,
    waiting: VecDeque<(RunKey, Option<About>, Report)>,
    travelling: JoinSet<Told>,
}

impl Reports {
    /// None yet.
    pub fn new(ledger: LedgerClient, node: String) -> Self {
        let ledger = ledger.with_patience(PATIENCE);
        Self { ledger, node, waiting: VecDeque::new(), travelling: JoinSet::new() }
    }

    /// Tells it as soon as there is room.
    pub fn tell(&mut self, key: RunKey, about: Option<About>, report: Report) {
        self.waiting.push_back((key, about, report));
        self.depart();
    }

    /// The next that has been told, or could not be. Never comes while nothing travels. Cancel safe.
    pub async fn next(&mut self) -> Told {
        loop {
            match self.travelling.join_next().await {
                Some(Ok(told)) => {
                    self.depart();
                    return told;
                }
                Some(Err(error)) => tracing::error!(%error, "a report was dropped"),
                None => std::future::pending().await,
            }
        }
    }

    fn depart(&mut self) {
        while self.travelling.len() < MAX_TRAVELLING
            && let Some((key, about, report)) = self.waiting.pop_front()
        {
            let envelope = self.envelope(key, about, &report);
            let ledger = self.ledger.clone();
            let was_end = matches!(report, Report::Ended(_));
            self.travelling.spawn(async move {
                let settled = is_settled(key, about, ledger.send(&envelope).await);
                if !settled {
                    tokio::time::sleep(PAUSE_AFTER_FAILURE.min(PATIENCE)).await;
                }
                Told { key, was_end, settled }
            });
        }
    }

    /// The id follows from what is told: told again, also after a restart, it is the same command. Of what only holds
    /// resources, or never came, the time is in it too, because it can come to this node again and is told of once more
    /// then; the ledger takes a report twice.
    fn envelope(&self, key: RunKey, about: Option<About>, report: &Report) -> CommandEnvelope {
        let (kind, time, command): (&[u8], _, _) = match report {
            Report::Started(since) => (b"node started", *since, Command::NodeStarted { part: key.part }),
            Report::Ended(End { exit, statuses }) if key.is_step() => {
                let (part, step, exit) = (key.part, key.step, exit.clone());
                let ended = exit.ended;
                let command = match &statuses[..] {
                    [] => Command::NodeStepEnded { part, step, exit },
                    statuses => Command::NodeTasksEnded { part, step, exit, statuses: statuses.to_vec() },
                };
                (b"node step ended", ended, command)
            }
            Report::Ended(End { exit, .. }) => {
                (b"node ended", exit.ended, Command::NodeEnded { part: key.part, exit: exit.clone() })
            }
        };
        let can_come_again = about.is_none_or(|about| about.holds_only);
        let time = if can_come_again { time.0.to_le_bytes().to_vec() } else { Vec::new() };
        let parts: [&[u8]; 4] = [kind, self.node.as_bytes(), &key.to_bytes(), &time];
        CommandEnvelope {
            id: CommandId::derived(if can_come_again { &parts } else { &parts[..3] }),
            actor: Actor::Executor(self.node.clone()),
            trace: about.map(|about| about.trace).unwrap_or_default(),
            command,
        }
    }
}

fn is_settled(key: RunKey, about: Option<About>, answer: Result<Answer, BusError>) -> bool {
    let job = about.map(|about| tracing::field::display(about.job));
    match answer.map(|answer| answer.result) {
        Ok(Ok(_)) => true,
        Ok(Err(Refusal {
            code: RefusalCode::Unavailable | RefusalCode::StorageFailed | RefusalCode::PermissionDenied,
            message,
        })) => {
            tracing::warn!(job, %key, message, "the ledger does not take a report now");
            false
        }
        Ok(Err(refusal)) => {
            tracing::warn!(job, %key, %refusal, "the ledger refuses a report");
            true
        }
        Err(error) => {
            tracing::debug!(job, %key, %error, "a report has not reached the ledger");
            false
        }
    }
}
