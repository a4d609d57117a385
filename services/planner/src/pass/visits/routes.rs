//! Planning by turns with routes: the jobs of some queues are one list, and each starts in the first queue whose gates
//! all open. Order, gates and promises are stages of the same pass as for any other policy: a job is placed by the same
//! search, and room is a licence that the machine counts for all times to come.

mod books;
mod gates;
mod holds;
mod hours;
mod order;
mod walk;

use super::{Cycle, Look, Place, Refusal, lead_queue, look, refused_by};
use crate::{
    class::ClassId, engine::Engine, limits::Usage, machine::expected_end, pass::Verdict, routes as rooms,
    search::Search,
};
use books::{Books, Counted};
use hours::{Clock, Length};
use muster_schemas::{
    JobId, Timestamp,
    policy::{
        Turns,
        routes::{INTERACTIVE, JobStanding, Routes, Target, TargetHours},
    },
    resources::{IndexSet, Placement},
};
use order::Candidate;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};
use walk::Walk;

impl Engine {
    /// A cycle by turns with routes.
    pub(super) fn by_routes(&mut self, cycle: &mut Cycle, turns: &Turns, routes: &Routes) {
        let borders = routes.machines.iter().flat_map(|machine| &machine.outages);
        borders.for_each(|outage| [outage.from, outage.until].into_iter().for_each(|at| cycle.wake_at(at)));
        let mut walk = Walk {
            turns,
            routes,
            books: Books::of(self, routes),
            holds: Vec::new(),
            has_first: false,
            shut_by_hours: BTreeSet::new(),
            looks: Vec::new(),
            refused_at: HashMap::new(),
            classes: BTreeMap::new(),
        };
        let lifted = self.conditions.lifted.iter().filter(|(_, until)| **until > cycle.now);
        cycle.plan.routed.lifted = lifted.map(|(queue, until)| (queue.clone(), *until)).collect();
        let mut lists = self.lists(cycle, turns, routes);
        let first = lists.remove("").unwrap_or_default();
        let listed = self.ordered(cycle, &walk, first);
        self.keep_promised(cycle, &mut walk, &listed);
        let targets: Vec<usize> = (0..routes.targets.len()).filter(|at| !routes.targets[*at].in_place).collect();
        self.walk(cycle, &mut walk, &listed, &targets);
        if self.lift_hours(cycle, &walk) {
            let waiting = walk.looks.iter().filter(|(.., refusal)| refusal.is_some());
            let waiting: BTreeSet<Place> = waiting.map(|(place, ..)| *place).collect();
            let again: Vec<Candidate> = listed.into_iter().filter(|job| waiting.contains(&job.place)).collect();
            self.walk(cycle, &mut walk, &again, &targets);
        }
        for (at, target) in routes.targets.iter().enumerate().filter(|(_, target)| target.in_place) {
            let jobs = lists.remove(target.queue.as_str()).unwrap_or_default();
            self.walk_in_place(cycle, &mut walk, jobs, at);
        }
        self.end_walk(cycle, walk);
    }

    /// The jobs that have turns: those of the list, under an empty name, and those of each queue planned in place.
    fn lists<'t>(&mut self, cycle: &mut Cycle, turns: &'t Turns, routes: &'t Routes) -> BTreeMap<&'t str, Vec<Place>> {
        let mut lists: BTreeMap<&str, Vec<Place>> = BTreeMap::new();
        let all: Vec<Place> = self.jobs_with_turns(cycle, turns, false).concat();
        for place in all {
            let Some(class) = self.queue.class_at(place) else { continue };
            let demand = self.classes.get(class).demand.clone();
            let queue = lead_queue(&demand);
            let is_source = routes.sources.iter().any(|source| source.queue == queue);
            let in_place = routes.targets.iter().find(|target| target.in_place && target.queue == queue);
            match in_place {
                _ if is_source => lists.entry("").or_default().push(place),
                Some(target) => lists.entry(&target.queue).or_default().push(place),
                None => self.refuse(cycle, place, Refusal::QueueIgnored),
            }
        }
        lists
    }

    /// The jobs of a list in their order.
    fn ordered(&self, cycle: &Cycle, walk: &Walk, places: Vec<Place>) -> Vec<Candidate> {
        let jobs: Vec<Candidate> = places.into_iter().filter_map(|place| self.candidate(cycle, walk, place)).collect();
        let Routes { owners, ranks_first, long_wait, .. } = walk.routes;
        // Jobs that are refused for good are told so ahead of all others.
        let (mut ordered, mut others): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| is_too_large(walk, job));
        let mut ranked = Vec::new();
        if *ranks_first {
            (ranked, others) = others.into_iter().partition(Candidate::is_ranked);
            order::by_rank(&mut ranked, long_wait.map_or(0, |rule| rule.long_seconds));
        }
        if let Some(rule) = owners.as_ref().filter(|rule| !rule.only_counts) {
            others = order::by_owners(others, &self.conditions.usage, rule);
        }
        ordered.append(&mut ranked);
        ordered.append(&mut others);
        ordered
    }

    fn candidate(&self, cycle: &Cycle, walk: &Walk, place: Place) -> Option<Candidate> {
        let entry = self.queue.get(place)?;
        let class = self.classes.get(entry.class);
        let queue = lead_queue(&class.demand);
        let standing = walk.routes.sources.iter().find(|source| source.queue == queue);
        let standing = standing.map_or(JobStanding::Normal, |source| source.standing);
        let attributes = entry.attributes.as_deref();
        let is_interactive = attributes.and_then(|all| all.get(INTERACTIVE)).is_some_and(|value| *value != 0);
        let wait = u64::try_from(cycle.now.micros_since(entry.arrival) / 1_000_000).unwrap_or(0);
        let walltime_seconds = class.size.walltime_seconds;
        let is_usual = walk.hours().is_usual(cycle.now);
        let waited_long = walk
            .routes
            .long_wait
            .as_ref()
            .is_some_and(|rule| order::waited_long(rule, wait, walltime_seconds, is_interactive, is_usual));
        Some(Candidate {
            place,
            id: entry.id,
            owner: (entry.holder.group, entry.holder.user.clone()),
            arrival: entry.arrival,
            size: walk.routes.size_of(attributes),
            walltime_seconds,
            is_privileged: standing == JobStanding::Privileged,
            waited_long: waited_long && standing == JobStanding::Normal,
            is_background: standing == JobStanding::Background,
        })
    }

    /// Looks at each job of a list once.
    fn walk(&mut self, cycle: &mut Cycle, walk: &mut Walk, jobs: &[Candidate], targets: &[usize]) {
        walk.has_first = false;
        for job in jobs {
            if cycle.plan.is_cut_short || !cycle.may_look(job.place) {
                return;
            }
            if let Err(refusal) = self.give_turn(cycle, walk, job, targets) {
                walk.refused(job, refusal);
            }
        }
    }

    fn walk_in_place(&mut self, cycle: &mut Cycle, walk: &mut Walk, places: Vec<Place>, at: usize) {
        let target = &walk.routes.targets[at];
        let is_usual = walk.hours().is_usual(cycle.now);
        let is_open = match target.hours {
            TargetHours::All => true,
            TargetHours::Usual => is_usual,
            TargetHours::Other => !is_usual,
        };
        let machine = target.machine.as_deref().and_then(|name| walk.routes.machine(name));
        let outages = machine.map_or(&[][..], |machine| &machine.outages);
        let is_in_outage = outages.iter().any(|outage| outage.from <= cycle.now && cycle.now < outage.until);
        let refusal = match target.in_outages && !is_in_outage {
            true => {
                let until = outages.iter().map(|outage| outage.from).find(|from| *from > cycle.now);
                Some(Refusal::OtherQueuesTime { until })
            }
            false => (!is_open).then_some(Refusal::QueueIgnored),
        };
        if let Some(refusal) = refusal {
            places.into_iter().for_each(|place| self.refuse(cycle, place, refusal.clone()));
            return;
        }
        let jobs: Vec<Candidate> = places.into_iter().filter_map(|place| self.candidate(cycle, walk, place)).collect();
        self.walk(cycle, walk, &jobs, &[at]);
    }

    /// Starts a job, or the tasks of an array that may start, in the first target that takes it. A job that cannot start may
    /// be promised a start.
    fn give_turn(
        &mut self,
        cycle: &mut Cycle,
        walk: &mut Walk,
        job: &Candidate,
        targets: &[usize],
    ) -> Result<(), Refusal> {
        let own = self.set_hold_aside(cycle, walk, job.id);
        let outcome = self.start_somewhere(cycle, walk, job, targets);
        let Err(refusal) = &outcome else { return outcome };
        match own {
            Some(hold) => {
                walk.has_first = true;
                self.take_hold(cycle, walk, hold);
            }
            None => self.promise(cycle, walk, job, targets, refusal),
        }
        outcome
    }

    fn start_somewhere(
        &mut self,
        cycle: &mut Cycle,
        walk: &mut Walk,
        job: &Candidate,
        targets: &[usize],
    ) -> Result<(), Refusal> {
        let Some(entry) = self.queue.get(job.place) else { return Ok(()) };
        let Some(tasks) = entry.tasks.clone() else { return self.start_in_one(cycle, walk, job, targets, job.id) };
        for index in tasks.indices.iter() {
            if cycle.started_of_array.get(&job.id.number).copied().unwrap_or(0) >= tasks.headroom {
                break;
            }
            self.start_in_one(cycle, walk, job, targets, JobId::task(job.id.number, index))?;
        }
        Ok(())
    }

    /// Starts a job in the first target whose gates all open. The refusal is that of the first target that it fits.
    fn start_in_one(
        &mut self,
        cycle: &mut Cycle,
        walk: &mut Walk,
        job: &Candidate,
        targets: &[usize],
        id: JobId,
    ) -> Result<(), Refusal> {
        let is_listed = targets.iter().any(|at| !walk.routes.targets[*at].in_place);
        if is_listed && is_too_large(walk, job) {
            return Err(Refusal::TooLarge);
        }
        if cycle.is_full(self.policy.max_starts) {
            return Ok(());
        }
        if let Some(kept) = self.kept(job.place) {
            if self.start_on_kept(cycle, job.place, &kept) == Verdict::Started {
                self.note_routed(cycle, walk, job, id, None);
            }
            return Ok(());
        }
        let mut first = None;
        for at in targets {
            match self.start_in(cycle, walk, job, *at, id) {
                Ok(()) => return Ok(()),
                Err(Some(refusal)) => first = first.or(Some(refusal)),
                Err(None) => {}
            }
        }
        Err(first.unwrap_or(Refusal::NoTarget))
    }

    /// Starts a job in a target; `None` if it is none for the job.
    fn start_in(
        &mut self,
        cycle: &mut Cycle,
        walk: &mut Walk,
        job: &Candidate,
        at: usize,
        id: JobId,
    ) -> Result<(), Option<Refusal>> {
        let target = &walk.routes.targets[at];
        if !self.takes(target, job) {
            return Err(None);
        }
        let Some(entry) = self.queue.get(job.place) else { return Ok(()) };
        let (holder, attributes) = (entry.holder.clone(), entry.attributes.clone());
        let class = self.class_in(walk, job, at).ok_or(None)?;
        let demand = self.classes.get(class).demand.clone();
        if let Some(found) = self.limits.reached_by_jobs(&holder, &demand, &self.queues) {
            return Err(Some(refused_by(found)));
        }
        self.pass_gates(cycle, walk, job, at)?;
        let Some(placement) = self.place_in(cycle, class) else {
            return Err(Some(self.no_room(cycle, walk, class)));
        };
        for in_queue in [true, false] {
            let found = self.limits.reached_by_attributes(&holder, &demand, attributes.as_deref(), in_queue);
            if let Some(found) = found {
                return Err(Some(refused_by(found)));
            }
        }
        let uses = Usage::of(&placement, &demand);
        if let Some(limit) = self.limits.reached(&holder, &demand, &uses, &self.queues) {
            return Err(Some(Refusal::OtherLimit(limit)));
        }
        if let Some(breach) = self.quota_reached(&holder, &demand, &uses, cycle.now) {
            self.quotas.next_change(cycle.now).into_iter().for_each(|change| cycle.wake_at(change));
            return Err(Some(Refusal::OtherLimit(breach.to_string())));
        }
        let end = expected_end(&demand, &placement, cycle.now);
        self.take_start_as(cycle, job.place, id, demand, placement);
        let (queue, attributes) = (target.queue.as_str(), attributes.as_deref());
        let numbers = self.give_numbers(cycle, walk, job, target, id);
        let (size, numbers) = (job.size, numbers.as_ref());
        walk.books.count(walk.routes, &Counted { queue, size, end, attributes, numbers, is_new: true });
        self.note_routed(cycle, walk, job, id, Some(queue));
        Ok(())
    }

    /// The units that a job gets on a machine whose units have numbers.
    fn give_numbers(
        &self,
        cycle: &mut Cycle,
        walk: &Walk,
        job: &Candidate,
        target: &Target,
        id: JobId,
    ) -> Option<IndexSet> {
        let machine = target.machine.as_deref().and_then(|name| walk.routes.machine(name))?;
        let numbers = gates::numbers(machine, &walk.books.machine(&machine.name), job.size)?;
        cycle.plan.routed.numbers.push((id, machine.name.clone(), numbers.clone()));
        Some(numbers)
    }

    /// Whether a target takes jobs of this size and walltime. Privileged jobs may be longer than others in it. A queue that
    /// takes no new jobs starts only those that wait in it.
    fn takes(&self, target: &Target, job: &Candidate) -> bool {
        let queue = self.queues.get(target.queue.as_str());
        let is_open = queue.is_some_and(|queue| queue.started && (queue.enabled || target.in_place));
        let fits = match job.is_privileged {
            true => target.units.is_none_or(|units| job.size <= units),
            false => gates::fits_empty(target, job),
        };
        is_open && fits
    }

    /// The gates that do not depend on room, in their order.
    fn pass_gates(&self, cycle: &Cycle, walk: &mut Walk, job: &Candidate, at: usize) -> Result<(), Option<Refusal>> {
        let target = &walk.routes.targets[at];
        let clock = self.clock(cycle, walk, job, target);
        let of_hours = clock.barrier(cycle.now);
        let unruled = Clock { has_rules: false, ..clock }.barrier(cycle.now);
        if let Some(barrier) = unruled {
            return Err(Some(gates::refused_by(barrier)));
        }
        let is_over = walk.routes.enforces_allocations && self.conditions.over_allocation.contains(&job.owner.0);
        if is_over && !job.is_privileged {
            return Err(Some(Refusal::OverAllocation));
        }
        let others = || self.other_gate(cycle, walk, job, target);
        if let Some(barrier) = of_hours {
            if others().is_none() {
                walk.shut_by_hours.insert(target.queue.clone());
            }
            return Err(Some(gates::refused_by(barrier)));
        }
        others().map_or(Ok(()), |refusal| Err(Some(refusal)))
    }

    /// The gates of loads and fragments.
    fn other_gate(&self, cycle: &Cycle, walk: &Walk, job: &Candidate, target: &Target) -> Option<Refusal> {
        let machine = target.machine.as_deref().and_then(|name| walk.routes.machine(name));
        if let Some(machine) = machine {
            let runs = walk.books.machine(&machine.name);
            let load = gates::load(walk.routes.load.as_ref(), machine, &runs, self.conditions.loads.get(&machine.name));
            let attributes = self.queue.get(job.place).and_then(|entry| entry.attributes.as_deref());
            let refusal = load.or_else(|| gates::oversold(machine, &runs, attributes));
            if refusal.is_some() {
                return refusal;
            }
        }
        let runs = walk.books.queue(&target.queue);
        let is_fragment =
            walk.routes.avoids_fragments && !job.waited_long && gates::is_fragment(target, &runs, job, cycle.now);
        is_fragment.then_some(Refusal::Fragment)
    }

    fn clock<'t>(&self, cycle: &Cycle, walk: &Walk<'t>, job: &Candidate, target: &'t Target) -> Clock<'t> {
        let is_lifted = cycle.plan.routed.lifted.contains_key(&target.queue);
        Clock {
            hours: walk.hours(),
            has_rules: !job.is_privileged && !is_lifted,
            machine: target.machine.as_deref().and_then(|name| walk.routes.machine(name)),
            in_outages: target.in_outages,
            size: job.size,
            length: Length(job.walltime_seconds),
            latest: walk.books.queue(&target.queue).latest,
        }
    }

    /// The class of a job in a target.
    fn class_in(&mut self, walk: &mut Walk, job: &Candidate, at: usize) -> Option<ClassId> {
        let waits_in = self.queue.class_at(job.place)?;
        let key = (waits_in, at, job.size);
        if let Some(class) = walk.classes.get(&key) {
            return Some(*class);
        }
        let target = &walk.routes.targets[at];
        let demand = rooms::waiting(&self.classes.get(waits_in).demand, walk.routes, target, job.size);
        let class = self.classes.take(&Arc::new(demand), &self.settings);
        walk.classes.insert(key, class);
        Some(class)
    }

    /// Where a job of a class fits now.
    fn place_in(&self, cycle: &Cycle, class: ClassId) -> Option<Placement> {
        let class = self.classes.get(class);
        if !cycle.index.may_fit(class) {
            return None;
        }
        Search { ways: None, ..self.search(cycle.now) }.at(&class.demand, cycle.now)
    }

    /// A job that starts is on its way to a queue, and charges its owner.
    fn note_routed(&self, cycle: &mut Cycle, walk: &mut Walk, job: &Candidate, id: JobId, target: Option<&str>) {
        walk.started(job, id);
        let routed = &mut cycle.plan.routed;
        routed.targets.extend(target.map(|queue| (id, queue.to_owned())));
        let charge = walk.routes.owners.as_ref().map(|rule| rule.charge_of(job.walltime_seconds));
        routed.charges.extend(charge.map(|charge| (job.owner.clone(), charge)));
    }

    /// Lifts the rules of the usual hours for idle queues if the other hours are near and only these rules kept a job
    /// from starting there. Whether they were lifted for any.
    fn lift_hours(&self, cycle: &mut Cycle, walk: &Walk) -> bool {
        let early = walk.routes.hours.as_ref().and_then(|rules| rules.early_end);
        let Some(early) = early.filter(|_| walk.hours().is_usual(cycle.now)) else { return false };
        let Some(until) = walk.hours().other_from(cycle.now) else { return false };
        let micros = |seconds: u64| i64::try_from(seconds.saturating_mul(1_000_000)).unwrap_or(i64::MAX);
        if until.micros_since(cycle.now) > micros(early.within_seconds) {
            cycle.wake_at(until.plus_micros(-micros(early.within_seconds)));
            return false;
        }
        // From the first moment on at which it has been idle for longer.
        let idle_from = |queue: &String| {
            let since = self.conditions.idle_since.get(queue).filter(|_| walk.books.queue(queue).jobs == 0);
            since.map(|since| since.plus_micros(micros(early.idle_seconds).saturating_add(1)))
        };
        let waits: Vec<(&String, Timestamp)> =
            walk.shut_by_hours.iter().filter_map(|queue| Some((queue, idle_from(queue)?))).collect();
        // A moment that has come wakes nobody.
        waits.iter().for_each(|(_, from)| cycle.wake_at(*from));
        let lifted: Vec<String> =
            waits.iter().filter(|(_, from)| *from <= cycle.now).map(|(queue, _)| (*queue).clone()).collect();
        let has_any = !lifted.is_empty();
        cycle.plan.routed.lifted.extend(lifted.into_iter().map(|queue| (queue, until)));
        has_any
    }

    /// Tells what became of all jobs, and what the next cycle has to be told.
    fn end_walk(&mut self, cycle: &mut Cycle, walk: Walk) {
        for (place, id, refusal) in walk.looks {
            match refusal {
                None => look(cycle, id, None),
                Some(refusal) if walk.holds.iter().any(|hold| hold.promised.job == id) => {
                    // It has been told its start.
                    if let Some(trace) = &mut cycle.trace {
                        trace.push(Look { job: id, refusal: Some(refusal) });
                    }
                }
                Some(refusal) => self.refuse(cycle, place, refusal),
            }
        }
        cycle.plan.routed.promised = walk.holds.into_iter().map(|hold| hold.promised).collect();
        walk.classes.into_values().for_each(|class| self.classes.give_back(class));
    }
}

/// Whether a job of the list is refused for good.
fn is_too_large(walk: &Walk, job: &Candidate) -> bool {
    let mut targets = walk.routes.targets.iter().filter(|target| !target.in_place);
    let fits = targets.any(|target| gates::fits_empty(target, job));
    !job.is_privileged && (!fits || gates::is_beyond(walk.routes.size_limits.as_ref(), job))
}
