//! Groups of both cgroup versions, as folders.

use muster_schemas::PartId;
use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io,
    os::{fd::OwnedFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

/// The group below the root in which every executor has its own.
pub const PARENT: &str = "muster";
const RUN_PREFIX: &str = "run-";

/// Processor time, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// All of it.
    pub total_micros: u64,
    /// The part that the kernel used.
    pub system_micros: u64,
}

/// Where the hierarchies are mounted.
#[derive(Debug, Default)]
pub struct Mounts {
    pub v2: Option<PathBuf>,
    /// By controller.
    pub v1: HashMap<String, PathBuf>,
}

pub fn mounts() -> io::Result<Mounts> {
    Ok(parse_mounts(&fs::read_to_string("/proc/self/mounts")?))
}

fn parse_mounts(text: &str) -> Mounts {
    let mut mounts = Mounts::default();
    for line in text.lines() {
        let mut fields = line.split(' ');
        let (Some(_), Some(path), Some(kind), Some(options)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        match kind {
            "cgroup2" => mounts.v2 = mounts.v2.or_else(|| Some(path.into())),
            "cgroup" => {
                for option in options.split(',') {
                    mounts.v1.entry(option.to_owned()).or_insert_with(|| path.into());
                }
            }
            _ => {}
        }
    }
    mounts
}

/// Creates the group of an executor in a hierarchy.
pub fn make_base(mount: &Path, instance: &str) -> io::Result<PathBuf> {
    let base = mount.join(PARENT).join(instance);
    fs::create_dir_all(&base)?;
    for group in [&mount.join(PARENT), &base] {
        inherit_cpuset(group)?;
    }
    // A read-only mount passes the above if the folder already exists.
    let probe = base.join("probe");
    match fs::create_dir(&probe) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    fs::remove_dir(&probe)?;
    Ok(base)
}

/// A v1 CPU set starts empty and accepts no process until it has CPUs and memory nodes.
fn inherit_cpuset(group: &Path) -> io::Result<()> {
    for name in ["cpuset.cpus", "cpuset.mems"] {
        let file = group.join(name);
        // In v2 an empty file means the parent's; the file for memory pressure exists only in v1.
        if group.join("cpuset.memory_pressure").exists() && fs::read_to_string(&file)?.trim().is_empty() {
            let parent = group.parent().unwrap_or(group).join(name);
            fs::write(&file, fs::read_to_string(parent)?.trim())?;
        }
    }
    Ok(())
}

/// Lets the children of a v2 group use its controllers, as far as it may.
pub fn enable_controllers(group: &Path) {
    for controller in ["memory", "cpuset"] {
        if lists(&group.join("cgroup.controllers"), controller) {
            // Refused if the group itself has processes; then there are no limits.
            let _ = fs::write(group.join("cgroup.subtree_control"), format!("+{controller}"));
        }
    }
}

/// Whether children of the v2 group have the controller.
pub fn children_have(group: &Path, controller: &str) -> bool {
    lists(&group.join("cgroup.subtree_control"), controller)
}

fn lists(file: &Path, word: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.split_whitespace().any(|listed| listed == word))
}

/// The parts of runs that have a group below a base.
pub fn parts_below(base: &Path) -> Vec<PartId> {
    let Ok(entries) = fs::read_dir(base) else { return vec![] };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.strip_prefix(RUN_PREFIX)?.parse().ok()).collect()
}

/// The group of one part of a run in one hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    path: PathBuf,
}

impl Group {
    pub fn new(base: &Path, part: PartId) -> Self {
        Self { path: base.join(format!("{RUN_PREFIX}{part}")) }
    }

    /// A group for trying out what groups below a base can do.
    pub fn probe(base: &Path) -> Self {
        Self { path: base.join("probe") }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub fn make(&self) -> io::Result<()> {
        match fs::create_dir(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(self.named(error)),
            _ => Ok(()),
        }
    }

    pub fn open(&self) -> io::Result<OwnedFd> {
        let options = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(&self.path);
        options.map(File::into).map_err(|error| self.named(error))
    }

    pub fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let written = OpenOptions::new()
            .write(true)
            .open(self.file(name))
            .and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()));
        written.map_err(|error| self.named(error))
    }

    fn named(&self, error: io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("control group {}: {error}", self.path.display()))
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.file(name)).ok()
    }

    /// The value after a key in a file of `key value` lines.
    fn keyed(&self, name: &str, key: &str) -> Option<u64> {
        self.read(name)?.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.read(name)?.trim().parse().ok()
    }

    pub fn members(&self) -> Vec<i32> {
        let text = self.read("cgroup.procs").unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    pub fn limit_memory(&self, bytes: u64) -> io::Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let name = if self.file("memory.max").exists() { "memory.max" } else { "memory.limit_in_bytes" };
        self.write(name, &bytes.to_string())?;
        // Without this a run over its limit would continue in swap space, if there is any.
        for (name, text) in [("memory.swap.max", "0".to_owned()), ("memory.memsw.limit_in_bytes", bytes.to_string())] {
            if self.file(name).exists() {
                self.write(name, &text)?;
            }
        }
        Ok(())
    }

    /// As [`Group::limit_memory`], for a group that has a limit: in v1 the limit including swap must never be the lower
    /// one.
    pub fn change_memory_limit(&self, bytes: u64) -> io::Result<()> {
        self.limit_memory(bytes).or_else(|error| {
            if bytes == 0 || !self.file("memory.memsw.limit_in_bytes").exists() {
                return Err(error);
            }
            self.write("memory.memsw.limit_in_bytes", &bytes.to_string())?;
            self.limit_memory(bytes)
        })
    }

    pub fn bind_cpus(&self, cpus: &[u32]) -> io::Result<()> {
        if cpus.is_empty() {
            return inherit_cpuset(&self.path);
        }
        let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
        self.write("cpuset.cpus", &list.join(","))?;
        inherit_cpuset(&self.path)
    }

    pub fn cpu_time_v2(&self) -> Option<CpuTime> {
        let total_micros = self.keyed("cpu.stat", "usage_usec")?;
        Some(CpuTime { total_micros, system_micros: self.keyed("cpu.stat", "system_usec").unwrap_or(0) })
    }

    pub fn cpu_time_v1(&self) -> Option<CpuTime> {
        let micros = |name| self.number(name).map(|nanos| nanos / 1_000);
        let total_micros = micros("cpuacct.usage")?;
        Some(CpuTime { total_micros, system_micros: micros("cpuacct.usage_sys").unwrap_or(0) })
    }

    pub fn peak_memory_bytes(&self) -> Option<u64> {
        self.number("memory.peak").or_else(|| self.number("memory.max_usage_in_bytes"))
    }

    pub fn oom_kills(&self) -> u64 {
        let kills = self.keyed("memory.events", "oom_kill").or_else(|| self.keyed("memory.oom_control", "oom_kill"));
        kills.unwrap_or(0)
    }

    /// Removes the group; false if processes are left in it.
    pub fn remove(&self) -> bool {
        match fs::remove_dir(&self.path) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_both_versions() {
        let mounts = parse_mounts(
            "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
             cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n\
             cgroup /sys/fs/cgroup/freezer cgroup rw,relatime,freezer 0 0\n\
             cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\nbroken\n",
        );
        assert_eq!(mounts.v2.as_deref(), Some(Path::new("/sys/fs/cgroup/unified")));
        assert_eq!(mounts.v1["cpuacct"], Path::new("/sys/fs/cgroup/cpu,cpuacct"));
        assert_eq!(mounts.v1["freezer"], Path::new("/sys/fs/cgroup/freezer"));
        assert!(!mounts.v1.contains_key("memory"));
    }
}
