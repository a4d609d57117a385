//! What a filter on properties costs over 100,000 resources.

use super::{policy, scene};
use crate::bench::{
    Bench,
    figure::{Figure, quantile},
};
use anyhow::{Result, anyhow, ensure};
use muster_oar::{
    predicate,
    resources::value::{Kind, Value},
};
use muster_planner::{
    Engine,
    model::{ComponentDemand, Demand},
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    cluster::QueueSpec,
    resources::{Alternative, NodeFilter, PropertyValue, Relation, Request},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

/// Resources: the cores of nodes of 32 cores.
const RESOURCES: usize = 100_000;
const CORES: u32 = 32;
/// How often each is measured.
const ROUNDS: usize = 20;
const FILTER: &str = "wing = 'east' AND mem >= 128 AND NOT (rack LIKE 'old%')";

/// The dialect's filter over all resources, and a pass for a job with such a filter: the first one of its kind, and another one.
pub fn predicate(bench: &Bench) -> Result<Vec<Figure>> {
    let resources = bench.count(RESOURCES).next_multiple_of(CORES as usize);
    let mut of_dialect = Vec::new();
    let values: Vec<BTreeMap<String, Value>> = (0..resources).map(properties).collect();
    for _ in 0..ROUNDS {
        of_dialect.push(evaluate(&values)?);
    }
    let (mut first, mut again) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let [one, other] = passes(u32::try_from(resources)? / CORES)?;
        first.push(one);
        again.push(other);
    }
    let figure = |what: &str, times: &mut [Duration], target_ms| {
        Figure::time(format!("{what}, {resources} resources, p50"), quantile(times, 0.5), target_ms)
    };
    Ok(vec![
        figure("filter of `-p` read and evaluated on each", &mut of_dialect, 20.0),
        figure("first pass for a job with a filter", &mut first, 20.0),
        figure("pass for another job with the same filter", &mut again, 1.0),
    ])
}

/// The properties of a resource.
fn properties(number: usize) -> BTreeMap<String, Value> {
    let text = |text: &str| Value::Text(text.to_owned());
    let wing = if number.is_multiple_of(2) { "east" } else { "west" };
    let rack = format!("{}{}", if number.is_multiple_of(5) { "old" } else { "new" }, number % 40);
    [
        ("wing".to_owned(), text(wing)),
        ("mem".to_owned(), Value::Integer(64 << (number % 3))),
        ("rack".to_owned(), text(&rack)),
    ]
    .into()
}

fn evaluate(values: &[BTreeMap<String, Value>]) -> Result<Duration> {
    let fields = [("wing", Kind::Text), ("mem", Kind::Integer), ("rack", Kind::Text)];
    let fields = fields.map(|(name, kind)| (name.to_owned(), kind)).into();
    let begin = Instant::now();
    let filter = predicate::read(FILTER, &fields).map_err(|mistake| anyhow!("{mistake:?}"))?;
    let matching = values.iter().filter(|values| filter.matches(values)).count();
    let time = begin.elapsed();
    ensure!(matching > 0, "nothing matches");
    Ok(time)
}

/// The same filter as the planner has it.
fn filter() -> NodeFilter {
    let compare = |property: &str, relation, value| NodeFilter::Compare { property: property.into(), relation, value };
    let old = compare("rack", Relation::Equal, PropertyValue::Text("old".into()));
    NodeFilter::All(vec![
        compare("wing", Relation::Equal, PropertyValue::Text("east".into())),
        compare("mem", Relation::GreaterOrEqual, PropertyValue::Number(128)),
        NodeFilter::Not(Box::new(old)),
    ])
}

/// The times of the first pass for a job with the filter, and of one for another job of the same shape.
fn passes(nodes: u32) -> Result<[Duration; 2]> {
    let mut engine = Engine::new(policy("conservative")?)?;
    for number in 0..nodes {
        let mut node = scene::node(number);
        node.cores = CORES;
        let wing = if number.is_multiple_of(2) { "east" } else { "west" };
        let mem = 64_i64 << (number % 3);
        node.properties = [
            ("wing".to_owned(), PropertyValue::Text(wing.into())),
            ("mem".to_owned(), PropertyValue::Number(mem)),
            ("rack".to_owned(), PropertyValue::Text(if number.is_multiple_of(5) { "old" } else { "new" }.into())),
        ]
        .into();
        engine.set_node(NodeId(number), Arc::new(node), true);
    }
    engine.set_queue(&QueueSpec { name: "main".into(), ..QueueSpec::default() });
    let request = Request { filter: Some(filter()), ..Request::default() };
    let way = Alternative { requests: vec![request], walltime_seconds: Some(3_600), ..Alternative::default() };
    let component =
        ComponentDemand { queue: "main".into(), reservation: None, deadline: None, alternatives: [way].into() };
    let demand = Arc::new(Demand { components: vec![component], sharing: None, fixed: None, guard_seconds: 0 });
    let now = Timestamp::from_unix_seconds(1_800_000_000);
    let mut pass = |number| -> Result<Duration> {
        let (id, demand) = (JobId::job(number), demand.clone());
        let begin = Instant::now();
        engine.enqueue(scene::queued(id, demand, scene::holder(0), now));
        let starts = engine.pass(now, &BTreeSet::new()).starts.len();
        let time = begin.elapsed();
        engine.dequeue(id);
        ensure!(starts == 1, "job {number} does not start");
        Ok(time)
    };
    Ok([pass(1)?, pass(2)?])
}
