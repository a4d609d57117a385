//! The nodes of the cluster as resources of OAR: one for each core.

use muster_oar::power::{ALWAYS, NEVER, NEVER_SLEEPS, NEVER_WOKEN};
use muster_oar::resources::{
    property::{self, AVAILABLE_UPTO, BESTEFFORT, CPUSET, DEPLOY, DESKTOP_COMPUTING, DRAIN, NODE, STATE},
    state::State,
    table::Table,
    value::{Kind, Value, property_text},
};
use muster_schemas::{
    energy::PowerRule,
    resources::{IndexSet, NodeSpec, PropertyValue},
    unfit::UnfitCause,
    views::{NodeStateWord, NodeView},
};
use std::collections::{BTreeMap, BTreeSet};

/// The level of sockets.
pub const CPU: &str = "cpu";
/// The level of cores.
pub const CORE: &str = "core";
/// Another name of the level of nodes.
pub const HOST: &str = "host";
/// How the reason of a node begins that `oarnodesetting` took out of service; the word for its state follows.
pub const MARK: &str = "oarnodesetting: ";

/// The word for the system in the description of a node that it has taken out of service itself.
const BY_SYSTEM: &str = "muster";

/// A node of the cluster.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its name.
    pub name: String,
    /// The number of its first resource. The others follow.
    pub first: u32,
    /// The number of its cores.
    pub cores: u32,
    /// The cores of each of its sockets.
    pub sockets: Vec<u32>,
    /// Its properties, by their names in small letters.
    pub properties: BTreeMap<String, PropertyValue>,
}

/// A property that nodes have.
#[derive(Clone, Debug, Default)]
pub struct Property {
    /// Its name as nodes have it.
    pub name: String,
    /// The values that nodes have.
    pub values: BTreeSet<PropertyValue>,
}

/// The nodes of the cluster, and their cores as resources. Resources are numbered from 1 in the order of the nodes.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// The resources.
    pub table: Table,
    /// The nodes in their order.
    pub nodes: Vec<Known>,
    /// The properties of nodes that requests can name, by their names in small letters.
    pub properties: BTreeMap<String, Property>,
}

impl Cluster {
    /// The resources of these nodes. Properties that OAR could not name or hold are left out.
    pub fn of(views: &[NodeView]) -> Self {
        let mut cluster = Self { properties: properties(views), ..Self::default() };
        for (name, kind) in [(HOST, Kind::Text), (CPU, Kind::Integer), (CORE, Kind::Integer)] {
            let _ = cluster.table.add_property(name, kind);
        }
        let kinds: BTreeMap<String, Kind> =
            cluster.properties.iter().map(|(name, property)| (name.clone(), kind(&property.values))).collect();
        for (name, kind) in &kinds {
            if cluster.table.add_property(name, *kind).is_err() {
                cluster.properties.remove(name);
            }
        }
        let mut socket = 0;
        for view in views {
            cluster.add(view, &mut socket);
        }
        cluster
    }

    fn add(&mut self, view: &NodeView, last_socket: &mut i64) {
        let spec = &view.spec;
        let properties: BTreeMap<String, PropertyValue> =
            spec.properties.iter().map(|(name, value)| (name.to_lowercase(), value.clone())).collect();
        let (state, upto) = state(view);
        let mut common = vec![
            (NODE, Value::text(&spec.name)),
            (HOST, Value::text(&spec.name)),
            (STATE, Value::text(state.word())),
            (AVAILABLE_UPTO, Value::Integer(upto)),
            (DESKTOP_COMPUTING, Value::text(&property_text(&PropertyValue::Flag(spec.is_pulled())))),
        ];
        common.extend(mark(view).filter(|word| *word == "Drain").map(|_| (DRAIN, Value::text("YES"))));
        for name in [BESTEFFORT, DEPLOY] {
            common.extend(properties.get(name).map(|value| (name, Value::text(&property_text(value)))));
        }
        for (name, value) in properties.iter().filter(|(name, _)| self.properties.contains_key(*name)) {
            let Some(kind) = self.table.fields().get(name) else { continue };
            common.extend(Value::read(*kind, &property_text(value)).map(|value| (name.as_str(), value)));
        }
        let listed = properties.get(CPUSET).map(property_text).unwrap_or_default();
        let (count, parts) = (spec.cores, spec.sockets.max(1));
        let sockets: Vec<u32> = (0..parts).map(|part| count / parts + u32::from(part < count % parts)).collect();
        let (mut first, mut added) = (None, 0u32);
        for cores in sockets.iter().filter(|cores| **cores > 0) {
            *last_socket += 1;
            for _ in 0..*cores {
                let next = before(&self.nodes) + i64::from(added) + 1;
                let own = [(CPU, Value::Integer(*last_socket)), (CORE, Value::Integer(next))];
                let cpus = cpus_of(&listed, added, count).map(|cpus| (CPUSET, Value::text(cpus)));
                let values: Vec<(&str, Value)> = common.iter().cloned().chain(own).chain(cpus).collect();
                match self.table.add(&values) {
                    Ok(id) => {
                        first = first.or(Some(id));
                        added += 1;
                    }
                    Err(_) => return,
                }
            }
        }
        let sockets = sockets.into_iter().filter(|cores| *cores > 0).collect();
        let first = first.unwrap_or_default();
        self.nodes.push(Known { name: spec.name.clone(), first, cores: spec.cores, sockets, properties });
    }

    /// Adds properties that no node has a value of. Those that nodes have stay as they are.
    pub fn declare(&mut self, properties: &BTreeMap<String, Kind>) {
        for (name, kind) in properties {
            // One that cannot be added, since its name has another meaning, is as if it was not there.
            let _ = self.table.add_property(name, *kind);
        }
    }

    /// The numbers of resources: cores of a node.
    pub fn ids(&self, node: &str, cores: &IndexSet) -> Vec<u32> {
        let known = self.nodes.iter().find(|known| known.name == node);
        known.map(|known| cores.iter().map(|core| known.first.saturating_add(core)).collect()).unwrap_or_default()
    }
}

/// The number of the resources before the next node.
fn before(nodes: &[Known]) -> i64 {
    nodes.last().map_or(0, |last| i64::from(last.first) + i64::from(last.cores) - 1)
}

/// The CPUs of a core of a node, as the node's property lists them: for each core, or the same for all.
fn cpus_of(listed: &str, core: u32, cores: u32) -> Option<&str> {
    let entries: Vec<&str> = listed.split_whitespace().collect();
    match entries[..] {
        [all] => Some(all),
        _ if entries.len() == cores as usize => entries.get(core as usize).copied(),
        _ => None,
    }
}

/// The properties that requests can name: those of nodes, unless OAR has a meaning of its own for the name.
fn properties(views: &[NodeView]) -> BTreeMap<String, Property> {
    let mut found: BTreeMap<String, Property> = BTreeMap::new();
    for (name, value) in views.iter().flat_map(|view| &view.spec.properties) {
        let small = name.to_lowercase();
        if property::is_built_in(&small) || [CPU, CORE, HOST].contains(&small.as_str()) {
            continue;
        }
        let property = found.entry(small).or_insert_with(|| Property { name: name.clone(), ..Property::default() });
        if property.name == *name {
            property.values.insert(value.clone());
        }
    }
    found
}

/// Numbers are integers unless another node has something else there.
fn kind(values: &BTreeSet<PropertyValue>) -> Kind {
    let all_numbers = values.iter().all(|value| matches!(value, PropertyValue::Number(_)));
    if all_numbers { Kind::Integer } else { Kind::Text }
}

/// The word that `oarnodesetting` left about a node that it took out of service.
fn mark(view: &NodeView) -> Option<&str> {
    view.reason.as_deref().filter(|_| view.state == NodeStateWord::Drained)?.strip_prefix(MARK)
}

/// Whether its executor has taken it out of service, because it is unfit (OAR-J-18, OAR-X-06). An agent that leaves is no such
/// node. An operator can have the system's name, so the reason has to be one of executors too.
fn is_unfit(view: &NodeView) -> bool {
    let is_found = view.reason.as_deref().and_then(UnfitCause::of_reason).is_some();
    is_found && view.taken_out_by.as_deref() == Some(BY_SYSTEM) && !view.spec.is_pulled()
}

/// The state of a node's resources, and until when they can be had (OAR-E-01). A node that takes no new jobs is absent on
/// purpose, unless `oarnodesetting` says otherwise, and so is one that sleeps; if that one can be woken, it stands by
/// (OAR-R-18).
pub fn state(view: &NodeView) -> (State, i64) {
    let upto = available_upto(&view.spec);
    match mark(view) {
        Some("Drain") => return (State::Alive, upto),
        Some(word) => return (State::named(word).unwrap_or(State::Absent), NEVER),
        None => {}
    }
    match (view.state, view.power) {
        (NodeStateWord::Drained, _) if is_unfit(view) => (State::Suspected, NEVER),
        (NodeStateWord::Drained, _) => (State::Absent, NEVER),
        (_, Some(power)) if power.wakes => (State::Absent, upto),
        (_, Some(_)) => (State::Absent, NEVER),
        (NodeStateWord::Up, None) => (State::Alive, upto),
        (NodeStateWord::Lost, None) => (State::Suspected, NEVER),
        (NodeStateWord::Unknown, None) => (State::Absent, NEVER),
    }
}

/// The power rule of a node, as OAR's number for it.
fn available_upto(spec: &NodeSpec) -> i64 {
    let rule = PowerRule::of(spec);
    match (rule.until, rule.wakes, rule.sleeps) {
        (Some(until), ..) => until.unix_seconds(),
        (None, true, true) => ALWAYS,
        (None, true, false) => NEVER_SLEEPS,
        (None, false, true) => NEVER_WOKEN,
        (None, false, false) => NEVER,
    }
}

#[cfg(test)]
pub mod testing {
    use super::*;

    /// A node that is up.
    pub fn node(name: &str, cores: u32, sockets: u32, properties: &[(&str, PropertyValue)]) -> NodeView {
        let properties = properties.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let spec = NodeSpec { name: name.into(), cores, sockets, memory_bytes: 1 << 30, gpus: Vec::new(), properties };
        NodeView {
            spec,
            state: NodeStateWord::Up,
            reason: None,
            cores_used: 0,
            memory_used_bytes: 0,
            gpus_used: 0,
            jobs: Vec::new(),
            is_down: false,
            taken_out_by: None,
            taken_out: None,
            closures: Vec::new(),
            reservations: Vec::new(),
            gpu_faults: Vec::new(),
            load: None,
            power: None,
        }
    }

    /// The fixture S of the specification: four nodes of two sockets with two cores on two switches.
    pub fn fixture() -> Cluster {
        let switch = |name: &str| [("switch", PropertyValue::Text(name.to_owned()))];
        let mut views = Vec::new();
        for (name, of) in [("n1", "s1"), ("n2", "s1"), ("n3", "s2"), ("n4", "s2")] {
            views.push(node(name, 4, 2, &switch(of)));
        }
        Cluster::of(&views)
    }
}

#[cfg(test)]
mod tests {
    use super::{testing::*, *};
    use muster_schemas::{
        energy::{PowerPhase, PowerView},
        time::Timestamp,
    };

    /// OAR-R-18, OAR-R-21: a node that was taken out of service has the state that it was given.
    #[test]
    fn nodes_have_the_states_that_they_were_given() {
        let marked = |word: &str| {
            let mut view = node("n1", 1, 1, &[]);
            (view.state, view.reason) = (NodeStateWord::Drained, Some(format!("{MARK}{word}")));
            Cluster::of(&[view])
        };
        for (word, state, drains) in [
            ("Suspected", State::Suspected, "NO"),
            ("Dead", State::Dead, "NO"),
            ("Absent", State::Absent, "NO"),
            ("Maintenance", State::Absent, "NO"),
            ("Drain", State::Alive, "YES"),
        ] {
            let cluster = marked(word);
            let one = cluster.table.resource(1).expect("there is one");
            assert_eq!((one.state(), one.text(DRAIN)), (state, drains), "{word}");
        }
    }

    /// OAR-J-18, OAR-S-07, OAR-X-06: a node that its own executor found unfit is suspected.
    #[test]
    fn a_node_that_is_unfit_is_suspected() {
        let state_for = |by: Option<&str>, properties: &[(&str, PropertyValue)], reason: &str| {
            let mut view = node("n1", 1, 1, properties);
            (view.state, view.reason) = (NodeStateWord::Drained, Some(reason.to_owned()));
            view.taken_out_by = by.map(str::to_owned);
            state(&view).0
        };
        let failed = format!("{} /x failed", UnfitCause::Epilog.words());
        let state_by = |by, properties: &[(&str, PropertyValue)]| state_for(by, properties, &failed);
        assert_eq!(state_by(Some("muster"), &[]), State::Suspected);
        assert_eq!(state_for(Some("muster"), &[], "maintenance"), State::Absent, "an operator of that name");
        assert_eq!(state_by(Some("ada"), &[]), State::Absent);
        assert_eq!(state_by(None, &[]), State::Absent);
        let pulled = [("pull", PropertyValue::Flag(true))];
        assert_eq!(state_by(Some("muster"), &pulled), State::Absent, "its agent has left");
    }

    /// OAR-R-01, OAR-R-18: each core is a resource with the properties of its node.
    #[test]
    fn each_core_is_a_resource() {
        let cluster = fixture();
        assert_eq!(cluster.table.resources().count(), 16);
        let seven = cluster.table.resource(7).expect("there is one");
        assert_eq!((seven.node(), seven.text("switch"), seven.integer(CPU), seven.integer(CORE)), ("n2", "s1", 4, 7));
        assert_eq!(cluster.ids("n3", &IndexSet::from_range(1, 2)), [10, 11]);
        assert_eq!(seven.state(), State::Alive);
        let mut lost = node("n1", 1, 1, &[("GPU", PropertyValue::Flag(true)), ("mem", PropertyValue::Number(64))]);
        lost.state = NodeStateWord::Lost;
        let mut drained = node("n2", 1, 1, &[("mem", PropertyValue::Number(128))]);
        drained.state = NodeStateWord::Drained;
        let cluster = Cluster::of(&[lost, drained]);
        let shown = |id| cluster.table.resource(id).map(|one| one.state().shown(one.available_upto(), 5));
        assert_eq!((shown(1), shown(2)), (Some("Suspected"), Some("Absent")));
        let one = cluster.table.resource(1).expect("there is one");
        assert_eq!((one.text("gpu"), one.integer("mem")), ("YES", 64));
        assert_eq!(cluster.properties["gpu"].name, "GPU");
    }
    /// OAR-R-18, OAR-E-01: a node that sleeps and can be woken stands by, until its date; a drained one never does.
    #[test]
    fn a_node_that_sleeps_stands_by() {
        let shown = |view: NodeView, now| {
            let cluster = Cluster::of(&[view]);
            let one = cluster.table.resource(1).expect("there is one");
            (one.state().shown(one.available_upto(), now), one.available_upto())
        };
        let asleep = |wakes, properties: &[(&str, PropertyValue)]| NodeView {
            state: NodeStateWord::Lost,
            power: Some(PowerView { phase: PowerPhase::Asleep, since: Timestamp(0), wakes }),
            ..node("n1", 1, 1, properties)
        };
        assert_eq!(shown(asleep(true, &[]), 5), ("StandBy", 2_147_483_646));
        assert_eq!(shown(asleep(false, &[]), 5), ("Absent", 0));
        let until = [(PowerRule::UNTIL, PropertyValue::Number(5_000))];
        assert_eq!(shown(asleep(true, &until), 5_000), ("StandBy", 5_000));
        assert_eq!(shown(asleep(true, &until), 5_001), ("Absent", 5_000));
        let drained = NodeView { state: NodeStateWord::Drained, ..asleep(true, &[]) };
        assert_eq!(shown(drained, 5), ("Absent", 0));
        let no = |name| (name, PropertyValue::Flag(false));
        assert_eq!(shown(node("n1", 1, 1, &[no(PowerRule::SLEEPS)]), 5), ("Alive", 2_147_483_647));
        assert_eq!(shown(node("n1", 1, 1, &[no(PowerRule::WAKES)]), 5), ("Alive", 1));
        let neither = [no(PowerRule::SLEEPS), no(PowerRule::WAKES)];
        assert_eq!(shown(node("n1", 1, 1, &neither), 5), ("Alive", 0));
    }
}
