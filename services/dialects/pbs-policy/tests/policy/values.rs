//! Times, sizes and numbers.

use muster_pbs_policy::values::{Decimal, boolean, kilobytes, seconds, show_seconds};

/// PBS-Q-08.
#[test]
fn times_have_one_to_three_parts() {
    for (text, expected) in [
        ("90", Some(90)),
        ("0", Some(0)),
        ("1:30", Some(90)),
        ("90:00", Some(5400)),
        ("1:00:00", Some(3600)),
        ("24:00:00", Some(86_400)),
        ("100:00:01", Some(360_001)),
        ("", None),
        (":", None),
        ("1:", None),
        ("-1", None),
        ("+1", None),
        ("1:2:3:4", None),
        ("1h", None),
        ("1.5", None),
        ("5124095576030431:00:15", Some(u64::MAX)),
        ("5124095576030431:00:16", None),
        ("99999999999999999999", None),
    ] {
        assert_eq!(seconds(text), expected, "{text}");
    }
    assert_eq!(show_seconds(90_061), "25:01:01");
}

/// PBS-Q-08.
#[test]
fn sizes_are_compared_in_kilobytes() {
    for (text, expected) in [
        ("1mb", Some(1024)),
        ("1mw", Some(8192)),
        ("1500b", Some(1)),
        ("1500", Some(1)),
        ("1023", Some(0)),
        ("1500w", Some(11)),
        ("400MB", Some(409_600)),
        ("1k", Some(1)),
        ("1kw", Some(8)),
        ("2g", Some(2 << 20)),
        ("1tb", Some(1 << 30)),
        ("1pb", None),
        ("mb", None),
        ("", None),
        ("1 mb", None),
        ("1.5gb", None),
        ("-1mb", None),
        ("1bb", None),
        ("18446744073709551615tw", None),
    ] {
        assert_eq!(kilobytes(text), expected, "{text}");
    }
}

/// PBS-F-01: PBS took any other word as true.
#[test]
fn booleans_are_eight_words() {
    for word in ["true", "True", "TRUE", "yes", "on", "1"] {
        assert_eq!(boolean(word), Some(true), "{word}");
    }
    for word in ["false", "No", "OFF", "0"] {
        assert_eq!(boolean(word), Some(false), "{word}");
    }
    for word in ["", "maybe", "t", "2", "enable"] {
        assert_eq!(boolean(word), None, "{word}");
    }
}

/// PBS-L-02: loads are exact, so sums that are equal on paper are equal.
#[test]
fn numbers_with_a_point_are_exact() {
    for (text, expected) in [
        ("50", Some("50")),
        ("64.0", Some("64")),
        ("0.8", Some("0.8")),
        (".5", Some("0.5")),
        ("3.", Some("3")),
        ("1.23456789", Some("1.234567")),
        ("", None),
        (".", None),
        ("-1", None),
        ("1e3", None),
        ("nan", None),
        ("1.2.3", None),
        ("99999999999999999999", None),
    ] {
        assert_eq!(Decimal::parse(text).map(|number| number.to_string()).as_deref(), expected, "{text}");
    }
    let sum = Decimal::parse("0.1").zip(Decimal::parse("0.2")).map(|(one, two)| one.plus(two));
    assert_eq!(sum, Decimal::parse("0.3"));
}
