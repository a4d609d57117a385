//! Balanced mode: the resources left when every job has its least are shared among running jobs, by their priorities.

use super::{Cycle, modes::Turns};
use crate::{engine::Engine, model::ElasticRun, resize};
use muster_schemas::{
    event::ShrinkReason,
    scheduling::{Preemption, PriorityBias},
    tasks::SizeUnit,
};

/// The width of a priority band.
const BAND: i64 = 1000;
/// The highest band.
const HIGHEST_BAND: i64 = 4;
/// The default interval of rebalancing, in seconds.
const REBALANCE_SECONDS: u32 = 10;

/// A claim to the shared resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    weight: u64,
    /// Maximum number of units.
    most: u64,
    /// The cores of a unit.
    unit_cores: u64,
}

/// The weight of a priority in the sharing (HPC-S-07).
fn weight(priority: i64, bias: PriorityBias) -> u64 {
    let band = u32::try_from((priority / BAND).clamp(0, HIGHEST_BAND)).unwrap_or(0);
    match bias {
        PriorityBias::None => 1,
        PriorityBias::Medium => 2_u64.pow(band),
        PriorityBias::High => 10_u64.pow(band),
    }
}

/// Shares this many cores by weight: nobody gets more than they can use, the rest goes to the others, and whole units
/// are assigned by largest remainder, the first of equal ones winning. Returns the units of each claim.
fn shares(mut cores: u64, claims: &[Share]) -> Vec<u64> {
    let mut given = vec![0; claims.len()];
    let mut open: Vec<usize> = (0..claims.len()).filter(|at| claims[*at].most > 0).collect();
    // A claim that its part satisfies gets all it can use; repeated until no such claim is left.
    loop {
        let weights: u128 = open.iter().map(|at| u128::from(claims[*at].weight)).sum();
        let part = |at: usize| u128::from(cores) * u128::from(claims[at].weight);
        let is_sated = |at: &usize| u128::from(claims[*at].most * claims[*at].unit_cores) * weights <= part(*at);
        let sated: Vec<usize> = open.iter().copied().filter(is_sated).collect();
        if sated.is_empty() {
            break;
        }
        for at in sated {
            given[at] = claims[at].most;
            cores -= claims[at].most * claims[at].unit_cores;
            open.retain(|other| *other != at);
        }
    }
    let weights: u128 = open.iter().map(|at| u128::from(claims[*at].weight)).sum();
    let mut left = cores;
    let mut remainders: Vec<(u128, usize)> = Vec::new();
    for at in open {
        let (part, unit) = (u128::from(cores) * u128::from(claims[at].weight), u128::from(claims[at].unit_cores));
        given[at] = u64::try_from(part / (weights * unit)).unwrap_or(0);
        left -= given[at] * claims[at].unit_cores;
        // In parts of a unit, so that units of different size compare.
        remainders.push((part % (weights * unit) * 1_000_000 / unit, at));
    }
    remainders.sort_by_key(|(remainder, at)| (std::cmp::Reverse(*remainder), *at));
    for (_, at) in remainders {
        if claims[at].unit_cores <= left && given[at] < claims[at].most {
            given[at] += 1;
            left -= claims[at].unit_cores;
        }
    }
    given
}

/// A job that takes part in the sharing.
struct Sharer {
    /// The running job; one that starts in this cycle has none yet, and gets its share in the next.
    run: Option<ElasticRun>,
    least: u32,
    claim: Share,
}

impl Engine {
    /// Shares out the rest: runs below their share grow at once, as far as there is room, and those above it give up at
    /// intervals what others lack (HPC-S-08).
    pub(super) fn share_out(&mut self, cycle: &mut Cycle, turns: &Turns) {
        let sharers = self.sharers(cycle);
        let additional: u64 = sharers.iter().map(Sharer::additional_cores).sum();
        let lacking = self.lacking_cores(turns);
        let free: u64 = cycle.index.cores().iter().map(|cores| u64::from(*cores)).sum();
        let claims: Vec<Share> = sharers.iter().map(|sharer| sharer.claim).collect();
        let given = shares((additional + free).saturating_sub(lacking), &claims);
        let mut are_short = lacking > 0;
        let mut above = Vec::new();
        for (sharer, units) in sharers.iter().zip(given) {
            let target = sharer.least.saturating_add(u32::try_from(units).unwrap_or(u32::MAX));
            let Some(run) = &sharer.run else { continue };
            if run.size.current > target {
                above.push((run.clone(), run.size.current - target));
            } else if lacking == 0 {
                self.grow(cycle, run, target);
                let grown = cycle.plan.growths.iter().find(|growth| growth.job == run.job).map_or(0, |one| one.count);
                let has = u64::from(run.size.current) + grown;
                are_short |= has < u64::from(target) && run.size.wanted > 0;
            }
        }
        if are_short {
            self.level(cycle, above);
        }
    }

    /// Runs above their share give up the excess, unless anybody was asked to a short while ago. With immediate
    /// preemption their tasks there are stopped, unless they make way for nobody (HPC-S-14).
    fn level(&self, cycle: &mut Cycle, above: Vec<(ElasticRun, u32)>) {
        let able = |run: &ElasticRun| run.shrinking.is_none() && !run.is_leaving && run.may_grow;
        if above.is_empty() || !self.scheduling.shrinks() || self.assumes_passes {
            return;
        }
        let interval = i64::from(self.scheduling.rebalance_seconds.unwrap_or(REBALANCE_SECONDS));
        if let Some(due) = self.rebalanced.map(|at| at.plus_seconds(interval)).filter(|due| *due > cycle.now) {
            return cycle.wake_at(due);
        }
        for (run, units) in above.iter().filter(|(run, _)| able(run)) {
            let stops = self.scheduling.preemption() == Preemption::Immediate && run.size.preemptable;
            let reason = if stops { ShrinkReason::TasksRebalanced } else { ShrinkReason::Rebalanced };
            self.propose_shrink(cycle, run, *units, reason);
        }
    }

    /// The cores needed by jobs that wait for their least.
    fn lacking_cores(&self, turns: &Turns) -> u64 {
        turns.fronts.iter().map(|front| front.least_cores).sum()
    }

    fn sharers(&self, cycle: &Cycle) -> Vec<Sharer> {
        let bias = self.scheduling.bias.unwrap_or(PriorityBias::Medium);
        let mut sharers = Vec::new();
        for run in self.elastic_in_order().into_iter().filter(|run| run.may_grow || run.shrinking.is_some()) {
            let size = run.size;
            let useful = size.current.saturating_sub(size.idle).saturating_add(size.wanted).min(size.max);
            let claim = Share {
                weight: weight(run.priority, bias),
                most: useful.saturating_sub(size.min).into(),
                unit_cores: self.unit_cores(&run),
            };
            sharers.push(Sharer { least: size.min, claim, run: Some(run) });
        }
        for start in &cycle.plan.starts {
            sharers.extend(self.starting_sharer(start.job, &start.placement, bias));
        }
        sharers
    }

    fn starting_sharer(
        &self,
        job: muster_schemas::JobId,
        placement: &muster_schemas::resources::Placement,
        bias: PriorityBias,
    ) -> Option<Sharer> {
        let entry = self.queue.get(self.queue.place_of(job)?)?;
        let demand = &self.classes.get(entry.class).demand;
        let unit = resize::unit_of(demand);
        let least = resize::units(&self.machine, unit, placement);
        let most = resize::greatest(demand, placement.components.first()?.alternative)?.saturating_sub(least);
        let cores: u64 = placement.shares().map(|share| share.cores.len()).sum();
        let unit_cores = if unit == SizeUnit::Core { 1 } else { cores / u64::from(least.max(1)) };
        let claim = Share { weight: weight(entry.priority, bias), most: most.into(), unit_cores: unit_cores.max(1) };
        Some(Sharer { run: None, least, claim })
    }

    fn unit_cores(&self, run: &ElasticRun) -> u64 {
        if run.size.unit == SizeUnit::Core {
            return 1;
        }
        let placement = self.run(run.job).map(|run| run.placement.clone()).unwrap_or_default();
        let cores: u64 = placement.shares().map(|share| share.cores.len()).sum();
        (cores / u64::from(run.size.current.max(1))).max(1)
    }
}

impl Sharer {
    fn additional_cores(&self) -> u64 {
        let current = self.run.as_ref().map_or(self.least, |run| run.size.current);
        u64::from(current.saturating_sub(self.least)) * self.claim.unit_cores
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NORMAL: i64 = 2000;
    const ABOVE_NORMAL: i64 = 3000;

    fn of(bias: PriorityBias, priorities: &[i64], most: u64, cores: u64) -> Vec<u64> {
        let claim = |priority: &i64| Share { weight: weight(*priority, bias), most, unit_cores: 1 };
        shares(cores, &priorities.iter().map(claim).collect::<Vec<_>>())
    }

    /// HPC-S-07, X-8: two jobs have 2 of 16 cores each, and 12 are shared.
    #[test]
    fn what_is_left_is_shared_by_priority() {
        let both = [NORMAL, ABOVE_NORMAL];
        assert_eq!(of(PriorityBias::None, &both, 14, 12), [6, 6]);
        assert_eq!(of(PriorityBias::Medium, &both, 14, 12), [4, 8]);
        assert_eq!(of(PriorityBias::High, &both, 14, 12), [1, 11]);
    }

    #[test]
    fn who_can_use_less_than_his_part_leaves_the_rest_to_the_others() {
        assert_eq!(of(PriorityBias::None, &[NORMAL; 3], 4, 12), [4, 4, 4]);
        let one = |most| Share { weight: 1, most, unit_cores: 1 };
        assert_eq!(shares(12, &[one(1), one(20), one(20)]), [1, 6, 5]);
        assert_eq!(shares(12, &[one(1), one(2), one(3)]), [1, 2, 3]);
        assert_eq!(shares(0, &[one(1)]), [0]);
    }

    #[test]
    fn equal_remainders_go_to_the_first_in_the_queue() {
        assert_eq!(of(PriorityBias::None, &[NORMAL; 3], 9, 8), [3, 3, 2]);
    }

    #[test]
    fn whole_units_are_given() {
        let of_four = Share { weight: 1, most: 5, unit_cores: 4 };
        let of_one = Share { unit_cores: 1, most: 20, ..of_four };
        assert_eq!(shares(10, &[of_four, of_one]), [1, 6]);
        assert_eq!(shares(9, &[of_four, of_four]), [1, 1]);
    }
}
