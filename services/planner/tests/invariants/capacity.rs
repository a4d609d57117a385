//! Never more is in use than exists, and a job has all of its components or none.

use crate::{
    clusters::ALL_MODES,
    history::{Kind, cases, histories},
    reference::{Holdings, World},
    twin::{Planned, replay},
};
use muster_domain::requests::minimum;
use muster_planner::model::Demand;
use muster_schemas::{
    cluster::ClusterSettings,
    resources::{ComponentPlacement, Placement},
};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Resources held after a plan: by runs, by starts, and by promises.
fn held_after<'p>(planned: &Planned<'p>, after: &World) -> Holdings<'p> {
    let mut held = planned.world.held_by_runs(planned.now);
    for start in &planned.plan.starts {
        let job = &planned.world.jobs[&start.job.whole()];
        held.hold(start.job, &job.demand, &start.placement, planned.now, true);
    }
    for job in after.jobs.values() {
        if let Some(slot) = &job.slot {
            held.hold(job.id, &job.demand, &slot.placement, slot.start, false);
        }
    }
    held
}

/// Panics if the placement lacks anything that the job asks for, or uses nodes that its queues and requests exclude.
fn assert_complete(world: &World, demand: &Demand, placement: &Placement) {
    assert_eq!(placement.components.len(), demand.components.len(), "components of {placement:?}");
    let is_on_other_nodes = |components: &[ComponentPlacement]| {
        let mut seen = BTreeSet::new();
        components.iter().flat_map(|placed| &placed.shares).all(|share| seen.insert(share.node))
    };
    let each_is = placement.components.iter().all(|placed| is_on_other_nodes(std::slice::from_ref(placed)));
    assert!(each_is, "a node twice in a component of {placement:?}");
    assert!(world.shares_nodes || is_on_other_nodes(&placement.components), "a shared node in {placement:?}");
    for (component, placed) in demand.components.iter().zip(&placement.components) {
        let queue = &world.queues[&*component.queue];
        let alternative = &component.alternatives[placed.alternative as usize];
        let settings = ClusterSettings {
            default_memory_per_core_bytes: world.default_memory_per_core_bytes,
            ..ClusterSettings::default()
        };
        let wanted = alternative.requests.iter().map(|request| minimum(request, &settings));
        let wanted = wanted.fold((0, 0), |(cores, gpus), one| (cores + one.cores, gpus + one.gpus));
        let ComponentPlacement { shares, .. } = placed;
        let cores: u64 = shares.iter().map(|share| share.cores.len()).sum();
        let gpus: u64 = shares.iter().map(|share| share.gpus.len()).sum();
        assert!(!shares.is_empty() && cores >= wanted.0 && gpus >= wanted.1, "{placed:?} for {alternative:?}");
        for share in shares {
            let spec = &world.nodes[&share.node].spec;
            assert!(
                queue.nodes.is_empty() || queue.nodes.contains(&spec.name),
                "{} in queue {}",
                spec.name,
                queue.name
            );
        }
    }
}

proptest! {
    #![proptest_config(cases())]

    /// Whatever happens, the resources of a plan's starts are free; and as long as runs keep to their walltimes and
    /// nothing is lost, so are those of all its promises, for all time (M-PLAN-4).
    #[test]
    fn never_more_is_in_use_than_exists(history in histories(Kind { modes: ALL_MODES, loses_capacity: false, overruns: false })) {
        replay(&history, |twin, planned| {
            let held = held_after(planned, &twin.world);
            assert_eq!(held.conflict(), None);
        });
    }

    /// The same when nodes are lost and closed and runs last too long: what they still hold, and what is away, starts nothing
    /// (OAR-G-06). Resources taken away from a run are not held against the plan.
    #[test]
    fn what_starts_is_free_whatever_was_lost(history in histories(Kind { modes: ALL_MODES, loses_capacity: true, overruns: true })) {
        replay(&history, |_, planned| {
            let mut held = planned.world.held_by_runs(planned.now);
            let was_in_conflict = held.conflict().is_some();
            for start in &planned.plan.starts {
                let demand = &planned.world.jobs[&start.job.whole()].demand;
                held.hold(start.job, demand, &start.placement, planned.now, true);
                assert!(held.are_open(start.job, demand), "job {} starts on nodes that are not open to it", start.job);
            }
            if !was_in_conflict {
                assert_eq!(held.conflict(), None);
            }
        });
    }

    /// All components start together, each with what it asks for, or none; and on separate nodes, unless the policy
    /// lets them share (SL-P-07).
    #[test]
    fn all_components_start_together_or_none(history in histories(Kind { modes: ALL_MODES, loses_capacity: true, overruns: true })) {
        replay(&history, |_, planned| {
            for start in &planned.plan.starts {
                let job = &planned.world.jobs[&start.job.whole()];
                assert_complete(planned.world, &job.demand, &start.placement);
            }
        });
    }
}
