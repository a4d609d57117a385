//! What running jobs have asked for by name, as limits count it.

use super::{
    rules::name,
    usage::{Usage, first_part},
};
use crate::model::{Demand, Holder};
use muster_schemas::policy::{Limit, LimitPer};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// The numbers of a job by name.
pub(crate) type Attributes<'a> = Option<&'a BTreeMap<String, i64>>;

/// What running jobs have asked for, by the limits that count it.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    /// The limits that count attributes.
    rules: Vec<usize>,
    /// By limit, its subject and the attribute.
    sums: HashMap<(usize, Arc<str>, String), i128>,
    /// The limits that count the jobs of one queue, by its name, and all others.
    of_queues: HashMap<String, Vec<usize>>,
    others: Vec<usize>,
}

impl Asked {
    pub fn new(rules: &[Limit]) -> Self {
        let mut asked = Self::default();
        for (number, rule) in rules.iter().enumerate() {
            if !rule.max_attributes.is_empty() {
                asked.rules.push(number);
            }
            match queue_of(rule) {
                Some(queue) => asked.of_queues.entry(queue.to_owned()).or_default().push(number),
                None => asked.others.push(number),
            }
        }
        asked
    }

    /// A job begins (`1`) or ceases (`-1`) to run. A job counts once, in the queue of its first component.
    pub fn count(
        &mut self,
        rules: &[Limit],
        holder: &Holder,
        demand: &Demand,
        attributes: Attributes<'_>,
        times: i128,
    ) {
        let (Some(attributes), false) = (attributes, self.rules.is_empty()) else { return };
        let usage = Usage::default();
        let Some(part) = first_part(holder, demand, &usage) else { return };
        for number in &self.rules {
            let Some(subject) = name(&rules[*number], &part) else { continue };
            for attribute in rules[*number].max_attributes.keys() {
                let Some(value) = attributes.get(attribute).filter(|value| **value > 0) else { continue };
                let key = (*number, subject.clone(), attribute.clone());
                let sum = self.sums.entry(key.clone()).or_default();
                *sum += i128::from(*value) * times;
                if *sum == 0 {
                    self.sums.remove(&key);
                }
            }
        }
    }

    /// What jobs have asked for that a limit counts together.
    pub fn sum(&self, number: usize, subject: &Arc<str>, attribute: &str) -> i128 {
        self.sums.get(&(number, subject.clone(), attribute.to_owned())).copied().unwrap_or(0)
    }

    /// The limits that may concern a queue: those of all queues, or those of this one.
    pub fn rules_of(&self, queue: &str, in_queue: bool) -> &[usize] {
        match in_queue {
            true => self.of_queues.get(queue).map_or(&[], Vec::as_slice),
            false => &self.others,
        }
    }
}

/// The queue whose jobs alone a limit counts.
fn queue_of(rule: &Limit) -> Option<&str> {
    match rule.per {
        LimitPer::Queue => rule.queue.as_deref().or(rule.name.as_deref()),
        _ => rule.queue.as_deref(),
    }
}
