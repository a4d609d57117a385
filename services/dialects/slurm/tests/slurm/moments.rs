//! Points in time.

use super::submissions::now;
use muster_schemas::time::Timestamp;
use muster_slurm::moment::{TimeFormat, parse, show};
use proptest::prelude::*;

fn shown(text: &str) -> String {
    show(parse(text, &now()).unwrap_or_else(|| panic!("{text}")), now().time_zone())
}

/// SL-C-04.
#[test]
fn every_form_of_a_moment_is_read() {
    for (text, expected) in [
        ("16:30", "2026-11-20T16:30:00"),
        ("16:30:15", "2026-11-20T16:30:15"),
        ("4:30 PM", "2026-11-20T16:30:00"),
        ("4:30PM", "2026-11-20T16:30:00"),
        ("12:00am", "2026-11-21T00:00:00"),
        ("120326", "2026-12-03T00:00:00"),
        ("1203", "2026-12-03T00:00:00"),
        ("12/03/26", "2026-12-03T00:00:00"),
        ("12.03.26", "2026-12-03T00:00:00"),
        ("12/03/26 16:30", "2026-12-03T16:30:00"),
        ("16:30 12/03/26", "2026-12-03T16:30:00"),
        ("2027-01-20", "2027-01-20T00:00:00"),
        ("2027-01-20T12:34", "2027-01-20T12:34:00"),
        ("2027-01-20t12:34:56", "2027-01-20T12:34:56"),
        ("today", "2026-11-20T00:00:00"),
        ("tomorrow", "2026-11-21T00:00:00"),
        ("midnight", "2026-11-21T00:00:00"),
        ("elevenses", "2026-11-20T11:00:00"),
        ("noon", "2026-11-20T12:00:00"),
        ("fika", "2026-11-20T15:00:00"),
        ("teatime tomorrow", "2026-11-21T16:00:00"),
        ("noon-tomorrow", "2026-11-21T12:00:00"),
        ("tomorrow-16:30", "2026-11-21T16:30:00"),
        ("fika-2027-01-20", "2027-01-20T15:00:00"),
        ("now", "2026-11-20T10:00:00"),
        ("now+90", "2026-11-20T10:01:30"),
        ("now + 2 hours", "2026-11-20T12:00:00"),
        ("now-1days", "2026-11-19T10:00:00"),
        ("NOW+1week", "2026-11-27T10:00:00"),
        ("now+5minutes", "2026-11-20T10:05:00"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

/// SL-C-04: a time of day in the past is tomorrow's, a day without a year in the past is next year's.
#[test]
fn what_is_past_comes_round_again() {
    assert_eq!(shown("9:59"), "2026-11-21T09:59:00");
    assert_eq!(shown("10:00"), "2026-11-20T10:00:00");
    assert_eq!(shown("01/05"), "2027-01-05T00:00:00");
    assert_eq!(shown("2020-01-01"), "2020-01-01T00:00:00");
}

/// SL-C-04: a day later is 24 hours later, even when the clocks change.
#[test]
fn a_clock_that_changes_does_not_move_an_offset() {
    let before: jiff::Zoned = "2026-10-24T12:00:00[Europe/Zurich]".parse().unwrap();
    let later = parse("now+1day", &before).unwrap();
    assert_eq!(later.0 - before.timestamp().as_microsecond(), 86_400_000_000);
}

#[test]
fn what_is_no_moment_is_refused() {
    for text in [
        "",
        "x",
        "25:00",
        "13:00pm",
        "0:30 am",
        "2026-13-01",
        "2026-02-30",
        "now+",
        "now+1year",
        "nowish",
        "noon noon",
        "pm",
        "12/03/26 x",
    ] {
        assert_eq!(parse(text, &now()), None, "{text}");
    }
}

/// SL-E-11: `SLURM_TIME_FORMAT`.
#[test]
fn times_are_printed_as_the_variable_says() {
    let at = |text: &str| parse(text, &now()).unwrap();
    let format = TimeFormat::from_variable;
    assert_eq!(format(None).show(at("noon"), &now()), "2026-11-20T12:00:00");
    assert_eq!(format(Some("standard")).show(at("noon"), &now()), "2026-11-20T12:00:00");
    assert_eq!(format(Some("%H.%M")).show(at("noon"), &now()), "12.00");
    assert_eq!(format(Some("%!")).show(at("noon"), &now()), "2026-11-20T12:00:00");
    let relative = format(Some("relative"));
    assert_eq!(relative.show(at("noon"), &now()), "12:00:00");
    assert_eq!(relative.show(at("tomorrow"), &now()), "Tomorr 00:00");
    assert_eq!(relative.show(at("now-1days"), &now()), "Ystday 10:00");
    assert_eq!(relative.show(at("now+3days"), &now()), "Mon 10:00");
    assert_eq!(relative.show(at("12/03/26"), &now()), "3 Dec 00:00");
    assert_eq!(relative.show(at("2028-03-01"), &now()), "1 Mar 2028");
}

proptest! {
    /// SL-C-04: a printed time reads back as the same second.
    #[test]
    fn a_printed_moment_is_read_again(seconds in 0i64..4_000_000_000) {
        let utc = now().with_time_zone(jiff::tz::TimeZone::UTC);
        let moment = Timestamp::from_unix_seconds(seconds);
        prop_assert_eq!(parse(&show(moment, utc.time_zone()), &utc), Some(moment));
    }

    #[test]
    fn any_text_is_a_moment_or_not(text in "(now|[0-9]{1,4})[-+:/.T0-9a-z ]{0,16}|\\PC{0,20}") {
        let _ = parse(&text, &now());
        let _ = TimeFormat::Pattern(text).show(Timestamp::from_unix_seconds(0), &now());
    }
}
