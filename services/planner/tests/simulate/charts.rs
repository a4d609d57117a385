//! Charts are well-formed and show what there is.

use super::{
    common::{built_in, run_trace},
    worked_example::example,
};
use muster_planner::chart::{Bar, BarKind, Course, Gantt, Look, Row, courses, gantt};
use muster_schemas::Timestamp;
use roxmltree::Document;

fn course(policy: &str) -> Course {
    let simulation = run_trace(&example(), &built_in(policy));
    Course {
        name: policy.to_owned(),
        waits_seconds: simulation.jobs.iter().filter_map(|job| job.wait_seconds()).collect(),
        procs_in_use: simulation.procs_in_use(),
        jobs_waiting: simulation.jobs_waiting(),
        machine_procs: simulation.machine_procs,
    }
}

fn of_class<'d>(document: &'d Document, class: &'d str) -> Vec<roxmltree::Node<'d, 'd>> {
    document.descendants().filter(|node| node.attribute("class") == Some(class)).collect()
}

fn tooltips(document: &Document, class: &str) -> Vec<String> {
    let title = |node: roxmltree::Node| node.first_element_child().and_then(|title| title.text().map(str::to_owned));
    of_class(document, class).into_iter().filter_map(title).collect()
}

#[test]
fn a_simulation_has_three_panels_and_a_bar_for_each_bound() {
    let text = courses("Worked example", &[course("easy")]);
    let document = Document::parse(&text).expect("the chart is well-formed");
    let waits = tooltips(&document, "wait");
    assert_eq!(waits.len(), 9);
    // Waits 0 0 0 10 40 55 60 70 86 110.
    let expected = ["none: 3 jobs, 30.0 %", "to 10 s: 1 jobs, 10.0 %", "to 1 min: 3 jobs, 30.0 %", "to 10 min: 3 jobs"];
    for (tooltip, expected) in waits.iter().zip(expected) {
        assert!(tooltip.contains(expected), "{tooltip}");
    }
    assert_eq!(of_class(&document, "utilization").len(), 1);
    assert_eq!(of_class(&document, "queue").len(), 1);
    assert_eq!(text, courses("Worked example", &[course("easy")]), "the same input gives the same text");
}

#[test]
fn policies_stand_side_by_side() {
    let text = courses("Two", &[course("fcfs"), course("easy")]);
    let document = Document::parse(&text).expect("the chart is well-formed");
    assert_eq!(of_class(&document, "wait").len(), 18);
    assert_eq!(of_class(&document, "utilization").len(), 2);
    assert_eq!(tooltips(&document, "key"), ["fcfs", "easy"]);
}

#[test]
fn a_simulation_of_nothing_is_drawn() {
    let nothing = Course {
        name: "none".into(),
        waits_seconds: vec![],
        procs_in_use: vec![],
        jobs_waiting: vec![],
        machine_procs: 0,
    };
    for text in [courses("Nothing", &[nothing]), courses("", &[])] {
        let document = Document::parse(&text).expect("the chart is well-formed");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        assert!(document.root_element().has_tag_name("svg"));
    }
}

fn bar(kind: BarKind, label: &str, from: i64, until: i64) -> Bar {
    let (from, until) = (Timestamp::from_unix_seconds(from), Timestamp::from_unix_seconds(until));
    Bar { kind, label: label.into(), tooltip: format!("about {label}"), from, until, look: Look::default() }
}

fn plan(rows: Vec<Row>) -> Gantt {
    Gantt {
        title: "Plan of <evil> & \u{1b}[31m\"quoted\"".into(),
        from: Timestamp::from_unix_seconds(1_000),
        until: Timestamp::from_unix_seconds(5_000),
        now: Timestamp::from_unix_seconds(1_500),
        rows,
    }
}

#[test]
fn every_bar_of_a_plan_that_shows_is_drawn_once() {
    let open_end = Bar { until: Timestamp::MAX, ..bar(BarKind::Closure, "closed", 4_000, 0) };
    let first = vec![
        bar(BarKind::Run, "1", 500, 2_000),
        bar(BarKind::Run, "2", 1_500, 2_000),
        bar(BarKind::Slot, "3", 2_000, 3_000),
        bar(BarKind::Reservation, "maintenance", 3_000, 4_000),
        open_end,
    ];
    let second = vec![
        bar(BarKind::Run, "over", 0, 1_000),
        bar(BarKind::Run, "empty", 2_000, 2_000),
        bar(BarKind::Slot, "later", 5_000, 6_000),
    ];
    let rows = vec![Row { label: "node1".into(), bars: first }, Row { label: "node2".into(), bars: second }];
    let text = gantt(&plan(rows));
    let document = Document::parse(&text).expect("the chart is well-formed");
    assert_eq!(tooltips(&document, "run"), ["about 1", "about 2"]);
    assert_eq!(tooltips(&document, "slot"), ["about 3"]);
    assert_eq!(tooltips(&document, "reservation"), ["about maintenance"]);
    assert_eq!(tooltips(&document, "closure"), ["about closed"]);
    let title = document.root_element().first_element_child().and_then(|title| title.text());
    assert_eq!(title, Some("Plan of <evil> & ?[31m\"quoted\""));
    // Runs 1 and 2 overlap and stand below each other; promise 3 begins when both are over.
    let top = |class: &str| of_class(&document, class)[0].attribute("y").map(str::to_owned);
    assert_ne!(of_class(&document, "run")[0].attribute("y"), of_class(&document, "run")[1].attribute("y"));
    assert_eq!(top("slot"), top("run"));
}

/// What sets jobs apart shows in the chart: domains, jobs inside, best effort, fixed starts; and nodes that sleep.
#[test]
fn domains_best_effort_fixed_starts_and_sleep_show() {
    let with = |look: Look, of: Bar| Bar { look, ..of };
    let domain = Some("lyon".to_owned());
    let opens = Look { note: "domain lyon".into(), opens: domain.clone(), ..Look::default() };
    let inside = Look { note: "in lyon".into(), inside: domain, ..Look::default() };
    let first =
        vec![with(opens, bar(BarKind::Run, "42", 1_000, 4_000)), with(inside, bar(BarKind::Run, "43", 1_000, 3_000))];
    let makes_way = Look { note: "best effort".into(), makes_way: true, ..Look::default() };
    let is_fixed = Look { note: "fixed start".into(), is_fixed: true, ..Look::default() };
    let second = vec![
        with(makes_way, bar(BarKind::Run, "44", 1_000, 2_400)),
        with(is_fixed, bar(BarKind::Slot, "45", 2_500, 5_000)),
    ];
    let asleep = Bar { until: Timestamp::MAX, ..bar(BarKind::Asleep, "asleep", 500, 0) };
    let third = vec![asleep, bar(BarKind::Reservation, "course", 4_000, 5_000)];
    let row = |label: &str, bars| Row { label: label.into(), bars };
    let text = gantt(&plan(vec![row("node1", first), row("node2", second), row("node3", third)]));
    let document = Document::parse(&text).expect("the chart is well-formed");
    for (class, about) in [("makes-way", "about 44"), ("inside", "about 43"), ("asleep", "about asleep")] {
        assert_eq!(tooltips(&document, class), [about], "{class}");
    }
    let of_domain = of_class(&document, "run")[0];
    assert_eq!(of_domain.attribute("stroke"), of_class(&document, "inside")[0].attribute("fill"), "of one colour");
    assert_eq!(of_class(&document, "slot")[0].attribute("stroke"), Some("#d00000"));
    let words: Vec<&str> =
        document.descendants().filter(|node| node.has_tag_name("text")).filter_map(|node| node.text()).collect();
    for expected in ["42 domain lyon", "43 in lyon", "44 best effort", "45 fixed start", "asleep", "course"] {
        assert!(words.contains(&expected), "no `{expected}` in {words:?}");
    }
    let legend = ["planning domain", "best effort", "fixed start", "reservation", "node asleep"];
    assert!(legend.iter().all(|entry| words.contains(entry)), "{words:?}");
    assert!(!words.contains(&"node closed"), "only what there is");
}

#[test]
fn a_plan_of_a_huge_cluster_stays_readable() {
    let row = |number: u32| Row { label: format!("node{number}"), bars: vec![bar(BarKind::Run, "7", 0, 9_000)] };
    let text = gantt(&plan((0..10_000).map(row).collect()));
    let document = Document::parse(&text).expect("the chart is well-formed");
    assert_eq!(of_class(&document, "run").len(), 500);
    assert!(text.contains("and 9500 more nodes"));
}

#[test]
fn a_plan_without_a_span_is_drawn() {
    let mut chart = plan(vec![Row { label: "node1".into(), bars: vec![bar(BarKind::Run, "1", 0, 2_000)] }]);
    chart.until = chart.from;
    assert!(Document::parse(&gantt(&chart)).is_ok());
    chart.until = Timestamp::MAX;
    assert!(Document::parse(&gantt(&chart)).is_ok());
    chart.until = Timestamp::MIN;
    assert!(Document::parse(&gantt(&chart)).is_ok());
}
