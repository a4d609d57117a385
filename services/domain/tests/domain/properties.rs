//! Whatever is asked in whatever order, the invariants hold and the log replays.

use crate::{asides, public_events::assert_they_stay, sketches::assert_as_by_look, support::*};
use muster_domain::{
    State,
    nodes::Node,
    runs::{Part, PartState, Run},
    sharing::Sharing,
};
use muster_schemas::{
    JobId, PartId, RunId, Sequence,
    cluster::ClusterSettings,
    command::{Command, JobFilter, JobSelection, Start},
    event::{Actor, EndCause, Event, JobChange, NodeExit},
    job::{
        Dependency, DependencyKind, ExitStatus, Holds, JobSpec, JobState, JobType, RequeuePolicy, Usage, WaitReason,
    },
    plan::{
        NodeClosure, PlannedSlot, PredictedStart, ProposedPlan, Replaced, ReservationSpec, ReservedNodes, SlotSpec,
    },
    policy::{BUILT_IN_POLICIES, Policy},
    resources::{ComponentPlacement, IndexSet, NodeShare, Placement},
};
use proptest::{
    prelude::*,
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A step of a random history. Numbers choose among what exists at that moment, so that most steps have an effect.
#[derive(Clone, Debug)]
pub enum Step {
    Submit {
        who: u8,
        nodes: u8,
        cores: u8,
        shape: u8,
        on: u8,
    },
    Array {
        who: u8,
        tasks: u8,
        limit: u8,
        on: u8,
    },
    Hold {
        who: u8,
        job: u8,
        task: u8,
        kind: u8,
    },
    Release {
        who: u8,
        job: u8,
        task: u8,
        kind: u8,
    },
    Cancel {
        who: u8,
        job: u8,
        task: u8,
    },
    Component {
        who: u8,
        job: u8,
        component: u8,
        what: u8,
    },
    CancelAll {
        who: u8,
        state: u8,
    },
    Requeue {
        job: u8,
        task: u8,
        hold: bool,
    },
    Modify {
        who: u8,
        job: u8,
        what: u8,
    },
    Suspend {
        job: u8,
        resume: bool,
    },
    Plan {
        skip: u8,
        wild: bool,
    },
    Report {
        run: u8,
        node: u8,
        what: u8,
    },
    Hello {
        node: u8,
        boot: u8,
        forget: bool,
    },
    Silent {
        node: u8,
    },
    Drain {
        node: u8,
        resume: bool,
    },
    Launch {
        job: u8,
    },
    Pass {
        seconds: u8,
    },
    Configure {
        what: u8,
    },
    Policy {
        what: u8,
    },
    Reserve {
        name: u8,
        nodes: u8,
        from: u8,
        seconds: u8,
    },
    Unreserve {
        name: u8,
    },
    Close {
        node: u8,
        from: u8,
        seconds: u8,
    },
    /// See [`asides`].
    Aside {
        what: u8,
        job: u8,
        more: u8,
    },
}

pub fn step() -> impl Strategy<Value = Step> {
    let n = any::<u8>;
    prop_oneof![
        6 => (n(), n(), n(), n(), n()).prop_map(|(who, nodes, cores, shape, on)| Step::Submit { who, nodes, cores, shape, on }),
        2 => (n(), n(), n(), n()).prop_map(|(who, tasks, limit, on)| Step::Array { who, tasks, limit, on }),
        2 => (n(), n(), n(), n()).prop_map(|(who, job, task, kind)| Step::Hold { who, job, task, kind }),
        2 => (n(), n(), n(), n()).prop_map(|(who, job, task, kind)| Step::Release { who, job, task, kind }),
        2 => (n(), n(), n()).prop_map(|(who, job, task)| Step::Cancel { who, job, task }),
        5 => (n(), n(), n(), n())
            .prop_map(|(who, job, component, what)| Step::Component { who, job, component, what }),
        1 => (n(), n()).prop_map(|(who, state)| Step::CancelAll { who, state }),
        2 => (n(), n(), any::<bool>()).prop_map(|(job, task, hold)| Step::Requeue { job, task, hold }),
        3 => (n(), n(), n()).prop_map(|(who, job, what)| Step::Modify { who, job, what }),
        6 => (n(), prop::bool::weighted(0.4)).prop_map(|(job, resume)| Step::Suspend { job, resume }),
        8 => (n(), prop::bool::weighted(0.2)).prop_map(|(skip, wild)| Step::Plan { skip, wild }),
        12 => (n(), n(), n()).prop_map(|(run, node, what)| Step::Report { run, node, what }),
        2 => (n(), n(), any::<bool>()).prop_map(|(node, boot, forget)| Step::Hello { node, boot, forget }),
        1 => n().prop_map(|node| Step::Silent { node }),
        1 => (n(), any::<bool>()).prop_map(|(node, resume)| Step::Drain { node, resume }),
        1 => n().prop_map(|job| Step::Launch { job }),
        4 => n().prop_map(|seconds| Step::Pass { seconds }),
        1 => n().prop_map(|what| Step::Configure { what }),
        1 => n().prop_map(|what| Step::Policy { what }),
        2 => (n(), n(), n(), n())
            .prop_map(|(name, nodes, from, seconds)| Step::Reserve { name, nodes, from, seconds }),
        1 => n().prop_map(|name| Step::Unreserve { name }),
        1 => (n(), n(), n()).prop_map(|(node, from, seconds)| Step::Close { node, from, seconds }),
        8 => (n(), n(), n()).prop_map(|(what, job, more)| Step::Aside { what, job, more }),
    ]
}

const USERS: [&str; 3] = ["ada", "bob", "oper"];
const KINDS: [DependencyKind; 13] = [
    DependencyKind::Started,
    DependencyKind::Ended,
    DependencyKind::Succeeded,
    DependencyKind::Failed,
    DependencyKind::SameIndexSucceeded,
    DependencyKind::Singleton,
    DependencyKind::BeforeStarted,
    DependencyKind::BeforeEnded,
    DependencyKind::BeforeSucceeded,
    DependencyKind::BeforeFailed,
    DependencyKind::Count(1),
    DependencyKind::Running,
    DependencyKind::NotFailed,
];

struct Model {
    cluster: Cluster,
}

impl Model {
    fn actor(who: u8) -> Actor {
        if who.is_multiple_of(7) { root() } else { user(USERS[who as usize % USERS.len()]) }
    }

    /// Usually an unfinished job, else an assigned number, or one close to those.
    fn job(&self, pick: u8) -> JobId {
        let state = &self.cluster.state;
        let live: Vec<JobId> = state.jobs().filter(|job| !job.is_finished()).map(|job| job.id.whole()).collect();
        match live.get(pick as usize % live.len().max(1)) {
            Some(job) if !pick.is_multiple_of(6) => *job,
            _ => JobId::job(u64::from(pick) % (state.next_job_number() + 1) + 1),
        }
    }

    fn job_or_task(&self, pick: u8, task: u8) -> JobId {
        let id = self.job(pick);
        if task.is_multiple_of(2) { id } else { JobId::task(id.number, u32::from(task) % 8) }
    }

    /// A job with a run, if there is one.
    fn active_job(&self, pick: u8) -> JobId {
        let active: Vec<JobId> = self.cluster.state.runs().map(|run| run.job).collect();
        active.get(pick as usize % active.len().max(1)).copied().unwrap_or_else(|| self.job(pick))
    }

    /// One or two running jobs, suspended or not.
    fn started_jobs(&self, pick: u8, suspended: bool) -> Vec<JobId> {
        let started = self.cluster.state.runs().filter(|run| run.started.is_some() && run.is_suspended() == suspended);
        let started: Vec<JobId> = started.map(|run| run.job).collect();
        let mut chosen: Vec<JobId> = started.iter().cycle().skip(pick as usize % 8).take(2).copied().collect();
        chosen.truncate(if pick.is_multiple_of(3) { 2 } else { 1 });
        if chosen.is_empty() || pick.is_multiple_of(11) { vec![self.active_job(pick)] } else { chosen }
    }

    /// The runs of jobs with several components.
    fn runs_of_several(&self) -> impl Iterator<Item = &Run> {
        let state = &self.cluster.state;
        state.runs().filter(|run| state.job(run.job).is_some_and(|job| job.components.len() > 1))
    }

    /// A running job with several components, if there is one.
    fn job_of_several(&self, pick: u8) -> JobId {
        let several: Vec<JobId> = self.runs_of_several().map(|run| run.job).collect();
        several.get(pick as usize % several.len().max(1)).copied().unwrap_or_else(|| self.job(pick))
    }

    /// The start of a part of such a job. Without it few of them would ever run: most reports are of ends.
    fn start_of_several(&self) -> Option<(Actor, Command)> {
        self.start_of(|run| self.runs_of_several().any(|several| several.id == run.id))
    }

    fn start_of(&self, which: impl Fn(&Run) -> bool) -> Option<(Actor, Command)> {
        let is_launching = |part: &&Part| part.state == PartState::Launching;
        let launching = self.cluster.state.runs().filter(|run| run.stopping.is_none() && which(run));
        let (run, part) = launching.filter_map(|run| Some((run, run.parts.iter().find(is_launching)?))).next()?;
        let node = self.cluster.state.node_name(part.node);
        Some((executor(&node), Command::NodeStarted { part: self.cluster.state.part_id(run, part) }))
    }

    fn node(&self, pick: u8) -> String {
        format!("node{}", pick % 3 + 1)
    }

    fn dependency(&self, on: u8) -> Vec<Vec<Dependency>> {
        if on < 100 {
            return Vec::new();
        }
        let kind = KINDS[on as usize % KINDS.len()];
        let needs_job = !matches!(kind, DependencyKind::Singleton | DependencyKind::Count(_));
        let job = needs_job.then(|| self.job_or_task(on / 3, on / 7));
        vec![vec![Dependency { kind, job, delay_seconds: u32::from(on % 4) }]]
    }

    /// The command of a step; `None` if the step has no effect now.
    fn command(&self, step: &Step) -> Option<(Actor, Command)> {
        let state = &self.cluster.state;
        let holds = |kind: u8| Holds { user: kind & 1 != 0, operator: kind & 2 != 0, system: kind & 4 != 0 };
        Some(match step.clone() {
            Step::Submit { who, nodes, cores, shape, on } => {
                (Self::actor(who), self.submission(nodes, cores, shape, on))
            }
            Step::Array { who, tasks, limit, on } => {
                let limit = (limit % 3 != 0).then_some(u32::from(limit % 3));
                let mut spec = array(IndexSet::first_n(u32::from(tasks % 6) + 1), limit);
                spec.components[0].dependencies.all_of = self.dependency(on);
                (Self::actor(who), Command::Submit { jobs: vec![spec] })
            }
            Step::Hold { who, job, task, kind } => {
                let jobs = ids(&[self.job_or_task(job, task)]);
                (Self::actor(who), Command::Hold { jobs, holds: holds(kind), reason: "because".into() })
            }
            Step::Release { who, job, task, kind } => {
                let jobs = ids(&[self.job_or_task(job, task)]);
                (Self::actor(who), Command::Release { jobs, holds: holds(kind | 1) })
            }
            Step::Cancel { who, job, task } => {
                let jobs = ids(&[self.job_or_task(job, task), self.job(task)]);
                (Self::actor(who), Command::Cancel { jobs })
            }
            Step::Component { who, job, component, what } => {
                if let Some(start) = self.start_of_several() {
                    return Some(start);
                }
                let job = if what < 200 { self.job_of_several(job) } else { self.job(job) };
                let component = [1, 1, 1, 2, 0][usize::from(component) % 5];
                let jobs = JobSelection::Component { job, component };
                let command = match what % 4 {
                    0 | 1 => Command::Cancel { jobs },
                    2 => Command::Hold { jobs, holds: holds((what / 8) | 1), reason: "because".into() },
                    _ => Command::Release { jobs, holds: holds((what / 8) | 1) },
                };
                (Self::actor(who), command)
            }
            Step::CancelAll { who, state } => {
                let states = vec![[JobState::Queued, JobState::Running, JobState::Held][state as usize % 3]];
                let filter = JobFilter { states, user: Some("ada".into()), ..JobFilter::default() };
                (Self::actor(who), Command::Cancel { jobs: JobSelection::Matching(filter) })
            }
            Step::Requeue { job, task, hold } => {
                (root(), Command::Requeue { jobs: ids(&[self.job_or_task(job, task)]), hold, delay_seconds: 0 })
            }
            Step::Modify { who, job, what } => {
                (Self::actor(who), Command::Modify { jobs: ids(&[self.job(job)]), change: self.change(what) })
            }
            Step::Suspend { job, resume: false } => {
                // Otherwise few runs would ever start.
                if let Some(start) = self.start_of(|_| job.is_multiple_of(2)) {
                    return Some(start);
                }
                // Occasionally one that is suspended: it may be about to continue.
                (user("oper"), Command::Suspend { jobs: ids(&self.started_jobs(job, job.is_multiple_of(4))) })
            }
            Step::Suspend { job, resume: true } => {
                (user("oper"), Command::Resume { jobs: ids(&self.started_jobs(job, true)) })
            }
            Step::Plan { skip, wild } => (Actor::Planner, self.plan(skip, wild)),
            Step::Report { run, node, what } => self.report(run, node, what)?,
            Step::Hello { node, boot, forget } => {
                let name = self.node(node);
                let known = state.node_by_name(&name)?;
                let parts = if forget { Vec::new() } else { parts_on(state, known) };
                let boot_id = format!("boot{}", boot % 2);
                (
                    executor(&name),
                    Command::NodeHello { boot_id, parts, highest_run: None, as_of: Some(mark(state.sequence())) },
                )
            }
            Step::Silent { node } => {
                let node = state.node_by_name(&self.node(node))?.id;
                (Actor::Ledger, Command::NodeSilent { node, reason: "silence".into() })
            }
            Step::Drain { node, resume: false } => (
                user("oper"),
                Command::DrainNodes { nodes: vec![self.node(node)], reason: "fan".into(), is_down: false },
            ),
            Step::Drain { node, resume: true } => (user("oper"), Command::ResumeNodes { nodes: vec![self.node(node)] }),
            Step::Launch { job } => (root(), plain_step(self.job(job), None, None)),
            Step::Pass { .. } => (Actor::Ledger, Command::Tick),
            Step::Configure { what } => (root(), self.configuration(what)),
            Step::Policy { what } => {
                let name = BUILT_IN_POLICIES[what as usize % BUILT_IN_POLICIES.len()];
                let policy = sharing(Policy::built_in(name)?, what.is_multiple_of(2));
                (root(), Command::SetPolicy { policy: Box::new(policy) })
            }
            Step::Reserve { name, nodes, from, seconds } => {
                let start = self.cluster.now.plus_seconds(i64::from(from % 32));
                let lasts = u32::from(seconds % 64) + 1;
                let reservation = ReservationSpec {
                    name: format!("r{}", name % 4),
                    start,
                    end: start.plus_seconds(lasts.into()),
                    nodes: match nodes % 4 {
                        0 => ReservedNodes::Count { count: u32::from(nodes / 4 % 2) + 1, filter: None, queue: None },
                        _ => ReservedNodes::Named(vec![self.node(nodes), self.node(nodes / 4)]),
                    },
                    users: if nodes < 128 { vec!["ada".into()] } else { Vec::new() },
                    accounts: Vec::new(),
                    repeats_after_seconds: if from < 128 { 0 } else { u64::from(lasts) + u64::from(name / 4 % 16) },
                    attributes: Default::default(),
                    overlaps: name / 4 % 2 == 1,
                    ends_after_idle_seconds: u64::from(name / 8 % 4),
                    attracts: name / 2 % 3 == 1,
                    is_flexible: name / 16 % 3 == 1,
                    replaces: [Replaced::None, Replaced::Lost, Replaced::Used][usize::from(nodes / 8 % 3)],
                    stays_ahead_seconds: if seconds < 224 { 0 } else { u64::from(from % 32) },
                    skipped_days: 0,
                    users_may_remove: nodes.is_multiple_of(2),
                };
                (user("oper"), Command::Reserve { reservation: Box::new(reservation) })
            }
            Step::Unreserve { name } => (user("oper"), Command::RemoveReservation { name: format!("r{}", name % 4) }),
            Step::Close { node, from, seconds } => {
                let from = self.cluster.now.plus_seconds(i64::from(from % 32));
                let until = from.plus_seconds(i64::from(seconds % 32));
                let closure = NodeClosure { from, until, reason: "fan".into() };
                let closures = if seconds < 32 { Vec::new() } else { vec![closure] };
                (user("oper"), Command::SetNodeClosures { nodes: vec![self.node(node)], closures })
            }
            Step::Aside { what, job, more } => {
                let job = if more.is_multiple_of(4) { self.job(job) } else { self.active_job(job) };
                asides::command(&self.cluster, what, job, more)?
            }
        })
    }

    fn submission(&self, nodes: u8, cores: u8, shape: u8, on: u8) -> Command {
        let mut spec = job(u32::from(nodes % 3) + 1, u32::from(cores % 4) + 1);
        let component = &mut spec.components[0];
        if shape & 1 != 0 {
            component.launch = tasks();
        }
        if shape & 2 != 0 {
            component.alternatives[0].licences = [("ansys".to_owned(), 2)].into();
        }
        if shape & 4 != 0 {
            component.begin = Some(self.cluster.now.plus_seconds(i64::from(cores % 8)));
        }
        if shape & 8 != 0 {
            component.deadline = Some(self.cluster.now.plus_seconds(i64::from(cores) + 1));
        }
        if shape & 16 != 0 {
            component.queue = Some("other".into());
        }
        component.dependencies.all_of = self.dependency(on);
        component.reservation =
            self.cluster.state.reservations().next().filter(|_| on.is_multiple_of(4)).map(|one| one.spec.name.clone());
        if shape & 32 != 0 {
            spec.requeue =
                RequeuePolicy { on_node_lost: true, on_exit_codes: vec![1], max_runs: 3, ..Default::default() };
        }
        if shape & 64 != 0 {
            spec.components.push(job(1, 1).components.remove(0));
        } else {
            spec.types = sharing_type(nodes / 3).into_iter().collect();
            if cores > 200 {
                spec.copies = asides::copies();
            }
        }
        let second = JobSpec { name: "x".into(), ..spec.clone() };
        Command::Submit { jobs: if shape & 128 != 0 { vec![spec, second] } else { vec![spec] } }
    }

    fn change(&self, what: u8) -> JobChange {
        let mut change = JobChange::default();
        match what % 8 {
            0 => change.name = Some(["x", "job"][what as usize / 8 % 2].into()),
            1 => change.queue = Some(["other", "default"][what as usize / 8 % 2].into()),
            2 => change.walltime_seconds = Some(u64::from(what) + 1),
            3 => change.begin = Some(self.cluster.now.plus_seconds(i64::from(what / 8))),
            4 => change.alternatives = Some(job(2, 1).components.remove(0).alternatives),
            5 => change.dependencies = Some(muster_schemas::job::Dependencies { all_of: self.dependency(what) }),
            6 => change.max_running = Some(u32::from(what / 8) % 3),
            _ => change.priority = Some(i64::from(what)),
        }
        change
    }

    fn configuration(&self, what: u8) -> Command {
        let mut wanted = config();
        wanted.settings =
            ClusterSettings { finished_job_retention_seconds: 20, cancel_never_met: what & 1 != 0, ..wanted.settings };
        wanted.settings.name = format!("cluster{}", what % 3);
        wanted.settings.energy = (what & 1 != 0).then(asides::energy);
        wanted.settings.quotas = (what & 64 != 0).then(|| Box::new(asides::quotas()));
        wanted.queues[1].started = what & 2 != 0;
        wanted.queues[0].max_running_jobs_per_user = (what & 4 != 0).then_some(2);
        if what & 8 != 0 {
            wanted.nodes[2].cores = 6;
        }
        if what & 16 != 0 {
            wanted.nodes.pop();
        }
        wanted.licences = [("ansys".to_owned(), u32::from(what / 32))].into();
        Command::Configure { change: Box::new(wanted.into()), keep_unnamed: false }
    }

    /// A plan that starts what fits according to its own accounting, or without any.
    fn plan(&self, skip: u8, wild: bool) -> Command {
        let state = &self.cluster.state;
        let mut used: BTreeMap<_, IndexSet> = Default::default();
        let mut starts = Vec::new();
        let mut reasons = Vec::new();
        let (mut slots, mut predictions) = (Vec::new(), Vec::new());
        for (at, waiting) in state.waiting().enumerate() {
            if (at + skip as usize).is_multiple_of(4) {
                let reason = WaitReason::Resources(format!("cores {}", skip % 2));
                let job = waiting.job.id;
                let start = self.cluster.now.plus_seconds(i64::from(skip));
                let placement = place(state, waiting.job, &mut BTreeMap::new(), true).map(Arc::new);
                let slot = placement.filter(|_| !skip.is_multiple_of(3)).map(|placement| SlotSpec { start, placement });
                slots.push(PlannedSlot { job, slot });
                predictions.push(PredictedStart { job, start: (!skip.is_multiple_of(5)).then_some(start) });
                reasons.push(muster_schemas::event::WaitingJob { job, reason });
                continue;
            }
            let tasks: Vec<JobId> = match &waiting.indices {
                None => vec![waiting.job.id],
                Some(indices) => {
                    indices.iter().take(3).map(|index| JobId::task(waiting.job.id.number, index)).collect()
                }
            };
            for job in tasks {
                if let Some(placement) = place(state, waiting.job, &mut used, wild) {
                    starts.push(Start { job, placement });
                }
            }
        }
        let node = |pick: u32| state.nodes().nth(pick as usize % state.nodes().len().max(1)).map(|node| node.id);
        let unplaced = state.reservations().filter(|one| one.is_unplaced());
        let reservations =
            unplaced.map(|one| (one.spec.name.clone(), node(u32::from(skip)).into_iter().collect())).collect();
        let seen = Sequence(state.sequence().0.saturating_sub(u64::from(skip % 8)));
        let (at, left_out) = (self.cluster.now, Vec::new());
        let plan = ProposedPlan {
            seen,
            at,
            left_out,
            starts,
            reasons,
            slots,
            predictions,
            reservations,
            ..ProposedPlan::default()
        };
        Command::CommitPlan { plan: Box::new(plan) }
    }

    fn report(&self, run: u8, node: u8, what: u8) -> Option<(Actor, Command)> {
        let state = &self.cluster.state;
        let now = self.cluster.now;
        let runs: Vec<RunId> = state.runs().map(|run| run.id).collect();
        let id = runs.get(run as usize % runs.len().max(1)).copied().unwrap_or(RunId(u64::from(run)));
        let (name, part) = match state.run(id).map(|run| (run, &run.parts[node as usize % run.parts.len()])) {
            Some((run, part)) => (state.node_name(part.node).into_owned(), state.part_id(run, part)),
            None => (self.node(node), PartId::new(id, 0)),
        };
        let ended = |cause, status| Command::NodeEnded { part, exit: exit(status, cause, now) };
        let command = match what % 8 {
            0..=2 => Command::NodeStarted { part },
            3 | 4 => ended(EndCause::Itself, ExitStatus::Code(0)),
            5 => ended(EndCause::Itself, ExitStatus::Code(1)),
            6 => ended(
                [EndCause::Walltime, EndCause::OutOfMemory, EndCause::Killed][node as usize % 3].clone(),
                ExitStatus::Signal(9),
            ),
            _ => {
                let cause = EndCause::LaunchFailed("no".into());
                let exit = NodeExit { status: None, cause, usage: Usage::default(), started: None, ended: now };
                Command::NodeEnded { part, exit }
            }
        };
        Some((executor(&name), command))
    }
}

/// With whom a job shares its cores, if it does (OAR-T-40, OAR-T-80).
fn sharing_type(what: u8) -> Option<JobType> {
    match what % 10 {
        form @ 0..=3 => Some(JobType::Timesharing { same_user: form & 1 != 0, same_name: form & 2 != 0 }),
        4 => Some(JobType::Placeholder("w".into())),
        5 => Some(JobType::Allowed("w".into())),
        _ => None,
    }
}

/// A placement by first fit over what is free and not yet used by this plan; a wild one does not check.
pub fn place(
    state: &muster_domain::State,
    job: &muster_domain::jobs::Job,
    used: &mut BTreeMap<muster_schemas::NodeId, IndexSet>,
    wild: bool,
) -> Option<Placement> {
    // The components of every other job have separate nodes.
    let shares_nodes = job.id.number.is_multiple_of(2);
    let exclusive = job.id.number.is_multiple_of(5) && job.components.len() == 1;
    let mut placed_on = Vec::new();
    let mut components = Vec::new();
    for component in &job.components {
        let request = &component.shape.alternatives[0].requests[0];
        let least = muster_domain::requests::minimum(request, state.settings());
        let each = least.cores.div_ceil(least.nodes);
        let mut shares = Vec::new();
        for node in state.nodes() {
            let taken = used.get(&node.id).cloned().unwrap_or_default();
            // Who shares tries whatever others hold.
            let free = match Sharing::of(job) {
                Some(_) => IndexSet::first_n(node.spec.cores),
                None if wild => node.free_cores.clone(),
                None => node.free_cores.difference(&taken),
            };
            if shares.len() as u64 == least.nodes || free.len() < each {
                continue;
            }
            if placed_on.contains(&node.id) && !shares_nodes || exclusive && !wild && !node.runs.is_empty() {
                continue;
            }
            let cores = free.smallest(each);
            used.insert(node.id, taken.union(&cores));
            placed_on.push(node.id);
            let share = NodeShare { node: node.id, cores, gpus: IndexSet::new(), memory_bytes: 0, tasks: 1, exclusive };
            shares.push(share);
        }
        if (shares.len() as u64) < least.nodes && !wild {
            return None;
        }
        components.push(ComponentPlacement { alternative: 0, shares });
    }
    Some(Placement { components })
}

/// Plays a history. `run` checks every invariant after each accepted command; a refusal cannot have changed anything.
fn play(steps: &[Step]) -> Cluster {
    play_changed(steps, |_, command| command, |_| {})
}

/// The same with other commands; `see` looks at the cluster after each of them.
pub fn play_changed(
    steps: &[Step],
    change: impl Fn(&Cluster, Command) -> Command,
    mut see: impl FnMut(&Cluster),
) -> Cluster {
    let mut model = Model { cluster: Cluster::new() };
    model.cluster.ok(&Actor::Ledger, Command::SetPolicy { policy: Box::new(sharing(Policy::default(), true)) });
    for step in steps {
        if let Step::Pass { seconds } = step {
            model.cluster.pass(i64::from(seconds % 16));
        }
        if let Some((actor, command)) = model.command(step) {
            let command = change(&model.cluster, command);
            let before = model.cluster.log.len();
            let answer = model.cluster.run(&actor, command);
            assert!(answer.is_ok() || model.cluster.log.len() == before, "a refusal changes nothing");
            assert_as_by_look(&model.cluster);
            see(&model.cluster);
        }
    }
    model.cluster
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2000, ..ProptestConfig::default() })]

    /// Replaying the log gives the state, at any point and from any snapshot (M-DOM-1). No core is of two runs unless they
    /// share it (OAR-G-05).
    #[test]
    fn the_invariants_hold_and_the_log_replays(steps in prop::collection::vec(step(), 1..200)) {
        play(&steps).assert_replays();
    }

    /// The public event of a record and its cause never change after it was appended, even if its nodes are removed, the
    /// cluster is renamed, or who reads starts from a snapshot.
    #[test]
    fn a_public_event_stays_the_same(steps in prop::collection::vec(step(), 1..200), middle: prop::sample::Index) {
        let cluster = play(&steps);
        assert_they_stay(&cluster.log, &cluster.state, middle.index(cluster.log.len() + 1));
    }
}

/// The histories above would prove little if they never exercised whole parts of the rules.
#[test]
fn random_histories_reach_every_event() {
    let mut runner = TestRunner::deterministic();
    let histories = prop::collection::vec(step(), 200);
    let (mut seen, mut renamed) = (BTreeSet::new(), false);
    for _ in 0..400 {
        let steps = histories.new_tree(&mut runner).expect("the generator rejects nothing").current();
        let log = play(&steps).log;
        seen.extend(log.iter().map(|record| record.event.kind_verb()));
        let mut names = log.iter().filter_map(|record| match &record.event {
            Event::SettingsChanged { settings } => Some(&settings.name),
            _ => None,
        });
        renamed |= names.next().is_some_and(|first| names.any(|name| name != first));
    }
    let wanted = [
        ("cluster", "initialised"),
        ("cluster", "settings_changed"),
        ("queue", "set"),
        ("licence", "set"),
        ("node", "added"),
        ("node", "changed"),
        ("node", "removed"),
        ("node", "up"),
        ("node", "lost"),
        ("node", "drained"),
        ("node", "resumed"),
        ("job", "submitted"),
        ("job", "held"),
        ("job", "released"),
        ("job", "modified"),
        ("job", "eligible"),
        ("plan", "made"),
        ("job", "allocated"),
        ("job", "started"),
        ("job", "stopping"),
        ("run", "part_started"),
        ("run", "part_ended"),
        ("run", "ended"),
        ("job", "requeued"),
        ("job", "finished"),
        ("job", "tasks_finished"),
        ("job", "component_stopping"),
        ("job", "component_ended"),
        ("job", "suspended"),
        ("job", "resuming"),
        ("job", "resumed"),
        ("step", "launched"),
        ("policy", "set"),
        ("reservation", "set"),
        ("reservation", "placed"),
        ("reservation", "begun"),
        ("reservation", "removed"),
        ("node", "closures_set"),
        ("trigger", "set"),
        ("trigger", "cleared"),
        ("trigger", "fired"),
        ("crontab", "set"),
        ("job", "copying"),
        ("job", "copied"),
        ("job", "copying_failed"),
        ("node", "load_measured"),
        ("power", "asked"),
        ("power", "ordered"),
        ("power", "told"),
        ("node", "asleep"),
        ("accounts", "changed"),
        ("job", "class_changed"),
        ("policy", "refused"),
        ("planner", "started"),
        ("planner", "cycled"),
        ("log", "checkpoint"),
        ("job", "signalled"),
        ("job", "told"),
        ("job", "kept"),
    ];
    let missing: Vec<_> = wanted.iter().filter(|event| !seen.contains(*event)).collect();
    assert!(missing.is_empty(), "never came up: {missing:?}");
    assert!(renamed, "the cluster had one name only");
}

fn sharing(mut policy: Policy, share_nodes: bool) -> Policy {
    policy.backfill.components.share_nodes = share_nodes;
    policy
}

/// The parts of runs on a node.
fn parts_on(state: &State, node: &Node) -> Vec<PartId> {
    let runs = node.runs.iter().filter_map(|run| state.run(*run));
    runs.flat_map(|run| run.parts_on(node.id).map(|part| state.part_id(run, part))).collect()
}
