//! The events promised to auditors of filters and of lists of tasks, each with its contents.

use super::support::*;
use crate::{
    lists::{basic, list, sweep},
    support::*,
};
use muster_schemas::{
    JobId, PartId, Sequence,
    command::{CallOutcome, Command},
    event::{Actor, JobChange, Record, ShrinkReason, Validated},
    filter::{FilterExit, FilterReport, FilterSettings, FilterSpec},
    job::{ExitStatus, JobSpec},
    plan::{ProposedPlan, ProposedPreemption, StartFacts},
    public::cloud_event,
    scheduling::SchedulingSettings,
};
use serde_json::Value;

/// A row of the table: a name known to auditors, the type of the public event, which events of this type are meant, and
/// where they have the data that the table requires.
struct Row {
    name: &'static str,
    r#type: &'static str,
    is: fn(&Value) -> bool,
    told: &'static [&'static str],
}

const fn row(name: &'static str, told: &'static [&'static str]) -> Row {
    Row { name, r#type: name, is: |_| true, told }
}

const fn one_of(
    name: &'static str,
    r#type: &'static str,
    is: fn(&Value) -> bool,
    told: &'static [&'static str],
) -> Row {
    Row { name, r#type, is, told }
}

fn outcome_is(data: &Value, words: &[&str]) -> bool {
    data["outcome"].as_str().is_some_and(|outcome| words.contains(&outcome))
}

/// The whole table of HPC-E-02. What the table has as a flag of the start is a separate event, `job.backfilled`, and
/// the resources of a start are in `job.allocated`, which comes before the processes exist.
const TABLE: &[Row] = &[
    row("job.submitted", &["/data/owner", "/data/template", "/data/document/bytes", "/data/document/hash"]),
    one_of(
        "filter.chain_started",
        "filter.chain_started",
        |data| data["filter_kind"] == "submission",
        &[
            "/data/chain",
            "/data/filters/0/spec/name",
            "/data/filters/0/spec/path",
            "/data/filters/0/program_hash",
            "/data/limit_seconds",
        ],
    ),
    one_of(
        "filter.chain_started",
        "filter.chain_started",
        |data| data["filter_kind"] == "activation",
        &[
            "/data/chain",
            "/data/parameters/pass",
            "/data/parameters/index",
            "/data/parameters/backfill",
            "/data/parameters/count",
        ],
    ),
    row(
        "filter.invoked",
        &["/data/call/position", "/data/call/action", "/data/invocation", "/data/attempt", "/data/runner"],
    ),
    one_of(
        "filter.verdict",
        "filter.verdict",
        |data| data["exit_code"] == 1,
        &[
            "/data/call/position",
            "/data/exit",
            "/data/duration_micros",
            "/data/changes/0/property",
            "/data/changes/0/new",
            "/data/stdout",
            "/data/stderr",
        ],
    ),
    one_of("filter.verdict", "filter.verdict", |data| data["exit"] == "timed_out", &["/data/call/position"]),
    one_of("filter.verdict", "filter.verdict", |data| data["exit"]["not_found"].is_string(), &["/data/call/position"]),
    one_of(
        "filter.verdict",
        "filter.verdict",
        |data| data["exit"]["not_runnable"].is_string(),
        &["/data/call/position"],
    ),
    one_of("filter.verdict", "filter.verdict", |data| data["exit"] == "runner_lost", &["/data/call/position"]),
    row("filter.chain_passed", &["/data/filter_kind", "/data/chain"]),
    row("filter.chain_failed", &["/data/filter_kind", "/data/chain", "/data/verdict", "/data/position"]),
    row("filter.reverted", &["/data/call/position", "/data/exit", "/data/exit_code"]),
    row("filter.revert_failed", &["/data/call/position", "/data/exit", "/data/exit_code"]),
    row("filter.revert_skipped", &["/data/call/position", "/data/reason"]),
    row("filter.rollback_completed", &["/data/filter_kind", "/data/chain"]),
    row("filter.late_result", &["/data/call", "/data/attempt", "/data/runner", "/data/exit"]),
    row("filter.no_runner", &["/data/since", "/data/calls"]),
    row("job.validated", &["/data/template", "/data/revision", "/data/name", "/data/priority", "/data/alternatives/0"]),
    row("job.queued", &["/data/job"]),
    one_of("job.held", "job.held", |data| data["by"] == "filter", &["/data/until", "/data/reason"]),
    one_of("job.held", "job.held", |data| data["by"] == "user", &["/data/until"]),
    row("job.released", &["/data/was_timed"]),
    row("job.started", &["/data/run", "/data/node"]),
    one_of("job.started", "job.allocated", |_| true, &["/data/run", "/data/nodes/0/node", "/data/nodes/0/cores"]),
    one_of("job.started", "job.backfilled", |_| true, &["/data/run"]),
    row("job.grown", &["/data/run", "/data/nodes/0/node", "/data/nodes/0/cores"]),
    row("job.grow_rejected", &["/data/run"]),
    row("job.shrunk", &["/data/run", "/data/nodes/0/node", "/data/nodes/0/cores"]),
    one_of("job.preempted", "job.shrinking", |data| data["reason"] == "preempted", &["/data/run", "/data/nodes/0"]),
    one_of("job.preempted", "job.stopping", |data| data["reason"] == "preempted", &["/data/run"]),
    one_of("job.requeued", "job.requeued", |data| data["reason"] == "preempted", &["/data/job"]),
    one_of("job.finished", "job.finished", |data| outcome_is(data, &["completed"]), &["/data/job"]),
    one_of("job.failed", "job.finished", |data| outcome_is(data, &["failed"]), &["/data/exit_status"]),
    one_of("job.failed", "job.finished", |data| outcome_is(data, &["refused"]), &["/data/detail"]),
    one_of("job.canceled", "job.finished", |data| outcome_is(data, &["cancelled"]), &["/data/job"]),
    row("job.warning", &["/data/code", "/data/text"]),
    row("queue.blocked", &["/data/job", "/data/priority"]),
    row("queue.unblocked", &["/data/job"]),
    row("resources.reserved", &["/data/job", "/data/nodes/0/node", "/data/nodes/0/cores"]),
    row("resources.released", &["/data/job"]),
    one_of("config.changed", "config.changed", |data| data["what"] == "filters", &["/data/old", "/data/new"]),
    one_of("config.changed", "config.changed", |data| data["what"] == "scheduling", &["/data/old", "/data/new"]),
    one_of(
        "config.changed",
        "config.changed",
        |data| data["what"] == "template t" && !data["old"].is_null(),
        &["/data/old", "/data/new/submission_filters/0/path"],
    ),
];

/// The public events of a cluster.
fn published(cluster: &Cluster) -> Vec<Value> {
    cluster.assert_replays();
    let event = |record: &Record| {
        let event = cloud_event(record, None, &cluster.state);
        serde_json::from_str(&event.json).expect("an event is JSON")
    };
    cluster.log.iter().map(event).collect()
}

fn normal(min: u32, max: u32) -> JobSpec {
    cores(min, max, 2000)
}

fn answer_all<const N: usize>(cluster: &mut Cluster, job: JobId, answers: [FilterReport; N]) {
    for answer in answers {
        cluster.answer(job, answer);
    }
}

/// Three submission filters: jobs that pass, fail, are refused by the check, and wait for runners.
fn submissions() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.set_template("t", &[filter("A")], &[]);
    cluster.set_template("t", &[filter("A"), filter("B")], &[]);
    cluster.set_filters(FilterSettings { submission: Some(exec("C")), ..FilterSettings::default() });
    let hashed = FilterReport { program_hash: Some("07".into()), stdout: "looked".into(), ..changed("x1") };
    let (passes, _) = cluster.describe("t", job(1, 1));
    answer_all(&mut cluster, passes, [hashed, code(0), code(0)]);
    let mut spec = job(1, 1);
    spec.components[0].priority = Some(1000);
    let validated = Validated { template: Some("t".into()), revision: 2, spec, ..Validated::default() };
    cluster.pass_check_as(passes, validated);
    let (fails, _) = cluster.describe("t", job(1, 1));
    answer_all(&mut cluster, fails, [code(0), code(0), code(7), code(3), code(0)]);
    let (refused, _) = cluster.describe("t", job(1, 1));
    answer_all(&mut cluster, refused, [code(0), code(0), code(0)]);
    let check = cluster.claim("r1", refused);
    cluster.report("r1", check, CallOutcome::Refused("[TemplateValueTooLarge] no".into()));
    answer_all(&mut cluster, refused, [code(0), code(0)]);
    for exit in [FilterExit::TimedOut, FilterExit::NotFound("/x".into()), FilterExit::NotRunnable("no".into())] {
        let (id, _) = cluster.describe("t", job(1, 1));
        cluster.answer(id, ended(exit));
    }
    let (lost, _) = cluster.describe("t", job(1, 1));
    let call = cluster.claim("r1", lost);
    for _ in 0..3 {
        cluster.pass(60);
        cluster.tick();
        if cluster.asked(lost).is_some() {
            cluster.claim("r1", lost);
        }
    }
    cluster.report("r1", call, CallOutcome::Called(Box::new(code(0))));
    cluster.describe("t", job(1, 1));
    cluster.ok(&Actor::Ledger, Command::RunnersMissing { since: cluster.now });
    cluster
}

/// Activation filters refuse in each way and finally accept; a job is backfilled, and jobs end.
fn activations() -> Cluster {
    let mut cluster = cluster(4, 2);
    cluster.set_template("t", &[], &[filter("A")]);
    let id = cluster.queue("t", normal(2, 4));
    for verdict in [1, 2, 3] {
        cluster.offer_cores(id, 2);
        cluster.answer(id, code(verdict));
        cluster.pass(1000);
        cluster.tick();
    }
    let until = Some(cluster.now.plus_seconds(60));
    cluster.ok(&user("ada"), Command::HoldUntil { jobs: ids(&[id]), until });
    cluster.ok(&user("ada"), Command::HoldUntil { jobs: ids(&[id]), until: None });
    let around = StartFacts { backfill: true, latest_start: Some(cluster.now.plus_seconds(20)), ..facts(id, 2) };
    let placement = cluster.free(None, 2);
    cluster.offer(id, placement, around);
    cluster.answer(id, code(0));
    let run = cluster.run_of(id).expect("it has its resources");
    cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, 0) });
    cluster.end(run, "node1", ExitStatus::Code(0));
    let fails = cluster.submit("ada", job(1, 1));
    cluster.run_through(fails, 1);
    let canceled = cluster.submit("ada", job(1, 1));
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[canceled]) });
    cluster
}

/// A list of tasks grows, is refused further growth by its filter, gives up what it does not use, and makes way.
fn sizes() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.in_queued_mode(SchedulingSettings::default());
    let (victim, run, _) = cluster.start_list(&list(3, 8, vec![sweep(9)]), &["node1"], 3);
    let more = cluster.placement(&["node2"], 2);
    cluster.grow(victim, more).expect("there is room");
    cluster.ok(&executor("node2"), Command::NodeStarted { part: PartId::new(run, 0) });
    cluster.settle();
    let settings = FilterSettings { activation: Some(exec("E")), ..FilterSettings::default() };
    cluster.set_filters(settings);
    let more = cluster.placement(&["node3"], 1);
    cluster.grow(victim, more).expect("it is asked");
    cluster.answer(victim, code(1));
    cluster.set_filters(FilterSettings::default());
    let unused = cluster.part_of("node2", &[0, 1]);
    cluster.shrink(victim, unused, ShrinkReason::TasksPreempted).expect("it has more than its least");
    for step in [4, 5] {
        cluster.end_step(run, muster_schemas::StepId(step), ExitStatus::Code(0));
    }
    let gains = cluster.submit("eve", job(1, 2));
    let higher = JobChange { priority: Some(10), ..JobChange::default() };
    cluster.ok(&root(), Command::Modify { jobs: ids(&[gains]), change: higher });
    preempt(&mut cluster, gains, victim);
    for step in [1, 2, 3] {
        cluster.end_step(run, muster_schemas::StepId(step), ExitStatus::Code(0));
    }
    cluster.end_parts(run);
    cluster
}

fn preempt(cluster: &mut Cluster, for_job: JobId, victim: JobId) {
    let claims = vec![cluster.part_of("node1", &[1, 2])];
    let preemption = ProposedPreemption { for_job, victims: vec![victim], claims, index: 1, count: 2 };
    let plan = ProposedPlan { preemptions: vec![preemption], ..ProposedPlan::default() };
    cluster.ok(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) });
    cluster.settle();
}

/// Immediate preemption stops the run of a list of tasks.
fn stopped() -> Cluster {
    let mut cluster = Cluster::new();
    let preemption = Some(muster_schemas::scheduling::Preemption::Immediate);
    cluster.in_queued_mode(SchedulingSettings { preemption, ..SchedulingSettings::default() });
    let (victim, ..) = cluster.start_list(&list(1, 4, vec![basic(), basic(), basic()]), &["node1"], 3);
    let gains = cluster.submit("eve", job(1, 2));
    let higher = JobChange { priority: Some(10), ..JobChange::default() };
    cluster.ok(&root(), Command::Modify { jobs: ids(&[gains]), change: higher });
    preempt(&mut cluster, gains, victim);
    cluster
}

/// HPC-E-02, HPC-E-01: every event of the table is published when it should be, with all data that the table requires.
/// How the ends of jobs are named in a job's history is up to the dialect (`muster_hpcpack::shown::event_name`).
#[test]
fn every_event_of_the_table_comes_with_what_it_has_to_tell() {
    let events: Vec<Value> = [submissions(), activations(), sizes(), stopped()].iter().flat_map(published).collect();
    let mut missing = Vec::new();
    for Row { name, r#type, is, told } in TABLE {
        let wanted = format!("muster.{}.v1", r#type);
        let meant: Vec<&Value> =
            events.iter().filter(|event| event["type"] == wanted.as_str() && is(&event["data"])).collect();
        let is_told = |event: &&Value, place: &str| event.pointer(place).is_some_and(|value| !value.is_null());
        if meant.is_empty() {
            missing.push(format!("{name} never comes as {type}"));
        }
        missing.extend(
            told.iter()
                .filter(|place| !meant.is_empty() && !meant.iter().any(|event| is_told(event, place)))
                .map(|place| format!("{name} does not tell {place}: {}", meant[0])),
        );
        for place in ["/id", "/time", "/actor", "/subject", "/summary"] {
            assert!(meant.iter().all(|event| is_told(event, place)), "{name} does not tell {place}");
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// HPC-E-02, HPC-F-71: the actor of the event is the user who changed the setting.
#[test]
fn who_changed_the_filters_is_told() {
    let mut cluster = Cluster::new();
    let spec = FilterSpec { name: "A".into(), ..exec("A") };
    cluster.set_filters(FilterSettings { submission: Some(spec), ..FilterSettings::default() });
    let events = published(&cluster);
    let changed = events.iter().find(|event| event["type"] == "muster.config.changed.v1").expect("it was changed");
    assert_eq!(changed["actor"], "user:root");
    assert_eq!(changed["data"]["new"]["submission"]["name"], "A");
    assert_eq!(changed["data"]["old"]["submission"], Value::Null);
    let _: Sequence =
        changed["id"].as_str().and_then(|id| id.parse().ok()).map(Sequence).expect("its place in the log");
}
