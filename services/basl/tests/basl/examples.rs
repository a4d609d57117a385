//! The worked example W12: three programs that the translator of PBS accepted.

use super::support::{Server, cycle, ids, in_queue, job, machine, node, owned, queue, run};
use jiff::tz::TimeZone;
use muster_basl::{Action, Clock, Limits, Snapshot};

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

/// W12 A: least memory first, two running jobs for each user. PBS-X-08: getters see the starts of the same cycle.
#[test]
fn the_smallest_jobs_start_until_their_users_have_two() {
    let snapshot = Snapshot {
        jobs: vec![
            owned("r1", "bob", "R", &[("mem", "250mb")]),
            owned("k1", "ann", "Q", &[("mem", "400mb")]),
            owned("k2", "ann", "Q", &[("mem", "100mb")]),
            owned("k3", "bob", "Q", &[("mem", "200mb")]),
            owned("k4", "ann", "Q", &[("mem", "50mb")]),
            owned("k5", "bob", "Q", &[]),
            owned("k6", "ann", "Q", &[("mem", "300mb")]),
        ],
        ..Snapshot::default()
    };
    let mut server = Server::default();
    let outcome = run(A, &snapshot, &mut server);
    assert_eq!((outcome.fault, outcome.started), (None, 3));
    assert_eq!(ids(&server, &snapshot, Action::SyncRun), ["k5", "k4", "k2"]);
    assert_eq!(ids(&server, &snapshot, Action::ModifyAttribute), ["k3", "k6", "k1"]);
    assert!(server.done.iter().all(|(action, _, parameter)| match action {
        Action::ModifyAttribute => parameter == "comment=user cap",
        _ => parameter.is_empty(),
    }));
}

/// W12 B: one job for each cycle, two queues in turn. PBS-X-07: globals keep their values, locals do not.
#[test]
fn two_queues_take_turns_over_five_cycles() {
    let jobs = [("a1", "fast"), ("a2", "fast"), ("a3", "fast"), ("b1", "slow")];
    let mut snapshot = Snapshot {
        queues: vec![queue("fast"), queue("slow")],
        jobs: jobs.map(|(id, name)| in_queue(name, job(id, "Q"))).into(),
        ..Snapshot::default()
    };
    let mut machine = machine(B);
    let (mut started, mut printed) = (Vec::new(), Vec::new());
    // The command, and four cycles after one start each.
    for round in 0..5 {
        let mut server = Server::default();
        let outcome = cycle(&mut machine, &snapshot, &mut server);
        assert_eq!(outcome.fault, None);
        assert_eq!(outcome.started, usize::from(round < 4), "the chain of cycles ends after one without a start");
        started.extend(ids(&server, &snapshot, Action::SyncRun));
        printed.push(outcome.printed.replace('\n', " "));
        for (_, job, _) in server.done {
            snapshot.jobs[job].state = "R".into();
        }
    }
    assert_eq!(started, ["a1", "b1", "a2", "a3"]);
    assert_eq!(printed, ["1 1 ", "1 2 ", "1 3 ", "1 4 ", "1 4 "]);
}

/// W12 C: by day short jobs, shortest first, at night the longest first, each on the calmest free node. PBS-X-06.
#[test]
fn days_are_for_short_jobs_and_nights_for_long_ones() {
    let wall = |id: &str, time: Option<&str>| owned(id, "ann", "Q", time.map(|time| ("walltime", time)).as_slice());
    let snapshot = Snapshot {
        nodes: vec![
            node("n1", "free", Some(0.5)),
            node("n2", "free", Some(0.2)),
            node("n3", "down", Some(0.1)),
            node("n4", "free", None),
            node("n5", "job-exclusive", Some(0.35)),
        ],
        jobs: vec![
            wall("j1", Some("2:00:00")),
            wall("j2", Some("0:30:00")),
            wall("j3", None),
            wall("j4", Some("1:00:00")),
            wall("j5", Some("0:10:00")),
        ],
        ..Snapshot::default()
    };
    for (hour, expected) in [(10, [("j5", "n2"), ("j2", "n1")]), (20, [("j1", "n2"), ("j4", "n1")])] {
        let mut server = Server::default();
        let clock = Clock::new(895_190_400 + hour * 3600, TimeZone::UTC);
        let outcome = machine(C).cycle(&snapshot, &clock, &mut server, &mut Limits::default());
        assert_eq!(outcome.fault, None);
        let started: Vec<(&str, &str)> =
            server.done.iter().map(|(_, job, host)| (snapshot.jobs[*job].id.as_str(), host.as_str())).collect();
        assert_eq!(started, expected, "at {hour}:00");
    }
}
