//! Samples of events, only for tests of this and other crates.

use crate::{
    codec,
    event::{Concern, Record},
};

/// One record of each kind of event, as the first release that had it wrote it; `tests/golden.rs` keeps them.
///
/// # Panics
/// If the samples are damaged.
pub fn samples() -> Vec<Record> {
    let digits = |line: &str, at: usize| u8::from_str_radix(&line[at..at + 2], 16).expect("two hexadecimal digits");
    let bytes = |line: &str| -> Vec<u8> { (0..line.len()).step_by(2).map(|at| digits(line, at)).collect() };
    let lines = include_str!("../tests/golden/log-v1.hex").lines();
    lines.map(|line| codec::decode(&bytes(line)).expect("a record")).collect()
}

/// Checks that a part of muster acts on exactly those kinds of events that concern it in the table of events.
///
/// # Panics
/// If it does not.
pub fn assert_handles(concern: Concern, mut handles: impl FnMut(&Record) -> bool) {
    for record in samples() {
        let event = &record.event;
        let (is_handled, is_concerned) = (handles(&record), event.concerns(concern));
        assert_eq!(is_handled, is_concerned, "{:?} of {event:?}: what it does and what the table says", concern);
    }
}
