//! More of what is already held.

use super::{Search, asks_for_sockets};
use crate::{
    free::{Free, Undo},
    machine::{MachineNode, Window},
    model::Demand,
    place::{self, Scope},
    resize::{self, Reach},
};
use muster_schemas::{
    NodeId, Timestamp,
    resources::{ComponentPlacement, Placement},
    tasks::SizeUnit,
};
use std::collections::{BTreeMap, BTreeSet};

impl Search<'_> {
    /// As many more units as possible from now on until then, up to a maximum, in addition to those held for the same
    /// job, and on none of the barred nodes. `None` if there are none, or the demand has a form that cannot grow.
    pub fn more(
        &self,
        demand: &Demand,
        held: &Placement,
        unit: SizeUnit,
        most: u32,
        until: Timestamp,
        barred: &BTreeSet<NodeId>,
    ) -> Option<Placement> {
        let ([component], [placed]) = (&demand.components[..], &held.components[..]) else { return None };
        let alternative = component.alternatives.get(placed.alternative as usize)?;
        let (wider, reach) = resize::wider(alternative, unit, most).filter(|_| most > 0)?;
        let window = Window { from: self.now, until };
        let own: BTreeMap<NodeId, bool> = placed.shares.iter().map(|share| (share.node, share.exclusive)).collect();
        let is_reached = |node: &&MachineNode| match reach {
            Reach::Anywhere => true,
            Reach::OtherNodes => !own.contains_key(&node.id),
            Reach::OwnNodes => own.contains_key(&node.id),
        };
        let nodes = self.machine.nodes().iter();
        let nodes = nodes.filter(|node| node.serves(window, component.reservation.as_deref())).filter(is_reached);
        let whole_sockets = asks_for_sockets(&wider);
        let free = nodes.filter_map(|node| match own.get(&node.id) {
            Some(true) => node.free_beside_holder(window, self.now),
            _ => node.free_in(window, self.now, whole_sockets),
        });
        let scope = Scope {
            queue_nodes: self.queue_nodes(component),
            taken_nodes: barred,
            default_memory_per_core_bytes: self.default_memory_per_core_bytes,
            order: &[],
        };
        let mut free = Free::new(free, []);
        let ComponentPlacement { alternative, shares } =
            place::place_alternative(&mut free, &scope, placed.alternative, &wider, &mut Undo::default())?;
        Some(Placement { components: vec![ComponentPlacement { alternative, shares }] })
    }
}
