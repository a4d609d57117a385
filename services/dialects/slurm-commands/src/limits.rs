//! The limits of a process, by the names that Slurm's variables have for them.

use muster_slurm::environment::{RESOURCES, SoftLimit};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

/// The soft limits of this process, as the variables that carry them.
pub fn own_limits() -> Vec<(String, String)> {
    let of = |name: &'static str| {
        let (soft, _) = getrlimit(resource(name)?).ok()?;
        Some(SoftLimit { resource: name, most: Some(soft).filter(|soft| *soft != RLIM_INFINITY) }.variable())
    };
    RESOURCES.into_iter().filter_map(of).collect()
}

/// The limit of that name; `None` if the system has none.
pub fn resource(name: &str) -> Option<Resource> {
    Some(match name {
        "CPU" => Resource::RLIMIT_CPU,
        "FSIZE" => Resource::RLIMIT_FSIZE,
        "DATA" => Resource::RLIMIT_DATA,
        "STACK" => Resource::RLIMIT_STACK,
        "CORE" => Resource::RLIMIT_CORE,
        "RSS" => Resource::RLIMIT_RSS,
        "NPROC" => Resource::RLIMIT_NPROC,
        "NOFILE" => Resource::RLIMIT_NOFILE,
        "MEMLOCK" => Resource::RLIMIT_MEMLOCK,
        "AS" => Resource::RLIMIT_AS,
        _ => return None,
    })
}
