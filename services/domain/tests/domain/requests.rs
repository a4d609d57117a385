//! The minimum of requests, and the nodes that serve them.

use crate::support::*;
use muster_domain::requests::{Minimum, matches, minimum, node_serves};
use muster_schemas::{
    cluster::ClusterSettings,
    resources::{Count, Gpus, Level, LevelCount, Memory, NodeFilter, Per, PropertyValue, Relation, Request},
};

fn least(request: &Request) -> Minimum {
    minimum(request, &ClusterSettings::default())
}

fn path(levels: &[(Level, u32)]) -> Request {
    let level = |(level, count): &(Level, u32)| LevelCount { level: level.clone(), count: Count::exactly(*count) };
    Request { path: levels.iter().map(level).collect(), ..Request::default() }
}

fn group() -> Level {
    Level::Group("switch".into())
}

#[test]
fn the_default_is_one_core() {
    let expected = Minimum { nodes: 1, tasks: 1, cores: 1, gpus: 0, memory_bytes: 0 };
    assert_eq!(least(&Request::default()), expected);
}

#[test]
fn counts_multiply_down_the_path() {
    let found = least(&path(&[(group(), 2), (Level::Node, 3), (Level::Core, 4)]));
    assert_eq!((found.nodes, found.tasks, found.cores), (6, 6, 24));
    let found = least(&path(&[(Level::Node, 2), (Level::Gpu, 3)]));
    assert_eq!((found.nodes, found.gpus), (2, 6));
    let found = least(&path(&[(Level::Core, 8)]));
    assert_eq!((found.nodes, found.cores), (1, 8));
}

#[test]
fn tasks_ask_for_cores_and_nodes() {
    let request = Request { tasks: Some(10), tasks_per_node: Some(4), cpus_per_task: 2, ..Request::default() };
    let found = least(&request);
    assert_eq!((found.nodes, found.tasks, found.cores), (3, 10, 20));
    let per_node = Request { cpus_per_task: 4, ..path(&[(Level::Node, 2)]) };
    assert_eq!(least(&per_node).cores, 8, "one task for each node");
}

#[test]
fn the_least_of_a_range_counts() {
    let ranged = |count| Request { path: vec![LevelCount { level: Level::Node, count }], ..Request::default() };
    assert_eq!(least(&ranged(Count::Range { min: 2, max: 9 })).nodes, 2);
    assert_eq!(least(&ranged(Count::All)).nodes, 1);
    assert_eq!(least(&ranged(Count::Best)).nodes, 1);
}

#[test]
fn memory_and_gpus_are_counted_by_what_is_said() {
    let request = Request { tasks: Some(6), cpus_per_task: 2, ..path(&[(Level::Node, 3)]) };
    for (per, times) in [(Per::Node, 3), (Per::Task, 6), (Per::Core, 12), (Per::Request, 1)] {
        let memory = Request { memory: Some(Memory { bytes: 5, per }), ..request.clone() };
        assert_eq!(least(&memory).memory_bytes, 5 * times, "{per:?}");
        let gpus = Request { gpus: Some(Gpus { count: 2, per, model: None }), ..request.clone() };
        assert_eq!(least(&gpus).gpus, 2 * times, "{per:?}");
    }
    let settings = ClusterSettings { default_memory_per_core_bytes: Some(7), ..ClusterSettings::default() };
    assert_eq!(minimum(&request, &settings).memory_bytes, 84);
}

#[test]
fn products_that_do_not_fit_are_as_large_as_can_be() {
    let huge = path(&[(group(), u32::MAX), (Level::Node, u32::MAX), (Level::Core, u32::MAX)]);
    assert_eq!(least(&huge).cores, u64::MAX);
}

#[test]
fn filters_compare_properties() {
    let mut spec = node("node1", 4);
    spec.gpus = vec!["a100".into()];
    spec.properties = [
        ("fast".to_owned(), PropertyValue::Flag(true)),
        ("slow".to_owned(), PropertyValue::Flag(false)),
        ("rack".to_owned(), PropertyValue::Number(7)),
        ("switch".to_owned(), PropertyValue::Text("s1".into())),
    ]
    .into();
    let has = |name: &str| NodeFilter::Has(name.into());
    let compare = |property: &str, relation, value| NodeFilter::Compare { property: property.into(), relation, value };
    let rack = |relation, number| compare("rack", relation, PropertyValue::Number(number));
    assert!(matches(&spec, &has("fast")) && !matches(&spec, &has("slow")) && !matches(&spec, &has("none")));
    assert!(matches(&spec, &rack(Relation::Equal, 7)) && !matches(&spec, &rack(Relation::NotEqual, 7)));
    assert!(matches(&spec, &rack(Relation::Less, 8)) && !matches(&spec, &rack(Relation::Less, 7)));
    assert!(matches(&spec, &rack(Relation::LessOrEqual, 7)) && matches(&spec, &rack(Relation::GreaterOrEqual, 7)));
    assert!(matches(&spec, &rack(Relation::Greater, 6)) && !matches(&spec, &rack(Relation::Greater, 7)));
    let text = |value: &str| PropertyValue::Text(value.into());
    assert!(matches(&spec, &compare("switch", Relation::Equal, text("s1"))));
    assert!(!matches(&spec, &compare("rack", Relation::Equal, text("7"))), "types are not mixed");
    assert!(!matches(&spec, &compare("none", Relation::NotEqual, text("s1"))), "what is not there does not match");
    assert!(matches(&spec, &NodeFilter::All(vec![has("fast"), NodeFilter::Not(Box::new(has("slow")))])));
    assert!(matches(&spec, &NodeFilter::Any(vec![has("slow"), has("fast")])));
    assert!(!matches(&spec, &NodeFilter::Any(Vec::new())) && matches(&spec, &NodeFilter::All(Vec::new())));
    let gpus = |model: Option<&str>| Some(Gpus { count: 1, per: Per::Node, model: model.map(str::to_owned) });
    assert!(node_serves(&spec, &Request { gpus: gpus(None), ..Request::default() }));
    assert!(!node_serves(&spec, &Request { gpus: gpus(Some("h100")), ..Request::default() }));
    assert!(!node_serves(&spec, &Request { excluded_nodes: vec!["node1".into()], ..Request::default() }));
    assert!(!node_serves(&spec, &Request { nodes: vec!["node2".into()], ..Request::default() }));
}
