//! The order of waiting jobs.

use crate::support::{STRICT_CONFIG, STRICT_GROUP, policy};
use muster_pbs_policy::{fraction::Fraction, shares::Shares, sort::SortedJob, values};
use proptest::prelude::*;
use std::sync::Arc;

#[derive(Debug)]
struct Job {
    name: &'static str,
    cput: Option<u64>,
    mem: Option<u64>,
    walltime: Option<u64>,
    priority: i64,
    part: Fraction,
}

impl SortedJob for Job {
    fn cput_seconds(&self) -> Option<u64> {
        self.cput
    }

    fn memory_kilobytes(&self) -> Option<u64> {
        self.mem
    }

    fn walltime_seconds(&self) -> Option<u64> {
        self.walltime
    }

    fn priority(&self) -> i64 {
        self.priority
    }

    fn part(&self) -> &Fraction {
        &self.part
    }
}

/// The jobs of W1; `-` is unset.
const JOBS: &str = "J1 2:00:00 400mb 1:00:00 0 sally; J2 0:30:00 100mb 3:00:00 50 bob; \
                    J3 1:00:00 800mb 0:30:00 0 ceo; J4 0:30:00 200mb 2:00:00 -10 larry; \
                    J5 4:00:00 400mb 6:00:00 100 manager; J6 - 50mb 0:45:00 0 vp; \
                    J7 1:00:00 - 2:00:00 50 alice; J8 0:10:00 1600mb - 10 sally";

fn strict() -> Shares {
    let shares = policy(&[("sched_config", STRICT_CONFIG), ("resource_group", STRICT_GROUP)]).shares;
    shares.with_users(["sally", "bob", "ceo", "larry", "manager", "vp", "alice"])
}

fn jobs() -> Vec<Job> {
    let shares = strict();
    let job = |text: &'static str| {
        let [name, cput, mem, walltime, priority, owner] = text.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{text}")
        };
        let set = |text: &str, read: fn(&str) -> Option<u64>| (text != "-").then(|| read(text).expect("a value"));
        Job {
            name,
            cput: set(cput, values::seconds),
            mem: set(mem, values::kilobytes),
            walltime: set(walltime, values::seconds),
            priority: priority.parse().expect("a number"),
            part: Fraction::clone(&shares.find(owner).expect("a user").part),
        }
    };
    JOBS.split("; ").map(job).collect()
}

fn sorted(config: &str) -> String {
    let order = policy(&[("sched_config", config)]).sched_config.modes.prime.order();
    let mut jobs = jobs();
    order.sort(&mut jobs);
    jobs.iter().map(|job| job.name).collect::<Vec<_>>().join(" ")
}

/// W1: PBS-S-01, PBS-S-02, PBS-S-03, PBS-S-04.
#[test]
fn jobs_are_in_the_order_of_each_sort() {
    for (sort, expected) in [
        ("no_sort", "J1 J2 J3 J4 J5 J6 J7 J8"),
        ("shortest_job_first", "J8 J2 J4 J3 J7 J1 J5 J6"),
        ("longest_job_first", "J5 J1 J3 J7 J2 J4 J8 J6"),
        ("smallest_memory_first", "J6 J2 J4 J1 J5 J3 J8 J7"),
        ("largest_memory_first", "J8 J3 J1 J5 J4 J2 J6 J7"),
        ("high_priority_first", "J5 J2 J7 J8 J1 J3 J6 J4"),
        ("low_priority_first", "J4 J1 J3 J6 J8 J2 J7 J5"),
        ("large_walltime_first", "J5 J2 J4 J7 J1 J6 J3 J8"),
        ("short_walltime_first", "J3 J6 J1 J4 J7 J2 J5 J8"),
        ("fair_share", "J3 J6 J5 J4 J1 J8 J2 J7"),
    ] {
        assert_eq!(sorted(&format!("sort_by: {sort}")), expected, "{sort}");
    }
    let keys = "sort_by: multi_sort\nkey: shortest_job_first\nkey: smallest_memory_first\nkey: high_priority_first\n";
    assert_eq!(sorted(keys), "J8 J2 J4 J3 J7 J1 J5 J6");
    assert_eq!(
        sorted("sort_by: multi_sort\nkey: low_priority_first\nkey: longest_job_first\n"),
        "J4 J1 J3 J6 J8 J7 J2 J5"
    );
}

/// W1: PBS-FS-03, PBS-FS-04, PBS-FS-10.
#[test]
fn shares_of_a_flat_file_are_strict_priorities() {
    let shares = strict();
    let parts = ["ceo", "vp", "manager", "larry", "sally", "bob", "alice"]
        .map(|user| shares.find(user).expect("a user").part.clone());
    let expected = [10_000, 500, 100, 6, 4].map(|shares| Fraction::of(shares, 10_611));
    assert_eq!(parts[..5], expected.map(Arc::new));
    assert_eq!(parts[5..].iter().map(ToString::to_string).collect::<Vec<_>>(), ["1/21222"; 2]);
    assert_eq!(*shares.members()[Shares::UNKNOWN].part, Fraction::of(1, 10_611));
}

fn any_job() -> impl Strategy<Value = Job> {
    let resource = || proptest::option::of(0..4u64);
    (resource(), resource(), resource(), -2..3i64, 0..3u64).prop_map(|(cput, mem, walltime, priority, part)| Job {
        name: "",
        cput,
        mem,
        walltime,
        priority,
        part: Fraction::of(part, 7),
    })
}

proptest! {
    /// PBS-S-02, PBS-S-03: every order is one, and what is unset comes last.
    #[test]
    fn any_keys_order_any_jobs(
        one in any_job(),
        two in any_job(),
        three in any_job(),
        keys in proptest::collection::vec(proptest::sample::select(muster_pbs_policy::sort::SortKey::ALL.to_vec()), 0..4),
    ) {
        let order = muster_pbs_policy::sort::Order::new(keys);
        let compare = |left: &Job, right: &Job| order.compare(left, right);
        prop_assert_eq!(compare(&one, &two), compare(&two, &one).reverse());
        prop_assert!(compare(&one, &one).is_eq());
        if compare(&one, &two).is_le() && compare(&two, &three).is_le() {
            prop_assert!(compare(&one, &three).is_le());
        }
    }
}
