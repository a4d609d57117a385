//! The service: calls come from the work queues, are claimed, made and reported.

use crate::site::{config, number_in, runs, until};
use bytes::Bytes;
use muster_bus::{LocalBus, Message, NatsBus, NatsConfig, SharedBus, WorkQueue, testing::NatsServer};
use muster_filter_runner::{Answer, Description, Descriptions, Judgement, serve};
use muster_schemas::{
    JobId, Sequence, Timestamp,
    command::{CallOutcome, CallReport, Command, CommandEnvelope, Reply},
    event::{Owner, Validated},
    filter::{CallId, FilterAction, FilterExit, FilterForm, FilterKind, FilterSpec, TemplateSpec},
    filter_order::{DescribedJob, FilterOrder, FilterWork, RunnerBriefing, RunnerHeartbeat},
    job::{JobSpec, JobState},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};
use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// Gives filters the name of a job; any answer is accepted.
struct Names;

impl Descriptions for Names {
    fn staged(&self, job: &DescribedJob) -> Result<Description, String> {
        self.describe(job)
    }

    fn describe(&self, job: &DescribedJob) -> Result<Description, String> {
        let xml = Bytes::from(format!("<Job Name=\"{}\"/>", job.name));
        Ok(Description { json: Bytes::from(format!("{{\"Name\":\"{}\"}}", job.name)), xml })
    }

    fn judge(&self, _: FilterKind, _: FilterAction, _: &Description, answer: &Answer) -> Judgement {
        Judgement { message: Some(answer.result_lines.text()), ..Judgement::default() }
    }

    fn validate(
        &self,
        job: &DescribedJob,
        _: &[Arc<TemplateSpec>],
        _: Option<&TemplateSpec>,
        _: Timestamp,
    ) -> Result<Validated, String> {
        if job.name == "bad" { Err("[SizeNotValid] no".into()) } else { Ok(Validated::default()) }
    }
}

/// A ledger as runners see it: the first to claim a call gets it.
#[derive(Default)]
struct Ledger {
    claims: BTreeMap<(CallId, u32), String>,
    reports: Vec<(String, CallReport)>,
    beats: BTreeSet<String>,
    briefing: RunnerBriefing,
    /// Whether it does not answer.
    is_away: bool,
}

impl Ledger {
    fn decide(&mut self, envelope: &CommandEnvelope) -> Reply {
        let muster_schemas::event::Actor::Runner(runner) = &envelope.actor else { panic!("{envelope:?}") };
        match &envelope.command {
            Command::ClaimCalls { calls } => {
                Reply::Claimed(calls.iter().map(|call| self.claim(*call, runner)).collect())
            }
            Command::ReportCalls { reports, .. } => {
                self.reports.extend(reports.iter().map(|report| (runner.clone(), report.clone())));
                Reply::Done
            }
            other => panic!("{other:?}"),
        }
    }

    fn claim(&mut self, call: (CallId, u32), runner: &str) -> bool {
        let is_free = !self.claims.contains_key(&call);
        self.claims.entry(call).or_insert_with(|| runner.to_owned());
        is_free
    }
}

/// A bus with a ledger, and programs.
struct World {
    bus: SharedBus,
    ledger: Arc<Mutex<Ledger>>,
    folder: TempDir,
}

struct Running {
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Running {
    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

impl World {
    async fn new() -> Self {
        Self::on(LocalBus::new()).await
    }

    async fn on(bus: SharedBus) -> Self {
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(folder.path().join("state")).unwrap();
        fs::set_permissions(folder.path().join("state"), Permissions::from_mode(0o777)).unwrap();
        let mut commands = bus.serve("muster.command.runner.*").await.unwrap();
        let mut beats = bus.serve("muster.command.runner-heartbeat.*").await.unwrap();
        let (of_commands, of_beats) = (Arc::clone(&ledger), Arc::clone(&ledger));
        tokio::spawn(async move {
            while let Some(request) = commands.next().await {
                let envelope: CommandEnvelope = request.message.decode().unwrap();
                let mut ledger = of_commands.lock().unwrap();
                if !ledger.is_away {
                    let reply = ledger.decide(&envelope);
                    let answer = muster_schemas::command::Answer { sequence: Sequence(1), result: Ok(reply) };
                    request.reply(Message::encode(&answer).unwrap());
                }
            }
        });
        tokio::spawn(async move {
            while let Some(request) = beats.next().await {
                let beat: RunnerHeartbeat = request.message.decode().unwrap();
                let mut ledger = of_beats.lock().unwrap();
                ledger.beats.insert(beat.runner);
                request.reply(Message::encode(&ledger.briefing).unwrap());
            }
        });
        Self { bus, ledger, folder }
    }

    async fn runner(&self, name: &str) -> Running {
        self.runner_with(name, |_| {}).await
    }

    async fn runner_with(&self, name: &str, change: impl FnOnce(&mut muster_filter_runner::RunnerConfig)) -> Running {
        let mut config = config(self.folder.path());
        config.name = name.into();
        change(&mut config);
        let (ready, is_ready) = oneshot::channel();
        let stop = CancellationToken::new();
        let task = tokio::spawn(serve(self.bus.clone(), config, Arc::new(Names), ready, stop.clone()));
        is_ready.await.unwrap();
        Running { stop, task }
    }

    fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn state(&self, name: &str) -> PathBuf {
        self.folder.path().join("state").join(name)
    }

    async fn offer(&self, key: &str, order: &FilterOrder) {
        let queue = if order.starts_program() { WorkQueue::FILTERS } else { WorkQueue::CHECKS };
        self.bus.enqueue(&queue, key, Message::encode(order).unwrap()).await.unwrap();
    }

    /// Offers a call of a program for a job.
    async fn call(&self, job: u64, path: &Path) -> FilterOrder {
        let order = order(job, path, FilterForm::Exec);
        self.offer(&order.key(), &order).await;
        order
    }

    fn reports(&self) -> Vec<(String, CallReport)> {
        self.ledger.lock().unwrap().reports.clone()
    }

    async fn report_of(&self, order: &FilterOrder) -> (String, CallReport) {
        until(&format!("the report on {}", order.call), || {
            self.reports().into_iter().find(|(_, report)| report.call == order.call)
        })
        .await
    }

    async fn exit_of(&self, order: &FilterOrder) -> FilterExit {
        match self.report_of(order).await.1.outcome {
            CallOutcome::Called(report) => report.exit,
            other => panic!("{other:?}"),
        }
    }
}

fn order(job: u64, path: &Path, form: FilterForm) -> FilterOrder {
    let filter = FilterSpec { name: "check".into(), path: path.display().to_string(), form, revert_on_unknown: false };
    FilterOrder {
        call: CallId {
            job: JobId::job(job),
            kind: FilterKind::Submission,
            chain: job,
            position: 0,
            action: FilterAction::Filter,
        },
        attempt: 1,
        job: described(job, "a"),
        work: FilterWork::Filter { filter, limit_seconds: 15, parameters: None },
    }
}

fn described(job: u64, name: &str) -> DescribedJob {
    DescribedJob {
        id: JobId::job(job),
        owner: Owner { user: "ann".into(), uid: 1000, gid: 1000 },
        submitted: Timestamp(0),
        state: JobState::Queued,
        is_entering: true,
        spec: Arc::new(JobSpec::default()),
        tasks: None,
        template: None,
        document: None,
        is_as_received: false,
        name: name.into(),
        priority: 0,
        walltime_seconds: None,
        alternatives: Arc::default(),
        component: None,
        changed: Vec::new(),
    }
}

fn check(job: u64, name: &str) -> FilterOrder {
    let work = FilterWork::Validate { templates: Vec::new(), default_template: None, now: Timestamp(0) };
    let order = order(job, Path::new("/"), FilterForm::Exec);
    FilterOrder { job: described(job, name), work, ..order }
}

/// HPC-F-85, HPC-F-62
#[tokio::test]
async fn a_call_is_claimed_made_and_reported() {
    let world = World::new().await;
    let runner = world.runner("r1").await;
    let path = world.program("filter", "grep -q 'Name=\"a\"' $1 && echo $MUSTER_INVOCATION_ID $MUSTER_ATTEMPT; exit 7");
    let order = world.call(42, &path).await;
    let (by, report) = world.report_of(&order).await;
    assert_eq!((by.as_str(), report.attempt), ("r1", 1));
    let CallOutcome::Called(called) = report.outcome else { panic!("{report:?}") };
    assert_eq!(called.exit, FilterExit::Code(7));
    assert_eq!(called.stdout, "42-submission-42-0-filter 1\n");
    assert_eq!(called.input_hash, blake3::hash(b"<Job Name=\"a\"/>").to_hex().to_string());
    assert!(world.ledger.lock().unwrap().claims.contains_key(&(order.call, 1)));
    runner.stop().await;
}

/// HPC-F-85
#[tokio::test]
async fn a_call_that_another_has_is_not_made() {
    let world = World::new().await;
    let path = world.program("filter", &format!("echo $MUSTER_JOB_ID >> {}", world.state("made").display()));
    let theirs = order(1, &path, FilterForm::Exec);
    world.ledger.lock().unwrap().claims.insert((theirs.call, 1), "other".into());
    let runner = world.runner("r1").await;
    world.offer("theirs", &theirs).await;
    let ours = world.call(2, &path).await;
    assert_eq!(world.exit_of(&ours).await, FilterExit::Code(0));
    runner.stop().await;
    assert_eq!(fs::read_to_string(world.state("made")).unwrap(), "2\n");
}

/// HPC-F-80
#[tokio::test]
async fn runners_share_the_calls_and_each_is_made_once() {
    let world = World::new().await;
    let path =
        world.program("filter", &format!("echo $MUSTER_JOB_ID >> {}; sleep 0.05", world.state("made").display()));
    let runners = [world.runner("r1").await, world.runner("r2").await];
    let mut orders = Vec::new();
    for job in 1..=40 {
        orders.push(world.call(job, &path).await);
    }
    // A queue may deliver a call twice.
    for order in &orders {
        world.offer(&format!("{}-again", order.key()), order).await;
    }
    let mut by = BTreeSet::new();
    for order in &orders {
        by.insert(world.report_of(order).await.0);
    }
    assert_eq!(by.len(), 2, "{by:?}");
    for runner in runners {
        runner.stop().await;
    }
    let made = fs::read_to_string(world.state("made")).unwrap();
    let mut made: Vec<u64> = made.lines().map(|line| line.parse().unwrap()).collect();
    made.sort_unstable();
    assert_eq!(made, (1..=40).collect::<Vec<_>>());
}

/// HPC-F-80: R runners with C slots decide N calls in ceil(N / (R * C)) rounds. While calls wait every slot is busy,
/// and none has two: each call waits until the test releases its round.
#[tokio::test]
async fn as_many_calls_are_made_at_a_time_as_there_are_slots() {
    for (runners, slots, calls) in [(1, 1, 3), (1, 4, 3), (1, 4, 4), (1, 4, 5), (3, 2, 6), (3, 2, 13)] {
        let world = World::new().await;
        let begun = world.state("begun");
        let text = "echo $MUSTER_JOB_ID >> BEGUN; until [ -e BEGUN.$MUSTER_JOB_ID ]; do sleep 0.01; done";
        let text = text.replace("BEGUN", &begun.display().to_string());
        let path = world.program("filter", &text);
        let mut up = Vec::new();
        for number in 1..=runners {
            up.push(world.runner_with(&format!("r{number}"), |config| config.slots = slots).await);
        }
        for job in 1..=calls {
            world.call(job, &path).await;
        }
        let under_way =
            || -> Vec<String> { fs::read_to_string(&begun).unwrap_or_default().lines().map(str::to_owned).collect() };
        let most = runners * slots as u64;
        for round in 0..calls.div_ceil(most) {
            let (decided, in_round) = (round * most, most.min(calls - round * most));
            let is_busy = || (under_way().len() as u64 == decided + in_round).then_some(());
            until("a busy slot for each call that waits", is_busy).await;
            assert_eq!(world.reports().len() as u64, decided, "{runners} runners of {slots} slots");
            for job in under_way() {
                fs::write(format!("{}.{job}", begun.display()), "").unwrap();
            }
            until("the end of the round", || (world.reports().len() as u64 == decided + in_round).then_some(())).await;
        }
        assert_eq!(world.reports().len() as u64, calls);
        for runner in up {
            runner.stop().await;
        }
    }
}

/// HPC-F-91. On NATS, where the one that has waited longest is served first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_program_is_not_here_is_left_to_others_for_a_while() {
    let server = NatsServer::start();
    let bus = NatsBus::connect(NatsConfig { url: server.url(), ..NatsConfig::default() });
    let world = World::on(bus.await.unwrap()).await;
    let path = world.folder.path().join("nowhere");
    let first = world.runner("r1").await;
    let order = world.call(1, &path).await;
    assert_eq!(world.exit_of(&order).await, FilterExit::NotFound(path.display().to_string()));
    // The ledger offers it to another runner: the first does not even ask for it.
    let again = FilterOrder { attempt: 2, ..order.clone() };
    world.offer(&again.key(), &again).await;
    let second = world.runner("r2").await;
    let by = until("the second report", || {
        world.reports().into_iter().find(|(_, report)| report.attempt == 2).map(|(by, _)| by)
    })
    .await;
    assert_eq!(by, "r2");
    first.stop().await;
    second.stop().await;
}

/// HPC-F-81
#[tokio::test]
async fn checks_do_not_wait_behind_programs_that_hang() {
    let world = World::new().await;
    let runner = world.runner_with("r1", |config| config.slots = 1).await;
    let path = world.program("filter", &format!("echo $$ > {}; exec sleep 60", world.state("pid").display()));
    world.call(1, &path).await;
    number_in(&world.state("pid")).await;
    world.call(2, &path).await;
    let (good, bad) = (check(3, "good"), check(4, "bad"));
    world.offer("good", &good).await;
    world.offer("bad", &bad).await;
    assert!(matches!(world.report_of(&good).await.1.outcome, CallOutcome::Validated(_)));
    let refused = world.report_of(&bad).await.1.outcome;
    assert_eq!(refused, CallOutcome::Refused("[SizeNotValid] no".into()));
    runner.stop().await;
}

/// HPC-F-23
#[tokio::test]
async fn a_call_that_nobody_waits_for_any_more_is_ended_and_told_so() {
    let world = World::new().await;
    let runner = world.runner("r1").await;
    let path = world.program("filter", &format!("echo $$ > {}; exec sleep 60", world.state("pid").display()));
    let order = world.call(1, &path).await;
    let process = number_in(&world.state("pid")).await;
    world.ledger.lock().unwrap().briefing.given_up = vec![order.call];
    assert_eq!(world.exit_of(&order).await, FilterExit::Signal(15));
    until("the end of the filter", || (!runs(process)).then_some(())).await;
    runner.stop().await;
}

/// HPC-F-86
#[tokio::test]
async fn an_answer_is_reported_however_late_the_ledger_can_be_reached() {
    let world = World::new().await;
    let runner = world.runner("r1").await;
    let path = world.program(
        "filter",
        &format!("echo $$ > {0}; until [ -e {0}.go ]; do sleep 0.01; done; exit 3", world.state("pid").display()),
    );
    let order = world.call(1, &path).await;
    let process = number_in(&world.state("pid")).await;
    world.ledger.lock().unwrap().is_away = true;
    fs::write(world.state("pid.go"), "").unwrap();
    until("the end of the filter", || (!runs(process)).then_some(())).await;
    assert!(world.reports().is_empty());
    world.ledger.lock().unwrap().is_away = false;
    assert_eq!(world.exit_of(&order).await, FilterExit::Code(3));
    runner.stop().await;
}

#[tokio::test]
async fn a_runner_that_stops_ends_what_it_has_begun_and_begins_nothing_more() {
    let world = World::new().await;
    let runner = world.runner_with("r1", |config| config.slots = 1).await;
    let path = world.program("filter", &format!("echo $$ > {}; sleep 0.5; exit 5", world.state("pid").display()));
    let order = world.call(1, &path).await;
    number_in(&world.state("pid")).await;
    let waiting = world.call(2, &path).await;
    runner.stop().await;
    assert_eq!(world.exit_of(&order).await, FilterExit::Code(5));
    assert!(!world.ledger.lock().unwrap().claims.contains_key(&(waiting.call, 1)));
    // It is there for the next one.
    let next = world.runner("r2").await;
    assert_eq!(world.exit_of(&waiting).await, FilterExit::Code(5));
    next.stop().await;
}

const PERSISTENT: &str = r#"
import json, sys
for line in sys.stdin:
    order = json.loads(line)
    print(json.dumps({"id": order["id"], "code": 0}), flush=True)
    if order["type"] == "unload":
        open(sys.argv[0] + ".state/unloaded", "w").close()
        break
"#;

/// HPC-F-67
#[tokio::test]
async fn a_persistent_filter_that_is_defined_no_more_is_unloaded() {
    let world = World::new().await;
    let path = world.folder.path().join("persistent");
    fs::create_dir(world.folder.path().join("persistent.state")).unwrap();
    fs::set_permissions(world.folder.path().join("persistent.state"), Permissions::from_mode(0o777)).unwrap();
    fs::write(&path, format!("#!/usr/bin/env python3\n{PERSISTENT}")).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    let FilterWork::Filter { filter, .. } = order(1, &path, FilterForm::Persistent).work else { unreachable!() };
    world.ledger.lock().unwrap().briefing.persistent = vec![filter];
    let python = std::env::var("PATH").unwrap();
    let runner = world.runner_with("r1", |config| config.path = python).await;
    for job in 1..=100 {
        let order = order(job, &path, FilterForm::Persistent);
        world.offer(&order.key(), &order).await;
    }
    until("all reports", || (world.reports().len() == 100).then_some(())).await;
    assert!(!world.folder.path().join("persistent.state/unloaded").exists());
    world.ledger.lock().unwrap().briefing.persistent.clear();
    until("its end", || world.folder.path().join("persistent.state/unloaded").exists().then_some(())).await;
    runner.stop().await;
}

#[tokio::test]
async fn a_runner_says_that_it_is_there() {
    let world = World::new().await;
    let runner = world.runner("r1").await;
    until("a sign of life", || world.ledger.lock().unwrap().beats.contains("r1").then_some(())).await;
    runner.stop().await;
}

/// HPC-F-70
#[tokio::test]
async fn without_its_account_a_runner_checks_jobs_and_says_of_programs_why_they_cannot_be_run() {
    if !nix::unistd::Uid::effective().is_root() {
        return muster_surroundings::skipped("only root can switch to another account");
    }
    let world = World::new().await;
    let lacking = |config: &mut muster_filter_runner::RunnerConfig| {
        config.account = "no-such-account".into();
        config.may_lack_programs = true;
    };
    let runner = world.runner_with("r1", lacking).await;
    let path = world.program("filter", "exit 0");
    let FilterExit::NotRunnable(why) = world.exit_of(&world.call(1, &path).await).await else { panic!("it was run") };
    assert!(why.contains("account `no-such-account`"), "{why}");
    world.offer("check", &check(2, "good")).await;
    assert!(matches!(world.report_of(&check(2, "good")).await.1.outcome, CallOutcome::Validated(_)));
    runner.stop().await;
    let (ready, _) = oneshot::channel();
    let mut config = config(world.folder.path());
    lacking(&mut config);
    config.may_lack_programs = false;
    let refused = serve(world.bus.clone(), config, Arc::new(Names), ready, CancellationToken::new()).await;
    let refused = format!("{:#}", refused.unwrap_err());
    assert!(refused.contains("useradd --system --shell /usr/sbin/nologin no-such-account"), "{refused}");
}
