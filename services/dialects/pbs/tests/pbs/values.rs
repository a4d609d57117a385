//! Times, sizes and points in time.

use crate::support::now;
use muster_pbs::value::{Size, parse_date_time, parse_seconds, show_seconds};
use proptest::prelude::*;

/// PBS-Q-08: `SS`, `MM:SS`, `HH:MM:SS`.
#[test]
fn times_have_up_to_four_parts() {
    for (text, seconds) in
        [("90", 90), ("1:30", 90), ("01:00:05", 3_605), ("1:00:00:00", 86_400), ("0", 0), ("5.4", 5), ("5.5", 6)]
    {
        assert_eq!(parse_seconds(text), Some(seconds), "{text}");
    }
    for text in ["", ":", "1:", "-1", "+1", "1h", "1:2:3:4:5", "5.", ".5", "5.x", "99999999999999999999", "1 "] {
        assert_eq!(parse_seconds(text), None, "{text}");
    }
    assert_eq!(show_seconds(90_061), "25:01:01");
}

/// PBS-Q-08: units of 1024, words of 8 bytes, compared in kilobytes, a plain byte count rounded down.
#[test]
fn sizes_are_compared_in_kilobytes() {
    for (text, kilobytes) in [
        ("1mb", 1024),
        ("1mw", 8192),
        ("1500b", 1),
        ("1500", 1),
        ("1023", 0),
        ("2GB", 2 << 20),
        ("3tb", 3 << 30),
        ("8k", 8),
        ("1234B", 1),
        ("13MB", 13 << 10),
    ] {
        assert_eq!(Size::parse(text).map(Size::kilobytes), Some(kilobytes), "{text}");
    }
    for text in ["", "b", "1.5gb", "-1", "1x", "1bb", "1wb", "99999999999999999999", "99999999pb", "1 gb"] {
        assert_eq!(Size::parse(text), None, "{text}");
    }
}

#[test]
fn what_a_date_leaves_out_is_the_next_such_moment() {
    let local = |text: &str| {
        let at = parse_date_time(text, &now()).unwrap_or_else(|| panic!("{text}"));
        at.to_jiff().to_zoned(now().time_zone().clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
    };
    for (text, moment) in [
        ("1200", "2026-11-20 12:00:00"),
        ("0900", "2026-11-21 09:00:00"),
        ("0900.30", "2026-11-21 09:00:30"),
        ("191200", "2026-12-19 12:00:00"),
        ("211200", "2026-11-21 12:00:00"),
        ("03011200", "2027-03-01 12:00:00"),
        ("12241200", "2026-12-24 12:00:00"),
        ("2703011200", "2027-03-01 12:00:00"),
        ("9903011200", "1999-03-01 12:00:00"),
        ("202703011200.59", "2027-03-01 12:00:59"),
    ] {
        assert_eq!(local(text), moment, "{text}");
    }
    for text in ["", "1", "12:00", "2400", "1260", "13011200", "02301200", "1200.5", "1200.60", "12345", "é200"] {
        assert_eq!(parse_date_time(text, &now()), None, "{text}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_values_panic(text in "\\PC{0,24}", digits in "[0-9:.kmgtpbwKMG]{0,24}") {
        for text in [&text, &digits] {
            let _ = (parse_seconds(text), Size::parse(text), parse_date_time(text, &now()));
        }
    }

    #[test]
    fn times_and_sizes_are_read_as_they_are_printed(seconds in 0u64..1 << 40, number in 0u64..1 << 20, unit in "[kmg]?[bw]") {
        prop_assert_eq!(parse_seconds(&show_seconds(seconds)), Some(seconds));
        let size = Size::parse(&format!("{number}{unit}")).unwrap();
        prop_assert_eq!(Size::parse(&size.to_string()), Some(size));
    }
}
