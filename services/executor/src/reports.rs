//! Reports to the ledger: those that are due, and those that it has.

use crate::{
    RunKey,
    launcher::About,
    site,
    spool::{End, RunFolder, Sent},
};
use muster_bus::{BusError, LedgerClient};
use muster_schemas::{
    CommandId, Timestamp,
    command::{Answer, Command, CommandEnvelope, Refusal, RefusalCode},
    event::{Actor, EndCause, NodeExit, TraceContext},
    unfit::UnfitCause,
};
use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::task::JoinSet;

/// The number of reports on their way at a time; the ledger commits them together.
const MAX_TRAVELLING: usize = 512;
/// A result without an answer for this long is synced to the disk: the ledger may be away for long.
const PATIENCE: Duration = Duration::from_secs(2);
/// The pause before a permanent failure is retried all the same.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// A report about a run or step.
#[derive(Clone, Debug)]
pub enum Report {
    /// Its processes have been started; the time is when this executor first knew of it.
    Started(Timestamp),
    /// It has ended.
    Ended(End),
}

/// The outcome of a report.
#[derive(Debug)]
pub struct Told {
    /// The run or step.
    pub key: RunKey,
    /// Whether this was the report of its end.
    pub was_end: bool,
    /// Whether it is settled: the ledger knows, or does not want to know. Otherwise the report must be repeated.
    pub settled: bool,
}

/// Reports on their way to the ledger.
#[derive(Debug)]
pub struct Reports {
    ledger: LedgerClient,
    node: String,
    spool: PathBuf,
    waiting: VecDeque<(RunKey, Option<About>, Report)>,
    travelling: JoinSet<Told>,
}

impl Reports {
    /// No reports yet.
    pub fn new(ledger: LedgerClient, node: String, spool: PathBuf) -> Self {
        let ledger = ledger.with_patience(PATIENCE);
        Self { ledger, node, spool, waiting: VecDeque::new(), travelling: JoinSet::new() }
    }

    /// Sends it as soon as there is room.
    pub fn tell(&mut self, key: RunKey, about: Option<About>, report: Report) {
        self.waiting.push_back((key, about, report));
        self.depart();
    }

    /// The next report that was sent or failed. Waits for ever while none is on its way. Cancel safe.
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
            let unfit = site::unfit(&self.spool).or_else(|| spool_fault(&report)).filter(|_| was_end && !key.is_step());
            let (node, spool) = (self.node.clone(), self.spool.clone());
            self.travelling.spawn(async move {
                if was_end && !key.is_step() {
                    let folder = RunFolder::of(&spool, key);
                    tell_signals(&ledger, &node, &folder, key).await;
                    folder.forget_signals();
                }
                let is_told = match unfit {
                    Some(why) => tell_unfit(&ledger, &node, &spool, &why).await,
                    None => true,
                };
                // Else the job could come back to the node at once.
                let settled = is_told && is_settled(key, about, ledger.send(&envelope).await);
                if !settled {
                    tokio::time::sleep(PAUSE_AFTER_FAILURE.min(PATIENCE)).await;
                }
                Told { key, was_end, settled }
            });
        }
    }

    /// The id is derived from the report: repeated, even after a restart, it is the same command. If the run only holds
    /// resources, or never came, the id includes the time, because it can come to this node again and is then reported
    /// once more; the ledger takes a report twice.
    fn envelope(&self, key: RunKey, about: Option<About>, report: &Report) -> CommandEnvelope {
        let (kind, time, command): (&[u8], _, _) = match report {
            Report::Started(since) => (b"node started", *since, Command::NodeStarted { part: key.part }),
            Report::Ended(End { exit, statuses }) if key.is_step() => {
                let (part, step, exit) = (key.part, key.step, exit.clone());
                let ended = exit.ended;
                let command = Command::NodeStepEnded { part, step, exit, statuses: statuses.clone() };
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

/// Why the node is unfit, if a run ended because its spool cannot be written: that cannot be noted there either.
fn spool_fault(report: &Report) -> Option<String> {
    match report {
        Report::Ended(End { exit: NodeExit { cause: EndCause::Lost(why), .. }, .. })
            if UnfitCause::of_reason(why) == Some(UnfitCause::Spool) =>
        {
            Some(why.clone())
        }
        _ => None,
    }
}

/// Has the node drained. Returns whether the ledger knows.
async fn tell_unfit(ledger: &LedgerClient, node: &str, spool: &Path, why: &str) -> bool {
    match drain(ledger, node, why).await {
        Ok(()) => {
            site::forget_unfit(spool);
            true
        }
        Err(error) => {
            tracing::warn!(node, why, error, "the ledger does not take the node out of service");
            false
        }
    }
}

/// Asks for a node to be drained, unless it is.
///
/// # Errors
/// The ledger does not do it now, for people.
pub async fn drain(ledger: &LedgerClient, node: &str, why: &str) -> Result<(), String> {
    let envelope = CommandEnvelope {
        id: CommandId::new_now(),
        actor: Actor::Executor(node.to_owned()),
        trace: TraceContext::default(),
        command: Command::DrainNodes { nodes: vec![node.to_owned()], reason: why.to_owned(), is_down: false },
    };
    match ledger.send(&envelope).await.map(|answer| answer.result) {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(refusal)) => Err(refusal.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Has a run continue that should not have been suspended. Returns once the ledger knows, or does not want to know.
pub async fn tell_unwanted_suspension(ledger: LedgerClient, node: String, folder: RunFolder, key: RunKey, why: String) {
    let envelope = CommandEnvelope {
        id: CommandId::new_now(),
        actor: Actor::Executor(node),
        trace: TraceContext::default(),
        command: Command::SuspensionUnwanted { part: key.part, why },
    };
    while !is_settled(key, None, ledger.send(&envelope).await) {
        tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
    }
    folder.forget_unwanted_suspension();
}

/// How often to tell the ledger of a signal. A ledger of an earlier version does not know such reports, and the end of the run,
/// which follows, matters more.
const SIGNAL_TRIES: usize = 3;

/// Tells the ledger of the signals that were sent to the processes of a run and that it does not know yet (OAR-S-30).
pub async fn tell_signals(ledger: &LedgerClient, node: &str, folder: &RunFolder, key: RunKey) {
    let mut next = 0;
    // More can be sent meanwhile.
    while let Some((number, sent)) = folder.untold_signals(key).into_iter().find(|(number, _)| *number >= next) {
        if !tell_signal(ledger, node, key, number, sent).await {
            return;
        }
        next = number + 1;
        folder.note_told_signals(key, next);
    }
}

/// Returns whether the ledger knows, or does not want to know.
async fn tell_signal(ledger: &LedgerClient, node: &str, key: RunKey, number: usize, sent: Sent) -> bool {
    let Sent { signal, was_due, processes } = sent;
    let parts: [&[u8]; 4] = [b"node signalled", node.as_bytes(), &key.to_bytes(), &number.to_le_bytes()];
    let envelope = CommandEnvelope {
        id: CommandId::derived(&parts),
        actor: Actor::Executor(node.to_owned()),
        trace: TraceContext::default(),
        command: Command::NodeSignalled { part: key.part, signal, was_due, processes },
    };
    for tries in 0..SIGNAL_TRIES {
        if tries > 0 {
            tokio::time::sleep(PATIENCE).await;
        }
        if is_settled(key, None, ledger.send(&envelope).await) {
            return true;
        }
    }
    false
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
