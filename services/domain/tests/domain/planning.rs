//! Policy, advance reservations, closures, promises.

use crate::support::*;
use muster_schemas::{
    JobId, NodeId, Sequence, Timestamp,
    cluster::{ClusterChange, ClusterConfig, ClusterSettingsChange, QueueSpec},
    command::{Command, RefusalCode, Reply, Start},
    event::{Actor, EndCause, Event, JobChange, NodeExit, WaitingJob},
    job::{ExitStatus, Holds, JobSpec, JobState, Usage, WaitReason},
    node::PartUse,
    plan::{
        NodeClosure, PlannedSlot, PredictedStart, ProposedPlan, Replaced, ReservationSpec, ReservedNodes, SlotSpec,
    },
    policy::{Charge, FairShare, Limit, LimitPer, OrderKey, Policy, ShareTable, TurnRules, Turns, UsageRule, Visit},
    resources::{Alternative, FewGroups, IndexSet, NodeFilter, Placement, Request},
};
use std::sync::Arc;

/// A reservation that begins and lasts this many seconds from now.
fn reservation(cluster: &Cluster, name: &str, nodes: ReservedNodes, from: i64, seconds: i64) -> ReservationSpec {
    let start = cluster.now.plus_seconds(from);
    let (users, accounts) = (vec!["ada".into()], vec!["physics".into()]);
    let (repeats_after_seconds, attributes) = Default::default();
    let end = start.plus_seconds(seconds);
    ReservationSpec {
        name: name.into(),
        start,
        end,
        nodes,
        users,
        accounts,
        repeats_after_seconds,
        attributes,
        ..ReservationSpec::default()
    }
}

fn named(names: &[&str]) -> ReservedNodes {
    ReservedNodes::Named(names.iter().map(ToString::to_string).collect())
}

fn count(count: u32) -> ReservedNodes {
    ReservedNodes::Count { count, filter: None, queue: None }
}

fn reserve(reservation: ReservationSpec) -> Command {
    Command::Reserve { reservation: Box::new(reservation) }
}

/// Reserves node1 and node2 as `course` for ada and the account physics, ten seconds from now, for a minute.
fn reserve_course(cluster: &mut Cluster) {
    let course = reservation(cluster, "course", named(&["node1", "node2"]), 10, 60);
    cluster.ok(&user("oper"), reserve(course));
}

fn in_reservation(name: &str) -> JobSpec {
    let mut spec = job(1, 1);
    spec.components[0].reservation = Some(name.into());
    spec
}

fn propose(cluster: &mut Cluster, plan: ProposedPlan) -> Vec<Event> {
    cluster.ok(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) })
}

/// Why the start of a job on the first free core of a node is refused, if it is.
fn refusal(cluster: &mut Cluster, job: JobId, node: &str) -> Option<String> {
    let command = cluster.start_command(job, &[node], 1);
    match cluster.run(&Actor::Planner, command) {
        Ok((_, Reply::Planned(refused))) => refused.first().map(|start| start.reason.clone()),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_start_refused(cluster: &mut Cluster, job: JobId, node: &str, words: &str) {
    let reason = refusal(cluster, job, node).expect("the start is refused");
    assert!(reason.contains(words), "`{words}` expected: {reason}");
}

fn reason(cluster: &Cluster, job: JobId) -> Option<WaitReason> {
    cluster.state.wait_reason(cluster.state.job(job).expect("known"))
}

/// A policy is an event, set by administrators only (M-PLAN-25).
#[test]
fn administrators_set_a_policy_that_makes_sense() {
    let mut cluster = Cluster::new();
    assert_eq!(**cluster.state.policy(), Policy::default());
    let easy = Policy::built_in("easy").unwrap();
    let set = |policy: &Policy| Command::SetPolicy { policy: Box::new(policy.clone()) };
    cluster.refused(&user("oper"), set(&easy), RefusalCode::PermissionDenied, "only administrators");
    assert_eq!(cluster.ok(&root(), set(&easy)), [Event::PolicySet { policy: Arc::new(easy.clone()) }]);
    assert_eq!(**cluster.state.policy(), easy);
    assert!(cluster.ok(&root(), set(&easy)).is_empty(), "it is in force already");
    let mut check = |change: &dyn Fn(&mut Policy), words| {
        let mut policy = easy.clone();
        change(&mut policy);
        cluster.refused(&root(), set(&policy), RefusalCode::Invalid, words);
    };
    check(&|policy| policy.max_starts = 0, "max_starts");
    check(&|policy| policy.order = vec![OrderKey::Spt; 200], "order");
    check(&|policy| policy.limits = vec![Limit { per: LimitPer::User, ..Limit::default() }; 1001], "limit");
    let formula = |text: &str| OrderKey::Formula { text: text.into(), descending: false };
    check(&|policy| policy.order = vec![formula("walltime *")], "order");
    check(&|policy| policy.order = vec![formula(&"1 + ".repeat(2000))], "order");
    cluster.assert_replays();
}

/// SL-C-38: a reservation that repeats begins again by itself, with its nodes. A time in which another has one of its
/// nodes is left out, and so is what passed while nobody looked.
#[test]
fn a_reservation_that_repeats_begins_again() {
    let mut cluster = Cluster::new();
    let zero = cluster.now;
    let daily =
        ReservationSpec { repeats_after_seconds: 100, ..reservation(&cluster, "daily", named(&["node1"]), 10, 60) };
    let too_soon = ReservationSpec { repeats_after_seconds: 59, ..daily.clone() };
    cluster.refused(&user("oper"), reserve(too_soon), RefusalCode::Invalid, "repeats_after_seconds");
    cluster.ok(&user("oper"), reserve(daily.clone()));
    let by_count = ReservationSpec { repeats_after_seconds: 100, ..reservation(&cluster, "some", count(1), 10, 60) };
    cluster.ok(&user("oper"), reserve(by_count));
    let chosen = cluster.node_id("node3");
    propose(&mut cluster, ProposedPlan { reservations: vec![("some".into(), vec![chosen])], ..Default::default() });
    // Its second time is taken by another.
    cluster.ok(&user("oper"), reserve(reservation(&cluster, "other", named(&["node1"]), 120, 5)));
    let tick = |cluster: &mut Cluster, seconds: i64| {
        cluster.now = zero.plus_seconds(seconds);
        cluster.ok(&Actor::Ledger, Command::Tick)
    };
    let begun = |name: &str| Event::ReservationBegun { name: name.into() };
    assert_eq!(tick(&mut cluster, 10), [begun("daily"), begun("some")]);
    let set = |spec: &ReservationSpec, seconds: i64| ReservationSpec {
        start: spec.start.plus_seconds(seconds),
        end: spec.end.plus_seconds(seconds),
        ..spec.clone()
    };
    tick(&mut cluster, 70);
    let now_set = |cluster: &Cluster, name: &str| {
        let reservation = cluster.state.reservation(name).expect("it goes on");
        ((*reservation.spec).clone(), reservation.begun, reservation.nodes.iter().copied().collect::<Vec<_>>())
    };
    let (spec, is_begun, nodes) = now_set(&cluster, "daily");
    assert_eq!((spec, is_begun), (set(&daily, 200), false), "the time of the other is left out");
    assert_eq!(nodes, [cluster.node_id("node1")]);
    let (spec, _, nodes) = now_set(&cluster, "some");
    assert_eq!((spec.start, nodes), (zero.plus_seconds(110), vec![chosen]), "it keeps the nodes that were chosen");
    // The ledger was away from before its third time until its fifth has begun.
    tick(&mut cluster, 215);
    tick(&mut cluster, 420);
    tick(&mut cluster, 420);
    assert_eq!(now_set(&cluster, "daily").0, set(&daily, 400));
    let once = ReservationSpec { repeats_after_seconds: 0, ..set(&daily, 400) };
    cluster.ok(&user("oper"), Command::ChangeReservation { reservation: Box::new(once) });
    tick(&mut cluster, 471);
    tick(&mut cluster, 471);
    assert!(cluster.state.reservation("daily").is_none(), "it no longer repeats");
    cluster.assert_replays();
}

/// SL-C-38: reservations that are over at the same moment do not take each other's next time.
#[test]
fn reservations_that_repeat_stay_out_of_each_others_way() {
    let mut cluster = Cluster::new();
    let zero = cluster.now;
    let repeated = |name: &str, starts_after, lasts, repeats_after_seconds| ReservationSpec {
        repeats_after_seconds,
        ..reservation(&cluster, name, named(&["node1"]), starts_after, lasts)
    };
    let both = [repeated("wide", 4, 5, 30), repeated("often", 10, 4, 7)];
    for spec in both {
        cluster.ok(&user("oper"), reserve(spec));
    }
    for seconds in [4, 10, 120, 120] {
        cluster.now = zero.plus_seconds(seconds);
        cluster.ok(&Actor::Ledger, Command::Tick);
    }
    let times = ["wide", "often"].map(|name| {
        let reservation = cluster.state.reservation(name).expect("it goes on");
        (reservation.spec.start, reservation.spec.end)
    });
    assert!(times[0].1 <= times[1].0 || times[1].1 <= times[0].0, "{times:?}");
    assert!(times.iter().all(|(_, end)| *end > cluster.now), "{times:?}");
    cluster.assert_replays();
}

#[test]
fn operators_reserve_under_a_name_of_its_own() {
    let mut cluster = Cluster::new();
    let course = reservation(&cluster, "course", named(&["node1", "node2"]), 10, 60);
    cluster.refused(&user("ada"), reserve(course.clone()), RefusalCode::PermissionDenied, "only operators");
    reserve_course(&mut cluster);
    cluster.refused(&user("oper"), reserve(course.clone()), RefusalCode::Conflict, "`course` exists already");
    let mut check = |code, words: &str, change: &dyn Fn(&mut ReservationSpec)| {
        let mut spec = ReservationSpec { name: "other".into(), nodes: named(&["node3"]), ..course.clone() };
        change(&mut spec);
        cluster.refused(&user("oper"), reserve(spec), code, words);
    };
    check(RefusalCode::Invalid, "reservation.name", &|spec| spec.name = "a b".into());
    check(RefusalCode::Invalid, "is not after the start", &|spec| spec.end = spec.start);
    check(RefusalCode::Invalid, "has passed already", &|spec| {
        (spec.start, spec.end) = (Timestamp(0), Timestamp::from_unix_seconds(10));
    });
    check(RefusalCode::NotFound, "node `node9` does not exist", &|spec| spec.nodes = named(&["node9"]));
    check(RefusalCode::Invalid, "names", &|spec| spec.nodes = named(&[]));
    check(RefusalCode::Invalid, "4 are asked for, 3", &|spec| spec.nodes = count(4));
    check(RefusalCode::Invalid, "1 are asked for, 0", &|spec| {
        spec.nodes = ReservedNodes::Count { count: 1, filter: Some(NodeFilter::Has("gpu".into())), queue: None };
    });
    check(RefusalCode::NotFound, "queue `none`", &|spec| {
        spec.nodes = ReservedNodes::Count { count: 1, filter: None, queue: Some("none".into()) };
    });
    check(RefusalCode::Invalid, "twice", &|spec| spec.users = vec!["ada".into(), "ada".into()]);
    check(RefusalCode::Conflict, "node node2 belongs to reservation `course`", &|spec| {
        spec.nodes = named(&["node3", "node2"]);
    });
    let after = ReservationSpec { name: "after".into(), start: course.end, end: course.end.plus_seconds(1), ..course };
    cluster.ok(&user("oper"), reserve(after));
    cluster.assert_replays();
}

/// SL-C-38: a reservation has nodes of another one only if it says that it overlaps others.
#[test]
fn a_reservation_may_overlap_others() {
    let mut cluster = Cluster::new();
    reserve_course(&mut cluster);
    let apart = reservation(&cluster, "repair", named(&["node2"]), 20, 10);
    let repair = ReservationSpec { overlaps: true, ..apart.clone() };
    cluster.ok(&user("oper"), reserve(repair.clone()));
    let change = |spec: ReservationSpec| Command::ChangeReservation { reservation: Box::new(spec) };
    cluster.refused(&user("oper"), change(apart), RefusalCode::Conflict, "node node2 belongs to reservation `course`");
    // Nor does one that says nothing get nodes of one that overlaps.
    let third = reservation(&cluster, "third", named(&["node2"]), 10, 15);
    cluster.refused(&user("oper"), reserve(third), RefusalCode::Conflict, "node node2 belongs to reservation `");
    let all = reservation(&cluster, "all", count(3), 10, 60);
    cluster.ok(&user("oper"), reserve(ReservationSpec { overlaps: true, ..all }));
    cluster.assert_replays();
}

/// SL-C-38: a job that waits for a reservation keeps it, as in Slurm.
#[test]
fn a_reservation_that_jobs_wait_for_is_not_idle() {
    let mut cluster = Cluster::new();
    let spec = reservation(&cluster, "idle", named(&["node1"]), 10, 10_000);
    let spec = ReservationSpec { ends_after_idle_seconds: 60, users: vec![], accounts: vec![], ..spec };
    cluster.ok(&user("oper"), reserve(spec));
    let waiting = cluster.submit("ada", in_reservation("idle"));
    let is_removed =
        |cluster: &mut Cluster| cluster.tick().iter().any(|event| matches!(event, Event::ReservationRemoved { .. }));
    cluster.pass(10);
    cluster.tick();
    cluster.pass(600);
    assert!(!is_removed(&mut cluster), "a job waits for it");
    cluster.assert_replays();
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[waiting]) });
    cluster.pass(59);
    assert!(!is_removed(&mut cluster));
    // One that is moved there counts from then on, and one that is moved away no longer.
    let moved = cluster.submit("ada", job(1, 1));
    let to = |name: &str| JobChange { reservation: Some(name.into()), ..JobChange::default() };
    cluster.ok(&user("ada"), Command::Modify { jobs: ids(&[moved]), change: to("idle") });
    cluster.pass(600);
    assert!(!is_removed(&mut cluster));
    cluster.ok(&user("ada"), Command::Modify { jobs: ids(&[moved]), change: to("") });
    cluster.pass(60);
    assert!(is_removed(&mut cluster));
    cluster.assert_replays();
}

/// SL-C-38: a reservation that attracts jobs has those that it admits and that name none, from its beginning to its end; while
/// they run there it is not idle.
#[test]
fn a_reservation_may_attract_jobs_that_do_not_name_it() {
    let mut cluster = Cluster::new();
    let spec = reservation(&cluster, "course", named(&["node1", "node2"]), 0, 10_000);
    let spec = ReservationSpec { attracts: true, ends_after_idle_seconds: 60, ..spec };
    cluster.ok(&user("oper"), reserve(spec));
    cluster.pass(1);
    cluster.tick();
    let (mine, other) = (cluster.submit("ada", job(1, 1)), cluster.submit("bob", job(1, 1)));
    assert_start_refused(&mut cluster, other, "node1", "kept for reservation `course`");
    let run = cluster.start(mine, &["node1"], 1);
    cluster.pass(600);
    let removed =
        |cluster: &mut Cluster| cluster.tick().iter().any(|event| matches!(event, Event::ReservationRemoved { .. }));
    assert!(!removed(&mut cluster), "a job runs in it");
    cluster.assert_replays();
    cluster.end(run, "node1", ExitStatus::Code(0));
    cluster.pass(60);
    assert!(removed(&mut cluster));
    cluster.assert_replays();
}

/// SL-C-38: jobs of a flexible reservation start before it, and on nodes outside; others do not start on its nodes.
#[test]
fn jobs_of_a_flexible_reservation_need_not_stay_within_it() {
    let mut cluster = Cluster::new();
    let spec = reservation(&cluster, "course", named(&["node1", "node2"]), 100, 1_000);
    cluster.ok(&user("oper"), reserve(ReservationSpec { is_flexible: true, ..spec }));
    let (early, later) =
        (cluster.submit("ada", in_reservation("course")), cluster.submit("ada", in_reservation("course")));
    let outside = cluster.submit("ada", in_reservation("course"));
    cluster.start(early, &["node1"], 1);
    cluster.pass(100);
    cluster.tick();
    let other = cluster.submit("bob", job(1, 1));
    assert_start_refused(&mut cluster, other, "node2", "kept for reservation `course`");
    cluster.start(later, &["node2"], 1);
    cluster.start(outside, &["node3"], 1);
    cluster.assert_replays();
}

/// SL-C-38: idle nodes take the place of those of a reservation by number that are drained, or that a job has if it says so.
/// The others stay.
#[test]
fn nodes_of_a_reservation_are_replaced() {
    let mut cluster = Cluster::new();
    let spec = reservation(&cluster, "course", count(2), 10, 1_000);
    let fixed = ReservationSpec { nodes: named(&["node1"]), replaces: Replaced::Lost, ..spec.clone() };
    cluster.refused(&user("oper"), reserve(fixed), RefusalCode::Invalid, "are not replaced");
    cluster.ok(&user("oper"), reserve(ReservationSpec { replaces: Replaced::Lost, ..spec.clone() }));
    let ids = |cluster: &Cluster, names: &[&str]| names.iter().map(|name| cluster.node_id(name)).collect::<Vec<_>>();
    let place = |cluster: &mut Cluster, names: &[&str]| {
        let reservations = vec![("course".to_owned(), ids(cluster, names))];
        propose(cluster, ProposedPlan { reservations, ..ProposedPlan::default() })
    };
    let placed = |cluster: &Cluster| {
        let nodes = &cluster.state.reservation("course").expect("it is there").nodes;
        nodes.iter().copied().collect::<Vec<_>>()
    };
    place(&mut cluster, &["node1", "node2"]);
    assert_eq!(place(&mut cluster, &["node1", "node3"]), [], "none is to be replaced");
    let inside = cluster.submit("ada", in_reservation("course"));
    let drain = Command::DrainNodes { nodes: vec!["node2".into()], reason: "fan".into(), is_down: false };
    cluster.ok(&user("oper"), drain);
    assert!(cluster.state.replaces_nodes());
    assert_eq!(place(&mut cluster, &["node2", "node3"]), [], "node1 stays");
    assert_eq!(place(&mut cluster, &["node1", "node2"]), [], "these it has");
    let events = place(&mut cluster, &["node1", "node3"]);
    assert!(events.iter().any(|event| matches!(event, Event::ReservationPlaced { .. })), "{events:?}");
    assert_eq!(placed(&cluster), ids(&cluster, &["node1", "node3"]));
    assert!(!cluster.state.replaces_nodes());
    cluster.pass(10);
    cluster.tick();
    cluster.start(inside, &["node1"], 1);
    assert!(!cluster.state.replaces_nodes(), "a job that has one is no reason");
    let used = ReservationSpec { replaces: Replaced::Used, ..spec };
    cluster.ok(&user("oper"), Command::ChangeReservation { reservation: Box::new(used) });
    assert!(cluster.state.replaces_nodes());
    cluster.assert_replays();
}

/// SL-C-38: a reservation that stays ahead never begins and never ends, and others do not get its nodes after it.
#[test]
fn a_reservation_that_stays_ahead_never_begins() {
    let mut cluster = Cluster::new();
    let spec = reservation(&cluster, "short", named(&["node1"]), 600, 60);
    let spec = ReservationSpec { stays_ahead_seconds: 600, ..spec };
    let again = ReservationSpec { repeats_after_seconds: 1_000, ..spec.clone() };
    cluster.refused(&user("oper"), reserve(again), RefusalCode::Invalid, "cannot begin again");
    cluster.ok(&user("oper"), reserve(spec));
    let after = reservation(&cluster, "after", named(&["node1"]), 6_000, 60);
    cluster.refused(&user("oper"), reserve(after), RefusalCode::Conflict, "node node1 belongs to reservation `short`");
    let own = cluster.submit("ada", in_reservation("short"));
    let other = cluster.submit("bob", job(1, 1));
    cluster.pass(10_000);
    assert_eq!(cluster.tick(), []);
    let reservation = cluster.state.reservation("short").expect("it is there");
    assert_eq!(reservation.period(cluster.now), (cluster.now.plus_seconds(600), Timestamp::MAX));
    assert!(!reservation.begun && !reservation.is_active(cluster.now));
    assert_start_refused(&mut cluster, own, "node1", "has not begun");
    cluster.start(other, &["node1"], 1);
    cluster.assert_replays();
}

/// SL-C-38: a reservation that stays ahead has no node of one that repeats, at whatever time: it would be in its way for ever.
#[test]
fn a_reservation_that_stays_ahead_shares_no_node_with_one_that_repeats() {
    let mut cluster = Cluster::new();
    let repeats = |cluster: &Cluster, name: &str, node: &str| ReservationSpec {
        repeats_after_seconds: 86_400,
        ..reservation(cluster, name, named(&[node]), 10, 60)
    };
    let ahead = |cluster: &Cluster, name: &str, nodes| ReservationSpec {
        stays_ahead_seconds: 600,
        ..reservation(cluster, name, nodes, 600, 60)
    };
    let (daily, short) = (repeats(&cluster, "daily", "node1"), ahead(&cluster, "short", named(&["node1"])));
    cluster.ok(&user("oper"), reserve(daily.clone()));
    cluster.refused(&user("oper"), reserve(short.clone()), RefusalCode::Conflict, "belongs to reservation `daily`");
    cluster.ok(&user("oper"), reserve(ahead(&cluster, "other", named(&["node2"]))));
    let late = repeats(&cluster, "late", "node2");
    cluster.refused(&user("oper"), reserve(late), RefusalCode::Conflict, "`other` which stays 600 s ahead");
    let once = reservation(&cluster, "once", named(&["node2"]), 10, 60);
    cluster.ok(&user("oper"), reserve(once));
    // The planner cannot bring them together either.
    cluster.ok(&user("oper"), reserve(ahead(&cluster, "any", count(1))));
    let reservations = vec![("any".to_owned(), vec![cluster.node_id("node1")])];
    assert_eq!(propose(&mut cluster, ProposedPlan { reservations, ..ProposedPlan::default() }), []);
    // It may be told to overlap.
    let short = ReservationSpec { overlaps: true, ..short };
    cluster.ok(&user("oper"), reserve(short.clone()));
    for seconds in [10, 60] {
        cluster.pass(seconds);
        cluster.ok(&Actor::Ledger, Command::Tick);
    }
    let next = cluster.state.reservation("daily").expect("it goes on").spec.clone();
    assert_eq!(next.start, daily.start.plus_seconds(86_400));
    let apart = ReservationSpec { overlaps: false, ..short };
    let change = Command::ChangeReservation { reservation: Box::new(apart.clone()) };
    cluster.refused(&user("oper"), change, RefusalCode::Conflict, "belongs to reservation `daily`");
    cluster.assert_replays();
    // An old log may have both. Then the one that repeats is over; it does not look for a time until the end of time.
    let frequent = ReservationSpec { repeats_after_seconds: 60, ..(*next).clone() };
    let apart = ReservationSpec { start: next.end, end: next.end.plus_seconds(60), ..apart };
    for spec in [frequent, apart] {
        cluster.append(&Actor::Ledger, vec![Event::ReservationSet { reservation: Arc::new(spec) }]);
    }
    cluster.now = next.start;
    cluster.tick();
    cluster.pass(60);
    assert!(cluster.tick().contains(&Event::ReservationRemoved { name: "daily".into() }));
}

/// SL-C-38: jobs that end before a reservation begins are no reason to replace its nodes.
#[test]
fn jobs_that_end_before_a_reservation_do_not_use_its_nodes() {
    let mut cluster = Cluster::new();
    let spec = reservation(&cluster, "course", count(2), 1_000, 1_000);
    cluster.ok(&user("oper"), reserve(ReservationSpec { replaces: Replaced::Used, ..spec }));
    let nodes = ["node1", "node2"].map(|name| cluster.node_id(name));
    let reservations = vec![("course".to_owned(), nodes.to_vec())];
    propose(&mut cluster, ProposedPlan { reservations, ..ProposedPlan::default() });
    let lasting = |seconds: u64| {
        let mut spec = job(1, 1);
        spec.components[0].alternatives[0].walltime_seconds = Some(seconds);
        spec
    };
    let short = cluster.submit("bob", lasting(1_000));
    cluster.start(short, &["node1"], 1);
    assert!(!cluster.state.replaces_nodes(), "it is over by then");
    let stays = cluster.submit("bob", job(1, 1));
    cluster.start(stays, &["node3"], 1);
    assert!(!cluster.state.replaces_nodes(), "it has another node");
    cluster.pass(1_000);
    cluster.ok(&Actor::Ledger, Command::Tick);
    let reservation = cluster.state.reservation("course").expect("it is there");
    assert!(reservation.begun);
    assert_eq!(cluster.state.nodes_to_replace(reservation), [nodes[0]].into(), "it is still there");
    cluster.assert_replays();
}

/// SL-C-38: a reservation may begin on a day that it leaves out from then on, but not leave out all days.
#[test]
fn a_reservation_does_not_come_back_to_a_first_day_that_it_leaves_out() {
    const DAY: i64 = 86_400;
    let mut cluster = Cluster::new();
    let zero = cluster.now;
    let spec = reservation(&cluster, "daily", named(&["node1"]), DAY, 60);
    let spec = ReservationSpec { repeats_after_seconds: 86_400, ..spec };
    let never = ReservationSpec { skipped_days: 0b111_1111, ..spec.clone() };
    cluster.refused(&user("oper"), reserve(never), RefusalCode::Invalid, "but not all");
    // It begins on a Saturday.
    cluster.ok(&user("oper"), reserve(ReservationSpec { skipped_days: 0b000_0011, ..spec }));
    let mut days = Vec::new();
    for _ in 0..8 {
        let start = cluster.state.reservation("daily").expect("it goes on").spec.start;
        days.push(start.micros_since(zero) / 1_000_000 / DAY);
        for seconds in [0, 60] {
            cluster.now = start.plus_seconds(seconds);
            cluster.ok(&Actor::Ledger, Command::Tick);
        }
    }
    assert_eq!(days, [1, 3, 4, 5, 6, 7, 10, 11]);
    cluster.assert_replays();
}

/// SL-C-38: a reservation that repeats each day leaves out days of the week.
#[test]
fn a_reservation_begins_again_on_some_days_of_the_week() {
    const DAY: i64 = 86_400;
    let mut cluster = Cluster::new();
    let zero = cluster.now;
    let spec = reservation(&cluster, "daily", named(&["node1"]), DAY, 60);
    // It begins on a Thursday: two days later and three days later it does not.
    let spec = ReservationSpec { repeats_after_seconds: 86_400, skipped_days: 0b000_1100, ..spec };
    let hourly = ReservationSpec { repeats_after_seconds: 3_600, ..spec.clone() };
    cluster.refused(&user("oper"), reserve(hourly), RefusalCode::Invalid, "skipped_days");
    cluster.ok(&user("oper"), reserve(spec));
    let mut days = Vec::new();
    for _ in 0..7 {
        let start = cluster.state.reservation("daily").expect("it goes on").spec.start;
        days.push(start.micros_since(zero) / 1_000_000 / DAY);
        for seconds in [0, 60] {
            cluster.now = start.plus_seconds(seconds);
            cluster.ok(&Actor::Ledger, Command::Tick);
        }
    }
    assert_eq!(days, [1, 2, 5, 6, 7, 8, 9]);
    cluster.assert_replays();
}

/// SL-C-38: the users of a reservation remove it if it says that they may.
#[test]
fn users_of_a_reservation_may_remove_it() {
    let mut cluster = Cluster::new();
    let remove = || Command::RemoveReservation { name: "course".into() };
    reserve_course(&mut cluster);
    cluster.refused(&user("ada"), remove(), RefusalCode::PermissionDenied, "only operators");
    let spec = cluster.state.reservation("course").expect("it is there").spec.clone();
    let open = ReservationSpec { users_may_remove: true, ..(*spec).clone() };
    cluster.ok(&user("oper"), Command::ChangeReservation { reservation: Box::new(open) });
    cluster.refused(&user("bob"), remove(), RefusalCode::PermissionDenied, "only operators");
    cluster.ok(&user("ada"), remove());
    cluster.assert_replays();
}

/// SL-C-38: a reservation that ends when it is idle ends after that long without a job in it, and one that repeats begins
/// again at its next time.
#[test]
fn a_reservation_may_end_when_no_job_runs_in_it() {
    let mut cluster = Cluster::new();
    let spec = reservation(&cluster, "idle", named(&["node1"]), 10, 1000);
    let spec = ReservationSpec { ends_after_idle_seconds: 60, users: vec![], accounts: vec![], ..spec };
    cluster.ok(&user("oper"), reserve(spec.clone()));
    let inside = cluster.submit("ada", in_reservation("idle"));
    cluster.pass(10);
    assert_eq!(cluster.tick(), [Event::ReservationBegun { name: "idle".into() }]);
    cluster.pass(30);
    let run = cluster.start(inside, &["node1"], 1);
    cluster.pass(600);
    assert!(!cluster.tick().iter().any(|event| matches!(event, Event::ReservationRemoved { .. })), "a job runs in it");
    cluster.end(run, "node1", ExitStatus::Code(0));
    cluster.pass(59);
    assert!(!cluster.tick().iter().any(|event| matches!(event, Event::ReservationRemoved { .. })));
    cluster.assert_replays();
    cluster.pass(1);
    assert!(cluster.tick().contains(&Event::ReservationRemoved { name: "idle".into() }));
    // One that nobody uses, and that repeats.
    let daily = ReservationSpec { name: "daily".into(), repeats_after_seconds: 2_000, ..spec };
    let (start, end) = (cluster.now.plus_seconds(10), cluster.now.plus_seconds(1_010));
    cluster.ok(&user("oper"), reserve(ReservationSpec { start, end, ..daily.clone() }));
    cluster.pass(10);
    cluster.tick();
    cluster.pass(60);
    let next = ReservationSpec { start: start.plus_seconds(2_000), end: end.plus_seconds(2_000), ..daily };
    assert_eq!(cluster.tick(), [Event::ReservationSet { reservation: Arc::new(next) }]);
    cluster.assert_replays();
}

#[test]
fn a_reservation_begins_and_ends_by_time() {
    let mut cluster = Cluster::new();
    reserve_course(&mut cluster);
    let start = cluster.now.plus_seconds(10);
    assert_eq!(cluster.state.next_timer(), Some(start));
    assert!(cluster.tick().is_empty());
    cluster.pass(10);
    assert_eq!(cluster.tick(), [Event::ReservationBegun { name: "course".into() }]);
    assert_eq!(cluster.state.next_timer(), Some(start.plus_seconds(60)));
    cluster.assert_replays();
    cluster.pass(60);
    assert_eq!(cluster.tick(), [Event::ReservationRemoved { name: "course".into() }]);
    assert_eq!((cluster.state.reservations().len(), cluster.state.next_timer()), (0, None));
    cluster.assert_replays();
}

#[test]
fn while_a_reservation_lasts_only_its_jobs_start_on_its_nodes() {
    let mut cluster = Cluster::new();
    reserve_course(&mut cluster);
    let (mine, other) = (cluster.submit("ada", in_reservation("course")), cluster.submit("bob", job(1, 1)));
    let before = cluster.submit("bob", job(1, 1));
    assert_eq!(cluster.state.job_state(cluster.state.job(mine).unwrap()), JobState::Held);
    assert_eq!(reason(&cluster, mine), Some(WaitReason::ReservationNotBegun("course".into())));
    assert_start_refused(&mut cluster, mine, "node1", "`course` has not begun");
    cluster.start(before, &["node1"], 1);
    cluster.pass(10);
    assert_start_refused(&mut cluster, other, "node1", "node node1 is kept for reservation `course`");
    cluster.tick();
    assert!(cluster.is_waiting(mine));
    assert_start_refused(&mut cluster, mine, "node3", "node node3 is not one of reservation `course`");
    assert_start_refused(&mut cluster, other, "node2", "node node2 is kept for reservation `course`");
    assert_eq!(refusal(&mut cluster, mine, "node1"), None, "beside a job that was there before");
    assert_eq!(refusal(&mut cluster, other, "node3"), None);
    cluster.assert_replays();
}

#[test]
fn users_and_accounts_say_who_may_use_a_reservation() {
    let mut cluster = Cluster::new();
    reserve_course(&mut cluster);
    let submit = |spec: JobSpec| Command::Submit { jobs: vec![spec] };
    cluster.refused(&user("ada"), submit(in_reservation("none")), RefusalCode::NotFound, "`none` does not exist");
    let denied = RefusalCode::PermissionDenied;
    cluster.refused(&user("bob"), submit(in_reservation("course")), denied, "bob may not use reservation `course`");
    let mut charged = in_reservation("course");
    charged.components[0].account = Some("physics".into());
    let id = cluster.submit("bob", charged);
    let account = |account: &str| {
        let change = JobChange { account: Some(account.into()), ..JobChange::default() };
        Command::Modify { jobs: ids(&[id]), change }
    };
    cluster.refused(&user("bob"), account("botany"), denied, "may not use reservation");
    let open = reservation(&cluster, "open", named(&["node3"]), 10, 60);
    cluster.ok(&user("oper"), reserve(ReservationSpec { users: vec![], accounts: vec![], ..open }));
    cluster.submit("bob", in_reservation("open"));
}

#[test]
fn jobs_of_a_reservation_that_is_gone_are_told_so() {
    let mut cluster = Cluster::new();
    reserve_course(&mut cluster);
    let id = cluster.submit("ada", in_reservation("course"));
    let remove = Command::RemoveReservation { name: "course".into() };
    cluster.refused(&user("ada"), remove.clone(), RefusalCode::PermissionDenied, "only operators");
    cluster.ok(&user("oper"), remove.clone());
    cluster.refused(&user("oper"), remove, RefusalCode::NotFound, "does not exist");
    assert_eq!(reason(&cluster, id), Some(WaitReason::ReservationGone("course".into())));
    assert!(!cluster.is_waiting(id));
    assert_start_refused(&mut cluster, id, "node1", "no longer exists");
    cluster.assert_replays();
}

#[test]
fn a_node_of_a_reservation_stays_in_the_cluster() {
    let mut cluster = Cluster::new();
    reserve_course(&mut cluster);
    let mut smaller = config();
    smaller.nodes.remove(0);
    let configure = Command::Configure { change: Box::new(smaller.into()), keep_unnamed: false };
    cluster.refused(&root(), configure, RefusalCode::Conflict, "`node1` cannot be removed: it belongs to reservation");
}

#[test]
fn the_planner_chooses_the_nodes_of_a_reservation_by_count() {
    let mut cluster = Cluster::new();
    reserve_course(&mut cluster);
    for (name, from) in [("early", 0), ("late", 100)] {
        let spec = reservation(&cluster, name, count(1), from, 60);
        cluster.ok(&user("oper"), reserve(spec));
    }
    let place = |cluster: &mut Cluster, placements: &[(&str, &[u32])]| {
        let reservations = placements
            .iter()
            .map(|(name, nodes)| (name.to_string(), nodes.iter().copied().map(NodeId).collect()))
            .collect();
        propose(cluster, ProposedPlan { reservations, ..ProposedPlan::default() })
    };
    let (node1, node3) = (cluster.node_id("node1"), cluster.node_id("node3"));
    assert!(cluster.state.reservation("early").unwrap().is_unplaced());
    assert!(place(&mut cluster, &[("early", &[node1.0])]).is_empty(), "node1 belongs to another at that time");
    assert!(place(&mut cluster, &[("early", &[99])]).is_empty(), "there is no such node");
    assert!(place(&mut cluster, &[("early", &[node3.0, node3.0])]).is_empty(), "too many");
    assert!(place(&mut cluster, &[("course", &[node3.0]), ("none", &[node3.0])]).is_empty(), "not to be placed");
    let events = place(&mut cluster, &[("early", &[node3.0]), ("late", &[node1.0])]);
    assert!(
        matches!(
            events.as_slice(),
            [Event::ReservationPlaced { .. }, Event::ReservationPlaced { .. }, Event::Planned { .. }]
        ),
        "{events:?}"
    );
    assert!(cluster.state.reservation("early").unwrap().nodes.contains(&node3));
    assert!(place(&mut cluster, &[("early", &[node3.0])]).is_empty(), "it is placed once");
    let other = cluster.submit("bob", job(1, 1));
    assert_start_refused(&mut cluster, other, "node3", "kept for reservation `early`");
    cluster.assert_replays();
}

#[test]
fn placements_of_one_plan_see_each_other() {
    let mut cluster = Cluster::new();
    for name in ["first", "second"] {
        let spec = reservation(&cluster, name, count(2), 10, 60);
        cluster.ok(&user("oper"), reserve(spec));
    }
    let nodes = vec![cluster.node_id("node1"), cluster.node_id("node2")];
    let reservations = vec![("first".to_owned(), nodes.clone()), ("second".to_owned(), nodes)];
    let events = propose(&mut cluster, ProposedPlan { reservations, ..ProposedPlan::default() });
    assert!(
        matches!(events.as_slice(), [Event::ReservationPlaced { name, .. }, Event::Planned { .. }] if name == "first")
    );
    assert!(cluster.state.reservation("second").unwrap().is_unplaced());
}

fn closure(cluster: &Cluster, from: i64, until: i64) -> NodeClosure {
    NodeClosure { from: cluster.now.plus_seconds(from), until: cluster.now.plus_seconds(until), reason: "fan".into() }
}

fn close(nodes: &[&str], closures: Vec<NodeClosure>) -> Command {
    Command::SetNodeClosures { nodes: nodes.iter().map(ToString::to_string).collect(), closures }
}

#[test]
fn a_closed_node_starts_nothing_until_it_opens() {
    let mut cluster = Cluster::new();
    let closures = vec![closure(&cluster, 10, 20), closure(&cluster, 30, 40)];
    let node1 = cluster.node_id("node1");
    cluster.refused(&user("ada"), close(&["node1"], vec![]), RefusalCode::PermissionDenied, "only operators");
    let events = cluster.ok(&user("oper"), close(&["node1"], closures.clone()));
    assert_eq!(events, [Event::NodeClosuresSet { node: node1, closures: closures.clone() }]);
    assert!(cluster.ok(&user("oper"), close(&["node1"], closures.clone())).is_empty());
    assert_eq!(cluster.state.next_timer(), Some(closures[0].until));
    let jobs = [(); 3].map(|()| cluster.submit("ada", job(1, 1)));
    assert_eq!(refusal(&mut cluster, jobs[0], "node1"), None);
    cluster.pass(10);
    assert_start_refused(&mut cluster, jobs[1], "node1", "node node1 is closed until");
    assert_eq!(refusal(&mut cluster, jobs[1], "node2"), None);
    cluster.pass(10);
    assert_eq!(cluster.tick(), [Event::NodeClosuresSet { node: node1, closures: closures[1..].to_vec() }]);
    assert_eq!(refusal(&mut cluster, jobs[2], "node1"), None);
    cluster.assert_replays();
    cluster.ok(&user("oper"), close(&["node1"], vec![]));
    assert_eq!(cluster.state.next_timer().map(|time| time > cluster.now), Some(true), "launch timeouts only");
    cluster.assert_replays();
}

#[test]
fn closures_that_make_no_sense_are_refused() {
    let mut cluster = Cluster::new();
    let (first, second) = (closure(&cluster, 10, 20), closure(&cluster, 15, 30));
    let mut check = |closures, words| {
        cluster.refused(&user("oper"), close(&["node1"], closures), RefusalCode::Invalid, words);
    };
    check(vec![first.clone(), second], "before the one ahead of it is over");
    check(vec![NodeClosure { until: first.from, ..first.clone() }], "is not after from");
    check(vec![NodeClosure { until: Timestamp(i64::MAX), ..first.clone() }], "is later than");
    check(vec![first.clone(); 1001], "1001 given");
    cluster.refused(&user("oper"), close(&["node9"], vec![first]), RefusalCode::NotFound, "node `node9`");
    let open_end = NodeClosure { from: cluster.now, until: Timestamp::MAX, reason: String::new() };
    cluster.ok(&user("oper"), close(&["node1"], vec![open_end]));
    assert_eq!(cluster.state.next_timer(), None, "nobody knows when it opens");
    cluster.assert_replays();
}

#[test]
fn a_plan_is_recorded_with_what_it_saw_and_what_is_news() {
    let mut cluster = Cluster::new();
    let [first, second, gone] = [(); 3].map(|()| cluster.submit("ada", job(3, 4)));
    let start = cluster.now.plus_seconds(60);
    let slot = SlotSpec { start, placement: Arc::new(cluster.placement(&["node1", "node2", "node3"], 4)) };
    let seen = cluster.state.sequence();
    let proposed = ProposedPlan {
        seen,
        at: cluster.now,
        left_out: vec![gone],
        starts: vec![Start { job: gone, placement: cluster.placement(&["node1"], 1) }],
        reasons: vec![WaitingJob { job: first, reason: WaitReason::Reserved { start } }],
        slots: vec![
            PlannedSlot { job: first, slot: Some(slot.clone()) },
            PlannedSlot { job: second, slot: None },
            PlannedSlot { job: JobId::job(99), slot: Some(slot.clone()) },
        ],
        predictions: vec![
            PredictedStart { job: second, start: Some(start) },
            PredictedStart { job: first, start: None },
        ],
        ..ProposedPlan::default()
    };
    let events = propose(&mut cluster, proposed.clone());
    let [Event::Planned { plan }] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((plan.seen, plan.at, &plan.left_out, &plan.refused), (seen, cluster.now, &vec![gone], &vec![gone]));
    assert_eq!((plan.reasons.len(), plan.slots.len(), plan.predictions.len()), (1, 1, 1), "{plan:?}");
    let job = cluster.state.job(first).unwrap();
    assert_eq!(job.slot.as_deref(), Some(&slot));
    assert_eq!(reason(&cluster, first), Some(WaitReason::Reserved { start }));
    assert_eq!(cluster.state.job(second).unwrap().predicted_start, Some(start));
    cluster.assert_replays();
    let again = ProposedPlan { starts: Vec::new(), seen: cluster.state.sequence(), ..proposed.clone() };
    assert!(propose(&mut cluster, again).is_empty(), "nothing of it is news");
    let ahead = ProposedPlan { seen: Sequence(10_000), ..proposed };
    let ahead = Command::CommitPlan { plan: Box::new(ahead) };
    cluster.refused(&Actor::Planner, ahead, RefusalCode::Invalid, "has seen record 10000");
}

/// A cluster with a policy, and a job with a promise of the whole cluster.
fn with_promise() -> (Cluster, JobId) {
    let mut cluster = Cluster::new();
    let policy = Policy::built_in("conservative").unwrap();
    cluster.ok(&root(), Command::SetPolicy { policy: Box::new(policy) });
    let id = cluster.submit("ada", job(3, 4));
    promise(&mut cluster, id);
    assert!(!cluster.state.capacity_freed());
    (cluster, id)
}

fn promise(cluster: &mut Cluster, job: JobId) {
    let placement = Arc::new(cluster.placement(&["node1", "node2", "node3"], 1));
    let slot = SlotSpec { start: cluster.now.plus_seconds(60), placement };
    let predictions = vec![PredictedStart { job, start: Some(slot.start) }];
    let slots = vec![PlannedSlot { job, slot: Some(slot) }];
    let seen = cluster.state.sequence();
    propose(cluster, ProposedPlan { seen, slots, predictions, ..ProposedPlan::default() });
}

#[test]
fn a_promise_is_void_when_the_job_starts_ends_is_held_or_asks_for_something_else() {
    let hold = |id| {
        let holds = Holds { user: true, ..Holds::default() };
        Command::Hold { jobs: ids(&[id]), holds, reason: String::new() }
    };
    let longer = |id| {
        let change = JobChange { walltime_seconds: Some(99), ..JobChange::default() };
        Command::Modify { jobs: ids(&[id]), change }
    };
    for command in [&hold as &dyn Fn(JobId) -> Command, &longer, &|id| Command::Cancel { jobs: ids(&[id]) }] {
        let (mut cluster, id) = with_promise();
        cluster.ok(&user("ada"), command(id));
        let job = cluster.state.job(id).unwrap();
        assert_eq!((&job.slot, job.predicted_start), (&None, None));
        assert!(cluster.state.capacity_freed(), "what it was promised is free for others");
        cluster.assert_replays();
    }
    let (mut cluster, id) = with_promise();
    let renamed = JobChange { name: Some("x".into()), ..JobChange::default() };
    cluster.ok(&user("ada"), Command::Modify { jobs: ids(&[id]), change: renamed });
    assert!(cluster.state.job(id).unwrap().slot.is_some(), "a name is no matter of resources");
    cluster.start(id, &["node1", "node2", "node3"], 4);
    assert!(cluster.state.job(id).unwrap().slot.is_none());
    assert!(!cluster.state.capacity_freed(), "it got what it was promised");
}

#[test]
fn the_promise_of_an_array_is_of_its_next_task() {
    let mut cluster = Cluster::new();
    let whole = cluster.submit("ada", array(IndexSet::first_n(3), None));
    promise(&mut cluster, whole);
    let slot = cluster.state.job(whole).unwrap().slot.clone().map(|slot| *slot);
    let starts = vec![Start { job: JobId::task(1, 0), placement: cluster.placement(&["node1"], 1) }];
    let again = vec![PlannedSlot { job: whole, slot: slot.clone() }];
    let seen = cluster.state.sequence();
    propose(&mut cluster, ProposedPlan { seen, starts, slots: again, ..ProposedPlan::default() });
    assert_eq!(cluster.state.job(whole).unwrap().slot.as_deref(), slot.as_ref(), "the next task has the same promise");
    cluster.start(JobId::task(1, 1), &["node1"], 1);
    assert_eq!(cluster.state.job(whole).unwrap().slot, None);
    cluster.assert_replays();
}

#[test]
fn what_becomes_free_is_known_until_a_plan_that_saw_it_changes_a_promise() {
    let (mut cluster, id) = with_promise();
    let short = cluster.submit("bob", job(1, 1));
    let run = cluster.start(short, &["node1"], 1);
    let seen_before = cluster.state.sequence();
    assert!(!cluster.state.capacity_freed());
    cluster.end(run, "node1", ExitStatus::Code(0));
    assert!(cluster.state.capacity_freed());
    let taken_back =
        |seen| ProposedPlan { seen, slots: vec![PlannedSlot { job: id, slot: None }], ..ProposedPlan::default() };
    propose(&mut cluster, taken_back(seen_before));
    assert!(cluster.state.capacity_freed(), "the run ended after the plan had looked");
    promise(&mut cluster, id);
    assert!(!cluster.state.capacity_freed());
    cluster.assert_replays();
    let mut more = config();
    more.licences.insert("ansys".into(), 5);
    cluster.ok(&root(), Command::Configure { change: Box::new(more.into()), keep_unnamed: false });
    assert!(cluster.state.capacity_freed(), "more licences");
}

#[test]
fn nodes_that_come_back_and_closures_and_reservations_that_go_free_capacity() {
    let frees = |prepare: Option<Command>, command: Command| {
        let (mut cluster, id) = with_promise();
        prepare.into_iter().for_each(|prepare| drop(cluster.ok(&user("oper"), prepare)));
        assert!(!cluster.state.capacity_freed());
        cluster.ok(&user("oper"), command);
        let freed = cluster.state.capacity_freed();
        promise(&mut cluster, id);
        cluster.assert_replays();
        freed
    };
    let nodes = || vec!["node1".to_owned()];
    let drain = Command::DrainNodes { nodes: nodes(), reason: "fan".into(), is_down: false };
    assert!(frees(Some(drain), Command::ResumeNodes { nodes: nodes() }));
    let cluster = Cluster::new();
    let closed = close(&["node1"], vec![closure(&cluster, 10, 20)]);
    assert!(frees(Some(closed.clone()), close(&["node1"], vec![])));
    assert!(!frees(None, closed));
    let course = reservation(&cluster, "course", named(&["node1"]), 10, 60);
    assert!(frees(Some(reserve(course)), Command::RemoveReservation { name: "course".into() }));
}

#[test]
fn components_that_fit_alone_but_never_together_are_refused() {
    let mut cluster = Cluster::new();
    let submit = |spec: JobSpec| Command::Submit { jobs: vec![spec] };
    let mut spec = job(1, 1);
    spec.components[0].alternatives[0].licences = [("ansys".to_owned(), 2)].into();
    spec.components.push(spec.components[0].clone());
    let invalid = RefusalCode::Invalid;
    cluster.refused(
        &user("ada"),
        submit(spec.clone()),
        invalid,
        "ask for 4 of licence `ansys` together, the cluster has 3",
    );
    let cheaper = Alternative { requests: vec![Request::default()], ..Alternative::default() };
    spec.components[1].alternatives.push(cheaper);
    cluster.submit("ada", spec);
    let mut wide = job(2, 1);
    wide.components.push(job(2, 4).components.remove(0));
    cluster.refused(
        &user("ada"),
        submit(wide),
        invalid,
        "ask for 4 nodes together, each its own, and 3 can serve them",
    );
    let mut on_one = job(1, 1);
    on_one.components[0].alternatives[0].requests[0].nodes = vec!["node1".into()];
    on_one.components.push(on_one.components[0].clone());
    on_one.components[1].launch = tasks();
    cluster.refused(
        &user("ada"),
        submit(on_one),
        invalid,
        "ask for 2 nodes together, each its own, and 1 can serve them",
    );
    let mut fits = job(1, 1);
    fits.components.push(job(2, 4).components.remove(0));
    let id = cluster.submit("ada", fits);
    let alternatives = Some(job(3, 1).components.remove(0).alternatives);
    let change = JobChange { alternatives, component: Some(0), ..JobChange::default() };
    cluster.refused(&user("ada"), Command::Modify { jobs: ids(&[id]), change }, invalid, "ask for 5 nodes together");
}

/// The head of the order is found once for many jobs, and again once it has started.
#[test]
fn the_head_of_the_order_is_found_once_and_anew_when_it_is_gone() {
    let mut cluster = Cluster::new();
    let jobs: Vec<JobId> = (0..4).map(|_| cluster.submit("ada", job(1, 1))).collect();
    let behind = |first: JobId| Some(WaitReason::BehindJob(first));
    let reasons = cluster.state.wait_reasons();
    let of = |reasons: &muster_domain::WaitReasons<'_>, state: &muster_domain::State, id| {
        reasons.of(state.job(id).expect("known"))
    };
    assert_eq!(of(&reasons, &cluster.state, jobs[0]), Some(WaitReason::NotPlannedYet));
    for id in &jobs[1..] {
        assert_eq!(of(&reasons, &cluster.state, *id), behind(jobs[0]));
        assert_eq!(reason(&cluster, *id), behind(jobs[0]), "one by one it is the same");
    }
    let head = reasons.into_head();
    assert_eq!(of(&cluster.state.wait_reasons_from(head), &cluster.state, jobs[2]), behind(jobs[0]));
    cluster.ok(&root(), Command::Cancel { jobs: muster_schemas::command::JobSelection::Ids(vec![jobs[0]]) });
    assert_eq!(of(&cluster.state.wait_reasons_from(head), &cluster.state, jobs[2]), behind(jobs[1]));
}

fn run_now(job: JobId, placement: Placement) -> Command {
    Command::RunJob { job, placement }
}

/// SL-C-12: no plan, and no operator, gives a job nodes with others between them if it wants neighbours.
#[test]
fn a_job_that_wants_neighbours_gets_no_others() {
    let mut cluster = Cluster::new();
    let mut spec = job(2, 1);
    spec.components[0].alternatives[0].contiguous = true;
    let id = cluster.submit("ada", spec);
    assert!(cluster.refused_on(id, &["node1", "node3"], 1).contains("follow each other"));
    cluster.allocate(id, &["node3", "node2"], 1);
    cluster.assert_replays();
    for (most, wait_seconds) in [(0, 60), (1, 400 * 86_400)] {
        let mut spec = job(2, 1);
        let groups = FewGroups { property: "switch".into(), most, wait_seconds };
        spec.components[0].alternatives[0].groups = Some(groups);
        cluster.refused(&user("ada"), Command::Submit { jobs: vec![spec] }, RefusalCode::Invalid, "groups.");
    }
}

/// PBS-C-09: limits are the policy's business, what is in use is not free.
#[test]
fn an_operator_starts_a_job_past_queues_and_limits() {
    let mut cluster = Cluster::with(ClusterConfig {
        queues: vec![
            queue("default"),
            QueueSpec { max_running_jobs: Some(0), ..queue("none") },
            QueueSpec { started: false, ..queue("stopped") },
        ],
        ..config()
    });
    let submit = |cluster: &mut Cluster, name: &str| {
        let mut spec = job(1, 4);
        spec.components[0].queue = Some(name.into());
        cluster.submit("ada", spec)
    };
    let (none, stopped) = (submit(&mut cluster, "none"), submit(&mut cluster, "stopped"));
    let at = |cluster: &Cluster, node: &str| cluster.placement(&[node], 4);
    for job in [none, stopped] {
        assert_ne!(cluster.refused_on(job, &["node1"], 4), "", "no plan starts it");
    }
    let (one, two) = (at(&cluster, "node1"), at(&cluster, "node2"));
    cluster.refused(&user("ada"), run_now(none, one.clone()), RefusalCode::PermissionDenied, "only operators");
    let events = cluster.ok(&user("oper"), run_now(none, one.clone()));
    assert!(matches!(events[..], [Event::RunAllocated { job, .. }] if job == none), "{events:?}");
    cluster.refused(&user("oper"), run_now(none, two.clone()), RefusalCode::Conflict, "it no longer waits");
    cluster.refused(&user("oper"), run_now(stopped, one), RefusalCode::Conflict, "does not have these cores free");
    let change = ClusterChange {
        settings: ClusterSettingsChange { is_idle: Some(true), ..ClusterSettingsChange::default() },
        ..ClusterChange::default()
    };
    cluster.ok(&root(), Command::Configure { change: Box::new(change), keep_unnamed: true });
    cluster.ok(&user("oper"), run_now(stopped, two.clone()));
    let held = submit(&mut cluster, "default");
    let holds = Holds { user: true, ..Holds::default() };
    cluster.ok(&user("ada"), Command::Hold { jobs: ids(&[held]), holds, reason: String::new() });
    let three = at(&cluster, "node3");
    cluster.refused(&user("oper"), run_now(held, three), RefusalCode::Conflict, "held by user");
    cluster
        .ok(&Actor::Ledger, Command::DrainNodes { nodes: vec!["node3".into()], reason: "fan".into(), is_down: false });
    cluster.ok(&user("ada"), Command::Release { jobs: ids(&[held]), holds });
    let three = at(&cluster, "node3");
    cluster.refused(&user("oper"), run_now(held, three), RefusalCode::Conflict, "is not available");
    cluster.refused(&user("oper"), run_now(JobId::job(99), two), RefusalCode::NotFound, "99");
    cluster.assert_replays();
}

/// PBS-C-03
#[test]
fn while_the_planner_is_off_no_plan_starts_a_job_and_each_says_why() {
    let mut cluster = Cluster::new();
    let running = cluster.submit("ada", job(1, 1));
    cluster.start(running, &["node1"], 1);
    let switch = |cluster: &mut Cluster, is_idle: bool| {
        let settings = ClusterSettingsChange { is_idle: Some(is_idle), ..ClusterSettingsChange::default() };
        let change = Box::new(ClusterChange { settings, ..ClusterChange::default() });
        cluster.ok(&root(), Command::Configure { change, keep_unnamed: true })
    };
    switch(&mut cluster, true);
    let id = cluster.submit("ada", job(1, 1));
    assert!(cluster.waiting().is_empty());
    assert_eq!(cluster.state.gate_reason(cluster.state.job(id).unwrap()), Some(WaitReason::PlannerOff));
    assert_eq!(cluster.refused_on(id, &["node1"], 1), "the planner is switched off");
    assert!(cluster.state.job(running).unwrap().run().is_some(), "running jobs continue");
    let events = switch(&mut cluster, false);
    assert!(events.iter().any(|event| event.plan_effect().can_change_plan()), "a cycle follows");
    assert_eq!(cluster.waiting(), [id]);
    cluster.allocate(id, &["node1"], 1);
    cluster.assert_replays();
}

/// PBS-FS-05: processor time is charged as it is reported while a job runs, and in full at its end, each second once; it is
/// forgotten from when it was charged. A node speaks of its own runs only, and never takes anything back.
#[test]
fn processor_time_is_charged_while_jobs_run_and_in_full_at_their_end() {
    let mut cluster = Cluster::new();
    let rules = TurnRules { visit: Visit::Pool, fair_share: Some(FairShare::default()), ..TurnRules::default() };
    let usage = Some(UsageRule { charge: Charge::CpuSeconds, half_life_seconds: 1_000, sync_seconds: 0 });
    let shares = Some(ShareTable { unknown_shares: 10, ..ShareTable::default() });
    let turns = Turns { rules, usage, shares, ..Turns::default() };
    let policy = Policy { name: "fair".into(), turns: Some(Box::new(turns)), ..Policy::default() };
    let id = cluster.submit("ada", job(1, 1));
    let run = cluster.start(id, &["node1"], 1);
    let part = cluster.part(run, "node1");
    let report = |cluster: &mut Cluster, node: &str, cpu_seconds: u64| {
        cluster.pass(1);
        let used = vec![PartUse { part, cpu_seconds }];
        let command = Command::NodeLoadMeasured { load_millionths: 0, system_percent: None, used };
        let events = cluster.ok(&executor(node), command);
        let [Event::NodeLoadMeasured { used, .. }] = &events[..] else { panic!("{events:?}") };
        used.len()
    };
    assert_eq!(report(&mut cluster, "node1", 5), 0, "no policy charges anybody");
    cluster.ok(&root(), Command::SetPolicy { policy: Box::new(policy) });
    let used = |cluster: &Cluster| cluster.state.share_use(cluster.now).get("ada").copied().unwrap_or(1);
    assert_eq!(report(&mut cluster, "node1", 100), 1);
    assert_eq!(used(&cluster), 101);
    assert_eq!(report(&mut cluster, "node2", 500), 0, "it does not run there");
    assert_eq!(report(&mut cluster, "node1", 40), 0, "nothing is taken back");
    assert_eq!(report(&mut cluster, "node1", 160), 1);
    assert_eq!(used(&cluster), 161);
    let began = |cluster: &Cluster| cluster.state.half_life_began(cluster.now);
    let first = began(&cluster).expect("it is halved");
    cluster.pass(1_000);
    assert_eq!(used(&cluster), 80);
    assert_eq!(began(&cluster), Some(first.plus_seconds(1_000)), "it was halved then");
    let usage = Usage { cpu_time_micros: 200_000_000, ..Usage::default() };
    let exit = NodeExit { usage, ..exit(ExitStatus::Code(0), EndCause::Itself, cluster.now) };
    cluster.ok(&executor("node1"), Command::NodeEnded { part, exit });
    assert_eq!(used(&cluster), 120, "the 40 seconds that were not charged before");
    assert_eq!(report(&mut cluster, "node1", 900), 0, "it is over");
    cluster.assert_replays();
}
