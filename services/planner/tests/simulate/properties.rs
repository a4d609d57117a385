//! The planner and the naive implementation start every job of random traces at the same time.

use super::{
    common::{built_in, job, run, starts},
    naive::{self, Backfill, FCFS, Key, Naive},
};
use muster_schemas::policy::{BackfillMode, CandidateOrder, OrderKey, Policy};
use muster_swf::{Headers, TraceJob};
use proptest::prelude::*;

/// Few distinct values, so that ties and exact fits are frequent.
fn trace() -> impl Strategy<Value = (u64, Vec<TraceJob>)> {
    let line = |procs: u64| {
        let early = prop_oneof![Just(0i64), 0..40i64];
        (0..12i64, 1..30i64, early, 1..=procs)
    };
    (1..=16u64).prop_flat_map(move |procs| {
        prop::collection::vec(line(procs), 1..40).prop_map(move |lines| {
            let mut submit = 0;
            let make = |(number, (gap, runtime, more, procs)): (usize, (i64, i64, i64, u64))| {
                // Several jobs often come in the same second.
                submit += (gap - 5).max(0);
                job(number as i64 + 1, submit, runtime, runtime + more, procs)
            };
            (procs, lines.into_iter().enumerate().map(make).collect())
        })
    })
}

fn agree(procs: u64, jobs: &[TraceJob], policy: &Policy, naive: Naive) -> Result<(), TestCaseError> {
    let simulation = run(jobs, &Headers::default(), procs as u32, policy);
    prop_assert_eq!(starts(&simulation), naive::starts(jobs, procs, naive), "policy {}", &policy.name);
    Ok(())
}

const ORDERS: [(&str, OrderKey, Key); 5] = [
    ("spt", OrderKey::Spt, naive::spt),
    ("saf", OrderKey::Saf, naive::saf),
    ("f1", OrderKey::F1, naive::f1),
    ("wfp3", OrderKey::Wfp3, naive::wfp3),
    ("unicep", OrderKey::Unicep, naive::unicep),
];

proptest! {
    /// Machine, clock and the three policies, against an independent simple implementation (M-SIM-2).
    #[test]
    fn the_built_in_policies_start_jobs_as_the_specification_says((procs, jobs) in trace()) {
        let modes = [("fcfs", Backfill::None), ("easy", Backfill::Easy), ("conservative", Backfill::Conservative)];
        for (name, backfill) in modes {
            agree(procs, &jobs, &built_in(name), Naive { backfill, ..FCFS })?;
        }
    }

    /// Named orders and backfill orders sort as documented (M-SIM-3).
    #[test]
    fn every_named_order_sorts_the_whole_queue_before_each_pass((procs, jobs) in trace()) {
        for (name, key, order) in ORDERS {
            let with_backfill = Naive { order: Some(order), backfill: Backfill::Easy, ..FCFS };
            agree(procs, &jobs, &built_in(name), with_backfill)?;
            let mut without = Policy { name: format!("{name} without backfill"), ..built_in("fcfs") };
            without.order = vec![key];
            agree(procs, &jobs, &without, Naive { order: Some(order), ..FCFS })?;
        }
    }

    #[test]
    fn candidates_are_tried_shortest_first_and_only_so_many(
        (procs, jobs) in trace(),
        look_ahead in prop::option::of(0..6u32),
        shortest_candidates_first: bool,
        order in 0..6usize,
    ) {
        let mut policy = built_in("easy");
        policy.name = format!("{order} {look_ahead:?} {shortest_candidates_first}");
        policy.backfill.look_ahead = look_ahead;
        if shortest_candidates_first {
            policy.backfill.candidates = CandidateOrder::Sjbf;
        }
        let order = ORDERS.get(order);
        if let Some((_, key, _)) = order {
            policy.order = vec![key.clone()];
        }
        let naive = Naive {
            order: order.map(|(.., key)| *key),
            backfill: Backfill::Easy,
            shortest_candidates_first,
            look_ahead: look_ahead.map(|count| count as usize),
        };
        prop_assert_eq!(policy.backfill.mode, BackfillMode::Easy);
        agree(procs, &jobs, &policy, naive)?;
    }

    #[test]
    fn a_bound_on_the_starts_of_a_pass_changes_nothing((procs, jobs) in trace(), max_starts in 1..4u32) {
        for name in ["fcfs", "easy"] {
            let bounded = Policy { max_starts, ..built_in(name) };
            let all = run(&jobs, &Headers::default(), procs as u32, &built_in(name));
            prop_assert_eq!(starts(&run(&jobs, &Headers::default(), procs as u32, &bounded)), starts(&all));
        }
    }
}
