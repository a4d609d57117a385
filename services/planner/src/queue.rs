//! The waiting jobs, in the order in which they are looked at.
//!
//! Jobs are in blocks. There is only one block unless queues have their own policies: then each of those is a block,
//! and the rest has one for each priority of a queue. Within a block the jobs are sorted by the keys of its order. Keys
//! that do not change while a job waits are computed once, and a new job is put in its place when the next pass begins.

use crate::{
    PolicyError,
    class::{ClassId, Classes, Size},
    model::{Activation, Holder, QueuedJob, QueuedTasks, Slot},
    pass::is_lack,
    routes::Owner,
};
use muster_schemas::{
    JobId, Timestamp,
    cluster::QueueSpec,
    fair_tree::Factors,
    job::WaitReason,
    policy::{
        Backfill, OrderKey, Policy, UseShare, UseSums,
        formula::{Variable, Variables},
        order::CompiledOrder,
        routes::PAST_USAGE,
    },
};
use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// The index of a job's entry. It is reused once the job has left.
pub(crate) type Place = u32;

/// A job that waits.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub id: JobId,
    pub class: ClassId,
    pub tasks: Option<QueuedTasks>,
    pub holder: Arc<Holder>,
    pub priority: i64,
    pub is_list: bool,
    pub arrival: Timestamp,
    pub attributes: Option<Arc<BTreeMap<String, i64>>>,
    pub slot: Option<Slot>,
    pub activation: Option<Arc<Activation>>,
    /// How much had been freed when its slot was last found not to improve.
    pub looked_at: Option<usize>,
    /// Whether runs made way for it then.
    pub looked_past_runs: bool,
    /// Why it waits, as far as that is already known: see [`Queue::set_known_reason`].
    pub known_reason: Option<Arc<WaitReason>>,
    /// Until when it waits for nodes in few groups, while it could start in more.
    pub patient_until: Option<Timestamp>,
    block: u32,
}

/// The facts about a job that a cycle asks for most often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Brief {
    pub class: ClassId,
    /// Whether it is known that the job does not fit.
    pub is_told: bool,
}

/// The sum of the activation filters of all waiting jobs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gates {
    /// How many jobs involve filters.
    pub jobs: usize,
    /// For how many of them resources are kept.
    pub kept: usize,
    /// For how many of them the filters are being asked.
    pub pending: usize,
    /// How many jobs hold back all jobs of a priority and below.
    holding_back: BTreeMap<i64, usize>,
    /// When filters may be asked again.
    asks: BTreeSet<(Timestamp, JobId)>,
}

impl Gates {
    fn count(&mut self, entry: &Entry, is_new: bool) {
        let Some(activation) = &entry.activation else { return };
        let one = if is_new { 1 } else { -1 };
        self.jobs = self.jobs.saturating_add_signed(one);
        if activation.kept.is_some() {
            self.kept = self.kept.saturating_add_signed(one);
        }
        if activation.is_pending {
            self.pending = self.pending.saturating_add_signed(one);
        }
        if let Some(at) = activation.ask_again {
            match is_new {
                true => self.asks.insert((at, entry.id)),
                false => self.asks.remove(&(at, entry.id)),
            };
        }
        if activation.holds_back {
            let count = self.holding_back.entry(entry.priority).or_default();
            *count = count.saturating_add_signed(one);
            if *count == 0 {
                self.holding_back.remove(&entry.priority);
            }
        }
    }

    /// No job of this priority or below starts, because answers are outstanding.
    pub fn held_back(&self) -> Option<i64> {
        self.holding_back.last_key_value().map(|(priority, _)| *priority)
    }

    /// The next time after this one at which filters may be asked again.
    pub fn next_ask(&self, now: Timestamp) -> Option<Timestamp> {
        self.asks.range((now, LAST_JOB)..).map(|(at, _)| *at).find(|at| *at > now)
    }
}

/// After all jobs of the same moment.
const LAST_JOB: JobId = JobId::task(u64::MAX, u32::MAX);

/// The jobs of a block, sorted when a pass asks for them.
#[derive(Clone, Debug)]
struct Block {
    key: BlockKey,
    stages: Stages,
    /// Sorted, but still with the places of jobs that have left.
    sorted: Vec<Place>,
    /// Jobs that arrived since the block was last sorted.
    fresh: Vec<Place>,
    /// How many of the sorted have left.
    left: usize,
}

/// What the jobs of a block share: the priority of the queue, higher first, and a queue with its own policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct BlockKey(std::cmp::Reverse<i64>, Option<Arc<str>>);

/// The order and backfill of a block.
#[derive(Clone, Debug)]
struct Stages {
    order: CompiledOrder,
    backfill: Backfill,
}

impl Stages {
    fn compile(order: &[OrderKey], backfill: Backfill) -> Result<Self, PolicyError> {
        Ok(Self { order: CompiledOrder::compile(order).map_err(PolicyError)?, backfill })
    }
}

/// All jobs that wait.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    /// The stages of queues with their own policies, and of the rest.
    own: BTreeMap<Arc<str>, Stages>,
    rest: Stages,
    /// The stages of the other hours of planning by turns, and whether they are in force in place of `rest`.
    other: Option<Stages>,
    is_other: bool,
    /// Whether all keys have to be computed again.
    is_stale: bool,
    /// The rank of each user by his part of the machine, if an order uses it.
    pub share_ranks: BTreeMap<Arc<str>, u32>,
    /// The time from which orders count the age of jobs.
    pub epoch: Timestamp,
    /// The factors of users in accounts, as far as an order uses them.
    pub fair_factors: Factors,
    /// What the order by use compares, and what users and accounts used and asked for in each queue.
    use_share: Option<Box<UseShare>>,
    pub window_use: BTreeMap<Arc<str>, UseSums>,
    /// What owners have used, for orders that ask for it by name.
    pub owner_use: BTreeMap<Owner, u64>,
    entries: Vec<Option<Entry>>,
    /// The facts of each entry that are used far more often than the rest.
    briefs: Vec<Option<Brief>>,
    /// Whether the filters of each entry are being asked; used as often.
    pending: Vec<bool>,
    /// For each entry the last judgement of its class that is known as the reason why it waits; 0 for none.
    known_judgements: Vec<u64>,
    /// For each place when its job arrived: entries are large, and a cycle by turns may ask this of all.
    arrivals: Vec<Timestamp>,
    /// For each place the number of its job's owner, and the owners by number: names are long, and each cycle that shares
    /// the machine asks for those of many jobs.
    owners: Vec<u32>,
    owner_names: Vec<Arc<str>>,
    owner_numbers: HashMap<Arc<str>, u32>,
    /// The sum of the activation filters of all jobs.
    pub gates: Gates,
    /// The keys of each entry, as many as the longest order has.
    keys: Vec<f64>,
    width: usize,
    free: Vec<Place>,
    by_id: HashMap<JobId, Place>,
    blocks: Vec<Block>,
}

/// The facts about a job from which a queue computes its keys.
pub(crate) struct Facts<'f> {
    pub size: Size,
    pub queue: &'f str,
}

impl Queue {
    /// No job waits.
    ///
    /// # Errors
    /// If a formula of the policy cannot be read.
    pub fn new(policy: &Policy) -> Result<Self, PolicyError> {
        let rest = Stages::compile(&policy.order, policy.backfill)?;
        let turns = policy.turns.as_deref();
        let other = turns.and_then(|turns| turns.other_hours.as_ref());
        let other = other.map(|other| Stages::compile(&other.order, policy.backfill)).transpose()?;
        let own: BTreeMap<Arc<str>, Stages> = policy
            .queues
            .iter()
            .filter(|_| turns.is_none())
            .map(|(name, queue)| {
                let order = queue.order.as_deref().unwrap_or(&policy.order);
                Ok((name.as_str().into(), Stages::compile(order, queue.backfill.unwrap_or(policy.backfill))?))
            })
            .collect::<Result<_, PolicyError>>()?;
        let width = own.values().chain(&other).map(|stages| stages.order.len()).fold(rest.order.len(), usize::max);
        Ok(Self {
            own,
            rest,
            other,
            is_other: false,
            is_stale: false,
            share_ranks: BTreeMap::new(),
            epoch: Timestamp(0),
            fair_factors: Factors::default(),
            use_share: policy.use_share.clone(),
            window_use: BTreeMap::new(),
            owner_use: BTreeMap::new(),
            entries: Vec::new(),
            briefs: Vec::new(),
            pending: Vec::new(),
            known_judgements: Vec::new(),
            arrivals: Vec::new(),
            owners: Vec::new(),
            owner_names: Vec::new(),
            owner_numbers: HashMap::new(),
            gates: Gates::default(),
            keys: Vec::new(),
            width,
            free: Vec::new(),
            by_id: HashMap::new(),
            blocks: Vec::new(),
        })
    }

    /// Whether an order depends on what accounts and users have used.
    pub fn uses_fair_share(&self) -> bool {
        self.own.values().chain([&self.rest]).any(|stages| stages.order.uses_fair_share())
    }

    /// Whether an order depends on what users and accounts used in a window of time.
    pub fn uses_window(&self) -> bool {
        self.own.values().chain([&self.rest]).any(|stages| stages.order.uses_window())
    }

    /// Whether the order in force depends on what owners have used.
    fn uses_past_usage(&self) -> bool {
        self.rest.order.attributes().iter().any(|name| name == PAST_USAGE)
    }

    /// How many of the first jobs of a user are planned in each queue in a cycle; 0 for all. Only orders by use say so.
    pub fn most_jobs_per_user(&self) -> u32 {
        let rule = self.use_share.as_ref().filter(|_| self.uses_window());
        rule.map_or(0, |rule| rule.most_jobs_per_user)
    }

    /// Whether the order in force depends on the parts of the machine that users have.
    pub fn uses_shares(&self) -> bool {
        self.rest.order.uses_shares()
    }

    /// Puts the order of the other hours in force, or that of all others.
    pub fn set_hours(&mut self, is_other: bool) {
        let Some(other) = self.other.as_mut().filter(|_| self.is_other != is_other) else { return };
        std::mem::swap(other, &mut self.rest);
        (self.is_other, self.is_stale) = (is_other, true);
        self.blocks.iter_mut().for_each(|block| block.stages = self.rest.clone());
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn place_of(&self, id: JobId) -> Option<Place> {
        self.by_id.get(&id).copied()
    }

    /// The job at a place that has one.
    pub fn get(&self, place: Place) -> Option<&Entry> {
        self.entries.get(place as usize)?.as_ref()
    }

    /// The class of the job at a place, if there is one.
    pub fn class_at(&self, place: Place) -> Option<ClassId> {
        self.brief(place).map(|brief| brief.class)
    }

    /// The facts that are used most often about the job at a place, if there is one.
    pub fn brief(&self, place: Place) -> Option<Brief> {
        self.briefs[place as usize]
    }

    /// When the job at a place arrived.
    pub fn arrival_at(&self, place: Place) -> Timestamp {
        self.arrivals[place as usize]
    }

    /// The number of the owner of the job at a place.
    pub fn owner_at(&self, place: Place) -> u32 {
        self.owners[place as usize]
    }

    /// The names of owners, by number.
    pub fn owner_names(&self) -> &[Arc<str>] {
        &self.owner_names
    }

    /// Whether the filters of the job at a place are being asked.
    pub fn is_pending(&self, place: Place) -> bool {
        self.pending[place as usize]
    }

    /// For each place the number of its job in the order of the last sorting, from 1.
    pub fn ranks(&self) -> Vec<u32> {
        let mut ranks = vec![0; self.entries.len()];
        let blocks = self.blocks();
        let places =
            blocks.iter().flat_map(|block| self.sorted(*block)).filter(|place| self.class_at(**place).is_some());
        for (rank, place) in (1..).zip(places) {
            ranks[*place as usize] = rank;
        }
        ranks
    }

    pub fn get_mut(&mut self, place: Place) -> Option<&mut Entry> {
        self.entries.get_mut(place as usize)?.as_mut()
    }

    /// Forgets why jobs wait.
    pub fn forget_known_reasons(&mut self) {
        self.entries.iter_mut().flatten().for_each(|entry| entry.known_reason = None);
        self.known_judgements.fill(0);
        self.briefs.iter_mut().flatten().for_each(|brief| brief.is_told = false);
    }

    /// Sets why a job waits, as far as that is known.
    pub fn set_known_reason(&mut self, id: JobId, reason: Option<Arc<WaitReason>>) {
        let Some(place) = self.place_of(id) else { return };
        if let Some(brief) = &mut self.briefs[place as usize] {
            brief.is_told = reason.as_deref().is_some_and(is_lack);
        }
        if let Some(entry) = self.get_mut(place) {
            entry.patient_until = match reason.as_deref() {
                Some(WaitReason::FewGroups { until }) => Some(*until),
                _ => None,
            };
            entry.known_reason = reason;
        }
        self.known_judgements[place as usize] = 0;
    }

    /// The places of jobs that can never be served and have not been told so, in no particular order.
    pub fn unaware(&mut self, classes: &Classes) -> Vec<Place> {
        let mut unaware = Vec::new();
        for at in 0..self.briefs.len() {
            let Some(class) = self.briefs[at].map(|brief| classes.get(brief.class)) else { continue };
            let Some(reason) = &class.hopeless else { continue };
            let place = at as Place;
            if !self.knows(place, class.judgement, reason) {
                unaware.push(place);
            }
        }
        unaware
    }

    /// Whether a judgement of its class is known as the reason why the job at a place waits. Entries are large and
    /// many: each is looked at once for each judgement.
    fn knows(&mut self, place: Place, judgement: u64, reason: &WaitReason) -> bool {
        if self.known_judgements[place as usize] == judgement {
            return true;
        }
        let is_known = self.get(place).is_some_and(|entry| entry.known_reason.as_deref() == Some(reason));
        if is_known {
            self.known_judgements[place as usize] = judgement;
        }
        is_known
    }

    /// All jobs, in no particular order.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().flatten()
    }

    /// Inserts a job that is not there yet.
    pub fn insert(
        &mut self,
        job: QueuedJob,
        class: ClassId,
        facts: &Facts,
        queues: &BTreeMap<Arc<str>, QueueSpec>,
    ) -> Place {
        let block = self.block_of(facts.queue, queues);
        let entry = Entry {
            id: job.id,
            class,
            tasks: job.tasks,
            holder: job.holder,
            priority: job.priority,
            is_list: job.is_list,
            arrival: job.arrival,
            attributes: job.attributes,
            slot: job.slot,
            activation: job.activation,
            looked_at: None,
            looked_past_runs: false,
            known_reason: None,
            patient_until: None,
            block,
        };
        let place = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.briefs.push(None);
            self.pending.push(false);
            self.known_judgements.push(0);
            self.arrivals.push(Timestamp(0));
            self.owners.push(0);
            self.keys.resize(self.entries.len() * self.width, 0.0);
            u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
        });
        self.by_id.insert(entry.id, place);
        self.pending[place as usize] = entry.activation.as_ref().is_some_and(|activation| activation.is_pending);
        self.gates.count(&entry, true);
        self.arrivals[place as usize] = entry.arrival;
        self.owners[place as usize] = self.number_of(&entry.holder.user);
        self.entries[place as usize] = Some(entry);
        self.briefs[place as usize] = Some(Brief { class, is_told: false });
        self.known_judgements[place as usize] = 0;
        self.compute_keys(place, facts, queues, Timestamp(0));
        self.blocks[block as usize].fresh.push(place);
        place
    }

    fn number_of(&mut self, owner: &Arc<str>) -> u32 {
        if let Some(number) = self.owner_numbers.get(owner) {
            return *number;
        }
        let number = u32::try_from(self.owner_names.len()).unwrap_or(u32::MAX);
        self.owner_names.push(owner.clone());
        self.owner_numbers.insert(owner.clone(), number);
        number
    }

    /// Removes a job.
    pub fn remove(&mut self, id: JobId) -> Option<Entry> {
        let place = self.by_id.remove(&id)?;
        let entry = self.entries[place as usize].take()?;
        self.briefs[place as usize] = None;
        self.gates.count(&entry, false);
        let block = &mut self.blocks[entry.block as usize];
        match block.fresh.iter().position(|fresh| *fresh == place) {
            Some(at) => {
                block.fresh.swap_remove(at);
                self.free.push(place);
            }
            // Its place is reused once it is swept out of the sorted ones.
            None => block.left += 1,
        }
        Some(entry)
    }

    /// The blocks in planning order.
    pub fn blocks(&self) -> Vec<usize> {
        let mut blocks: Vec<usize> = (0..self.blocks.len()).collect();
        blocks.sort_by(|one, other| self.blocks[*one].key.cmp(&self.blocks[*other].key));
        blocks
    }

    pub fn backfill(&self, block: usize) -> Backfill {
        self.blocks[block].stages.backfill
    }

    /// The places of a block in the order of the last pass. Some may be empty.
    pub fn sorted(&self, block: usize) -> &[Place] {
        &self.blocks[block].sorted
    }

    /// Takes the sorted places of a block; [`Queue::restore`] returns them. Some may be empty.
    pub fn take_sorted(&mut self, block: usize) -> Vec<Place> {
        std::mem::take(&mut self.blocks[block].sorted)
    }

    pub fn restore(&mut self, block: usize, sorted: Vec<Place>) {
        self.blocks[block].sorted = sorted;
    }

    /// Sorts all blocks as of this moment.
    pub fn sort(
        &mut self,
        now: Timestamp,
        queues: &BTreeMap<Arc<str>, QueueSpec>,
        facts: impl Fn(&Entry) -> (Size, Arc<str>),
    ) {
        let is_stale = std::mem::take(&mut self.is_stale) || self.uses_past_usage();
        for number in 0..self.blocks.len() {
            self.sweep(number);
            let order = &self.blocks[number].stages.order;
            if is_stale || order.depends_on_time() || order.uses_shares() {
                let mut places = self.take_sorted(number);
                places.append(&mut self.blocks[number].fresh);
                for place in &places {
                    if let Some(entry) = self.get(*place) {
                        let (size, queue) = facts(entry);
                        self.compute_keys(*place, &Facts { size, queue: &queue }, queues, now);
                    }
                }
                places.sort_unstable_by(|one, other| self.compare(*one, *other));
                self.restore(number, places);
            } else {
                self.merge(number);
            }
        }
    }

    /// Removes the places of jobs that have left, if there are many.
    fn sweep(&mut self, number: usize) {
        let block = &mut self.blocks[number];
        if block.left * 4 <= block.sorted.len() {
            return;
        }
        let entries = &self.entries;
        let free = &mut self.free;
        block.sorted.retain(|place| {
            let is_there = entries[*place as usize].is_some();
            if !is_there {
                free.push(*place);
            }
            is_there
        });
        block.left = 0;
    }

    /// Merges the new jobs of a block into the sorted ones.
    fn merge(&mut self, number: usize) {
        let mut fresh = std::mem::take(&mut self.blocks[number].fresh);
        if fresh.is_empty() {
            return;
        }
        fresh.sort_unstable_by(|one, other| self.compare(*one, *other));
        let sorted = self.take_sorted(number);
        let sorted = self.merged(sorted, &fresh);
        fresh.clear();
        self.blocks[number].fresh = fresh;
        self.restore(number, sorted);
    }

    /// Mostly there are few new ones: the place of each is searched for, and the jobs behind it move once.
    fn merged(&self, mut sorted: Vec<Place>, fresh: &[Place]) -> Vec<Place> {
        let mut end = sorted.len();
        sorted.resize(end + fresh.len(), 0);
        for (ahead, place) in fresh.iter().enumerate().rev() {
            let at = self.position(&sorted[..end], *place);
            sorted.copy_within(at..end, at + ahead + 1);
            sorted[at + ahead] = *place;
            end = at;
        }
        sorted
    }

    /// How many of the sorted places are ahead of a job. Empty ones keep their position.
    fn position(&self, sorted: &[Place], place: Place) -> usize {
        let (mut low, mut high) = (0, sorted.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let job = (low..=middle).rev().find(|at| self.get(sorted[*at]).is_some());
            match job.filter(|at| self.compare(sorted[*at], place).is_gt()) {
                Some(behind) => high = behind,
                None => low = middle + 1,
            }
        }
        low
    }

    /// Which of two jobs comes first: by their keys, then by arrival, then by number.
    fn compare(&self, one: Place, other: Place) -> Ordering {
        let by_keys = self.keys_of(one).iter().zip(self.keys_of(other)).map(|(one, other)| one.total_cmp(other));
        by_keys.into_iter().find(|ordering| ordering.is_ne()).unwrap_or_else(|| {
            let last = |place: Place| self.get(place).map(|entry| (entry.arrival, entry.id));
            last(one).cmp(&last(other))
        })
    }

    fn keys_of(&self, place: Place) -> &[f64] {
        let from = place as usize * self.width;
        &self.keys[from..from + self.width]
    }

    fn compute_keys(&mut self, place: Place, facts: &Facts, queues: &BTreeMap<Arc<str>, QueueSpec>, now: Timestamp) {
        let Some(entry) = self.entries[place as usize].as_ref() else { return };
        let order = &self.blocks[entry.block as usize].stages.order;
        let queue_priority = queues.get(facts.queue).map_or(0, |queue| queue.priority);
        let Self { epoch, fair_factors, share_ranks, window_use, owner_use, .. } = self;
        let (epoch, use_share) = (*epoch, self.use_share.as_deref());
        let values = Values {
            entry,
            facts,
            order,
            queue_priority,
            now,
            epoch,
            fair_factors,
            share_ranks,
            use_share,
            window_use,
            owner_use,
        };
        let from = place as usize * self.width;
        for number in 0..self.width {
            // Another job may have been at this place, in a block with more keys.
            self.keys[from + number] = if number < order.len() { order.key(number, &values) } else { 0.0 };
        }
    }

    fn block_key(&self, queue: &str, priority: i64) -> BlockKey {
        match self.own.get_key_value(queue) {
            _ if self.own.is_empty() => BlockKey(std::cmp::Reverse(0), None),
            None => BlockKey(std::cmp::Reverse(priority), None),
            Some((name, _)) => BlockKey(std::cmp::Reverse(priority), Some(name.clone())),
        }
    }

    /// Whether a job of this priority in a queue would come after the one at a place, which also waits in a queue, if
    /// it waited again. For a job that does not wait only an order by priority can tell.
    pub fn would_stand_behind(
        &self,
        place: Place,
        in_queue: &str,
        (queue, priority): (&str, i64),
        queues: &BTreeMap<Arc<str>, QueueSpec>,
    ) -> bool {
        let Some(entry) = self.get(place) else { return false };
        let block = &self.blocks[entry.block as usize];
        let of_queue = priority_of(queue, queues);
        match self.block_key(queue, of_queue).cmp(&block.key) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal => {
                let other = (priority_of(in_queue, queues), entry.priority);
                block.stages.order.stands_behind((of_queue, priority), other)
            }
        }
    }

    /// The number of the block for jobs of a queue.
    fn block_of(&mut self, queue: &str, queues: &BTreeMap<Arc<str>, QueueSpec>) -> u32 {
        let key = self.block_key(queue, priority_of(queue, queues));
        let known = self.blocks.iter().position(|block| block.key == key);
        let number = known.unwrap_or_else(|| {
            let stages = self.own.get(queue).unwrap_or(&self.rest).clone();
            self.blocks.push(Block { key, stages, sorted: Vec::new(), fresh: Vec::new(), left: 0 });
            self.blocks.len() - 1
        });
        u32::try_from(number).unwrap_or(u32::MAX)
    }
}

fn priority_of(queue: &str, queues: &BTreeMap<Arc<str>, QueueSpec>) -> i64 {
    queues.get(queue).map_or(0, |queue| queue.priority)
}

/// The inputs of a job's keys.
struct Values<'v> {
    entry: &'v Entry,
    facts: &'v Facts<'v>,
    order: &'v CompiledOrder,
    queue_priority: i64,
    now: Timestamp,
    epoch: Timestamp,
    fair_factors: &'v Factors,
    share_ranks: &'v BTreeMap<Arc<str>, u32>,
    use_share: Option<&'v UseShare>,
    window_use: &'v BTreeMap<Arc<str>, UseSums>,
    owner_use: &'v BTreeMap<Owner, u64>,
}

impl Values<'_> {
    /// A job's attribute with this name. What its owner has used changes while it waits, so it is not among those of the job,
    /// unless somebody has put it there.
    fn attribute(&self, name: &str) -> Option<f64> {
        let own = self.entry.attributes.as_ref().and_then(|all| all.get(name)).map(|value| *value as f64);
        let of_owner = || {
            let holder = &self.entry.holder;
            let used = self.owner_use.get(&(holder.group, holder.user.clone()));
            used.filter(|_| name == PAST_USAGE).map(|used| *used as f64)
        };
        own.or_else(of_owner)
    }
}

impl Variables for Values<'_> {
    fn value(&self, variable: Variable) -> f64 {
        let size = &self.facts.size;
        let seconds = |micros: i64| micros as f64 / 1e6;
        match variable {
            Variable::Submit => seconds(self.entry.arrival.0),
            Variable::Age0 => seconds(self.entry.arrival.micros_since(self.epoch)).max(1.0),
            Variable::Wait => seconds(self.now.micros_since(self.entry.arrival)).max(0.0),
            Variable::Walltime => size.walltime_seconds.map_or(f64::INFINITY, |seconds| seconds as f64),
            Variable::Procs => size.cores as f64,
            Variable::Nodes => size.nodes as f64,
            Variable::MemoryBytes => size.memory_bytes as f64,
            Variable::Gpus => size.gpus as f64,
            Variable::Priority => self.entry.priority as f64,
            Variable::QueuePriority => self.queue_priority as f64,
            Variable::FairShare => {
                let holder = &self.entry.holder;
                self.fair_factors.get(holder.account.as_deref(), &holder.user, self.facts.queue)
            }
            Variable::UseShare => {
                let Some(rule) = self.use_share else { return 0.0 };
                let none = UseSums::default();
                let sums = self.window_use.get(self.facts.queue).unwrap_or(&none);
                sums.value(rule, self.entry.holder.account.as_deref(), &self.entry.holder.user)
            }
            Variable::ShareRank => self.share_ranks.get(&self.entry.holder.user).map_or(0.0, |rank| f64::from(*rank)),
            Variable::Attribute(index) => {
                let name = self.order.attributes().get(index);
                name.and_then(|name| self.attribute(name)).unwrap_or(f64::NAN)
            }
        }
    }
}
