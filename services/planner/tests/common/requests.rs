//! Random requests: small numbers, so that things collide.

use muster_schemas::resources::{Alternative, Count, Gpus, Level, LevelCount, Memory, Per, Request, Sharing};
use proptest::{prelude::*, sample::select};

/// The only licence.
pub const LICENCE: &str = "solver";
/// The models of GPUs.
pub const MODELS: [&str; 2] = ["old", "new"];
/// The property by which nodes form groups.
pub const GROUP: &str = "switch";

/// The name of the node with this number.
pub fn node_name(number: usize) -> String {
    format!("n{number}")
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
    let group = || level(Level::Group(GROUP.into()));
    prop_oneof![
        4 => Just(Vec::new()),
        4 => level(Level::Node).prop_map(|node| vec![node]),
        1 => (group(), level(Level::Node)).prop_map(|(group, node)| vec![group, node]),
        1 => (level(Level::Node), level(Level::Core)).prop_map(|(node, core)| vec![node, core]),
        1 => (level(Level::Node), level(Level::Socket)).prop_map(|(node, socket)| vec![node, socket]),
        1 => level(Level::Core).prop_map(|core| vec![core]),
        1 => level(Level::Socket).prop_map(|socket| vec![socket]),
        1 => level(Level::Gpu).prop_map(|gpu| vec![gpu]),
    ]
}

fn per() -> impl Strategy<Value = Per> {
    select(vec![Per::Node, Per::Task, Per::Core, Per::Gpu, Per::Request])
}

prop_compose! {
    fn requests(memory_unit_bytes: u64)(
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
            memory: memory.map(|(units, per)| Memory { bytes: units * memory_unit_bytes, per }),
            gpus: gpus.map(|(count, per, model)| Gpus { count, per, model: model.map(str::to_owned) }),
            excluded_nodes: excluded.map(node_name).into_iter().collect(),
            sharing,
            ..Request::default()
        }
    }
}

prop_compose! {
    /// Alternatives of one or two requests for up to six units of memory, mostly with a walltime of 1 to 20 s.
    pub fn alternatives(memory_unit_bytes: u64)(
        requests in prop_oneof![
            6 => prop::collection::vec(requests(memory_unit_bytes), 1),
            1 => prop::collection::vec(requests(memory_unit_bytes), 2),
        ],
        walltime_seconds in prop::option::weighted(0.9, 1_u64..=20),
        licences in prop::option::weighted(0.15, 1_u32..=2),
        scatter in prop::bool::weighted(0.3),
    ) -> Alternative {
        let licences = licences.map(|count| (LICENCE.to_owned(), count)).into_iter().collect();
        Alternative { requests, walltime_seconds, licences, scatter, ..Alternative::default() }
    }
}

/// One of something four times in five, or else two.
pub fn one_or_two<S: Strategy>(of: impl Fn() -> S) -> impl Strategy<Value = Vec<S::Value>> {
    prop_oneof![4 => prop::collection::vec(of(), 1), 1 => prop::collection::vec(of(), 2)]
}
