//! One node: what it is, when and whom it serves, and how much of it is free.

use super::{
    Holding, Window,
    shared::{AllAwaited, Awaited, Book, Held, Together, book_of},
};
use crate::{
    domains::{domain_of, open_in},
    free::FreeNode,
    model::Closure,
    timeline::{Counts, GPU_MODELS, Line},
};
use muster_domain::sharing::Sharing;
use muster_schemas::{
    JobId, NodeId, Timestamp,
    resources::{IndexSet, NodeShare, NodeSpec},
};
use std::{borrow::Cow, sync::Arc};

/// A time for which a node is reserved.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reserved {
    pub from: Timestamp,
    pub until: Timestamp,
    /// The reservation.
    pub name: Arc<str>,
    /// Whether that has the node for itself where others have it too.
    pub overlaps: bool,
    /// Whether its jobs need not stay within it.
    pub is_flexible: bool,
}

/// A node, and how much of it is free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MachineNode {
    pub id: NodeId,
    pub spec: Arc<NodeSpec>,
    /// It reports and is not drained.
    pub is_available: bool,
    pub(super) closures: Vec<Closure>,
    /// Its advance reservations.
    pub(super) reservations: Vec<Reserved>,
    pub line: Line,
    /// The cores and GPUs that are free now; `None` for a pool, whose cores are all alike.
    free_now: Option<FreeNow>,
    /// The index of each GPU in [`Counts::gpus`]; `None` for one that cannot be used, which is not counted.
    gpu_model: Vec<Option<usize>>,
    /// Resources that no run holds.
    unused: Counts,
    /// How many promises are on the line. Without any, free resources only grow.
    pub(super) promises: u32,
    /// How often its free resources have changed.
    pub version: u32,
    /// The holdings of jobs that share cores with others.
    books: Vec<Book>,
    /// The cores that suspended runs wait for.
    pub(super) awaited: AllAwaited,
    /// The name of the planning domain that it is a part of; `None` for a real node.
    pub(super) domain: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FreeNow {
    cores: IndexSet,
    gpus: IndexSet,
}

impl MachineNode {
    pub(super) fn new(id: NodeId, spec: Arc<NodeSpec>, is_pool: bool, faulty_gpus: &IndexSet) -> Self {
        let mut models: Vec<&str> = Vec::new();
        let gpu_model: Vec<Option<usize>> = spec
            .gpus
            .iter()
            .map(|model| {
                let known = models.iter().position(|known| known == model);
                known.unwrap_or_else(|| {
                    models.push(model);
                    models.len() - 1
                })
            })
            // A node with more models counts the last ones together, and is never given too much of them.
            .map(|model| model.min(GPU_MODELS - 1))
            .zip(0..)
            .map(|(model, gpu)| Some(model).filter(|_| !faulty_gpus.contains(gpu)))
            .collect();
        let free_now = (!is_pool).then(|| FreeNow {
            cores: IndexSet::first_n(spec.cores),
            gpus: IndexSet::first_n(u32::try_from(spec.gpus.len()).unwrap_or(u32::MAX)).difference(faulty_gpus),
        });
        let mut node = Self {
            id,
            is_available: true,
            closures: Vec::new(),
            reservations: Vec::new(),
            line: Line::new(Counts::default()),
            free_now,
            gpu_model,
            unused: Counts::default(),
            promises: 0,
            version: 0,
            books: Vec::new(),
            awaited: AllAwaited::new(),
            domain: None,
            spec,
        };
        node.unused = node.all();
        node.line = Line::new(node.unused);
        node
    }

    /// Its GPUs that cannot be used.
    pub fn faulty_gpus(&self) -> IndexSet {
        (0..).zip(&self.gpu_model).filter(|(_, model)| model.is_none()).map(|(gpu, _)| gpu).collect()
    }

    fn all(&self) -> Counts {
        let mut all = Counts {
            memory_bytes: i64::try_from(self.spec.memory_bytes).unwrap_or(i64::MAX),
            cores: i32::try_from(self.spec.cores).unwrap_or(i32::MAX),
            ..Counts::default()
        };
        for model in self.gpu_model.iter().flatten() {
            all.gpus[*model] += 1;
        }
        all
    }

    /// The counts that a share takes.
    fn taken_by(&self, share: &NodeShare) -> Counts {
        let counts = self.taken(share.cores.len(), &share.gpus, share.exclusive);
        Counts { memory_bytes: taken_memory(share), ..counts }
    }

    fn taken(&self, cores: u64, gpus: &IndexSet, exclusive: bool) -> Counts {
        let mut counts = Counts {
            cores: -i32::try_from(cores).unwrap_or(i32::MAX),
            holders: -1,
            exclusive: -i32::from(exclusive),
            ..Counts::default()
        };
        for gpu in gpus.iter() {
            if let Some(model) = self.gpu_model.get(gpu as usize).copied().unwrap_or(Some(0)) {
                counts.gpus[model] -= 1;
            }
        }
        counts
    }

    /// Whether its cores are all alike, and nobody gets particular ones.
    pub fn is_pool(&self) -> bool {
        self.free_now.is_none()
    }

    /// The times in which it serves no job.
    pub fn closures(&self) -> &[Closure] {
        &self.closures
    }

    /// Whether it is a real node or, for jobs of a planning domain, a part of that.
    pub fn is_for(&self, reservation: Option<&str>) -> bool {
        match &self.domain {
            None => reservation.is_none_or(|name| domain_of(name).is_none()),
            Some(own) => reservation == Some(own),
        }
    }

    /// Whether it is a part of a planning domain that serves the jobs there.
    pub fn is_exposed(&self) -> bool {
        let own = self.domain.as_ref();
        own.is_some_and(|own| self.reservations.iter().any(|reserved| reserved.name == *own))
    }

    /// Whether it is a real node, and no part of a planning domain.
    pub fn is_real(&self) -> bool {
        self.domain.is_none()
    }

    /// Whether the node serves jobs in this reservation (or in none) throughout a window.
    pub fn serves(&self, window: Window, reservation: Option<&str>) -> bool {
        if !self.is_available
            || !self.is_for(reservation)
            || self.closures.iter().any(|closure| window.overlaps(closure.from, closure.until))
        {
            return false;
        }
        let is_in_the_way = |reserved: &&Reserved| window.overlaps(reserved.from, reserved.until);
        let covers = |own: &Reserved| own.from <= window.from && window.until <= own.until;
        let Some(wanted) = reservation else {
            return !self.reservations.iter().any(|reserved| is_in_the_way(&reserved));
        };
        if let Some(open) = open_in(wanted) {
            let is_open = |reserved: &Reserved| open.clone().any(|name| *reserved.name == *name);
            let may_pass = |reserved: &Reserved| is_open(reserved) && (reserved.is_flexible || covers(reserved));
            let is_above = |reserved: &Reserved| reserved.overlaps && is_open(reserved) && covers(reserved);
            return self.reservations.iter().any(is_above)
                || !self.reservations.iter().any(|reserved| is_in_the_way(&reserved) && !may_pass(reserved));
        }
        let own = self.reservations.iter().find(|reserved| *reserved.name == *wanted);
        own.is_some_and(|own| {
            let mut others = self.reservations.iter().filter(|reserved| *reserved.name != *wanted);
            covers(own) && (own.overlaps || !others.any(|other| is_in_the_way(&other)))
        })
    }

    /// The free resources of the node throughout a window, if there are any.
    pub fn free_in(&self, window: Window, now: Timestamp, needs_all_cores: bool) -> Option<FreeNode<'_>> {
        let least = self.least_in(window);
        if least.exclusive < 0 {
            return None;
        }
        self.free_of(least, window, now, needs_all_cores)
    }

    /// The resources that the job that has the node exclusively can additionally get there.
    pub fn free_beside_holder(&self, window: Window, now: Timestamp) -> Option<FreeNode<'_>> {
        let free = self.free_of(self.least_in(window), window, now, false)?;
        Some(FreeNode { idle: true, ..free })
    }

    fn free_of(&self, least: Counts, window: Window, now: Timestamp, needs_all_cores: bool) -> Option<FreeNode<'_>> {
        if least.cores <= 0 {
            return None;
        }
        let starts_now = window.from <= now;
        let cores = u32::try_from(least.cores).unwrap_or(0).min(self.spec.cores);
        if needs_all_cores && !starts_now && cores < self.spec.cores {
            return None;
        }
        let free_now = self.free_now.as_ref().filter(|_| starts_now);
        Some(FreeNode {
            node: self.id,
            spec: &self.spec,
            cores: match free_now {
                None => Cow::Owned(IndexSet::first_n(cores)),
                Some(free) if free.cores.len() <= u64::from(cores) => Cow::Borrowed(&free.cores),
                Some(free) => Cow::Owned(free.cores.smallest(u64::from(cores))),
            },
            gpus: self.gpus_in(&least, free_now),
            memory_bytes: u64::try_from(least.memory_bytes).unwrap_or(0),
            idle: least.holders == 0,
            exclusive: false,
        })
    }

    /// The node with no free cores, and what is free of everything else throughout a window.
    pub fn full_in(&self, window: Window) -> FreeNode<'_> {
        let least = self.least_in(window);
        FreeNode {
            node: self.id,
            spec: &self.spec,
            cores: Cow::Owned(IndexSet::new()),
            gpus: self.gpus_in(&least, self.free_now.as_ref()),
            memory_bytes: u64::try_from(least.memory_bytes).unwrap_or(0),
            idle: least.holders == 0,
            exclusive: least.exclusive < 0,
        }
    }

    /// A promised share made of cores and GPUs that are free now: the promised ones or as many others, but none that
    /// the job already has on the node. `None` if there are too few, or the whole node is wanted and others are on it.
    pub fn redeem(&self, promised: &NodeShare, own: &[NodeShare], now: Timestamp) -> Option<NodeShare> {
        let mut free = self.free_in(Window { from: now, until: now }, now, false)?;
        own.iter().for_each(|share| free.take(share));
        let free = free;
        let of = |free: &IndexSet, wanted: &IndexSet| {
            if free.contains_all(wanted) { wanted.clone() } else { free.smallest(wanted.len()) }
        };
        let share = NodeShare {
            cores: of(&free.cores, &promised.cores),
            gpus: self.gpus_like(&free.gpus, &promised.gpus),
            ..promised.clone()
        };
        let is_enough = share.cores.len() == promised.cores.len()
            && share.gpus.len() == promised.gpus.len()
            && free.memory_bytes >= promised.memory_bytes
            && (free.idle || !promised.exclusive)
            && !free.exclusive;
        is_enough.then_some(share)
    }

    /// Free GPUs of the same models.
    fn gpus_like(&self, free: &IndexSet, promised: &IndexSet) -> IndexSet {
        let model = |gpu: u32| self.spec.gpus.get(gpu as usize);
        let mut left = free.clone();
        let mut chosen = IndexSet::new();
        for wanted in promised.iter() {
            let same =
                if left.contains(wanted) { Some(wanted) } else { left.iter().find(|gpu| model(*gpu) == model(wanted)) };
            if let Some(gpu) = same {
                left.remove(gpu);
                chosen.insert(gpu);
            }
        }
        chosen
    }

    fn gpus_in<'a>(&self, least: &Counts, free_now: Option<&'a FreeNow>) -> Cow<'a, IndexSet> {
        if self.gpu_model.is_empty() {
            return Cow::Owned(IndexSet::new());
        }
        let mut left = least.gpus;
        let mut gpus = IndexSet::new();
        for (gpu, model) in (0..).zip(&self.gpu_model) {
            let is_free = free_now.is_none_or(|free| free.gpus.contains(gpu));
            let Some(model) = *model else { continue };
            if is_free && left[model] > 0 {
                left[model] -= 1;
                gpus.insert(gpu);
            }
        }
        Cow::Owned(gpus)
    }

    /// The least that is free in a window.
    pub fn least_in(&self, window: Window) -> Counts {
        // Without promises free resources only grow, so the beginning decides.
        if self.promises == 0 { self.line.at(window.from) } else { self.line.least(window.from, window.until) }
    }

    /// The same, if it has at least this many cores.
    pub fn least_with_cores(&self, cores: i32, window: Window) -> Option<Counts> {
        if self.promises == 0 {
            return Some(self.line.at(window.from)).filter(|least| least.cores >= cores);
        }
        self.line.least_with_cores(cores, window.from, window.until)
    }

    /// The resources that are free now. Runs hold theirs until they end, even after their time.
    pub fn free_at_present(&self, now: Timestamp) -> Counts {
        if self.promises == 0 { self.unused } else { self.line.at(now) }
    }

    /// Whether nothing but its runs ever keeps jobs off it.
    pub fn is_always_open(&self) -> bool {
        self.is_available && self.closures.is_empty() && self.reservations.is_empty()
    }

    /// The first moment after `from` at which more of the node may become free.
    pub fn next_opening(&self, from: Timestamp) -> Option<Timestamp> {
        if self.closures.is_empty() && self.reservations.is_empty() {
            return self.line.changes(from).next().filter(|at| *at < Timestamp::MAX);
        }
        self.openings(from).min()
    }

    /// The moments after `from` at which more of the node may become free.
    pub fn openings(&self, from: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        let closures = self.closures.iter().map(|closure| closure.until);
        let reservations = self.reservations.iter().flat_map(|reserved| [reserved.from, reserved.until]);
        let bounds = closures.chain(reservations).filter(move |at| *at > from);
        self.line.changes(from).chain(bounds).filter(|at| *at < Timestamp::MAX)
    }

    /// The cores that jobs in a reservation (or in none) can have, from a moment on and then from each change on.
    pub fn each_change(&self, reservation: Option<&str>, since: Timestamp, mut tell: impl FnMut(Timestamp, u32)) {
        let cores = |free: &Counts| if free.exclusive < 0 { 0 } else { u32::try_from(free.cores).unwrap_or(0) };
        if self.closures.is_empty() && self.reservations.is_empty() {
            if reservation.is_none() {
                self.line.steps_from(since).for_each(|(at, free)| tell(at, cores(free)));
            }
            return;
        }
        let mut moments: Vec<Timestamp> = self.openings(since).chain([since]).collect();
        moments.extend(self.closures.iter().map(|closure| closure.from).filter(|from| *from > since));
        moments.sort_unstable();
        moments.dedup();
        for from in moments {
            let serves = self.serves(Window { from, until: from.plus_micros(1) }, reservation);
            tell(from, if serves { cores(&self.line.at(from)) } else { 0 });
        }
    }

    /// Takes a share for a job that shares its cores with others, or gives it back. `viewer` is the job for whose view the
    /// line is opened, if it is.
    pub fn change_shared(
        &mut self,
        share: &NodeShare,
        (window, holding): (Window, Holding),
        takes: bool,
        sharing: &Arc<Sharing>,
        viewer: Option<&Sharing>,
    ) {
        let memory = Counts { memory_bytes: taken_memory(share), ..Counts::default() };
        self.add_counts(window, holding, &if takes { memory } else { memory.negated() });
        self.count_promise(holding, takes);
        self.put_outline(sharing, viewer, false);
        let held = Held::new(sharing, share, window, matches!(holding, Holding::Run { .. }));
        let book = book_of(&mut self.books, sharing);
        if takes {
            book.add(held)
        } else {
            book.remove(&held)
        }
        self.put_outline(sharing, viewer, true);
        self.books.retain(|book| !book.is_empty());
    }

    /// Whether jobs hold something that share with such a job.
    pub fn is_shared_with(&self, sharing: &Sharing) -> bool {
        self.books.iter().any(|book| book.concerns(sharing))
    }

    /// A suspended run waits for these cores of runs that share them. No view is open.
    pub fn await_cores(&mut self, job: JobId, sharing: Option<Arc<Sharing>>, cores: &IndexSet) {
        let awaited = self.awaited.entry(job).or_insert_with(|| Awaited { sharing, cores: IndexSet::new() });
        awaited.cores = awaited.cores.union(cores);
    }

    /// Opens the line for the view of a job, or closes it again: what the job may overlap is not on it while it is open.
    pub fn set_view(&mut self, sharing: &Sharing, is_open: bool) {
        let (before, after) = if is_open { (None, Some(sharing)) } else { (Some(sharing), None) };
        self.put_outline(sharing, before, false);
        self.put_outline(sharing, after, true);
    }

    /// Puts what a book holds on the line, or takes it off.
    fn put_outline(&mut self, sharing: &Sharing, viewer: Option<&Sharing>, takes: bool) {
        let Some(book) = self.books.iter().find(|book| book.concerns(sharing)) else { return };
        let (outline, of_runs) = (book.outline(viewer, &self.awaited), book.of_runs(viewer, &self.awaited));
        for (window, together) in outline {
            let counts = self.counts_of(&together);
            self.line.add(window.from, window.until, &if takes { counts } else { counts.negated() });
        }
        self.version = self.version.wrapping_add(1);
        let Some(of_runs) = of_runs else { return };
        let counts = self.counts_of(&of_runs);
        self.unused = self.unused.plus(&if takes { counts } else { counts.negated() });
        if let Some(free) = &mut self.free_now {
            let change = if takes { IndexSet::difference } else { IndexSet::union };
            free.cores = change(&free.cores, &of_runs.of_runs);
            free.gpus = change(&free.gpus, &of_runs.gpus);
        }
    }

    fn counts_of(&self, together: &Together) -> Counts {
        self.taken(together.cores, &together.gpus, together.exclusive)
    }

    fn count_promise(&mut self, holding: Holding, takes: bool) {
        if let Holding::Promise { .. } = holding {
            self.promises = self.promises.saturating_add_signed(if takes { 1 } else { -1 });
        }
    }

    fn add_counts(&mut self, window: Window, holding: Holding, counts: &Counts) {
        self.line.add(window.from, window.until, counts);
        self.version = self.version.wrapping_add(1);
        if let Holding::Run { .. } = holding {
            self.unused = self.unused.plus(counts);
        }
    }

    /// The cores and GPUs of a share are not free, whatever was given back.
    pub fn keep_taken(&mut self, share: &NodeShare) {
        if let Some(free) = &mut self.free_now {
            free.cores = free.cores.difference(&share.cores);
            free.gpus = free.gpus.difference(&share.gpus);
        }
    }

    /// Takes a share for a time, or gives it back.
    pub fn change(&mut self, share: &NodeShare, window: Window, holding: Holding, takes: bool) {
        let taken = self.taken_by(share);
        let counts = if takes { taken } else { taken.negated() };
        self.add_counts(window, holding, &counts);
        self.count_promise(holding, takes);
        match (holding, &mut self.free_now) {
            (Holding::Promise { .. }, _) => {}
            (Holding::Run { .. }, None) => {}
            (Holding::Run { .. }, Some(free)) if takes => {
                free.cores = free.cores.difference(&share.cores);
                free.gpus = free.gpus.difference(&share.gpus);
            }
            (Holding::Run { .. }, Some(free)) => {
                free.cores = free.cores.union(&share.cores);
                free.gpus = free.gpus.union(&share.gpus);
            }
        }
    }
}

fn taken_memory(share: &NodeShare) -> i64 {
    -i64::try_from(share.memory_bytes).unwrap_or(i64::MAX)
}
