//! Whatever is asked, claimed, answered late or twice, cancelled or lost: each call has one verdict, and a failed chain
//! is rolled back once, from the last filter that passed to the first.

use super::support::*;
use crate::{properties::place, public_events::assert_they_stay, support::*};
use muster_domain::runs::PartState;
use muster_schemas::{
    JobId, PartId,
    command::{CallOutcome, CallReport, Command, JobEnding, Start},
    event::{Actor, EndCause, Event, JobChange, Record, Validated},
    filter::{CallId, ChainVerdict, FilterAction, FilterExit, FilterForm, FilterKind, FilterReport, FilterSettings},
    job::{ExitStatus, Holds, JobSpec},
    plan::{ProposedPlan, StartFacts},
};
use proptest::{
    prelude::*,
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};
use std::collections::{BTreeMap, BTreeSet};

/// A step of a random history. Numbers choose among what exists at that moment.
#[derive(Clone, Debug)]
enum Step {
    Submit { kind: u8, size: u8, priority: u8 },
    Plan { backfill: bool, skip: u8 },
    Claim { runner: u8, call: u8 },
    Report { runner: u8, call: u8, exit: u8, has_others: bool },
    Again { report: u8 },
    Cancel { job: u8, finish: bool },
    Hold { job: u8, seconds: u8 },
    Modify { job: u8, what: u8 },
    Requeue { job: u8 },
    Node { node: u8, what: u8 },
    Run { run: u8, code: u8 },
    Suspend { run: u8, resume: bool },
    Settings { what: u8 },
    Pass { seconds: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    let n = any::<u8>;
    prop_oneof![
        5 => (n(), n(), n()).prop_map(|(kind, size, priority)| Step::Submit { kind, size, priority }),
        8 => (prop::bool::weighted(0.3), n()).prop_map(|(backfill, skip)| Step::Plan { backfill, skip }),
        12 => (n(), n()).prop_map(|(runner, call)| Step::Claim { runner, call }),
        16 => (n(), n(), n(), prop::bool::weighted(0.2))
            .prop_map(|(runner, call, exit, has_others)| Step::Report { runner, call, exit, has_others }),
        3 => n().prop_map(|report| Step::Again { report }),
        3 => (n(), any::<bool>()).prop_map(|(job, finish)| Step::Cancel { job, finish }),
        2 => (n(), n()).prop_map(|(job, seconds)| Step::Hold { job, seconds }),
        3 => (n(), n()).prop_map(|(job, what)| Step::Modify { job, what }),
        2 => n().prop_map(|job| Step::Requeue { job }),
        2 => (n(), n()).prop_map(|(node, what)| Step::Node { node, what }),
        5 => (n(), n()).prop_map(|(run, code)| Step::Run { run, code }),
        4 => (n(), any::<bool>()).prop_map(|(run, resume)| Step::Suspend { run, resume }),
        1 => n().prop_map(|what| Step::Settings { what }),
        6 => n().prop_map(|seconds| Step::Pass { seconds }),
    ]
}

struct Model {
    cluster: Cluster,
    /// Earlier reports, to be repeated.
    made: Vec<(Actor, Command)>,
}

impl Model {
    fn new() -> Self {
        let mut cluster = Cluster::new();
        let mut unknown = filter("U");
        unknown.revert_on_unknown = true;
        cluster.set_template("t", &[filter("A"), unknown.clone()], &[filter("D"), unknown]);
        cluster.set_filters(FilterSettings {
            submission: Some(exec("C")),
            activation: Some(exec("E")),
            retry_interval_seconds: 3,
            ..FilterSettings::default()
        });
        Self { cluster, made: Vec::new() }
    }

    fn job(&self, pick: u8) -> Option<JobId> {
        let jobs: Vec<JobId> = self.cluster.state.jobs().map(|job| job.id).collect();
        jobs.get(pick as usize % jobs.len().max(1)).copied()
    }

    fn call(&self, pick: u8) -> Option<(CallId, u32)> {
        let calls: Vec<(CallId, u32)> =
            self.cluster.state.outstanding_calls().map(|call| (call.id, call.attempt)).collect();
        calls.get(pick as usize % calls.len().max(1)).copied()
    }

    fn spec(size: u8, priority: u8) -> JobSpec {
        let mut spec = job(u32::from(size % 2) + 1, u32::from(size / 2 % 3) + 1);
        spec.components[0].priority = Some(i64::from(priority % 4));
        if size > 200 {
            spec.components[0].alternatives[0].licences = [("ansys".to_owned(), 1)].into();
        }
        spec
    }

    fn outcome(&self, call: &CallId, exit: u8) -> CallOutcome {
        let is_check = self
            .cluster
            .seed(call.job)
            .is_some_and(|seed| matches!(seed.work, muster_schemas::filter_order::FilterWork::Validate { .. }));
        if is_check && exit.is_multiple_of(5) {
            return CallOutcome::Refused("[TemplateValueTooLarge] no".into());
        }
        if is_check {
            let spec = Self::spec(exit, exit);
            return CallOutcome::Validated(Box::new(Validated { spec, ..Validated::default() }));
        }
        let report = match exit % 16 {
            0..=5 => code(0),
            6 if call.kind == FilterKind::Submission => changed("x1"),
            6 | 7 => code(1),
            8 | 9 => code(2),
            10 => code(3),
            11 => code(4),
            12 => ended(FilterExit::TimedOut),
            13 => ended(FilterExit::NotFound("x".into())),
            14 => ended(FilterExit::Signal(9)),
            _ => FilterReport { message: Some("so".into()), ..code(200) },
        };
        CallOutcome::Called(Box::new(report))
    }

    fn plan(&self, backfill: bool, skip: u8) -> Command {
        let state = &self.cluster.state;
        let mut used = BTreeMap::new();
        let mut plan = ProposedPlan { pass: 1, epoch: 1, ..ProposedPlan::default() };
        for (at, waiting) in state.waiting().enumerate() {
            if (at + skip as usize).is_multiple_of(5) {
                continue;
            }
            let id = match &waiting.indices {
                None => waiting.job.id,
                Some(indices) => JobId::task(waiting.job.id.number, indices.first().unwrap_or_default()),
            };
            let kept = waiting.job.filters.as_ref().and_then(|filtering| filtering.kept());
            let placement = match kept {
                Some((_, placement)) => Some((**placement).clone()),
                None => place(state, waiting.job, &mut used, false),
            };
            let Some(placement) = placement else { continue };
            let latest_start = backfill.then(|| self.cluster.now.plus_seconds(i64::from(skip % 8)));
            plan.start_facts.push(StartFacts { job: id, index: 1, backfill, count: 1, latest_start });
            plan.starts.push(Start { job: id, placement });
        }
        Command::CommitPlan { plan: Box::new(plan) }
    }

    fn command(&mut self, step: &Step) -> Option<(Actor, Command)> {
        let now = self.cluster.now;
        Some(match step.clone() {
            Step::Submit { kind, size, priority } => {
                let spec = Self::spec(size, priority);
                match kind % 4 {
                    0 => (user("ada"), Command::Submit { jobs: vec![spec] }),
                    1 => {
                        let indices = muster_schemas::resources::IndexSet::first_n(2);
                        (user("bob"), Command::Submit { jobs: vec![array(indices, Some(1))] })
                    }
                    _ => {
                        let document = Some(muster_schemas::filter::JobDocument::xml(b"x0".as_slice()));
                        let intake = muster_schemas::event::Intake {
                            template: Some("t".into()),
                            document,
                            ..Default::default()
                        };
                        (user("ada"), Command::SubmitDocument { spec: Box::new(spec), intake: Box::new(intake) })
                    }
                }
            }
            Step::Plan { backfill, skip } => (Actor::Planner, self.plan(backfill, skip)),
            Step::Claim { runner: name, call } => {
                (runner(["r1", "r2"][name as usize % 2]), Command::ClaimCalls { calls: vec![self.call(call)?] })
            }
            Step::Report { runner: name, call, exit, has_others } => {
                let (call, attempt) = self.call(call)?;
                let outcome = self.outcome(&call, exit);
                let reports = vec![CallReport { call, attempt, outcome }];
                let made = (runner(["r1", "r2"][name as usize % 2]), Command::ReportCalls { reports, has_others });
                self.made.push(made.clone());
                made
            }
            Step::Again { report } => self.made.get(report as usize % self.made.len().max(1))?.clone(),
            Step::Cancel { job, finish } => {
                let ending = JobEnding { is_finished: finish, ..JobEnding::default() };
                (root(), Command::EndJobs { jobs: ids(&[self.job(job)?]), ending })
            }
            Step::Hold { job, seconds } if seconds < 40 => {
                let holds = Holds { user: true, ..Holds::default() };
                let jobs = ids(&[self.job(job)?]);
                let hold = Command::Hold { jobs: jobs.clone(), holds, reason: String::new() };
                (root(), if seconds < 20 { hold } else { Command::Release { jobs, holds } })
            }
            Step::Hold { job, seconds } => {
                let until = (seconds < 200).then(|| now.plus_seconds(i64::from(seconds % 16) + 1));
                (root(), Command::HoldUntil { jobs: ids(&[self.job(job)?]), until })
            }
            Step::Modify { job: id, what } => {
                let mut change = JobChange::default();
                match what % 3 {
                    0 => change.priority = Some(i64::from(what / 3 % 4)),
                    1 => change.alternatives = Some(job(1, 1).components.remove(0).alternatives),
                    _ => change.queue = Some("other".into()),
                }
                (root(), Command::Modify { jobs: ids(&[self.job(id)?]), change })
            }
            Step::Requeue { job } => {
                (root(), Command::Requeue { jobs: ids(&[self.job(job)?]), hold: false, delay_seconds: 0 })
            }
            Step::Node { node, what } => {
                let name = format!("node{}", node % 3 + 1);
                let known = self.cluster.state.node_by_name(&name)?;
                match what % 5 {
                    0 => (Actor::Ledger, Command::NodeSilent { node: known.id, reason: "silence".into() }),
                    1 => (root(), Command::DrainNodes { nodes: vec![name], reason: "fan".into(), is_down: false }),
                    2 => (root(), Command::ResumeNodes { nodes: vec![name] }),
                    _ => {
                        let parts = known.runs.iter().map(|run| PartId::new(*run, 0)).collect();
                        (
                            executor(&name),
                            Command::NodeHello {
                                boot_id: "boot1".into(),
                                parts,
                                highest_run: None,
                                as_of: Some(mark(self.cluster.state.sequence())),
                            },
                        )
                    }
                }
            }
            Step::Run { run, code } => {
                let runs: Vec<_> = self.cluster.state.runs().collect();
                let run = runs.get(run as usize % runs.len().max(1))?;
                let part = run.parts.iter().find(|part| !part.has_ended())?;
                let exit = exit(ExitStatus::Code(code % 2), EndCause::Itself, now);
                (
                    executor(&self.cluster.state.node_name(part.node)),
                    Command::NodeEnded { part: self.cluster.state.part_id(run, part), exit },
                )
            }
            Step::Suspend { run, resume } => {
                let runs: Vec<_> = self.cluster.state.runs().filter(|run| run.stopping.is_none()).collect();
                let run = runs.get(run as usize % runs.len().max(1))?;
                if let Some(part) = run.parts.iter().find(|part| part.state == PartState::Launching) {
                    let part_id = self.cluster.state.part_id(run, part);
                    let node = executor(&self.cluster.state.node_name(part.node));
                    return Some((node, Command::NodeStarted { part: part_id }));
                }
                let jobs = ids(&[run.job]);
                (user("oper"), if resume { Command::Resume { jobs } } else { Command::Suspend { jobs } })
            }
            Step::Settings { what } => {
                let settings = FilterSettings {
                    submission: (what & 1 != 0).then(|| exec("C")),
                    activation: (what & 2 != 0).then(|| exec("E")),
                    ordering: if what & 4 != 0 {
                        Default::default()
                    } else {
                        muster_schemas::filter::ActivationOrdering::Relaxed
                    },
                    retry_interval_seconds: 3,
                    ..FilterSettings::default()
                };
                (root(), Command::SetParameters { filters: Some(Box::new(settings)), scheduling: None })
            }
            Step::Pass { .. } => (Actor::Ledger, Command::Tick),
        })
    }

    fn play(steps: &[Step]) -> Cluster {
        let mut model = Self::new();
        for step in steps {
            if let Step::Pass { seconds } = step {
                model.cluster.pass(i64::from(seconds % 32));
            }
            if let Some((actor, command)) = model.command(step) {
                let _accepted_or_refused = model.cluster.run(&actor, command);
            }
        }
        model.finish();
        model.cluster
    }

    /// Runners answer all outstanding calls, so that every rollback completes.
    fn finish(&mut self) {
        for _ in 0..1000 {
            let Some((call, attempt)) = self.call(0) else { return };
            let outcome = match self.outcome(&call, 0) {
                CallOutcome::Called(_) => CallOutcome::Called(Box::new(code(0))),
                other => other,
            };
            let reports = vec![CallReport { call, attempt, outcome }];
            self.cluster.ok(&runner("r3"), Command::ReportCalls { reports, has_others: false });
        }
        panic!("a chain does not come to its end");
    }
}

/// What the log says about one chain.
#[derive(Default)]
struct Told {
    forms: Vec<(FilterForm, bool)>,
    passed: Vec<u32>,
    taken_back: Vec<u32>,
    failed: Option<ChainVerdict>,
    is_over: bool,
}

/// Reads the log as an auditor would.
fn audit(log: &[Record]) -> BTreeSet<(FilterKind, Option<ChainVerdict>)> {
    let mut chains: BTreeMap<(JobId, FilterKind, u64), Told> = BTreeMap::new();
    let mut decided: BTreeSet<CallId> = BTreeSet::new();
    let mut running: BTreeMap<(JobId, FilterKind), u64> = BTreeMap::new();
    for record in log {
        match &record.event {
            Event::FilterChainStarted { job, chain } => {
                let forms = chain.filters.iter().map(|filter| (filter.spec.form, filter.spec.revert_on_unknown));
                let known =
                    chains.insert((*job, chain.kind, chain.number), Told { forms: forms.collect(), ..Told::default() });
                assert!(known.is_none(), "chain {} began twice", chain.number);
                assert_eq!(running.insert((*job, chain.kind), chain.number), None, "HPC-F-55, HPC-F-84");
            }
            Event::FilterVerdict { call, report } => {
                assert!(decided.insert(*call), "HPC-F-86: {call} has two verdicts");
                let told = chains.get_mut(&(call.job, call.kind, call.chain)).expect("its chain began");
                let passes = match call.kind {
                    FilterKind::Submission => matches!(report.exit, FilterExit::Code(0 | 1)),
                    FilterKind::Activation | FilterKind::StageIn => report.exit == FilterExit::Code(0),
                    FilterKind::StageOut => true,
                };
                let is_unknown = told.forms[call.position as usize].1 && report.exit.is_unknown();
                if passes || is_unknown {
                    told.passed.push(call.position);
                }
            }
            Event::FilterChainPassed { job, kind, chain } => {
                let told = chains.get_mut(&(*job, *kind, *chain)).expect("its chain began");
                assert_eq!(told.passed.len(), told.forms.len(), "all have passed");
                running.remove(&(*job, *kind));
            }
            Event::FilterChainFailed { job, kind, chain, verdict, .. } => {
                let told = chains.get_mut(&(*job, *kind, *chain)).expect("its chain began");
                assert_eq!(told.failed.replace(*verdict), None, "a chain fails once");
            }
            Event::FilterReverted { call, .. }
            | Event::FilterRevertFailed { call, .. }
            | Event::FilterRevertSkipped { call, .. } => {
                assert_eq!(call.action, FilterAction::Revert);
                assert!(decided.insert(*call), "HPC-F-54: {call} is taken back twice");
                let told = chains.get_mut(&(call.job, call.kind, call.chain)).expect("its chain began");
                let is_skipped = matches!(record.event, Event::FilterRevertSkipped { .. });
                assert_eq!(is_skipped, told.forms[call.position as usize].0 == FilterForm::Exec, "HPC-F-56");
                told.taken_back.push(call.position);
            }
            Event::FilterRollbackCompleted { job, kind, chain } => {
                let told = chains.get_mut(&(*job, *kind, *chain)).expect("its chain began");
                let expected: Vec<u32> = told.passed.iter().rev().copied().collect();
                assert_eq!(
                    told.taken_back, expected,
                    "HPC-F-51: all that passed, from the last to the first, and none else"
                );
                told.is_over = true;
                running.remove(&(*job, *kind));
            }
            _ => {}
        }
    }
    for ((job, kind, number), told) in &chains {
        assert!(told.failed.is_none() || told.is_over, "job {job}: {} chain {number} is half rolled back", kind.word());
        assert!(
            told.failed.is_some() || told.taken_back.is_empty(),
            "job {job}: chain {number} passed and is taken back"
        );
    }
    chains.iter().map(|((_, kind, _), told)| (*kind, told.failed)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2000, ..ProptestConfig::default() })]

    /// HPC-F-51, F-54, F-55, F-84, F-86, F-88, F-90 (HPC-F-55).
    #[test]
    fn every_call_has_one_verdict_and_every_rollback_is_whole(steps in prop::collection::vec(step(), 1..150)) {
        let cluster = Model::play(&steps);
        cluster.assert_replays();
        audit(&cluster.log);
    }

    /// What filters say is told in the same words whenever and wherever it is read.
    #[test]
    fn the_public_events_of_filters_stay_the_same(
        steps in prop::collection::vec(step(), 1..150),
        middle: prop::sample::Index,
    ) {
        let cluster = Model::play(&steps);
        assert_they_stay(&cluster.log, &cluster.state, middle.index(cluster.log.len() + 1));
    }
}

/// A restart at any record continues where it was: the snapshot after each record gives the same as the log (HPC-F-88,
/// HPC-F-90).
#[test]
fn a_snapshot_after_any_record_goes_on_as_the_log_does() {
    let mut runner = TestRunner::deterministic();
    let steps = prop::collection::vec(step(), 150).new_tree(&mut runner).expect("nothing is rejected").current();
    let cluster = Model::play(&steps);
    let mut folded = muster_domain::State::new();
    for record in &cluster.log {
        folded.apply(record).unwrap();
        let bytes = folded.to_snapshot_bytes().expect("it is small");
        let restored = muster_domain::State::from_snapshot_bytes(&bytes).expect("it is fresh");
        assert_eq!(restored, folded, "after record {}", record.sequence);
        folded = restored;
    }
    assert_eq!(folded, cluster.state);
}

/// The histories above would prove little if they never exercised whole parts of the rules.
#[test]
fn random_histories_reach_every_verdict() {
    let mut runner = TestRunner::deterministic();
    let histories = prop::collection::vec(step(), 150);
    let (mut verdicts, mut words) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..60 {
        let steps = histories.new_tree(&mut runner).expect("nothing is rejected").current();
        let log = Model::play(&steps).log;
        verdicts.extend(audit(&log));
        words.extend(log.iter().map(|record| record.event.kind_verb()));
    }
    use ChainVerdict::{Block, Fail, Hold, NotNow, Reserve};
    for verdict in [None, Some(Block), Some(Reserve), Some(Hold), Some(Fail), Some(NotNow)] {
        assert!(verdicts.contains(&(FilterKind::Activation, verdict)), "{verdict:?}");
    }
    for verb in ["elsewhere", "late_result", "offered_again", "reverted", "revert_failed", "revert_skipped"] {
        assert!(words.contains(&("filter", verb)), "{verb}");
    }
    for word in [
        ("queue", "blocked"),
        ("queue", "unblocked"),
        ("resources", "released"),
        ("job", "end_requested"),
        ("job", "validated"),
        ("job", "backfilled"),
    ] {
        assert!(words.contains(&word), "{word:?}");
    }
}
