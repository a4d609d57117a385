//! Names for the numbers in records, for their public form.

use muster_domain::State;
use muster_schemas::{
    event::{Event, Record, uuid_bytes::UuidBytes},
    ids::{NodeId, Sequence},
    public,
};
use std::collections::HashMap;

/// Names as of some point of the log, for the records that follow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    cluster: String,
    log: [u8; 16],
    /// Includes removed nodes: later records can still name them.
    nodes: HashMap<NodeId, String>,
}

impl Names {
    /// The names in a state.
    pub(crate) fn of(state: &State) -> Self {
        Self {
            cluster: state.settings().name.clone(),
            log: state.cluster().map_or([0; 16], |cluster| cluster.cluster_id),
            nodes: state.known_nodes().map(|(node, name)| (node, name.to_owned())).collect(),
        }
    }

    /// Takes in what a record says, before its public form is made; whether records of its kind say anything of names.
    pub(crate) fn learn(&mut self, record: &Record) -> bool {
        match &record.event {
            Event::ClusterInitialised { cluster_id, .. } => self.log = cluster_id.0,
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

    fn log_id(&self) -> UuidBytes {
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
