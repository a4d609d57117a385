//! Random nodes and jobs: small numbers, so that things collide.

use crate::requests::{GROUP, MODELS, alternatives, one_or_two};
use muster_planner::model::{ComponentDemand, Demand, Holder};
use muster_schemas::resources::{NodeSpec, PropertyValue};
use proptest::{prelude::*, sample::select};
use std::sync::Arc;

pub const USERS: [&str; 3] = ["ada", "bob", "cleo"];
pub const ACCOUNTS: [&str; 2] = ["physics", "maths"];
pub const QUEUES: [&str; 3] = ["main", "side", "night"];
pub const RESERVATIONS: [&str; 2] = ["course", "service"];

prop_compose! {
    /// A node without its name.
    pub fn nodes()(
        cores in 1_u32..=6,
        sockets in 1_u32..=2,
        memory_bytes in 2_u64..=12,
        gpus in prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(select(&MODELS[..]), 1..=3)],
        switch in prop::option::weighted(0.8, select(&["a", "b"][..])),
    ) -> NodeSpec {
        let property = |value: &str| (GROUP.to_owned(), PropertyValue::Text(value.to_owned()));
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

prop_compose! {
    fn components()(
        alternatives in one_or_two(|| alternatives(1)),
        queue in select(&QUEUES[..]),
        reservation in prop::option::weighted(0.1, select(&RESERVATIONS[..])),
    ) -> ComponentDemand {
        ComponentDemand { queue: queue.into(), reservation: reservation.map(Into::into), deadline: None, alternatives: alternatives.into() }
    }
}

/// What a job asks for.
pub fn demands() -> impl Strategy<Value = Arc<Demand>> {
    one_or_two(components)
        .prop_map(|components| Arc::new(Demand { components, sharing: None, fixed: None, guard_seconds: 0 }))
}

prop_compose! {
    pub fn holders()(
        user in select(&USERS[..]),
        group in 100_u32..=101,
        account in prop::option::of(select(&ACCOUNTS[..])),
    ) -> Arc<Holder> {
        Arc::new(Holder { user: user.into(), group, account: account.map(Into::into), charges: Vec::new(), marks: None })
    }
}
