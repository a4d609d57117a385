//! What the status commands show (PBS-X-18): names of PBS and texts.

use super::list::join;
use crate::site::{is_execution, shown_load};
use jiff::tz::TimeZone;
use muster_pbs_plan::{
    moment::Moment,
    resources::Resources,
    state_file::{JobState, NodeState, QueueState, State, StateFile},
};

/// The states that are counted, with their names.
const STATES: [(State, &str); 6] = [
    (State::T, "Transit"),
    (State::Q, "Queued"),
    (State::H, "Held"),
    (State::W, "Waiting"),
    (State::R, "Running"),
    (State::E, "Exiting"),
];

/// Attributes with a value.
#[derive(Debug, Default)]
struct Attributes(Vec<String>);

impl Attributes {
    fn add(&mut self, name: &str, value: impl Into<String>) {
        self.0.push(join(&[name.to_owned(), value.into()]));
    }

    fn set<V: ToString>(&mut self, name: &str, value: Option<V>) {
        if let Some(value) = value {
            self.add(name, value.to_string());
        }
    }

    fn time(&mut self, name: &str, moment: Option<Moment>, zone: &TimeZone) {
        self.set(name, moment.and_then(|moment| moment.instant(zone)).map(|time| time.as_second()));
    }

    fn flag(&mut self, name: &str, flag: Option<bool>) {
        self.set(name, flag.map(|flag| if flag { "True" } else { "False" }));
    }

    fn resources(&mut self, name: &str, resources: &Resources) {
        for (resource, value) in resources.shown() {
            self.add(&format!("{name}:{resource}"), value);
        }
    }

    /// `{name attributes text}`.
    fn named(self, name: &str) -> String {
        join(&[name.to_owned(), join(&self.0), String::new()])
    }
}

/// The server.
pub fn server(state: &StateFile) -> String {
    let server = &state.server;
    let mut attributes = Attributes::default();
    attributes.add("server_state", "Scheduling");
    attributes.add("scheduling", "True");
    counts(&mut attributes, state.jobs.iter());
    attributes.set("default_queue", server.default_queue.as_ref());
    attributes.set("max_running", server.max_running);
    attributes.set("max_user_run", server.max_user_run);
    attributes.set("max_group_run", server.max_group_run);
    attributes.resources("resources_available", &server.resources_available);
    attributes.resources("resources_max", &server.resources_max);
    attributes.resources("resources_default", &server.resources_default);
    attributes.resources("resources_assigned", &assigned(state.jobs.iter()));
    attributes.named(server.name.as_deref().unwrap_or("localhost"))
}

/// The queues.
pub fn queues(state: &StateFile) -> String {
    let shown: Vec<String> = state.queues.iter().map(|one| queue(state, one)).collect();
    join(&shown)
}

fn queue(state: &StateFile, queue: &QueueState) -> String {
    let jobs = || state.jobs.iter().filter(|job| job.queue == queue.name);
    let mut attributes = Attributes::default();
    attributes.add("queue_type", if is_execution(queue) { "Execution" } else { "Route" });
    attributes.set("Priority", queue.priority);
    counts(&mut attributes, jobs());
    attributes.set("max_running", queue.max_running);
    attributes.set("max_user_run", queue.max_user_run);
    attributes.set("max_group_run", queue.max_group_run);
    attributes.resources("resources_available", &queue.resources_available);
    attributes.resources("resources_max", &queue.resources_max);
    attributes.resources("resources_default", &queue.resources_default);
    attributes.resources("resources_assigned", &assigned(jobs()));
    attributes.flag("enabled", Some(queue.enabled.unwrap_or(true)));
    attributes.flag("started", Some(queue.started.unwrap_or(false)));
    attributes.named(&queue.name)
}

/// The nodes.
pub fn nodes(state: &StateFile) -> String {
    let shown: Vec<String> = state.nodes.iter().map(node).collect();
    join(&shown)
}

fn node(node: &NodeState) -> String {
    let mut attributes = Attributes::default();
    attributes.add("state", node.state.as_deref().unwrap_or("free"));
    attributes.add("ntype", if node.ts { "time-shared" } else { "cluster" });
    attributes.set("np", node.ncpus);
    if !node.properties.is_empty() {
        attributes.add("properties", node.properties.join(","));
    }
    attributes.set("arch", node.arch.as_ref());
    attributes.set("physmem", node.physmem.as_ref());
    attributes.set("loadave", node.loadave.map(shown_load));
    attributes.set("ideal_load", node.ideal_load.map(shown_load));
    attributes.set("max_load", node.max_load.map(shown_load));
    attributes.named(&node.name)
}

/// Some jobs.
pub fn jobs<'j>(jobs: impl Iterator<Item = &'j JobState>, zone: &TimeZone) -> String {
    let shown: Vec<String> = jobs.map(|one| job(one, zone)).collect();
    join(&shown)
}

fn job(job: &JobState, zone: &TimeZone) -> String {
    let mut attributes = Attributes::default();
    attributes.set("Job_Name", job.name.as_ref());
    attributes.set("Job_Owner", job.owner.as_ref());
    attributes.resources("resources_used", &job.used);
    attributes.add("job_state", format!("{:?}", job.state));
    attributes.add("queue", job.queue.as_str());
    attributes.time("ctime", job.ctime, zone);
    if !job.nodes.is_empty() {
        attributes.add("exec_host", job.nodes.join("+"));
    }
    attributes.flag("interactive", job.interactive);
    attributes.set("Priority", job.priority);
    attributes.time("qtime", job.qtime, zone);
    attributes.flag("Rerunable", job.rerunnable);
    attributes.resources("Resource_List", &job.request);
    attributes.set("stagein", job.stagein.as_ref());
    attributes.set("stageout", job.stageout.as_ref());
    attributes.set("substate", job.substate.as_ref());
    attributes.set("comment", job.comment.as_ref());
    attributes.add("euser", job.user.as_str());
    attributes.set("egroup", job.group.as_ref());
    attributes.time("etime", job.etime, zone);
    attributes.time("start_time", job.started, zone);
    attributes.named(&job.id)
}

fn counts<'j>(attributes: &mut Attributes, jobs: impl Iterator<Item = &'j JobState> + Clone) {
    attributes.add("total_jobs", jobs.clone().count().to_string());
    let count = |state: State| jobs.clone().filter(|job| job.state == state).count();
    let counts: Vec<String> = STATES.iter().map(|(state, name)| format!("{name}:{}", count(*state))).collect();
    attributes.add("state_count", counts.join(" "));
}

/// What running jobs ask for together.
fn assigned<'j>(jobs: impl Iterator<Item = &'j JobState>) -> Resources {
    use muster_pbs_plan::resources::Value;
    let mut sums = Resources::default();
    for (name, number) in jobs.filter(|job| job.state == State::R).flat_map(|job| job.request.numbers()) {
        if !["mem", "vmem", "ncpus", "nodect"].contains(&name) {
            continue;
        }
        let old = sums.number(name).unwrap_or(0);
        sums.0.insert(name.to_owned(), Value::Number(old.saturating_add(number)));
    }
    sums
}
