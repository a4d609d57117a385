//! Rules for every chain of filters in the log: each call is judged once and in order, and when a chain fails, the
//! filters that had passed are reverted once, in reverse order, before the job's next chain begins.

use muster_schemas::{
    JobId,
    event::Event,
    filter::{CallId, ChainSpec, FilterAction, FilterExit, FilterForm, FilterKind},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The chains of a log.
#[derive(Debug, Default)]
pub(super) struct Chains {
    /// Unfinished chains, by job.
    open: BTreeMap<JobId, Chain>,
    /// Calls whose end is recorded.
    ended: BTreeSet<CallId>,
    /// The number of times that each call was handed out.
    attempts: BTreeMap<CallId, u32>,
    /// The number of finished chains.
    pub(super) completed: u64,
    /// The number of recorded reverts.
    pub(super) reverts: u64,
}

#[derive(Debug)]
struct Chain {
    spec: Arc<ChainSpec>,
    passed: Vec<u32>,
    is_rolling_back: bool,
}

impl Chains {
    /// The phases of the unfinished chains.
    pub(super) fn phases(&self) -> impl Iterator<Item = Phase> {
        self.open.values().map(|chain| Phase::of(chain.spec.kind, chain.is_rolling_back))
    }

    /// Jobs with an unfinished chain.
    pub(super) fn open(&self) -> impl Iterator<Item = JobId> {
        self.open.keys().copied()
    }

    /// Takes an event.
    pub(super) fn see(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::FilterChainStarted { job, chain } => {
                let chain = Chain { spec: Arc::clone(chain), passed: Vec::new(), is_rolling_back: false };
                match self.open.insert(*job, chain) {
                    Some(earlier) => Err(format!("a chain of job {job} begins while another is open: {earlier:?}")),
                    None => Ok(()),
                }
            }
            Event::FilterInvoked { call, attempt, .. } => self.invoked(*call, *attempt),
            Event::FilterVerdict { call, report } => self.judged(*call, &report.exit),
            Event::FilterChainPassed { job, .. } => self.chain_passed(*job),
            Event::FilterChainFailed { job, .. } => self.chain_failed(*job),
            Event::FilterReverted { call, .. }
            | Event::FilterRevertFailed { call, .. }
            | Event::FilterRevertSkipped { call, .. } => self.reverted(*call),
            Event::FilterRollbackCompleted { job, .. } => self.rolled_back(*job),
            _ => Ok(()),
        }
    }

    fn invoked(&mut self, call: CallId, attempt: u32) -> Result<(), String> {
        let last = self.attempts.insert(call, attempt).unwrap_or(0);
        if self.ended.contains(&call) {
            return Err(format!("call {call} is handed out after its end"));
        }
        if attempt <= last || attempt > 3 {
            return Err(format!("call {call} is handed out as attempt {attempt} after attempt {last}"));
        }
        Ok(())
    }

    fn judged(&mut self, call: CallId, exit: &FilterExit) -> Result<(), String> {
        if call.action != FilterAction::Filter || !self.ended.insert(call) {
            return Err(format!("a second verdict on {call}"));
        }
        let chain = self.open.get_mut(&call.job).ok_or_else(|| format!("a verdict on {call}, which is of no chain"))?;
        let is_next = chain.spec.number == call.chain && chain.passed.len() == call.position as usize;
        if !is_next || chain.is_rolling_back {
            return Err(format!("a verdict on {call} out of order: {chain:?}"));
        }
        let most = if call.kind == FilterKind::Submission { 1 } else { 0 };
        if matches!(exit, FilterExit::Code(code) if *code <= most) {
            chain.passed.push(call.position);
        }
        Ok(())
    }

    fn chain_passed(&mut self, job: JobId) -> Result<(), String> {
        let chain = self.open.remove(&job).ok_or_else(|| format!("job {job} has no chain that could pass"))?;
        self.completed += 1;
        if chain.is_rolling_back || chain.passed.len() != chain.spec.filters.len() {
            return Err(format!("the chain of job {job} is said to have passed: {chain:?}"));
        }
        Ok(())
    }

    fn chain_failed(&mut self, job: JobId) -> Result<(), String> {
        let chain = self.open.get_mut(&job).ok_or_else(|| format!("job {job} has no chain that could fail"))?;
        if std::mem::replace(&mut chain.is_rolling_back, true) {
            return Err(format!("the chain of job {job} fails a second time"));
        }
        Ok(())
    }

    fn reverted(&mut self, call: CallId) -> Result<(), String> {
        if call.action != FilterAction::Revert || !self.ended.insert(call) {
            return Err(format!("a second revert {call}"));
        }
        self.reverts += 1;
        let chain = self.open.get_mut(&call.job).ok_or_else(|| format!("revert {call} is of no chain"))?;
        let may_be_unknown = chain.passed.last() != Some(&call.position) && reverts_unknown(chain, call.position);
        if may_be_unknown {
            return Ok(());
        }
        match chain.passed.pop() {
            Some(last) if last == call.position && chain.is_rolling_back => Ok(()),
            last => Err(format!("revert {call} where {last:?} is to be taken back next: {chain:?}")),
        }
    }

    fn rolled_back(&mut self, job: JobId) -> Result<(), String> {
        let chain = self.open.remove(&job).ok_or_else(|| format!("job {job} has no chain to roll back"))?;
        self.completed += 1;
        if !chain.is_rolling_back || !chain.passed.is_empty() {
            return Err(format!("the chain of job {job} is not rolled back: {chain:?}"));
        }
        Ok(())
    }
}

/// Whether the filter that ended the chain is reverted too, because nobody knows how far it came.
fn reverts_unknown(chain: &Chain, position: u32) -> bool {
    let filter = chain.spec.filters.get(position as usize);
    filter.is_some_and(|filter| filter.spec.revert_on_unknown && filter.spec.form != FilterForm::Exec)
        && position as usize == chain.passed.len()
}

/// The phase of a chain when something stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Submission,
    Activation,
    Rollback,
}

impl Phase {
    /// The phase of a chain.
    pub(super) const fn of(kind: FilterKind, is_rolling_back: bool) -> Self {
        match (kind, is_rolling_back) {
            (_, true) => Self::Rollback,
            (FilterKind::Submission, false) => Self::Submission,
            (FilterKind::Activation | FilterKind::StageIn | FilterKind::StageOut, false) => Self::Activation,
        }
    }

    pub(super) fn of_call(call: CallId) -> Self {
        Self::of(call.kind, call.action == FilterAction::Revert)
    }
}
