//! Every released shape of an event stays readable for ever.
//!
//! `golden/log-v1.hex` has one record for each kind of event, as the first release with that kind wrote it, one payload
//! in hexadecimal on each line. `MUSTER_BLESS=1` adds lines for events without one; it never changes a line.

use muster_schemas::{
    CommandId, JobId, NodeId, RunId, Sequence, StepId, Timestamp,
    cluster::{ClusterSettings, QueueSpec},
    codec,
    copies::{CopyDirection, FileCopies},
    crontab::{CronJob, CronLines, Schedule},
    cycle::{ProgramCycle, RefusedAction},
    event::{
        Actor, DeliveryResult, EndCause, Event, JobChange, NodeExit, NodePart, Owner, Record, SignatureBytes,
        StopReason, TraceContext, WaitingJob, uuid_bytes::UuidBytes,
    },
    job::{
        ArraySpec, Checkpoint, Component, ComponentStaging, Dependencies, Dependency, DependencyKind, ExitStatus,
        Holds, JobSpec, JobType, Launch, Notification, Occasion, Outcome, Program, RequeuePolicy, Sink, Usage,
        WaitReason, WarningSignal,
    },
    node::GpuFault,
    plan::{
        NodeClosure, PlanChange, PlanRecord, PlannedSlot, PredictedStart, RefusedChange, ReservationSpec,
        ReservedNodes, SlotSpec,
    },
    policy::{Backfill, BackfillMode, CandidateOrder, Limit, LimitPer, OrderKey, Policy, PolicySource, QueuePolicy},
    resources::{
        Alternative, ComponentPlacement, Count, Gpus, IndexSet, Level, LevelCount, Memory, NodeFilter, NodeShare,
        NodeSpec, Per, Placement, PropertyValue, Relation, Request, Sharing,
    },
    trigger::{NodeTurn, TriggerOn, TriggerSpec, WatchedNodes},
};
use std::{collections::BTreeSet, path::Path, sync::Arc};

#[path = "golden/accounts.rs"]
mod accounts;
#[path = "golden/chains.rs"]
mod chains;
#[path = "golden/components.rs"]
mod components;
#[path = "golden/power.rs"]
mod power;
#[path = "golden/steps.rs"]
mod steps;

/// Shared by the samples.
#[derive(Clone)]
struct Fixture {
    job_id: JobId,
    run: RunId,
    node: NodeId,
    placement: Placement,
}

fn request() -> Request {
    Request {
        path: vec![
            LevelCount { level: Level::Group("switch".into()), count: Count::exactly(1) },
            LevelCount { level: Level::Node, count: Count::Range { min: 2, max: 4 } },
            LevelCount { level: Level::Socket, count: Count::Best },
            LevelCount { level: Level::Core, count: Count::All },
        ],
        tasks: Some(8),
        tasks_per_node: Some(4),
        cpus_per_task: 2,
        memory: Some(Memory { bytes: 4 << 30, per: Per::Node }),
        gpus: Some(Gpus { count: 1, per: Per::Task, model: Some("a100".into()) }),
        filter: Some(NodeFilter::All(vec![
            NodeFilter::Has("ib".into()),
            NodeFilter::Not(Box::new(NodeFilter::Any(vec![NodeFilter::Compare {
                property: "memory_gb".into(),
                relation: Relation::Less,
                value: PropertyValue::Number(64),
            }]))),
        ])),
        nodes: vec!["n1".into()],
        excluded_nodes: vec!["n9".into()],
        sharing: Sharing::Exclusive,
        more_gpus: Vec::new(),
        least_nodes: None,
        most_nodes: None,
    }
}

fn job() -> JobSpec {
    JobSpec {
        name: "solve".into(),
        components: vec![Component {
            queue: Some("night".into()),
            account: Some("physics".into()),
            class: Some("high".into()),
            priority: Some(-5),
            begin: Some(Timestamp(1_000_000)),
            deadline: Some(Timestamp(2_000_000)),
            dependencies: Dependencies {
                all_of: vec![vec![Dependency {
                    kind: DependencyKind::Count(2),
                    job: Some(JobId::task(4, 2)),
                    delay_seconds: 3,
                }]],
            },
            holds: Holds { user: true, operator: false, system: true },
            reservation: Some("course".into()),
            launch: Launch {
                program: Program::Script { text: "#!/bin/sh\n".into(), args: vec!["a".into()] },
                stdout: Some("%x.out".into()),
                stderr: Some("%x.err".into()),
                stdin: Some("in".into()),
                append_output: true,
                warning: Some(WarningSignal { signal: 10, seconds_before_end: 60 }),
                kill_grace_seconds: Some(5),
                container: None,
                stage_in: None,
            },
            alternatives: vec![Alternative {
                requests: vec![request()],
                walltime_seconds: Some(3600),
                licences: [("matlab".to_owned(), 2)].into(),
                scatter: true,
                ..Alternative::default()
            }],
        }],
        array: Some(ArraySpec { indices: "0-9:2".parse().unwrap(), max_running: Some(2) }),
        working_directory: "/home/ada".into(),
        environment: [("LANG".to_owned(), "C".to_owned())].into(),
        umask: Some(0o022),
        notifications: vec![
            Notification {
                on: vec![Occasion::Ended],
                sink: Sink::Mail("ada@example.org".into()),
                spares_cancelled: false,
            },
            Notification { on: vec![], sink: Sink::Exec("echo".into()), spares_cancelled: false },
        ],
        checkpoint: Some(Checkpoint { signal: 12, seconds_before_end: 120 }),
        requeue: RequeuePolicy { on_node_lost: true, on_exit_codes: vec![99], max_runs: 3, ..RequeuePolicy::default() },
        types: vec![
            JobType::BestEffort { requeue: true },
            JobType::Container,
            JobType::Inner(JobId::job(3)),
            JobType::Timesharing { same_user: true, same_name: false },
            JobType::Placeholder("a".into()),
            JobType::Allowed("a".into()),
            JobType::Noop,
            JobType::FrontHost("front".into()),
        ],
        attributes: [("slurm.comment".to_owned(), "x".to_owned())].into(),
        dialect: Some("slurm".into()),
        staging: vec![ComponentStaging { component: 0, directives: vec!["#DW".into()], ..ComponentStaging::default() }],
        cancelled_if_never_met: true,
        copies: FileCopies::default(),
        kinds: Vec::new(),
        exceeds_quotas: false,
        group: None,
    }
}

fn policy() -> Policy {
    let formula = OrderKey::Formula { text: "wait / walltime".into(), descending: true };
    Policy {
        name: "site".into(),
        order: vec![OrderKey::QueuePriority, OrderKey::Wfp3, formula],
        backfill: Backfill {
            mode: BackfillMode::Conservative,
            reservations: Some(100),
            candidates: CandidateOrder::Sjbf,
            look_ahead: Some(1000),
            require_walltime: true,
            ..Backfill::default()
        },
        limits: vec![Limit {
            per: LimitPer::User,
            name: Some("ada".into()),
            queue: Some("night".into()),
            max_running_jobs: Some(1),
            max_nodes: Some(2),
            max_cores: Some(3),
            max_gpus: Some(4),
            ..Limit::default()
        }],
        queues: [(
            "night".to_owned(),
            QueuePolicy { order: Some(vec![OrderKey::Fcfs]), backfill: Some(Backfill::default()) },
        )]
        .into(),
        max_starts: 500,
        ..Policy::default()
    }
}

fn reservation() -> ReservationSpec {
    ReservationSpec {
        name: "course".into(),
        start: Timestamp(5_000_000),
        end: Timestamp(6_000_000),
        nodes: ReservedNodes::Count {
            count: 2,
            filter: Some(NodeFilter::Has("ib".into())),
            queue: Some("night".into()),
        },
        users: vec!["ada".into()],
        accounts: vec!["physics".into()],
        repeats_after_seconds: 0,
        attributes: Default::default(),
        ..ReservationSpec::default()
    }
}

fn plan(placement: &Placement) -> PlanRecord {
    let (first, second) = (JobId::job(7), JobId::job(8));
    let slot = SlotSpec { start: Timestamp(9_000_000), placement: Arc::new(placement.clone()) };
    PlanRecord {
        seen: Sequence(43),
        at: Timestamp(8_000_000),
        left_out: vec![JobId::job(6)],
        refused: vec![JobId::task(5, 1)],
        refused_changes: vec![RefusedChange { job: second, what: PlanChange::Preemption }],
        reasons: vec![
            WaitingJob { job: first, reason: WaitReason::Reserved { start: Timestamp(9_000_000) } },
            WaitingJob { job: second, reason: WaitReason::WouldDelay(first) },
        ],
        slots: vec![PlannedSlot { job: first, slot: Some(slot) }, PlannedSlot { job: second, slot: None }],
        predictions: vec![
            PredictedStart { job: first, start: Some(Timestamp(9_000_000)) },
            PredictedStart { job: second, start: None },
        ],
        external: true,
        promised: None,
        cycle: None,
        lifted: None,
        units: Vec::new(),
        cut_after: None,
    }
}

fn exit() -> NodeExit {
    NodeExit {
        status: Some(ExitStatus::Signal(9)),
        cause: EndCause::Lost("gone".into()),
        usage: Usage { cpu_time_micros: 5, peak_memory_bytes: 6, system_time_micros: 0 },
        started: Some(Timestamp(7)),
        ended: Timestamp(8),
    }
}

/// One of each kind. A new kind of event goes to the end.
fn events() -> Vec<Event> {
    let (job_id, run, node) = (JobId::job(7), RunId(9), NodeId(1));
    let task = JobId::task(7, 3);
    let spec = Arc::new(NodeSpec {
        name: "n1".into(),
        cores: 64,
        sockets: 2,
        memory_bytes: 1 << 38,
        gpus: vec!["a100".into()],
        properties: [
            ("switch".to_owned(), PropertyValue::Text("s1".into())),
            ("ib".to_owned(), PropertyValue::Flag(true)),
        ]
        .into(),
    });
    let placement = Placement {
        components: vec![ComponentPlacement {
            alternative: 0,
            shares: vec![NodeShare {
                node,
                cores: "0-3".parse().unwrap(),
                gpus: IndexSet::new(),
                memory_bytes: 1 << 30,
                tasks: 2,
                exclusive: true,
            }],
        }],
    };
    let change = JobChange {
        priority: Some(3),
        walltime_seconds: Some(60),
        reservation: Some("r1".into()),
        deadline: Some(Timestamp::from_unix_seconds(1_750_000_000)),
        requeue_on_node_lost: Some(true),
        attributes: [("slurm.0.comment".to_owned(), "later".to_owned())].into(),
        component: Some(2),
        ..JobChange::default()
    };
    let fixture = Fixture { job_id, run, node, placement: placement.clone() };
    let mut events = vec![
        Event::ClusterInitialised { cluster_id: UuidBytes([1; 16]), public_key: [2; 32] },
        Event::SettingsChanged { settings: Arc::new(ClusterSettings::default()) },
        Event::QueueSet { queue: Arc::new(QueueSpec { name: "night".into(), ..QueueSpec::default() }) },
        Event::QueueRemoved { name: "night".into() },
        Event::LicenceSet { name: "matlab".into(), total: 2 },
        Event::NodeAdded { node, spec: spec.clone() },
        Event::NodeChanged { node, spec },
        Event::NodeRemoved { node },
        Event::NodeUp { node, boot_id: "b".into() },
        Event::NodeLost { node, reason: "silent".into() },
        Event::NodeResumed { node },
        Event::JobSubmitted {
            job: job_id,
            owner: Arc::new(Owner { user: "ada".into(), uid: 1000, gid: 1000 }),
            spec: Arc::new(job()),
            intake: Some(Arc::new(chains::intake())),
        },
        Event::JobHeld { job: job_id, holds: Holds { user: true, ..Holds::default() }, reason: "later".into() },
        Event::JobReleased { job: job_id, holds: Holds { user: true, ..Holds::default() } },
        Event::JobModified { job: job_id, change: Arc::new(change) },
        Event::JobEligible { job: job_id },
        Event::RunAllocated { job: task, run, placement: Arc::new(placement.clone()) },
        Event::RunPartStarted { job: task, run, node, component: 2 },
        Event::RunStarted { job: task, run, node, component: 1 },
        Event::RunStopping { job: task, run, reason: StopReason::Cancelled, grace_seconds: None },
        Event::RunPartEnded { job: task, run, node, component: 2, exit: exit() },
        Event::RunEnded {
            job: task,
            run,
            last: Some(NodePart { node, component: 2, exit: exit() }),
            outcome: Outcome::Failed(ExitStatus::Code(1)),
            usage: Usage::default(),
        },
        Event::JobRequeued { job: task, reason: StopReason::NodeLost },
        Event::JobFinished { job: task, outcome: Outcome::LaunchFailed("no such user".into()) },
        Event::JobSuspended { job: task, run, lends_cores: true, was_resuming: true, makes_way_for: None },
        Event::JobResumed { job: task, run },
        Event::JobSignalled { job: task, run, signal: 10 },
        Event::StepEnded { job: task, run, step: StepId(1), status: Some(ExitStatus::Code(0)) },
        Event::NotificationDone {
            job: task,
            of: Sequence(21),
            notification: 0,
            occasion: Occasion::Started,
            result: DeliveryResult::GivenUp { attempts: 9, error: "no route".into() },
        },
        Event::Checkpoint {
            of: Sequence(30),
            state_digest: [3; 32],
            signature: SignatureBytes { r: [4; 32], s: [5; 32] },
        },
        Event::StartRefused { job: task, reason: "node lost".into() },
        Event::RangeArchived { first: Sequence(1), last: Sequence(9), last_hash: [6; 32], file: "1-9.gz".into() },
        Event::TasksFinished { job: job_id, indices: "4-8:4".parse().unwrap(), outcome: Outcome::Cancelled },
        Event::RunNumbersRaised { next: RunId(70_000) },
        Event::PolicySet { policy: Arc::new(policy()) },
        Event::ReservationSet { reservation: Arc::new(reservation()) },
        Event::ReservationPlaced { name: "course".into(), nodes: vec![node, NodeId(4)] },
        Event::ReservationRemoved { name: "course".into() },
        Event::NodeClosuresSet {
            node,
            closures: vec![
                NodeClosure { from: Timestamp(1_000_000), until: Timestamp(2_000_000), reason: "fan".into() },
                NodeClosure { from: Timestamp(3_000_000), until: Timestamp::MAX, reason: String::new() },
            ],
        },
        Event::Planned { plan: Arc::new(plan(&placement)) },
        Event::ReservationBegun { name: "course".into() },
    ];
    events.extend(chains::events(&fixture));
    events.extend(steps::events(&fixture));
    events.extend(components::events(&fixture));
    events.extend(components::passed(&fixture));
    events.extend(accounts::events(&fixture));
    events.extend(components::altered(&fixture));
    events.push(Event::JobNumbersSet { first: 67_767 });
    events.push(Event::JobResuming { job: task, run });
    events.push(Event::NodeGpusChecked {
        node,
        faults: vec![GpuFault { gpu: 2, why: "/dev/nvidia2 does not exist".into() }],
    });
    events.extend(triggers(&fixture));
    events.push(crontab(&fixture));
    events.extend(copies(&fixture));
    events.push(Event::PolicyRefused {
        name: "day".into(),
        sources: vec![PolicySource { name: "sched_config".into(), sha256: "0".repeat(64) }],
        mistakes: vec!["sched_config:1: expected true or false (token 'maybe')".into()],
    });
    events.push(Event::NodeLoadMeasured { node, load_millionths: 1_250_000, system_percent: None, used: Vec::new() });
    events.extend(power::events(&fixture));
    events.push(program_cycled());
    events.push(Event::LogRestored {
        to: Sequence(21),
        lost_to: Some(Sequence(30)),
        log_id: UuidBytes([9; 16]),
        backup: "2026-11-26T17-02-11Z".into(),
        next_run: RunId(1_000_000_000),
    });
    events.push(Event::LedgerLeads { epoch: 3, ledger: "head2".into(), stream_created: Timestamp(9_000_000) });
    events.push(Event::LedgerHandsOver { ledger: "head2".into(), to: Some("head3".into()) });
    events.push(Event::StepWalltimeSet { job: task, run, step: StepId(3), walltime_seconds: Some(90) });
    events.push(Event::PolicyWarned {
        name: "day".into(),
        warnings: vec!["holidays: they are those of 2025, and it is 2026".into()],
    });
    events.push(Event::JobSignalDelivered { job: task, run, node, signal: 12, was_due: true, processes: 2 });
    events
}

fn program_cycled() -> Event {
    Event::ProgramCycled {
        cycle: Arc::new(ProgramCycle {
            number: 7,
            epoch: 2,
            reasons: vec!["SCH_SCHEDULE_TERM".into(), "SCH_SCHEDULE_NEW".into()],
            is_prime: true,
            is_dedicated: false,
            program: "basl:day.basl".into(),
            sources: vec![PolicySource { name: "day.basl".into(), sha256: "0".repeat(64) }],
            began: Timestamp(4_000_000),
            milliseconds: 12,
            started: 1,
            done: 2,
            refused: 1,
            refusals: vec![RefusedAction { action: "run".into(), about: "12".into(), reason: "no room".into() }],
            trouble: Some("day.basl:3: division by zero".into()),
            gave_up: false,
            globals: Some("{\"TURN\":{\"Int\":1}}".into()),
        }),
    }
}

fn copies(fixture: &Fixture) -> [Event; 3] {
    let (job, node) = (fixture.job_id, fixture.node);
    [
        Event::CopyingBegan { job, node, direction: CopyDirection::In, run: Some(RunId(3)) },
        Event::CopyingEnded { job, node, direction: CopyDirection::In, bytes: Some(512), milliseconds: 20 },
        Event::CopyingFailed {
            job,
            node,
            direction: CopyDirection::Out,
            bytes: None,
            milliseconds: 9,
            reason: "no space left".into(),
            until: Some(Timestamp(5_000_000)),
        },
    ]
}

fn triggers(fixture: &Fixture) -> [Event; 3] {
    let owner = Arc::new(Owner { user: "ada".into(), uid: 1001, gid: 1001 });
    let program = vec!["/home/ada/tell".to_owned(), "me".to_owned()];
    let nodes = WatchedNodes::Named(vec!["n1".into()]);
    let spec = TriggerSpec {
        on: TriggerOn::Nodes { nodes, turn: NodeTurn::Down },
        offset_seconds: 60,
        program: program.clone(),
        is_permanent: true,
    };
    [
        Event::TriggerSet { trigger: 3, owner: owner.clone(), spec: Arc::new(spec) },
        Event::TriggersCleared { triggers: vec![3, 4] },
        Event::TriggerFired {
            trigger: 3,
            owner,
            program,
            argument: "n1".into(),
            job: Some(fixture.job_id),
            nodes: vec![fixture.node],
        },
    ]
}

fn crontab(fixture: &Fixture) -> Event {
    let schedule = Schedule {
        minutes: IndexSet::from_range(0, 0),
        hours: IndexSet::from_range(0, 23),
        days: IndexSet::from_range(1, 31),
        months: IndexSet::from_range(1, 12),
        weekdays: IndexSet::from_range(1, 5),
        is_either_day: false,
        zone: "CET-1CEST,M3.5.0,M10.5.0/3".into(),
    };
    Event::CrontabSet {
        user: "ada".into(),
        text: "0 * * * 1-5 tell\n".into(),
        jobs: vec![CronJob { job: fixture.job_id, lines: CronLines { first: 0, last: 0, schedule } }],
    }
}

fn records() -> Vec<Record> {
    let record = |(at, event): (usize, Event)| Record {
        sequence: Sequence(at as u64 + 1),
        time: Timestamp(1_700_000_000_000_000 + at as i64),
        actor: Arc::new(Actor::User(Owner { user: "ada".into(), uid: 1000, gid: 1000 })),
        command: CommandId::derived(&[&[at as u8]]),
        trace: TraceContext { trace_id: [1; 16], span_id: [2; 8], flags: 1 },
        event,
        epoch: 0,
    };
    events().into_iter().enumerate().map(record).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).expect("hexadecimal")).collect()
}

/// Every released shape of an event stays readable (M-LOG-14).
#[test]
fn every_released_shape_of_an_event_is_read_as_it_was_written() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/log-v1.hex");
    let mut text = std::fs::read_to_string(&path).unwrap_or_default();
    let records = records();
    let known = text.lines().count();
    if known < records.len() && std::env::var_os("MUSTER_BLESS").is_some() {
        for record in &records[known..] {
            text += &hex(&codec::encode(record).unwrap());
            text.push('\n');
        }
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(text.lines().count(), records.len(), "a kind of event has no golden line: run with MUSTER_BLESS=1");
    for (line, record) in text.lines().zip(&records) {
        let read: Record = codec::decode(&unhex(line)).unwrap_or_else(|error| panic!("{}: {error}", record.sequence));
        assert_eq!(&read, record);
        assert_eq!(
            line,
            hex(&codec::encode(record).unwrap()),
            "{:?} is written in another way",
            record.event.kind_verb()
        );
    }
}

#[test]
fn every_kind_of_event_has_a_sample_and_a_name() {
    let names: BTreeSet<_> = events().iter().map(Event::kind_verb).collect();
    // Jobs are held and released in three ways each, and five kinds are configuration.
    assert_eq!(names.len() + 8, events().len(), "two kinds of events share a name");
    // The codec writes the number of the variant first: 0, 1, 2 ... without a hole.
    for (at, event) in events().iter().enumerate() {
        let bytes = codec::encode(event).unwrap();
        assert_eq!(usize::from(bytes[codec::HEADER_BYTES]), at, "{:?} is not in its place", event.kind_verb());
    }
    let one_more = [
        &[2, codec::SCHEMA_VERSION, 1, 0, 0, 0],
        &crc32fast::hash(&[events().len() as u8]).to_le_bytes()[..],
        &[events().len() as u8],
    ]
    .concat();
    let error = codec::decode::<Event>(&one_more).unwrap_err().to_string();
    assert!(error.contains("variant"), "the last kind of event has no sample: {error}");
}

#[test]
fn every_event_survives_json() {
    for event in events() {
        let json = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event, "{json}");
    }
}
