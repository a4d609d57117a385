//! Commands beside the lives of jobs, for random histories: triggers, tables, copies, loads, power, accounts and what
//! workers note.

use crate::support::*;
use muster_domain::copies::CopyStage;
use muster_schemas::{
    JobId, Sequence, StepId,
    accounts::{AccountChange, AccountSpec, AssociationKey, AssociationSpec, ClassSpec, UserSpec},
    command::{Command, JobEnding},
    copies::{CopyReport, FileCopies, FileCopy},
    crontab::{CronEntry, CronLines, Schedule},
    cycle::ProgramCycle,
    energy::{EnergySettings, PowerWay},
    event::{Actor, EndCause, Event, Record, SignatureBytes},
    job::{ExitStatus, Occasion},
    node::GpuReport,
    notify::DeliveryResult,
    policy::PolicySource,
    quota::{QuotaAmount, QuotaRule, QuotaSet, QuotaTable},
    trigger::{NodeTurn, TriggerOn, TriggerSelection, TriggerSpec, WatchedNodes},
};

/// How sleeping nodes are put to sleep and woken.
pub fn energy() -> EnergySettings {
    EnergySettings {
        sleep_program: vec!["/opt/site/sleep".into()],
        wake_program: vec!["/opt/site/wake".into()],
        ..EnergySettings::default()
    }
}

/// At most two jobs of each user at once.
pub fn quotas() -> QuotaTable {
    let all = || "*".to_owned();
    let jobs = Some(QuotaAmount::Fixed(2));
    let rule = QuotaRule { queue: all(), account: all(), kind: all(), user: "/".into(), jobs, ..QuotaRule::default() };
    QuotaTable { sets: vec![QuotaSet { name: "all week".into(), rules: vec![rule] }], ..QuotaTable::default() }
}

/// A file that comes before a job, and one that it leaves.
pub fn copies() -> FileCopies {
    let file = |local: &str| FileCopy { local: local.into(), host: "fs".into(), remote: "/d".into() };
    FileCopies { before: vec![file("in")], after: vec![file("out")] }
}

/// A command; `None` if it would have no effect now. `job` is one that a history has at hand.
pub fn command(cluster: &Cluster, what: u8, job: JobId, more: u8) -> Option<(Actor, Command)> {
    let state = &cluster.state;
    let node = format!("node{}", more % 3 + 1);
    let at_node = |command| (executor(&node), command);
    let oper = || user("oper");
    Some(match what % 34 {
        0..=2 => (user("ada"), trigger(job, more)),
        3 => {
            let which = TriggerSelection { user: Some("ada".into()), ..TriggerSelection::default() };
            (root(), Command::ClearTriggers { which })
        }
        4 => (user("bob"), table(more)),
        5..=7 => copied(cluster, more)?,
        8 => (user("ada"), Command::CopyAhead { job, node: more.is_multiple_of(2).then_some(node) }),
        9 => at_node(Command::NodeLoadMeasured {
            load_millionths: u64::from(more) * 10_000,
            system_percent: Some(more.into()),
            used: Vec::new(),
        }),
        10 => {
            let faults = [(0, "hot".to_owned())].into_iter().filter(|_| more.is_multiple_of(2)).collect();
            at_node(Command::NodeGpusChecked { report: GpuReport { found: u32::from(more % 2), faults } })
        }
        11 | 12 => {
            let way = if more < 160 { PowerWay::Sleep } else { PowerWay::Wake };
            (oper(), Command::SetPower { nodes: vec![node], way })
        }
        13 | 14 => (Actor::Notifier, told(&cluster.log, more)?),
        15 => (oper(), Command::ChangeAccounts { changes: accounts(more) }),
        16 => (oper(), Command::ChangeClass { jobs: ids(&[job]), class: "high".into() }),
        17 => (user("ada"), Command::NoteRefusal { what: "sbatch".into(), why: "no".into() }),
        18 => {
            let sources = vec![PolicySource { name: "sched_config".into(), sha256: "0".repeat(64) }];
            (root(), Command::RefusePolicy { name: "day".into(), sources, mistakes: vec!["line 1: no".into()] })
        }
        19 => (Actor::Planner, Command::PlannerHello),
        20 => (Actor::Planner, Command::NoteCycle { cycle: Box::new(ProgramCycle::default()) }),
        21 => {
            let signature = SignatureBytes { r: [1; 32], s: [2; 32] };
            (Actor::Ledger, Command::Checkpoint { of: Sequence(1), state_digest: [more; 32], signature })
        }
        22 => (user("ada"), Command::Signal { jobs: ids(&[job]), signal: 10 }),
        23 => (user("ada"), Command::TellJobs { jobs: ids(&[job]), text: "soon".into() }),
        24 => (user("ada"), Command::KeepJob { job, seconds: (more > 99).then(|| u32::from(more)) }),
        25 => {
            let grace_seconds = (more > 99).then(|| u32::from(more));
            let ending = JobEnding { is_finished: more.is_multiple_of(2), grace_seconds, ..JobEnding::default() };
            (root(), Command::EndJobs { jobs: ids(&[job]), ending })
        }
        26 => {
            let until = (more < 200).then(|| cluster.now.plus_seconds(i64::from(more % 16) + 1));
            (root(), Command::HoldUntil { jobs: ids(&[job]), until })
        }
        27 => (root(), Command::SignalStep { job, step: StepId(1), component: None, signal: 10 }),
        28 => (root(), Command::EndStep { job, step: StepId(1), component: None, is_forced: more.is_multiple_of(2) }),
        29 => step_ended(cluster, more)?,
        30 => {
            let one = more.is_multiple_of(2).then_some(1);
            (root(), Command::ShrinkJob { job, nodes: one.or(Some(2)), keep: Vec::new(), component: None })
        }
        31 => {
            let walltime_seconds = more.is_multiple_of(3).then_some(60);
            (root(), Command::SetStepWalltime { job, step: StepId(1), walltime_seconds })
        }
        32 => (root(), Command::WarnOfPolicy { name: "day".into(), warnings: vec!["last year's".into()] }),
        _ => (root(), Command::ConcludeJob { job, status: ExitStatus::Code(more % 2) }),
    })
    .filter(|_| state.sequence() > Sequence(0))
}

fn trigger(job: JobId, more: u8) -> Command {
    let nodes = |turn| TriggerOn::Nodes { nodes: WatchedNodes::All, turn };
    let on = match more % 6 {
        0 => TriggerOn::JobEnds(job),
        1 => TriggerOn::WalltimeEnds(job),
        2 => nodes(NodeTurn::Down),
        3 => nodes(NodeTurn::Up),
        4 => nodes(NodeTurn::Drained),
        _ => nodes(NodeTurn::Idle),
    };
    let spec = TriggerSpec { on, offset_seconds: 0, program: vec!["/bin/tell".into()], is_permanent: more > 127 };
    Command::SetTrigger { spec: Box::new(spec) }
}

fn table(more: u8) -> Command {
    let set = |text: &str| text.parse().expect("a set");
    let schedule = Schedule {
        minutes: set("0"),
        hours: set("0-23"),
        days: set("1-31"),
        months: set("1-12"),
        weekdays: set("0-6"),
        is_either_day: false,
        zone: "UTC0".into(),
    };
    let entry = CronEntry { lines: CronLines { first: 0, last: 0, schedule }, spec: job(1, 1) };
    let entries: Vec<CronEntry> = [entry].into_iter().filter(|_| more < 200).collect();
    let text = if entries.is_empty() { "" } else { "one\n" };
    Command::SetCrontab { text: text.into(), entries, user: None }
}

/// The report of a node that copies for a job, if one does.
fn copied(cluster: &Cluster, more: u8) -> Option<(Actor, Command)> {
    let state = &cluster.state;
    let under_way = state.jobs().filter_map(|job| match job.copies.as_ref()?.stage {
        CopyStage::Coming { node, copy, .. } | CopyStage::Leaving { node, copy } => Some((job.id, node, copy)),
        _ => None,
    });
    let under_way: Vec<_> = under_way.collect();
    let (job, node, copy) = *under_way.get(more as usize % under_way.len().max(1))?;
    let failure = more.is_multiple_of(3).then(|| "no route to host".to_owned());
    let report = CopyReport { bytes: Some(512), milliseconds: 20, failure };
    Some((executor(&state.node_name(node)), Command::NodeCopied { job, copy, report }))
}

/// What became of a program that was to run because of a record.
fn told(log: &[Record], more: u8) -> Option<Command> {
    let newest = log.iter().rev().find(|record| match record.event {
        Event::PowerOrdered { .. } => true,
        Event::TriggerFired { .. } => more.is_multiple_of(4),
        _ => false,
    });
    let result = match more % 3 {
        0 => DeliveryResult::GivenUp { attempts: 3, error: "no such program".into() },
        _ => DeliveryResult::Delivered,
    };
    let (job, of, occasion) = (JobId::job(0), newest?.sequence, Occasion::Ended);
    Some(Command::NotificationDone { job, of, notification: 0, occasion, result })
}

/// Account `optics` with `ada`, who may use class `high`.
fn accounts(more: u8) -> Vec<AccountChange> {
    let of = AssociationKey { account: "optics".into(), user: Some("ada".into()), queue: None };
    if more > 127 {
        return vec![AccountChange::AssociationUse { of }];
    }
    let classes = vec!["normal".into(), "high".into()];
    let class = ClassSpec { name: "high".into(), priority: 100, ..ClassSpec::default() };
    let account = AccountSpec { name: "optics".into(), ..AccountSpec::default() };
    let ada = UserSpec { name: "ada".into(), default_account: "optics".into() };
    vec![
        AccountChange::Class { before: None, after: Some(class) },
        AccountChange::Account { before: None, after: Some(account) },
        AccountChange::User { before: None, after: Some(ada) },
        AccountChange::Association {
            before: None,
            after: Some(AssociationSpec { of, classes, ..AssociationSpec::default() }),
        },
    ]
}

/// The end of a part of a step, if there is one.
fn step_ended(cluster: &Cluster, more: u8) -> Option<(Actor, Command)> {
    let state = &cluster.state;
    let mut parts = Vec::new();
    for run in state.runs() {
        for (step, known) in state.steps_of(run.id) {
            for part in known.parts.iter() {
                parts.push((run, step, part.share.node));
            }
        }
    }
    let (run, step, node) = *parts.get(more as usize % parts.len().max(1))?;
    let part = state.part_id(run, run.part(node)?);
    let exit = exit(ExitStatus::Code(more % 2), EndCause::Itself, cluster.now);
    Some((executor(&state.node_name(node)), Command::NodeStepEnded { part, step, exit, statuses: Vec::new() }))
}
