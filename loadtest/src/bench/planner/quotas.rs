//! What quotas with a weekly calendar cost a pass.

use super::{ENDS, ENDS_WITH_PROMISES, full_pass, passes_after_ends, policy, scaled, scene::Scene};
use crate::bench::{
    Bench,
    figure::{Figure, quantile},
};
use anyhow::Result;
use muster_schemas::quota::{QuotaAmount, QuotaPeriod, QuotaRule, QuotaSet, QuotaTable, WEEK_SECONDS};
use std::sync::Arc;

/// Nodes, waiting jobs and distinct requests.
const SITE: (u32, usize, usize) = (1_000, 10_000, 1_000);
/// Rules for users by name, in each set.
const NAMED_USERS: usize = 50;
/// The most milliseconds of a full pass, and of one after a job has ended.
const TARGETS_MS: (f64, f64) = (500.0, 20.0);

/// Full passes without and with quotas on a site of OAR, and passes after one job has ended. Under `conservative` each waiting job
/// has its place in time, as in OAR.
pub fn quotas(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    // A row takes minutes: each figure is told at once.
    let mut tell = |figure: Figure| {
        eprintln!("{figure}");
        figures.push(figure);
    };
    let (full_ms, after_end_ms) = TARGETS_MS;
    for (name, ends) in [("easy", ENDS), ("conservative", ENDS_WITH_PROMISES)] {
        let (nodes, jobs, shapes) = scaled(bench, SITE);
        let mut scene = Scene::of_tree(nodes, jobs, shapes);
        scene.policy = policy(name)?;
        let without = format!("full pass without quotas, `{name}`, {}", scene.words());
        tell(Figure::time(without, full_pass(&scene)?, full_ms));
        scene.quotas = Some(Arc::new(table()));
        let rules = "quotas of users and a week of 14 periods";
        let with = format!("full pass with {rules}, `{name}`, {}", scene.words());
        tell(Figure::time(with, full_pass(&scene)?, full_ms));
        let mut times = passes_after_ends(&mut scene, bench.count(ends))?;
        for part in [0.5, 0.99] {
            let measure = format!("pass after one job ended with {rules}, `{name}`, p{}", part * 100.0);
            tell(Figure::time(measure, quantile(&mut times, part), after_end_ms));
        }
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
