//! Pauses: executors, whose processes keep running, and the ledger stop for a while and then continue as if nothing had
//! happened. Executors that consider the connection lost send a new greeting, and greetings arrive late or twice.
//! Whatever happens, nothing that runs on a node may be called lost there.

use super::{
    Happening, SECOND, World,
    ledger::StoredRecord,
    network::{Parcel, Party},
    node,
};
use muster_schemas::{
    NodeId, RunId, Timestamp,
    event::{EndCause, Event},
    job::Outcome,
};
use rand::Rng;

/// The ledger's messages about parts that it considers lost although their node reports.
const FORGOTTEN: [&str; 2] = ["no longer knows it", "it was booted again"];

impl World {
    /// Pauses an executor; processes on its node keep running.
    pub(super) fn pause_executor(&mut self, node: usize, micros: i64) {
        if self.nodes[node].is_up() && !self.paused.contains_key(&node) {
            self.paused.insert(node, Vec::new());
            self.report.pauses += 1;
            self.agenda.after(micros, Happening::ExecutorGoesOn(node));
        }
    }

    /// Resumes it, with everything that arrived or became due in the meantime.
    pub(super) fn executor_goes_on(&mut self, node: usize) {
        for waiting in self.paused.remove(&node).into_iter().flatten() {
            self.agenda.after(1, waiting);
        }
        self.greets_again(node);
    }

    /// Stops it while it is paused: only what concerns the processes of its node remains.
    pub(super) fn drop_waiting(&mut self, node: usize) {
        for waiting in self.paused.remove(&node).into_iter().flatten() {
            if matches!(waiting, Happening::PartEnds { .. }) {
                self.agenda.after(1, waiting);
            }
        }
    }

    /// Pauses the ledger; messages to it wait.
    pub(super) fn pause_ledger(&mut self, micros: i64) {
        self.report.pauses += 1;
        self.ledger_goes_on = self.agenda.now + micros;
    }

    /// The happening, unless its party is paused: then it happens later.
    pub(super) fn unless_paused(&mut self, happening: Happening) -> Option<Happening> {
        if matches!(happening, Happening::LedgerRound | Happening::LedgerWakes) && self.agenda.now < self.ledger_goes_on
        {
            // A wake-up during the pause comes late.
            self.agenda.after(self.ledger_goes_on - self.agenda.now, Happening::LedgerRound);
            return None;
        }
        let node = executor_of(&happening);
        match node.and_then(|node| self.paused.get_mut(&node)) {
            Some(waiting) => {
                waiting.push(happening);
                None
            }
            None => Some(happening),
        }
    }

    /// An executor considers the connection lost: it greets again, with what it knows now.
    pub(super) fn greets_again(&mut self, node: usize) {
        if self.nodes[node].is_up() {
            let greeting = self.nodes[node].greets(Timestamp(self.agenda.now));
            self.node_asks(node, vec![greeting]);
        }
    }

    /// Pauses something, or lets an executor greet again.
    pub(super) fn stand_still(&mut self) {
        let node = self.random.random_range(0..self.nodes.len());
        let micros = self.random.random_range(SECOND / 10..12 * SECOND);
        match self.random.random_range(0..4) {
            0 => self.pause_ledger(micros),
            1 => self.greets_again(node),
            _ => self.pause_executor(node, micros),
        }
    }

    /// Checks that nothing that runs on a node is called lost there, whatever the node's lists seem to say.
    pub(super) fn check_losses(&self, written: &[StoredRecord]) -> Result<(), String> {
        for stored in written {
            let lost = match &stored.record.event {
                Event::RunPartEnded { run, node, exit, .. } => match &exit.cause {
                    EndCause::Lost(why) => Some((*run, self.number_of(*node), why)),
                    _ => None,
                },
                Event::RunEnded { run, last: None, outcome: Outcome::NodeLost(why), .. } => {
                    Some((*run, why.split(':').next().and_then(node::number), why))
                }
                _ => None,
            };
            if let Some((run, Some(node), why)) = lost {
                self.check_loss(run, node, why).map_err(|what| format!("record {}: {what}", stored.record.sequence))?;
            }
        }
        Ok(())
    }

    fn check_loss(&self, run: RunId, node: usize, why: &str) -> Result<(), String> {
        let is_forgotten = FORGOTTEN.iter().any(|words| why.ends_with(words));
        if is_forgotten && self.nodes[node].runs(run) {
            return Err(format!("run {run} runs on {} and is said to be lost there: {why}", node::name(node)));
        }
        Ok(())
    }

    fn number_of(&self, node: NodeId) -> Option<usize> {
        self.truth.state().node(node).and_then(|node| node::number(&node.spec.name))
    }
}

/// The node whose executor must be running for this to happen.
fn executor_of(happening: &Happening) -> Option<usize> {
    match happening {
        Happening::Arrives(
            Parcel::Orders { node, .. } | Parcel::Pulled { node, .. } | Parcel::Briefed { node, .. },
        )
        | Happening::Heartbeat(node)
        | Happening::PartEnds { node, .. }
        | Happening::Arrives(Parcel::Answer { to: Party::Node(node), .. })
        | Happening::AskAgain(Party::Node(node), _) => Some(*node),
        _ => None,
    }
}
