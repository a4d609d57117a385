//! One attempt to execute a job, from the allocation of resources until these are free.

use crate::{
    runs::{ByNode, OnNode},
    steps::StepProgress,
};
use muster_schemas::{
    JobId, NodeId, RunId, Sequence, StepId, Timestamp,
    event::{NodeExit, StopReason},
    job::Usage,
    resources::{IndexSet, NodeShare, Placement},
};
use serde::{Deserialize, Serialize};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The numbers of the signals that stop processes and let them continue, on Linux.
const SIGSTOP: u8 = 19;
const SIGCONT: u8 = 18;

/// A run that holds resources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its number.
    pub id: RunId,
    /// The job or task that it executes.
    pub job: JobId,
    /// Its placement.
    pub placement: Arc<Placement>,
    /// When it got its resources.
    pub allocated: Timestamp,
    /// When its last node started; `None` until then.
    pub started: Option<Timestamp>,
    /// If it has not started by then, its launch has failed.
    pub launch_deadline: Timestamp,
    /// Why it is being stopped, if it is.
    pub stopping: Option<StopReason>,
    /// Whether its processes are stopped.
    pub suspension: Suspension,
    /// Whether its walltime was changed after its launch was ordered.
    pub walltime_changed: bool,
    /// The progress of each share of the placement, in the same order. A node has a part for each component there.
    pub parts: ByNode<Part>,
    /// The number of the next step.
    pub next_step: StepId,
    /// Steps that have not ended.
    pub steps: BTreeMap<StepId, StepProgress>,
    /// The components of which processes were sent SIGSTOP, and none SIGCONT since. They keep their resources.
    pub stopped: IndexSet,
    /// The nodes that it gives up as soon as its processes there have ended, because somebody asked for it.
    pub giving_up: BTreeSet<NodeId>,
    /// Its usage on nodes that it gave up for that reason.
    pub left_usage: Usage,
    /// Whether its launch waits until files are copied to its first node (PBS-G-01).
    pub waits_for_files: bool,
    /// Whether its launch waits until all its nodes are awake (OAR-E-03).
    pub waits_for_nodes: bool,
    /// Seconds from SIGTERM to SIGKILL once it is being stopped, if somebody named them.
    pub stop_grace_seconds: Option<u32>,
}

/// Whether the processes of a run are stopped. Having continued differs from never having been stopped, because the
/// order to continue may have to be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Suspension {
    /// They were never stopped.
    Never,
    /// They are stopped.
    Suspended,
    /// They were stopped and have continued.
    Resumed,
    /// They are stopped, and other runs may use the cores until the run continues (SL-C-37).
    Lent,
    /// They are stopped; the run will continue, as this record says, as soon as no other run has its cores.
    Resuming(Sequence),
    /// They are stopped since this record, and a waiting job of a class that preempts that of the run gets the cores.
    MadeWay {
        /// The waiting job.
        for_job: JobId,
        /// The record.
        since: Sequence,
    },
    /// They are stopped because the run made way. Since this record it wants its cores back, and nobody new gets them but
    /// jobs that it makes way for again. It continues with a plan that leaves them to it.
    Returning(Sequence),
}

/// The part of a run on one node, for one component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The node.
    pub node: NodeId,
    /// The component it belongs to, from 0.
    pub component: u32,
    /// The record of its launch order; after its start, the record of that.
    pub since: Sequence,
    /// Its progress.
    pub state: PartState,
}

/// The progress of the part of a run on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartState {
    /// Its launch is ordered.
    Launching,
    /// Its processes run.
    Started,
    /// It is over.
    Ended(Box<NodeExit>),
    /// Its node is held and gets no orders ([`JobType::HandsOff`](muster_schemas::job::JobType::HandsOff)).
    Held,
}

impl Run {
    /// The run of a job that has just got its resources. If it is `hands_off`, only its first part gets orders.
    pub(crate) fn new(
        id: RunId,
        job: JobId,
        placement: &Arc<Placement>,
        (now, since): (Timestamp, Sequence),
        (launch_timeout, hands_off): (u32, bool),
    ) -> Self {
        let parts = placement.shares_by_component().enumerate().map(|(at, (component, share))| Part {
            node: share.node,
            component,
            since,
            state: if hands_off && at > 0 { PartState::Held } else { PartState::Launching },
        });
        Self {
            id,
            job,
            parts: parts.collect(),
            placement: placement.clone(),
            allocated: now,
            started: None,
            launch_deadline: now.plus_seconds(i64::from(launch_timeout)),
            stopping: None,
            suspension: Suspension::Never,
            walltime_changed: false,
            next_step: StepId(1),
            steps: BTreeMap::new(),
            stopped: IndexSet::new(),
            giving_up: BTreeSet::new(),
            left_usage: Usage::default(),
            waits_for_files: false,
            waits_for_nodes: false,
            stop_grace_seconds: None,
        }
    }

    /// Its parts on a node.
    pub fn parts_on(&self, node: NodeId) -> impl Iterator<Item = &Part> {
        self.parts.on(node)
    }

    /// The index among its parts of the one on a node for a component.
    pub fn position_of(&self, node: NodeId, component: u32) -> Option<usize> {
        self.parts.positions_on(node).find(|at| self.parts[*at].component == component)
    }

    /// Its part on a node, if it has one there; if several components share the node, that of the first.
    pub fn part(&self, node: NodeId) -> Option<&Part> {
        self.parts_on(node).next()
    }

    /// Its part on a node for a component.
    pub fn part_of(&self, node: NodeId, component: u32) -> Option<&Part> {
        self.parts_on(node).find(|part| part.component == component)
    }

    pub(crate) fn part_of_mut(&mut self, node: NodeId, component: u32) -> Option<&mut Part> {
        let at = self.position_of(node, component)?;
        self.parts.get_mut(at)
    }

    /// Whether components share a node (SL-P-07).
    pub fn is_shared(&self, node: NodeId) -> bool {
        self.parts_on(node).nth(1).is_some()
    }

    /// Its share of a node; if several components share it, that of the first.
    pub fn share(&self, node: NodeId) -> Option<&NodeShare> {
        self.share_at(self.parts.positions_on(node).next()?)
    }

    /// Its share of a node for a component.
    pub fn share_of(&self, node: NodeId, component: u32) -> Option<&NodeShare> {
        self.share_at(self.position_of(node, component)?)
    }

    /// Its share for the part at an index: shares are in the order of parts.
    pub fn share_at(&self, at: usize) -> Option<&NodeShare> {
        self.placement.share_at(at)
    }

    /// The first part for a component, which runs anything that runs once.
    pub fn first_for(&self, component: u32) -> Option<&Part> {
        let before = self.placement.components.iter().take(component as usize);
        let at = before.map(|placed| placed.shares.len()).sum::<usize>();
        self.parts.get(at).filter(|part| part.component == component)
    }

    /// The part that runs a script: the first.
    pub fn lead(&self) -> Option<&Part> {
        self.parts.first()
    }

    /// Whether a part is the first, which runs a script.
    pub fn is_lead(&self, part: &Part) -> bool {
        self.lead().is_some_and(|lead| lead.is(part))
    }

    /// The parts except one.
    pub fn others<'a>(&'a self, part: &'a Part) -> impl Iterator<Item = &'a Part> {
        self.parts.iter().filter(move |other| !other.is(part))
    }

    /// The nodes of its parts, in order of rank.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.parts.iter().map(|part| part.node)
    }

    /// Whether it does not give up a node.
    pub fn keeps(&self, node: NodeId) -> bool {
        !self.giving_up.contains(&node)
    }

    /// Its placement without the nodes that it gives up.
    pub fn kept_placement(&self) -> Cow<'_, Placement> {
        if self.giving_up.is_empty() {
            return Cow::Borrowed(&self.placement);
        }
        let mut kept = (*self.placement).clone();
        for placed in &mut kept.components {
            placed.shares.retain(|share| self.keeps(share.node));
        }
        Cow::Owned(kept)
    }

    /// The index of the part of a step that is within a part of the run.
    pub(crate) fn step_position(&self, step: StepId, part: &Part) -> Option<usize> {
        self.steps.get(&step)?.position(part.node, part.component)
    }

    /// A part of a step has ended.
    pub(crate) fn end_step_part(&mut self, step: StepId, node: NodeId, component: u32, exit: &NodeExit) {
        let Some(step) = self.steps.get_mut(&step) else { return };
        if let Some(part) = step.position(node, component).and_then(|at| step.parts.get_mut(at)) {
            part.exit = Some(exit.clone());
        }
    }

    /// Whether its processes are stopped.
    pub fn is_suspended(&self) -> bool {
        match self.suspension {
            Suspension::Never | Suspension::Resumed => false,
            Suspension::Suspended
            | Suspension::Lent
            | Suspension::Resuming(_)
            | Suspension::MadeWay { .. }
            | Suspension::Returning(_) => true,
        }
    }

    /// Whether its processes are stopped, and it continues as soon as it has its cores again.
    pub fn is_resuming(&self) -> bool {
        matches!(self.suspension, Suspension::Resuming(_) | Suspension::Returning(_))
    }

    /// Notes that these components were sent a signal.
    pub(crate) fn signalled(&mut self, components: IndexSet, signal: u8) {
        match signal {
            SIGSTOP => self.stopped = self.stopped.union(&components),
            SIGCONT => self.stopped = self.stopped.difference(&components),
            _ => {}
        }
    }

    /// Whether nothing keeps its launch.
    pub(crate) fn may_launch(&self) -> bool {
        !self.waits_for_files && !self.waits_for_nodes
    }

    /// When it is next due: the end of its launch timeout, until it has started or is being stopped.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        let is_launching = self.started.is_none() && self.stopping.is_none() && self.may_launch();
        is_launching.then_some(self.launch_deadline)
    }
}

impl OnNode for Part {
    fn node(&self) -> NodeId {
        self.node
    }
}

impl Part {
    /// Whether both are the same part of one run.
    pub fn is(&self, other: &Self) -> bool {
        (self.node, self.component) == (other.node, other.component)
    }

    /// Its end, if it has ended.
    pub fn exit(&self) -> Option<&NodeExit> {
        match &self.state {
            PartState::Ended(exit) => Some(exit),
            _ => None,
        }
    }

    /// Whether its start was reported.
    pub fn has_begun(&self) -> bool {
        self.state != PartState::Launching
    }

    /// Whether its processes run.
    pub fn is_up(&self) -> bool {
        self.state == PartState::Started
    }

    /// Whether nothing of it runs any more: it has ended, or never does anything.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, PartState::Ended(_) | PartState::Held)
    }
}
