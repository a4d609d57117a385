//! The worked examples W8 to W11, literally, and reservations.

use crate::support::{dry, file, job, lines, order, preset, queue};
use muster_pbs_plan::Dry;
use muster_pbs_policy::{check::Policy, preset::Preset};

/// Tuesday 2026-03-10, 20:00 UTC, in seconds since 1970.
const EVENING: i64 = 1_773_172_800;
const HOUR: i64 = 3600;

fn running(id: &str, queue: &str, started: i64, request: &[(&str, &str)], nodes: &[String]) -> String {
    let nodes: Vec<String> = nodes.iter().map(|node| format!("\"{node}\"")).collect();
    let more = format!(r#""started": {started}, "nodes": [{}],"#, nodes.join(", "));
    job(id, queue, "run", &more, request).replace("\"state\": \"Q\"", "\"state\": \"R\"")
}

/// The state of W8 at a time, with these waiting jobs.
fn w8(now: i64, waiting: &[&str], more: &str) -> String {
    let names: Vec<String> = (1..=16).map(|number| format!("n{number}")).collect();
    let nodes: Vec<String> = names.iter().map(|name| format!(r#"{{"name": "{name}"}}"#)).collect();
    let all = [
        ("b1", "12", "4:00:00", ""),
        ("b2", "4", "1:30:00", ""),
        ("b3", "4", "3:00:00", ""),
        ("i1", "2", "0:20:00", r#""interactive": true,"#),
        ("b0", "14", "1:00:00", ""),
    ];
    let mut jobs = vec![
        running("r1", "batch", EVENING, &[("nodes", "8"), ("walltime", "2:00:00")], &names[..8]),
        running("r2", "batch", EVENING, &[("nodes", "4"), ("walltime", "0:30:00")], &names[8..12]),
    ];
    for (id, nodes, walltime, more) in all {
        let request = [("nodes", nodes), ("walltime", walltime)];
        if waiting.contains(&id) {
            jobs.push(job(id, "submit", "ann", more, &request));
        } else if id == "b2" && now > EVENING {
            jobs.push(running("b2", "batch", EVENING, &request, &names[12..]));
        }
    }
    let members = format!(r#""now": {now}, "tz": "UTC", "nodes": [{}]{more}"#, nodes.join(", "));
    file(&members, &[queue("submit", ""), queue("batch", "")], &jobs)
}

fn sp(more: &str) -> Policy {
    let text = "SUBMIT_QUEUE submit\nBATCH_QUEUES batch\nENFORCE_PRIME_TIME true\nPRIME_TIME_START 8:00:00\n\
                PRIME_TIME_END 18:00:00\n";
    preset(Preset::IbmSp, &format!("{text}{more}"))
}

/// Which job is promised what, in hours after the first cycle.
fn reserved(dry: &Dry) -> Vec<(&str, f64)> {
    let hours = |at: &i64| (at - EVENING) as f64 / HOUR as f64;
    dry.reservations.iter().map(|(job, _, at)| (job.as_str(), hours(at))).collect()
}

/// W8: PBS-P-16, PBS-P-19, PBS-P-20: whole nodes, and a reservation that is worked out afresh in each cycle.
#[test]
fn w8_whole_nodes_and_a_dynamic_reservation() {
    let state = w8(EVENING, &["b1", "b2", "b3", "i1"], "");
    let four = "n13+n14+n15+n16";
    assert_eq!(lines(&sp(""), &state), format!("b1 NO_NODES, b2 {four} START -> batch, b3 NO_NODES, i1 NO_NODES"));
    assert_eq!(reserved(&dry(&sp(""), &state)), [("b1", 2.0)]);
}

/// W8: without b2, b3 takes the nodes that are spare, although it runs past the reservation.
#[test]
fn w8_spare_nodes_may_be_used_past_the_reservation() {
    let state = w8(EVENING, &["b1", "b3", "i1"], "");
    let dry = dry(&sp(""), &state);
    assert_eq!(dry.lines, ["1 WAIT b1 NO_NODES", "2 START b3 n13+n14+n15+n16 -> batch", "3 WAIT i1 NO_NODES"]);
    assert_eq!(reserved(&dry), [("b1", 2.0)]);
}

/// PBS-P-16: if all nodes are alike only their number counts, whichever are free now.
#[test]
fn spare_nodes_are_counted_and_not_named() {
    let mirrored = |text: &str| {
        (1..=16).fold(text.to_owned(), |text, number| {
            text.replace(&format!("\"n{number}\""), &format!("\"m{}\"", 17 - number))
        })
    };
    // The nodes are listed from m16 down to m1, so the list is turned, too.
    let state = mirrored(&w8(EVENING, &["b1", "b3", "i1"], "")).replace("\"m", "\"n");
    let names: Vec<String> = (1..=16).map(|number| format!(r#"{{"name": "n{number}"}}"#)).collect();
    let turned: Vec<String> = names.iter().rev().cloned().collect();
    let state = state.replace(&turned.join(", "), &names.join(", "));
    let dry = dry(&sp(""), &state);
    assert_eq!(dry.lines, ["1 WAIT b1 NO_NODES", "2 START b3 n1+n2+n3+n4 -> batch", "3 WAIT i1 NO_NODES"]);
    assert_eq!(reserved(&dry), [("b1", 2.0)]);
}

/// W8: in prime time interactive jobs go first, then the shortest.
#[test]
fn w8_in_prime_time_the_shortest_go_first() {
    let day = "SUBMIT_QUEUE submit\nBATCH_QUEUES batch\nENFORCE_PRIME_TIME true\nPRIME_TIME_START 18:00:00\n\
               PRIME_TIME_END 24:00:00\n";
    let dry = dry(&preset(Preset::IbmSp, day), &w8(EVENING, &["b1", "b2", "b3", "i1"], ""));
    assert_eq!(
        dry.lines,
        ["1 START i1 n13+n14 -> batch", "2 WAIT b2 NO_NODES", "3 WAIT b3 NO_NODES", "4 WAIT b1 NO_NODES"]
    );
    assert_eq!(reserved(&dry), [("b2", 20.0 / 60.0)]);
}

/// W8, PBS-P-17, PBS-P-20: a job that orders higher takes a dynamic reservation over, and no static one.
#[test]
fn w8_a_static_reservation_stays_and_a_dynamic_one_moves() {
    let later = EVENING + 600;
    let waiting = ["b0", "b1", "b3", "i1"];
    assert_eq!(reserved(&dry(&sp(""), &w8(later, &waiting, ""))), [("b0", 2.0)]);
    let fixed = sp("BACKFILL_MODE static\n");
    let first = dry(&fixed, &w8(EVENING, &["b1", "b2", "b3", "i1"], ""));
    assert_eq!(reserved(&first), [("b1", 2.0)]);
    let carried = serde_json::to_string(&first.carried.map(|carried| carried.reservations)).expect("JSON");
    let second = dry(&fixed, &w8(later, &waiting, &format!(r#", "reservations": {carried}"#)));
    assert_eq!(reserved(&second), [("b1", 2.0)]);
    assert!(second.lines.contains(&"1 WAIT b0 NO_NODES".to_owned()), "{:?}", second.lines);
}

/// PBS-P-17: the time moves to an earlier moment, and never to a later one.
#[test]
fn a_static_reservation_moves_only_to_an_earlier_time() {
    let fixed = sp("BACKFILL_MODE static\n");
    let at = |hours: i64| {
        let start = EVENING + hours * HOUR;
        format!(r#", "reservations": [{{"job": "b1", "queue": "batch", "start": {start}}}]"#)
    };
    for (told, expected) in [(3, 2.0), (1, 1.0)] {
        let state = w8(EVENING, &["b1", "b3"], &at(told));
        assert_eq!(reserved(&dry(&fixed, &state)), [("b1", expected)]);
    }
    let gone = w8(EVENING, &["b3"], &at(3));
    assert_eq!(reserved(&dry(&fixed, &gone)), [], "the holder does not wait any more");
}

fn sgi(more: &str) -> Policy {
    preset(Preset::SgiOrigin, &format!("SUBMIT_QUEUE submit\nBATCH_QUEUES small,large\n{more}"))
}

/// A job of this many nodes, of two processors each.
fn of_nodes(id: &str, user: &str, more: &str, nodes: u32, walltime: &str) -> String {
    job(id, "submit", user, more, &[("ncpus", &(2 * nodes).to_string()), ("walltime", walltime)])
}

fn batch_queues() -> [String; 3] {
    [
        queue("submit", ""),
        queue("small", r#""resources_max": {"ncpus": 16, "walltime": "1:00:00"},"#),
        queue("large", r#""resources_max": {"ncpus": 64, "walltime": "8:00:00"},"#),
    ]
}

/// The state of W9 with the first job of this many nodes, and the waiting jobs in this order.
fn w9(first: u32) -> String {
    let now = EVENING;
    let jobs = [
        running("r1", "large", now, &[("ncpus", "48"), ("walltime", "1:30:00")], &[]),
        running("r2", "large", now, &[("ncpus", "8"), ("walltime", "0:20:00")], &[]),
        of_nodes("g1", "ann", "", first, "2:00:00"),
        of_nodes("g2", "bob", "", 4, "3:00:00"),
        of_nodes("g3", "cat", "", 4, "1:20:00"),
        of_nodes("g4", "dan", "", 2, "0:30:00"),
    ];
    file(&format!(r#""now": {now}, "tz": "UTC""#), &batch_queues(), &jobs)
}

/// W9: PBS-P-04, PBS-P-05, PBS-P-16: queues are tried in their order, and room is held for the first job.
#[test]
fn w9_a_reservation_in_a_queue() {
    let found = dry(&sgi(""), &w9(30));
    assert_eq!(found.lines, ["1 WAIT g1 NO_NODES", "2 WAIT g2 RESERVED", "3 START g3 -> large", "4 START g4 -> small"]);
    assert_eq!(found.reservations, [("g1".into(), "large".into(), EVENING + 5400)]);
}

/// W9: with 16 nodes for the first job, 16 are spare.
#[test]
fn w9_spare_room_is_used_past_the_reservation() {
    let found = dry(&sgi(""), &w9(16));
    assert_eq!(found.lines[..2], ["1 WAIT g1 NO_NODES", "2 START g2 -> large"]);
    assert_eq!(found.reservations, [("g1".into(), "large".into(), EVENING + 5400)]);
}

/// The state of W10 at a time, in the order of arrival.
fn w10(now: i64) -> String {
    let of = |id: &str, user: &str, nodes: u32, walltime: &str, eligible: i64, more: &str| {
        let more = format!(r#""group": "g", "etime": {},{more}"#, now - eligible);
        of_nodes(id, user, &more, nodes, walltime)
    };
    let special = of("s8", "eve", 32, "4:00:00", 100, "").replace("\"submit\"", "\"special\"");
    let jobs = [
        of("s4", "bob", 16, "2:00:00", 90_000, ""),
        of("s9", "ann", 6, "14:00:00", 87_000, ""),
        of("s7", "dan", 2, "0:05:00", 6_000, r#""interactive": true,"#),
        of("s1", "ann", 8, "1:00:00", 3_000, ""),
        of("s2", "ann", 2, "0:10:00", 2_000, ""),
        of("s3", "bob", 4, "0:10:00", 1_000, ""),
        of("s5", "cat", 4, "0:15:00", 500, ""),
        of("s6", "cat", 1, "0:30:00", 400, ""),
        special,
    ];
    let queues = [queue("submit", ""), queue("special", ""), queue("batch", "")];
    let usage = r#""usage": {"g:ann": 12, "g:bob": 3, "g:cat": 3}"#;
    file(&format!(r#""now": {now}, "tz": "UTC", {usage}"#), &queues, &jobs)
}

/// W10: PBS-P-06, PBS-P-07, PBS-P-08, PBS-P-09: special jobs, those that waited long, and owners who take turns.
#[test]
fn w10_the_order_of_jobs() {
    let config = |hours: &str, more: &str| {
        let text = "SUBMIT_QUEUE submit\nSPECIAL_QUEUE special\nBATCH_QUEUES batch\nMAX_QUEUED_TIME 24:00:00\n\
                    INTERACTIVE_LONG_WAIT 0:30:00\nENFORCE_PRIME_TIME true\n";
        preset(Preset::SgiOrigin, &format!("{text}{hours}{more}"))
    };
    let prime = "PRIME_TIME_START 18:00:00\nPRIME_TIME_END 24:00:00\n";
    let other = "PRIME_TIME_START 8:00:00\nPRIME_TIME_END 18:00:00\n";
    let without = "SORT_BY_PAST_USAGE False\n";
    for (hours, more, expected) in [
        (prime, "", "s8 s9 s4 s7 s3 s5 s6 s2 s1"),
        (prime, without, "s8 s9 s4 s7 s3 s2 s5 s6 s1"),
        (other, "", "s8 s9 s4 s7 s3 s5 s6 s1 s2"),
        (other, without, "s8 s9 s4 s1 s3 s5 s7 s2 s6"),
    ] {
        assert_eq!(order(&config(hours, more), &w10(EVENING)), expected, "{hours}{more}");
    }
}

/// PBS-P-09: starting a job charges its owner, and once a day a part of the usage is left.
#[test]
fn usage_is_charged_and_decays() {
    let config = preset(Preset::SgiOrigin, "SUBMIT_QUEUE submit\nSPECIAL_QUEUE special\nBATCH_QUEUES batch\n");
    let two_days = format!(r#""last_decay": {}, "now""#, EVENING - 2 * 86_400 - 5);
    let state = w10(EVENING).replacen("\"now\"", &two_days, 1);
    let carried = dry(&config, &state).carried.expect("a preset");
    let usage: Vec<(&str, u64)> = carried.usage.iter().map(|(name, used)| (name.as_str(), *used)).collect();
    // 12, 3 and 3 after two days: 6, 1 and 1; then each job of up to 20 minutes charges 1, and any other one 10.
    assert_eq!(usage, [("g:ann", 6 + 21), ("g:bob", 1 + 11), ("g:cat", 1 + 11), ("g:dan", 1), ("g:eve", 10)]);
    assert_eq!(carried.last_decay, EVENING - 5);
}

/// PBS-P-03, PBS-P-21: a start charges its owner in `cray_t3e` too, where past usage is a part of the priority.
#[test]
fn past_usage_is_charged_where_it_counts() {
    for (more, expected) in [("", 10), ("SORT_BY_PAST_USAGE False\n", 0)] {
        let config = preset(Preset::CrayT3e, &format!("SUBMIT_QUEUE submit\nBATCH_QUEUES batch\n{more}"));
        let jobs = [job("1", "submit", "ann", "", &[("ncpus", "2"), ("walltime", "1:00:00")])];
        let queues = ["submit", "batch"].map(|name| queue(name, ""));
        let dry = dry(&config, &file(&format!(r#""now": {EVENING}, "tz": "UTC""#), &queues, &jobs));
        assert_eq!(dry.lines, ["1 START 1 -> batch"]);
        assert_eq!(dry.carried.expect("a preset").usage.values().sum::<u64>(), expected, "{more}");
    }
}

/// W11: PBS-P-21: the order of `cray_t3e`.
#[test]
fn w11_the_order_of_priorities() {
    let config = preset(
        Preset::CrayT3e,
        "SUBMIT_QUEUE normal\nSPECIAL_QUEUE special\nCHALLENGE_QUEUE_NAME challenge\nBACKGROUND_QUEUE_NAME background\n\
         BATCH_QUEUES batch\n",
    );
    let queues = ["normal", "special", "challenge", "background", "batch"].map(|name| queue(name, ""));
    let all = [
        ("n910", "normal", 64, 20, 10),
        ("n230", "normal", 128, 0, 1),
        ("c856", "challenge", 16, 100, 0),
        ("special", "special", 8, 0, 0),
        ("background", "background", 256, 0, 30),
        ("n993", "normal", 8, 300, 20),
        ("n336", "normal", 512, 0, 0),
    ];
    let jobs = all.map(|(id, queue, nodes, _, hours)| {
        let more = format!(r#""etime": {},"#, EVENING - hours * HOUR);
        job(id, queue, &format!("of-{id}"), &more, &[("ncpus", &nodes.to_string()), ("walltime", "1:00:00")])
    });
    let usage = all.map(|(id, _, _, usage, _)| format!(r#""of-{id}": {usage}"#)).join(", ");
    let server = r#""server": {"resources_max": {"ncpus": 512}}"#;
    let state = file(&format!(r#""now": {EVENING}, "tz": "UTC", {server}, "usage": {{{usage}}}"#), &queues, &jobs);
    assert_eq!(order(&config, &state), "special n993 n910 c856 n336 n230 background");
}

/// PBS-P-01, PBS-C-15: the example of the book.
#[test]
fn the_example_of_the_book() {
    let config = include_str!("../../../../../docs/examples/pbs/preset/config");
    let state = include_str!("../../../../../docs/examples/pbs/preset/state.json");
    let book = include_str!("../../../../../docs/pbs-policy.md");
    let named = crate::support::state(state).preset().expect("a preset").expect("no fifo");
    let lines = dry(&preset(named, config), state).lines.join("\n");
    assert!(book.contains(&format!("\n{lines}\n```")), "{lines}");
}

/// PBS-P-01: the server names its policy.
#[test]
fn the_state_names_the_preset() {
    let of = |name: &str| {
        let text = format!(r#"{{"now": 5, "server": {{"scheduler_policy": "{name}"}}}}"#);
        crate::support::state(&text).preset().map_err(|error| error.to_string())
    };
    assert_eq!(of("IBM_SP"), Ok(Some(Preset::IbmSp)));
    assert_eq!(of("fifo"), Ok(None));
    assert!(of("basl:x").expect_err("no preset").starts_with("server.scheduler_policy: expected fifo, sgi_origin"));
}

/// PBS-P-19: interactive jobs first in prime time, last otherwise, whatever their size.
#[test]
fn interactive_jobs_have_their_place_in_all_hours() {
    let names: Vec<String> = (1..=16).map(|number| format!(r#"{{"name": "n{number}"}}"#)).collect();
    let of = |id, nodes, walltime, is: bool| {
        job(id, "submit", "ann", &format!(r#""interactive": {is},"#), &[("nodes", nodes), ("walltime", walltime)])
    };
    let jobs = [
        of("i1", "2", "0:20:00", true),
        of("b1", "3", "1:00:00", false),
        of("i2", "6", "0:20:00", true),
        of("b2", "5", "3:00:00", false),
    ];
    let members = format!(r#""now": {EVENING}, "tz": "UTC", "nodes": [{}]"#, names.join(", "));
    let state = file(&members, &[queue("submit", ""), queue("batch", "")], &jobs);
    assert_eq!(order(&sp(""), &state), "b2 b1 i2 i1");
    let day = "SUBMIT_QUEUE submit\nBATCH_QUEUES batch\nENFORCE_PRIME_TIME true\nPRIME_TIME_START 18:00:00\nPRIME_TIME_END 24:00:00\n";
    assert_eq!(order(&preset(Preset::IbmSp, day), &state), "i2 i1 b1 b2");
}

/// PBS-P-16: a queue holds one reservation; a later job that waited long looks at the remaining queues, and the next finds none.
#[test]
fn a_queue_holds_one_reservation() {
    let early = |hours: i64| format!(r#""etime": {},"#, EVENING - hours * HOUR);
    let jobs = [
        running("r1", "large", EVENING, &[("ncpus", "56"), ("walltime", "1:30:00")], &[]),
        running("r2", "small", EVENING, &[("ncpus", "16"), ("walltime", "0:40:00")], &[]),
        of_nodes("g1", "ann", &early(4), 30, "2:00:00"),
        of_nodes("w1", "bob", &early(3), 8, "1:00:00"),
        of_nodes("w2", "cat", &early(2), 8, "0:50:00"),
    ];
    let found = dry(
        &sgi("MAX_QUEUED_TIME 1:00:00\n"),
        &file(&format!(r#""now": {EVENING}, "tz": "UTC""#), &batch_queues(), &jobs),
    );
    assert_eq!(
        found.reservations,
        [("g1".into(), "large".into(), EVENING + 5400), ("w1".into(), "small".into(), EVENING + 2400)]
    );
}
