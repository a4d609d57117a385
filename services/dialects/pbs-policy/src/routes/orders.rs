//! The orders of the presets, as keys and formulas of the planner (PBS-P-08, PBS-P-19, PBS-P-21).

use crate::{
    engine,
    preset::{Preset, PresetConfig},
};
pub use muster_schemas::policy::routes::{BACKGROUND, BASE, PAST_USAGE, SPECIAL};
use muster_schemas::policy::{OrderKey, routes::JobStanding};

/// The standing of the jobs of a queue.
pub fn standing(config: &PresetConfig, queue: &str) -> JobStanding {
    if config.special_queue.as_ref().is_some_and(|special| special.queue == queue) {
        JobStanding::Privileged
    } else if config.background_queue.as_deref() == Some(queue) {
        JobStanding::Background
    } else {
        JobStanding::Normal
    }
}

/// The base of the priority of a queue's jobs (PBS-P-21).
pub fn base_of(config: &PresetConfig, queue: &str) -> i64 {
    let is_challenge = config.challenge_queue.as_deref() == Some(queue);
    match standing(config, queue) {
        JobStanding::Privileged => 10_000,
        JobStanding::Normal if is_challenge => 7_020,
        JobStanding::Normal | JobStanding::Background => 100,
    }
}

/// The order of normal jobs, in prime time or otherwise. `units` are those of the whole machine.
pub(super) fn order(config: &PresetConfig, is_prime: bool, units: u64) -> Vec<OrderKey> {
    let ascending = |text: &str| OrderKey::Formula { text: text.to_owned(), descending: false };
    let largest = |text: String| OrderKey::Formula { text, descending: true };
    match (config.preset, is_prime) {
        (Preset::SgiOrigin, true) => vec![OrderKey::Spt, largest(size(config))],
        (Preset::SgiOrigin, false) => vec![largest(size(config)), OrderKey::Spt],
        (Preset::IbmSp, true) => {
            let by_class = format!("if(attribute(\"interactive\") > 0, -({}), walltime)", size(config));
            vec![ascending("if(attribute(\"interactive\") > 0, 0, 1)"), ascending(&by_class)]
        }
        (Preset::IbmSp, false) => {
            vec![ascending("if(attribute(\"interactive\") > 0, 1, 0)"), largest(size(config))]
        }
        (Preset::CrayT3e, _) => vec![largest(priority(config, units))],
        (Preset::Multitask, _) => Vec::new(),
    }
}

/// The size of a job in nodes (PBS-P-04).
fn size(config: &PresetConfig) -> String {
    let part = |resource: &str, per_unit: u64| {
        let attribute = format!("attribute(\"{}\")", engine::attribute(resource));
        format!("if({attribute} > 0, ceil({attribute} / {}), 1)", per_unit.max(1))
    };
    match config.preset {
        Preset::SgiOrigin => {
            let [cpus, memory] = [part("ncpus", config.node_cpus.into()), part("mem", config.node_memory_kilobytes)];
            format!("max({cpus}, {memory})")
        }
        Preset::IbmSp => part("nodect", 1),
        Preset::CrayT3e | Preset::Multitask => part("ncpus", 1),
    }
}

/// The priority of `cray_t3e` (PBS-P-21). `500 * (1 + tanh(0.3 * w - 1))` is `1000 / (1 + exp(2 - 0.6 * w))`, which loses
/// no digits.
fn priority(config: &PresetConfig, units: u64) -> String {
    let PresetConfig { usage_weight, nodes_weight, queued_time_weight, .. } = config;
    let usage = match config.sort_by_past_usage {
        // A user who has never been charged has no such attribute, and has used nothing.
        true => format!(
            "{usage_weight} / 2.5 * if(attribute(\"{PAST_USAGE}\") > 0, attribute(\"{PAST_USAGE}\"), 0) / {units}"
        ),
        false => "0".to_owned(),
    };
    let w = format!(
        "0.3 * {nodes_weight} * {} / {units} + 0.7 * {queued_time_weight} * (wait / 3600) + 0.001 * attribute(\"{BASE}\") \
         - {usage}",
        size(config)
    );
    let p = format!("1000 / (1 + exp(2 - 0.6 * ({w})))");
    format!(
        "if(attribute(\"{BACKGROUND}\") > 0, {p} - 1024, if(attribute(\"{SPECIAL}\") > 0, 1000 + 0.024 * ({p}), {p}))"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::policy::formula::{Formula, Variable, Variables};

    struct Job<'j> {
        formula: &'j Formula,
        hours: f64,
        attributes: Vec<(&'static str, f64)>,
    }

    impl Variables for Job<'_> {
        fn value(&self, variable: Variable) -> f64 {
            match variable {
                Variable::Wait => self.hours * 3600.0,
                Variable::Attribute(index) => {
                    let name = &self.formula.attributes()[index];
                    let known = self.attributes.iter().find(|(known, _)| known == name);
                    known.map_or(f64::NAN, |(_, value)| *value)
                }
                _ => f64::NAN,
            }
        }
    }

    /// W11, PBS-P-21: the priority of each class.
    #[test]
    fn w11_priorities() {
        let config = PresetConfig {
            special_queue: crate::preset::QueueName::parse("special"),
            challenge_queue: Some("challenge".into()),
            background_queue: Some("background".into()),
            ..PresetConfig::new(Preset::CrayT3e)
        };
        let formula = Formula::parse(&priority(&config, 512)).expect("a formula");
        let of = |queue: &str, nodes: f64, usage: f64, hours: f64| {
            let flag = |wanted| if standing(&config, queue) == wanted { 1.0 } else { 0.0 };
            let attributes = vec![
                ("cores", nodes),
                (PAST_USAGE, usage),
                (BASE, base_of(&config, queue) as f64),
                (BACKGROUND, flag(JobStanding::Background)),
                (SPECIAL, flag(JobStanding::Privileged)),
            ];
            let priority = formula.evaluate(&Job { formula: &formula, hours, attributes });
            (priority * 1000.0).round() / 1000.0
        };
        for (queue, nodes, usage, hours, expected) in [
            ("normal", 64.0, 20.0, 10.0, 910.825),
            ("normal", 128.0, 0.0, 1.0, 230.587),
            ("challenge", 16.0, 100.0, 0.0, 856.021),
            ("special", 8.0, 0.0, 0.0, 1023.577),
            ("background", 256.0, 0.0, 30.0, -24.012),
            ("normal", 8.0, 300.0, 20.0, 993.778),
            ("normal", 512.0, 0.0, 0.0, 336.261),
        ] {
            assert_eq!(of(queue, nodes, usage, hours), expected, "{queue} {nodes}");
        }
    }

    /// PBS-P-21: a job whose owner was never charged has a priority all the same.
    #[test]
    fn without_past_usage_nothing_was_used() {
        let formula = Formula::parse(&priority(&PresetConfig::new(Preset::CrayT3e), 512)).expect("a formula");
        let of = |usage: Option<f64>| {
            let usage = usage.map(|usage| (PAST_USAGE, usage));
            let named = [("cores", 8.0), (BASE, 10_000.0), (BACKGROUND, 0.0), (SPECIAL, 1.0)];
            let attributes = named.into_iter().chain(usage).collect();
            formula.evaluate(&Job { formula: &formula, hours: 0.0, attributes })
        };
        assert!(of(None).is_finite());
        assert_eq!(of(None).to_bits(), of(Some(0.0)).to_bits());
        assert!(of(Some(100.0)) < of(None));
    }

    /// PBS-P-04: the larger of both, rounded up.
    #[test]
    fn sizes_of_orders() {
        let formula = Formula::parse(&size(&PresetConfig::new(Preset::SgiOrigin))).expect("a formula");
        let of =
            |attributes: Vec<(&'static str, f64)>| formula.evaluate(&Job { formula: &formula, hours: 0.0, attributes });
        assert_eq!(of(vec![("cores", 5.0), ("memory_kib", 262_144.0)]), 3.0);
        assert_eq!(of(vec![("cores", 5.0), ("memory_kib", 4.0 * 262_144.0 + 1.0)]), 5.0);
        assert_eq!(of(vec![]), 1.0);
    }
}
