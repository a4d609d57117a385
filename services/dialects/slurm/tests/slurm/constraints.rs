//! The language of features.

use muster_schemas::resources::NodeFilter;
use muster_slurm::features::{Way, names, parse};
use proptest::prelude::*;

fn has(name: &str) -> NodeFilter {
    NodeFilter::Has(name.into())
}

fn ways(text: &str) -> Vec<Way> {
    parse(text).unwrap_or_else(|| panic!("{text}"))
}

/// SL-C-12: `a&b`, `a|b`.
#[test]
fn features_are_joined_by_and_and_or() {
    assert_eq!(ways("a")[0].filter(), Some(has("a")));
    assert_eq!(ways("a&b")[0].filter(), Some(NodeFilter::All(vec![has("a"), has("b")])));
    assert_eq!(ways("a|b")[0].filter(), Some(NodeFilter::Any(vec![has("a"), has("b")])));
    assert_eq!(
        ways("(a|b)&c")[0].filter(),
        Some(NodeFilter::All(vec![NodeFilter::Any(vec![has("a"), has("b")]), has("c")]))
    );
}

/// SL-C-09: every named feature is listed, so that it can be checked.
#[test]
fn the_features_of_a_constraint_are_listed() {
    let all = |text: &'static str| names(text).collect::<Vec<_>>();
    assert_eq!(all("[(a&b)*2&c*1]|d , e"), ["a", "b", "c", "d", "e"]);
    assert!(all("").is_empty() && all("[]*2").is_empty());
}

/// SL-C-12: `[a|b]`: one feature for all nodes together.
#[test]
fn brackets_choose_once_for_all_nodes() {
    let both = ways("[a|b]&c");
    assert_eq!(both.len(), 2);
    assert_eq!(both[0].filter(), Some(NodeFilter::All(vec![has("a"), has("c")])));
    assert_eq!(both[1].filter(), Some(NodeFilter::All(vec![has("b"), has("c")])));
}

/// SL-C-12: `a*2`.
#[test]
fn a_count_asks_for_so_many_nodes_of_a_kind() {
    let counted = ways("a*2&(b|c)*3&d");
    assert_eq!(counted.len(), 1);
    assert_eq!(counted[0].some_nodes, [(has("a"), 2), (NodeFilter::Any(vec![has("b"), has("c")]), 3)]);
    assert_eq!(counted[0].filter(), Some(has("d")));
}

#[test]
fn what_is_no_constraint_is_refused() {
    for text in ["", "a&", "|a", "(a", "a)", "a*", "a*0", "a b", "[a|b", "()", &"(".repeat(1000), &"[a|b]&".repeat(9)] {
        assert_eq!(parse(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_constraint_or_not(text in "[ab&|()\\[\\]*12,]{0,24}|\\PC{0,20}") {
        if let Some(ways) = parse(&text) {
            prop_assert!(!ways.is_empty() && ways.len() <= 64);
        }
    }
}
