//! Random histories of a cluster: happenings, applied both to an engine and to the plain lists of the reference.

use crate::{
    clusters::{Cluster, clusters, policies},
    jobs::{RESERVATIONS, demands, holders, nodes},
};
use muster_planner::model::{Demand, Holder};
use muster_schemas::{
    policy::{BackfillMode, Policy},
    resources::NodeSpec,
};
use proptest::{prelude::*, sample::Index};
use std::sync::Arc;

/// A job before it has a number.
#[derive(Clone, Debug)]
pub struct Draft {
    pub demand: Arc<Demand>,
    pub holder: Arc<Holder>,
    pub priority: i64,
    /// Tasks of an array, and how many of them may run at a time.
    pub array: Option<(u32, u32)>,
    /// How long it runs, in percent of its walltime; a job without walltime runs this many seconds.
    pub runs_percent: u32,
    /// How many equal jobs are submitted together.
    pub copies: u32,
}

/// Something that happens.
#[derive(Clone, Debug)]
pub enum Step {
    Submit(Draft),
    /// This many seconds pass, and runs end when their time has come.
    Pass(u32),
    /// The clock is set back by this many seconds.
    SetBack(u32),
    EndRun(Index),
    /// A waiting job is cancelled.
    Cancel(Index),
    /// A waiting job is held, or the first held one is released.
    Hold(Index),
    Release,
    Priority(Index, i64),
    LoseNode(Index),
    ReturnNode(Index),
    /// A node changes.
    ChangeNode(Index, Box<NodeSpec>),
    RemoveNode(Index),
    /// A removed node comes back.
    AddNode,
    /// Seconds from now until the closure begins, and how many it lasts.
    Close(Index, u32, u32),
    Reopen(Index),
    /// The name, its nodes as bits, when it begins and how long it lasts.
    Reserve(usize, u16, u32, u32),
    CancelReservation(usize),
    Licences(u32),
    /// Another policy comes into force.
    Policy(Box<Policy>),
}

/// The kinds of happenings in a history.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub modes: &'static [BackfillMode],
    /// Capacity is lost: nodes go, are closed or reserved, licences become fewer. Or the policy changes, or the
    /// clock is set back.
    pub loses_capacity: bool,
    /// Runs may last longer than their walltimes.
    pub overruns: bool,
}

/// A cluster, a policy and the happenings.
#[derive(Clone, Debug)]
pub struct History {
    pub cluster: Cluster,
    pub policy: Policy,
    pub steps: Vec<Step>,
}

prop_compose! {
    fn drafts(overruns: bool)(
        demand in demands(),
        holder in holders(),
        priority in prop_oneof![3 => Just(0_i64), 1 => -1_i64..=2],
        array in prop::option::weighted(0.15, (1_u32..=4, 1_u32..=3)),
        runs_percent in if overruns { 1..=200_u32 } else { 1..=100 },
        is_exact in any::<bool>(),
        copies in prop_oneof![3 => Just(1_u32), 1 => 2_u32..=8],
    ) -> Draft {
        // Many jobs end early, and many run as long as they may.
        Draft { demand, holder, priority, array, runs_percent: if is_exact { 100 } else { runs_percent }, copies }
    }
}

fn steps(kind: Kind) -> impl Strategy<Value = Step> {
    let index = any::<Index>;
    let common = prop_oneof![
        10 => drafts(kind.overruns).prop_map(Step::Submit),
        6 => prop_oneof![30 => 0_u32..=12, 1 => 3_590_u32..=3_610].prop_map(Step::Pass),
        2 => index().prop_map(Step::EndRun),
        1 => index().prop_map(Step::Cancel),
        1 => index().prop_map(Step::Hold),
        1 => Just(Step::Release),
        1 => (index(), -1_i64..=2).prop_map(|(job, priority)| Step::Priority(job, priority)),
    ];
    let name = || 0..RESERVATIONS.len();
    // An engine that has seen an overdue run knows more about its end than one that has not, and the clock may be set
    // back before that.
    let most_seconds_back = if kind.overruns { 0 } else { 15 };
    let set_back = (0_u32..=most_seconds_back).prop_map(Step::SetBack);
    let losses = prop_oneof![
        2 => index().prop_map(Step::LoseNode),
        2 => index().prop_map(Step::ReturnNode),
        1 => (index(), nodes()).prop_map(|(node, spec)| Step::ChangeNode(node, Box::new(spec))),
        1 => index().prop_map(Step::RemoveNode),
        1 => Just(Step::AddNode),
        1 => set_back,
        2 => (index(), 0_u32..=10, 1_u32..=15).prop_map(|(node, after, lasts)| Step::Close(node, after, lasts)),
        1 => index().prop_map(Step::Reopen),
        2 => (name(), 1_u16..16, 0_u32..=10, 1_u32..=20)
            .prop_map(|(name, nodes, after, lasts)| Step::Reserve(name, nodes, after, lasts)),
        1 => name().prop_map(Step::CancelReservation),
        1 => (0_u32..=3).prop_map(Step::Licences),
        1 => policies(kind.modes).prop_map(|policy| Step::Policy(Box::new(policy))),
    ];
    if kind.loses_capacity { prop_oneof![5 => common, 1 => losses].boxed() } else { common.boxed() }
}

prop_compose! {
    pub fn histories(kind: Kind)(
        cluster in clusters(),
        policy in policies(kind.modes),
        steps in prop::collection::vec(steps(kind), 1..25),
    ) -> History {
        History { cluster, policy, steps }
    }
}

/// The number of random cases for each property: `MUSTER_CASES`, else 200.
pub fn cases() -> ProptestConfig {
    let cases = std::env::var("MUSTER_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(200);
    ProptestConfig { cases, ..ProptestConfig::default() }
}
