//! Holdings of jobs that share cores and GPUs with others (OAR-T-40, OAR-T-80), on one node.
//!
//! A book has the holdings of those that can overlap. Its outline, how much they hold together at each time, is on the
//! line of the node, instead of the holdings themselves. For the view of a job that shares, the holdings that it may
//! overlap are left out of the outline, but for those of runs on cores that a suspended run waits for: nobody new gets
//! them. Memory is not shared: each holding of it is on the line by itself.

use super::Window;
use muster_domain::sharing::Sharing;
use muster_schemas::{
    JobId, Timestamp,
    resources::{IndexSet, NodeShare},
};
use std::{collections::BTreeMap, sync::Arc};

/// The holdings of jobs that can overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Book {
    /// The same for all of them.
    key: Sharing,
    holdings: Vec<Held>,
}

/// The holding of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub sharing: Arc<Sharing>,
    pub cores: IndexSet,
    pub gpus: IndexSet,
    pub exclusive: bool,
    pub window: Window,
    /// Whether a run has these very cores and GPUs.
    pub is_run: bool,
}

/// The cores that a suspended run waits for, to continue, while others use them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Awaited {
    /// With whom the run itself shares, if it does.
    pub sharing: Option<Arc<Sharing>>,
    pub cores: IndexSet,
}

impl Awaited {
    fn closes(&self, held: &Held, viewer: &Sharing) -> bool {
        let is_its_own = self.sharing.as_ref().is_some_and(|own| viewer.admits(own));
        held.is_run && !is_its_own && !held.cores.intersection(&self.cores).is_empty()
    }
}

/// By job.
pub(super) type AllAwaited = BTreeMap<JobId, Awaited>;

/// The part of a node that several jobs hold together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Together {
    /// How many cores. Promises hold no particular ones, so those of jobs that never overlap are added.
    pub cores: u64,
    /// The cores of runs.
    pub of_runs: IndexSet,
    pub gpus: IndexSet,
    pub exclusive: bool,
}

impl Held {
    pub fn new(sharing: &Arc<Sharing>, share: &NodeShare, window: Window, is_run: bool) -> Self {
        let (cores, gpus) = (share.cores.clone(), share.gpus.clone());
        Self { sharing: sharing.clone(), cores, gpus, exclusive: share.exclusive, window, is_run }
    }
}

/// What the jobs that can overlap have in common.
fn key_of(sharing: &Sharing) -> Sharing {
    match sharing {
        Sharing::Guest(label) => Sharing::Host(label.clone()),
        other => other.clone(),
    }
}

/// The book of a job; a new one if there is none.
pub(super) fn book_of<'b>(books: &'b mut Vec<Book>, sharing: &Sharing) -> &'b mut Book {
    let key = key_of(sharing);
    let at = books.iter().position(|book| book.key == key).unwrap_or_else(|| {
        books.push(Book { key, holdings: Vec::new() });
        books.len() - 1
    });
    &mut books[at]
}

/// With this many holdings of one key on a node nobody overlaps them any more: each look at the node takes all of them together.
const MOST_SHARERS: usize = 64;

impl Book {
    /// Whether it can have holdings that a job may overlap.
    pub fn concerns(&self, sharing: &Sharing) -> bool {
        self.key == key_of(sharing)
    }

    pub fn is_empty(&self) -> bool {
        self.holdings.is_empty()
    }

    pub fn add(&mut self, held: Held) {
        self.holdings.push(held);
    }

    /// Removes a holding that was added.
    pub fn remove(&mut self, held: &Held) {
        if let Some(at) = self.holdings.iter().position(|known| known == held) {
            self.holdings.swap_remove(at);
        }
    }

    /// The holdings that a job may not overlap; without a job all of them.
    fn seen_by<'b>(
        &'b self,
        viewer: Option<&'b Sharing>,
        awaited: &'b AllAwaited,
    ) -> impl Iterator<Item = &'b Held> + Clone {
        let is_open = |held: &Held, viewer: &Sharing| {
            viewer.admits(&held.sharing) && !awaited.values().any(|awaited| awaited.closes(held, viewer))
        };
        self.holdings.iter().filter(move |held| viewer.is_none_or(|viewer| !is_open(held, viewer)))
    }

    /// The sum of all holdings, from each moment on at which that changes, in order.
    pub fn outline(&self, viewer: Option<&Sharing>, awaited: &AllAwaited) -> Vec<(Window, Together)> {
        let viewer = viewer.filter(|viewer| self.concerns(viewer) && self.holdings.len() < MOST_SHARERS);
        let seen = self.seen_by(viewer, awaited);
        let mut bounds: Vec<Timestamp> = seen.clone().flat_map(|held| [held.window.from, held.window.until]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let between = bounds.windows(2).filter_map(|pair| {
            let window = Window { from: pair[0], until: pair[1] };
            let during = seen.clone().filter(|held| held.window.overlaps(window.from, window.until));
            together(during).map(|together| (window, together))
        });
        between.collect()
    }

    /// The sum of what runs hold.
    pub fn of_runs(&self, viewer: Option<&Sharing>, awaited: &AllAwaited) -> Option<Together> {
        let viewer = viewer.filter(|viewer| self.concerns(viewer) && self.holdings.len() < MOST_SHARERS);
        together(self.seen_by(viewer, awaited).filter(|held| held.is_run))
    }
}

fn together<'b>(held: impl Iterator<Item = &'b Held> + Clone) -> Option<Together> {
    held.clone().next()?;
    let all = |held: &mut dyn Iterator<Item = &'b Held>| held.fold(IndexSet::new(), |all, held| all.union(&held.cores));
    let sum_of = |is_one: fn(&Sharing) -> bool| {
        held.clone().filter(|held| is_one(&held.sharing)).map(|held| held.cores.len()).sum::<u64>()
    };
    let hosts = sum_of(|sharing| matches!(sharing, Sharing::Host(_)));
    let guests = sum_of(|sharing| matches!(sharing, Sharing::Guest(_)));
    Some(Together {
        cores: all(&mut held.clone()).len().max(hosts).max(guests),
        of_runs: all(&mut held.clone().filter(|held| held.is_run)),
        gpus: held.clone().fold(IndexSet::new(), |all, held| all.union(&held.gpus)),
        exclusive: held.clone().any(|held| held.exclusive),
    })
}
