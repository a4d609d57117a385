//! The file `nodes`, the config of monitors, and the choice of a node.

use crate::support::{checked, shown};
use muster_pbs_policy::{
    findings::Findings,
    nodes::{Loads, MonitorConfig, Node, read_monitor},
    values::Decimal,
};

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).unwrap_or_else(|| panic!("{text}"))
}

fn monitor(text: &str) -> (MonitorConfig, Vec<String>) {
    let mut findings = Findings::new("config");
    let config = read_monitor(text.as_bytes(), &mut findings);
    let (errors, warnings) = findings.into_sorted();
    assert_eq!(warnings, []);
    (config, shown(&errors))
}

/// PBS-L-01.
#[test]
fn nodes_have_properties_and_processors() {
    let text = "# nodes\nts1:ts big np=4\nn2 np=16 fast ib\n\nn3 gpus=2\n";
    let checked = checked(&[("nodes", text), ("sched_config", ""), ("holidays", "YEAR 2026")]);
    assert_eq!(shown(&checked.warnings), ["nodes:5: has no effect here (token 'gpus=2')"]);
    let node = |name: &str, is_timeshared, properties: &[&str], processors| Node {
        name: name.to_owned(),
        is_timeshared,
        properties: properties.iter().map(|property| (*property).to_owned()).collect(),
        processors,
    };
    let expected = [node("ts1", true, &["big"], 4), node("n2", false, &["fast", "ib"], 16), node("n3", false, &[], 1)];
    assert_eq!(checked.policy.expect("no errors").nodes.as_deref(), Some(expected.as_slice()));
}

/// PBS-L-01, PBS-F-04.
#[test]
fn mistakes_in_nodes_are_errors() {
    let text = ":ts\na b:ts\na np=0\nn1 np=many\nn1 np=2\nn1\nx:y\n";
    assert_eq!(
        shown(&checked(&[("nodes", text)]).errors),
        [
            "nodes:1: expected the name of a node, with ':ts' if it is timeshared (token ':ts')",
            "nodes:3: expected np=n with an integer above zero (token 'np=0')",
            "nodes:4: expected np=n with an integer above zero (token 'np=many')",
            "nodes:6: the node is in line 5, too (token 'n1')",
            "nodes:7: expected the name of a node, with ':ts' if it is timeshared (token 'x:y')",
        ]
    );
}

/// PBS-L-02.
#[test]
fn monitors_have_an_ideal_and_a_maximum_load() {
    for text in
        ["ideal_load 50\nmax_load 64\n", "$logevent 0x1ff\n$ideal_load 50.0\n# x\n$max_load\t64.0\nscratch 5gb\n"]
    {
        let (config, errors) = monitor(text);
        assert_eq!(errors, Vec::<String>::new());
        assert_eq!(config.loads(8), Loads { ideal: decimal("50"), max: decimal("64") });
    }
    let loads = |text: &str| monitor(text).0.loads(4);
    assert_eq!(loads(""), Loads { ideal: decimal("4"), max: decimal("4") });
    assert_eq!(loads("ideal_load 2.5"), Loads { ideal: decimal("2.5"), max: decimal("4") });
    assert_eq!(loads("ideal_load 6"), Loads { ideal: decimal("6"), max: decimal("6") });
    assert_eq!(loads("max_load 3"), Loads { ideal: decimal("3"), max: decimal("3") });
    assert_eq!(loads("max_load 5"), Loads { ideal: decimal("4"), max: decimal("5") });
}

/// PBS-L-02: ideal above max is an error.
#[test]
fn mistakes_in_loads_are_errors() {
    assert_eq!(
        monitor("max_load 3\n$ideal_load 3.5\n").1,
        ["config:2: expected an ideal_load that is not above max_load (token '3.5')"]
    );
    assert_eq!(monitor("ideal_load high\n").1, ["config:1: expected a load, such as 50 or 2.5 (token 'high')"]);
    assert_eq!(monitor("$max_load\n").1, ["config:1: expected a load, such as 50 or 2.5 (token '$max_load')"]);
}
