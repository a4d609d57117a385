//! Files of quotas, and the table that the system keeps of one.

use jiff::tz::TimeZone;
use muster_oar::quotas;
use muster_schemas::{
    Timestamp,
    quota::{QuotaAmount, QuotaRule, QuotaTable},
};
use proptest::prelude::*;

fn zone() -> TimeZone {
    TimeZone::get("Europe/Zurich").expect("a known zone")
}

/// The table of a file as it is made at a moment.
fn made(text: &str, now: &str) -> QuotaTable {
    let file = quotas::parse(text, &zone()).unwrap_or_else(|broken| panic!("{text}: {broken}"));
    file.table(&zone(), now.parse().expect("a moment"))
}

fn rules(text: &str) -> QuotaTable {
    made(text, "2026-01-01T00:00:00Z")
}

/// The cores, jobs and core-seconds that a rule allows in a cluster of 100 cores.
fn limits(rule: &QuotaRule) -> [Option<u64>; 3] {
    [rule.cores, rule.jobs, rule.core_seconds].map(|amount| amount.map(|amount: QuotaAmount| amount.in_cluster(100)))
}

fn broken(text: &str) -> String {
    quotas::parse(text, &zone()).expect_err(text).to_string()
}

/// OAR-Q-02: forms of limits.
#[test]
fn limits_are_numbers_texts_and_parts_of_all() {
    let read = |value: &str| {
        let table = rules(&format!(r#"{{"quotas": {{"*,*,*,*": {value}}}}}"#));
        <(_, _, _)>::from(limits(&table.sets[0].rules[0]))
    };
    for (value, expected) in [
        (r#"["34.5","ALL","2*ALL"]"#, (Some(34), Some(100), Some(200 * 3600))),
        ("[120, -1, -1]", (Some(120), None, None)),
        ("[10, 4.9, 0.5]", (Some(10), Some(4), Some(1800))),
        ("[0, 0, 1.0001]", (Some(0), Some(0), Some(3600))),
        ("12", (Some(12), None, None)),
        (r#""0.505*ALL""#, (Some(50), None, None)),
        (r#""ALL""#, (Some(100), None, None)),
        (r#"" 2 * ALL ""#, (Some(200), None, None)),
        ("-1", (None, None, None)),
    ] {
        assert_eq!(read(value), expected, "{value}");
    }
    for value in [
        r#""x""#,
        "-2",
        "[1,2]",
        "[1,2,3,4]",
        r#""*ALL""#,
        r#""2ALL""#,
        "1e3",
        "null",
        r#""""#,
        "{}",
        "99999999999999999999",
        r#""1.5.5""#,
    ] {
        assert!(quotas::parse(&format!(r#"{{"quotas": {{"*,*,*,*": {value}}}}}"#), &zone()).is_err(), "{value}");
    }
}

/// A site with days, nights, weekends and one week of holidays.
const CALENDAR: &str = r#"{
  "periodical": [
    ["08:00-19:00 mon-fri * *", "day", "working hours"],
    ["* * * *", "night"],
    ["* sat,sun * *", "weekend", "two days"]
  ],
  "oneshot": [["2026-12-21 00:00", "2026-12-28 10:00", "holidays", "closed"]],
  "day": {"*,*,*,/": [1, -1, -1]},
  "night": {"*,*,*,/": [2, -1, -1]},
  "weekend": {"*,*,*,/": [3, -1, -1]},
  "holidays": {"*,*,*,/": [4, -1, -1]}
}"#;

fn local(text: &str) -> Timestamp {
    let seconds = muster_oar::options::date::seconds(text, 0, &zone()).unwrap_or_else(|why| panic!("{why}"));
    Timestamp::from_unix_seconds(seconds)
}

/// The moments after one and up to another at which the table says that rules may change.
fn changes(table: &QuotaTable, from: Timestamp, to: Timestamp) -> Vec<Timestamp> {
    let next = |moment: &Timestamp| table.next_change(*moment);
    std::iter::successors(next(&from), next).take_while(|moment| *moment <= to).collect()
}

/// OAR-Q-10: rules of the time of the week, in local time; single spans go first.
#[test]
fn rules_of_the_week_and_of_single_spans() {
    let table = rules(CALENDAR);
    let at = |text: &str| limits(&table.sets[table.set_at(local(text))].rules[0])[0];
    for (moment, expected) in [
        ("2026-11-26 07:59:59", 2),
        ("2026-11-26 08:00:00", 1),
        ("2026-11-26 18:59:59", 1),
        ("2026-11-26 19:00:00", 2),
        ("2026-11-27 23:59:59", 2),
        ("2026-11-28 00:00:00", 3),
        ("2026-11-29 23:59:59", 3),
        ("2026-11-30 00:00:00", 2),
        ("2026-12-20 23:59:59", 3),
        ("2026-12-21 12:00:00", 4),
        // In the middle of a working day the rule of that moment applies again.
        ("2026-12-28 09:59:59", 4),
        ("2026-12-28 10:00:00", 1),
        // Clocks changed on 2026-03-29 and change on 2026-10-25.
        ("2026-03-30 08:00:00", 1),
        ("2026-10-26 07:59:59", 2),
    ] {
        assert_eq!(at(moment), Some(expected), "{moment}");
    }
    let found = changes(&table, local("2026-11-26 08:00"), local("2026-11-30 08:00"));
    let expected = [
        "2026-11-26 19:00",
        "2026-11-27 08:00",
        "2026-11-27 19:00",
        "2026-11-28 00:00",
        "2026-11-29 00:00",
        "2026-11-30 00:00",
        "2026-11-30 08:00",
    ];
    assert_eq!(found, expected.map(local));
}

/// OAR-Q-10: where clocks change, rules change only where changes are told, too.
#[test]
fn rules_follow_clocks_that_change() {
    let table = rules(
        r#"{"a": {"*,*,*,*": 1}, "b": {"*,*,*,*": 2}, "periodical": [["02:30-12:00 * * *", "a"], ["* * * *", "b"]]}"#,
    );
    for (day, expected) in [("2026-10-25", 4), ("2026-03-29", 2), ("2026-11-26", 2)] {
        let begin = local(&format!("{day} 00:00")).unix_seconds();
        let set_at = |second: i64| table.set_at(Timestamp::from_unix_seconds(second));
        let moments = (begin + 60..=begin + 86_400).step_by(60);
        let found: Vec<Timestamp> =
            moments.filter(|at| set_at(*at) != set_at(at - 60)).map(Timestamp::from_unix_seconds).collect();
        let told = changes(&table, Timestamp::from_unix_seconds(begin), Timestamp::from_unix_seconds(begin + 86_400));
        assert!(found.iter().all(|moment| told.contains(moment)), "{day}: {found:?} {told:?}");
        assert_eq!(found.len(), expected, "{day}: half past two comes twice when clocks go back");
    }
}

/// OAR-Q-10, OAR-Q-11: a week with a gap or an overlap is refused, and so is every other mistake, with its place.
#[test]
fn a_broken_file_is_refused_as_a_whole() {
    for (text, expected) in [
        ("", "line 1, column 1: expected a value, found the end of the file"),
        ("[]", "line 1, column 1: expected an object with the rules in \"quotas\""),
        ("{\"quotas\": {\"*,*,*,*\": [1,2,3]}\n} x", "line 2, column 3: expected the end of the file, found 'x'"),
        ("{\"quotas\":\n  {\"*,*,*\": 1}}", "line 2, column 4: expected queue,project,type,user, found '*,*,*'"),
        (
            "{\"quotas\":\n  {\"*,*,*,*\": [1,\n 2, -3]}}",
            "line 3, column 5: expected -1, a number from 0, ALL or x*ALL, found '-3'",
        ),
        ("{\"quotas\": {\"*,*,*,*\": 1, \"*,*,*,*\": 2}}", "line 1, column 27: the name '*,*,*,*' is given twice"),
        ("{\"quotas\": {\"*,*,*,*\": 1, \"*,*,*, *\": 2}}", "line 1, column 12: two rules are about the same jobs"),
        ("{\"quotas\": 1}", "line 1, column 12: expected an object of rules"),
        ("{\"quota\": 1}", "line 1, column 11: expected an object of rules"),
        ("{\"quotas\": {}, \"job_types\": [1]}", "line 1, column 30: expected a text in double quotes"),
        (
            "{\"a\": {}, \"periodical\": [[\"08:00-19:00 * * *\", \"a\"]]}",
            "line 1, column 27: no period covers mon 00:00; \"* * * *\" fills gaps",
        ),
        (
            "{\"a\": {}, \"periodical\": [[\"00:00-23:00 sun * *\", \"a\"], [\"* mon-sat * *\", \"a\"]]}",
            "line 1, column 25: no period covers sun 23:00; \"* * * *\" fills gaps",
        ),
        (
            "{\"a\": {}, \"periodical\": [[\"* * * *\", \"a\"], [\"08:00-10:00 mon * *\", \"a\"], [\"09:00-11:00 mon * *\", \"a\"]]}",
            "line 1, column 75: two periods overlap on mon 09:00",
        ),
        ("{\"periodical\": [[\"* * * *\", \"b\"]]}", "line 1, column 29: no rules are called 'b'"),
        (
            "{\"a\": {}, \"periodical\": [[\"22:00-06:00 * * *\", \"a\"]]}",
            "line 1, column 27: the times 22:00-06:00 end before they begin; a night is two periods",
        ),
        (
            "{\"a\": {}, \"periodical\": [[\"* mon 1 *\", \"a\"]]}",
            "line 1, column 27: expected \"hh:mm-hh:mm days * *\", found '* mon 1 *'",
        ),
        (
            "{\"a\": {}, \"periodical\": [[\"* moon * *\", \"a\"]]}",
            "line 1, column 27: expected days such as mon-wed or sat,sun, found 'moon'",
        ),
        (
            "{\"a\": {}, \"periodical\": [[\"8-9 mon * *\", \"a\"]]}",
            "line 1, column 27: expected times such as 08:00-19:00, found '8-9'",
        ),
        (
            "{\"a\": {}, \"oneshot\": [[\"2026-12-01\", \"2026-12-02 10:00\", \"a\"]]}",
            "line 1, column 24: expected YYYY-MM-DD hh:mm:ss or now, found '2026-12-01'",
        ),
        (
            "{\"a\": {}, \"oneshot\": [[\"2026-12-02 10:00\", \"2026-12-02 10:00\", \"a\"]]}",
            "line 1, column 44: the end of a span is after its begin",
        ),
        (
            "{\"quotas\": {}, \"periodical\": []}",
            "line 1, column 30: the rules are in \"quotas\" or in a calendar, not in both",
        ),
        ("{\"quotas\": {\"*,*,*,*\": 1,}}", "line 1, column 26: expected a name in double quotes, found '}'"),
        ("{\"quotas\" {}}", "line 1, column 11: expected ':', found '{'"),
        ("{\"quotas\": tru}", "line 1, column 12: expected a value, found 't'"),
        ("{\"quotas", "line 1, column 2: the quote is not closed"),
        ("{\"quotas\": 01}", "line 1, column 12: '01' is no number"),
    ] {
        assert_eq!(broken(text), expected, "{text}");
    }
    assert!(
        broken(&format!("{}1{}", "[".repeat(20), "]".repeat(20))).ends_with("values are nested more than 16 times")
    );
    let whole_days = r#"{"a": {}, "b": {}, "periodical": [["* sat-mon * *", "a"], ["* tue-fri * *", "b"]]}"#;
    assert_eq!(rules(whole_days).week.len(), 7);
    let nights = r#"{"a": {}, "periodical": [["00:00-19:00 * * *", "a"], ["19:00-00:00 * * *", "a"]]}"#;
    assert_eq!(rules(nights).week.len(), 14);
    assert!(broken(r#"{"a": {}, "periodical": [["* * * * *", "a"]]}"#).contains("expected \"hh:mm-hh:mm days * *\""));
}

proptest! {
    /// OAR-Q-11: any file is read or refused, with a place inside it.
    #[test]
    fn any_file_is_read_or_refused(parts in proptest::collection::vec(prop_oneof![
        Just("{"), Just("}"), Just("["), Just("]"), Just(","), Just(":"), Just("\"quotas\""), Just("\"*,*,*,/\""), Just("\"periodical\""),
        Just("\"* mon * *\""), Just("\"a\""), Just("\"oneshot\""), Just("1"), Just("-1"), Just("\"ALL\""), Just("\n"), Just("\\"),
        Just("\""), Just("\"job_types\""), Just("1e9"), Just("null"), Just("ä"),
    ], 0..30), text in ".{0,60}") {
        for text in [parts.concat(), text] {
            if let Err(broken) = quotas::parse(&text, &TimeZone::UTC) {
                let line = text.split('\n').nth(broken.line - 1).expect("the line exists");
                prop_assert!(broken.column <= line.chars().count() + 1, "{}", broken);
            }
        }
    }
}

/// OAR-Q-02, OAR-Q-10: the table has the rules of the file, and is the same whenever it is made of the same file.
#[test]
fn the_table_of_the_system_is_that_of_the_file() {
    let text = r#"{
        "job_types": ["deploy", "*"],
        "periodical": [["08:00-19:00 mon-fri * *", "day"], ["* * * *", "night"]],
        "oneshot": [["2026-12-24 12:00", "2027-01-02 08:00", "closed"]],
        "day": {"*,*,deploy,/": ["0.5*ALL", "3", "2*ALL"]},
        "night": {"*,bio,*,*": 7},
        "closed": {"*,*,*,*": [0, -1, 1.5]}
    }"#;
    let table = made(text, "2026-10-01T00:00:00Z");
    assert_eq!(table.kinds, ["deploy"]);
    for (moment, pattern, expected) in [
        ("2026-10-01 12:00", "*,*,deploy,/", [Some(50), Some(3), Some(720_000)]),
        ("2026-10-01 20:00", "*,bio,*,*", [Some(7), None, None]),
        ("2026-12-24 12:00", "*,*,*,*", [Some(0), None, Some(5_400)]),
    ] {
        let rule = &table.sets[table.set_at(local(moment))].rules[0];
        assert_eq!((rule.to_string().as_str(), limits(rule)), (pattern, expected), "{moment}");
    }
    assert_eq!(table, made(text, "2026-10-02T00:00:00Z"));
}
