//! From an order to processes.

use super::{
    binding::Bound,
    children::{end_children, reap_silently},
    container::{self, Container, TaskInContainer},
    execution::ProgramPath,
    files::{Files, umask_of},
    fork::{Forked, as_user, fork_into},
    management::{Library, Management},
    programs::{added_by, command_elsewhere, command_program, enter_directory, script_program},
    step,
    streams::Streams,
    task::{Birth, Connections, End, Ends, Task, Tasks, become_task},
};
use crate::{
    containment::{Containment, DeviceNumber},
    environment::{self, OwnValue},
    host::Host,
    site::Inside,
    spool::{
        DIALECT_NODE_FILE, DIALECT_PROPERTY_FILE, NODE_FILE, RunFolder, SCRIPT, SpooledOrder, TEMPORARY, give,
        overwrite,
    },
};
use muster_dialect::Dialect;
use muster_schemas::{
    job::Program,
    node::LaunchOrder,
    steps::{StepInput, StepTasks},
    time::Timestamp,
    unfit::UnfitCause,
};
use nix::{
    fcntl::OFlag,
    sys::stat::{Mode, umask},
    unistd::pipe2,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{CStr, CString, OsStr},
    fs::{self, File},
    io,
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt},
    path::Path,
    rc::Rc,
};

/// The number of tasks started before the output of the others is read, which also closes the pipes of those that have
/// ended: each task inherits, and has to close, all pipes that are open at its start.
const STARTED_AT_A_TIME: usize = 4;

/// The processes of a run on this node, just started.
pub struct Launched {
    /// Their containment; a step shares that of its run.
    pub containment: Containment,
    /// How many processes had been killed there for lack of memory before these started: a step is not the first in its
    /// run.
    pub oom_kills_before: u64,
    /// The process and rank of each task.
    pub tasks: Vec<(i32, u32)>,
    /// Where tasks report why they could not become their program. Its end means that all others could.
    pub failures: File,
    /// Just before the first was started.
    pub started: Timestamp,
    /// What connects them to others.
    pub connections: Connections,
    /// The standard error of its script.
    pub script_errors: Option<File>,
    /// The standard error of the first task of a step, if it is a file.
    pub task_errors: Option<File>,
}

/// Why nothing was launched, for people.
#[derive(Debug)]
pub enum NotLaunched {
    /// Because of the job.
    OfJob(String),
    /// Because of the node, which is unfit for other jobs too (OAR-X-06).
    OfNode(String),
}

impl From<String> for NotLaunched {
    fn from(why: String) -> Self {
        Self::OfJob(why)
    }
}

/// Starts the tasks of an order on this node, or on the host emulated for it, with the additions of their dialect.
///
/// # Errors
/// Why it failed; nothing is left of it.
pub fn launch(
    spooled: &SpooledOrder,
    folder: &RunFolder,
    dialect: Option<&dyn Dialect>,
    host: Option<&Host>,
) -> Result<Launched, NotLaunched> {
    let order = &spooled.order;
    if order.node_index as usize >= order.nodes.len() {
        return Err(format!("the order is for node {} of {}", order.node_index, order.nodes.len()).into());
    }
    make_job_files(spooled, folder, dialect)?;
    umask(Mode::from_bits_truncate(umask_of(order)));
    let mut connections =
        Connections { streams: open_streams(spooled, folder)?, management: open_management(spooled, folder)? };
    let tasks = as_user(&spooled.identity, || match &spooled.tasks {
        Some(tasks) => {
            let tasks = step::prepare(spooled, tasks, folder, &mut connections.streams, dialect)?;
            if let Some(management) = &mut connections.management {
                management.watch(spooled, needed_by(&tasks));
            }
            Ok(tasks)
        }
        None => prepare(spooled, folder, dialect),
    })?;
    let containment = contain(spooled)?;
    let script = tasks.each.first().filter(|_| script_of(order).is_some());
    // The script runs without it as well.
    let script_errors = script.and_then(|script| script.ends.stderr.as_ref()?.file()?.try_clone().ok());
    let first = tasks.each.first().filter(|_| connections.management.is_some());
    let task_errors = first.and_then(|task| task.errors()?.try_clone().ok());
    let launched = start_isolated(spooled, containment, tasks, host, &mut connections)?;
    Ok(Launched { connections, script_errors, task_errors, ..launched })
}

/// The streams of a step whose tasks have a client.
fn open_streams(spooled: &SpooledOrder, folder: &RunFolder) -> Result<Option<Streams>, String> {
    let has_client = |tasks: &&StepTasks| {
        tasks.streams.has_output() || matches!(tasks.streams.stdin, StepInput::AllTasks | StepInput::Task(_))
    };
    let streams = spooled.tasks.as_ref().filter(has_client).map(|_| Streams::new(folder, &spooled.identity));
    streams.transpose().map_err(|error| format!("the output of the step cannot be kept in the spool: {error}"))
}

/// The process management of a step whose tasks are a parallel program.
fn open_management(spooled: &SpooledOrder, folder: &RunFolder) -> Result<Option<Management>, String> {
    let group = spooled.tasks.as_ref().and_then(|tasks| tasks.process_group.as_ref());
    let management = group.map(|group| Management::new(spooled, group, folder)).transpose();
    management.map_err(|error| format!("the process management of the step cannot be made: {error}"))
}

/// The libraries that the programs of tasks need, as far as their files say it.
fn needed_by(tasks: &Tasks) -> BTreeMap<u32, Library> {
    let mut known: BTreeMap<&CStr, Option<Library>> = BTreeMap::new();
    let of_task = tasks.each.iter().filter_map(|task| {
        let path = task.program.path();
        let of_file = || Library::of_file(Path::new(OsStr::from_bytes(path.to_bytes())));
        Some((task.rank, known.entry(path).or_insert_with(of_file).clone()?))
    });
    of_task.collect()
}

/// The files that the job's processes see: node file, temporary folder, script.
fn make_job_files(spooled: &SpooledOrder, folder: &RunFolder, dialect: Option<&dyn Dialect>) -> Result<(), String> {
    let make = || -> io::Result<()> {
        let of_dialect = dialect.and_then(|dialect| dialect.node_file(&spooled.order)).map(|(_, text)| text);
        let properties = dialect.and_then(|dialect| dialect.property_file(&spooled.order));
        if properties.is_none() && dialect.is_some_and(|dialect| dialect.property_file_variable().is_some()) {
            // That of an earlier run describes other resources.
            removed(&folder.file(DIALECT_PROPERTY_FILE))?;
        }
        let files = [
            (NODE_FILE, Some(environment::node_file(&spooled.order))),
            (DIALECT_NODE_FILE, of_dialect),
            (DIALECT_PROPERTY_FILE, properties),
        ];
        for (name, text) in files.into_iter().filter_map(|(name, text)| Some((name, text?))) {
            let file = folder.file(name);
            overwrite(&file, 0o600, text.as_bytes())?;
            give(&file, &spooled.identity)?;
        }
        // An earlier run may have changed its mode.
        fs::set_permissions(folder.file(TEMPORARY), fs::Permissions::from_mode(0o700))?;
        if let Some((text, _)) = script_of(&spooled.order) {
            let script = folder.file(SCRIPT);
            overwrite(&script, 0o700, text.as_bytes())?;
            give(&script, &spooled.identity)?;
        }
        match spooled.order.launch.container {
            Some(_) => container::make_folder(spooled, folder),
            None => Ok(()),
        }
    };
    make().map_err(|error| format!("the run's files cannot be made in {}: {error}", folder.path().display()))
}

/// Removes a file that may not be there.
fn removed(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The script and its arguments, if it runs on this node: the first of its component.
fn script_of(order: &LaunchOrder) -> Option<(&str, &[String])> {
    let Program::Script { text, args } = &order.launch.program else { return None };
    let own = order.nodes.get(order.node_index as usize)?.component;
    let lead = order.nodes.iter().position(|node| node.component == own)?;
    (lead == order.node_index as usize).then_some((text, args))
}

/// Whether a run has no process on this node.
pub fn holds_only(order: &LaunchOrder) -> bool {
    match order.launch.program {
        Program::None => true,
        Program::Script { .. } => script_of(order).is_none(),
        Program::Tasks { .. } => false,
    }
}

/// Opens everything that the tasks need, as their user.
fn prepare(spooled: &SpooledOrder, folder: &RunFolder, dialect: Option<&dyn Dialect>) -> Result<Tasks, String> {
    let order = &spooled.order;
    let directory = enter_directory(&order.working_directory)?;
    let mut variables = environment::common(spooled, folder.path(), added_by(dialect, spooled, folder));
    if dialect.is_none_or(|dialect| !dialect.has_launcher()) {
        // A dialect's file has a line for each place that a process of a parallel program can have.
        let nodes = dialect.and_then(|dialect| dialect.node_file(order)).map_or("MUSTER_NODEFILE", |(name, _)| name);
        environment::add_launcher(&mut variables, &folder.rsh(), nodes);
    }
    let tasks = order.nodes[order.node_index as usize].tasks;
    let (program, count, container) = match (&order.launch.program, script_of(order)) {
        (_, Some((_, args))) => (script_program(&folder.file(SCRIPT), args)?, 1, Container::open(spooled, folder)?),
        (Program::Tasks { argv }, _) => match Container::open(spooled, folder)? {
            None => (command_program(argv, variables.get("PATH").map_or("", String::as_str))?, tasks, None),
            container => (command_elsewhere(argv)?, tasks, container),
        },
        // It only holds its place.
        _ => (ProgramPath::new(CString::default(), Vec::new()), 0, None),
    };
    let program = Rc::new(program);
    let mut files = Files::of(order);
    let each = (0..count).map(|local_rank| {
        let rank = order.first_rank + local_rank;
        let (stdout, stderr) = files.outputs(rank)?;
        Ok(Task {
            rank,
            local_rank,
            program: program.clone(),
            ends: Ends {
                stdin: End::File(files.input(rank)?),
                stdout: End::File(stdout),
                stderr: Some(End::File(stderr)),
            },
            has_terminal: false,
            bound: Bound::default(),
        })
    });
    Ok(Tasks::of(order, directory, &variables, each, dialect)?.within(container))
}

/// The containment of the run; a step joins its run's.
fn contain(spooled: &SpooledOrder) -> Result<Containment, NotLaunched> {
    let order = &spooled.order;
    if order.step.0 == 0 {
        let denied = denied_devices(spooled);
        return Containment::create(&spooled.hierarchies, order.part, order.memory_bytes, &spooled.cpus, &denied)
            .map_err(|error| NotLaunched::OfNode(UnfitCause::Containment.because(error)));
    }
    let containment = Containment::existing(&spooled.hierarchies, order.part);
    match containment.exists() {
        true => Ok(containment),
        false => Err(format!("run {} is not active on this node", order.part).into()),
    }
}

/// Starts the tasks inside the group of the job, if the site makes one (OAR-X-05); a step joins that of its run.
fn start_isolated(
    spooled: &SpooledOrder,
    containment: Containment,
    tasks: Tasks,
    host: Option<&Host>,
    connections: &mut Connections,
) -> Result<Launched, NotLaunched> {
    let (order, owner) = (&spooled.order, &spooled.identity);
    let Some(site) = spooled.site.as_ref().filter(|site| site.isolation.is_some()) else {
        return Ok(start(spooled, containment, tasks, host, connections)?);
    };
    let is_step = order.step.0 != 0;
    let made = if is_step { Ok(()) } else { site.make_group(order, owner, &spooled.cpus) };
    let inside = made.and_then(|()| site.enter_group(order, owner)).map_err(cannot_be_contained);
    let launched = inside.and_then(|inside| {
        let launched = start(spooled, containment, tasks, host, connections);
        let left = inside.map_or(Ok(()), Inside::leave);
        match (launched, left) {
            (Ok(launched), Ok(())) => Ok(launched),
            (Err(why), _) => Err(why.into()),
            (Ok(_), Err(why)) => {
                end_children();
                Err(cannot_be_contained(why))
            }
        }
    });
    if launched.is_err() && !is_step {
        // The reason counts: the node takes no other job, or the next one makes a group of its own.
        drop(site.remove_group(order, owner));
    }
    launched
}

fn cannot_be_contained(why: String) -> NotLaunched {
    NotLaunched::OfNode(UnfitCause::Containment.because(why))
}

/// The devices of the node's other GPUs.
fn denied_devices(spooled: &SpooledOrder) -> Vec<DeviceNumber> {
    let numbers = |own: bool| {
        let gpus = (0..).zip(&spooled.gpus).filter(move |(gpu, _)| spooled.order.gpus.contains(*gpu) == own);
        gpus.flat_map(|(_, gpu)| gpu.device_numbers()).collect::<BTreeSet<DeviceNumber>>()
    };
    numbers(false).difference(&numbers(true)).copied().collect()
}

fn start(
    spooled: &SpooledOrder,
    containment: Containment,
    tasks: Tasks,
    host: Option<&Host>,
    connections: &mut Connections,
) -> Result<Launched, String> {
    let started = Timestamp::now();
    let oom_kills_before = containment.oom_kills();
    match spared_no_more(|| fork_all(spooled, &containment, tasks, host, connections)) {
        Ok((tasks, failures)) => {
            let connections = Connections::default();
            let (script_errors, task_errors) = (None, None);
            Ok(Launched {
                containment,
                oom_kills_before,
                tasks,
                failures,
                started,
                connections,
                script_errors,
                task_errors,
            })
        }
        Err(why) => {
            if spooled.order.step.0 == 0 {
                containment.end(spooled.cleaning.deadline(), reap_silently);
            }
            end_children();
            Err(why)
        }
    }
}

/// When memory runs out, the shim is spared but its tasks are not: while they are forked, the shim is not spared
/// either.
fn spared_no_more<T>(act: impl FnOnce() -> T) -> T {
    const SCORE: &str = "/proc/self/oom_score_adj";
    let before = fs::read(SCORE);
    let _ = fs::write(SCORE, "0");
    let result = act();
    let _ = before.map(|before| fs::write(SCORE, before));
    result
}

/// The process and rank of each task, and the pipe for their failures.
type Forks = (Vec<(i32, u32)>, File);

fn fork_all(
    spooled: &SpooledOrder,
    containment: &Containment,
    tasks: Tasks,
    host: Option<&Host>,
    connections: &mut Connections,
) -> Result<Forks, String> {
    let Tasks { each, directory, environment: mut variables, limits, process_id, kept, container } = tasks;
    let (failures, failures_of_tasks) =
        pipe2(OFlag::O_CLOEXEC).map_err(|errno| format!("no pipe: {}", errno.desc()))?;
    let entrance = containment.entrance().map_err(|error| UnfitCause::Containment.because(error))?;
    let affinity = if containment.needs_affinity() { spooled.cpus.as_slice() } else { &[] };
    let birth = Birth::new(spooled, &entrance, &directory, &limits, host.map(|host| (host, kept.as_slice())))
        .map_err(|errno| format!("the limits of this process are not known: {}", errno.desc()))?;
    if let Some(management) = &mut connections.management {
        management.begin(spooled, &entrance, host)?;
    }
    let mut processes = Vec::with_capacity(each.len());
    for (number, task) in each.iter().enumerate() {
        if let Some(streams) = connections.streams.as_mut().filter(|_| number > 0 && number % STARTED_AT_A_TIME == 0) {
            streams.serve();
        }
        let files = task.open(connections)?;
        let files = if container.is_some() { files.for_container() } else { files };
        let mut own = match &spooled.tasks {
            Some(tasks) => environment::of_step_task(tasks, task.rank, task.local_rank),
            None => environment::of_plain_task(task.rank, task.local_rank, process_id),
        };
        let managed = connections.management.as_ref().zip(files.management());
        let managed = managed.map(|(management, descriptor)| management.variables(task.rank, descriptor));
        let gpus = environment::gpus_of_task(spooled, task.local_rank);
        if container.is_some() {
            // It is that of the runtime, not of the program.
            own.retain(|(_, value)| *value != OwnValue::ProcessId);
        }
        variables.set_own(own.into_iter().chain(managed.into_iter().flatten()).chain(gpus));
        let mut contained = container
            .as_ref()
            .map(|container| {
                let (rank, command, has_terminal) = (task.rank, task.program.argv(), task.has_terminal);
                let variables = &variables.texts();
                let is_managed = files.management().is_some();
                container.program(spooled, &TaskInContainer { rank, command, variables, has_terminal, is_managed })
            })
            .transpose()?;
        let started = match &mut contained {
            Some(contained) => (&contained.program, &mut contained.environment),
            None => (&*task.program, &mut variables),
        };
        match fork_into(&entrance) {
            Ok(Forked::Parent(process)) => processes.push((process, task.rank)),
            Ok(Forked::Child { joined }) => {
                let affinity = if spooled.tasks.is_some() { &task.bound.cpus } else { affinity };
                become_task(&birth, task, &files, started, joined, affinity, &failures_of_tasks)
            }
            Err(errno) => return Err(format!("task {} cannot be started: {}", task.rank, errno.desc())),
        }
    }
    Ok((processes, failures.into()))
}
