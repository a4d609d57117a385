//! The language of `-p`, of groups and of `--sql`.

use crate::support::{ids, s};
use muster_oar::{
    predicate::{self, Predicate, like},
    resources::{
        property::{Fields, STATE},
        table::Table,
        value::{Kind, Value},
    },
};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The resources of a table that a filter matches.
fn matching(table: &Table, filter: &str) -> Vec<u32> {
    let predicate = predicate::read(filter, table.fields()).unwrap_or_else(|mistake| panic!("{filter}: {mistake}"));
    let matches = table.resources().filter(|resource| predicate.matches(resource.values()));
    matches.map(muster_oar::resources::table::Resource::id).collect()
}

fn refused(filter: &str) -> String {
    predicate::read(filter, s().fields()).expect_err(filter).to_string()
}

/// OAR-R-13: every comparison, on integers and texts, in both kinds of quotes.
#[test]
fn comparisons_of_integers_and_texts() {
    let table = s();
    for (filter, expected) in [
        ("core = 3", "3"),
        ("core='3'", "3"),
        ("core = \"3\"", "3"),
        ("3 = core", "3"),
        ("core != 3 and core<4", "1-2"),
        ("core <> 3 AND core <= 4", "1-2, 4"),
        ("core>14", "15-16"),
        ("core >= 14", "14-16"),
        ("14 <= core", "14-16"),
        ("core = -3", ""),
        ("core > -3 and core < 0002", "1"),
        ("switch = 's1' AND NOT (cpu = 'c1' OR cpu = 'c2')", "5-8"),
        ("switch='s1' and not cpu='c1' and not cpu = \"c2\"", "5-8"),
        ("network_address LIKE 'n_'", "1-16"),
        ("network_address LIKE '%3'", "9-12"),
        ("network_address NOT LIKE '%3'", "1-8, 13-16"),
        ("core IN (1, '2', 99)", "1-2"),
        ("core not in (1, 2)", "3-16"),
        ("switch IN ('s1')", "1-8"),
        ("core BETWEEN 3 AND 5 AND core != 4", "3, 5"),
        ("core NOT BETWEEN 3 AND 16", "1-2"),
        ("core BETWEEN 5 AND 3", ""),
        ("cpu < 'c2'", "1-2"),
        ("resource_id = core", "1-16"),
        ("core = 1 OR core = 2 AND core = 3", "1"),
        ("(core = 1 OR core = 2) AND core = 2", "2"),
        ("CORE = 1", "1"),
        ("", "1-16"),
    ] {
        assert_eq!(matching(&table, filter), ids(expected), "{filter}");
    }
}

/// OAR-R-13: an unset property satisfies no comparison, negated or not.
#[test]
fn an_unset_property_satisfies_no_comparison() {
    let mut table = s();
    table.add_property("gpu", Kind::Integer).expect("new");
    table.set(&ids("1-3"), "gpu", Some(Value::Integer(2))).expect("set");
    table.add_property("memory", Kind::Text).expect("new");
    for (filter, expected) in [
        ("gpu = 2", "1-3"),
        ("gpu != 2", ""),
        ("NOT gpu = 1", "1-3"),
        ("NOT (gpu = 2)", ""),
        ("gpu > 0 OR gpu <= 0", "1-3"),
        ("gpu IN (1, 2)", "1-3"),
        ("gpu NOT IN (1)", "1-3"),
        ("gpu BETWEEN 0 AND 9", "1-3"),
        ("gpu NOT BETWEEN 5 AND 9", "1-3"),
        ("memory LIKE '%'", ""),
        ("memory NOT LIKE 'x'", ""),
        ("gpu IS NULL", "4-16"),
        ("gpu IS NOT NULL", "1-3"),
        ("NOT gpu IS NULL", "1-3"),
        ("gpu = core", "2"),
        ("gpu = 2 OR core = 16", "1-3, 16"),
        ("NOT (gpu = 2 AND core < 100)", ""),
        ("NOT (gpu = 2 AND core > 100)", "1-16"),
    ] {
        assert_eq!(matching(&table, filter), ids(expected), "{filter}");
    }
}

/// OAR-R-13: clashes of types, unknown properties and wrong syntax are refused with the place.
#[test]
fn what_cannot_be_meant_is_refused_with_its_place() {
    for (filter, expected) in [
        ("cores = 1", "column 1: no property is called 'cores'; is 'core' meant?"),
        ("core = 1 AND gpus = 2", "column 14: no property is called 'gpus'; is 'cpu' meant?"),
        ("core = 'x'", "column 8: core compares with an integer, found the text 'x'"),
        ("switch = 1", "column 10: switch compares with a text in quotes, found '1'"),
        ("switch = core", "column 10: switch is a text, core is an integer"),
        ("core LIKE '1'", "column 1: core is an integer; LIKE needs a text"),
        ("switch LIKE 1", "column 13: expected a pattern in quotes, found '1'"),
        ("switch IN ('a', 1)", "column 17: switch compares with a text in quotes, found '1'"),
        ("1 = 1", "column 1: expected the name of a property, found '1'"),
        ("core", "column 5: expected a comparison such as =, or LIKE, IN, BETWEEN or IS, found the end of the filter"),
        ("core =", "column 7: expected a value, found the end of the filter"),
        ("core = 1 core = 2", "column 10: expected AND, OR or the end of the filter, found 'core'"),
        ("core = 1)", "column 9: expected AND, OR or the end of the filter, found ')'"),
        ("(core = 1", "column 10: expected ')', found the end of the filter"),
        ("core NOT 1", "column 10: expected LIKE, IN or BETWEEN, found '1'"),
        ("core IS 1", "column 9: expected NULL, found '1'"),
        ("core IN ()", "column 10: expected a value, found ')'"),
        ("core BETWEEN 1, 2", "column 15: expected AND and the greatest value, found ','"),
        ("core < +2", "column 8: '+' has no meaning here"),
        ("core == 1", "column 6: '==' is no comparison; is '=' meant?"),
        ("switch = 's1", "column 10: the quote ' is not closed"),
        ("core = 99999999999999999999", "column 8: '99999999999999999999' is no whole number of 64 bits"),
        ("core = 1.5", "column 8: '1.5' is no whole number of 64 bits"),
        ("core = 1; DROP TABLE jobs", "column 9: ';' has no meaning here"),
        ("switch = 'ä' AND x = 1", "column 18: no property is called 'x'"),
        ("AND = 1", "column 1: expected the name of a property, found 'AND'"),
        ("core = NULL", "column 8: expected a value, found 'NULL'"),
    ] {
        assert_eq!(refused(filter), expected, "{filter}");
    }
}

/// OAR-R-14: depth and size are bounded, and nothing of the text is ever anything but a value.
#[test]
fn filters_are_bounded() {
    let deep = |depth: usize| format!("{}core = 1{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(matching(&s(), &deep(64)), [1]);
    assert!(refused(&deep(65)).ends_with("at most 64 parentheses and NOT inside one another"));
    assert!(refused(&format!("{}core = 1", "NOT ".repeat(3000))).contains("at most 64"));
    let long = vec!["core=1"; 1100].join(" OR ");
    assert!(refused(&long).ends_with("a filter has at most 4096 words and signs"), "{}", refused(&long));
    assert_eq!(refused(&" ".repeat(20_000).replace("  ", " a")), "column 1: a filter has at most 16384 bytes");
    let table = s();
    assert_eq!(matching(&table, "switch = '''; DROP TABLE resources; --'"), Vec::<u32>::new());
    assert!(predicate::read("state = 'Suspected'", table.fields()).expect("a filter").mentions(STATE));
}

#[test]
fn patterns_of_like() {
    for (pattern, text, expected) in [
        ("%", "", true),
        ("_", "", false),
        ("", "", true),
        ("", "a", false),
        ("a%b", "ab", true),
        ("a%b", "axxb", true),
        ("a%b", "axxbc", false),
        ("%a%a%", "xaxax", true),
        ("%a%a%", "xaxx", false),
        ("__", "äö", true),
        ("100\\%", "100%", true),
        ("100\\%", "1000", false),
        ("N1", "n1", false),
        ("%n1", "nn1", true),
        ("%ab%c", "aababxc", true),
    ] {
        assert_eq!(like::matches(pattern, text), expected, "{pattern} {text}");
    }
    assert!(!like::matches(&"%a".repeat(2000), &"a".repeat(255)));
}

fn fields() -> Fields {
    s().fields().clone()
}

fn any_predicate() -> impl Strategy<Value = Predicate> {
    use muster_oar::predicate::{Comparison, Operand};
    let comparison = prop_oneof![
        Just(Comparison::Equal),
        Just(Comparison::Less),
        Just(Comparison::AtLeast),
        Just(Comparison::NotEqual)
    ];
    let compare = (comparison, -3..20_i64, any::<bool>()).prop_map(|(comparison, number, is_first)| {
        let (one, other) = (Operand::Property("core".to_owned()), Operand::Literal(Value::Integer(number)));
        let (left, right) = if is_first { (one, other) } else { (other, one) };
        Predicate::Compare(left, comparison, right)
    });
    let leaf = prop_oneof![
        compare,
        "[a-z%_'\"]{0,5}".prop_map(|pattern| Predicate::Like("switch".to_owned(), pattern)),
        proptest::collection::btree_set("[a-z' ]{0,3}".prop_map(Value::Text), 1..4)
            .prop_map(|values| Predicate::In("cpu".to_owned(), values)),
        Just(Predicate::Unset("core".to_owned())),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 2..4).prop_map(Predicate::All),
            proptest::collection::vec(inner.clone(), 2..4).prop_map(Predicate::Any),
            inner.prop_map(|term| Predicate::Not(Box::new(term))),
        ]
    })
}

proptest! {
    /// OAR-R-14: any text is read or refused, never more.
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,80}") {
        let _ = predicate::read(&text, &fields());
    }

    /// OAR-R-14: words that lead deep into the grammar, in any order; a mistake is inside the text.
    #[test]
    fn any_words_are_read_or_refused(words in proptest::collection::vec(prop_oneof![
        Just("core"), Just("switch"), Just("AND"), Just("or"), Just("NOT"), Just("("), Just(")"), Just("="), Just("<="),
        Just("1"), Just("'s1'"), Just("\"x\""), Just("IN"), Just("LIKE"), Just("BETWEEN"), Just("IS"), Just("NULL"),
        Just(","), Just("-7"), Just("'"), Just("ß"),
    ], 0..24)) {
        let text = words.join(" ");
        if let Err(mistake) = predicate::read(&text, &fields()) {
            prop_assert!(mistake.column >= 1 && mistake.column <= text.chars().count() + 1);
        }
    }

    /// OAR-R-13: what a predicate is written as is read as the same.
    #[test]
    fn a_written_predicate_is_read_as_itself(predicate in any_predicate()) {
        prop_assert_eq!(predicate::read(&predicate.to_string(), &fields()), Ok(predicate));
    }

    /// OAR-R-13: a negation never holds together with what it negates, and with all properties set one of both does.
    #[test]
    fn a_predicate_or_its_negation_holds(predicate in any_predicate(), core in 0..20_i64, is_set: bool) {
        let mut values = BTreeMap::from([("switch".to_owned(), Value::text("s1")), ("cpu".to_owned(), Value::text("a"))]);
        if is_set {
            values.insert("core".to_owned(), Value::Integer(core));
        }
        let negation = Predicate::Not(Box::new(predicate.clone()));
        let both = (predicate.matches(&values), negation.matches(&values));
        prop_assert!(both != (true, true));
        prop_assert!(!is_set || both != (false, false));
    }

    #[test]
    fn like_agrees_with_a_simple_matcher(pattern in "[ab%_]{0,7}", text in "[ab]{0,8}") {
        fn simple(pattern: &[u8], text: &[u8]) -> bool {
            match pattern.split_first() {
                None => text.is_empty(),
                Some((b'%', rest)) => (0..=text.len()).any(|taken| simple(rest, &text[taken..])),
                Some((expected, rest)) => text.split_first().is_some_and(|(found, behind)| {
                    (*expected == b'_' || expected == found) && simple(rest, behind)
                }),
            }
        }
        prop_assert_eq!(like::matches(&pattern, &text), simple(pattern.as_bytes(), text.as_bytes()));
    }
}
