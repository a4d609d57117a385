//! The names of bus subjects and streams. They are a contract with integrations and with the permissions in `ops/nats`.

use crate::ids::{JobId, StepId};

/// JetStream stream of the log: one message for each group commit, on [`LOG_SUBJECT`].
pub const LOG_STREAM: &str = "MUSTER_LOG";
/// Subject of the log's messages.
pub const LOG_SUBJECT: &str = "muster.log";
/// The server repeats here everything that the log stream has stored, for readers that follow the log.
pub const LOG_STORED_SUBJECT: &str = "muster.log-stored";
/// A ledger that becomes the writer of the log stream announces it here, so that a still running predecessor learns of
/// it at once.
pub const LOG_CLAIMED: &str = "muster.log-claimed";
/// A ledger that answers from now on says so here, to everybody. Whoever waits for an answer asks again at once: the
/// question may have gone to a ledger that is gone. The message is the epoch of its reign, 0 if it never had others: one of
/// several that hears of a higher one than its own leads no longer.
pub const REIGN: &str = "muster.reign";
/// What each of several ledgers reports of itself: the subjects of [`ledger_report`].
pub const LEDGER_REPORTS: &str = "muster.ledgers.*";
/// Where ledgers that follow say what they have on disk, as a [`RoundKept`](crate::ledgers::RoundKept), if answers wait for
/// it.
pub const ROUNDS_KEPT: &str = "muster.rounds-kept";
/// JetStream stream in which several ledgers order what they decide. Ledgers alone may read it.
pub const ROUNDS_STREAM: &str = "MUSTER_ROUNDS";
/// Subject of its messages.
pub const ROUNDS_SUBJECT: &str = "muster.rounds";
/// JetStream stream of public lifecycle events.
pub const EVENTS_STREAM: &str = "MUSTER_EVENTS";
/// All subjects of public lifecycle events.
pub const EVENTS_SUBJECTS: &str = "muster.events.>";
/// Work queue of notifications to deliver.
pub const NOTIFY_STREAM: &str = "MUSTER_NOTIFY";
/// Subject of its items.
pub const NOTIFY_SUBJECT: &str = "muster.notify";
/// Work queue of calls of filters that start a program.
pub const FILTERS_STREAM: &str = "MUSTER_FILTERS";
/// Subject of its items.
pub const FILTERS_SUBJECT: &str = "muster.filters";
/// Work queue of calls that start none: calls of persistent filters, and the checks after the filters. They do not wait
/// behind hanging programs.
pub const CHECKS_STREAM: &str = "MUSTER_CHECKS";
/// Subject of its items.
pub const CHECKS_SUBJECT: &str = "muster.checks";
/// Commands of users, sent by a gateway, which vouches for the actor.
pub const COMMAND_USER: &str = "muster.command.user";
/// Commands of the planner.
pub const COMMAND_PLANNER: &str = "muster.command.planner";
/// Commands of notifiers.
pub const COMMAND_NOTIFIER: &str = "muster.command.notifier";
/// Questions to an external planner that is connected to the bus.
pub const PLANNER_EXTERNAL: &str = "muster.planner.external";
/// Queries of the roles that may read everything.
pub const QUERY: &str = "muster.command.query";
/// Queries for the end of the log and its cluster; the answer says nothing about jobs.
pub const HEAD: &str = "muster.command.head";
/// The prefix under which a ledger reaches the streams of the integrations' account, if there is one.
pub const INTEGRATION_API: &str = "muster.integration";
/// The prefix under which the integrations' account reaches the stream of public events, to mirror it.
pub const MIRROR_API: &str = "muster.mirror.api";
/// Where mirrored events are delivered.
pub const MIRROR_DELIVERY: &str = "muster.mirror.deliver";
/// Queries of accounting services: `muster.accounting.usage`.
pub const ACCOUNTING_USAGE: &str = "muster.accounting.usage";

/// Commands of the executor of a node.
pub fn command_node(node: &str) -> String {
    format!("muster.command.node.{}", token(node))
}

/// Commands of a filter-runner.
pub fn command_runner(runner: &str) -> String {
    format!("muster.command.runner.{}", token(runner))
}

/// Signs of life of a filter-runner: request/reply, answered with a briefing.
pub fn runner_heartbeat(runner: &str) -> String {
    format!("muster.command.runner-heartbeat.{}", token(runner))
}

/// Heartbeats of a node: request/reply, answered with a list of node orders.
pub fn heartbeat(node: &str) -> String {
    format!("muster.command.heartbeat.{}", token(node))
}

/// A node's request for contents that its orders name: request/reply.
pub fn content(node: &str) -> String {
    format!("muster.command.content.{}", token(node))
}

/// Questions of other ledgers of the same cluster to the ledger of a name: request/reply.
pub fn ledger(name: &str) -> String {
    format!("muster.command.ledger.{}", token(name))
}

/// What the ledger of a name reports of itself, as a [`LedgerReport`](crate::ledgers::LedgerReport).
pub fn ledger_report(name: &str) -> String {
    format!("muster.ledgers.{}", token(name))
}

/// Orders to a node.
pub fn node_orders(node: &str) -> String {
    format!("muster.node.{}.order", token(node))
}

/// The streams of the tasks of a step on a node: request/reply, `muster.io.JOB.STEP.TASK.VERB.NODE`. The task is a
/// rank, or `all`.
pub fn step_io(job: JobId, step: StepId, task: &str, verb: &str, node: &str) -> String {
    format!("muster.io.{}.{step}.{task}.{verb}.{}", token(&job.to_string()), token(node))
}

/// All streams of the steps on a node.
pub fn node_io(node: &str) -> String {
    format!("muster.io.*.*.*.*.{}", token(node))
}

/// Fences of parallel programs, from one of their nodes to the node that leads them: request/reply.
pub fn fence(leader: &str, from: &str) -> String {
    format!("muster.fence.{}.{}", token(leader), token(from))
}

/// All fences that a node leads.
pub fn node_fences(leader: &str) -> String {
    format!("muster.fence.{}.*", token(leader))
}

/// The public event's subject.
pub fn public_event(kind: &str, verb: &str, id: &str) -> String {
    format!("muster.events.{kind}.{verb}.{}", token(id))
}

/// A name as one token of a subject: bytes with a meaning in subjects become `%` and two hex digits.
pub fn token(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !name.is_empty() && name.bytes().all(plain) {
        return name.to_owned();
    }
    let mut token = String::with_capacity(name.len() + 8);
    for byte in name.bytes() {
        if plain(byte) { token.push(byte as char) } else { token.push_str(&format!("%{byte:02x}")) }
    }
    if token.is_empty() { "%".to_owned() } else { token }
}
