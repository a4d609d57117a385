//! The text format of Prometheus, version 0.0.4.

use opentelemetry::KeyValue;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, HistogramDataPoint, Metric, MetricData, ResourceMetrics};
use std::fmt::{self, Display, Write as _};

/// All metrics as text.
pub(super) fn render(collected: &ResourceMetrics) -> String {
    let mut text = String::new();
    for metric in collected.scope_metrics().flat_map(|scope| scope.metrics()) {
        // Writing to a string does not fail.
        let _ = match metric.data() {
            AggregatedMetrics::F64(data) => write_metric(&mut text, metric, data),
            AggregatedMetrics::U64(data) => write_metric(&mut text, metric, data),
            AggregatedMetrics::I64(data) => write_metric(&mut text, metric, data),
        };
    }
    text
}

fn write_metric<T: Display + Copy>(text: &mut String, metric: &Metric, data: &MetricData<T>) -> fmt::Result {
    let name = metric.name();
    let kind = match data {
        MetricData::Sum(sum) if sum.is_monotonic() => "counter",
        MetricData::Sum(_) | MetricData::Gauge(_) => "gauge",
        MetricData::Histogram(_) => "histogram",
        // None is ever created: it would need another view of an instrument.
        MetricData::ExponentialHistogram(_) => return Ok(()),
    };
    writeln!(text, "# HELP {name} {}", Escaped { text: metric.description(), quotes: false })?;
    writeln!(text, "# TYPE {name} {kind}")?;
    match data {
        MetricData::Sum(sum) => {
            for point in sum.data_points() {
                write_sample(text, name, "", point.attributes(), None, point.value())?;
            }
        }
        MetricData::Gauge(gauge) => {
            for point in gauge.data_points() {
                write_sample(text, name, "", point.attributes(), None, point.value())?;
            }
        }
        MetricData::Histogram(histogram) => {
            for point in histogram.data_points() {
                write_histogram(text, name, point)?;
            }
        }
        MetricData::ExponentialHistogram(_) => {}
    }
    Ok(())
}

fn write_histogram<T: Display + Copy>(text: &mut String, name: &str, point: &HistogramDataPoint<T>) -> fmt::Result {
    let mut below = 0;
    let bounds = point.bounds().map(|bound| bound.to_string()).chain(["+Inf".to_owned()]);
    for (bound, count) in bounds.zip(point.bucket_counts()) {
        below += count;
        write_sample(text, name, "_bucket", point.attributes(), Some(&bound), below)?;
    }
    write_sample(text, name, "_sum", point.attributes(), None, point.sum())?;
    write_sample(text, name, "_count", point.attributes(), None, point.count())
}

fn write_sample<'a>(
    text: &mut String,
    name: &str,
    suffix: &str,
    attributes: impl Iterator<Item = &'a KeyValue>,
    bound: Option<&str>,
    value: impl Display,
) -> fmt::Result {
    write!(text, "{name}{suffix}")?;
    let attributes = attributes.map(|attribute| (attribute.key.as_str(), attribute.value.as_str().into_owned()));
    let labels: Vec<(&str, String)> = attributes.chain(bound.map(|bound| ("le", bound.to_owned()))).collect();
    for (at, (label, value)) in labels.iter().enumerate() {
        let separator = if at == 0 { '{' } else { ',' };
        write!(text, "{separator}{label}=\"{}\"", Escaped { text: value, quotes: true })?;
    }
    let end = if labels.is_empty() { "" } else { "}" };
    writeln!(text, "{end} {value}")
}

/// Text with backslashes and line ends escaped for the format; quotes only inside quotes.
struct Escaped<'a> {
    text: &'a str,
    quotes: bool,
}

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.text.chars() {
            match character {
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '"' if self.quotes => f.write_str("\\\"")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::metrics;
    use opentelemetry::KeyValue;

    #[test]
    fn every_kind_of_instrument_is_written_as_the_format_wants_it() {
        metrics::counter("muster_things_total", "Things \\ with\nlines.")
            .add(3, &[KeyValue::new("queue", "a\"b\\c\n")]);
        metrics::gauge("muster_level", "A level.").record(-2, &[]);
        metrics::up_down_counter("muster_open", "Open ones.").add(4, &[]);
        metrics::duration_seconds("muster_wait_seconds", "A wait.").record(0.003, &[]);
        metrics::duration_seconds("muster_wait_seconds", "A wait.").record(1000.0, &[]);

        let text = metrics::render_prometheus();
        let expected = [
            "# HELP muster_things_total Things \\\\ with\\nlines.\n# TYPE muster_things_total counter\n",
            "muster_things_total{queue=\"a\\\"b\\\\c\\n\"} 3\n",
            "# TYPE muster_level gauge\nmuster_level -2\n",
            "# TYPE muster_open gauge\nmuster_open 4\n",
            "# TYPE muster_wait_seconds histogram\nmuster_wait_seconds_bucket{le=\"0.00005\"} 0\n",
            "muster_wait_seconds_bucket{le=\"0.002\"} 0\nmuster_wait_seconds_bucket{le=\"0.005\"} 1\n",
            "muster_wait_seconds_bucket{le=\"100\"} 1\nmuster_wait_seconds_bucket{le=\"+Inf\"} 2\n",
            "muster_wait_seconds_sum 1000.003\nmuster_wait_seconds_count 2\n",
        ];
        for part in expected {
            assert!(text.contains(part), "missing {part:?} in\n{text}");
        }
    }
}
