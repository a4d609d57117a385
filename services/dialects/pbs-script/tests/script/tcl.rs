//! Tcl programs in a real interpreter.

use super::support::{
    Bench, TEN, bench, bench_with, folder, has_tcl, is_gone, job, node, poll_for, queue, setup, short, site, started,
    state, state_of,
};
use muster_pbs_plan::state_file::{JobState, State};
use muster_pbs_script::{
    action::{Action, Change},
    cycle::{Bounds, End},
    cycles::Cycles,
    policy_word::ProgramWord,
    scheduler::{Hour, Report, Scheduler},
    state_site::StateSite,
    trigger::Command,
};
use std::{fs, time::Duration};

const W13_INIT: &str = "set limit 2.0; set cycle 0";
const W13_BODY: &str = r#"incr cycle
set mom [openrm node1]
if {$mom < 0} { puts "cycle $cycle: no monitor, errno $pbs_errno"; return }
addreq $mom loadave
set load [getreq $mom]
closerm $mom
if {$load > $limit} { puts "cycle $cycle: load $load is above $limit"; return }
set best {}
foreach job [pbsselstat] {
    set cput 0
    foreach pair [lindex $job 1] {
        if {[lindex $pair 0] eq "Resource_List:cput"} { set cput [datetime [lindex $pair 1]] }
    }
    lappend best [list $cput [lindex $job 0]]
}
foreach entry [lrange [lsort -integer -index 0 $best] 0 1] {
    puts "cycle $cycle: [lindex $entry 1] -> [pbsrunjob [lindex $entry 1]]"
}
"#;

fn body(text: &str) -> Bench {
    bench("tcl:body", &[("body", text)])
}

/// What a body says in one cycle, in lines.
fn said(text: &str, site: &mut StateSite) -> (Vec<String>, Report) {
    let mut bench = body(&format!("{text}\nputs THE-END"));
    let report = bench.cycle(TEN, site);
    assert_eq!(report.end, End::Done(None), "{report:?}");
    let printed = bench.printed("THE-END\n");
    (printed.lines().filter(|line| *line != "THE-END").map(str::to_owned).collect(), report)
}

/// W13. PBS-X-14, PBS-X-15, PBS-X-16: variables live from cycle to cycle, and the print file has what was printed.
#[test]
fn the_two_shortest_jobs_start_while_the_load_is_low() {
    if !has_tcl() {
        return;
    }
    let jobs = vec![
        job("t1", "batch", &[("cput", "02:00:00")]),
        job("t2", "batch", &[("cput", "00:10:00")]),
        job("t3", "batch", &[]),
        job("t4", "batch", &[("cput", "00:30:00")]),
    ];
    let mut site = StateSite::new(state(vec![queue("batch")], vec![node("node1", "free", Some("1.5"))], jobs));
    let mut bench = bench("tcl:body,init", &[("body", W13_BODY), ("init", W13_INIT)]);
    let first = bench.cycle(TEN, &mut site);
    assert_eq!((first.end.clone(), started(&first)), (End::Done(None), vec!["t3", "t2"]));
    // Two starts bring no further cycle by themselves.
    assert_eq!(bench.scheduler.step(Hour::prime(TEN), &mut site), None);
    let second = bench.cycle(TEN + 600, &mut site);
    assert_eq!((second.begun.reason, started(&second)), (Command::Time, vec!["t4", "t1"]));
    site.change(|state| state.nodes[0] = node("node1", "free", Some("3")));
    let third = bench.on(Command::New, TEN + 700, &mut site);
    assert!(third.decisions.is_empty() && third.lines.is_empty(), "{third:?}");
    let printed = bench.printed("cycle 3: load 3.0 is above 2.0\n");
    assert_eq!(
        printed,
        "cycle 1: t3 -> 0\ncycle 1: t2 -> 0\ncycle 2: t4 -> 0\ncycle 2: t1 -> 0\ncycle 3: load 3.0 is above 2.0\n"
    );
    // Without the monitor nothing starts.
    site.change(|state| state.nodes[0].name = "other".into());
    bench.on(Command::New, TEN + 700, &mut site);
    bench.printed("cycle 4: no monitor, errno 15008\n");
}

/// PBS-X-15: an error ends the cycle, is logged with its stack, and does not end the interpreter; what was accepted
/// stays.
#[test]
fn an_error_ends_the_cycle_only() {
    if !has_tcl() {
        return;
    }
    let text = "incr cycle\nproc inner {} { error \"no idea\" }\npbsrunjob $cycle\nif {$cycle == 1} { inner }\nputs [pid]/$cycle";
    let mut bench = body(text);
    let mut site = site(&["1", "2", "3"]);
    let report = bench.cycle(TEN, &mut site);
    assert_eq!(report.end, End::Fault("no idea".into()));
    assert_eq!(started(&report), ["1"]);
    assert!(report.lines.iter().any(|line| line.contains("(procedure \"inner\" line 1)")), "{:?}", report.lines);
    assert!(!report.gave_up);
    let report = bench.cycle(TEN, &mut site);
    assert_eq!((report.begun.reason, started(&report)), (Command::Recyc, vec!["2"]));
    let first = bench.printed("/2\n");
    bench.cycle(TEN, &mut site);
    let both = bench.printed("/3\n");
    let numbers: Vec<&str> = both.lines().filter_map(|line| line.split('/').next()).collect();
    assert_eq!((numbers[0], first.trim_end().ends_with("/2")), (numbers[1], true), "one process: {both}");
    for (bad, fault) in [
        ("break", "break or continue outside of a loop, or an unknown return code: 3"),
        ("nonsense 1", "invalid command name \"nonsense\""),
        ("pbsrunjob", "wrong # args: should be \"pbsrunjob id ?where?\""),
        ("set x {", "missing close-brace"),
        ("datetime soon", "expected YYMMDDhhmmss or HH:MM:SS, found `soon`"),
    ] {
        assert_eq!(body(bad).cycle(TEN, &mut site).end, End::Fault(fault.into()), "{bad}");
    }
}

/// PBS-X-14: INIT has no connection, and its error ends nothing; `return` at top level ends the body.
#[test]
fn the_first_script_has_no_connection() {
    if !has_tcl() {
        return;
    }
    let init =
        "puts \"[pbsrunjob 1] $pbs_errno [pbsselstat]. [openrm node1] [datetime 00:10:00] [pbsconnect]\"\nerror early";
    let mut bench =
        bench("tcl:body,init", &[("body", "puts \"now [pbsrunjob 1]\"\nreturn\nputs never"), ("init", init)]);
    let mut site = site(&["1"]);
    let report = bench.cycle(TEN, &mut site);
    assert_eq!((report.end.clone(), started(&report)), (End::Done(None), vec!["1"]));
    assert!(report.lines[0].starts_with("error in the script INIT: early"), "{:?}", report.lines);
    assert_eq!(bench.printed("now 0\n"), "-1 15034 . -1 600 -1\nnow 0\n");
}

/// PBS-X-15: SIGHUP reads the scripts again and restarts the interpreter; a script that is missing changes nothing.
#[test]
fn a_reload_restarts_the_interpreter() {
    if !has_tcl() {
        return;
    }
    let mut bench = body("incr n; puts \"old $n\"");
    let mut site = site(&[]);
    bench.cycle(TEN, &mut site);
    let path = bench.folder.path().join("body");
    fs::remove_file(&path).expect("a file");
    assert!(bench.scheduler.reload(TEN).expect_err("a missing file")[0].contains("body: No such file"));
    bench.on(Command::New, TEN, &mut site);
    bench.printed("old 2\n");
    fs::write(&path, "incr n; puts \"new $n\"").expect("a file");
    // Not read before it is asked for.
    bench.on(Command::New, TEN, &mut site);
    bench.printed("old 3\n");
    bench.scheduler.reload(TEN).expect("scripts");
    bench.on(Command::New, TEN, &mut site);
    bench.printed("new 1\n");
}

/// PBS-X-14: `-t` runs at the end; the process ends with the scheduler.
#[test]
fn the_last_script_runs_at_the_end() {
    if !has_tcl() {
        return;
    }
    let folder = folder(&[("body", "set n 5; puts [pid]."), ("last", "puts \"bye $n [pbsrunjob 1]\"")]);
    let mut setup = setup(folder.path(), short());
    setup.termination = Some("last".into());
    let word = ProgramWord::parse("tcl:body").expect("a policy");
    let mut scheduler = Scheduler::new(&word, setup, Cycles::new(true, 0), TEN).expect("a scheduler");
    scheduler.step(Hour::prime(TEN), &mut site(&["1"])).expect("a cycle");
    let look = || fs::read_to_string(folder.path().join("sched_out")).unwrap_or_default();
    let printed = poll_for("a number", look, |text| text.ends_with(".\n"));
    scheduler.quit(TEN);
    let printed_last = poll_for("bye", look, |text| text.contains("bye"));
    assert!(printed_last.ends_with("bye 5 -1\n"), "{printed_last}");
    let process = printed.trim_end_matches(".\n").parse().expect("a number");
    poll_for("its end", || is_gone(process), |is_gone| *is_gone);
}

/// PBS-X-17: monitors answer by handle and in order; what is not closed is taken back with a warning.
#[test]
fn monitors_answer() {
    if !has_tcl() {
        return;
    }
    let text = r#"
        set a [openrm node1]; set b [openrm node1 15003]; set c [openrm nobody]
        puts "$a $b $c $pbs_errno"
        puts "[addreq $a ncpus] [addreq $a color] [addreq 99 ncpus] $pbs_errno"
        puts "[allreq loadave] <[flushreq]> [activereq]"
        puts "[getreq $a]|[getreq $a]|[getreq $a]|[getreq $a]|$pbs_errno"
        fullresp true
        puts "[getreq $b] [activereq]"
        puts "[configrm $a file] $pbs_errno <[downrm $a]> $pbs_errno"
        closerm $a
        puts "$pbs_errno [addreq $a ncpus]"
    "#;
    let (lines, report) = said(text, &mut site(&[]));
    assert_eq!(
        lines,
        [
            "0 1 -1 15008",
            "0 0 -1 15004",
            "2 <> 0",
            "4|? 15201|1.5||15004",
            "loadave=1.5 -1",
            "-1 15029 <> 15029",
            "0 -1"
        ]
    );
    assert_eq!(report.lines, ["warning: the handle of node1 was not closed with closerm"]);
}

/// PBS-X-18: what there is, as lists of names, attributes and texts.
#[test]
fn everything_has_a_status() {
    if !has_tcl() {
        return;
    }
    let mut odd = job("1", "batch", &[("ncpus", "2"), ("mem", "100mb"), ("cput", "90")]);
    odd.name = Some("a {b \\ \"c $x [exit]".into());
    odd.comment = Some("two\nlines;".into());
    let mut held = job("2", "batch", &[]);
    held.state = State::H;
    let routed = job("3", "route", &[]);
    let mut route = queue("route");
    route.kind = Some("route".into());
    let queues = vec![queue("batch"), route];
    let mut site = StateSite::new(state(queues, vec![node("node1", "free", Some("1.5"))], vec![odd, held, routed]));
    let text = r#"
        proc attribute {name attributes} {
            foreach pair $attributes { if {[lindex $pair 0] eq $name} { return [lindex $pair 1] } }
        }
        lassign [pbsstatserv] name attributes text
        puts "$name [attribute state_count $attributes] [attribute server_state $attributes] <$text>"
        foreach one [pbsstatque] { puts "[lindex $one 0] [attribute queue_type [lindex $one 1]] [attribute total_jobs [lindex $one 1]]" }
        foreach one [pbsstatnode] { puts "[lindex $one 0] [attribute state [lindex $one 1]] [attribute loadave [lindex $one 1]]" }
        foreach one [pbsstatjob] { puts "[lindex $one 0] [attribute job_state [lindex $one 1]] [attribute queue [lindex $one 1]]" }
        foreach one [pbsselstat] {
            set attributes [lindex $one 1]
            puts "[llength $one] [lindex $one 0] [attribute Resource_List:mem $attributes] [attribute Resource_List:cput $attributes]"
            puts "[attribute Job_Name $attributes]"
            puts "[attribute comment $attributes]"
        }
    "#;
    let (lines, _) = said(text, &mut site);
    assert_eq!(
        lines,
        [
            "localhost Transit:0 Queued:2 Held:1 Waiting:0 Running:0 Exiting:0 Scheduling <>",
            "batch Execution 2",
            "route Route 1",
            "node1 free 1.5",
            "1 Q batch",
            "2 H batch",
            "3 Q route",
            "3 1 102400kb 00:01:30",
            "a {b \\ \"c $x [exit]",
            "two",
            "lines;",
        ]
    );
}

/// PBS-X-19: what can be done, and what `pbs_errno` says if it was refused.
#[test]
fn actions_are_answered() {
    if !has_tcl() {
        return;
    }
    let mut site = StateSite::new(state(
        vec![queue("batch"), queue("other")],
        vec![node("node1", "free", None), node("node2", "free", None), node("node3", "down", None)],
        ["1", "2", "3"].map(|id| job(id, "batch", &[])).into(),
    ));
    let text = r#"
        puts "[pbsrunjob 1 node1] $pbs_errno [pbsrunjob 1] $pbs_errno [pbsrunjob 9] $pbs_errno [pbsrunjob 2 node3] $pbs_errno"
        puts "[pbsrunjob 2 node1] $pbs_errno [pbsasyrunjob 2 node2] [pbsrerunjob 2] [pbsrerunjob 2] $pbs_errno"
        puts "[pbsholdjob 2] [pbsrunjob 2] $pbs_errno [pbsmovejob 2 other] [pbsmovejob 2 nowhere] $pbs_errno [pbsmovejob 3] $pbs_errno"
        puts "[pbsalterjob 2 {{Priority 5} {Resource_List cput 1:00:00}}] [pbsalterjob 2 {{Resource_List cput soon}}] $pbs_errno"
        puts "[pbsalterjob 2 {{comment {a b} }}] [pbsalterjob 2 {{Color {} red}}] $pbs_errno [pbsalterjob 2 {}] $pbs_errno"
        puts "[pbsqstop batch] [pbsqdisable batch] [pbsmovejob 2 batch] $pbs_errno [pbsqenable batch] [pbsqstart none] $pbs_errno"
        puts "[pbsrescquery {nodes nodes=2 nodes=node3}] [pbsrescquery color] $pbs_errno"
        set r [pbsrescreserve 0 {nodes=1}]
        puts "$r [pbsrescquery {nodes}] [pbsrescreserve 0 nodes=5] $pbs_errno [pbsrescrelease $r] [pbsrescrelease $r] $pbs_errno"
        puts "[pbsdeljob 3] [pbsdeljob 3] $pbs_errno"
        pbsdisconnect
        puts "[pbsrunjob 2] $pbs_errno <[pbsstatjob]> $pbs_errno [pbsconnect elsewhere] $pbs_errno [pbsconnect] [pbsstatque]"
    "#;
    let (lines, report) = said(text, &mut site);
    let expected = [
        "0 0 -1 15016 -1 15001 -1 15044",
        "-1 15044 0 0 -1 15016",
        "0 -1 15016 0 -1 15018 -1 15018",
        "0 -1 15014",
        "0 -1 15002 -1 15004",
        "0 0 -1 15021 0 -1 15018",
        "{1 1 0 1} {1 1 0 1} {0 0 0 1}  15035",
    ];
    assert_eq!(lines[..7], expected);
    assert_eq!(lines[7], "1 {0 1 1 1} -1 15044 0 -1 15004");
    assert_eq!(lines[8], "0 -1 15001");
    assert!(lines[9].starts_with("-1 15034 <> 15034 -1 15008 0 {batch "), "{}", lines[9]);
    assert_eq!((state_of(&site, "1"), state_of(&site, "2")), (State::R, State::H));
    let altered = Action::Alter {
        job: "2".into(),
        changes: vec![
            Change { name: "Priority".into(), resource: None, value: "5".into() },
            Change { name: "Resource_List".into(), resource: Some("cput".into()), value: "1:00:00".into() },
        ],
    };
    assert!(report.decisions.iter().any(|decision| decision.action == altered && decision.answer.is_ok()));
}

/// PBS-X-20: now is the time of the cycle. TEN is 10:00 on a Friday.
#[test]
fn times_are_read() {
    if !has_tcl() {
        return;
    }
    let text = r#"
        puts "[datetime] [datetime 980515100000] [datetime 1260101000000] [datetime 01:30:00] [datetime 00:90]"
        puts "[datetime Fri 04:30:00] [datetime Sat 04:30:00] [datetime Thr 23:59:59] [datetime Thu 23:59:59]"
        puts [strftime "%Y-%m-%d %H:%M:%S %a" [datetime]]
        puts "[catch {datetime Someday 1:00:00} message] $message"
        puts "[catch {strftime %! 0} message]"
    "#;
    let (lines, _) = said(text, &mut site(&[]));
    let day = 86_400;
    let friday = TEN - 10 * 3600 + 4 * 3600 + 1800;
    let thursday = TEN - 10 * 3600 + 7 * day - 1;
    assert_eq!(lines[0], format!("{TEN} {TEN} 1767225600 5400 90"));
    assert_eq!(lines[1], format!("{friday} {} {thursday} {thursday}", friday + day));
    assert_eq!(lines[2], "1998-05-15 10:00:00 Fri");
    assert_eq!(lines[3], "1 expected a day and a time, as Fri 04:30:00, found `Someday 1:00:00`");
    assert_eq!(lines[4], "1");
}

/// PBS-X-20, PBS-T: local times are those of the site's zone.
#[test]
fn times_are_local() {
    if !has_tcl() {
        return;
    }
    let folder =
        folder(&[("body", "puts \"[strftime %H:%M [datetime]] [datetime Fri 12:00:00] [clock format 0 -format %H]\"")]);
    let mut setup = setup(folder.path(), short());
    setup.zone = Some("Europe/Zurich".into());
    let word = ProgramWord::parse("tcl:body").expect("a policy");
    let mut scheduler = Scheduler::new(&word, setup.clone(), Cycles::new(true, 0), TEN).expect("a scheduler");
    scheduler.step(Hour::prime(TEN), &mut site(&[])).expect("a cycle");
    let look = || fs::read_to_string(folder.path().join("sched_out")).unwrap_or_default();
    assert_eq!(poll_for("a line", look, |text| text.ends_with('\n')), format!("12:00 {TEN} 01\n"));
    setup.zone = Some("Mars/Olympus".into());
    let refused = Scheduler::new(&word, setup, Cycles::new(true, 0), TEN).expect_err("no such zone");
    assert_eq!(refused, ["there is no time zone Mars/Olympus"]);
}

/// PBS-C-13, PBS-X-14: a loop is ended with all that it started, and the interpreter starts again after a pause, with
/// INIT.
#[test]
fn a_loop_is_ended_at_the_deadline() {
    if !has_tcl() {
        return;
    }
    let text = "pbsrunjob 1\nputs \"[pid] [exec sh -c {sleep 1000 >/dev/null 2>&1 & echo $!}].\"\nflush stdout\nif {![file exists go]} { while 1 {} }";
    let bounds = Bounds { cycle: Duration::from_secs(2), ..short() };
    let mut bench = bench_with("tcl:body,init", &[("body", text), ("init", "puts init")], bounds);
    let mut site = site(&["1"]);
    let report = bench.cycle(TEN, &mut site);
    assert_eq!(report.end, End::TimeOver("the cycle took longer than 2 s".into()));
    assert_eq!((started(&report), state_of(&site, "1")), (vec!["1"], State::R));
    let printed = bench.printed(".\n");
    let numbers = printed.lines().last().expect("a line").trim_end_matches('.').split(' ');
    for process in numbers.map(|number| number.parse().expect("a number")) {
        poll_for("its end", || is_gone(process), |is_gone| *is_gone);
    }
    fs::write(bench.folder.path().join("go"), "").expect("a file");
    assert_eq!(bench.scheduler.step(Hour::prime(TEN), &mut site), None);
    let report = bench.cycle(TEN + 1, &mut site);
    assert_eq!((report.end, report.gave_up), (End::Done(None), false));
    assert_eq!(bench.printed("init\n").matches("init").count(), 2);
}

/// PBS-X-24: an interpreter that ends is started again; after five failures in a row scheduling is off.
#[test]
fn an_interpreter_that_ends_is_started_again() {
    if !has_tcl() {
        return;
    }
    let mut bench = body("if {![file exists go]} { puts stderr {that was it}; exit 3 }");
    let mut site = site(&[]);
    let report = bench.cycle(TEN, &mut site);
    let End::Failed(what) = &report.end else { panic!("{report:?}") };
    assert!(what.starts_with("the interpreter is gone: it exited with status 3"), "{what}");
    let mut now = TEN;
    for pause in [1, 2, 4] {
        assert_eq!(bench.scheduler.due(), Some(now + pause));
        now += pause;
        assert!(bench.cycle(now, &mut site).end.is_failure());
    }
    let report = bench.cycle(now + 8, &mut site);
    assert!(report.gave_up && !bench.scheduler.cycles().is_scheduling());
    assert_eq!((bench.scheduler.due(), bench.scheduler.step(Hour::prime(now + 6000), &mut site)), (None, None));
    fs::write(bench.folder.path().join("go"), "").expect("a file");
    bench.scheduler.set_scheduling(true);
    assert_eq!(bench.cycle(now + 9, &mut site).end, End::Done(None));
}

/// A program that takes all memory harms itself only, and one that lies about the protocol gets no further.
#[test]
fn leaks_and_lies_harm_nobody() {
    if !has_tcl() {
        return;
    }
    let mut site = site(&["1"]);
    let bounds = Bounds { memory_bytes: 200 << 20, ..short() };
    let leak = "set x [string repeat y 1000000]\nwhile 1 { lappend all \"$x[incr n]\" }";
    let report = bench_with("tcl:body", &[("body", leak)], bounds).cycle(TEN, &mut site);
    assert!(matches!(report.end, End::Failed(_)), "{report:?}");
    for (lie, end) in [
        (
            "::muster::say [list end done {}]; ::muster::say [list end done {}]",
            "the interpreter spoke between two cycles",
        ),
        (
            "puts $::muster::channel [string repeat x 3000000]; flush $::muster::channel; gets $::muster::channel",
            "the interpreter sent more than 1048576 bytes at once",
        ),
    ] {
        let mut bench = body(lie);
        bench.scheduler.note(Command::Cmd);
        let next = || bench.on(Command::Cmd, TEN, &mut site).end;
        // The network may bring the surplus a little later.
        let seen = poll_for("the failure", next, |seen| *seen != End::Done(None));
        assert_eq!(seen, End::Failed(end.into()), "{lie}");
    }
    let (lines, _) = said("puts [catch {::muster::ask \"no\nsuch\\ \" {a {b}} } message]/$message", &mut site);
    assert_eq!(lines, ["1/wrong # args for \"no", "such \", or no such command"]);
    assert_eq!(state_of(&site, "1"), State::Q);
}

/// PBS-X-16: the environment is clean, standard input is empty, and the secret is nowhere to be read.
#[test]
fn the_interpreter_stands_in_a_clean_room() {
    if !has_tcl() {
        return;
    }
    let text =
        "puts [lsort [array names env]]\nputs <[read stdin]>\nputs [pwd]\nputs [info exists secret][info exists port]";
    let mut bench = body(text);
    bench.cycle(TEN, &mut site(&[]));
    let printed = bench.printed("\n00\n");
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0], "LC_ALL PATH");
    assert_eq!(lines[1], "<>");
    assert_eq!(lines[2], bench.folder.path().canonicalize().expect("a folder").display().to_string());
}

/// PBS-X-16: texts of users cross unharmed, whatever is in them.
#[test]
fn texts_of_users_stay_texts() {
    if !has_tcl() {
        return;
    }
    let names = [
        "a b",
        "{",
        "}",
        "\\",
        "\"",
        "$x",
        "[exit]",
        "#",
        ";",
        "a\\nb",
        "\u{e9}\u{4e2d}",
        " ",
        "{a} b",
        "a\\ {",
        "\u{1}",
    ];
    let jobs: Vec<JobState> = names
        .iter()
        .enumerate()
        .map(|(number, name)| JobState { name: Some((*name).into()), ..job(&number.to_string(), "batch", &[]) })
        .collect();
    let mut site = StateSite::new(state(vec![queue("batch")], Vec::new(), jobs));
    let text = "foreach job [pbsstatjob] { foreach pair [lindex $job 1] { if {[lindex $pair 0] eq {Job_Name}} { pbsalterjob [lindex $job 0] [list [list comment {} \"<[lindex $pair 1]>\"]] } } }";
    let (_, report) = said(text, &mut site);
    for (decision, name) in report.decisions.iter().zip(names) {
        let Action::Alter { changes, .. } = &decision.action else { panic!("{decision:?}") };
        assert_eq!(changes[0].value, format!("<{name}>"));
    }
    // The last one is no text that anybody means, and is refused.
    assert_eq!(report.decisions.len(), names.len() - 1);
}
