//! Random clusters and policies.

use crate::{
    jobs::{ACCOUNTS, QUEUES, USERS, nodes},
    requests::node_name,
};
use muster_schemas::{
    cluster::QueueSpec,
    policy::{Backfill, BackfillMode, CandidateOrder, Components, Limit, LimitPer, OrderKey, Policy, QueuePolicy},
    resources::NodeSpec,
};
use proptest::{prelude::*, sample::select};

/// A cluster at its beginning.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub nodes: Vec<NodeSpec>,
    pub queues: Vec<QueueSpec>,
    pub licences: u32,
    pub default_memory_per_core_bytes: Option<u64>,
}

fn queue(name: &'static str) -> impl Strategy<Value = QueueSpec> {
    (
        0_i64..=2,
        prop::option::weighted(0.3, prop::collection::btree_set(0_usize..4, 1..=3)),
        prop::option::weighted(0.2, 1_u32..=3),
        prop::option::weighted(0.2, 1_u32..=2),
    )
        .prop_map(move |(priority, nodes, max_running_jobs, max_running_jobs_per_user)| QueueSpec {
            name: name.into(),
            priority,
            nodes: nodes.into_iter().flatten().map(node_name).collect(),
            max_running_jobs,
            max_running_jobs_per_user,
            ..QueueSpec::default()
        })
}

prop_compose! {
    pub fn clusters()(
        mut nodes in prop_oneof![4 => prop::collection::vec(nodes(), 1..=4), 1 => prop::collection::vec(nodes(), 5..=12)],
        queues in QUEUES.map(queue),
        licences in 0_u32..=3,
        default_memory_per_core_bytes in prop::option::weighted(0.3, 1_u64..=2),
    ) -> Cluster {
        for (number, node) in nodes.iter_mut().enumerate() {
            node.name = node_name(number);
        }
        Cluster { nodes, queues: queues.to_vec(), licences, default_memory_per_core_bytes }
    }
}

fn orders() -> impl Strategy<Value = Vec<OrderKey>> {
    prop_oneof![
        3 => Just(Policy::default().order),
        1 => select(vec![OrderKey::Fcfs, OrderKey::Spt, OrderKey::Saf, OrderKey::Wfp3, OrderKey::Unicep])
            .prop_map(|key| vec![key]),
        1 => Just(vec![OrderKey::Priority, OrderKey::Saf]),
    ]
}

prop_compose! {
    fn backfills(modes: &'static [BackfillMode])(
        mode in select(modes),
        reservations in prop::option::weighted(0.3, 1_u32..=3),
        candidates in select(vec![CandidateOrder::QueueOrder, CandidateOrder::Sjbf]),
        look_ahead in prop::option::weighted(0.2, 0_u32..=3),
        require_walltime in prop::bool::weighted(0.2),
    ) -> Backfill {
        Backfill { mode, reservations, candidates, look_ahead, require_walltime, ..Backfill::default() }
    }
}

fn limits() -> impl Strategy<Value = Limit> {
    let subjects = prop_oneof![
        Just((LimitPer::All, None)),
        prop::option::of(select(&USERS[..])).prop_map(|name| (LimitPer::User, name)),
        Just((LimitPer::Group, None)),
        prop::option::of(select(&ACCOUNTS[..])).prop_map(|name| (LimitPer::Account, name)),
        prop::option::of(select(&QUEUES[..])).prop_map(|name| (LimitPer::Queue, name)),
    ];
    let most = |most: u64| prop::option::weighted(0.4, 0..=most);
    (subjects, prop::option::weighted(0.2, select(&QUEUES[..])), most(4), most(5), most(10), most(3)).prop_map(
        |((per, name), queue, max_running_jobs, max_nodes, max_cores, max_gpus)| Limit {
            per,
            name: name.map(str::to_owned),
            queue: queue.map(str::to_owned),
            max_running_jobs,
            max_nodes,
            max_cores,
            max_gpus,
            ..Limit::default()
        },
    )
}

/// Any mode of backfill.
pub const ALL_MODES: &[BackfillMode] = &[BackfillMode::None, BackfillMode::Easy, BackfillMode::Conservative];

prop_compose! {
    /// Policies whose backfill is one of these modes.
    pub fn policies(modes: &'static [BackfillMode])(
        order in orders(),
        backfill in backfills(modes),
        limits in prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(limits(), 1..=2)],
        own in prop::option::weighted(0.25, (select(&QUEUES[..]), prop::option::of(orders()), prop::option::of(backfills(modes)))),
        max_starts in prop_oneof![9 => Just(1000_u32), 1 => 1_u32..=3],
        share_nodes in any::<bool>(),
    ) -> Policy {
        let components = Components { share_nodes, ..backfill.components };
        let backfill = Backfill { components, ..backfill };
        let queues = own.map(|(name, order, backfill)| (name.to_owned(), QueuePolicy { order, backfill }));
        Policy { name: "random".into(), order, backfill, limits, queues: queues.into_iter().collect(), max_starts, ..Policy::default() }
    }
}
