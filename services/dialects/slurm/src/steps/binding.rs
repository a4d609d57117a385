//! What the tasks of a step are bound to, by the options of `srun`.

use crate::{
    environment::BINDING_OPTIONS,
    options::values::{self, CpuBind, MemBind},
    request::{Geometry, Settings},
};
use muster_schemas::binding::{Binding, CoreBinding, SocketOrder};

/// The text of `--cpu-bind=help`.
pub const CPU_BIND_HELP: &str = "\
CPU bind options:
    --cpu-bind=[quiet,|verbose,]TYPE
        quiet               say nothing (default)
        verbose             each task tells what it is bound to
        none                to all CPUs of the step
        cores, threads      to as many CPUs as a task asks for
        rank                the same, in order of ranks
        sockets, ldoms      to the sockets of these CPUs
        rank_ldom           to a socket each, in turn
        map_cpu:LIST        to these CPUs of the node, one for each task
        mask_cpu:LIST       to these sets of CPUs, as hexadecimal masks
        map_ldom:LIST       to these sockets, one for each task
        mask_ldom:LIST      to these sets of sockets, as hexadecimal masks
        help                this text
";

/// The text of `--mem-bind=help`.
pub const MEM_BIND_HELP: &str = "\
Memory bind options:
    --mem-bind=[quiet,|verbose,][prefer,]TYPE
        quiet               say nothing (default)
        verbose             each task tells what it is bound to
        prefer              other memory may be used if this is full
        none                to no memory domain (default)
        local               to the domains of a task's CPUs
        rank                to the domain with the task's number on its node
        map_mem:LIST        to these domains, one for each task
        mask_mem:LIST       to these sets of domains, as hexadecimal masks
        help                this text
";

/// The text of `--hint=help`.
pub const HINT_HELP: &str = "\
Application hint options:
    --hint=TYPE
        compute_bound       a core for each CPU that a task asks for, one thread on each
        memory_bound        one core of each socket, one thread on it
        [no]multithread     [do not] use several threads of a core
        help                this text
";

/// The help text that a part of a command line asks for.
pub fn binding_help(settings: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
    let texts = [("cpu-bind", CPU_BIND_HELP), ("mem-bind", MEM_BIND_HELP), ("hint", HINT_HELP)];
    let asks = |option: &str| settings(option).is_some_and(|value| value.eq_ignore_ascii_case("help"));
    texts.into_iter().find(|(option, _)| asks(option)).map(|(_, text)| text)
}

/// The binding of the tasks of a part; `None` if no option is about it.
pub fn binding(settings: &Settings) -> Option<Binding> {
    let cpus = settings.value("cpu-bind", CpuBind::parse).unwrap_or_default();
    let memory = settings.value("mem-bind", MemBind::parse).unwrap_or_default();
    let hint = settings.text("hint").unwrap_or_default().to_ascii_lowercase();
    let hinted = |hints: &[&str]| hints.contains(&hint.as_str());
    let count = |option| settings.value(option, values::count);
    let is_alone = count("ntasks-per-core") == Some(1);
    let threads = Geometry::of(settings).ok().and_then(|geometry| geometry.threads);
    let one_thread = is_alone || threads == Some(1) || hinted(&["compute_bound", "memory_bound", "nomultithread"]);
    let of_hint = || one_thread.then_some(CoreBinding::Own);
    let one_for_each_socket = || hinted(&["memory_bound"]).then_some(1);
    let binding = Binding {
        cores: cpus.cores.or_else(of_hint),
        sockets: settings
            .text("distribution")
            .and_then(values::socket_order)
            .or_else(|| hinted(&["memory_bound"]).then_some(SocketOrder::Cyclic)),
        tasks_per_socket: count("ntasks-per-socket").or_else(one_for_each_socket),
        one_thread,
        memory: memory.memory,
        tells_cores: cpus.is_verbose,
        tells_memory: memory.is_verbose,
    };
    (binding != Binding::default()).then_some(binding)
}

/// The variables that tell the tasks of a part what was asked for.
pub fn binding_variables(settings: &Settings) -> Vec<(String, String)> {
    let mut variables: Vec<(&str, String)> = Vec::new();
    let loud = |is_verbose| if is_verbose { "verbose" } else { "quiet" }.to_owned();
    if let Some((text, bind)) = settings.text("cpu-bind").zip(settings.value("cpu-bind", CpuBind::parse)) {
        variables.extend([
            ("SLURM_CPU_BIND", text.to_owned()),
            ("SLURM_CPU_BIND_VERBOSE", loud(bind.is_verbose)),
            ("SLURM_CPU_BIND_TYPE", bind.kind),
            ("SLURM_CPU_BIND_LIST", bind.list),
        ]);
    }
    if let Some((text, bind)) = settings.text("mem-bind").zip(settings.value("mem-bind", MemBind::parse)) {
        let is_preference = bind.memory.as_ref().is_some_and(|memory| memory.is_preference);
        variables.extend([
            ("SLURM_MEM_BIND", text.to_owned()),
            ("SLURM_MEM_BIND_VERBOSE", loud(bind.is_verbose)),
            ("SLURM_MEM_BIND_TYPE", bind.kind),
            ("SLURM_MEM_BIND_LIST", bind.list),
        ]);
        variables.extend(is_preference.then(|| ("SLURM_MEM_BIND_PREFER", "prefer".to_owned())));
    }
    for (option, name) in BINDING_OPTIONS {
        variables.extend(settings.text(option).map(|text| (name, text.to_owned())));
    }
    variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
