//! Which runs have, want or lend the cores of a node.

use crate::{
    filters::Kept,
    nodes::Node,
    runs::{Run, Suspension},
    state::State,
};
use muster_schemas::{
    JobId, NodeId, RunId, Sequence,
    resources::{IndexSet, NodeShare, Placement},
};
use std::{collections::BTreeSet, sync::Arc};

/// The claim of a run or a job to the cores of its share of a node. A lesser claim takes precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Claim {
    /// It has them.
    Has,
    /// It wants them in order to continue; this record says so.
    Wants(Sequence),
    /// Other runs may use them.
    Lends,
}

/// A run or job with a share of a node.
#[derive(Clone, Copy)]
pub(crate) struct User<'a> {
    /// The job.
    pub(crate) job: JobId,
    /// Its run, or the number for the run that it will have.
    pub(crate) run: RunId,
    /// Its claim to the cores.
    pub(crate) claim: Claim,
    /// The share.
    pub(crate) share: &'a NodeShare,
}

impl Run {
    /// Its claim to the cores of its shares.
    pub(crate) fn claim(&self) -> Claim {
        match self.suspension {
            Suspension::Never | Suspension::Suspended | Suspension::Resumed => Claim::Has,
            Suspension::Resuming(asked) | Suspension::Returning(asked) => Claim::Wants(asked),
            Suspension::Lent | Suspension::MadeWay { .. } => Claim::Lends,
        }
    }

    /// Whether its cores are free for other runs: it does not want them back yet.
    pub fn lends(&self) -> bool {
        self.claim() == Claim::Lends
    }

    /// Whether other runs use, or may use, its cores.
    pub fn has_lent(&self) -> bool {
        self.claim() != Claim::Has
    }
}

impl State {
    /// The runs that wait for their cores to continue, by number.
    pub fn resuming(&self) -> impl Iterator<Item = &Run> {
        let lent = self.index.lent.iter().filter_map(|id| self.run(*id));
        lent.filter(|run| matches!(run.claim(), Claim::Wants(_)))
    }

    /// Those that no longer have to wait, and continue without a plan. No two of them want the same core.
    pub(crate) fn ready_to_go_on(&self) -> impl Iterator<Item = &Run> {
        let by_themselves = self.resuming().filter(|run| matches!(run.suspension, Suspension::Resuming(_)));
        by_themselves.filter(|run| run.stopping.is_none() && self.can_go_on(run, &BTreeSet::new()))
    }

    /// The runs that have made way, or want their cores back after that, by number.
    pub fn made_way(&self) -> impl Iterator<Item = &Run> {
        let lent = self.index.lent.iter().filter_map(|id| self.run(*id));
        let has = |run: &&Run| matches!(run.suspension, Suspension::MadeWay { .. } | Suspension::Returning(_));
        lent.filter(has).filter(|run| run.stopping.is_none())
    }

    /// Whether no run or job with precedence over a suspended run has its cores, or the nodes that it will have exclusively.
    /// The runs in `ahead` also have precedence.
    pub(crate) fn can_go_on(&self, run: &Run, ahead: &BTreeSet<RunId>) -> bool {
        let is_ahead = |user: &User| user.claim < run.claim() || ahead.contains(&user.run);
        run.placement.shares().all(|share| {
            let mut others = self.users(share.node).filter(|user| user.run != run.id && is_ahead(user));
            others.all(|other| !are_in_the_way(share, other.share) || self.may_overlap(run.job, other.job))
        })
    }

    /// The waiting jobs whose kept resources block a resuming run, each with the number under which they are kept. Such
    /// a job might wait forever for more resources, and the run for the job.
    pub(crate) fn kept_in_the_way(&self) -> impl Iterator<Item = (JobId, RunId)> {
        let wanted: Vec<&NodeShare> = self.resuming().flat_map(|run| run.placement.shares()).collect();
        let kept = (!wanted.is_empty()).then_some(&self.index.kept).into_iter().flatten();
        kept.filter_map(move |id| {
            let filters = self.job(*id)?.filters.as_deref().filter(|filters| filters.chain.is_none())?;
            let Kept { run, placement } = filters.reserved.as_ref()?;
            let is_wanted = |share: &NodeShare| wanted.iter().any(|other| are_in_the_way(share, other));
            placement.shares().any(is_wanted).then_some((*id, *run))
        })
    }

    /// What a run keeps from other runs: its placement without the cores and the exclusive use of nodes that it has lent, and,
    /// while it waits to continue, without the cores that others still use.
    pub fn held_placement(&self, run: &Run) -> Arc<Placement> {
        if !run.has_lent() {
            return run.placement.clone();
        }
        let mut held = (*run.placement).clone();
        for share in held.components.iter_mut().flat_map(|placed| &mut placed.shares) {
            match run.claim() {
                Claim::Lends => (share.cores, share.exclusive) = (IndexSet::new(), false),
                claim => {
                    let others = self.users(share.node).filter(|user| user.run != run.id && user.claim < claim);
                    let others = others.filter(|user| !self.may_overlap(run.job, user.job));
                    share.cores = others.fold(share.cores.clone(), |own, other| own.difference(&other.share.cores));
                }
            }
        }
        Arc::new(held)
    }

    /// The cores of a node that suspended runs have lent, or wait for.
    pub(crate) fn lent_cores(&self, node: NodeId) -> IndexSet {
        let users = self.users(node).filter(|user| user.claim != Claim::Has);
        users.fold(IndexSet::new(), |all, user| all.union(&user.share.cores))
    }

    /// Those that no run uses now, ignoring `but`.
    pub(crate) fn idle_cores(&self, node: NodeId, but: RunId) -> IndexSet {
        let others = self.users(node).filter(|user| user.run != but && user.claim == Claim::Has);
        others.fold(self.lent_cores(node), |idle, other| idle.difference(&other.share.cores))
    }

    /// Cores of the node closed to others, and the run that has (or awaits) the node exclusively; `but` is ignored.
    pub(crate) fn kept_from_others(&self, node: NodeId, but: Option<RunId>) -> (IndexSet, Option<RunId>) {
        let users = || self.users(node).filter(|user| Some(user.run) != but && user.claim != Claim::Lends);
        let cores = users().fold(IndexSet::new(), |all, user| all.union(&user.share.cores));
        let alone = users().filter(|user| user.share.exclusive);
        (cores, alone.min_by_key(|user| (user.claim, user.run)).map(|user| user.run))
    }

    /// How many cores of a node more than one run has now.
    pub(crate) fn doubled_cores(&self, node: NodeId) -> u64 {
        let having: Vec<User> = self.users(node).filter(|user| user.claim == Claim::Has).collect();
        let with_others = |(at, user): (usize, &User)| {
            let others = having[..at].iter().filter(|other| !self.may_overlap(user.job, other.job));
            let theirs = others.fold(IndexSet::new(), |all, other| all.union(&other.share.cores));
            user.share.cores.intersection(&theirs).len()
        };
        having.iter().enumerate().map(with_others).sum()
    }

    /// Whether a suspended run has lent cores of a node.
    pub(crate) fn lends_on(&self, node: NodeId) -> bool {
        let lends = |node: &Node| node.runs.iter().any(|run| self.index.lent.contains(run));
        !self.index.lent.is_empty() && self.node(node).is_some_and(lends)
    }

    /// Everything with a share of a node itself: runs, waiting jobs with kept resources, and runs that will grow.
    pub(crate) fn users(&self, node: NodeId) -> impl Iterator<Item = User<'_>> {
        self.all_users(node).filter(|user| self.holder_of(user.run, user.share).is_none())
    }

    /// Everything with a share of a node, inside other runs too.
    pub(crate) fn users_inside(&self, node: NodeId) -> impl Iterator<Item = (RunId, &NodeShare)> {
        self.all_users(node).map(|user| (user.run, user.share))
    }

    fn all_users(&self, node: NodeId) -> impl Iterator<Item = User<'_>> {
        let runs = self.node(node).into_iter().flat_map(|node| &node.runs).filter_map(|run| self.run(*run));
        let of_runs = runs.flat_map(move |run| {
            let shares = run.placement.shares().filter(move |share| share.node == node);
            shares.map(|share| User { job: run.job, run: run.id, claim: run.claim(), share })
        });
        let filters = self.index.kept.iter().filter_map(|id| Some((*id, self.job(*id)?.filters.as_deref()?)));
        let set_aside = filters.flat_map(move |(job, filters)| {
            let offer = filters.chain.as_ref().and_then(|chain| chain.set_aside()).filter(|offer| offer.growth);
            let all = filters.kept().into_iter().chain(offer.map(|offer| (offer.run, &offer.placement)));
            all.flat_map(move |(run, placement)| {
                let shares = placement.shares().filter(move |share| share.node == node);
                shares.map(move |share| User { job, run, claim: Claim::Has, share })
            })
        });
        of_runs.chain(set_aside)
    }
}

/// Whether these shares exclude each other.
fn are_in_the_way(one: &NodeShare, other: &NodeShare) -> bool {
    one.node == other.node && (one.exclusive || other.exclusive || !one.cores.intersection(&other.cores).is_empty())
}
