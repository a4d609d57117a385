//! `sdiag`: how the scheduler performs (SL-P-06).

use super::{
    Clock,
    cells::{moment, put},
};
use crate::words::State;
use muster_schemas::{
    time::Timestamp,
    views::{OutcomeWord, Statistics},
};
use std::collections::BTreeMap;

/// Statistics of one kind of scheduling pass since counting began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passes {
    /// The number of passes.
    pub count: u64,
    /// The time of the last one.
    pub last: Option<Timestamp>,
    /// The duration of the last one, in microseconds.
    pub last_micros: u64,
    /// The longest duration, in microseconds.
    pub max_micros: u64,
    /// The total duration, in microseconds.
    pub total_micros: u64,
    /// How many jobs the last one considered.
    pub last_depth: u64,
    /// How many jobs waited at the last one.
    pub queue_length: u64,
}

impl Passes {
    fn mean_micros(&self) -> u64 {
        self.total_micros.checked_div(self.count).unwrap_or(0)
    }
}

/// The contents of `sdiag`.
#[derive(Clone, Debug, Default)]
pub struct Diagnosis {
    /// When counting began.
    pub since: Option<Timestamp>,
    /// Jobs submitted since then.
    pub submitted: u64,
    /// Runs started since then.
    pub started: u64,
    /// The current number of jobs in each state.
    pub states: BTreeMap<State, u64>,
    /// Jobs that ended since then, by state.
    pub ended: BTreeMap<State, u64>,
    /// The passes that start jobs in order.
    pub main: Passes,
    /// The passes that backfill.
    pub backfill: Passes,
    /// Jobs started by such passes.
    pub backfilled: u64,
    /// Components of jobs started by them.
    pub backfilled_components: u64,
    /// The mode of the last backfill pass: 1 or 2 (SL-P-03); `None` before the first.
    pub backfill_mode: Option<u8>,
}

impl Diagnosis {
    /// The counts of a gateway. Every pass of muster's planner starts jobs in order and backfills; if jobs with several
    /// components start only in some passes, those count as the backfill passes.
    pub fn of(statistics: &Statistics) -> Self {
        let cycles = statistics.cycles.unwrap_or_default();
        let passes = Passes {
            count: cycles.count.max(statistics.plans),
            last: statistics.last_plan,
            last_micros: cycles.last_micros,
            max_micros: cycles.longest_micros,
            total_micros: cycles.total_micros,
            last_depth: statistics.last_plan_jobs,
            queue_length: statistics.waiting,
        };
        // The parts of the statistics are read one after the other, while the planner continues.
        let passes =
            Passes { max_micros: passes.max_micros.max(passes.last_micros).max(passes.mean_micros()), ..passes };
        let mut ended = BTreeMap::new();
        for (outcome, count) in &statistics.ended {
            let state = match outcome {
                OutcomeWord::Completed => State::Completed,
                OutcomeWord::Cancelled => State::Cancelled,
                _ => State::Failed,
            };
            *ended.entry(state).or_default() += count;
        }
        Self {
            since: Some(statistics.since),
            submitted: statistics.submitted,
            started: statistics.started,
            states: [(State::Pending, statistics.waiting), (State::Running, statistics.active)].into(),
            ended,
            main: passes,
            backfill: statistics.backfill_pass.map_or(passes, |pass| Passes {
                count: pass.number,
                last: Some(pass.at),
                ..passes
            }),
            backfilled: statistics.backfilled,
            backfilled_components: statistics.backfilled_components,
            backfill_mode: statistics.backfill_pass.map(|pass| pass.mode.number()),
        }
    }
}

/// The whole text.
pub fn sdiag(diagnosis: &Diagnosis, clock: &Clock) -> String {
    const RULE: &str = "*******************************************************\n";
    let mut out = RULE.to_owned();
    let time = |time: Option<Timestamp>, out: &mut String| {
        moment(time, "N/A", clock, out);
        let seconds = time.map_or(0, Timestamp::unix_seconds);
        put(format_args!(" ({seconds})\n"), out);
    };
    out.push_str("sdiag output at ");
    time(Some(clock.now), &mut out);
    out.push_str("Data since      ");
    time(diagnosis.since, &mut out);
    out.push_str(RULE);
    let ended = |state: State| diagnosis.ended.get(&state).copied().unwrap_or(0);
    let others: u64 = diagnosis
        .ended
        .iter()
        .filter(|(state, _)| !matches!(state, State::Completed | State::Cancelled))
        .map(|(_, count)| count)
        .sum();
    let stands = |state: State| diagnosis.states.get(&state).copied().unwrap_or(0);
    for (name, value) in [
        ("Jobs submitted:", diagnosis.submitted),
        ("Jobs started:", diagnosis.started),
        ("Jobs completed:", ended(State::Completed)),
        ("Jobs canceled:", ended(State::Cancelled)),
        ("Jobs failed:", others),
    ] {
        put(format_args!("{name:<15} {value}\n"), &mut out);
    }
    out.push('\n');
    for (name, state) in [("Jobs pending:", State::Pending), ("Jobs running:", State::Running)] {
        put(format_args!("{name:<15} {}\n", stands(state)), &mut out);
    }
    out.push_str("\nMain schedule statistics (microseconds):\n");
    passes(&diagnosis.main, &mut out);
    out.push_str("\nBackfilling stats\n");
    put(format_args!("\tTotal backfilled jobs (since last slurm start): {}\n", diagnosis.backfilled), &mut out);
    let components = diagnosis.backfilled_components;
    put(format_args!("\tTotal backfilled heterogeneous job components: {components}\n"), &mut out);
    out.push_str("\tLast cycle when: ");
    time(diagnosis.backfill.last, &mut out);
    passes(&diagnosis.backfill, &mut out);
    match diagnosis.backfill_mode {
        Some(mode) => put(format_args!("\tLast cycle mode: {mode}\n"), &mut out),
        None => out.push_str("\tLast cycle mode: N/A\n"),
    }
    out
}

fn passes(passes: &Passes, out: &mut String) {
    for (name, value) in [
        ("Last cycle:", passes.last_micros),
        ("Max cycle:", passes.max_micros),
        ("Total cycles:", passes.count),
        ("Mean cycle:", passes.mean_micros()),
        ("Last depth cycle:", passes.last_depth),
        ("Last queue length:", passes.queue_length),
    ] {
        put(format_args!("\t{name} {value}\n"), out);
    }
}
