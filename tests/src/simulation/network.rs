//! The bus as it is on a bad day.

use muster_schemas::{
    CommandId, Sequence,
    command::{Answer, CommandEnvelope},
    event::Commit,
    filter_order::FilterOrder,
    node::{Briefing, Heartbeat, NodeOrder},
};
use rand::{Rng, rngs::SmallRng};
use std::{collections::BTreeMap, sync::Arc};

/// A party that waits for answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Party {
    Planner,
    Node(usize),
    User(usize),
    Operator,
    Runner(usize),
}

/// A message on its way.
#[derive(Clone, Debug)]
pub(super) enum Parcel {
    Command {
        from: Party,
        envelope: Arc<CommandEnvelope>,
    },
    Answer {
        to: Party,
        id: CommandId,
        answer: Arc<Answer>,
    },
    Heartbeat {
        node: usize,
        heartbeat: Heartbeat,
    },
    Briefed {
        node: usize,
        briefing: Arc<Briefing>,
    },
    Orders {
        node: usize,
        orders: Arc<Vec<NodeOrder>>,
    },
    /// Orders that an agent has asked for.
    Pulled {
        node: usize,
        orders: Arc<Vec<NodeOrder>>,
    },
    Commit(Arc<Commit>),
    WantsReplay {
        from: Sequence,
    },
    Replay(Arc<Commit>),
    /// A call that a runner may make.
    Offered {
        runner: usize,
        order: Arc<FilterOrder>,
    },
}

/// The bus.
#[derive(Debug, Default)]
pub(super) struct Network {
    /// Commands without an answer.
    pub(super) open: BTreeMap<CommandId, (Party, Arc<CommandEnvelope>)>,
    /// The bus carries nothing until then.
    pub(super) cut_until: i64,
}

impl Network {
    /// The delays of a parcel in microseconds, one for each arrival.
    pub(super) fn delays(&self, random: &mut SmallRng, troubled: bool, now: i64) -> Vec<i64> {
        if !troubled {
            return vec![random.random_range(100..1_000)];
        }
        if now < self.cut_until {
            return Vec::new();
        }
        let copies = match random.random_range(0..20) {
            0..=1 => 0,
            2..=3 => 2,
            _ => 1,
        };
        (0..copies).map(|_| delay(random)).collect()
    }
}

fn delay(random: &mut SmallRng) -> i64 {
    match random.random_range(0..20) {
        0 => random.random_range(500_000..30_000_000),
        1..=3 => random.random_range(20_000..500_000),
        _ => random.random_range(100..20_000),
    }
}
