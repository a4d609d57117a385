//! Nodes that share a line of `sinfo`.

use super::{Arrangement, NodeRecord, Overview};
use crate::{
    queries::partitions,
    show::{Clock, columns::Layout},
    words::{NodeBase, NodeState},
};
use muster_schemas::{
    cluster::{MakesWay, QueueSpec, WayOut},
    views::QueueView,
};
use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A partition.
#[derive(Clone, Debug)]
pub struct Partition {
    /// Its name.
    pub name: String,
    /// Whether it is the partition of jobs that name none.
    pub is_default: bool,
    /// Its queue.
    pub spec: QueueSpec,
}

impl Partition {
    /// The partition for a queue.
    pub fn of(view: &QueueView) -> Self {
        Self { name: view.spec.name.clone(), is_default: view.default, spec: view.spec.clone() }
    }

    /// The name, with `*` for the default partition.
    pub fn starred(&self) -> String {
        let star = if self.is_default { "*" } else { "" };
        format!("{}{star}", self.name)
    }

    /// Whether it takes and starts jobs: `up`, `down` (only takes them), `drain` (only starts those it has), `inact`.
    pub const fn available(&self) -> &'static str {
        match (self.spec.enabled, self.spec.started) {
            (true, true) => "up",
            (true, false) => "down",
            (false, true) => "drain",
            (false, false) => "inact",
        }
    }

    /// Whether only root can submit to it.
    pub fn is_root_only(&self) -> bool {
        partitions::is_root_only(&self.spec)
    }

    /// The fewest and the most nodes that its jobs can ask for.
    pub fn nodes_asked(&self) -> [Option<u64>; 2] {
        [&self.spec.least_asked, &self.spec.most_asked].map(|limits| limits.get(partitions::NODES).copied())
    }

    /// What happens to its running jobs when those of a partition with a higher priority need their place.
    pub const fn preempt_mode(&self) -> &'static str {
        match self.spec.makes_way {
            None => "OFF",
            Some(MakesWay { by: WayOut::Requeue, .. }) => "REQUEUE",
            Some(MakesWay { by: WayOut::Cancel, .. }) => "CANCEL",
            Some(MakesWay { by: WayOut::Suspend, .. }) => "SUSPEND",
        }
    }

    /// Whether a node serves it.
    pub fn has(&self, node: &NodeRecord) -> bool {
        self.spec.nodes.is_empty() || self.spec.nodes.contains(&node.name)
    }
}

/// A line of `sinfo`.
#[derive(Clone, Debug)]
pub struct Group {
    /// The partition.
    pub partition: Arc<Partition>,
    /// The nodes; empty for a partition without any.
    pub nodes: Vec<Arc<NodeRecord>>,
}

impl Group {
    /// The state of its nodes, or of the first one if they differ.
    pub fn state(&self) -> Option<NodeState> {
        self.nodes.first().map(|node| node.state)
    }

    /// The number of nodes in use, free, unusable, and in total.
    pub fn node_counts(&self) -> [usize; 4] {
        let busy = self.nodes.iter().filter(|node| node.state.serves() && node.state.is_busy()).count();
        let idle = self.nodes.iter().filter(|node| node.state.serves() && !node.state.is_busy()).count();
        [busy, idle, self.nodes.len() - busy - idle, self.nodes.len()]
    }
}

/// The columns with sums over nodes: they do not distinguish lines.
const SUMS: [&str; 9] = [
    "NODES",
    "NODES(A/I)",
    "NODES(A/I/O/T)",
    "CPUS(A/I/O/T)",
    "NODELIST",
    "CPU_LOAD",
    "FREE_MEM",
    "ALLOCMEM",
    "GRES_USED",
];
/// The columns of sizes: they only distinguish lines if `-e` asks for it.
const SIZES: [&str; 8] = ["CPUS", "MEMORY", "TMP_DISK", "WEIGHT", "S:C:T", "SOCKETS", "CORES", "THREADS"];

/// The lines of an overview, in order. Nodes are grouped unless the columns show a difference.
pub(super) fn groups(
    partitions: &[&Arc<Partition>],
    nodes: &[&Arc<NodeRecord>],
    overview: &Overview,
    layout: &Layout<Group>,
    clock: &Clock,
) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let by_node = overview.arrangement == Arrangement::Nodes;
    for partition in partitions {
        let before = groups.len();
        for node in nodes.iter().filter(|node| partition.has(node)) {
            let one = Group { partition: Arc::clone(partition), nodes: vec![Arc::clone(node)] };
            let mut key = key(&one, overview.is_exact, layout, clock);
            if by_node {
                key.push_str(&node.name);
            }
            match places.get(&key) {
                Some(place) => add(&mut groups[*place], node),
                None => {
                    places.insert(key, groups.len());
                    groups.push(one);
                }
            }
        }
        let is_filtered = !overview.nodes.is_empty() || !overview.states.is_empty() || overview.responding.is_some();
        let shows_empty = matches!(overview.arrangement, Arrangement::Partitions | Arrangement::Summary);
        if groups.len() == before && shows_empty && !is_filtered && !nodes.iter().any(|node| partition.has(node)) {
            groups.push(Group { partition: Arc::clone(partition), nodes: Vec::new() });
        }
    }
    sort(&mut groups, partitions, overview);
    groups
}

/// Adds a node once, even if it serves several partitions that the columns do not distinguish.
fn add(group: &mut Group, node: &Arc<NodeRecord>) {
    let is_other_partition = group.nodes.iter().any(|known| Arc::ptr_eq(known, node));
    if !is_other_partition {
        group.nodes.push(Arc::clone(node));
    }
}

/// The values of a node's columns, except sums.
fn key(one: &Group, is_exact: bool, layout: &Layout<Group>, clock: &Clock) -> String {
    let mut key = String::new();
    for field in layout.fields() {
        let is_sum = SUMS.contains(&field.header) || (!is_exact && SIZES.contains(&field.header));
        if !is_sum {
            (field.write)(one, clock, &mut key);
            key.push('\n');
        }
    }
    key
}

/// By partition in the configured order and descending state, by node name for `-N`, by time of the reason for `-R`
/// (SL-C-28).
fn sort(groups: &mut [Group], partitions: &[&Arc<Partition>], overview: &Overview) {
    let place = |group: &Group| partitions.iter().position(|partition| Arc::ptr_eq(partition, &group.partition));
    let keys = overview.sort.as_deref().unwrap_or(match overview.arrangement {
        Arrangement::Partitions | Arrangement::Summary => "#P,-t",
        Arrangement::Nodes => "N",
        Arrangement::Reasons => "H",
    });
    let keys: Vec<(char, bool)> = keys
        .split(',')
        .filter_map(|key| {
            let letter = key.trim_start_matches(['#', '+', '-']).chars().next()?;
            Some((letter, key.contains('-')))
        })
        .collect();
    groups.sort_by(|left, right| {
        for (letter, is_descending) in &keys {
            let order = match letter {
                'P' if overview.sort.is_none() => place(left).cmp(&place(right)),
                'P' | 'R' => left.partition.name.cmp(&right.partition.name),
                't' | 'T' => left.state().map(rank).cmp(&right.state().map(rank)),
                'N' | 'n' => first_name(left).cmp(&first_name(right)),
                'D' => left.nodes.len().cmp(&right.nodes.len()),
                'H' => since(left).cmp(&since(right)),
                'E' => why(left).cmp(&why(right)),
                'c' => least(left, |node| node.cpus.into()).cmp(&least(right, |node| node.cpus.into())),
                'm' => least(left, |node| node.megabytes).cmp(&least(right, |node| node.megabytes)),
                'l' => left.partition.spec.max_walltime_seconds.cmp(&right.partition.spec.max_walltime_seconds),
                _ => Ordering::Equal,
            };
            let order = if *is_descending { order.reverse() } else { order };
            if order != Ordering::Equal {
                return order;
            }
        }
        place(left).cmp(&place(right)).then_with(|| first_name(left).cmp(&first_name(right)))
    });
}

/// The name of the first node, split so that numbers in names compare as numbers.
fn first_name(group: &Group) -> Option<(&str, u64, &str)> {
    let name = group.nodes.first()?.name.as_str();
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    Some((stem, name[stem.len()..].parse().unwrap_or(0), name))
}

fn since(group: &Group) -> Option<i64> {
    group.nodes.first().and_then(|node| node.reason_time).map(|time| time.0)
}

fn why(group: &Group) -> Option<&str> {
    group.nodes.first().and_then(|node| node.reason.as_deref())
}

/// The least size among the nodes of a line.
pub(super) fn least(group: &Group, size: impl Fn(&NodeRecord) -> u64) -> u64 {
    group.nodes.iter().map(|node| size(node)).min().unwrap_or(0)
}

/// Whether the nodes of a line differ in size.
pub(super) fn varies(group: &Group, size: impl Fn(&NodeRecord) -> u64) -> bool {
    let sizes: BTreeSet<u64> = group.nodes.iter().map(|node| size(node)).collect();
    sizes.len() > 1
}

/// The rank of a state; lists show the highest first. Flags weigh more than the base state.
fn rank(state: NodeState) -> u32 {
    let base = match state.base {
        NodeBase::Unknown => 0,
        NodeBase::Down => 1,
        NodeBase::Idle => 2,
        NodeBase::Allocated => 3,
        NodeBase::Mixed => 5,
    };
    let flag = |set: bool, weight: u32| if set { weight } else { 0 };
    base + flag(state.is_reserved, 0x40)
        + flag(state.is_draining, 0x200)
        + flag(state.is_completing, 0x400)
        + flag(state.is_silent, 0x800)
        + flag(state.is_maintained, 0x8000)
}
