//! Samples of the events of steps with places of their own, and of jobs that a client keeps.

use super::{Fixture, exit};
use muster_schemas::{
    StepId,
    event::Event,
    job::{ExitStatus, WarningSignal},
    resources::IndexSet,
    steps::{
        StepGroup, StepInput, StepOutput, StepPlace, StepProgram, StepShare, StepSpec, StepStreams, TaskStatus,
        TaskVariable, TerminalSize,
    },
};
use std::{collections::BTreeMap, sync::Arc};

fn spec() -> StepSpec {
    let ranks = |text: &str| text.parse::<IndexSet>().expect("a set");
    StepSpec {
        name: "solve".into(),
        working_directory: Some("/scratch".into()),
        environment: Some(BTreeMap::from([("LANG".into(), "C".into())])),
        umask: Some(0o27),
        groups: vec![StepGroup {
            component: 1,
            places: vec![
                StepPlace { node: "n1".into(), ranks: ranks("0,2"), cores: None },
                StepPlace { node: "n2".into(), ranks: ranks("1,3"), cores: Some(1) },
            ],
            cpus_per_task: 2,
            memory_bytes: Some(1 << 30),
            programs: vec![
                StepProgram { ranks: ranks("0-2"), argv: vec!["a".into(), "b".into()] },
                StepProgram { ranks: ranks("3"), argv: vec!["c".into()] },
            ],
            environment: BTreeMap::from([("GROUP".into(), "0".into())]),
            working_directory: Some("/own".into()),
            stdin: Some(StepInput::Task(2)),
            tasks: Some(3),
            nodes: Some(2),
            binding: None,
            gpus: None,
            more_gpus: Vec::new(),
            gpu_binding: None,
            container: None,
        }],
        streams: StepStreams {
            stdin: StepInput::Task(2),
            stdout: StepOutput::File("out.%t".into()),
            stderr: Some(StepOutput::Discarded),
            append_output: true,
            terminal: Some(TerminalSize { rows: 24, columns: 80 }),
        },
        variables: [
            ("RANK", TaskVariable::Rank),
            ("LOCAL", TaskVariable::LocalRank),
            ("NODE", TaskVariable::NodeIndex),
            ("NAME", TaskVariable::NodeName),
            ("PID", TaskVariable::ProcessId),
            ("TASKS", TaskVariable::TasksOnNode),
            ("RANKS", TaskVariable::RanksOnNode),
            ("COUNT", TaskVariable::CoresOnNode),
            ("CORES", TaskVariable::Cores),
            ("STEP", TaskVariable::StepsBefore),
        ]
        .map(|(name, variable)| (name.to_owned(), variable))
        .into(),
        overlaps: true,
        walltime_seconds: Some(60),
        kill_grace_seconds: Some(5),
        warning: Some(WarningSignal { signal: 10, seconds_before_end: 30 }),
        ends_on_failure: true,
        attributes: BTreeMap::from([("slurm.distribution".into(), "cyclic".into())]),
        dialect: Some("slurm".into()),
        process_management: None,
    }
}

pub fn events(fixture: &Fixture) -> Vec<Event> {
    let Fixture { job_id: job, run, node, .. } = fixture.clone();
    let step = StepId(3);
    vec![
        Event::StepLaunched {
            job,
            run,
            step,
            spec: Arc::new(spec()),
            shares: vec![StepShare {
                node,
                component: 1,
                tasks: 2,
                cores: IndexSet::from_range(0, 3),
                memory_bytes: 1 << 30,
                bound: Vec::new(),
                gpus: None,
            }],
        },
        Event::StepSignalled { job, run, step, component: Some(1), signal: 10 },
        Event::StepStopping { job, run, step, component: None, is_forced: true },
        Event::StepPartEnded {
            job,
            run,
            step,
            node,
            component: 1,
            exit: exit(),
            statuses: vec![
                TaskStatus { ranks: IndexSet::from_range(0, 0), status: ExitStatus::Code(0) },
                TaskStatus { ranks: IndexSet::from_range(2, 2), status: ExitStatus::Signal(9) },
            ],
        },
        Event::JobKept { job, seconds: Some(60), is_late: true },
    ]
}
