//! A figure and its target.

use std::{fmt, time::Duration};

/// A measured figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// In words, with the circumstances that matter.
    pub measure: String,
    /// The value.
    pub value: f64,
    /// The unit, such as `jobs/s`.
    pub unit: &'static str,
    /// The target.
    pub target: Target,
}

/// The target of a value.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
    /// There is no target.
    None,
}

impl Figure {
    /// A rate per second, which should be at least `target`.
    pub fn rate(measure: impl Into<String>, count: usize, elapsed: Duration, unit: &'static str, target: f64) -> Self {
        let value = count as f64 / elapsed.as_secs_f64();
        Self { measure: measure.into(), value, unit, target: Target::AtLeast(target) }
    }

    /// A time, which should be at most `target_ms`.
    pub fn time(measure: impl Into<String>, elapsed: Duration, target_ms: f64) -> Self {
        let value = elapsed.as_secs_f64() * 1e3;
        Self { measure: measure.into(), value, unit: "ms", target: Target::AtMost(target_ms) }
    }

    fn verdict(&self) -> &'static str {
        let is_met = match self.target {
            Target::AtLeast(least) => self.value >= least,
            Target::AtMost(most) => self.value <= most,
            Target::None => return "told",
        };
        if is_met { "met" } else { "missed" }
    }

    fn target_text(&self) -> String {
        match self.target {
            Target::AtLeast(least) => format!("{} {} or more", number(least), self.unit),
            Target::AtMost(most) => format!("{} {} or less", number(most), self.unit),
            Target::None => "none".to_owned(),
        }
    }

    /// The figure as the first cells of a table row.
    pub fn table_cells(&self) -> String {
        let verdict = self.verdict();
        format!("| {} | {} | {} {} | {verdict} |", self.measure, self.target_text(), number(self.value), self.unit)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = self.verdict();
        write!(f, "{}: {} {} (target {}: {verdict})", self.measure, number(self.value), self.unit, self.target_text())
    }
}

/// A number with three significant digits and separators between thousands.
fn number(value: f64) -> String {
    let decimals = if value.abs() >= 100.0 {
        0
    } else if value.abs() >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), ""), |(whole, fraction)| (whole, fraction));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match fraction.trim_end_matches('0') {
        "" => grouped,
        fraction => format!("{grouped}.{fraction}"),
    }
}

/// The value that the given part (0 to 1) of the times does not exceed. Zero if there are none.
pub fn quantile(times: &mut [Duration], part: f64) -> Duration {
    times.sort_unstable();
    let last = times.len().saturating_sub(1);
    times.get((last as f64 * part).round() as usize).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_grouped() {
        let shown: Vec<_> = [0.0, 0.123, 4.5, 12.34, 999.6, 50_000.0, 1_234_567.0, -1234.0].map(number).into();
        assert_eq!(shown, ["0", "0.12", "4.5", "12.3", "1,000", "50,000", "1,234,567", "-1,234"]);
    }

    #[test]
    fn a_figure_says_whether_its_target_is_met() {
        let rate = Figure::rate("jobs", 600, Duration::from_secs(2), "jobs/s", 301.0);
        assert_eq!(rate.to_string(), "jobs: 300 jobs/s (target 301 jobs/s or more: missed)");
        let time = Figure::time("start", Duration::from_micros(4500), 5.0);
        assert_eq!(time.table_cells(), "| start | 5 ms or less | 4.5 ms | met |");
    }

    #[test]
    fn quantiles_of_few_times_are_times_that_were_measured() {
        let mut times: Vec<_> = (1..=100).rev().map(Duration::from_millis).collect();
        assert_eq!(quantile(&mut times, 0.5), Duration::from_millis(51));
        assert_eq!(quantile(&mut times, 0.99), Duration::from_millis(99));
        assert_eq!(quantile(&mut times, 1.0), Duration::from_millis(100));
        assert_eq!(quantile(&mut [], 0.5), Duration::ZERO);
    }
}
