//! Names for the numbers in records, for their public form.

use muster_domain::State;
use muster_schemas::{
    event::{Event, Record, uuid_bytes::UuidBytes},
    ids::{NodeId, Sequence},
    public::{self, Names as _},
};
use std::collections::HashMap;

/// Names as of some point of the log, for the records that follow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    cluster: String,
    log: [u8; 16],
    /// Whether the log has this id since it was restored.
    is_restored: bool,
    /// Includes removed nodes: later records can still name them.
    nodes: HashMap<NodeId, String>,
}

impl Names {
    /// The names in a state.
    pub(crate) fn of(state: &State) -> Self {
        Self {
            cluster: state.settings().name.clone(),
            log: state.log_id(state.sequence()).0,
            is_restored: state.restored().is_some(),
            nodes: state.known_nodes().map(|(node, name)| (node, name.to_owned())).collect(),
        }
    }

    /// The id that the log got when it was restored; `None` if it never was.
    pub(crate) fn restored_log(&self) -> Option<[u8; 16]> {
        self.is_restored.then_some(self.log)
    }

    /// Takes in what a record says, before its public form is made; whether records of its kind say anything of names.
    pub(crate) fn learn(&mut self, record: &Record) -> bool {
        match &record.event {
            Event::ClusterInitialised { cluster_id, .. } => self.log = cluster_id.0,
            Event::LogRestored { log_id, .. } => (self.log, self.is_restored) = (log_id.0, true),
            Event::SettingsChanged { settings } => self.cluster.clone_from(&settings.name),
            Event::NodeAdded { node, spec } => drop(self.nodes.insert(*node, spec.name.clone())),
            _ => return false,
        }
        true
    }
}

impl public::Names for Names {
    fn node_name(&self, node: NodeId) -> Option<&str> {
        self.nodes.get(&node).map(String::as_str)
    }

    /// The cluster of the last record learnt, which is the one that is asked for.
    fn cluster_name(&self, _: Sequence) -> &str {
        &self.cluster
    }

    /// That of the last record learnt, likewise.
    fn log_id(&self, _: Sequence) -> UuidBytes {
        UuidBytes(self.log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::{event::Concern, testing::assert_handles};

    #[test]
    fn names_are_learnt_from_what_the_table_of_events_says() {
        let mut names = Names::of(&State::default());
        assert_handles(Concern::Names, |record| names.learn(record));
    }
}
