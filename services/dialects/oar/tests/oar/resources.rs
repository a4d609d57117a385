//! The table of resources.

use crate::support::{ids, s};
use muster_oar::resources::{
    history::History,
    property::{AVAILABLE_UPTO, ID, NODE, STATE, is_system},
    state::{Check, CheckRules, State, after_check},
    table::Table,
    value::{Kind, Value},
};

fn refused<T: std::fmt::Debug>(result: Result<T, muster_oar::resources::table::Problem>) -> String {
    result.expect_err("refused").to_string()
}

/// OAR-R-01: numbers, types, states and typed properties of resources.
#[test]
fn a_resource_has_a_number_a_type_a_state_and_typed_properties() {
    let table = s();
    let fifth = table.resource(5).expect("it exists");
    assert_eq!((fifth.id(), fifth.node(), fifth.state(), fifth.is_default()), (5, "n2", State::Alive, true));
    assert_eq!((fifth.text("switch"), fifth.integer("core")), ("s1", 5));
    let mut table = table;
    assert_eq!(table.add(&[]), Ok(17));
    assert_eq!(refused(table.add(&[(ID, Value::Integer(3))])), "resource 3 exists");
    assert_eq!(refused(table.add(&[("core", Value::text("x"))])), "core is an integer; 'x' is not");
    assert_eq!(refused(table.add(&[("cor", Value::Integer(1))])), "no property is called 'cor'; is 'core' meant?");
    for wrong in [0, -1, i64::from(u32::MAX) + 1] {
        assert!(refused(table.add(&[(ID, Value::Integer(wrong))])).starts_with("expected a number of a resource"));
    }
    assert_eq!(table.resources().count(), 17);
}

/// OAR-R-22: properties come, go, and change their names; every changed value is a span with its ends.
#[test]
fn properties_change_at_run_time_and_each_value_has_its_span() {
    let mut table = s();
    let before = table.clone();
    assert_eq!(table.add_property("Gpu", Kind::Text), Ok(()));
    assert_eq!(refused(table.add_property("gpu", Kind::Text)), "the property gpu exists");
    assert!(refused(table.add_property("g-pu; DROP", Kind::Text)).contains("cannot be the name of a property"));
    let mut history = History::default();
    let changes = table.set(&ids("1-3"), "gpu", Some(Value::text("YES"))).expect("set");
    assert_eq!(changes.len(), 3);
    history.note(&changes, 100);
    assert_eq!(table.set(&ids("1-3"), "gpu", Some(Value::text("YES"))), Ok(vec![]));
    let changes = table.set(&ids("2"), "gpu", None).expect("unset");
    history.note(&changes, 160);
    let spans: Vec<_> = history.ended().iter().map(|span| (span.resource, span.start, span.end)).collect();
    assert_eq!(spans, [(1, None, 100), (2, None, 100), (3, None, 100), (2, Some(100), 160)]);
    assert_eq!((history.began(1, "gpu"), history.began(2, "gpu")), (Some(100), Some(160)));
    assert_eq!(history.ended()[3].value, Some(Value::text("YES")));
    table.rename_property("gpu", "gpus").expect("renamed");
    assert_eq!(table.resource(1).map(|one| one.text("gpus")), Some("YES"));
    assert_eq!(table.remove_property("gpus").map(|gone| gone.len()), Ok(2));
    assert_eq!(table, before);
    for built_in in ["state", "resource_id", "network_address"] {
        assert_eq!(
            refused(table.remove_property(built_in)),
            format!("{built_in} is a property of every resource and stays")
        );
        assert!(refused(table.rename_property(built_in, "x")).contains("stays"));
    }
    assert_eq!(refused(table.set(&[1], "state", None)), "state cannot be unset");
    assert_eq!(
        refused(table.set(&[1], "resource_id", Some(Value::Integer(9)))),
        "the number of a resource cannot be changed"
    );
    assert_eq!(refused(table.set(&[1, 99], "core", Some(Value::Integer(9)))), "resource 99 does not exist");
    assert_eq!(table, before);
}

/// OAR-R-18: states of resources, and how they are shown.
#[test]
fn an_absent_resource_that_can_be_woken_stands_by() {
    let mut table = s();
    assert!(refused(table.set(&[1], STATE, Some(Value::text("Asleep")))).starts_with("expected Alive, Absent"));
    table.set_state(&[1], State::Absent).expect("set");
    table.set(&[1], AVAILABLE_UPTO, Some(Value::Integer(5000))).expect("set");
    let one = table.resource(1).expect("it exists");
    let shown = |now| one.state().shown(one.available_upto(), now);
    assert_eq!([shown(4999), shown(5000), shown(5001)], ["StandBy", "StandBy", "Absent"]);
    assert_eq!(State::Alive.shown(5000, 1), "Alive");
    assert_eq!(State::ALL.map(|state| State::named(state.word())), State::ALL.map(Some));
}

/// OAR-R-19: which states end the jobs of a resource (that they are ended waits for the live system).
#[test]
fn absent_and_dead_end_jobs_and_suspected_does_not() {
    assert_eq!(State::ALL.map(State::ends_jobs), [false, true, false, true]);
}

/// OAR-R-20: silent nodes are suspected, answering ones trusted again, and forgotten ones dead.
#[test]
fn a_check_suspects_silent_nodes_and_trusts_answering_ones() {
    let check = |state, answers, has_jobs| Check { state, since: 1000, answers, has_jobs };
    let rules = CheckRules::default();
    assert_eq!(after_check(check(State::Alive, false, false), rules, 9000), Some(State::Suspected));
    assert_eq!(after_check(check(State::Suspected, true, false), rules, 9000), Some(State::Alive));
    assert_eq!(after_check(check(State::Alive, false, true), rules, 9000), None);
    let busy_too = CheckRules { checks_busy_nodes: true, ..rules };
    assert_eq!(after_check(check(State::Alive, false, true), busy_too, 9000), Some(State::Suspected));
    for state in [State::Suspected, State::Absent] {
        assert_eq!(after_check(check(state, false, false), rules, 9_000_000), None);
        let switch = CheckRules { dead_after: 500, ..rules };
        assert_eq!(after_check(check(state, false, false), switch, 1500), None);
        assert_eq!(after_check(check(state, false, false), switch, 1501), Some(State::Dead));
    }
    assert_eq!(after_check(check(State::Alive, true, false), CheckRules { dead_after: 1, ..rules }, 9000), None);
}

/// OAR-R-21: maintenance makes nodes absent and keeps until when they can be had.
#[test]
fn maintenance_keeps_what_it_takes_away() {
    let mut table = s();
    table.set(&[2], AVAILABLE_UPTO, Some(Value::Integer(5000))).expect("set");
    let before = table.clone();
    assert_eq!(table.set_maintenance(&ids("1-2"), true).map(|changes| changes.len()), Ok(6));
    let two = table.resource(2).expect("it exists");
    assert_eq!(
        (two.state(), two.available_upto(), two.state().shown(two.available_upto(), 10)),
        (State::Absent, 0, "Absent")
    );
    assert_eq!(table.set_maintenance(&[2], true), Ok(vec![]));
    table.set_maintenance(&ids("1-2"), false).expect("ended");
    assert_eq!(table, before);
    assert_eq!(table.set_maintenance(&[2], false), Ok(vec![]));
    assert!(table.set_maintenance(&[2, 99], true).is_err());
    assert_eq!(table, before);
}

/// OAR-R-17: properties of the system are no levels.
#[test]
fn system_properties_are_told_from_those_of_sites() {
    for name in [
        "state",
        "type",
        "next_state",
        "cpuset",
        "besteffort",
        "deploy",
        "drain",
        "available_upto",
        "scheduler_priority",
        "suspended_jobs",
        "last_job_date",
        "expiry_date",
        "desktop_computing",
    ] {
        assert!(is_system(name), "{name}");
    }
    for name in [ID, NODE, "switch", "core", "host"] {
        assert!(!is_system(name), "{name}");
    }
}

#[test]
fn only_dead_resources_are_removed() {
    let mut table: Table = s();
    assert_eq!(refused(table.remove(&[1])), "resource 1 is Alive; only a Dead one can be removed");
    table.set_state(&[1], State::Dead).expect("set");
    assert_eq!(refused(table.remove(&[1, 17])), "resource 17 does not exist");
    assert_eq!(table.remove(&[1]), Ok(()));
    assert_eq!(table.resources().count(), 15);
}
