//! Keeping the processes of a run together: whatever they do, they can be found, stopped and ended.
//!
//! The executor finds out once, at its start, which means the host offers, and sends them along with each order
//! ([`Hierarchies`]):
//!
//! - **cgroup 2**: one group for each run. Processes are born in it, `cgroup.kill` ends all at once, `cgroup.freeze`
//!   suspends them. A v2 tree without controllers is enough for this; memory limits and CPU sets come from it if it has
//!   the controllers, else from v1 hierarchies.
//! - **cgroup 1**: a freezer group for each run.
//! - **processes**: neither. The shim is the sub-reaper of all descendants, so that a process that forks away or
//!   changes its session is still found by walking the process tree. Processes that have lost their shim too are found
//!   by a variable in their environment.
//!
//! In every mode the shim also ends all its descendants, so that nobody escapes by changing group as root.

mod cgroup;
mod devices;
pub mod processes;

pub use cgroup::CpuTime;
use cgroup::Group;
pub use devices::DeviceNumber;
use muster_schemas::{PartId, subjects};
use serde::{Deserialize, Serialize};
use std::{
    ffi::CString,
    fs, io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// The variable that ties processes to a run of one spool, even after they have left its process tree.
pub const MARKER: &str = "MUSTER_CONTAINMENT_ID";

/// How runs are kept together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContainmentMode {
    /// The best that the host offers.
    #[default]
    Auto,
    /// By cgroup 2, or the executor does not start.
    Cgroup2,
    /// By cgroup 1, or the executor does not start.
    Cgroup1,
    /// By the process tree alone.
    Process,
}

/// Distinguishes executors on one host, even if they use the same node name in different clusters.
pub fn instance(node: &str, spool: &Path) -> String {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    spool.hash(&mut hasher);
    format!("{}-{:08x}", subjects::token(node).replace('%', "_"), hasher.finish() as u32)
}

/// The host's means to keep runs together. Base folders belong to this executor alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hierarchies {
    /// Distinguishes this executor's groups and processes from those of others on the host.
    instance: String,
    unit: Unit,
    memory: Option<Controller>,
    cpuset: Option<Controller>,
    devices: Devices,
}

/// How runs are kept from the GPUs of others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Devices {
    /// The node has no GPUs.
    #[default]
    Unneeded,
    /// Not at all.
    Open,
    /// By a program in the kernel that is attached to the cgroup 2 group of the run.
    Unit,
    /// In the v1 hierarchy of the controller, under this base.
    Own(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Unit {
    Cgroup2 { base: PathBuf },
    Cgroup1 { freezer: PathBuf, cpuacct: Option<PathBuf> },
    Processes,
}

/// The place of a controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Controller {
    /// In the cgroup 2 group of the run.
    Unit,
    /// In its own v1 hierarchy, under this base.
    Own(PathBuf),
}

impl Hierarchies {
    /// Finds out what the host offers for an executor of this name.
    ///
    /// # Errors
    /// If the mode asked for is not available.
    pub fn detect(mode: ContainmentMode, instance: &str) -> io::Result<Self> {
        let mounts = cgroup::mounts()?;
        let v1 = |controller: &str| mounts.v1.get(controller).and_then(|mount| cgroup::make_base(mount, instance).ok());
        let unit = match mode {
            ContainmentMode::Process => Unit::Processes,
            ContainmentMode::Cgroup2 => cgroup2_unit(&mounts, instance)?,
            ContainmentMode::Cgroup1 => cgroup1_unit(&v1)?,
            ContainmentMode::Auto => {
                cgroup2_unit(&mounts, instance).or_else(|_| cgroup1_unit(&v1)).unwrap_or(Unit::Processes)
            }
        };
        let in_unit = |name: &str| match &unit {
            Unit::Cgroup2 { base } => cgroup::children_have(base, name).then_some(Controller::Unit),
            _ => None,
        };
        let (memory, cpuset) = match mode {
            ContainmentMode::Process => (None, None),
            _ => (
                in_unit("memory").or_else(|| v1("memory").map(Controller::Own)),
                // For well-meaning programs affinity binds as well as a v1 CPU set, and costs nothing.
                in_unit("cpuset").or_else(|| {
                    (mode == ContainmentMode::Cgroup1).then(|| v1("cpuset").map(Controller::Own)).flatten()
                }),
            ),
        };
        Ok(Self { instance: instance.to_owned(), unit, memory, cpuset, devices: Devices::Unneeded })
    }

    /// Finds out how runs can be kept from device files of others, for a node that has GPUs. Nothing keeps them from
    /// these if only the process tree does the rest.
    ///
    /// # Errors
    /// Why that is not possible; then all GPUs are open to all runs.
    pub fn with_devices(&mut self, mode: ContainmentMode) -> io::Result<()> {
        self.devices = Devices::Open;
        let by_program = match &self.unit {
            Unit::Cgroup2 { base } => {
                let probe = Group::probe(base);
                let denied = probe.make().and_then(|()| devices::deny_v2(&probe, &[]));
                probe.remove();
                denied
            }
            _ => Err(io::Error::new(io::ErrorKind::Unsupported, "runs have no cgroup 2 group")),
        };
        let by_controller = || {
            let missing = || io::Error::new(io::ErrorKind::NotFound, "no cgroup 1 hierarchy of devices is mounted");
            let mounts = cgroup::mounts()?;
            cgroup::make_base(mounts.v1.get("devices").ok_or_else(missing)?, &self.instance)
        };
        self.devices = match by_program {
            _ if mode == ContainmentMode::Process => {
                return Err(io::Error::new(io::ErrorKind::Unsupported, "runs have no control groups"));
            }
            Ok(()) => Devices::Unit,
            Err(of_program) => Devices::Own(by_controller().map_err(|of_controller| {
                io::Error::new(of_program.kind(), format!("cgroup 2: {of_program}; cgroup 1: {of_controller}"))
            })?),
        };
        Ok(())
    }

    /// Whether runs can open only the device files of their own GPUs.
    pub const fn constrains_devices(&self) -> bool {
        matches!(self.devices, Devices::Unit | Devices::Own(_))
    }

    /// A description for the log; `binds_cpus` says whether this executor uses it for CPUs.
    pub fn describe(&self, binds_cpus: bool) -> String {
        let unit = match &self.unit {
            Unit::Cgroup2 { base } => format!("cgroup 2 in {}", base.display()),
            Unit::Cgroup1 { freezer, .. } => format!("cgroup 1 in {}", freezer.display()),
            Unit::Processes => "process tree".into(),
        };
        let memory = match &self.memory {
            Some(Controller::Unit) => "cgroup 2",
            Some(Controller::Own(_)) => "cgroup 1",
            None => "not enforced",
        };
        let cpus = match (binds_cpus, self.cpuset.is_some()) {
            (false, _) => "none",
            (true, true) => "CPU set",
            (true, false) => "affinity",
        };
        let gpus = match &self.devices {
            Devices::Unneeded => "",
            Devices::Open => "; GPUs: open to every job",
            Devices::Unit => "; GPUs: cgroup 2",
            Devices::Own(_) => "; GPUs: cgroup 1",
        };
        format!("{unit}; memory limits: {memory}; CPU binding: {cpus}{gpus}")
    }

    /// Whether runs have groups, which include the processes of their steps.
    pub fn has_groups(&self) -> bool {
        !matches!(self.unit, Unit::Processes)
    }

    /// The value of [`MARKER`] in the environment of all processes of a part of a run.
    pub fn marker(&self, part: PartId) -> String {
        format!("{}/{part}", self.instance)
    }

    /// The parts of runs that have groups.
    pub fn parts_with_groups(&self) -> Vec<PartId> {
        let mut parts: Vec<PartId> = self.bases().flat_map(|base| cgroup::parts_below(base)).collect();
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    /// Removes the groups of the executor itself, unless a run has a group in them.
    pub fn leave(&self) {
        for base in self.bases() {
            // A group with runs stays, and the next executor with the same spool takes it over.
            let _ = fs::remove_dir(base);
        }
    }

    fn bases(&self) -> impl Iterator<Item = &PathBuf> {
        let unit = match &self.unit {
            Unit::Cgroup2 { base } => [Some(base), None],
            Unit::Cgroup1 { freezer, cpuacct } => [Some(freezer), cpuacct.as_ref()],
            Unit::Processes => [None, None],
        };
        let own = [&self.memory, &self.cpuset].map(|controller| controller.as_ref().and_then(Controller::base));
        let devices = if let Devices::Own(base) = &self.devices { Some(base) } else { None };
        unit.into_iter().chain(own).chain([devices]).flatten()
    }
}

impl Controller {
    const fn base(&self) -> Option<&PathBuf> {
        match self {
            Self::Unit => None,
            Self::Own(base) => Some(base),
        }
    }
}

fn cgroup2_unit(mounts: &cgroup::Mounts, instance: &str) -> io::Result<Unit> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, "cgroup 2 is not mounted");
    let mount = mounts.v2.as_deref().ok_or_else(missing)?;
    cgroup::enable_controllers(mount);
    let parent = mount.join(cgroup::PARENT);
    match fs::create_dir(&parent) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => cgroup::enable_controllers(&parent),
    }
    let base = cgroup::make_base(mount, instance)?;
    cgroup::enable_controllers(&base);
    if !base.join("cgroup.kill").exists() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel's cgroup 2 has no cgroup.kill"));
    }
    Ok(Unit::Cgroup2 { base })
}

fn cgroup1_unit(base: &impl Fn(&str) -> Option<PathBuf>) -> io::Result<Unit> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, "no writable cgroup 1 freezer hierarchy is mounted");
    Ok(Unit::Cgroup1 { freezer: base("freezer").ok_or_else(missing)?, cpuacct: base("cpuacct") })
}

/// The containment of one run.
#[derive(Debug)]
pub struct Containment {
    marker: String,
    unit: RunUnit,
    memory: Option<Group>,
    cpuset: Option<Group>,
    devices: Option<RunDevices>,
}

/// Where devices are denied.
#[derive(Debug)]
enum RunDevices {
    Unit(Group),
    Own(Group),
}

#[derive(Debug)]
enum RunUnit {
    Cgroup2(Group),
    Cgroup1 { freezer: Group, cpuacct: Option<Group> },
    Processes,
}

/// What the groups of a run say of its processes, those that have ended included.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accounts {
    /// Their processor time.
    pub cpu: Option<CpuTime>,
    /// The peak of their memory together.
    pub peak_memory_bytes: Option<u64>,
}

/// Handles that a new process of a run needs to enter its containment.
#[derive(Debug)]
pub struct Entrance {
    /// The group to be born in.
    pub born_in: Option<OwnedFd>,
    /// `cgroup.procs` files to write `0` to after birth.
    pub join: Vec<CString>,
}

impl Containment {
    /// Creates the containment of a part of a run, whose processes cannot open the `denied` devices.
    ///
    /// # Errors
    /// Names the group that could not be created or limited. Groups created before are removed.
    pub fn create(
        hierarchies: &Hierarchies,
        part: PartId,
        memory_bytes: u64,
        cpus: &[u32],
        denied: &[DeviceNumber],
    ) -> io::Result<Self> {
        let mut containment = Self::name(hierarchies, part, memory_bytes > 0, !cpus.is_empty());
        containment.devices.take_if(|_| denied.is_empty());
        if let Err(error) = containment.make(memory_bytes, cpus, denied) {
            containment.try_remove();
            return Err(error);
        }
        Ok(containment)
    }

    /// The containment of a part of a run that may exist, from this or an earlier executor; all hierarchies are
    /// considered.
    pub fn existing(hierarchies: &Hierarchies, part: PartId) -> Self {
        Self::name(hierarchies, part, true, true)
    }

    fn name(hierarchies: &Hierarchies, part: PartId, limit_memory: bool, bind: bool) -> Self {
        let group = |base: &Path| Group::new(base, part);
        let unit = match &hierarchies.unit {
            Unit::Cgroup2 { base } => RunUnit::Cgroup2(group(base)),
            Unit::Cgroup1 { freezer, cpuacct } => {
                RunUnit::Cgroup1 { freezer: group(freezer), cpuacct: cpuacct.as_deref().map(group) }
            }
            Unit::Processes => RunUnit::Processes,
        };
        let controlled = |controller: &Option<Controller>, wanted: bool| match (controller, &unit) {
            (Some(Controller::Own(base)), _) if wanted => Some(group(base)),
            (Some(Controller::Unit), RunUnit::Cgroup2(unit)) if wanted => Some(unit.clone()),
            _ => None,
        };
        let memory = controlled(&hierarchies.memory, limit_memory);
        let cpuset = controlled(&hierarchies.cpuset, bind);
        let devices = match (&hierarchies.devices, &unit) {
            (Devices::Own(base), _) => Some(RunDevices::Own(group(base))),
            (Devices::Unit, RunUnit::Cgroup2(unit)) => Some(RunDevices::Unit(unit.clone())),
            _ => None,
        };
        Self { marker: hierarchies.marker(part), unit, memory, cpuset, devices }
    }

    fn make(&self, memory_bytes: u64, cpus: &[u32], denied: &[DeviceNumber]) -> io::Result<()> {
        for group in self.groups() {
            group.make()?;
        }
        if let Some(group) = &self.memory {
            group.limit_memory(memory_bytes)?;
        }
        if let Some(group) = &self.cpuset {
            group.bind_cpus(cpus)?;
        }
        match &self.devices {
            Some(RunDevices::Unit(group)) => devices::deny_v2(group, denied),
            Some(RunDevices::Own(group)) => devices::deny_v1(group, denied),
            None => Ok(()),
        }
    }

    /// Binds and limits its present and future processes to different CPUs and a different amount of memory. Without a
    /// group nothing is limited; without a CPU set all processes are bound one by one.
    ///
    /// # Errors
    /// Names the group that refuses, for example a limit below what is in use.
    pub fn resize(&self, memory_bytes: u64, cpus: &[u32]) -> io::Result<()> {
        if let Some(group) = self.memory.as_ref().filter(|group| group.path().exists()) {
            group.change_memory_limit(memory_bytes)?;
        }
        match self.cpuset.as_ref().filter(|group| group.path().exists()) {
            _ if cpus.is_empty() => Ok(()),
            Some(group) => group.bind_cpus(cpus),
            None => {
                let marks = [format!("{}={}", MARKER, self.marker)];
                let members = if self.has_groups() { self.members() } else { processes::marked(&marks) };
                processes::bind_all(&members, cpus);
                Ok(())
            }
        }
    }

    /// All groups, each once.
    fn groups(&self) -> Vec<&Group> {
        let mut groups: Vec<&Group> = match &self.unit {
            RunUnit::Cgroup2(group) => vec![group],
            RunUnit::Cgroup1 { freezer, cpuacct } => std::iter::once(freezer).chain(cpuacct).collect(),
            RunUnit::Processes => vec![],
        };
        let of_devices = if let Some(RunDevices::Own(group)) = &self.devices { Some(group) } else { None };
        for group in [self.memory.as_ref(), self.cpuset.as_ref(), of_devices].into_iter().flatten() {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        groups
    }

    /// Whether it has groups, which include the processes of its steps.
    pub const fn has_groups(&self) -> bool {
        !matches!(self.unit, RunUnit::Processes)
    }

    /// Whether its groups exist: a step can only join a run that does.
    pub fn exists(&self) -> bool {
        match &self.unit {
            RunUnit::Cgroup2(group) | RunUnit::Cgroup1 { freezer: group, .. } => group.path().exists(),
            RunUnit::Processes => true,
        }
    }

    /// Whether new processes have to be bound by affinity because there is no CPU set.
    pub fn needs_affinity(&self) -> bool {
        self.cpuset.is_none()
    }

    /// The handles that new processes need to enter it.
    ///
    /// # Errors
    /// If a group is gone.
    pub fn entrance(&self) -> io::Result<Entrance> {
        let procs =
            |group: &Group| CString::new(group.file("cgroup.procs").as_os_str().as_bytes()).map_err(io::Error::other);
        let (born_in, unit) = match &self.unit {
            RunUnit::Cgroup2(group) => (Some(group.open()?), Some(group)),
            _ => (None, None),
        };
        let join = self.groups().into_iter().filter(|group| Some(*group) != unit && group.path().exists());
        Ok(Entrance { born_in, join: join.map(procs).collect::<io::Result<_>>()? })
    }

    /// All processes of the run. Without groups: the descendants of this process, which must be the shim.
    pub fn members(&self) -> Vec<i32> {
        match &self.unit {
            RunUnit::Cgroup2(group) | RunUnit::Cgroup1 { freezer: group, .. } => group.members(),
            RunUnit::Processes => processes::descendants_of_this(),
        }
    }

    /// Sends a signal to all of them, ignoring those that end meanwhile.
    pub fn signal(&self, signal: i32) {
        processes::signal_all(&self.members(), signal);
    }

    /// Stops all of them.
    ///
    /// # Errors
    /// If the group refuses.
    pub fn freeze(&self) -> io::Result<()> {
        match &self.unit {
            RunUnit::Cgroup2(group) => group.write("cgroup.freeze", "1"),
            RunUnit::Cgroup1 { freezer, .. } => freezer.write("freezer.state", "FROZEN"),
            RunUnit::Processes => {
                processes::stop_descendants();
                Ok(())
            }
        }
    }

    /// Lets them continue.
    ///
    /// # Errors
    /// If the group refuses.
    pub fn thaw(&self) -> io::Result<()> {
        match &self.unit {
            RunUnit::Cgroup2(group) => group.write("cgroup.freeze", "0")?,
            RunUnit::Cgroup1 { freezer, .. } => freezer.write("freezer.state", "THAWED")?,
            RunUnit::Processes => {}
        }
        // A thawed program learns by it that it stood still (OAR-S-03).
        self.signal(libc::SIGCONT);
        Ok(())
    }

    /// Processor time and peak memory from the groups' own accounts, if they keep any.
    pub fn accounts(&self) -> Accounts {
        let cpu = match &self.unit {
            RunUnit::Cgroup2(group) => group.cpu_time_v2(),
            RunUnit::Cgroup1 { cpuacct, .. } => cpuacct.as_ref().and_then(Group::cpu_time_v1),
            RunUnit::Processes => None,
        };
        Accounts { cpu, peak_memory_bytes: self.memory.as_ref().and_then(Group::peak_memory_bytes) }
    }

    /// How many processes of the run the kernel has killed because of its memory limit.
    pub fn oom_kills(&self) -> u64 {
        self.memory.as_ref().map_or(0, Group::oom_kills)
    }

    /// Ends all processes of the run and removes its groups. Returns when they are gone, or at the deadline, whether they
    /// are gone: a process that hangs in the kernel can take for ever. `reap` is called repeatedly to collect dead
    /// children. Without groups there is nothing to do here.
    pub fn end(&self, deadline: Option<Instant>, mut reap: impl FnMut()) -> bool {
        let mut pause = Duration::from_micros(200);
        loop {
            reap();
            if self.try_remove() {
                return true;
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return false;
            }
            self.kill();
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(250));
        }
    }

    /// Without groups: ends the processes that carry the run's marker in their environment. Returns whether they are gone,
    /// at the deadline at the latest.
    pub fn end_marked(&self, deadline: Option<Instant>, mut reap: impl FnMut()) -> bool {
        if self.has_groups() {
            return true;
        }
        let variable = [format!("{}={}", MARKER, self.marker)];
        let mut pause = Duration::from_micros(200);
        loop {
            let marked = processes::marked(&variable);
            if marked.is_empty() {
                return true;
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return false;
            }
            processes::signal_all(&marked, libc::SIGKILL);
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(250));
            reap();
        }
    }

    fn kill(&self) {
        match &self.unit {
            RunUnit::Cgroup2(group) => {
                // A group that is gone has no processes left to kill.
                let _ = group.write("cgroup.kill", "1");
            }
            // While frozen, no process forks away between the reading of the list and the signal.
            RunUnit::Cgroup1 { freezer, .. } => {
                let _ = freezer.write("freezer.state", "FROZEN");
                self.signal(libc::SIGKILL);
                let _ = freezer.write("freezer.state", "THAWED");
            }
            RunUnit::Processes => {}
        }
    }

    /// Removes the groups if no process is left in them.
    fn try_remove(&self) -> bool {
        self.groups().into_iter().all(Group::remove)
    }
}

/// The entrance in raw form, which a new process can use without allocating.
impl Entrance {
    /// The descriptor of the group to be born in.
    pub fn born_in_fd(&self) -> Option<i32> {
        self.born_in.as_ref().map(AsRawFd::as_raw_fd)
    }
}
