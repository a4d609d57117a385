//! The effects of the model filters, by invocation id, compared with the log: it has no verdict and no revert
//! that nobody made.

use muster_schemas::{
    event::Event,
    filter::{CallId, FilterExit},
};
use std::collections::BTreeMap;

/// The ends of each call: more than one if it was repeated after its runner was thought lost.
#[derive(Debug, Default)]
pub(super) struct Effects {
    made: BTreeMap<CallId, Vec<FilterExit>>,
}

impl Effects {
    /// A filter ended.
    pub(super) fn made(&mut self, call: CallId, exit: FilterExit) {
        self.made.entry(call).or_default().push(exit);
    }

    /// Checks that an event agrees with what a filter really did.
    pub(super) fn check(&self, event: &Event) -> Result<(), String> {
        let (Event::FilterVerdict { call, report }
        | Event::FilterReverted { call, report }
        | Event::FilterRevertFailed { call, report }) = event
        else {
            return Ok(());
        };
        let ends = self.made.get(call).map_or(&[][..], Vec::as_slice);
        if report.exit == FilterExit::RunnerLost || ends.contains(&report.exit) {
            return Ok(());
        }
        Err(format!("call {call} is said to have come to {:?}, and it came to {ends:?}", report.exit))
    }
}
