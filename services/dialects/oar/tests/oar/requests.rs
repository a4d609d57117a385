//! The grammar of `-l`.

use crate::support::{nodes, s};
use muster_oar::{
    predicate::Predicate,
    refusal::{Code, Refusal},
    request::{self, demand::Count, site::Site},
};
use proptest::prelude::*;

fn site() -> Site {
    Site::of(&s())
}

fn written(text: &str) -> String {
    request::alternative(text, &site()).unwrap_or_else(|refusal| panic!("{text}: {refusal}")).to_string()
}

fn refused(text: &str) -> Refusal {
    request::alternative(text, &site()).expect_err(text)
}

/// OAR-R-02: groups, filters, paths and counts.
#[test]
fn requests_are_read_whole() {
    for (text, expected) in [
        ("/switch=1/nodes=2/cpu=1", "/switch=1/network_address=2/cpu=1,walltime=2:0:0"),
        ("nodes=2", "/network_address=2,walltime=2:0:0"),
        ("nodes=2,walltime=1", "/network_address=2,walltime=1:0:0"),
        ("/nodes=BEST", "/network_address=BEST,walltime=2:0:0"),
        ("/nodes=BESTHALF", "/network_address=BESTHALF,walltime=2:0:0"),
        ("/nodes=HALF_BEST", "/network_address=BESTHALF,walltime=2:0:0"),
        ("/nodes=ALL/core=1", "/network_address=ALL/core=1,walltime=2:0:0"),
        ("{switch='s1'}/nodes=1", "{switch = 's1'}/network_address=1,walltime=2:0:0"),
        ("{switch='s1'}nodes=1", "{switch = 's1'}/network_address=1,walltime=2:0:0"),
        (
            "/nodes=1+{switch='s1'}/nodes=2, walltime=0:10",
            "/network_address=1+{switch = 's1'}/network_address=2,walltime=0:10:0",
        ),
        (
            " / switch = 1 / nodes = 2 + { core > 3 } / core = 4 , walltime = 2:0:0 ",
            "/switch=1/network_address=2+{core > 3}/core=4,walltime=2:0:0",
        ),
        ("{}/nodes=1", "/network_address=1,walltime=2:0:0"),
    ] {
        assert_eq!(written(text), expected, "{text}");
        assert_eq!(written(expected), expected);
    }
}

/// OAR-R-02: quoted text in a filter is never split.
#[test]
fn quoted_text_is_never_split() {
    let text = "{switch = 'a+b,walltime=3/}' OR cpu = \"'}\"}/nodes=1+{switch=','}/core=2,walltime=1";
    let read = request::alternative(text, &site()).expect("it is read");
    assert_eq!((read.groups.len(), read.walltime), (2, 3600));
    assert!(read.groups[0].filter.to_string().contains("a+b,walltime=3/}"));
}

/// OAR-R-02: what is left over, a second walltime and an unknown level are refused, and the part is named.
#[test]
fn what_cannot_be_read_is_refused_with_the_part() {
    for (text, code, expected) in [
        ("/nodes=2 x", Code::Syntax, "-l, column 10: expected the end of the request, found 'x'"),
        ("/nodes=2,walltime=1,walltime=2", Code::Syntax, "-l, column 20: the walltime is given twice"),
        ("/nodes=2,walltime=1,x", Code::Syntax, "-l, column 20: expected the end of the request, found ','"),
        ("/nodes=2,nodes=3", Code::Syntax, "-l, column 10: expected walltime=, found 'nodes=3'"),
        ("/nods=2", Code::UnknownLevel, "-l, column 2: no level is called 'nods'; is 'nodes' meant? (job id -3)"),
        ("/switch=1/racks=2", Code::UnknownLevel, "-l, column 11: no level is called 'racks' (job id -3)"),
        ("/nodes", Code::Syntax, "-l, column 7: expected = and a count after 'nodes', found the end of the request"),
        (
            "/nodes=",
            Code::Syntax,
            "-l, column 8: expected a count from 1 to 1000000, ALL, BEST or BESTHALF, found the end of the request",
        ),
        (
            "/nodes=x/core=1",
            Code::Syntax,
            "-l, column 8: expected a count from 1 to 1000000, ALL, BEST or BESTHALF, found 'x/'",
        ),
        ("/nodes=1/", Code::Syntax, "-l, column 10: expected a level, as in nodes=2, found the end of the request"),
        ("/nodes=1+", Code::Syntax, "-l, column 10: expected a level, as in nodes=2, found the end of the request"),
        ("//nodes=1", Code::Syntax, "-l, column 2: expected a level, as in nodes=2, found '/'"),
        ("{core=1/nodes=1", Code::Syntax, "-l, column 1: the brace is not closed"),
        ("/nodes=1/{core=1}/core=1", Code::Syntax, "-l, column 10: a filter is before the first level of its group"),
        ("/nodes=1/nodes=1", Code::Syntax, "-l, column 10: the level network_address is given twice"),
        (
            "{cores=1}/nodes=1",
            Code::Resources,
            "-l, column 2: no property is called 'cores'; is 'core' meant? (job id -5)",
        ),
        (
            "/nodes=1+{core=}/nodes=1",
            Code::Resources,
            "-l, column 16: expected a value, found the end of the filter (job id -5)",
        ),
        ("walltime=0", Code::Syntax, "-l, column 10: a walltime has at least one second"),
        (
            "walltime=1:2:3:4",
            Code::Syntax,
            "-l, column 10: expected a walltime as hours[:minutes[:seconds]], found '1:2:3:4'",
        ),
        ("walltime=-1", Code::Syntax, "-l, column 10: expected a walltime as hours[:minutes[:seconds]], found '-1'"),
        (
            "walltime=99999999999999999999",
            Code::Syntax,
            "-l, column 10: expected a walltime as hours[:minutes[:seconds]], found '99999999999999999999'",
        ),
        ("walltime=99999999", Code::Syntax, "-l, column 10: a walltime has at most 87600 hours"),
    ] {
        let refusal = refused(text);
        assert_eq!((refusal.code, refusal.to_string().as_str()), (code, expected), "{text}");
    }
    assert_eq!((Code::Syntax.exit_status(), Code::UnknownLevel.job_id_code()), (18, Some(-3)));
}

/// OAR-R-03: `nodes` is the level of nodes, and so is `host` where it is no property.
#[test]
fn nodes_is_another_name_of_the_level_of_nodes() {
    let level = |text: &str, site: &Site| {
        let read = request::alternative(text, site).expect("it is read");
        read.groups[0].path[0].level.clone()
    };
    assert_eq!(level("nodes=1", &site()), "network_address");
    assert_eq!(level("host=1", &site()), "network_address");
    let mut table = s();
    table.add_property("host", muster_oar::resources::value::Kind::Text).expect("new");
    assert_eq!(level("host=1", &Site::of(&table)), "host");
    let other = Site { node_level: "host".to_owned(), ..Site::of(&table) };
    assert_eq!(level("nodes=1", &other), "host");
}

/// OAR-R-04: forms of the walltime, and what a request has if parts of it are missing.
#[test]
fn walltimes_and_defaults() {
    let walltime = |text: &str| request::alternative(text, &site()).expect("it is read").walltime;
    let all = ["walltime=2", "walltime=2:10", "walltime=2:10:30", "walltime=0:0:1", "nodes=1", "walltime=0:90"];
    assert_eq!(all.map(walltime), [7200, 7800, 7830, 1, 7200, 5400]);
    assert_eq!(written("walltime=4:0"), "/resource_id=1,walltime=4:0:0");
    let none: [&str; 0] = [];
    let shapes = request::alternatives(&none, &site()).expect("the default");
    assert_eq!(shapes.iter().map(ToString::to_string).collect::<Vec<_>>(), ["/resource_id=1,walltime=2:0:0"]);
    let moldable = request::alternatives(&["nodes=4", "nodes=2,walltime=4"], &site()).expect("two shapes");
    let shown: Vec<String> = moldable.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["/network_address=4,walltime=2:0:0", "/network_address=2,walltime=4:0:0"]);
    let broken = Site { default_demand: String::new(), ..site() };
    assert!(request::alternative("walltime=1", &broken).is_err());
}

/// OAR-R-16: a count of 0 is refused like a syntax error.
#[test]
fn a_count_of_nothing_is_refused() {
    for text in ["/nodes=0", "/switch=1/nodes=00", "/nodes=1+/core=0", "/nodes=1000001", "/nodes=-1", "/nodes=+1"] {
        assert_eq!(refused(text).code, Code::Syntax, "{text}");
    }
}

/// OAR-R-17: system properties cannot be levels.
#[test]
fn system_properties_are_no_levels() {
    for level in ["state", "type", "cpuset", "besteffort", "deploy", "drain", "available_upto", "desktop_computing"] {
        let refusal = refused(&format!("/{level}=1"));
        assert_eq!((refusal.code, refusal.code.job_id_code()), (Code::Rule, Some(-2)), "{level}");
    }
}

/// OAR-R-11: a group whose filter says nothing about the type asks for resources of nodes.
#[test]
fn a_group_without_type_asks_for_resources_of_nodes() {
    let read = request::alternative("/nodes=1+{type='licence'}/resource_id=2+{core=1}/core=1", &site()).expect("read");
    let filters =
        read.groups.iter().map(|group| group.whole_filter(&Predicate::ALWAYS, &Predicate::ALWAYS).to_string());
    let expected = ["type = 'default'", "type = 'licence'", "core = 1 AND type = 'default'"];
    assert_eq!(filters.collect::<Vec<_>>(), expected);
}

/// OAR-R-05: the filters of the job, the group and the site are joined with AND.
#[test]
fn filters_are_joined() {
    let job = request::filter("core > 1 OR cpu = 'c1'", &site()).expect("a filter");
    let rule = request::filter("drain = 'NO'", &site()).expect("a filter");
    let read = request::alternative("{switch='s1'}/nodes=1", &site()).expect("read");
    let whole = read.groups[0].whole_filter(&job, &rule).to_string();
    assert_eq!(whole, "(core > 1 OR cpu = 'c1') AND switch = 's1' AND drain = 'NO' AND type = 'default'");
    let refusal = request::filter("core = ", &site()).expect_err("refused");
    assert_eq!((refusal.code.job_id_code(), refusal.to_string().starts_with("-p, column 8:")), (Some(-5), true));
}

#[test]
fn requests_are_bounded() {
    let many = vec!["nodes=1"; 65];
    assert_eq!(refused(&many.join("+")).code, Code::Syntax);
    assert_eq!(request::alternatives(&many, &site()).expect_err("too many").code, Code::Syntax);
    assert_eq!(refused(&"x".repeat(70_000)).code, Code::Syntax);
    assert_eq!(Site::of(&nodes(1)).level("NODES").as_deref(), Some("network_address"));
}

fn any_request() -> impl Strategy<Value = String> {
    let count =
        prop_oneof![(1..9_u32).prop_map(Count::Exactly), Just(Count::All), Just(Count::Best), Just(Count::BestHalf)];
    let step = (prop_oneof![Just("switch"), Just("network_address"), Just("cpu"), Just("core")], count)
        .prop_map(|(level, count)| (level, count));
    let group =
        (prop_oneof![Just(""), Just("{core > 3}"), Just("{switch = '+,/}'}")], proptest::collection::vec(step, 1..4));
    let group = group.prop_map(|(filter, mut path)| {
        let mut seen = std::collections::BTreeSet::new();
        path.retain(|(level, _)| seen.insert(*level));
        path.iter().fold(filter.to_owned(), |text, (level, count)| text + &format!("/{level}={count}"))
    });
    (proptest::collection::vec(group, 1..4), 1..100_000_i64)
        .prop_map(|(groups, walltime)| format!("{},walltime=0:0:{walltime}", groups.join("+")))
}

proptest! {
    /// OAR-R-02: any text is read or refused, with a place inside it.
    #[test]
    fn any_request_is_read_or_refused(text in "[a-z0-9/+={},' :\"äA-Z-]{0,60}") {
        if let Err(refusal) = request::alternative(&text, &site()) {
            let column = refusal.place.and_then(|(_, column)| column).unwrap_or(1);
            prop_assert!(column >= 1 && column <= text.chars().count() + 1, "{}", column);
        }
    }

    /// OAR-R-02: parts of requests in any order.
    #[test]
    fn any_parts_are_read_or_refused(parts in proptest::collection::vec(prop_oneof![
        Just("/"), Just("nodes"), Just("="), Just("2"), Just("+"), Just(","), Just("walltime"), Just("{"), Just("}"),
        Just("core=1"), Just("'"), Just(":"), Just("BEST"), Just(" "), Just("state"), Just("ü"),
    ], 0..20)) {
        let _ = request::alternative(&parts.concat(), &site());
    }

    /// OAR-R-02: what a request is written as is read as the same.
    #[test]
    fn a_written_request_is_read_as_itself(text in any_request()) {
        let read = request::alternative(&text, &site()).expect("a request");
        prop_assert_eq!(request::alternative(&read.to_string(), &site()), Ok(read.clone()));
        prop_assert!(read.has_own_walltime);
    }
}
