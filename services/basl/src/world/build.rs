//! A snapshot into the lists of a cycle.

use super::{
    Job, Node, Queue, Server, World,
    amounts::{Resources, SUMMED, Value, find, grown, put},
};
use crate::{
    constants::number,
    getters::Named,
    moment::{Clock, Moment},
    snapshot::{self, Amount, Amounts, Snapshot},
    text::Text,
    values::{Reference, set},
};
use std::collections::HashMap;

/// The world of a snapshot.
pub(crate) fn world(snapshot: &Snapshot, clock: &Clock) -> World {
    let mut builder = Builder::default();
    for (name, _) in SUMMED {
        builder.number(name);
    }
    let queues: HashMap<&str, usize> =
        snapshot.queues.iter().enumerate().rev().map(|(place, queue)| (queue.name.as_str(), place)).collect();
    let jobs: Vec<Job> = snapshot.jobs.iter().map(|job| builder.job(job, &queues, clock)).collect();
    let mut world = World {
        servers: Vec::new(),
        queues: snapshot.queues.iter().map(|queue| builder.queue(queue)).collect(),
        nodes: snapshot.nodes.iter().map(|node| builder.node(node)).collect(),
        all_servers: set(0..=snapshot.other_servers.len()),
        all_nodes: set(0..snapshot.nodes.len()),
        local_node: local_node(snapshot),
        names: HashMap::new(),
        jobs,
    };
    let mut server = builder.server(&snapshot.server);
    server.queues = set(0..world.queues.len());
    server.jobs = set(0..world.jobs.len());
    server.nodes = world.all_nodes.clone();
    sum_up(&mut server.assigned, world.jobs.iter(), &builder.names);
    world.servers.push(server);
    world.servers.extend(snapshot.other_servers.iter().map(|server| builder.server(server)));
    let mut jobs_of = vec![Vec::new(); world.queues.len()];
    for (place, job) in world.jobs.iter().enumerate() {
        if let Some(list) = job.queue.and_then(|queue| jobs_of.get_mut(queue)) {
            list.push(place);
        }
    }
    for (queue, places) in world.queues.iter_mut().zip(jobs_of) {
        sum_up(&mut queue.assigned, places.iter().filter_map(|place| world.jobs.get(*place)), &builder.names);
        queue.jobs = set(places.into_iter());
    }
    world.names = builder.names;
    world
}

/// The node of the server, or the only one.
fn local_node(snapshot: &Snapshot) -> Option<usize> {
    let name = snapshot.local_node.as_ref().or(snapshot.server.name.as_ref());
    let named = name.and_then(|name| snapshot.nodes.iter().position(|node| node.name == *name));
    named.or_else(|| (snapshot.nodes.len() == 1).then_some(0))
}

/// Adds the sums over running jobs that the snapshot does not have.
fn sum_up<'a>(assigned: &mut Resources, jobs: impl Iterator<Item = &'a Job>, names: &HashMap<String, u32>) {
    let missing: Vec<(u32, bool)> = SUMMED
        .into_iter()
        .filter_map(|(name, is_size)| Some((*names.get(name)?, is_size)))
        .filter(|(name, _)| find(assigned, *name).is_none())
        .collect();
    for job in jobs.filter(|job| matches!(job.state, number::RUNNING | number::EXITING)) {
        for (name, is_size) in &missing {
            let sum = find(&job.request, *name).and_then(|more| grown(find(assigned, *name), more, *is_size));
            if let Some(sum) = sum {
                put(assigned, *name, sum);
            }
        }
    }
}

/// Names of users and queues, and amounts, occur many times: each is made once.
#[derive(Default)]
struct Builder<'s> {
    texts: HashMap<&'s str, Text>,
    values: HashMap<&'s str, Value>,
    numbers: HashMap<i64, Value>,
    names: HashMap<String, u32>,
}

impl<'s> Builder<'s> {
    fn text(&mut self, text: &'s str) -> Text {
        self.texts.entry(text).or_insert_with(|| Text::fixed(text)).clone()
    }

    fn string(&mut self, text: Option<&'s String>) -> Reference {
        text.map_or(Reference::Null, |text| Reference::Text(self.text(text)))
    }

    fn number(&mut self, name: &str) -> u32 {
        let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        match self.names.get(name) {
            Some(number) => *number,
            None => *self.names.entry(name.to_owned()).or_insert(next),
        }
    }

    fn value(&mut self, amount: &'s Amount) -> Value {
        let made = || Value::of(amount);
        match amount {
            Amount::Number(number) => self.numbers.entry(*number).or_insert_with(made).clone(),
            Amount::Fraction(_) => made(),
            Amount::Text(text) => self.values.entry(text).or_insert_with(made).clone(),
        }
    }

    fn resources(&mut self, amounts: &'s Amounts) -> Resources {
        amounts.iter().map(|(name, amount)| (self.number(name), self.value(amount))).collect()
    }

    fn server(&mut self, server: &'s snapshot::Server) -> Server {
        Server {
            name: self.string(server.name.as_ref()),
            default_queue: self.string(server.default_queue.as_ref()),
            limits: limits(server.max_running, server.max_user_run, server.max_group_run),
            available: self.resources(&server.resources_available),
            assigned: self.resources(&server.resources_assigned),
            ..Server::default()
        }
    }

    fn queue(&mut self, queue: &'s snapshot::Queue) -> Queue {
        let first =
            queue.queue_type.as_ref().and_then(|word| word.chars().next()).map(|first| first.to_ascii_lowercase());
        Queue {
            name: Reference::Text(self.text(&queue.name)),
            of_type: match first {
                Some('e') => number::QTYPE_E,
                Some('r') => number::QTYPE_R,
                _ => -1,
            },
            state: i64::from(queue.started == Some(true)),
            priority: queue.priority.unwrap_or(0),
            limits: limits(queue.max_running, queue.max_user_run, queue.max_group_run),
            available: self.resources(&queue.resources_available),
            assigned: self.resources(&queue.resources_assigned),
            jobs: Reference::Null,
        }
    }

    fn job(&mut self, job: &'s snapshot::Job, queues: &HashMap<&str, usize>, clock: &Clock) -> Job {
        let created = job.ctime.or(job.qtime).map_or(Moment::UNSET, |seconds| clock.moment_at(seconds));
        Job {
            id: Reference::Text(Text::fixed(&job.id)),
            name: self.string(job.name.as_ref()),
            owner: self.string(job.owner.as_ref()),
            user: self.string(job.user.as_ref()),
            group: self.string(job.group.as_ref()),
            queue: job.queue.as_ref().and_then(|queue| queues.get(queue.as_str())).copied(),
            state: job_state(&job.state),
            priority: job.priority.unwrap_or(0),
            rerunnable: job.rerunnable.map_or(-1, i64::from),
            interactive: i64::from(job.interactive == Some(true)),
            created: created.to_word(),
            mail: self.string(job.mail.as_ref()),
            stage_in: self.string(job.stagein.as_ref()),
            stage_out: self.string(job.stageout.as_ref()),
            request: self.resources(&job.request),
            used: self.resources(&job.used),
            is_deleted: false,
        }
    }

    fn node(&mut self, node: &'s snapshot::Node) -> Node {
        let mut made = Node {
            name: Reference::Text(self.text(&node.name)),
            os: self.string(node.arch.as_ref()),
            properties: self.string(node.properties.as_ref()),
            vendor: self.string(node.vendor.as_ref()),
            state: node_state(node.state.as_deref()),
            is_timeshared: node.ts,
            cpus: node.ncpus.unwrap_or(-1),
            idle_seconds: node.idletime.unwrap_or(-1),
            load: load(node.loadave),
            cpu_percent: [-1; 4],
            values: Vec::new(),
        };
        if let Some(memory) = &node.physmem {
            let value = self.value(memory);
            for name in ["real", "physmem"] {
                made.values.push((Named::CNodeMemTotalGet, self.text(name), value.clone()));
            }
        }
        for (function, amount) in &node.values {
            let value = self.value(amount);
            self.map(&mut made, function, value);
        }
        made
    }

    /// The value of a function as a configuration file names it.
    fn map(&mut self, node: &mut Node, function: &'s str, value: Value) {
        if let Some((function, argument)) = function.strip_suffix(']').and_then(|function| function.split_once('[')) {
            if let Some((_, named, ..)) = Named::ALL.iter().find(|(known, ..)| *known == function) {
                node.values.retain(|(known, of, _)| known != named || of.as_str() != argument);
                node.values.push((*named, self.text(argument), value));
            }
            return;
        }
        match function {
            "CNodeOsGet" => node.os = value.text,
            "CNodePropertiesGet" => node.properties = value.text,
            "CNodeVendorGet" => node.vendor = value.text,
            "CNodeNumCpusGet" => node.cpus = value.int,
            "CNodeIdletimeGet" => node.idle_seconds = value.int,
            "CNodeLoadAveGet" => node.load = load(value.text.text().parse().ok()),
            "CNodeCpuPercentIdleGet" => node.cpu_percent[0] = value.int,
            "CNodeCpuPercentSysGet" => node.cpu_percent[1] = value.int,
            "CNodeCpuPercentUserGet" => node.cpu_percent[2] = value.int,
            "CNodeCpuPercentGuestGet" => node.cpu_percent[3] = value.int,
            _ => {}
        }
    }
}

/// An unset limit is 0.
fn limits(all: Option<i64>, user: Option<i64>, group: Option<i64>) -> [i64; 3] {
    [all, user, group].map(|limit| limit.unwrap_or(0))
}

fn load(load: Option<f64>) -> i64 {
    load.filter(|load| load.is_finite()).unwrap_or(-1.0).to_bits().cast_signed()
}

fn job_state(state: &str) -> i64 {
    match state.chars().next().map(|letter| letter.to_ascii_uppercase()) {
        Some('T') => number::TRANSIT,
        Some('Q') => number::QUEUED,
        Some('H') => number::HELD,
        Some('W') => number::WAITING,
        Some('R') => number::RUNNING,
        Some('E') => number::EXITING,
        _ => -1,
    }
}

/// The state that most stands in the way of a job, if a node has several.
fn node_state(states: Option<&str>) -> i64 {
    let words: Vec<String> = states.unwrap_or("").split(',').map(|word| word.trim().to_ascii_lowercase()).collect();
    let has = |names: &[&str]| words.iter().any(|word| names.contains(&word.as_str()));
    match () {
        () if has(&["down"]) => number::CNODE_DOWN,
        () if has(&["offline"]) => number::CNODE_OFFLINE,
        () if has(&["reserve", "reserved"]) => number::CNODE_RESERVE,
        () if has(&["job-exclusive", "exclusive", "in use", "inuse", "busy"]) => number::CNODE_INUSE_EXCLUSIVE,
        () if has(&["job-sharing", "shared"]) => number::CNODE_INUSE_SHARED,
        () if has(&["free"]) => number::CNODE_FREE,
        () => number::CNODE_UNKNOWN,
    }
}
