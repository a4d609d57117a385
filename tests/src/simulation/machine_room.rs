//! The programs of a site that put nodes to sleep and wake them, and the agent that asks for the orders of a far node.
//!
//! The programs are models: some are slow, some do nothing, some do their work and say that they failed. The agent gets its
//! orders only when it asks.

use super::{
    Happening, Party, SECOND, World,
    ledger::StoredRecord,
    mechanisms::{is_pulled, quotas},
    network::Parcel,
    node, operator_command,
};
use muster_domain::jobs::Job;
use muster_schemas::{
    CommandId, JobId, NodeId, Sequence, Timestamp,
    command::{Command, CommandEnvelope, JobSelection},
    energy::{PowerOrder, PowerPhase, PowerWay},
    event::{Actor, Event, TraceContext},
    job::Occasion,
    node::NodeOrder,
    notify::DeliveryResult,
};
use rand::Rng;
use std::{collections::BTreeSet, sync::Arc};

impl World {
    /// The programs of the site are given the orders of these records.
    pub(super) fn give_power_orders(&mut self, records: &[StoredRecord]) {
        for stored in records {
            let record = &stored.record;
            if record.sequence <= self.room.seen {
                continue;
            }
            self.room.seen = record.sequence;
            if let Event::PowerOrdered { order } = &record.event {
                let longest = if self.troubled { 12 * SECOND } else { SECOND };
                let pause = self.random.random_range(SECOND / 10..longest);
                let (order, of) = (Arc::clone(order), record.sequence);
                self.agenda.after(pause, Happening::PowerProgram { order, of });
            }
        }
    }

    /// A program of the site obeys, or does not.
    pub(super) fn power_program(&mut self, order: &PowerOrder, of: Sequence) {
        if Timestamp(self.agenda.now) > order.until {
            return;
        }
        let works = !self.troubled || self.random.random_range(0..8) > 0;
        let says_so = !self.troubled || self.random.random_range(0..10) > 0;
        if works {
            for node in order.nodes.clone() {
                self.change_power(node, order.way);
            }
        }
        let result = match says_so {
            true => DeliveryResult::Delivered,
            false => DeliveryResult::GivenUp { attempts: 1, error: "it fell over".into() },
        };
        let command =
            Command::NotificationDone { job: JobId::job(0), of, notification: 0, occasion: Occasion::Ended, result };
        let id = CommandId::derived(&[b"power", &of.0.to_le_bytes()]);
        let envelope = CommandEnvelope { id, actor: Actor::Notifier, trace: TraceContext::default(), command };
        self.ask(Party::Operator, envelope);
    }

    fn change_power(&mut self, node: NodeId, way: PowerWay) {
        let name = self.truth.state().node_name(node).into_owned();
        let Some(number) = node::number(&name).filter(|number| *number < self.nodes.len()) else { return };
        match way {
            PowerWay::Sleep => {
                if self.nodes[number].is_up() {
                    self.stop_executor(number, None);
                }
                self.nodes[number].reboots(Timestamp(self.agenda.now));
            }
            PowerWay::Wake => {
                let pause = self.random.random_range(SECOND / 2..8 * SECOND);
                self.agenda.after(pause, Happening::ExecutorReturns(number));
            }
        }
    }

    /// Whether a node sleeps, so that it need not be up.
    pub(super) fn sleeps(&self, number: usize) -> bool {
        let state = self.truth.state();
        let node = state.node_by_name(&node::name(number));
        let power = node.and_then(|node| state.power_of(node.id));
        power.is_some_and(|power| power.phase == PowerPhase::Asleep)
    }

    /// Somebody switches on again what is off and should not be.
    pub(super) fn switch_on(&mut self) {
        for number in 0..self.nodes.len() {
            if !self.nodes[number].is_up() && !self.sleeps(number) {
                self.agenda.after(SECOND, Happening::ExecutorReturns(number));
            }
        }
    }

    /// Orders for a node: those of an agent wait until it asks. Returns those that arrive now.
    pub(super) fn posted(&mut self, number: usize, orders: &[NodeOrder]) -> Vec<NodeOrder> {
        if !self.has_mechanisms || !is_pulled(number, self.nodes.len()) {
            return orders.to_vec();
        }
        self.room.waiting.entry(number).or_default().extend(orders.iter().cloned());
        Vec::new()
    }

    /// An agent asks for its orders.
    pub(super) fn agent_asks(&mut self, number: usize) {
        let orders = self.room.waiting.remove(&number).unwrap_or_default();
        if !orders.is_empty() && self.nodes[number].is_up() {
            self.send(Parcel::Pulled { node: number, orders: Arc::new(orders) });
        }
    }

    /// Jobs are given up that wait for a planning domain which no job will open any more.
    pub(super) fn give_up_homeless(&mut self) {
        let state = self.truth.state();
        let left = || state.jobs().filter(|job| !job.is_finished());
        let opened: BTreeSet<_> = left().filter_map(|job| job.opens_domain()).collect();
        let is_homeless = |job: &&Job| job.domain().is_some_and(|domain| !opened.contains(&domain));
        let homeless: Vec<JobId> = left().filter(is_homeless).map(|job| job.id).collect();
        if !homeless.is_empty() {
            let command = Command::Cancel { jobs: JobSelection::Ids(homeless) };
            let id = self.fresh_id();
            self.ask(Party::Operator, operator_command(command, id));
        }
    }

    /// No quota keeps a job from its end any more.
    pub(super) fn lift_quotas(&mut self) {
        let command = quotas(&mut self.random, true);
        let id = self.fresh_id();
        self.ask(Party::Operator, operator_command(command, id));
    }
}
