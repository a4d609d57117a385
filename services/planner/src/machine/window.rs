//! Windows of time in which something is held on the machine.

use crate::{model::Demand, timeline::ALWAYS};
use muster_schemas::{Timestamp, resources::Placement};

/// The time of a holding: `[from, until)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub from: Timestamp,
    pub until: Timestamp,
}

impl Window {
    /// A window of this many seconds from a moment on; endless without a number.
    pub fn of(from: Timestamp, walltime_seconds: Option<u64>) -> Self {
        let until = walltime_seconds.map_or(Timestamp::MAX, |seconds| {
            from.plus_seconds(i64::try_from(seconds).unwrap_or(i64::MAX)).min(Timestamp::MAX)
        });
        Self { from, until }
    }

    pub fn overlaps(self, from: Timestamp, until: Timestamp) -> bool {
        self.from < until && from < self.until
    }
}

/// A holding on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holding {
    /// A run: it already holds its cores, until then.
    Run {
        /// Its assumed end; each component can have its own.
        until: Timestamp,
    },
    /// A promise from then on. It holds no particular core yet.
    Promise {
        /// Its beginning; it ends when the walltimes of all components are over.
        start: Timestamp,
    },
}

impl Holding {
    /// The window of the holding: all components count until the last one is over.
    pub fn window(self, demand: &Demand, placement: &Placement) -> Window {
        match self {
            Self::Run { until } => Window { from: ALWAYS, until },
            Self::Promise { start } => Window { from: start, until: expected_end(demand, placement, start) },
        }
    }
}

/// When the last component of a job that starts now is over, by its walltimes.
pub(crate) fn expected_end(demand: &Demand, placement: &Placement, start: Timestamp) -> Timestamp {
    let components = demand.components.iter().zip(&placement.components);
    let ends = components.map(|(component, placed)| {
        let alternative = component.alternatives.get(placed.alternative as usize);
        Window::of(start, alternative.and_then(|known| known.walltime_seconds)).until
    });
    ends.max().unwrap_or(start)
}
