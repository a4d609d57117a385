//! Gaps in order of their beginnings, in blocks, each of which knows its longest and last gap of each width. A search
//! skips blocks in which no gap is wide and long enough.

use crate::machine::Window;
use muster_schemas::Timestamp;

/// A time of a node in which at least a number of cores is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub from: Timestamp,
    pub until: Timestamp,
    /// The index of the node.
    pub node: u32,
    pub cores: u32,
    /// Whether that is all of the node.
    pub is_whole: bool,
}

/// The key of a gap: its beginning, its node and its cores. It is unique within a node.
pub(crate) type Key = (Timestamp, u32, u32);

impl Gap {
    pub fn key(&self) -> Key {
        (self.from, self.node, self.cores)
    }

    fn most(&self) -> Most {
        Most { micros: self.micros(), until: self.until }
    }

    fn micros(&self) -> i64 {
        if self.until < Timestamp::MAX { self.until.micros_since(self.from) } else { i64::MAX }
    }
}

/// The properties that a gap must have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    cores: u32,
    micros: i64,
    is_whole: bool,
    level: usize,
}

impl Wanted {
    /// This many cores, or the whole node with at least this many, for a duration; without end if that is [`i64::MAX`].
    pub fn new(cores: u32, micros: i64, is_whole: bool) -> Self {
        let level = if is_whole { WHOLE } else { level(cores.max(1)) };
        Self { cores, micros, is_whole, level }
    }

    /// The minimum number of cores.
    pub fn cores(&self) -> u32 {
        self.cores
    }

    /// The duration.
    pub fn micros(&self) -> i64 {
        self.micros
    }

    /// The moments at which the wanted window can begin in a gap, if there are any.
    pub fn starts_in(&self, gap: &Gap) -> Option<Window> {
        let is_endless = gap.until >= Timestamp::MAX;
        let until = if is_endless { gap.until } else { gap.until.plus_micros(1_i64.saturating_sub(self.micros)) };
        self.is_met_by(gap).then_some(Window { from: gap.from, until })
    }

    /// Whether a gap is wide enough and covers the wanted window that begins then.
    fn is_covered_by(&self, gap: &Gap, moment: Timestamp) -> bool {
        let until = self.until(moment);
        gap.cores >= self.cores && gap.from <= moment && until <= gap.until && (gap.is_whole || !self.is_whole)
    }

    fn until(&self, moment: Timestamp) -> Timestamp {
        moment.plus_micros(self.micros).min(Timestamp::MAX)
    }

    fn is_met_by(&self, gap: &Gap) -> bool {
        gap.cores >= self.cores && gap.micros() >= self.micros && (gap.is_whole || !self.is_whole)
    }
}

/// Blocks know their longest gap with at least each of these numbers of cores.
const LEVELS: [u32; 16] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
/// The level of gaps that are whole nodes.
const WHOLE: usize = LEVELS.len();
/// A block with more gaps is split.
const MOST_GAPS: usize = 192;

/// The highest level that this many cores, at least 1, reach.
fn level(cores: u32) -> usize {
    LEVELS.partition_point(|least| *least <= cores).saturating_sub(1)
}

/// Gaps in order.
#[derive(Debug)]
pub(super) struct GapList {
    blocks: Vec<Block>,
    /// For each block but the first its lower bound: smaller keys are in earlier blocks.
    bounds: Vec<Key>,
}

#[derive(Debug, Default)]
struct Block {
    gaps: Vec<Gap>,
    of_levels: [Most; LEVELS.len() + 1],
}

/// The maxima of the gaps of a block at a level.
#[derive(Clone, Copy, Debug, Default)]
struct Most {
    /// The longest.
    micros: i64,
    /// The latest end.
    until: Timestamp,
}

impl Most {
    fn take(&mut self, other: Self) {
        self.micros = self.micros.max(other.micros);
        self.until = self.until.max(other.until);
    }

    /// Whether it is greater in both.
    fn exceeds(&self, other: Self) -> bool {
        self.micros > other.micros && self.until > other.until
    }
}

impl Block {
    fn new(gaps: Vec<Gap>) -> Self {
        let mut block = Self { gaps, of_levels: Default::default() };
        block.measure();
        block
    }

    fn measure(&mut self) {
        self.of_levels = Default::default();
        for gap in &self.gaps {
            self.of_levels[level(gap.cores)].take(gap.most());
            if gap.is_whole {
                self.of_levels[WHOLE].take(gap.most());
            }
        }
        for at in (1..WHOLE).rev() {
            let wider = self.of_levels[at];
            self.of_levels[at - 1].take(wider);
        }
    }

    fn count(&mut self, gap: &Gap) {
        for most in &mut self.of_levels[..=level(gap.cores)] {
            most.take(gap.most());
        }
        if gap.is_whole {
            self.of_levels[WHOLE].take(gap.most());
        }
    }

    /// Whether a gap of it may hold one of the maxima of a level.
    fn leads(&self, gap: &Gap) -> bool {
        // The last of the levels that the gap counts for has the smallest maxima.
        !self.of_levels[level(gap.cores)].exceeds(gap.most())
            || gap.is_whole && !self.of_levels[WHOLE].exceeds(gap.most())
    }
}

impl GapList {
    /// In any order.
    pub fn new(mut gaps: Vec<Gap>) -> Self {
        gaps.sort_unstable_by_key(Gap::key);
        let blocks: Vec<Block> = gaps.chunks(MOST_GAPS / 2).map(|gaps| Block::new(gaps.to_vec())).collect();
        let blocks = if blocks.is_empty() { vec![Block::default()] } else { blocks };
        let bounds = blocks.iter().skip(1).map(|block| block.gaps[0].key()).collect();
        Self { blocks, bounds }
    }

    fn block_of(&self, key: Key) -> usize {
        self.bounds.partition_point(|bound| *bound <= key)
    }

    pub fn insert(&mut self, gap: Gap) {
        let at = self.block_of(gap.key());
        let block = &mut self.blocks[at];
        let place = block.gaps.partition_point(|known| known.key() < gap.key());
        block.gaps.insert(place, gap);
        block.count(&gap);
        if block.gaps.len() > MOST_GAPS {
            let later = block.gaps.split_off(MOST_GAPS / 2);
            block.measure();
            self.bounds.insert(at, later[0].key());
            self.blocks.insert(at + 1, Block::new(later));
        }
    }

    pub fn remove(&mut self, gap: &Gap) {
        let at = self.block_of(gap.key());
        let block = &mut self.blocks[at];
        let Ok(place) = block.gaps.binary_search_by_key(&gap.key(), Gap::key) else { return };
        block.gaps.remove(place);
        if block.leads(gap) {
            block.measure();
        }
        if block.gaps.is_empty() && self.blocks.len() > 1 {
            self.blocks.remove(at);
            self.bounds.remove(at.saturating_sub(1));
        }
    }

    /// The first gap after this key that meets `wanted`.
    pub fn next(&self, after: Key, wanted: &Wanted) -> Option<Gap> {
        let at = self.block_of(after);
        let gaps = &self.blocks[at].gaps;
        let rest = &gaps[gaps.partition_point(|gap| gap.key() <= after)..];
        if self.blocks[at].of_levels[wanted.level].micros >= wanted.micros
            && let Some(gap) = rest.iter().find(|gap| wanted.is_met_by(gap))
        {
            return Some(*gap);
        }
        let later = self.blocks[at + 1..].iter().filter(|block| block.of_levels[wanted.level].micros >= wanted.micros);
        later.flat_map(|block| &block.gaps).find(|gap| wanted.is_met_by(gap)).copied()
    }

    /// The gaps that cover the whole window that begins at this moment.
    pub fn covering<'l>(&'l self, moment: Timestamp, wanted: &'l Wanted) -> impl Iterator<Item = &'l Gap> + 'l {
        let last = self.block_of((moment, u32::MAX, u32::MAX));
        let until = wanted.until(moment);
        let blocks = self.blocks[..=last].iter().filter(move |block| block.of_levels[wanted.level].until >= until);
        blocks.flat_map(|block| &block.gaps).filter(move |gap| wanted.is_covered_by(gap, moment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{prelude::*, sample::Index};
    use std::collections::BTreeMap;

    /// Gaps are inserted, removed or looked for.
    #[derive(Clone, Debug)]
    enum Step {
        Insert(Gap),
        /// This many, from an index on.
        Remove(Index, usize),
        Look(Timestamp, u32, Wanted),
    }

    prop_compose! {
        fn gaps()(
            from in 0_i64..500,
            lasts in prop_oneof![8 => (1_i64..200).prop_map(Some), 1 => Just(None)],
            node in 0_u32..100,
            cores in prop_oneof![1_u32..10, 1_u32..400],
            is_whole in any::<bool>(),
        ) -> Gap {
            let until = lasts.map_or(Timestamp::MAX, |micros| Timestamp(from + micros));
            Gap { from: Timestamp(from), until, node, cores, is_whole }
        }
    }

    prop_compose! {
        fn wanteds()(
            cores in prop_oneof![1_u32..10, 1_u32..400],
            micros in prop_oneof![8 => 0_i64..250, 1 => Just(i64::MAX), 1 => Just(i64::MAX / 2)],
            is_whole in any::<bool>(),
        ) -> Wanted {
            Wanted::new(cores, micros, is_whole)
        }
    }

    fn steps() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => gaps().prop_map(Step::Insert),
            1 => (any::<Index>(), 1_usize..150).prop_map(|(at, count)| Step::Remove(at, count)),
            3 => (-1_i64..600, 0_u32..100, wanteds()).prop_map(|(from, node, wanted)| Step::Look(Timestamp(from), node, wanted)),
        ]
    }

    proptest! {
        /// A list of several blocks, which split and disappear, finds the same as a look at all gaps.
        #[test]
        fn finds_what_a_look_at_all_gaps_finds(
            first in prop::collection::vec(gaps(), 0..600),
            steps in prop::collection::vec(steps(), 1..400),
        ) {
            let mut all: BTreeMap<Key, Gap> = first.into_iter().map(|gap| (gap.key(), gap)).collect();
            let mut list = GapList::new(all.values().copied().collect());
            for step in steps {
                match step {
                    Step::Insert(gap) => {
                        if let Some(old) = all.insert(gap.key(), gap) {
                            list.remove(&old);
                        }
                        list.insert(gap);
                    }
                    Step::Remove(at, count) => {
                        let at = if all.is_empty() { 0 } else { at.index(all.len()) };
                        let some: Vec<Gap> = all.values().skip(at).take(count).copied().collect();
                        for gap in some {
                            all.remove(&gap.key());
                            list.remove(&gap);
                        }
                    }
                    Step::Look(moment, node, wanted) => {
                        let after = (moment, node, 0);
                        let next = all.values().find(|gap| gap.key() > after && wanted.is_met_by(gap)).copied();
                        prop_assert_eq!(list.next(after, &wanted), next);
                        let covering: Vec<Gap> =
                            all.values().filter(|gap| wanted.is_covered_by(gap, moment)).copied().collect();
                        let found: Vec<Gap> = list.covering(moment, &wanted).copied().collect();
                        prop_assert_eq!(found, covering);
                    }
                }
            }
        }
    }
}
