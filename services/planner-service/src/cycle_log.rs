//! Lines about cycles in the planner's own log, for sites that are used to read a scheduler's log. The record of the cluster does
//! not depend on them (PBS-F-12).

use muster_schemas::{
    JobId,
    command::RefusedStart,
    event::WaitingJob,
    plan::ProposedPlan,
    policy::{LogClass, LogFilter, Policy},
};
use std::collections::BTreeSet;

/// The most lines of one kind that a cycle writes; the log of the cluster has everything.
const MOST_LINES: usize = 1000;

/// A line, with its class.
type Line = (LogClass, String);

/// The lines about a plan, for when the ledger has taken it.
pub(crate) struct CycleLog {
    filter: LogFilter,
    reasons: Vec<String>,
    starts: Vec<JobId>,
    waiting: Vec<WaitingJob>,
}

impl CycleLog {
    /// The lines of a plan; `None` if the policy wants none.
    pub fn of(policy: &Policy, plan: &ProposedPlan) -> Option<Self> {
        let filter = LogFilter::new(policy.turns.as_ref()?.hidden_log_classes?);
        Some(Self {
            filter,
            reasons: plan.cycle.as_ref().map(|cycle| cycle.reasons.clone()).unwrap_or_default(),
            starts: plan.starts.iter().map(|start| start.job).collect(),
            waiting: plan.reasons.iter().take(MOST_LINES).cloned().collect(),
        })
    }

    /// Writes them.
    pub fn tell(&self, refused: &[RefusedStart]) {
        for (class, line) in self.lines(refused) {
            tracing::info!(class = class.name(), "{line}");
        }
    }

    /// The lines that the filter leaves (PBS-F-12).
    fn lines(&self, refused: &[RefusedStart]) -> Vec<Line> {
        let kept: BTreeSet<JobId> = refused.iter().map(|refused| refused.job).collect();
        let started: Vec<JobId> = self.starts.iter().filter(|job| !kept.contains(job)).copied().collect();
        let cycle = format!("cycle ({}): {} jobs started", self.reasons.join(", "), started.len());
        let of_start = |job: &JobId| (LogClass::Job, format!("job {job} was started"));
        let of_refusal =
            |one: &RefusedStart| (LogClass::Debug, format!("job {} was not started: {}", one.job, one.reason));
        let of_waiting = |one: &WaitingJob| (LogClass::Debug2, format!("job {} waits: {}", one.job, one.reason));
        std::iter::once((LogClass::Scheduler, cycle))
            .chain(started.iter().take(MOST_LINES).map(of_start))
            .chain(refused.iter().take(MOST_LINES).map(of_refusal))
            .chain(self.waiting.iter().map(of_waiting))
            .filter(|(class, _)| !self.filter.hides(*class))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::{command::Start, job::WaitReason, plan::PlanCycle, policy::Turns, resources::Placement};

    fn shown(hidden: Option<u32>) -> Option<Vec<String>> {
        let turns = Turns { hidden_log_classes: hidden, ..Turns::default() };
        let policy = Policy { turns: Some(Box::new(turns)), ..Policy::default() };
        let start = |number| Start { job: JobId::job(number), placement: Placement { components: Vec::new() } };
        let plan = ProposedPlan {
            starts: vec![start(1), start(2)],
            reasons: vec![WaitingJob { job: JobId::job(3), reason: WaitReason::Resources("cores".into()) }],
            cycle: Some(Box::new(PlanCycle { reasons: vec!["SCH_SCHEDULE_NEW".into()], ..PlanCycle::default() })),
            ..ProposedPlan::default()
        };
        let refused = RefusedStart { job: JobId::job(2), reason: "its node is gone".into() };
        let log = CycleLog::of(&policy, &plan)?;
        Some(log.lines(&[refused]).into_iter().map(|(_, line)| line).collect())
    }

    /// PBS-F-12: the filter is the sum of the classes that are left out; a policy without a filter writes no lines.
    #[test]
    fn the_filter_leaves_classes_out() {
        let all = shown(Some(0)).expect("lines");
        assert_eq!(
            all[..3],
            [
                "cycle (SCH_SCHEDULE_NEW): 1 jobs started",
                "job 1 was started",
                "job 2 was not started: its node is gone"
            ]
        );
        assert!(all[3].starts_with("job 3 waits: ") && all.len() == 4, "{all:?}");
        assert_eq!(shown(Some(256)), Some(all[..3].to_vec()));
        assert_eq!(shown(Some(200)), Some(all[3..].to_vec()), "neither debug, scheduler nor job");
        assert_eq!(shown(Some(388)), Some(all[..2].to_vec()), "neither debug2, debug nor admin");
        assert_eq!(shown(None), None);
    }
}
