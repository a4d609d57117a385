//! Scheduling programs of PBS that plan for a cluster.

mod support;

use muster_domain::State;
use muster_planner_service::{Config, Reload};
use muster_schemas::{
    JobId, Timestamp,
    cluster::{ClusterChange, ClusterSettingsChange, QueueSpecChange},
    command::{Command, JobSelection, RefusedStart, Reply},
    event::{Actor, Event},
    job::{Holds, WaitReason},
    plan::ProposedPlan,
    policy::{OtherHours, Period, Policy, Turns},
};
use std::{os::unix::fs::PermissionsExt, path::Path};
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
        gone = ask(t="delete", id=5, job="99")
        text = "%s %s %s %s" % (there.get("text"), reply["ok"], shown["state"], gone["code"])
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
    let expected = "there is no node `node9` False Q UNKNOWN_JOB";
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
    let expected = "there is no node `node9` False Q UNKNOWN_JOB";
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

/// PBS-C-01, PBS-C-02: what happens in the cluster brings cycles with its reason; two starts bring none, nor does it that they
/// are under way on their nodes. A job that is released brings one, and so does one that is deleted while it waits.
#[tokio::test]
async fn events_of_the_cluster_are_triggers() {
    let folder = folder(&[("plan.py", REASONS)]);
    let mut ledger = Ledger::start(1, 2).await;
    let first = ledger.submit(1, None).await;
    let second = ledger.submit(1, None).await;
    let _planner = start_planner(&ledger.bus, config("external:python3 plan.py", folder.path())).await;
    for _ in 0..2 {
        ledger.commit_next_plan().await;
    }
    let cycles = folder.path().join("cycles");
    let seen = || std::fs::read_to_string(&cycles).unwrap_or_default();
    ledger.serve_until(|_| seen() == "SCH_SCHEDULE_FIRST 2\n").await;
    ledger.report_started(first).await;
    ledger.report_started(second).await;
    let mut all = "SCH_SCHEDULE_FIRST 2\n".to_owned();
    let third = ledger.submit(1, None).await;
    all.push_str("SCH_SCHEDULE_NEW 0\n");
    ledger.serve_until(|_| seen() == all).await;
    ledger.end(first).await;
    all.push_str("SCH_SCHEDULE_TERM 1\nSCH_SCHEDULE_RECYC 0\n");
    ledger.serve_until(|_| seen() == all).await;
    assert!(ledger.state.job(third).is_some_and(|job| job.run().is_some()));
    let fourth = ledger.submit(1, None).await;
    all.push_str("SCH_SCHEDULE_NEW 0\n");
    ledger.serve_until(|_| seen() == all).await;
    // It leaves the queue, which is no reason, and comes back, which is one.
    let jobs = || JobSelection::Ids(vec![fourth]);
    let holds = Holds { user: true, ..Holds::default() };
    let hold = Command::Hold { jobs: jobs(), holds, reason: String::new() };
    ledger.command(&support::user(), hold).await;
    ledger.command(&support::user(), Command::Release { jobs: jobs(), holds }).await;
    all.push_str("SCH_SCHEDULE_NEW 0\n");
    ledger.serve_until(|_| seen() == all).await;
    ledger.command(&support::user(), Command::Cancel { jobs: jobs() }).await;
    all.push_str("SCH_SCHEDULE_TERM 0\n");
    ledger.serve_until(|_| seen() == all).await;
}

/// PBS-T-08: the begin of other hours brings a cycle of the clock at that moment, long before `schedule_iteration` is over.
#[tokio::test]
async fn a_change_of_the_hours_is_a_trigger() {
    let folder = folder(&[("plan.py", REASONS)]);
    let mut ledger = Ledger::start(1, 1).await;
    let from = Timestamp::now().plus_seconds(4);
    let periods = vec![Period { from, until: from.plus_seconds(600) }];
    let other_hours = Some(OtherHours { periods, order: Policy::default().order, ..OtherHours::default() });
    let turns = Some(Box::new(Turns { other_hours, ..Turns::default() }));
    let policy = Box::new(Policy { turns, ..Policy::default() });
    ledger.command(&Actor::Ledger, Command::SetPolicy { policy }).await;
    let _planner = start_planner(&ledger.bus, config("external:python3 plan.py", folder.path())).await;
    let cycles = folder.path().join("cycles");
    let seen = || std::fs::read_to_string(&cycles).unwrap_or_default();
    ledger.serve_until(|_| seen() == "SCH_SCHEDULE_FIRST 0\nSCH_SCHEDULE_TIME 0\n").await;
    assert!(Timestamp::now() >= from);
}

const ZONES: &str = r#"
import sys, json
zone = json.loads(sys.stdin.readline())["tz"]
print('{"t":"ready","v":1}', flush=True)
for line in sys.stdin:
    cycle = json.loads(line)
    if cycle["t"] != "cycle": break
    with open("zones", "a") as file: file.write(zone + "\n")
    print(json.dumps({"t": "end", "seq": cycle["seq"]}), flush=True)
"#;

/// PBS-T-07: the local times of a program are those of the zone that the server names, unless this host's file names one.
#[tokio::test]
async fn programs_have_the_zone_of_the_server() {
    for (of_host, expected) in [(None, "UTC\nEurope/Zurich\n"), (Some("Asia/Tokyo"), "Asia/Tokyo\nAsia/Tokyo\n")] {
        let folder = folder(&[("plan.py", ZONES)]);
        let mut ledger = Ledger::start(1, 1).await;
        let settings = Config {
            scheduler_time_zone: of_host.map(str::to_owned),
            ..config("external:python3 plan.py", folder.path())
        };
        let _planner = start_planner(&ledger.bus, settings).await;
        let seen = || std::fs::read_to_string(folder.path().join("zones")).unwrap_or_default();
        ledger.serve_until(|_| seen().lines().count() == 1).await;
        let attributes = Some([("pbs.timezone".to_owned(), "Europe/Zurich".to_owned())].into());
        let settings = ClusterSettingsChange { attributes, ..ClusterSettingsChange::default() };
        let change = Box::new(ClusterChange { settings, ..ClusterChange::default() });
        ledger.command(&Actor::Ledger, Command::Configure { change, keep_unnamed: true }).await;
        ledger.serve_until(|_| seen().lines().count() == 2).await;
        assert_eq!(seen(), expected);
    }
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
    ledger.serve_until(|_| printed() == "1 3\n2 2\n3 1\n4 0\n").await;
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
        let result =
            muster_planner_service::serve(ledger.bus.clone(), config, Reload::default(), ready, shutdown).await;
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
    if !nix::unistd::Uid::effective().is_root() {
        return;
    }
    // Somebody who can change them could run programs as root.
    let open = |path: &Path| std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).expect("a mode");
    open(&folder.path().join("body"));
    for policy in ["tcl:body", "external:./body"] {
        let mistakes = refusal(config(policy, folder.path())).await;
        assert!(mistakes.contains("/body: root does not run it: others than the owner of "), "{mistakes}");
    }
    open(folder.path());
    let mistakes = refusal(config("external:true", folder.path())).await;
    assert!(mistakes.contains(": root does not run it: others than the owner of "), "{mistakes}");
}

/// PBS-C-13: a cycle that takes longer than it may ends, what was accepted in it stays, and its record says so.
#[tokio::test]
async fn a_cycle_that_takes_too_long_is_on_record() {
    let text = r#"
import sys, json, time
json.loads(sys.stdin.readline())
print('{"t":"ready","v":1}', flush=True)
sys.stdin.readline()
print('{"t":"run","id":1,"job":"1"}', flush=True)
time.sleep(600)
"#;
    let folder = folder(&[("plan.py", text)]);
    let mut ledger = Ledger::start(1, 1).await;
    let job = ledger.submit(1, None).await;
    let settings = Config { scheduler_alarm_seconds: 1, ..config("external:python3 plan.py", folder.path()) };
    let _planner = start_planner(&ledger.bus, settings).await;
    ledger.serve_until(|state| state.program_cycle().is_some()).await;
    let cycle = ledger.state.program_cycle().expect("a cycle");
    assert_eq!(cycle.trouble.as_deref(), Some("the cycle took longer than 1 s"));
    assert_eq!((cycle.number, cycle.started), (1, 1));
    assert!(ledger.state.job(job).is_some_and(|job| job.run().is_some()));
}

const ACTS: &str = r#"
import sys, json, os
def say(**message):
    print(json.dumps(message), flush=True)
def ask(**message):
    say(id=1, **message)
    return json.loads(sys.stdin.readline())
def did(reply):
    return "ok" if reply["ok"] else reply["code"]
def state(job):
    return [one for one in ask(t="stat", what="jobs")["data"] if one["id"] == job]
json.loads(sys.stdin.readline())
say(t="ready", v=1)
for line in sys.stdin:
    cycle = json.loads(line)
    if cycle["t"] != "cycle": break
    with open("acts") as file: acts = json.load(file)
    if acts and acts[0].get("t"):
        told = []
        for act in acts:
            reply = did(ask(**act))
            job = act.get("job")
            told.append([reply, [[one["state"], one["queue"]] for one in state(job)] if job else []])
        with open("acts", "w") as file: json.dump(told, file)
    say(t="end", seq=cycle["seq"])
"#;

/// PBS-X-11, PBS-X-22, PBS-C-08: a program holds, moves, alters and deletes jobs and switches queues, and sees at once
/// what became of them; each is an event of the planner. What cannot be is refused with a code (PBS-X-23).
#[tokio::test]
async fn a_program_manages_jobs_and_queues() {
    let acts = r#"[
        {"t": "hold", "job": "1", "kinds": "s"}, {"t": "release", "job": "1", "kinds": "s"},
        {"t": "hold", "job": "1", "kinds": "x"}, {"t": "alter", "job": "1", "changes":
            [{"name": "Priority", "value": "7"}, {"name": "Resource_List", "resource": "walltime", "value": "00:05:00"}]},
        {"t": "alter", "job": "1", "changes": [{"name": "umask", "value": "077"}]},
        {"t": "move", "job": "1", "to": "other"}, {"t": "move", "job": "1", "to": "nowhere"},
        {"t": "signal", "job": "1", "signal": "SIGUSR1"}, {"t": "signal", "job": "1", "signal": "NONE"},
        {"t": "rerun", "job": "1"}, {"t": "stagein", "job": "1"}, {"t": "delete", "job": "2.muster"},
        {"t": "queue", "queue": "other", "set": "stop"}, {"t": "run", "job": "1"},
        {"t": "reserve", "resources": ["nodes=1"]}, {"t": "run", "job": "3"}, {"t": "delete", "job": "1"}
    ]"#;
    let folder = folder(&[("plan.py", ACTS), ("acts", acts)]);
    let mut ledger = Ledger::start(2, 1).await;
    let queue = QueueSpecChange { name: "other".into(), ..QueueSpecChange::default() };
    let change = Box::new(ClusterChange { queues: vec![queue], ..ClusterChange::default() });
    ledger.command(&Actor::Ledger, Command::Configure { change, keep_unnamed: true }).await;
    let first = ledger.submit(1, None).await;
    let second = ledger.submit(1, None).await;
    ledger.submit(1, None).await;
    let _planner = start_planner(&ledger.bus, config("external:python3 plan.py", folder.path())).await;
    ledger.serve_until(|state| state.program_cycle().is_some()).await;
    let told: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("acts")).expect("a file")).expect("JSON");
    let expected = serde_json::json!([
        ["ok", [["H", "default"]]],
        ["ok", [["Q", "default"]]],
        ["BAD_VALUE", [["Q", "default"]]],
        ["ok", [["Q", "default"]]],
        ["UNKNOWN_ATTRIBUTE", [["Q", "default"]]],
        ["ok", [["Q", "other"]]],
        ["UNKNOWN_QUEUE", [["Q", "other"]]],
        ["BAD_STATE", [["Q", "other"]]],
        ["UNKNOWN_SIGNAL", [["Q", "other"]]],
        ["BAD_STATE", [["Q", "other"]]],
        ["BAD_STATE", [["Q", "other"]]],
        ["ok", []],
        ["ok", []],
        ["ok", [["R", "other"]]],
        ["ok", []],
        ["NO_RESOURCES", [["Q", "default"]]],
        ["ok", [["E", "other"]]],
    ]);
    assert_eq!(told, expected, "{told:#}");
    let job = ledger.state.job(first).expect("known");
    assert_eq!((job.lead().priority, &*job.lead().queue), (7, "other"));
    assert_eq!(job.lead().shape.alternatives[0].walltime_seconds, Some(300));
    assert!(ledger.state.job(second).expect("known").is_finished());
    let cycle = ledger.state.program_cycle().expect("a cycle");
    assert_eq!((cycle.number, cycle.started, cycle.done, cycle.refused), (1, 1, 8, 8));
    assert_eq!(cycle.refusals[0].action, "hold");
    // The planner has read of the jobs before.
    assert_eq!(cycle.reasons[0], "SCH_SCHEDULE_FIRST");
}

const COUNTS: &str = "Int CYCLES;\nCYCLES = 0;\nsched_main() { CYCLES++; print(CYCLES); }";

/// PBS-X-07, PBS-C-11: each cycle is on record with the program's globals, which go on when the planner starts again;
/// another text of the program begins with its own.
#[tokio::test]
async fn globals_go_on_after_a_restart_of_the_planner() {
    let folder = folder(&[("counts.basl", COUNTS)]);
    let mut ledger = Ledger::start(1, 1).await;
    let cycles = |state: &State| {
        state.program_cycle().map_or((0, 0), |cycle| {
            let globals: serde_json::Value =
                serde_json::from_str(cycle.globals.as_deref().expect("globals")).expect("JSON");
            (cycle.number, globals["CYCLES"]["Int"].as_u64().expect("a number"))
        })
    };
    let changed = COUNTS.replace("= 0", "= 40");
    for (text, expected) in [(COUNTS, (1, 1)), (COUNTS, (2, 2)), (changed.as_str(), (3, 41))] {
        std::fs::write(folder.path().join("counts.basl"), text).expect("written");
        let _planner = start_planner(&ledger.bus, config("basl:counts.basl", folder.path())).await;
        ledger.serve_until(|state| cycles(state) == expected).await;
    }
}

/// PBS-C-14: a program is read again when it is asked for; one with mistakes is refused on record, and the old one
/// continues.
#[tokio::test]
async fn a_program_is_read_again() {
    let folder = folder(&[("counts.basl", COUNTS)]);
    let mut ledger = Ledger::start(1, 1).await;
    let reload = Reload::default();
    let settings = config("basl:counts.basl", folder.path());
    let _planner = support::start_planner_with(&ledger.bus, settings, reload.clone()).await;
    ledger.serve_until(|state| state.program_cycle().is_some()).await;
    std::fs::write(folder.path().join("counts.basl"), "sched_main() { i = 1; }").expect("written");
    reload.ask();
    ledger
        .serve_until_event(|event| matches!(event, Event::PolicyRefused { name, .. } if name == "basl:counts.basl"))
        .await;
    std::fs::write(folder.path().join("counts.basl"), COUNTS.replace("= 0", "= 40")).expect("written");
    reload.ask();
    let is_new = |state: &State| {
        let globals = state.program_cycle().and_then(|cycle| cycle.globals.clone()).unwrap_or_default();
        let globals: serde_json::Value = serde_json::from_str(&globals).unwrap_or_default();
        globals["CYCLES"]["Int"].as_u64() >= Some(41)
    };
    // It is read between two cycles, and a job brings each.
    for _ in 0..100 {
        let number = |state: &State| state.program_cycle().map_or(0, |cycle| cycle.number);
        let before = number(&ledger.state);
        ledger.submit(1, None).await;
        ledger.serve_until(|state| number(state) > before).await;
        if is_new(&ledger.state) {
            return;
        }
    }
    panic!("the program was not read again: {:?}", ledger.state.program_cycle());
}

/// PBS-X-24: a program that fails five times in a row has scheduling switched off, on record; switching it on lets it
/// try again, with CMD as the reason (PBS-C-01).
#[tokio::test]
async fn a_program_that_failed_too_often_is_switched_on_again() {
    let folder = folder(&[("plan.py", "import sys; sys.exit(1)")]);
    let mut ledger = Ledger::start(1, 1).await;
    let _planner = start_planner(&ledger.bus, config("external:python3 plan.py", folder.path())).await;
    ledger.serve_until(|state| state.settings().is_idle).await;
    assert!(ledger.state.program_cycle().is_some_and(|cycle| cycle.gave_up && cycle.trouble.is_some()));
    let number = ledger.state.program_cycle().expect("a cycle").number;
    let settings = ClusterSettingsChange { is_idle: Some(false), ..ClusterSettingsChange::default() };
    let change = Box::new(ClusterChange { settings, ..ClusterChange::default() });
    ledger.command(&Actor::Ledger, Command::Configure { change, keep_unnamed: true }).await;
    ledger.serve_until(|state| state.program_cycle().is_some_and(|cycle| cycle.number > number)).await;
    assert_eq!(ledger.state.program_cycle().expect("a cycle").reasons[0], "SCH_SCHEDULE_CMD");
}
