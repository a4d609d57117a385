//! Faults of routes.

use super::{Faults, MOST_AMOUNT, MOST_PERIODS, MOST_TURN_QUEUES};
use crate::policy::routes::{Machine, Routes, TargetHours};
use std::collections::BTreeSet;

/// The most parts of a size.
const MOST_PARTS: usize = 32;
/// The highest percentage that makes sense.
const MOST_PERCENT: u32 = 1_000_000;

impl Faults {
    pub(super) fn routes(&mut self, place: &str, routes: &Routes) {
        let lists = [
            ("sources", routes.sources.len(), MOST_TURN_QUEUES),
            ("targets", routes.targets.len(), MOST_TURN_QUEUES),
            ("machines", routes.machines.len(), MOST_TURN_QUEUES),
            ("size", routes.size.len(), MOST_PARTS),
        ];
        for (key, len, most) in lists.iter().filter(|(_, len, most)| len > most) {
            self.add(&format!("{place}.{key}"), format!("expected at most {most} entries, found {len}"));
        }
        let sources = routes.sources.iter().map(|source| &source.queue);
        let in_place = routes.targets.iter().filter(|target| target.in_place).map(|target| &target.queue);
        self.names(&format!("{place}.sources"), sources.chain(in_place), "a queue whose jobs wait");
        self.names(&format!("{place}.targets"), routes.targets.iter().map(|target| &target.queue), "a queue");
        self.names(&format!("{place}.machines"), routes.machines.iter().map(|machine| &machine.name), "a machine");
        for (index, target) in routes.targets.iter().enumerate() {
            let place = format!("{place}.targets.{index}");
            if target.machine.as_ref().is_some_and(|name| routes.machine(name).is_none()) {
                self.add(&format!("{place}.machine"), "expected one of `machines`".into());
            }
            if !target.in_place && target.hours != TargetHours::All {
                self.add(&format!("{place}.hours"), "expected all hours: only jobs in place have hours".into());
            }
        }
        for (index, machine) in routes.machines.iter().enumerate() {
            self.machine(&format!("{place}.machines.{index}"), machine);
        }
        for (index, part) in routes.size.iter().enumerate() {
            let place = format!("{place}.size.{index}");
            self.text(&place, &part.attribute, "the name of an attribute");
            if part.per_unit == 0 {
                self.add(&place, "expected 1 or more for a unit".into());
            }
        }
        let percent = routes.load.and_then(|load| load.percent);
        if percent
            .is_some_and(|band| !(band.low <= band.target && band.target <= band.high && band.high <= MOST_PERCENT))
        {
            self.add(&format!("{place}.load.percent"), format!("expected low <= target <= high <= {MOST_PERCENT}"));
        }
    }

    fn machine(&mut self, place: &str, machine: &Machine) {
        if machine.outages.len() > MOST_PERIODS {
            self.add(&format!("{place}.outages"), format!("expected at most {MOST_PERIODS} entries"));
        }
        self.periods(&format!("{place}.outages"), &machine.outages);
        for (name, most) in &machine.max_attributes {
            self.text(&format!("{place}.max_attributes"), name, "the name of an attribute");
            if *most > MOST_AMOUNT {
                self.add(&format!("{place}.max_attributes"), format!("expected at most {MOST_AMOUNT}"));
            }
        }
    }

    /// Names that stand once each.
    fn names<'n>(&mut self, place: &str, names: impl Iterator<Item = &'n String>, what: &str) {
        let mut seen = BTreeSet::new();
        for name in names {
            self.text(place, name, &format!("the name of {what}"));
            if !seen.insert(name) {
                self.add(place, format!("expected {what} once only: an entry names it already"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{
        Policy, Turns,
        routes::{LoadBand, LoadPercent, SizePart, Source, Target},
    };

    fn faults(routes: Routes) -> Vec<String> {
        let turns = Turns { routes: Some(Box::new(routes)), ..Turns::default() };
        let policy = Policy { turns: Some(Box::new(turns)), ..Policy::default() };
        policy.faults().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn routes_that_make_no_sense_are_faults() {
        let target = |queue: &str| Target { queue: queue.into(), ..Target::default() };
        let source = |queue: &str| Source { queue: queue.into(), ..Source::default() };
        let good = Routes {
            sources: vec![source("submit")],
            targets: vec![target("small"), target("large")],
            machines: vec![Machine { name: "one".into(), ..Machine::default() }],
            ..Routes::default()
        };
        assert_eq!(faults(good.clone()), [""; 0]);
        let twice = Routes { targets: vec![target("small"), target("small")], ..good.clone() };
        assert_eq!(faults(twice), ["`turns.routes.targets`: expected a queue once only: an entry names it already"]);
        let in_place = Target { in_place: true, ..target("submit") };
        assert_eq!(faults(Routes { targets: vec![in_place], ..good.clone() }).len(), 1);
        let unknown = Target { machine: Some("two".into()), ..target("small") };
        assert_eq!(
            faults(Routes { targets: vec![unknown], ..good.clone() }),
            ["`turns.routes.targets.0.machine`: expected one of `machines`"]
        );
        let hours = Target { hours: TargetHours::Usual, ..target("small") };
        assert_eq!(faults(Routes { targets: vec![hours], ..good.clone() }).len(), 1);
        let size = vec![SizePart { attribute: "cores".into(), per_unit: 0 }];
        assert_eq!(faults(Routes { size, ..good.clone() }).len(), 1);
        let percent = Some(LoadPercent { low: 90, target: 80, high: 100 });
        let load = Some(LoadBand { percent, ..LoadBand::default() });
        assert_eq!(faults(Routes { load, ..good }).len(), 1);
    }
}
