//! Samples of the events of filters, templates, holds until a time, tasks, and runs that grow and shrink.

use super::{Fixture, job};
use muster_schemas::{
    JobId, StepId, Timestamp,
    event::{Event, HoldBy, Intake, NodeTasks, ShrinkReason, StopReason, Validated},
    filter::{
        ActivationOrdering, ActivationParameters, CallId, ChainFilter, ChainSpec, ChainVerdict, FileAfter,
        FilterAction, FilterExit, FilterForm, FilterHold, FilterKind, FilterReport, FilterSettings, FilterSpec,
        JobDocument, JobWarning, Offer, PropertyChange, TemplateSpec,
    },
    job::{Launch, Outcome, Program},
    scheduling::{Preemption, PriorityBias, SchedulingMode, SchedulingSettings},
    tasks::{SizeUnit, TaskInstance, TaskKind, TaskList, TaskSpec},
};
use std::sync::Arc;

fn filter() -> FilterSpec {
    FilterSpec {
        name: "licences".into(),
        path: "/opt/filters/licences".into(),
        form: FilterForm::Persistent,
        revert_on_unknown: true,
    }
}

fn settings() -> FilterSettings {
    FilterSettings {
        submission: Some(FilterSpec { form: FilterForm::Exec, ..filter() }),
        activation: Some(FilterSpec { form: FilterForm::Verbs, ..filter() }),
        submission_timeout_seconds: 1,
        activation_timeout_seconds: 2,
        retry_interval_seconds: 3,
        ordering: ActivationOrdering::Relaxed,
        default_hold_seconds: 60,
    }
}

fn scheduling() -> SchedulingSettings {
    SchedulingSettings {
        mode: Some(SchedulingMode::Balanced),
        backfill_look_ahead: Some(-1),
        preemption: Some(Preemption::Graceful),
        balanced_preemption: Some(Preemption::Immediate),
        bias: Some(PriorityBias::High),
        rebalance_seconds: Some(20),
        release_timeout_seconds: Some(30),
        growth: Some(true),
        shrink: Some(false),
        growth_by_preemption: Some(true),
        task_preemption: Some(false),
    }
}

fn template() -> TemplateSpec {
    TemplateSpec {
        name: "Small".into(),
        revision: 4,
        users: vec!["ada".into()],
        submission_filters: vec![filter()],
        activation_filters: vec![filter()],
        text: "<JobTemplate/>".into(),
    }
}

fn tasks() -> TaskList {
    TaskList {
        unit: SizeUnit::Node,
        min: 1,
        max: 4,
        tasks: vec![TaskSpec {
            name: "sweep".into(),
            kind: TaskKind::Sweep { start: -1, increment: 2, steps: 3 },
            min: 1,
            max: 2,
            run_time_seconds: Some(60),
            after: vec![0],
            launch: Launch { program: Program::Tasks { argv: vec!["step".into(), "*".into()] }, ..Launch::default() },
            environment: [("A".to_owned(), "1".to_owned())].into(),
            working_directory: Some("/tmp".into()),
            valid_exit_codes: vec![(0, 3)],
            rerunnable: true,
        }],
        until_cancelled: true,
        fail_on_task_failure: true,
        fail_dependents: true,
        preemptable: true,
    }
}

pub fn intake() -> Intake {
    Intake {
        template: Some("Small".into()),
        document: Some(JobDocument { format: "xml".into(), is_compressed: true, bytes: Arc::from(*b"<Job/>") }),
        tasks: Some(tasks()),
        hold_until: Some(Timestamp(9_000_000)),
        is_configuring: true,
        warnings: vec![warning()],
    }
}

fn warning() -> JobWarning {
    JobWarning { code: "UnknownJobTerm".into(), text: "Colour is not known".into() }
}

fn report() -> FilterReport {
    FilterReport {
        exit: FilterExit::Signal(9),
        duration_micros: 1_500,
        program_hash: Some("ab".into()),
        input_hash: "cd".into(),
        file: FileAfter::Changed {
            document: JobDocument::xml(*b"<Job Priority=\"Lowest\"/>"),
            changes: vec![PropertyChange {
                property: "Priority".into(),
                old: Some("Normal".into()),
                new: Some("Lowest".into()),
            }],
            template: Some("night".into()),
        },
        message: Some("no licence".into()),
        hold_until: Some(FilterHold::At(Timestamp(7_000_000))),
        warnings: vec![warning()],
        stdout: "out".into(),
        stderr: "err".into(),
        is_output_cut: true,
    }
}

pub(super) fn events(fixture: &Fixture) -> Vec<Event> {
    let Fixture { job_id: job, run, node, placement } = fixture.clone();
    let (placement, kind) = (Arc::new(placement), FilterKind::Activation);
    let call = CallId { job, kind, chain: 12, position: 1, action: FilterAction::Filter };
    let revert = CallId { action: FilterAction::Revert, kind: FilterKind::Submission, ..call };
    let chain = ChainSpec {
        number: 12,
        kind,
        filters: vec![ChainFilter { spec: filter(), program_hash: Some("ab".into()), component: Some(1) }],
        limit_seconds: 15,
        offer: Some(Offer {
            run,
            placement: placement.clone(),
            growth: true,
            parameters: ActivationParameters {
                pass: 1,
                index: 2,
                backfill: true,
                count: 3,
                backfill_enabled: true,
                planner_epoch: 4,
                current: 5,
            },
            preempts: vec![JobId::job(3)],
            claims: vec![(*placement).clone()],
            latest_start: Some(Timestamp(8_000_000)),
        }),
    };
    let validated = Validated {
        template: Some("Small".into()),
        revision: 4,
        spec: super::job(),
        tasks: Some(tasks()),
        document: Some(JobDocument::xml(*b"<Job/>")),
        hold_until: Some(Timestamp(9_000_000)),
        warnings: vec![warning()],
    };
    let report = Arc::new(report());
    let exit = FilterExit::NotFound("/opt/filters/licences".into());
    vec![
        Event::JobConfigured { job, spec: Arc::new(self::job()), intake: Arc::new(Intake::default()) },
        Event::JobEntered { job },
        Event::JobValidated { job, validated: Arc::new(validated) },
        Event::FilterChainStarted { job, chain: Arc::new(chain) },
        Event::FilterInvoked { call, attempt: 2, runner: "r1".into() },
        Event::FilterElsewhere { call, runner: "r1".into() },
        Event::FilterVerdict { call, report: report.clone() },
        Event::FilterChainPassed { job, kind, chain: 12 },
        Event::FilterChainFailed {
            job,
            kind,
            chain: 12,
            verdict: ChainVerdict::Reserve,
            position: 1,
            message: "exit code 2".into(),
        },
        Event::FilterReverted { call: revert, report: report.clone() },
        Event::FilterRevertFailed { call: revert, report },
        Event::FilterRevertSkipped { call: revert, reason: "it cannot be reverted".into() },
        Event::FilterRollbackCompleted { job, kind, chain: 12 },
        Event::FilterLateResult { call, attempt: 1, runner: "r1".into(), exit },
        Event::FilterRunnersMissing { since: Timestamp(6_000_000), calls: 3 },
        Event::JobHeldUntil { job, until: Timestamp(7_000_000), by: HoldBy::Filter },
        Event::JobHoldEnded { job, is_over: true },
        Event::JobWarned { job, warning: Arc::new(warning()) },
        Event::JobMessage { job, text: "no licence".into() },
        Event::QueueBlocked { job, priority: 2000 },
        Event::QueueUnblocked { job },
        Event::ResourcesReserved { job, run, placement: placement.clone() },
        Event::ResourcesReleased { job, run },
        Event::RunBackfilled { job, run },
        Event::RunGrown { job, run, added: placement.clone() },
        Event::RunShrinking { job, run, removed: placement.clone(), reason: ShrinkReason::Preempted },
        Event::RunShrunk { job, run, removed: placement },
        Event::TaskStarted {
            job,
            run,
            step: StepId(2),
            instance: TaskInstance { task: 1, instance: 5 },
            cores: vec![NodeTasks { node, tasks: 2 }],
        },
        Event::FilterSettingsSet { old: Arc::default(), settings: Arc::new(settings()) },
        Event::SchedulingSet { old: Arc::default(), settings: Arc::new(scheduling()) },
        Event::TemplateSet { old: None, template: Arc::new(template()) },
        Event::TemplateRemoved { old: Arc::new(template()) },
        Event::PlannerStarted { epoch: 2 },
        Event::JobQueued { job },
        Event::GrowthRejected { job, run },
        Event::FilterOfferedAgain { call, attempt: 2 },
        Event::JobEndRequested { job, outcome: Outcome::Refused("[TemplateDenied] not for you".into()) },
        Event::TasksStopping { job, run, reason: StopReason::TasksEnded, is_graceful: true },
    ]
}
