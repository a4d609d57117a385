//! Which resources a request gets.

use crate::support::{ids, nodes, s};
use muster_oar::{
    matching::{Forest, Lack, possible},
    order::Order,
    request::{self, site::Site},
    resources::{
        property::{AVAILABLE_UPTO, NODE, SCHEDULER_PRIORITY, SUSPENDED_JOBS, TYPE},
        state::State,
        table::Table,
        value::Value,
    },
};
use proptest::prelude::*;

fn forest(table: &Table, filter: &str, request: &str) -> Forest {
    let site = Site::of(table);
    let job = request::filter(filter, &site).expect("a filter");
    let read = request::alternative(request, &site).expect("a request");
    Forest::new(&read.groups, table, &Order::default(), &job, &muster_oar::predicate::Predicate::ALWAYS)
}

/// The resources that a request gets if some are busy, in order.
fn placed(table: &Table, filter: &str, busy: &str, request: &str) -> Result<Vec<u32>, Lack> {
    let busy = ids(busy);
    let found = forest(table, filter, request).find(&|id| !busy.contains(&id))?;
    let mut all = found.concat();
    all.sort_unstable();
    Ok(all)
}

fn on_s(busy: &str, request: &str) -> Vec<u32> {
    placed(&s(), "", busy, request).unwrap_or_else(|lack| panic!("{request}: {lack}"))
}

/// OAR-R-06: an item of the lowest level is taken whole, but only as far as it matches.
#[test]
fn the_lowest_level_is_taken_whole() {
    assert_eq!(on_s("1", "/nodes=1"), ids("5-8"));
    assert_eq!(placed(&s(), "core<=2", "", "/nodes=1"), Ok(ids("1-2")));
    assert_eq!(placed(&s(), "core<=2", "3-16", "/nodes=1"), Ok(ids("1-2")));
    let mut table = s();
    table.set_state(&[1], State::Dead).expect("set");
    assert_eq!(placed(&table, "", "", "/nodes=1"), Ok(ids("2-4")));
    table.set_state(&[1], State::Suspected).expect("set");
    assert_eq!(placed(&table, "", "1", "/nodes=1"), Ok(ids("5-8")));
}

/// OAR-R-07: each level is counted inside its parent.
#[test]
fn levels_are_counted_inside_their_parents() {
    assert_eq!(on_s("", "/switch=1/nodes=2/cpu=1"), ids("1-2, 5-6"));
    assert_eq!(on_s("", "/switch=2/nodes=1"), ids("1-4, 9-12"));
    assert_eq!(on_s("", "/switch=2/nodes=2/core=1"), ids("1, 5, 9, 13"));
    assert_eq!(on_s("5-8", "/switch=1/nodes=2"), ids("9-16"));
    assert!(placed(&s(), "", "5-8, 13", "/switch=1/nodes=2").is_err());
    assert_eq!(on_s("5-8, 13", "/switch=2/nodes=1"), ids("1-4, 9-12"));
}

/// OAR-R-08: groups get different resources.
#[test]
fn groups_get_different_resources() {
    assert_eq!(on_s("", "/nodes=1+/nodes=1"), ids("1-8"));
    assert_eq!(on_s("", "/core=1+/core=1+/nodes=1"), ids("1-2, 5-8"));
    assert!(placed(&s(), "", "", "/nodes=3+/nodes=2").is_err());
    assert_eq!(placed(&s(), "", "", "{core<=2}/nodes=1+{core>2 AND core<5}/nodes=1"), Ok(ids("1-4")));
}

/// OAR-R-09, W2: some order of choosing is found in which all groups fit.
#[test]
fn groups_are_placed_if_some_order_works() {
    assert_eq!(on_s("", "/nodes=1+{switch='s1'}/nodes=2"), ids("1-12"));
    let found = forest(&s(), "", "/nodes=1+{switch='s1'}/nodes=2").find(&|_| true).expect("it fits");
    assert_eq!(found, [ids("9-12"), ids("1-8")]);
    assert_eq!(on_s("", "/core=14+{core=1}/core=1+{core=2}/core=1"), ids("1-16"));
    // The order given goes first.
    let found = forest(&s(), "", "/core=1+/nodes=1").find(&|_| true).expect("it fits");
    assert_eq!(found, [ids("1"), ids("5-8")]);
}

/// OAR-R-10, W2: ALL, BEST and BESTHALF at one moment.
#[test]
fn all_best_and_half_of_the_best() {
    assert_eq!(on_s("1", "/nodes=BEST"), ids("5-16"));
    assert_eq!(on_s("1", "/nodes=BESTHALF"), ids("5-8"));
    assert_eq!(on_s("", "/nodes=BESTHALF"), ids("1-8"));
    assert_eq!(on_s("", "/nodes=ALL"), ids("1-16"));
    assert!(placed(&s(), "", "1", "/nodes=ALL").is_err());
    assert!(placed(&s(), "", "1-12", "/nodes=BESTHALF").is_err());
    assert_eq!(on_s("1-12", "/nodes=BEST"), ids("13-16"));
    assert!(placed(&s(), "", "1-16", "/nodes=BEST").is_err());
    assert_eq!(on_s("1, 9-12", "/switch=2/nodes=BEST"), ids("5-8, 13-16"));
    assert_eq!(on_s("1-3", "/switch=1/nodes=ALL/core=1"), ids("4, 5"));
    assert!(placed(&s(), "core > 99", "", "/nodes=ALL").is_err());
}

/// OAR-R-12: resources are tried in the order of the site, and a block ranks by its best resource.
#[test]
fn first_fit_in_the_order_of_the_site() {
    let mut table = s();
    table.set(&ids("1-8"), SCHEDULER_PRIORITY, Some(Value::Integer(2))).expect("set");
    assert_eq!(placed(&table, "", "", "/nodes=1"), Ok(ids("9-12")));
    table.set(&ids("7"), SCHEDULER_PRIORITY, Some(Value::Integer(-1))).expect("set");
    assert_eq!(placed(&table, "", "", "/nodes=1"), Ok(ids("5-8")));
    assert_eq!(placed(&table, "", "", "/switch=1/nodes=1"), Ok(ids("5-8")));
    let mut table = s();
    table.set(&ids("1"), SUSPENDED_JOBS, Some(Value::text("YES"))).expect("set");
    table.set(&ids("2-4"), AVAILABLE_UPTO, Some(Value::Integer(5000))).expect("set");
    assert_eq!(placed(&table, "", "", "/core=13"), Ok(ids("1, 5-16")));
    table.set_state(&ids("5-16"), State::Suspected).expect("set");
    assert_eq!(placed(&table, "", "", "/core=2"), Ok(ids("1, 2")));
    assert_eq!(placed(&table, "", "", "/nodes=1"), Ok(ids("1-4")));
    let far = Order::of_far_reservation().rank(table.resources());
    assert_eq!(far.iter().map(|one| one.id()).collect::<Vec<_>>(), ids("1-16"));
    let of_job = |start| Order::default().of_job(start, 1000);
    assert_eq!(
        [None, Some(1300), Some(1301)].map(of_job),
        [Order::default(), Order::default(), Order::of_far_reservation()]
    );
    let read = Order::read("scheduler_priority, state_num ASC,  core desc", Some(table.fields())).expect("an order");
    assert_eq!(read.rank(table.resources()).iter().map(|one| one.id()).take(5).collect::<Vec<_>>(), [4, 3, 2, 1, 16]);
    for (text, expected) in [
        ("core, cores", "column 6: no property is called 'cores'; is 'core' meant?"),
        ("core UP", "column 1: expected ASC or DESC, found 'UP'"),
        ("core ASC cpu", "column 1: expected a comma, found 'cpu'"),
        ("", "column 1: no property is called ''"),
    ] {
        assert_eq!(Order::read(text, Some(table.fields())).expect_err(text).to_string(), expected);
    }
}

/// OAR-R-11: resources of other types have no node and are asked for by their type alone.
#[test]
fn licences_are_asked_for_by_their_type() {
    let mut table = s();
    for _ in 0..3 {
        table.add(&[(TYPE, Value::text("licence"))]).expect("a licence");
    }
    assert_eq!(placed(&table, "", "", "/nodes=1+{type='licence'}/resource_id=2"), Ok(ids("1-4, 17-18")));
    assert_eq!(placed(&table, "", "", "/resource_id=BEST"), Ok(ids("1-16")));
    assert!(placed(&table, "", "", "{type='licence'}/nodes=1").is_err());
    assert_eq!(table.resource(17).map(|one| (one.is_default(), one.text(NODE))), Some((false, "")));
}

/// OAR-R-15, W2: a request that all resources together cannot satisfy says what is missing.
#[test]
fn what_never_fits_says_what_is_missing() {
    let lack = placed(&s(), "", "", "/nodes=5").expect_err("too much");
    assert_eq!(lack.to_string(), "nodes: 5 asked, 4 match, 4 of them fit");
    let lack = placed(&s(), "", "1-4", "/switch=2/nodes=2").expect_err("too much");
    assert_eq!(lack.to_string(), "switch: 2 asked, 2 match, 1 of them fit");
    let lack = placed(&s(), "", "", "/nodes=3+/nodes=2").expect_err("too much");
    assert_eq!(
        (lack.group, lack.to_string()),
        (None, "each group fits alone, but not all of them on different resources".to_owned())
    );
    let lack = placed(&s(), "", "", "/nodes=1+{core=99}/core=1").expect_err("no such core");
    assert_eq!((lack.group, lack.to_string().as_str()), (Some(1), "core: 1 asked, 0 match, 0 of them fit"));
    let mut table = s();
    table.set_state(&ids("1-4"), State::Absent).expect("set");
    table.set_state(&ids("5-8"), State::Suspected).expect("set");
    assert!(placed(&table, "", "", "/nodes=4").is_ok(), "absent and suspected resources exist");
    table.set_state(&ids("1-4"), State::Dead).expect("set");
    assert!(placed(&table, "", "", "/nodes=4").is_err());
}

/// OAR-R-15, W2: a job is refused if no alternative can ever run; others are left out.
#[test]
fn a_job_that_can_never_run_is_refused() {
    let mut table = s();
    let site = Site::of(&table);
    let always = muster_oar::predicate::Predicate::ALWAYS;
    let check = |table: &Table, filter: &str, requests: &[&str]| {
        let job = request::filter(filter, &site).expect("a filter");
        possible(&request::alternatives(requests, &site).expect("requests"), table, &job, &always)
    };
    assert_eq!(check(&table, "", &["nodes=5", "nodes=4"]), Ok(vec![1]));
    let refusal = check(&table, "", &["nodes=5", "nodes=6"]).expect_err("refused");
    let expected = "there are not enough resources: nodes: 5 asked, 4 match, 4 of them fit (job id -5)";
    assert_eq!((refusal.to_string().as_str(), refusal.code.exit_status()), (expected, 8));
    assert!(check(&table, "core > 99", &["core=1"]).is_err());
    table.set_state(&ids("1-16"), State::Suspected).expect("set");
    assert_eq!(check(&table, "", &["nodes=4"]), Ok(vec![0]));
    table.set_state(&[1], State::Dead).expect("set");
    assert_eq!(check(&table, "", &["core=16"]).map_err(|refusal| refusal.code.job_id_code()), Err(Some(-5)));
}

#[test]
fn many_equal_groups_are_no_trap() {
    let request = vec!["/nodes=1"; 30].join("+");
    assert_eq!(placed(&nodes(30), "", "", &request), Ok((1..=30).collect()));
    assert!(placed(&nodes(29), "", "", &request).is_err());
    let different: Vec<String> = (1..=12).map(|core| format!("{{resource_id <= {core}}}/nodes=1")).collect();
    assert!(placed(&nodes(12), "", "", &different.join("+")).is_ok());
    let backwards: Vec<String> = different.iter().rev().cloned().collect();
    assert!(placed(&nodes(12), "", "", &backwards.join("+")).is_ok());
}

proptest! {
    /// OAR-R-06, OAR-R-07: whatever is busy, what a request gets is free, and counts and wholeness are as asked.
    #[test]
    fn what_is_taken_is_free_and_whole(busy in proptest::collection::btree_set(1..17_u32, 0..10), switches in 1..3_u32, count in 1..3_u32) {
        let table = s();
        let request = format!("/switch={switches}/nodes={count}");
        let found = forest(&table, "", &request).find(&|id| !busy.contains(&id));
        let is_whole = |node: u32| (node * 4 - 3..=node * 4).all(|id| !busy.contains(&id));
        let on_switch = |switch: u32| [switch * 2 - 1, switch * 2].into_iter().filter(|node| is_whole(*node)).count() as u32;
        let fits = (1..=2).filter(|switch| on_switch(*switch) >= count).count() as u32 >= switches;
        prop_assert_eq!(found.is_ok(), fits);
        if let Ok(found) = found {
            let found = found.concat();
            prop_assert_eq!(found.len() as u32, switches * count * 4);
            prop_assert!(found.iter().all(|id| !busy.contains(id)));
            let nodes: std::collections::BTreeSet<u32> = found.iter().map(|id| (id - 1) / 4).collect();
            prop_assert_eq!(nodes.len() as u32, switches * count);
        }
    }

    /// OAR-R-12: the same input gives the same resources, and freeing more never makes a request fail.
    #[test]
    fn more_free_resources_never_hurt(busy in proptest::collection::btree_set(1..17_u32, 0..12), freed in 1..17_u32, which in 0..5_usize) {
        let table = s();
        let request = ["/nodes=2", "/switch=1/core=5", "/nodes=1+{switch='s1'}/cpu=2", "/cpu=BESTHALF", "/nodes=ALL/core=1"][which];
        let forest = forest(&table, "", request);
        let with = forest.find(&|id| !busy.contains(&id));
        prop_assert_eq!(&with, &forest.find(&|id| !busy.contains(&id)));
        let more = forest.find(&|id| id == freed || !busy.contains(&id));
        prop_assert!(with.is_err() || more.is_ok());
    }
}
