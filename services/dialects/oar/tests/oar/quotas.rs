//! Quotas, fair share and accounting.

use crate::support::{busy, nodes, s, told, wish};
use jiff::tz::TimeZone;
use muster_oar::{
    accounting::{Books, Ended, Kind, by_window},
    fair_share::{self, Coefficients, Sums, Targets},
    planning::{
        gantt::{Attributes, Gantt, Placement, Standing},
        pass::Pass,
        reservation::{self, Answer},
        search::{Scene, Wish},
    },
    quotas::{self, Measure, Quotas},
    resources::{
        property::TYPE,
        table::Table,
        value::{Kind as Typed, Value},
    },
};
use muster_schemas::{Timestamp, quota::QuotaAmount};
use proptest::prelude::*;

fn zone() -> TimeZone {
    TimeZone::get("Europe/Zurich").expect("a known zone")
}

fn rules(text: &str) -> Quotas {
    quotas::read(text, 100, &zone()).unwrap_or_else(|broken| panic!("{text}: {broken}"))
}

fn broken(text: &str) -> String {
    quotas::read(text, 100, &zone()).expect_err(text).to_string()
}

fn attributes(queue: &str, project: &str, user: &str, types: &[&str]) -> Attributes {
    let types = types.iter().map(|kind| (*kind).to_owned()).collect();
    Attributes { queue: queue.to_owned(), project: project.to_owned(), user: user.to_owned(), types }
}

fn of(wish: Wish, attributes: Attributes) -> Wish {
    Wish { placement: Placement { attributes, ..wish.placement.clone() }, ..wish }
}

/// A pass under quotas, as starts and resources.
fn planned(table: &Table, quotas: &Quotas, guard: i64, now: i64, wishes: &[Wish]) -> Vec<String> {
    let counts = |id: u32| table.resource(id).is_some_and(|one| one.is_default());
    let limits = |placement: &Placement, gantt: &Gantt| {
        quotas.check(placement, gantt, &counts).map_err(|breach| breach.to_string())
    };
    let changes = quotas.calendar.changes(now, now + 14 * 86_400);
    let gantt = Gantt { guard, placements: Vec::new() };
    let wishes: Vec<Wish> = wishes.iter().map(|wish| Wish { not_before: now, ..wish.clone() }).collect();
    let mut pass = Pass { now, table, gantt, limits: &limits, limit_changes: &changes };
    pass.run(&wishes).iter().map(told).collect()
}

/// W4, OAR-Q-01, OAR-Q-04, OAR-Q-05: four jobs under three rules, and hours.
#[test]
fn w4_four_jobs_under_quotas() {
    let table = s();
    let three = rules(r#"{"quotas": {"*,*,*,/": [8,-1,-1], "*,bio,*,*": [-1,1,-1], "*,*,*,ann": [12,2,-1]}}"#);
    let job = |id, user: &str, project: &str, demand: &str| {
        of(wish(&table, id, &[demand]), attributes("default", project, user, &[]))
    };
    let wishes = [
        job(1, "ann", "", "core=8,walltime=0:0:100"),
        job(2, "ann", "", "core=8,walltime=0:0:100"),
        job(3, "bob", "bio", "core=4,walltime=0:0:50"),
        job(4, "bob", "bio", "core=4,walltime=0:0:50"),
    ];
    assert_eq!(planned(&table, &three, 0, 0, &wishes), ["0 on 1-8", "100 on 1-8", "0 on 9-12", "50 on 9-12"]);
    // Bob's jobs in bio are not held by the rule for each user.
    let large = [job(1, "bob", "bio", "core=12,walltime=0:0:50"), job(2, "eve", "", "core=9,walltime=0:0:50")];
    let never = "over a limit at any time: the rule *,*,*,/ allows 8 resources, there would be 9 at 50";
    assert_eq!(planned(&table, &three, 0, 0, &large), ["0 on 1-12", never]);

    let hours = rules(r#"{"quotas": {"*,*,*,/": [-1,-1,2]}}"#);
    let wishes = [
        job(1, "ann", "", "core=2,walltime=1"),
        job(2, "ann", "", "core=1,walltime=0:1"),
        job(3, "bob", "", "core=1,walltime=0:1"),
        job(4, "eve", "", "core=2,walltime=1:0:1"),
    ];
    let outcomes = planned(&table, &hours, 0, 0, &wishes);
    assert_eq!(&outcomes[..3], ["0 on 1-2", "3600 on 1", "0 on 3"]);
    assert!(outcomes[3].contains("allows 7200 resource-seconds, there would be 7202"), "{}", outcomes[3]);
}

/// OAR-Q-02: forms of limits.
#[test]
fn limits_are_numbers_texts_and_parts_of_all() {
    let limits = |value: &str| {
        let quotas = rules(&format!(r#"{{"quotas": {{"*,*,*,*": {value}}}}}"#));
        let (_, limits) =
            quotas.calendar.at(0).of(&Attributes::default(), &[]).map(|(_, limits)| ((), *limits)).expect("a rule");
        (limits.resources, limits.jobs, limits.resource_seconds)
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
        assert_eq!(limits(value), expected, "{value}");
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
        assert!(quotas::read(&format!(r#"{{"quotas": {{"*,*,*,*": {value}}}}}"#), 100, &zone()).is_err(), "{value}");
    }
}

/// OAR-Q-03: one counter for `*`, one for each value for `/`, and never `/` for the type.
#[test]
fn counters_of_all_and_of_each() {
    let table = s();
    let job = |id, user: &str| of(wish(&table, id, &["core=2,walltime=0:0:10"]), attributes("q", "", user, &[]));
    let wishes = [job(1, "a"), job(2, "b"), job(3, "a")];
    let all = rules(r#"{"quotas": {"*,*,*,*": [2,-1,-1]}}"#);
    assert_eq!(planned(&table, &all, 0, 0, &wishes), ["0 on 1-2", "10 on 1-2", "20 on 1-2"]);
    let each = rules(r#"{"quotas": {"*,*,*,/": [2,-1,-1]}}"#);
    assert_eq!(planned(&table, &each, 0, 0, &wishes), ["0 on 1-2", "0 on 3-4", "10 on 1-2"]);
    let with_guard = planned(&table, &each, 5, 0, &wishes);
    assert_eq!(with_guard, ["0 on 1-2", "0 on 3-4", "15 on 1-2"]);
    assert_eq!(
        broken(r#"{"quotas": {"*,*,/,*": 1}}"#),
        "line 1, column 13: '/' is not allowed for the type: a job has several"
    );
}

/// OAR-Q-04: one rule applies: queue, project, type and user are decided one after the other, and nothing behind changes
/// what is decided; types in the order of the submission.
#[test]
fn one_rule_applies_to_a_job() {
    let quotas = rules(
        r#"{"job_types": ["x", "y"], "quotas": {
            "*,*,*,*": 1, "*,*,*,/": 2, "*,/,*,*": 3, "*,bio,*,ann": 4, "night,*,*,*": 5, "*,/,x,*": 6, "*,/,y,/": 7, "night,*,z,*": 8}}"#,
    );
    let rule = |queue: &str, project: &str, user: &str, types: &[&str]| {
        let job = attributes(queue, project, user, types);
        quotas.calendar.at(0).of(&job, &quotas.counted_types).map(|(pattern, _)| pattern.to_string())
    };
    assert_eq!(rule("day", "phy", "bob", &[]).as_deref(), Some("*,/,*,*"));
    assert_eq!(rule("day", "bio", "ann", &[]).as_deref(), Some("*,bio,*,ann"));
    assert_eq!(rule("day", "bio", "bob", &[]), None, "the project is decided, and no rule there is about bob");
    assert_eq!(rule("night", "bio", "ann", &["x"]).as_deref(), Some("night,*,*,*"));
    assert_eq!(rule("day", "phy", "bob", &["x", "y"]).as_deref(), Some("*,/,x,*"));
    assert_eq!(rule("day", "phy", "bob", &["y", "x"]).as_deref(), Some("*,/,y,/"));
    assert_eq!(rule("night", "", "bob", &["z"]).as_deref(), Some("night,*,*,*"), "z is not counted");
    assert_eq!(rules(r#"{"quotas": {}}"#).calendar.at(0).of(&attributes("q", "p", "u", &[]), &[]), None);
}

fn checked(
    quotas: &Quotas,
    candidate: &Placement,
    others: &[Placement],
    guard: i64,
) -> Result<(), (Measure, u64, i64)> {
    let gantt = Gantt { guard, placements: others.to_vec() };
    quotas.check(candidate, &gantt, &|id| id < 100).map_err(|breach| (breach.measure, breach.would_be, breach.at))
}

/// OAR-Q-05: at every moment of the candidate, with the guard; equal is allowed.
#[test]
fn every_moment_counts_and_equal_is_allowed() {
    let quotas = rules(r#"{"quotas": {"*,*,*,*": [4, 2, -1]}}"#);
    let candidate = busy(1, "1-2", 100, 200);
    assert_eq!(checked(&quotas, &candidate, &[busy(2, "3-4", 0, 300)], 0), Ok(()));
    assert_eq!(checked(&quotas, &candidate, &[busy(2, "3-5", 150, 160)], 0), Err((Measure::Resources, 5, 150)));
    assert_eq!(checked(&quotas, &candidate, &[busy(2, "3-5", 200, 300)], 0), Ok(()));
    assert_eq!(checked(&quotas, &candidate, &[busy(2, "3-5", 200, 300)], 1), Err((Measure::Resources, 5, 200)));
    assert_eq!(checked(&quotas, &candidate, &[busy(2, "3-5", 0, 100)], 0), Ok(()));
    assert_eq!(checked(&quotas, &candidate, &[busy(2, "3-5", 0, 100)], 1), Err((Measure::Resources, 5, 100)));
    let three = [busy(2, "3", 0, 150), busy(3, "4", 149, 300)];
    assert_eq!(checked(&quotas, &candidate, &three, 0), Err((Measure::Jobs, 3, 149)));
    assert_eq!(checked(&quotas, &candidate, &[busy(2, "3", 0, 149), busy(3, "4", 149, 300)], 0), Ok(()));
    let hours = rules(r#"{"quotas": {"*,*,*,*": [-1, -1, 0.1]}}"#);
    assert_eq!(checked(&hours, &candidate, &[busy(2, "3", 0, 160)], 0), Ok(()));
    assert_eq!(checked(&hours, &candidate, &[busy(2, "3", 0, 161)], 0), Err((Measure::ResourceSeconds, 361, 100)));
}

/// OAR-Q-06: containers are neither counted nor limited, and best-effort jobs only among themselves.
#[test]
fn containers_and_best_effort_jobs_are_not_counted() {
    let quotas = rules(r#"{"quotas": {"*,*,*,*": [4, -1, -1]}}"#);
    let container = Placement { opens: Some("9".to_owned()), ..busy(9, "1-16", 0, 1000) };
    let best_effort = |placement: Placement| Placement { standing: Standing::BestEffort, ..placement };
    assert_eq!(checked(&quotas, &container, &[busy(2, "1-4", 0, 9)], 0), Ok(()));
    let others = [container, best_effort(busy(3, "1-4", 0, 1000))];
    assert_eq!(checked(&quotas, &busy(1, "1-4", 0, 10), &others, 0), Ok(()));
    assert_eq!(checked(&quotas, &best_effort(busy(1, "1", 0, 10)), &others, 0), Err((Measure::Resources, 5, 0)));
}

/// OAR-Q-07: only resources of type default count.
#[test]
fn only_resources_of_nodes_count() {
    let mut table = s();
    for _ in 0..4 {
        table.add(&[(TYPE, Value::text("licence"))]).expect("a licence");
    }
    let quotas = rules(r#"{"quotas": {"*,*,*,*": [4, -1, -1]}}"#);
    let wishes = [of(
        wish(&table, 1, &["core=4+{type='licence'}/resource_id=4,walltime=0:0:10"]),
        attributes("q", "", "u", &[]),
    )];
    assert_eq!(planned(&table, &quotas, 0, 0, &wishes), ["0 on 1-4, 17-20"]);
}

/// OAR-Q-08: a reservation over a limit is refused, and accepted ones count in their interval.
#[test]
fn reservations_keep_quotas() {
    let table = s();
    let quotas = rules(r#"{"quotas": {"*,*,*,/": [4, -1, -1]}}"#);
    let limits = |placement: &Placement, gantt: &Gantt| {
        quotas.check(placement, gantt, &|_| true).map_err(|breach| breach.to_string())
    };
    let ann = attributes("q", "", "ann", &[]);
    let accepted = Placement { attributes: ann.clone(), ..busy(9, "1-2", 1000, 2000) };
    let gantt = Gantt { guard: 0, placements: vec![accepted] };
    let scene = Scene { table: &table, gantt: &gantt, windows: None, limits: &limits, limit_changes: &[] };
    let answer = |demand: &str| {
        let wish = Wish { not_before: 1500, ..of(wish(&table, 1, &[demand]), ann.clone()) };
        reservation::answer(&scene, &wish, 1500)
    };
    assert!(matches!(answer("core=2,walltime=0:1"), Answer::Ok(_)));
    let Answer::Ko { why, later } = answer("core=3,walltime=0:1") else { panic!("refused") };
    assert_eq!((why.as_str(), later), ("the rule *,*,*,/ allows 4 resources, there would be 5 at 1500", Ok(2000)));
}

/// OAR-Q-09: an administrator's type lifts the limits.
#[test]
fn a_type_lifts_the_limits() {
    let quotas = rules(r#"{"quotas": {"*,*,*,*": [1, -1, -1]}}"#);
    let free = Placement { attributes: attributes("q", "", "u", &["no_quotas"]), ..busy(1, "1-4", 0, 10) };
    assert_eq!(checked(&quotas, &free, &[], 0), Ok(()));
    assert!(checked(&quotas, &busy(1, "1-4", 0, 10), &[], 0).is_err());
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

fn local(text: &str) -> i64 {
    muster_oar::options::date::seconds(text, 0, &zone()).unwrap_or_else(|why| panic!("{why}"))
}

/// OAR-Q-10: rules of the time of the week, in local time; single spans go first.
#[test]
fn rules_of_the_week_and_of_single_spans() {
    let quotas = rules(CALENDAR);
    let at = |text: &str| {
        let job = attributes("q", "", "u", &[]);
        quotas.calendar.at(local(text)).of(&job, &[]).and_then(|(_, limits)| limits.resources)
    };
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
    let changes = quotas.calendar.changes(local("2026-11-26 08:00"), local("2026-11-30 08:00"));
    let expected = [
        "2026-11-26 19:00",
        "2026-11-27 08:00",
        "2026-11-27 19:00",
        "2026-11-28 00:00",
        "2026-11-29 00:00",
        "2026-11-30 00:00",
        "2026-11-30 08:00",
    ];
    assert_eq!(changes, expected.map(local));
}

/// OAR-Q-10: a job across periods fits the rule of each in its part.
#[test]
fn a_job_across_periods_fits_the_rule_of_each() {
    let table = s();
    let quotas = rules(CALENDAR);
    let place = |now: &str, demand: &str| {
        let wishes = [of(wish(&table, 1, &[demand]), attributes("q", "", "u", &[]))];
        planned(&table, &quotas, 0, local(now), &wishes).remove(0)
    };
    let on = |moment: &str, resources: &str| format!("{} on {resources}", local(moment));
    assert_eq!(place("2026-11-26 12:00", "core=1,walltime=24"), on("2026-11-26 12:00", "1"));
    assert_eq!(place("2026-11-26 12:00", "core=2,walltime=13"), on("2026-11-26 19:00", "1-2"));
    assert_eq!(place("2026-11-26 19:00", "core=2,walltime=13:0:1"), on("2026-11-27 19:00", "1-2"));
    assert_eq!(place("2026-11-26 12:00", "core=3,walltime=48"), on("2026-11-28 00:00", "1-3"));
    assert!(place("2026-11-26 12:00", "core=3,walltime=48:0:1").starts_with("over a limit at any time"));
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
    assert_eq!(rules(whole_days).calendar.week.len(), 7);
    let nights = r#"{"a": {}, "periodical": [["00:00-19:00 * * *", "a"], ["19:00-00:00 * * *", "a"]]}"#;
    assert_eq!(rules(nights).calendar.week.len(), 14);
    assert!(broken(r#"{"a": {}, "periodical": [["* * * * *", "a"]]}"#).contains("expected \"hh:mm-hh:mm days * *\""));
}

/// W11, OAR-Q-12: karma, and the order that follows.
#[test]
fn w11_karma() {
    let karma = |used, asked, target| {
        let sums = Sums { used: 1000, asked: 2000, used_by_user: used, asked_by_user: asked, used_by_project: 0 };
        fair_share::karma(sums, Targets { project: 0.0, user: target }, Coefficients::default())
    };
    let all = [("ann", karma(600, 800, 20.0)), ("bob", karma(400, 1200, 60.0)), ("carl", karma(0, 0, 0.0))];
    let shown: Vec<String> = all.iter().map(|(_, karma)| fair_share::shown(*karma)).collect();
    assert_eq!(shown, ["1.000", "-0.400", "0.000"]);
    let mut order = all;
    order.sort_by(|one, other| one.1.total_cmp(&other.1));
    assert_eq!(order.map(|(user, _)| user), ["bob", "carl", "ann"]);
    let empty = fair_share::karma(
        Sums::default(),
        Targets { project: 10.0, user: 50.0 },
        Coefficients { project: 1.0, user: 2.0, asked: 1.0 },
    );
    assert_eq!(fair_share::shown(empty), "-1.600");
    let project = Sums { used: 4, used_by_project: 3, ..Sums::default() };
    assert_eq!(
        fair_share::shown(fair_share::karma(
            project,
            Targets::default(),
            Coefficients { project: 1.0, user: 0.0, asked: 0.0 }
        )),
        "0.750"
    );
    assert_eq!(fair_share::shown(-0.0001), "0.000");
}

fn ended(job: u64, resources: u64, start: i64, stop: i64, walltime: i64) -> Ended {
    let (user, project, queue) = ("ann".to_owned(), "bio".to_owned(), "default".to_owned());
    Ended { job, user, project, queue, resources, start: Some(start), stop, walltime }
}

fn rows(books: &Books, kind: Kind) -> Vec<(i64, i64, u64)> {
    books.rows().filter(|(key, ..)| key.kind == kind).map(|(key, stop, sum)| (key.window_start, stop, sum)).collect()
}

/// W3, OAR-A-01, OAR-A-02: used and asked time in three windows.
#[test]
fn w3_accounting_over_three_windows() {
    let mut books = Books::new(86_400);
    books.count(&ended(1, 4, 1_000_000, 1_150_000, 172_800));
    let used = [(950_400, 1_036_799, 147_200), (1_036_800, 1_123_199, 345_600), (1_123_200, 1_209_599, 107_200)];
    let asked = [(950_400, 1_036_799, 147_200), (1_036_800, 1_123_199, 345_600), (1_123_200, 1_209_599, 198_400)];
    assert_eq!(rows(&books, Kind::Used), used);
    assert_eq!(rows(&books, Kind::Asked), asked);
    assert_eq!((books.rows().count(), Kind::Used.word(), Kind::Asked.word()), (6, "USED", "ASKED"));
    let total = |kind| rows(&books, kind).iter().map(|(.., sum)| sum).sum::<u64>();
    assert_eq!((total(Kind::Used), total(Kind::Asked)), (600_000, 691_200));
    let mut books = Books::new(86_400);
    books.count(&ended(2, 2, 86_400, 172_800, 86_400));
    assert_eq!(rows(&books, Kind::Used), [(86_400, 172_799, 172_800)]);
    assert_eq!(by_window(-10, 10, 86_400), [(-86_400, 10), (0, 10)]);
}

/// OAR-A-03, OAR-A-04: what never started, or did not last, counts nothing; each job counts once.
#[test]
fn jobs_count_once_and_only_if_they_ran() {
    let mut books = Books::new(100);
    books.count(&Ended { start: None, ..ended(1, 4, 0, 50, 60) });
    books.count(&ended(2, 4, 50, 50, 60));
    books.count(&ended(3, 4, 60, 50, 60));
    assert_eq!(books.rows().count(), 0);
    books.count(&ended(4, 1, 10, 20, 60));
    let once = books.clone();
    books.count(&ended(4, 1, 10, 20, 60));
    assert_eq!(books, once);
}

/// OAR-A-05, OAR-A-06: recomputing gives the same, old windows go, and sums are by user.
#[test]
fn books_are_recomputed_and_summed_up() {
    let jobs = [
        ended(1, 1, 10, 120, 200),
        ended(2, 2, 250, 260, 10),
        Ended { user: "bob".to_owned(), project: "phy".to_owned(), ..ended(3, 1, 0, 90, 90) },
    ];
    let made = || {
        let mut books = Books::new(100);
        jobs.iter().for_each(|job| books.count(job));
        books
    };
    assert_eq!(made(), made());
    let mut books = made();
    let summary = books.summary(0, 300, None);
    assert_eq!(
        summary.iter().map(|(user, sum)| (user.as_str(), sum.used, sum.asked)).collect::<Vec<_>>(),
        [("ann", 130, 220), ("bob", 90, 90)]
    );
    assert_eq!((summary["ann"].first, summary["ann"].last), (0, 299));
    assert_eq!(books.summary(0, 300, Some("phy")).len(), 1);
    // Windows with a stop after the beginning and a start before the end.
    assert_eq!(books.summary(99, 100, None).len(), 0);
    assert_eq!(books.summary(98, 100, None).len(), 2);
    assert_eq!(books.sum("default", Kind::Used, 0, 200, &|key| key.user == "ann"), 110);
    books.delete_before(100);
    assert_eq!(books.rows().map(|(key, ..)| key.window_start).min(), Some(100));
    books.count(&jobs[2]);
    assert_eq!(books.summary(0, 300, None).len(), 1);
}

/// Adds up what is used second by second.
fn slowly(start: i64, stop: i64, size: i64) -> Vec<(i64, u64)> {
    let mut parts: Vec<(i64, u64)> = Vec::new();
    for second in start..stop {
        let window = second.div_euclid(size) * size;
        match parts.last_mut() {
            Some((last, count)) if *last == window => *count += 1,
            _ => parts.push((window, 1)),
        }
    }
    parts
}

proptest! {
    /// OAR-A-02: cutting at borders is the same as counting seconds.
    #[test]
    fn windows_are_cut_as_seconds_are_counted(start in -50..200_i64, length in 0..200_i64, size in 1..60_i64) {
        prop_assert_eq!(by_window(start, start + length, size), slowly(start, start + length, size));
    }

    /// OAR-Q-05: the check agrees with counting at every second.
    #[test]
    fn limits_are_kept_at_every_second(others in proptest::collection::vec((1..6_u32, 0..30_i64, 1..20_i64, any::<bool>()), 0..6), start in 0..30_i64, length in 1..20_i64, guard in 0..3_i64) {
        let quotas = rules(r#"{"quotas": {"*,*,*,/": [6, 2, 0.02]}}"#);
        let user = |is_ann: bool| attributes("q", "", if is_ann { "ann" } else { "bob" }, &[]);
        let placed: Vec<Placement> = (2..).zip(&others).map(|(job, (count, start, length, is_ann))| {
            Placement { attributes: user(*is_ann), ..busy(job, &format!("1-{count}"), *start, start + length) }
        }).collect();
        let candidate = Placement { attributes: user(true), ..busy(1, "1-3", start, start + length) };
        let is_over = |second: i64| {
            let there: Vec<&Placement> = placed.iter().chain([&candidate])
                .filter(|one| one.attributes.user == "ann" && one.start <= second && second < one.end + guard).collect();
            let resources: usize = there.iter().map(|one| one.resources.len()).sum();
            let work: i64 = there.iter().map(|one| one.resources.len() as i64 * (one.end - one.start)).sum();
            resources > 6 || there.len() > 2 || work > 72
        };
        let expected = !(start..start + length + guard).any(is_over);
        prop_assert_eq!(checked(&quotas, &candidate, &placed, guard).is_ok(), expected);
    }

    /// OAR-Q-11: any file is read or refused, with a place inside it.
    #[test]
    fn any_file_is_read_or_refused(parts in proptest::collection::vec(prop_oneof![
        Just("{"), Just("}"), Just("["), Just("]"), Just(","), Just(":"), Just("\"quotas\""), Just("\"*,*,*,/\""), Just("\"periodical\""),
        Just("\"* mon * *\""), Just("\"a\""), Just("\"oneshot\""), Just("1"), Just("-1"), Just("\"ALL\""), Just("\n"), Just("\\"),
        Just("\""), Just("\"job_types\""), Just("1e9"), Just("null"), Just("ä"),
    ], 0..30), text in ".{0,60}") {
        for text in [parts.concat(), text] {
            if let Err(broken) = quotas::read(&text, 7, &TimeZone::UTC) {
                let line = text.split('\n').nth(broken.line - 1).expect("the line exists");
                prop_assert!(broken.column <= line.chars().count() + 1, "{}", broken);
            }
        }
    }

    /// OAR-Q-10: between changes the rules stay the same.
    #[test]
    fn rules_change_only_where_changes_are_told(begin in 1_760_000_000_i64..1_800_000_000, length in 1..900_000_i64) {
        let quotas = rules(CALENDAR);
        let changes = quotas.calendar.changes(begin, begin + length);
        let mut at = begin;
        for change in changes.iter().copied().chain([begin + length]) {
            prop_assert_eq!(quotas.calendar.at(at), quotas.calendar.at(change - 1));
            prop_assert_eq!(quotas.calendar.at(at), quotas.calendar.at(at + (change - at) / 2));
            at = change.min(begin + length - 1);
        }
    }
}

/// OAR-Q-10: where clocks change, rules change only where changes are told, too.
#[test]
fn rules_follow_clocks_that_change() {
    let text =
        r#"{"a": {"*,*,*,*": 1}, "b": {"*,*,*,*": 2}, "periodical": [["02:30-12:00 * * *", "a"], ["* * * *", "b"]]}"#;
    let quotas = rules(text);
    for day in ["2026-10-25", "2026-03-29", "2026-11-26"] {
        let begin = local(&format!("{day} 00:00"));
        let end = begin + 86_400;
        let changes = quotas.calendar.changes(begin, end);
        let moments = (begin + 60..=end).step_by(60);
        let found: Vec<i64> =
            moments.filter(|moment| quotas.calendar.at(*moment) != quotas.calendar.at(moment - 60)).collect();
        assert!(found.iter().all(|moment| changes.contains(moment)), "{day}: {found:?} {changes:?}");
        let expected = if day == "2026-10-25" { 4 } else { 2 };
        assert_eq!(found.len(), expected, "{day}: half past two comes twice when clocks go back");
    }
}

#[test]
fn a_pass_without_rules_is_a_plain_pass() {
    let table = nodes(2);
    let mut other = nodes(2);
    other.add_property("x", Typed::Text).expect("new");
    let none = rules("{}");
    assert_eq!(planned(&table, &none, 0, 0, &[wish(&table, 1, &["nodes=2"])]), ["0 on 1-2"]);
}

/// OAR-Q-02, OAR-Q-10: the system's table says the same as the file at every moment, also when clocks change.
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
    let now: jiff::Timestamp = "2026-10-01T00:00:00Z".parse().unwrap();
    let table = quotas::parse(text, &zone()).unwrap().table(&zone(), now);
    assert_eq!(table.kinds, ["deploy"]);
    let quotas = rules(text);
    let mut at = now.as_second();
    let end = at + 400 * 86_400;
    while at < end {
        let (set, expected) = (table.set_at(Timestamp::from_unix_seconds(at)), quotas.calendar.at(at));
        let rule = &table.sets[set].rules[0];
        let (pattern, limits) = expected.0.first_key_value().unwrap();
        assert_eq!(rule.to_string(), pattern.to_string(), "at {at}");
        let amount = |amount: Option<QuotaAmount>| amount.map(|amount| amount.in_cluster(100));
        assert_eq!(
            [amount(rule.cores), amount(rule.jobs), amount(rule.core_seconds)],
            [limits.resources, limits.jobs, limits.resource_seconds]
        );
        let next = table.next_change(Timestamp::from_unix_seconds(at)).unwrap().unix_seconds();
        assert!(next > at);
        // Nothing changes in between, and just before the next change the same rules hold.
        assert_eq!(quotas.calendar.at(next - 1), expected, "before {next}");
        at = next;
    }
    assert_eq!(table, quotas::parse(text, &zone()).unwrap().table(&zone(), "2026-10-02T00:00:00Z".parse().unwrap()));
}
