//! Bounds of time and memory.

use super::support::{Server, clock, fault, job, machine, printed, run};
use muster_basl::{Limits, Outcome, Snapshot};

fn bounded(body: &str, statements: u64) -> Outcome {
    let mut machine = machine(&format!("sched_main() {{\n{body}\n}}"));
    let mut limits = Limits { statements, ..Limits::default() };
    machine.cycle(&Snapshot::default(), &clock(), &mut Server::default(), &mut limits)
}

/// PBS-X-13: ten million statements end an endless loop, also one without statements in it.
#[test]
fn endless_loops_end() {
    let expected = "p.basl:2: more than 10000000 statements in one cycle: is there an endless loop?";
    for body in ["while( 1 ) { }", "Int i; for( i = 0; 1; i = 0 ) { }", "Int i; while( !i ) { ; }"] {
        assert_eq!(fault(body), expected);
    }
}

/// PBS-X-13: how statements are counted.
#[test]
fn statements_are_counted() {
    let statements = |body: &str| bounded(body, 1000).statements;
    assert_eq!(statements(""), 0);
    assert_eq!(statements("Int i; i = 1; i = 2; ;"), 3);
    assert_eq!(statements("Int i; if( i ) { i = 1; } else { i = 2; i = 3; } i = 4;"), 4);
    // One statement, four tests, three rounds of one statement.
    assert_eq!(statements("Int i; for( i = 0; i LT 3; i++ ) { ; }"), 8);
    assert_eq!(bounded("Int i; for( i = 0; i LT 3; i++ ) { ; }", 8).fault, None);
    assert!(bounded("Int i; for( i = 0; i LT 3; i++ ) { ; }", 7).fault.is_some());
}

/// PBS-X-13: elements that are sorted or searched count.
#[test]
fn work_on_sets_counts() {
    let jobs = (0..100).map(|number| job(&number.to_string(), "Q")).collect();
    let snapshot = Snapshot { jobs, ..Snapshot::default() };
    let text = "sched_main() { Set Job js; js = ServerJobsGet(AllServersLocalHostGet()); while( 1 ) { Sort(js, JobIdGet, ASC); } }";
    let mut limits = Limits { statements: 10_000, ..Limits::default() };
    let outcome = machine(text).cycle(&snapshot, &clock(), &mut Server::default(), &mut limits);
    assert!(outcome.fault.is_some());
    assert!(outcome.statements < 10_200);
}

/// The deadline ends a cycle; it is asked about every few thousand statements.
#[test]
fn the_deadline_ends_a_cycle() {
    let mut asked = 0;
    let mut is_over = || {
        asked += 1;
        asked == 3
    };
    let mut limits = Limits { is_over: Some(&mut is_over), ..Limits::default() };
    let mut machine = machine("Int n; sched_main() {\nn = 1; while( 1 ) { n++; } }");
    let outcome = machine.cycle(&Snapshot::default(), &clock(), &mut Server::default(), &mut limits);
    assert!(outcome.is_time_over);
    assert_eq!(outcome.fault.map(|fault| fault.to_string()), Some("p.basl:2: the time of the cycle is over".into()));
    assert!((3 * 4096..4 * 4096).contains(&outcome.statements), "{}", outcome.statements);
    assert_eq!(machine.globals().0["n"], muster_basl::Saved::Int(0));
}

/// An action can take long: the deadline is looked at after each.
#[test]
fn the_deadline_is_looked_at_after_an_action() {
    let text = "sched_main() { Job j; foreach(j in ServerJobsGet(AllServersLocalHostGet())) { JobAction(j, SYNCRUN, NULLSTR); } }";
    let jobs = ["1", "2", "3"].map(|id| job(id, "Q")).into();
    let snapshot = Snapshot { jobs, ..Snapshot::default() };
    let mut server = Server::default();
    let mut is_over = || true;
    let mut limits = Limits { is_over: Some(&mut is_over), ..Limits::default() };
    let outcome = machine(text).cycle(&snapshot, &clock(), &mut server, &mut limits);
    assert_eq!((outcome.is_time_over, outcome.started, server.done.len()), (true, 1, 1));
}

#[test]
fn calls_inside_each_other_are_bounded() {
    let text = "Int down(Int n) {\nreturn(down(n + 1)); } sched_main() { down(0); }";
    let outcome = run(text, &Snapshot::default(), &mut Server::default());
    assert_eq!(
        outcome.fault.map(|fault| fault.to_string()),
        Some("p.basl:2: more than 1000 calls inside each other".into())
    );
    let locals: String = (0..4000).map(|number| format!("Int v{number};")).collect();
    let text = format!("Int down(Int n) {{ {locals} return(down(n + 1)); }} sched_main() {{ down(0); }}");
    let outcome = run(&text, &Snapshot::default(), &mut Server::default());
    assert!(outcome.fault.expect("a fault").message.contains("need too much memory"));
    let text =
        "Int down(Int n) { if( n EQ 900 ) { return(n); } return(down(n + 1)); } sched_main() { print(down(0)); }";
    assert_eq!(run(text, &Snapshot::default(), &mut Server::default()).printed, "900\n");
}

#[test]
fn sorts_inside_their_keys_are_bounded() {
    let snapshot = Snapshot { jobs: vec![job("1", "Q")], ..Snapshot::default() };
    let text = "Int key(Job j) { Sort(ServerJobsGet(AllServersLocalHostGet()), key, ASC); return(1); }
        sched_main() { Sort(ServerJobsGet(AllServersLocalHostGet()), key, ASC); }";
    let outcome = run(text, &snapshot, &mut Server::default());
    assert!(outcome.fault.expect("a fault").message.contains("more than 8 sorts and searches"));
}

#[test]
fn strings_are_bounded() {
    let message = fault("String s; s = \"ab\"; while( 1 ) { s = s + s; }");
    assert!(message.contains("the maximum is 65536"), "{message}");
    // Strings that nobody holds do not count.
    assert_eq!(
        printed(
            "Int i; String s; for( i = 0; i LT 5000; i++ ) { s = \"x\"; while( s LT \"xxxxxxxxxxxxxxxxxxxxxxx\" ) { s = s + \"x\"; } } print(i);"
        ),
        ["5000"]
    );
    let text = "String grow(String s) { if( s LT \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\" ) { ; } return(s + \"\"); }
        Int deep(Int n, String s) { String t; t = s + \"y\"; if( n EQ 0 ) { return(0); } return(deep(n - 1, t) + 1); }
        sched_main() { String s; Int i; s = \"0123456789abcdef\"; for( i = 0; i LT 12; i++ ) { s = s + s; }
        s = grow(s); for( i = 0; i LT 5; i++ ) { deep(900, \"x\"); } print(deep(1, s)); }";
    let outcome = run(text, &Snapshot::default(), &mut Server::default());
    assert!(outcome.fault.expect("a fault").message.contains("the maximum is 65536"));
}

#[test]
fn strings_of_all_calls_together_are_bounded() {
    let text = "Int deep(Int n, String s) { String t; String u; String v; t = s + \"y\"; u = s + \"z\"; v = s + \"v\"; if( n EQ 0 ) { return(0); } return(deep(n - 1, s)); }
        sched_main() { String s; Int i; s = \"0123456789abcdef\"; for( i = 0; i LT 11; i++ ) { s = s + s; } print(deep(900, s + s + s)); }";
    let outcome = run(text, &Snapshot::default(), &mut Server::default());
    assert!(outcome.fault.is_some_and(|fault| fault.message.contains("65536")));
    let text = text.replace("s + s + s", "s");
    let outcome = run(&text, &Snapshot::default(), &mut Server::default());
    assert_eq!(
        outcome.fault.map(|fault| fault.message),
        Some("all strings together have more than 67108864 bytes".into())
    );
    // After the calls they are given up.
    let text = text
        .replace("print(deep(900, s))", "for( i = 0; i LT 5; i++ ) { print(deep(500, s)); }")
        .replace("LT 11", "LT 10");
    assert_eq!(run(&text, &Snapshot::default(), &mut Server::default()).printed, "0\n0\n0\n0\n0\n");
}

#[test]
fn a_call_that_returned_holds_no_strings() {
    let declared: String = (0..800).map(|number| format!("String v{number};")).collect();
    let joined: String = (0..800).map(|number| format!("v{number} = s + \"{number}\";")).collect();
    let text = format!(
        "Int deep(Int n, String s) {{ String t; String u; t = s + \"y\"; u = s + \"z\"; if( n EQ 0 ) {{ return(0); }} return(deep(n - 1, s)); }}
        sched_main() {{ {declared} String s; Int i; s = \"0123456789abcdef\"; for( i = 0; i LT 11; i++ ) {{ s = s + s; }}
        deep(700, s); {joined} print(i); }}"
    );
    let outcome = run(&text, &Snapshot::default(), &mut Server::default());
    assert_eq!((outcome.fault, outcome.printed.as_str()), (None, "11\n"));
}

#[test]
fn what_is_printed_is_bounded() {
    let outcome = bounded(
        "String s; Int i; s = \"0123456789abcdef\"; for( i = 0; i LT 8; i++ ) { s = s + s; } while( i LT 1000 ) { print(s); i++; } i = 7;",
        100_000,
    );
    assert_eq!((outcome.fault, outcome.is_printed_cut), (None, true));
    assert!((1_000_000..=1 << 20).contains(&outcome.printed.len()), "{}", outcome.printed.len());
}

#[test]
fn queues_that_filters_make_are_bounded() {
    let text = "sched_main() { Que q; foreach(q in ServerQueuesGet(AllServersLocalHostGet())) { break; }
        while( 1 ) { QueFilter(q, JobIdGet, OP_EQ, \"1\"); } }";
    let snapshot = Snapshot { queues: vec![super::support::queue("a")], ..Snapshot::default() };
    let outcome = run(text, &snapshot, &mut Server::default());
    assert!(outcome.fault.expect("a fault").message.contains("more than 100000 queues"));
}
