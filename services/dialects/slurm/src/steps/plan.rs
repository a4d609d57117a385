//! Plans a step from the command line of `srun` and its job.

use super::{
    GroupWish, NodeWish, Part, Room, StepError, World, arbitrary, distribute, gpus, group_size, on_fewer_nodes, parts,
    pick_nodes, step_size,
};
use crate::{
    environment::{ComponentFacts, JobFacts, StepFacts, StepPart},
    hostlist,
    messages::{ExitStatuses, Refusal},
    moment::Now,
    options::{Command, CommandLine, Given, values},
    request::{self, Settings, StepTasks, step_parts},
    select::SchedulerParameters,
};
use muster_schemas::steps::GpuBinding;

/// A part of a step with everything that belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedPart {
    /// Its component, group and program.
    pub part: Part,
    /// Its options.
    pub settings: Settings,
    /// Its nodes.
    pub nodes: Vec<String>,
    /// The CPUs that it may use on each of them.
    pub cpus: Vec<u64>,
    /// Which of the step's GPUs each of its tasks sees.
    pub gpu_binding: Option<GpuBinding>,
}

/// A step that can be started.
#[derive(Clone, Debug, PartialEq)]
pub struct StepPlan {
    /// Its parts, in the order of their ranks.
    pub parts: Vec<PlannedPart>,
    /// Its tasks.
    pub world: World,
    /// Lines for standard error, which stop nothing.
    pub warnings: Vec<String>,
}

impl StepPlan {
    /// The facts for the variables of the step's tasks.
    pub fn facts<'a>(&'a self, job: &'a JobFacts, step: u32) -> StepFacts<'a> {
        let part = |planned: &PlannedPart| StepPart {
            component: planned.part.component,
            cpus_per_task: planned.settings.value("cpus-per-task", values::count),
            distribution: planned.settings.text("distribution").map(str::to_owned),
            cpus: planned.cpus.clone(),
        };
        StepFacts { job, step, parts: self.parts.iter().map(part).collect(), world: &self.world }
    }
}

/// Why a step cannot start. Nothing was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// Its options are wrong.
    Options(Refusal),
    /// Its job cannot run it.
    Step(StepError),
}

impl PlanError {
    /// The lines for standard error.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Options(refusal) => refusal.lines(Command::Srun),
            Self::Step(error) => vec![error.to_string()],
        }
    }

    /// The exit status, unless variables choose another (SL-E-11).
    pub fn exit_status(&self, chosen: ExitStatuses) -> u8 {
        match self {
            Self::Options(refusal) => refusal.exit_status(chosen),
            Self::Step(_) => chosen.error.unwrap_or(1),
        }
    }
}

impl From<Refusal> for PlanError {
    fn from(refusal: Refusal) -> Self {
        Self::Options(refusal)
    }
}

impl From<StepError> for PlanError {
    fn from(error: StepError) -> Self {
        Self::Step(error)
    }
}

/// The most tasks of a step.
const MAX_TASKS: u64 = 1_000_000;

/// Plans the components, nodes and CPUs of a step's tasks on the resources of its job, regardless of what other steps
/// use. `environment` gives the default options for a component, `site` the rules for components of steps (SL-R-06,
/// SL-R-11).
///
/// # Errors
/// Why the step cannot start.
pub fn plan(
    job: &JobFacts,
    command_line: &CommandLine,
    environment: impl Fn(u32) -> Vec<Given>,
    site: SchedulerParameters,
    now: &Now,
) -> Result<StepPlan, PlanError> {
    let number = job.components.first().map_or(0, |leader| leader.number);
    let groups: Vec<GroupWish<'_>> = command_line.groups.iter().map(GroupWish::of).collect();
    let count = u32::try_from(job.components.len()).unwrap_or(u32::MAX);
    let parts = parts(&groups, count, site)?;
    // Groups on one component divide its nodes among them (SL-R-17).
    let is_split = |part: &Part| parts.iter().filter(|other| other.component == part.component).count() > 1;
    let settings = step_parts(command_line, &parts, environment, now)?;
    let mut warnings = Vec::new();
    let mut sizes = Vec::with_capacity(parts.len());
    let mut of_nodes = Vec::with_capacity(parts.len());
    for (part, settings) in parts.iter().zip(&settings) {
        let component = &job.components[part.component as usize];
        let (nodes, tasks) = match is_split(part) {
            true => group_size(settings, component)?,
            false => step_size(settings, component)?,
        };
        let of_gpus = tasks_of_gpus(settings, number)?;
        let on_nodes =
            of_gpus.per_node.map(|per_node| per_node.saturating_mul(u32::try_from(nodes).unwrap_or(u32::MAX)));
        let is_given = settings.of_command_line().is_set("ntasks");
        let tasks = of_gpus.tasks.or(on_nodes.filter(|_| !is_given)).unwrap_or(tasks);
        let (nodes, warning) = on_fewer_nodes(nodes, tasks);
        // Only an explicit number is worth a warning.
        warnings.extend(warning.filter(|_| settings.is_set("nodes")));
        if let Some(per_node) = tasks_per_node(settings).filter(|per_node| !fits(*per_node, nodes, tasks)) {
            warnings.push(format!(
                "srun: Warning: can't honor --ntasks-per-node set to {per_node} which doesn't match the requested tasks \
                 {tasks} with the maximum number of requested nodes {nodes}. Ignoring --ntasks-per-node."
            ));
        }
        sizes.push((nodes, tasks));
        of_nodes.push(tasks_per_node(settings).or(of_gpus.per_node));
    }
    // No job can have this many, so do not lay them out first.
    if sizes.iter().map(|(_, tasks)| u64::from(*tasks)).sum::<u64>() > MAX_TASKS {
        return Err(StepError::MoreProcessors { job: number }.into());
    }
    let nodes = nodes_of(job, &parts, &settings, &sizes, number)?;
    let mut planned = Vec::with_capacity(parts.len());
    let mut layouts = Vec::with_capacity(parts.len());
    let sizes = sizes.into_iter().zip(of_nodes);
    for (((part, settings), nodes), ((_, tasks), per_node)) in parts.into_iter().zip(settings).zip(nodes).zip(sizes) {
        let cpus = cpus_of(&job.components[part.component as usize], &nodes);
        let tasks = layout(&settings, &nodes, &cpus, (tasks, per_node), number)?;
        // A node without room for a task is not used.
        let used: Vec<usize> = (0..nodes.len()).filter(|node| !tasks[*node].is_empty()).collect();
        let nodes: Vec<String> = used.iter().map(|node| nodes[*node].clone()).collect();
        let cpus = used.iter().map(|node| cpus[*node]).collect();
        layouts.push((nodes.clone(), used.iter().map(|node| tasks[*node].clone()).collect()));
        let gpu_binding = gpus::binding(&settings)?;
        planned.push(PlannedPart { part, settings, nodes, cpus, gpu_binding });
    }
    Ok(StepPlan { parts: planned, world: World::join(&layouts), warnings })
}

/// The nodes of each part. Parts on one component use different ones.
fn nodes_of(
    job: &JobFacts,
    parts: &[Part],
    settings: &[Settings],
    sizes: &[(usize, u32)],
    number: u64,
) -> Result<Vec<Vec<String>>, StepError> {
    let mut picked = Vec::with_capacity(parts.len());
    let same_component = |at: usize| {
        let component = parts[at].component;
        parts[at..].iter().take_while(|part| part.component == component).count()
    };
    while picked.len() < parts.len() {
        let first = picked.len();
        let together = first..first + same_component(first);
        let nodes = &job.components[parts[first].component as usize].nodes;
        let wishes: Result<Vec<NodeWish>, StepError> =
            together.map(|at| wish(&settings[at], nodes, sizes[at].0, number)).collect();
        picked.extend(pick_nodes(nodes, &wishes?, number)?);
    }
    Ok(picked)
}

fn wish(settings: &Settings, nodes: &[String], count: usize, job: u64) -> Result<NodeWish, StepError> {
    let names = |option: &str| match settings.text(option) {
        None => Ok(Vec::new()),
        Some(text) => values::hosts(text).ok_or(StepError::ForeignNode { job }),
    };
    let (named, excluded) = (names("nodelist")?, names("exclude")?);
    let relative = settings.value("relative", values::number).unwrap_or(0) as usize;
    let asked = settings.is_set("nodes");
    let mut count = if named.is_empty() || asked { count.max(named.len()) } else { named.len() };
    if !settings.of_command_line().is_set("nodes") {
        // Without an explicit number, use no more nodes than are allowed.
        let free = nodes.iter().skip(relative).filter(|node| !excluded.contains(node)).count();
        count = count.min(free.max(1)).max(named.len());
    }
    Ok(NodeWish { count, named, excluded, relative })
}

fn cpus_of(component: &ComponentFacts, nodes: &[String]) -> Vec<u64> {
    let of = |node: &String| component.nodes.iter().position(|known| known == node);
    nodes.iter().map(|node| of(node).and_then(|place| component.cpus.get(place)).copied().unwrap_or(0)).collect()
}

/// The tasks of a part that follow from its GPUs, if its options about GPUs agree with each other and with its other options.
/// What variables say is about the job.
fn tasks_of_gpus(settings: &Settings, job: u64) -> Result<StepTasks, PlanError> {
    request::check_gpus(settings)?;
    let own = settings.of_command_line();
    let nodes = own.value("nodes", values::NodeRange::parse);
    Ok(StepTasks::of(&own, nodes).ok_or(StepError::Gpus { job })?)
}

fn tasks_per_node(settings: &Settings) -> Option<u32> {
    settings.value("ntasks-per-node", values::count)
}

/// Whether the tasks fit on the nodes with at most `per_node` on each.
fn fits(per_node: u32, nodes: usize, tasks: u32) -> bool {
    u64::from(per_node) * nodes as u64 >= u64::from(tasks)
}

/// The tasks on each node of a part, of which each has some number at most.
fn layout(
    settings: &Settings,
    nodes: &[String],
    cpus: &[u64],
    (tasks, per_node): (u32, Option<u32>),
    job: u64,
) -> Result<Vec<Vec<u32>>, StepError> {
    let cpus_per_task = settings.value("cpus-per-task", values::count).unwrap_or(1);
    let most = per_node.filter(|per_node| fits(*per_node, nodes.len(), tasks)).unwrap_or(u32::MAX);
    let places = |cpus: u64| u32::try_from(cpus / u64::from(cpus_per_task)).unwrap_or(u32::MAX).min(most);
    let room = |(node, cpus): (&String, &u64)| Room { node: node.clone(), places: places(*cpus) };
    let rooms: Vec<Room> = nodes.iter().zip(cpus).map(room).collect();
    let distribution = settings.value("distribution", values::Distribution::parse).unwrap_or_default();
    let overcommit = settings.is_set("overcommit");
    let own = settings.of_command_line();
    let hosts = settings.text("nodelist").filter(|_| distribution == values::Distribution::Arbitrary);
    let Some(hosts) = hosts.and_then(|text| hostlist::expand(text).ok()) else {
        // An option from the job's submission is no reason to refuse its steps.
        let is_asked = own.value("distribution", values::Distribution::parse) == Some(values::Distribution::Arbitrary);
        return if is_asked {
            Err(StepError::NoHosts)
        } else {
            distribute(distribution, &rooms, tasks, overcommit, job)
        };
    };
    let asked = own.value("ntasks", values::count);
    if let Some(asked) = asked.filter(|asked| *asked as usize != hosts.len()) {
        return Err(StepError::TasksOfHosts { asked, listed: hosts.len() });
    }
    arbitrary(&rooms, &hosts, overcommit, job)
}
