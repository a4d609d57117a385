//! Resources of a cluster and requests of jobs.
//!
//! Resources form a tree: cluster > switch > node > socket > core, with GPUs and memory on nodes and floating licences
//! beside the tree. A job asks for counts along a path of levels, so that one request type serves `-N 2 -n 8`,
//! `/switch=1/nodes=2/cpu=1`, `select=2:ncpus=4` and `MinCores`/`MaxCores`.

use crate::ids::NodeId;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};
use utoipa::ToSchema;

/// A set of small numbers (cores or GPUs of a node, indices of an array), kept as ranges.
///
/// The ranges are ascending, do not overlap and do not touch. Written `0-3,8`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexSet {
    ranges: Vec<(u32, u32)>,
}

mod index_set;
pub use index_set::IndexSetError;

/// A value of a node's property.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PropertyValue {
    /// Present or absent.
    Flag(bool),
    /// A whole number.
    Number(i64),
    /// Text.
    Text(String),
}

impl fmt::Display for PropertyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// A level of the resource tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// A group of nodes with the same value of this property, such as `switch`.
    Group(String),
    /// A node.
    Node,
    /// A socket (processor package) of a node.
    Socket,
    /// A core, the smallest unit that is given to a job.
    Core,
    /// A GPU of a node.
    Gpu,
}

/// The number of units at a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Count {
    /// From `min` to `max`: the most that is available at the start.
    Range {
        /// The minimum that the job can start with.
        min: u32,
        /// The maximum that it can use.
        max: u32,
    },
    /// Every existing one; otherwise the job does not start.
    All,
    /// All that are free at the moment, at least one.
    Best,
    /// Half of those, rounded down, at least one.
    BestHalf,
}

impl Count {
    /// Exactly this many.
    pub const fn exactly(count: u32) -> Self {
        Self::Range { min: count, max: count }
    }
}

/// One part of a path: a number at a level, inside each item of the previous part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LevelCount {
    /// The level.
    pub level: Level,
    /// The number of its units.
    pub count: Count,
}

/// The unit by which an amount is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// For each node of the request.
    Node,
    /// For each task.
    Task,
    /// For each core.
    Core,
    /// For each GPU.
    Gpu,
    /// Once for the whole request.
    Request,
}

/// An amount of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Number of bytes.
    pub bytes: u64,
    /// The unit that it is counted for.
    pub per: Per,
}

/// A number of GPUs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Gpus {
    /// Number of GPUs.
    pub count: u32,
    /// The unit that it is counted for.
    pub per: Per,
    /// Only GPUs of this model; `None` means any.
    pub model: Option<String>,
}

/// Properties that a node must have to serve a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeFilter {
    /// The property is present and neither false, 0 nor empty.
    Has(String),
    /// The property has this relation to the value. A node without the property does not match.
    Compare {
        /// The property.
        property: String,
        /// Its relation to the value.
        relation: Relation,
        /// The value that it is compared with.
        value: PropertyValue,
    },
    /// All of these hold.
    #[schema(no_recursion)]
    All(Vec<NodeFilter>),
    /// At least one of these holds.
    #[schema(no_recursion)]
    Any(Vec<NodeFilter>),
    /// This does not hold.
    #[schema(no_recursion)]
    Not(Box<NodeFilter>),
}

impl fmt::Display for NodeFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, filters: &[Self], between: char| {
            for (at, filter) in filters.iter().enumerate() {
                if at > 0 {
                    write!(f, "{between}")?;
                }
                match filter {
                    Self::All(_) | Self::Any(_) => write!(f, "({filter})")?,
                    _ => write!(f, "{filter}")?,
                }
            }
            Ok(())
        };
        match self {
            Self::Has(name) => f.write_str(name),
            Self::Compare { property, relation, value } => write!(f, "{property}{relation}{value}"),
            Self::All(filters) => list(f, filters, '&'),
            Self::Any(filters) => list(f, filters, '|'),
            Self::Not(filter) => match **filter {
                Self::Has(_) | Self::Not(_) => write!(f, "!{filter}"),
                _ => write!(f, "!({filter})"),
            },
        }
    }
}

/// A number of bytes for people, to a tenth: `62.8 GiB`, `512 MiB`, `100 bytes`.
pub fn size_text(bytes: u64) -> String {
    let units = [("PiB", 50), ("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let Some((unit, shift)) = units.into_iter().find(|(_, shift)| bytes >> shift > 0) else {
        return if bytes == 1 { "1 byte".to_owned() } else { format!("{bytes} bytes") };
    };
    let tenths = (u128::from(bytes) * 10) >> shift;
    match tenths % 10 {
        0 => format!("{} {unit}", tenths / 10),
        tenth => format!("{}.{tenth} {unit}", tenths / 10),
    }
}

/// Two sizes to show together, as by [`size_text`]; in bytes if the texts would be equal.
pub fn size_texts(one: u64, other: u64) -> (String, String) {
    let texts = (size_text(one), size_text(other));
    if texts.0 == texts.1 && one != other { (format!("{one} bytes"), format!("{other} bytes")) } else { texts }
}

/// The relation of a property to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Less.
    Less,
    /// Less or equal.
    LessOrEqual,
    /// Greater.
    Greater,
    /// Greater or equal.
    GreaterOrEqual,
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}

/// Whether other jobs may use the rest of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// Other jobs may run on the rest of the node.
    #[default]
    Shared,
    /// The nodes of the request serve no other job while it runs; the job still gets only the cores that it requested.
    Exclusive,
    /// Like `Exclusive`, and the job gets every core, GPU and byte of the nodes.
    WholeNodes,
}

/// A demand on the resource tree. All demands of an alternative are met together or not at all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Request {
    /// Counts along the tree, from the root down; empty means one core on one node.
    pub path: Vec<LevelCount>,
    /// Number of tasks (processes); `None` means one for each node.
    pub tasks: Option<u32>,
    /// Maximum number of tasks per node.
    pub tasks_per_node: Option<u32>,
    /// Cores for each task.
    pub cpus_per_task: u32,
    /// Memory; `None` means the cluster's setting, which may reserve none.
    pub memory: Option<Memory>,
    /// GPUs.
    pub gpus: Option<Gpus>,
    /// The condition for nodes that can serve it.
    pub filter: Option<NodeFilter>,
    /// Only these nodes. All of them must be part of the placement if it has enough places for them.
    pub nodes: Vec<String>,
    /// Never these nodes.
    pub excluded_nodes: Vec<String>,
    /// Whether other jobs may use the rest of the nodes.
    pub sharing: Sharing,
    /// GPUs of further models, beside those of [`Request::gpus`]; then each of all these names a model of its own.
    pub more_gpus: Vec<Gpus>,
    /// Without a path: at least this many nodes, also if fewer have room for all tasks.
    pub least_nodes: Option<u32>,
    /// Without a path: at most this many nodes.
    pub most_nodes: Option<u32>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            path: Vec::new(),
            tasks: None,
            tasks_per_node: None,
            cpus_per_task: 1,
            memory: None,
            gpus: None,
            filter: None,
            nodes: Vec::new(),
            excluded_nodes: Vec::new(),
            sharing: Sharing::Shared,
            more_gpus: Vec::new(),
            least_nodes: None,
            most_nodes: None,
        }
    }
}

/// One acceptable request of a component. Among several, the planner takes the one that ends first.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Alternative {
    /// Demands that are met together; empty means one default [`Request`].
    pub requests: Vec<Request>,
    /// How long it may run, in seconds; `None` means no limit unless the queue has one.
    pub walltime_seconds: Option<u64>,
    /// Floating licences: name and number.
    pub licences: BTreeMap<String, u32>,
    /// Whether each request gets separate nodes; otherwise they may share nodes (SL-C-12).
    pub scatter: bool,
    /// Processor time that it asks for in all, in seconds. Policies order by it and charge it; nothing ends a job that uses
    /// more.
    pub cpu_seconds: Option<u64>,
    /// Whether its nodes follow each other in the order of the cluster's nodes, with no other node between them (SL-C-12).
    pub contiguous: bool,
    /// In how few groups its nodes are to be, and how long it waits for that (SL-C-12).
    pub groups: Option<FewGroups>,
}

/// A wish for nodes in few groups. It ends some time after the job could have started on nodes in more groups.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FewGroups {
    /// The property whose value names a node's group, such as `switch`. Nodes without it form a group of their own.
    pub property: String,
    /// At most this many groups, at least 1.
    pub most: u32,
    /// How long the job waits for so few once it could start in more, in seconds; 0 to 31,536,000.
    pub wait_seconds: u64,
}

impl Alternative {
    /// Whether it matters how its nodes lie to each other.
    pub fn has_layout(&self) -> bool {
        self.contiguous || self.groups.is_some()
    }
}

/// The specification of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeSpec {
    /// Its name, unique in the cluster.
    pub name: String,
    /// Cores that jobs may use, numbered from 0; 1 to 65,536.
    pub cores: u32,
    /// Sockets; the cores are divided among them in equal, consecutive parts.
    #[serde(default = "one")]
    pub sockets: u32,
    /// Memory that jobs may use.
    pub memory_bytes: u64,
    /// GPUs, numbered from 0 in this order: the model of each.
    #[serde(default)]
    pub gpus: Vec<String>,
    /// Typed properties, among them the groups it belongs to (`switch = "s1"`).
    #[serde(default)]
    pub properties: BTreeMap<String, PropertyValue>,
}

fn one() -> u32 {
    1
}

impl NodeSpec {
    /// The property of nodes that no order reaches: their agent asks for its orders (OAR-K-01). Only jobs that ask for this
    /// property run there.
    pub const PULL: &str = "pull";
    /// The property with a node's weight.
    pub const WEIGHT: &str = "weight";
    /// The weight of nodes without that property.
    pub const DEFAULT_WEIGHT: i64 = 1;

    /// Its weight: jobs get nodes of less weight first. It is the whole number in its property `weight`, or 1.
    pub fn weight(&self) -> i64 {
        match self.properties.get(Self::WEIGHT) {
            Some(PropertyValue::Number(weight)) => *weight,
            _ => Self::DEFAULT_WEIGHT,
        }
    }

    /// Whether its agent asks for its orders: its property `pull` is true.
    pub fn is_pulled(&self) -> bool {
        self.properties.get(Self::PULL) == Some(&PropertyValue::Flag(true))
    }
}

impl NodeFilter {
    /// Whether only nodes whose agent asks for its orders can match (OAR-K-05).
    pub fn asks_for_pull(&self) -> bool {
        match self {
            Self::Has(property) => property == NodeSpec::PULL,
            Self::Compare { property, relation: Relation::Equal, value } => {
                property == NodeSpec::PULL && *value == PropertyValue::Flag(true)
            }
            Self::All(filters) => filters.iter().any(Self::asks_for_pull),
            Self::Any(filters) => !filters.is_empty() && filters.iter().all(Self::asks_for_pull),
            Self::Compare { .. } | Self::Not(_) => false,
        }
    }
}

impl Request {
    /// All GPUs that it asks for, those of each model apart.
    pub fn all_gpus(&self) -> impl Iterator<Item = &Gpus> {
        self.gpus.iter().chain(&self.more_gpus).filter(|gpus| gpus.count > 0)
    }

    /// Whether it is for nodes whose agent asks for its orders.
    pub fn asks_for_pull(&self) -> bool {
        self.filter.as_ref().is_some_and(NodeFilter::asks_for_pull)
    }
}

/// A run's share of one node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub struct NodeShare {
    /// The node.
    pub node: NodeId,
    /// Its cores.
    pub cores: IndexSet,
    /// Its GPUs.
    pub gpus: IndexSet,
    /// Its memory.
    pub memory_bytes: u64,
    /// Number of tasks there.
    pub tasks: u32,
    /// Whether the node serves no other job meanwhile.
    pub exclusive: bool,
}

/// Where a component runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub struct ComponentPlacement {
    /// The index of the component's chosen alternative, from 0.
    pub alternative: u32,
    /// The nodes; the first is the component's lead node, task ranks follow this order.
    pub shares: Vec<NodeShare>,
}

/// Where a run is: one placement for each component, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub struct Placement {
    /// For each component.
    pub components: Vec<ComponentPlacement>,
}

impl Placement {
    /// All shares of all components.
    pub fn shares(&self) -> impl Iterator<Item = &NodeShare> {
        self.components.iter().flat_map(|component| &component.shares)
    }

    /// The nodes, in their order, each once.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        let mut seen = BTreeSet::new();
        self.shares().map(|share| share.node).filter(move |node| seen.insert(*node))
    }

    /// The share at a position among those of all components.
    pub fn share_at(&self, at: usize) -> Option<&NodeShare> {
        let mut at = at;
        for component in &self.components {
            match at.checked_sub(component.shares.len()) {
                None => return component.shares.get(at),
                Some(behind) => at = behind,
            }
        }
        None
    }

    /// All shares, each with the component that it serves, from 0.
    pub fn shares_by_component(&self) -> impl Iterator<Item = (u32, &NodeShare)> {
        (0..)
            .zip(&self.components)
            .flat_map(|(number, component)| component.shares.iter().map(move |share| (number, share)))
    }
}
