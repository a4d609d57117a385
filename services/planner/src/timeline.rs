//! The free resources of one node (or of one licence) from each moment on.
//!
//! A line is a list of steps; each says how much is free from its time on. A holding for a time is subtracted from the
//! steps of that time and later added again with the same bounds, so a line never has to be rebuilt. In the future only
//! counts matter: a job that starts takes any free cores and holds them to its end, so at every moment as many are free
//! as the counts say.

use muster_schemas::Timestamp;

/// GPU models of a node that are counted separately.
pub const GPU_MODELS: usize = 4;

/// Counts of a node's resources, of its free ones, or of a holding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of memory.
    pub memory_bytes: i64,
    /// Cores. Negative if more is promised than exists, after something was lost.
    pub cores: i32,
    /// GPUs of each model of the node.
    pub gpus: [i16; GPU_MODELS],
    /// How many runs and promises hold something, counted downwards from 0.
    pub holders: i32,
    /// How many of them have the node exclusively, counted downwards from 0.
    pub exclusive: i32,
}

impl Counts {
    /// The sum of both.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        self.memory_bytes += other.memory_bytes;
        self.cores += other.cores;
        for (own, other) in self.gpus.iter_mut().zip(other.gpus) {
            *own += other;
        }
        self.holders += other.holders;
        self.exclusive += other.exclusive;
        self
    }

    /// The negative of all counts.
    #[must_use]
    pub fn negated(self) -> Self {
        Self {
            memory_bytes: -self.memory_bytes,
            cores: -self.cores,
            gpus: self.gpus.map(|count| -count),
            holders: -self.holders,
            exclusive: -self.exclusive,
        }
    }

    /// The lesser of each count.
    #[must_use]
    pub fn least(mut self, other: &Self) -> Self {
        self.memory_bytes = self.memory_bytes.min(other.memory_bytes);
        self.cores = self.cores.min(other.cores);
        for (own, other) in self.gpus.iter_mut().zip(other.gpus) {
            *own = (*own).min(other);
        }
        self.holders = self.holders.min(other.holders);
        self.exclusive = self.exclusive.min(other.exclusive);
        self
    }

    /// Whether more of something is held than exists, or a node is shared that another run has exclusively.
    pub fn is_overbooked(&self) -> bool {
        self.memory_bytes < 0
            || self.cores < 0
            || self.gpus.iter().any(|count| *count < 0)
            || self.exclusive < 0 && self.holders < -1
    }
}

/// How much is free from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    at: Timestamp,
    free: Counts,
}

/// The beginning of every line.
pub const ALWAYS: Timestamp = Timestamp(i64::MIN);

/// The free counts, from each moment on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Ascending; the first is [`ALWAYS`]. Adjacent steps differ.
    steps: Vec<Step>,
}

impl Line {
    /// All of it is free for ever.
    pub fn new(all: Counts) -> Self {
        Self { steps: vec![Step { at: ALWAYS, free: all }] }
    }

    /// Adds to the free counts in `[from, until)`; negative counts are taken away. An empty interval changes nothing.
    pub fn add(&mut self, from: Timestamp, until: Timestamp, counts: &Counts) {
        if from >= until {
            return;
        }
        let first = self.split(from);
        let last = self.split(until);
        for step in &mut self.steps[first..last] {
            step.free = step.free.plus(counts);
        }
        // The later one first, so that the earlier one keeps its index.
        self.join(last);
        self.join(first);
    }

    /// The free counts at a moment.
    pub fn at(&self, moment: Timestamp) -> Counts {
        self.steps[self.index_at(moment)].free
    }

    /// The least that is free in `[from, until)`; what is free at `from` if that is empty.
    pub fn least(&self, from: Timestamp, until: Timestamp) -> Counts {
        let first = self.index_at(from);
        let rest = self.steps[first + 1..].iter().take_while(|step| step.at < until);
        rest.fold(self.steps[first].free, |least, step| least.least(&step.free))
    }

    /// As [`Line::least`], but stops as soon as fewer than this many cores are free.
    pub fn least_with_cores(&self, cores: i32, from: Timestamp, until: Timestamp) -> Option<Counts> {
        let first = self.index_at(from);
        let mut least = self.steps[first].free;
        for step in &self.steps[first + 1..] {
            if step.at >= until || least.cores < cores {
                break;
            }
            least = least.least(&step.free);
        }
        (least.cores >= cores).then_some(least)
    }

    /// The first moment from `from` on, but before `bound`, from which this many cores are free for the duration. Times
    /// after `own` are ignored: the searcher already has them.
    pub fn earliest_cores(
        &self,
        cores: i32,
        micros: i64,
        from: Timestamp,
        bound: Timestamp,
        own: Timestamp,
    ) -> Option<Timestamp> {
        let mut at = self.index_at(from);
        let mut start = from;
        loop {
            while self.steps[at].free.cores < cores {
                at += 1;
                start = self.steps.get(at)?.at;
            }
            if start >= bound {
                return None;
            }
            let until = start.plus_micros(micros).min(own);
            loop {
                at += 1;
                match self.steps.get(at) {
                    Some(step) if step.at < until => {
                        if step.free.cores < cores {
                            break;
                        }
                    }
                    _ => return Some(start),
                }
            }
        }
    }

    /// The moments after `from` at which something changes.
    pub fn changes(&self, from: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        let after = self.steps.partition_point(|step| step.at <= from);
        self.steps[after..].iter().map(|step| step.at)
    }

    /// The free counts from a moment on, and from each later change on.
    pub fn steps_from(&self, from: Timestamp) -> impl Iterator<Item = (Timestamp, &Counts)> {
        self.steps[self.index_at(from)..].iter().map(move |step| (step.at.max(from), &step.free))
    }

    fn index_at(&self, moment: Timestamp) -> usize {
        // The first step is before every moment.
        self.steps.partition_point(|step| step.at <= moment).saturating_sub(1)
    }

    /// The index of a step that begins then, which is inserted if needed.
    fn split(&mut self, at: Timestamp) -> usize {
        let index = self.steps.partition_point(|step| step.at < at);
        if self.steps.get(index).is_none_or(|step| step.at != at) {
            // `at` is after the first step, so there is one before it.
            let free = self.steps[index - 1].free;
            self.steps.insert(index, Step { at, free });
        }
        index
    }

    fn join(&mut self, index: usize) {
        if index > 0 && self.steps[index].free == self.steps[index - 1].free {
            self.steps.remove(index);
        }
    }
}
