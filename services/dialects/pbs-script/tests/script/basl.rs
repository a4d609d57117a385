//! BaSL programs, with their cycles.

use super::support::{Bench, TEN, bench, comments, job, node, queue, setup, short, site, started, state};
use muster_pbs_plan::state_file::{JobState, State};
use muster_pbs_script::{
    action::Code,
    cycle::{Bounds, End},
    cycles::Cycles,
    policy_word::ProgramWord,
    scheduler::{Hour, Scheduler},
    state_site::StateSite,
    trigger::Command,
};
use std::{fs, time::Duration};

const A: &str = r#"Int CAP;
Size memOf(Job j) { Size m; m = JobSizeResReqGet(j, "mem"); return(m); }
Int runningOf(Set Job js, String who) {
  Job k; Int n;
  n = 0;
  foreach(k in js) { if( JobStateGet(k) EQ RUNNING AND JobEffectiveUserNameGet(k) EQ who ) { n++; } }
  return(n);
}
CAP = 2;
sched_main() {
  Server s; Set Job all; Job j; String who; Int used;
  s = AllServersLocalHostGet();
  all = ServerJobsGet(s);
  Sort(all, memOf, ASC);
  foreach(j in all) {
    if( JobStateGet(j) NEQ QUEUED ) { continue; }
    who = JobEffectiveUserNameGet(j);
    used = runningOf(all, who);
    if( used GE CAP ) { JobAction(j, MODIFYATTR, "comment=user cap"); continue; }
    JobAction(j, SYNCRUN, NULLSTR);
  }
}
"#;

const B: &str = r#"Int TURN; Int STARTED;
Que queByName(Set Que qs, String name) {
  Que q;
  foreach(q in qs) { if( QueNameGet(q) EQ name ) { return(q); } }
  return(NOQUE);
}
Int startFirst(Que q) {
  Que waiting; Set Job js; Job j;
  waiting = QueFilter(q, JobStateGet, OP_EQ, QUEUED);
  js = QueJobsGet(waiting);
  foreach(j in js) { if( JobAction(j, SYNCRUN, NULLSTR) EQ SUCCESS ) { return(SUCCESS); } }
  return(FAIL);
}
TURN = 0; STARTED = 0;
sched_main() {
  Server s; Set Que qs; Que first; Que second; Int tries;
  s = AllServersLocalHostGet();
  qs = ServerQueuesGet(s);
  tries = tries + 1;
  if( TURN EQ 0 ) { first = queByName(qs, "fast"); second = queByName(qs, "slow"); }
  else { first = queByName(qs, "slow"); second = queByName(qs, "fast"); }
  TURN = 1 - TURN;
  if( startFirst(first) EQ SUCCESS ) { STARTED++; }
  else { if( startFirst(second) EQ SUCCESS ) { STARTED++; } }
  print(tries); print(STARTED);
}
"#;

const C: &str = r#"Range DateTime DAY; Int SHORT;
Int wallOf(Job j) { Int w; w = JobIntResReqGet(j, "walltime"); return(w); }
CNode calmest(Set CNode ns) {
  CNode n; Float load; Float best; CNode pick;
  best = 99.0; pick = NOCNODE;
  foreach(n in ns) {
    load = CNodeLoadAveGet(n);
    if( CNodeStateGet(n) EQ CNODE_FREE AND load GE 0.0 AND load LT best ) { best = load; pick = n; }
  }
  return(pick);
}
SHORT = 3600;
DAY = ((08:00:00), (17:59:59));
sched_main() {
  Server s; Set Job js; Job j; Set CNode ns; CNode n; String host; DateTime now; Int day; Int w;
  s = AllServersLocalHostGet(); js = ServerJobsGet(s); ns = AllNodesGet();
  now = datetimeGet(); day = FALSE;
  switch(now) { case in DAY: { day = TRUE; } }
  if( day ) { Sort(js, wallOf, ASC); } else { Sort(js, wallOf, DESC); }
  foreach(j in js) {
    if( JobStateGet(j) NEQ QUEUED ) { continue; }
    w = wallOf(j);
    if( day AND (w LT 0 OR w GT SHORT) ) { continue; }
    n = calmest(ns);
    if( n EQ NOCNODE ) { break; }
    host = CNodeNameGet(n);
    JobAction(j, SYNCRUN, host);
  }
}
"#;

fn of(user: &str, job: JobState) -> JobState {
    JobState { user: user.into(), ..job }
}

fn program(text: &str) -> Bench {
    bench("basl:program.basl", &[("program.basl", text)])
}

/// W12 A. PBS-X-08: getters see the starts of the same cycle.
#[test]
fn the_smallest_jobs_start_until_their_users_have_two() {
    let with = |id: &str, user: &str, memory: Option<&str>| {
        of(user, job(id, "batch", memory.map(|memory| ("mem", memory)).as_slice()))
    };
    let running = JobState { state: State::R, ..with("r1", "bob", Some("250mb")) };
    let jobs = vec![
        running,
        with("k1", "ann", Some("400mb")),
        with("k2", "ann", Some("100mb")),
        with("k3", "bob", Some("200mb")),
        with("k4", "ann", Some("50mb")),
        with("k5", "bob", None),
        with("k6", "ann", Some("300mb")),
    ];
    let mut site = StateSite::new(state(vec![queue("batch")], Vec::new(), jobs));
    let report = program(A).cycle(TEN, &mut site);
    assert_eq!(report.end, End::Done(None));
    assert_eq!(started(&report), ["k5", "k4", "k2"]);
    assert_eq!(comments(&report), [("k3", "user cap"), ("k6", "user cap"), ("k1", "user cap")]);
    assert_eq!(site.job("k3").expect("a job").comment.as_deref(), Some("user cap"));
}

fn two_queues() -> StateSite {
    let jobs = [("a1", "fast"), ("a2", "fast"), ("a3", "fast"), ("b1", "slow")].map(|(id, queue)| job(id, queue, &[]));
    StateSite::new(state(vec![queue("fast"), queue("slow")], Vec::new(), jobs.into()))
}

/// W12 B. PBS-C-02: one CMD trigger gives five cycles, the last four of them after one start each. PBS-X-07.
#[test]
fn two_queues_take_turns_over_five_cycles() {
    let mut bench = program(B);
    let mut site = two_queues();
    bench.scheduler.set_scheduling(false);
    bench.scheduler.set_scheduling(true);
    let mut reports = Vec::new();
    while let Some(report) = bench.scheduler.step(Hour::prime(TEN), &mut site) {
        reports.push(report);
    }
    let reasons: Vec<Command> = reports.iter().map(|report| report.begun.reason).collect();
    assert_eq!(reasons, [Command::Cmd, Command::Recyc, Command::Recyc, Command::Recyc, Command::Recyc]);
    let jobs: Vec<String> = reports.iter().map(|report| started(report).join(" ")).collect();
    assert_eq!(jobs, ["a1", "b1", "a2", "a3", ""]);
    let printed: Vec<String> = reports.iter().map(|report| report.lines.join(" ")).collect();
    assert_eq!(printed, ["1 1", "1 2", "1 3", "1 4", "1 4"]);
}

/// PBS-X-07: globals are handed out after each cycle, and a restarted scheduler takes them back.
#[test]
fn globals_survive_a_restart() {
    let mut bench = program(B);
    let mut site = two_queues();
    let report = bench.cycle(TEN, &mut site);
    let stored = serde_json::to_string(&report.globals.expect("globals")).expect("JSON");
    let restart = |globals: &str| {
        let mut setup = setup(bench.folder.path(), short());
        setup.globals = Some(serde_json::from_str(globals).expect("globals"));
        let word = ProgramWord::parse("basl:program.basl").expect("a policy");
        Scheduler::new(&word, setup, Cycles::new(true, 1), TEN).expect("a scheduler")
    };
    let report = restart(&stored).step(Hour::prime(TEN), &mut site).expect("a cycle");
    assert_eq!((started(&report), report.lines.join(" "), report.begun.seq), (vec!["b1"], "1 2".into(), 2));
    // Globals of another program are dropped.
    let report = restart(r#"{"OTHER": {"Int": 5}}"#).step(Hour::prime(TEN), &mut site).expect("a cycle");
    assert_eq!(report.lines.join(" "), "1 1");
}

/// W12 C. PBS-X-08: the node of a started job is in use for the rest of the cycle, and in the next one.
#[test]
fn days_are_for_short_jobs_and_nights_for_long_ones() {
    let wall = |id: &str, time: Option<&str>| job(id, "batch", time.map(|time| ("walltime", time)).as_slice());
    for (hour, expected) in [(10, [("j5", "n2"), ("j2", "n1")]), (20, [("j1", "n2"), ("j4", "n1")])] {
        let nodes = vec![
            node("n1", "free", Some("0.5")),
            node("n2", "free", Some("0.2")),
            node("n3", "down", Some("0.1")),
            node("n4", "free", None),
            node("n5", "job-exclusive", Some("0.35")),
        ];
        let jobs = vec![
            wall("j1", Some("2:00:00")),
            wall("j2", Some("0:30:00")),
            wall("j3", None),
            wall("j4", Some("1:00:00")),
            wall("j5", Some("0:10:00")),
        ];
        let mut site = StateSite::new(state(vec![queue("batch")], nodes, jobs));
        let report = program(C).cycle(TEN + (hour - 10) * 3600, &mut site);
        assert_eq!(report.end, End::Done(None));
        let nodes: Vec<(&str, Vec<String>)> =
            started(&report).into_iter().map(|id| (id, site.job(id).expect("a job").nodes.clone())).collect();
        let expected: Vec<(&str, Vec<String>)> = expected.map(|(id, node)| (id, vec![node.into()])).into();
        assert_eq!(nodes, expected, "at {hour}:00");
    }
}

/// PBS-X-13: a fault ends the cycle with its line; what was accepted stays, and so do the globals of before.
#[test]
fn a_fault_ends_the_cycle_with_its_line() {
    let text = "Int n;\nsched_main() { Job j; Int zero;\n  n = n + 1; print(n);\n\
                foreach(j in ServerJobsGet(AllServersLocalHostGet())) { JobAction(j, SYNCRUN, NULLSTR); }\n\
                if( n EQ 2 ) { n = 1 / zero; }\n}";
    let mut bench = program(text);
    let mut site = site(&["1", "2"]);
    bench.cycle(TEN, &mut site);
    site.change(|state| state.jobs.iter_mut().for_each(|job| job.state = State::Q));
    let report = bench.on(Command::New, TEN, &mut site);
    let file = bench.folder.path().join("program.basl").display().to_string();
    let End::Fault(fault) = &report.end else { panic!("{report:?}") };
    assert!(fault.starts_with(&format!("{file}:5: ")), "{fault}");
    assert_eq!((started(&report), report.started), (vec!["1", "2"], 2));
    // The fault undid the addition.
    site.change(|state| state.jobs.clear());
    let report = bench.on(Command::New, TEN, &mut site);
    assert_eq!(report.lines.first().map(String::as_str), Some("2"));
}

/// PBS-C-13, PBS-X-13: neither the deadline nor the bound of statements lets a loop run on.
#[test]
fn loops_end() {
    let text = "sched_main() {\nwhile( 1 ) { }\n}";
    let End::Fault(fault) = program(text).cycle(TEN, &mut site(&[])).end else { panic!("no fault") };
    assert!(fault.contains(":2: more than 10000000 statements"), "{fault}");
    let bounds = Bounds { cycle: Duration::ZERO, ..Bounds::default() };
    let mut bench = super::support::bench_with("basl:p", &[("p", text)], bounds);
    let report = bench.cycle(TEN, &mut site(&[]));
    let End::TimeOver(fault) = &report.end else { panic!("{report:?}") };
    assert!(fault.ends_with(":2: the time of the cycle is over"), "{fault}");
}

/// PBS-X-01: all mistakes are told, and the program is not put in force.
#[test]
fn programs_with_mistakes_are_refused() {
    let folder = super::support::folder(&[("p.basl", "sched_main() {\n  Int i;\n  i = nobody;\n  j = 1;\n}")]);
    let open = |policy: &str| {
        let word = ProgramWord::parse(policy).expect("a policy");
        Scheduler::new(&word, setup(folder.path(), short()), Cycles::new(true, 0), TEN).expect_err("mistakes")
    };
    let mistakes = open("basl:p.basl");
    assert_eq!(mistakes.len(), 2, "{mistakes:?}");
    assert!(mistakes[0].contains("p.basl:3: column 7: ") && mistakes[0].ends_with("(token 'nobody')"), "{mistakes:?}");
    assert!(open("basl:missing")[0].contains("missing: No such file"), "{:?}", open("basl:missing"));
    assert!(open("basl:.")[0].ends_with("it is no regular file"));
}

/// PBS-C-14: a reload with a mistake changes nothing; a good one begins with fresh globals.
#[test]
fn a_reload_takes_all_or_nothing() {
    let counting = "Int n; sched_main() { n = n + 1; print(n); }";
    let mut bench = program(counting);
    let mut site = site(&[]);
    bench.cycle(TEN, &mut site);
    fs::write(bench.folder.path().join("program.basl"), "Int n; sched_main() { n = ; }").expect("a file");
    assert_eq!(bench.scheduler.reload(TEN).expect_err("a mistake").len(), 1);
    assert_eq!(bench.on(Command::New, TEN, &mut site).lines, ["2"]);
    fs::write(bench.folder.path().join("program.basl"), "Int n; n = 40; sched_main() { n = n + 1; print(n); }")
        .expect("a file");
    bench.scheduler.reload(TEN).expect("no mistake");
    assert_eq!(bench.on(Command::New, TEN, &mut site).lines, ["41"]);
}

/// PBS-X-11: parameters of actions; one that makes no sense is a refusal, not an end. PBS-X-25: all are noted.
#[test]
fn parameters_become_actions() {
    let text = r#"sched_main() {
        Job j; Set Job js;
        js = ServerJobsGet(AllServersLocalHostGet());
        foreach(j in js) {
            print(JobAction(j, MODIFYATTR, "Priority=7"));
            print(JobAction(j, MODIFYATTR, "Priority"));
            print(JobAction(j, MODIFYRES, "cput=1:00:00"));
            print(JobAction(j, MODIFYRES, "cput=soon"));
            print(JobAction(j, HOLD, "u"));
            print(JobAction(j, SYNCRUN, NULLSTR));
            print(JobAction(j, RELEASE, "u"));
            print(JobAction(j, DELETE, "deldelay=x"));
            print(JobAction(j, SYNCRUN, "node1"));
            print(JobAction(j, SIGNAL, "HUP"));
            print(JobAction(j, SIGNAL, "NOISE"));
            print(JobAction(j, DELETE, "deldelay=5"));
        }
    }"#;
    let mut site = site(&["1"]);
    let report = program(text).cycle(TEN, &mut site);
    assert_eq!(report.end, End::Done(None));
    let printed: String = report.lines.iter().filter(|line| line.len() == 1).map(String::as_str).collect();
    assert_eq!(printed, "101010101101", "{:?}", report.lines);
    let refused: Vec<Code> =
        report.decisions.iter().filter_map(|one| one.answer.as_ref().err()).map(|no| no.code).collect();
    assert_eq!(refused, [Code::BadValue, Code::BadState, Code::UnknownSignal]);
    assert_eq!(site.job("1").expect("a job").priority, Some(7));
}

/// PBS-X-08: nodes can be reserved for later.
#[test]
fn nodes_are_reserved_and_released() {
    let text = r#"Int R;
    sched_main() {
        Server s; s = AllServersLocalHostGet();
        if( R EQ 0 ) { R = ServerNodesReserve(s, "nodes=1", 0); } else { print(ServerNodesRelease(s, R)); }
        print(R);
    }"#;
    let mut bench = program(text);
    let mut site = site(&[]);
    assert_eq!(bench.cycle(TEN, &mut site).lines, ["1"]);
    assert_eq!(bench.on(Command::New, TEN, &mut site).lines, ["1", "1"]);
}

const ASKS: &str = r#"sched_main() {
  Set CNode ns; CNode n;
  ns = AllNodesGet();
  foreach(n in ns) {
    print(CNodeNumCpusGet(n)); print(CNodeLoadAveGet(n)); print(CNodeMemTotalGet(n, "real")); print(CNodeVendorGet(n));
  }
}
"#;

fn mapped(config: &str) -> Result<(tempfile::TempDir, Scheduler), Vec<String>> {
    let folder = super::support::folder(&[("asks", ASKS), ("conf", config)]);
    let word = ProgramWord::parse("basl:asks").expect("a policy");
    let setup = muster_pbs_script::scheduler::Setup { config: Some("conf".into()), ..setup(folder.path(), short()) };
    Scheduler::new(&word, setup, Cycles::new(true, 0), TEN).map(|scheduler| (folder, scheduler))
}

/// PBS-X-12: what a monitor says to the query of a mapping is the value of the function; static functions are asked for only
/// once, until the configuration is read again.
#[test]
fn functions_have_the_values_that_monitors_give() {
    let config = "$clienthost front\n$node * CNodeNumCpusGet cores\n$node * CNodeLoadAveGet load5\n\
                  $node node1 CNodeMemTotalGet[real] total\n$node node2 CNodeMemTotalGet[real] nothing\n\
                  $node * CNodeVendorGet maker\n";
    let (folder, mut scheduler) = mapped(config).expect("a right configuration");
    let site_with = |cores: &str, load: &str| {
        let answers = [("cores", cores), ("load5", load), ("total", "2048kb"), ("maker", "acme")];
        let answers = answers.map(|(query, answer)| (query.to_owned(), answer.to_owned())).into();
        let node = muster_pbs_plan::state_file::NodeState { answers, ..node("node1", "free", Some("1.5")) };
        StateSite::new(state(vec![queue("batch")], vec![node], Vec::new()))
    };
    let mut lines = |cores: &str, load: &str| {
        scheduler.note(Command::Cmd);
        scheduler.step(Hour::prime(TEN), &mut site_with(cores, load)).expect("a cycle").lines
    };
    assert_eq!(lines("12", "0.25"), ["12", "0.250000", "2048kb", "acme"]);
    assert_eq!(
        lines("16", "0.75"),
        ["12", "0.750000", "2048kb", "acme"],
        "the number of processors is asked for only once"
    );
    fs::write(folder.path().join("conf"), "$node * CNodeNumCpusGet cores\n").expect("written");
    scheduler.reload(TEN).expect("a right configuration");
    scheduler.note(Command::Cmd);
    let again = scheduler.step(Hour::prime(TEN), &mut site_with("16", "0.75")).expect("a cycle").lines;
    assert_eq!(again[..2], ["16", "1.500000"], "without a mapping the load is that of the node");
    fs::write(folder.path().join("conf"), "$nodes * CNodeNumCpusGet cores\n").expect("written");
    let faults = scheduler.reload(TEN).expect_err("a mistake");
    assert!(faults[0].contains("conf:1: column 1: unknown directive"), "{faults:?}");
    assert_eq!(scheduler.sources().iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["asks", "conf"]);
}

/// PBS-X-12: a configuration with mistakes keeps the program from being put in force; all are told.
#[test]
fn mistakes_of_a_configuration_are_all_told() {
    let faults = mapped("$momhost n1\n$node * CNodeNameGet name\n").expect_err("mistakes");
    assert_eq!(faults.len(), 2, "{faults:?}");
}
