//! Charts as SVG text: the course of a simulation ([`courses()`]) and the plan for each node ([`gantt()`]).
//!
//! The same input gives the same text. Everything that is drawn has a `<title>`, which browsers show as a tooltip and
//! screen readers read.

mod courses;
mod gantt;
mod scale;
mod svg;

pub use courses::{Course, courses};
pub use gantt::{Bar, BarKind, Gantt, Look, Row, gantt};

/// Colours that most people can tell apart, even with impaired colour vision (after Okabe and Ito).
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#999999"];

/// The colour of a series, or of anything else counted from 0.
fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}
