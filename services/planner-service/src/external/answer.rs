//! The evaluation of an external planner's answer: its counts become free cores, GPUs and memory, and the impossible is
//! refused before the ledger is asked. The ledger checks the rest.

use super::{amounts::Amounts, view::job_of};
use muster_domain::{State, jobs::Component};
use muster_planner::{
    free::{Free, FreeNode, Undo},
    place::{Scope, place_alternative},
    projection::facts_of,
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    command::Start,
    event::WaitingJob,
    external_planner::{Cycle, ExternalComponent, ExternalPlan, ExternalShare, ExternalStart, RefusedJob},
    job::WaitReason,
    plan::{PredictedStart, ProposedPlan},
    resources::{Alternative, ComponentPlacement, Placement},
};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

/// The most bytes of a reason that are kept.
const MAX_REASON_BYTES: usize = 1024;

/// The result of an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proposal {
    /// The request to the ledger.
    pub plan: ProposedPlan,
    /// Starts that are not requested, because they name what does not exist.
    pub refused: Vec<RefusedJob>,
    /// Whether there were more starts than one plan may have.
    pub is_cut_short: bool,
}

/// The result of the answer to a cycle. The state is the one that the cycle showed.
pub(crate) fn propose(state: &State, cycle: &Cycle, answer: ExternalPlan) -> Proposal {
    let max_starts = cycle.max_starts as usize;
    let mut proposal = Proposal { is_cut_short: answer.starts.len() > max_starts, ..Proposal::default() };
    let mut placer = Placer::new(state, cycle.at);
    for start in answer.starts.into_iter().take(max_starts) {
        match placer.place(&start) {
            Ok(placement) => proposal.plan.starts.push(Start { job: start.job, placement }),
            Err(reason) => proposal.refused.push(RefusedJob { job: start.job, reason }),
        }
    }
    let mut texts: BTreeMap<JobId, String> =
        answer.reasons.into_iter().map(|reason| (reason.job, cut(reason.text))).collect();
    for refused in &proposal.refused {
        texts.insert(refused.job, cut(format!("the external planner's start was refused: {}", refused.reason)));
    }
    proposal.plan.start_facts = proposal.plan.starts.iter().filter_map(|start| facts_of(state, start)).collect();
    let started: BTreeSet<JobId> = proposal.plan.starts.iter().map(|start| start.job).collect();
    proposal.plan.reasons = reasons(state, cycle, &started, texts);
    proposal.plan.predictions = answer
        .predictions
        .into_iter()
        .filter(|predicted| state.job(predicted.job).is_some_and(|job| job.predicted_start != predicted.start))
        .map(|predicted| PredictedStart { job: predicted.job, start: predicted.start })
        .collect();
    proposal.plan.seen = cycle.seen;
    proposal.plan.at = cycle.at;
    proposal.plan.external = true;
    proposal
}

/// A plan of one start, which is placed by first fit on the nodes that it names, or on any but those to avoid. Stopped
/// queues and limits on their running jobs do not keep the job from it (PBS-C-09).
pub(crate) fn one_start(
    state: &State,
    now: Timestamp,
    start: &ExternalStart,
    avoid: &[String],
) -> Result<ProposedPlan, String> {
    let mut placer = Placer::new(state, now);
    if start.components.is_empty() && !avoid.is_empty() {
        placer.avoid(avoid);
    }
    let start = Start { job: start.job, placement: placer.place(start)? };
    let start_facts = facts_of(state, &start).into_iter().collect();
    let seen = state.sequence();
    let starts = vec![start];
    let plan = ProposedPlan { seen, at: now, starts, start_facts, external: true, ..ProposedPlan::default() };
    Ok(ProposedPlan { is_ordered: true, ..plan })
}

/// A plan of why jobs wait, as far as that is news.
pub(crate) fn waits(state: &State, now: Timestamp, reasons: impl Iterator<Item = WaitingJob>) -> ProposedPlan {
    let reasons = reasons.filter(|waiting| is_news(state, waiting)).collect();
    ProposedPlan { seen: state.sequence(), at: now, reasons, external: true, ..ProposedPlan::default() }
}

/// A reason for every job that was shown and does not start, if it is news.
fn reasons(
    state: &State,
    cycle: &Cycle,
    started: &BTreeSet<JobId>,
    mut texts: BTreeMap<JobId, String>,
) -> Vec<WaitingJob> {
    let waits = cycle.waiting.iter().map(|shown| shown.job).filter(|job| !started.contains(job));
    let said = waits.map(|job| {
        let text = texts.remove(&job).filter(|text| !text.trim().is_empty());
        let text = text.unwrap_or_else(|| "the external planner did not start it".into());
        WaitingJob { job, reason: WaitReason::ExternalPlanner(text) }
    });
    said.filter(|waiting| is_news(state, waiting)).collect()
}

/// Whether a reason differs from the known one.
pub(crate) fn is_news(state: &State, waiting: &WaitingJob) -> bool {
    state.job(waiting.job).is_some_and(|job| job.planner_reason.as_deref() != Some(&waiting.reason))
}

pub(crate) fn cut(mut text: String) -> String {
    if text.len() > MAX_REASON_BYTES {
        text.truncate(text.floor_char_boundary(MAX_REASON_BYTES));
    }
    text
}

/// The free resources, without those that starts of this plan have been given.
struct Placer<'a> {
    state: &'a State,
    now: Timestamp,
    free: Free<'a>,
}

impl<'a> Placer<'a> {
    fn new(state: &'a State, now: Timestamp) -> Self {
        let open = state.nodes().filter(|node| state.takes_jobs(node) && node.closure_at(now).is_none());
        let nodes = open.map(|node| FreeNode {
            node: node.id,
            spec: &node.spec,
            cores: Cow::Borrowed(&node.free_cores),
            gpus: Cow::Owned(node.free_gpus.difference(&node.faulty_gpus())),
            memory_bytes: node.free_memory_bytes,
            idle: node.runs.is_empty(),
            exclusive: node.exclusive.is_some(),
        });
        let licences = state.licences().map(|(name, licence)| (name, licence.free()));
        Self { state, now, free: Free::new(nodes, licences) }
    }

    /// Leaves nodes out.
    fn avoid(&mut self, names: &[String]) {
        let nodes: Vec<FreeNode<'a>> =
            self.free.nodes().iter().filter(|node| !names.contains(&node.spec.name)).cloned().collect();
        let licences: Vec<(&'a str, u32)> =
            self.state.licences().map(|(name, _)| (name, self.free.licence(name))).collect();
        self.free = Free::new(nodes, licences);
    }

    /// Finds the place of a start and takes it from the free resources.
    fn place(&mut self, start: &ExternalStart) -> Result<Placement, String> {
        let job = job_of(self.state, start.job).ok_or("there is no such job")?;
        let (given, wanted) = (start.components.len(), job.components.len());
        if given != 0 && given != wanted {
            return Err(format!("it has {wanted} components, and {given} are placed"));
        }
        let mut undo = Undo::default();
        let mut taken = BTreeSet::new();
        let mut placement = Placement::default();
        for (number, component) in job.components.iter().enumerate() {
            match self.place_component((&job.owner.user, component), start.components.get(number), &taken) {
                Ok(placed) => {
                    self.take(component, &placed, &mut undo);
                    taken.extend(placed.shares.iter().map(|share| share.node));
                    placement.components.push(placed);
                }
                Err(reason) => {
                    self.free.undo(undo);
                    return Err(reason);
                }
            }
        }
        Ok(placement)
    }

    fn place_component(
        &self,
        (user, component): (&str, &Component),
        wanted: Option<&ExternalComponent>,
        taken: &BTreeSet<NodeId>,
    ) -> Result<ComponentPlacement, String> {
        let alternatives = &component.shape.alternatives;
        let Some(wanted) = wanted else {
            let mut ordered: Vec<(u32, &Alternative)> = (0..).zip(alternatives.iter()).collect();
            ordered.sort_by_key(|(_, alternative)| alternative.walltime_seconds.unwrap_or(u64::MAX));
            let mut ordered = ordered.into_iter();
            let placed = ordered
                .find_map(|(number, alternative)| self.find((user, component), number, alternative, None, taken));
            return placed.ok_or_else(|| "it does not fit into the free resources".into());
        };
        let alternative = alternatives.get(wanted.alternative as usize);
        let alternative = alternative.ok_or_else(|| format!("it has no alternative {}", wanted.alternative))?;
        if let Some(unknown) = wanted.nodes.iter().find(|node| self.state.node_by_name(&node.name).is_none()) {
            return Err(format!("there is no node `{}`", cut(unknown.name.clone())));
        }
        if wanted.nodes.iter().any(has_amounts) {
            return self.as_said(alternative, wanted);
        }
        let names: BTreeSet<&str> = wanted.nodes.iter().map(|node| node.name.as_str()).collect();
        let names = (!names.is_empty()).then_some(&names);
        let placed = self.find((user, component), wanted.alternative, alternative, names, taken);
        placed.ok_or_else(|| match names {
            None => "it does not fit into the free resources".into(),
            Some(_) => "it does not fit into the free resources of the nodes named".into(),
        })
    }

    /// Places an alternative by first fit, on these nodes if any are given.
    fn find(
        &self,
        (user, component): (&str, &Component),
        number: u32,
        alternative: &Alternative,
        names: Option<&BTreeSet<&str>>,
        taken_nodes: &BTreeSet<NodeId>,
    ) -> Option<ComponentPlacement> {
        let may_use = |node: &&FreeNode<'a>| {
            names.is_none_or(|names| names.contains(node.spec.name.as_str()))
                && self.is_kept_for(user, component, node.node)
        };
        let nodes: Vec<FreeNode> = self.free.nodes().iter().filter(may_use).cloned().collect();
        let licences = self.state.licences().map(|(name, _)| (name, self.free.licence(name)));
        let queue_nodes = self.state.queue(&component.queue).map_or(&[][..], |queue| &queue.spec.nodes);
        let default_memory_per_core_bytes = self.state.settings().default_memory_per_core_bytes;
        let order: Vec<NodeId> = self.state.nodes().map(|node| node.id).collect();
        let scope = Scope { queue_nodes, taken_nodes, default_memory_per_core_bytes, order: &order };
        let mut free = Free::new(nodes, licences);
        let mut place =
            |alternative: &Alternative| place_alternative(&mut free, &scope, number, alternative, &mut Undo::default());
        // It has decided when the job starts, so nothing is gained by waiting for nodes that are closer together.
        place(alternative).or_else(|| place(&Alternative { groups: None, ..alternative.clone() }))
    }

    /// Whether the active reservations leave a node to a component.
    fn is_kept_for(&self, user: &str, component: &Component, node: NodeId) -> bool {
        let mut holding = self.state.reservations_of(node).filter(|reservation| reservation.is_active(self.now));
        match component.reservation() {
            Some(own) if self.state.reservation(own).is_some_and(|own| own.spec.is_flexible) => {
                holding.all(|reservation| *reservation.spec.name == **own)
            }
            Some(own) => holding.any(|reservation| *reservation.spec.name == **own),
            None => holding.all(|reservation| reservation.attracts(user, component.account.as_deref())),
        }
    }

    /// The shares with the amounts that the planner gives.
    fn as_said(&self, alternative: &Alternative, wanted: &ExternalComponent) -> Result<ComponentPlacement, String> {
        let amounts = Amounts::new(self.state, alternative);
        let mut shares = Vec::with_capacity(wanted.nodes.len());
        for node in &wanted.nodes {
            let id = self.state.node_by_name(&node.name).map(|known| known.id);
            let free = id.and_then(|id| {
                let at = self.free.nodes().binary_search_by_key(&id, |free| free.node).ok()?;
                self.free.nodes().get(at)
            });
            let free = free.ok_or_else(|| format!("node `{}` takes no jobs now", node.name))?;
            shares.push(amounts.share(free, node)?);
        }
        amounts.complete(&mut shares, &wanted.nodes);
        Ok(ComponentPlacement { alternative: wanted.alternative, shares })
    }

    fn take(&mut self, component: &Component, placed: &ComponentPlacement, undo: &mut Undo<'a>) {
        for share in &placed.shares {
            self.free.take_share(share, undo);
        }
        if let Some(alternative) = component.shape.alternatives.get(placed.alternative as usize) {
            self.free.take_licences(&alternative.licences, undo);
        }
    }
}

fn has_amounts(share: &ExternalShare) -> bool {
    share.cores.is_some() || share.gpus.is_some() || share.memory_bytes.is_some() || share.tasks.is_some()
}
