//! Amounts of memory.

use muster_slurm::size::{Units, megabytes_of, parse_megabytes, show_megabytes};
use proptest::prelude::*;

/// SL-C-05: a plain number is megabytes, suffixes K M G T.
#[test]
fn sizes_are_read_in_megabytes() {
    assert_eq!(parse_megabytes("100"), Some(100));
    assert_eq!(parse_megabytes("1500k"), Some(2));
    assert_eq!(parse_megabytes("10M"), Some(10));
    assert_eq!(parse_megabytes("16g"), Some(16_384));
    assert_eq!(parse_megabytes("1T"), Some(1 << 20));
    for wrong in ["", "G", "-1", "1X", "1.5G", "+3", "99999999999999999999", "999999999999999999T"] {
        assert_eq!(parse_megabytes(wrong), None, "{wrong}");
    }
}

/// SL-C-05.
#[test]
fn sizes_are_shown_in_the_largest_unit_that_is_exact() {
    assert_eq!(show_megabytes(10), "10M");
    assert_eq!(show_megabytes(4000), "4000M");
    assert_eq!(show_megabytes(65_536), "64G");
    assert_eq!(show_megabytes(0), "0M");
    assert_eq!(megabytes_of(1), 1);
}

/// SL-A-07: `--units` and `--noconvert`.
#[test]
fn sizes_are_shown_in_a_unit_that_is_asked_for() {
    assert_eq!(
        [Units::parse("K"), Units::parse("g"), Units::parse("X")],
        [Some(Units::Power(1)), Some(Units::Power(3)), None]
    );
    assert_eq!(Units::Power(1).show_megabytes(200), "204800K");
    assert_eq!(Units::Power(3).show_megabytes(1536), "1.50G");
    assert_eq!(Units::Power(2).show(1 << 20, 0), "1M");
    assert_eq!(Units::Measured.show(1 << 20, 0), "1048576");
    assert_eq!(Units::Largest.show_megabytes(65_536), "64G");
    assert_eq!(Units::Power(1).show(u64::MAX, 5), format!("{}K", u64::MAX));
}

proptest! {
    #[test]
    fn shown_sizes_are_read_again(megabytes in prop_oneof![0u64..5000, (0u64..5000).prop_map(|size| size << 10)]) {
        prop_assert_eq!(parse_megabytes(&show_megabytes(megabytes)), Some(megabytes));
    }

    #[test]
    fn any_text_is_a_size_or_not(text in "\\PC{0,20}") {
        let _ = parse_megabytes(&text);
    }
}
