use super::{
    time::{Lean, parse_when},
    *,
};
use jiff::Zoned;
use muster_schemas::{
    Timestamp,
    resources::{NodeFilter, PropertyValue, Relation},
};
use proptest::prelude::*;

#[test]
fn sizes_have_binary_units() {
    assert_eq!(parse_size("0"), Ok(0));
    assert_eq!(parse_size("17B"), Ok(17));
    assert_eq!(parse_size("4K"), Ok(4096));
    assert_eq!(parse_size("512MiB"), Ok(512 << 20));
    assert_eq!(parse_size("4G"), Ok(4 << 30));
    assert_eq!(parse_size("1.5G"), Ok(3 << 29));
    assert_eq!(parse_size("2TB"), Ok(2 << 40));
    assert_eq!(parse_size("16383P"), Ok(16383 << 50));
}

#[test]
fn sizes_that_mean_nothing_are_refused() {
    for text in ["", "G", "4000", "4X", "1.G", "1.2.3G", "-1G", "16384P", "99999999999999999999G", "+4G", "4 G"] {
        assert!(parse_size(text).is_err(), "{text}");
    }
    assert!(parse_size("4000").unwrap_err().contains("4000M"));
}

#[test]
fn walltimes_are_read_as_hpc_users_write_them() {
    for (text, seconds) in [
        ("30", 1800),
        ("90s", 90),
        ("10m", 600),
        ("2h", 7200),
        ("1d12h", 129_600),
        ("1:30", 90),
        ("1:30:00", 5400),
        ("2-12", 216_000),
        ("2-12:30", 217_800),
        ("2-12:00:00", 216_000),
        ("0", 0),
    ] {
        assert_eq!(parse_walltime(text), Ok(seconds), "{text}");
    }
    for text in ["", "1:2:3:4", "1y", "h", "-", "1-", "::", "9999999999999999999d", "1.5h", "1 h"] {
        assert!(parse_walltime(text).is_err(), "{text}");
    }
}

#[test]
fn counts_are_numbers_ranges_or_all() {
    assert_eq!(parse_count("4"), Ok(Count::exactly(4)));
    assert_eq!(parse_count("2-4"), Ok(Count::Range { min: 2, max: 4 }));
    assert_eq!(parse_count("all"), Ok(Count::All));
    for text in ["0", "4-2", "", "-", "2-", "4294967296", "1099511627776", "+1"] {
        assert!(parse_count(text).is_err(), "{text}");
    }
}

#[test]
fn signals_have_names_and_numbers() {
    for (text, number) in [("USR1", 10), ("sigterm", 15), ("SIGKILL", 9), ("64", 64), ("1", 1)] {
        assert_eq!(parse_signal(text), Ok(number), "{text}");
    }
    for text in ["", "0", "65", "256", "NOSUCH", "SIG"] {
        assert!(parse_signal(text).is_err(), "{text}");
    }
    assert_eq!(parse_signal_before("USR2@120"), Ok(SignalBefore { signal: 12, seconds_before_end: 120 }));
    assert_eq!(parse_signal_before("INT"), Ok(SignalBefore { signal: 2, seconds_before_end: 60 }));
    assert!(parse_signal_before("INT@").is_err());
    assert_eq!(signal_name(15), "TERM");
    assert_eq!(signal_name(40), "40");
}

#[test]
fn arrays_have_indices_steps_and_a_limit() {
    let array = parse_array("1,3,5-9:2%4").unwrap();
    assert_eq!(array.indices.to_string(), "1,3,5,7,9");
    assert_eq!(array.max_running, Some(4));
    assert_eq!(parse_array("0-9").unwrap().max_running, None);
    for text in ["", "%2", "0-9%0", "9-0", "0-9%", "a", "0-9:0", "0-4294967295:2"] {
        assert!(parse_array(text).is_err(), "{text}");
    }
}

#[test]
fn dependencies_are_all_unless_joined_by_a_question_mark() {
    let on = |kind, job: &str, delay_seconds| Dependency { kind, job: Some(job.parse().unwrap()), delay_seconds };
    assert_eq!(
        parse_after("ok:1:2_3,ended:4+10m").unwrap(),
        vec![
            vec![on(DependencyKind::Succeeded, "1", 0)],
            vec![on(DependencyKind::Succeeded, "2_3", 0)],
            vec![on(DependencyKind::Ended, "4", 600)],
        ]
    );
    assert_eq!(
        parse_after("ok:1?failed:2,singleton").unwrap(),
        vec![
            vec![on(DependencyKind::Succeeded, "1", 0), on(DependencyKind::Failed, "2", 0)],
            vec![Dependency { kind: DependencyKind::Singleton, job: None, delay_seconds: 0 }],
        ]
    );
    assert_eq!(parse_after("not-failed:3").unwrap(), vec![vec![on(DependencyKind::NotFailed, "3", 0)]]);
    for text in ["", "12", "ok", "ok:", "ok:x", "sometimes:3", "ok:1,", "ok:1+", "ok:0"] {
        assert!(parse_after(text).is_err(), "{text}");
    }
}

#[test]
fn licences_and_gpus() {
    assert_eq!(parse_licences("matlab:2,ansys").unwrap(), [("ansys".into(), 1), ("matlab".into(), 2)].into());
    for text in ["", "a,", "a:0", "a,a", ":2"] {
        assert!(parse_licences(text).is_err(), "{text}");
    }
    assert_eq!(parse_gpus("2"), Ok(GpuCount { count: 2, model: None }));
    assert_eq!(parse_gpus("a100:4"), Ok(GpuCount { count: 4, model: Some("a100".into()) }));
    assert!(parse_gpus(":4").is_err());
}

#[test]
fn host_lists_expand_and_compress() {
    assert_eq!(parse_hosts("n[1-3],login").unwrap(), ["n1", "n2", "n3", "login"]);
    assert_eq!(parse_hosts("n[08-10,12]-ib").unwrap(), ["n08-ib", "n09-ib", "n10-ib", "n12-ib"]);
    assert_eq!(parse_hosts("r[1-2]n[1-2]").unwrap(), ["r1n1", "r1n2", "r2n1", "r2n2"]);
    for text in ["", "a,", "n[", "n]", "n[1", "n[[1]]", "n[2-1]", "n[x]", "n[1-4000000000]", "n[]"] {
        assert!(parse_hosts(text).is_err(), "{text}");
    }
    assert_eq!(compress_hosts(&["node1", "node2", "node3", "x"]), "node[1-3],x");
    assert_eq!(compress_hosts(&["node9", "node10"]), "node[9-10]");
    assert_eq!(compress_hosts(&["n01", "n02", "n04"]), "n[01-02,04]");
    assert_eq!(compress_hosts(&["n1"]), "n1");
    assert_eq!(compress_hosts::<&str>(&[]), "");
}

#[test]
fn conditions_bind_as_usual() {
    let has = |name: &str| NodeFilter::Has(name.into());
    assert_eq!(
        parse_condition("gpu & !old | fast").unwrap(),
        NodeFilter::Any(vec![NodeFilter::All(vec![has("gpu"), NodeFilter::Not(Box::new(has("old")))]), has("fast")])
    );
    assert_eq!(
        parse_condition("gpu&(old|fast)").unwrap(),
        NodeFilter::All(vec![has("gpu"), NodeFilter::Any(vec![has("old"), has("fast")])])
    );
    let compare = |property: &str, relation, value| NodeFilter::Compare { property: property.into(), relation, value };
    assert_eq!(
        parse_condition("mem>=64").unwrap(),
        compare("mem", Relation::GreaterOrEqual, PropertyValue::Number(64))
    );
    assert_eq!(
        parse_condition("arch != 'zen 4'").unwrap(),
        compare("arch", Relation::NotEqual, PropertyValue::Text("zen 4".into()))
    );
    assert_eq!(parse_condition("ib=true").unwrap(), compare("ib", Relation::Equal, PropertyValue::Flag(true)));
    assert!(parse_condition("gpu & ").unwrap_err().contains("character 7"));
    assert!(parse_condition(&"(".repeat(100_000)).is_err());
    assert!(parse_condition(&"!".repeat(100_000)).is_err());
}

fn now() -> Zoned {
    "2026-11-20T08:30:00+01:00[Europe/Berlin]".parse().unwrap()
}

fn at(rfc3339: &str) -> Timestamp {
    Timestamp(rfc3339.parse::<jiff::Timestamp>().unwrap().as_microsecond())
}

#[test]
fn points_in_time_are_read_in_many_forms() {
    for (text, expected) in [
        ("2026-11-19T23:00:00Z", "2026-11-19T23:00:00Z"),
        ("2026-11-19T23:00:00.5+02:00", "2026-11-19T21:00:00.5Z"),
        ("2026-11-20 08:00", "2026-11-20T07:00:00Z"),
        ("2026-11-20T08:00:30", "2026-11-20T07:00:30Z"),
        ("2026-11-20", "2026-11-19T23:00:00Z"),
        ("now", "2026-11-20T07:30:00Z"),
        ("-10s", "2026-11-20T07:29:50Z"),
        ("10 minutes ago", "2026-11-20T07:20:00Z"),
        ("1h30m ago", "2026-11-20T06:00:00Z"),
        ("now-1h", "2026-11-20T06:30:00Z"),
        ("1 month ago", "2026-10-20T06:30:00Z"),
        ("+2h", "2026-11-20T09:30:00Z"),
        ("now + 1d", "2026-11-21T07:30:00Z"),
    ] {
        assert_eq!(parse_when(text, &now(), Lean::Past), Ok(at(expected)), "{text}");
    }
    for text in ["", "yesterdayish", "10m", "25:00", "8", "2026-13-01", "12:00:61", "-", "+", "99999999999 years ago"] {
        assert!(parse_when(text, &now(), Lean::Past).is_err(), "{text}");
    }
}

#[test]
fn a_clock_time_is_the_last_or_the_next() {
    assert_eq!(parse_when("08:00", &now(), Lean::Past), Ok(at("2026-11-20T07:00:00Z")));
    assert_eq!(parse_when("09:00", &now(), Lean::Past), Ok(at("2026-11-19T08:00:00Z")));
    assert_eq!(parse_when("09:00:05", &now(), Lean::Future), Ok(at("2026-11-20T08:00:05Z")));
    assert_eq!(parse_when("08:00", &now(), Lean::Future), Ok(at("2026-11-21T07:00:00Z")));
}

#[test]
fn lengths_are_printed_like_clocks() {
    for (seconds, text) in [(7, "0:07"), (750, "12:30"), (10_800, "3:00:00"), (216_000, "2-12:00:00"), (-5, "0:00")] {
        assert_eq!(format_duration(seconds), text);
    }
    for (bytes, text) in [(0, "0B"), (1023, "1023B"), (1 << 20, "1M"), (3 << 29, "1.5G"), (u64::MAX, "16383.9P")] {
        assert_eq!(format_size(bytes), text);
    }
}

proptest! {
    #[test]
    fn no_parser_panics(text in "\\PC*") {
        let _ = parse_size(&text);
        let _ = parse_walltime(&text);
        let _ = parse_count(&text);
        let _ = parse_signal_before(&text);
        let _ = parse_array(&text);
        let _ = parse_after(&text);
        let _ = parse_licences(&text);
        let _ = parse_gpus(&text);
        let _ = parse_environment_entry(&text);
        let _ = parse_hosts(&text);
        let _ = parse_condition(&text);
        let _ = parse_when(&text, &now(), Lean::Past);
    }

    #[test]
    fn nothing_near_the_grammar_panics(text in "[0-9a-z\\[\\]():%&|!<>=,@+ \"'.-]{0,40}") {
        let _ = parse_size(&text);
        let _ = parse_walltime(&text);
        let _ = parse_array(&text);
        let _ = parse_after(&text);
        let _ = parse_hosts(&text);
        let _ = parse_condition(&text);
        let _ = parse_when(&text, &now(), Lean::Future);
    }

    #[test]
    fn compressed_hosts_expand_to_the_same(numbers in prop::collection::vec(0u32..50, 1..20)) {
        let hosts: Vec<String> = numbers.iter().map(|number| format!("n{number}")).collect();
        prop_assert_eq!(parse_hosts(&compress_hosts(&hosts)).unwrap(), hosts);
    }
}
