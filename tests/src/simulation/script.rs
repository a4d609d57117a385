//! A scheduling program that does what programs must not do: it answers late, twice, with nonsense or not at all, starts jobs
//! that do not exist, that run or are over, and puts them where they cannot be. It plans as long as there is trouble.

use muster_domain::State;
use muster_schemas::{
    JobId, NodeId, Sequence,
    command::{Command, JobSelection, Start},
    event::WaitingJob,
    job::{Holds, WaitReason},
    plan::{ProposedPlan, QueueMove},
    resources::{ComponentPlacement, IndexSet, NodeShare, Placement},
};
use rand::{Rng, rngs::SmallRng};
use std::collections::VecDeque;

/// Answers that it holds back.
const MOST_KEPT: usize = 8;

#[derive(Debug, Default)]
pub(super) struct HostileScript {
    /// Answers of earlier cycles, for later ones.
    kept: VecDeque<ProposedPlan>,
    /// How many cycles it has harmed.
    pub(super) misdeeds: u64,
}

impl HostileScript {
    /// What it asks for in place of a good plan; nothing if it never answers.
    pub(super) fn answers(&mut self, good: Command, state: &State, random: &mut SmallRng) -> Vec<Command> {
        let Command::CommitPlan { plan: good } = good else { return vec![good] };
        // The ledger hears of starts that a program has named, whatever queues say.
        let good = ProposedPlan { external: true, is_ordered: random.random_bool(0.5), ..*good };
        self.misdeeds += 1;
        let plans = match random.random_range(0..8) {
            0 => Vec::new(),
            1 => {
                self.kept.push_back(good);
                let is_full = self.kept.len() > MOST_KEPT || random.random_bool(0.5);
                is_full.then(|| self.kept.pop_front()).flatten().into_iter().collect()
            }
            2 => vec![good.clone(), good],
            3 => vec![ProposedPlan { starts: wrong_jobs(&good, state, random), ..good }],
            4 => vec![ProposedPlan { starts: wrong_places(&good, random), ..good }],
            5 => vec![
                ProposedPlan { seen: Sequence(u64::MAX), ..good.clone() },
                ProposedPlan { seen: Sequence(0), ..good },
            ],
            6 => return std::iter::once(action(state, random)).chain([commit(nonsense(good, random))]).collect(),
            _ => {
                self.misdeeds -= 1;
                vec![good]
            }
        };
        plans.into_iter().map(commit).collect()
    }
}

fn commit(plan: ProposedPlan) -> Command {
    Command::CommitPlan { plan: Box::new(plan) }
}

/// The starts of a plan, and starts of jobs that do not exist, run, or are over, some of them twice.
fn wrong_jobs(good: &ProposedPlan, state: &State, random: &mut SmallRng) -> Vec<Start> {
    let somewhere =
        || good.starts.first().map_or_else(|| on(NodeId(1), IndexSet::first_n(1)), |start| start.placement.clone());
    let unknown = JobId::job(random.random_range(1_000_000..2_000_000));
    let task = JobId::task(random.random_range(1..50), random.random_range(0..50));
    let known = state.jobs().filter(|_| random.random_bool(0.2)).map(|job| job.id).take(8);
    let jobs = known.chain([unknown, task]).collect::<Vec<_>>();
    let wrong = jobs.into_iter().map(|job| Start { job, placement: somewhere() });
    let running = state.runs().take(4).map(|run| Start { job: run.job, placement: Placement::clone(&run.placement) });
    good.starts.iter().cloned().chain(wrong).chain(running).chain(good.starts.iter().cloned()).collect()
}

/// The starts of a plan, on nodes that do not exist, on more cores than there are, or nowhere.
fn wrong_places(good: &ProposedPlan, random: &mut SmallRng) -> Vec<Start> {
    let place = |start: &Start| {
        let placement = match random.random_range(0..4) {
            0 => on(NodeId(random.random_range(4..u32::MAX)), IndexSet::first_n(1)),
            1 => on(NodeId(1), IndexSet::from_range(0, u32::MAX)),
            2 => Placement { components: Vec::new() },
            _ => Placement { components: vec![ComponentPlacement { alternative: u32::MAX, shares: Vec::new() }] },
        };
        Start { job: start.job, placement }
    };
    good.starts.iter().map(place).collect()
}

fn on(node: NodeId, cores: IndexSet) -> Placement {
    let share = NodeShare { node, cores, gpus: IndexSet::default(), memory_bytes: 0, tasks: 1, exclusive: false };
    Placement { components: vec![ComponentPlacement { alternative: 0, shares: vec![share] }] }
}

/// A plan with reasons of jobs and moves to queues that there are not.
fn nonsense(good: ProposedPlan, random: &mut SmallRng) -> ProposedPlan {
    let job = JobId::job(random.random_range(1..2_000_000));
    let moves = good.starts.iter().map(|start| QueueMove { job: start.job, queue: "nowhere".into() }).collect();
    let reasons = vec![WaitingJob { job, reason: WaitReason::ExternalPlanner("because".repeat(1000)) }];
    ProposedPlan { moves, reasons, ..good }
}

/// Something that a manager may do to a job, at a wrong time.
fn action(state: &State, random: &mut SmallRng) -> Command {
    let all: Vec<JobId> = state.jobs().map(|job| job.id).collect();
    let place = random.random_range(0..=all.len());
    let jobs = JobSelection::Ids(vec![all.get(place).copied().unwrap_or_else(|| JobId::job(9_999_999))]);
    match random.random_range(0..3) {
        0 => Command::Hold { jobs, holds: Holds { operator: true, ..Holds::default() }, reason: "no reason".into() },
        1 => Command::Requeue { jobs, hold: false, delay_seconds: 0 },
        _ => Command::Signal { jobs, signal: 10 },
    }
}
