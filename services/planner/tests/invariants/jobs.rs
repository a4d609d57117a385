//! Random nodes and jobs: small numbers, so that things collide.

use muster_planner::model::{ComponentDemand, Demand, Holder};
use muster_schemas::resources::{
    Alternative, Count, Gpus, Level, LevelCount, Memory, NodeSpec, Per, PropertyValue, Request, Sharing,
};
use proptest::{prelude::*, sample::select};
use std::sync::Arc;

pub const USERS: [&str; 3] = ["ada", "bob", "cleo"];
pub const ACCOUNTS: [&str; 2] = ["physics", "maths"];
pub const QUEUES: [&str; 3] = ["main", "side", "night"];
pub const RESERVATIONS: [&str; 2] = ["course", "service"];
pub const LICENCE: &str = "solver";
const MODELS: [&str; 2] = ["old", "new"];

/// The name of the node with this number.
pub fn node_name(number: usize) -> String {
    format!("n{number}")
}

prop_compose! {
    /// A node without its name.
    pub fn nodes()(
        cores in 1_u32..=6,
        sockets in 1_u32..=2,
        memory_bytes in 2_u64..=12,
        gpus in prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(select(&MODELS[..]), 1..=3)],
        switch in prop::option::weighted(0.8, select(&["a", "b"][..])),
    ) -> NodeSpec {
        let property = |value: &str| ("switch".to_owned(), PropertyValue::Text(value.to_owned()));
        NodeSpec {
            name: String::new(),
            cores,
            sockets: sockets.min(cores),
            memory_bytes,
            gpus: gpus.into_iter().map(str::to_owned).collect(),
            properties: switch.map(property).into_iter().collect(),
        }
    }
}

fn counts() -> impl Strategy<Value = Count> {
    prop_oneof![
        5 => (1_u32..=3).prop_map(Count::exactly),
        2 => (1_u32..=2, 0_u32..=2).prop_map(|(min, more)| Count::Range { min, max: min + more }),
        1 => Just(Count::All),
        1 => Just(Count::Best),
    ]
}

fn paths() -> impl Strategy<Value = Vec<LevelCount>> {
    let level = |level: Level| counts().prop_map(move |count| LevelCount { level: level.clone(), count });
    let group = || level(Level::Group("switch".into()));
    prop_oneof![
        4 => Just(Vec::new()),
        4 => level(Level::Node).prop_map(|node| vec![node]),
        1 => (group(), level(Level::Node)).prop_map(|(group, node)| vec![group, node]),
        1 => (level(Level::Node), level(Level::Core)).prop_map(|(node, core)| vec![node, core]),
        1 => (level(Level::Node), level(Level::Socket)).prop_map(|(node, socket)| vec![node, socket]),
        1 => level(Level::Core).prop_map(|core| vec![core]),
        1 => level(Level::Gpu).prop_map(|gpu| vec![gpu]),
    ]
}

fn per() -> impl Strategy<Value = Per> {
    select(vec![Per::Node, Per::Task, Per::Core, Per::Gpu, Per::Request])
}

prop_compose! {
    fn requests()(
        path in paths(),
        tasks in prop::option::of(1_u32..=6),
        tasks_per_node in prop::option::weighted(0.2, 1_u32..=2),
        cpus_per_task in prop_oneof![3 => Just(1_u32), 1 => Just(2)],
        memory in prop::option::weighted(0.4, (1_u64..=6, per())),
        gpus in prop::option::weighted(0.15, (1_u32..=2, per(), prop::option::of(select(&MODELS[..])))),
        excluded in prop::option::weighted(0.1, 0_usize..6),
        sharing in prop_oneof![6 => Just(Sharing::Shared), 1 => Just(Sharing::Exclusive), 1 => Just(Sharing::WholeNodes)],
    ) -> Request {
        Request {
            path,
            tasks,
            tasks_per_node,
            cpus_per_task,
            memory: memory.map(|(bytes, per)| Memory { bytes, per }),
            gpus: gpus.map(|(count, per, model)| Gpus { count, per, model: model.map(str::to_owned) }),
            excluded_nodes: excluded.map(node_name).into_iter().collect(),
            sharing,
            ..Request::default()
        }
    }
}

prop_compose! {
    fn alternatives()(
        requests in prop_oneof![6 => prop::collection::vec(requests(), 1), 1 => prop::collection::vec(requests(), 2)],
        walltime_seconds in prop::option::weighted(0.9, 1_u64..=20),
        licences in prop::option::weighted(0.15, 1_u32..=2),
    ) -> Alternative {
        Alternative { requests, walltime_seconds, licences: licences.map(|count| (LICENCE.to_owned(), count)).into_iter().collect() }
    }
}

prop_compose! {
    fn components()(
        alternatives in prop_oneof![4 => prop::collection::vec(alternatives(), 1), 1 => prop::collection::vec(alternatives(), 2)],
        queue in select(&QUEUES[..]),
        reservation in prop::option::weighted(0.1, select(&RESERVATIONS[..])),
    ) -> ComponentDemand {
        ComponentDemand { queue: queue.into(), reservation: reservation.map(Into::into), alternatives: alternatives.into() }
    }
}

/// What a job asks for.
pub fn demands() -> impl Strategy<Value = Arc<Demand>> {
    let components = prop_oneof![
        5 => prop::collection::vec(components(), 1),
        1 => prop::collection::vec(components(), 2),
    ];
    components.prop_map(|components| Arc::new(Demand { components }))
}

prop_compose! {
    pub fn holders()(
        user in select(&USERS[..]),
        group in 100_u32..=101,
        account in prop::option::of(select(&ACCOUNTS[..])),
    ) -> Arc<Holder> {
        Arc::new(Holder { user: user.into(), group, account: account.map(Into::into) })
    }
}
