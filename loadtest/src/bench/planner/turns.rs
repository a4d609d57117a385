//! How fast cycles by turns are: the fifo policy of PBS with fair share, prime time, and limits of 100 queues.

use super::{
    ENDS, USUAL, full_pass, passes_after_ends,
    policies::{GROUPS, fair_share},
    scaled,
    scene::{Scene, turn_queue},
};
use crate::bench::{
    Bench,
    figure::{Figure, quantile},
};
use anyhow::Result;
use muster_schemas::{
    Timestamp,
    policy::{Limit, LimitPer, MOST_STARTS, OrderKey, OtherHours, Period, Policy, Share, ShareTable, TurnRules, Turns},
};
use std::sync::Arc;

const QUEUES: usize = 100;
/// Users of each group in the table of shares.
const USERS_OF_GROUP: usize = 20;
/// Periods of other hours: nights and weekends of 400 days.
const PERIODS: i64 = 400;

/// Full cycles, and cycles after the end of one job.
pub fn turns(bench: &Bench) -> Result<Vec<Figure>> {
    let (nodes, jobs, shapes) = scaled(bench, USUAL);
    let mut scene = Scene::by_turns(nodes, jobs, shapes, QUEUES);
    scene.policy = Arc::new(policy(scene.now));
    let mut engine = scene.engine(&scene.policy)?;
    while scene.plan(&mut engine).is_cut_short {}
    let words = scene.words();
    let measure = format!("full cycle by turns (fair share, {QUEUES} queues, limits, prime time), {words}");
    let mut figures = vec![Figure::time(measure, full_pass(&scene)?, 150.0)];
    let mut times = passes_after_ends(&mut scene, bench.count(ENDS))?;
    for part in [0.5, 0.99] {
        let measure = format!("cycle by turns after one job ended, {words}, p{}", part * 100.0);
        figures.push(Figure::time(measure, quantile(&mut times, part), 5.0));
    }
    Ok(figures)
}

fn policy(now: Timestamp) -> Policy {
    let by = |name: &str| OrderKey::Formula { text: format!("attribute(\"{name}\")"), descending: false };
    let period = |day: i64| {
        let from = now.plus_seconds(day * 86_400 + 3_600);
        Period { from, until: from.plus_seconds(43_200) }
    };
    let other_hours = OtherHours {
        periods: (0..PERIODS).map(period).collect(),
        order: vec![by("walltime_seconds")],
        rules: TurnRules::default(),
    };
    let group = |group: usize| Share { name: format!("group{group}"), parent: 0, shares: 10 + group as u32 };
    let user = |user: usize| Share {
        name: format!("user{user}"),
        parent: (user / USERS_OF_GROUP + 2) as u32,
        shares: 1 + user as u32 % 5,
    };
    let members = (0..GROUPS).map(group).chain((0..GROUPS * USERS_OF_GROUP).map(user)).collect();
    let limit = |number: usize, per, most| Limit {
        per,
        queue: Some(turn_queue(number)),
        max_running_jobs: Some(most),
        ..Limit::default()
    };
    let limits =
        (0..QUEUES).flat_map(|number| [limit(number, LimitPer::All, 5_000), limit(number, LimitPer::User, 40)]);
    let server = Limit { per: LimitPer::All, max_running_jobs: Some(50_000), ..Limit::default() };
    let turns = Turns {
        rules: fair_share(),
        other_hours: Some(other_hours),
        shares: Some(ShareTable { unknown_shares: 10, members }),
        queues: (0..QUEUES).map(turn_queue).collect(),
        ..Turns::default()
    };
    Policy {
        name: "fifo".into(),
        order: vec![by("cpu_seconds")],
        limits: std::iter::once(server).chain(limits).collect(),
        max_starts: MOST_STARTS,
        turns: Some(Box::new(turns)),
        ..Policy::default()
    }
}
