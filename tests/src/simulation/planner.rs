//! A model of the planner's service around the production planner: it follows the log, asks for what it missed, and has
//! one plan outstanding at a time.

use muster_domain::State;
use muster_planner::projection::{Planned, Projection};
use muster_schemas::{
    CommandId, JobId, Sequence, Timestamp,
    command::{Answer, Command, Reply},
    event::Commit,
    plan::ProposedPlan,
};
use std::collections::BTreeSet;

/// A gap is requested again after this many microseconds.
const ASK_AGAIN_MICROS: i64 = 300_000;

#[derive(Debug, Default)]
pub(super) struct PlannerHost {
    running: Option<Follower>,
    pub(super) outstanding: Option<CommandId>,
    asked_at: i64,
}

#[derive(Debug)]
struct Follower {
    projection: Projection,
    left_out: BTreeSet<JobId>,
    /// The newest record that it has heard of.
    heard_of: Sequence,
    /// Whether a plan is worth making.
    is_due: bool,
    /// When to plan even if nothing has happened.
    wake: Option<Timestamp>,
    /// The record that it must see before the next plan.
    wait_for: Sequence,
}

impl Follower {
    /// Whether it lacks records that it has heard of, or must see.
    fn is_behind(&self) -> bool {
        self.projection.state().sequence() < self.heard_of.max(self.wait_for)
    }
}

impl PlannerHost {
    pub(super) fn start(&mut self) {
        self.running = Some(Follower {
            projection: Projection::of(State::new()),
            left_out: BTreeSet::new(),
            heard_of: Sequence(1),
            is_due: false,
            wake: None,
            wait_for: Sequence(0),
        });
        self.outstanding = None;
        self.asked_at = 0;
    }

    pub(super) fn stop(&mut self) {
        self.running = None;
    }

    pub(super) fn is_up(&self) -> bool {
        self.running.is_some()
    }

    /// Applies records that follow its state, and notes the newest one it has heard of.
    pub(super) fn receives(&mut self, commit: &Commit) {
        let Some(follower) = &mut self.running else { return };
        follower.heard_of = follower.heard_of.max(commit.last());
        for record in &commit.records {
            let is_next = record.sequence == follower.projection.state().sequence().next();
            if is_next && follower.projection.apply(record).expect("the ledger accepted it") {
                follower.is_due = true;
                follower.left_out.clear();
            }
        }
    }

    /// The record from which it needs a replay, unless it needs none or has asked lately.
    pub(super) fn missing(&mut self, now: i64) -> Option<Sequence> {
        let follower = self.running.as_ref()?;
        if !follower.is_behind() || now < self.asked_at + ASK_AGAIN_MICROS {
            return None;
        }
        self.asked_at = now;
        Some(follower.projection.state().sequence().next())
    }

    /// When to wake it without news: to plan, or to ask again for what it missed.
    pub(super) fn wake(&self) -> Option<i64> {
        let follower = self.running.as_ref()?;
        let asks_again = follower.is_behind().then_some(self.asked_at + ASK_AGAIN_MICROS);
        follower.wake.map(|wake| wake.0).into_iter().chain(asks_again).min()
    }

    /// The command for the next plan, if it has anything to say. A planner that only knows the outcome of the log
    /// must plan the same.
    pub(super) fn plan(&mut self, now: i64) -> Result<Option<Command>, String> {
        let Some(follower) = self.running.as_mut() else { return Ok(None) };
        let is_behind = follower.projection.state().sequence() < follower.wait_for;
        let is_due = follower.is_due || follower.wake.is_some_and(|wake| wake.0 <= now);
        if self.outstanding.is_some() || is_behind || !is_due {
            return Ok(None);
        }
        let now = Timestamp(now).max(follower.projection.state().time());
        let planned = follower.projection.plan(now, &follower.left_out);
        let anew = Projection::of(follower.projection.state().clone()).plan(now, &follower.left_out);
        if planned != anew {
            return Err(format!("a new planner plans otherwise: {anew:?}, the one at work {planned:?}"));
        }
        let Planned { plan, is_cut_short, next_wake, .. } = planned;
        follower.is_due = is_cut_short;
        follower.wake = next_wake;
        let empty =
            ProposedPlan { seen: plan.seen, at: plan.at, left_out: plan.left_out.clone(), ..Default::default() };
        Ok((plan != empty).then(|| Command::CommitPlan { plan: Box::new(plan) }))
    }

    /// No plan came of the last look: it looks again later.
    pub(super) fn looks_again(&mut self, at: i64) {
        if let Some(follower) = &mut self.running {
            follower.is_due = true;
            follower.wake = Some(follower.wake.map_or(Timestamp(at), |wake| wake.min(Timestamp(at))));
        }
    }

    pub(super) fn answered(&mut self, id: CommandId, answer: &Answer) {
        if self.outstanding == Some(id) {
            self.outstanding = None;
        }
        let Some(follower) = &mut self.running else { return };
        follower.wait_for = follower.wait_for.max(answer.sequence);
        match &answer.result {
            Ok(Reply::Planned(refused)) => {
                follower.left_out.extend(refused.iter().flat_map(|start| [start.job, start.job.whole()]));
                follower.is_due |= !refused.is_empty();
            }
            _ => follower.is_due = true,
        }
    }
}
