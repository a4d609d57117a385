//! What really happened in the world, compared with what the system says.

use super::{
    chains::Chains,
    components::Components,
    effects::Effects,
    ledger::{Round, StoredRecord},
    mechanisms::Counts,
    node::Key,
    tasks::Tasks,
};
use muster_domain::{State, invariants};
use muster_schemas::{
    CommandId, JobId, PartId, RunId, Sequence,
    command::{Answer, Reply},
    event::Event,
    filter::{CallId, FilterExit},
    job::Outcome,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct Truth {
    /// The state after folding the durable log separately.
    replayed: State,
    last_hash: [u8; 32],
    /// Answers that reached their senders.
    answers: BTreeMap<CommandId, Answer>,
    acknowledged: BTreeSet<JobId>,
    submitted: BTreeSet<JobId>,
    /// The highest sequence that any answer has promised to be durable.
    promised: Sequence,
    /// Parts of runs and of steps whose processes were started, and on which node.
    started: BTreeMap<(Key, usize), u32>,
    /// Runs of tasks that nodes have held resources for.
    held: BTreeSet<RunId>,
    /// The chains of filters in the log.
    chains: Chains,
    /// The effects of filters.
    effects: Effects,
    /// The tasks in the log.
    tasks: Tasks,
    /// The jobs with several components in the log.
    components: Components,
    /// Counts of domains, quotas, runs that make way, and nodes that sleep or vanish.
    mechanisms: Counts,
    /// A promise that was broken on a node.
    broken: Option<String>,
}

impl Truth {
    pub(super) fn state(&self) -> &State {
        &self.replayed
    }

    pub(super) fn chains(&self) -> &Chains {
        &self.chains
    }

    pub(super) fn acknowledged_jobs(&self) -> u64 {
        self.acknowledged.len() as u64
    }

    pub(super) fn starts(&self) -> u64 {
        self.started.len() as u64
    }

    pub(super) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    pub(super) fn components(&self) -> &Components {
        &self.components
    }

    pub(super) fn mechanisms(&self) -> &Counts {
        &self.mechanisms
    }

    pub(super) fn started(&mut self, part: Key, node: usize) {
        let name = super::node::name(node);
        let known = self.replayed.node_by_name(&name);
        if known.is_some_and(|node| self.components.is_over(part.0, node.id)) {
            self.broken = Some(format!("a component of run {} that ended alone is started on {name}", part.0));
        }
        *self.started.entry((part, node)).or_default() += 1;
    }

    pub(super) fn held(&mut self, part: PartId) {
        self.held.insert(part.run());
    }

    /// A filter ended.
    pub(super) fn called(&mut self, call: CallId, exit: FilterExit) {
        self.effects.made(call, exit);
    }

    /// A command was answered, perhaps not for the first time.
    pub(super) fn acknowledged(&mut self, id: CommandId, answer: &Answer) -> Result<(), String> {
        self.promised = self.promised.max(answer.sequence);
        if let Ok(Reply::Submitted(jobs)) = &answer.result {
            self.acknowledged.extend(jobs);
            if let Some(earlier) = self.answers.insert(id, answer.clone())
                && earlier != *answer
            {
                return Err(format!("a retry of {id} got another answer: {answer:?}, at first {earlier:?}"));
            }
        }
        Ok(())
    }

    /// The ledger has written a round.
    pub(super) fn round(&mut self, round: &Round) -> Result<(), String> {
        if round.torn {
            // The part of it that survived shows when the ledger is back.
            return Ok(());
        }
        self.replay(&round.written)?;
        if let Some(digest) = round.state_digest
            && digest != self.replayed.digest()
        {
            return Err(format!("replaying {} records does not give the ledger's state", self.replayed.sequence()));
        }
        Ok(())
    }

    /// The ledger is back, with this log.
    pub(super) fn ledger_restarted(&mut self, log: &[StoredRecord]) -> Result<(), String> {
        self.replayed = State::new();
        self.last_hash = [0; 32];
        self.submitted.clear();
        self.chains = Chains::default();
        self.tasks = Tasks::default();
        self.components = Components::default();
        self.mechanisms = Counts::default();
        self.replay(log)
    }

    fn replay(&mut self, records: &[StoredRecord]) -> Result<(), String> {
        for stored in records {
            let sequence = stored.record.sequence;
            if sequence != self.replayed.sequence().next() {
                return Err(format!("record {sequence} follows on record {}", self.replayed.sequence()));
            }
            if stored.previous_hash != self.last_hash {
                return Err(format!("the hash chain is broken at record {sequence}"));
            }
            if let Event::JobSubmitted { job, .. } = &stored.record.event
                && !self.submitted.insert(*job)
            {
                return Err(format!("job {job} was submitted twice"));
            }
            self.chains.see(&stored.record.event).map_err(|what| format!("record {sequence}: {what}"))?;
            self.tasks.see(&stored.record.event).map_err(|what| format!("record {sequence}: {what}"))?;
            self.components
                .see(&stored.record.event, &self.replayed)
                .map_err(|what| format!("record {sequence}: {what}"))?;
            self.effects.check(&stored.record.event).map_err(|what| format!("record {sequence}: {what}"))?;
            self.mechanisms.see(&stored.record, &self.replayed);
            self.last_hash = stored.hash;
            self.replayed.apply(&stored.record).map_err(|violation| violation.to_string())?;
        }
        Ok(())
    }

    /// Checks what must hold after every step.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        if let Some((((run, step), node), times)) = self.started.iter().find(|(_, times)| **times > 1) {
            return Err(format!("step {step} of run {run} was started {times} times on {}", super::node::name(*node)));
        }
        if self.promised > self.replayed.sequence() {
            let have = self.replayed.sequence();
            return Err(format!("record {} was promised to be durable, the log ends at {have}", self.promised));
        }
        if let Some(job) = self.acknowledged.difference(&self.submitted).next() {
            return Err(format!("job {job} was acknowledged and is not in the log"));
        }
        Ok(())
    }

    /// Checks what must hold when everything is done.
    pub(super) fn final_checks(&mut self, log: &[StoredRecord]) -> Result<(), String> {
        self.ledger_restarted(log)?;
        invariants::check(&self.replayed)?;
        let mut ended: BTreeMap<JobId, Outcome> = BTreeMap::new();
        let mut completed_runs = BTreeSet::new();
        for stored in log {
            match &stored.record.event {
                Event::JobFinished { job, outcome } => {
                    if let Some(earlier) = ended.insert(*job, outcome.clone()) {
                        return Err(format!("job {job} ended twice: {earlier:?}, then {outcome:?}"));
                    }
                }
                Event::JobRequeued { job, .. } => {
                    // A task that is requeued reopens its array.
                    ended.remove(job);
                    ended.remove(&job.whole());
                }
                Event::RunEnded { run, outcome: Outcome::Completed, .. } => {
                    completed_runs.insert(*run);
                }
                _ => {}
            }
        }
        if let Some(job) = self.acknowledged.iter().find(|job| !ended.contains_key(job)) {
            return Err(format!("job {job} was acknowledged and never came to an end"));
        }
        if let Some(job) = self.chains.open().next() {
            return Err(format!("a chain of job {job} never came to an end"));
        }
        if let Some(run) = completed_runs.iter().find(|run| !self.was_started(**run)) {
            return Err(format!("run {run} is said to have completed, and no node ever started it"));
        }
        Ok(())
    }

    fn was_started(&self, run: RunId) -> bool {
        self.held.contains(&run) || self.started.keys().any(|((part, _), _)| part.run() == run)
    }
}
