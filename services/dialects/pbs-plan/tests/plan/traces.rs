//! Many cycles on a trace of jobs: promises are kept, and a dynamic reservation uses nodes no less than none.

use crate::support::{dry, file, job, preset, queue};
use muster_pbs_policy::{check::Policy, preset::Preset};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const NODES: u32 = 16;
const START: i64 = 1_773_144_000;

#[derive(Clone, Debug)]
struct Job {
    nodes: u32,
    seconds: i64,
    arrival: i64,
    interactive: bool,
    started: Option<i64>,
    on: Vec<String>,
}

impl Job {
    fn new(nodes: u32, seconds: i64, arrival: i64, interactive: bool) -> Self {
        Self { nodes, seconds, arrival: START + arrival, interactive, started: None, on: Vec::new() }
    }

    fn end(&self) -> Option<i64> {
        Some(self.started? + self.seconds)
    }
}

/// The end of a trace, and what was promised on the way.
struct Outcome {
    jobs: Vec<Job>,
    promises: usize,
}

impl Outcome {
    fn makespan(&self) -> i64 {
        self.jobs.iter().filter_map(Job::end).max().unwrap_or(START) - START
    }

    /// The percentage of all nodes that jobs had until the last one was over.
    fn used(&self) -> f64 {
        let used: i64 = self.jobs.iter().map(|job| i64::from(job.nodes) * job.seconds).sum();
        100.0 * used as f64 / (i64::from(NODES) * self.makespan()) as f64
    }
}

/// The state at a time, with what was carried from the cycle before.
fn state(jobs: &[Job], now: i64, carried: &str, has_nodes: bool) -> String {
    let names: Vec<String> = (1..=NODES).map(|number| format!(r#"{{"name": "n{number}"}}"#)).collect();
    let nodes = if has_nodes { format!(r#", "nodes": [{}]"#, names.join(", ")) } else { String::new() };
    let texts: Vec<String> = jobs
        .iter()
        .enumerate()
        .filter(|(_, job)| job.arrival <= now && job.end().is_none_or(|end| end > now))
        .map(|(number, one)| {
            let request = [
                ("nodes", one.nodes.to_string()),
                ("ncpus", (2 * one.nodes).to_string()),
                ("walltime", one.seconds.to_string()),
            ];
            let request: Vec<(&str, &str)> = request
                .iter()
                .filter(|(name, _)| has_nodes || *name != "nodes")
                .map(|(name, value)| (*name, value.as_str()))
                .collect();
            let on: Vec<String> = one.on.iter().map(|node| format!("\"{node}\"")).collect();
            let more = match one.started {
                Some(started) => format!(r#""started": {started}, "nodes": [{}],"#, on.join(", ")),
                None => format!(r#""qtime": {}, "interactive": {},"#, one.arrival, one.interactive),
            };
            let queue = if one.started.is_some() { "batch" } else { "submit" };
            let text = job(&number.to_string(), queue, &format!("u{}", number % 3), &more, &request);
            if one.started.is_some() { text.replace("\"state\": \"Q\"", "\"state\": \"R\"") } else { text }
        })
        .collect();
    let batch = queue("batch", &format!(r#""resources_max": {{"ncpus": {}}},"#, 2 * NODES));
    let members = format!(r#""now": {now}, "tz": "UTC"{nodes}, "reservations": {carried}"#);
    file(&members, &[queue("submit", ""), batch], &texts)
}

/// Runs a trace to its end. A promise that is carried from cycle to cycle is kept.
fn run(policy: &Policy, mut jobs: Vec<Job>, has_nodes: bool, keeps: bool) -> Outcome {
    let mut promised: BTreeMap<usize, i64> = BTreeMap::new();
    let (mut carried, mut promises) = ("[]".to_owned(), 0);
    let mut now = START;
    loop {
        let dry = dry(policy, &state(&jobs, now, &carried, has_nodes));
        for line in &dry.lines {
            let words: Vec<&str> = line.split(' ').collect();
            let at: usize = words[2].parse().expect("a number");
            if words[1] == "START" {
                jobs[at].started = Some(now);
                jobs[at].on = if has_nodes { words[3].split('+').map(str::to_owned).collect() } else { Vec::new() };
                let late = promised.remove(&at).filter(|promise| *promise < now);
                assert_eq!(late, None, "job {at} starts at {now}");
            }
        }
        let running: Vec<&Job> = jobs.iter().filter(|job| job.end().is_some_and(|end| end > now)).collect();
        assert!(running.iter().map(|job| job.nodes).sum::<u32>() <= NODES);
        let on: Vec<&String> = running.iter().flat_map(|job| &job.on).collect();
        assert_eq!(on.iter().collect::<BTreeSet<_>>().len(), on.len(), "a node has one job");
        promises += dry.reservations.len();
        if keeps {
            for (job, _, start) in &dry.reservations {
                let known = promised.entry(job.parse().expect("a number")).or_insert(*start);
                assert!(*start <= *known, "a promise moves only to an earlier time");
                *known = *start;
            }
            carried = serde_json::to_string(&dry.carried.expect("a preset").reservations).expect("JSON");
        }
        let arrivals = jobs.iter().map(|job| job.arrival);
        let times = arrivals.chain(jobs.iter().filter_map(Job::end));
        match times.filter(|time| *time > now).min() {
            Some(next) => now = next,
            None => break,
        }
    }
    assert!(jobs.iter().all(|job| job.started.is_some()), "all jobs have run");
    Outcome { jobs, promises }
}

/// A trace in which most jobs are small, and some as large as the machine.
fn trace(seed: u64, count: u32) -> Vec<Job> {
    let mut random = seed;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut arrival = 0;
    let mut jobs = Vec::new();
    for _ in 0..count {
        arrival += i64::try_from(next(600)).expect("small");
        let nodes = if next(8) == 0 { 8 + next(9) } else { 1 + next(4) };
        let seconds = 60 * (1 + next(90));
        jobs.push(Job::new(
            u32::try_from(nodes).expect("small"),
            i64::try_from(seconds).expect("small"),
            arrival,
            next(5) == 0,
        ));
    }
    jobs
}

fn sp(mode: &str) -> Policy {
    let text = "SUBMIT_QUEUE submit\nBATCH_QUEUES batch\nENFORCE_PRIME_TIME true\nPRIME_TIME_START 8:00:00\n\
                PRIME_TIME_END 18:00:00\nMAX_QUEUED_TIME 6:00:00\nBACKFILL_MODE ";
    preset(Preset::IbmSp, &format!("{text}{mode}\n"))
}

/// PBS-P-20: on one and the same trace of 240 jobs a dynamic reservation uses nodes no less than none.
#[test]
fn a_dynamic_reservation_uses_nodes_no_less_than_none() {
    let jobs = trace(7, 240);
    let (none, dynamic) = (run(&sp("none"), jobs.clone(), true, false), run(&sp("dynamic"), jobs, true, false));
    assert_eq!(none.promises, 0);
    assert!(dynamic.promises > 50, "the trace needs reservations: {}", dynamic.promises);
    let (none, dynamic) = (none.used(), dynamic.used());
    assert!(dynamic >= none, "{dynamic} % with it, {none} % without");
}

fn jobs() -> impl Strategy<Value = Vec<Job>> {
    let job = (1..=NODES, 1i64..60, 0i64..1200, any::<bool>());
    prop::collection::vec(job, 1..24).prop_map(|mut all| {
        all.sort_by_key(|(_, _, arrival, _)| *arrival);
        let new = |(nodes, minutes, arrival, interactive)| Job::new(nodes, 60 * minutes, arrival, interactive);
        all.into_iter().map(new).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// PBS-P-16, PBS-P-17: no later start delays the holder of a reservation, whether nodes or room in a queue is held.
    #[test]
    fn promises_are_kept(jobs in jobs()) {
        run(&sp("static"), jobs.clone(), true, true);
        let text = "SUBMIT_QUEUE submit\nBATCH_QUEUES batch\nMAX_QUEUED_TIME 1:00:00\nAVOID_FRAGMENTATION false\n";
        run(&preset(Preset::SgiOrigin, text), jobs, false, true);
    }

    /// PBS-C-12, PBS-P-16: the same state gives the same lines, and started jobs leave room for the holder.
    #[test]
    fn plans_are_the_same_and_leave_room(jobs in jobs(), now in 0i64..1200) {
        let text = state(&jobs, START + now, "[]", false);
        let config = "SUBMIT_QUEUE submit\nBATCH_QUEUES batch\nAVOID_FRAGMENTATION false\nMAX_USER_RUN_JOBS 99\n";
        let policy = preset(Preset::SgiOrigin, config);
        let found = dry(&policy, &text);
        prop_assert_eq!(&dry(&policy, &text), &found);
        let of = |id: &str| &jobs[id.parse::<usize>().expect("a number")];
        let started = found.lines.iter().filter(|line| line.contains(" START "));
        let started: Vec<&Job> = started.map(|line| of(line.split(' ').nth(2).expect("a job"))).collect();
        for (job, _, start) in &found.reservations {
            let still = started.iter().filter(|job| START + now + job.seconds > *start);
            let used: u32 = still.map(|job| job.nodes).sum();
            prop_assert!(used + of(job).nodes <= NODES, "job {job} at {start}");
        }
    }
}
