//! Creating, changing and removing reservations and closures, and the effect of time on them.

use crate::{
    decide::{Access, Decision, conflict, invalid, not_found, refuse},
    nodes, requests,
    reservations::{self, Reservation, clash, taken},
    state::State,
    validate,
};
use muster_schemas::{
    NodeId, Timestamp,
    command::{Refusal, RefusalCode},
    event::Event,
    plan::{NodeClosure, ReservationSpec, ReservedNodes},
};
use std::{collections::BTreeSet, sync::Arc};

/// The greatest number of reservations in a cluster.
const MAX_RESERVATIONS: usize = 10_000;

/// The greatest number of closures of one node.
const MAX_CLOSURES: usize = 1_000;

/// How many times of a reservation that repeats are tried at most. It meets each other one once, and leaves out six days of
/// seven at most.
const MAX_TRIED_TIMES: usize = 8 * MAX_RESERVATIONS;

pub(crate) fn reserve(access: &Access, spec: ReservationSpec, now: Timestamp) -> Result<Decision, Refusal> {
    access.require_operator("make reservations")?;
    let state = access.state;
    reservations::validate::reservation(&spec)?;
    if state.reservation(&spec.name).is_some() {
        return Err(conflict(format!("reservation `{}` exists already", spec.name)));
    }
    if state.reservations().len() >= MAX_RESERVATIONS {
        let message = format!("the cluster takes at most {MAX_RESERVATIONS} reservations at a time");
        return Err(refuse(RefusalCode::LimitReached, message));
    }
    require_possible(access, &spec, now)?;
    Ok(Decision::done(vec![Event::ReservationSet { reservation: Arc::new(spec) }]))
}

/// Changes a reservation. If it is by count and now asks for other nodes, the planner chooses them again.
pub(crate) fn change_reservation(access: &Access, spec: ReservationSpec, now: Timestamp) -> Result<Decision, Refusal> {
    access.require_operator("change reservations")?;
    reservations::validate::reservation(&spec)?;
    let unknown = || not_found(format!("reservation `{}` does not exist", validate::shown(&spec.name)));
    let known = access.state.reservation(&spec.name).ok_or_else(unknown)?;
    if *known.spec == spec {
        return Ok(Decision::done(Vec::new()));
    }
    require_possible(access, &spec, now)?;
    let keeps_nodes = known.spec.nodes == spec.nodes && matches!(spec.nodes, ReservedNodes::Count { .. });
    let is_free = known.nodes.iter().all(|node| access.state.reservation_in_the_way(&spec, *node).is_none());
    let nodes: Vec<NodeId> = known.nodes.iter().copied().filter(|_| keeps_nodes && is_free).collect();
    let name = spec.name.clone();
    let mut events = vec![Event::ReservationSet { reservation: Arc::new(spec) }];
    if !nodes.is_empty() {
        events.push(Event::ReservationPlaced { name, nodes });
    }
    Ok(Decision::done(events))
}

/// Whether a reservation has not ended yet, and nodes for it exist.
fn require_possible(access: &Access, spec: &ReservationSpec, now: Timestamp) -> Result<(), Refusal> {
    if spec.end <= now && spec.stays_ahead_seconds == 0 {
        return Err(invalid(format!("reservation.end: {} has passed already", spec.end)));
    }
    match &spec.nodes {
        ReservedNodes::Named(names) => {
            let found = nodes::decide::find(access, names)?;
            require_free(access.state, spec, found.iter().map(|node| node.id))
        }
        ReservedNodes::Count { count, .. } => require_enough(access.state, spec, *count),
    }
}

/// Whether no other reservation has any of the nodes during this one, if that matters.
fn require_free(state: &State, spec: &ReservationSpec, nodes: impl Iterator<Item = NodeId>) -> Result<(), Refusal> {
    for node in nodes {
        if let Some(other) = state.reservation_in_the_way(spec, node) {
            let (node, name) = (state.node_name(node), &other.spec.name);
            let when = match other.spec.stays_ahead_seconds {
                0 => format!("from {} to {}", other.spec.start, other.spec.end),
                seconds => format!("which stays {seconds} s ahead and has no end"),
            };
            return Err(conflict(format!("node {node} belongs to reservation `{name}` {when}")));
        }
    }
    Ok(())
}

/// Whether the cluster as configured has this many suitable nodes.
fn require_enough(state: &State, spec: &ReservationSpec, count: u32) -> Result<(), Refusal> {
    if let ReservedNodes::Count { queue: Some(queue), .. } = &spec.nodes
        && state.queue(queue).is_none()
    {
        return Err(not_found(format!("queue `{}` does not exist", validate::shown(queue))));
    }
    let matching = state.nodes().filter(|node| is_candidate(state, spec, node.id)).count();
    if (count as usize) <= matching {
        return Ok(());
    }
    Err(invalid(format!("reservation.nodes: {count} are asked for, {matching} of the cluster's nodes match")))
}

/// Whether a node is suitable for a reservation by count.
fn is_candidate(state: &State, spec: &ReservationSpec, node: NodeId) -> bool {
    let (Some(node), ReservedNodes::Count { filter, queue, .. }) = (state.node(node), &spec.nodes) else {
        return false;
    };
    let serves_queue = queue.as_ref().is_none_or(|name| {
        let queue = state.queue(name);
        queue.is_some_and(|queue| queue.spec.nodes.is_empty() || queue.spec.nodes.contains(&node.spec.name))
    });
    serves_queue && filter.as_ref().is_none_or(|filter| requests::matches(&node.spec, filter))
}

pub(crate) fn remove_reservation(access: &Access, name: &str) -> Result<Decision, Refusal> {
    let reservation = access.state.reservation(name);
    let is_its_users = |one: &Reservation| {
        let is_its = |user: &str| one.spec.users.iter().any(|own| own == user);
        one.spec.users_may_remove && access.require_user().is_ok_and(|owner| is_its(&owner.user))
    };
    if !reservation.is_some_and(is_its_users) {
        access.require_operator("remove reservations")?;
    }
    match reservation {
        Some(_) => Ok(Decision::done(vec![Event::ReservationRemoved { name: name.to_owned() }])),
        None => Err(not_found(format!("reservation `{}` does not exist", validate::shown(name)))),
    }
}

/// The placements of reservations that are valid for the state and each other: of those without nodes, and of those some of
/// whose nodes are to be replaced. An invalid one is left out, which the next plan sees.
pub(crate) fn place_reservations(state: &State, placements: Vec<(String, Vec<NodeId>)>) -> Vec<Event> {
    let mut placed: Vec<(&ReservationSpec, BTreeSet<NodeId>)> = Vec::new();
    let mut events = Vec::new();
    for (name, nodes) in placements {
        let Some(reservation) = state.reservation(&name) else { continue };
        let replaced = state.nodes_to_replace(reservation);
        if !reservation.is_unplaced() && replaced.is_empty() {
            continue;
        }
        let (spec, chosen) = (&*reservation.spec, nodes.iter().copied().collect::<BTreeSet<_>>());
        let ReservedNodes::Count { count, .. } = spec.nodes else { continue };
        let keeps_others = reservation.nodes.difference(&replaced).all(|node| chosen.contains(node));
        let mut added = chosen.difference(&reservation.nodes);
        let is_right = chosen.len() == nodes.len()
            && chosen.len() == count as usize
            && keeps_others
            && chosen != reservation.nodes
            && added
                .all(|node| is_candidate(state, spec, *node) && state.reservation_in_the_way(spec, *node).is_none())
            && placed.iter().all(|(other, nodes)| !clash(spec, other) || nodes.is_disjoint(&chosen));
        if is_right {
            placed.push((spec, chosen));
            events.push(Event::ReservationPlaced { name, nodes });
        }
    }
    events
}

pub(crate) fn set_closures(
    access: &Access,
    names: &[String],
    closures: Vec<NodeClosure>,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    access.require_operator("close and open nodes")?;
    reservations::validate::closures(&closures, MAX_CLOSURES)?;
    let closures: Vec<NodeClosure> = closures.into_iter().filter(|closure| now < closure.until).collect();
    let found = nodes::decide::find(access, names)?;
    let changed = found.into_iter().filter(|node| node.closures != closures);
    let event = |node: NodeId| Event::NodeClosuresSet { node, closures: closures.clone() };
    Ok(Decision::done(changed.map(|node| event(node.id)).collect()))
}

/// The effect of time on reservations and closures.
pub(crate) fn due(state: &State, now: Timestamp, at_most: usize) -> Vec<Event> {
    let mut events = Vec::new();
    let mut moved = Vec::new();
    for (_, name) in state.index.reservations_due.iter().take_while(|(time, _)| *time <= now).take(at_most) {
        if let Some(reservation) = state.reservation(name) {
            events.extend(reservation_due(state, reservation, &mut moved, now));
        }
    }
    for (_, id) in state.index.closures_due.iter().take_while(|(time, _)| *time <= now).take(at_most) {
        let Some(node) = state.node(*id) else { continue };
        let left = node.closures.iter().filter(|closure| now < closure.until).cloned().collect();
        events.push(Event::NodeClosuresSet { node: *id, closures: left });
    }
    events
}

/// A reservation with a new time, of which the state does not know yet.
struct Moved<'a> {
    start: Timestamp,
    end: Timestamp,
    nodes: &'a BTreeSet<NodeId>,
}

fn reservation_due<'a>(
    state: &State,
    reservation: &'a Reservation,
    moved: &mut Vec<Moved<'a>>,
    now: Timestamp,
) -> Vec<Event> {
    let name = reservation.spec.name.clone();
    let was_idle = reservation.idle_until().is_some_and(|until| until <= now);
    if now < reservation.spec.end && !was_idle {
        return vec![Event::ReservationBegun { name }];
    }
    let Some(next) = next_time(state, reservation, moved, now) else {
        return vec![Event::ReservationRemoved { name }];
    };
    if !next.overlaps {
        moved.push(Moved { start: next.start, end: next.end, nodes: &reservation.nodes });
    }
    let is_by_count = matches!(next.nodes, ReservedNodes::Count { .. });
    let keeps: Vec<NodeId> = reservation.nodes.iter().copied().filter(|_| is_by_count).collect();
    let placed = (!keeps.is_empty()).then_some(Event::ReservationPlaced { name, nodes: keeps });
    [Event::ReservationSet { reservation: Arc::new(next) }].into_iter().chain(placed).collect()
}

/// The next time of a reservation that repeats, in which no other has any of its nodes; `None` if it does not repeat.
fn next_time(state: &State, reservation: &Reservation, moved: &[Moved<'_>], now: Timestamp) -> Option<ReservationSpec> {
    let period = i64::try_from(reservation.spec.repeats_after_seconds).ok().filter(|period| *period > 0)?;
    let mut next = (*reservation.spec).clone();
    let later = |spec: &mut ReservationSpec, times: i64| {
        let seconds = period.saturating_mul(times);
        (spec.start, spec.end) = (spec.start.plus_seconds(seconds), spec.end.plus_seconds(seconds));
    };
    let times_until = |micros: i64| micros.max(0).div_euclid(period.saturating_mul(1_000_000)) + 1;
    // After an absence of the ledger those that are over already are left out.
    let missed = now.micros_since(next.end);
    later(&mut next, times_until(missed));
    for _ in 0..MAX_TRIED_TIMES {
        if next.end >= Timestamp::MAX {
            break;
        }
        if is_left_out(&reservation.spec, &next) {
            later(&mut next, 1);
            continue;
        }
        let Some(until) = taken_until(state, reservation, &next, moved) else {
            next.skipped_days = turned(&reservation.spec, &next);
            return Some(next);
        };
        // All times that begin before then are taken as well, so each other reservation is met once at most.
        let taken = until.micros_since(next.start) - 1;
        later(&mut next, times_until(taken));
    }
    None
}

/// How many days of the week lie between two beginnings of a reservation.
fn days_later(spec: &ReservationSpec, next: &ReservationSpec) -> u32 {
    let days = next.start.micros_since(spec.start).div_euclid(86_400_000_000);
    u32::try_from(days.rem_euclid(7)).unwrap_or(0)
}

/// Whether it does not begin on that day.
fn is_left_out(spec: &ReservationSpec, next: &ReservationSpec) -> bool {
    spec.skipped_days >> days_later(spec, next) & 1 == 1
}

/// Its left out days, counted from that day.
fn turned(spec: &ReservationSpec, next: &ReservationSpec) -> u8 {
    let by = days_later(spec, next);
    let mask = u16::from(spec.skipped_days);
    let turned = (mask >> by | mask << (7 - by)) & 0b111_1111;
    u8::try_from(turned).unwrap_or(0)
}

/// When another reservation ends that has a node of this one at a time of it.
fn taken_until(
    state: &State,
    reservation: &Reservation,
    time: &ReservationSpec,
    moved: &[Moved<'_>],
) -> Option<Timestamp> {
    if time.overlaps {
        return None;
    }
    let clashes = |other: &&Moved<'_>| {
        other.start < time.end && time.start < other.end && !other.nodes.is_disjoint(&reservation.nodes)
    };
    let among_moved = moved.iter().find(clashes).map(|other| other.end);
    let others = || reservation.nodes.iter().find_map(|node| state.reservation_in_the_way(time, *node));
    among_moved.or_else(|| others().map(|other| taken(&other.spec).1))
}
