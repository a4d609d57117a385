//! What quotas with a weekly calendar cost a pass.

use super::{full_pass, policy, scaled, scene::Scene};
use crate::bench::{Bench, figure::Figure};
use anyhow::Result;
use muster_schemas::quota::{QuotaAmount, QuotaPeriod, QuotaRule, QuotaSet, QuotaTable, WEEK_SECONDS};
use std::sync::Arc;

/// Nodes, waiting jobs and distinct requests.
const SITE: (u32, usize, usize) = (1_000, 10_000, 1_000);
/// Rules for users by name, in each set.
const NAMED_USERS: usize = 50;

/// Full passes without and with quotas.
pub fn quotas(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (name, target_ms) in [("easy", 100.0), ("conservative", 2_000.0)] {
        let (nodes, jobs, shapes) = scaled(bench, SITE);
        let mut scene = Scene::new(nodes, jobs, shapes);
        scene.policy = policy(name)?;
        let words = scene.words();
        let without = format!("full pass without quotas, `{name}`, {words}");
        figures.push(Figure::time(without, full_pass(&scene)?, target_ms));
        scene.quotas = Some(Arc::new(table()));
        let with = format!("full pass with quotas of users and a week of 14 periods, `{name}`, {words}");
        figures.push(Figure::time(with, full_pass(&scene)?, target_ms));
    }
    Ok(figures)
}

/// Days and nights have different limits for each user and for all together.
fn table() -> QuotaTable {
    let rule = |user: String, cores, jobs| QuotaRule {
        queue: "*".into(),
        account: "*".into(),
        kind: "*".into(),
        user,
        cores: Some(QuotaAmount::Fixed(cores)),
        jobs: Some(QuotaAmount::Fixed(jobs)),
        core_seconds: Some(QuotaAmount::BillionthsOfCores(86_400_000_000_000)),
    };
    let set = |name: &str, cores: u64| {
        let named = (0..NAMED_USERS).map(|user| rule(format!("user{user}"), 2 * cores, 100));
        QuotaSet { name: name.into(), rules: named.chain([rule("/".into(), cores, 50)]).collect() }
    };
    let day = |day: u32| {
        let (begin, noon) = (day * 86_400, day * 86_400 + 43_200);
        [QuotaPeriod { begin, end: noon, set: 0 }, QuotaPeriod { begin: noon, end: begin + 86_400, set: 1 }]
    };
    let week: Vec<QuotaPeriod> = (0..WEEK_SECONDS / 86_400).flat_map(day).collect();
    QuotaTable { sets: vec![set("day", 256), set("night", 1024)], week, ..QuotaTable::default() }
}
