//! Turns a planned step into the specification to launch.

use super::{PlannedPart, StepPlan, Streams, World, binding, binding_variables, gpus, prolog};
use crate::{
    attributes::{component, component_key},
    environment::{self, ComponentFacts, GPU_OPTIONS, JobFacts},
    hostlist,
    options::values,
    request::{Settings, Source, first_and_more_gpus},
    site_variables,
    size::{MEGABYTE, parse_megabytes},
};
use muster_schemas::{
    job::image_from,
    resources::IndexSet,
    steps::{ProcessManagement, StepGroup, StepPlace, StepProgram, StepSpec, TaskVariable},
};
use std::collections::BTreeMap;

/// The output of `-v` when a step is launched: its tasks on each node.
pub fn launch_lines(job: u64, step: u32, world: &World) -> Vec<String> {
    let of_node = |(place, node): (usize, &String)| {
        let ranks = world.tasks.iter().filter(|task| task.node == place).map(|task| task.rank);
        let ranks: IndexSet = ranks.collect();
        let list = if ranks.len() > 1 { format!("[{ranks}]") } else { ranks.to_string() };
        format!("srun: launching StepId={job}.{step} on host {node}, {} tasks: {list}", ranks.len())
    };
    world.nodes.iter().enumerate().map(of_node).collect()
}

/// What the tasks of a step take from the `srun` that launches it.
#[derive(Clone, Debug, Default)]
pub struct Launcher {
    /// Its working directory, absolute.
    pub directory: String,
    /// Its environment.
    pub environment: Vec<(String, String)>,
    /// Its file mode creation mask.
    pub umask: u32,
    /// How they find each other if they are an MPI program.
    pub process_management: Option<ProcessManagement>,
    /// The address of its host.
    pub address: String,
}

/// The nodes and CPUs of each component of a job, as `srun -v` tells them before it launches a step.
pub fn allocation_lines(job: &JobFacts) -> Vec<String> {
    let of_component = |component: &ComponentFacts| {
        let mut counts: Vec<(u64, u32)> = Vec::new();
        for cpus in &component.cpus {
            match counts.last_mut() {
                Some((known, times)) if known == cpus => *times += 1,
                _ => counts.push((*cpus, 1)),
            }
        }
        let counts: Vec<String> = counts.into_iter().map(|(cpus, times)| format!("{cpus}(x{times})")).collect();
        let (nodes, count) = (hostlist::compress(&component.nodes), component.nodes.len());
        format!("srun: jobid {}: nodes({count}):`{nodes}', cpu counts: {}", component.number, counts.join(","))
    };
    job.components.iter().map(of_component).collect()
}

/// The daemons that launchers of MPI libraries start by `srun`: those of Open MPI 4 and 5, and of MPICH and its relatives.
const DAEMONS: [&str; 4] = ["orted", "prted", "hydra_pmi_proxy", "hydra_bstrap_proxy"];

/// The variables that differ from task to task.
const OF_TASKS: [(&str, TaskVariable); 9] = [
    ("SLURM_PROCID", TaskVariable::Rank),
    ("SLURM_LOCALID", TaskVariable::LocalRank),
    ("SLURM_NODEID", TaskVariable::NodeIndex),
    ("SLURMD_NODENAME", TaskVariable::NodeName),
    ("SLURM_TASK_PID", TaskVariable::ProcessId),
    ("SLURM_GTIDS", TaskVariable::RanksOnNode),
    ("SLURM_CPUS_ON_NODE", TaskVariable::CoresOnNode),
    ("SLURM_STEP_ID", TaskVariable::StepsBefore),
    ("SLURM_STEPID", TaskVariable::StepsBefore),
];

impl StepPlan {
    /// The options of its first part, which apply if the whole step has one value.
    pub fn leader(&self) -> &Settings {
        &self.parts[0].settings
    }

    /// The specification to launch. `programs` are the commands of its ranks with `--multi-prog`; otherwise each part
    /// has its own.
    pub fn spec(
        &self,
        job: &JobFacts,
        launcher: &Launcher,
        streams: &Streams,
        programs: Option<&[Vec<String>]>,
    ) -> StepSpec {
        let leader = self.leader();
        let mut inherited = launcher.environment.clone();
        if job.components.len() > 1 {
            // The batch script's variables about its own component are wrong on another one (SL-E-07).
            inherited.retain(|(name, _)| !environment::is_asked_for(name));
        }
        let of_part = |part: &PlannedPart| match job.components.len() {
            ..=1 => exported(part, &inherited),
            _ => exported(part, &site_variables::of_component(part.part.component, &inherited)),
        };
        let mut environments: Vec<Variables> = self.parts.iter().map(of_part).collect();
        let mut environment = take_common(&mut environments);
        environment.extend([environment::mask(launcher.umask)]);
        for name in ["SLURM_LAUNCH_NODE_IPADDR", "SLURM_SRUN_COMM_HOST"] {
            environment.insert(name.to_owned(), launcher.address.clone());
        }
        let groups = environments.into_iter().enumerate().map(|(part, own)| {
            let group = self.group(part, own, job, programs);
            self.with_own(group, part, launcher, streams)
        });
        let variables = OF_TASKS.iter().map(|(name, variable)| ((*name).to_owned(), *variable));
        let mut spec = StepSpec {
            name: self.name(),
            working_directory: Some(directory(launcher, leader)),
            environment: Some(environment),
            umask: Some(launcher.umask),
            groups: groups.collect(),
            streams: streams.of_tasks.clone(),
            variables: variables.collect(),
            overlaps: leader.is_set("overlap") || self.is_of_daemons(),
            walltime_seconds: leader.value("time", crate::duration::TimeLimit::parse).and_then(|limit| limit.seconds()),
            kill_grace_seconds: None,
            warning: None,
            ends_on_failure: ends_on_failure(leader),
            attributes: self.parts.iter().filter_map(distribution).collect(),
            dialect: Some(crate::NAME.to_owned()),
            process_management: launcher.process_management,
        };
        prolog::put_around(&mut spec, self.parts.iter().map(|part| &part.settings));
        spec
    }

    /// A part with its own working directory and standard input, if they differ from those of the whole step (SL-O-01,
    /// SL-O-07).
    fn with_own(&self, group: StepGroup, part: usize, launcher: &Launcher, streams: &Streams) -> StepGroup {
        let of_all = directory(launcher, self.leader());
        let own = directory(launcher, &self.parts[part].settings);
        let input = streams.inputs.get(part).map(|input| input.of_tasks.clone());
        let image = self.parts[part].settings.text("container").filter(|image| !image.is_empty());
        let container = image.map(|image| image_from(&launcher.directory, image));
        // That of the job can be another one.
        let mut environment = group.environment.clone();
        match &container {
            Some(image) => drop(environment.insert("SLURM_CONTAINER".to_owned(), image.clone())),
            None => drop(environment.remove("SLURM_CONTAINER")),
        }
        StepGroup {
            container,
            environment,
            working_directory: Some(own).filter(|own| *own != of_all),
            stdin: input.filter(|own| *own != streams.of_tasks.stdin),
            ..group
        }
    }

    /// Its name: the requested one, else the program's.
    fn name(&self) -> String {
        let program = self.parts[0].part.words.first().map_or("", String::as_str);
        let own = program.rsplit('/').next().unwrap_or(program);
        self.leader().text("job-name").unwrap_or(own).to_owned()
    }

    /// Whether it is the way of a launcher of an MPI library to the other nodes (SL-W-07). Its daemons use no core to speak of,
    /// and launchers that run at the same time must not wait for each other, which none of them tells by `--overlap`.
    fn is_of_daemons(&self) -> bool {
        let is_daemon = |program: &String| program.rsplit('/').next().is_some_and(|name| DAEMONS.contains(&name));
        self.parts.iter().all(|part| part.part.words.first().is_some_and(is_daemon))
    }

    fn group(&self, part: usize, exported: Variables, job: &JobFacts, programs: Option<&[Vec<String>]>) -> StepGroup {
        let planned = &self.parts[part];
        let ranks: IndexSet = self.world.tasks.iter().filter(|task| task.part == part).map(|task| task.rank).collect();
        let mut on_node: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for task in self.world.tasks.iter().filter(|task| task.part == part) {
            on_node.entry(task.node).or_default().push(task.rank);
        }
        let places = self.world.part_nodes[part].iter().zip(&planned.cpus).filter_map(|(node, cpus)| {
            let ranks: IndexSet = on_node.remove(node)?.into_iter().collect();
            let cores = cores(&planned.settings, ranks.len(), *cpus);
            Some(StepPlace { node: self.world.nodes[*node].clone(), ranks, cores: Some(cores) })
        });
        let places: Vec<StepPlace> = places.collect();
        let wanted = exported.get(environment::PACK_NAMES).cloned();
        let variables =
            environment::with_pack_names(self.variables(job, ranks.first().unwrap_or(0)), wanted.as_deref());
        let programs = match programs {
            Some(programs) => by_command(&ranks, programs),
            None => vec![StepProgram { ranks: ranks.clone(), argv: planned.part.words.clone() }],
        };
        let (gpus, more_gpus) = first_and_more_gpus(gpus::wanted(&planned.settings, &places));
        StepGroup {
            component: planned.part.component,
            cpus_per_task: cpus_per_task(&planned.settings).unwrap_or(1),
            memory_bytes: memory_bytes(&planned.settings, &places),
            programs,
            environment: exported
                .into_iter()
                .chain(variables)
                .chain(binding_variables(&planned.settings))
                .chain(gpu_variables(&planned.settings))
                .chain(site_variables::variables(&planned.settings))
                .collect(),
            gpus,
            more_gpus,
            gpu_binding: planned.gpu_binding.clone(),
            places,
            binding: binding(&planned.settings),
            ..StepGroup::default()
        }
    }

    /// The variables that a task shares with its whole part.
    fn variables(&self, job: &JobFacts, rank: u32) -> Variables {
        let mut variables = environment::of_task(&self.facts(job, 0), rank);
        OF_TASKS.iter().for_each(|(name, _)| drop(variables.remove(*name)));
        variables
    }
}

/// The variables for what the command line of a part says about GPUs.
fn gpu_variables(settings: &Settings) -> impl Iterator<Item = (String, String)> {
    let asked = GPU_OPTIONS.iter().filter(|(option, _)| gpus::is_asked(settings, option));
    asked.filter_map(|(option, variable)| Some(((*variable).to_owned(), settings.text(option)?.to_owned())))
}

/// Variables by name.
type Variables = BTreeMap<String, String>;

/// The part of the environment of `srun` that a part gets (SL-O-01).
fn exported(part: &PlannedPart, inherited: &[(String, String)]) -> Variables {
    let mut variables = environment::of_job(part.settings.text("export"), inherited);
    environment::propagate(&mut variables, part.settings.text("propagate"));
    variables
}

/// The distribution of tasks that a part asks for, to be shown in lists.
fn distribution(planned: &PlannedPart) -> Option<(String, String)> {
    let text = planned.settings.text("distribution")?;
    Some((component_key(planned.part.component as usize, component::DISTRIBUTION), text.to_owned()))
}

/// Moves common variables out of all environments.
fn take_common(environments: &mut [Variables]) -> Variables {
    let Some((first, others)) = environments.split_first_mut() else { return Variables::new() };
    let is_common = |name: &String, value: &mut String| others.iter().all(|other| other.get(name) == Some(&*value));
    let common: Variables = first.extract_if(.., is_common).collect();
    others.iter_mut().for_each(|other| other.retain(|name, _| !common.contains_key(name)));
    common
}

fn directory(launcher: &Launcher, part: &Settings) -> String {
    match part.text("chdir").filter(|path| !path.is_empty()) {
        None => launcher.directory.clone(),
        Some(path) if path.starts_with('/') => path.to_owned(),
        Some(path) => format!("{}/{path}", launcher.directory.trim_end_matches('/')),
    }
}

fn cpus_per_task(settings: &Settings) -> Option<u32> {
    settings.value("cpus-per-task", values::count)
}

/// How many CPUs a part takes on a node: all those of the job, so that steps with default options share none; with
/// `--exact`, `--exclusive` or a number of CPUs per task only those of its tasks. `-O` takes no more than there are.
fn cores(settings: &Settings, tasks: u64, cpus: u64) -> u32 {
    let per_task = cpus_per_task(settings);
    let is_exact = per_task.is_some() || settings.is_set("exact") || settings.is_set("exclusive");
    let wanted = tasks.saturating_mul(u64::from(per_task.unwrap_or(1)));
    let taken = if is_exact { wanted.min(cpus) } else { cpus };
    u32::try_from(taken.max(1)).unwrap_or(u32::MAX)
}

/// The memory on each of its nodes that a part reserves from other steps. The job's variables are about the job's
/// memory, which its steps share.
fn memory_bytes(settings: &Settings, places: &[StepPlace]) -> Option<u64> {
    let megabytes = |option| {
        let is_asked = settings.source(option) == Some(Source::CommandLine);
        settings.value(option, parse_megabytes).filter(|megabytes| is_asked && *megabytes > 0)
    };
    let cores = places.iter().filter_map(|place| place.cores).min().unwrap_or(1);
    let by_cpu = megabytes("mem-per-cpu").map(|megabytes| megabytes.saturating_mul(u64::from(cores)));
    by_cpu.or_else(|| megabytes("mem")).map(|megabytes| megabytes.saturating_mul(MEGABYTE))
}

/// Whether the first failed task ends the others: `--kill-on-bad-exit` alone or with a number other than 0.
fn ends_on_failure(leader: &Settings) -> bool {
    leader.text("kill-on-bad-exit").is_some_and(|number| number.parse() != Ok(0u32))
}

/// Groups ranks by command.
fn by_command(ranks: &IndexSet, programs: &[Vec<String>]) -> Vec<StepProgram> {
    let mut by_command: BTreeMap<&[String], Vec<u32>> = BTreeMap::new();
    for rank in ranks.iter() {
        by_command.entry(&programs[rank as usize]).or_default().push(rank);
    }
    let program =
        |(argv, ranks): (&[String], Vec<u32>)| StepProgram { ranks: ranks.into_iter().collect(), argv: argv.to_vec() };
    by_command.into_iter().map(program).collect()
}

/// The command of each rank if `--bcast` copied a program to a place whose name has the node's name in it; `None` if
/// all nodes have it under the same name.
pub fn programs_by_node(plan: &StepPlan) -> Option<Vec<Vec<String>>> {
    let is_by_node = |part: &PlannedPart| {
        part.settings.is_set("bcast") && part.part.words.first().is_some_and(|program| program.contains("%N"))
    };
    if !plan.parts.iter().any(is_by_node) {
        return None;
    }
    let command = |task: &super::Place| {
        let part = &plan.parts[task.part];
        let mut words = part.part.words.clone();
        if let Some(program) = words.first_mut().filter(|_| is_by_node(part)) {
            *program = program.replace("%N", &plan.world.nodes[task.node]);
        }
        words
    };
    Some(plan.world.tasks.iter().map(command).collect())
}

/// The node of each rank of a step.
pub fn nodes_of_ranks(plan: &StepPlan) -> Vec<String> {
    plan.world.tasks.iter().map(|task| plan.world.nodes[task.node].clone()).collect()
}
