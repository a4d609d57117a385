//! Promises are kept.

use crate::{
    history::{Kind, cases, histories},
    reference::{self, Holdings},
    twin::{Planned, replay},
};
use muster_schemas::{job::WaitReason, policy::BackfillMode};
use proptest::prelude::*;

/// Resources of runs and starts.
fn held_by_runs_and_starts<'p>(planned: &Planned<'p>) -> Holdings<'p> {
    let mut held = planned.world.held_by_runs(planned.now);
    for start in &planned.plan.starts {
        let job = &planned.world.jobs[&start.job.whole()];
        held.hold(start.job, &job.demand, &start.placement, planned.now, true);
    }
    held
}

proptest! {
    #![proptest_config(cases())]

    /// The promised resources of the first waiting jobs stay free beside everything that the plan starts. (The plan
    /// tells the times; the places are those that the reference found for the same start.) (M-PLAN-5).
    #[test]
    fn backfilling_delays_no_reservation(
        history in histories(Kind { modes: &[BackfillMode::Easy], loses_capacity: false, overruns: false }),
    ) {
        replay(&history, |_, planned| {
            let promised = reference::pass(planned.world, planned.policy, planned.now).reservations;
            let mut held = held_by_runs_and_starts(planned);
            for waiting in &planned.plan.reasons {
                let WaitReason::Reserved { start } = waiting.reason else { continue };
                let slot = &promised[&waiting.job];
                assert_eq!(start, slot.start, "of job {}", waiting.job);
                held.hold(waiting.job, &planned.world.jobs[&waiting.job].demand, &slot.placement, start, false);
            }
            assert_eq!(held.conflict(), None);
        });
    }

    /// A promise moves to earlier times only, and the job starts no later than it says (M-PLAN-6).
    #[test]
    fn conservative_promises_never_move_later(
        history in histories(Kind { modes: &[BackfillMode::Conservative], loses_capacity: false, overruns: false }),
    ) {
        replay(&history, |twin, planned| {
            for job in planned.world.jobs.values() {
                let Some(promised) = &job.slot else { continue };
                let started = planned.plan.starts.iter().any(|start| start.job.whole() == job.id);
                let now = twin.engine.slot(job.id);
                // A promise does not override a limit that others have reached in the meantime.
                let limited = planned.plan.reasons.iter().any(|waiting| {
                    waiting.job == job.id && matches!(waiting.reason, WaitReason::Limit(_))
                });
                // Nor that of its own array, when a later task overtook the promised one.
                let is_array_full = job.tasks.as_ref().is_some_and(|tasks| tasks.headroom == 0);
                let limited = limited || is_array_full;
                let is_cut_short = planned.plan.is_cut_short;
                let is_kept = started || limited || is_cut_short || now.as_ref().is_some_and(|slot| slot.start <= promised.start && slot.start > planned.now);
                assert!(is_kept, "job {} at {}: promised {promised:?}, now {now:?}", job.id, planned.now);
            }
        });
    }
}
