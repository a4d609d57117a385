//! Placements in time: the worked examples about holes, containers, shapes, best effort and timesharing.

use crate::support::{busy, filtered_wish, ids, inside, nodes, opening, plan, s, shown, told, wish};
use muster_oar::{
    planning::{
        besteffort::{self, Step},
        domain::{Domain, Domains},
        gantt::{Gantt, Placement, Standing},
        pass::Pass,
        queue::{self, Entry},
        reservation::{self, Answer},
        search::{Scene, Wish},
        share::{ShareKey, Sharing},
        walltime::{self, Granted},
    },
    power::Purpose,
    resources::{
        property::{AVAILABLE_UPTO, ID, NODE},
        state::State,
    },
};
use proptest::prelude::*;

/// W1, OAR-T-10, OAR-T-11, OAR-T-12, OAR-T-14: jobs inside a container (that a shell runs in it waits for the live system).
#[test]
fn w1_a_container_and_its_inner_jobs() {
    let table = nodes(12);
    let container = opening("42", wish(&table, 42, &["nodes=10,walltime=2:10:00"]));
    let inner = |job, count: u32, walltime: &str| {
        let request = format!("nodes={count}{walltime}");
        inside("42", wish(&table, job, &[&request]))
    };
    let short = |job, count| inner(job, count, ",walltime=0:40:00");
    let wishes =
        [container.clone(), short(43, 7), short(44, 1), short(45, 10), short(46, 11), wish(&table, 50, &["nodes=2"])];
    let too_many = "container 42 holds 10 nodes, 11 asked";
    for (guard, last) in [(0, "2400 on 1-10"), (60, "2460 on 1-10")] {
        let outcomes: Vec<String> = plan(&table, guard, 0, &[], &wishes).iter().map(told).collect();
        assert_eq!(outcomes, ["0 on 1-10", "0 on 1-7", "0 on 8", last, too_many, "0 on 11-12"], "{guard}");
    }
    // The order in the queue does not matter: an inner job follows its container.
    let backwards: Vec<Wish> = wishes[..5].iter().rev().cloned().collect();
    let outcomes: Vec<String> = plan(&table, 0, 0, &[], &backwards).iter().map(told).collect();
    assert_eq!(outcomes, [too_many, "0 on 1-10", "2400 on 1", "2400 on 2-8", "0 on 1-10"]);
    // With the default walltime.
    let long = [container, inner(43, 7, ""), inner(44, 1, ""), inner(45, 10, "")];
    let outcomes: Vec<String> = plan(&table, 0, 0, &[], &long).iter().map(told).collect();
    assert_eq!(outcomes, ["0 on 1-10", "0 on 1-7", "0 on 8", "no room before container 42 ends"]);
    let running = Placement { opens: Some("42".to_owned()), ..busy(42, "1-10", 0, 7800) };
    let at = |now| told(&plan(&table, 0, now, std::slice::from_ref(&running), &long[3..])[0]);
    assert_eq!((at(600).as_str(), at(601).as_str()), ("600 on 1-10", "no room before container 42 ends"));
}

/// OAR-T-17, OAR-T-18: containers of one name form one domain, a container may be inside another one, and one that runs
/// offers the time that is left.
#[test]
fn containers_nest_and_join() {
    let table = nodes(12);
    let joined = [
        opening("big", wish(&table, 1, &["nodes=3,walltime=0:0:100"])),
        opening("big", wish(&table, 2, &["nodes=3,walltime=0:0:200"])),
        inside("big", wish(&table, 3, &["nodes=5,walltime=0:0:100"])),
        inside("big", wish(&table, 4, &["nodes=3,walltime=0:0:150"])),
        opening("4", inside("big", wish(&table, 5, &["nodes=2,walltime=0:0:40"]))),
        inside("4", wish(&table, 6, &["nodes=1,walltime=0:0:40"])),
        inside("4", wish(&table, 7, &["nodes=1,walltime=0:0:41"])),
    ];
    let outcomes: Vec<String> = plan(&table, 0, 0, &[], &joined).iter().map(told).collect();
    let expected = [
        "0 on 1-3",
        "0 on 4-6",
        "0 on 1-5",
        "no room before container big ends",
        "100 on 4-5",
        "100 on 4",
        "no room before container 4 ends",
    ];
    assert_eq!(outcomes, expected);
    let running = Placement { opens: Some("9".to_owned()), ..busy(9, "1-10", 0, 1000) };
    let late = [inside("9", wish(&table, 10, &["nodes=1,walltime=0:0:600"]))];
    assert_eq!(told(&plan(&table, 0, 400, std::slice::from_ref(&running), &late)[0]), "400 on 1");
    assert_eq!(told(&plan(&table, 0, 401, &[running], &late)[0]), "no room before container 9 ends");
    assert_eq!(Domains::default().windows(&Domain::Root), None);
    let mut domains = Domains::default();
    let window = |start, end| muster_oar::planning::domain::Window { start, end, resources: [1].into() };
    domains.open("9", window(0, 1000), 400);
    domains.open("9", window(0, 400), 400);
    assert_eq!(domains.windows(&Domain::Inside("9".to_owned())), Some(&[window(400, 1000)][..]));
}

/// OAR-G-10: a job without a place has a reason, the others are planned, and the pass ends.
#[test]
fn what_has_no_place_stops_nobody() {
    let table = nodes(4);
    let wishes = [
        inside("7", wish(&table, 1, &["nodes=1"])),
        opening("2", inside("2", wish(&table, 2, &["nodes=1"]))),
        opening("a", inside("b", wish(&table, 3, &["nodes=1"]))),
        opening("b", inside("a", wish(&table, 4, &["nodes=1"]))),
        wish(&table, 5, &["nodes=5"]),
        Wish { latest_end: Some(10), ..wish(&table, 6, &["nodes=1,walltime=0:0:11"]) },
        wish(&table, 7, &["nodes=4,walltime=0:0:5"]),
        Wish { latest_start: Some(4), ..wish(&table, 8, &["nodes=1"]) },
        Wish { latest_start: Some(5), ..wish(&table, 9, &["nodes=1"]) },
    ];
    let outcomes: Vec<String> = plan(&table, 0, 0, &[], &wishes).iter().map(told).collect();
    let expected = [
        "container 7 has no place",
        "container 2 has no place",
        "container b has no place",
        "container a has no place",
        "there are not enough resources: nodes: 5 asked, 4 match, 4 of them fit",
        "no place early enough to keep the time 10",
        "0 on 1-4",
        "no place early enough to keep the time 4",
        "5 on 1",
    ];
    assert_eq!(outcomes, expected);
}

/// W2, OAR-R-10, OAR-G-02: the table of demands on S.
#[test]
fn w2_demands_beside_what_is_busy() {
    let table = s();
    let none: &[Placement] = &[];
    let one = busy(90, "1", 0, 100);
    let five = busy(91, "5", 0, 50);
    let four = busy(92, "1-2, 5-6", 0, 100);
    let with = |placements: &[&Placement]| placements.iter().map(|one| (*one).clone()).collect::<Vec<_>>();
    for (running, demand, expected) in [
        (none.to_vec(), "/switch=1/nodes=2/cpu=1", "0 on 1-2, 5-6"),
        (none.to_vec(), "/switch=2/nodes=1", "0 on 1-4, 9-12"),
        (with(&[&one]), "/switch=1", "0 on 9-16"),
        (with(&[&one, &five]), "/switch=2/nodes=1", "50 on 5-12"),
        (with(&[&four]), "/nodes=1/core=3", "0 on 9-11"),
        (with(&[&one]), "/nodes=BEST", "0 on 5-16"),
        (with(&[&one]), "/nodes=BESTHALF", "0 on 5-8"),
        (with(&[&one]), "/nodes=ALL", "100 on 1-16"),
        (none.to_vec(), "/nodes=1+{switch='s1'}/nodes=2", "0 on 1-12"),
        (none.to_vec(), "/nodes=5", "there are not enough resources: nodes: 5 asked, 4 match, 4 of them fit"),
    ] {
        let request = format!("{demand},walltime=0:0:60");
        let outcomes = plan(&table, 0, 0, &running, &[wish(&table, 1, &[&request])]);
        assert_eq!(told(&outcomes[0]), expected, "{demand}");
    }
}

/// W2, OAR-G-01, OAR-G-04: a queue, with holes that later jobs use without delaying earlier ones.
#[test]
fn w2_a_queue_and_its_holes() {
    let table = s();
    let wishes = [
        wish(&table, 1, &["/nodes=3,walltime=0:0:60"]),
        wish(&table, 2, &["/nodes=4,walltime=0:0:60"]),
        wish(&table, 3, &["/nodes=1,walltime=0:0:30"]),
        wish(&table, 4, &["/nodes=1,walltime=0:0:50"]),
    ];
    let running = [busy(9, "1-4", 0, 100)];
    let outcomes: Vec<String> = plan(&table, 0, 0, &running, &wishes).iter().map(told).collect();
    assert_eq!(outcomes, ["0 on 5-16", "100 on 1-16", "60 on 5-8", "160 on 1-4"]);
    let outcomes: Vec<String> = plan(&table, 10, 0, &running, &wishes).iter().map(told).collect();
    assert_eq!(outcomes, ["0 on 5-16", "110 on 1-16", "70 on 5-8", "180 on 1-4"]);
}

/// OAR-G-07: what ends early lets others move earlier.
#[test]
fn what_ends_early_moves_others_earlier() {
    let table = s();
    let wishes = [wish(&table, 2, &["/nodes=4,walltime=0:0:60"])];
    assert_eq!(told(&plan(&table, 0, 10, &[busy(9, "1-4", 0, 100)], &wishes)[0]), "100 on 1-16");
    assert_eq!(told(&plan(&table, 0, 20, &[], &wishes)[0]), "20 on 1-16");
}

/// W2, OAR-G-08: of several shapes the one that ends first, then the first given; shapes that cannot be are left out.
#[test]
fn w2_the_shape_that_ends_first() {
    let table = s();
    let running = [busy(9, "1-8", 0, 100)];
    for (walltime, shape, expected) in
        [(120, 1, "0 on 9-16"), (149, 1, "0 on 9-16"), (150, 0, "100 on 1-16"), (200, 0, "100 on 1-16")]
    {
        let second = format!("nodes=2,walltime=0:0:{walltime}");
        let outcome = &plan(&table, 0, 0, &running, &[wish(&table, 1, &["nodes=4,walltime=0:0:50", &second])])[0];
        assert_eq!(
            (told(outcome).as_str(), outcome.as_ref().map(|found| found.shape)),
            (expected, Ok(shape)),
            "{walltime}"
        );
    }
    let outcome = &plan(&table, 0, 0, &[], &[wish(&table, 1, &["nodes=5", "nodes=1"])])[0];
    assert_eq!((told(outcome).as_str(), outcome.as_ref().map(|found| found.shape)), ("0 on 1-4", Ok(1)));
    let outcome = &plan(&table, 0, 0, &[], &[wish(&table, 1, &["nodes=5", "nodes=6"])])[0];
    assert_eq!(told(outcome), "there are not enough resources: nodes: 5 asked, 4 match, 4 of them fit");
}

fn keyed(user: Option<&str>, name: Option<&str>, wish: Wish) -> Wish {
    let key = ShareKey { user: user.map(str::to_owned), name: name.map(str::to_owned) };
    let sharing = Sharing { key: Some(key), ..Sharing::default() };
    Wish { placement: Placement { sharing, ..wish.placement.clone() }, ..wish }
}

/// W12, OAR-T-40: jobs share resources iff their forms and attributes are equal.
#[test]
fn w12_timesharing() {
    let table = nodes(8);
    let two = |job| wish(&table, job, &["nodes=2,walltime=0:1"]);
    let seven = |job| wish(&table, job, &["nodes=7,walltime=0:1"]);
    let wishes = [
        two(1),
        keyed(Some("toto"), None, two(2)),
        keyed(Some("toto"), None, two(3)),
        keyed(None, Some("a"), seven(4)),
        keyed(None, Some("b"), seven(5)),
    ];
    let outcomes: Vec<String> = plan(&table, 0, 0, &[], &wishes).iter().map(told).collect();
    assert_eq!(outcomes, ["0 on 1-2", "0 on 3-4", "0 on 3-4", "60 on 1-7", "120 on 1-7"]);
    let key = |user: Option<&str>, name: Option<&str>| Sharing {
        key: Some(ShareKey { user: user.map(str::to_owned), name: name.map(str::to_owned) }),
        ..Sharing::default()
    };
    for (one, other, may) in [
        (key(None, None), key(None, None), true),
        (key(None, None), key(Some("u"), None), false),
        (key(Some("u"), None), key(Some("u"), None), true),
        (key(Some("u"), None), key(Some("v"), None), false),
        (key(Some("u"), None), key(None, Some("u")), false),
        (key(Some("u"), Some("a")), key(Some("u"), Some("a")), true),
        (key(Some("u"), Some("a")), key(Some("u"), Some("b")), false),
        (key(Some("u"), Some("a")), key(Some("u"), None), false),
        (Sharing::default(), Sharing::default(), false),
        (Sharing::default(), key(None, None), false),
    ] {
        assert_eq!((one.may_overlap(&other), other.may_overlap(&one)), (may, may), "{one:?} {other:?}");
    }
}

/// OAR-T-41: jobs of the same key run inside a timesharing reservation.
#[test]
fn a_reservation_may_be_shared() {
    let table = nodes(2);
    let accepted = Placement {
        sharing: keyed(Some("u"), None, wish(&table, 1, &[])).placement.sharing,
        ..busy(1, "1-2", 100, 200)
    };
    let wishes = [
        keyed(Some("u"), None, wish(&table, 2, &["nodes=2,walltime=1"])),
        wish(&table, 3, &["nodes=2,walltime=0:0:100"]),
    ];
    let outcomes: Vec<String> = plan(&table, 0, 50, &[accepted], &wishes).iter().map(told).collect();
    assert_eq!(outcomes, ["50 on 1-2", "3650 on 1-2"]);
}

/// OAR-T-80: only jobs that hold the label overlap a placeholder.
#[test]
fn a_placeholder_is_for_those_with_its_label() {
    let table = nodes(2);
    let labelled =
        |wish: Wish, sharing: Sharing| Wish { placement: Placement { sharing, ..wish.placement.clone() }, ..wish };
    let hold = Sharing { holds_for: Some("w".to_owned()), ..Sharing::default() };
    let may = |label: &str| Sharing { may_use: Some(label.to_owned()), ..Sharing::default() };
    let one = |job| wish(&table, job, &["nodes=2,walltime=0:0:60"]);
    let wishes = [
        labelled(one(1), hold),
        labelled(one(2), may("w")),
        labelled(one(3), may("w")),
        labelled(one(4), may("x")),
        one(5),
    ];
    let outcomes: Vec<String> = plan(&table, 0, 0, &[], &wishes).iter().map(told).collect();
    assert_eq!(outcomes, ["0 on 1-2", "0 on 1-2", "60 on 1-2", "120 on 1-2", "180 on 1-2"]);
}

fn best_effort(placement: Placement) -> Placement {
    Placement { standing: Standing::BestEffort, ..placement }
}

/// W5, OAR-T-21, OAR-T-24: a best-effort job makes way (that it is ended and copied waits for the live system).
#[test]
fn w5_best_effort_makes_way() {
    let table = s();
    let running = best_effort(busy(200, "1-16", 0, 3600));
    let outcomes =
        plan(&table, 0, 300, std::slice::from_ref(&running), &[wish(&table, 201, &["nodes=1,walltime=0:0:60"])]);
    assert_eq!(told(&outcomes[0]), "300 on 1-4");
    let placed = outcomes[0].as_ref().expect("placed").placement.clone();
    assert_eq!(besteffort::victims(&placed, std::slice::from_ref(&running)), [200]);
    let again = wish(&table, 202, &["core=16,walltime=1"]);
    let again = Wish { placement: best_effort(again.placement), ..again };
    assert_eq!(told(&plan(&table, 0, 300, std::slice::from_ref(&placed), &[again])[0]), "360 on 1-16");
    // Only those that hold a resource that is needed, and no best-effort job for another one.
    let others =
        [running, best_effort(busy(210, "1", 0, 9)), best_effort(busy(211, "5-16", 0, 9)), busy(212, "1-4", 0, 9)];
    assert_eq!(besteffort::victims(&placed, &others), [200, 210]);
    assert_eq!(besteffort::victims(&best_effort(placed.clone()), &others), Vec::<u64>::new());
    let key = keyed(Some("u"), None, wish(&table, 1, &[])).placement.sharing;
    let shared = Placement { sharing: key.clone(), ..best_effort(busy(213, "1-4", 0, 9)) };
    assert_eq!(besteffort::victims(&Placement { sharing: key, ..placed }, &[shared]), Vec::<u64>::new());
}

/// W5, OAR-T-23: with a checkpoint the signal goes first, and the end comes in the first check after the delay.
#[test]
fn w5_a_checkpoint_before_the_end() {
    assert_eq!(besteffort::ending(0, None, 300), Step::End);
    assert_eq!(besteffort::ending(30, None, 300), Step::Signal);
    assert_eq!(besteffort::ending(30, Some(300), 330), Step::Wait);
    assert_eq!(besteffort::ending(30, Some(300), 331), Step::End);
}

/// OAR-T-26: administrators turn running jobs into best effort, and back.
#[test]
fn running_jobs_are_turned_into_best_effort() {
    let (firm, best_effort) = (Standing::Firm, Standing::BestEffort);
    assert_eq!(besteffort::turned(firm, true, true), Ok(best_effort));
    assert_eq!(besteffort::turned(best_effort, true, true), Ok(firm));
    assert_eq!((besteffort::turned(firm, true, false), besteffort::turned(firm, false, true)), (Err(1), Err(5)));
}

/// OAR-E-02, OAR-G-10: nodes that are busy until they go away are no place, and the reason says so.
#[test]
fn nodes_that_go_away_are_no_place() {
    let mut table = nodes(2);
    table.set(&[1, 2], AVAILABLE_UPTO, Some(muster_oar::resources::value::Value::Integer(150))).expect("set");
    let running = [busy(9, "1-2", 0, 100)];
    let place = |walltime: i64| {
        told(&plan(&table, 0, 0, &running, &[wish(&table, 1, &[&format!("nodes=2,walltime=0:0:{walltime}")])])[0])
    };
    assert_eq!(place(50), "100 on 1-2");
    assert_eq!(place(51), "resources cannot be had for that long: nodes: 2 asked, 2 match, 0 of them fit");
}

/// OAR-T-25: best-effort jobs end before a reservation.
#[test]
fn best_effort_ends_before_a_reservation() {
    assert_eq!(besteffort::end_before_reservation(1000, 60, 0), 940);
    assert_eq!(besteffort::end_before_reservation(1000, 60, 120), 880);
}

/// OAR-T-27: idle nodes are preferred to those with best-effort jobs.
#[test]
fn idle_nodes_are_tried_first() {
    let mut table = s();
    let levels = [NODE.to_owned(), ID.to_owned()];
    let added = besteffort::avoidance(&table, &busy(1, "1, 5", 0, 9), &levels);
    let of = |id: u32| added.get(&id).copied().unwrap_or(0);
    assert_eq!([1, 2, 4, 5, 8, 9].map(of), [6, 2, 2, 6, 2, 0]);
    let key = keyed(None, None, wish(&table, 1, &[])).placement.sharing;
    let shared = besteffort::avoidance(&table, &Placement { sharing: key, ..busy(1, "1", 0, 9) }, &levels);
    assert_eq!((shared.get(&1), shared.get(&2)), (Some(&60), Some(&20)));
    for (id, more) in &added {
        let value = muster_oar::resources::value::Value::Integer(*more);
        table.set(&[*id], muster_oar::resources::property::SCHEDULER_PRIORITY, Some(value)).expect("set");
    }
    let ranked = muster_oar::order::Order::default().rank(table.resources());
    let ranked: Vec<u32> = ranked.iter().map(|one| one.id()).collect();
    assert_eq!(ranked, ids("9-16, 2-4, 6-8, 1, 5"));
}

fn scene<'s>(table: &'s muster_oar::resources::table::Table, gantt: &'s Gantt) -> Scene<'s> {
    Scene { table, gantt, windows: None, limits: &|_, _| Ok(()), limit_changes: &[] }
}

/// OAR-G-11: a reservation is accepted at its start, or the answer says when it could run, if ever.
#[test]
fn a_reservation_is_accepted_or_told_when() {
    let table = s();
    let gantt = Gantt { guard: 10, placements: vec![busy(9, "1-8", 0, 150)] };
    let asked = |request: &str, start| {
        let wish = Wish { purpose: Purpose::Reservation, not_before: start, ..wish(&table, 1, &[request, "core=1"]) };
        reservation::answer(&scene(&table, &gantt), &wish, start)
    };
    let Answer::Ok(placement) = asked("nodes=2,walltime=0:0:60", 100) else { panic!("accepted") };
    assert_eq!((placement.start, placement.end, shown(&placement.resources)), (100, 160, "9-16".to_owned()));
    let Answer::Ko { why, later } = asked("nodes=3,walltime=0:0:60", 100) else { panic!("refused") };
    assert_eq!((why.as_str(), later), ("the resources are not free at that time", Ok(160)));
    let Answer::Ko { later: Err(never), .. } = asked("nodes=5,walltime=0:0:60", 100) else { panic!("refused") };
    assert!(never.to_string().contains("5 asked"));
}

/// OAR-R-18: reservations are planned on absent and suspected resources too, nothing on dead ones.
#[test]
fn states_decide_what_is_planned() {
    let mut table = s();
    table.set_state(&ids("1-4"), State::Absent).expect("set");
    table.set(&ids("1-4"), AVAILABLE_UPTO, Some(muster_oar::resources::value::Value::Integer(0))).expect("set");
    table.set_state(&ids("5-8"), State::Suspected).expect("set");
    table.set_state(&ids("9-12"), State::Dead).expect("set");
    let place = |purpose, request: &str| {
        let wish = Wish { purpose, ..wish(&table, 1, &[request]) };
        told(&plan(&table, 0, 0, &[], &[wish])[0])
    };
    assert_eq!(place(Purpose::Batch, "nodes=1"), "0 on 13-16");
    let reason = "resources cannot be had for that long: nodes: 2 asked, 3 match, 1 of them fit";
    assert_eq!(place(Purpose::Batch, "nodes=2"), reason);
    for purpose in [Purpose::Reservation, Purpose::Permissive] {
        assert_eq!(place(purpose, "nodes=3"), "0 on 1-8, 13-16");
        assert!(place(purpose, "nodes=4").starts_with("there are not enough resources"));
    }
}

/// OAR-G-13, OAR-G-14: an accepted reservation waits for its resources, then starts late on those that are alive.
#[test]
fn an_accepted_reservation_starts_with_what_is_alive() {
    let accepted = busy(1, "1-4", 1000, 2000);
    let step = |alive: &'static [u32], now| reservation::step(&accepted, &|id| alive.contains(&id), 300, now);
    let start = |resources: &str, walltime| reservation::Step::Start {
        resources: ids(resources).into_iter().collect(),
        walltime,
    };
    assert_eq!(step(&[1, 2, 3, 4], 999), reservation::Step::Wait);
    assert_eq!(step(&[1, 2, 3, 4], 1000), start("1-4", 1000));
    assert_eq!(step(&[1, 2], 1299), reservation::Step::Wait);
    assert_eq!(step(&[1, 2], 1300), start("1-2", 700));
    assert_eq!(step(&[], 1999), reservation::Step::Wait);
    assert_eq!(step(&[1, 2, 3, 4], 2000), reservation::Step::Error);
}

/// OAR-G-03, OAR-Q-12: queues by priority, best effort last, then karma, then ids; under fair share only so many of a user.
#[test]
fn the_order_of_a_queue() {
    let entry = |job, user: &str, queue_priority, is_besteffort, karma| Entry {
        job,
        user: user.to_owned(),
        queue_priority,
        is_besteffort,
        karma,
    };
    let plain = [
        entry(5, "a", 3, false, None),
        entry(2, "a", 3, false, None),
        entry(1, "b", 99, true, None),
        entry(9, "c", 10, false, None),
    ];
    assert_eq!(queue::order(plain.to_vec(), 1), [9, 2, 5, 1]);
    let fair = [
        entry(1, "a", 3, false, Some(0.5)),
        entry(2, "b", 3, false, Some(-0.5)),
        entry(3, "b", 3, false, Some(-0.5)),
        entry(4, "b", 3, false, Some(-0.5)),
        entry(5, "c", 3, false, Some(0.0)),
    ];
    assert_eq!(queue::order(fair.to_vec(), 2), [2, 3, 5, 1]);
    assert_eq!(queue::order(fair.to_vec(), 30), [2, 3, 4, 5, 1]);
}

/// OAR-G-16: walltimes are cut at once, and grow up to the next placement and the end of the container.
#[test]
fn walltimes_change_as_far_as_there_is_room() {
    assert_eq!(walltime::change("+1:0", 7200), Ok(3600));
    assert_eq!(walltime::change("-0:30", 7200), Ok(-1800));
    assert_eq!(walltime::change("1", 7200), Ok(-3600));
    assert!(["", "+", "-x", "1:2:3:4", "ä"].iter().all(|text| walltime::change(text, 1).is_err()));
    let running = busy(1, "1-4", 0, 1000);
    let gantt =
        Gantt { guard: 60, placements: vec![running.clone(), busy(2, "4", 1300, 1400), busy(3, "5", 1000, 1100)] };
    let grant = |change, window| walltime::grant(&running, change, &gantt, window, 500);
    assert_eq!(grant(100, None), Ok(Granted { end: 1100, pending: 0 }));
    assert_eq!(grant(600, None), Ok(Granted { end: 1240, pending: 360 }));
    assert_eq!(grant(600, Some(1200)), Ok(Granted { end: 1200, pending: 400 }));
    assert_eq!(grant(-300, None), Ok(Granted { end: 700, pending: 0 }));
    assert_eq!(grant(-900, None), Ok(Granted { end: 500, pending: 0 }));
    let container = Placement { opens: Some("1".to_owned()), ..running.clone() };
    assert!(walltime::grant(&container, -1, &gantt, None, 500).is_err());
    assert!(walltime::grant(&container, 1, &gantt, None, 500).is_ok());
    let crowded = Gantt { guard: 60, placements: vec![busy(2, "4", 1030, 1400)] };
    assert_eq!(walltime::grant(&running, 100, &crowded, None, 500), Ok(Granted { end: 1000, pending: 100 }));
}

/// OAR-G-17: dates before which and until which a job may start.
#[test]
fn postponed_jobs_and_deadlines() {
    let table = nodes(2);
    let running = [busy(9, "1-2", 0, 100)];
    let one = wish(&table, 1, &["nodes=1,walltime=0:0:60"]);
    let place = |wish: Wish| told(&plan(&table, 0, 0, &running, &[wish])[0]);
    assert_eq!(place(Wish { not_before: 150, ..one.clone() }), "150 on 1");
    assert_eq!(place(Wish { latest_end: Some(160), ..one.clone() }), "100 on 1");
    assert_eq!(place(Wish { latest_end: Some(159), ..one.clone() }), "no place early enough to keep the time 159");
    assert_eq!(place(Wish { latest_start: Some(100), ..one.clone() }), "100 on 1");
    assert_eq!(place(Wish { latest_start: Some(99), ..one }), "no place early enough to keep the time 99");
}

/// OAR-S-05, W8: resources of a suspended job whose type is offered are planned as free: its placement is left out.
#[test]
fn w8_resources_of_a_suspended_job_are_offered() {
    let table = s();
    let next = [filtered_wish(&table, 301, "switch='s1'", &["/switch=1,walltime=0:0:200"])];
    assert_eq!(told(&plan(&table, 0, 410, &[busy(300, "1-8", 0, 1000)], &next)[0]), "1000 on 1-8");
    assert_eq!(told(&plan(&table, 0, 410, &[], &next)[0]), "410 on 1-8");
}

fn any_wishes() -> impl Strategy<Value = Vec<(u32, i64, u8)>> {
    proptest::collection::vec((1..5_u32, 1..40_i64, 0..5_u8), 1..9)
}

proptest! {
    /// OAR-G-05: no resource is of two placements at an instant; OAR-G-10: every job has a place or a reason.
    #[test]
    fn no_resource_is_of_two_placements(demands in any_wishes(), guard in 0..5_i64, running in 0..60_i64) {
        let table = nodes(4);
        let wishes: Vec<Wish> = (1..).zip(&demands).map(|(job, (count, walltime, form))| {
            let wish = wish(&table, job, &[&format!("nodes={count},walltime=0:0:{walltime}")]);
            match form {
                0 => keyed(Some("u"), None, wish),
                1 => opening("x", wish),
                2 => inside("x", wish),
                3 => Wish { placement: best_effort(wish.placement), ..wish },
                _ => wish,
            }
        }).collect();
        let gantt = Gantt { guard, placements: vec![busy(99, "1", 0, running + 1)] };
        let mut pass = Pass { now: 0, table: &table, gantt, limits: &|_, _| Ok(()), limit_changes: &[] };
        let outcomes = pass.run(&wishes);
        prop_assert_eq!(outcomes.len(), wishes.len());
        prop_assert_eq!(pass.gantt.conflict(), None);
    }

    /// OAR-G-02, OAR-G-04: each job has the earliest start that jobs before it leave, second by second; OAR-G-04: jobs
    /// behind it change nothing.
    #[test]
    fn starts_are_the_earliest_and_later_jobs_delay_nobody(demands in any_wishes(), guard in 0..5_i64) {
        let table = nodes(4);
        let wishes: Vec<Wish> = (1..).zip(&demands)
            .map(|(job, (count, walltime, _))| wish(&table, job, &[&format!("nodes={count},walltime=0:0:{walltime}")]))
            .collect();
        let outcomes = plan(&table, guard, 0, &[], &wishes);
        let mut gantt = Gantt { guard, placements: Vec::new() };
        for (outcome, (count, walltime, _)) in outcomes.iter().zip(&demands) {
            if *count > 4 {
                prop_assert!(outcome.is_err());
                continue;
            }
            let found = outcome.as_ref().expect("there is a place");
            let free_at = |start: i64| {
                let blocked = |node: u32| gantt.placements.iter().any(|placed| placed.resources.contains(&node)
                    && (start..start + walltime + guard).any(|second| placed.start <= second && second < placed.end + guard)
                    && placed.start < start + walltime + guard);
                (1..=4).filter(|node| !blocked(*node)).count() as u32 >= *count
            };
            prop_assert_eq!(Some(found.placement.start), (0..2000).find(|start| free_at(*start)));
            gantt.placements.push(found.placement.clone());
        }
        let fewer = plan(&table, guard, 0, &[], &wishes[..wishes.len() - 1]);
        prop_assert_eq!(&outcomes[..fewer.len()], &fewer[..]);
    }

    /// OAR-G-08: of all shapes the earliest end, counted second by second; of equal ends the first shape.
    #[test]
    fn the_shape_that_ends_first_is_chosen(
        shapes in proptest::collection::vec((1..5_u32, 1..30_i64), 1..4),
        others in proptest::collection::vec((1..5_u32, 0..40_i64, 1..30_i64), 0..4),
        guard in 0..3_i64,
    ) {
        let table = nodes(4);
        let running: Vec<Placement> = (10..).zip(&others)
            .map(|(job, (node, start, length))| busy(job, &node.to_string(), *start, start + length)).collect();
        let is_free = |node: u32, start: i64, walltime: i64| running.iter().all(|one| {
            !one.resources.contains(&node) || start + walltime + guard <= one.start || one.end + guard <= start
        });
        let end_of = |(count, walltime): &(u32, i64)| {
            let fits = |start: &i64| (1..=4).filter(|node| is_free(*node, *start, *walltime)).count() as u32 >= *count;
            (0..200).find(fits).map(|start| start + walltime)
        };
        let best = shapes.iter().enumerate().filter_map(|(at, shape)| Some((end_of(shape)?, at))).min();
        let requests: Vec<String> = shapes.iter().map(|(count, walltime)| format!("nodes={count},walltime=0:0:{walltime}")).collect();
        let requests: Vec<&str> = requests.iter().map(String::as_str).collect();
        let scene_gantt = Gantt { guard, placements: running.clone() };
        let found = scene(&table, &scene_gantt).first_end(&wish(&table, 1, &requests));
        prop_assert_eq!(found.map(|found| (found.placement.end, found.shape)).ok(), best);
    }
}
