//! A batch system that is only a state: for tests and dry runs, and as the picture that a real one keeps up to date
//! during a cycle.

use crate::{
    action::{Accepted, Action, Answer, Change, Code, Gate, Refusal},
    site::Site,
    specification::{Condition, Specification, condition},
};
use jiff::Timestamp;
use muster_pbs_plan::{
    moment::Moment,
    state_file::{JobState, NodeState, QueueState, State, StateFile},
};
use std::collections::{BTreeMap, HashMap};

/// The state of a node that jobs have for themselves.
const EXCLUSIVE: &str = "job-exclusive";
/// Bytes of a comment.
const LONGEST_COMMENT: usize = 1024;
/// The range of `Priority`.
const PRIORITIES: std::ops::RangeInclusive<i64> = -1024..=1023;

/// The state of a node that is reserved.
const RESERVED: &str = "reserve";

/// Nodes that a program has reserved, by the numbers of its reservations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reservations {
    /// The names of the nodes.
    pub of: BTreeMap<u32, Vec<String>>,
    /// The highest number so far.
    pub last: u32,
}

/// A state that actions change.
#[derive(Clone, Debug)]
pub struct StateSite {
    state: StateFile,
    places: HashMap<String, usize>,
    /// Nodes of reservations, as places in the list.
    reservations: BTreeMap<u32, Vec<usize>>,
    last_reservation: u32,
}

impl StateSite {
    /// A batch system in this state.
    pub fn new(state: StateFile) -> Self {
        let mut site = Self { state, places: HashMap::new(), reservations: BTreeMap::new(), last_reservation: 0 };
        site.number();
        site
    }

    /// The state, to be changed from outside.
    pub fn change(&mut self, change: impl FnOnce(&mut StateFile)) {
        change(&mut self.state);
        self.number();
    }

    fn number(&mut self) {
        self.places = self.state.jobs.iter().enumerate().map(|(place, job)| (job.id.clone(), place)).collect();
    }

    /// A job.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn job(&self, id: &str) -> Result<&JobState, Refusal> {
        let job = self.places.get(id).and_then(|place| self.state.jobs.get(*place));
        job.ok_or_else(|| unknown_job(id))
    }

    fn job_mut(&mut self, id: &str) -> Result<&mut JobState, Refusal> {
        let job = self.places.get(id).and_then(|place| self.state.jobs.get_mut(*place));
        job.ok_or_else(|| unknown_job(id))
    }

    /// The reservations, to be kept until the next cycle.
    pub fn reservations(&self) -> Reservations {
        let name = |place: &usize| Some(self.state.nodes.get(*place)?.name.clone());
        let named = |places: &Vec<usize>| places.iter().filter_map(name).collect();
        let of = self.reservations.iter().map(|(number, places)| (*number, named(places))).collect();
        Reservations { of, last: self.last_reservation }
    }

    /// Reserves again what an earlier cycle has reserved. Nodes that are in use stay so, and those that are gone are left
    /// out.
    pub fn reserve_again(&mut self, kept: &Reservations) {
        let places: HashMap<String, usize> =
            self.state.nodes.iter().enumerate().map(|(place, node)| (node.name.clone(), place)).collect();
        for (number, names) in &kept.of {
            let known: Vec<usize> = names.iter().filter_map(|name| places.get(name).copied()).collect();
            for place in &known {
                let node = self.state.nodes.get_mut(*place).filter(|node| condition(node) == Condition::Free);
                if let Some(node) = node {
                    node.state = Some(RESERVED.into());
                }
            }
            self.reservations.insert(*number, known);
        }
        self.last_reservation = kept.last;
    }

    /// Replaces a job by what is known of it now; `None` means that it is no more.
    pub fn note_job(&mut self, id: &str, now: Option<JobState>) {
        match (self.places.get(id).copied(), now) {
            (Some(place), Some(now)) => {
                if let Some(job) = self.state.jobs.get_mut(place) {
                    *job = now;
                }
            }
            (Some(_), None) => {
                self.state.jobs.retain(|job| job.id != id);
                self.number();
            }
            (None, _) => {}
        }
    }

    /// Replaces a queue by what is known of it now.
    pub fn note_queue(&mut self, now: QueueState) {
        if let Some(queue) = self.state.queues.iter_mut().find(|queue| queue.name == now.name) {
            *queue = now;
        }
    }

    /// Whether a job can be started now, wherever.
    ///
    /// # Errors
    /// It cannot, or there is none of that name.
    pub fn check_start(&self, id: &str) -> Result<&JobState, Refusal> {
        self.in_state(id, &[State::Q])
    }

    fn in_state(&self, id: &str, states: &[State]) -> Result<&JobState, Refusal> {
        let job = self.job(id)?;
        if states.contains(&job.state) {
            return Ok(job);
        }
        Err(Refusal::new(Code::BadState, format!("job {} is in state {:?}", job.id, job.state)))
    }

    /// Notes that a job was started on nodes. Those that are not timeshared are its own.
    pub fn note_start(&mut self, id: &str, nodes: &[String]) {
        let now = self.state.now;
        let Ok(job) = self.job_mut(id) else { return };
        job.state = State::R;
        job.started = Some(now);
        job.nodes = nodes.to_vec();
        for node in self.state.nodes.iter_mut().filter(|node| nodes.contains(&node.name) && !node.ts) {
            node.state = Some(EXCLUSIVE.into());
        }
    }

    /// Notes that no processor of these nodes is free.
    pub fn note_full(&mut self, nodes: &[String]) {
        for node in self.state.nodes.iter_mut().filter(|node| nodes.contains(&node.name)) {
            node.state = Some(EXCLUSIVE.into());
        }
    }

    /// The nodes that `place` names.
    fn hosts(&self, place: Option<&str>) -> Result<Vec<String>, Refusal> {
        let Some(place) = place.map(str::trim).filter(|place| !place.is_empty()) else { return Ok(Vec::new()) };
        let mut hosts = Vec::new();
        for name in hosts_of(place) {
            let node = self.state.nodes.iter().find(|node| node.name == name).ok_or_else(|| unknown_node(name))?;
            if condition(node) != Condition::Free {
                let state = node.state.as_deref().unwrap_or("free");
                return Err(Refusal::new(Code::NoResources, format!("node {name} is in state {state}")));
            }
            if !hosts.contains(&node.name) {
                hosts.push(node.name.clone());
            }
        }
        Ok(hosts)
    }

    fn start(&mut self, id: &str, place: Option<&str>) -> Answer {
        self.check_start(id)?;
        let nodes = self.hosts(place)?;
        self.note_start(id, &nodes);
        Ok(Accepted { nodes, ..Accepted::default() })
    }

    fn rerun(&mut self, id: &str) -> Answer {
        let job = self.in_state(id, &[State::R])?;
        if job.rerunnable == Some(false) {
            return Err(Refusal::new(Code::NotRerunnable, format!("job {id} is not to be run again")));
        }
        self.leave_nodes(id)?;
        self.job_mut(id)?.state = State::Q;
        Ok(Accepted::default())
    }

    fn leave_nodes(&mut self, id: &str) -> Result<(), Refusal> {
        let job = self.job_mut(id)?;
        job.started = None;
        let nodes = std::mem::take(&mut job.nodes);
        let is_its = |node: &&mut NodeState| nodes.contains(&node.name) && node.state.as_deref() == Some(EXCLUSIVE);
        self.state.nodes.iter_mut().filter(is_its).for_each(|node| node.state = Some("free".into()));
        Ok(())
    }

    fn delete(&mut self, id: &str) -> Answer {
        match self.job(id)?.state {
            State::R | State::E => self.job_mut(id)?.state = State::E,
            State::T | State::Q | State::H | State::W => {
                self.state.jobs.retain(|job| job.id != id);
                self.number();
            }
        }
        Ok(Accepted::default())
    }

    fn set_state(&mut self, id: &str, from: &[State], kinds: Option<&str>, to: State) -> Answer {
        if kinds.is_some_and(|kinds| kinds.is_empty() || kinds.chars().any(|kind| !"uosn".contains(kind))) {
            return Err(Refusal::new(Code::BadValue, "expected types of the hold, of u, o and s"));
        }
        self.in_state(id, from)?;
        self.job_mut(id)?.state = to;
        Ok(Accepted::default())
    }

    fn move_to(&mut self, id: &str, queue: Option<&str>) -> Answer {
        self.in_state(id, &[State::Q, State::H, State::W])?;
        let queue = queue.or(self.state.server.default_queue.as_deref());
        let queue = queue.ok_or_else(|| Refusal::new(Code::UnknownQueue, "there is no default queue"))?;
        let known = self.state.queues.iter().find(|known| known.name == queue).ok_or_else(|| unknown_queue(queue))?;
        if known.enabled == Some(false) {
            return Err(Refusal::new(Code::QueueDisabled, format!("queue {queue} takes no jobs")));
        }
        let name = known.name.clone();
        self.job_mut(id)?.queue = name;
        Ok(Accepted::default())
    }

    fn alter(&mut self, id: &str, changes: &[Change]) -> Answer {
        let mut altered = self.in_state(id, &[State::Q, State::H, State::W, State::R])?.clone();
        for change in changes {
            alter(&mut altered, change)?;
        }
        *self.job_mut(id)? = altered;
        Ok(Accepted::default())
    }

    fn stage_in(&mut self, id: &str, place: Option<&str>) -> Answer {
        self.hosts(place)?;
        let job = self.in_state(id, &[State::Q, State::H, State::W])?;
        if job.stagein.as_deref().is_none_or(|files| files.trim().is_empty()) {
            return Err(Refusal::new(Code::BadRequest, format!("job {id} has no files to stage in")));
        }
        self.job_mut(id)?.substate = Some("STAGEIN".into());
        Ok(Accepted::default())
    }

    fn set_queue(&mut self, name: &str, gate: Gate) -> Answer {
        let queue = self.state.queues.iter_mut().find(|queue| queue.name == name).ok_or_else(|| unknown_queue(name))?;
        match gate {
            Gate::Enable | Gate::Disable => queue.enabled = Some(gate == Gate::Enable),
            Gate::Start | Gate::Stop => queue.started = Some(gate == Gate::Start),
        }
        Ok(Accepted::default())
    }

    fn reserve(&mut self, number: u32, resources: &[String]) -> Answer {
        let specifications: Vec<Specification> = resources
            .iter()
            .map(|text| Specification::parse(text).ok_or_else(|| unknown_resource(text)))
            .collect::<Result<_, _>>()?;
        let [specification] = specifications.as_slice() else {
            return Err(Refusal::new(Code::BadRequest, "expected one resource, such as nodes=2"));
        };
        if number != 0 && !self.reservations.contains_key(&number) {
            return Err(Refusal::new(Code::BadRequest, format!("there is no reservation {number}")));
        }
        // What the reservation has may be part of what it gets.
        let mut without = self.clone();
        without.free(number);
        let chosen = specification.choose(&without.state).filter(|chosen| !chosen.is_empty());
        let Some(chosen) = chosen else {
            return Err(Refusal::new(Code::NoResources, "too few nodes are free"));
        };
        *self = without;
        let number = if number == 0 { self.last_reservation.saturating_add(1) } else { number };
        self.last_reservation = self.last_reservation.max(number);
        for place in &chosen {
            if let Some(node) = self.state.nodes.get_mut(*place) {
                node.state = Some(RESERVED.into());
            }
        }
        self.reservations.insert(number, chosen);
        Ok(Accepted { reservation: Some(number), ..Accepted::default() })
    }

    /// Gives up a reservation. Whether there was one.
    fn free(&mut self, number: u32) -> bool {
        let Some(places) = self.reservations.remove(&number) else { return false };
        for place in places {
            let node = self.state.nodes.get_mut(place).filter(|node| node.state.as_deref() == Some(RESERVED));
            if let Some(node) = node {
                node.state = Some("free".into());
            }
        }
        true
    }
}

impl Site for StateSite {
    fn state(&self) -> &StateFile {
        &self.state
    }

    fn act(&mut self, action: &Action) -> Answer {
        match action {
            Action::Run { job, place } | Action::AsyRun { job, place } => self.start(job, place.as_deref()),
            Action::Rerun { job } => self.rerun(job),
            Action::Delete { job, .. } => self.delete(job),
            Action::Hold { job, kinds } => {
                self.set_state(job, &[State::Q, State::W, State::H], kinds.as_deref(), State::H)
            }
            Action::Release { job, kinds } => self.set_state(job, &[State::H, State::Q], kinds.as_deref(), State::Q),
            Action::Signal { job, signal } => {
                self.in_state(job, &[State::R])?;
                check_signal(signal)
            }
            Action::Move { job, to } => self.move_to(job, to.as_deref()),
            Action::Alter { job, changes } => self.alter(job, changes),
            Action::Comment { job, text } => {
                self.job_mut(job)?.comment = Some(comment(text)?);
                Ok(Accepted::default())
            }
            Action::StageIn { job, place } => self.stage_in(job, place.as_deref()),
            Action::Queue { queue, set } => self.set_queue(queue, *set),
            Action::Reserve { number, resources } => self.reserve(*number, resources),
            Action::Unreserve { number } => match self.free(*number) {
                true => Ok(Accepted::default()),
                false => Err(Refusal::new(Code::BadRequest, format!("there is no reservation {number}"))),
            },
        }
    }
}

/// The hosts of `n1+n2`, also with numbers behind colons.
pub fn hosts_of(place: &str) -> impl Iterator<Item = &str> {
    let host = |part: &'_ str| part.split([':', '#']).next().unwrap_or_default().trim().len();
    place.split(['+', ',', ' ']).map(move |part| part.get(..host(part)).unwrap_or(part)).filter(|host| !host.is_empty())
}

fn alter(job: &mut JobState, change: &Change) -> Result<(), Refusal> {
    let value = change.value.as_str();
    let bad = |expected: &str| Err(Refusal::new(Code::BadValue, format!("{}: expected {expected}", change.name)));
    match (change.name.as_str(), change.resource.as_deref()) {
        ("Resource_List", Some(resource)) => {
            if job.state == State::R {
                return Err(Refusal::new(Code::BadState, "the request of a running job cannot be changed"));
            }
            if let Err(expected) = job.request.set(resource, value) {
                return bad(expected);
            }
        }
        ("Priority", None) => match value.parse() {
            Ok(priority) if PRIORITIES.contains(&priority) => job.priority = Some(priority),
            _ => return bad("a number from -1024 to 1023"),
        },
        ("Rerunable", None) => match muster_pbs_policy::values::boolean(value) {
            Some(flag) => job.rerunnable = Some(flag),
            None if value.eq_ignore_ascii_case("y") => job.rerunnable = Some(true),
            None if value.eq_ignore_ascii_case("n") => job.rerunnable = Some(false),
            None => return bad("y or n"),
        },
        ("Job_Name", None) => job.name = Some(value.to_owned()),
        ("comment", None) => job.comment = Some(comment(value)?),
        ("stagein", None) => job.stagein = Some(value.to_owned()),
        ("stageout", None) => job.stageout = Some(value.to_owned()),
        (name, _) => {
            return Err(Refusal::new(Code::UnknownAttribute, format!("attribute {name} cannot be changed here")));
        }
    }
    Ok(())
}

fn comment(text: &str) -> Result<String, Refusal> {
    if text.len() > LONGEST_COMMENT || text.contains(char::is_control) {
        return Err(Refusal::new(Code::BadValue, format!("expected one line of at most {LONGEST_COMMENT} bytes")));
    }
    Ok(text.to_owned())
}

fn check_signal(name: &str) -> Answer {
    const NAMES: [&str; 16] = [
        "HUP", "INT", "QUIT", "KILL", "TERM", "USR1", "USR2", "STOP", "CONT", "TSTP", "ALRM", "ABRT", "XCPU", "URG",
        "WINCH", "NULL",
    ];
    let word = name.strip_prefix("SIG").unwrap_or(name);
    let is_number = word.parse::<u8>().is_ok_and(|number| number <= 64);
    let is_pbs = ["suspend", "resume"].contains(&word);
    if is_number || is_pbs || NAMES.contains(&word) {
        return Ok(Accepted::default());
    }
    Err(Refusal::new(Code::UnknownSignal, format!("there is no signal {name}")))
}

fn unknown_job(id: &str) -> Refusal {
    Refusal::new(Code::UnknownJob, format!("there is no job {id}"))
}

fn unknown_node(name: &str) -> Refusal {
    Refusal::new(Code::UnknownNode, format!("there is no node {name}"))
}

fn unknown_queue(name: &str) -> Refusal {
    Refusal::new(Code::UnknownQueue, format!("there is no queue {name}"))
}

fn unknown_resource(text: &str) -> Refusal {
    Refusal::new(Code::UnknownResource, format!("expected a resource such as nodes=2, found {text}"))
}

/// A time as a state has it.
pub fn moment(seconds: i64) -> Moment {
    Moment::Instant(Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH))
}
