//! What is promised is kept.

use crate::{
    history::{Kind, cases, histories},
    reference::Holdings,
    twin::{Planned, replay},
};
use muster_schemas::{JobId, Timestamp, job::WaitReason, policy::BackfillMode};
use proptest::prelude::*;

/// What runs and starts.
fn held_by_runs_and_starts<'p>(planned: &Planned<'p>) -> Holdings<'p> {
    let mut held = planned.world.held_by_runs(planned.now);
    for start in &planned.plan.starts {
        let job = &planned.world.jobs[&start.job.whole()];
        held.hold(start.job, &job.demand, &start.placement, planned.now, true);
    }
    held
}

/// The first job of the plan that has a reservation, and its start.
fn first_reservation(planned: &Planned) -> Option<(JobId, Timestamp)> {
    planned.plan.reasons.iter().find_map(|waiting| match waiting.reason {
        WaitReason::Reserved { start } => Some((waiting.job, start)),
        _ => None,
    })
}

proptest! {
    #![proptest_config(cases())]

    /// With all that the plan starts around it, the job with the first reservation still fits when it was told.
    #[test]
    fn backfilling_delays_no_reservation(
        history in histories(Kind { modes: &[BackfillMode::Easy], loses_capacity: false, overruns: false }),
    ) {
        replay(&history, |_, planned| {
            let Some((id, start)) = first_reservation(planned) else { return };
            let held = held_by_runs_and_starts(planned);
            let found = held.earliest(id, &planned.world.jobs[&id].demand);
            assert!(found.as_ref().is_some_and(|found| found.start <= start), "job {id} at {start}: now {found:?}");
        });
    }

    /// A promise moves to earlier times only, and the job starts no later than it says.
    #[test]
    fn conservative_promises_never_move_later(
        history in histories(Kind { modes: &[BackfillMode::Conservative], loses_capacity: false, overruns: false }),
    ) {
        replay(&history, |twin, planned| {
            for job in planned.world.jobs.values() {
                let Some(promised) = &job.slot else { continue };
                let started = planned.plan.starts.iter().any(|start| start.job.whole() == job.id);
                let now = twin.engine.slot(job.id);
                // No promise holds against a limit that others have come up against meanwhile.
                let limited = planned.plan.reasons.iter().any(|waiting| {
                    waiting.job == job.id && matches!(waiting.reason, WaitReason::Limit(_))
                });
                let is_cut_short = planned.plan.is_cut_short;
                let is_kept = started || limited || is_cut_short || now.is_some_and(|slot| slot.start <= promised.start && slot.start > planned.now);
                assert!(is_kept, "job {} at {}: promised {promised:?}, now {now:?}", job.id, planned.now);
            }
        });
    }
}
