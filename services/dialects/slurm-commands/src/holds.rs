//! Which holds are set, and which to release.

use muster_schemas::{job::Holds, views::JobView};
use muster_slurm::select::Target;

/// The holds on a target (SL-C-37).
pub fn holds_of(views: &[JobView], target: Target) -> Holds {
    let of_array = |view: &JobView| {
        let held = view.array.iter().flat_map(|array| &array.held);
        let held = held.filter(|held| target.job.index.is_none_or(|index| held.indices.contains(index)));
        held.fold(Holds::default(), |all, held| all.union(held.holds))
    };
    let of_components = |view: &JobView| {
        let components = view.by_component.iter().zip(0..);
        let components = components.filter(|(_, number)| target.component.is_none_or(|only| only == *number));
        components.fold(Holds::default(), |all, (component, _)| all.union(component.holds))
    };
    let is_its = |view: &&JobView| view.id == target.job || view.id == target.job.whole();
    // A hold on a whole array applies to each of its tasks that has not started.
    let has_started = views.iter().any(|view| view.id == target.job);
    let own = |view: &JobView| match target.component.is_none() && (view.id == target.job || !has_started) {
        true => view.holds,
        false => Holds::default(),
    };
    let all = views.iter().filter(is_its).map(|view| own(view).union(of_array(view)).union(of_components(view)));
    all.fold(Holds::default(), Holds::union)
}

/// The holds that `release` asks to remove, given those that are set. It also asks for those that the owner may not
/// release, so that the request is refused and not ignored as if nothing held the job (SL-C-37). One example of a
/// system hold is a job that could not be staged in (SL-B-08).
pub fn released(set: Holds, is_own: bool) -> Holds {
    Holds { user: true, operator: set.operator || !is_own, system: set.system }
}
