//! Policy files: their contents, the errors in wrong ones, and that no bytes do harm.

use muster_planner::policy_file::{self, MOST_BYTES, MOST_ERRORS, PolicyFileError};
use muster_schemas::{
    Timestamp,
    policy::{
        BUILT_IN_POLICIES, Backfill, BackfillMode, ByLoad, CandidateOrder, Charge, Compare, ComponentPriority,
        ComponentStart, Components, FairShare, Limit, LimitPer, LoadTable, LoadedNode, OnRefusal, OrderKey, OtherHours,
        Period, Policy, QueuePolicy, Share, ShareTable, Starving, TurnRules, Turns, UsageRule, Visit, Windows,
        formula::{Formula, Variable, Variables},
        order::CompiledOrder,
        routes::{HourRules, JobStanding, LongWait, Machine, Owners, Reservations, Routes, SizePart, Source, Target},
    },
};
use proptest::prelude::*;
use std::{fmt::Write as _, path::Path};

fn parse(text: &str) -> Policy {
    policy_file::parse(text, "policy.toml").unwrap_or_else(|errors| panic!("{}", lines(&errors)))
}

fn errors(text: &str) -> String {
    policy_file::parse(text, "policy.toml").map_or_else(|errors| lines(&errors), |policy| panic!("{policy:?}"))
}

fn lines(errors: &[PolicyFileError]) -> String {
    errors.iter().fold(String::new(), |mut text, error| {
        let _ = writeln!(text, "{error}");
        text
    })
}

#[test]
fn a_file_says_everything_that_a_policy_can_be() {
    let policy = parse(
        r#"
version = 1
name = "day"
order = ["queue_priority", { formula = "-(wait / walltime) ^ 3 * procs" }, { formula = 'attribute("x")', descending = true }, "fcfs"]
max_starts = 500

[backfill]
mode = "easy"
reservations = 3
candidates = "sjbf"
look_ahead = 1000
require_walltime = true

[[limit]]
per = "user"
queue = "long"
max_running_jobs = 10
max_nodes = 20

[[limit]]
per = "account"
name = "physics"
max_cores = 4096
max_gpus = 0

[queue.long]
order = "saf"

[queue.long.backfill]
mode = "conservative"

[queue."a.b"]
backfill = { mode = "none" }
"#,
    );
    let formula = |text: &str, descending| OrderKey::Formula { text: text.into(), descending };
    let easy = Backfill {
        mode: BackfillMode::Easy,
        reservations: Some(3),
        candidates: CandidateOrder::Sjbf,
        look_ahead: Some(1000),
        require_walltime: true,
        ..Backfill::default()
    };
    let conservative = Backfill { mode: BackfillMode::Conservative, ..Backfill::default() };
    let expected = Policy {
        name: "day".into(),
        order: vec![
            OrderKey::QueuePriority,
            formula("-(wait / walltime) ^ 3 * procs", false),
            formula("attribute(\"x\")", true),
            OrderKey::Fcfs,
        ],
        backfill: easy,
        limits: vec![
            Limit {
                per: LimitPer::User,
                queue: Some("long".into()),
                max_running_jobs: Some(10),
                max_nodes: Some(20),
                ..Limit::default()
            },
            Limit {
                per: LimitPer::Account,
                name: Some("physics".into()),
                max_cores: Some(4096),
                max_gpus: Some(0),
                ..Limit::default()
            },
        ],
        queues: [
            ("long".into(), QueuePolicy { order: Some(vec![OrderKey::Saf]), backfill: Some(conservative) }),
            ("a.b".into(), QueuePolicy { order: None, backfill: Some(Backfill::default()) }),
        ]
        .into(),
        max_starts: 500,
        turns: None,
        ..Policy::default()
    };
    assert_eq!(policy, expected);
}

#[test]
fn a_file_with_a_version_alone_is_the_default_policy_under_the_name_of_the_file() {
    let policy = policy_file::parse("version = 1\n", "/etc/muster/night shift.toml").unwrap();
    assert_eq!(policy, Policy { name: "night shift".into(), ..Policy::default() });
}

#[test]
fn a_file_that_says_what_a_built_in_policy_says_has_its_stages() {
    for name in BUILT_IN_POLICIES {
        let text = match name {
            "easy" => "version = 1\n".to_owned(),
            "fcfs" => "version = 1\nbackfill = { mode = \"none\" }\n".to_owned(),
            "conservative" => format!("version = 1\nbackfill = {{ mode = \"{name}\" }}\n"),
            order => format!("version = 1\norder = \"{order}\"\n[backfill]\nmode = \"easy\"\n"),
        };
        let built_in = Policy::built_in(name).unwrap();
        assert_eq!(Policy { name: name.into(), ..parse(&text) }, built_in);
        assert_eq!(parse(&policy_file::print(&built_in)), built_in);
    }
}

#[test]
fn line_ends_and_a_byte_order_mark_make_no_difference() {
    let text = "version = 1\nname = \"x\"\n[backfill]\nmode = \"easy\"\n";
    assert_eq!(parse(&text.replace('\n', "\r\n")), parse(text));
    assert_eq!(parse(&format!("\u{feff}{text}")), parse(text));
    let wrong = text.replace("easy", "esay");
    assert_eq!(errors(&wrong.replace('\n', "\r\n")), errors(&wrong));
    assert_eq!(errors(&format!("\u{feff}{wrong}")), errors(&wrong));
    assert_eq!(errors("\u{feff}version = 2\n"), errors("version = 2\n"));
}

fn reference() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/policy.md")).unwrap()
}

#[test]
fn the_example_of_the_reference_is_a_policy_with_every_key() {
    let page = reference();
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let policy = parse(example);
    assert_eq!(parse(&policy_file::print(&policy)), policy);
    for (table, keys) in policy_file::KEYS {
        for key in keys {
            assert!(page.contains(&format!("| `{key}` |")), "`{key}` of {table} is not described");
        }
    }
}

/// The formula with numbers in place of `c`, `x` and `y`.
fn with_numbers(formula: &str) -> String {
    let no_word = |c: char| !c.is_alphanumeric();
    let parts = formula.split_inclusive(no_word).map(|part| match part.trim_end_matches(no_word) {
        "c" | "x" | "y" => part.replace(['c', 'x', 'y'], "1"),
        _ => part.to_owned(),
    });
    parts.collect()
}

#[test]
fn formulas_of_the_reference_can_be_read() {
    let page = reference();
    let (_, section) = page.split_once("## Formulas").unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let formulas: Vec<&str> =
        rows.flat_map(|cell| cell.split('`').step_by(2)).filter(|cell| !cell.is_empty()).collect();
    assert!(formulas.len() > 40, "{formulas:?}");
    for formula in formulas {
        let read = Formula::parse(&with_numbers(formula));
        assert!(read.is_ok(), "{formula}: {read:?}");
    }
}

/// A job of 100 seconds on 8 processors that waits for 50 seconds.
struct Example;

impl Variables for Example {
    fn value(&self, variable: Variable) -> f64 {
        match variable {
            Variable::Walltime => 100.0,
            Variable::Procs => 8.0,
            Variable::Wait => 50.0,
            Variable::Age0 => 77.0,
            Variable::Submit => 1077.0,
            Variable::Priority => 3.0,
            Variable::QueuePriority => 5.0,
            _ => f64::NAN,
        }
    }
}

#[test]
fn named_orders_are_the_formulas_that_the_reference_says() {
    let page = reference();
    let rows = page.lines().filter(|line| line.starts_with("| `\"")).map(|row| row.split('`'));
    let pairs: Vec<(&str, &str)> = rows.map(|mut row| (row.nth(1).unwrap(), row.nth(1).unwrap())).collect();
    assert_eq!(pairs.len(), 8, "{pairs:?}");
    for (name, formula) in pairs {
        let orders = [name.to_owned(), format!("{{ formula = \"{formula}\" }}")];
        let keys = orders.map(|order| {
            let policy = parse(&format!("version = 1\norder = {order}\n"));
            CompiledOrder::compile(&policy.order).unwrap().key(0, &Example)
        });
        assert!((keys[0] - keys[1]).abs() <= 1e-12 * keys[0].abs(), "{name} is {}, {formula} is {}", keys[0], keys[1]);
    }
}

/// The blocks of `errors.txt`: title, file, errors.
fn golden() -> (std::path::PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/policy_file/errors.txt");
    let text = std::fs::read_to_string(&path).unwrap();
    (path, text)
}

/// Errors in policy files are reported with their position and what was expected (M-PLAN-24).
#[test]
fn wrong_files_are_told_in_place_with_what_was_expected() {
    let (path, text) = golden();
    let (introduction, blocks) = text.split_once("\n== ").unwrap();
    let mut actual = format!("{introduction}\n");
    for block in blocks.trim_end().split("\n== ") {
        let mut lines = block.lines();
        let title = lines.next().unwrap();
        let file: Vec<&str> = lines.map_while(|line| line.strip_prefix("| ").or((line == "|").then_some(""))).collect();
        let _ = writeln!(actual, "== {title}");
        for line in &file {
            let _ = writeln!(actual, "| {line}");
        }
        actual += &errors(&(file.join("\n") + "\n"));
        actual.push('\n');
    }
    actual.truncate(actual.trim_end().len() + 1);
    if std::env::var_os("MUSTER_BLESS").is_some() {
        std::fs::write(&path, &actual).unwrap();
    }
    assert_eq!(actual, text, "run with MUSTER_BLESS=1 if the texts were meant to change");
}

#[test]
fn errors_carry_the_token() {
    let found = policy_file::parse("version = 1\nordr = [\n  1]\n", "f").unwrap_err();
    assert_eq!((found[0].line, found[0].column, found[0].token.as_str()), (2, 1, "ordr"));
    let formula = policy_file::parse("version = 1\norder = { formula = 'wait * waltime' }\n", "f").unwrap_err();
    assert_eq!((formula[0].line, formula[0].column, formula[0].token.as_str()), (2, 29, "waltime"));
}

#[test]
fn bytes_that_are_no_text_are_told_in_place() {
    let told = |bytes: &[u8]| lines(&policy_file::parse_bytes(bytes, "policy.toml").unwrap_err());
    assert_eq!(told(b"version = 1\nname = \"\xff\"\n"), "policy.toml:2:9: expected UTF-8 text, found the byte 0xff\n");
    assert_eq!(told(b"\xff\xfev\0e\0r\0"), "policy.toml:1:1: expected UTF-8 text, found the byte 0xff\n");
    let nul = told(b"version = 1\nname = \"a\0b\"\n");
    assert!(nul.starts_with("policy.toml:2:10: "), "{nul}");
    let nul = told(b"version = 1\n\0\0\0\n");
    assert!(nul.starts_with("policy.toml:2:1: "), "{nul}");
}

#[test]
fn a_file_that_is_too_long_is_refused_unread() {
    for bytes in [vec![b'#'; 10 << 20], vec![0xff; 10 << 20], "ä".repeat(MOST_BYTES).into_bytes()] {
        let told = lines(&policy_file::parse_bytes(&bytes, "policy.toml").unwrap_err());
        assert!(told.starts_with("policy.toml:1:1: expected a policy of at most 262144 bytes, found "), "{told}");
    }
    let longest = format!("version = 1\n#{}", "x".repeat(MOST_BYTES - 13));
    assert_eq!(longest.len(), MOST_BYTES);
    parse(&longest);
}

#[test]
fn deep_nesting_is_refused_without_harm() {
    for (open, close) in [("[", "]"), ("{ a = ", " }")] {
        let depth = 20_000;
        for text in [
            format!("version = 1\norder = {}1{}\n", open.repeat(depth), close.repeat(depth)),
            format!("version = 1\norder = {}\n", open.repeat(depth)),
        ] {
            assert!(errors(&text).starts_with("policy.toml:"));
        }
    }
    for text in ["[queue{}]", "queue{} = 1", "[[limit{}]]"] {
        let told = errors(&format!("version = 1\n{}\n", text.replace("{}", &".a".repeat(50_000))));
        assert!(told.contains("expected keys of fewer parts"), "{told}");
    }
    let formula = format!("version = 1\norder = {{ formula = \"{}1\" }}\n", "(".repeat(1000));
    assert!(errors(&formula).contains("nested at most 32 deep, found `(`"));
}

#[test]
fn endless_errors_are_cut_off() {
    let text = format!("version = 1\n{}", (0..10_000).fold(String::new(), |text, n| text + &format!("k{n} = 1\n")));
    assert_eq!(policy_file::parse(&text, "policy.toml").unwrap_err().len(), MOST_ERRORS);
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,8}", "[^\\p{Cc}]{1,12}"]
}

fn formula() -> impl Strategy<Value = String> {
    let formulas =
        ["wait", "-(wait / walltime)^3 * procs", "attribute(\"a'b\") + 1", "attribute(\"x\")", "if(gpus > 0,\n\t1, 0)"];
    proptest::sample::select(formulas.to_vec()).prop_map(str::to_owned)
}

fn order() -> impl Strategy<Value = Vec<OrderKey>> {
    let named = [
        OrderKey::QueuePriority,
        OrderKey::Priority,
        OrderKey::Fcfs,
        OrderKey::Spt,
        OrderKey::Saf,
        OrderKey::F1,
        OrderKey::Wfp3,
        OrderKey::Unicep,
    ];
    let key = prop_oneof![
        proptest::sample::select(named.to_vec()),
        (formula(), any::<bool>()).prop_map(|(text, descending)| OrderKey::Formula { text, descending }),
    ];
    proptest::collection::btree_set(key, 0..6).prop_map(|keys| keys.into_iter().collect::<Vec<_>>()).prop_shuffle()
}

fn backfill() -> impl Strategy<Value = Backfill> {
    let modes = [BackfillMode::Easy, BackfillMode::Conservative];
    let candidates = [CandidateOrder::QueueOrder, CandidateOrder::Sjbf];
    let set = (
        proptest::sample::select(modes.to_vec()),
        proptest::option::of(1..=u32::MAX),
        proptest::sample::select(candidates.to_vec()),
        proptest::option::of(1..=u32::MAX),
        any::<bool>(),
    )
        .prop_map(|(mode, reservations, candidates, look_ahead, require_walltime)| Backfill {
            mode,
            reservations,
            candidates,
            look_ahead,
            require_walltime,
            ..Backfill::default()
        });
    prop_oneof![1 => Just(Backfill::default()), 3 => set]
}

fn components() -> impl Strategy<Value = Components> {
    let priorities = [ComponentPriority::First, ComponentPriority::Min, ComponentPriority::Avg, ComponentPriority::Max];
    let starts = vec![ComponentStart::AnyPass, ComponentStart::AnyPass, ComponentStart::BackfillPass];
    let set = (proptest::sample::select(starts), 1..=86_400_u32, proptest::option::of(1..=u32::MAX));
    let shares = (proptest::sample::select(priorities.to_vec()), any::<bool>());
    (set, shares).prop_map(|((start, interval, window), (priority, share_nodes))| {
        let default = Components { start, priority, share_nodes, ..Components::default() };
        match start {
            ComponentStart::AnyPass => default,
            ComponentStart::BackfillPass => {
                Components { interval_seconds: interval, window_seconds: window, ..default }
            }
        }
    })
}

fn limit() -> impl Strategy<Value = Limit> {
    let per = [LimitPer::All, LimitPer::User, LimitPer::Group, LimitPer::Account, LimitPer::Queue];
    let most = || proptest::option::of(0..=i64::MAX as u64);
    let who = (proptest::sample::select(per.to_vec()), proptest::option::of(name()), proptest::option::of(name()));
    (who, most(), most(), most(), 0..=i64::MAX as u64).prop_map(|((per, name, queue), jobs, nodes, cores, gpus)| {
        Limit {
            per,
            name: match per {
                LimitPer::All => None,
                LimitPer::Group => name.map(|name| name.len().to_string()),
                _ => name,
            },
            queue: queue.filter(|_| per != LimitPer::Queue),
            max_running_jobs: jobs,
            max_nodes: nodes,
            max_cores: cores,
            max_gpus: Some(gpus),
            max_attributes: jobs.map(|most| ("memory_kib".into(), most)).into_iter().collect(),
            max_attributes_of_job: nodes.map(|most| ("a b".into(), most)).into_iter().collect(),
        }
    })
}

fn rules() -> impl Strategy<Value = TurnRules> {
    let visit = proptest::sample::select(vec![Visit::QueueByQueue, Visit::QueuesInTurn, Visit::Pool]);
    let on_refusal = vec![OnRefusal::Nothing, OnRefusal::BlocksQueue, OnRefusal::BlocksAll];
    let starving = (0..=i64::MAX as u64, any::<bool>())
        .prop_map(|(after_seconds, only_for_resources)| Starving { after_seconds, only_for_resources });
    let by_load = proptest::sample::select(vec![ByLoad::Least, ByLoad::InTurn, ByLoad::LeastInTurn]);
    let compare = proptest::sample::select(vec![Compare::Users, Compare::Groups]);
    let fair_share = (compare, name(), proptest::option::of(name())).prop_map(|(compare, charge, times)| FairShare {
        compare,
        charge,
        times,
    });
    (
        (visit, any::<bool>(), any::<bool>()),
        proptest::sample::select(on_refusal),
        proptest::option::of(starving),
        proptest::option::of(fair_share),
        proptest::option::of(by_load),
    )
        .prop_map(|((visit, by_creation, by_arrival), on_refusal, starving, fair_share, by_load)| TurnRules {
            visit,
            by_creation,
            by_arrival,
            on_refusal,
            starving,
            fair_share,
            by_load,
        })
}

fn periods() -> impl Strategy<Value = Vec<Period>> {
    let steps = proptest::collection::vec((1..1_000_000_i64, 1..1_000_000_i64), 0..4);
    steps.prop_map(|steps| {
        let mut from = 0;
        let period = |(pause, length): (i64, i64)| {
            from += pause + length;
            Period { from: Timestamp(from - length), until: Timestamp(from) }
        };
        steps.into_iter().map(period).collect()
    })
}

fn routes() -> impl Strategy<Value = Routes> {
    let reservations = prop_oneof![Just(Reservations::None), Just(Reservations::Kept), Just(Reservations::Renewed)];
    (any::<(u32, i64, bool, bool)>(), periods(), reservations).prop_map(
        |((number, base, yes, other), outages, reservations)| {
            let standing = if yes { JobStanding::Privileged } else { JobStanding::Background };
            let limits = HourRules { limit_seconds: Some(number.into()), drains: other, ..HourRules::default() };
            Routes {
                sources: vec![Source { queue: "wait".into(), standing, base }],
                targets: vec![Target {
                    queue: "run".into(),
                    units: Some(number),
                    machine: Some("one".into()),
                    ..Target::default()
                }],
                machines: vec![Machine { name: "one".into(), outages, is_numbered: yes, ..Machine::default() }],
                size: vec![SizePart { attribute: "cores".into(), per_unit: 1 + u64::from(number) }],
                long_wait: yes.then(LongWait::default),
                owners: other.then(Owners::default),
                hours: Some(limits),
                reservations,
                ..Routes::default()
            }
        },
    )
}

fn turns() -> impl Strategy<Value = Turns> {
    let other_hours =
        (periods(), order(), rules()).prop_map(|(periods, order, rules)| OtherHours { periods, order, rules });
    let windows = (name(), periods()).prop_map(|(queue_prefix, periods)| Windows { queue_prefix, periods });
    let share = (name(), any::<u32>()).prop_map(|(name, shares)| Share { name, parent: 0, shares });
    let shares = (any::<u32>(), proptest::collection::vec(share, 0..3))
        .prop_map(|(unknown_shares, members)| ShareTable { unknown_shares, members });
    let charge = prop_oneof![Just(Charge::CpuSeconds), Just(Charge::CoreSeconds)];
    let usage = (charge, any::<u32>(), any::<u16>()).prop_map(|(charge, half_life, sync)| UsageRule {
        charge,
        half_life_seconds: half_life.into(),
        sync_seconds: sync.into(),
    });
    let loaded = (name(), any::<u32>(), any::<u32>()).prop_map(|(name, ideal, more)| LoadedNode {
        name,
        ideal_millionths: ideal.into(),
        max_millionths: u64::from(ideal) + u64::from(more),
    });
    let loads = (proptest::collection::vec(loaded, 0..3), any::<u32>())
        .prop_map(|(nodes, seconds)| LoadTable { nodes, settle_seconds: seconds.into() });
    let names = || proptest::collection::vec(name(), 0..3);
    (
        rules(),
        proptest::option::of(other_hours),
        proptest::option::of(windows),
        names(),
        proptest::option::of(shares),
        names(),
        proptest::option::of(usage),
        proptest::option::of(routes().prop_map(Box::new)),
        (proptest::option::of(loads.prop_map(Box::new)), any::<u32>(), proptest::option::of(any::<u32>())),
    )
        .prop_map(
            |(
                rules,
                other_hours,
                windows,
                ignored_queues,
                shares,
                queues,
                usage,
                routes,
                (loads, staged_ahead, hidden),
            )| {
                Turns {
                    rules,
                    other_hours,
                    windows,
                    ignored_queues,
                    shares,
                    queues,
                    usage,
                    routes,
                    loads,
                    staged_ahead,
                    hidden_log_classes: hidden,
                }
            },
        )
}

fn policy() -> impl Strategy<Value = Policy> {
    let queue = (proptest::option::of(order()), backfill(), any::<bool>()).prop_map(|(order, backfill, both)| {
        let backfill = (both || order.is_none()).then_some(backfill);
        QueuePolicy { order, backfill }
    });
    (
        name(),
        order(),
        (backfill(), components()).prop_map(|(backfill, components)| Backfill { components, ..backfill }),
        proptest::collection::vec(limit(), 0..4),
        proptest::collection::btree_map(name(), queue, 0..3),
        1..=100_000_u32,
        proptest::option::of(turns().prop_map(Box::new)),
        proptest::option::of(name()),
    )
        .prop_map(|(name, order, backfill, limits, queues, max_starts, turns, starts_nothing)| Policy {
            name,
            order,
            backfill,
            limits,
            queues,
            max_starts,
            turns,
            starts_nothing,
            use_share: None,
            sources: Vec::new(),
        })
        .prop_filter("limits of the same jobs", |policy| policy.faults().is_empty())
}

/// A valid file with some damage: a piece cut out, doubled, or replaced by other bytes.
fn damaged_file() -> impl Strategy<Value = Vec<u8>> {
    let damage = proptest::collection::vec(any::<u8>(), 0..6);
    (policy(), any::<prop::sample::Index>(), 0..20_usize, damage, any::<bool>()).prop_map(
        |(policy, at, length, damage, doubled)| {
            let mut bytes = policy_file::print(&policy).into_bytes();
            let at = at.index(bytes.len());
            let end = (at + length).min(bytes.len());
            let piece = if doubled { bytes[at..end].repeat(2) } else { damage };
            bytes.splice(at..end, piece);
            bytes
        },
    )
}

proptest! {
    #[test]
    fn a_printed_policy_reads_as_the_same_policy(policy in policy()) {
        let text = policy_file::print(&policy);
        let again = policy_file::parse(&text, "other.toml");
        prop_assert_eq!(again.as_ref(), Ok(&policy), "{}", text);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = policy_file::parse_bytes(&bytes, "policy.toml");
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = policy_file::parse(&text, "policy.toml");
        let _ = policy_file::parse(&format!("version = 1\n{text}"), "policy.toml");
    }

    #[test]
    fn damage_is_told_within_the_file_or_leaves_a_policy_that_makes_sense(bytes in damaged_file()) {
        match policy_file::parse_bytes(&bytes, "policy.toml") {
            Ok(policy) => prop_assert_eq!(policy.faults(), []),
            Err(errors) => {
                let lines = bytes.split(|byte| *byte == b'\n').count();
                prop_assert!(!errors.is_empty());
                for error in errors {
                    prop_assert!((1..=lines).contains(&error.line) && error.column >= 1, "{}", error);
                }
            }
        }
    }
}
