//! Actions and their effects, globals from cycle to cycle.

use super::support::{
    Server, TEN, clock, cycle, ids, in_queue, job, machine, node, owned, printed_on, program, queue, run,
};
use jiff::tz::TimeZone;
use muster_basl::{Action, Clock, Globals, Limits, Machine, Node, Saved, Snapshot};

fn one_job(state: &str) -> Snapshot {
    let request = [("ncpus", "2"), ("mem", "10mb"), ("walltime", "1:00:00")];
    Snapshot {
        queues: vec![queue("a")],
        nodes: vec![node("n1", "free", None), Node { ts: true, ..node("n2", "free", None) }, node("n3", "free", None)],
        jobs: vec![
            in_queue("a", owned("1", "ann", state, &request)),
            in_queue("a", owned("2", "bob", "R", &[("ncpus", "4"), ("mem", "1gb")])),
        ],
        ..Snapshot::default()
    }
}

/// Runs `JobAction(j, ...)` on the first job, and prints what is to be seen afterwards.
fn after(action: &str, state: &str, look: &str, server: &mut Server) -> Vec<String> {
    let text = format!(
        "Job first() {{ Job j; foreach(j in ServerJobsGet(AllServersLocalHostGet())) {{ return(j); }} return(NOJOB); }}
         Que queue() {{ Que q; foreach(q in ServerQueuesGet(AllServersLocalHostGet())) {{ return(q); }} return(NOQUE); }}
         sched_main() {{ Job j; Server s; Que q; CNode c; j = first(); s = AllServersLocalHostGet(); q = queue();
         print(JobAction(j, {action})); {look} }}"
    );
    let outcome = run(&text, &one_job(state), server);
    assert_eq!(outcome.fault, None);
    outcome.printed.lines().map(str::to_owned).collect()
}

const STATES: &str = "print(JobStateGet(j)); foreach(c in AllNodesGet()) { print(CNodeStateGet(c)); }";
const AMOUNTS: &str = "print(ServerIntResAssignGet(s, \"ncpus\")); print(ServerSizeResAssignGet(s, \"mem\"));
    print(QueIntResAssignGet(q, \"ncpus\")); print(QueSizeResAssignGet(q, \"mem\")); print(ServerIntResAssignGet(s, \"walltime\"));";

/// PBS-X-08: a started job runs, its amounts are assigned, and its nodes are taken unless they are timeshared.
#[test]
fn a_start_is_seen_at_once() {
    let server = &mut Server::default();
    assert_eq!(after("SYNCRUN, \"n1+n2\"", "Q", STATES, server), ["1", "4", "3", "1", "1"]);
    assert_eq!(server.done, [(Action::SyncRun, 0, "n1+n2".into())]);
    assert_eq!(after("ASYNCRUN, \"n3:ppn=2#shared\"", "Q", STATES, server), ["1", "4", "1", "1", "3"]);
    // The server chooses the nodes.
    let mut choosing = Server { places: vec![0, 1, 99], ..Server::default() };
    assert_eq!(after("SYNCRUN, NULLSTR", "Q", STATES, &mut choosing), ["1", "4", "3", "1", "1"]);
    assert_eq!(after("SYNCRUN, NULLSTR", "Q", AMOUNTS, server), ["1", "6", "1034mb", "6", "1034mb", "-1"]);
    // What was refused changes nothing (PBS-X-11).
    let mut refusing = Server { refused: vec![0], ..Server::default() };
    assert_eq!(after("SYNCRUN, \"n1\"", "Q", STATES, &mut refusing), ["0", "1", "1", "1", "1"]);
    assert_eq!(after("SYNCRUN, \"n1\"", "Q", AMOUNTS, &mut refusing), ["0", "4", "1gb", "4", "1gb", "-1"]);
}

/// PBS-X-08, PBS-X-11: the states after the other actions, and what they change.
#[test]
fn each_action_has_its_effect() {
    let state = |action: &str, from: &str| after(action, from, "print(JobStateGet(j));", &mut Server::default());
    assert_eq!(state("HOLD, \"u\"", "Q"), ["1", "2"]);
    assert_eq!(state("RELEASE, \"uos\"", "H"), ["1", "1"]);
    assert_eq!(state("RERUN, NULLSTR", "R"), ["1", "1"]);
    assert_eq!(state("SIGNAL, \"SIGHUP\"", "R"), ["1", "4"]);
    assert_eq!(state("99, NULLSTR", "Q"), ["0", "1"]);
    assert_eq!(state("-1, NULLSTR", "Q"), ["0", "1"]);
    let deleted = "print(JobStateGet(j)); print(JobIdGet(j)); print(JobSizeResReqGet(j, \"mem\")); print(JobAction(j, HOLD, NULLSTR)); print(j);";
    assert_eq!(
        after("DELETE, \"deldelay=5\"", "Q", deleted, &mut Server::default()),
        ["1", "-1", "null", "-1b", "0", "NOJOB"]
    );
    let resource = "print(JobIntResReqGet(j, \"cput\")); print(JobStringResReqGet(j, \"cput\"));";
    assert_eq!(after("MODIFYRES, \"cput=1:00:00\"", "Q", resource, &mut Server::default()), ["1", "3600", "1:00:00"]);
    let attribute = "print(JobPriorityGet(j)); print(JobNameGet(j));";
    assert_eq!(after("MODIFYATTR, \"Priority=17\"", "Q", attribute, &mut Server::default()), ["1", "17", "null"]);
    assert_eq!(after("MODIFYATTR, \"Job_Name=x=y\"", "Q", attribute, &mut Server::default()), ["1", "0", "x=y"]);
    assert_eq!(after("MODIFYATTR, \"comment\"", "Q", attribute, &mut Server::default()), ["1", "0", "null"]);
}

/// PBS-X-11: actions go out in order with their parameters; a refusal never ends the program.
#[test]
fn a_refusal_does_not_end_the_program() {
    let text = "sched_main() { Job j; print(JobAction(NOJOB, SYNCRUN, NULLSTR));
        foreach(j in ServerJobsGet(AllServersLocalHostGet())) { print(JobAction(j, SYNCRUN, NULLSTR)); } }";
    let jobs = ["1", "2", "3"].map(|id| job(id, "Q")).into();
    let snapshot = Snapshot { jobs, ..Snapshot::default() };
    let mut server = Server { refused: vec![1], ..Server::default() };
    let outcome = run(text, &snapshot, &mut server);
    assert_eq!((outcome.printed.as_str(), outcome.started), ("0\n1\n0\n1\n", 2));
    assert_eq!(ids(&server, &snapshot, Action::SyncRun), ["1", "3"]);
}

/// PBS-X-07: assignments run once; globals survive cycles and restarts; objects and sets do not.
#[test]
fn globals_survive_cycles_and_restarts() {
    let text = "Int count; Float f; Dayofweek d; DateTime t; String s; Size z; Range Int r; Range Float rf; Range Dayofweek rd;
        Range DateTime rt; Range Size rz; String null; Job j; Set Job js; Que q;
        count = 10; f = 0.5; d = TUE; t = (4|4|1997@12:01:00); s = \"a\"; z = 1kb; r = (1, 2); rf = (1.5, 2.5);
        rd = (MON, FRI); rt = ((4|4|1997), (5|4|1997)); rz = (1kb, 1mb);
        sched_main() { count++; f = f * 2; s = s + \"b\"; z = z + 1kb; print(count); print(f); print(d); print(t); print(s); print(z);
          print(r); print(rf); print(rd); print(rt); print(rz); print(null); print(j); print(js EQ EMPTYSETJOB); print(q);
          js = ServerJobsGet(AllServersLocalHostGet()); foreach(j in js) { break; } q = QueFilter(q, JobIdGet, OP_EQ, \"\"); }";
    let snapshot = Snapshot { jobs: vec![job("1", "Q")], ..Snapshot::default() };
    let line = |count: i64, f: &str, s: &str, z: &str| {
        format!(
            "{count} {f} TUE (04/04/1997@12:01:00) {s} {z} (1, 2) (   1.50,    2.50) (MON, FRI) \
             ((04/04/1997), (05/04/1997)) (1kb, 1mb) null NOJOB 1 NOQUE "
        )
    };
    let mut machine = machine(text);
    let shown = |machine: &mut Machine| {
        let outcome = cycle(machine, &snapshot, &mut Server::default());
        assert_eq!(outcome.fault, None);
        outcome.printed.replace('\n', " ")
    };
    assert_eq!(shown(&mut machine), line(11, "1.000000", "ab", "2kb"));
    assert_eq!(shown(&mut machine), line(12, "2.000000", "abb", "3kb"));
    let stored = serde_json::to_string(machine.globals()).expect("JSON");
    let globals: Globals = serde_json::from_str(&stored).expect("JSON");
    assert_eq!(&globals, machine.globals());
    assert!(!globals.0.contains_key("j") && !globals.0.contains_key("js"));
    let mut restored = Machine::restore(program(text), globals).expect("the same program");
    assert_eq!(shown(&mut restored), line(13, "4.000000", "abbb", "4kb"));
}

/// PBS-X-07: stored values of another program are refused.
#[test]
fn stored_globals_must_fit_the_program() {
    let restored = |name: &str, saved: Saved| {
        let globals = Globals([(name.to_owned(), saved)].into());
        let program = program("Int i; Size z; DateTime t; Dayofweek d; Range Int r; Job j; sched_main() { }");
        Machine::restore(program, globals).map(|_| ()).map_err(|misfit| misfit.to_string())
    };
    assert_eq!(restored("i", Saved::Int(3)), Ok(()));
    assert_eq!(
        restored("i", Saved::Float(3.0)),
        Err("the stored value of the global variable 'i' does not fit the program, in which it is Int".into())
    );
    for (name, wrong) in [
        ("gone", Saved::Int(3)),
        ("z", Saved::Size("1x".into())),
        ("d", Saved::Dayofweek(7)),
        ("t", Saved::DateTime { date: Some((1998, 2, 30)), time: None }),
        ("r", Saved::Range(Box::new([Saved::Int(1), Saved::Float(2.0)]))),
        ("j", Saved::Int(0)),
    ] {
        assert!(restored(name, wrong).is_err(), "{name}");
    }
}

/// PBS-X-07: an assignment without a result keeps the program out of force.
#[test]
fn a_fault_in_an_assignment_is_told() {
    let machine = Machine::new(program("Int a; Int b;\na = 1 / b; sched_main() { }"), &clock(), &mut Limits::default());
    assert_eq!(machine.map(|_| ()).map_err(|fault| fault.to_string()), Err("p.basl:2: division by zero".into()));
}

/// PBS-X-13: after a fault the actions stay, and the globals are those of the cycle before.
#[test]
fn a_fault_keeps_actions_and_drops_globals() {
    let text = "Int count; Int zero;\nsched_main() { Job j; count++; print(count);\n\
        foreach(j in ServerJobsGet(AllServersLocalHostGet())) { JobAction(j, SYNCRUN, NULLSTR);\nif( count EQ 2 ) { print(1 / zero); } } }";
    let snapshot = Snapshot { jobs: vec![job("1", "Q"), job("2", "Q")], ..Snapshot::default() };
    let mut machine = machine(text);
    let mut server = Server::default();
    assert_eq!(cycle(&mut machine, &snapshot, &mut server).fault, None);
    let before = machine.globals().clone();
    let outcome = cycle(&mut machine, &snapshot, &mut server);
    assert_eq!(outcome.fault.map(|fault| fault.to_string()), Some("p.basl:4: division by zero".into()));
    assert_eq!((outcome.printed.as_str(), outcome.started, server.done.len()), ("2\n", 1, 3));
    assert_eq!(machine.globals(), &before);
    assert_eq!(machine.globals().0["count"], Saved::Int(1));
}

/// PBS-X-05: `exit` ends the cycle; that is no fault.
#[test]
fn exit_ends_the_cycle() {
    let text = "Int count; Void deep() { exit(3); } sched_main() { count = 5; deep(); print(\"not here\"); }";
    let mut machine = machine(text);
    let outcome = cycle(&mut machine, &Snapshot::default(), &mut Server::default());
    assert_eq!((outcome.exit, outcome.fault, outcome.printed.as_str()), (Some(3), None, ""));
    assert_eq!(machine.globals().0["count"], Saved::Int(5));
}

/// The time and its zone are inputs.
#[test]
fn the_clock_is_an_input() {
    let text = "sched_main() { print(datetimeGet()); print(datetimeToSecs(datetimeGet())); }";
    let zone = TimeZone::fixed(jiff::tz::offset(-8));
    let outcome = machine(text).cycle(
        &Snapshot::default(),
        &Clock::new(TEN, zone),
        &mut Server::default(),
        &mut Limits::default(),
    );
    assert_eq!(outcome.printed, format!("(05/15/1998@02:00:00)\n{TEN}\n"));
    assert_eq!(printed_on(text, &Snapshot::default()), ["(05/15/1998@10:00:00)".to_owned(), TEN.to_string()]);
}

/// A planner hands machines and programs from thread to thread.
#[test]
fn machines_can_be_sent_to_threads() {
    fn is_sent<T: Send + Sync>(_: &T) {}
    is_sent(&machine("sched_main() { }"));
}
