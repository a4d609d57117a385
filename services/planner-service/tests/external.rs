//! Programs that plan in place of the built-in planner: good ones, and ones that crash, are silent or talk nonsense.

mod support;

use muster_bus::Message;
use muster_planner_service::{Config, ExternalLink};
use muster_schemas::{JobId, job::WaitReason, plan::ProposedPlan, subjects};
use std::path::Path;
use support::{Ledger, start_planner, started};

/// A program that answers each cycle with the result of `answer`.
const PROGRAM: &str = r#"
import json, os, sys, time
here = os.path.dirname(os.path.abspath(__file__))
def say(message):
    print(json.dumps(message), flush=True)
def plan(cycle, **more):
    return {"type": "plan", "seen": cycle["seen"], **more}
def start_all(cycle):
    return plan(cycle, starts=[{"job": job["job"]} for job in cycle["waiting"]])
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        say({"type": "hello", "protocol": 1})
        continue
    cycle = message
    if not cycle["waiting"]:
        say(plan(cycle))
        continue
"#;

struct Script(tempfile::TempDir);

impl Script {
    /// A program that does this with each cycle in which a job waits.
    fn new(body: &str) -> Self {
        let indented: String = body.lines().map(|line| format!("    {line}\n")).collect();
        Self::whole(&format!("{PROGRAM}{indented}"))
    }

    fn whole(text: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("planner.py"), text).expect("written");
        Self(folder)
    }

    fn config(&self) -> Config {
        let path = self.0.path().join("planner.py").display().to_string();
        Config { command: vec!["python3".into(), path], answer_timeout_seconds: 20, ..Config::default() }
    }
}

/// The reason that a plan gives for a job.
fn reason(plan: &ProposedPlan, job: JobId) -> String {
    let given = plan.reasons.iter().find(|waiting| waiting.job == job);
    given.map(|waiting| waiting.reason.to_string()).unwrap_or_default()
}

/// The reason that jobs wait for while the program fails.
async fn failure_of(script: &Script, config: Config) -> String {
    let mut ledger = Ledger::start(1, 2).await;
    let job = ledger.submit(1, None).await;
    let _planner = start_planner(&ledger.bus, config).await;
    let (plan, _) = ledger.commit_next_plan().await;
    assert!(plan.starts.is_empty(), "{plan:?}");
    assert!(matches!(plan.reasons[0].reason, WaitReason::PlannerFailed(_)), "{plan:?}");
    assert!(script.0.path().exists());
    reason(&plan, job)
}

#[tokio::test]
async fn the_example_starts_the_shortest_job_first_where_there_is_room() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ops/examples/external_planner.py");
    let mut ledger = Ledger::start(2, 2).await;
    let long = ledger.submit(3, Some(7200)).await;
    let short = ledger.submit(3, Some(60)).await;
    let config = Config { command: vec!["python3".into(), example.display().to_string()], ..Config::default() };
    let _planner = start_planner(&ledger.bus, config).await;
    let (plan, refused) = ledger.commit_next_plan().await;
    assert_eq!((started(&plan), refused), (vec![short], Vec::new()));
    let shares = &plan.starts[0].placement.components[0].shares;
    let dealt: Vec<_> = shares.iter().map(|share| (share.cores.to_string(), share.tasks)).collect();
    assert_eq!(dealt, [("0-1".to_owned(), 2), ("0".to_owned(), 1)]);
    assert_eq!(reason(&plan, long), "no room on the nodes for it now");
    ledger.end(short).await;
    assert_eq!(started(&ledger.commit_next_plan().await.0), [long]);
}

#[tokio::test]
async fn the_service_places_what_the_planner_does_not() {
    let script = Script::new(
        r#"say(plan(cycle, starts=[
    {"job": "1"},
    {"job": "2", "components": [{"nodes": [{"name": "node2"}]}]},
    {"job": "3", "components": [{"nodes": [{"name": "node2", "cores": "3"}]}]},
]))"#,
    );
    let mut ledger = Ledger::start(2, 4).await;
    for _ in 0..3 {
        ledger.submit(1, None).await;
    }
    let _planner = start_planner(&ledger.bus, script.config()).await;
    let (plan, refused) = ledger.commit_next_plan().await;
    assert_eq!(refused, []);
    let node = |name: &str| ledger.state.node_by_name(name).unwrap().id;
    let shares = plan.starts.iter().flat_map(|start| start.placement.shares());
    let given: Vec<_> = shares.map(|share| (share.node, share.cores.to_string())).collect();
    assert_eq!(given, [(node("node1"), "0".into()), (node("node2"), "0".into()), (node("node2"), "3".into())]);
}

#[tokio::test]
async fn what_cannot_be_is_refused_singly_and_the_rest_stands() {
    let script = Script::new(
        r#"shares = lambda **share: [{"nodes": [share]}]
say(plan(cycle, starts=[
    {"job": "77"},
    {"job": "1", "components": shares(name="nowhere", cores=1)},
    {"job": "2", "components": shares(name="node1", cores=9)},
    {"job": "3", "components": shares(name="node1", cores="9")},
    {"job": "4", "components": shares(name="node1", cores=1, memory_bytes=1 << 60)},
    {"job": "5", "components": shares(name="node1", tasks=1)},
    {"job": "6", "components": [{"alternative": 9}]},
    {"job": "7", "components": [{}, {}]},
    {"job": "8"},
    {"job": "8"},
], reasons=[{"job": "99", "text": "x"}]))"#,
    );
    let mut ledger = Ledger::start(1, 4).await;
    let mut jobs = Vec::new();
    for _ in 0..8 {
        jobs.push(ledger.submit(1, None).await);
    }
    let _planner = start_planner(&ledger.bus, script.config()).await;
    let (plan, refused) = ledger.commit_next_plan().await;
    assert_eq!(refused, [jobs[3], jobs[7]], "the ledger refuses what is not free, and a second start");
    assert!(ledger.state.job(jobs[7]).unwrap().run().is_some());
    for (job, expected) in [
        (0, "there is no node `nowhere`"),
        (1, "node `node1` does not have these cores free, but 4"),
        (2, "node `node1` does not have these cores free, but 4"),
        (4, "node `node1` is given without `cores`"),
        (5, "it has no alternative 9"),
        (6, "it has 1 components, and 2 are placed"),
    ] {
        assert_eq!(reason(&plan, jobs[job]), format!("the external planner's start was refused: {expected}"));
    }
}

#[tokio::test]
async fn a_program_that_crashes_starts_nothing_and_is_told() {
    let script = Script::new("raise ValueError('no idea')");
    let reason = failure_of(&script, script.config()).await;
    assert_eq!(reason, "external planner: exited with status 1: ValueError: no idea");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told() {
    let script = Script::new("");
    let config = Config { command: vec!["/no/such/program".into()], ..Config::default() };
    let reason = failure_of(&script, config).await;
    assert!(reason.starts_with("external planner: `/no/such/program` cannot be started: No such file"), "{reason}");
}

#[tokio::test]
async fn a_silent_program_is_given_up() {
    let script = Script::new("sys.stderr.write('thinking\\n'); sys.stderr.flush(); time.sleep(1000)");
    let reason = failure_of(&script, Config { answer_timeout_seconds: 2, ..script.config() }).await;
    assert_eq!(reason, "external planner: no answer within 2 s: thinking");
}

#[tokio::test]
async fn a_program_that_talks_nonsense_is_given_up() {
    for (body, expected) in [
        (
            "print('starting', flush=True)",
            "its answer is not one of the protocol: expected value at line 1 column 1, in `starting`",
        ),
        (
            "say({'type': 'plan', 'seen': cycle['seen'], 'strats': []})",
            "its answer is not one of the protocol: unknown field `strats`",
        ),
        ("say({'type': 'plan', 'seen': 10 ** 9})", "its plan has seen record 1000000000, which it was not shown"),
        ("say({'type': 'hello', 'protocol': 1})", "it answered `hello` to a `cycle`"),
        ("sys.stdout.close(); os.close(1); time.sleep(1000)", "it closed its standard input or output and runs on"),
        ("os.kill(os.getpid(), 9)", "ended by signal 9"),
    ] {
        let script = Script::new(body);
        let reason = failure_of(&script, script.config()).await;
        assert!(reason.starts_with(&format!("external planner: {expected}")), "{body}: {reason}");
    }
}

#[tokio::test]
async fn output_without_end_is_not_read_to_its_end() {
    let script = Script::new("while True: sys.stdout.write('x' * (1 << 20))");
    assert_eq!(failure_of(&script, script.config()).await, "external planner: its answer has more than 67108864 bytes");
    let script = Script::new("while True: sys.stderr.write('x' * (1 << 20))");
    let reason = failure_of(&script, Config { answer_timeout_seconds: 2, ..script.config() }).await;
    assert!(reason.len() < 600 && reason.contains("no answer within 2 s: xxx"), "{reason}");
}

#[tokio::test]
async fn another_version_of_the_protocol_is_told() {
    let script = Script::whole("print('{\"type\":\"hello\",\"protocol\":2}', flush=True); input(); input()");
    let reason = failure_of(&script, script.config()).await;
    assert_eq!(reason, "external planner: it speaks version 2 of the protocol, this is version 1");
}

#[tokio::test]
async fn answers_to_earlier_cycles_are_passed_over() {
    let script = Script::new(
        "for _ in range(3): say({'type': 'plan', 'seen': cycle['seen'] - 1, 'starts': [{'job': '99'}]})\nsay(start_all(cycle))",
    );
    let mut ledger = Ledger::start(1, 2).await;
    let job = ledger.submit(1, None).await;
    let _planner = start_planner(&ledger.bus, script.config()).await;
    assert_eq!(started(&ledger.commit_next_plan().await.0), [job]);
}

#[tokio::test]
async fn a_program_that_crashed_is_started_again_and_goes_on() {
    let script = Script::new(
        r#"if not os.path.exists(here + "/crashed"):
    open(here + "/crashed", "w").close()
    sys.exit("not yet")
say(start_all(cycle))"#,
    );
    let mut ledger = Ledger::start(1, 2).await;
    let job = ledger.submit(1, None).await;
    let _planner = start_planner(&ledger.bus, script.config()).await;
    let (plan, _) = ledger.commit_next_plan().await;
    assert_eq!(reason(&plan, job), "external planner: exited with status 1: not yet");
    assert_eq!(started(&ledger.commit_next_plan().await.0), [job]);
}

#[tokio::test]
async fn the_policy_in_force_plans_meanwhile_if_the_site_wants_it() {
    let script = Script::new("sys.exit(1)");
    let mut ledger = Ledger::start(1, 2).await;
    let job = ledger.submit(1, None).await;
    let _planner = start_planner(&ledger.bus, Config { fallback: true, ..script.config() }).await;
    assert_eq!(started(&ledger.commit_next_plan().await.0), [job]);
}

#[tokio::test]
async fn a_program_on_the_bus_is_asked_the_same() {
    let mut ledger = Ledger::start(1, 2).await;
    let job = ledger.submit(1, None).await;
    let config = Config { external: Some(ExternalLink::Bus), ..Config::default() };
    let _planner = start_planner(&ledger.bus, config).await;
    let (plan, _) = ledger.commit_next_plan().await;
    assert_eq!(reason(&plan, job), "external planner: nobody answers on the bus subject `muster.planner.external`");

    let mut questions = ledger.bus.serve(subjects::PLANNER_EXTERNAL).await.expect("served");
    tokio::spawn(async move {
        while let Some(question) = questions.next().await {
            let message: serde_json::Value = serde_json::from_slice(&question.message.payload).expect("JSON");
            let answer = match message["type"].as_str() {
                Some("hello") => serde_json::json!({ "type": "hello", "protocol": 1 }),
                _ => serde_json::json!({ "type": "plan", "seen": message["seen"], "starts": [{ "job": "1" }] }),
            };
            question.reply(Message::new(answer.to_string()));
        }
    });
    assert_eq!(started(&ledger.commit_next_plan().await.0), [job]);
}
