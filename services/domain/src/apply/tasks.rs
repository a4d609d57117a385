//! Tasks of jobs that are lists of them, and runs that grow and shrink.

use crate::state::State;
use muster_schemas::event::Record;

impl State {
    pub(super) fn tasks_changed(&mut self, _record: &Record) {}
}
