//! What the tasks of a service share.

use super::lanes::Lanes;
use crate::{Descriptions, Runner, SurplusAnswer};
use muster_bus::LedgerClient;
use muster_schemas::{
    command::{CallOutcome, CallReport},
    event::Actor,
    filter::{CallId, FilterExit, FilterReport},
};
use muster_telemetry::metrics::{self, UpDownCounter};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, atomic::AtomicUsize},
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

static IN_HAND: LazyLock<UpDownCounter<i64>> = LazyLock::new(|| {
    metrics::up_down_counter(
        "muster_filter_calls_outstanding",
        "Calls that this runner has claimed and not reported yet.",
    )
});

/// How long the ledger does not give a call to a runner again that lacks its program (HPC-F-91).
const ABSENT_FOR: Duration = Duration::from_secs(10);
/// How many answered calls of persistent filters are remembered, for repeated answers.
const MOST_ANSWERED: usize = 1000;

/// What the tasks of a service share.
pub(super) struct Service {
    pub name: String,
    /// `Err` says why no program can be run.
    pub runner: Result<Runner, String>,
    pub descriptions: Arc<dyn Descriptions>,
    pub ledger: LedgerClient,
    /// The largest payload of the bus, in bytes.
    pub max_payload_bytes: usize,
    /// One permit for each program that may run at the same time.
    pub slots: Arc<Semaphore>,
    /// How many of the slots are only waiting for a call.
    pub waiting: AtomicUsize,
    pub checks: Arc<Semaphore>,
    pub lanes: Lanes,
    pub calls: Calls,
}

impl Service {
    pub(super) fn actor(&self) -> Actor {
        Actor::Runner(self.name.clone())
    }
}

/// The calls of a runner.
#[derive(Debug, Default)]
pub(super) struct Calls(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    in_hand: BTreeMap<CallId, CancellationToken>,
    /// Calls whose program is missing here, and since when.
    absent: BTreeMap<CallId, Instant>,
    /// The latest calls that persistent filters answered, with the attempt, oldest first.
    answered: VecDeque<(CallId, u32)>,
}

impl Calls {
    fn known(&self) -> MutexGuard<'_, Known> {
        // Each change is a single call on a map, so a panic leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has(&self, call: CallId) -> bool {
        self.known().in_hand.contains_key(&call)
    }

    pub(super) fn in_hand(&self) -> Vec<CallId> {
        self.known().in_hand.keys().copied().collect()
    }

    /// Takes a call in hand; returns whether it is new.
    pub(super) fn take(&self, call: CallId) -> bool {
        let is_new = self.known().in_hand.insert(call, CancellationToken::new()).is_none();
        if is_new {
            IN_HAND.add(1, &[]);
        }
        is_new
    }

    /// Releases a call.
    pub(super) fn drop_call(&self, call: CallId) {
        if self.known().in_hand.remove(&call).is_some() {
            IN_HAND.add(-1, &[]);
        }
    }

    /// Ends calls in progress.
    pub(super) fn end(&self, calls: &[CallId]) {
        let known = self.known();
        calls.iter().filter_map(|call| known.in_hand.get(call)).for_each(CancellationToken::cancel);
    }

    pub(super) fn ending(&self, call: CallId) -> CancellationToken {
        self.known().in_hand.get(&call).cloned().unwrap_or_default()
    }

    /// Whether the program of a call was recently found missing here.
    pub(super) fn is_absent(&self, call: CallId) -> bool {
        let mut known = self.known();
        known.absent.retain(|_, since| since.elapsed() < ABSENT_FOR);
        known.absent.contains_key(&call)
    }

    pub(super) fn note_answered(&self, call: CallId, attempt: u32) {
        let mut known = self.known();
        known.answered.push_back((call, attempt));
        if known.answered.len() > MOST_ANSWERED {
            known.answered.pop_front();
        }
    }

    /// The report on a repeated answer, if its call was made here and its first answer has been reported.
    pub(super) fn late(&self, surplus: &SurplusAnswer) -> Option<CallReport> {
        let known = self.known();
        let (call, attempt) = *known.answered.iter().rev().find(|(call, _)| call.to_string() == surplus.id)?;
        let report = FilterReport { exit: FilterExit::Code(surplus.code), ..FilterReport::runner_lost() };
        let outcome = CallOutcome::Called(Box::new(report));
        (!known.in_hand.contains_key(&call)).then_some(CallReport { call, attempt, outcome })
    }

    pub(super) fn note_absent(&self, call: CallId) {
        self.known().absent.insert(call, Instant::now());
    }
}
