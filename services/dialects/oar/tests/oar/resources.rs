//! The table of resources.

use crate::support::{ids, s};
use muster_oar::resources::{
    property::{AVAILABLE_UPTO, ID, NODE, STATE, is_system},
    state::State,
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

/// OAR-R-22: properties come, go, and change their names; what changes is told with the value before.
#[test]
fn properties_change_at_run_time_and_changes_are_told() {
    let mut table = s();
    let before = table.clone();
    assert_eq!(table.add_property("Gpu", Kind::Text), Ok(()));
    assert_eq!(refused(table.add_property("gpu", Kind::Text)), "the property gpu exists");
    assert!(refused(table.add_property("g-pu; DROP", Kind::Text)).contains("cannot be the name of a property"));
    let changes = table.set(&ids("1-3"), "gpu", Some(Value::text("YES"))).expect("set");
    assert_eq!(changes.len(), 3);
    assert_eq!(table.set(&ids("1-3"), "gpu", Some(Value::text("YES"))), Ok(vec![]));
    let changes = table.set(&ids("2"), "gpu", None).expect("unset");
    assert_eq!((changes[0].resource, &changes[0].old, &changes[0].new), (2, &Some(Value::text("YES")), &None));
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
