//! Turns sizing options into requests over the resource tree (SL-C-12).

use super::{
    Geometry, Settings,
    gpus::{self, Numbers},
};
use crate::{
    features::{self, Way},
    messages::{Refusal, Rejection},
    options::{
        Command,
        values::{self, Exclusive, NodeRange},
    },
    size::{MEGABYTE, parse_megabytes},
};
use muster_schemas::resources::{
    Alternative, Count, FewGroups, Gpus, Level, LevelCount, Memory, NodeFilter, Per, Request, Sharing,
};
use std::collections::BTreeMap;

/// The request of a component, with one way for each alternative.
pub(super) fn alternatives(
    settings: &Settings,
    offset: usize,
    walltime_seconds: Option<u64>,
    most_switch_wait_seconds: u64,
) -> Result<Vec<Alternative>, Refusal> {
    let licences = licences(settings, offset)?;
    let ways = ways(settings)?;
    let size = Size::of(settings)?;
    let smallest = size.on_fewest_nodes().filter(|_| settings.is_set("use-min-nodes"));
    let sizes = || smallest.iter().chain([&size]);
    let requests = sizes().flat_map(|size| ways.iter().map(move |way| size.requests(way)));
    let contiguous = settings.is_set("contiguous");
    let mut groups = settings.value("switches", values::switches).and_then(|(most, wait)| few_switches(most, wait));
    if let Some(few) = &mut groups {
        few.wait_seconds = few.wait_seconds.min(most_switch_wait_seconds);
    }
    // Parts of a size are counted in nodes.
    let alternative = |requests: Vec<Request>| {
        let scatter = requests.len() > 1;
        let (licences, groups) = (licences.clone(), groups.clone());
        Alternative { requests, walltime_seconds, licences, scatter, contiguous, groups, ..Alternative::default() }
    };
    requests.map(|requests| requests.map(alternative)).collect()
}

/// The longest wait for few switches that a job can ask for, in seconds: a year.
const LONGEST_WAIT_SECONDS: u64 = 365 * 86_400;

/// A wish for nodes on this many switches or fewer; `None` for 0. A job that does not say how long it waits for them waits as
/// long as it may.
pub fn few_switches(most: u32, wait_seconds: Option<u64>) -> Option<FewGroups> {
    let wait_seconds = wait_seconds.map_or(LONGEST_WAIT_SECONDS, |seconds| seconds.min(LONGEST_WAIT_SECONDS));
    (most > 0).then(|| FewGroups { property: features::SWITCH.to_owned(), most, wait_seconds })
}

fn rejected(rejection: Rejection) -> Refusal {
    Refusal::Rejected(rejection)
}

fn licences(settings: &Settings, offset: usize) -> Result<BTreeMap<String, u32>, Refusal> {
    let Some(text) = settings.text("licenses").filter(|text| !text.is_empty()) else { return Ok(BTreeMap::new()) };
    if offset > 0 {
        return Err(rejected(Rejection::LicenceNotOnLeader(u32::try_from(offset).unwrap_or(u32::MAX))));
    }
    values::licences(text).ok_or_else(|| rejected(Rejection::Licence))
}

fn ways(settings: &Settings) -> Result<Vec<Way>, Refusal> {
    let mut ways = match settings.text("constraint").filter(|text| !text.is_empty()) {
        None => vec![Way::default()],
        Some(text) => features::parse(text).ok_or_else(|| rejected(Rejection::Feature))?,
    };
    if let Some(least) = settings.value("mincpus", values::count) {
        ways.iter_mut().for_each(|way| way.every_node.push(features::with_cpus(least)));
    }
    if let Some(least) = Geometry::of(settings)?.sockets.filter(|least| *least > 1) {
        ways.iter_mut().for_each(|way| way.every_node.push(features::with_sockets(least)));
    }
    if let Some(least) = settings.value("tmp", parse_megabytes).filter(|least| *least > 0) {
        ways.iter_mut().for_each(|way| way.every_node.push(features::with_tmp_disk(least)));
    }
    Ok(ways)
}

fn hosts(settings: &Settings, option: &str) -> Result<Vec<String>, Refusal> {
    match settings.text(option).filter(|text| !text.is_empty()) {
        None => Ok(Vec::new()),
        Some(text) => values::hosts(text).ok_or_else(|| rejected(Rejection::NodeName)),
    }
}

/// The sizing options of a component.
#[derive(Clone)]
struct Size {
    nodes: Option<NodeRange>,
    tasks: Option<u32>,
    tasks_per_node: Option<u32>,
    cpus_per_task: u32,
    memory: Option<Memory>,
    /// Those of each model apart.
    gpus: Vec<Gpus>,
    named_nodes: Vec<String>,
    excluded_nodes: Vec<String>,
    sharing: Sharing,
}

impl Size {
    fn of(settings: &Settings) -> Result<Self, Refusal> {
        let asked_nodes = settings.value("nodes", NodeRange::parse);
        let mut named_nodes = hosts(settings, "nodelist")?;
        named_nodes.truncate(asked_nodes.map_or(usize::MAX, most_nodes));
        let tasks_per_node = settings.value("ntasks-per-node", values::count);
        let named = u32::try_from(named_nodes.len()).ok().filter(|count| *count > 0);
        let nodes = asked_nodes.or_else(|| named.map(|min| NodeRange { min, max: None }));
        let mut numbers = Numbers { nodes, tasks: settings.value("ntasks", values::count), tasks_per_node };
        let gpus = gpus::wanted(settings, &mut numbers)?;
        let Numbers { nodes, tasks: asked, tasks_per_node } = numbers;
        // Tasks per node without a number of tasks or nodes means one node.
        let is_one_node = tasks_per_node.is_some() && asked.is_none();
        let nodes = nodes.or_else(|| is_one_node.then_some(NodeRange { min: 1, max: None }));
        // With overcommit each node gives one CPU, however many tasks run there.
        let overcommit = settings.is_set("overcommit");
        let by_gpus = tasks_of_gpus(settings, &gpus);
        let asked = asked.or(by_gpus).filter(|_| !overcommit);
        let nodes = if overcommit { nodes.or(Some(NodeRange { min: 1, max: None })) } else { nodes };
        let on_each = tasks_per_node
            .filter(|_| !overcommit)
            .map(|per_node| per_node.saturating_mul(nodes.map_or(1, |nodes| nodes.min)));
        let tasks = asked.or(on_each);
        let nodes = nodes.map(|nodes| no_more_than(nodes, tasks));
        let cpus_per_task = settings.value("cpus-per-task", values::count);
        let cpus_per_gpu = settings.value("cpus-per-gpu", values::count);
        Ok(Self {
            cpus_per_task: cpus_per_task.or(for_gpus(cpus_per_gpu, &gpus, tasks)).unwrap_or(1),
            tasks_per_node: tasks_per_node.filter(|_| !overcommit),
            memory: memory(settings),
            sharing: sharing(settings),
            excluded_nodes: hosts(settings, "exclude")?,
            nodes,
            tasks,
            gpus,
            named_nodes,
        })
    }

    /// The same on the fewest allowed nodes, if more are allowed too.
    fn on_fewest_nodes(&self) -> Option<Self> {
        let NodeRange { min, max } = self.nodes.filter(|nodes| nodes.max.is_some_and(|max| max > nodes.min))?;
        Some(Self { nodes: max.map(|_| NodeRange { min, max: Some(min) }), ..self.clone() })
    }

    /// The requests of one way: one, unless some nodes must differ from the rest.
    fn requests(&self, way: &Way) -> Result<Vec<Request>, Refusal> {
        let counted: u32 = way.some_nodes.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count));
        let least = self.nodes.map_or(0, |nodes| nodes.min);
        let named = u32::try_from(self.named_nodes.len()).unwrap_or(u32::MAX);
        // If fewer nodes are named than wanted, they form a separate part: the rest may be any others.
        let named_apart = named > 0 && named < least && counted == 0;
        if counted == 0 && !named_apart {
            return Ok(vec![Request { path: self.path(), ..self.request(way, None, self.tasks) }]);
        }
        let mut parts: Vec<(u32, Option<&NodeFilter>, bool)> = Vec::new();
        parts.extend(way.some_nodes.iter().map(|(filter, count)| (*count, Some(filter), false)));
        if named_apart {
            parts.push((named, None, true));
        }
        let rest = least.saturating_sub(if named_apart { named } else { counted });
        if rest > 0 {
            parts.push((rest, None, false));
        }
        let total: u32 = parts.iter().fold(0, |sum, (count, ..)| sum.saturating_add(*count));
        let mut tasks_left = self.tasks.map(|tasks| tasks.max(total));
        let mut nodes_left = total;
        let mut requests = Vec::with_capacity(parts.len());
        for (count, filter, with_names) in parts {
            let tasks = tasks_left.map(|tasks| share(tasks, count, nodes_left));
            tasks_left = tasks_left.zip(tasks).map(|(left, taken)| left - taken);
            nodes_left -= count;
            let mut request = self.request(way, filter, tasks);
            request.path = vec![LevelCount { level: Level::Node, count: Count::exactly(count) }];
            if named_apart && !with_names {
                request.excluded_nodes.append(&mut request.nodes);
            }
            requests.push(request);
        }
        Ok(requests)
    }

    fn path(&self) -> Vec<LevelCount> {
        let count = |nodes: NodeRange| Count::Range { min: nodes.min, max: nodes.max.unwrap_or(nodes.min) };
        self.nodes.map(|nodes| LevelCount { level: Level::Node, count: count(nodes) }).into_iter().collect()
    }

    fn request(&self, way: &Way, some: Option<&NodeFilter>, tasks: Option<u32>) -> Request {
        let filters: Vec<NodeFilter> = way.filter().into_iter().chain(some.cloned()).collect();
        let filter = match filters.len() {
            0 | 1 => filters.into_iter().next(),
            _ => Some(NodeFilter::All(filters)),
        };
        let (gpus, more_gpus) = gpus::first_and_more(self.gpus.clone());
        Request {
            path: Vec::new(),
            tasks,
            tasks_per_node: self.tasks_per_node,
            cpus_per_task: self.cpus_per_task,
            memory: self.memory,
            gpus,
            more_gpus,
            filter,
            nodes: self.named_nodes.clone(),
            excluded_nodes: self.excluded_nodes.clone(),
            sharing: self.sharing,
            ..Request::default()
        }
    }
}

/// Limits nodes so that each has at least one task.
fn no_more_than(nodes: NodeRange, tasks: Option<u32>) -> NodeRange {
    let most = tasks.unwrap_or(u32::MAX);
    NodeRange { min: nodes.min.min(most), max: nodes.max.map(|max| max.min(most)) }
}

/// Warnings about options without effect, and about a component that asks for more nodes than tasks, or names more
/// nodes than it asks for: it gets a node for each task, and the first of the nodes.
pub fn warnings(command: Command, settings: &Settings) -> Vec<String> {
    let mut lines = without_effect(command, settings);
    let Some(nodes) = settings.value("nodes", NodeRange::parse) else { return lines };
    if let Some(tasks) = settings.value("ntasks", values::count).filter(|tasks| *tasks < nodes.min) {
        let asked = nodes.min;
        lines.push(format!(
            "{command}: Warning: can't run {tasks} processes on {asked} nodes, setting nnodes to {tasks}"
        ));
    }
    let (named, most) = (settings.value("nodelist", values::hosts).map_or(0, |names| names.len()), most_nodes(nodes));
    if named > most {
        lines.push(format!(
            "{command}: error: Required nodelist includes more nodes than permitted by max-node count ({named} > {most}). \
             Eliminating nodes from the nodelist."
        ));
    }
    lines
}

/// Options that would change where, how long or how a job or a step runs, but that the model does not support.
const WITHOUT_EFFECT: [&str; 24] = [
    "accel-bind",
    "batch",
    "cluster-constraint",
    "compress",
    "container-id",
    "core-spec",
    "cores-per-socket",
    "cpu-freq",
    "debugger-test",
    "delay-boot",
    "gpu-freq",
    "gres-flags",
    "no-kill",
    "prefer",
    "reboot",
    "resv-ports",
    "segment",
    "send-libs",
    "spread-job",
    "thread-spec",
    "tres-bind",
    "tres-per-task",
    "wait-all-nodes",
    "x11",
];

/// Warnings about options without effect.
pub fn without_effect(command: Command, settings: &Settings) -> Vec<String> {
    let says = |option: &str, word: &str| settings.text(option).is_some_and(|text| text.eq_ignore_ascii_case(word));
    let given = WITHOUT_EFFECT.into_iter().filter(|option| match *option {
        "no-kill" => settings.is_set(option) && !says(option, "off"),
        // Cores and GPUs are not bound to each other in any case.
        "gres-flags" => settings.is_set(option) && !says(option, "disable-binding"),
        // Nothing is copied beside the program, and all cores are for the job, in any case.
        "compress" => settings.is_set(option) && !says(option, "none"),
        "send-libs" => settings.is_set(option) && !says(option, "no"),
        "core-spec" | "thread-spec" => settings.is_set(option) && !says(option, "0"),
        // Jobs begin when all of their nodes are up.
        "wait-all-nodes" => settings.is_set(option) && !says(option, "1"),
        option => settings.is_set(option),
    });
    let mut lines: Vec<String> = given
        .map(|option| format!("{command}: warning: --{option} is kept and shown, but has no effect here"))
        .collect();
    let first_word = settings.text("gpu-bind").and_then(|text| text.split(',').next());
    if matches!(first_word, Some("verbose" | "v")) {
        lines.push(format!("{command}: warning: verbose of --gpu-bind is kept and shown, but has no effect here"));
    }
    let has_cores = || Geometry::of(settings).is_ok_and(|geometry| geometry.cores.is_some());
    if settings.is_set("extra-node-info") && !settings.is_set("cores-per-socket") && has_cores() {
        let what = "the number of cores in --extra-node-info";
        lines.push(format!("{command}: warning: {what} is kept and shown, but has no effect here"));
    }
    lines
}

fn most_nodes(nodes: NodeRange) -> usize {
    nodes.max.unwrap_or(nodes.min) as usize
}

/// The share of tasks that runs on `count` of all the nodes, rounded up.
fn share(tasks: u32, count: u32, nodes: u32) -> u32 {
    let share = (u64::from(tasks) * u64::from(count)).div_ceil(u64::from(nodes.max(1)));
    u32::try_from(share).unwrap_or(u32::MAX).min(tasks)
}

fn memory(settings: &Settings) -> Option<Memory> {
    let per = |option, per| {
        let megabytes = settings.value(option, parse_megabytes).filter(|megabytes| *megabytes > 0)?;
        Some(Memory { bytes: megabytes.saturating_mul(MEGABYTE), per })
    };
    per("mem-per-cpu", Per::Core).or_else(|| per("mem-per-gpu", Per::Gpu)).or_else(|| per("mem", Per::Node))
}

fn sharing(settings: &Settings) -> Sharing {
    // All memory of the nodes, which the model only gives with whole nodes.
    if settings.value("mem", parse_megabytes) == Some(0) {
        return Sharing::WholeNodes;
    }
    match settings.value("exclusive", Exclusive::parse) {
        Some(Exclusive::Nodes | Exclusive::Topology) => Sharing::WholeNodes,
        Some(Exclusive::User | Exclusive::Label) | None => Sharing::Shared,
    }
}

/// The tasks that follow from those for each of a number of GPUs.
fn tasks_of_gpus(settings: &Settings, gpus: &[Gpus]) -> Option<u32> {
    let of_job = gpus.iter().filter(|gpus| gpus.per == Per::Request).map(|gpus| gpus.count);
    settings.value("ntasks-per-gpu", values::count)?.checked_mul(of_job.reduce(u32::saturating_add)?)
}

/// The CPUs for each task that follow from those for each GPU.
fn for_gpus(cpus_per_gpu: Option<u32>, gpus: &[Gpus], tasks: Option<u32>) -> Option<u32> {
    let count = gpus.iter().map(|gpus| gpus.count).reduce(u32::saturating_add)?;
    let cpus = cpus_per_gpu?.checked_mul(count)?;
    match gpus.iter().all(|gpus| gpus.per == Per::Task) {
        true => Some(cpus),
        false => Some(cpus.div_ceil(tasks.unwrap_or(1).max(1))),
    }
}
