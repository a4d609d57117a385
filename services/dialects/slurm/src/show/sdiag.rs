//! `sdiag`: how the scheduler performs (SL-P-06).

use super::{
    Clock,
    cells::{moment, put},
    data,
};
use crate::words::State;
use muster_schemas::{
    time::Timestamp,
    views::{OutcomeWord, Statistics},
};
use serde_json::{Value, json};
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

impl Diagnosis {
    fn ended(&self, state: State) -> u64 {
        self.ended.get(&state).copied().unwrap_or(0)
    }

    /// The jobs that ended neither completed nor cancelled.
    fn failed(&self) -> u64 {
        let others = |state: &State| !matches!(state, State::Completed | State::Cancelled);
        self.ended.iter().filter(|(state, _)| others(state)).map(|(_, count)| count).sum()
    }

    fn stands(&self, state: State) -> u64 {
        self.states.get(&state).copied().unwrap_or(0)
    }
}

/// The same for programs, in the shape of Slurm's `data_parser`. Numbers that nobody counts here are 0.
pub fn statistics_data(diagnosis: &Diagnosis, clock: &Clock) -> Value {
    let (main, backfill) = (&diagnosis.main, &diagnosis.backfill);
    let minutes = diagnosis.since.map_or(0, |since| clock.now.micros_since(since) / 60_000_000);
    let each_minute = u64::try_from(minutes).ok().and_then(|minutes| main.count.checked_div(minutes)).unwrap_or(0);
    let mut all = json!({
        "parts_packed": 1,
        "req_time": data::moment(Some(clock.now)),
        "req_time_start": data::moment(diagnosis.since),
        "server_thread_count": 0,
        "agent_queue_size": 0,
        "agent_count": 0,
        "agent_thread_count": 0,
        "dbd_agent_queue_size": 0,
        "gettimeofday_latency": 0,
        "schedule_cycle_max": main.max_micros,
        "schedule_cycle_last": main.last_micros,
        "schedule_cycle_sum": main.total_micros,
        "schedule_cycle_total": main.count,
        "schedule_cycle_mean": main.mean_micros(),
        "schedule_cycle_mean_depth": 0,
        "schedule_cycle_per_minute": each_minute,
        "schedule_cycle_depth": main.last_depth,
        "schedule_exit": {
            "end_job_queue": 0, "default_queue_depth": 0, "max_job_start": 0, "max_rpc_cnt": 0, "max_sched_time": 0,
            "licenses": 0,
        },
        "schedule_queue_length": main.queue_length,
        "jobs_submitted": diagnosis.submitted,
        "jobs_started": diagnosis.started,
        "jobs_completed": diagnosis.ended(State::Completed),
        "jobs_canceled": diagnosis.ended(State::Cancelled),
        "jobs_failed": diagnosis.failed(),
        "jobs_pending": diagnosis.stands(State::Pending),
        "jobs_running": diagnosis.stands(State::Running),
        "job_states_ts": data::moment(Some(clock.now)),
    });
    let of_backfill = json!({
        "bf_backfilled_jobs": diagnosis.backfilled,
        "bf_last_backfilled_jobs": diagnosis.backfilled,
        "bf_backfilled_het_jobs": diagnosis.backfilled_components,
        "bf_cycle_counter": backfill.count,
        "bf_cycle_mean": backfill.mean_micros(),
        "bf_cycle_sum": backfill.total_micros,
        "bf_cycle_last": backfill.last_micros,
        "bf_cycle_max": backfill.max_micros,
        "bf_depth_mean": 0,
        "bf_depth_mean_try": 0,
        "bf_exit": {
            "end_job_queue": 0, "bf_max_job_start": 0, "bf_max_job_test": 0, "bf_max_time": 0, "bf_node_space_size": 0,
            "state_changed": 0,
        },
        "bf_last_depth": backfill.last_depth,
        "bf_last_depth_try": backfill.last_depth,
        "bf_depth_sum": 0,
        "bf_depth_try_sum": 0,
        "bf_queue_len": backfill.queue_length,
        "bf_queue_len_mean": 0,
        "bf_queue_len_sum": 0,
        "bf_table_size": 0,
        "bf_table_size_sum": 0,
        "bf_table_size_mean": 0,
        "bf_when_last_cycle": data::moment(backfill.last),
        "bf_active": false,
        "rpcs_by_message_type": [],
        "rpcs_by_user": [],
        "pending_rpcs": [],
        "pending_rpcs_by_hostlist": [],
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut all, of_backfill) {
        all.extend(more);
    }
    all
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
    for (name, value) in [
        ("Jobs submitted:", diagnosis.submitted),
        ("Jobs started:", diagnosis.started),
        ("Jobs completed:", diagnosis.ended(State::Completed)),
        ("Jobs canceled:", diagnosis.ended(State::Cancelled)),
        ("Jobs failed:", diagnosis.failed()),
    ] {
        put(format_args!("{name:<15} {value}\n"), &mut out);
    }
    out.push('\n');
    for (name, state) in [("Jobs pending:", State::Pending), ("Jobs running:", State::Running)] {
        put(format_args!("{name:<15} {}\n", diagnosis.stands(state)), &mut out);
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
