//! Scheduling programs of PBS that plan for a cluster.

mod support;

use muster_planner_service::{Config, Reload};
use muster_schemas::{
    JobId,
    command::{RefusedStart, Reply},
    job::WaitReason,
    plan::ProposedPlan,
};
use std::path::Path;
use support::{Ledger, start_planner, started};

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    folder
}

fn config(policy: &str, folder: &Path) -> Config {
    Config { scheduler_policy: Some(policy.into()), scheduler_folder: Some(folder.into()), ..Config::default() }
}

/// Plans until one has reasons; the jobs started before, and that plan.
async fn until_reasons(ledger: &mut Ledger) -> (Vec<JobId>, ProposedPlan) {
    let mut all = Vec::new();
    loop {
        let (plan, refused) = ledger.commit_next_plan().await;
        all.extend(started(&plan).into_iter().filter(|job| !refused.contains(job)));
        if !plan.reasons.is_empty() {
            return (all, plan);
        }
    }
}

fn reason(plan: &ProposedPlan, job: JobId) -> Option<&WaitReason> {
    plan.reasons.iter().find(|waiting| waiting.job == job).map(|waiting| &waiting.reason)
}

const WIDEST_FIRST: &str = r#"
Int coresOf(Job j) { Int n; n = JobIntResReqGet(j, "ncpus"); return(n); }
sched_main() {
  Set Job js; Job j;
  js = ServerJobsGet(AllServersLocalHostGet());
  Sort(js, coresOf, DESC);
  foreach(j in js) {
    if( JobStateGet(j) EQ QUEUED AND JobAction(j, SYNCRUN, NULLSTR) EQ FAIL ) {
      JobAction(j, MODIFYATTR, "comment=no room for it");
    }
  }
}
"#;

/// PBS-X-01, PBS-X-08: a BaSL program starts jobs; each start is a plan, and its comment is why a job waits. PBS-C-01:
/// an
/// end brings the next cycle.
#[tokio::test]
async fn a_basl_program_starts_jobs() {
    let folder = folder(&[("widest.basl", WIDEST_FIRST)]);
    let mut ledger = Ledger::start(1, 4).await;
    let narrow = ledger.submit(1, None).await;
    let wide = ledger.submit(3, Some(60)).await;
    let middle = ledger.submit(2, None).await;
    let _planner = start_planner(&ledger.bus, config("basl:widest.basl", folder.path())).await;
    let (first, plan) = until_reasons(&mut ledger).await;
    assert_eq!(first, [wide, narrow]);
    assert_eq!(reason(&plan, middle), Some(&WaitReason::ExternalPlanner("no room for it".into())));
    assert!(plan.external);
    ledger.end(wide).await;
    let (plan, refused) = ledger.commit_next_plan().await;
    assert_eq!((started(&plan), refused), (vec![middle], Vec::new()));
}

const EXTERNAL: &str = r#"
import sys, json
def say(**message):
    print(json.dumps(message), flush=True)
def ask(**message):
    say(**message)
    return json.loads(sys.stdin.readline())
json.loads(sys.stdin.readline())
say(t="ready", v=1)
for line in sys.stdin:
    cycle = json.loads(line)
    if cycle["t"] != "cycle": break
    for job in ask(t="stat", id=1, what="selstat")["data"]:
        there = ask(t="run", id=2, job=job["id"], place="node9")
        reply = ask(t="run", id=3, job=job["id"], place="node2")
        shown = [one for one in ask(t="stat", id=4, what="jobs")["data"] if one["id"] == job["id"]][0]
        held = ask(t="hold", id=5, job=job["id"])
        text = "%s %s %s %s" % (there.get("text"), reply["ok"], shown["state"], held["code"])
        if reply["ok"]: assert shown["nodes"] == ["node2"] == reply["data"]["nodes"], shown
        else: ask(t="comment", id=6, job=job["id"], text=text)
    say(t="end", seq=cycle["seq"])
"#;

/// PBS-X-21, PBS-X-23: an external program hears the verdict of each start, on the node that it names.
#[tokio::test]
async fn an_external_program_hears_what_became_of_a_start() {
    let folder = folder(&[("plan.py", EXTERNAL)]);
    let mut ledger = Ledger::start(2, 2).await;
    let first = ledger.submit(2, None).await;
    let second = ledger.submit(2, None).await;
    let _planner = start_planner(&ledger.bus, config("external:python3 plan.py", folder.path())).await;
    let (all, plan) = until_reasons(&mut ledger).await;
    assert_eq!(all, [first]);
    let expected = "there is no node `node9` False Q NOT_SUPPORTED";
    assert_eq!(reason(&plan, second), Some(&WaitReason::ExternalPlanner(expected.into())));
    let node = ledger.state.node_by_name("node2").expect("a node").id;
    let run = ledger.state.job(first).and_then(|job| job.run()).and_then(|run| ledger.state.run(run)).expect("it runs");
    assert!(run.placement.shares().all(|share| share.node == node));
}

/// PBS-X-23: what the ledger refuses is refused to the program, with the ledger's reason, and is not shown as started.
#[tokio::test]
async fn a_refusal_of_the_ledger_reaches_the_program() {
    let folder = folder(&[("plan.py", EXTERNAL)]);
    let mut ledger = Ledger::start(2, 2).await;
    let job = ledger.submit(2, None).await;
    let config = config("external:python3 plan.py", folder.path());
    let _planner = start_planner(&ledger.bus, config).await;
    let (request, plan) = ledger.next_plan().await;
    assert_eq!(started(&plan), [job]);
    let refused = RefusedStart { job, reason: "the node has just gone".into() };
    ledger.answer(request, Reply::Planned(vec![refused]));
    let (_, plan) = until_reasons(&mut ledger).await;
    let expected = "there is no node `node9` False Q NOT_SUPPORTED";
    assert_eq!(reason(&plan, job), Some(&WaitReason::ExternalPlanner(expected.into())));
}

const REASONS: &str = r#"
import sys, json
def say(**message):
    print(json.dumps(message), flush=True)
def ask(**message):
    say(**message)
    return json.loads(sys.stdin.readline())
json.loads(sys.stdin.readline())
say(t="ready", v=1)
for line in sys.stdin:
    cycle = json.loads(line)
    if cycle["t"] != "cycle": break
    started = [ask(t="run", id=1, job=job["id"])["ok"] for job in ask(t="stat", id=1, what="selstat")["data"]]
    with open("cycles", "a") as file: file.write("%s %d\n" % (cycle["cmd"], sum(started)))
    say(t="end", seq=cycle["seq"])
"#;

/// PBS-C-01, PBS-C-02: what happens in the cluster brings cycles with its reason; two starts bring none.
#[tokio::test]
async fn events_of_the_cluster_are_triggers() {
    let folder = folder(&[("plan.py", REASONS)]);
    let mut ledger = Ledger::start(1, 2).await;
    let first = ledger.submit(1, None).await;
    ledger.submit(1, None).await;
    let _planner = start_planner(&ledger.bus, config("external:python3 plan.py", folder.path())).await;
    for _ in 0..2 {
        ledger.commit_next_plan().await;
    }
    let cycles = folder.path().join("cycles");
    let until = async |expected: &str| {
        let deadline = std::time::Instant::now() + support::DEADLINE;
        loop {
            let seen = std::fs::read_to_string(&cycles).unwrap_or_default();
            if seen == expected {
                return;
            }
            assert!(std::time::Instant::now() < deadline, "{seen}");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    until("SCH_SCHEDULE_FIRST 2\n").await;
    ledger.end(first).await;
    until("SCH_SCHEDULE_FIRST 2\nSCH_SCHEDULE_TERM 0\n").await;
    ledger.submit(1, None).await;
    ledger.commit_next_plan().await;
    until("SCH_SCHEDULE_FIRST 2\nSCH_SCHEDULE_TERM 0\nSCH_SCHEDULE_NEW 1\nSCH_SCHEDULE_RECYC 0\n").await;
}

/// PBS-C-02: a start brings another cycle; the chain ends after a cycle without one.
#[tokio::test]
async fn one_job_for_each_cycle_starts_them_all() {
    if !Path::new("/usr/bin/tclsh").exists() {
        return muster_surroundings::skipped("tclsh is not in /usr/bin");
    }
    let body = "incr cycle\nputs \"$cycle [llength [pbsselstat]]\"\nset job [lindex [pbsselstat] 0 0]\nif {$job ne {}} { pbsrunjob $job }";
    let folder = folder(&[("body", body)]);
    let mut ledger = Ledger::start(1, 4).await;
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(ledger.submit(1, None).await);
    }
    let _planner = start_planner(&ledger.bus, config("tcl:body", folder.path())).await;
    let mut all = Vec::new();
    while all.len() < 3 {
        all.extend(started(&ledger.commit_next_plan().await.0));
    }
    assert_eq!(all, jobs);
    let printed = || std::fs::read_to_string(folder.path().join("sched_out")).unwrap_or_default();
    let deadline = std::time::Instant::now() + support::DEADLINE;
    while printed() != "1 3\n2 2\n3 1\n4 0\n" {
        assert!(std::time::Instant::now() < deadline, "{}", printed());
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

/// PBS-X-13, PBS-X-24: what went wrong in the program is why jobs wait.
#[tokio::test]
async fn trouble_is_told_to_those_who_wait() {
    for (policy, expected) in [
        ("basl:fault.basl", "error in the scheduling program: "),
        ("external:python3 ends.py", "the program closed its streams: it exited with status 1"),
    ] {
        let files = [("fault.basl", "sched_main() {\nInt i; i = 1 / i;\n}"), ("ends.py", "import sys; sys.exit(1)")];
        let folder = folder(&files);
        let mut ledger = Ledger::start(1, 1).await;
        let job = ledger.submit(1, None).await;
        let _planner = start_planner(&ledger.bus, config(policy, folder.path())).await;
        let (_, plan) = until_reasons(&mut ledger).await;
        let Some(WaitReason::PlannerFailed(text)) = reason(&plan, job) else { panic!("{plan:?}") };
        assert!(text.starts_with(expected), "{text}");
    }
}

/// PBS-X-01: a program with mistakes is not put in force, and neither is one beside another planner.
#[tokio::test]
async fn mistakes_keep_the_planner_from_starting() {
    let folder = folder(&[("bad.basl", "sched_main() {\n  i = 1;\n  j = 1;\n}"), ("body", "")]);
    let refusal = async |config: Config| {
        let ledger = Ledger::start(1, 1).await;
        let (ready, _) = tokio::sync::oneshot::channel();
        let shutdown = tokio_util::sync::CancellationToken::new();
        let result = muster_planner_service::serve(ledger.bus.clone(), config, Reload::default(), ready, shutdown).await;
        format!("{:#}", result.expect_err("refused"))
    };
    let mistakes = refusal(config("basl:bad.basl", folder.path())).await;
    assert!(mistakes.contains("bad.basl:2: ") && mistakes.contains("bad.basl:3: "), "{mistakes}");
    let mistakes = refusal(config("fifo", folder.path())).await;
    assert!(mistakes.contains("expected basl:FILE, tcl:BODY[,INIT] or external:COMMAND, found `fifo`"), "{mistakes}");
    let two = Config { command: vec!["true".into()], ..config("tcl:body", folder.path()) };
    assert!(refusal(two).await.contains("two programs that plan"));
    let nowhere = Config { scheduler_folder: None, ..config("tcl:body", folder.path()) };
    assert!(refusal(nowhere).await.contains("no `scheduler_folder`"));
    let missing = config("tcl:body", Path::new("/nowhere/at/all"));
    assert!(refusal(missing).await.contains("/nowhere/at/all: there is no such folder"));
}
