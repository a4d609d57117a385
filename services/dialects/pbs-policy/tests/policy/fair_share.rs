//! Usage, its decay, and the choice of the next job.

use crate::support::{RESOURCE_GROUP, at, policy};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use muster_pbs_policy::{
    fraction::Fraction,
    sched_config::Charge,
    shares::Shares,
    usage::{Decay, Usage, charge},
    values,
};
use muster_schemas::{
    policy::Compare,
    shares::{Standing, Waiting},
};
use proptest::prelude::*;

/// The jobs of W4.
const JOBS: [(&str, &str, &str); 8] = [
    ("f1", "usr7", "1:00:00"),
    ("f2", "usr3", "0:30:00"),
    ("f3", "usr1", "0:10:00"),
    ("f4", "usr6", "0:20:00"),
    ("f5", "usr3", "0:05:00"),
    ("f6", "zed", "2:00:00"),
    ("f7", "usr8", "0:40:00"),
    ("f8", "usr1", "0:01:00"),
];

const HALF_LIFE: u64 = 24 * 3600;

fn start() -> Timestamp {
    at("1998-03-10T00:00:00", &TimeZone::UTC)
}

fn shares() -> Shares {
    policy(&[("resource_group", RESOURCE_GROUP)]).shares
}

fn usage() -> Usage {
    let mut usage = Usage::new(start());
    for (user, amount) in
        [("usr1", 1000), ("usr3", 4000), ("usr4", 500), ("usr6", 2000), ("usr7", 10_000), ("usr8", 100), ("zed", 6000)]
    {
        usage.set(user, amount);
    }
    usage
}

fn cput(job: usize) -> u64 {
    values::seconds(JOBS[job].2).expect("a time")
}

/// The jobs in the order in which they are looked at, and how users stand then; a maximum of jobs start.
fn chosen(order: &[usize], usage: &Usage, starts: usize) -> (String, Standing) {
    let owners: Vec<&str> = order.iter().map(|job| JOBS[*job].1).collect();
    let mut standing = Standing::new(Compare::Users, &shares(), usage.users(), owners.iter().copied());
    let mut waiting = Waiting::new(&standing, owners.iter().copied());
    let mut names = Vec::new();
    while let Some(place) = waiting.next(&standing) {
        let job = order[place];
        if names.len() < starts {
            standing.started(JOBS[job].1, charge(Charge::CpuTime, Some(cput(job)), None, None));
        }
        names.push(JOBS[job].0);
    }
    (names.join(" "), standing)
}

fn by_arrival() -> Vec<usize> {
    (0..JOBS.len()).collect()
}

/// W4: PBS-FS-06, PBS-FS-07, and PBS-FS-04 for the user who is not in the file.
#[test]
fn users_with_much_part_and_little_usage_come_first() {
    let (order, standing) = chosen(&by_arrival(), &usage(), JOBS.len());
    assert_eq!(order, "f7 f3 f4 f8 f2 f6 f5 f1");
    for (user, expected) in
        [("usr1", 1660), ("usr3", 6100), ("usr6", 3200), ("usr7", 13_600), ("usr8", 2500), ("zed", 13_200)]
    {
        assert_eq!(standing.usage_now(user), expected, "{user}");
    }
}

/// W4: PBS-FS-07, two users who stand at exactly 1/33000.
#[test]
fn equal_users_are_in_the_order_of_the_sort() {
    let standing = Standing::new(Compare::Users, &shares(), usage().users(), ["zed", "usr3"]);
    assert_eq!(Waiting::new(&standing, ["usr3", "zed"]).next(&standing), Some(0));
    assert_eq!(Waiting::new(&standing, ["zed", "usr3"]).next(&standing), Some(0));
}

/// W4: PBS-FS-06, a refused job does not raise usage.
#[test]
fn a_refused_job_does_not_raise_usage() {
    assert_eq!(chosen(&by_arrival(), &usage(), 3).0, "f7 f3 f4 f8 f2 f5 f6 f1");
}

/// W4: PBS-FS-07, the default sort decides inside a user and between equal ones.
#[test]
fn the_sort_decides_between_equal_values() {
    let mut order = by_arrival();
    order.sort_by_key(|job| cput(*job));
    assert_eq!(chosen(&order, &usage(), JOBS.len()).0, "f7 f8 f3 f4 f5 f6 f2 f1");
}

/// W4: PBS-FS-08.
#[test]
fn usage_is_halved_once_for_each_half_life() {
    let mut usage = usage();
    let two_days = start() + SignedDuration::from_hours(48);
    assert_eq!(usage.decay(HALF_LIFE, two_days), Some(Decay { halvings: 2, at: two_days }));
    for (user, expected) in
        [("usr1", 250), ("usr3", 1000), ("usr4", 125), ("usr6", 500), ("usr7", 2500), ("usr8", 25), ("zed", 1500)]
    {
        assert_eq!(usage.of(user), expected, "{user}");
    }
    assert_eq!(chosen(&by_arrival(), &usage, JOBS.len()).0, "f7 f3 f4 f2 f6 f8 f1 f5");
}

/// W4: PBS-FS-05, PBS-FS-08: fractions are dropped, and usage never falls below one.
#[test]
fn seven_is_halved_to_three_and_one() {
    let mut usage = Usage::new(start());
    usage.set("ann", 7);
    let halved: Vec<u64> = (1..=3)
        .map(|day| {
            usage.decay(HALF_LIFE, start() + SignedDuration::from_hours(24 * day));
            usage.of("ann")
        })
        .collect();
    assert_eq!(halved, [3, 1, 1]);
    assert_eq!(usage.users().count(), 0);
}

/// PBS-FS-08: the rest of the time is carried over.
#[test]
fn the_rest_of_a_half_life_is_carried_over() {
    let mut usage = Usage::new(start());
    usage.set("ann", 1000);
    let after = |hours: i64| start() + SignedDuration::from_hours(hours);
    assert_eq!(usage.decay(HALF_LIFE, after(23)), None);
    assert_eq!(usage.decay(HALF_LIFE, after(30)), Some(Decay { halvings: 1, at: after(24) }));
    assert_eq!(usage.decay(HALF_LIFE, after(47)), None);
    assert_eq!(usage.decay(HALF_LIFE, after(48)), Some(Decay { halvings: 1, at: after(48) }));
    assert_eq!(usage.decay(HALF_LIFE, after(10)), None);
    assert_eq!(usage.of("ann"), 250);
    assert_eq!(usage.decay(HALF_LIFE, after(24 * 5000)).map(|decay| decay.halvings), Some(4998));
    assert_eq!(usage.of("ann"), 1);
}

/// PBS-FS-05, PBS-FS-12: what is charged.
#[test]
fn cpu_time_or_cpus_times_walltime_is_charged() {
    let mut usage = Usage::new(start());
    assert_eq!(usage.of("ann"), 1);
    usage.charge("ann", charge(Charge::CpuTime, Some(60), Some(4), Some(100)));
    assert_eq!(usage.of("ann"), 61);
    usage.charge("ann", charge(Charge::CpusTimesWalltime, Some(60), Some(4), Some(100)));
    assert_eq!(usage.of("ann"), 461);
    assert_eq!(charge(Charge::CpuTime, None, Some(4), Some(100)), 0);
    assert_eq!(charge(Charge::CpusTimesWalltime, None, None, Some(100)), 100);
    assert_eq!(charge(Charge::CpusTimesWalltime, None, Some(4), None), 0);
    usage.charge("ann", u64::MAX);
    assert_eq!(usage.of("ann"), u64::MAX);
}

/// PBS-FS-07: a part of zero comes last, and still runs.
#[test]
fn users_without_a_part_come_last() {
    let policy = policy(&[("sched_config", "unknown_shares: 0"), ("resource_group", "ann 1 root 1\nbob 2 root 0\n")]);
    let mut usage = Usage::new(start());
    usage.set("ann", u64::MAX);
    let standing = Standing::new(Compare::Users, &policy.shares, usage.users(), ["zed", "bob", "ann"]);
    let mut waiting = Waiting::new(&standing, ["zed", "bob", "ann"]);
    let order: Vec<usize> = std::iter::from_fn(|| waiting.next(&standing)).collect();
    assert_eq!(order, [2, 0, 1]);
}

/// PBS-FS-04: a user is seen who has a job, or usage above one.
#[test]
fn unknown_users_are_seen_while_they_have_jobs_or_usage() {
    let mut usage = Usage::new(start());
    usage.set("zed", 2);
    let members = |usage: &Usage, with_jobs: &[&str]| {
        let standing = Standing::new(Compare::Users, &shares(), usage.users(), with_jobs.iter().copied());
        standing.shares().members().iter().filter(|member| member.parent == Shares::UNKNOWN).count()
    };
    assert_eq!(members(&usage, &["ann", "usr1"]), 2);
    usage.decay(HALF_LIFE, start() + SignedDuration::from_hours(24));
    assert_eq!(members(&usage, &["ann"]), 1);
    assert_eq!(members(&usage, &[]), 0);
}

/// PBS-FS-11: a group whose members used much waits, whoever of them asks.
#[test]
fn the_tree_model_compares_where_paths_part() {
    let text = "g 1 root 10\nh 2 root 10\na 10 g 10\nb 11 g 10\nc 12 h 10\nd 13 h 10\n";
    let shares = policy(&[("resource_group", text)]).shares;
    let mut usage = Usage::new(start());
    usage.set("a", 1000);
    usage.set("c", 100);
    usage.set("d", 200);
    let users = ["a", "b", "c", "d"];
    let order = |model| {
        let standing = Standing::new(model, &shares, usage.users(), users);
        let mut waiting = Waiting::new(&standing, users);
        std::iter::from_fn(|| waiting.next(&standing)).map(|place| users[place]).collect::<String>()
    };
    assert_eq!(order(Compare::Users), "bcda");
    assert_eq!(order(Compare::Groups), "cdba");
}

/// PBS-FS-11: jobs that start count for all groups above their owner.
#[test]
fn the_tree_model_counts_started_jobs_for_groups() {
    let shares = policy(&[("resource_group", "g 1 root 10\nh 2 root 10\na 10 g 10\nb 11 g 10\nc 12 h 10\n")]).shares;
    let mut standing = Standing::new(Compare::Groups, &shares, [], ["a", "b", "c"]);
    let first = |standing: &Standing, users: [&'static str; 2]| {
        users[Waiting::new(standing, users).next(standing).expect("a job")]
    };
    assert_eq!((first(&standing, ["b", "c"]), first(&standing, ["c", "b"])), ("b", "c"));
    standing.started("a", 10);
    assert_eq!((first(&standing, ["b", "c"]), first(&standing, ["a", "b"])), ("c", "b"));
    assert_eq!((standing.usage_now("a"), standing.usage_now("b")), (11, 1));
}

/// PBS-FS-11: a group that is a user, too, stands for itself.
#[test]
fn a_user_above_another_one_is_compared_by_his_own_usage() {
    let shares = policy(&[("resource_group", "g 1 root 10\na 10 g 10\n")]).shares;
    let mut usage = Usage::new(start());
    usage.set("a", 50);
    let standing = Standing::new(Compare::Groups, &shares, usage.users(), ["g", "a"]);
    assert_eq!(Waiting::new(&standing, ["a", "g"]).next(&standing), Some(1));
}

/// PBS-FS-03, PBS-FS-07: fractions are exact where floats are not.
#[test]
fn fractions_are_in_lowest_terms_and_exact() {
    assert_eq!(Fraction::of(6, 33).to_string(), "2/11");
    assert_eq!(Fraction::of(4, 4).to_string(), "1");
    assert_eq!(Fraction::of(0, 5), Fraction::zero());
    assert_eq!(Fraction::of(5, 0), Fraction::zero());
    assert_eq!(Fraction::of(2, 3).times(9, 4).to_string(), "3/2");
    let big = Fraction::of(1, u64::MAX).times(1, u64::MAX).times(1, 10);
    assert_eq!(big.to_string(), "1/3402823669209384634264811192843491082250");
    assert!(Fraction::of(1, 1 << 63).times(1, 2) < Fraction::of(1, 2));
    let near = Fraction::of(u64::MAX - 1, u64::MAX);
    assert!(near < Fraction::one() && near > Fraction::of(u64::MAX - 2, u64::MAX - 1));
}

/// Compares two users by what the specification says, with sums over all users.
fn paths_part(model: Compare, standing: &Standing, one: &str, two: &str) -> std::cmp::Ordering {
    let members = standing.shares().members();
    let path = |user: &str| {
        let mut at = standing.shares().index_of(user).expect("a user");
        let mut path = vec![at];
        while at != Shares::ROOT {
            at = members[at].parent;
            path.push(at);
        }
        path.reverse();
        path
    };
    let own = |member: usize| standing.usage_now(&members[member].name);
    let below = |group: usize| {
        let users = (2..members.len()).filter(|user| path(&members[*user].name).contains(&group));
        users.map(|user| own(user) - 1).sum::<u64>() + 1
    };
    let value = |user: &str, other: &str| {
        let (path, other) = (path(user), path(other));
        match path.iter().find(|member| !other.contains(member)) {
            Some(member) if model == Compare::Groups => (*member, below(*member)),
            _ => (path[path.len() - 1], own(path[path.len() - 1])),
        }
    };
    let ((left, used), (right, other_used)) = (value(one, two), value(two, one));
    members[right].part.compare_times(used, &members[left].part, other_used)
}

proptest! {
    /// PBS-FS-03, PBS-FS-07: arithmetic agrees with that of 128 bits.
    #[test]
    fn fractions_agree_with_wide_integers(
        a in 0..1u64 << 30, b in 1..1u64 << 30, c in 0..1u64 << 30, d in 1..1u64 << 30,
        k in 1..1u64 << 30, l in 1..1u64 << 30,
    ) {
        let (one, two) = (Fraction::of(a, b), Fraction::of(c, d));
        let left = u128::from(a) * u128::from(d) * u128::from(k);
        let right = u128::from(c) * u128::from(b) * u128::from(l);
        prop_assert_eq!(one.compare_times(k, &two, l), left.cmp(&right));
        prop_assert_eq!(one == two, one.cmp(&two).is_eq());
        // The same comparison with terms of more than 64 bits.
        let tiny = |fraction: &Fraction| fraction.times(1, u64::MAX - 58).times(7, u64::MAX).times(1, 1 << 63);
        prop_assert_eq!(tiny(&one).compare_times(k, &tiny(&two), l), left.cmp(&right));
        let product = one.times(c, d);
        let wide = Fraction::of(a * c, b * d);
        prop_assert_eq!(product, wide);
    }

    /// PBS-FS-07, PBS-FS-11: every job is chosen once, and both models order users.
    #[test]
    fn every_job_is_chosen_once(
        owners in proptest::collection::vec(0..12usize, 0..30),
        used in proptest::collection::vec(0..2000u64, 12),
        is_tree: bool,
    ) {
        const USERS: [&str; 12] =
            ["usr1", "usr2", "usr3", "usr4", "usr5", "usr6", "usr7", "usr8", "grp4", "zed", "root", "unknown"];
        let mut usage = Usage::new(start());
        used.iter().zip(USERS).for_each(|(used, user)| usage.set(user, *used));
        let model = if is_tree { Compare::Groups } else { Compare::Users };
        let mut standing = Standing::new(model, &shares(), usage.users(), USERS);
        let mut waiting = Waiting::new(&standing, owners.iter().map(|owner| USERS[*owner]));
        let mut chosen = Vec::new();
        while let Some(place) = waiting.next(&standing) {
            let owner = USERS[owners[place]];
            for other in (0..owners.len()).filter(|other| !chosen.contains(other)) {
                let order = paths_part(model, &standing, owner, USERS[owners[other]]);
                prop_assert!(order.is_le(), "{} {}", owner, USERS[owners[other]]);
                prop_assert!(owners[other] != owners[place] || place <= other);
            }
            standing.started(owner, 100);
            chosen.push(place);
        }
        chosen.sort_unstable();
        prop_assert_eq!(chosen, (0..owners.len()).collect::<Vec<_>>());
    }

    /// PBS-FS-08: n halvings happen in n half lives, however often usage decays.
    #[test]
    fn it_does_not_matter_how_often_usage_decays(
        amount in 1..u64::MAX, half_life in 1..100_000u64, steps in proptest::collection::vec(0..200_000i64, 1..20),
    ) {
        let (mut often, mut once) = (Usage::new(start()), Usage::new(start()));
        often.set("ann", amount);
        once.set("ann", amount);
        let mut now = start();
        for step in steps {
            now += SignedDuration::from_secs(step);
            let _ = often.decay(half_life, now);
        }
        let _ = once.decay(half_life, now);
        prop_assert_eq!(often, once);
    }
}
