//! Bounds that hold for all kinds of programs.

use super::support::{TEN, bench_with, short, site};
use muster_pbs_script::{
    action::{Action, Code},
    cycle::{Bounds, Docket, End},
    site::Site as _,
};

fn comment(text: &str) -> Action {
    Action::Comment { job: "1".into(), text: text.into() }
}

/// A cycle has a number of actions, of requests and of log lines.
#[test]
fn a_cycle_is_bounded() {
    let bounds = Bounds { actions: 2, requests: 3, lines: 2, ..short() };
    let mut site = site(&["1"]);
    let mut docket = Docket::new(&mut site, &bounds);
    assert!(docket.act(comment("a")).is_ok() && docket.act(comment("b")).is_ok());
    assert_eq!(docket.act(comment("c")).expect_err("too many").code, Code::TooMany);
    assert!((0..3).all(|_| docket.count().is_ok()));
    assert_eq!(docket.count().expect_err("too many").code, Code::TooMany);
    docket.lines.add("1\n2\n3\n\u{7}4");
    assert_eq!(docket.lines.clone().into_list(), ["1", "2", "2 more lines were left out"]);
    assert_eq!(docket.decisions.len(), 2);
    assert_eq!(site.job("1").expect("a job").comment.as_deref(), Some("b"));
}

/// Texts with control characters, or without end, are refused before the site sees them.
#[test]
fn senseless_texts_are_refused() {
    let bounds = short();
    let mut site = site(&["1"]);
    let before = site.state().clone();
    let mut docket = Docket::new(&mut site, &bounds);
    for action in [
        comment("a\nb"),
        comment(&"x".repeat(5000)),
        Action::Run { job: "1\0".into(), place: None },
        Action::Run { job: "1".into(), place: Some("a\u{1b}[2J".into()) },
        Action::Reserve { number: 0, resources: vec!["nodes=1\n".into()] },
    ] {
        assert_eq!(docket.act(action).expect_err("refused").code, Code::BadRequest);
    }
    assert!(docket.decisions.is_empty());
    assert_eq!(site.state(), &before);
}

/// PBS-X-13: what BaSL prints is bounded as well.
#[test]
fn a_program_that_prints_without_end_is_cut() {
    let text = "sched_main() { Int i; for( i = 0; i LT 100000; i++ ) { print(\"abcdefghijklmnopqrstuvwxyz\"); } }";
    let mut bench = bench_with("basl:p", &[("p", text)], Bounds { lines: 10, ..short() });
    let report = bench.cycle(TEN, &mut site(&[]));
    assert_eq!((report.end, report.lines.len()), (End::Done(None), 11));
}
