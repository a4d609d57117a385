//! The planner's service as a model around the production planning function: it follows the log, asks for what it missed,
//! and has one plan outstanding at a time.

use muster_domain::State;
use muster_planner::{Order, Policy, View, plan};
use muster_schemas::{
    CommandId, JobId, Sequence, Timestamp,
    command::{Answer, Command, Reply},
    event::Commit,
    plan::ProposedPlan,
};
use std::collections::BTreeSet;

/// A gap is asked for again after so many microseconds.
const ASK_AGAIN_MICROS: i64 = 300_000;

#[derive(Debug, Default)]
pub(super) struct PlannerHost {
    running: Option<Projection>,
    pub(super) outstanding: Option<CommandId>,
    asked_at: i64,
}

#[derive(Debug, Default)]
struct Projection {
    state: State,
    order: Order,
    left_out: BTreeSet<JobId>,
    /// The newest record that was heard of.
    heard_of: Sequence,
    /// A plan is worth making.
    is_due: bool,
    /// It must be seen before the next plan is made.
    wait_for: Sequence,
}

impl PlannerHost {
    pub(super) fn start(&mut self) {
        self.running = Some(Projection { heard_of: Sequence(1), ..Projection::default() });
        self.outstanding = None;
        self.asked_at = 0;
    }

    pub(super) fn stop(&mut self) {
        self.running = None;
    }

    pub(super) fn is_up(&self) -> bool {
        self.running.is_some()
    }

    /// Applies what follows on what it has, and notes what it hears of beyond.
    pub(super) fn receives(&mut self, commit: &Commit) {
        let Some(projection) = &mut self.running else { return };
        projection.heard_of = projection.heard_of.max(commit.last());
        for record in &commit.records {
            if record.sequence == projection.state.sequence().next() {
                projection.order.apply(&mut projection.state, record);
                projection.is_due = true;
                projection.left_out.clear();
            }
        }
    }

    /// The record from which on it needs a replay, if it does and has not asked lately.
    pub(super) fn missing(&mut self, now: i64) -> Option<Sequence> {
        let projection = self.running.as_ref()?;
        let wanted = projection.heard_of.max(projection.wait_for);
        if projection.state.sequence() >= wanted || now < self.asked_at + ASK_AGAIN_MICROS {
            return None;
        }
        self.asked_at = now;
        Some(projection.state.sequence().next())
    }

    /// The command of the next plan, if there is anything to say.
    pub(super) fn plan(&mut self, now: i64) -> Option<Command> {
        let projection = self.running.as_mut()?;
        let is_behind = projection.state.sequence() < projection.wait_for;
        if self.outstanding.is_some() || is_behind || !projection.is_due {
            return None;
        }
        projection.is_due = false;
        let view = View { state: &projection.state, order: &projection.order, left_out: &projection.left_out };
        let plan = plan(&view, &Policy::default());
        if plan.starts.is_empty() && plan.reasons.is_empty() {
            return None;
        }
        let plan = ProposedPlan {
            seen: projection.state.sequence(),
            at: Timestamp(now),
            left_out: projection.left_out.iter().copied().collect(),
            starts: plan.starts,
            reasons: plan.reasons,
            ..ProposedPlan::default()
        };
        Some(Command::CommitPlan { plan: Box::new(plan) })
    }

    pub(super) fn answered(&mut self, id: CommandId, answer: &Answer) {
        if self.outstanding == Some(id) {
            self.outstanding = None;
        }
        let Some(projection) = &mut self.running else { return };
        projection.wait_for = projection.wait_for.max(answer.sequence);
        if let Ok(Reply::Planned(refused)) = &answer.result {
            projection.left_out.extend(refused.iter().flat_map(|start| [start.job, start.job.whole()]));
            projection.is_due |= !refused.is_empty();
        }
    }
}
