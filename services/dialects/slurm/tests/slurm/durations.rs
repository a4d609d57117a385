//! Lengths of time.

use muster_slurm::duration::{TimeLimit, long, parse_seconds, short};
use proptest::prelude::*;

/// SL-C-03.
#[test]
fn every_form_of_a_time_is_read() {
    let seconds = |text| parse_seconds(text).unwrap();
    assert_eq!(seconds("5"), 300);
    assert_eq!(seconds("5:30"), 330);
    assert_eq!(seconds("1:02:03"), 3723);
    assert_eq!(seconds("2-3"), 2 * 86_400 + 3 * 3600);
    assert_eq!(seconds("2-3:04"), 2 * 86_400 + 3 * 3600 + 240);
    assert_eq!(seconds("2-3:04:05"), 2 * 86_400 + 3 * 3600 + 245);
    for wrong in ["", "x", "1:2:3:4", "1-", "-5", "1:-2", "1.5", "+3", "99999999999999999999"] {
        assert_eq!(parse_seconds(wrong), None, "{wrong}");
    }
}

/// SL-C-03: limits count in minutes, seconds round up; 0 and words are no limit.
#[test]
fn limits_are_whole_minutes() {
    assert_eq!(TimeLimit::parse("0:01"), Some(TimeLimit::Minutes(1)));
    assert_eq!(TimeLimit::parse("1:01"), Some(TimeLimit::Minutes(2)));
    assert_eq!(TimeLimit::parse("17"), Some(TimeLimit::Minutes(17)));
    for none in ["0", "UNLIMITED", "infinite", "-1"] {
        assert_eq!(TimeLimit::parse(none), Some(TimeLimit::Unlimited), "{none}");
    }
    assert_eq!(TimeLimit::parse("9999999999999"), None);
}

/// SL-C-03: each command prints in its own way.
#[test]
fn each_command_prints_times_in_its_own_way() {
    assert_eq!(TimeLimit::Minutes(17).to_string(), "00:17:00");
    assert_eq!(TimeLimit::Minutes(2880).to_string(), "2-00:00:00");
    assert_eq!(TimeLimit::Unlimited.to_string(), "UNLIMITED");
    assert_eq!(TimeLimit::Minutes(30).short(), "30:00");
    assert_eq!(TimeLimit::Minutes(60).short(), "1:00:00");
    assert_eq!(TimeLimit::Minutes(2880).short(), "2-00:00:00");
    assert_eq!(TimeLimit::Unlimited.short(), "UNLIMITED");
    assert_eq!(TimeLimit::Unlimited.sinfo(), "infinite");
    assert_eq!((short(6), short(1098)), ("0:06".to_owned(), "18:18".to_owned()));
    assert_eq!(long(6), "00:00:06");
}

proptest! {
    /// SL-C-03: printed times read back as the same time.
    #[test]
    fn printed_times_are_read_again(seconds in 0u64..100_000_000) {
        prop_assert_eq!(parse_seconds(&long(seconds)), Some(seconds));
        prop_assert_eq!(parse_seconds(&short(seconds)), Some(seconds));
    }

    #[test]
    fn any_text_is_a_time_or_not(text in "[0-9:-]{0,24}|\\PC{0,20}") {
        if let Some(TimeLimit::Minutes(minutes)) = TimeLimit::parse(&text) {
            prop_assert!(minutes > 0);
        }
    }
}
