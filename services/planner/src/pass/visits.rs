//! Planning by turns: each job is looked at once, in the order in which queues and jobs have their turns, and starts if
//! it fits at that moment. Only routes promise starts.

mod balance;
mod lanes;
mod loads;
mod routes;

use super::{
    Cycle, Verdict,
    trace::{Look, Refusal, is_lack},
};
use crate::{
    class::ClassId,
    engine::Engine,
    limits::{Found, Usage},
    model::{Holder, lead_queue},
    queue::{Entry, Place},
};
use balance::Balance;
use lanes::Lane;
use muster_schemas::{
    JobId, Timestamp,
    job::WaitReason,
    policy::{FairShare, OnRefusal, Turns, Visit, routes::JobStanding},
    shares::{Shares, Standing},
};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

/// To find out what the jobs of a class lack takes a look at all nodes, unless the cores that are free do not suffice. In a
/// cycle it is found out for one class, and for others while no more than this many nodes are looked at.
const MOST_LOOKS_AT_NODES: usize = 10_000;
/// What jobs lack of which only that is known.
const CORES: &str = "cores";
/// What the others lack.
const SOME_RESOURCES: &str = "what it asks for";

/// What the reasons of privileged jobs say of them.
const PRIVILEGED: &str = "a special job";

/// The progress of a cycle by turns.
struct Visits<'t> {
    turns: &'t Turns,
    /// The starving job that was refused, for which all others wait.
    starving: Option<JobId>,
    /// Jobs that had their turns ahead of their queues.
    seen: HashSet<Place>,
    /// How users stand, if shares choose the next job.
    standing: Option<Standing>,
    /// What the jobs of a class lack.
    shortages: HashMap<ClassId, &'static str>,
    /// The nodes among which the load chooses, if it does.
    balance: Option<Balance>,
    /// Whether jobs that do not fit, and were told so, have no turns.
    leaves_out: bool,
}

impl Engine {
    /// Puts the order in force that holds at a time, and ranks users by their parts if it uses them.
    pub(super) fn set_hours(&mut self, now: Timestamp) {
        let policy = self.policy.clone();
        let Some(turns) = policy.turns.as_deref() else { return };
        self.queue.set_hours(turns.is_other(now));
        if self.queue.uses_shares() {
            self.queue.share_ranks = ranks(&self.sharers.tree());
        }
    }

    /// A cycle by turns.
    pub(super) fn by_turns(&mut self, cycle: &mut Cycle, turns: &Turns) {
        if let Some(change) = turns.next_change(cycle.now) {
            cycle.wake_at(change);
        }
        if let Some(routes) = turns.routes.as_deref() {
            return self.by_routes(cycle, turns, routes);
        }
        let rules = turns.rules_at(cycle.now);
        let leaves_out = self.may_leave_out(cycle, turns, rules);
        let lists = self.jobs_with_turns(cycle, turns, leaves_out);
        if lists.is_empty() {
            return;
        }
        let (standing, mut lanes) = self.lanes(lists, rules);
        let (starving, seen, shortages) = (None, HashSet::new(), HashMap::new());
        let balance = self.balance(cycle, turns);
        let mut visits = Visits { turns, starving, seen, standing, shortages, balance, leaves_out };
        self.visit_starving(cycle, &mut visits, &mut lanes);
        match rules.visit {
            Visit::QueuesInTurn => self.visit_in_turn(cycle, &mut visits, &mut lanes),
            Visit::QueueByQueue | Visit::Pool => {
                for lane in &mut lanes {
                    while self.visit_next(cycle, &mut visits, lane) {}
                }
            }
        }
    }

    fn visit_in_turn(&mut self, cycle: &mut Cycle, visits: &mut Visits, lanes: &mut [Lane]) {
        let mut open: Vec<&mut Lane> = lanes.iter_mut().collect();
        while !open.is_empty() {
            open.retain_mut(|lane| self.visit_next(cycle, visits, lane));
        }
    }

    /// Gives the next job of a lane its turn. Whether there was one.
    fn visit_next(&mut self, cycle: &mut Cycle, visits: &mut Visits, lane: &mut Lane) -> bool {
        if cycle.plan.is_cut_short {
            return false;
        }
        let has_turn = |place| !visits.leaves_out || !self.is_known_not_to_fit(place);
        let Some(place) = lane.next(visits.standing.as_ref(), has_turn) else { return false };
        if !cycle.may_look(place) {
            return false;
        }
        if visits.seen.contains(&place) {
            return true;
        }
        if let Err(refusal) = self.visit(cycle, visits, place) {
            self.refuse(cycle, place, refusal);
            if visits.starving.is_none() {
                self.block_behind(cycle, visits, lane, place);
            }
        }
        true
    }

    /// A job was refused: those that it keeps from starting are told so.
    fn block_behind(&self, cycle: &mut Cycle, visits: &mut Visits, lane: &mut Lane, place: Place) {
        let rules = visits.turns.rules_at(cycle.now);
        if rules.on_refusal == OnRefusal::Nothing {
            return;
        }
        let Some(entry) = self.queue.get(place) else { return };
        let (id, queue) = (entry.id, lead_queue(&self.classes.get(entry.class).demand));
        let is_whole = rules.visit != Visit::Pool || rules.on_refusal == OnRefusal::BlocksAll;
        let is_behind = |other: Place| {
            let class = self.queue.class_at(other);
            is_whole || class.is_some_and(|class| lead_queue(&self.classes.get(class).demand) == queue)
        };
        for behind in lane.take_rest(visits.standing.as_ref(), is_behind) {
            if !visits.seen.contains(&behind) {
                self.refuse(cycle, behind, Refusal::BehindRefused(id));
            }
        }
    }

    /// Starving jobs have their turns first, the one that waits longest ahead of all others.
    fn visit_starving(&mut self, cycle: &mut Cycle, visits: &mut Visits, lanes: &mut [Lane]) {
        let Some(rule) = visits.turns.rules_at(cycle.now).starving else { return };
        let windows = visits.turns.windows.as_ref();
        let is_starving = |entry: &Entry| {
            let is_hopeless = self.classes.is_hopeless(entry.class);
            let is_of_windows = || {
                let queue = lead_queue(&self.classes.get(entry.class).demand);
                windows.is_some_and(|windows| windows.owns(queue))
            };
            rule.is_starving(entry.arrival, cycle.now) && !is_hopeless && !is_of_windows()
        };
        let mut starving: Vec<(Timestamp, JobId, Place, usize)> = Vec::new();
        for (number, lane) in lanes.iter().enumerate() {
            let found = lane.places().filter_map(|place| Some((self.queue.get(place)?, place)));
            let found = found.filter(|(entry, _)| is_starving(entry));
            starving.extend(found.map(|(entry, place)| (entry.arrival, entry.id, place, number)));
        }
        starving.sort_unstable();
        for (_, id, place, lane) in starving {
            if cycle.plan.is_cut_short || !cycle.may_look(place) {
                return;
            }
            visits.seen.insert(place);
            let Err(refusal) = self.visit(cycle, visits, place) else { continue };
            let is_passed_over = rule.only_for_resources && refusal.is_for_limit_or_window();
            self.refuse(cycle, place, refusal);
            if !is_passed_over {
                visits.starving = Some(id);
                return;
            }
            self.block_behind(cycle, visits, &mut lanes[lane], place);
        }
    }

    /// Starts a job if nothing refuses it; of an array as many tasks as possible, until the first one that is refused.
    fn visit(&mut self, cycle: &mut Cycle, visits: &mut Visits, place: Place) -> Result<(), Refusal> {
        let Some(entry) = self.queue.get(place).filter(|_| !self.is_fixed(place)) else { return Ok(()) };
        let (id, tasks) = (entry.id, entry.tasks.clone());
        let Some(tasks) = tasks else { return self.visit_one(cycle, visits, place, id) };
        for index in tasks.indices.iter() {
            // Tasks that were put back into the queue count for their array, too.
            if cycle.started_of_array.get(&id.number).copied().unwrap_or(0) >= tasks.headroom {
                break;
            }
            self.visit_one(cycle, visits, place, JobId::task(id.number, index))?;
        }
        Ok(())
    }

    /// The tests in their order: the first that fails is the reason.
    fn visit_one(&mut self, cycle: &mut Cycle, visits: &mut Visits, place: Place, id: JobId) -> Result<(), Refusal> {
        let Some(entry) = self.queue.get(place) else { return Ok(()) };
        let class_id = entry.class;
        let (holder, attributes) = (entry.holder.clone(), entry.attributes.clone());
        let class = self.classes.get(class_id);
        let demand = class.demand.clone();
        if let Some(found) = self.limits.reached_by_jobs(&holder, &demand, &self.queues) {
            return Err(refused_by(found));
        }
        if let Some(border) = crossed(visits.turns, class.size.walltime_seconds, cycle.now) {
            return Err(Refusal::CrossesWindow(border));
        }
        if let Some(starving) = visits.starving {
            return Err(Refusal::Starving(starving));
        }
        if let Some(reason) = &class.hopeless {
            return Err(Refusal::Hopeless(reason.clone()));
        }
        if cycle.is_full(self.policy.max_starts) {
            return Ok(());
        }
        if let Some(kept) = self.kept(place) {
            if self.start_on_kept(cycle, place, &kept) == Verdict::Started {
                self.charge(cycle, visits, &holder, attributes.as_deref());
                look(cycle, id, None);
            }
            return Ok(());
        }
        let placement = self.place_in_turn(cycle, visits, place)?;
        for in_queue in [true, false] {
            let found = self.limits.reached_by_attributes(&holder, &demand, attributes.as_deref(), in_queue);
            if let Some(found) = found {
                return Err(refused_by(found));
            }
        }
        let uses = Usage::of(&placement, &demand);
        if let Some(limit) = self.limits.reached(&holder, &demand, &uses, &self.queues) {
            return Err(Refusal::OtherLimit(limit));
        }
        if let Some(breach) = self.quota_reached(&holder, &demand, &uses, cycle.now) {
            self.quotas.next_change(cycle.now).into_iter().for_each(|change| cycle.wake_at(change));
            return Err(Refusal::OtherLimit(breach.to_string()));
        }
        if let Some(balance) = &mut visits.balance {
            balance.started(&placement, self.cores_asked(place));
        }
        self.take_start(cycle, place, id, placement);
        self.charge(cycle, visits, &holder, attributes.as_deref());
        look(cycle, id, None);
        Ok(())
    }

    /// What the jobs of a class lack, if anybody wants to know.
    fn lacks(&self, cycle: &Cycle, visits: &mut Visits, class: ClassId) -> &'static str {
        if !self.tells_reasons {
            return SOME_RESOURCES;
        }
        if let Some(lacks) = visits.shortages.get(&class) {
            return lacks;
        }
        if !cycle.index.may_fit(self.classes.get(class)) {
            return CORES;
        }
        let looks = (visits.shortages.len() + 1) * self.machine.nodes().len();
        if !visits.shortages.is_empty() && looks > MOST_LOOKS_AT_NODES {
            return SOME_RESOURCES;
        }
        let lacks = self.shortage(&self.classes.get(class).demand, cycle.now);
        visits.shortages.insert(class, lacks);
        lacks
    }

    /// What a started job asks for counts for its owner during the rest of the cycle.
    fn charge(&self, cycle: &Cycle, visits: &mut Visits, holder: &Holder, attributes: Option<&BTreeMap<String, i64>>) {
        if let (Some(standing), Some(share)) = (&mut visits.standing, &visits.turns.rules_at(cycle.now).fair_share) {
            standing.started(&holder.user, charge(share, attributes));
        }
    }

    /// The reason of a refusal as the history has it. That of a privileged job tells that it is one (PBS-P-06).
    fn reason_of(&self, entry: &Entry, refusal: &Refusal) -> WaitReason {
        let routes = self.policy.turns.as_ref().and_then(|turns| turns.routes.as_ref());
        let queue = lead_queue(&self.classes.get(entry.class).demand);
        let source = routes.and_then(|routes| routes.sources.iter().find(|source| source.queue == queue));
        let marked = |text: String| format!("{text} ({PRIVILEGED})");
        match refusal.reason() {
            reason if source.is_none_or(|source| source.standing != JobStanding::Privileged) => reason,
            WaitReason::Resources(text) => WaitReason::Resources(marked(text)),
            WaitReason::Limit(text) => WaitReason::Limit(marked(text)),
            reason => reason,
        }
    }

    /// Records why a job does not start.
    fn refuse(&self, cycle: &mut Cycle, place: Place, refusal: Refusal) {
        let Some(entry) = self.queue.get(place) else { return };
        let id = entry.id;
        let is_known = matches!(refusal, Refusal::QueueStopped);
        if self.tells_reasons && !is_known {
            let reason = self.reason_of(entry, &refusal);
            let known = entry.known_reason.as_deref();
            // What it lacks is not always found out; what is known about it then stands.
            let says_less = refusal == Refusal::NoRoom(SOME_RESOURCES) && known.is_some_and(is_lack);
            if known != Some(&reason) && !says_less {
                cycle.tell(id, reason);
            }
        }
        let lacks_room = matches!(refusal, Refusal::NoRoom(_) | Refusal::Reserved(_));
        let is_wanted = self.policy.turns.as_ref().is_some_and(|turns| turns.staged_ahead > 0);
        if lacks_room && is_wanted && cycle.plan.short_of_room.len() < MOST_SHORT_OF_ROOM {
            cycle.plan.short_of_room.push(id);
        }
        look(cycle, id, Some(refusal));
    }
}

/// How many jobs that wait only for room a cycle lists.
const MOST_SHORT_OF_ROOM: usize = 10_000;

/// The border of a window that a job may run past if it starts at a time.
pub(crate) fn crossed(turns: &Turns, walltime_seconds: Option<u64>, now: Timestamp) -> Option<Timestamp> {
    let border = turns.windows.as_ref()?.border(now)?;
    let seconds = walltime_seconds.and_then(|seconds| i64::try_from(seconds).ok());
    let left = border.micros_since(now);
    seconds.is_none_or(|seconds| seconds.saturating_mul(1_000_000) > left).then_some(border)
}

/// Records what became of a job, if that is wanted.
fn look(cycle: &mut Cycle, job: JobId, refusal: Option<Refusal>) {
    if let Some(trace) = &mut cycle.trace {
        trace.push(Look { job, refusal });
    }
}

fn refused_by(found: Found) -> Refusal {
    let Found { per, in_queue, attribute, text } = found;
    match attribute {
        None => Refusal::JobLimit { per, in_queue, text },
        Some(attribute) => Refusal::AttributeLimit { attribute, in_queue, text },
    }
}

/// What a job charges its owner.
fn charge(share: &FairShare, attributes: Option<&BTreeMap<String, i64>>) -> u64 {
    let value = |name: &str| attributes.and_then(|all| u64::try_from(*all.get(name)?).ok());
    let times = share.times.as_deref().map_or(1, |name| value(name).unwrap_or(1));
    value(&share.charge).unwrap_or(0).saturating_mul(times)
}

/// The rank of each user by his part, the greatest first; equal parts have equal ranks.
fn ranks(tree: &Shares) -> BTreeMap<Arc<str>, u32> {
    let mut members: Vec<_> = tree.members().iter().skip(2).collect();
    members.sort_by(|one, other| other.part.cmp(&one.part));
    let mut ranks = BTreeMap::new();
    let mut rank = 0;
    for (at, member) in members.iter().enumerate() {
        if at > 0 && members[at - 1].part != member.part {
            rank += 1;
        }
        ranks.insert(member.name.as_str().into(), rank);
    }
    ranks
}
