//! Nodes that sleep.

use crate::Fixture;
use muster_schemas::{
    Sequence, Timestamp,
    energy::{PowerOrder, PowerWay},
    event::Event,
};
use std::sync::Arc;

pub fn events(fixture: &Fixture) -> [Event; 6] {
    let (node, job, run) = (fixture.node, fixture.job_id, fixture.run);
    let order = PowerOrder {
        way: PowerWay::Wake,
        nodes: vec![node],
        program: vec!["/opt/site/wake".into(), "--quick".into()],
        account: "power".into(),
        limit_seconds: 120,
        until: Timestamp(9_000_000),
    };
    [
        Event::PowerAsked { way: PowerWay::Sleep, nodes: vec![node] },
        Event::PowerOrdered { order: Arc::new(order) },
        Event::PowerTold { order: Sequence(12), way: PowerWay::Wake, error: Some("exit status: 1".into()) },
        Event::NodeAsleep { node },
        Event::NodePowerFailed { node, way: PowerWay::Wake, reason: "it does not report".into() },
        Event::RunAwake { job, run },
    ]
}
