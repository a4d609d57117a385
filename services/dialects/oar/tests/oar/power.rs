//! Nodes that can be had only for a time, and nodes that sleep.

use crate::support::{busy, ids, plan, s, told, wish};
use muster_oar::{
    planning::{
        gantt::Gantt,
        reservation::{self, Answer},
        search::{Scene, Wish},
    },
    power::{
        ALWAYS, Idle, KeepAlive, NEVER, NEVER_SLEEPS, NEVER_WOKEN, Pending, Purpose, Stand, Timeouts, batches,
        is_available, may_be_put_to_sleep, may_be_woken, may_sleep, stand, to_wake,
    },
    resources::{property::AVAILABLE_UPTO, state::State, table::Table, value::Value},
};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn with_upto(resources: &str, state: State, upto: i64) -> Table {
    let mut table = s();
    table.set_state(&ids(resources), state).expect("set");
    table.set(&ids(resources), AVAILABLE_UPTO, Some(Value::Integer(upto))).expect("set");
    table
}

/// OAR-E-01: what the values of `available_upto` mean.
#[test]
fn values_of_available_upto() {
    let values = [NEVER, NEVER_WOKEN, NEVER_SLEEPS, ALWAYS, 5000];
    assert_eq!(values.map(may_be_woken), [false, false, true, true, true]);
    assert_eq!(values.map(may_be_put_to_sleep), [false, true, false, true, true]);
}

/// OAR-E-02: an absent resource can be planned up to its date, and so can an alive one with a date.
#[test]
fn resources_are_planned_up_to_their_date() {
    let at = |state, upto, end| {
        let table = with_upto("1", state, upto);
        is_available(table.resource(1).expect("it exists"), Purpose::Batch, end)
    };
    for state in [State::Absent, State::Alive] {
        assert_eq!((at(state, 5000, 5000), at(state, 5000, 5001)), (true, false), "{state}");
        assert!(at(state, ALWAYS, 1_000_000_000) && at(state, NEVER_SLEEPS, 1_000_000_000));
    }
    assert!(!at(State::Absent, NEVER, 10) && !at(State::Absent, NEVER_WOKEN, 10));
    assert!(at(State::Alive, NEVER, 10) && at(State::Alive, NEVER_WOKEN, 10));
    assert!(!at(State::Suspected, ALWAYS, 10) && !at(State::Dead, ALWAYS, 10));
}

/// W6, OAR-E-03: jobs on sleeping nodes, and when these are woken (the command waits for the live system).
#[test]
fn w6_sleeping_nodes_are_planned_and_woken() {
    let table = with_upto("9-16", State::Absent, 5000);
    let running = [busy(9, "1-8", 0, 4000)];
    let place = |walltime: i64| {
        plan(&table, 0, 0, &running, &[wish(&table, 1, &[&format!("nodes=2,walltime=0:0:{walltime}")])])
    };
    let outcomes = place(3000);
    assert_eq!(told(&outcomes[0]), "0 on 9-16");
    let planned = [outcomes[0].as_ref().expect("placed").placement.clone()];
    assert_eq!(to_wake(&table, &planned, &BTreeMap::new(), 0, 600), ["n3", "n4"]);
    assert_eq!(told(&place(5000)[0]), "0 on 9-16");
    assert_eq!(told(&place(5001)[0]), "4000 on 1-8");

    let table = with_upto("9-16", State::Absent, ALWAYS);
    let gantt = Gantt::default();
    let scene = Scene { table: &table, gantt: &gantt, windows: None, limits: &|_, _| Ok(()), limit_changes: &[] };
    let demand = wish(&table, 1, &["{switch='s2'}/nodes=2,walltime=1"]);
    let Answer::Ok(accepted) =
        reservation::answer(&scene, &Wish { purpose: Purpose::Reservation, not_before: 10_000, ..demand }, 10_000)
    else {
        panic!("accepted")
    };
    let at =
        |now, pending: &BTreeMap<String, Pending>| to_wake(&table, std::slice::from_ref(&accepted), pending, now, 600);
    let none = BTreeMap::new();
    assert_eq!((at(9399, &none), at(9400, &none)), (vec![], vec!["n3".to_owned(), "n4".to_owned()]));
    // Only one wake-up of a node at a time.
    let pending = BTreeMap::from([("n3".to_owned(), Pending { ordered_at: 9400, timeout: 900 })]);
    assert_eq!(at(9410, &pending), ["n4"]);
    let asleep_for_good = with_upto("9-16", State::Absent, NEVER_WOKEN);
    assert_eq!(to_wake(&asleep_for_good, &[accepted], &none, 9400, 600), Vec::<String>::new());
}

/// W6, OAR-E-04, OAR-E-05: when an idle node goes to sleep.
#[test]
fn w6_idle_nodes_go_to_sleep() {
    let node = Idle { available_upto: ALWAYS, last_job_end: Some(1000), woken_at: None, next_start: Some(2700) };
    let sleeps = |node, now| may_sleep(node, now, 600, 600);
    assert_eq!((sleeps(node, 1599), sleeps(node, 1600)), (false, true));
    let soon = Idle { next_start: Some(2199), ..node };
    assert!(!sleeps(soon, 1600));
    assert!(sleeps(Idle { next_start: Some(2200), ..node }, 1600));
    let woken = Idle { woken_at: Some(1001), ..node };
    assert_eq!((sleeps(woken, 1600), sleeps(woken, 1601)), (false, true));
    let never = Idle { last_job_end: None, next_start: None, ..node };
    assert!(sleeps(never, 0));
    for upto in [NEVER, NEVER_SLEEPS] {
        assert!(!sleeps(Idle { available_upto: upto, ..never }, 9000));
    }
    assert!(sleeps(Idle { available_upto: NEVER_WOKEN, ..never }, 9000));
}

/// OAR-E-06: how long nodes have to answer a wake-up.
#[test]
fn nodes_have_their_time_to_wake() {
    let steps = Timeouts::read("1:500 11:1000 21:2000").expect("steps");
    assert_eq!([1, 10, 11, 20, 21, 999].map(|nodes| steps.of(nodes)), [500, 500, 1000, 1000, 2000, 2000]);
    assert_eq!((Timeouts::default().of(5), Timeouts::read("300").map(|one| one.of(7))), (900, Ok(300)));
    for text in ["", "x", "2:500", "1:500 1:600", "1:500 11", "1:500,11:1000", "1:-5"] {
        assert!(Timeouts::read(text).is_err(), "{text}");
    }
    let pending = Pending { ordered_at: 100, timeout: 900 };
    assert_eq!((pending.is_overdue(1000), pending.is_overdue(1001)), (false, true));
}

/// OAR-E-07: some idle nodes stay awake, for each filter.
#[test]
fn some_idle_nodes_stay_awake() {
    let mut table = s();
    let rules = KeepAlive::read("switch = 's1':2 & core > 8 and cpu != 'a&b:c' : 3", table.fields()).expect("rules");
    assert_eq!((rules.len(), rules[0].count, rules[1].count), (2, 2, 3));
    let everyone = |_: &str| true;
    assert_eq!(stand(&rules[0], &table, &everyone), Stand::Spare(0));
    assert_eq!(stand(&rules[1], &table, &everyone), Stand::Missing(1));
    assert_eq!(stand(&rules[0], &table, &|node| node != "n1"), Stand::Missing(1));
    table.set_state(&ids("1-8"), State::Absent).expect("set");
    assert_eq!(stand(&rules[0], &table, &everyone), Stand::Missing(2));
    for (text, expected) in [
        ("switch = 's1'", "column 14: expected : and a number of nodes"),
        ("switch = 's1':x", "column 15: expected a number of nodes"),
        ("switch = 's1':1 & racks = 2:1", "column 19: no property is called 'racks'"),
        ("switch = 's1':1 &", "column 18: expected : and a number of nodes"),
    ] {
        assert_eq!(KeepAlive::read(text, table.fields()).expect_err(text).to_string(), expected);
    }
}

/// OAR-E-08: a command gets a limited number of nodes.
#[test]
fn commands_get_groups_of_nodes() {
    let nodes: Vec<String> = (0..60).map(|number| format!("n{number}")).collect();
    assert_eq!(batches(&nodes, 25).iter().map(Vec::len).collect::<Vec<_>>(), [25, 25, 10]);
    assert_eq!(batches(&nodes[..2], 0).len(), 2);
}

proptest! {
    /// OAR-E-06, OAR-E-07: any setting is read or refused.
    #[test]
    fn any_setting_is_read_or_refused(text in "[a-z0-9:&=' \"ä]{0,40}") {
        let table = s();
        let _ = Timeouts::read(&text).map(|read| read.of(7));
        if let Err(mistake) = KeepAlive::read(&text, table.fields()) {
            prop_assert!(mistake.column <= text.chars().count() + 1);
        }
    }
}
