//! The decide loop, as other threads see it.

use crate::{
    beats::Beats,
    fence::Fence,
    log::{Hash, Head},
    work::{ReplyTo, Work, refusal},
};
use muster_schemas::{
    command::{Answer, CommandEnvelope, Refusal, RefusalCode},
    filter_order::{RunnerBriefing, RunnerHeartbeat},
    ids::Sequence,
    node::{Briefing, Heartbeat},
};
use std::{
    sync::{
        Arc,
        mpsc::{self, SyncSender, TrySendError},
    },
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// The digest of a large state takes seconds.
const DIGEST_WITHIN: Duration = Duration::from_secs(60);

/// The decide loop, as other threads see it.
#[derive(Clone)]
pub(crate) struct EngineHandle {
    inbox: SyncSender<Work>,
    beats: Arc<Beats>,
    head: watch::Receiver<Head>,
    fence: Fence,
}

impl EngineHandle {
    pub(crate) fn new(inbox: SyncSender<Work>, beats: Arc<Beats>, head: watch::Receiver<Head>, fence: Fence) -> Self {
        Self { inbox, beats, head, fence }
    }

    /// The last record on disk.
    pub(crate) fn sequence(&self) -> Sequence {
        self.head.borrow().sequence
    }

    /// Why nothing can be answered now, if so: another ledger may be the one to ask.
    pub(crate) fn objection(&self) -> Option<Refusal> {
        self.fence.objection()
    }

    /// Passes a command on. If the loop cannot keep up or has ended, or another ledger may be the one to ask, the
    /// answer is "unavailable".
    pub(crate) fn command(&self, envelope: Box<CommandEnvelope>, reply: ReplyTo<Answer>) {
        if let Some(refusal) = self.fence.objection() {
            return reply(Answer { sequence: self.sequence(), result: Err(refusal) });
        }
        match self.inbox.try_send(Work::Command(envelope, reply)) {
            Ok(()) => {}
            Err(TrySendError::Full(Work::Command(_, reply))) => {
                reply(self.unavailable("more commands wait than the ledger can take in; try again"));
            }
            Err(TrySendError::Disconnected(Work::Command(_, reply))) => {
                reply(self.unavailable("the ledger is stopping"));
            }
            Err(_) => {}
        }
    }

    /// Passes on the report of a node.
    pub(crate) fn heartbeat(&self, heartbeat: Heartbeat, reply: ReplyTo<Briefing>) {
        if self.beats.arrive(heartbeat, reply, Instant::now()) {
            // A loop whose inbox is full need not be woken.
            let _ = self.inbox.try_send(Work::Beats);
        }
    }

    /// Passes on the heartbeat of a runner.
    pub(crate) fn runner_beat(&self, heartbeat: RunnerHeartbeat, reply: ReplyTo<RunnerBriefing>) {
        let _ = self.inbox.try_send(Work::RunnerBeat(heartbeat, reply));
    }

    /// The digest of the state in memory, and the last record in that state; `None` if it is not available now.
    pub(crate) fn digest(&self) -> Option<(Sequence, Hash)> {
        let (sender, digest) = mpsc::sync_channel(1);
        let tell = move |found| {
            let _ = sender.send(found);
        };
        self.inbox.try_send(Work::Digest(Box::new(tell))).ok()?;
        digest.recv_timeout(DIGEST_WITHIN).ok()
    }

    /// Lets the loop end once it has done its work.
    pub(crate) fn stop(&self) {
        let _ = self.inbox.send(Work::Stop);
    }

    fn unavailable(&self, message: &str) -> Answer {
        refusal(self.sequence(), RefusalCode::Unavailable, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::WAITING_COMMANDS;
    use muster_schemas::{
        command::Command,
        event::{Actor, TraceContext},
        ids::CommandId,
    };

    /// However many nodes report while the loop is stalled, a command finds its place, and the nodes count as heard.
    #[test]
    fn reports_of_nodes_take_no_place_of_a_command() {
        let (inbox, work) = mpsc::sync_channel(WAITING_COMMANDS);
        let beats = Arc::new(Beats::new());
        let head = watch::channel(Head::EMPTY).1;
        let engine = EngineHandle::new(inbox, Arc::clone(&beats), head, Fence::of_the_writer());
        let nodes = 3 * WAITING_COMMANDS;
        for number in 0..nodes {
            let heartbeat = Heartbeat {
                node: format!("n{number}"),
                boot_id: "boot".into(),
                parts: Vec::new(),
                highest_run: None,
                as_of: None,
            };
            engine.heartbeat(heartbeat, Box::new(drop));
        }
        let envelope = CommandEnvelope {
            id: CommandId::new_now(),
            actor: Actor::Ledger,
            trace: TraceContext::default(),
            command: Command::Tick,
        };
        engine.command(Box::new(envelope), Box::new(|answer| panic!("it was not taken: {answer:?}")));
        assert!(matches!(work.try_recv(), Ok(Work::Beats)), "the loop is woken once");
        assert!(matches!(work.try_recv(), Ok(Work::Command(..))));
        assert_eq!(beats.take_heard().len(), nodes);
    }
}
