//! Jobs inside planning domains: they wait for nobody outside, and nobody outside waits for them.

use super::Cycle;
use crate::{
    class::Size,
    domains::{asked, domain_of},
    engine::Engine,
    free::{Free, FreeNode},
    machine::MachineNode,
    model::Demand,
    queue::Place,
};
use muster_schemas::{JobId, Timestamp, job::WaitReason};
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

/// The jobs that hold up queues, of each domain.
pub(super) type Blocked = BTreeMap<Arc<str>, BTreeMap<Arc<str>, JobId>>;

/// The jobs of a domain in order, or those outside all of them.
type OfDomain<'p> = (Option<Arc<str>>, Cow<'p, [Place]>);

impl Engine {
    /// The jobs outside all domains, then those of each domain.
    pub(super) fn by_domain<'p>(&self, sorted: &'p [Place]) -> Vec<OfDomain<'p>> {
        if self.domains.waiting == 0 {
            return vec![(None, Cow::Borrowed(sorted))];
        }
        let mut of_domains: BTreeMap<Option<Arc<str>>, Vec<Place>> = BTreeMap::from([(None, Vec::new())]);
        for place in sorted {
            let class = self.queue.class_at(*place);
            let domain = class.and_then(|class| asked(&self.classes.get(class).demand).cloned());
            of_domains.entry(domain).or_default().push(*place);
        }
        of_domains.into_iter().map(|(domain, places)| (domain, Cow::Owned(places))).collect()
    }

    /// Turns to the jobs of a domain; returns who holds up queues outside it.
    pub(super) fn enter(
        &self,
        cycle: &mut Cycle,
        inside: &mut Blocked,
        domain: Option<&Arc<str>>,
    ) -> BTreeMap<Arc<str>, JobId> {
        let Some(domain) = domain else { return BTreeMap::new() };
        std::mem::replace(&mut cycle.blocked, inside.remove(domain).unwrap_or_default())
    }

    /// Turns back to the jobs outside.
    pub(super) fn leave(
        &self,
        cycle: &mut Cycle,
        inside: &mut Blocked,
        domain: Option<Arc<str>>,
        outside: BTreeMap<Arc<str>, JobId>,
    ) {
        if let Some(domain) = domain {
            inside.insert(domain, std::mem::replace(&mut cycle.blocked, outside));
        }
    }

    /// Why a job can never run on what is held for a planning domain, if that is so (OAR-T-12).
    pub(super) fn fate_inside(&self, demand: &Demand, key: &Arc<str>) -> Option<WaitReason> {
        let domain = domain_of(key).unwrap_or_default();
        if !self.nodes_in(key).any(|(.., is_open)| is_open) {
            return Some(WaitReason::DomainNotOpen(domain.to_owned()));
        }
        let empty = |is_wanted: &dyn Fn(&MachineNode) -> bool| {
            let nodes = self.nodes_in(key).filter_map(|(id, share, _)| Some((self.machine.node(id)?, share)));
            let nodes = nodes.filter(|(node, _)| is_wanted(node) && node.is_exposed()).map(|(node, share)| FreeNode {
                cores: Cow::Owned(share.cores.clone()),
                gpus: Cow::Owned(share.gpus.clone()),
                memory_bytes: share.memory_bytes,
                idle: share.cores.len() == u64::from(node.spec.cores),
                ..FreeNode::empty(node.id, &node.spec)
            });
            let mut nodes: Vec<FreeNode> = nodes.collect();
            nodes.sort_by_key(|node| node.node);
            self.fits_in(demand, Free::new(nodes, self.machine.licences()))
        };
        if !empty(&|_| true) {
            Some(WaitReason::NeverFits(self.too_small(demand, key)))
        } else if !empty(&|node| node.is_available) {
            Some(WaitReason::NodesUnavailable(format!("of planning domain {domain}")))
        } else {
            None
        }
    }

    /// Why a demand finds no room on what is held for its domain before that ends, if that is so (OAR-T-12).
    pub(super) fn no_room_inside(&self, demand: &Demand, now: Timestamp) -> Option<WaitReason> {
        let key = asked(demand).filter(|key| !self.is_endless(key))?;
        match self.search(now).earliest_start(demand, now, Timestamp::MAX) {
            Some(_) => None,
            None => Some(no_room(key)),
        }
    }

    /// How a domain is too small for a demand, for people.
    fn too_small(&self, demand: &Demand, key: &Arc<str>) -> String {
        let domain = domain_of(key).unwrap_or_default();
        let exposed = |id| self.machine.node(id).is_some_and(MachineNode::is_exposed);
        let shares: Vec<_> = self.nodes_in(key).filter(|(id, ..)| exposed(*id)).map(|(_, share, _)| share).collect();
        let asked = Size::of(demand, &self.settings);
        let cores: u64 = shares.iter().map(|share| share.cores.len()).sum();
        let nodes = shares.len() as u64;
        if asked.nodes > nodes {
            format!("planning domain {domain} holds {nodes} nodes, {} asked", asked.nodes)
        } else if asked.cores > cores {
            format!("planning domain {domain} holds {cores} cores, {} asked", asked.cores)
        } else {
            format!("what planning domain {domain} holds cannot serve it")
        }
    }
}

/// The reason of a job that does not fit before its domain ends.
pub(super) fn no_room(key: &str) -> WaitReason {
    let domain = domain_of(key).unwrap_or_default();
    WaitReason::Resources(format!("room before planning domain {domain} ends"))
}
