//! The holdings, and the first start within all limits.

use super::{
    line::{Line, Sum},
    subject::{Part, Subject},
};
use muster_schemas::{
    Timestamp,
    quota::{QuotaRule, QuotaSet, QuotaTable},
    views::LimitView,
};
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

/// Beyond what is known of the future, each week is like the one before. Two of them are looked at, because clocks change.
const KNOWN_WEEKS_SECONDS: i64 = 15 * 86_400;
/// How far ahead the calendar is looked at: two years.
const MOST_LOOK_SECONDS: i64 = 2 * 365 * 86_400;

/// Counts what is held by the rules of a table. `K` names a holding.
#[derive(Clone, Debug)]
pub struct Book<K> {
    table: Arc<QuotaTable>,
    /// The cores of all nodes.
    cores: u64,
    held: BTreeMap<K, Held>,
    /// What each counter of each rule holds. It is only looked up, never iterated over.
    counters: HashMap<Counter, Lines>,
}

impl<K> Default for Book<K> {
    fn default() -> Self {
        Self { table: Arc::default(), cores: 0, held: BTreeMap::new(), counters: HashMap::new() }
    }
}

#[derive(Clone, Debug)]
struct Held {
    from: Timestamp,
    until: Timestamp,
    counted: Vec<Counted>,
}

#[derive(Clone, Debug)]
struct Counted {
    counter: Counter,
    sum: Sum,
    is_apart: bool,
}

/// A counter: the set, the rule in it, and the values of the fields that are `/`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Counter {
    set: usize,
    rule: usize,
    values: Box<[Arc<str>]>,
}

/// What jobs hold that make way for nobody, and what all hold.
#[derive(Clone, Debug, Default)]
struct Lines {
    firm: Line,
    all: Line,
}

/// What a rule limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Cores.
    Cores,
    /// Jobs.
    Jobs,
    /// Cores times walltime.
    CoreSeconds,
}

/// A limit that a start would break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The rule: ``quota `*,bio,*,*` ``, with the name of its set if that has one.
    pub rule: String,
    /// What it limits.
    pub measure: Measure,
    /// The most that it allows.
    pub limit: u64,
    /// What there would be.
    pub would_be: u128,
    /// When.
    pub at: Timestamp,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, amount(self.measure, self.limit))
    }
}

fn amount(measure: Measure, limit: u64) -> String {
    let (word, whole) = match measure {
        Measure::Cores => ("core", limit),
        Measure::Jobs => ("job", limit),
        Measure::CoreSeconds if limit.is_multiple_of(3600) => ("core-hour", limit / 3600),
        Measure::CoreSeconds => ("core-second", limit),
    };
    format!("{whole} {word}{}", if whole == 1 { "" } else { "s" })
}

/// What a job would add to the counter of a rule that applies to it.
struct Wanted {
    counter: Counter,
    added: Sum,
    is_apart: bool,
}

/// A breach, and when it is over at the earliest without further starts.
struct Found {
    breach: Breach,
    over: Timestamp,
}

impl<K: Ord + Copy> Book<K> {
    /// A book in which nothing is held.
    pub fn new(table: Arc<QuotaTable>, cores: u64) -> Self {
        Self { table, cores, ..Self::default() }
    }

    /// Whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The rules.
    pub fn table(&self) -> &Arc<QuotaTable> {
        &self.table
    }

    /// The number of cores of all nodes, which some limits follow.
    pub fn set_cores(&mut self, cores: u64) {
        self.cores = cores;
    }

    /// A job holds something in `[from, until)`, in place of what was held under this name.
    pub fn hold(&mut self, name: K, parts: &[Part], from: Timestamp, until: Timestamp) {
        self.release(name);
        if self.is_empty() {
            return;
        }
        let mut counted: Vec<Counted> = Vec::new();
        for part in parts.iter().filter(|part| !part.subject.is(|marks| marks.is_uncounted)) {
            let is_apart = part.subject.is(|marks| marks.is_apart);
            let counters = self.counters_of(&part.subject);
            counted.extend(counters.into_iter().map(|counter| Counted { counter, sum: sum(part), is_apart }));
        }
        for Counted { counter, sum, is_apart } in &counted {
            let lines = self.counters.entry(counter.clone()).or_default();
            lines.all.add(from, until, *sum);
            if !is_apart {
                lines.firm.add(from, until, *sum);
            }
        }
        self.held.insert(name, Held { from, until, counted });
    }

    /// It no longer holds anything.
    pub fn release(&mut self, name: K) {
        let Some(Held { from, until, counted }) = self.held.remove(&name) else { return };
        for Counted { counter, sum, is_apart } in counted {
            let Some(lines) = self.counters.get_mut(&counter) else { continue };
            lines.all.remove(from, until, sum);
            if !is_apart {
                lines.firm.remove(from, until, sum);
            }
            if lines.all.is_empty() {
                self.counters.remove(&counter);
            }
        }
    }

    /// The counters of all sets that a subject counts in, whichever rule applies to it.
    fn counters_of(&self, subject: &Subject) -> Vec<Counter> {
        let sets = self.table.sets.iter().enumerate();
        let rules = sets.flat_map(|(set, rules)| rules.rules.iter().enumerate().map(move |(rule, of)| (set, rule, of)));
        let counter = |(set, rule, of): (usize, usize, &QuotaRule)| {
            let values = subject.counted_by(of, &self.table.kinds)?;
            Some(Counter { set, rule, values })
        };
        rules.filter_map(counter).collect()
    }

    /// The limit that a job would break at some moment if it started then and ran for its walltime (OAR-Q-05).
    pub fn breach(&self, parts: &[Part], start: Timestamp) -> Option<Breach> {
        if self.is_empty() {
            return None;
        }
        self.first_breach(parts, start, end(parts, start)).map(|found| found.breach)
    }

    /// The same if it held its parts in `[from, until)`, however long its walltime is.
    pub fn breach_between(&self, parts: &[Part], from: Timestamp, until: Timestamp) -> Option<Breach> {
        if self.is_empty() {
            return None;
        }
        self.first_breach(parts, from, until).map(|found| found.breach)
    }

    /// The first start from a moment on at which all limits hold as long as the job runs.
    ///
    /// # Errors
    /// The limit that is broken at the first moment, if there is no such start.
    pub fn first_start(&self, parts: &[Part], from: Timestamp) -> Result<Timestamp, Breach> {
        if self.is_empty() {
            return Ok(from);
        }
        let Some(first) = self.first_breach(parts, from, end(parts, from)) else { return Ok(from) };
        let last = self.known_until(parts, from);
        let mut start = first.over;
        while start <= last {
            match self.first_breach(parts, start, end(parts, start)) {
                None => return Ok(start),
                Some(found) => start = found.over,
            }
        }
        Err(first.breach)
    }

    /// When different rules hold next.
    pub fn next_change(&self, after: Timestamp) -> Option<Timestamp> {
        if self.is_empty() { None } else { self.table.next_change(after) }
    }

    /// All limits that apply to a job at a moment, for people: how much is held, and how much the job would add.
    pub fn applying(&self, parts: &[Part], at: Timestamp) -> Vec<LimitView> {
        if self.is_empty() {
            return Vec::new();
        }
        let set = self.table.set_at(at);
        let mut views = Vec::new();
        for wanted in self.wanted(parts, set) {
            let used = self.line(&wanted).map_or_else(Sum::default, |line| line.at(at));
            let rule = self.name(&wanted.counter);
            for (measure, limit, used, added) in self.measures(&wanted, used) {
                let Some(most) = limit else { continue };
                let text = format!("{rule}: {}", amount(measure, most));
                let number = |amount: u128| u64::try_from(amount).unwrap_or(u64::MAX);
                views.push(LimitView { text, used: number(used), wanted: number(added), most });
            }
        }
        views
    }

    /// The end of what is known of the future of a job's counters, and two weeks more.
    fn known_until(&self, parts: &[Part], from: Timestamp) -> Timestamp {
        let sets = 0..self.table.sets.len();
        let lines = sets.flat_map(|set| self.wanted(parts, set)).filter_map(|wanted| self.line(&wanted)?.last());
        let known = lines.chain(self.table.last_named()).chain([from]).max().unwrap_or(from);
        known.plus_seconds(KNOWN_WEEKS_SECONDS)
    }

    fn first_breach(&self, parts: &[Part], start: Timestamp, end: Timestamp) -> Option<Found> {
        let mut from = start;
        let mut known_until = None;
        let mut of_sets: BTreeMap<usize, Vec<Wanted>> = BTreeMap::new();
        // Nobody plans by what is further away.
        let end = end.min(start.plus_seconds(MOST_LOOK_SECONDS));
        while from < end {
            let next = self.table.next_change(from).unwrap_or(Timestamp::MAX);
            let set = self.table.set_at(from);
            let of_set = of_sets.entry(set).or_insert_with(|| self.wanted(parts, set));
            let found = of_set.iter().find_map(|wanted| self.breach_within(wanted, from, next.min(end), next));
            if found.is_some() {
                return found;
            }
            from = next;
            // Every week is like the last one from there on.
            if from < end && from > *known_until.get_or_insert_with(|| self.known_until(parts, start)) {
                return None;
            }
        }
        None
    }

    /// The first moment in `[from, until)` at which a limit would be broken. Other rules hold from `next` on.
    fn breach_within(&self, wanted: &Wanted, from: Timestamp, until: Timestamp, next: Timestamp) -> Option<Found> {
        let alone = self.broken(wanted, Sum::default(), from);
        if let Some(breach) = alone {
            return Some(Found { breach, over: next });
        }
        let line = self.line(wanted)?;
        let mut changes = line.after(from).peekable();
        let mut level = Some((from, line.at(from)));
        while let Some((at, used)) = level.filter(|(at, _)| *at < until) {
            if let Some(breach) = self.broken(wanted, used, at) {
                let over = changes.peek().map_or(Timestamp::MAX, |(at, _)| *at).min(next);
                return Some(Found { breach, over });
            }
            level = changes.next();
        }
        None
    }

    fn broken(&self, wanted: &Wanted, used: Sum, at: Timestamp) -> Option<Breach> {
        let found = self.measures(wanted, used).into_iter().find_map(|(measure, limit, used, added)| {
            let limit = limit?;
            let would_be = used.saturating_add(added);
            (would_be > u128::from(limit)).then_some((measure, limit, would_be))
        });
        let (measure, limit, would_be) = found?;
        Some(Breach { rule: self.name(&wanted.counter), measure, limit, would_be, at })
    }

    /// Each measure with its limit, what is used, and what would be added. A limit that nothing is added to holds nobody back.
    fn measures(&self, wanted: &Wanted, used: Sum) -> [(Measure, Option<u64>, u128, u128); 3] {
        let rule = self.rule(&wanted.counter);
        let most = |amount: Option<muster_schemas::quota::QuotaAmount>, added: u128| {
            amount.filter(|_| added > 0).map(|amount| amount.in_cluster(self.cores))
        };
        let added = wanted.added;
        let (cores, jobs) = (u128::from(added.cores), u128::from(added.jobs));
        [
            (Measure::Cores, most(rule.cores, cores), used.cores.into(), cores),
            (Measure::Jobs, most(rule.jobs, jobs), used.jobs.into(), jobs),
            (Measure::CoreSeconds, most(rule.core_seconds, added.core_seconds), used.core_seconds, added.core_seconds),
        ]
    }

    fn rule(&self, counter: &Counter) -> &QuotaRule {
        &self.table.sets[counter.set].rules[counter.rule]
    }

    fn name(&self, counter: &Counter) -> String {
        let QuotaSet { name, .. } = &self.table.sets[counter.set];
        let rule = self.rule(counter);
        match name.as_str() {
            "" => format!("quota `{rule}`"),
            name => format!("quota `{rule}` of `{name}`"),
        }
    }

    fn line(&self, wanted: &Wanted) -> Option<&Line> {
        let lines = self.counters.get(&wanted.counter)?;
        Some(if wanted.is_apart { &lines.all } else { &lines.firm })
    }

    /// What a job would add to the counters of the rules of a set that apply to it, each counter once.
    fn wanted(&self, parts: &[Part], set: usize) -> Vec<Wanted> {
        let kinds = &self.table.kinds;
        let Some(QuotaSet { rules, .. }) = self.table.sets.get(set) else { return Vec::new() };
        let mut all: Vec<Wanted> = Vec::new();
        for part in parts.iter().filter(|part| !part.subject.is(|marks| marks.is_unlimited || marks.is_uncounted)) {
            let Some(rule) = part.subject.rule_of(rules, kinds) else { continue };
            let Some(values) = part.subject.counted_by(&rules[rule], kinds) else { continue };
            let counter = Counter { set, rule, values };
            if all.iter().any(|known| known.counter == counter) {
                continue;
            }
            let is_counted = |other: &&Part| {
                !other.subject.is(|marks| marks.is_uncounted)
                    && other.subject.counted_by(&rules[rule], kinds).as_ref() == Some(&counter.values)
            };
            let added = parts.iter().filter(is_counted).fold(Sum::default(), |all, part| all.plus(sum(part)));
            all.push(Wanted { counter, added, is_apart: part.subject.is(|marks| marks.is_apart) });
        }
        all
    }
}

/// When parts end that a job has from then on: after the longest walltime.
fn end(parts: &[Part], start: Timestamp) -> Timestamp {
    let seconds = parts.iter().map(|part| part.walltime_seconds).max().unwrap_or(0);
    start.plus_seconds(i64::try_from(seconds).unwrap_or(i64::MAX)).min(Timestamp::MAX)
}

fn sum(part: &Part) -> Sum {
    let core_seconds = u128::from(part.cores) * u128::from(part.walltime_seconds);
    Sum { cores: part.cores, jobs: part.jobs, core_seconds }
}

#[cfg(test)]
mod tests;
