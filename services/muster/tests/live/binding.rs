//! Tasks that are bound to cores and memory, on a node that is this host.

use crate::{
    slurm::Site,
    system::{Output, System},
};
use muster_surroundings::skipped;
use std::{fs, path::Path};

/// A site whose only node binds its processes, and the CPUs of its two cores, each in a socket of its own. `None` if this host
/// has one CPU.
fn site() -> Option<(Site, [u32; 2])> {
    site_of::<2>()
}

/// The same with this many cores in two sockets, and on a host of at least as many CPUs.
fn site_of<const CORES: usize>() -> Option<(Site, [u32; CORES])> {
    let status = fs::read_to_string("/proc/self/status").expect("there is /proc");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("it names the CPUs");
    let cpus: muster_schemas::resources::IndexSet = list.trim().parse().expect("it is a list");
    let cpus: Vec<u32> = cpus.iter().take(CORES).collect();
    let Ok(cpus) = <[u32; CORES]>::try_from(cpus) else {
        skipped(&format!("this host has fewer than {CORES} CPUs, so there is nothing to choose from"));
        return None;
    };
    let mut system = System::stopped();
    let node = format!("[[nodes]]\nname = \"node1\"\ncores = {CORES}\nsockets = 2\nmemory = \"2G\"\n");
    system.write("site.toml", &format!("[executor]\nbind_cpus = true\n\n{node}"));
    let config = system.path("site.toml").display().to_string();
    system.restart(&["--config", &config]);
    system.ok(&["install-commands", "bin"]);
    Some((Site { system }, cpus))
}

/// The command by which a task prints the CPUs that it may use.
const ALLOWED: &str = "sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status";

/// Lines of tasks, in order of ranks.
fn in_order(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// `--cpu-bind` of `srun` holds for the processes, each of which says so.
#[test]
fn tasks_of_srun_run_on_the_cpus_that_they_are_bound_to() {
    let Some((site, [first, second])) = site() else { return };
    let cpus = |options: &str| in_order(&site.ok(&format!("srun -l {options} {ALLOWED}")));
    let each = [format!("0: {first}"), format!("1: {second}")];
    let crossed = [format!("0: {second}"), format!("1: {first}")];
    let both: muster_schemas::resources::IndexSet = [first, second].into_iter().collect();
    assert_eq!(cpus("-n2"), each, "the step has just enough");
    assert_eq!(cpus("-n2 --cpu-bind=none"), [format!("0: {both}"), format!("1: {both}")]);
    assert_eq!(cpus("-n2 --cpu-bind=map_cpu:1,0"), crossed);
    assert_eq!(cpus("-n2 --cpu-bind=mask_cpu:0x2,0x1"), crossed);
    assert_eq!(cpus("-n2 --cpu-bind=rank_ldom"), each);
    assert_eq!(cpus("-n1 --cpu-bind=map_ldom:1 --exclusive"), [format!("0: {second}")]);
    // A job of two cores, of which a step with one task uses one.
    let inside = |line: &str| site.ok(&format!("salloc -Q -n2 srun -n1 {line} {ALLOWED}"));
    assert_eq!(inside("").trim(), both.to_string());
    assert_eq!(inside("--cpu-bind=cores").trim(), first.to_string());
    assert_eq!(inside("--hint=nomultithread").trim(), first.to_string());

    let Output { stderr, .. } = site.run(&format!("srun -n2 --cpu-bind=verbose,map_cpu:1,0 {ALLOWED}"));
    let told = in_order(&stderr);
    assert_eq!(told.len(), 2, "{stderr}");
    for (line, (rank, cpu)) in told.iter().zip([(0, second), (1, first)]) {
        let begins = format!("cpu-bind=MASK - node1, task {rank:2} {rank:2} [");
        let ends = format!("]: mask 0x{:x} set", 1_u128 << cpu);
        assert!(line.starts_with(&begins) && line.ends_with(&ends), "{line}");
    }
    let variables = site.ok("srun -n1 --cpu-bind=v,mask_cpu:0x1 sh -c 'env | grep ^SLURM_CPU_BIND | sort'");
    assert_eq!(
        variables,
        "SLURM_CPU_BIND=v,mask_cpu:0x1\nSLURM_CPU_BIND_LIST=0x1\nSLURM_CPU_BIND_TYPE=mask_cpu:\n\
         SLURM_CPU_BIND_VERBOSE=verbose\n"
    );
}

/// Where a socket has several cores, tasks fill one after the other or go to each in turn, and a socket gets no more tasks than
/// it may.
#[test]
fn tasks_fill_sockets_or_go_to_each_in_turn() {
    let Some((site, cpus)) = site_of::<4>() else { return };
    for (options, cores) in [
        ("-n4 -m block:block", &[&[0][..], &[1], &[2], &[3]][..]),
        ("-n4 -m block:cyclic", &[&[0], &[2], &[1], &[3]]),
        ("-n2 -c2 -m block:cyclic", &[&[0, 1], &[2, 3]]),
        ("-n2 -c2 -m block:fcyclic", &[&[0, 2], &[1, 3]]),
        ("-n2 --cpu-bind=cores --ntasks-per-socket=1", &[&[0], &[2]]),
    ] {
        let said = in_order(&site.ok(&format!("salloc -Q -n4 srun -l {options} {ALLOWED}")));
        let list = |cores: &&[usize]| -> muster_schemas::resources::IndexSet {
            cores.iter().map(|core| cpus[*core]).collect()
        };
        let expected: Vec<String> =
            cores.iter().enumerate().map(|(rank, cores)| format!("{rank}: {}", list(cores))).collect();
        assert_eq!(said, expected, "{options}");
    }
}

/// Cores that the job does not have are refused, and nothing runs; words that are no binding too.
#[test]
fn what_cannot_be_bound_is_refused() {
    let Some((site, _)) = site() else { return };
    let (status, told) = site.fails("srun -n1 --cpu-bind=map_cpu:5 touch ran");
    assert_eq!(status, 1, "{told}");
    assert!(told.contains("a task is to be bound to cores 5 of node node1, the job has 0"), "{told}");
    let (status, told) = site.fails("srun -n2 --ntasks-per-socket=1 --cpu-bind=map_ldom:7 touch ran");
    assert_eq!(status, 1, "{told}");
    let (status, told) = site.fails("srun -n1 --cpu-bind=somehow touch ran");
    assert_eq!(told.lines().next(), Some("srun: error: Invalid --cpu-bind specification"), "{told}");
    assert_ne!(status, 0);
    assert!(!Path::new(&site.system.path("ran")).exists());
    assert!(site.ok("srun --cpu-bind=help").contains("map_cpu:LIST"));
}

/// What tasks are bound to is in the events and in the views of steps.
#[test]
fn the_cores_of_each_task_are_in_the_log() {
    let Some((site, [first, second])) = site() else { return };
    site.ok("srun -n2 --cpu-bind=map_cpu:1,0 true");
    let events = site.system.ok(&["job", "events", "1", "--json"]);
    let events: String = events.split_whitespace().collect();
    assert!(events.contains(r#""bound":["1","0"]"#), "{events}");
    let job = site.system.submit(&["-n", "2", "--", "sleep", "600"]);
    site.system.wait_for_state(&job, "running");
    let step = |bound: &str, command: &[&str]| {
        let options =
            ["step", "run", "-n", "2", "-l", "--overlap", "--bind-cores", bound, "--show-binding", &job, "--"];
        site.system.run(&[&options[..], command].concat())
    };
    let output = step("1:0", &["sed", "-n", "s/^Cpus_allowed_list:.//p", "/proc/self/status"]);
    assert_eq!(in_order(&output.stdout), [format!("0: {second}"), format!("1: {first}")], "{}", output.stderr);
    assert_eq!(output.stderr.matches("cpu-bind=MASK - node1, task").count(), 2, "{}", output.stderr);
    let refused = step("2", &["true"]);
    assert!(refused.status != 0 && refused.stderr.contains("the job has 0-1"), "{}", refused.stderr);
}

/// `--mem-bind` sets the memory policy of the processes.
#[test]
fn tasks_use_the_memory_that_they_are_bound_to() {
    let Some((site, _)) = site() else { return };
    if !Path::new("/sys/devices/system/node/node0").exists() || !Path::new("/proc/self/numa_maps").exists() {
        return skipped("this kernel has no memory domains");
    }
    let Output { stdout, stderr, .. } = site.run("srun -n1 --mem-bind=verbose,map_mem:0 head -n1 /proc/self/numa_maps");
    assert!(stdout.contains(" bind:0 "), "{stdout}{stderr}");
    assert!(stderr.starts_with("mem-bind=MASK - node1, task  0  0 ["), "{stderr}");
    assert!(stderr.ends_with("]: mask 0x1 set\n"), "{stderr}");
    let local = site.ok("srun -n1 --mem-bind=prefer,local head -n1 /proc/self/numa_maps");
    assert!(local.contains(" prefer:0 ") || local.contains(" prefer=relative:0 "), "{local}");
    let (status, told) = site.fails("srun -n1 --mem-bind=map_mem:60 true");
    assert!(status != 0 && told.contains("memory domains"), "{told}");
}

/// OAR-X-02: a job of OAR uses the CPUs that the property `cpuset` of its node lists for its cores, also in its steps. A list that
/// cannot be true keeps jobs away.
#[test]
fn jobs_of_oar_use_the_cpus_that_their_node_lists() {
    let Some((site, [first, second])) = site() else { return };
    let printed = |job: u64, options: &str| {
        site.ok(&format!("oarsub {options} \"{ALLOWED}\""));
        crate::oar::wait_for(&site, job, "Terminated");
        site.system.read(&format!("OAR.{job}.stdout")).trim().to_owned()
    };
    assert_eq!(printed(1, "-l core=1"), first.to_string());
    site.ok(&format!("oarnodesetting -h node1 -p 'cpuset={second} {first}'"));
    for (resource, cpu) in [(1, second), (2, first)] {
        let shown = site.ok(&format!("oarnodes --sql \"cpuset = '{cpu}'\""));
        let ids: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("resource_id: ")).collect();
        assert_eq!(ids, [resource.to_string()], "{shown}");
    }
    assert_eq!(printed(2, "-l core=1"), second.to_string());
    let both: muster_schemas::resources::IndexSet = [first, second].into_iter().collect();
    site.ok(&format!("oarnodesetting -h node1 -p 'cpuset={first}+{second}'"));
    assert_eq!(printed(3, "-l core=1"), both.to_string(), "each core has both");
    site.ok(&format!("oarnodesetting -h node1 -p 'cpuset={second}'"));
    site.ok("oarsub -l core=2 'sleep 600'");
    crate::oar::wait_for(&site, 4, "Running");
    assert_eq!(site.ok(&format!("OAR_JOB_ID=4 oarsh node1 \"{ALLOWED}\"")).trim(), second.to_string());
    site.ok("oardel 4");
    crate::oar::wait_for(&site, 4, "Error");
    site.ok("oarnodesetting -h node1 -p 'cpuset=0 1 2'");
    site.ok("oarsub -l core=1 true");
    site.system.wait_until("the node is suspected", || site.ok("oarnodes -s").contains("Suspected"));
    // It waits for another node.
    crate::oar::wait_for(&site, 5, "Waiting");
    let events = site.ok("oarnodes -e '2026-01-01 00:00:00' node1");
    assert!(events.contains("CPUSET_ERROR") && events.contains("it has 3 entries"), "{events}");
}
