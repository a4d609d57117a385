//! The CPUs and the memory that tasks of a step are bound to.
//!
//! Cores of a node are numbered by muster, CPUs and memory domains by the kernel. A step whose node does not bind
//! processes leaves its tasks where they are, whatever it asks for.

use crate::spool::SpooledOrder;
use muster_schemas::{
    binding::{Binding, CoreBinding, MemoryBinding, MemoryDomains, entry},
    resources::IndexSet,
    steps::StepTasks,
};
use nix::{
    errno::Errno,
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    unistd::{Pid, getpid},
};
use std::{
    collections::BTreeSet,
    ffi::c_ulong,
    fmt::{self, Write as _},
    fs,
    path::Path,
};

const CPUS: &str = "/sys/devices/system/cpu";
const DOMAINS: &str = "/sys/devices/system/node";
/// The kernel numbers its memory domains below this.
const MAX_DOMAINS: u32 = 1_024;

/// What a task is bound to.
#[derive(Debug, Default)]
pub struct Bound {
    /// The CPUs; none if it is not bound to any.
    pub cpus: Vec<u32>,
    memory: Option<Memory>,
    tells: Option<Tells>,
}

/// The memory domains of a task.
#[derive(Debug)]
struct Memory {
    mode: i32,
    mask: Vec<c_ulong>,
    name: &'static str,
}

/// What a task tells on its standard error about itself.
#[derive(Debug)]
struct Tells {
    node: String,
    rank: u32,
    local_rank: u32,
    /// The name of its binding to cores, if it tells that.
    cores: Option<&'static str>,
    memory: bool,
}

impl Bound {
    /// What a task of a step is bound to on this node.
    pub fn of(spooled: &SpooledOrder, tasks: &StepTasks, rank: u32, local_rank: u32) -> Self {
        let Some(binding) = &tasks.binding else {
            return Self { cpus: cpus_of(spooled, tasks, local_rank), ..Self::default() };
        };
        let cpus = cpus_of(spooled, tasks, local_rank);
        let cpus = if binding.one_thread { first_threads(&cpus, Path::new(CPUS)) } else { cpus };
        let memory =
            binding.memory.as_ref().and_then(|memory| Memory::of(memory, local_rank, &cpus, Path::new(DOMAINS)));
        let node = &spooled.order.nodes[spooled.order.node_index as usize].name;
        let tells = (binding.tells_cores || binding.tells_memory).then(|| Tells {
            node: node.clone(),
            rank,
            local_rank,
            cores: binding.tells_cores.then(|| name_of(binding, &cpus)),
            memory: binding.tells_memory,
        });
        Self { cpus, memory, tells }
    }

    /// Binds the memory of this process. After a fork: nothing here allocates memory.
    ///
    /// # Errors
    /// The kernel refuses, for example domains that do not exist.
    pub fn bind_memory(&self) -> Result<(), Errno> {
        let Some(Memory { mode, mask, .. }) = &self.memory else { return Ok(()) };
        let bits = mask.len() * c_ulong::BITS as usize;
        // SAFETY: the mask has this many bits, and the call changes nothing else than this process's policy. The kernel takes
        // one bit less than it is told.
        Errno::result(unsafe { libc::syscall(libc::SYS_set_mempolicy, *mode, mask.as_ptr(), bits + 1) }).map(drop)
    }

    /// Tells on standard error what this process is bound to. After a fork: nothing here allocates memory.
    pub fn tell(&self) {
        let Some(tells) = &self.tells else { return };
        let mut line = Line::new();
        let Tells { node, rank, local_rank, .. } = tells;
        let process = getpid();
        // A line that is too long is cut.
        if let Some(name) = tells.cores {
            let _ = write!(line, "cpu-bind{name} - {node}, task {rank:2} {local_rank:2} [{process}]: mask 0x");
            let cpus = sched_getaffinity(Pid::from_raw(0)).unwrap_or_else(|_| CpuSet::new());
            let _ = line.mask(|at| cpus.is_set(at).unwrap_or(false), CpuSet::count());
            let _ = writeln!(line, "{}", if self.cpus.is_empty() { "" } else { " set" });
        }
        if tells.memory {
            let name = self.memory.as_ref().map_or("NONE", |memory| memory.name);
            let _ = write!(line, "mem-bind={name} - {node}, task {rank:2} {local_rank:2} [{process}]: mask 0x");
            let mask = self.memory.as_ref().map_or(&[][..], |memory| &memory.mask);
            let bit = |at: usize| mask[at / c_ulong::BITS as usize] >> (at % c_ulong::BITS as usize) & 1 == 1;
            let _ = line.mask(bit, mask.len() * c_ulong::BITS as usize);
            let _ = writeln!(line, "{}", if mask.is_empty() { "" } else { " set" });
        }
        // SAFETY: the buffer has the length given.
        unsafe { libc::write(2, line.bytes.as_ptr().cast(), line.length) };
    }
}

/// Binds this process to CPUs, unless there are none. Nothing here allocates memory.
///
/// # Errors
/// The kernel refuses.
pub fn bind(cpus: &[u32]) -> Result<(), Errno> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu as usize)?;
    }
    sched_setaffinity(Pid::from_raw(0), &set)
}

/// The kind of a binding, as the line about it begins.
fn name_of(binding: &Binding, cpus: &[u32]) -> &'static str {
    match &binding.cores {
        _ if cpus.is_empty() => "=NONE",
        Some(CoreBinding::All) => "=NONE",
        Some(CoreBinding::Own) => "-cores=MASK",
        Some(CoreBinding::Sockets) => "-sockets=MASK",
        Some(CoreBinding::EachSocket | CoreBinding::ListedSockets(_)) => "-ldoms=MASK",
        Some(CoreBinding::Listed(_)) | None => "=MASK",
    }
}

/// The CPUs of one task: those that its step binds it to, else its own if there are enough for all tasks, else all of the
/// step's.
fn cpus_of(spooled: &SpooledOrder, tasks: &StepTasks, local_rank: u32) -> Vec<u32> {
    let (cores, cpus) = (&spooled.order.cores, &spooled.cpus);
    // A site can list several CPUs for a core, or one for several.
    if cpus.len() as u64 != cores.len() {
        return cpus.clone();
    }
    if let Some(bound) = entry(&tasks.bound, local_rank) {
        let of_core = |core| cores.position(core).and_then(|at| cpus.get(usize::try_from(at).ok()?)).copied();
        let own: Vec<u32> = bound.iter().filter_map(of_core).collect();
        // A task that is bound to nothing would use the whole node.
        return if own.is_empty() { cpus.clone() } else { own };
    }
    let each = spooled.order.cpus_per_task as usize;
    let is_bound = tasks.binding.as_ref().is_some_and(|binding| binding.cores.is_some());
    if is_bound || cpus.len() as u64 != tasks.ranks.len() * each as u64 {
        return cpus.clone();
    }
    cpus.chunks(each.max(1)).nth(local_rank as usize).map(<[u32]>::to_vec).unwrap_or_default()
}

/// Of CPUs that are threads of one processor core only the first.
fn first_threads(cpus: &[u32], folder: &Path) -> Vec<u32> {
    let mut seen = BTreeSet::new();
    let core_of = |cpu: u32| {
        let siblings = fs::read_to_string(folder.join(format!("cpu{cpu}/topology/thread_siblings_list")));
        let siblings = siblings.ok().and_then(|text| text.trim().parse::<IndexSet>().ok());
        siblings.and_then(|siblings| siblings.first()).unwrap_or(cpu)
    };
    cpus.iter().copied().filter(|cpu| seen.insert(core_of(*cpu))).collect()
}

impl Memory {
    /// `None` where the kernel has no memory domains.
    fn of(binding: &MemoryBinding, local_rank: u32, cpus: &[u32], folder: &Path) -> Option<Self> {
        let (domains, name) = match &binding.domains {
            MemoryDomains::Local => (domains_of(cpus, folder), "LOC"),
            MemoryDomains::Rank => (IndexSet::from_range(local_rank, local_rank), "RANK"),
            MemoryDomains::Listed(list) => (entry(list, local_rank)?.clone(), "MASK"),
        };
        let domains = domains.intersection(&IndexSet::first_n(MAX_DOMAINS));
        let last = domains.ranges().last()?.1;
        let mut mask = vec![0; last as usize / c_ulong::BITS as usize + 1];
        for domain in domains.iter() {
            mask[domain as usize / c_ulong::BITS as usize] |= 1 << (domain % c_ulong::BITS);
        }
        let mode = if binding.is_preference { libc::MPOL_PREFERRED } else { libc::MPOL_BIND };
        Some(Self { mode, mask, name })
    }
}

/// The domains of CPUs; of all CPUs if there are none. Empty where the kernel has no domains.
fn domains_of(cpus: &[u32], folder: &Path) -> IndexSet {
    let Ok(entries) = fs::read_dir(folder) else { return IndexSet::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let numbers = names.filter_map(|name| name.strip_prefix("node")?.parse::<u32>().ok());
    let has_one = |domain: &u32| {
        let list = fs::read_to_string(folder.join(format!("node{domain}/cpulist")));
        let list = list.ok().and_then(|text| text.trim().parse::<IndexSet>().ok()).unwrap_or_default();
        cpus.is_empty() || cpus.iter().any(|cpu| list.contains(*cpu))
    };
    numbers.filter(has_one).collect()
}

/// A text on the stack.
struct Line {
    bytes: [u8; 1024],
    length: usize,
}

impl Line {
    fn new() -> Self {
        Self { bytes: [0; 1024], length: 0 }
    }

    /// Writes a set of numbers below `count` as a hexadecimal number.
    fn mask(&mut self, has: impl Fn(usize) -> bool, count: usize) -> fmt::Result {
        let digit =
            |at: usize| (0..4).filter(|bit| at * 4 + bit < count && has(at * 4 + bit)).map(|bit| 1 << bit).sum();
        let mut is_leading = true;
        for at in (0..count.div_ceil(4).max(1)).rev() {
            let digit: u32 = digit(at);
            if digit > 0 || !is_leading || at == 0 {
                is_leading = false;
                write!(self, "{digit:x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.length..self.length + text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{order, spooled};

    fn step(bound: &[&str], binding: Option<Binding>) -> StepTasks {
        let bound = bound.iter().map(|text| text.parse().unwrap()).collect();
        StepTasks { ranks: IndexSet::first_n(2), bound, binding, ..StepTasks::default() }
    }

    #[test]
    fn cores_of_the_node_are_the_cpus_of_the_run_in_order() {
        let mut order = order(7);
        order.cores = "2-3,6-7".parse().unwrap();
        let spooled = SpooledOrder { cpus: vec![12, 13, 16, 17], ..spooled(order) };
        let cpus = |bound: &[&str], local_rank| cpus_of(&spooled, &step(bound, None), local_rank);
        assert_eq!(cpus(&["3,6", "7"], 0), [13, 16]);
        assert_eq!(cpus(&["3,6", "7"], 1), [17]);
        assert_eq!(cpus(&["3,6", "7"], 2), [13, 16], "the list is used again");
        assert_eq!(cpus(&[], 0), [12, 13, 16, 17]);
    }

    #[test]
    fn a_node_that_does_not_bind_leaves_tasks_alone() {
        let spooled = SpooledOrder { cpus: vec![], ..spooled(order(7)) };
        assert!(cpus_of(&spooled, &step(&["0"], None), 0).is_empty());
    }

    #[test]
    fn a_task_with_one_thread_for_each_core_gets_the_first_of_each() {
        let folder = tempfile::tempdir().unwrap();
        for (cpu, siblings) in [(0, "0,4"), (1, "1,5"), (4, "0,4"), (5, "1,5")] {
            let topology = folder.path().join(format!("cpu{cpu}/topology"));
            fs::create_dir_all(&topology).unwrap();
            fs::write(topology.join("thread_siblings_list"), format!("{siblings}\n")).unwrap();
        }
        assert_eq!(first_threads(&[0, 1, 4, 5], folder.path()), [0, 1]);
        assert_eq!(first_threads(&[4, 5], folder.path()), [4, 5]);
        assert_eq!(first_threads(&[8, 9], folder.path()), [8, 9], "nothing is known about them");
    }

    #[test]
    fn local_memory_is_that_of_the_cpus() {
        let folder = tempfile::tempdir().unwrap();
        for (domain, cpus) in [(0, "0-3"), (1, "4-7"), (70, "8")] {
            let path = folder.path().join(format!("node{domain}"));
            fs::create_dir(&path).unwrap();
            fs::write(path.join("cpulist"), format!("{cpus}\n")).unwrap();
        }
        let mask = |domains, cpus: &[u32]| {
            let binding = MemoryBinding { domains, is_preference: false };
            Memory::of(&binding, 1, cpus, folder.path()).map(|memory| memory.mask)
        };
        assert_eq!(mask(MemoryDomains::Local, &[5]), Some(vec![2]));
        assert_eq!(mask(MemoryDomains::Local, &[3, 8]), Some(vec![1, 1 << 6]));
        assert_eq!(mask(MemoryDomains::Rank, &[3]), Some(vec![2]));
        let listed = |text: &str| MemoryDomains::Listed(vec![text.parse().unwrap()]);
        assert_eq!(mask(listed("0-1"), &[]), Some(vec![3]));
        assert_eq!(mask(listed("0,2000-4294967295"), &[]), Some(vec![1]), "there are no such domains");
        let none = Memory::of(
            &MemoryBinding { domains: MemoryDomains::Local, is_preference: true },
            0,
            &[1],
            &folder.path().join("absent"),
        );
        assert!(none.is_none());
    }

    #[test]
    fn masks_are_hexadecimal_numbers() {
        let text = |numbers: &[usize], count| {
            let mut line = Line::new();
            line.mask(|at| numbers.contains(&at), count).unwrap();
            String::from_utf8(line.bytes[..line.length].to_vec()).unwrap()
        };
        assert_eq!(text(&[0, 5], 64), "21");
        assert_eq!(text(&[1_023], 1_024), format!("8{}", "0".repeat(255)));
        assert_eq!(text(&[], 0), "0");
    }
}
