//! Chains of filters, templates, and holds until a time.

use crate::state::State;
use muster_schemas::event::Record;

impl State {
    pub(super) fn filters_changed(&mut self, _record: &Record) {}
}
