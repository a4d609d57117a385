//! The work of the decide loop, and where its answers go.

use crate::log::Hash;
use muster_schemas::{
    command::{Answer, Command, CommandEnvelope, Refusal, RefusalCode},
    event::{Actor, TraceContext},
    filter_order::{RunnerBriefing, RunnerHeartbeat},
    ids::{CommandId, Sequence},
};

/// Where an answer goes. It must not block.
pub(crate) type ReplyTo<T> = Box<dyn FnOnce(T) + Send>;

/// The work of the loop.
pub(crate) enum Work {
    /// Decide a command. The actor was checked against the subject that it came on.
    Command(Box<CommandEnvelope>, ReplyTo<Answer>),
    /// Nodes have reported: see [`crate::beats::Beats`].
    Beats,
    /// A filter-runner is alive.
    RunnerBeat(RunnerHeartbeat, ReplyTo<RunnerBriefing>),
    /// Report the digest of the state in memory, and the last record in that state.
    Digest(ReplyTo<(Sequence, Hash)>),
    /// Sign the state and end.
    Stop,
}

/// A command that the ledger gives itself.
pub(crate) fn own(command: Command) -> CommandEnvelope {
    CommandEnvelope { id: CommandId::new_now(), actor: Actor::Ledger, trace: TraceContext::default(), command }
}

/// An answer that refuses.
pub(crate) fn refusal(sequence: Sequence, code: RefusalCode, message: impl Into<String>) -> Answer {
    Answer { sequence, result: Err(Refusal::new(code, message)) }
}
