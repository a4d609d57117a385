//! Axes: round values to label them with, and curves with few points for courses that change often.

use super::svg::{Anchor, INK, Svg};

/// The look of the marks on a horizontal axis.
pub(super) struct Marks {
    /// The top and bottom of each mark's line.
    pub lines: (f64, f64),
    /// The colour of the lines.
    pub stroke: &'static str,
    /// The baseline of the labels, which are centred on the marks.
    pub labels: f64,
    /// Their size in pixels.
    pub size: u32,
}

impl Marks {
    /// Draws a mark.
    pub fn draw(&self, svg: &mut Svg, x: f64, label: &str) {
        svg.line((x, self.lines.0), (x, self.lines.1), self.stroke);
        svg.text((x, self.labels), Anchor::Middle, self.size, INK, label);
    }
}

/// Round values from 0 to at least `greatest`, about `wanted` of them.
pub(super) fn ticks(greatest: f64, wanted: u32) -> Vec<f64> {
    let greatest = if greatest.is_finite() && greatest > 0.0 { greatest } else { 1.0 };
    let rough = greatest / f64::from(wanted.max(1));
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough);
    let step = step.unwrap_or(rough);
    let count = (greatest / step).ceil() as u32;
    (0..=count.max(1)).map(|number| f64::from(number) * step).collect()
}

/// The text of a tick's value.
pub(super) fn label(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}").trim_end_matches('0').to_owned() }
}

/// The mean value of a course in each of `count` equal parts of the time from `first` to `last`. The course holds the
/// value from each time on, in ascending order of time; before the first it is 0.
pub(super) fn means(course: &[(i64, i64)], first: i64, last: i64, count: usize) -> Vec<f64> {
    let length = (last - first).max(1) as f64 / count as f64;
    let mut sums = vec![0.0; count];
    for (at, (from, value)) in course.iter().enumerate() {
        let until = course.get(at + 1).map_or(last, |(time, _)| *time);
        let (from, until) = ((*from).max(first), until.min(last));
        if until <= from || *value == 0 {
            continue;
        }
        let (from, until) = ((from - first) as f64 / length, (until - first) as f64 / length);
        let (first_part, last_part) = (from as usize, (until.ceil() as usize).min(count));
        for (part, sum) in sums.iter_mut().enumerate().take(last_part).skip(first_part) {
            let inside = until.min((part + 1) as f64) - from.max(part as f64);
            *sum += inside.max(0.0) * *value as f64;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_greatest_value() {
        assert_eq!(ticks(97.0, 5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(ticks(1.0, 4), [0.0, 0.25, 0.5, 0.75, 1.0]);
        for odd in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(ticks(odd, 1), [0.0, 1.0]);
        }
        assert!(ticks(1e15, 5).len() <= 7);
        assert_eq!([label(0.25), label(0.5), label(20.0)], ["0.25", "0.5", "20"]);
    }

    #[test]
    fn means_weigh_values_by_how_long_they_hold() {
        let course = [(10, 4), (15, 0), (20, 2)];
        assert_eq!(means(&course, 10, 30, 2), [2.0, 2.0]);
        assert_eq!(means(&course, 0, 40, 4), [0.0, 2.0, 2.0, 2.0]);
        assert_eq!(means(&course, 12, 14, 1), [4.0]);
        assert_eq!(means(&[], 0, 10, 2), [0.0, 0.0]);
        assert_eq!(means(&course, 10, 10, 1).len(), 1);
    }
}
