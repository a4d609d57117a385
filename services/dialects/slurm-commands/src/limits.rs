//! The limits of a process, named as in Slurm's variables.

use muster_slurm::environment::{RESOURCES, SoftLimit, resource};
use nix::sys::resource::{RLIM_INFINITY, getrlimit};

/// The soft limits of this process, as the variables that carry them.
pub fn own_limits() -> Vec<(String, String)> {
    let of = |name: &'static str| {
        let (soft, _) = getrlimit(resource(name)?).ok()?;
        Some(SoftLimit { resource: name, most: Some(soft).filter(|soft| *soft != RLIM_INFINITY) }.variable())
    };
    RESOURCES.into_iter().filter_map(of).collect()
}
