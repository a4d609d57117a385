//! The indices of arrays.

use muster_pbs::array::parse;
use proptest::prelude::*;

#[test]
fn both_forms_of_arrays_are_read() {
    let read = |text: &str| {
        let array = parse("-J", text, 10_001).unwrap_or_else(|wrong| panic!("{text}: {wrong}"));
        (array.indices.iter().collect::<Vec<_>>(), array.max_running)
    };
    assert_eq!(read("0-4:2"), (vec![0, 2, 4], None));
    assert_eq!(read("0-9:3%2"), (vec![0, 3, 6, 9], Some(2)));
    assert_eq!(read("0-2,12%2"), (vec![0, 1, 2, 12], Some(2)));
    assert_eq!(read(" 5 "), (vec![5], None));
    assert_eq!(read("10000"), (vec![10_000], None));
}

#[test]
fn what_is_wrong_with_an_array_is_said() {
    for (text, part) in [
        ("", "expected a number or a range"),
        ("1-", "expected a number or a range"),
        ("a-b", "expected a number or a range"),
        ("3-1", "the range goes down"),
        ("0-9:0", "the step is at least 1"),
        ("0-10001", "indices are below 10001"),
        ("0-9%0", "a number from 1"),
        ("0-9%", "a number from 1"),
        ("0-9%x", "a number from 1"),
        ("0-4294967295:2", "indices are below 10001"),
        ("1,,2", "expected a number or a range"),
    ] {
        let message = parse("-J", text, 10_001).unwrap_err().to_string();
        assert!(message.contains(part) && message.starts_with("illegal -J value"), "{text}: {message}");
    }
    assert!(parse("-t", &"1,".repeat(40_000), 10).is_err());
}

proptest! {
    #[test]
    fn no_text_makes_arrays_panic(text in "\\PC{0,40}", likely in "[0-9,:%-]{0,40}") {
        let _ = (parse("-J", &text, 10_000), parse("-J", &likely, u32::MAX));
    }

    #[test]
    fn arrays_are_read_as_they_are_printed(first in 0u32..500, length in 0u32..500, step in 1u32..9) {
        let array = parse("-t", &format!("{first}-{}:{step}", first + length), 1_000).unwrap();
        prop_assert_eq!(parse("-t", &array.indices.to_string(), 1_000).unwrap(), array);
    }
}
